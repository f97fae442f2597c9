//! Evaluations whose answers are known beforehand: a player that is always right, one that plays at random, and one
//! that always blunders.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use simurgh::chess::{Game, Move};
use simurgh::eval::OpenPolicy;
use simurgh::measure::evaluate::desk::{Clock, Desk, Sampling, Told};
use simurgh::measure::evaluate::player::{Identity, Player, PlayerError, Step, Thought, View};
use simurgh::measure::evaluate::results::{Rate, Results, Row};
use simurgh::measure::evaluate::store::Store;
use simurgh::measure::evaluate::suite::Suite;
use simurgh::measure::evaluate::{EvaluateError, Files, Materials, evaluate, markdown};

/// What a scripted player does.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Script {
    /// The move of the key; every output but those of legal moves is out of the question.
    Perfect,
    /// Any legal move; without a mask any of four outputs a legal move has one of.
    Random,
    /// Never the move of the key; without a mask never a legal one.
    Blunders,
}

/// A player that looks the right moves up. `asked` counts its answers.
struct Scripted {
    script: Script,
    /// Positions and the right move in them.
    key: Vec<(String, Move)>,
    asked: Arc<AtomicU64>,
    needs_game: bool,
    random: StdRng,
}

impl Scripted {
    fn new(script: Script, materials: &Materials) -> Scripted {
        Scripted {
            script,
            key: key(materials),
            asked: Arc::default(),
            needs_game: false,
            random: StdRng::seed_from_u64(5),
        }
    }

    fn right(&self, game: &Game) -> Option<Move> {
        let fen = game.current().to_fen(true);
        self.key.iter().find(|(at, _)| *at == fen).map(|one| one.1)
    }

    /// Index of its choice among the legal moves.
    fn choose(&mut self, game: &Game) -> usize {
        let legal = game.current().legal_moves();
        let right = self
            .right(game)
            .and_then(|right| legal.iter().position(|&m| m == right));
        match self.script {
            Script::Perfect => right.expect("a position of the key"),
            Script::Random => self.random.random_range(0..legal.len()),
            Script::Blunders => (0..legal.len())
                .find(|&i| Some(i) != right && !mates(game, legal[i]))
                .expect("two legal moves"),
        }
    }
}

fn mates(game: &Game, m: Move) -> bool {
    let mut after = game.current().clone();
    after.play(m);
    after.is_check() && after.legal_moves().is_empty()
}

/// The right moves of everything there is.
fn key(materials: &Materials) -> Vec<(String, Move)> {
    let mut key = Vec::new();
    for sample in &materials.samples {
        key.push((sample.game.current().to_fen(true), sample.played));
    }
    for puzzle in &materials.puzzles {
        let mut position = puzzle.game.current().clone();
        for (ply, &m) in puzzle.line.iter().enumerate() {
            if ply % 2 == 1 {
                key.push((position.to_fen(true), m));
            }
            position.play(m);
        }
    }
    key
}

impl Player for Scripted {
    fn views(&mut self, games: &[Arc<Game>]) -> Result<Option<Vec<View>>, PlayerError> {
        self.asked.fetch_add(games.len() as u64, Ordering::Relaxed);
        let views = games.iter().map(|game| {
            let moves = game.current().legal_moves().to_vec();
            let chosen = self.choose(game);
            let mut priors = vec![0.1 / moves.len() as f32; moves.len()];
            priors[chosen] += 0.9;
            // Legal move i is output 4·i; the outputs between are no moves.
            let mut logits = vec![-100.0; 4 * moves.len()];
            match self.script {
                Script::Perfect => logits[4 * chosen] = 0.0,
                Script::Random => logits[4 * chosen + self.random.random_range(0..4)] = 0.0,
                Script::Blunders => logits[1] = 0.0,
            }
            View {
                open: Some(OpenPolicy {
                    logits,
                    legal: (0..moves.len()).map(|i| 4 * i).collect(),
                }),
                moves,
                priors,
                q: 0.25,
            }
        });
        Ok(Some(views.collect()))
    }

    fn think(&mut self, game: &Arc<Game>, nodes: u64) -> Result<Option<Thought>, PlayerError> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        let best = game.current().legal_moves()[self.choose(game)];
        let time = Duration::from_millis(7);
        Ok(Some(Thought {
            best,
            q: Some(0.5),
            nodes,
            time,
            trail: vec![Step {
                best,
                nodes: 3,
                time: Duration::from_millis(2),
            }],
        }))
    }

    fn needs_game(&self) -> bool {
        self.needs_game
    }
}

/// A player that neither has a policy nor searches.
struct Mute;

impl Player for Mute {
    fn views(&mut self, _: &[Arc<Game>]) -> Result<Option<Vec<View>>, PlayerError> {
        Ok(None)
    }

    fn think(&mut self, _: &Arc<Game>, _: u64) -> Result<Option<Thought>, PlayerError> {
        Ok(None)
    }
}

