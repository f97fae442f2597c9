//! Engines driven from outside: Stockfish and Lc0, where they are installed (skipped out loud where
//! not). They play, search, stop and ponder without a fault.

use std::path::{Path, PathBuf};
use std::time::Duration;

use simurgh::chess::pgn;
use simurgh::client::{ClientError, Engine, EngineConfig, Exit, Limits, OptionKind, Score};
use simurgh::measure::book::{Book, Order};
use simurgh::measure::matches::{Pace, Rules, Summary, Tally};

use crate::client::{Folder, nodes, plan, play};

pub fn find_program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let games = Path::new("/usr/games").to_owned();
    let found = std::env::split_paths(&path)
        .chain([games])
        .map(|dir| dir.join(name))
        .find(|path| path.is_file());
    if found.is_none() {
        eprintln!("SKIPPED: {name} is not installed");
    }
    found
}

pub fn stockfish() -> Option<EngineConfig> {
    Some(EngineConfig {
        command: find_program("stockfish")?,
        options: vec![("Threads".into(), "1".into()), ("Hash".into(), "4".into())],
        ..EngineConfig::default()
    })
}

fn clean(tally: &Tally) {
    for faults in &tally.faults {
        assert_eq!(faults.total(), 0, "{faults:?}");
    }
}

#[test]
fn stockfish_searches_stops_ponders_and_restarts() {
    let Some(mut config) = stockfish() else {
        return;
    };
    config.options.push(("MultiPV".into(), "3".into()));
    let mut engine = Engine::start(config).unwrap();
    assert!(engine.name().starts_with("Stockfish"));
    assert!(engine.complaints().is_empty(), "{:?}", engine.complaints());
    assert!(matches!(
        engine.option("hash").unwrap().kind,
        OptionKind::Spin {
            default: Some(_),
            ..
        }
    ));
    let patience = Duration::from_secs(60);
    for _ in 0..2 {
        engine.new_game().unwrap();
        engine
            .position(Some("7k/8/6K1/8/8/8/8/R7 w - - 0 1"), &[])
            .unwrap();
        engine
            .go(&Limits {
                depth: Some(6),
                ..Limits::default()
            })
            .unwrap();
        let mut infos = Vec::new();
        let answer = engine
            .answer(patience, &mut |info| infos.push(info))
            .unwrap();
        assert_eq!(answer.best, "a1a8");
        assert!(infos.iter().all(|info| info.malformed == 0), "{infos:?}");
        assert!(infos.iter().any(|info| info.multipv == Some(3)));
        assert!(infos.iter().any(|info| info.score == Some(Score::Mate(1))));

        engine.position(None, &["e2e4".to_owned()]).unwrap();
        engine.go(&Limits::default()).unwrap();
        let error = engine
            .answer(Duration::from_millis(200), &mut |_| {})
            .unwrap_err();
        assert!(matches!(error, ClientError::Timeout { .. }), "{error}");
        let answer = engine.stop_and_answer(&mut |_| {}).unwrap();
        assert!(answer.elapsed >= Duration::from_millis(200));

        let ponder = Limits {
            ponder: true,
            ..Limits::move_time(Duration::from_millis(50))
        };
        engine.go(&ponder).unwrap();
        engine
            .answer(Duration::from_millis(200), &mut |_| {})
            .unwrap_err();
        engine.ponder_hit().unwrap();
        engine.answer(patience, &mut |_| {}).unwrap();
        engine.is_ready().unwrap();
        assert_eq!(engine.take_strays(), 0);
        engine.restart().unwrap();
    }
    assert_eq!(engine.quit(), Exit::Clean);
}

