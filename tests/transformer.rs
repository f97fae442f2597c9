//! The project's own transformer against a plain reference in f64, its symmetries, and its files. The
//! reference is written from the formulas, without tensors.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use simurgh::chess::{Game, Position};
use simurgh::encode::{FEATURES, SQUARE_POLICY, SquareTokens, TOKENS_ROW};
use simurgh::eval::{Backend, EvalParams, Evaluation, Evaluator, Leaf, Policy};
use simurgh::model::transformer::{
    AttentionBias, Config, FfActivation, NormKind, NormPlace, SmolgenConfig, Transformer, ValueRead,
};
use simurgh::model::transformer::{TransformerBackend, TransformerFile};
use simurgh::model::weight_file::{NetworkConfig, write};
use simurgh::model::{AnyFile, ModelOptions, Source};
use simurgh::options::Options;
use tch::Tensor;

fn config() -> Config {
    Config {
        width: 12,
        layers: 2,
        heads: 2,
        head_depth: 5,
        ff: 18,
        norm: NormPlace::Post,
        norm_kind: NormKind::Layer,
        attention_bias: AttentionBias::Learned,
        activation: FfActivation::Relu,
        smolgen: SmolgenConfig {
            per_square: 2,
            hidden: 6,
            per_head: 4,
        },
        policy_width: 7,
        value: ValueRead::Tokens,
        value_per_token: 3,
        value_hidden: 5,
        moves_left: true,
    }
}

/// Random numbers everywhere, so that nothing that is read wrongly is hidden by a zero.
fn weights(config: &Config, seed: u64) -> HashMap<String, Vec<f32>> {
    let mut random = StdRng::seed_from_u64(seed);
    let parameters = config.parameters().into_iter();
    let numbers = parameters.map(|p| {
        let scale = (p.shape.first().copied().unwrap_or(1) as f32)
            .sqrt()
            .recip();
        let values = (0..p.size()).map(|_| random.random_range(-2.0..2.0) * scale);
        (p.name.clone(), values.collect())
    });
    numbers.collect()
}

fn tensors(config: &Config, weights: &HashMap<String, Vec<f32>>) -> HashMap<String, Tensor> {
    let parameters = config.parameters().into_iter();
    let tensor = |name: &str, shape: &[i64]| Tensor::from_slice(&weights[name]).reshape(shape);
    parameters
        .map(|p| (p.name.clone(), tensor(&p.name, &p.shape)))
        .collect()
}

fn position(fen: &str) -> Position {
    Position::from_fen(fen).unwrap().0
}

fn row(position: &Position) -> Vec<f32> {
    let mut row = [0.0; TOKENS_ROW];
    SquareTokens::encode(position, |_| None).write(&mut row);
    row.to_vec()
}

const FENS: [&str; 3] = [
    "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1",
    "8/P6k/8/8/3pP3/8/1p5K/8 b - e3 12 40",
    "8/8/4k3/8/2R5/4K3/8/8 w - - 49 90",
];

/// Rows of numbers.
type Rows = Vec<Vec<f64>>;

struct Reference<'a> {
    config: &'a Config,
    weights: &'a HashMap<String, Vec<f32>>,
}

