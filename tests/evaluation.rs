//! Evaluations whose answers are known beforehand: a player that is always right, one that plays at random, and one
//! that always blunders.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use simurgh::chess::{Game, Move};
use simurgh::client::EngineConfig;
use simurgh::eval::{Answer, Fake, OpenPolicy, Policy};
use simurgh::measure::book::Book;
use simurgh::measure::evaluate::desk::{Clock, Desk, Sampling, Told};
use simurgh::measure::evaluate::judge::{Judge, losses};
use simurgh::measure::evaluate::ladder::{LadderPlan, Manner, Opponent, ladder};
use simurgh::measure::evaluate::network::NetworkPlayer;
use simurgh::measure::evaluate::only_moves;
use simurgh::measure::evaluate::player::{Identity, Player, PlayerError, Step, Thought, View};
use simurgh::measure::evaluate::results::{Effort, Rate, Results, Row};
use simurgh::measure::evaluate::store::Store;
use simurgh::measure::evaluate::suite::Suite;
use simurgh::measure::evaluate::{Aids, EvaluateError, Files, Materials, evaluate, html, markdown};
use simurgh::measure::matches::{Contestant, Rules};
use simurgh::model::{ModelOptions, Source, load_backend};
use simurgh::options::Options;

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
    for (fen, m) in SUITE {
        let (position, _) = simurgh::chess::Position::from_fen(fen).unwrap();
        key.push((position.to_fen(true), position.parse_uci(m).unwrap()));
    }
    key
}

