//! `simurgh bench`: fixed positions to fixed nodes; the signature of the search and its speed. Searches
//! itself nothing.

use std::sync::Arc;

use anyhow::{Result, anyhow};
use clap::Args;

use super::stdout;
use crate::eval::{Answer, Backend, Fake};
use crate::model::{self, ModelOptions};
use crate::options::Options;
use crate::search::{self, Measured};

/// Fixed positions to fixed nodes: a signature and a speed.
#[derive(Args)]
pub struct Bench {
    /// Visits of each position's root; without it 4000 on a fake backend, 200 on a network.
    #[arg(long)]
    nodes: Option<u64>,
    /// On all threads and without a signature: nodes expanded per second and core.
    #[arg(long)]
    speed: bool,
}

impl Bench {
    /// The signature on so many visits, or as many as by default.
    pub fn signature(nodes: Option<u64>) -> Bench {
        Bench {
            nodes,
            speed: false,
        }
    }
}

/// Prints what was measured; the last line is `N nodes M nps`.
///
/// # Errors
/// When the network cannot be loaded or nothing can be printed.
pub fn run(args: &Bench, options: &Options, weights_given: bool) -> Result<()> {
    for line in lines(args, options, weights_given)? {
        stdout::say(line)?;
    }
    Ok(())
}

/// The lines of [`run`]. A network is used only when one is named for this run.
///
/// # Errors
/// When the network cannot be loaded.
pub fn lines(args: &Bench, options: &Options, weights_given: bool) -> Result<Vec<String>> {
    let (backend, nodes): (Arc<dyn Backend>, u64) = match weights_given {
        true => {
            let source = model::Source::of_options(options)
                .ok_or_else(|| anyhow!("no network: name one with --weights"))?;
            let backend = model::load_backend(&source, &ModelOptions::new(options)?)?;
            (backend, 200)
        }
        false => (Arc::new(Fake::new(fake_answer(options))), 4000),
    };
    let threads = match args.speed {
        true => search::threads(options),
        false => 1,
    };
    let fixed = Options {
        threads: threads as i64,
        ..match weights_given {
            true => options.clone(),
            false => Options::default(),
        }
    };
    let name = backend.attributes().name.clone();
    let measured = search::bench(backend, &fixed, args.nodes.unwrap_or(nodes))?;
    Ok(report(&name, &measured, threads, args.speed))
}

/// Which fake stands in for a network.
fn fake_answer(options: &Options) -> Answer {
    match options.backend.as_str() {
        "uniform" => Answer::Uniform,
        "random" => Answer::Random,
        _ => Answer::Material,
    }
}

fn report(name: &str, measured: &Measured, threads: usize, speed: bool) -> Vec<String> {
    let per_core = measured.rate(measured.expanded) / threads as u64;
    let (bytes, in_largest) = measured.largest;
    let mut lines = vec![
        format!("backend            {name}"),
        format!("threads            {threads}"),
        format!("time               {:.3} s", measured.time.as_secs_f64()),
        format!("nodes expanded     {}", measured.expanded),
        format!("expanded/s/core    {per_core}"),
        format!("evaluations        {}", measured.evaluations),
        format!("evaluations/s      {}", measured.rate(measured.evaluations)),
        format!(
            "bytes/node         {}",
            bytes.checked_div(in_largest).unwrap_or(0)
        ),
    ];
    if !speed {
        lines.push(format!("signature          {:016x}", measured.signature));
    }
    lines.push(format!(
        "{} nodes {} nps",
        measured.nodes,
        measured.rate(measured.nodes)
    ));
    lines
}
