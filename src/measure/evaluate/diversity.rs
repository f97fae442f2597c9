//! How many different openings a player plays when it plays against itself. Knows no opponent.

use std::collections::HashMap;
use std::sync::Arc;

use rand::SeedableRng;
use rand::rngs::StdRng;
use serde::Serialize;

use crate::chess::{Game, Move};

use super::EvaluateError;
use super::desk::{Desk, sampled};
use super::player::View;
use super::store::Key;

/// Plies of an opening.
pub const PLIES: usize = 10;
/// Games side by side.
const BATCH: usize = 64;

/// Openings of games that a player played against itself.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Diversity {
    /// Games begun.
    pub games: usize,
    /// Plies of each.
    pub plies: usize,
    /// Whether moves were sampled from the policy; else each is the player's own choice after a search.
    pub sampled: bool,
    /// −Σ p log2 p over the openings, in bits: 0 when all are the same, log2(games) when all differ.
    pub entropy_bits: f64,
    /// Different openings.
    pub distinct: usize,
    /// The most frequent one, and how often it came.
    pub most_frequent: (String, usize),
}

/// Begins `games` games. `None` from a player that makes no moves.
///
/// # Errors
/// When the player or the store fails.
pub fn diversity(desk: &mut Desk<'_>, games: usize) -> Result<Option<Diversity>, EvaluateError> {
    desk.begin("opening diversity", games);
    let sampling = desk.sampling;
    let start = Arc::new(Game::default());
    let with_policy = desk.player.views(&[Arc::clone(&start)])?.is_some();
    let identity = desk.identity;
    let settings = match with_policy {
        true => format!(
            "{} t={} k={} plies={PLIES}",
            identity.policy_settings, sampling.temperature, sampling.top_k
        ),
        false => format!(
            "{} nodes={} {} plies={PLIES}",
            identity.search_settings,
            desk.nodes,
            identity.own_pace.as_deref().unwrap_or_default()
        ),
    };
    let mut openings: Vec<String> = Vec::with_capacity(games);
    let numbers: Vec<usize> = (0..games).collect();
    for batch in numbers.chunks(BATCH) {
        desk.go_on()?;
        let names: Vec<String> = batch
            .iter()
            .map(|number| format!("game {number}"))
            .collect();
        let key = |position| Key {
            network: &identity.sha256,
            settings: &settings,
            task: "opening",
            position,
        };
        let mut known: Vec<Option<String>> = Vec::new();
        for name in &names {
            known.push(desk.store.get(key(name))?);
        }
        let unknown: Vec<usize> = (0..batch.len()).filter(|&i| known[i].is_none()).collect();
        let seeds: Vec<usize> = unknown.iter().map(|&i| batch[i]).collect();
        let Some(played) = play(desk, &seeds, with_policy)? else {
            return Ok(None);
        };
        for (&i, opening) in unknown.iter().zip(played) {
            desk.store.put(key(&names[i]), &opening)?;
            known[i] = Some(opening);
        }
        openings.extend(known.into_iter().flatten());
        desk.step(batch.len());
    }
    Ok(Some(count(openings, with_policy)))
}

/// The openings of the games with these numbers, in UCI notation.
fn play(
    desk: &mut Desk<'_>,
    seeds: &[usize],
    with_policy: bool,
) -> Result<Option<Vec<String>>, EvaluateError> {
    let mut games: Vec<Game> = vec![Game::default(); seeds.len()];
    let mut random: Vec<StdRng> = seeds
        .iter()
        .map(|&seed| StdRng::seed_from_u64(seed as u64))
        .collect();
    for _ in 0..if seeds.is_empty() { 0 } else { PLIES } {
        desk.go_on()?;
        let open: Vec<usize> = (0..games.len())
            .filter(|&i| !games[i].current().legal_moves().is_empty())
            .collect();
        let now: Vec<Arc<Game>> = open.iter().map(|&i| Arc::new(games[i].clone())).collect();
        let moves: Vec<Option<Move>> = match with_policy {
            true => {
                let Some(views) = desk.player.views(&now)? else {
                    return Ok(None);
                };
                let choices = open.iter().zip(&views);
                choices
                    .map(|(&i, view)| choose(view, desk.sampling, &mut random[i]))
                    .collect()
            }
            false => {
                let mut moves = Vec::new();
                for game in &now {
                    let Some(thought) = desk.player.think(game, desk.nodes)? else {
                        return Ok(None);
                    };
                    moves.push(Some(thought.best));
                }
                moves
            }
        };
        for (&i, m) in open.iter().zip(moves) {
            if let Some(m) = m {
                games[i].play(m);
            }
        }
    }
    let line = |game: &Game| {
        let moves = game.positions().iter().zip(game.moves());
        let texts: Vec<String> = moves
            .map(|(position, &m)| position.move_to_uci(m, false))
            .collect();
        texts.join(" ")
    };
    Ok(Some(games.iter().map(line).collect()))
}

/// A legal move sampled from the policy.
fn choose(view: &View, sampling: super::desk::Sampling, random: &mut StdRng) -> Option<Move> {
    let logits: Vec<f32> = view.priors.iter().map(|p| p.max(1e-30).ln()).collect();
    sampled(&logits, sampling, random).and_then(|i| view.moves.get(i).copied())
}

fn count(openings: Vec<String>, sampled: bool) -> Diversity {
    let games = openings.len();
    let mut counts: HashMap<String, usize> = HashMap::new();
    for opening in openings {
        *counts.entry(opening).or_default() += 1;
    }
    let entropy: f64 = counts
        .values()
        .map(|&count| {
            let p = count as f64 / games as f64;
            -p * p.log2()
        })
        .sum();
    let distinct = counts.len();
    let most = counts
        .into_iter()
        .max_by(|a, b| a.1.cmp(&b.1).then_with(|| b.0.cmp(&a.0)));
    Diversity {
        games,
        plies: PLIES,
        sampled,
        // Adding 0 keeps no entropy from printing as -0.
        entropy_bits: entropy + 0.0,
        distinct,
        most_frequent: most.unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entropy_of_known_openings() {
        let openings = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect();
        let same = count(openings(&["e2e4"; 8]), true);
        assert_eq!((same.entropy_bits, same.distinct), (0.0, 1));
        assert_eq!(same.most_frequent, ("e2e4".to_owned(), 8));
        let all = count(openings(&["a", "b", "c", "d"]), true);
        assert!((all.entropy_bits - 2.0).abs() < 1e-12);
        let half = count(openings(&["a", "a", "b", "c"]), true);
        assert!((half.entropy_bits - 1.5).abs() < 1e-12);
    }
}
