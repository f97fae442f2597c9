//! `--engine cmd=… name=… nodes=…`: one engine of a match in key=value words. Turns words into a
//! [`Contestant`]; starts nothing.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};

use crate::client::EngineConfig;
use crate::measure::clock;
use crate::measure::matches::{Contestant, Pace};

/// The keys, for messages and `--help`.
pub const KEYS: &str = "\
cmd=PROGRAM       the engine; \"self\" (or no cmd) is this very binary
name=NAME         its name in results and PGN; default: what it calls itself
args=\"A B\"        its arguments, quoted as for a shell
dir=DIR           its working directory
env.VAR=VALUE     an environment variable
option.NAME=VALUE a UCI option, may be repeated; a button has an empty value
tc=CONTROL        clock: [MOVES/]TIME[+INCREMENT], seconds or minutes:seconds
st=SECONDS        time for each move
movetime=MS       the same in milliseconds
nodes=N           nodes for each move
depth=N           depth for each move
timemargin=MS     how far time may be overrun, default 50
restart=on|off    start it anew for every game, default off";

/// What a clock may be overrun by. It covers what lies between the two processes and is measured
/// as thinking time: pipes, and on a busy machine the scheduler.
const DEFAULT_MARGIN: Duration = Duration::from_millis(50);

/// Reads the words of `--each` and then of one `--engine`, which win. The name is empty unless given.
///
/// # Errors
/// Names the word and what was expected.
pub fn parse(each: &[String], own: &[String]) -> Result<Contestant> {
    let mut contestant = Contestant {
        name: String::new(),
        engine: EngineConfig {
            command: this_binary()?,
            ..EngineConfig::default()
        },
        pace: Pace {
            margin: DEFAULT_MARGIN,
            ..Pace::default()
        },
        restart: false,
    };
    for word in each.iter().chain(own) {
        set(&mut contestant, word).with_context(|| format!("engine setting {word:?}"))?;
    }
    Ok(contestant)
}

fn set(contestant: &mut Contestant, word: &str) -> Result<()> {
    let (key, value) = word
        .split_once('=')
        .ok_or_else(|| anyhow!("expected KEY=VALUE"))?;
    let Contestant {
        name,
        engine,
        pace,
        restart,
    } = contestant;
    let ms = || {
        value
            .parse()
            .map(Duration::from_millis)
            .context("expected milliseconds")
    };
    match key {
        "cmd" if value.eq_ignore_ascii_case("self") => engine.command = this_binary()?,
        "cmd" if value.is_empty() => bail!("expected a program"),
        "cmd" => engine.command = PathBuf::from(value),
        "name" => name.replace_range(.., value),
        "args" => {
            engine.args = shlex::split(value).ok_or_else(|| anyhow!("a quote is not closed"))?
        }
        "dir" if Path::new(value).is_dir() => engine.dir = Some(PathBuf::from(value)),
        "dir" => bail!("no such directory"),
        "tc" => pace.control = Some(value.parse()?),
        "st" => {
            let time = clock::seconds(value).filter(|time| !time.is_zero());
            pace.move_time = Some(time.context("expected seconds above 0")?);
        }
        "movetime" => pace.move_time = Some(ms()?),
        "nodes" => pace.nodes = Some(value.parse().context("expected a whole number")?),
        "depth" => pace.depth = Some(value.parse().context("expected a whole number")?),
        "timemargin" => pace.margin = ms()?,
        "restart" => {
            *restart = match value {
                "on" | "true" => true,
                "off" | "false" => false,
                _ => bail!("expected on or off"),
            }
        }
        _ => match key.split_once('.') {
            Some(("option", option)) if !option.is_empty() => {
                engine
                    .options
                    .retain(|(known, _)| !known.eq_ignore_ascii_case(option));
                engine.options.push((option.to_owned(), value.to_owned()));
            }
            Some(("env", variable)) if !variable.is_empty() => {
                engine.env.push((variable.to_owned(), value.to_owned()));
            }
            _ => {
                let known = KEYS
                    .lines()
                    .filter_map(|line| line.split('=').next())
                    .collect::<Vec<_>>();
                bail!("unknown key {key:?}, expected one of {}", known.join(", "))
            }
        },
    }
    Ok(())
}

fn this_binary() -> Result<PathBuf> {
    std::env::current_exe().context("cannot tell where this binary is; name an engine with cmd=")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &[&str]) -> Vec<String> {
        text.iter().map(|&word| word.to_owned()).collect()
    }

    #[test]
    fn own_settings_win() {
        let each = words(&["nodes=400", "option.Threads=1", "tc=1+0.01"]);
        let own = words(&[
            "cmd=/bin/x",
            "name=A B",
            "args=-w 'a b'",
            "option.threads=2",
            "nodes=800",
            "timemargin=5",
        ]);
        let contestant = parse(&each, &own).unwrap();
        assert_eq!(contestant.name, "A B");
        assert_eq!(contestant.engine.args, ["-w", "a b"]);
        assert_eq!(
            contestant.engine.options,
            [("threads".to_owned(), "2".to_owned())]
        );
        assert_eq!(contestant.pace.nodes, Some(800));
        assert_eq!(contestant.pace.margin, Duration::from_millis(5));
        assert!(contestant.pace.control.is_some());
    }

    #[test]
    fn bad_words_are_named() {
        for word in [
            "nodes",
            "nodes=x",
            "tc=0",
            "st=0",
            "st=-1",
            "restart=maybe",
            "ponder=on",
            "cmd=",
            "option.=3",
            "args='x",
            "dir=/nowhere/at/all",
            "movetime=1.5",
        ] {
            let error = parse(&[], &words(&[word])).unwrap_err();
            assert!(format!("{error:#}").contains(word), "{error:#}");
        }
    }
}
