//! What an option is: its names, its domain, its checks. Knows no particular option.

use std::fmt;

use thiserror::Error;

use super::table::Options;

/// What values an option takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Domain {
    /// true or false.
    Check,
    /// A whole number, bounds included.
    Spin {
        /// Smallest value.
        min: i64,
        /// Largest value.
        max: i64,
    },
    /// A decimal number, bounds included; UCI has no such type, so it is listed as a string.
    Float {
        /// Smallest value.
        min: f64,
        /// Largest value.
        max: f64,
    },
    /// Any text, inner spaces kept.
    Text,
    /// One of a list of words.
    Combo(&'static [&'static str]),
    /// No value: it does something.
    Button,
}

/// A value of any option.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Of a check.
    Bool(bool),
    /// Of a spin.
    Int(i64),
    /// Of a float.
    Float(f64),
    /// Of a text or combo.
    Text(String),
    /// Of a button.
    None,
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Bool(b) => write!(f, "{b}"),
            Value::Int(n) => write!(f, "{n}"),
            Value::Float(x) => write!(f, "{x}"),
            Value::Text(s) => f.write_str(s),
            Value::None => Ok(()),
        }
    }
}

/// Why an option could not be set.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum OptionError {
    /// No such option.
    #[error("unknown option '{name}'; {}", meant(nearest))]
    Unknown {
        /// What was asked for.
        name: String,
        /// What may have been meant.
        nearest: Option<&'static str>,
    },
    /// A value outside the option's domain.
    #[error("option {name} cannot be '{value}': expected {expected}")]
    Value {
        /// The option.
        name: &'static str,
        /// What it was to be set to.
        value: String,
        /// What it can be.
        expected: String,
    },
    /// Not TOML.
    #[error("not valid TOML: {0}")]
    Toml(String),
}

/// One option.
pub struct Spec {
    /// Field, TOML key, and the flag with dashes.
    pub key: &'static str,
    /// Name under UCI.
    pub uci: &'static str,
    /// Other UCI names of the same option; listed under UCI too.
    pub aliases: &'static [&'static str],
    /// What values it takes.
    pub domain: Domain,
    /// One or two sentences for people.
    pub help: &'static str,
    pub(super) default: fn() -> Value,
    pub(super) get: fn(&Options) -> Value,
    pub(super) set: fn(&mut Options, Value),
}

impl Spec {
    /// The command-line flag without its dashes: the key in kebab-case.
    pub fn flag(&self) -> String {
        self.key.replace('_', "-")
    }

    /// The default as text.
    pub fn default_text(&self) -> String {
        (self.default)().to_string()
    }

    /// The value in `options`.
    pub fn get(&self, options: &Options) -> Value {
        (self.get)(options)
    }

    /// Sets the value in `options` from text; empty and `<empty>` both mean empty text.
    ///
    /// # Errors
    /// When the text is not in the domain; then nothing changes.
    pub fn set_text(&self, options: &mut Options, text: &str) -> Result<(), OptionError> {
        let value = self.parse(text).ok_or_else(|| self.refuse(text))?;
        (self.set)(options, value);
        Ok(())
    }

    pub(super) fn refuse(&self, value: &str) -> OptionError {
        OptionError::Value {
            name: self.uci,
            value: value.to_owned(),
            expected: self.expected(),
        }
    }

    /// What values the option takes, in words.
    pub fn expected(&self) -> String {
        match self.domain {
            Domain::Check => "true or false".to_owned(),
            Domain::Spin { min, max } => format!("a whole number from {min} to {max}"),
            Domain::Float { min, max } => format!("a number from {min} to {max}"),
            Domain::Text => "text".to_owned(),
            Domain::Combo(words) => format!("one of {}", words.join(", ")),
            Domain::Button => "no value".to_owned(),
        }
    }

