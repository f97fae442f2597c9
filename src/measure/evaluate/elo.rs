//! The rating that makes results against opponents of known rating most likely, with its bootstrap interval. Knows
//! numbers only.

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde::{Deserialize, Serialize};

use crate::measure::stats::score_of_elo;

/// Score expected = 1 / (1 + 10^(−difference / 400)) = logistic(C · difference).
const C: f64 = std::f64::consts::LN_10 / 400.0;
/// Resamples of the bootstrap.
const RESAMPLES: usize = 1000;
/// Chance below which a result of all wins or all losses is taken as ruled out.
const DOUBT: f64 = 0.05;
/// Most that one step of Newton's method may go.
const LONGEST_STEP: f64 = 400.0;

/// One game against an opponent of known rating.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Game {
    /// The opponent's rating.
    pub opponent: f64,
    /// 1, ½ or 0.
    pub score: f64,
}

/// A rating from games.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rating {
    /// The most likely rating; `None` if all games were won or all lost.
    pub elo: Option<f64>,
    /// Lower end of the 95 % interval; `None` if it is open.
    pub low: Option<f64>,
    /// Upper end of the 95 % interval; `None` if it is open.
    pub high: Option<f64>,
    /// With all games won or lost: `low` (or `high`) is the rating at which that has a chance of 5 %, and this is true.
    pub bound_only: bool,
}

/// The most likely rating: Newton's method, r ← r + Σ(s − p) / (C · Σ p(1 − p)). `None` without games, and where all
/// are won or all lost.
pub fn most_likely(games: &[Game]) -> Option<f64> {
    let points: f64 = games.iter().map(|game| game.score).sum();
    if points <= 0.0 || points >= games.len() as f64 {
        return None;
    }
    let mut rating = games.iter().map(|game| game.opponent).sum::<f64>() / games.len() as f64;
    for _ in 0..100 {
        let (mut slope, mut curvature) = (0.0, 0.0);
        for game in games {
            let expected = score_of_elo(rating - game.opponent);
            slope += game.score - expected;
            curvature += expected * (1.0 - expected);
        }
        // Far from all opponents there is next to no curvature, and a step would have no end.
        let step = (slope / (C * curvature.max(1e-12))).clamp(-LONGEST_STEP, LONGEST_STEP);
        rating += step;
        if step.abs() < 1e-9 {
            break;
        }
    }
    Some(rating)
}

/// The rating with its 95 % interval from 1,000 resamples of the games. `None` without games.
pub fn rating(games: &[Game], seed: u64) -> Option<Rating> {
    if games.is_empty() {
        return None;
    }
    let Some(elo) = most_likely(games) else {
        let won = games.iter().all(|game| game.score >= 1.0);
        let bound = bound(games, won);
        return Some(Rating {
            elo: None,
            low: won.then_some(bound),
            high: (!won).then_some(bound),
            bound_only: true,
        });
    };
    let mut random = StdRng::seed_from_u64(seed);
    let mut resampled = Vec::with_capacity(RESAMPLES);
    let mut drawn = games.to_vec();
    for _ in 0..RESAMPLES {
        for game in &mut drawn {
            *game = games[random.random_range(0..games.len())];
        }
        let all_won = drawn.iter().all(|game| game.score >= 1.0);
        let beyond = if all_won {
            f64::INFINITY
        } else {
            f64::NEG_INFINITY
        };
        resampled.push(most_likely(&drawn).unwrap_or(beyond));
    }
    resampled.sort_by(f64::total_cmp);
    let at = |share: f64| {
        let value = resampled[(share * (RESAMPLES - 1) as f64).round() as usize];
        value.is_finite().then_some(value)
    };
    Some(Rating {
        elo: Some(elo),
        low: at(0.025),
        high: at(0.975),
        bound_only: false,
    })
}