impl Reference<'_> {
    fn get(&self, name: &str) -> Vec<f64> {
        self.weights[name].iter().map(|&w| f64::from(w)).collect()
    }

    fn matmul(x: &Rows, w: &[f64]) -> Rows {
        let inputs = x[0].len();
        let outputs = w.len() / inputs;
        let one = |row: &Vec<f64>| {
            (0..outputs)
                .map(|o| (0..inputs).map(|i| row[i] * w[i * outputs + o]).sum())
                .collect()
        };
        x.iter().map(one).collect()
    }

    fn dense(&self, x: &Rows, name: &str) -> Rows {
        let bias = self.get(&format!("{name}.bias"));
        let mut y = Self::matmul(x, &self.get(&format!("{name}.weight")));
        for row in &mut y {
            row.iter_mut().zip(&bias).for_each(|(y, b)| *y += b);
        }
        y
    }

    fn norm(&self, x: &Rows, name: &str, kind: NormKind) -> Rows {
        let gain = self.get(&format!("{name}.weight"));
        let one = |row: &Vec<f64>| {
            let n = row.len() as f64;
            let mean = match kind {
                NormKind::Layer => row.iter().sum::<f64>() / n,
                NormKind::Rms => 0.0,
            };
            let spread = row.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / n;
            let scale = 1.0 / (spread + 1e-5).sqrt();
            let shift = match kind {
                NormKind::Layer => self.get(&format!("{name}.bias")),
                NormKind::Rms => vec![0.0; row.len()],
            };
            (0..row.len())
                .map(|i| (row[i] - mean) * scale * gain[i] + shift[i])
                .collect()
        };
        x.iter().map(one).collect()
    }

    fn softmax(row: &[f64]) -> Vec<f64> {
        let most = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let powers: Vec<f64> = row.iter().map(|v| (v - most).exp()).collect();
        let sum: f64 = powers.iter().sum();
        powers.iter().map(|p| p / sum).collect()
    }

    fn silu(x: &Rows) -> Rows {
        let one = |v: &f64| v / (1.0 + (-v).exp());
        x.iter().map(|row| row.iter().map(one).collect()).collect()
    }

    fn bias(&self, x: &Rows, layer: i64) -> Rows {
        let heads = self.config.heads as usize;
        let flat = match self.config.attention_bias {
            AttentionBias::None => vec![0.0; heads * 4096],
            AttentionBias::Learned => self.get(&format!("layers.{layer}.bias")),
            AttentionBias::Smolgen => {
                let at = |part: &str| format!("layers.{layer}.smolgen.{part}");
                let squares = Self::matmul(x, &self.get(&at("compress")));
                let hidden = Self::silu(&self.dense(&vec![squares.concat()], &at("1")));
                let hidden = self.norm(&hidden, &at("1.norm"), NormKind::Layer);
                let each = Self::silu(&self.dense(&hidden, &at("2")));
                let each = self.norm(&each, &at("2.norm"), NormKind::Layer);
                let per_head = self.config.smolgen.per_head as usize;
                let rows: Rows = each[0].chunks(per_head).map(<[f64]>::to_vec).collect();
                Self::matmul(&rows, &self.get("smolgen.shared")).concat()
            }
        };
        flat.chunks(64).map(<[f64]>::to_vec).collect()
    }

    fn attention(&self, x: &Rows, layer: i64) -> Rows {
        let (heads, depth) = (self.config.heads as usize, self.config.head_depth as usize);
        let qkv = self.dense(x, &format!("layers.{layer}.qkv"));
        let bias = self.bias(x, layer);
        let mut mixed = vec![vec![0.0; heads * depth]; 64];
        for head in 0..heads {
            let part = |which: usize, square: usize, i: usize| {
                qkv[square][which * heads * depth + head * depth + i]
            };
            for from in 0..64 {
                let logits: Vec<f64> = (0..64)
                    .map(|to| {
                        let dot: f64 = (0..depth).map(|i| part(0, from, i) * part(1, to, i)).sum();
                        dot / (depth as f64).sqrt() + bias[head * 64 + from][to]
                    })
                    .collect();
                for (to, p) in Self::softmax(&logits).into_iter().enumerate() {
                    for i in 0..depth {
                        mixed[from][head * depth + i] += p * part(2, to, i);
                    }
                }
            }
        }
        self.dense(&mixed, &format!("layers.{layer}.out"))
    }

    fn activate(&self, row: &[f64]) -> Vec<f64> {
        use FfActivation as A;
        let relu = |x: f64| x.max(0.0);
        let crelu = |x: f64| x.clamp(0.0, 1.0);
        let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
        let gelu = |x: f64| x * 0.5 * (1.0 + erf(x / 2.0_f64.sqrt()));
        let kind = self.config.activation;
        if kind.is_gated() {
            let (a, b) = row.split_at(row.len() / 2);
            let pairs = a.iter().zip(b).map(|(&a, &b)| match kind {
                A::Glu => sigmoid(a) * b,
                A::Bilinear => a * b,
                A::Reglu => relu(a) * b,
                A::Geglu => gelu(a) * b,
                A::Swiglu => a * sigmoid(a) * b,
                _ => crelu(a) * crelu(b),
            });
            return pairs.collect();
        }
        let one = |&x: &f64| match kind {
            A::Relu => relu(x),
            A::Crelu => crelu(x),
            A::Screlu => crelu(x) * crelu(x),
            A::Gelu => gelu(x),
            A::GeluTanh => {
                let inner = (2.0 / std::f64::consts::PI).sqrt() * (x + 0.044_715 * x * x * x);
                0.5 * x * (1.0 + inner.tanh())
            }
            A::Mish => x * x.exp().ln_1p().tanh(),
            A::Swish => x * sigmoid(x),
            _ => relu(x) * relu(x),
        };
        row.iter().map(one).collect()
    }

    fn feed_forward(&self, x: &Rows, layer: i64) -> Rows {
        let hidden = self.dense(x, &format!("layers.{layer}.ff.1"));
        let hidden = hidden.iter().map(|row| self.activate(row)).collect();
        self.dense(&hidden, &format!("layers.{layer}.ff.2"))
    }

    fn sum(x: &Rows, scale: f64, y: &Rows) -> Rows {
        let one =
            |(x, y): (&Vec<f64>, &Vec<f64>)| x.iter().zip(y).map(|(x, y)| x * scale + y).collect();
        x.iter().zip(y).map(one).collect()
    }

    fn relu(x: Rows) -> Rows {
        x.into_iter()
            .map(|row| row.into_iter().map(|v| v.max(0.0)).collect())
            .collect()
    }

    /// Policy, value, moves left.
    fn forward(&self, tokens: &[f32]) -> (Vec<f64>, Vec<f64>, f64) {
        let (config, kind) = (self.config, self.config.norm_kind);
        let x: Rows = tokens
            .chunks(FEATURES)
            .map(|token| token.iter().map(|&v| f64::from(v)).collect())
            .collect();
        let positions = self.get("positions");
        let table: Rows = positions
            .chunks(config.width as usize)
            .map(<[f64]>::to_vec)
            .collect();
        let mut x = Self::sum(&self.dense(&x, "embed"), 1.0, &table);
        if config.norm == NormPlace::Post {
            x = self.norm(&x, "embed.norm", kind);
        }
        for layer in 0..config.layers {
            let (n1, n2) = (
                format!("layers.{layer}.norm1"),
                format!("layers.{layer}.norm2"),
            );
            match config.norm {
                NormPlace::Post => {
                    let alpha = (2.0 * config.layers as f64).powf(0.25);
                    x = self.norm(&Self::sum(&x, alpha, &self.attention(&x, layer)), &n1, kind);
                    x = self.norm(
                        &Self::sum(&x, alpha, &self.feed_forward(&x, layer)),
                        &n2,
                        kind,
                    );
                }
                NormPlace::Pre => {
                    let inner = self.norm(&x, &n1, kind);
                    x = Self::sum(&x, 1.0, &self.attention(&inner, layer));
                    let inner = self.norm(&x, &n2, kind);
                    x = Self::sum(&x, 1.0, &self.feed_forward(&inner, layer));
                }
            }
        }
        if config.norm == NormPlace::Pre {
            x = self.norm(&x, "norm", kind);
        }
        let (q, k) = (self.dense(&x, "policy.query"), self.dense(&x, "policy.key"));
        let scale = (config.policy_width as f64).sqrt();
        let dot = |from: usize, to: usize| {
            q[from].iter().zip(&k[to]).map(|(a, b)| a * b).sum::<f64>() / scale
        };
        let mut policy: Vec<f64> = (0..4096).map(|i| dot(i / 64, i % 64)).collect();
        let offsets = Self::matmul(&k, &self.get("policy.promotion"));
        for from in 0..8 {
            for to in 0..8 {
                policy
                    .extend((0..4).map(|piece| dot(48 + from, 56 + to) + offsets[56 + to][piece]));
            }
        }
        let mean = |x: &Rows| -> Vec<f64> {
            (0..x[0].len())
                .map(|i| x.iter().map(|row| row[i]).sum::<f64>() / 64.0)
                .collect()
        };
        let read = match config.value {
            ValueRead::Pooled => mean(&x),
            ValueRead::Tokens => Self::relu(self.dense(&x, "value.tokens")).concat(),
        };
        let hidden = Self::relu(self.dense(&vec![read], "value.hidden"));
        let value = self.dense(&hidden, "value.output").concat();
        let hidden = Self::relu(self.dense(&vec![mean(&x)], "moves_left.hidden"));
        let plies = self.dense(&hidden, "moves_left.output")[0][0];
        (policy, value, 20.0 * plies.exp().ln_1p())
    }
}

