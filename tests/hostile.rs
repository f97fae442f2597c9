//! Damaged and hostile network files: refused by one clear error, never a panic. Knows the wire format of
//! protobuf, not what the messages mean.

use std::fs;
use std::io::Read;
use std::sync::Arc;

use flate2::read::GzDecoder;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use simurgh::chess::Game;
use simurgh::eval::{Backend, EvalError, EvalParams, Leaf};
use simurgh::model::{
    ModelError, ModelOptions, NetworkFile, NetworkWeights, PolicyHead, TorchBackend, ValueHead,
};
use simurgh::options::Options;

use crate::golden::data;

/// A protobuf message, as far down as its tensors: field numbers and what they hold.
type Message = Vec<(u64, Node)>;

#[derive(Clone)]
enum Node {
    Number(u64),
    Fixed([u8; 4]),
    Bytes(Vec<u8>),
    Message(Message),
}

const WEIGHTS: u64 = 10;
const MIN: u64 = 1;
const MAX: u64 = 2;
const PARAMS: u64 = 3;

fn varint(bytes: &mut &[u8]) -> u64 {
    let mut value = 0;
    let mut shift = 0;
    loop {
        let (&byte, rest) = bytes.split_first().unwrap();
        *bytes = rest;
        value |= u64::from(byte & 127) << shift;
        if byte < 128 {
            return value;
        }
        shift += 7;
    }
}

fn put_varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 128 {
        out.push(value as u8 | 128);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Inside the weights everything is a message but the parameters of a tensor.
fn parse(mut bytes: &[u8], inside: bool) -> Message {
    let is_tensor = bytes.first() == Some(&0x0d);
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes);
        let number = key >> 3;
        let node = match key & 7 {
            0 => Node::Number(varint(&mut bytes)),
            5 => {
                let (fixed, rest) = bytes.split_at(4);
                bytes = rest;
                Node::Fixed(fixed.try_into().unwrap())
            }
            2 => {
                let length = varint(&mut bytes) as usize;
                let (body, rest) = bytes.split_at(length);
                bytes = rest;
                if (inside && !is_tensor) || (!inside && number == WEIGHTS) {
                    Node::Message(parse(body, true))
                } else {
                    Node::Bytes(body.to_vec())
                }
            }
            kind => panic!("wire type {kind}"),
        };
        fields.push((number, node));
    }
    fields
}

fn write(fields: &[(u64, Node)], out: &mut Vec<u8>) {
    for (number, node) in fields {
        let (kind, body) = match node {
            Node::Number(value) => {
                put_varint(number << 3, out);
                put_varint(*value, out);
                continue;
            }
            Node::Fixed(bytes) => {
                put_varint(number << 3 | 5, out);
                out.extend(bytes);
                continue;
            }
            Node::Bytes(bytes) => (2, bytes.clone()),
            Node::Message(fields) => {
                let mut body = Vec::new();
                write(fields, &mut body);
                (2, body)
            }
        };
        put_varint(number << 3 | kind, out);
        put_varint(body.len() as u64, out);
        out.extend(body);
    }
}

/// Calls `change` on the tensor with number `wanted`, which removes it by answering false; true if there is one.
fn change_tensor(
    fields: &mut Message,
    wanted: &mut usize,
    change: &dyn Fn(&mut Message) -> bool,
) -> bool {
    let mut index = 0;
    while index < fields.len() {
        if let Node::Message(inner) = &mut fields[index].1 {
            if matches!(inner.first(), Some((MIN, Node::Fixed(_)))) {
                if *wanted == 0 {
                    if !change(inner) {
                        fields.remove(index);
                    }
                    return true;
                }
                *wanted -= 1;
            } else if change_tensor(inner, wanted, change) {
                return true;
            }
        }
        index += 1;
    }
    false
}

fn unpacked(path: &std::path::Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    let file = fs::File::open(path).unwrap();
    GzDecoder::new(file).read_to_end(&mut bytes).unwrap();
    bytes
}

fn load(bytes: Vec<u8>) -> Result<NetworkWeights, ModelError> {
    NetworkFile::parse(bytes, "hostile")?.weights(PolicyHead::Vanilla, ValueHead::Winner)
}

/// What comes of changing each tensor of a network in turn.
fn with_each_tensor(
    bytes: &[u8],
    change: &dyn Fn(&mut Message) -> bool,
) -> Vec<Result<NetworkWeights, ModelError>> {
    let fields = parse(bytes, false);
    let mut results = Vec::new();
    loop {
        let mut changed = fields.clone();
        let mut wanted = results.len();
        if !change_tensor(&mut changed, &mut wanted, change) {
            assert!(results.len() > 10);
            return results;
        }
        let mut out = Vec::new();
        write(&changed, &mut out);
        results.push(load(out));
    }
}

