//! `simurgh datagen import-v6` and `export-v6`: Lc0's training records in and out. Files, progress and
//! Ctrl-C; the records are `train::v6`'s.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use anyhow::{Context, Result, bail};
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};

use crate::cli::interrupt::on_interrupt;
use crate::cli::stdout;
use crate::encode::InputFormat;
use crate::train::chunk::{ChunkFile, ChunkWriter};
use crate::train::v6::{V6Reader, V6Record, write_game};

/// Lc0 training records (version 6) into one file of training data
///
/// Games are put together again from positions and the moves played. Lost are: what happened before the
/// first record of a file (or after a gap), move numbers, all values but the best move's, estimates of the
/// moves left, results that differ within a game, visit counts, probabilities finer than 1/65,536.
#[derive(Args)]
pub struct ImportV6 {
    /// Files of records, gzipped or not, or folders of them (unpack .tar files first)
    #[arg(long, required = true, num_args = 1..)]
    input: Vec<PathBuf>,
    /// The file to write; it must not be there yet
    #[arg(long)]
    output: PathBuf,
}

/// Training data as Lc0 training records (version 6), a gzipped file for each game
///
/// Games without a result and positions without a policy label are left out. Where a label has one value
/// it stands for root, best and played move; moves left are the plies to the end of the game.
#[derive(Args)]
pub struct ExportV6 {
    /// A file of training data
    file: PathBuf,
    /// The folder to write; it must be empty or not be there yet
    #[arg(long)]
    output: PathBuf,
    /// Input format of the planes: 1, 2, 3, 4, 5, 132 or 133
    #[arg(long, default_value_t = 1)]
    input_format: i32,
    /// Softmax temperature of the policy target, in units of expected score
    #[arg(long, default_value_t = 0.05)]
    temperature: f32,
}

pub fn import(args: &ImportV6) -> Result<()> {
    if args.output.exists() {
        bail!(
            "{} is there already; name another --output, or remove it",
            args.output.display()
        );
    }
    let mut files = Vec::new();
    for path in &args.input {
        match path.is_dir() {
            true => files.extend(files_of(path)?),
            false => files.push(path.clone()),
        }
    }
    let cancel = on_interrupt("interrupted: nothing is kept of a half import")?;
    let bar = bar(files.len() as u64, "files")?;
    let mut writer = ChunkWriter::create(&args.output)?;
    for path in &files {
        for game in V6Reader::open(path)? {
            writer.push(game?)?;
        }
        if cancel.load(Ordering::Relaxed) {
            bail!("interrupted");
        }
        bar.inc(1);
    }
    writer.finish()?;
    bar.finish_and_clear();
    super::stats(&args.output)
}

/// The files of a folder, by name; hidden ones are read over.
fn files_of(folder: &Path) -> Result<Vec<PathBuf>> {
    let read = || format!("cannot read {}", folder.display());
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).with_context(read)? {
        let path = entry.with_context(read)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if path.is_file() && !name.starts_with('.') {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

pub fn export(args: &ExportV6) -> Result<()> {
    let Some(format) = InputFormat::from_number(args.input_format) else {
        bail!(
            "--input-format {}: expected one of 1, 2, 3, 4, 5, 132, 133",
            args.input_format
        );
    };
    if args.temperature.is_nan() || args.temperature <= 0.0 {
        bail!("--temperature {}: expected above 0", args.temperature);
    }
    let file = ChunkFile::open(&args.file)?;
    let folder = &args.output;
    let write = || format!("cannot write {}", folder.display());
    std::fs::create_dir_all(folder).with_context(write)?;
    if std::fs::read_dir(folder)
        .with_context(write)?
        .next()
        .is_some()
    {
        bail!("{} is not empty; name another --output", folder.display());
    }
    let cancel = on_interrupt("interrupted: the games written so far stay")?;
    let bar = bar(file.games(), "games")?;
    let (mut number, mut written, mut positions, mut plies) = (0, 0, 0, 0);
    'chunks: for index in 0..file.chunks().len() {
        for game in file.load(index)? {
            if cancel.load(Ordering::Relaxed) {
                break 'chunks;
            }
            let records = V6Record::of_game(&Arc::clone(&game), format, args.temperature);
            if !records.is_empty() {
                write_game(&folder.join(format!("game_{number:07}.gz")), &records)?;
                written += 1;
            }
            positions += records.len();
            plies += game.record().labelled();
            number += 1;
            bar.inc(1);
        }
    }
    bar.finish_and_clear();
    stdout::say(format_args!(
        "{written} of {number} games, {positions} of {plies} labelled positions in {}",
        folder.display()
    ))?;
    match number == file.games() {
        true => Ok(()),
        false => bail!("interrupted after {number} of {} games", file.games()),
    }
}

fn bar(length: u64, what: &str) -> Result<ProgressBar> {
    let style = format!("{{bar:30}} {{pos}}/{{len}} {what}, {{per_sec}}, {{eta}} left");
    Ok(ProgressBar::new(length).with_style(ProgressStyle::with_template(&style)?))
}
