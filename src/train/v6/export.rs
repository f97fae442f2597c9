//! Our records as Lc0's. Knows no file.
//!
//! Where we know less than Lc0: root and best value are the label's (the result's, where a position has
//! none); the played move's is the next position's label, seen from this side, or else the same; the moves
//! left are the plies to the end of the game; what the network said at first is not a number; the
//! divergence is 0.

use std::sync::Arc;

use super::{BLACK, MIRROR_FILES, MIRROR_RANKS, REFLECT, V6_PLANES, V6Record, V6Value};
use crate::chess::Color;
use crate::encode::{HistoryFill, InputFormat, InputPlanes, POLICY_SIZE, Turn, move_index};
use crate::eval::Wdl;
use crate::train::{PolicyLabel, Sample, TrainingGame};

impl V6Record {
    /// The positions of a game that have a policy label; none if its result is not known.
    /// `temperature` is that of [`Sample::policy_target`].
    pub fn of_game(
        game: &Arc<TrainingGame>,
        format: InputFormat,
        temperature: f32,
    ) -> Vec<V6Record> {
        let samples = game.samples();
        let records = samples.map(|sample| V6Record::of_sample(&sample, format, temperature));
        records.flatten().collect()
    }

    /// A position; `None` without a policy label or without a result.
    pub fn of_sample(sample: &Sample, format: InputFormat, temperature: f32) -> Option<V6Record> {
        let position = sample.position();
        let mover = position.turn();
        let result = sample.result()?;
        let fill = HistoryFill::FenOnly;
        let planes = InputPlanes::encode(format, fill, position, |back| sample.history(back));
        let turn = planes.turn;
        let index = |m| move_index(m, mover, turn);

        let mut probabilities = vec![-1.0; POLICY_SIZE];
        for m in sample.legal_moves() {
            probabilities[usize::from(index(m)?)] = 0.0;
        }
        for (m, p) in sample.policy_target(temperature) {
            probabilities[usize::from(index(m)?)] = p;
        }
        let masks = planes.masks();
        let (rights, rest) = masks[V6_PLANES..].split_at(4);
        let black = mover == Color::Black;
        let classical = format == InputFormat::Classical;
        let castling = match classical {
            true => std::array::from_fn(|side| (rights[side] & 1) as u8),
            // Own rooks stand on the first rank, theirs on the eighth.
            false => [
                rights[0] as u8,
                rights[1] as u8,
                (rights[0] >> 56) as u8,
                (rights[1] >> 56) as u8,
            ],
        };
        let canonical = format.is_canonical();
        let (side_or_ep, invariance) = match canonical {
            true => ((rest[0] >> 56) as u8, invariance(turn, black)),
            false => (u8::from(black), 0),
        };
        let left = sample.plies_left() as f32;
        let wdl = sample.wdl().unwrap_or(result);
        let label = value(wdl, left);
        let after = Sample::new(Arc::clone(sample.game()), sample.ply() + 1);
        let after = after.and_then(|after| after.wdl()).map(Wdl::flip);
        let visits = match &sample.label().policy {
            PolicyLabel::Visits(visits) => visits.iter().map(|&(_, n)| u64::from(n)).sum(),
            _ => 0,
        };
        Some(V6Record {
            format,
            probabilities,
            planes: std::array::from_fn(|plane| masks[plane]),
            castling,
            side_or_ep,
            rule50: position.rule50().min(u32::from(u8::MAX)) as u8,
            invariance,
            root: label,
            best: label,
            plies_left: left,
            result_q: result.q(),
            result_d: result.draw,
            played: value(after.unwrap_or(wdl), left - 1.0),
            original: V6Value::NONE,
            visits: visits.min(u64::from(u32::MAX)) as u32,
            played_index: index(sample.label().played)?,
            best_index: index(sample.best_move()?)?,
            policy_kld: 0.0,
        })
    }
}

fn value(wdl: Wdl, m: f32) -> V6Value {
    V6Value {
        q: wdl.q(),
        d: wdl.draw,
        m,
    }
}

fn invariance(turn: Turn, black: bool) -> u8 {
    [
        (turn.mirror_files, MIRROR_FILES),
        (turn.mirror_ranks, MIRROR_RANKS),
        (turn.reflect, REFLECT),
        (black, BLACK),
    ]
    .iter()
    .map(|&(set, bit)| if set { bit } else { 0 })
    .sum()
}
