//! One game of data generation: opening, labelled moves that are not always the best, an end. Knows
//! no engine and no file.

use std::sync::atomic::{AtomicBool, Ordering};

use rand::Rng;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;

use super::{Plan, Teacher};
use crate::chess::{Color, Game, GameResult, Move};
use crate::train::{GameRecord, Ply, PolicyLabel, TrainError, win_probability};

/// Plies in a row that must agree on the winner before a game is adjudicated.
const AGREEING_PLIES: u32 = 6;
/// Temperature of moves drawn from scores, in units of expected score.
const DRAWN_TEMPERATURE: f32 = 0.05;

/// How a game goes on after its opening.
#[derive(Clone, Debug)]
pub struct Rules {
    /// Probability that a move is drawn from the label: in proportion to visits, or a softmax over
    /// the expected scores of the listed moves.
    pub drawn_moves: f64,
    /// Only so many plies after the opening have drawn moves.
    pub drawn_plies: usize,
    /// Probability of any legal move instead.
    pub random_moves: f64,
    /// A game that has so many plies after its opening ends without a result.
    pub max_plies: usize,
    /// A game is won by the side whose score was at least this for [`AGREEING_PLIES`] plies, in
    /// centipawns; 0 = games are played to their end.
    pub adjudicate_cp: i16,
}

impl Default for Rules {
    fn default() -> Rules {
        Rules {
            drawn_moves: 0.15,
            drawn_plies: usize::MAX,
            random_moves: 0.02,
            max_plies: 400,
            adjudicate_cp: 0,
        }
    }
}

/// Plays the game of a seed; `None` when the end was asked for.
///
/// # Errors
/// When no opening is found or the teacher fails.
pub fn play(
    plan: &Plan,
    seed: u64,
    teacher: &mut dyn Teacher,
    cancel: &AtomicBool,
) -> Result<Option<GameRecord>, TrainError> {
    use rand::SeedableRng;
    let mut random = StdRng::seed_from_u64(seed);
    let rules = &plan.rules;
    let (start, opening) = plan.openings.draw(&mut random)?;
    let mut record = GameRecord::new(start.clone(), teacher.source());
    record.seed = seed;
    let mut game = Game::new(start);
    for m in opening {
        game.play(m);
        record.plies.push(Ply::played(m));
    }
    teacher.new_game()?;
    let mut lead = Lead::default();
    for number in 0.. {
        if let Some(result) = ending(&game) {
            record.result = result;
            break;
        }
        if number >= rules.max_plies {
            break;
        }
        if cancel.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let mut ply = teacher.label(&game, &mut random)?;
        let winner = lead.note(&ply, game.current().turn(), rules.adjudicate_cp);
        if random.random_bool(rules.random_moves) {
            let legal = game.current().legal_moves();
            ply.played = *legal.choose(&mut random).unwrap_or(&ply.played);
        } else if number < rules.drawn_plies && random.random_bool(rules.drawn_moves) {
            ply.played = drawn(&ply.policy, &mut random).unwrap_or(ply.played);
        }
        game.play(ply.played);
        record.plies.push(ply);
        // A mate on the board is told by the rules.
        if let Some(winner) = winner.filter(|_| ending(&game).is_none()) {
            record.result = winner.fold_wb(GameResult::WhiteWins, GameResult::BlackWins);
            break;
        }
    }
    Ok(Some(record))
}

/// How the rules end a game, if they do.
pub fn ending(game: &Game) -> Option<GameResult> {
    let position = game.current();
    if position.legal_moves().is_empty() {
        return Some(match (position.is_check(), position.turn()) {
            (false, _) => GameResult::Draw,
            (true, Color::White) => GameResult::BlackWins,
            (true, Color::Black) => GameResult::WhiteWins,
        });
    }
    let drawn =
        position.is_insufficient_material() || position.rule50() >= 100 || game.repetitions() >= 2;
    drawn.then_some(GameResult::Draw)
}

/// A move of the label, by its weight there.
fn drawn(label: &PolicyLabel, random: &mut StdRng) -> Option<Move> {
    let weighed: Vec<(Move, f32)> = match label {
        PolicyLabel::None => return None,
        PolicyLabel::Scores(scores) => {
            let best = scores.iter().map(|&(_, cp)| cp).max()?;
            let gap = |cp| win_probability(cp) - win_probability(best);
            let weigh = |&(m, cp): &(Move, i16)| (m, (gap(cp) / DRAWN_TEMPERATURE).exp());
            scores.iter().map(weigh).collect()
        }
        PolicyLabel::Visits(visits) => visits.iter().map(|&(m, n)| (m, n as f32)).collect(),
    };
    let choice = weighed.choose_weighted(random, |(_, weight)| *weight);
    choice.ok().map(|(m, _)| *m)
}