/// By its series, exact to 1e-12 where it is used.
fn erf(x: f64) -> f64 {
    if x.abs() > 5.0 {
        return x.signum();
    }
    let (mut term, mut sum) = (x, x);
    for n in 1..200 {
        term *= -x * x / f64::from(n);
        sum += term / f64::from(2 * n + 1);
    }
    sum * 2.0 / std::f64::consts::PI.sqrt()
}

fn forward(config: &Config, weights: &HashMap<String, Vec<f32>>, rows: &[f32]) -> [Vec<f32>; 3] {
    let _guard = tch::no_grad_guard();
    let network = Transformer::new(config, &tensors(config, weights)).unwrap();
    let tokens = Tensor::from_slice(rows).reshape([-1, 64, FEATURES as i64]);
    let outputs = network.forward(&tokens).unwrap();
    let numbers = |tensor: &Tensor| Vec::<f32>::try_from(&tensor.reshape([-1])).unwrap();
    [
        numbers(&outputs.policy),
        numbers(&outputs.value),
        outputs.moves_left.as_ref().map_or(Vec::new(), numbers),
    ]
}

fn compare(config: &Config, seed: u64) {
    let weights = weights(config, seed);
    let reference = Reference {
        config,
        weights: &weights,
    };
    let rows = row(&position(FENS[seed as usize % FENS.len()]));
    let [policy, value, moves_left] = forward(config, &weights, &rows);
    let (p, v, m) = reference.forward(&rows);
    assert_eq!((policy.len(), value.len()), (SQUARE_POLICY, 3));
    let expected = p.iter().chain(&v).chain(std::iter::once(&m));
    let found = policy.iter().chain(&value).chain(&moves_left);
    for (index, (e, f)) in expected.zip(found).enumerate() {
        let tolerance = 2e-4 * e.abs().max(1.0);
        assert!(
            (e - f64::from(*f)).abs() < tolerance,
            "{index}: {e} {f} of {config:?}"
        );
    }
}

