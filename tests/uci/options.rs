//! `setoption` and the option list, over the whole table.

use simurgh::engine::settings_text;
use simurgh::options::{Domain, Options, TABLE};

use super::check;
use super::gui::{Gui, best, field, scored};

fn ready() -> Gui {
    let mut gui = Gui::new();
    gui.sync();
    gui
}

#[test]
fn every_option_is_listed_with_its_default_and_range() {
    let mut gui = Gui::new();
    gui.send("uci");
    let listed = gui.until("uciok");
    for spec in TABLE {
        for line in spec.uci_lines() {
            assert!(listed.contains(&line), "{line}");
        }
    }
    for name in [
        "Threads",
        "Hash",
        "Clear Hash",
        "Ponder",
        "MultiPV",
        "Move Overhead",
        "MoveOverheadMs",
        "SyzygyPath",
        "UCI_Chess960",
        "UCI_ShowWDL",
        "UCI_ShowMovesLeft",
        "UCI_AnalyseMode",
        "UCI_Opponent",
        "UCI_RatingAdv",
        "UCI_LimitStrength",
        "UCI_Elo",
        "WeightsFile",
        "Backend",
        "Device",
        "Precision",
        "MinibatchSize",
        "NNCacheSize",
        "VerboseMoveStats",
        "LogFile",
        "FixedNodes",
    ] {
        let start = format!("option name {name} type ");
        assert!(listed.iter().any(|line| line.starts_with(&start)), "{name}");
    }
    gui.quit();
}

/// Options whose values do more than be stored: tried elsewhere.
const WITH_EFFECT: [&str; 5] = ["weights", "backend", "device", "log_file", "syzygy_path"];

#[test]
fn every_option_takes_its_default_and_its_bounds_and_refuses_what_lies_beyond() {
    let mut gui = ready();
    for spec in TABLE {
        if WITH_EFFECT.contains(&spec.key) {
            continue;
        }
        let default = spec.default_text();
        let set = |value: &str| format!("setoption name {} value {value}", spec.uci);
        // The pool and the cache are made for the values at the next isready: bounds are only
        // tried where they cost nothing, and undone before that.
        let refused = |gui: &mut Gui, value: &str| {
            gui.complaint(&set(value), &[spec.uci]);
        };
        match spec.domain {
            Domain::Button => gui.quiet(&format!("setoption name {}", spec.uci)),
            Domain::Check => {
                for value in ["true", "FALSE", "True", &default] {
                    gui.quiet(&set(value));
                }
                refused(&mut gui, "yes");
                refused(&mut gui, "");
            }
            Domain::Spin { min, max } => {
                let sends = [min.to_string(), max.to_string(), default.clone()];
                gui.send(&sends.map(|value| set(&value)).join("\n"));
                for value in ["x", "1.5", "NaN", "", "1e3"] {
                    refused(&mut gui, value);
                }
                refused(&mut gui, &(i128::from(min) - 1).to_string());
                refused(&mut gui, &(i128::from(max) + 1).to_string());
            }
            Domain::Float { min, max } => {
                let sends = [min.to_string(), max.to_string(), default.clone()];
                gui.send(&sends.map(|value| set(&value)).join("\n"));
                for value in ["x", "NaN", "inf", "-inf", "1.5.2", "2abc", ""] {
                    refused(&mut gui, value);
                }
                refused(&mut gui, &(min - 1.0).to_string());
                refused(&mut gui, &(max + 1.0).to_string());
            }
            Domain::Combo(words) => {
                let mut sends: Vec<String> = words.iter().map(|word| set(word)).collect();
                sends.push(set(&default));
                gui.send(&sends.join("\n"));
                refused(&mut gui, "something else");
            }
            Domain::Text => gui.quiet(&set(if default.is_empty() {
                "<empty>"
            } else {
                &default
            })),
        }
    }
    let read = gui.sync();
    assert!(
        !read.iter().any(|line| line.contains("cannot be")),
        "{read:#?}"
    );
    let lines = gui.search("go nodes 10");
    check::search(&lines, &check::game(None, &[]));
    gui.quit();
}

#[test]
fn names_in_any_case_and_spacing() {
    let mut gui = ready();
    gui.quiet("setoption name  multipv   value  2 ");
    let lines = gui.search("go nodes 20");
    assert!(
        lines.iter().any(|line| line.contains(" multipv 2 ")),
        "{lines:#?}"
    );
    gui.quiet("setoption name MULTIPV value 1");
    gui.quiet("setoption name clear    hash");
    gui.quiet("setoption name Clear Hash value");
    gui.quiet("setoption name move overhead value 50");
    gui.complaint("setoption", &["setoption name NAME"]);
    gui.complaint("setoption name", &["setoption name NAME"]);
    gui.complaint("setoption Hash value 3", &["setoption name NAME"]);
    gui.complaint(
        "setoption name Nothing value 3",
        &["unknown option", "Nothing"],
    );
    gui.complaint("setoption name MultiPV", &["MultiPV", "whole number"]);
    gui.quit();
}

