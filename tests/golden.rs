//! Networks against recorded answers of Lc0: those of `tests/data`, and all of the shared folder where it
//! is there. Knows no arithmetic of its own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use serde_json::Value;
use simurgh::chess::{Game, Position};
use simurgh::eval::{Backend, EvalParams, Evaluation, Leaf};
use simurgh::model::{ModelOptions, Source, load_backend};
use simurgh::options::Options;

use crate::shared;

const PROBABILITY: f64 = 1e-4;
const PLIES: f64 = 0.05;

/// A recorded answer and the position it is for.
struct Answer {
    record: Value,
    leaf: Leaf,
}

fn game(fen: Option<&str>, moves: &[&str]) -> Game {
    let start = fen.map_or_else(Position::startpos, |fen| Position::from_fen(fen).unwrap().0);
    let mut game = Game::new(start);
    for text in moves {
        let m = game.current().parse_uci(text).unwrap();
        game.play(m);
    }
    game
}

fn answers(path: &Path) -> Vec<Answer> {
    let text = fs::read_to_string(path).unwrap();
    text.lines()
        .map(|line| {
            let record: Value = serde_json::from_str(line).unwrap();
            let moves = record["moves"].as_array().unwrap();
            let moves: Vec<&str> = moves.iter().map(|m| m.as_str().unwrap()).collect();
            let game = game(record["fen"].as_str(), &moves);
            Answer {
                leaf: Leaf::of_game(Arc::new(game)),
                record,
            }
        })
        .collect()
}

fn options(settings: &[(&str, &str)]) -> ModelOptions {
    let mut options = Options::default();
    options.set("Device", "cpu").unwrap();
    options.set("Precision", "fp32").unwrap();
    for (name, value) in settings {
        options.set(name, value).unwrap();
    }
    ModelOptions::new(&options).unwrap()
}

fn backend(network: &Path, settings: &[(&str, &str)]) -> Arc<dyn Backend> {
    load_backend(&Source::File(network.to_owned()), &options(settings)).unwrap()
}

fn evaluate(backend: &dyn Backend, leaves: &[Leaf], batch: usize) -> Vec<Evaluation> {
    let mut evaluator = backend.evaluator().unwrap();
    leaves
        .chunks(batch)
        .flat_map(|chunk| evaluator.evaluate(chunk, &EvalParams::default()).unwrap())
        .collect()
}

fn check(answer: &Answer, evaluation: &Evaluation, place: &str) {
    let record = &answer.record;
    let place = format!("{place}, {}", record["id"]);
    let chess960 = record["chess960"].as_bool().unwrap_or(false);
    let policy = record["policy"].as_object().unwrap();
    assert_eq!(policy.len(), answer.leaf.moves.len(), "{place}: moves");
    for (&m, &p) in answer.leaf.moves.iter().zip(&evaluation.policy.0) {
        let name = answer.leaf.position.move_to_uci(m, chess960);
        let expected = policy[&name].as_f64().unwrap();
        assert!(
            (f64::from(p) - expected).abs() <= PROBABILITY,
            "{place}, {name}: {p} instead of {expected}"
        );
    }
    let near = |what: &str, found: f32, tolerance: f64| {
        let expected = record[what].as_f64().unwrap();
        assert!(
            (f64::from(found) - expected).abs() <= tolerance,
            "{place}, {what}: {found} instead of {expected}"
        );
    };
    near("q", evaluation.wdl.q(), PROBABILITY);
    near("d", evaluation.wdl.draw, PROBABILITY);
    near("m", evaluation.moves_left.unwrap_or(0.0), PLIES);
}

fn check_file(network: &Path, golden: &Path, settings: &[(&str, &str)]) {
    let answers = answers(golden);
    let leaves: Vec<Leaf> = answers.iter().map(|answer| answer.leaf.clone()).collect();
    let backend = backend(network, settings);
    for batch in [1, 7, 64] {
        let evaluations = evaluate(&*backend, &leaves, batch);
        assert_eq!(evaluations.len(), answers.len());
        for (answer, evaluation) in answers.iter().zip(&evaluations) {
            let place = format!("{} at batch {batch}", golden.display());
            check(answer, evaluation, &place);
        }
    }
}

/// The small networks that come with the tests.
pub fn data() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let mut networks: Vec<PathBuf> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.to_string_lossy().ends_with(".pb.gz"))
        .collect();
    networks.sort();
    assert!(!networks.is_empty());
    networks
}

fn golden_of(network: &Path) -> PathBuf {
    PathBuf::from(network.to_string_lossy().replace(".pb.gz", ".jsonl"))
}

#[test]
fn small_networks_answer_as_lc0_does() {
    for network in data() {
        check_file(&network, &golden_of(&network), &[]);
    }
}

#[test]
fn all_shared_networks_answer_as_lc0_does() {
    let (Some(golden), Some(networks)) = (shared::file("golden"), shared::file("nets")) else {
        return;
    };
    let mut checked = 0;
    for entry in fs::read_dir(golden).unwrap() {
        let golden = entry.unwrap().path();
        let name = golden.file_stem().unwrap().to_string_lossy().into_owned();
        let (network, heads) = name.split_once('@').unwrap_or((&name, "vanilla+winner"));
        let (policy, value) = heads.split_once('+').unwrap();
        let network = [".pb.gz", ".pb"]
            .map(|ending| networks.join(format!("{network}{ending}")))
            .into_iter()
            .find(|path| path.exists())
            .unwrap();
        let settings = [("PolicyHead", policy), ("ValueHead", value)];
        check_file(&network, &golden, &settings);
        checked += 1;
    }
    assert!(checked > 0);
}

