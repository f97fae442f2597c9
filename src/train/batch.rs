//! Positions as numbers: tokens, legal moves and targets of a minibatch, on plain slices. Knows no tensor.

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::Sample;
use super::config::DataConfig;
use crate::encode::{SquareTokens, TOKENS_ROW, square_policy_output};
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
            let tokens = SquareTokens::encode(position, |back| sample.history(back));
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::chess::Position;
    use crate::encode::FEATURES;
    use crate::train::config::TrainConfig;
    use crate::train::{GameRecord, Ply, PolicyLabel, Source, TrainingGame, WdlLabel};

    fn data() -> DataConfig {
        let config: TrainConfig = toml::from_str(crate::train::config::tests::TINY).unwrap();
        config.data
    }

    fn sample(fen: &str, scores: &[(&str, i16)]) -> Sample {
        let (position, _) = Position::from_fen(fen).unwrap();
        let named = |text: &str| position.parse_uci(text).unwrap();
        let mut record = GameRecord::new(position.clone(), Source::Engine);
        record.plies.push(Ply {
            wdl: WdlLabel::new(600, 300, 100),
            policy: PolicyLabel::Scores(scores.iter().map(|&(m, cp)| (named(m), cp)).collect()),
            ..Ply::played(named(scores[0].0))
        });
        Arc::new(TrainingGame::new(record))
            .samples()
            .next()
            .unwrap()
    }

    #[test]
    fn targets_stand_at_their_moves_and_add_up_to_one() {
        let rook = sample(
            "8/5k2/8/8/8/8/2K5/7R w - - 3 40",
            &[("h1h8", 400), ("h1a1", 390)],
        );
        let king = sample("8/8/8/8/8/2k5/8/K7 w - - 0 1", &[("a1b1", 0)]);
        let batch = Batch::encode(&[rook.clone(), king], &data(), None);
        assert_eq!((batch.size, batch.most_moves), (2, 22));
        for row in 0..2 {
            let at = row * 22..(row + 1) * 22;
            let legal = batch.legal[at.clone()].iter().filter(|&&l| l).count();
            assert_eq!(legal, [22, 2][row]);
            let sum: f32 = batch.policy[at.clone()].iter().sum();
            assert!((sum - 1.0).abs() < 1e-6);
            let best = at.start + batch.best[row] as usize;
            let highest = batch.policy[at].iter().copied().fold(0.0, f32::max);
            assert_eq!(batch.policy[best], highest);
        }
        let best = batch.best[0] as usize;
        assert_eq!(batch.outputs[best], 7 * 64 + 63);
        assert_eq!(batch.value[..3], [0.6, 0.3, 0.1]);
        let again = batch.rows(1, 2);
        assert_eq!(again.policy, batch.policy[22..]);
        assert_eq!(again.tokens, batch.tokens[TOKENS_ROW..]);
    }

    #[test]
    fn mirrored_rows_have_mirrored_tokens_and_outputs() {
        let plain = sample(
            "8/5k2/8/8/8/8/2K5/7R w - - 3 40",
            &[("h1h8", 400), ("h1a1", 0)],
        );
        let castles = sample("4k3/8/8/8/8/8/8/4K2R w K - 0 1", &[("e1g1", 10)]);
        let samples: Vec<Sample> = (0..40)
            .flat_map(|_| [plain.clone(), castles.clone()])
            .collect();
        let batch = Batch::encode(&samples, &data(), Some(4));
        let m = batch.most_moves;
        let rook =
            |row: usize, square: usize| batch.tokens[row * TOKENS_ROW + square * FEATURES + 3];
        let mut mirrored = 0;
        for row in 0..80 {
            let best = batch.outputs[row * m + batch.best[row] as usize];
            match (row % 2, rook(row, 0) == 1.0) {
                (0, true) => {
                    mirrored += 1;
                    assert_eq!((best, rook(row, 7)), (56, 0.0));
                }
                (0, false) => assert_eq!((best, rook(row, 7)), (7 * 64 + 63, 1.0)),
                // Whoever may castle is never mirrored.
                (_, swapped) => assert!(!swapped && rook(row, 7) == 1.0),
            }
        }
        assert!((8..32).contains(&mirrored), "{mirrored} of 40");
    }
}