#[test]
fn a_refused_value_leaves_the_old_one() {
    let mut gui = ready();
    gui.quiet("setoption name MultiPV value 3");
    for value in ["0", "501", "x", "nan", "", "99999999999999999999"] {
        gui.complaint(
            &format!("setoption name MultiPV value {value}"),
            &["MultiPV", "1 to 500"],
        );
    }
    let lines = gui.search("go nodes 50");
    assert!(
        lines.iter().any(|line| line.contains(" multipv 3 ")),
        "{lines:#?}"
    );
    gui.quit();
}

#[test]
fn a_bad_network_file_is_one_line_and_the_old_network_stays() {
    let mut gui = ready();
    gui.ask("setoption name Backend value auto");
    let path = std::env::temp_dir().join(format!("simurgh net {}.pb", std::process::id()));
    std::fs::write(&path, b"this is no network").unwrap();
    for wrong in ["/no/such/file.pb.gz", path.to_str().unwrap()] {
        gui.send(&format!("setoption name WeightsFile value {wrong}"));
        let read = gui.sync();
        assert_eq!(read.len(), 1, "{read:#?}");
        assert!(
            read[0].starts_with("info string ") && read[0].contains(wrong),
            "{read:#?}"
        );
        // Said once, not at every isready.
        assert_eq!(gui.sync(), [""; 0]);
        let lines = gui.search("go nodes 10");
        check::search(&lines, &check::game(None, &[]));
    }
    let _ = std::fs::remove_file(&path);
    gui.quit();
}

#[test]
fn no_network_at_all_still_answers() {
    let mut gui = Gui::with(&["--weights", "/no/such/file.pb.gz"]);
    gui.send("uci");
    gui.until("uciok");
    let lines = gui.search("go nodes 10");
    assert!(
        lines
            .iter()
            .any(|line| line.contains("/no/such/file.pb.gz")),
        "{lines:#?}"
    );
    check::search(&lines, &check::game(None, &[]));
    gui.quit();
}

#[test]
fn fixed_nodes_replaces_what_the_gui_asks_for() {
    let mut gui = ready();
    gui.quiet("setoption name FixedNodes value 7");
    for go in [
        "go",
        "go nodes 5000",
        "go wtime 600000 btime 600000",
        "go depth 30",
    ] {
        gui.quiet("ucinewgame");
        let lines = gui.search(go);
        let last = scored(&lines).pop().unwrap().clone();
        assert_eq!(field(&last, "nodes"), Some("7"), "{go}: {lines:#?}");
    }
    gui.quiet("setoption name FixedNodes value 0");
    gui.quiet("ucinewgame");
    let lines = gui.search("go nodes 50");
    assert_ne!(field(scored(&lines).pop().unwrap(), "nodes"), Some("7"));
    gui.quit();
}

#[test]
fn a_strength_limit_still_plays_legal_moves() {
    let mut gui = ready();
    gui.quiet("setoption name UCI_LimitStrength value true");
    for elo in [500, 1500, 3000] {
        gui.quiet(&format!("setoption name UCI_Elo value {elo}"));
        let lines = gui.search("go nodes 200");
        assert!(
            check::game(None, &[])
                .current()
                .parse_uci(&best(&lines))
                .is_ok(),
            "{lines:#?}"
        );
    }
    gui.complaint("setoption name UCI_Elo value 100", &["UCI_Elo"]);
    gui.quit();
}

#[test]
fn empty_tablebase_paths_are_harmless() {
    let mut gui = ready();
    gui.quiet("setoption name SyzygyPath value <empty>");
    gui.quiet("setoption name SyzygyPath value");
    let separator = if cfg!(windows) { ";" } else { ":" };
    gui.ask(&format!(
        "setoption name SyzygyPath value {separator}{separator}"
    ));
    gui.ask(&format!(
        "setoption name SyzygyPath value /no/such{separator}{separator}/folder"
    ));
    let lines = gui.search("go nodes 10");
    check::search(&lines, &check::game(None, &[]));
    gui.quit();
}

#[test]
fn engine_toml_lists_every_option_as_it_is_declared() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("engine.toml");
    let text = std::fs::read_to_string(path).unwrap();
    assert!(
        text == settings_text(),
        "write it anew: simurgh describe --toml > engine.toml"
    );
    // Without the comment signs it is a valid file that changes nothing.
    let active: String = text
        .lines()
        .filter_map(|line| line.strip_prefix("# "))
        .filter(|line| line.split(' ').nth(1) == Some("="))
        .flat_map(|line| [line, "\n"])
        .collect();
    let mut options = Options::default();
    options.apply_toml(&active).unwrap();
    assert_eq!(options, Options::default());
    for spec in TABLE.iter().filter(|spec| spec.domain != Domain::Button) {
        assert!(active.contains(&format!("{} = ", spec.key)), "{}", spec.key);
    }
}
