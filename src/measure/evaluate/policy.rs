//! What a policy is worth without search: whether its choice is legal when nobody tells it the rules, and whether it
//! is the human's. Knows no network.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;

use crate::chess::Game;

use super::EvaluateError;
use super::desk::Desk;
use super::positions::{Phase, Sample, band};
use super::results::Rate;

/// Choices without a mask that are legal moves.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Legality {
    /// The most probable of all outputs.
    pub argmax: Rate,
    /// One sampled from them.
    pub sampled: Rate,
    /// The same by phase of the game.
    pub phases: Vec<PhaseLegality>,
}

/// Legality in one phase.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PhaseLegality {
    /// Which.
    pub phase: Phase,
    /// The most probable of all outputs.
    pub argmax: Rate,
    /// One sampled from them.
    pub sampled: Rate,
}

/// How often the human's move is the policy's.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Accuracy {
    /// It is the first choice.
    pub top1: Rate,
    /// It is among the first three.
    pub top3: Rate,
    /// The same by the mover's rating, weakest first.
    pub bands: Vec<BandAccuracy>,
}

/// Accuracy against players of one band.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BandAccuracy {
    /// `1800-2000`, or `unrated`.
    pub band: String,
    /// First choices.
    pub top1: Rate,
    /// First three.
    pub top3: Rate,
}

/// Positions a step of the progress.
const STRIDE: usize = 64;

/// Asks for a move without a mask in each position. `None` from a player of which only legal moves can be had.
///
/// # Errors
/// When the player or the store fails.
pub fn legality(
    desk: &mut Desk<'_>,
    games: &[Arc<Game>],
) -> Result<Option<Legality>, EvaluateError> {
    desk.begin("legality", games.len());
    let mut legality = Legality {
        phases: Phase::ALL
            .map(|phase| PhaseLegality {
                phase,
                argmax: Rate::default(),
                sampled: Rate::default(),
            })
            .to_vec(),
        ..Legality::default()
    };
    for games in games.chunks(STRIDE) {
        let Some(answers) = desk.policies(games)? else {
            return Ok(None);
        };
        for (game, answer) in games.iter().zip(answers) {
            let (Some(argmax), Some(sampled)) = (answer.argmax_legal, answer.sampled_legal) else {
                return Ok(None);
            };
            legality.argmax.add(argmax);
            legality.sampled.add(sampled);
            let phase = Phase::of(game.current());
            for one in legality.phases.iter_mut().filter(|one| one.phase == phase) {
                one.argmax.add(argmax);
                one.sampled.add(sampled);
            }
        }
        desk.step(games.len());
    }
    Ok(Some(legality))
}

/// Compares the policy's first choices with what was played. `None` from a player without a policy.
///
/// # Errors
/// When the player or the store fails.
pub fn accuracy(
    desk: &mut Desk<'_>,
    samples: &[Sample],
) -> Result<Option<Accuracy>, EvaluateError> {
    desk.begin("accuracy", samples.len());
    let mut accuracy = Accuracy::default();
    // By the band's lower end; those without a rating come last.
    let mut bands: BTreeMap<u32, BandAccuracy> = BTreeMap::new();
    for samples in samples.chunks(STRIDE) {
        let games: Vec<Arc<Game>> = samples
            .iter()
            .map(|sample| Arc::clone(&sample.game))
            .collect();
        let Some(answers) = desk.policies(&games)? else {
            return Ok(None);
        };
        for (sample, answer) in samples.iter().zip(answers) {
            let played = sample.game.current().move_to_uci(sample.played, true);
            let place = answer.top.iter().position(|m| *m == played);
            let name = band(sample.rating);
            let order = sample
                .rating
                .map_or(u32::MAX, |rating| rating / super::positions::BAND);
            let one = bands.entry(order).or_insert_with(|| BandAccuracy {
                band: name,
                top1: Rate::default(),
                top3: Rate::default(),
            });
            for (rate, hit) in [
                (&mut accuracy.top1, place == Some(0)),
                (&mut one.top1, place == Some(0)),
                (&mut accuracy.top3, place.is_some()),
                (&mut one.top3, place.is_some()),
            ] {
                rate.add(hit);
            }
        }
        desk.step(samples.len());
    }
    accuracy.bands = bands.into_values().collect();
    Ok(Some(accuracy))
}