/// Who is far ahead, and since how many plies.
#[derive(Default)]
struct Lead {
    side: Option<Color>,
    plies: u32,
}

impl Lead {
    /// Takes a ply's label into account; the winner once the lead has lasted.
    fn note(&mut self, ply: &Ply, mover: Color, limit: i16) -> Option<Color> {
        let score = match &ply.policy {
            PolicyLabel::Scores(scores) if limit > 0 => scores.first().map(|&(_, cp)| cp),
            _ => None,
        };
        let side = score.and_then(|cp| match cp {
            cp if cp >= limit => Some(mover),
            cp if cp <= -limit => Some(!mover),
            _ => None,
        });
        self.plies = match side {
            Some(_) if side == self.side => self.plies + 1,
            Some(_) => 1,
            None => 0,
        };
        self.side = side;
        side.filter(|_| self.plies >= AGREEING_PLIES)
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;
    use crate::chess::Position;

    fn game(fen: &str, moves: &str) -> Game {
        let mut game = Game::new(Position::from_fen(fen).unwrap().0);
        for text in moves.split_whitespace() {
            let m = game.current().parse_uci(text).unwrap();
            game.play(m);
        }
        game
    }

    #[test]
    fn the_rules_end_games() {
        let there_and_back = "a1a2 h8g8 a2a1 g8h8 a1a2 h8g8 a2a1 g8h8";
        for (fen, moves, expected) in [
            ("7k/8/6K1/8/8/8/8/R7 w - - 0 1", "", None),
            (
                "7k/8/6K1/8/8/8/8/R7 w - - 0 1",
                "a1a8",
                Some(GameResult::WhiteWins),
            ),
            (
                "8/8/8/8/8/6k1/8/r6K w - - 0 1",
                "",
                Some(GameResult::BlackWins),
            ),
            ("7k/5Q2/6K1/8/8/8/8/8 b - - 0 1", "", Some(GameResult::Draw)),
            ("7k/8/6K1/8/8/8/8/N7 w - - 0 1", "", Some(GameResult::Draw)),
            (
                "7k/8/8/8/8/8/K7/2R5 w - - 99 90",
                "c1c2",
                Some(GameResult::Draw),
            ),
            (
                "7k/8/4K3/8/8/8/8/R7 w - - 0 1",
                there_and_back,
                Some(GameResult::Draw),
            ),
        ] {
            assert_eq!(ending(&game(fen, moves)), expected, "{fen} {moves}");
        }
    }

    #[test]
    fn a_lead_must_last_and_be_the_same_sides() {
        let m = Position::startpos().legal_moves()[0];
        let ply = |cp| Ply {
            policy: PolicyLabel::Scores(vec![(m, cp)]),
            ..Ply::played(m)
        };
        let run = |scores: &[i16], limit| {
            let mut lead = Lead::default();
            let mut mover = Color::White;
            let mut winner = None;
            for &cp in scores {
                winner = lead.note(&ply(cp), mover, limit);
                mover = !mover;
            }
            winner
        };
        let white = [900, -900, 900, -900, 900, -900];
        assert_eq!(run(&white, 800), Some(Color::White));
        assert_eq!(run(&white.map(|cp| -cp), 800), Some(Color::Black));
        assert_eq!(run(&white[..5], 800), None);
        assert_eq!(run(&white, 0), None);
        assert_eq!(run(&[900, -900, 900, 900, 900, -900], 800), None);
        assert_eq!(run(&[900, -900, 900, -700, 900, -900], 800), None);
    }

    #[test]
    fn moves_are_drawn_by_their_weight() {
        let legal = Position::startpos().legal_moves();
        let mut random = StdRng::seed_from_u64(1);
        let mut count = |label: &PolicyLabel| {
            let draws = (0..1000).filter_map(|_| drawn(label, &mut random));
            draws.filter(|&m| m == legal[0]).count()
        };
        let visits = PolicyLabel::Visits(vec![(legal[0], 300), (legal[1], 100), (legal[2], 0)]);
        assert!((700..800).contains(&count(&visits)));
        let even = PolicyLabel::Scores(vec![(legal[0], 10), (legal[1], 10)]);
        assert!((430..570).contains(&count(&even)));
        let clear = PolicyLabel::Scores(vec![(legal[0], 500), (legal[1], -500)]);
        assert_eq!(count(&clear), 1000);
        assert_eq!(count(&PolicyLabel::None), 0);
        assert_eq!(count(&PolicyLabel::Visits(vec![(legal[0], 0)])), 0);
    }
}
