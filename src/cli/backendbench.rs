//! `simurgh backendbench`: evaluations per second of a network by minibatch size, with as many evaluators
//! at work as in a search. No search.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, bail};
use clap::Args;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};

use super::stdout;
use crate::chess::Game;
use crate::eval::{Backend, EvalParams, Leaf};
use crate::model::{self, ModelOptions};
use crate::options::Options;

/// Evaluations per second of a network by minibatch size.
#[derive(Args)]
pub struct BackendBench {
    /// Largest minibatch; without it, what suits the device.
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
    max_batch: Option<u16>,
    /// Seconds for each minibatch size.
    #[arg(long, default_value_t = 1.0)]
    seconds: f64,
    /// Comma-separated values.
    #[arg(long)]
    csv: bool,
}

const SIZES: [usize; 20] = [
    1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024,
];
const LEAVES: usize = 256;

/// Prints one line a size and the best one.
pub fn run(args: &BackendBench, options: &Options) -> Result<()> {
    if !(args.seconds > 0.0 && args.seconds <= 3600.0) {
        bail!(
            "--seconds is {}; expected more than 0, at most 3600",
            args.seconds
        );
    }
    let source = model::Source::of_options(options)
        .ok_or_else(|| anyhow!("no network: name one with --weights"))?;
    let backend = model::load_backend(&source, &ModelOptions::new(options)?)?;
    let attributes = backend.attributes();
    let largest = match args.max_batch {
        Some(size) => usize::from(size),
        None => (4 * attributes.preferred_batch).min(attributes.max_batch),
    };
    let mut sizes: Vec<usize> = SIZES.into_iter().filter(|&size| size < largest).collect();
    sizes.push(largest);
    let leaves = leaves();
    if args.csv {
        stdout::say("batch,evaluations_per_second,ms_per_batch")?;
    } else {
        stdout::say(format_args!(
            "{}: {} on {}, {} evaluators",
            attributes.name, attributes.precision, attributes.device, attributes.evaluators
        ))?;
        stdout::say(format_args!(
            "{:>6} {:>15} {:>12}",
            "batch", "evaluations/s", "ms/batch"
        ))?;
    }
    let mut best = (0.0, 0);
    for size in sizes {
        let rate = measure(
            &*backend,
            &leaves,
            size,
            Duration::from_secs_f64(args.seconds),
        )?;
        let ms = 1000.0 * (size * attributes.evaluators) as f64 / rate.max(1e-9);
        if args.csv {
            stdout::say(format_args!("{size},{rate:.1},{ms:.3}"))?;
        } else {
            stdout::say(format_args!("{size:>6} {rate:>15.0} {ms:>12.2}"))?;
        }
        if rate > best.0 {
            best = (rate, size);
        }
    }
    if !args.csv {
        let (rate, size) = best;
        stdout::say(format_args!(
            "best: {rate:.0} evaluations/s at batch {size}"
        ))?;
    }
    Ok(())
}

/// Evaluations per second of all evaluators together on minibatches of `size`.
fn measure(backend: &dyn Backend, leaves: &[Leaf], size: usize, time: Duration) -> Result<f64> {
    let stop = AtomicBool::new(false);
    let evaluations = AtomicU64::new(0);
    thread::scope(|scope| {
        let mut workers = Vec::new();
        for worker in 0..backend.attributes().evaluators {
            let mut evaluator = backend.evaluator()?;
            let batch: Vec<Leaf> = leaves
                .iter()
                .cycle()
                .skip(worker * size)
                .take(size)
                .cloned()
                .collect();
            let (stop, evaluations) = (&stop, &evaluations);
            workers.push(scope.spawn(move || {
                let params = EvalParams::default();
                // The first one finds its memory and does not count.
                evaluator.evaluate(&batch, &params)?;
                let start = Instant::now();
                let mut count = 0;
                while !stop.load(Ordering::Relaxed) || count == 0 {
                    evaluator.evaluate(&batch, &params)?;
                    count += size as u64;
                    if start.elapsed() >= time {
                        stop.store(true, Ordering::Relaxed);
                    }
                }
                evaluations.fetch_add(count, Ordering::Relaxed);
                Ok::<_, anyhow::Error>(start.elapsed())
            }));
        }
        let mut longest = Duration::ZERO;
        for worker in workers {
            let elapsed = worker
                .join()
                .map_err(|_| anyhow!("an evaluator thread ended early"))??;
            longest = longest.max(elapsed);
        }
        Ok(evaluations.load(Ordering::Relaxed) as f64 / longest.as_secs_f64().max(1e-9))
    })
}

/// Positions as a search meets them: random games, the last few moves on a path from the root.
fn leaves() -> Vec<Leaf> {
    let mut random = StdRng::seed_from_u64(1);
    let mut leaves = Vec::with_capacity(LEAVES);
    while leaves.len() < LEAVES {
        let (before, path) = (random.random_range(0..60), random.random_range(0..8));
        let mut game = Game::default();
        for _ in 0..before {
            if let Some(&m) = game.current().legal_moves().choose(&mut random) {
                game.play(m);
            }
        }
        let root = Arc::new(game);
        let mut leaf = Leaf::of_game(Arc::clone(&root));
        for _ in 0..path {
            if let Some(&m) = leaf.position.legal_moves().choose(&mut random) {
                leaf.path.push(m);
                leaf.position.play(m);
            }
        }
        leaf.moves = leaf.position.legal_moves().to_vec();
        if !leaf.moves.is_empty() {
            leaves.push(leaf);
        }
    }
    leaves
}