#[test]
fn one_position_is_answered_alike_alone_and_in_company() {
    for network in data() {
        let leaves: Vec<Leaf> = answers(&golden_of(&network))
            .into_iter()
            .map(|answer| answer.leaf)
            .collect();
        let backend = backend(&network, &[]);
        let alone = evaluate(&*backend, &leaves, 1);
        let together = evaluate(&*backend, &leaves, leaves.len());
        for (a, b) in alone.iter().zip(&together) {
            assert!((a.wdl.q() - b.wdl.q()).abs() <= 1e-5);
            for (p, q) in a.policy.0.iter().zip(&b.policy.0) {
                assert!((p - q).abs() <= 1e-5);
            }
        }
    }
}

#[test]
fn colours_swapped_is_the_same_position_to_its_mover() {
    let pairs = [
        (
            "r3k2r/pp3ppp/8/3pP3/8/2N5/PP3PPP/R3K2R w KQkq d6 0 10",
            "r3k2r/pp3ppp/2n5/8/3Pp3/8/PP3PPP/R3K2R b KQkq d3 0 10",
        ),
        (
            "8/P3k3/8/8/8/5n2/8/3K4 w - - 3 60",
            "3k4/8/5N2/8/8/8/p3K3/8 b - - 3 60",
        ),
    ];
    // Its input format has no plane for the colour to move.
    let network = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/se-conv-hectoplies.pb.gz");
    let backend = backend(&network, &[]);
    for (white, black) in pairs {
        let leaves = [white, black].map(|fen| Leaf::of_game(Arc::new(game(Some(fen), &[]))));
        let [a, b]: [Evaluation; 2] = evaluate(&*backend, &leaves, 2).try_into().unwrap();
        assert!((a.wdl.q() - b.wdl.q()).abs() <= 1e-5, "{white}");
        for (m, p) in leaves[0].moves.iter().zip(&a.policy.0) {
            let mirrored = leaves[1].moves.iter().position(|other| {
                other.from() == m.from().flip_vertical()
                    && other.to() == m.to().flip_vertical()
                    && other.promotion() == m.promotion()
            });
            assert!(
                (p - b.policy.0[mirrored.unwrap()]).abs() <= 1e-5,
                "{white} {m}"
            );
        }
    }
}

#[test]
fn evaluators_on_several_threads_answer_alike() {
    let network = &data()[0];
    let leaves: Vec<Leaf> = answers(&golden_of(network))
        .into_iter()
        .map(|answer| answer.leaf)
        .collect();
    let backend = backend(network, &[]);
    let expected = evaluate(&*backend, &leaves, 4);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| assert_eq!(evaluate(&*backend, &leaves, 4), expected));
        }
    });
}

#[test]
fn low_precisions_stay_near() {
    for network in data() {
        let leaves: Vec<Leaf> = answers(&golden_of(&network))
            .into_iter()
            .map(|answer| answer.leaf)
            .collect();
        let exact = evaluate(&*backend(&network, &[]), &leaves, 16);
        for precision in ["bf16", "fp16"] {
            let low = evaluate(
                &*backend(&network, &[("Precision", precision)]),
                &leaves,
                16,
            );
            let off: f32 = exact
                .iter()
                .zip(&low)
                .map(|(a, b)| (a.wdl.q() - b.wdl.q()).abs())
                .sum();
            let mean = off / exact.len() as f32;
            assert!(
                mean <= 0.05,
                "{} {precision}: mean |Δq| {mean}",
                network.display()
            );
        }
    }
}

#[test]
fn raw_writes_answers_and_names_bad_lines() {
    let network = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/tower-convolution.pb.gz");
    let input = std::env::temp_dir().join(format!("simurgh-raw-{}.jsonl", std::process::id()));
    let good = fs::read_to_string(golden_of(&network)).unwrap();
    let mut lines: Vec<&str> = good.lines().collect();
    let count = lines.len();
    lines.insert(1, "{\"id\": \"cut");
    lines.insert(3, "{\"id\": \"x\", \"moves\": [\"e2e5\"]}");
    fs::write(&input, lines.join("\r\n")).unwrap();
    let run = |path: &Path| {
        Command::new(env!("CARGO_BIN_EXE_simurgh"))
            .args(["raw", "--batch", "5", "--device", "cpu", "--weights"])
            .arg(&network)
            .arg("--input")
            .arg(path)
            .output()
            .unwrap()
    };
    let output = run(&input);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{errors}");
    assert!(
        errors.contains("line 2:") && errors.contains("line 4: illegal move 'e2e5'"),
        "{errors}"
    );
    let written = String::from_utf8(output.stdout).unwrap();
    assert_eq!(written.lines().count(), count);
    for (line, recorded) in written.lines().zip(good.lines()) {
        let (a, b): (Value, Value) = (
            serde_json::from_str(line).unwrap(),
            serde_json::from_str(recorded).unwrap(),
        );
        assert_eq!(a["id"], b["id"]);
        assert!((a["q"].as_f64().unwrap() - b["q"].as_f64().unwrap()).abs() <= PROBABILITY);
    }
    fs::remove_file(&input).unwrap();
    assert_eq!(run(&input).status.code(), Some(2));
}
