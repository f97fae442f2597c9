//! From counts of results to Elo with an error. Pure arithmetic: knows no engines and no games.
//!
//! Games are played in pairs, one opening with colours swapped, and the two games of a pair are not
//! independent (the opening favours one side in both). The error is therefore taken from the
//! spread of pair results ([`Pentanomial`]); only where no pair is complete, from single games.
//! Source: M. Van den Bergh, "A practical introduction to the GSPRT"; the same formulas give the figures that
//! fastchess, Cutechess and OpenBench publish, and the tests below repeat some of those.

use serde::Serialize;

/// Two-sided 95 % of a normal distribution.
const Z95: f64 = 1.959_963_984_540_054;

/// Elo a unit of normalised score: 800 / ln 10.
const NORMALISED: f64 = 800.0 / std::f64::consts::LN_10;

/// Wins, draws and losses of one side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Games won.
    pub wins: u64,
    /// Games drawn.
    pub draws: u64,
    /// Games lost.
    pub losses: u64,
}

impl Counts {
    /// All games.
    pub fn games(&self) -> u64 {
        self.wins + self.draws + self.losses
    }

    /// Points over games, 0..=1; `None` without games.
    pub fn score(&self) -> Option<f64> {
        let points = self.wins as f64 + 0.5 * self.draws as f64;
        (self.games() > 0).then(|| points / self.games() as f64)
    }

    /// Mean and error of one game's score.
    pub fn estimate(&self) -> Option<Estimate> {
        let counts = [(0.0, self.losses), (0.5, self.draws), (1.0, self.wins)];
        Estimate::of(&counts, Sample::Games)
    }
}

/// Pairs of games by the points of one side: 0, ½, 1, 1½, 2.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Pentanomial(pub [u64; 5]);

impl Pentanomial {
    /// Counts a pair by the half points (0..=2 each) of its two games.
    pub fn add(&mut self, first_halves: u8, second_halves: u8) {
        let index = usize::from(first_halves + second_halves).min(4);
        self.0[index] += 1;
    }

    /// All pairs.
    pub fn pairs(&self) -> u64 {
        self.0.iter().sum()
    }

    /// Mean and error of a game's score, from the spread of the pairs.
    pub fn estimate(&self) -> Option<Estimate> {
        let scores = [0.0, 0.25, 0.5, 0.75, 1.0];
        let counts: Vec<_> = scores.into_iter().zip(self.0).collect();
        Estimate::of(&counts, Sample::Pairs)
    }
}

/// What the error of an [`Estimate`] was taken from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Sample {
    /// Complete pairs (pentanomial).
    Pairs,
    /// Single games (trinomial).
    Games,
}

/// A mean score with its standard error.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// Mean score a game, 0..=1.
    pub score: f64,
    /// Standard deviation of one sample (a pair's mean score, or a game's score).
    pub deviation: f64,
    /// Number of samples.
    pub samples: u64,
    /// What a sample is.
    pub sample: Sample,
}

impl Estimate {
    fn of(counts: &[(f64, u64)], sample: Sample) -> Option<Self> {
        let samples: u64 = counts.iter().map(|(_, count)| count).sum();
        if samples == 0 {
            return None;
        }
        let mean_of = |value: &dyn Fn(f64) -> f64| {
            counts
                .iter()
                .map(|&(score, count)| value(score) * count as f64)
                .sum::<f64>()
                / samples as f64
        };
        let score = mean_of(&|score| score);
        let variance = mean_of(&|one| (one - score).powi(2));
        Some(Self {
            score,
            deviation: variance.sqrt(),
            samples,
            sample,
        })
    }

    /// Standard error of the mean; `None` while all samples are equal, which says nothing about it.
    pub fn error(&self) -> Option<f64> {
        (self.deviation > 0.0).then(|| self.deviation / (self.samples as f64).sqrt())
    }

    /// 95 % interval of the score, within 0..=1.
    pub fn score_interval(&self) -> Option<(f64, f64)> {
        let margin = Z95 * self.error()?;
        Some((
            (self.score - margin).max(0.0),
            (self.score + margin).min(1.0),
        ))
    }

    /// Elo difference; infinite at a score of 0 or 1.
    pub fn elo(&self) -> f64 {
        elo_of_score(self.score)
    }

