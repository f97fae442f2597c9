//! One declaration per option: name, type, default, range, help. Everything else (the typed
//! struct, TOML keys, flags, UCI lines) follows from the table. Knows nothing else of ours.

mod spec;
mod table;

pub use spec::{Domain, OptionError, Spec, Value};
pub use table::{Options, TABLE};

impl Options {
    /// Finds an option by UCI name (any case, inner spaces collapsed), alias, TOML key or flag.
    ///
    /// # Errors
    /// Names the nearest option.
    pub fn find(name: &str) -> Result<&'static Spec, OptionError> {
        let wanted = spec::normal_name(name);
        TABLE
            .iter()
            .find(|spec| spec.answers_to(&wanted))
            .ok_or_else(|| OptionError::Unknown {
                name: name.trim().to_owned(),
                nearest: spec::nearest(&wanted, TABLE),
            })
    }

    /// Sets an option from text, as setoption, a flag or a TOML value gives it.
    ///
    /// # Errors
    /// Names the option, the value and what was expected; the old value stays.
    pub fn set(&mut self, name: &str, text: &str) -> Result<&'static Spec, OptionError> {
        let spec = Options::find(name)?;
        spec.set_text(self, text)?;
        Ok(spec)
    }

    /// Applies the contents of an `engine.toml`. Nothing is changed if anything in it is wrong.
    ///
    /// # Errors
    /// Names the line of a syntax error, the unknown key and its nearest, or the value refused.
    pub fn apply_toml(&mut self, text: &str) -> Result<(), OptionError> {
        let table: toml::Table = text
            .parse()
            .map_err(|error| OptionError::Toml(toml_problem(text, &error)))?;
        let mut changed = self.clone();
        for (key, value) in &table {
            let spec =
                TABLE
                    .iter()
                    .find(|spec| spec.key == key)
                    .ok_or_else(|| OptionError::Unknown {
                        name: key.clone(),
                        nearest: spec::nearest(&spec::normal_name(key), TABLE),
                    })?;
            let text = match value {
                toml::Value::String(s) => s.clone(),
                toml::Value::Array(_) | toml::Value::Table(_) | toml::Value::Datetime(_) => {
                    return Err(spec.refuse(&value.to_string()));
                }
                other => other.to_string(),
            };
            spec.set_text(&mut changed, &text)?;
        }
        *self = changed;
        Ok(())
    }
}

/// A syntax error in one line.
fn toml_problem(text: &str, error: &toml::de::Error) -> String {
    let message = error.message().replace('\n', " ");
    let before = error.span().and_then(|span| text.get(..span.start));
    match before {
        Some(before) => format!("line {}: {message}", before.matches('\n').count() + 1),
        None => message,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_inside_their_domains_and_can_be_set() {
        let mut options = Options::default();
        for spec in TABLE {
            if matches!(spec.domain, Domain::Button) {
                continue;
            }
            let text = spec.get(&options).to_string();
            assert_eq!(spec.default_text(), text, "{}", spec.uci);
            spec.set_text(&mut options, &text).unwrap();
        }
        assert_eq!(options, Options::default());
    }

    #[test]
    fn bounds_are_accepted_and_what_lies_beyond_is_refused() {
        let mut options = Options::default();
        for spec in TABLE {
            let before = spec.get(&options).to_string();
            match spec.domain {
                Domain::Spin { min, max } => {
                    options.set(spec.uci, &min.to_string()).unwrap();
                    options.set(spec.uci, &max.to_string()).unwrap();
                    let above = (i128::from(max) + 1).to_string();
                    for bad in [above.as_str(), "x", "", "1.5", "NaN"] {
                        assert!(options.set(spec.uci, bad).is_err(), "{} {bad}", spec.uci);
                    }
                }
                Domain::Float { min, max } => {
                    options.set(spec.uci, &min.to_string()).unwrap();
                    options.set(spec.uci, &max.to_string()).unwrap();
                    let above = (max * 2.0 + 1.0).to_string();
                    for bad in [above.as_str(), "x", "", "NaN", "inf", "1.5abc"] {
                        assert!(options.set(spec.uci, bad).is_err(), "{} {bad}", spec.uci);
                    }
                }
                Domain::Check | Domain::Combo(_) => {
                    assert!(options.set(spec.uci, "neither").is_err(), "{}", spec.uci);
                }
                Domain::Text | Domain::Button => {}
            }
            spec.set_text(&mut options, &before).ok();
        }
    }

    #[test]
    fn names_are_unique_and_found_in_any_case() {
        for (i, spec) in TABLE.iter().enumerate() {
            assert_eq!(
                Options::find(&spec.uci.to_uppercase()).unwrap().key,
                spec.key
            );
            assert_eq!(Options::find(spec.key).unwrap().key, spec.key);
            for other in &TABLE[i + 1..] {
                assert_ne!(spec.uci.to_lowercase(), other.uci.to_lowercase());
                assert_ne!(spec.key, other.key);
            }
        }
        assert_eq!(
            Options::find("move   OVERHEAD").unwrap().uci,
            "MoveOverheadMs"
        );
    }

    #[test]
    fn toml_changes_all_or_nothing_and_names_the_nearest_key() {
        let mut options = Options::default();
        options
            .apply_toml("cpuct = 2\nthreads = 1\nweights = \"a b.pb.gz\"")
            .unwrap();
        assert_eq!((options.cpuct, options.threads), (2.0, 1));
        assert_eq!(options.weights, "a b.pb.gz");
        let before = options.clone();
        let error = options.apply_toml("cpuct = 3\nthread = 1").unwrap_err();
        assert!(error.to_string().contains("threads"), "{error}");
        assert!(options.apply_toml("cpuct = 1e9").is_err());
        assert!(options.apply_toml("cpuct = [1]").is_err());
        let error = options.apply_toml("cpuct = 2\ncpuct_base = ").unwrap_err();
        assert!(error.to_string().contains("line 2"), "{error}");
        assert!(!error.to_string().contains('\n'), "{error}");
        assert_eq!(options, before);
    }
}
