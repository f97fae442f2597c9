//! Evaluations per second of the CPU tower on a network of maia's shape (112 → 64 channels, 6 blocks with
//! squeeze-and-excitation, convolution policy) with random weights, by batch and threads. Each thread is
//! an evaluator of its own; the rate shown is of all threads together.

use std::cell::RefCell;
use std::sync::LazyLock;

use divan::Bencher;
use divan::counter::ItemsCount;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use simurgh::model::cpu_tower::{CpuTower, TowerOutput};
use simurgh::model::tower_config::{
    Activation, BlockConfig, ConvConfig, DenseConfig, HeadLayer, SeConfig, TowerConfig,
};

fn main() {
    divan::main();
}

static TOWER: LazyLock<CpuTower> = LazyLock::new(|| match CpuTower::new(&maia()) {
    Ok(tower) => tower,
    Err(error) => panic!("{error}"),
});

thread_local! {
    static EVALUATOR: RefCell<(CpuTower, TowerOutput)> =
        RefCell::new((TOWER.share(), TowerOutput::default()));
}

#[divan::bench(args = [1, 8, 16, 32], threads = [1, 2], min_time = 1)]
fn maia_shape(bencher: Bencher, batch: usize) {
    let planes = planes(batch);
    let planes = planes.as_slice();
    bencher.counter(ItemsCount::new(batch)).bench(|| {
        EVALUATOR.with_borrow_mut(|(tower, out)| {
            let done = tower.forward(planes, batch, out);
            assert!(done.is_ok() && out.heads[0].len() == batch * 80 * 64);
        });
    });
}

fn noise(random: &mut StdRng, n: usize, size: f32) -> Vec<f32> {
    (0..n).map(|_| random.random_range(-size..size)).collect()
}

fn conv(random: &mut StdRng, inputs: usize, outputs: usize, size: usize) -> ConvConfig {
    let area = inputs * size * size;
    ConvConfig {
        inputs,
        outputs,
        size,
        weights: noise(random, outputs * area, (3.0 / area as f32).sqrt()),
        bias: noise(random, outputs, 0.1),
    }
}

fn dense(random: &mut StdRng, inputs: usize, outputs: usize) -> DenseConfig {
    DenseConfig {
        inputs,
        outputs,
        weights: noise(random, outputs * inputs, (3.0 / inputs as f32).sqrt()),
        bias: noise(random, outputs, 0.1),
    }
}

fn maia() -> TowerConfig {
    let r = &mut StdRng::seed_from_u64(1);
    let block = |r: &mut StdRng| BlockConfig {
        conv1: conv(r, 64, 64, 3),
        conv2: conv(r, 64, 64, 3),
        se: Some(SeConfig {
            squeeze: dense(r, 64, 8),
            excite: dense(r, 8, 128),
        }),
    };
    TowerConfig {
        activation: Activation::Relu,
        input: conv(r, 112, 64, 3),
        blocks: (0..6).map(|_| block(r)).collect(),
        heads: vec![
            vec![
                HeadLayer::Conv(conv(r, 64, 64, 3), Activation::Relu),
                HeadLayer::Conv(conv(r, 64, 80, 3), Activation::None),
            ],
            vec![
                HeadLayer::Conv(conv(r, 64, 32, 1), Activation::Relu),
                HeadLayer::Dense(dense(r, 32 * 64, 128), Activation::Relu),
                HeadLayer::Dense(dense(r, 128, 3), Activation::None),
            ],
        ],
        keep_trunk: false,
    }
}

/// Eight positions of 32 pieces a board, five constant planes.
fn planes(batch: usize) -> Vec<f32> {
    let mut random = StdRng::seed_from_u64(2);
    let mut all = vec![0.0; batch * 112 * 64];
    for board in all.chunks_exact_mut(112 * 64) {
        for item in 0..8 {
            for square in 0..64 {
                if random.random_bool(0.5) {
                    let piece = random.random_range(0..12);
                    board[(item * 13 + piece) * 64 + square] = 1.0;
                }
            }
        }
        for (plane, value) in [(104, 1.0), (105, 1.0), (107, 1.0), (109, 7.0), (111, 1.0)] {
            board[plane * 64..][..64].fill(value);
        }
    }
    all
}
