//! A UCI engine as teacher: its best lines with their scores, and its WDL. Knows nothing of games and
//! files.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use rand::Rng;
use rand::rngs::StdRng;

use super::Teacher;
use crate::chess::{Game, Position};
use crate::client::{Bound, Engine, EngineConfig, Info, Limits, Score};
use crate::train::{MATE_CP, Ply, PolicyLabel, Source, TrainError, WdlLabel};

/// The longest wait for one answer.
const PATIENCE: Duration = Duration::from_secs(300);
/// Scores in centipawns stay clear of those that mean mates.
const MAX_CP: i64 = 30_000;

/// An engine process that labels.
pub struct UciTeacher {
    engine: Engine,
    nodes: RangeInclusive<u64>,
    chess960: bool,
}

impl UciTeacher {
    /// Starts the engine. Every label takes a number of nodes from `nodes`, evenly on a logarithmic scale.
    /// Options of `config` should ask for several lines (`MultiPV`) and for `UCI_ShowWDL`.
    ///
    /// # Errors
    /// An engine that is not there or does not answer.
    pub fn start(
        config: EngineConfig,
        nodes: RangeInclusive<u64>,
        chess960: bool,
        cancel: &Arc<AtomicBool>,
    ) -> Result<UciTeacher, TrainError> {
        let engine = Engine::start_with(config, Arc::clone(cancel))?;
        Ok(UciTeacher {
            engine,
            nodes,
            chess960,
        })
    }

    /// What was odd about the engine's start, one sentence each.
    pub fn complaints(&self) -> &[String] {
        self.engine.complaints()
    }

    /// The name the engine gives itself.
    pub fn name(&self) -> &str {
        self.engine.name()
    }
}

impl Teacher for UciTeacher {
    fn source(&self) -> Source {
        Source::Engine
    }

    fn new_game(&mut self) -> Result<(), TrainError> {
        Ok(self.engine.new_game()?)
    }

    fn label(&mut self, game: &Game, random: &mut StdRng) -> Result<Ply, TrainError> {
        let mut moves = Vec::with_capacity(game.moves().len());
        for (position, &m) in game.positions().iter().zip(game.moves()) {
            moves.push(position.move_to_uci(m, self.chess960));
        }
        let fen = game.start().to_fen(self.chess960);
        let (least, most) = (*self.nodes.start(), *self.nodes.end());
        let (least, most) = (least.max(1) as f64, most.max(1) as f64);
        let nodes = (least.ln() + random.random::<f64>() * (most / least).ln()).exp();
        self.engine.position(Some(&fen), &moves)?;
        self.engine.go(&Limits::nodes(nodes.round() as u64))?;
        let mut lines = Vec::new();
        let answer = self
            .engine
            .answer(PATIENCE, &mut |info| keep(&mut lines, info))?;
        read(game.current(), &lines, &answer.best)
    }

    fn recover(&mut self) -> Result<(), TrainError> {
        Ok(self.engine.restart()?)
    }
}

/// Keeps the last exact line of each rank.
fn keep(lines: &mut Vec<Option<Info>>, info: Info) {
    if info.score.is_none() || info.pv.is_empty() || info.bound != Bound::Exact {
        return;
    }
    let rank = info.multipv.unwrap_or(1).clamp(1, 256) as usize;
    if lines.len() < rank {
        lines.resize(rank, None);
    }
    lines[rank - 1] = Some(info);
}

/// The label that an engine's lines make. A move may stand in two of them, when the search ended in the
/// middle of an iteration: the first counts.
fn read(position: &Position, lines: &[Option<Info>], best: &str) -> Result<Ply, TrainError> {
    let nonsense = |found: &str, expected| TrainError::Answer {
        found: found.to_owned(),
        fen: position.to_fen(true),
        expected,
    };
    let legal = |text: &str| {
        let m = position.parse_uci(text);
        m.map_err(|_| nonsense(text, "a legal move"))
    };
    let mut scores = Vec::new();
    for info in lines.iter().flatten() {
        let (Some(text), Some(score)) = (info.pv.first(), info.score) else {
            continue;
        };
        let m = legal(text)?;
        if scores.iter().all(|&(known, _)| known != m) {
            scores.push((m, in_cp(score)));
        }
    }
    if scores.is_empty() {
        return Err(nonsense(best, "a line with a score before it"));
    }
    let wdl = lines.iter().flatten().next().and_then(|info| info.wdl);
    Ok(Ply {
        played: legal(best)?,
        wdl: wdl.map(in_per_mille),
        policy: PolicyLabel::Scores(scores),
    })
}