#[test]
fn every_choice_agrees_with_the_reference() {
    let mut seed = 0;
    let mut check = |config: Config| {
        compare(&config, seed);
        seed += 1;
    };
    for activation in FfActivation::ALL {
        check(Config {
            activation,
            ..config()
        });
    }
    for norm in [NormPlace::Post, NormPlace::Pre] {
        for norm_kind in [NormKind::Layer, NormKind::Rms] {
            for attention_bias in [
                AttentionBias::None,
                AttentionBias::Learned,
                AttentionBias::Smolgen,
            ] {
                check(Config {
                    norm,
                    norm_kind,
                    attention_bias,
                    value: ValueRead::Pooled,
                    ..config()
                });
            }
        }
    }
}

#[test]
fn gated_activations_keep_the_parameter_count() {
    let plain = Config {
        ff: 96,
        width: 96,
        ..config()
    };
    for activation in FfActivation::ALL {
        let gated = Config {
            activation,
            ..plain.clone()
        };
        let (a, b) = (plain.size() as f64, gated.size() as f64);
        assert!((a / b - 1.0).abs() < 0.01, "{activation:?}: {a} {b}");
    }
}

fn options() -> ModelOptions {
    ModelOptions::new(&Options {
        device: "cpu".to_owned(),
        ..Options::default()
    })
    .unwrap()
}

fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("simurgh-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

fn file_bytes(config: &Config, half: bool) -> Vec<u8> {
    let folder = folder(&format!("transformer-{half}"));
    let path = folder.join("net.safetensors");
    let manifest = serde_json::json!({"steps": 7});
    write(&path, config, &manifest, &weights(config, 5), half).unwrap();
    let bytes = std::fs::read(&path).unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    bytes
}

fn evaluator() -> Box<dyn Evaluator> {
    let bytes = file_bytes(&config(), false);
    let AnyFile::Transformer(file) = AnyFile::parse(bytes, "net").unwrap() else {
        panic!("not read as a transformer");
    };
    let backend = TransformerBackend::new(&file, &options()).unwrap();
    backend.evaluator().unwrap()
}

fn evaluate(leaves: &[Leaf]) -> Vec<Evaluation> {
    let mut evaluator = evaluator();
    let mut evaluations = Vec::new();
    // The last ones one by one, the first ones together.
    let (together, alone) = leaves.split_at(leaves.len() / 2);
    evaluations.extend(
        evaluator
            .evaluate(together, &EvalParams::default())
            .unwrap(),
    );
    for leaf in alone {
        let one = std::slice::from_ref(leaf);
        evaluations.extend(evaluator.evaluate(one, &EvalParams::default()).unwrap());
    }
    evaluations
}

fn leaf(fen: &str) -> Leaf {
    Leaf::of_game(Arc::new(Game::new(position(fen))))
}

fn close(a: &Evaluation, b: &Evaluation) {
    let numbers = |e: &Evaluation| {
        let mut list = vec![e.wdl.win, e.wdl.draw, e.wdl.loss, e.moves_left.unwrap()];
        list.extend(&e.policy.0);
        list
    };
    let (a, b) = (numbers(a), numbers(b));
    assert_eq!(a.len(), b.len());
    assert!(
        a.iter().zip(&b).all(|(a, b)| (a - b).abs() < 1e-5),
        "{a:?} {b:?}"
    );
}

#[test]
fn a_batch_of_one_is_a_row_of_a_batch_and_priors_sum_to_one() {
    let once: Vec<Leaf> = FENS.iter().map(|fen| leaf(fen)).collect();
    let twice: Vec<Leaf> = once.iter().chain(&once).cloned().collect();
    let evaluations = evaluate(&twice);
    for (together, alone) in evaluations.iter().zip(&evaluations[FENS.len()..]) {
        close(together, alone);
    }
    for (leaf, evaluation) in twice.iter().zip(&evaluations) {
        assert_eq!(leaf.moves.len(), evaluation.policy.0.len());
        assert!((evaluation.policy.0.iter().sum::<f32>() - 1.0).abs() < 1e-5);
    }
}

#[test]
fn the_open_policy_holds_the_priors_and_what_is_illegal() {
    let leaves: Vec<Leaf> = FENS.iter().map(|fen| leaf(fen)).collect();
    let mut evaluator = evaluator();
    let open = evaluator.open_policy(&leaves).unwrap().unwrap();
    assert_eq!(open.len(), leaves.len());
    for (open, evaluation) in open.iter().zip(evaluate(&leaves)) {
        assert_eq!(open.logits.len(), SQUARE_POLICY);
        let legal = open.legal.iter().map(|&output| open.logits[output]);
        let priors = Policy::softmax(legal.collect(), 1.0).0;
        assert_eq!(priors.len(), evaluation.policy.0.len());
        for (a, b) in priors.iter().zip(&evaluation.policy.0) {
            assert!((a - b).abs() < 1e-5, "{a} {b}");
        }
    }
}

#[test]
fn the_other_colour_gets_the_same_answer() {
    let pairs = [
        (
            "rnbqkb1r/pp2pppp/3p1n2/8/3NP3/8/PPP2PPP/RNBQKB1R w KQkq - 1 5",
            "rnbqkb1r/ppp2ppp/8/3np3/8/3P1N2/PP2PPPP/RNBQKB1R b KQkq - 1 5",
        ),
        (
            "8/P6k/8/8/8/8/8/7K w - - 3 40",
            "7k/8/8/8/8/8/p6K/8 b - - 3 40",
        ),
    ];
    for (white, black) in pairs {
        let (white, black) = (leaf(white), leaf(black));
        let answers = evaluate(&[white.clone(), black.clone()]);
        let (a, b) = (&answers[0], &answers[1]);
        assert!((a.wdl.q() - b.wdl.q()).abs() < 1e-6);
        for (m, p) in white.moves.iter().zip(&a.policy.0) {
            let flipped = |m: &simurgh::chess::Move| {
                (
                    u8::from(m.from()) ^ 56,
                    u8::from(m.to()) ^ 56,
                    m.promotion(),
                )
            };
            let other = black
                .moves
                .iter()
                .position(|n| (u8::from(n.from()), u8::from(n.to()), n.promotion()) == flipped(m));
            assert!((b.policy.0[other.unwrap()] - p).abs() < 1e-6, "{m}");
        }
    }
}

#[test]
fn files_come_back_and_damaged_ones_are_named() {
    let bytes = file_bytes(&config(), false);
    let file = TransformerFile::parse(&bytes, "net").unwrap();
    assert_eq!(
        (&file.config, file.manifest["steps"].as_i64()),
        (&config(), Some(7))
    );
    assert_eq!(file.tensors, weights(&config(), 5));
    let half = file_bytes(&config(), true);
    assert!(half.len() < bytes.len() * 6 / 10);
    let rounded = TransformerFile::parse(&half, "net").unwrap();
    for (name, values) in &file.tensors {
        for (a, b) in values.iter().zip(&rounded.tensors[name]) {
            assert!((a - b).abs() <= 1e-3 * a.abs() + 1e-6, "{name} {a} {b}");
        }
    }

    let refuse = |bytes: &[u8], says: &str| {
        let error = TransformerFile::parse(bytes, "net")
            .unwrap_err()
            .to_string();
        assert!(error.contains(says), "{error}\nexpected: {says}");
    };
    for cut in [9, 100, bytes.len() / 2, bytes.len() - 1] {
        refuse(&bytes[..cut], "'net'");
    }
    // The header is text: changes of the same length leave the file whole.
    let changed = |from: &str, to: &str| {
        assert_eq!(from.len(), to.len());
        let text = from.as_bytes();
        let at = bytes.windows(text.len()).position(|w| w == text).unwrap();
        let mut changed = bytes.clone();
        changed[at..at + text.len()].copy_from_slice(to.as_bytes());
        changed
    };
    refuse(
        &changed("layers.1.out.bias", "layers.1.out.bios"),
        "layers.1.out.bias",
    );
    refuse(
        &changed("simurgh-transformer-1", "simurgh-transformer-9"),
        "transformer-9",
    );
    refuse(
        &changed("\\\"width\\\":12", "\\\"width\\\":13"),
        "embed.weight",
    );
    refuse(
        &changed("\\\"layers\\\":2", "\\\"layers\\\":1"),
        "layers.1.",
    );
    refuse(
        &changed("\\\"layers\\\":2", "\\\"layers\\\":3"),
        "layers.2.qkv.weight",
    );
    refuse(
        &changed("\\\"width\\\":12", "\\\"width\\\":-1"),
        "width is -1",
    );
    refuse(&changed("\\\"relu\\\"", "\\\"rely\\\""), "rely");
    let mut nan = bytes.clone();
    let end = nan.len();
    nan[end - 4..].copy_from_slice(&f32::NAN.to_le_bytes());
    refuse(&nan, "NaN");
    let mut huge = bytes.clone();
    huge[..8].copy_from_slice(&(1_u64 << 60).to_le_bytes());
    refuse(&huge, "'net'");
}

#[test]
fn the_network_inside_is_sane_where_every_game_begins() {
    if simurgh::model::embedded().is_none() {
        println!("SKIPPED: this binary was built without a network");
        return;
    }
    let backend = simurgh::model::load_backend(&Source::Embedded, &options()).unwrap();
    let mut evaluator = backend.evaluator().unwrap();
    let mut game = Game::default();
    for text in ["e2e4", "e7e5", "g1f3"] {
        let leaf = Leaf::of_game(Arc::new(game.clone()));
        let moves = leaf.moves.clone();
        let answer = evaluator
            .evaluate(&[leaf], &EvalParams::default())
            .unwrap()
            .remove(0);
        let q = answer.wdl.win - answer.wdl.loss;
        assert!(q.abs() < 0.3, "before {text}: {q}");
        // The usual move has more than a guess would give it.
        let m = game.current().parse_uci(text).unwrap();
        let prior = answer.policy.0[moves.iter().position(|&n| n == m).unwrap()];
        assert!(prior > 2.0 / moves.len() as f32, "{text}: {prior}");
        game.play(m);
    }
}
