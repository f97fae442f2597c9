//! Attention maps and replays: known maps give known figures, real networks give what a softmax gives, and the
//! commands write pages that stand alone.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde_json::Value;
use simurgh::chess::Game;
use simurgh::measure::attention::{Subject, check, figures, page, to_json};
use simurgh::model::gpt::{GptConfig, GptFile, Positions};
use simurgh::model::transformer::{
    AttentionBias, Config, FfActivation, NormKind, NormPlace, SmolgenConfig, TransformerFile,
    ValueRead,
};
use simurgh::model::weight_file::{NetworkConfig, write};
use simurgh::model::{AnyFile, AttentionMaps, ModelOptions, Source, attention_maps};
use simurgh::options::Options;

fn maps(n: usize, causal: bool, map: impl Fn(usize, usize) -> f32) -> AttentionMaps {
    AttentionMaps {
        labels: (0..n).map(|i| i.to_string()).collect(),
        causal,
        control: causal.then(|| vec![0, 1, 2]),
        layers: vec![vec![(0..n * n).map(|i| map(i / n, i % n)).collect()]],
    }
}

fn close(found: Option<f64>, wanted: f64) {
    let found = found.unwrap();
    assert!((found - wanted).abs() < 1e-5, "{found} {wanted}");
}

#[test]
fn known_maps_give_known_figures() {
    let uniform = maps(64, false, |_, _| 1.0 / 64.0);
    check(&uniform).unwrap();
    let seen = &figures(&uniform, Some([12, 28]))[0];
    close(Some(seen.divergence), 0.0);
    close(seen.previous_move, 2.0 / 64.0);
    assert_eq!(
        (seen.control, figures(&uniform, None)[0].previous_move),
        (None, None)
    );
    let sharp = maps(64, false, |_, column| if column == 28 { 1.0 } else { 0.0 });
    let seen = &figures(&sharp, Some([12, 28]))[0];
    close(seen.previous_move, 1.0);
    close(Some(seen.divergence), 64_f64.ln());

    // Each token looks at the one before it, the first at itself.
    let before = maps(5, true, |row, column| {
        if column == row.saturating_sub(1) {
            1.0
        } else {
            0.0
        }
    });
    check(&before).unwrap();
    let seen = &figures(&before, None)[0];
    close(seen.previous_move, 1.0);
    // Rows 0 to 3 look at control tokens, row 4 at a move.
    close(seen.control, 0.8);
    close(
        Some(seen.divergence),
        (1..=5).map(|i| f64::from(i).ln()).sum::<f64>() / 5.0,
    );
}

#[test]
fn what_is_no_attention_is_refused_by_name() {
    let later = maps(4, true, |_, _| 0.25);
    let error = check(&later).unwrap_err();
    assert!(error.contains("row 0: sees column 1"), "{error}");
    let short = maps(4, false, |_, _| 0.2);
    assert!(check(&short).unwrap_err().contains("sums to 0.8"));
    let negative = maps(2, false, |_, column| if column == 0 { 1.5 } else { -0.5 });
    assert!(check(&negative).unwrap_err().contains("expected 0 to 1"));
    let mut cut = maps(4, false, |_, _| 0.25);
    cut.layers[0][0].pop();
    assert!(
        check(&cut)
            .unwrap_err()
            .contains("15 weights, expected 4 x 4")
    );
    let nan = maps(2, false, |_, _| f32::NAN);
    assert!(check(&nan).is_err());
}

fn numbers<C: NetworkConfig>(config: &C) -> HashMap<String, Vec<f32>> {
    let mut random = StdRng::seed_from_u64(8);
    let tensors = config.parameters().into_iter().map(|p| {
        let scale = (p.shape[0] as f32).sqrt().recip();
        let values = (0..p.size()).map(|_| random.random_range(-2.0..2.0) * scale);
        (p.name.clone(), values.collect())
    });
    tensors.collect()
}