    fn parse(&self, text: &str) -> Option<Value> {
        let text = text.trim();
        match self.domain {
            Domain::Check => match text.to_ascii_lowercase().as_str() {
                "true" => Some(Value::Bool(true)),
                "false" => Some(Value::Bool(false)),
                _ => None,
            },
            Domain::Spin { min, max } => {
                let n = text.parse().ok()?;
                (min..=max).contains(&n).then_some(Value::Int(n))
            }
            Domain::Float { min, max } => {
                let x: f64 = text.parse().ok()?;
                (min..=max).contains(&x).then_some(Value::Float(x))
            }
            Domain::Text if text == "<empty>" => Some(Value::Text(String::new())),
            Domain::Text => Some(Value::Text(text.to_owned())),
            Domain::Combo(words) => words
                .iter()
                .find(|word| word.eq_ignore_ascii_case(text))
                .map(|word| Value::Text((*word).to_owned())),
            Domain::Button => Some(Value::None),
        }
    }

    pub(super) fn answers_to(&self, wanted: &str) -> bool {
        normal_name(self.uci) == wanted
            || self.key == wanted
            || self.flag() == wanted
            || self.aliases.iter().any(|a| normal_name(a) == wanted)
    }

    /// The line that lists the option under UCI, once for its name and once for each alias.
    pub fn uci_lines(&self) -> Vec<String> {
        let default = match self.default_text() {
            text if text.is_empty() => "<empty>".to_owned(),
            text => text,
        };
        let kind = match self.domain {
            Domain::Check => format!("check default {default}"),
            Domain::Spin { min, max } => format!("spin default {default} min {min} max {max}"),
            Domain::Float { .. } | Domain::Text => format!("string default {default}"),
            Domain::Combo(words) => {
                format!("combo default {default} var {}", words.join(" var "))
            }
            Domain::Button => "button".to_owned(),
        };
        std::iter::once(&self.uci)
            .chain(self.aliases)
            .map(|name| format!("option name {name} type {kind}"))
            .collect()
    }
}

/// Lower case, inner white space collapsed.
pub(super) fn normal_name(name: &str) -> String {
    let words: Vec<String> = name
        .split_whitespace()
        .map(str::to_ascii_lowercase)
        .collect();
    words.join(" ")
}

/// The UCI name, or for a key-like name the key, with the smallest edit distance.
pub(super) fn nearest(wanted: &str, table: &'static [Spec]) -> Option<&'static str> {
    let names = table.iter().flat_map(|spec| [spec.key, spec.uci]);
    let far = |name: &&str| edit_distance(&normal_name(name), wanted);
    let name = names.min_by_key(far)?;
    // What shares less than two thirds of its letters was not meant.
    (far(&name) * 3 <= wanted.chars().count()).then_some(name)
}

fn meant(nearest: &Option<&str>) -> String {
    match nearest {
        Some(name) => format!("the nearest one is '{name}'"),
        None => "simurgh describe --options lists them".to_owned(),
    }
}

fn edit_distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().take(64).collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, cb) in b.iter().enumerate() {
            let substituted = diagonal + usize::from(ca != *cb);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(row[j] + 1).min(row[j + 1] + 1);
        }
    }
    row[b.len()]
}

pub(super) trait OptionValue: Sized {
    fn into_value(self) -> Value;
    fn from_value(value: Value) -> Option<Self>;
}

macro_rules! option_value {
    ($type:ty, $variant:ident) => {
        impl OptionValue for $type {
            fn into_value(self) -> Value {
                Value::$variant(self)
            }
            fn from_value(value: Value) -> Option<Self> {
                match value {
                    Value::$variant(inner) => Some(inner),
                    _ => None,
                }
            }
        }
    };
}

option_value!(bool, Bool);
option_value!(i64, Int);
option_value!(f64, Float);
option_value!(String, Text);

impl OptionValue for () {
    fn into_value(self) -> Value {
        Value::None
    }
    fn from_value(_: Value) -> Option<Self> {
        Some(())
    }
}
