//! Whether a network's first look agrees with a deeper search of its own. Knows no judge but the network.

use std::sync::Arc;

use serde::Serialize;

use crate::chess::Game;

use super::EvaluateError;
use super::desk::Desk;
use super::positions::Sample;
use super::results::Rate;

/// Policy and value against a search.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Agreement {
    /// Nodes of the search.
    pub nodes: u64,
    /// The search's move is the policy's first choice.
    pub top1: Rate,
    /// It is among its first three.
    pub top3: Rate,
    /// Mean |Q of the network − Q of the search|; Q = W − L, in −1..=1.
    pub value_error: Option<f64>,
    /// Correlation of the two; `None` where one does not vary.
    pub value_correlation: Option<f64>,
}

/// Compares on `samples`. `None` from a player without policy or search.
///
/// # Errors
/// When the player or the store fails.
pub fn agreement(
    desk: &mut Desk<'_>,
    samples: &[Sample],
    nodes: u64,
) -> Result<Option<Agreement>, EvaluateError> {
    desk.begin("agreement with a deeper search", samples.len());
    let games: Vec<Arc<Game>> = samples.iter().map(|one| Arc::clone(&one.game)).collect();
    let Some(answers) = desk.policies(&games)? else {
        return Ok(None);
    };
    let (mut top1, mut top3) = (Rate::default(), Rate::default());
    let mut values = Vec::new();
    for (game, answer) in games.iter().zip(&answers) {
        let Some(deep) = desk.search(game, nodes)? else {
            return Ok(None);
        };
        let place = answer.top.iter().position(|m| *m == deep.best);
        top1.add(place == Some(0));
        top3.add(place.is_some());
        values.extend(deep.q.map(|q| (f64::from(answer.q), f64::from(q))));
        desk.step(1);
    }
    let errors: f64 = values.iter().map(|(a, b)| (a - b).abs()).sum();
    Ok(Some(Agreement {
        nodes,
        top1,
        top3,
        value_error: (!values.is_empty()).then(|| errors / values.len() as f64),
        value_correlation: correlation(&values),
    }))
}

fn correlation(pairs: &[(f64, f64)]) -> Option<f64> {
    let count = pairs.len() as f64;
    let mean_a = pairs.iter().map(|pair| pair.0).sum::<f64>() / count;
    let mean_b = pairs.iter().map(|pair| pair.1).sum::<f64>() / count;
    let (mut aa, mut bb, mut ab) = (0.0, 0.0, 0.0);
    for (a, b) in pairs {
        let (a, b) = (a - mean_a, b - mean_b);
        aa += a * a;
        bb += b * b;
        ab += a * b;
    }
    let correlation = ab / (aa * bb).sqrt();
    correlation.is_finite().then_some(correlation)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn correlations() {
        let line: Vec<(f64, f64)> = (0..5).map(|x| (f64::from(x), 3.0 - f64::from(x))).collect();
        assert!((correlation(&line).unwrap() + 1.0).abs() < 1e-12);
        assert_eq!(correlation(&[(1.0, 2.0), (1.0, 3.0)]), None);
        assert_eq!(correlation(&[]), None);
    }
}