fn in_cp(score: Score) -> i16 {
    match score {
        Score::Cp(cp) => cp.clamp(-MAX_CP, MAX_CP) as i16,
        Score::Mate(n) => {
            let distance = n.unsigned_abs().min(1000) as i16;
            let cp = MATE_CP - distance;
            // Mate in 0 is the mover's own.
            if n > 0 { cp } else { -cp }
        }
    }
}

fn in_per_mille([win, draw, loss]: [u32; 3]) -> WdlLabel {
    let sum = (f64::from(win) + f64::from(draw) + f64::from(loss)).max(1.0);
    let share = |part: f64| (part / sum) as f32;
    let q = share(f64::from(win) - f64::from(loss));
    WdlLabel::from_q_d(q, share(f64::from(draw)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn label(lines: &[&str], best: &str) -> Result<Ply, TrainError> {
        let mut kept = Vec::new();
        for line in lines {
            keep(&mut kept, Info::parse(line).unwrap());
        }
        read(&Position::startpos(), &kept, best)
    }

    fn scores(ply: &Ply) -> Vec<(String, i16)> {
        match &ply.policy {
            PolicyLabel::Scores(scores) => {
                scores.iter().map(|(m, cp)| (m.to_string(), *cp)).collect()
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_last_exact_line_of_each_rank_counts_and_a_move_once() {
        let ply = label(
            &[
                "info depth 1 multipv 1 score cp 10 wdl 100 800 100 pv d2d4",
                "info depth 1 multipv 2 score cp 5 wdl 90 800 110 pv e2e4",
                "info depth 2 multipv 1 score cp 40 lowerbound wdl 300 600 100 pv d2d4",
                "info depth 2 multipv 1 score cp 30 wdl 200 750 50 pv e2e4 e7e5",
                "info depth 1 multipv 3 score mate -3 pv f2f3",
                "info depth 1 multipv 4 score cp 99999 pv a2a3",
                "info depth 2 currmove e2e4",
            ],
            "e2e4",
        )
        .unwrap();
        let expected = [("e2e4", 30), ("f2f3", -31_997), ("a2a3", 30_000)];
        let expected = expected.map(|(m, cp)| (m.to_owned(), cp));
        assert_eq!(scores(&ply), expected);
        assert_eq!(ply.wdl, WdlLabel::new(200, 750, 50));
        assert_eq!(ply.played.to_string(), "e2e4");
    }

    #[test]
    fn mates_and_odd_sums() {
        assert_eq!(in_cp(Score::Mate(1)), 31_999);
        assert_eq!(in_cp(Score::Mate(-1)), -31_999);
        assert_eq!(in_cp(Score::Mate(0)), -32_000);
        assert_eq!(in_cp(Score::Mate(i64::MIN)), -31_000);
        assert_eq!(
            in_per_mille([333, 333, 334]),
            WdlLabel::new(333, 333, 334).unwrap()
        );
        assert_eq!(in_per_mille([0, 1, 1]), WdlLabel::new(0, 500, 500).unwrap());
        assert_eq!(in_per_mille([0, 0, 0]), WdlLabel::new(500, 0, 500).unwrap());
    }

    #[test]
    fn nonsense_is_named() {
        for (lines, best, says) in [
            (&["info multipv 1 score cp 1 pv e2e5"][..], "e2e4", "e2e5"),
            (&["info multipv 1 score cp 1 pv e2e4"], "(none)", "(none)"),
            (&["info string hello"], "e2e4", "a line with a score"),
        ] {
            let error = label(lines, best).unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
        // Without WDL the label has none.
        let ply = label(&["info multipv 1 score cp 1 pv e2e4"], "e2e4").unwrap();
        assert_eq!(ply.wdl, None);
    }
}
