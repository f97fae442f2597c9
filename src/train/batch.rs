//! Positions as numbers: tokens, legal moves and targets of a minibatch, on plain slices. Knows no tensor.

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::Sample;
use super::config::DataConfig;
use crate::encode::{HistoryFill, SquareTokens, TOKENS_ROW, square_policy_output};
use crate::eval::Wdl;

/// A minibatch of B positions with at most M legal moves each.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    /// B
    pub size: usize,
    /// M
    pub most_moves: usize,
    /// `[B, 64, F]`
    pub tokens: Vec<f32>,
    /// Policy outputs of the legal moves, `[B, M]`, 0 where there are fewer.
    pub outputs: Vec<i64>,
    /// Whether there is such a move, `[B, M]`.
    pub legal: Vec<bool>,
    /// Target probabilities, `[B, M]`; all 0 for a position without a policy label.
    pub policy: Vec<f32>,
    /// Index of the teacher's choice among the legal moves, `[B]`, −1 without a policy label.
    pub best: Vec<i64>,
    /// Win, draw, loss from the side to move, `[B, 3]`; all 0 without a value label.
    pub value: Vec<f32>,
    /// Plies to the end of the game, `[B]`.
    pub plies_left: Vec<f32>,
}

impl Batch {
    /// Encodes positions. With `mirror_seed`, the files of half of those without castling rights are
    /// swapped.
    pub fn encode(samples: &[Sample], data: &DataConfig, mirror_seed: Option<u64>) -> Batch {
        let mut random = StdRng::seed_from_u64(mirror_seed.unwrap_or(0));
        let moves: Vec<_> = samples.iter().map(Sample::legal_moves).collect();
        let most_moves = moves.iter().map(|m| m.len()).max().unwrap_or(0).max(1);
        let mut batch = Batch {
            size: samples.len(),
            most_moves,
            tokens: vec![0.0; samples.len() * TOKENS_ROW],
            ..Batch::default()
        };
        let rows = batch.tokens.as_chunks_mut::<TOKENS_ROW>().0;
        for ((sample, moves), row) in samples.iter().zip(&moves).zip(rows) {
            let position = sample.position();
            let mirrored = random.random::<bool>()
                && mirror_seed.is_some()
                && position.castles().castling_rights().is_empty();
            let tokens =
                SquareTokens::encode(HistoryFill::FenOnly, position, |back| sample.history(back));
            match mirrored {
                true => tokens.mirrored().write(row),
                false => tokens.write(row),
            }
            let target = sample.policy_target(data.policy_temperature);
            let best = sample.best_move();
            let mut chosen = -1;
            for index in 0..most_moves {
                let m = moves.get(index);
                batch.legal.push(m.is_some());
                batch
                    .outputs
                    .push(m.map_or(0, |&m| square_policy_output(position, m, mirrored) as i64));
                let p = target.iter().find(|(named, _)| Some(named) == m);
                batch.policy.push(p.map_or(0.0, |(_, p)| *p));
                if m.is_some() && m == best.as_ref() {
                    chosen = index as i64;
                }
            }
            batch.best.push(chosen);
            batch.value.extend(value_target(sample, data.result_weight));
            batch.plies_left.push(sample.plies_left() as f32);
        }
        batch
    }

    /// Rows `from..to` as a minibatch of its own.
    pub fn rows(&self, from: usize, to: usize) -> Batch {
        let m = self.most_moves;
        Batch {
            size: to - from,
            most_moves: m,
            tokens: self.tokens[from * TOKENS_ROW..to * TOKENS_ROW].to_vec(),
            outputs: self.outputs[from * m..to * m].to_vec(),
            legal: self.legal[from * m..to * m].to_vec(),
            policy: self.policy[from * m..to * m].to_vec(),
            best: self.best[from..to].to_vec(),
            value: self.value[from * 3..to * 3].to_vec(),
            plies_left: self.plies_left[from..to].to_vec(),
        }
    }
}

/// (1 − w)·teacher + w·result; what is not known leaves all to the other.
fn value_target(sample: &Sample, result_weight: f32) -> [f32; 3] {
    let list = |wdl: Wdl| [wdl.win, wdl.draw, wdl.loss];
    match (sample.wdl().map(list), sample.result().map(list)) {
        (Some(a), Some(b)) => {
            std::array::from_fn(|i| (1.0 - result_weight) * a[i] + result_weight * b[i])
        }
        (Some(only), None) | (None, Some(only)) => only,
        (None, None) => [0.0; 3],
    }
}