/// The rating at which winning (or losing) all the games has the chance [`DOUBT`].
fn bound(games: &[Game], won: bool) -> f64 {
    let chance = |rating: f64| -> f64 {
        let logs = games.iter().map(|game| {
            let expected = score_of_elo(rating - game.opponent);
            if won {
                expected.ln()
            } else {
                (1.0 - expected).ln()
            }
        });
        logs.sum::<f64>().exp()
    };
    let (mut low, mut high) = (-10_000.0, 10_000.0);
    for _ in 0..100 {
        let middle = (low + high) / 2.0;
        // The chance grows with the rating if all were won, else it falls.
        if (chance(middle) < DOUBT) == won {
            low = middle;
        } else {
            high = middle;
        }
    }
    (low + high) / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn games(opponent: f64, wins: usize, draws: usize, losses: usize) -> Vec<Game> {
        let scores = [(1.0, wins), (0.5, draws), (0.0, losses)];
        scores
            .iter()
            .flat_map(|&(score, count)| vec![Game { opponent, score }; count])
            .collect()
    }

    #[test]
    fn an_even_score_is_the_opponents_rating_and_35_points_of_doubt() {
        let rating = rating(&games(1500.0, 50, 0, 50), 1).unwrap();
        assert!((rating.elo.unwrap() - 1500.0).abs() < 1e-6);
        // 95 % of a normal distribution with sd 1 / (C √25) = 34.7 is ± 68.
        let (low, high) = (rating.low.unwrap(), rating.high.unwrap());
        let sd = (high - low) / (2.0 * 1.96);
        assert!((sd - 34.7).abs() < 4.0, "{sd}");
        assert!(!rating.bound_only);
    }

    #[test]
    fn draws_leave_less_doubt() {
        let decided = rating(&games(1500.0, 50, 0, 50), 1).unwrap();
        let drawn = rating(&games(1500.0, 20, 60, 20), 1).unwrap();
        let width = |rating: &Rating| rating.high.unwrap() - rating.low.unwrap();
        assert!(width(&drawn) < 0.8 * width(&decided));
    }

    #[test]
    fn scores_against_several_are_weighed_together() {
        // 75 % is 190.85 points.
        let one = most_likely(&games(1000.0, 75, 0, 25)).unwrap();
        assert!((one - 1190.848).abs() < 1e-2, "{one}");
        let mut two = games(1000.0, 10, 0, 0);
        two.extend(games(2000.0, 0, 0, 10));
        assert!((most_likely(&two).unwrap() - 1500.0).abs() < 1e-6);
        // A start far away from the answer.
        let mut far = games(800.0, 0, 1, 199);
        far.extend(games(2000.0, 0, 0, 200));
        let elo = most_likely(&far).unwrap();
        let expected: f64 = far
            .iter()
            .map(|game| score_of_elo(elo - game.opponent))
            .sum();
        assert!((expected - 0.5).abs() < 1e-6, "{elo}");
    }

    #[test]
    fn all_won_or_lost_is_a_bound() {
        let won = rating(&games(1000.0, 20, 0, 0), 1).unwrap();
        assert_eq!((won.elo, won.high, won.bound_only), (None, None, true));
        let expected = score_of_elo(won.low.unwrap() - 1000.0).powi(20);
        assert!((expected - 0.05).abs() < 1e-6, "{expected}");
        let lost = rating(&games(1000.0, 0, 0, 20), 1).unwrap();
        assert_eq!((lost.elo, lost.low), (None, None));
        let below = 1000.0 - lost.high.unwrap();
        assert!((below - (won.low.unwrap() - 1000.0)).abs() < 1e-3);
        assert_eq!(rating(&[], 1), None);
    }

    #[test]
    fn an_interval_may_be_open() {
        let rating = rating(&games(1000.0, 9, 1, 0), 1).unwrap();
        assert!(rating.elo.is_some() && rating.low.is_some());
        assert_eq!(rating.high, None);
    }
}
