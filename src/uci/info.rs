//! Engine events as lines of the protocol. Refuses to decide anything: what is printed was decided
//! by search and engine.

use std::fmt::Write;

use crate::chess::perft::PerftCounts;
use crate::chess::{Game, Move, Position};
use crate::engine::{BestMove, Evaluated, Info, Line, Score};
use crate::options::Options;

/// How many moves `eval` shows.
const EVAL_MOVES: usize = 10;

/// One line for each principal variation, best first, with its end-of-line characters between.
pub fn info(info: &Info, game: &Game, options: &Options) -> String {
    let several = options.multi_pv > 1;
    let lines: Vec<String> = info
        .lines
        .iter()
        .enumerate()
        .map(|(index, line)| info_line(info, line, several.then_some(index + 1), game, options))
        .collect();
    lines.join("\n")
}

fn info_line(
    info: &Info,
    line: &Line,
    multipv: Option<usize>,
    game: &Game,
    options: &Options,
) -> String {
    let mut text = String::new();
    let score = score(line, options);
    if line.pv.is_empty() {
        // The game is over; there is nothing else to tell.
        let _ = write!(text, "info depth 0 {score}");
        return text;
    }
    let depth = info.depth.max(1);
    let _ = write!(
        text,
        "info depth {depth} seldepth {} time {} nodes {} {score}",
        info.seldepth.max(depth),
        info.time.as_millis(),
        info.nodes,
    );
    if options.uci_show_moves_left
        && let Some(moves_left) = line.moves_left
    {
        let _ = write!(text, " movesleft {moves_left}");
    }
    let _ = write!(
        text,
        " hashfull {} nps {} tbhits {}",
        info.hashfull, info.nps, info.tbhits
    );
    if let Some(multipv) = multipv {
        let _ = write!(text, " multipv {multipv}");
    }
    text.push_str(" pv");
    let mut position = game.current().clone();
    for &m in &line.pv {
        let _ = write!(text, " {}", position.move_to_uci(m, options.uci_chess960));
        position.play(m);
    }
    text
}

/// `score cp N` or `score mate N`, then, if asked for, `wdl W D L`.
fn score(line: &Line, options: &Options) -> String {
    let mut text = match line.score {
        Score::Cp(cp) => format!("score cp {cp}"),
        Score::Mate(moves) => format!("score mate {moves}"),
    };
    if options.uci_show_wdl {
        let [win, draw, loss] = line.wdl;
        let _ = write!(text, " wdl {win} {draw} {loss}");
    }
    text
}

/// `bestmove M [ponder P]`, or `bestmove (none)` where there is no legal move.
pub fn best_move(best: &BestMove, game: &Game, chess960: bool) -> String {
    let Some(m) = best.best else {
        return "bestmove (none)".to_owned();
    };
    let position = game.current();
    let mut text = format!("bestmove {}", position.move_to_uci(m, chess960));
    if let Some(reply) = best.ponder {
        let next = after(position, m);
        if next.is_legal(reply) {
            let _ = write!(text, " ponder {}", next.move_to_uci(reply, chess960));
        }
    }
    text
}

fn after(position: &Position, m: Move) -> Position {
    let mut next = position.clone();
    next.play(m);
    next
}

/// Leaf counts by root move, then their sum.
pub fn perft(counts: &PerftCounts, game: &Game, chess960: bool) -> String {
    let mut text = String::new();
    for &(m, leaves) in &counts.moves {
        let _ = writeln!(
            text,
            "{}: {leaves}",
            game.current().move_to_uci(m, chess960)
        );
    }
    let _ = write!(text, "\nNodes searched: {}", counts.total);
    text
}

/// The network's own answer: win, draw, loss, moves left and the moves it likes best.
pub fn evaluated(answer: &Evaluated) -> String {
    let a = &answer.attributes;
    let wdl = answer.evaluation.wdl;
    let mut text = format!(
        "Network: {} on {}, {}\nWDL: {:.4} {:.4} {:.4} for the side to move, Q {:+.4}\n",
        a.name,
        a.device,
        a.precision,
        wdl.win,
        wdl.draw,
        wdl.loss,
        wdl.q()
    );
    match answer.evaluation.moves_left {
        Some(plies) => {
            let _ = writeln!(text, "Moves left: {plies:.1} plies");
        }
        None => text.push_str("Moves left: the network does not say\n"),
    }
    let position = answer.game.current();
    let mut moves: Vec<(Move, f32)> = position
        .legal_moves()
        .into_iter()
        .zip(answer.evaluation.policy.0.iter().copied())
        .collect();
    moves.sort_by(|a, b| b.1.total_cmp(&a.1));
    text.push_str("Top moves:");
    for (m, prior) in moves.into_iter().take(EVAL_MOVES) {
        let name = position.move_to_uci(m, answer.chess960);
        let _ = write!(text, " {name} {:.2}%", 100.0 * prior);
    }
    text
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn sample(game: &Game, moves: &[&str], score: Score) -> Info {
        let mut position = game.current().clone();
        let mut pv = Vec::new();
        for text in moves {
            let m = position.parse_uci(text).unwrap();
            position.play(m);
            pv.push(m);
        }
        Info {
            depth: 2,
            seldepth: 3,
            time: Duration::from_millis(12),
            nodes: 34,
            nps: 2833,
            hashfull: 1,
            tbhits: 0,
            lines: vec![Line {
                score,
                wdl: [400, 350, 250],
                moves_left: Some(88),
                nodes: 20,
                pv,
            }],
        }
    }

    #[test]
    fn the_line_has_every_field_in_order() {
        let game = Game::default();
        let mut options = Options::default();
        let news = sample(&game, &["e2e4", "e7e5"], Score::Cp(-7));
        assert_eq!(
            info(&news, &game, &options),
            "info depth 2 seldepth 3 time 12 nodes 34 score cp -7 hashfull 1 nps 2833 tbhits 0 \
             pv e2e4 e7e5"
        );
        options.uci_show_wdl = true;
        options.uci_show_moves_left = true;
        options.multi_pv = 2;
        assert_eq!(
            info(&news, &game, &options),
            "info depth 2 seldepth 3 time 12 nodes 34 score cp -7 wdl 400 350 250 movesleft 88 \
             hashfull 1 nps 2833 tbhits 0 multipv 1 pv e2e4 e7e5"
        );
    }

    #[test]
    fn a_finished_game_says_only_that() {
        let game = Game::default();
        let news = sample(&game, &[], Score::Mate(0));
        assert_eq!(
            info(&news, &game, &Options::default()),
            "info depth 0 score mate 0"
        );
        let none = BestMove {
            best: None,
            ponder: None,
        };
        assert_eq!(best_move(&none, &game, false), "bestmove (none)");
    }

    #[test]
    fn an_illegal_ponder_move_is_left_out() {
        let game = Game::default();
        let best = game.current().parse_uci("e2e4").unwrap();
        assert_eq!(
            best_move(
                &BestMove {
                    best: Some(best),
                    ponder: Some(best)
                },
                &game,
                false
            ),
            "bestmove e2e4"
        );
    }

    #[test]
    fn castling_prints_as_the_options_say() {
        let (position, _) = Position::from_fen("4k3/8/8/8/8/8/8/4K2R w K - 0 1").unwrap();
        let game = Game::new(position);
        let castle = game.current().parse_uci("e1g1").unwrap();
        let best = BestMove {
            best: Some(castle),
            ponder: None,
        };
        assert_eq!(best_move(&best, &game, false), "bestmove e1g1");
        assert_eq!(best_move(&best, &game, true), "bestmove e1h1");
    }
}