fn transformer() -> TransformerFile {
    let config = Config {
        width: 16,
        layers: 2,
        heads: 2,
        head_depth: 8,
        ff: 16,
        norm: NormPlace::Post,
        norm_kind: NormKind::Layer,
        attention_bias: AttentionBias::Learned,
        activation: FfActivation::Relu,
        smolgen: SmolgenConfig::default(),
        policy_width: 8,
        value: ValueRead::Pooled,
        value_per_token: 4,
        value_hidden: 8,
        moves_left: false,
    };
    TransformerFile {
        name: "small".to_owned(),
        tensors: numbers(&config),
        config,
        manifest: Value::Null,
    }
}

fn game(moves: &str) -> Game {
    let mut game = Game::default();
    for text in moves.split_whitespace() {
        let m = game.current().parse_uci(text).unwrap();
        game.play(m);
    }
    game
}

fn options() -> ModelOptions {
    let options = Options {
        device: "cpu".to_owned(),
        ..Options::default()
    };
    ModelOptions::new(&options).unwrap()
}

#[test]
fn maps_of_real_networks_are_softmaxes_on_the_real_board() {
    let file = AnyFile::Transformer(Box::new(transformer()));
    let white = attention_maps(&file, &options(), &game("e2e4 e7e5")).unwrap();
    check(&white).unwrap();
    assert_eq!((white.layers.len(), white.layers[0].len()), (2, 2));
    assert_eq!(
        (white.labels[0].as_str(), white.labels[63].as_str()),
        ("a1", "h8")
    );
    // The same position with the colours changed gives the maps with the ranks changed.
    let twin = |fen: &str| {
        let (position, _) = simurgh::chess::Position::from_fen(fen).unwrap();
        attention_maps(&file, &options(), &Game::new(position)).unwrap()
    };
    let white = twin("4k3/8/8/3n4/8/8/4P3/R3K3 w Q - 3 9");
    let black = twin("r3k3/4p3/8/8/3N4/8/8/4K3 b q - 3 9");
    for (a, b) in white
        .layers
        .iter()
        .flatten()
        .zip(black.layers.iter().flatten())
    {
        for (i, weight) in a.iter().enumerate() {
            let j = ((i / 64) ^ 56) * 64 + ((i % 64) ^ 56);
            assert!((weight - b[j]).abs() < 1e-6);
        }
    }
}

#[test]
fn a_gpt_sees_nothing_that_comes_later() {
    let config = GptConfig {
        layers: 2,
        width: 16,
        heads: 2,
        context: 20,
        positions: Positions::Learned,
    };
    let file = AnyFile::Gpt(Box::new(GptFile {
        name: "gpt".to_owned(),
        tensors: numbers(&config),
        config,
        manifest: Value::Null,
    }));
    let maps = attention_maps(&file, &options(), &game("e2e4 e7e5 g1f3")).unwrap();
    check(&maps).unwrap();
    assert!(maps.causal);
    assert_eq!(
        maps.labels,
        ["<bos>", "<w2000>", "<b2000>", "e2e4", "e7e5", "g1f3"]
    );
    assert_eq!(maps.control, Some(vec![0, 1, 2]));
    let seen = figures(&maps, None);
    assert!(
        seen.iter()
            .all(|head| head.control.is_some() && head.divergence >= 0.0)
    );
    let (odd, _) = simurgh::chess::Position::from_fen("4k3/8/8/8/8/8/4P3/4K3 w - - 0 1").unwrap();
    let error = attention_maps(&file, &options(), &Game::new(odd)).unwrap_err();
    assert!(error.to_string().contains("start position"), "{error}");
}

#[test]
fn attention_bodies_of_lc0_have_maps_and_towers_have_none() {
    let Some(shared) = crate::shared::file("nets") else {
        println!("SKIPPED: attention maps of Lc0 networks: no shared folder");
        return;
    };
    let nets = shared;
    let read = |name: &str| AnyFile::read(&Source::File(nets.join(name))).unwrap();
    for name in ["attn-canonical-v2.pb.gz", "attn-smolgen-relu2.pb.gz"] {
        let maps = attention_maps(&read(name), &options(), &game("e2e4")).unwrap();
        check(&maps).unwrap();
        assert!(!maps.layers.is_empty(), "{name}");
    }
    let error = attention_maps(&read("maia-1900.pb.gz"), &options(), &game("")).unwrap_err();
    assert!(
        error.to_string().contains("without attention layers"),
        "{error}"
    );
}

