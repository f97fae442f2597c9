//! Training data from end to end: labels that a real engine makes and label files as they are handed
//! out (both skipped out loud where they are missing), and the commands around them.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use simurgh::train::chunk::ChunkFile;
use simurgh::train::generate::{self, Openings, Plan, Rules, UciTeacher};
use simurgh::train::labels::LabelReader;
use simurgh::train::{GameRecord, PolicyLabel, Source};

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