    /// 95 % interval of the Elo difference (not symmetric around it).
    pub fn elo_interval(&self) -> Option<(f64, f64)> {
        let (low, high) = self.score_interval()?;
        Some((elo_of_score(low), elo_of_score(high)))
    }

    /// Half the width of the 95 % Elo interval, the "± x" of the usual tools.
    pub fn elo_error(&self) -> Option<f64> {
        let (low, high) = self.elo_interval()?;
        Some((high - low) / 2.0)
    }

    /// Likelihood of superiority, 0..=1: the chance that the true score is above one half.
    pub fn los(&self) -> Option<f64> {
        Some(normal_cdf((self.score - 0.5) / self.error()?))
    }

    /// Normalised Elo: the advantage in units of the spread of one game.
    pub fn normalised_elo(&self) -> Option<f64> {
        let game_deviation = self.deviation * self.games_a_sample().sqrt();
        (self.deviation > 0.0).then(|| (self.score - 0.5) / game_deviation * NORMALISED)
    }

    /// Half the width of its 95 % interval.
    pub fn normalised_elo_error(&self) -> Option<f64> {
        let games = self.samples as f64 * self.games_a_sample();
        (self.deviation > 0.0).then(|| Z95 * NORMALISED / games.sqrt())
    }

    fn games_a_sample(&self) -> f64 {
        match self.sample {
            Sample::Pairs => 2.0,
            Sample::Games => 1.0,
        }
    }
}

/// The Elo difference at which the logistic model expects that score.
pub fn elo_of_score(score: f64) -> f64 {
    // Adding 0 keeps an even score from printing as -0.
    -400.0 * (1.0 / score - 1.0).log10() + 0.0
}

/// The score the logistic model expects at an Elo difference.
pub fn score_of_elo(elo: f64) -> f64 {
    1.0 / (1.0 + 10f64.powf(-elo / 400.0))
}

/// Ratings that make the results of a tournament most likely under the logistic model, a draw being half a win and
/// half a loss; their mean is 0. `encounters` name two players each, `counts` their games seen from the first.
/// `None` for players without games, and for those whose rating would be infinite: who won or lost every game, or is
/// tied to the others only through such players.
///
/// Zermelo's iteration (D. Hunter, "MM algorithms for generalized Bradley-Terry models", 2004, equation 3).
pub fn ratings(
    players: usize,
    encounters: &[(usize, usize)],
    counts: &[Counts],
) -> Vec<Option<f64>> {
    let mut rated = vec![true; players];
    let games = || {
        encounters.iter().zip(counts).map(|(&pair, counts)| {
            let draws = 0.5 * counts.draws as f64;
            (
                pair,
                counts.wins as f64 + draws,
                counts.losses as f64 + draws,
            )
        })
    };
    // Whoever has no points or all of them among those that are left goes, until nobody does.
    loop {
        let (mut won, mut lost) = (vec![0.0; players], vec![0.0; players]);
        for ((a, b), for_a, for_b) in games().filter(|((a, b), ..)| rated[*a] && rated[*b]) {
            won[a] += for_a;
            lost[a] += for_b;
            won[b] += for_b;
            lost[b] += for_a;
        }
        let goes = |player: usize| won[player] <= 0.0 || lost[player] <= 0.0;
        let Some(player) = (0..players).find(|&player| rated[player] && goes(player)) else {
            break;
        };
        rated[player] = false;
    }
    let mut strength = vec![1.0_f64; players];
    for _ in 0..10_000 {
        let (mut won, mut share) = (vec![0.0; players], vec![0.0; players]);
        for ((a, b), for_a, for_b) in games().filter(|((a, b), ..)| rated[*a] && rated[*b]) {
            let each = (for_a + for_b) / (strength[a] + strength[b]);
            won[a] += for_a;
            won[b] += for_b;
            share[a] += each;
            share[b] += each;
        }
        let mut change = 0.0_f64;
        for player in (0..players).filter(|&player| rated[player]) {
            let next = won[player] / share[player];
            change = change.max((next / strength[player]).ln().abs());
            strength[player] = next;
        }
        if change < 1e-10 {
            break;
        }
    }
    let elo = |player: usize| 400.0 * strength[player].log10();
    let known: Vec<f64> = (0..players).filter(|&p| rated[p]).map(elo).collect();
    let mean = known.iter().sum::<f64>() / known.len().max(1) as f64;
    (0..players)
        .map(|player| rated[player].then(|| elo(player) - mean))
        .collect()
}

