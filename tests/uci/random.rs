//! Random conversations from a seed: as many best moves as searches, each legal where it was asked
//! for, and no end before `quit`.

use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};

use simurgh::chess::{Game, Position};

use super::gui::{Gui, best};

const FENS: [&str; 6] = [
    "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1",
    "8/2p5/3p4/KP5r/1R3p1k/8/4P1P1/8 w - - 0 1",
    "7k/5Q2/6K1/8/8/8/8/8 b - - 0 1",
    "rnb1kbnr/pppp1ppp/8/4p3/6Pq/5P2/PPPPP2P/RNBQKBNR w KQkq - 1 3",
    "6k1/5ppp/8/8/8/8/8/4R1K1 w - - 99 80",
    "bqnb1rkr/pp3ppp/3ppn2/2p5/5P2/P2P4/NPP1P1PP/BQ1BNRKR w HFhf - 2 9",
];

const GOES: [&str; 16] = [
    "go nodes 50",
    "go nodes 0",
    "go depth 2",
    "go movetime 5",
    "go movetime 0",
    "go wtime 100 btime 100",
    "go wtime -5 btime -5",
    "go infinite",
    "go",
    "go ponder wtime 100 btime 100",
    "go ponder",
    "go searchmoves e2e4 a1a2 nodes 20",
    "go wtime btime 50 winc x",
    "go mate 1 nodes 300",
    "go foo",
    "go btime 10 wtime 10 movestogo 1",
];

const OTHERS: [&str; 16] = [
    "stop",
    "ponderhit",
    "ucinewgame",
    "setoption name MultiPV value 3",
    "setoption name MultiPV value 1",
    "setoption name Hash value 16",
    "setoption name Backend value random",
    "setoption name Backend value uniform",
    "setoption name Threads value 2",
    "setoption name Threads value nonsense",
    "setoption name UCI_ShowWDL value true",
    "setoption name Clear Hash",
    "nonsense",
    "isready",
    "uci",
    "d",
];

/// A game by random moves, and the command that sets it up.
fn random_position(random: &mut StdRng) -> (String, Game) {
    let (mut command, start) = match random.random_bool(0.5) {
        true => ("position startpos".to_owned(), Position::startpos()),
        false => {
            let fen = FENS.choose(random).unwrap();
            (
                format!("position fen {fen}"),
                Position::from_fen(fen).unwrap().0,
            )
        }
    };
    let mut game = Game::new(start);
    let plies = random.random_range(0..20);
    for ply in 0..plies {
        let moves = game.current().legal_moves();
        let Some(&m) = moves.choose(random) else {
            break;
        };
        command += if ply == 0 { " moves " } else { " " };
        command += &game.current().move_to_uci(m, random.random_bool(0.2));
        game.play(m);
    }
    if game.moves().is_empty() || random.random_bool(0.8) {
        return (command, game);
    }
    (command + " e2e9", game)
}

#[test]
fn as_many_best_moves_as_searches_and_all_of_them_legal() {
    for seed in 0..8 {
        conversation(seed);
    }
}

fn conversation(seed: u64) {
    let mut random = StdRng::seed_from_u64(seed);
    let mut gui = Gui::new();
    let mut game = Game::default();
    // What each `go` was asked for, oldest first.
    let mut asked: Vec<Game> = Vec::new();
    let mut sent = Vec::new();
    for _ in 0..60 {
        let line = match random.random_range(0..10) {
            0..3 => {
                let (line, next) = random_position(&mut random);
                game = next;
                line
            }
            3..6 => {
                asked.push(game.clone());
                (*GOES.choose(&mut random).unwrap()).to_owned()
            }
            _ => (*OTHERS.choose(&mut random).unwrap()).to_owned(),
        };
        gui.send(&line);
        sent.push(line);
        if random.random_bool(0.1) {
            std::thread::sleep(std::time::Duration::from_millis(random.random_range(0..30)));
        }
    }
    gui.send("stop");
    gui.sync();
    gui.quit();
    let answers: Vec<&String> = gui
        .transcript
        .iter()
        .filter(|line| line.starts_with("bestmove"))
        .collect();
    assert_eq!(answers.len(), asked.len(), "seed {seed}: {sent:#?}");
    for (answer, game) in answers.into_iter().zip(&asked) {
        let m = best(std::slice::from_ref(answer));
        let legal = match m.as_str() {
            "(none)" => game.current().legal_moves().is_empty(),
            _ => game.current().parse_uci(&m).is_ok(),
        };
        assert!(
            legal,
            "seed {seed}: {answer} in {}: {sent:#?}",
            game.current().to_fen(true)
        );
    }
}
