//! The GPT that reads moves: shapes, causality, its cache against whole rows, its files. Knows no game.

use std::collections::HashMap;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use simurgh::encode::game_tokens::VOCABULARY;
use simurgh::model::AnyFile;
use simurgh::model::gpt::{Gpt, GptConfig, Positions};
use simurgh::model::weight_file::{NetworkConfig, write};
use tch::{Kind, Tensor};

fn config(positions: Positions) -> GptConfig {
    GptConfig {
        layers: 3,
        width: 24,
        heads: 3,
        context: 40,
        positions,
    }
}

fn weights(config: &GptConfig, seed: u64) -> HashMap<String, Vec<f32>> {
    let mut random = StdRng::seed_from_u64(seed);
    let numbers = config.parameters().into_iter().map(|p| {
        let scale = (p.shape[0] as f32).sqrt().recip();
        let values = (0..p.size()).map(|_| random.random_range(-2.0..2.0) * scale);
        (p.name.clone(), values.collect())
    });
    numbers.collect()
}

fn network(config: &GptConfig) -> Gpt {
    let weights = weights(config, 4);
    let tensors = config.parameters().into_iter().map(|p| {
        let tensor = Tensor::from_slice(&weights[&p.name]).reshape(&p.shape);
        (p.name, tensor)
    });
    Gpt::new(config, &tensors.collect()).unwrap()
}

fn tokens(rows: i64, length: i64, seed: u64) -> Tensor {
    let mut random = StdRng::seed_from_u64(seed);
    let numbers: Vec<i64> = (0..rows * length)
        .map(|_| random.random_range(0..VOCABULARY as i64))
        .collect();
    Tensor::from_slice(&numbers).reshape([rows, length])
}

fn distance(a: &Tensor, b: &Tensor) -> f64 {
    assert_eq!(a.size(), b.size());
    (a - b).abs().max().double_value(&[])
}

#[test]
fn a_later_token_moves_earlier_logits_by_exactly_nothing() {
    let _guard = tch::no_grad_guard();
    for positions in [Positions::Learned, Positions::Rope] {
        let gpt = network(&config(positions));
        let row = tokens(2, 20, 1);
        let logits = gpt.forward(&row).unwrap();
        assert_eq!(logits.size(), [2, 20, VOCABULARY as i64]);
        assert_eq!(distance(&logits, &gpt.forward(&row).unwrap()), 0.0);
        let other = row.copy();
        let _ = other.select(1, 12).fill_(77);
        let changed = gpt.forward(&other).unwrap();
        let (before, after) = (logits.narrow(1, 0, 12), changed.narrow(1, 0, 12));
        assert_eq!(distance(&before, &after), 0.0);
        let from = |t: &Tensor| t.narrow(1, 12, 8);
        assert!(distance(&from(&logits), &from(&changed)) > 1e-3);
    }
}

#[test]
fn the_cache_gives_what_whole_rows_give() {
    let _guard = tch::no_grad_guard();
    for positions in [Positions::Learned, Positions::Rope] {
        let gpt = network(&config(positions));
        let row = tokens(1, 30, 2);
        let whole = gpt.forward(&row).unwrap();
        let mut cache = gpt.cache().unwrap();
        assert!(cache.is_empty());
        // In pieces of several sizes.
        let mut read = 0;
        for piece in [17, 1, 1, 6] {
            let logits = gpt
                .extend(&mut cache, &row.get(0).narrow(0, read, piece))
                .unwrap();
            read += piece;
            assert_eq!(cache.len() as i64, read);
            assert!(distance(&logits, &whole.get(0).get(read - 1)) < 1e-4);
        }
        // Several rows go on from the same cache.
        let rest = tokens(4, 5, 3);
        let from_cache = gpt.forward_from(&cache, &rest).unwrap();
        let prefix = row.narrow(1, 0, 25).repeat([4, 1]);
        let rows = Tensor::cat(&[&prefix, &rest], 1);
        let wanted = gpt.forward(&rows).unwrap().narrow(1, 25, 5);
        assert!(distance(&from_cache, &wanted) < 1e-4);
        assert_eq!(cache.len(), 25);
        let long = gpt.forward_from(&cache, &tokens(1, 16, 4)).unwrap_err();
        assert!(long.to_string().contains("context of 40"), "{long}");
    }
}

#[test]
fn rope_sees_distances_and_learned_positions_see_places() {
    let _guard = tch::no_grad_guard();
    let rope = network(&config(Positions::Rope));
    let row = Tensor::from_slice(&[70_i64, 70, 70, 70]).reshape([1, 4]);
    let logits = rope.forward(&row).unwrap();
    // Equal tokens have equal values, so attention mixes the same wherever it looks.
    assert!(distance(&logits.select(1, 0), &logits.select(1, 3)) < 1e-4);
    let learned = network(&config(Positions::Learned));
    let logits = learned.forward(&row).unwrap();
    assert!(distance(&logits.select(1, 0), &logits.select(1, 3)) > 1e-3);
}

#[test]
fn files_come_back_and_others_are_refused() {
    let config = config(Positions::Learned);
    let weights = weights(&config, 5);
    let path = std::env::temp_dir().join(format!("simurgh-gpt-{}.safetensors", std::process::id()));
    let manifest = serde_json::json!({ "steps": 3 });
    write(&path, &config, &manifest, &weights, false).unwrap();
    let bytes = std::fs::read(&path).unwrap();
    let AnyFile::Gpt(file) = AnyFile::parse(bytes.clone(), "gpt").unwrap() else {
        panic!("not a GPT");
    };
    assert_eq!((&file.config, &file.manifest), (&config, &manifest));
    assert_eq!(file.tensors, weights);
    let cut = AnyFile::parse(bytes[..bytes.len() - 9].to_vec(), "gpt").unwrap_err();
    assert!(cut.to_string().contains("truncated or damaged"), "{cut}");
    let options = simurgh::model::ModelOptions::new(&simurgh::options::Options::default()).unwrap();
    let source = simurgh::model::Source::File(path.clone());
    let error = simurgh::model::load_backend(&source, &options)
        .err()
        .unwrap();
    assert!(error.to_string().contains("is a GPT"), "{error}");
    std::fs::remove_file(path).unwrap();
}

#[test]
fn gradients_reach_every_tensor() {
    let config = config(Positions::Learned);
    let weights = weights(&config, 6);
    let mut names = Vec::new();
    let leaves: Vec<Tensor> = config
        .parameters()
        .into_iter()
        .map(|p| {
            let tensor = Tensor::from_slice(&weights[&p.name]).reshape(&p.shape);
            names.push(p.name);
            tensor.set_requires_grad(true)
        })
        .collect();
    let tensors = names
        .iter()
        .cloned()
        .zip(leaves.iter().map(Tensor::shallow_clone));
    let gpt = Gpt::new(&config, &tensors.collect()).unwrap();
    let row = tokens(2, 40, 7);
    let logits = gpt.forward(&row).unwrap();
    let flat = logits.reshape([-1, VOCABULARY as i64]);
    let loss = flat.cross_entropy_for_logits(&row.reshape([-1]));
    loss.backward();
    for (name, leaf) in names.iter().zip(&leaves) {
        let grad = leaf.grad();
        assert!(grad.defined(), "{name}");
        assert!(
            grad.abs().sum(Kind::Double).double_value(&[]) > 0.0,
            "{name}"
        );
    }
}
