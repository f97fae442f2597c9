//! Backends without a network: uniform, material and random answers, and ones that fail, answer
//! NaN, panic or take their time. Knows chess pieces, no tensors and no search.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::chess::{Color, Move, Position, Role};

use super::{Attributes, Backend, EvalError, EvalParams, Evaluation, Evaluator, Leaf, Policy, Wdl};

/// What a fake answers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Answer {
    /// Q = 0 and equal priors everywhere.
    Uniform,
    /// Q from piece values; priors prefer promotions and winning captures.
    Material,
    /// Q and priors from a hash of the position.
    Random,
}

/// What goes wrong, counted over all evaluators of the backend.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    None,
    /// An error once this many leaves were answered.
    Error(u64),
    /// NaN once this many leaves were answered.
    Nan(u64),
    /// A panic once this many leaves were answered.
    Panic(u64),
    /// Every call takes this long.
    Slow(Duration),
}

/// A backend that needs no network.
#[derive(Clone, Debug)]
pub struct Fake {
    attributes: Attributes,
    answer: Answer,
    fault: Fault,
    answered: Arc<AtomicU64>,
}

impl Fake {
    /// A fake with the given answers, called on the search workers' own threads.
    pub fn new(answer: Answer) -> Fake {
        Fake {
            attributes: Attributes {
                name: format!("{answer:?}").to_lowercase(),
                device: "cpu".to_owned(),
                precision: "fp32".to_owned(),
                preferred_batch: 128,
                max_batch: 1024,
                evaluators: 1,
                has_wdl: true,
                has_moves_left: false,
                inline: true,
                cached: false,
            },
            answer,
            fault: Fault::None,
            answered: Arc::new(AtomicU64::new(0)),
        }
    }

    /// Called through evaluator threads, as a network is, with this minibatch size.
    #[must_use]
    pub fn queued(mut self, evaluators: usize, preferred_batch: usize) -> Fake {
        self.attributes.inline = false;
        self.attributes.cached = true;
        self.attributes.evaluators = evaluators.max(1);
        self.attributes.preferred_batch = preferred_batch.clamp(1, self.attributes.max_batch);
        self
    }

    /// Fails once `leaves` leaves were answered.
    #[must_use]
    pub fn failing_after(mut self, leaves: u64) -> Fake {
        self.fault = Fault::Error(leaves);
        self
    }

    /// Answers NaN once `leaves` leaves were answered.
    #[must_use]
    pub fn nan_after(mut self, leaves: u64) -> Fake {
        self.fault = Fault::Nan(leaves);
        self
    }

    /// Panics once `leaves` leaves were answered.
    #[must_use]
    pub fn panicking_after(mut self, leaves: u64) -> Fake {
        self.fault = Fault::Panic(leaves);
        self
    }

    /// Takes `delay` for every call, whatever its size.
    #[must_use]
    pub fn slow(mut self, delay: Duration) -> Fake {
        self.fault = Fault::Slow(delay);
        self
    }

    /// Leaves answered so far by all evaluators.
    pub fn answered(&self) -> u64 {
        self.answered.load(Ordering::Relaxed)
    }
}

impl Backend for Fake {
    fn attributes(&self) -> &Attributes {
        &self.attributes
    }

    fn evaluator(&self) -> Result<Box<dyn Evaluator>, EvalError> {
        Ok(Box::new(FakeEvaluator { fake: self.clone() }))
    }
}

struct FakeEvaluator {
    fake: Fake,
}

impl Evaluator for FakeEvaluator {
    fn evaluate(
        &mut self,
        leaves: &[Leaf],
        _params: &EvalParams,
    ) -> Result<Vec<Evaluation>, EvalError> {
        let before = self
            .fake
            .answered
            .fetch_add(leaves.len() as u64, Ordering::Relaxed);
        let mut evaluations: Vec<Evaluation> = leaves
            .iter()
            .map(|leaf| answer(self.fake.answer, leaf))
            .collect();
        match self.fake.fault {
            Fault::None => {}
            Fault::Slow(delay) => std::thread::sleep(delay),
            Fault::Error(after) if before >= after => {
                return Err(EvalError::Backend {
                    backend: self.fake.attributes.name.clone(),
                    reason: format!("asked to fail after {after} leaves"),
                });
            }
            Fault::Nan(after) if before >= after => {
                if let Some(last) = evaluations.last_mut() {
                    last.wdl.draw = f32::NAN;
                }
            }
            Fault::Panic(after) if before >= after => {
                std::panic::panic_any(format!("asked to panic after {after} leaves"));
            }
            Fault::Error(_) | Fault::Nan(_) | Fault::Panic(_) => {}
        }
        Ok(evaluations)
    }
}

