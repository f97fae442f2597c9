//! `simurgh describe`: what a network file is, and the table of all options. Runs nothing.

use anyhow::{Result, anyhow};
use clap::Args;

use super::stdout;
use crate::engine::settings_text;
use crate::model::{
    AnyFile, Body, GptFile, ModelOptions, NetworkFile, NetworkWeights, Policy, Source,
    TransformerFile,
};
use crate::options::{Domain, Options, TABLE};

/// What a network file is; the table of all options.
#[derive(Args)]
pub struct Describe {
    /// List every option: flag, TOML key, UCI name, values, default.
    #[arg(long)]
    options: bool,
    /// Print an engine.toml with every option and its default.
    #[arg(long)]
    toml: bool,
}

/// Prints the option table, the network, or both.
pub fn run(args: &Describe, options: &Options) -> Result<()> {
    if args.toml {
        return Ok(stdout::print(&settings_text())?);
    }
    if args.options {
        stdout::print(&option_list())?;
    }
    match Source::of_options(options) {
        Some(source) if !args.options || !options.weights.is_empty() => {
            describe_network(&source, options)
        }
        None if !args.options => Err(anyhow!("no network: name one with --weights")),
        _ => Ok(()),
    }
}

fn option_list() -> String {
    let mut lines = Vec::new();
    for spec in TABLE {
        let default = match spec.default_text() {
            text if text.is_empty() => "nothing".to_owned(),
            text => text,
        };
        if matches!(spec.domain, Domain::Button) {
            lines.push(format!("{} (UCI button)", spec.uci));
        } else {
            lines.push(format!(
                "--{}, {} in engine.toml, {} under UCI: {}; default {default}",
                spec.flag(),
                spec.key,
                spec.uci,
                spec.expected(),
            ));
        }
        lines.push(format!("    {}", spec.help));
    }
    lines.push(String::new());
    lines.join("\n")
}

fn describe_network(source: &Source, options: &Options) -> Result<()> {
    match AnyFile::read(source)? {
        AnyFile::Lc0(file) => describe_lc0(&file, options),
        AnyFile::Transformer(file) => describe_transformer(&file),
        AnyFile::Gpt(file) => describe_gpt(&file),
    }
}

fn describe_gpt(file: &GptFile) -> Result<()> {
    let config = &file.config;
    let mut text = format!(
        "network:      {}\nbody:         GPT of {} blocks, width {}, {} heads, context {}, positions {:?}\n\n\
         parameters               in the file  by formula\n",
        file.name, config.layers, config.width, config.heads, config.context, config.positions,
    );
    for group in config.groups() {
        text += &format!(
            "{:<24} {:>11} {:>11}\n",
            group.name, group.counted, group.formula
        );
    }
    text += &manifest(&file.manifest);
    Ok(stdout::print(&text)?)
}

/// What a file says of its making, a line each.
fn manifest(manifest: &serde_json::Value) -> String {
    let mut lines = String::new();
    for (key, value) in manifest.as_object().into_iter().flatten() {
        let text = value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned);
        lines += &format!("{:<14}{text}\n", format!("{key}:"));
    }
    lines
}

fn describe_transformer(file: &TransformerFile) -> Result<()> {
    let config = &file.config;
    let mut lines = String::new();
    let mut line =
        |what: &str, text: String| lines.push_str(&format!("{:<14}{text}\n", format!("{what}:")));
    line("network", file.name.clone());
    line("parameters", file.parameters().to_string());
    line(
        "body",
        format!(
            "transformer of {} layers, width {}, {} heads of depth {}, feed-forward {} {:?}",
            config.layers,
            config.width,
            config.heads,
            config.head_depth,
            config.ff,
            config.activation,
        ),
    );
    line(
        "norms",
        format!(
            "{:?}, {:?}; attention bias {:?}",
            config.norm, config.norm_kind, config.attention_bias
        ),
    );
    line("value", format!("win, draw, loss from {:?}", config.value));
    line(
        "moves left",
        if config.moves_left { "yes" } else { "no" }.to_owned(),
    );
    lines += &manifest(&file.manifest);
    Ok(stdout::print(&lines)?)
}

fn describe_lc0(file: &NetworkFile, options: &Options) -> Result<()> {
    let choices = ModelOptions::new(options)?;
    let weights = file.weights(choices.policy_head, choices.value_head)?;
    let format = &weights.format;
    let mut lines = String::new();
    let mut line =
        |what: &str, text: String| lines.push_str(&format!("{:<14}{text}\n", format!("{what}:")));
    line("network", weights.name.clone());
    line("parameters", weights.parameters().to_string());
    line("body", body(&weights));
    line(
        "input",
        format!("{:?}, history fill {}", format.input, options.history_fill),
    );
    let heads: Vec<&str> = file.policy_heads().iter().map(|head| head.name()).collect();
    line(
        "policy",
        format!("{}; heads: {}", policy(&weights.policy), heads.join(", ")),
    );
    let heads: Vec<&str> = file.value_heads().iter().map(|head| head.name()).collect();
    let value = if format.wdl {
        "win, draw, loss"
    } else {
        "one value (tanh)"
    };
    line("value", format!("{value}; heads: {}", heads.join(", ")));
    line(
        "moves left",
        if format.moves_left { "yes" } else { "no" }.to_owned(),
    );
    line("activation", format!("{:?}", format.default_activation));
    if let Some((major, minor, patch)) = file.min_version() {
        line("made for", format!("Lc0 {major}.{minor}.{patch} or later"));
    }
    if let Some(license) = file.license() {
        line("licence", license);
    }
    Ok(stdout::print(&lines)?)
}

fn body(weights: &NetworkWeights) -> String {
    match &weights.body {
        Body::Tower(tower) => format!(
            "tower of {} residual blocks, {} channels, {}",
            tower.blocks.len(),
            tower.input.outputs,
            match tower
                .blocks
                .iter()
                .filter(|block| block.se.is_some())
                .count()
            {
                0 => "no squeeze-and-excitation".to_owned(),
                count => format!("squeeze-and-excitation in {count}"),
            }
        ),
        Body::Attention(body) => {
            let encoder = body.encoders.first();
            format!(
                "{}{} encoder layers, width {}, {} heads, {:?} embedding, {}; feed-forward {:?}",
                match &body.tower {
                    Some(tower) => format!("{} residual blocks, then ", tower.blocks.len()),
                    None => String::new(),
                },
                body.encoders.len(),
                body.embedding.outputs,
                encoder.map_or(0, |encoder| encoder.heads),
                weights.format.embedding,
                match encoder.and_then(|encoder| encoder.smolgen.as_ref()) {
                    Some(_) => format!("smolgen {:?}", weights.format.smolgen_activation),
                    None => "no smolgen".to_owned(),
                },
                weights.format.ffn_activation,
            )
        }
    }
}

fn policy(policy: &Policy) -> String {
    match policy {
        Policy::Flat { .. } => "flat".to_owned(),
        Policy::Convolution { .. } => "convolution".to_owned(),
        Policy::Attention(policy) => format!(
            "attention, width {}, {} encoder layers",
            policy.embedding.outputs,
            policy.encoders.len()
        ),
    }
}