#[test]
fn tensors_of_the_wrong_size_are_named_with_sizes() {
    for network in data() {
        let shorten = |tensor: &mut Message| {
            for (number, node) in tensor {
                if let (PARAMS, Node::Bytes(bytes)) = (*number, node) {
                    bytes.extend([0, 0]);
                }
            }
            true
        };
        for (i, result) in with_each_tensor(&unpacked(&network), &shorten)
            .into_iter()
            .enumerate()
        {
            let error = result.map(|_| ()).unwrap_err().to_string();
            let known = error.contains("tensor") && error.contains("expected");
            assert!(known, "{} tensor {i}: {error}", network.display());
        }
    }
}

#[test]
fn missing_tensors_are_named() {
    for network in data() {
        let results = with_each_tensor(&unpacked(&network), &|_| false);
        let all = results.len();
        let mut refused = 0;
        for error in results.into_iter().filter_map(Result::err) {
            let error = error.to_string();
            assert!(
                error.contains("lacks tensor") || error.contains("no policy head"),
                "{error}"
            );
            refused += 1;
        }
        // Biases of convolutions, halves of batch norms and gates may be absent.
        assert!(
            2 * refused > all,
            "{}: {refused} of {all}",
            network.display()
        );
    }
}

#[test]
fn numbers_that_are_none_are_refused() {
    for network in data() {
        for (field, value) in [
            (MIN, f32::NAN),
            (MAX, f32::INFINITY),
            (MIN, f32::NEG_INFINITY),
        ] {
            let spoil = move |tensor: &mut Message| {
                for (number, node) in tensor {
                    if *number == field {
                        *node = Node::Fixed(value.to_le_bytes());
                    }
                }
                true
            };
            for result in with_each_tensor(&unpacked(&network), &spoil) {
                let error = result.map(|_| ()).unwrap_err();
                assert!(matches!(error, ModelError::NotFinite { .. }), "{error}");
            }
        }
    }
}

#[test]
fn truncated_files_are_refused_at_every_length() {
    for network in data() {
        let packed = fs::read(&network).unwrap();
        let raw = unpacked(&network);
        for bytes in [&packed, &raw] {
            for part in 0..60 {
                let length = bytes.len() * part / 60;
                assert!(
                    load(bytes[..length].to_vec()).is_err(),
                    "{} of {}",
                    length,
                    bytes.len()
                );
                assert!(load(bytes[..bytes.len() - 1 - part].to_vec()).is_err());
            }
        }
    }
}

#[test]
fn flipped_bytes_never_panic() {
    let mut random = StdRng::seed_from_u64(7);
    for network in data() {
        let raw = unpacked(&network);
        for round in 0..150 {
            let mut bytes = raw.clone();
            for _ in 0..=random.random_range(0..4) {
                // Lengths and format numbers stand at the beginning of messages: most hits go there.
                let reach = if round % 2 == 0 { 200 } else { bytes.len() };
                let at = random.random_range(0..reach.min(bytes.len()));
                bytes[at] = random.random();
            }
            let _ = load(bytes);
        }
    }
}

#[test]
fn a_network_that_answers_nan_is_reported_by_position() {
    let network = data()
        .into_iter()
        .find(|path| path.ends_with("tower-flat.pb.gz"))
        .unwrap();
    let mut fields = parse(&unpacked(&network), false);
    let explode = |tensor: &mut Message| {
        for (number, node) in tensor {
            if *number == MAX {
                *node = Node::Fixed(1e38f32.to_le_bytes());
            }
        }
        true
    };
    // The weights of the first convolution, then of the next.
    for mut tensor in [0, 5] {
        assert!(change_tensor(&mut fields, &mut tensor, &explode));
    }
    let mut bytes = Vec::new();
    write(&fields, &mut bytes);
    let weights = load(bytes).unwrap();
    let mut options = Options::default();
    options.set("Device", "cpu").unwrap();
    let backend = TorchBackend::new(&weights, &ModelOptions::new(&options).unwrap()).unwrap();
    let leaf = Leaf::of_game(Arc::new(Game::default()));
    let answer = backend
        .evaluator()
        .unwrap()
        .evaluate(&[leaf], &EvalParams::default());
    let error = answer.unwrap_err();
    assert!(matches!(error, EvalError::NotANumber { .. }), "{error}");
    assert!(error.to_string().contains("rnbqkbnr/pppppppp"), "{error}");
}

#[test]
fn an_absent_head_lists_those_present() {
    let network = data()
        .into_iter()
        .find(|path| path.ends_with("body-heads.pb.gz"))
        .unwrap();
    let file = NetworkFile::parse(fs::read(network).unwrap(), "f").unwrap();
    let error = file
        .weights(PolicyHead::Soft, ValueHead::Winner)
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("'soft'") && error.contains("vanilla, optimistic"),
        "{error}"
    );
    let error = file
        .weights(PolicyHead::Vanilla, ValueHead::ShortTerm)
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("'st'") && error.contains("winner, q"),
        "{error}"
    );
    assert!(file.weights(PolicyHead::Optimistic, ValueHead::Q).is_ok());
}
