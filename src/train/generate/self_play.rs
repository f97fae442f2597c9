//! Our own search as teacher: root visits and the value of the best line. Knows nothing of games and
//! files.

use std::sync::Arc;
use std::sync::mpsc;
use std::time::Instant;

use rand::Rng;
use rand::rngs::StdRng;

use super::Teacher;
use crate::chess::Game;
use crate::eval::Backend;
use crate::options::Options;
use crate::search::{Event, Limits, Request, Search};
use crate::train::{Ply, PolicyLabel, Source, TrainError, WdlLabel};

/// A search of our own that labels.
pub struct SelfPlay {
    search: Search,
    options: Options,
    playouts: u64,
}

impl SelfPlay {
    /// A search on one thread that makes `playouts` visits a move, with a share `noise` of Dirichlet noise
    /// in the root's priors. The tree is kept within a game. Whatever `options` say of limits, strength
    /// and pruning does not count here.
    ///
    /// # Errors
    /// When the backend makes no evaluator.
    pub fn new(
        backend: Arc<dyn Backend>,
        options: &Options,
        playouts: u64,
        noise: f64,
    ) -> Result<SelfPlay, TrainError> {
        let options = Options {
            threads: 1,
            multi_pv: 1,
            verbose_move_stats: false,
            smart_pruning_factor: 0.0,
            temperature: 0.0,
            fixed_nodes: 0,
            uci_limit_strength: false,
            dirichlet_noise_epsilon: noise,
            ..options.clone()
        };
        Ok(SelfPlay {
            search: Search::new(backend, &options)?,
            options,
            playouts,
        })
    }
}

impl Teacher for SelfPlay {
    fn source(&self) -> Source {
        Source::SelfPlay
    }

    fn new_game(&mut self) -> Result<(), TrainError> {
        self.search.clear();
        Ok(())
    }

    fn label(&mut self, game: &Game, random: &mut StdRng) -> Result<Ply, TrainError> {
        let options = Options {
            seed: random.random_range(1..i64::MAX),
            ..self.options.clone()
        };
        let (sender, events) = mpsc::channel();
        let handle = self.search.start(Request {
            game: Arc::new(game.clone()),
            limits: Limits {
                playouts: Some(self.playouts),
                ..Limits::default()
            },
            options: Arc::new(options),
            searchmoves: Vec::new(),
            ponder: false,
            received: Instant::now(),
            on_event: Box::new(move |event| {
                // The receiver waits for the end of the search.
                let _ = sender.send(event);
            }),
        });
        handle.join();
        let (mut best, mut wdl, mut told) = (None, None, None);
        for event in events.try_iter() {
            match event {
                Event::Info(info) => wdl = info.lines.first().map(|line| line.wdl),
                Event::Message(message) => told = Some(message),
                Event::BestMove(answer) => best = answer.best,
            }
        }
        // The root itself is the one without a move.
        let digest = self.search.root_digest();
        let visits: Vec<_> = digest
            .iter()
            .filter_map(|&(m, visits, _)| Some((m?, visits)).filter(|&(_, visits)| visits > 0))
            .collect();
        let nonsense = |found: String, expected| TrainError::Answer {
            found,
            fen: game.current().to_fen(true),
            expected,
        };
        if let Some(told) = told {
            return Err(nonsense(told, "a search without a fault"));
        }
        let played = best.ok_or_else(|| nonsense("no move".to_owned(), "a move"))?;
        // A mate that is seen at once needs no visits.
        let visits = match visits.is_empty() {
            true => vec![(played, 1)],
            false => visits,
        };
        Ok(Ply {
            played,
            wdl: wdl.and_then(|[win, draw, loss]| {
                WdlLabel::new(
                    u16::try_from(win).ok()?,
                    u16::try_from(draw).ok()?,
                    u16::try_from(loss).ok()?,
                )
            }),
            policy: PolicyLabel::Visits(visits),
        })
    }

    fn recover(&mut self) -> Result<(), TrainError> {
        self.search.clear();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;
    use crate::chess::Position;
    use crate::eval::{Answer, Fake};

    fn label(fen: &str, noise: f64, seed: u64) -> Ply {
        let backend = Arc::new(Fake::new(Answer::Material));
        let options = Options::default();
        let mut teacher = SelfPlay::new(backend, &options, 200, noise).unwrap();
        let game = Game::new(Position::from_fen(fen).unwrap().0);
        let mut random = StdRng::seed_from_u64(seed);
        teacher.new_game().unwrap();
        teacher.label(&game, &mut random).unwrap()
    }

    #[test]
    fn labels_are_the_visits_of_legal_moves_and_repeat_with_their_seed() {
        let fen = "r1bqkbnr/pppp1ppp/2n5/4p3/2B1P3/5N2/PPPP1PPP/RNBQK2R b KQkq - 3 3";
        let ply = label(fen, 0.25, 1);
        let PolicyLabel::Visits(visits) = &ply.policy else {
            panic!("{ply:?}");
        };
        let position = Position::from_fen(fen).unwrap().0;
        assert!(visits.iter().all(|&(m, n)| n > 0 && position.is_legal(m)));
        // The first visit is the root's own.
        let sum: u32 = visits.iter().map(|&(_, n)| n).sum();
        assert!((195..=200).contains(&sum), "{sum}");
        assert!(ply.wdl.is_some() && position.is_legal(ply.played));
        assert_eq!(label(fen, 0.25, 1), ply);
        assert_ne!(label(fen, 0.25, 2).policy, ply.policy);
    }

    #[test]
    fn a_backend_that_fails_is_an_error() {
        let backend = Arc::new(Fake::new(Answer::Material).failing_after(20));
        let mut teacher = SelfPlay::new(backend, &Options::default(), 200, 0.0).unwrap();
        let mut random = StdRng::seed_from_u64(1);
        let error = teacher.label(&Game::default(), &mut random).unwrap_err();
        assert!(error.to_string().contains("without a fault"), "{error}");
    }

    #[test]
    fn a_won_position_is_seen_from_its_mover() {
        for (turn, wins) in [("w", true), ("b", false)] {
            let ply = label(&format!("k7/8/8/8/8/8/1Q5R/K7 {turn} - - 0 1"), 0.0, 1);
            let wdl = ply.wdl.unwrap();
            assert_eq!(wdl.win() > wdl.loss(), wins, "{turn} {wdl:?}");
        }
    }
}