/// Standard normal distribution function.
fn normal_cdf(x: f64) -> f64 {
    0.5 * erfc(-x / std::f64::consts::SQRT_2)
}

/// Complementary error function: the Taylor series near zero, a continued fraction further out
/// (Abramowitz and Stegun 7.1.6 and 7.1.14). Absolute error below 1e-12.
fn erfc(x: f64) -> f64 {
    if x < 0.0 {
        return 2.0 - erfc(-x);
    }
    let scale = (-x * x).exp() / std::f64::consts::PI.sqrt();
    if x < 2.5 {
        let (mut term, mut sum, mut n) = (x, x, 0.0);
        while term > 1e-17 * sum {
            n += 1.0;
            term *= 2.0 * x * x / (2.0 * n + 1.0);
            sum += term;
        }
        return 1.0 - 2.0 * scale * sum;
    }
    let tail = (1..=60)
        .rev()
        .fold(x, |tail, k| x + f64::from(k) / 2.0 / tail);
    scale / tail
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Published {
        pentanomial: [u64; 5],
        elo: f64,
        error: f64,
        normalised: Option<(f64, f64)>,
        los_percent: Option<f64>,
    }

    /// Results as printed by fastchess and OpenBench in public pull requests.
    const PUBLISHED: [Published; 7] = [
        // lynx-chess/Lynx 1899
        Published {
            pentanomial: [235, 1384, 2521, 1341, 239],
            elo: -1.06,
            error: 4.05,
            normalised: Some((-1.67, 6.37)),
            los_percent: Some(30.33),
        },
        // xu-shawn/Serendipity 55, 62, 54, 60
        Published {
            pentanomial: [283, 1151, 2214, 1221, 281],
            elo: 2.23,
            error: 4.50,
            normalised: Some((3.32, 6.71)),
            los_percent: Some(83.40),
        },
        Published {
            pentanomial: [153, 1043, 2108, 1159, 167],
            elo: 5.40,
            error: 4.34,
            normalised: Some((8.82, 7.08)),
            los_percent: Some(99.27),
        },
        Published {
            pentanomial: [275, 1381, 2577, 1389, 380],
            elo: 6.31,
            error: 4.16,
            normalised: Some((9.42, 6.22)),
            los_percent: Some(99.85),
        },
        Published {
            pentanomial: [212, 1056, 2115, 1168, 245],
            elo: 6.45,
            error: 4.52,
            normalised: Some((9.93, 6.95)),
            los_percent: Some(99.74),
        },
        // Yoshie2000/PlentyChess 226
        Published {
            pentanomial: [846, 13353, 26519, 13740, 878],
            elo: 1.42,
            error: 1.13,
            normalised: None,
            los_percent: None,
        },
        // paulsonkoly/chess-3 35
        Published {
            pentanomial: [128, 250, 401, 196, 81],
            elo: -24.39,
            error: 11.55,
            normalised: None,
            los_percent: None,
        },
    ];

    fn near(found: f64, expected: f64, tolerance: f64, what: &str) {
        assert!(
            (found - expected).abs() <= tolerance,
            "{what}: {found} instead of {expected}"
        );
    }

    #[test]
    fn pentanomial_as_published() {
        for published in &PUBLISHED {
            let estimate = Pentanomial(published.pentanomial).estimate().unwrap();
            let name = format!("{:?}", published.pentanomial);
            near(estimate.elo(), published.elo, 0.0051, &name);
            // OpenBench (the rows without normalised Elo) prints the wider side of the interval.
            let tolerance = match published.normalised {
                Some(_) => 0.0051,
                None => 0.005 + 0.004 * published.error,
            };
            let error = estimate.elo_error().unwrap();
            near(error, published.error, tolerance, &name);
            if let Some((elo, error)) = published.normalised {
                near(estimate.normalised_elo().unwrap(), elo, 0.0051, &name);
                near(
                    estimate.normalised_elo_error().unwrap(),
                    error,
                    0.0051,
                    &name,
                );
            }
            if let Some(los) = published.los_percent {
                near(100.0 * estimate.los().unwrap(), los, 0.0051, &name);
            }
        }
    }

    #[test]
    fn trinomial_as_published() {
        // Cutechess: "332 - 316 - 352 [0.508] … Elo difference: 5.6 +/- 17.3, LOS: 73.5 %"
        let counts = Counts {
            wins: 332,
            losses: 316,
            draws: 352,
        };
        let estimate = counts.estimate().unwrap();
        near(counts.score().unwrap(), 0.508, 1e-9, "score");
        near(estimate.elo(), 5.6, 0.05, "Elo");
        near(estimate.elo_error().unwrap(), 17.3, 0.05, "error");
        near(100.0 * estimate.los().unwrap(), 73.5, 0.05, "LOS");
    }

    #[test]
    fn elo_and_score_are_inverse() {
        near(elo_of_score(0.75), 190.848_501_887_865, 1e-9, "Elo of 75 %");
        for elo in [-800.0, -10.0, 0.0, 3.5, 400.0] {
            near(elo_of_score(score_of_elo(elo)), elo, 1e-9, "round trip");
        }
        assert_eq!(elo_of_score(1.0), f64::INFINITY);
        assert_eq!(elo_of_score(0.0), f64::NEG_INFINITY);
    }

    #[test]
    fn ratings_are_those_of_the_model() {
        let counts = |wins, draws, losses| Counts {
            wins,
            draws,
            losses,
        };
        let pairs = [(0, 1), (0, 2), (1, 2)];
        // Two players: the difference is that of the score.
        let two = ratings(2, &pairs[..1], &[counts(70, 10, 20)]);
        let (a, b) = (two[0].unwrap(), two[1].unwrap());
        near(a - b, elo_of_score(0.75), 1e-6, "difference");
        near(a + b, 0.0, 1e-6, "mean");
        // Scores that the model expects of ratings 100, 0 and −100 give those back.
        let expected = |elo: f64| {
            let wins = (1e9 * score_of_elo(elo)).round() as u64;
            counts(wins, 0, 1_000_000_000 - wins)
        };
        let three = ratings(
            3,
            &pairs,
            &[expected(100.0), expected(200.0), expected(100.0)],
        );
        for (found, rating) in three.iter().zip([100.0, 0.0, -100.0]) {
            near(found.unwrap(), rating, 1e-4, "rating");
        }
        // Who lost every game has none, nor do the others gain by it.
        let lost = ratings(
            3,
            &pairs,
            &[counts(1, 2, 1), counts(4, 0, 0), counts(4, 0, 0)],
        );
        assert_eq!(lost[2], None);
        near(lost[0].unwrap(), 0.0, 1e-9, "even");
        assert_eq!(ratings(3, &pairs, &[Counts::default(); 3]), [None; 3]);
    }

    #[test]
    fn nothing_is_claimed_without_spread() {
        assert_eq!(Counts::default().estimate(), None);
        assert_eq!(Pentanomial::default().estimate(), None);
        let draws = Pentanomial([0, 0, 7, 0, 0]).estimate().unwrap();
        assert_eq!(
            (draws.elo(), draws.elo_error(), draws.los()),
            (0.0, None, None)
        );
        let sweep = Pentanomial([0, 0, 0, 0, 3]).estimate().unwrap();
        assert_eq!((sweep.elo(), sweep.score_interval()), (f64::INFINITY, None));
    }

    #[test]
    fn pairs_know_more_than_games_when_openings_decide() {
        // White always wins: the pairs show that the engines are equal, the games do not.
        let mut pairs = Pentanomial::default();
        (0..10).for_each(|_| pairs.add(2, 0));
        pairs.add(2, 1);
        let games = Counts {
            wins: 11,
            draws: 1,
            losses: 10,
        };
        let (by_pairs, by_games) = (pairs.estimate().unwrap(), games.estimate().unwrap());
        near(by_pairs.score, by_games.score, 1e-12, "same mean");
        assert!(by_pairs.error().unwrap() < 0.25 * by_games.error().unwrap());
    }

    #[test]
    fn error_function() {
        for (x, expected) in [
            (0.0, 1.0),
            (0.5, 0.479_500_122_186_953_5),
            (1.0, 0.157_299_207_050_285_13),
            (2.5, 4.069_520_174_449_59e-4),
            (4.0, 1.541_725_790_028_002e-8),
        ] {
            near(erfc(x), expected, 1e-12, "erfc");
            near(erfc(-x), 2.0 - expected, 1e-12, "erfc of the negative");
        }
    }
}
