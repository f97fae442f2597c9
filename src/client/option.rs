//! `option name … type …` lines of a foreign engine. Parses and checks values; sends nothing.

use std::str::FromStr;

/// One option an engine lists in its handshake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EngineOption {
    /// Its name as printed, inner spaces collapsed.
    pub name: String,
    /// Type, default and range.
    pub kind: OptionKind,
}

/// The type of an option with its default and what it accepts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OptionKind {
    /// `true` or `false`.
    Check {
        /// Absent if the engine names none.
        default: Option<bool>,
    },
    /// An integer.
    Spin {
        /// Absent if the engine names none.
        default: Option<i64>,
        /// Smallest value accepted.
        min: Option<i64>,
        /// Largest value accepted.
        max: Option<i64>,
    },
    /// One of a list.
    Combo {
        /// Absent if the engine names none.
        default: Option<String>,
        /// The list.
        values: Vec<String>,
    },
    /// A command without a value.
    Button,
    /// Any text; the empty text is written `<empty>`.
    Text {
        /// Absent if the engine names none.
        default: Option<String>,
    },
}

/// Why a line is not an option, or a value not acceptable to one.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum OptionError {
    /// Not `option name N type T …`.
    #[error("malformed option line, {0}")]
    Malformed(String),
    /// A value outside what the engine says it accepts.
    #[error("option {name}: value {value:?} refused, expected {expected}")]
    Value {
        /// The option.
        name: String,
        /// The value given.
        value: String,
        /// What would do.
        expected: String,
    },
}

impl FromStr for EngineOption {
    type Err = OptionError;

    fn from_str(line: &str) -> Result<Self, OptionError> {
        let malformed = |what: &str| OptionError::Malformed(what.to_owned());
        let mut words = line.split_whitespace();
        if words.next() != Some("option") || words.next() != Some("name") {
            return Err(malformed("expected \"option name\""));
        }
        let mut name = Vec::new();
        loop {
            match words.next() {
                Some("type") => break,
                Some(word) => name.push(word),
                None => return Err(malformed("expected \"type\" after the name")),
            }
        }
        if name.is_empty() {
            return Err(malformed("the name is empty"));
        }
        let kind = words
            .next()
            .ok_or_else(|| malformed("the type is missing"))?;

        let mut fields: Vec<(&str, Vec<&str>)> = Vec::new();
        for word in words {
            match (word, fields.last_mut()) {
                ("default" | "min" | "max" | "var", _) => fields.push((word, Vec::new())),
                (_, Some((_, value))) => value.push(word),
                (_, None) => return Err(malformed(&format!("unexpected {word:?} after the type"))),
            }
        }
        let field = |key: &str| {
            fields
                .iter()
                .find(|(name, _)| *name == key)
                .map(|(_, value)| value.join(" "))
        };
        let number = |key: &str| match field(key) {
            None => Ok(None),
            Some(text) => text
                .parse()
                .map(Some)
                .map_err(|_| malformed(&format!("{key} {text:?} is not a whole number"))),
        };
        let kind = match kind {
            "check" => OptionKind::Check {
                default: field("default").map(|value| value == "true"),
            },
            "spin" => OptionKind::Spin {
                default: number("default")?,
                min: number("min")?,
                max: number("max")?,
            },
            "combo" => OptionKind::Combo {
                default: field("default"),
                values: fields
                    .iter()
                    .filter(|(key, _)| *key == "var")
                    .map(|(_, value)| value.join(" "))
                    .collect(),
            },
            "button" => OptionKind::Button,
            "string" => OptionKind::Text {
                default: field("default").map(|text| match text.as_str() {
                    "<empty>" => String::new(),
                    _ => text,
                }),
            },
            other => return Err(malformed(&format!("unknown type {other:?}"))),
        };
        Ok(Self {
            name: name.join(" "),
            kind,
        })
    }
}

impl EngineOption {
    /// Whether the engine says it takes this value.
    ///
    /// # Errors
    /// Names the option, the value and what would do.
    pub fn check(&self, value: &str) -> Result<(), OptionError> {
        let expected = match &self.kind {
            OptionKind::Check { .. } => match value.to_ascii_lowercase().as_str() {
                "true" | "false" => return Ok(()),
                _ => "true or false".to_owned(),
            },
            OptionKind::Spin { min, max, .. } => {
                let (min, max) = (min.unwrap_or(i64::MIN), max.unwrap_or(i64::MAX));
                match value.parse::<i64>() {
                    Ok(number) if (min..=max).contains(&number) => return Ok(()),
                    _ => format!("a whole number from {min} to {max}"),
                }
            }
            OptionKind::Combo { values, .. } => {
                if values.iter().any(|known| known.eq_ignore_ascii_case(value)) {
                    return Ok(());
                }
                format!("one of {}", values.join(", "))
            }
            OptionKind::Button | OptionKind::Text { .. } => return Ok(()),
        };
        Err(OptionError::Value {
            name: self.name.clone(),
            value: value.to_owned(),
            expected,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type() {
        let spin: EngineOption = "option name Move  Overhead type spin default 10 min 0 max 5000"
            .parse()
            .unwrap();
        assert_eq!(spin.name, "Move Overhead");
        assert!(spin.check("5000").is_ok());
        assert!(spin.check("5001").is_err());
        assert!(spin.check("1.5").is_err());

        let combo: EngineOption =
            "option name Style type combo default Very Solid var Very Solid var Risky"
                .parse()
                .unwrap();
        let OptionKind::Combo { default, values } = &combo.kind else {
            panic!("{combo:?}")
        };
        assert_eq!(default.as_deref(), Some("Very Solid"));
        assert_eq!(values, &["Very Solid", "Risky"]);
        assert!(combo.check("risky").is_ok());
        assert!(combo.check("wild").is_err());

        let text: EngineOption = "option name Path type string default <empty>"
            .parse()
            .unwrap();
        assert_eq!(
            text.kind,
            OptionKind::Text {
                default: Some(String::new())
            }
        );
        let button: EngineOption = "option name Clear Hash type button".parse().unwrap();
        assert_eq!(button.kind, OptionKind::Button);
        let check: EngineOption = "option name Ponder type check default false"
            .parse()
            .unwrap();
        assert_eq!(
            check.kind,
            OptionKind::Check {
                default: Some(false)
            }
        );
        assert!(check.check("True").is_ok());
        assert!(check.check("yes").is_err());
    }

    #[test]
    fn malformed_lines_are_named() {
        for line in [
            "option",
            "option name",
            "option name X",
            "option name type spin",
            "option name X type",
            "option name X type float default 1",
            "option name X type spin default one",
            "option name X type spin 3",
        ] {
            assert!(line.parse::<EngineOption>().is_err(), "{line}");
        }
    }
}
