//! Sequential probability ratio test over results of pairs. Pure arithmetic: knows no engines and no games.
//!
//! The generalised test of M. Van den Bergh ("A practical introduction to the GSPRT", "Normalized Elo"): each
//! hypothesis is the distribution closest to what was seen (maximum likelihood) whose mean score, or whose
//! advantage in units of its spread, is the one supposed. Fishtest, fastchess and OpenBench decide by the same
//! ratio; the tests below repeat figures of theirs.

use serde::Serialize;

use super::stats::{Counts, Pentanomial, score_of_elo};

/// Elo a unit of a game's normalised advantage: 800 / ln 10.
const NORMALISED: f64 = 800.0 / std::f64::consts::LN_10;
/// What stands for a result that was never seen, so that it stays possible.
const UNSEEN: f64 = 1e-3;

/// What the bounds are measured in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Model {
    /// Elo by the logistic formula.
    Logistic,
    /// Normalised Elo: the advantage in units of a game's spread.
    #[default]
    Normalised,
}

/// A test of "at most elo0" against "at least elo1".
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Sprt {
    /// Elo of the first hypothesis.
    pub elo0: f64,
    /// Elo of the second one.
    pub elo1: f64,
    /// Chance of accepting the second one where the first one holds.
    pub alpha: f64,
    /// Chance of the reverse.
    pub beta: f64,
    /// What Elo means here.
    pub model: Model,
}

/// What a test says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// elo0 is accepted.
    H0,
    /// elo1 is accepted.
    H1,
    /// More games are needed.
    Open,
}

impl Sprt {
    /// Lower and upper bound of the log-likelihood ratio.
    pub fn bounds(&self) -> (f64, f64) {
        (
            (self.beta / (1.0 - self.alpha)).ln(),
            ((1.0 - self.beta) / self.alpha).ln(),
        )
    }

    /// Log-likelihood ratio of elo1 to elo0 after these pairs; `None` before the first one.
    pub fn of_pairs(&self, pairs: &Pentanomial) -> Option<f64> {
        let scores = [0.0, 0.25, 0.5, 0.75, 1.0];
        self.ratio(&scores, &pairs.0, 2.0)
    }

    /// The same after single games.
    pub fn of_games(&self, games: &Counts) -> Option<f64> {
        self.ratio(
            &[0.0, 0.5, 1.0],
            &[games.losses, games.draws, games.wins],
            1.0,
        )
    }

    /// What a ratio says.
    pub fn verdict(&self, ratio: f64) -> Verdict {
        let (lower, upper) = self.bounds();
        if ratio >= upper {
            Verdict::H1
        } else if ratio <= lower {
            Verdict::H0
        } else {
            Verdict::Open
        }
    }

    fn ratio(&self, scores: &[f64], counts: &[u64], games_a_sample: f64) -> Option<f64> {
        if counts.iter().sum::<u64>() == 0 {
            return None;
        }
        let seen: Vec<(f64, f64)> = scores
            .iter()
            .zip(counts)
            .map(|(&score, &count)| (score, (count as f64).max(UNSEEN)))
            .collect();
        let total: f64 = seen.iter().map(|(_, count)| count).sum();
        let shares: Vec<(f64, f64)> = seen.iter().map(|&(a, n)| (a, n / total)).collect();
        let closest = |elo: f64| match self.model {
            Model::Logistic => with_mean(&shares, score_of_elo(elo)),
            Model::Normalised => with_advantage(&shares, elo / NORMALISED * games_a_sample.sqrt()),
        };
        let (zero, one) = (closest(self.elo0), closest(self.elo1));
        let terms = shares.iter().zip(zero.iter().zip(&one));
        Some(
            total
                * terms
                    .map(|(&(_, p), (&p0, &p1))| p * (p1 / p0).ln())
                    .sum::<f64>(),
        )
    }
}

/// The distribution with mean score `mean` that makes `shares` most likely: p / (1 + θ(a − mean)) with the θ at
/// which it has that mean ("A practical introduction to the GSPRT", proposition 1.1).
fn with_mean(shares: &[(f64, f64)], mean: f64) -> Vec<f64> {
    let shifted: Vec<(f64, f64)> = shares.iter().map(|&(a, p)| (a - mean, p)).collect();
    tilted(&shifted)
}

/// p / (1 + θx) with the θ at which Σ p·x / (1 + θx) = 0; x takes both signs.
fn tilted(values: &[(f64, f64)]) -> Vec<f64> {
    let least = values.iter().map(|v| v.0).fold(f64::INFINITY, f64::min);
    let most = values.iter().map(|v| v.0).fold(f64::NEG_INFINITY, f64::max);
    if least >= 0.0 || most <= 0.0 {
        return values.iter().map(|v| v.1).collect();
    }
    // The sum falls from +∞ to −∞ between the poles.
    let (mut low, mut high) = (-1.0 / most, -1.0 / least);
    for _ in 0..200 {
        let theta = 0.5 * (low + high);
        let sum: f64 = values.iter().map(|&(x, p)| p * x / (1.0 + theta * x)).sum();
        match sum > 0.0 {
            true => low = theta,
            false => high = theta,
        }
    }
    let theta = 0.5 * (low + high);
    values.iter().map(|&(x, p)| p / (1.0 + theta * x)).collect()
}