/// A folder that goes with the value.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Folder {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("simurgh-evaluate-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, text).unwrap();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Games of random moves between players of 1100 and 1900, and mates in one and in two as puzzles of all bands.
fn files(folder: &Folder) -> Files {
    let mut random = StdRng::seed_from_u64(3);
    let mut pgn = String::new();
    for _ in 0..150 {
        let mut game = simurgh::chess::PgnGame::new(simurgh::chess::Position::startpos());
        let mut position = game.start.clone();
        for _ in 0..120 {
            let legal = position.legal_moves();
            if legal.len() < 2 {
                break;
            }
            let m = legal[random.random_range(0..legal.len())];
            game.push(m, None);
            position.play(m);
        }
        game.set_tag("WhiteElo", "1100");
        game.set_tag("BlackElo", "1900");
        let mut bytes = Vec::new();
        simurgh::chess::pgn::write(&mut bytes, &game).unwrap();
        pgn.push_str(&String::from_utf8(bytes).unwrap());
    }
    let mut puzzles = String::from("FEN,Moves,Rating\n");
    for (number, rating) in [900, 1200, 1300, 1700, 2400].into_iter().enumerate() {
        // Back-rank mate; then one after a capture. The move numbers keep them apart.
        puzzles.push_str(&format!(
            "6k1/p1p2ppp/1pqp2r1/3Q4/8/1P6/P1P2PPP/4RK2 b - - 8 2{number},c6d5 e1e8,{rating}\n\
             4r1k1/2Q2ppp/2p2n2/3p4/N7/4r3/P5PP/2q2R1K w - - 0 2{number},f1c1 e3e1 c1e1 e8e1,{rating}\n"
        ));
    }
    Files {
        pgn: vec![folder.file("games.pgn", &pgn)],
        puzzles: vec![folder.file("puzzles.csv", &puzzles)],
        ..Files::default()
    }
}

fn materials(suite: &str) -> Materials {
    let folder = Folder::new();
    Materials::read(&files(&folder), &suite.parse().unwrap(), 1).unwrap()
}

fn identity(name: &str) -> Identity {
    Identity {
        name: name.to_owned(),
        kind: "network",
        sha256: format!("sha256 of {name}"),
        ..Identity::default()
    }
}

/// Measures with a store of its own and `top_k` 1, where a sampled move is the first choice.
fn row(player: &mut dyn Player, suite: &str, materials: &Materials) -> Row {
    let store = Store::in_memory().unwrap();
    measured(player, suite, materials, &store, &Arc::default()).unwrap()
}

fn measured(
    player: &mut dyn Player,
    suite: &str,
    materials: &Materials,
    store: &Store,
    cancel: &Arc<AtomicBool>,
) -> Result<Row, EvaluateError> {
    let suite: Suite = suite.parse().unwrap();
    let mut desk = Desk {
        player,
        identity: &identity("script"),
        store,
        sampling: Sampling {
            temperature: 1.0,
            top_k: 1,
        },
        nodes: 10,
        cancel,
        told: &mut |_: Told<'_>| {},
        clock: Clock::default(),
    };
    evaluate(&mut desk, &suite, materials)
}

fn share(rate: Rate) -> f64 {
    rate.share().unwrap()
}

#[test]
fn the_perfect_player_is_perfect() {
    let materials = materials("quick");
    let row = row(
        &mut Scripted::new(Script::Perfect, &materials),
        "quick,legality,accuracy,puzzles",
        &materials,
    );
    let legality = row.legality.unwrap();
    assert_eq!((legality.argmax.hits, legality.argmax.of), (100, 100));
    assert_eq!(share(legality.sampled), 1.0);
    let phases: u64 = legality.phases.iter().map(|one| one.argmax.of).sum();
    assert_eq!(phases, 100);
    let accuracy = row.accuracy.unwrap();
    assert_eq!((share(accuracy.top1), share(accuracy.top3)), (1.0, 1.0));
    let bands: Vec<&str> = accuracy.bands.iter().map(|one| &*one.band).collect();
    assert_eq!(bands, ["1000-1200", "1800-2000"]);
    let puzzles = row.puzzles.unwrap();
    for solved in [puzzles.policy.unwrap(), puzzles.search.unwrap()] {
        assert_eq!((solved.all.hits, solved.all.of), (10, 10));
        let bands: Vec<(&str, u64)> = solved
            .bands
            .iter()
            .map(|one| (one.band, one.solved.hits))
            .collect();
        let expected = [
            ("below 1000", 2),
            ("1000-1500", 4),
            ("1500-2000", 2),
            ("2000+", 2),
        ];
        assert_eq!(bands, expected);
    }
}

#[test]
fn the_blunderer_gets_nothing_right() {
    let materials = materials("quick");
    let row = row(
        &mut Scripted::new(Script::Blunders, &materials),
        "quick,legality,accuracy,puzzles",
        &materials,
    );
    let legality = row.legality.unwrap();
    assert_eq!((legality.argmax.hits, legality.sampled.hits), (0, 0));
    assert_eq!(row.accuracy.unwrap().top1.hits, 0);
    let puzzles = row.puzzles.unwrap();
    assert_eq!(puzzles.policy.unwrap().all, Rate { hits: 0, of: 10 });
    assert_eq!(puzzles.search.unwrap().all, Rate { hits: 0, of: 10 });
}