fn answer(answer: Answer, leaf: &Leaf) -> Evaluation {
    match answer {
        Answer::Uniform => Evaluation {
            wdl: Wdl::DRAW,
            policy: Policy::uniform(leaf.moves.len()),
            moves_left: None,
        },
        Answer::Material => material(leaf),
        Answer::Random => random(leaf),
    }
}

/// Values in pawns.
fn piece_value(role: Role) -> f32 {
    match role {
        Role::Pawn => 1.0,
        Role::Knight => 3.0,
        Role::Bishop => 3.25,
        Role::Rook => 5.0,
        Role::Queen => 9.5,
        Role::King => 0.0,
    }
}

/// Pawns the side to move is ahead.
fn balance(position: &Position) -> f32 {
    let board = position.board();
    let count = |color: Color| -> f32 {
        [
            Role::Pawn,
            Role::Knight,
            Role::Bishop,
            Role::Rook,
            Role::Queen,
        ]
        .iter()
        .map(|&role| {
            (board.by_color(color) & board.by_role(role)).count() as f32 * piece_value(role)
        })
        .sum()
    };
    count(position.turn()) - count(!position.turn())
}

/// Q = b / √(b² + 16) with b the balance in pawns: only exact operations, so that every machine
/// gets the same bits.
fn material(leaf: &Leaf) -> Evaluation {
    let balance = balance(&leaf.position);
    let q = balance / (balance * balance + 16.0).sqrt();
    let mut weights: Vec<f32> = leaf
        .moves
        .iter()
        .map(|&m| preference(&leaf.position, m))
        .collect();
    normalise(&mut weights);
    Evaluation {
        wdl: Wdl::from_q_d(q, 0.4 * (1.0 - q.abs())),
        policy: Policy(weights),
        moves_left: None,
    }
}

fn preference(position: &Position, m: Move) -> f32 {
    let board = position.board();
    let mover = board.role_at(m.from()).map_or(0.0, piece_value);
    let mut weight = 1.0;
    if !position.is_castling(m)
        && let Some(taken) = board.role_at(m.to())
    {
        weight += 1.0 + (piece_value(taken) - 0.5 * mover).max(0.0);
    }
    if m.promotion() == Some(Role::Queen) {
        weight += 6.0;
    }
    weight
}

/// Q uniform in (−1, 1), priors between 0.4 and 2.4 before they are normalised.
fn random(leaf: &Leaf) -> Evaluation {
    let seed = mix(leaf.position.key());
    let q = unit(seed) * 2.0 - 1.0;
    let d = (1.0 - q.abs()) * unit(mix(seed));
    let mut weights: Vec<f32> = leaf
        .moves
        .iter()
        .map(|m| 0.4 + 2.0 * unit(mix(seed ^ u64::from(m.raw()))))
        .collect();
    normalise(&mut weights);
    Evaluation {
        wdl: Wdl::from_q_d(q, d),
        policy: Policy(weights),
        moves_left: None,
    }
}

fn normalise(weights: &mut [f32]) {
    let scale = 1.0 / weights.iter().sum::<f32>();
    for weight in weights {
        *weight *= scale;
    }
}

/// The finaliser of SplitMix64.
fn mix(seed: u64) -> u64 {
    let mut z = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The upper 24 bits as a number in [0, 1).
fn unit(bits: u64) -> f32 {
    (bits >> 40) as f32 / (1_u32 << 24) as f32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chess::Game;

    fn evaluate(fake: Fake, fen: &str) -> Evaluation {
        let game = Game::new(Position::from_fen(fen).unwrap().0);
        let leaf = Leaf::of_game(Arc::new(game));
        let mut evaluator = fake.evaluator().unwrap();
        evaluator
            .evaluate(&[leaf], &EvalParams::default())
            .unwrap()
            .remove(0)
    }

    #[test]
    fn policies_sum_to_one_and_values_are_probabilities() {
        let fen = "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1";
        for kind in [Answer::Uniform, Answer::Material, Answer::Random] {
            let e = evaluate(Fake::new(kind), fen);
            assert_eq!(e.policy.0.len(), 48);
            assert!((e.policy.0.iter().sum::<f32>() - 1.0).abs() < 1e-5);
            assert!((e.wdl.win + e.wdl.draw + e.wdl.loss - 1.0).abs() < 1e-6);
            assert!(e.wdl.win >= 0.0 && e.wdl.draw >= 0.0 && e.wdl.loss >= 0.0);
        }
    }

    #[test]
    fn material_is_the_same_for_either_colour() {
        let white = evaluate(
            Fake::new(Answer::Material),
            "4k3/8/8/8/8/8/8/QR2K3 w - - 0 1",
        );
        let black = evaluate(
            Fake::new(Answer::Material),
            "qr2k3/8/8/8/8/8/8/4K3 b - - 0 1",
        );
        assert_eq!(white.wdl, black.wdl);
        assert!(white.wdl.q() > 0.9);
    }
}
