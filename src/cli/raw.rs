//! `simurgh raw`: the network's own answer for each position of a file, line by line. No search.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use serde_json::{Map, Number, Value};

use super::stdout;
use crate::chess::{Game, Position};
use crate::eval::{EvalParams, Evaluation, Evaluator, Leaf};
use crate::model::{self, ModelOptions, Precision};
use crate::options::Options;

/// The network's own answer for each position of a file, without search.
#[derive(Args)]
pub struct Raw {
    /// One JSON object a line: {"id", "fen"?, "moves": [...], "chess960"?}.
    #[arg(long)]
    input: PathBuf,
    /// Where the answers go; without it, to standard output.
    #[arg(long)]
    output: Option<PathBuf>,
    /// Positions per network call.
    #[arg(long, default_value_t = 32, value_parser = clap::value_parser!(u16).range(1..))]
    batch: u16,
}

/// Where the answers go.
enum Output<'a> {
    File(File, &'a Path),
    Stdout,
}

impl Output<'_> {
    fn print(&mut self, text: &str) -> Result<()> {
        match self {
            Output::File(file, path) => file
                .write_all(text.as_bytes())
                .with_context(|| format!("cannot write {}", path.display())),
            Output::Stdout => Ok(stdout::print(text)?),
        }
    }
}

/// True when both name one regular file, by whatever path or link.
fn is_same_file(a: &Path, b: &Path) -> bool {
    let (Ok(first), Ok(second)) = (a.metadata(), b.metadata()) else {
        return false;
    };
    if !first.is_file() || !second.is_file() {
        return false;
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        (first.dev(), first.ino()) == (second.dev(), second.ino())
    }
    #[cfg(not(unix))]
    {
        a.canonicalize().ok() == b.canonicalize().ok()
    }
}

/// A line that was understood.
struct Question {
    object: Map<String, Value>,
    leaf: Leaf,
    chess960: bool,
}

/// Answers every line it can, then fails if there were others.
pub fn run(args: &Raw, options: &Options) -> Result<()> {
    if let Some(output) = &args.output
        && is_same_file(&args.input, output)
    {
        bail!(
            "--output {} is the file of --input; expected another one",
            output.display()
        );
    }
    let mut choices = ModelOptions::new(options)?;
    if choices.precision == Precision::Auto {
        choices.precision = Precision::Fp32;
    }
    let input =
        File::open(&args.input).with_context(|| format!("cannot read {}", args.input.display()))?;
    let source = model::Source::of_options(options)
        .ok_or_else(|| anyhow!("no network: name one with --weights"))?;
    let backend = model::load_backend(&source, &choices)?;
    let mut evaluator = backend.evaluator()?;
    let mut output = match &args.output {
        Some(path) => {
            let file = File::create(path);
            let file = file.with_context(|| format!("cannot write {}", path.display()))?;
            Output::File(file, path)
        }
        None => Output::Stdout,
    };

    let mut input = BufReader::new(input);
    let mut group = Vec::new();
    let mut bytes = Vec::new();
    let (mut number, mut refused) = (0, 0);
    loop {
        bytes.clear();
        let length = input
            .read_until(b'\n', &mut bytes)
            .with_context(|| format!("cannot read {}", args.input.display()))?;
        if length == 0 {
            break;
        }
        number += 1;
        if bytes.trim_ascii().is_empty() {
            continue;
        }
        match read_question(&bytes) {
            Ok(question) => group.push(question),
            Err(error) => {
                refused += 1;
                let (path, error) = (args.input.display(), super::in_words(&error));
                eprintln!("error: {path} line {number}: {error}");
            }
        }
        if group.len() >= usize::from(args.batch) {
            answer(&mut group, &mut *evaluator, &mut output)?;
        }
    }
    answer(&mut group, &mut *evaluator, &mut output)?;
    if refused > 0 {
        bail!("{refused} of {number} lines were refused");
    }
    Ok(())
}

fn read_question(line: &[u8]) -> Result<Question> {
    let text = std::str::from_utf8(line).context("not UTF-8")?;
    let object = match serde_json::from_str(text).context("not JSON")? {
        Value::Object(object) => object,
        _ => bail!("expected a JSON object"),
    };
    let position = match object.get("fen") {
        None | Some(Value::Null) => Position::startpos(),
        Some(Value::String(fen)) => Position::from_fen(fen)?.0,
        Some(other) => bail!("\"fen\" is {other}; expected a string"),
    };
    let chess960 = match object.get("chess960") {
        None | Some(Value::Null) => false,
        Some(Value::Bool(chess960)) => *chess960,
        Some(other) => bail!("\"chess960\" is {other}; expected true or false"),
    };
    let moves = match object.get("moves") {
        None | Some(Value::Null) => &[][..],
        Some(Value::Array(moves)) => moves,
        Some(other) => bail!("\"moves\" is {other}; expected a list"),
    };
    let mut game = Game::new(position);
    for m in moves {
        let text = m
            .as_str()
            .ok_or_else(|| anyhow!("move {m}; expected a string"))?;
        let m = game.current().parse_uci(text)?;
        game.play(m);
    }
    Ok(Question {
        leaf: Leaf::of_game(Arc::new(game)),
        object,
        chess960,
    })
}

/// Evaluates and writes the lines that were collected, and forgets them.
fn answer(
    group: &mut Vec<Question>,
    evaluator: &mut dyn Evaluator,
    output: &mut Output,
) -> Result<()> {
    if group.is_empty() {
        return Ok(());
    }
    let leaves: Vec<Leaf> = group.iter().map(|question| question.leaf.clone()).collect();
    let mut text = String::new();
    let evaluations = evaluator.evaluate(&leaves, &EvalParams::default())?;
    for (question, evaluation) in group.drain(..).zip(&evaluations) {
        text.push_str(&answered(question, evaluation).to_string());
        text.push('\n');
    }
    output.print(&text)
}

fn answered(question: Question, evaluation: &Evaluation) -> Value {
    let Question {
        mut object,
        leaf,
        chess960,
    } = question;
    let policy = leaf.moves.iter().zip(&evaluation.policy.0);
    let policy = policy
        .map(|(&m, &p)| (leaf.position.move_to_uci(m, chess960), number(p)))
        .collect();
    object.insert("policy".to_owned(), Value::Object(policy));
    object.insert("q".to_owned(), number(evaluation.wdl.q()));
    object.insert("d".to_owned(), number(evaluation.wdl.draw));
    let moves_left = evaluation.moves_left.unwrap_or(0.0);
    object.insert("m".to_owned(), number(moves_left));
    Value::Object(object)
}

/// The shortest decimal that reads back as the same single-precision number.
fn number(x: f32) -> Value {
    let double = x.to_string().parse().unwrap_or(f64::from(x));
    Number::from_f64(double).map_or(Value::Null, Value::Number)
}