/// Positions of a suite with their best move, which is worth 100 points.
const SUITE: [(&str, &str); 2] = [
    ("6k1/5ppp/8/8/8/8/5PPP/R5K1 w - - 0 1", "a1a8"),
    ("6k1/5ppp/8/8/8/8/5PPP/1R4K1 w - - 0 1", "b1b8"),
];

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
    let suite = "6k1/5ppp/8/8/8/8/5PPP/R5K1 w - - bm Ra8#; id \"one\"; c0 \"Ra8=100, Kf1=40\";\n\
                 6k1/5ppp/8/8/8/8/5PPP/1R4K1 w - - bm Rb8#; id \"two\"; c0 \"Rb8=100, Kf1=40\";\n\
                 6k1/5ppp/8/8/8/8/5PPP/1R4K1 w - - id \"asks for nothing\";\n";
    Files {
        pgn: vec![folder.file("games.pgn", &pgn)],
        puzzles: vec![folder.file("puzzles.csv", &puzzles)],
        epd: vec![folder.file("suite.epd", suite)],
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
    let mut aids = Aids {
        deep_nodes: 50,
        ..Aids::default()
    };
    evaluate(&mut desk, &suite, materials, &mut aids)
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
        assert_eq!((solved.all.hits, solved.all.of), (8, 8));
        let bands: Vec<(&str, u64)> = solved
            .bands
            .iter()
            .map(|one| (one.band, one.solved.hits))
            .collect();
        let expected = [("1000-1500", 4), ("1500-2000", 2), ("2000+", 2)];
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
    assert_eq!(puzzles.policy.unwrap().all, Rate { hits: 0, of: 8 });
    assert_eq!(puzzles.search.unwrap().all, Rate { hits: 0, of: 8 });
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
fn suites_are_scored() {
    let materials = materials("epd");
    assert!(
        materials.notes[0].contains("suite: 1 records"),
        "{:?}",
        materials.notes
    );
    let suites = |script| {
        let mut player = Scripted::new(script, &materials);
        row(&mut player, "epd", &materials).suites.unwrap()
    };
    let perfect = suites(Script::Perfect);
    assert_eq!((perfect.len(), &*perfect[0].name), (1, "suite"));
    let search = perfect[0].search.as_ref().unwrap();
    assert_eq!(search.solved, Rate { hits: 2, of: 2 });
    assert_eq!((search.points, search.most_points), (Some(200), Some(200)));
    assert_eq!(
        (search.median_nodes, search.median_ms),
        (Some(3.0), Some(2.0))
    );
    let blunders = suites(Script::Blunders);
    let policy = blunders[0].policy.as_ref().unwrap();
    assert_eq!(policy.solved.hits, 0);
    assert!(policy.points < Some(100) && policy.most_points == Some(200));
    assert_eq!(blunders[0].search.as_ref().unwrap().median_nodes, None);
}

#[test]
fn a_player_of_one_line_has_no_diversity_and_a_random_one_has_all() {
    let nothing = Materials::default();
    let mut steady = Scripted::new(Script::Blunders, &nothing);
    let one = row(&mut steady, "diversity", &nothing).diversity.unwrap();
    assert_eq!((one.games, one.distinct, one.entropy_bits), (200, 1, 0.0));
    let mut random = Scripted::new(Script::Random, &nothing);
    let all = row(&mut random, "quick,diversity", &nothing)
        .diversity
        .unwrap();
    assert_eq!((all.games, all.distinct), (20, 20));
    assert!((all.entropy_bits - 20.0_f64.log2()).abs() < 1e-9);
}

#[test]
fn a_player_that_never_changes_its_mind_agrees_with_itself() {
    let materials = materials("quick");
    let mut perfect = Scripted::new(Script::Perfect, &materials);
    let found = row(&mut perfect, "quick,agreement", &materials)
        .agreement
        .unwrap();
    assert_eq!((found.nodes, found.top1), (50, Rate { hits: 50, of: 50 }));
    // It says 0.25 at first sight and 0.5 after a search, always.
    assert!((found.value_error.unwrap() - 0.25).abs() < 1e-6);
    assert_eq!(found.value_correlation, None);
}

#[test]
fn the_judges_own_moves_lose_nothing_and_blunders_a_lot() {
    let Some(config) = crate::real_engines::stockfish() else {
        return;
    };
    let materials = materials("quick");
    let cancel = Arc::default();
    let store = Store::in_memory().unwrap();
    let mut judge = Judge::start(config, 6, &cancel).unwrap();
    let samples = &materials.samples[..20];
    let mut key = Vec::new();
    for sample in samples {
        let judged = judge.judge(&store, &sample.game, None, 1).unwrap();
        let position = sample.game.current();
        key.push((
            position.to_fen(true),
            position.parse_uci(&judged[0].m).unwrap(),
        ));
    }
    let mut lost = |script| {
        let player = &mut Scripted {
            key: key.clone(),
            ..Scripted::new(script, &Materials::default())
        };
        let mut desk = Desk {
            player,
            identity: &identity(&format!("{script:?}")),
            store: &store,
            sampling: Sampling::default(),
            nodes: 10,
            cancel: &cancel,
            told: &mut |_: Told<'_>| {},
            clock: Clock::default(),
        };
        losses(&mut desk, &mut judge, samples).unwrap().unwrap()
    };
    let perfect = lost(Script::Perfect);
    for loss in [perfect.policy.unwrap(), perfect.search.unwrap()] {
        assert_eq!((loss.mean, loss.error, loss.positions), (0.0, 0.0, 20));
    }
    assert!(perfect.judge.starts_with("Stockfish") && perfect.depth == 6);
    // The first legal move that is not the judge's: worth some pawns less on average.
    let blunders = lost(Script::Blunders).policy.unwrap();
    assert!(blunders.mean > 50.0, "{blunders:?}");
}

#[test]
fn a_ladder_is_played_counted_and_not_played_twice() {
    let folder = crate::client::Folder::new();
    let Some(config) = crate::real_engines::stockfish() else {
        return;
    };
    let cancel = Arc::default();
    let opponent = Opponent::introduce(config.clone(), &[2200], &cancel).unwrap();
    assert!(opponent.rungs.len() >= 8);
    assert!(Opponent::introduce(config, &[99_999], &cancel).is_err());
    let plan = LadderPlan {
        opponent: Opponent {
            rungs: opponent.rungs[..2].to_vec(),
            ..opponent
        },
        games: 2,
        move_time: Duration::from_millis(5),
        book: Book::startpos(),
        rules_text: "cut after 30 moves".to_owned(),
        rules: Rules {
            max_moves: Some(30),
            stall: Duration::from_secs(60),
            ..Rules::default()
        },
        concurrency: 2,
    };
    let store = Store::in_memory().unwrap();
    let manner = Manner {
        effort: Effort {
            nodes: Some(1),
            pace: None,
        },
        ..Manner::default()
    };
    let play = |engine: EngineConfig| {
        let steps = AtomicU64::new(0);
        let contestant = Contestant {
            name: "us".to_owned(),
            engine,
            pace: crate::client::nodes(1),
            restart: false,
        };
        let ladder = ladder(
            &plan,
            &contestant,
            &manner,
            ("us", "settings"),
            &store,
            &cancel,
            &mut |told| {
                if let Told::Step(count) = told {
                    steps.fetch_add(count, Ordering::Relaxed);
                }
            },
        )
        .unwrap();
        assert_eq!(steps.load(Ordering::Relaxed), 4);
        ladder
    };
    let first = play(EngineConfig {
        command: env!("CARGO_BIN_EXE_simurgh").into(),
        options: vec![("Backend".to_owned(), "material".to_owned())],
        ..EngineConfig::default()
    });
    assert_eq!(first.rungs.len(), 2);
    assert!(first.rungs.iter().all(|rung| rung.counts.games() == 2));
    assert!(first.rungs.iter().all(|rung| rung.faults == 0));
    assert!(first.rating.is_some());
    // A contestant that crashes would lose; nothing is played, because all is known.
    assert_eq!(play(folder.script("crash")), first);
}

#[test]
fn the_page_needs_nothing_from_outside() {
    let materials = materials("quick");
    let mut perfect = Scripted::new(Script::Perfect, &materials);
    let results = Results {
        simurgh: "0".to_owned(),
        date: "today".to_owned(),
        suite: "quick".to_owned(),
        sampling: Sampling::default(),
        nodes: 10,
        rows: vec![Row {
            name: "<script>".to_owned(),
            ..row(&mut perfect, "quick,legality,accuracy,puzzles", &materials)
        }],
    };
    let page = html::report(&results);
    for outside in ["http://", "https://", "src=", "href=", "@import", "url("] {
        assert!(!page.contains(outside), "{outside}");
    }
    assert!(!page.contains("<script>") && page.contains("&lt;script&gt;"));
    assert_eq!(page.matches("<svg").count(), 4);
    assert_eq!(page.matches("<svg").count(), page.matches("</svg>").count());
    assert!(page.contains("prefers-color-scheme:dark") && page.contains("width=device-width"));
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
    assert_eq!(once, 100 + 2 * 12);
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
        most: 16,
        cancel: Arc::clone(&cancel),
    };
    let error = measured(&mut player, "quick,puzzles", &materials, &store, &cancel).unwrap_err();
    assert!(matches!(error, EvaluateError::Interrupted), "{error}");
    assert_eq!(player.player.asked.load(Ordering::Relaxed), 16);
    cancel.store(false, Ordering::Relaxed);
    player.most = u64::MAX;
    let row = measured(&mut player, "quick,puzzles", &materials, &store, &cancel).unwrap();
    assert_eq!(row.puzzles.unwrap().search.unwrap().all.hits, 8);
    // 12 positions, the policy's and the search's.
    assert_eq!(player.player.asked.load(Ordering::Relaxed), 24);
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

#[test]
fn networks_can_be_asked_without_a_mask() {
    let mut game = Game::default();
    for text in "e2e4 e7e5 g1f3 b8c6 f1b5 a7a6 b5a4 g8f6".split(' ') {
        let m = game.current().parse_uci(text).unwrap();
        game.play(m);
    }
    // White may castle; then Black promotes, to a knight too.
    let (late, _) =
        simurgh::chess::Position::from_fen("8/8/8/8/8/1k6/p7/1N1K4 b - - 0 60").unwrap();
    let games = [Arc::new(game), Arc::new(Game::new(late))];
    for name in ["tower-flat", "tower-convolution", "tower-attention"] {
        let path = format!("{}/tests/data/{name}.pb.gz", env!("CARGO_MANIFEST_DIR"));
        let options = Options {
            device: "cpu".to_owned(),
            threads: 1,
            ..Options::default()
        };
        let backend = load_backend(
            &Source::File(path.into()),
            &ModelOptions::new(&options).unwrap(),
        )
        .unwrap();
        let mut player = NetworkPlayer::new(backend, &options).unwrap();
        for view in player.views(&games).unwrap().unwrap() {
            let open = view.open.unwrap();
            assert_eq!(
                (open.logits.len(), open.legal.len()),
                (1858, view.moves.len())
            );
            let legal = open.legal.iter().map(|&output| open.logits[output]);
            let priors = Policy::softmax(legal.collect(), 1.0).0;
            for (a, b) in priors.iter().zip(&view.priors) {
                assert!((a - b).abs() < 1e-5, "{name}: {a} {b}");
            }
        }
        let thought = player.think(&games[0], 20).unwrap().unwrap();
        assert!(games[0].current().is_legal(thought.best));
        assert!((1..=40).contains(&thought.nodes), "{}", thought.nodes);
        assert_eq!(thought.trail.last().unwrap().best, thought.best);
    }
}

#[test]
fn a_search_finds_the_mate_and_says_when() {
    let options = Options {
        threads: 1,
        ..Options::default()
    };
    let mut player = NetworkPlayer::new(Arc::new(Fake::new(Answer::Uniform)), &options).unwrap();
    let (position, _) = simurgh::chess::Position::from_fen(SUITE[0].0).unwrap();
    let game = Arc::new(Game::new(position));
    let thought = player.think(&game, 200).unwrap().unwrap();
    assert_eq!(thought.best, game.current().parse_uci(SUITE[0].1).unwrap());
    // A fake has only legal moves: legality cannot be measured on it.
    let views = player.views(&[game]).unwrap().unwrap();
    assert!(views[0].open.is_none());
}

#[test]
fn stockfish_cuts_only_moves_out_of_games() {
    let Some(config) = crate::real_engines::stockfish() else {
        return;
    };
    let cancel = Arc::default();
    let store = Store::in_memory().unwrap();
    let mut judge = Judge::start(config, 8, &cancel).unwrap();
    // Black gives the queen for a knight that one pawn defends.
    let text =
        "1. e4 c6 2. Nc3 Qa5 3. Nf3 d6 4. Be2 Nd7 5. O-O h6 6. d3 a6 7. h3 Qxc3 8. bxc3 b6 *";
    let game = simurgh::chess::pgn::read(text.as_bytes())
        .next()
        .unwrap()
        .unwrap();
    let cut = only_moves::cut(&mut judge, &store, &game, 0.5, 1)
        .unwrap()
        .expect("a position with one good move");
    assert_eq!(cut.before.moves(), &game.moves[..13]);
    assert_eq!(cut.line[..2], game.moves[13..15]);
    // With the queen gone nothing hangs on a single move.
    assert_eq!(cut.line.len(), 2);
    let quiet = simurgh::chess::PgnGame {
        moves: game.moves[..13].to_vec(),
        ..game
    };
    assert!(
        only_moves::cut(&mut judge, &store, &quiet, 0.5, 1)
            .unwrap()
            .is_none()
    );
}