#[test]
fn the_random_player_is_as_good_as_chance() {
    let materials = materials("full");
    let row = row(
        &mut Scripted::new(Script::Random, &materials),
        "legality,accuracy",
        &materials,
    );
    // One output in four is a legal move: 150 positions, sd 3.5 %.
    let legal = share(row.legality.unwrap().argmax);
    assert!((0.13..0.37).contains(&legal), "{legal}");
    let expected: f64 = materials
        .samples
        .iter()
        .map(|sample| 1.0 / sample.game.current().legal_moves().len() as f64)
        .sum::<f64>()
        / materials.samples.len() as f64;
    let top1 = share(row.accuracy.unwrap().top1);
    let sd = (expected * (1.0 - expected) / materials.samples.len() as f64).sqrt();
    assert!(
        (top1 - expected).abs() < 4.0 * sd,
        "{top1}, expected {expected}"
    );
}

#[test]
fn nothing_is_asked_twice() {
    let materials = materials("quick");
    let store = Store::in_memory().unwrap();
    let mut player = Scripted::new(Script::Perfect, &materials);
    let asked = Arc::clone(&player.asked);
    let suite = "quick,legality,accuracy,puzzles";
    let cancel = Arc::default();
    let first = measured(&mut player, suite, &materials, &store, &cancel).unwrap();
    let once = asked.load(Ordering::Relaxed);
    // Accuracy looks at the same positions as legality.
    assert_eq!(once, 100 + 2 * 15);
    let second = measured(&mut player, suite, &materials, &store, &cancel).unwrap();
    assert_eq!(asked.load(Ordering::Relaxed), once);
    assert_eq!(first.legality, second.legality);
    assert_eq!(first.puzzles, second.puzzles);
}

/// Tells everybody to stop after some answers.
struct Impatient {
    player: Scripted,
    most: u64,
    cancel: Arc<AtomicBool>,
}

impl Player for Impatient {
    fn views(&mut self, games: &[Arc<Game>]) -> Result<Option<Vec<View>>, PlayerError> {
        self.player.views(games)
    }

    fn think(&mut self, game: &Arc<Game>, nodes: u64) -> Result<Option<Thought>, PlayerError> {
        let thought = self.player.think(game, nodes);
        let asked = self.player.asked.load(Ordering::Relaxed);
        self.cancel.store(asked >= self.most, Ordering::Relaxed);
        thought
    }
}

#[test]
fn a_cut_run_goes_on() {
    let materials = materials("quick");
    let store = Store::in_memory().unwrap();
    let cancel = Arc::new(AtomicBool::new(false));
    let mut player = Impatient {
        player: Scripted::new(Script::Perfect, &materials),
        most: 20,
        cancel: Arc::clone(&cancel),
    };
    let error = measured(&mut player, "quick,puzzles", &materials, &store, &cancel).unwrap_err();
    assert!(matches!(error, EvaluateError::Interrupted), "{error}");
    assert_eq!(player.player.asked.load(Ordering::Relaxed), 20);
    cancel.store(false, Ordering::Relaxed);
    player.most = u64::MAX;
    let row = measured(&mut player, "quick,puzzles", &materials, &store, &cancel).unwrap();
    assert_eq!(row.puzzles.unwrap().search.unwrap().all.hits, 10);
    // 15 positions, the policy's and the search's.
    assert_eq!(player.player.asked.load(Ordering::Relaxed), 30);
}

#[test]
fn what_was_not_measured_is_null_and_said() {
    let materials = materials("quick");
    let row = row(&mut Mute, "quick,legality,accuracy,puzzles", &materials);
    assert!(row.legality.is_none() && row.accuracy.is_none());
    let puzzles = row.puzzles.as_ref().unwrap();
    assert!(puzzles.policy.is_none() && puzzles.search.is_none());
    assert!(row.notes.iter().any(|note| note.contains("legality")));
    let results = Results {
        simurgh: "0".to_owned(),
        date: "today".to_owned(),
        suite: "quick".to_owned(),
        sampling: Sampling::default(),
        nodes: 10,
        rows: vec![row],
    };
    let json = serde_json::to_value(&results).unwrap();
    assert!(json["rows"][0]["legality"].is_null());
    let report = markdown::report(&results);
    assert!(
        report.contains("n/a") && !report.contains("0.0 %"),
        "{report}"
    );
}

#[test]
fn a_player_that_reads_games_is_not_shown_bare_positions() {
    let materials = materials("quick");
    let mut player = Scripted::new(Script::Perfect, &materials);
    player.needs_game = true;
    let row = row(&mut player, "quick,puzzles", &materials);
    assert!(row.puzzles.is_none());
    assert_eq!(player.asked.load(Ordering::Relaxed), 0);
}