/// The distribution whose advantage (mean − ½) is `t` of its own standard deviations and that makes `shares` most
/// likely. Found by going to the fixed point of the conditions for it ("Normalized Elo", section 4).
fn with_advantage(shares: &[(f64, f64)], t: f64) -> Vec<f64> {
    let mut found = vec![1.0 / shares.len() as f64; shares.len()];
    for _ in 0..100 {
        let mean: f64 = shares.iter().zip(&found).map(|((a, _), p)| a * p).sum();
        let spread = shares
            .iter()
            .zip(&found)
            .map(|((a, _), p)| p * (a - mean).powi(2));
        let deviation = spread.sum::<f64>().sqrt();
        let values: Vec<(f64, f64)> = shares
            .iter()
            .map(|&(a, p)| {
                let away = (mean - a) / deviation;
                (a - 0.5 - t * deviation * (1.0 + away * away) / 2.0, p)
            })
            .collect();
        let next = tilted(&values);
        let change = next.iter().zip(&found).map(|(a, b)| (a - b).abs());
        let change = change.fold(0.0, f64::max);
        found = next;
        if change < 1e-12 {
            break;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sprt(elo0: f64, elo1: f64, model: Model) -> Sprt {
        Sprt {
            elo0,
            elo1,
            alpha: 0.05,
            beta: 0.05,
            model,
        }
    }

    #[test]
    fn ratios_as_published() {
        use Model::{Logistic, Normalised};
        for (pairs, elo0, elo1, model, published) in [
            // official-stockfish/Stockfish 5712 and 4194, each short and long
            ([831, 31795, 68460, 32448, 834], 0.0, 2.0, Normalised, 2.93),
            ([307, 54901, 140959, 56230, 281], 0.5, 2.5, Normalised, 2.95),
            ([371, 10263, 24989, 10642, 379], 0.0, 2.0, Normalised, 2.95),
            ([47, 8181, 25234, 8575, 47], 0.5, 2.5, Normalised, 2.94),
            // 3209 (both), 2971, 2493, from before fishtest's bounds were normalised
            ([253, 4282, 17604, 4431, 286], -0.25, 1.25, Logistic, 2.94),
            ([58, 3302, 33130, 3518, 84], 0.25, 1.25, Logistic, 2.97),
            ([17, 253, 1042, 337, 39], -0.5, 1.5, Logistic, 2.96),
            ([424, 2948, 5832, 3045, 460], -1.0, 3.0, Logistic, 2.94),
            // OpenBench: Yoshie2000/PlentyChess 95, 213, 296, 211; paulsonkoly/chess-3 39, 95
            ([46, 936, 2083, 1043, 63], 0.0, 5.0, Normalised, 2.91),
            ([44, 241, 590, 413, 71], 0.0, 3.0, Normalised, 2.91),
            ([78, 4150, 9069, 4080, 85], 0.0, 3.0, Normalised, -2.26),
            ([1, 3, 32, 87, 164], 0.0, 3.0, Normalised, 2.93),
            ([78, 64, 64, 14, 4], 0.0, 5.0, Normalised, -2.95),
            ([36, 66, 169, 116, 103], 0.0, 5.0, Normalised, 2.94),
        ] {
            let ratio = sprt(elo0, elo1, model)
                .of_pairs(&Pentanomial(pairs))
                .unwrap();
            assert!(
                (ratio - published).abs() < 0.0101,
                "{pairs:?}: {ratio} {published}"
            );
        }
    }

    #[test]
    fn bounds_and_verdicts() {
        let test = sprt(0.0, 10.0, Model::Normalised);
        let (lower, upper) = test.bounds();
        assert!((lower + 2.944).abs() < 1e-3 && (upper - 2.944).abs() < 1e-3);
        // fastchess and OpenBench print (-2.25, 2.89) for alpha 0.05, beta 0.1.
        let (lower, upper) = Sprt { beta: 0.1, ..test }.bounds();
        assert!((lower + 2.251).abs() < 1e-3 && (upper - 2.890).abs() < 1e-3);
        assert_eq!(test.verdict(2.95), Verdict::H1);
        assert_eq!(test.verdict(-2.95), Verdict::H0);
        assert_eq!(test.verdict(0.0), Verdict::Open);
        assert_eq!(test.of_pairs(&Pentanomial::default()), None);
    }

    #[test]
    fn all_wins_and_all_losses_decide() {
        let test = sprt(0.0, 10.0, Model::Normalised);
        for (wins, losses, sign) in [(40, 0, 1.0), (0, 40, -1.0)] {
            let games = Counts {
                wins,
                draws: 0,
                losses,
            };
            let ratio = test.of_games(&games).unwrap();
            assert!(ratio.is_finite() && ratio * sign > 0.0, "{ratio}");
        }
    }
}
