//! `simurgh perft`: counts legal move sequences, per move and total.

use std::sync::atomic::AtomicBool;
use std::time::Instant;

use anyhow::Result;
use clap::Args;

use super::stdout;
use crate::chess::{Position, perft};

/// Check move generation: leaves of the move tree, per move and total
#[derive(Args)]
pub struct Perft {
    /// Plies
    depth: u32,
    /// The position (default: the start position)
    #[arg(long)]
    fen: Option<String>,
    /// Print castling as king takes rook
    #[arg(long)]
    chess960: bool,
}

pub fn run(args: &Perft) -> Result<()> {
    let position = match &args.fen {
        Some(fen) => {
            let (position, repairs) = Position::from_fen(fen)?;
            for repair in repairs {
                eprintln!("{repair}");
            }
            position
        }
        None => Position::startpos(),
    };
    let began = Instant::now();
    let never = AtomicBool::new(false);
    let counts = perft::perft_by_move(&position, args.depth, &never).unwrap_or_default();
    for (m, leaves) in &counts.moves {
        let text = position.move_to_uci(*m, args.chess960);
        stdout::say(format_args!("{text}: {leaves}"))?;
    }
    stdout::say(format_args!("\nNodes searched: {}", counts.total))?;
    let seconds = began.elapsed().as_secs_f64();
    eprintln!(
        "{seconds:.2} s, {:.1} million nodes/s",
        counts.total as f64 / seconds.max(1e-9) / 1e6
    );
    Ok(())
}