#[test]
fn stockfish_plays_itself() {
    let Some(config) = stockfish() else { return };
    let folder = Folder::new();
    let openings = folder.write(
        "openings.pgn",
        "[ECO \"A00\"]\n\n1. e4 e5 2. Nf3 *\n\n[ECO \"A01\"]\n\n1. d4 d5 *\n\n[ECO \"A02\"]\n\n1. c4 *\n",
    );
    let mut plan = plan(("A", config.clone(), nodes(300)), ("B", config, nodes(150)));
    plan.book = Book::read(&openings, 3, Order::Random { seed: 4 }).unwrap();
    plan.rounds = 3;
    plan.rules.stall = Duration::from_secs(60);
    let (tally, games) = play(&plan);
    clean(&tally);
    assert_eq!(
        (
            tally.encounters[0].counts.games(),
            tally.encounters[0].pentanomial.pairs()
        ),
        (6, 3)
    );
    for game in &games {
        let opening = plan.book.opening(game.pairing.round);
        let written = game.to_pgn(&plan, opening).to_string();
        let read: Vec<_> = pgn::read(written.as_bytes()).map(Result::unwrap).collect();
        assert_eq!(read.len(), 1);
        assert_eq!(read[0].moves.len(), opening.moves.len() + game.moves.len());
        assert_eq!(read[0].result, game.result);
    }
    let summary = Summary::new(&plan, &tally);
    assert!(
        summary
            .engines
            .iter()
            .all(|engine| engine.nps.is_some() && engine.mean_depth.is_some())
    );
}

#[test]
fn stockfish_plays_chess960() {
    let Some(config) = stockfish() else { return };
    let folder = Folder::new();
    let openings = folder.write(
        "openings.epd",
        "brknr1nq/p1ppbppp/4p3/1p6/4P3/3B1N2/PPPP1PPP/BRKNR2Q w KQkq - 2 4\n\
         rbbkrnqn/pppppppp/8/8/8/6N1/PPPPPPPP/QNRBBKR1 b KQkq - 1 1\n",
    );
    let mut plan = plan(("A", config.clone(), nodes(100)), ("B", config, nodes(100)));
    plan.book = Book::read(&openings, 0, Order::Sequential { first: 1 }).unwrap();
    plan.rules = Rules {
        chess960: plan.book.needs_chess960(),
        stall: Duration::from_secs(60),
        ..Rules::default()
    };
    assert!(plan.rules.chess960);
    let (tally, games) = play(&plan);
    clean(&tally);
    assert_eq!(tally.encounters[0].counts.games(), 4);
    let written = games[0]
        .to_pgn(&plan, plan.book.opening(games[0].pairing.round))
        .to_string();
    let read: Vec<_> = pgn::read(written.as_bytes()).map(Result::unwrap).collect();
    assert!(read[0].chess960 && read[0].moves.len() == games[0].moves.len());
}

#[test]
fn stockfish_plays_on_clocks() {
    let Some(config) = stockfish() else { return };
    let margin = Duration::from_secs(20);
    let clock = Pace {
        control: Some("10/0.3+0.01".parse().unwrap()),
        margin,
        ..Pace::default()
    };
    let move_time = Pace {
        move_time: Some(Duration::from_millis(5)),
        margin,
        ..Pace::default()
    };
    let mut plan = plan(("A", config.clone(), clock), ("B", config, move_time));
    plan.rounds = 1;
    plan.rules.max_moves = Some(30);
    let (tally, _) = play(&plan);
    clean(&tally);
    assert_eq!(tally.encounters[0].counts.games(), 2);
}

#[test]
fn lc0_plays_stockfish() {
    let (Some(stockfish), Some(lc0)) = (stockfish(), find_program("lc0")) else {
        return;
    };
    let Some(net) = crate::shared::file("nets/maia-1100.pb.gz") else {
        return;
    };
    let lc0 = EngineConfig {
        command: lc0,
        args: vec![format!("--weights={}", net.display()), "--threads=1".into()],
        ..EngineConfig::default()
    };
    let mut plan = plan(("Lc0", lc0, nodes(1)), ("Stockfish", stockfish, nodes(50)));
    plan.rounds = 1;
    plan.concurrency = 1;
    plan.rules.stall = Duration::from_secs(60);
    plan.rules.max_moves = Some(40);
    let (tally, _) = play(&plan);
    assert_eq!(tally.encounters[0].counts.games(), 2);
    clean(&tally);
}