#[test]
fn pages_and_json_stand_alone() {
    let subject = Subject {
        network: "a<b".to_owned(),
        fen: "8/8".to_owned(),
        moves: vec!["e2e4".to_owned()],
    };
    let uniform = maps(64, false, |_, _| 1.0 / 64.0);
    let heads = figures(&uniform, None);
    let page = page(&subject, &uniform, &heads);
    assert!(page.contains("a&lt;b") && !page.contains("http"));
    assert!(page.contains("<td>n/a<td>0.000<td>n/a"));
    let json: Value = serde_json::from_str(&to_json(&subject, &uniform, &heads)).unwrap();
    assert_eq!(json["layers"][0][0].as_array().unwrap().len(), 4096);
    assert_eq!(
        (&json["heads"][0]["control"], &json["moves"][0]),
        (&Value::Null, &"e2e4".into())
    );
}

fn scratch(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("simurgh-inside-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

fn simurgh(arguments: &[&str], folder: &Path) -> (bool, String) {
    let done = Command::new(env!("CARGO_BIN_EXE_simurgh"))
        .args(arguments)
        .current_dir(folder)
        .output()
        .unwrap();
    let text = [done.stdout, done.stderr].concat();
    (
        done.status.success(),
        String::from_utf8_lossy(&text).into_owned(),
    )
}

#[test]
fn the_attention_command_writes_a_page_or_says_why_not() {
    let folder = scratch("attention");
    let file = transformer();
    let path = folder.join("net.safetensors");
    write(&path, &file.config, &file.manifest, &file.tensors, false).unwrap();
    let run = |moves: &str| {
        let arguments = [
            "evaluate",
            "attention",
            "--weights",
            "net.safetensors",
            "--moves",
            moves,
        ];
        simurgh(&arguments, &folder)
    };
    let (fine, text) = run("e2e4 e7e5");
    assert!(fine && text.contains("previous move"), "{text}");
    let page = std::fs::read_to_string(folder.join("attention/attention.html")).unwrap();
    assert!(page.contains("net.safetensors") && page.contains("e2e4 e7e5"));
    let (fine, text) = run("e2e5");
    assert!(!fine && text.contains("illegal move 'e2e5'"), "{text}");
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_run_without_anything_is_not_replayed() {
    let folder = scratch("replay");
    let (fine, text) = simurgh(&["evaluate", "replay", "nowhere"], &folder);
    assert!(!fine && text.contains("nowhere"), "{text}");
    // A log alone is shown; what only a checkpoint tells is not measured.
    let line = r#"{"step":5,"positions":640,"loss":3.5,"policy":2.5,"value":1.0,"top1":0.2,"learning_rate":0.001,"gradient_norm":1.0,"rate":100.0,"validation":{"positions":10,"loss":3.0,"policy":2.0,"policy_floor":0.9,"value":1.0,"top1":0.25,"q_error":0.4}}"#;
    std::fs::create_dir_all(folder.join("run")).unwrap();
    std::fs::write(folder.join("run/log.jsonl"), format!("{line}\n")).unwrap();
    let (fine, text) = simurgh(&["evaluate", "replay", "run", "--output", "out"], &folder);
    assert!(fine && text.contains("1 moments, 0 of them"), "{text}");
    let json = std::fs::read_to_string(folder.join("out/replay.json")).unwrap();
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(
        (&json[0]["top1"], &json[0]["legality"]),
        (&0.25.into(), &Value::Null)
    );
    assert!(
        std::fs::read_to_string(folder.join("out/replay.html"))
            .unwrap()
            .contains("Not measured: Legal")
    );
    std::fs::remove_dir_all(folder).unwrap();
}
