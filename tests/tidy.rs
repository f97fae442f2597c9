//! The habits of the tree, kept by reading the source as text: which room may use which, first lines,
//! file lengths, and no panics where bad input can reach. Knows nothing of what the code does.

use std::fs;
use std::path::{Path, PathBuf};

/// Each room and the rooms it may use, in dependency order.
const ROOMS: &[(&str, &[&str])] = &[
    ("options", &[]),
    ("chess", &["options"]),
    ("eval", &["chess", "options"]),
    ("encode", &["chess"]),
    ("model", &["chess", "eval", "encode", "options"]),
    ("search", &["chess", "eval", "options"]),
    (
        "engine",
        &["options", "chess", "eval", "encode", "model", "search"],
    ),
    ("uci", &["engine", "chess", "options"]),
    ("client", &["chess", "options"]),
    (
        "train",
        &[
            "chess", "eval", "encode", "model", "client", "options", "search",
        ],
    ),
    (
        "measure",
        &[
            "options", "chess", "eval", "encode", "model", "search", "engine", "client",
        ],
    ),
];

/// Rooms that text from a user, a GUI or a file reaches: nothing there may panic on purpose.
const NO_PANICS: &[&str] = &["uci", "engine", "options", "chess", "client"];

const LINES: usize = 800;

struct Source {
    /// Relative to the project root, with `/` between names.
    name: String,
    text: String,
}

impl Source {
    fn room(&self) -> Option<&str> {
        let (room, _) = self.name.strip_prefix("src/")?.split_once('/')?;
        Some(room)
    }

    /// Numbered lines of product code: comments cut off, unit tests at the foot left out.
    fn code(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text
            .lines()
            .enumerate()
            .map(|(i, line)| (i + 1, line))
            .take_while(|(_, line)| !line.starts_with("#[cfg(test)]"))
            .map(|(i, line)| match line.trim_start().starts_with("//") {
                true => (i, ""),
                false => (i, line),
            })
    }
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn sources() -> Vec<Source> {
    let mut files = vec![root().join("build.rs")];
    for folder in ["src", "tests", "bench"] {
        collect(&root().join(folder), &mut files);
    }
    files
        .into_iter()
        .map(|path| Source {
            name: path
                .strip_prefix(root())
                .unwrap()
                .to_string_lossy()
                .replace('\\', "/"),
            text: fs::read_to_string(&path).unwrap(),
        })
        .collect()
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    for entry in entries {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|e| e == "rs") {
            files.push(path);
        }
    }
}

fn complain(what: &str, found: Vec<String>) {
    assert!(found.is_empty(), "{what}:\n  {}", found.join("\n  "));
}

/// The rooms that a line of code names after `crate::`, grouped imports included.
fn rooms_named(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (at, path) in text.match_indices("crate::") {
        let rest = &text[at + path.len()..];
        let Some(group) = rest.strip_prefix('{') else {
            found.push((at, identifier(rest)));
            continue;
        };
        let mut depth = 0usize;
        let mut start = true;
        for (i, c) in group.char_indices() {
            match c {
                '{' => depth += 1,
                '}' if depth == 0 => break,
                '}' => depth -= 1,
                ',' if depth == 0 => start = true,
                c if c.is_whitespace() => {}
                _ => {
                    if start {
                        found.push((at, identifier(&group[i..])));
                    }
                    start = false;
                }
            }
        }
    }
    found
}

fn identifier(text: &str) -> String {
    text.chars()
        .take_while(|c| c.is_alphanumeric() || *c == '_')
        .collect()
}

#[test]
fn rooms_use_only_what_the_table_allows() {
    let mut found = Vec::new();
    for source in sources() {
        let Some(room) = source.room() else { continue };
        if room == "cli" {
            continue;
        }
        let Some((_, allowed)) = ROOMS.iter().find(|(name, _)| *name == room) else {
            found.push(format!("{}: room {room} is not in the table", source.name));
            continue;
        };
        let mut starts = Vec::new();
        let mut code = String::new();
        for (number, line) in source.code() {
            starts.push((code.len(), number));
            code.push_str(line);
            code.push('\n');
        }
        for (at, used) in rooms_named(&code) {
            if used != room && !allowed.contains(&used.as_str()) {
                let line = starts[starts.partition_point(|(start, _)| *start <= at) - 1].1;
                found.push(format!("{}:{line}: {room} uses {used}", source.name));
            }
        }
    }
    complain("rooms that use what the table forbids", found);
}

#[test]
fn grouped_imports_are_seen() {
    let text = "use crate::{chess::{Game, Move}, eval, model::x};\ncrate::uci::run()";
    let names: Vec<String> = rooms_named(text)
        .into_iter()
        .map(|(_, name)| name)
        .collect();
    assert_eq!(names, ["chess", "eval", "model", "uci"]);
}

#[test]
fn tensors_stay_below_the_line() {
    let mut found = Vec::new();
    for source in sources() {
        let above = [
            "options", "chess", "eval", "encode", "search", "uci", "client",
        ];
        if !source.room().is_some_and(|room| above.contains(&room)) {
            continue;
        }
        for (number, line) in source.code() {
            let names_tch = line.match_indices("tch::").any(|(at, _)| {
                let before = line[..at].chars().next_back();
                !before.is_some_and(|c| c.is_alphanumeric() || c == '_')
            });
            if names_tch {
                found.push(format!("{}:{number}", source.name));
            }
        }
    }
    complain("tch used above the line", found);
}

#[test]
fn every_file_says_what_it_is() {
    let found = sources()
        .into_iter()
        .filter(|source| !source.text.starts_with("//! "))
        .map(|source| source.name)
        .collect();
    complain("files whose first line is not a //! line", found);
}

#[test]
fn files_stay_readable() {
    let found = sources()
        .into_iter()
        .map(|source| (source.text.lines().count(), source.name))
        .filter(|(lines, _)| *lines > LINES)
        .map(|(lines, name)| format!("{name}: {lines} lines"))
        .collect();
    complain("files of more than 800 lines", found);
}

#[test]
fn nothing_is_left_for_later() {
    let words = [
        concat!("TO", "DO"),
        concat!("FIX", "ME"),
        concat!("todo", "!("),
        concat!("unimplemented", "!("),
        concat!("dbg", "!("),
    ];
    let mut found = Vec::new();
    for source in sources() {
        for (i, line) in source.text.lines().enumerate() {
            if words.iter().any(|word| line.contains(word)) {
                found.push(format!("{}:{}: {}", source.name, i + 1, line.trim()));
            }
        }
    }
    complain("left for later", found);
}

/// A panic that cannot happen is allowed where the line before says why (`// Cannot fail: ...`).
#[test]
fn input_cannot_panic() {
    let words = [".unwrap()", ".expect(", "panic!(", "unreachable!("];
    let mut found = Vec::new();
    for source in sources() {
        if !source.room().is_some_and(|room| NO_PANICS.contains(&room)) {
            continue;
        }
        let mut before = "";
        for ((number, code), line) in source.code().zip(source.text.lines()) {
            if words.iter().any(|word| code.contains(word)) && !before.contains("Cannot fail") {
                found.push(format!("{}:{number}: {}", source.name, line.trim()));
            }
            before = line;
        }
    }
    complain("panics where input can reach", found);
}
