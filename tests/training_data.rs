//! Training data from end to end: labels that a real engine makes and label files as they are handed
//! out (both skipped out loud where they are missing), and the commands around them.

use std::collections::HashSet;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use simurgh::chess::{Move, open_maybe_packed};
use simurgh::train::chunk::{ChunkFile, ChunkWriter};
use simurgh::train::generate::{self, Openings, Plan, Rules, UciTeacher};
use simurgh::train::labels::LabelReader;
use simurgh::train::v6::{V6_BYTES, V6Reader, V6Record};
use simurgh::train::{GameRecord, PolicyLabel, Source, TrainingGame};

use crate::{real_engines, shared};

/// A path of its own; removed with the value.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        let name = format!("simurgh-data-{}-{name}", std::process::id());
        Scratch(std::env::temp_dir().join(name))
    }

    fn text(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn games(path: &Path) -> Vec<GameRecord> {
    let file = ChunkFile::open(path).unwrap();
    let chunks = 0..file.chunks().len();
    chunks.flat_map(|index| file.read(index).unwrap()).collect()
}

fn run(arguments: &[&str]) -> (Option<i32>, String, String) {
    let program = env!("CARGO_BIN_EXE_simurgh");
    let output = Command::new(program).args(arguments).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (
        output.status.code(),
        text(output.stdout),
        text(output.stderr),
    )
}

#[test]
fn stockfish_plays_and_labels() {
    let Some(mut config) = real_engines::stockfish() else {
        return;
    };
    config.options.push(("MultiPV".into(), "4".into()));
    config.options.push(("UCI_ShowWDL".into(), "true".into()));
    let file = Scratch::new("stockfish");
    let plan = Plan {
        seed: 3,
        games: 4,
        workers: 2,
        openings: Openings::new(None, 2..=6, 0.5).unwrap(),
        rules: Rules {
            max_plies: 20,
            ..Rules::default()
        },
    };
    let cancel = Arc::new(AtomicBool::new(false));
    let teacher = || UciTeacher::start(config.clone(), 50..=200, false, &cancel);
    let progress = generate::run(&plan, &file.0, &teacher, &cancel, &mut |_| {}).unwrap();
    assert_eq!((progress.games, progress.played), (4, 4));
    let games = games(&file.0);
    let seeds: HashSet<u64> = games.iter().map(|game| game.seed).collect();
    assert_eq!(seeds.len(), 4);
    let mut labelled = 0;
    for game in &games {
        game.check().unwrap();
        assert_eq!(game.source, Source::Engine);
        let mut position = game.start.clone();
        for ply in &game.plies {
            if let PolicyLabel::Scores(scores) = &ply.policy {
                let expected = position.legal_moves().len().min(4);
                // A move may be listed twice by an engine that is cut off; here it is kept once.
                assert!((1..=expected).contains(&scores.len()));
                assert!(ply.wdl.is_some());
                labelled += 1;
            }
            position.play(ply.played);
        }
    }
    assert_eq!(labelled, progress.positions);
    assert!(labelled > 20, "{labelled}");
}

#[test]
fn label_files_are_read_stored_small_and_shown() {
    let Some(labels) = shared::file("labels/validation.txt.gz") else {
        return;
    };
    let file = Scratch::new("validation");
    let (code, printed, errors) = run(&[
        "datagen",
        "import",
        "--labels",
        labels.to_str().unwrap(),
        "--output",
        file.text(),
    ]);
    assert_eq!(code, Some(0), "{errors}");
    assert!(printed.contains("positions"), "{printed}");
    let direct: Vec<GameRecord> = LabelReader::open(&labels)
        .unwrap()
        .map(Result::unwrap)
        .collect();
    assert_eq!(games(&file.0), direct);
    let stored = ChunkFile::open(&file.0).unwrap();
    assert!(stored.bytes() < 64 * stored.positions());
    let (code, printed, _) = run(&["datagen", "show", file.text(), "--ply", "1"]);
    let played = direct[0].plies[1].played;
    assert_eq!(code, Some(0));
    assert!(
        printed.contains(&format!("played      {played}")),
        "{printed}"
    );
}

#[test]
fn self_play_records_visits_and_goes_on_with_a_file() {
    let file = Scratch::new("self-play");
    let folder = env!("CARGO_MANIFEST_DIR");
    let network = format!("{folder}/tests/data/tower-convolution.pb.gz");
    let go = |games: &str| {
        let (code, printed, errors) = run(&[
            "datagen",
            "--self-play",
            "--weights",
            &network,
            "--output",
            file.text(),
            "--games",
            games,
            "--nodes",
            "8",
            "--max-plies",
            "6",
            "--seed",
            "1",
            "--concurrency",
            "2",
        ]);
        assert_eq!(code, Some(0), "{errors}");
        printed
    };
    go("2");
    assert_eq!(games(&file.0).len(), 2);
    go("3");
    let games = games(&file.0);
    assert_eq!(games.len(), 3);
    for game in &games {
        game.check().unwrap();
        assert_eq!(game.source, Source::SelfPlay);
        let visits = |label: &PolicyLabel| matches!(label, PolicyLabel::Visits(_));
        assert!(game.plies.iter().any(|ply| visits(&ply.policy)));
    }
}

/// Lc0 writes records, we read its games from them and write the same records again.
#[test]
fn lc0s_own_records_come_back_as_it_wrote_them() {
    let Some(lc0) = real_engines::find_program("lc0") else {
        return;
    };
    let data = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data");
    let folder = Scratch::new("lc0");
    std::fs::create_dir_all(&folder.0).unwrap();
    for network in ["tower-flat", "se-conv-hectoplies", "body-gates"] {
        let output = Command::new(&lc0)
            .args(["selfplay", "--training=true", "--games=1", "--visits=4"])
            .args(["--parallelism=1", "--temperature=1", "--backend=eigen"])
            .args(["--resign-percentage=0", "--noise-epsilon=0.25"])
            .arg(format!("--weights={data}/{network}.pb.gz"))
            .env("XDG_CACHE_HOME", &folder.0)
            .env("HOME", &folder.0)
            .output()
            .unwrap();
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        let Some(line) = printed.lines().find(|line| line.starts_with("gameready")) else {
            eprintln!("SKIPPED: this lc0 plays no games with {network}");
            continue;
        };
        let after = |word: &str| {
            let mut words = line.split_whitespace();
            words.find(|&found| found == word);
            words
        };
        let file = after("trainingfile").next().unwrap();
        let games: Vec<GameRecord> = V6Reader::open(file).unwrap().map(Result::unwrap).collect();
        assert_eq!(games.len(), 1, "{network}");
        let game = &games[0];
        let mut position = game.start.clone();
        let mut moves: Vec<Move> = Vec::new();
        for text in after("moves") {
            let m = position.parse_uci(text).unwrap();
            moves.push(m);
            position.play(m);
        }
        let played: Vec<Move> = game.plies.iter().map(|ply| ply.played).collect();
        assert_eq!(played, moves, "{network}");
        let result = match after("result").next().unwrap() {
            "whitewon" => "1-0",
            "blackwon" => "0-1",
            _ => "1/2-1/2",
        };
        assert_eq!(game.result.to_string(), result);

        let theirs = records(Path::new(file));
        let training = Arc::new(TrainingGame::new(game.clone()));
        let ours = V6Record::of_game(&training, theirs[0].format, 1.0);
        assert_eq!(ours.len(), theirs.len());
        for (ply, (ours, theirs)) in ours.iter().zip(&theirs).enumerate() {
            let at = format!("{network} ply {ply}");
            assert_eq!(ours.planes, theirs.planes, "{at}");
            assert_eq!(ours.castling, theirs.castling, "{at}");
            assert_eq!(ours.side_or_ep, theirs.side_or_ep, "{at}");
            assert_eq!(ours.rule50, theirs.rule50, "{at}");
            // The remarks on the game are left out.
            assert_eq!(ours.invariance, theirs.invariance & 0x87, "{at}");
            assert_eq!(ours.played_index, theirs.played_index, "{at}");
            assert_eq!(ours.result_q, theirs.result_q, "{at}");
            assert_eq!(ours.result_d, theirs.result_d, "{at}");
            assert!((ours.best.q - theirs.best.q).abs() < 2e-3, "{at}");
            assert!((ours.best.d - theirs.best.d).abs() < 2e-3, "{at}");
            for (ours, theirs) in ours.probabilities.iter().zip(&theirs.probabilities) {
                assert!((ours - theirs).abs() < 1e-4, "{at}: {ours} {theirs}");
            }
        }
    }
}

fn records(path: &Path) -> Vec<V6Record> {
    let mut bytes = Vec::new();
    open_maybe_packed(path)
        .unwrap()
        .read_to_end(&mut bytes)
        .unwrap();
    let parts = bytes.chunks_exact(V6_BYTES);
    let record = |part: &[u8]| V6Record::from_bytes(part.try_into().unwrap()).unwrap();
    parts.map(record).collect()
}

#[test]
fn records_of_lc0_go_out_and_in_on_the_command_line() {
    let Some(labels) = shared::file("labels/validation.txt.gz") else {
        return;
    };
    let (few, folder, back) = (
        Scratch::new("few"),
        Scratch::new("v6"),
        Scratch::new("back"),
    );
    let mut writer = ChunkWriter::create(&few.0).unwrap();
    for game in LabelReader::open(&labels).unwrap().take(3) {
        writer.push(game.unwrap()).unwrap();
    }
    writer.finish().unwrap();
    let out = [
        "datagen",
        "export-v6",
        few.text(),
        "--output",
        folder.text(),
    ];
    let (code, printed, errors) = run(&out);
    assert_eq!(code, Some(0), "{errors}");
    assert!(printed.starts_with("3 of 3 games"), "{printed}");
    let (code, _, errors) = run(&out);
    assert_eq!(code, Some(2));
    assert!(errors.contains("is not empty"), "{errors}");
    let input = folder.text();
    let (code, _, errors) = run(&[
        "datagen",
        "import-v6",
        "--input",
        input,
        "--output",
        back.text(),
    ]);
    assert_eq!(code, Some(0), "{errors}");
    for (sent, back) in games(&few.0).iter().zip(games(&back.0)) {
        assert_eq!(back.source, Source::Lc0);
        assert_eq!((&sent.start, sent.result), (&back.start, back.result));
        let line = |game: &GameRecord| -> Vec<_> {
            let ply = game.plies.iter();
            ply.map(|ply| (ply.played, ply.wdl)).collect()
        };
        assert_eq!(line(sent), line(&back));
    }
}

#[test]
fn bad_input_is_one_line_and_exit_code_2() {
    let file = Scratch::new("bad");
    std::fs::write(&file.0, "no training data").unwrap();
    for (arguments, says) in [
        (&["datagen"][..], "--output"),
        (&["datagen", "stats", file.text()], file.text()),
        (&["datagen", "show", "/no/such/file"], "/no/such/file"),
        (
            &["datagen", "--output", file.text(), "--engine", "true"],
            file.text(),
        ),
        (
            &[
                "datagen",
                "import",
                "--labels",
                "x",
                "--output",
                file.text(),
            ],
            "is there already",
        ),
    ] {
        let (code, _, errors) = run(arguments);
        assert_eq!(code, Some(2), "{arguments:?} {errors}");
        let line = errors.lines().last().unwrap_or_default();
        assert!(
            line.starts_with("error: ") && line.contains(says),
            "{errors}"
        );
    }
    assert_eq!(std::fs::read(&file.0).unwrap(), b"no training data");
    let missing = Scratch::new("missing");
    let (code, _, errors) = run(&[
        "datagen",
        "--output",
        missing.text(),
        "--engine",
        "/no/such/engine",
    ]);
    assert_eq!(code, Some(2));
    assert!(errors.contains("/no/such/engine"), "{errors}");
}
