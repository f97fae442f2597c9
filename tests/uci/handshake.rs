//! Start, handshake, strange input and the end of the process.

use std::io::Write;
use std::process::Stdio;
use std::time::Duration;

use super::gui::{Gui, program};

#[test]
fn uci_is_answered_at_once_and_may_come_twice() {
    let mut gui = Gui::new();
    for _ in 0..2 {
        gui.send("uci");
        let read = gui.until("uciok");
        assert!(read[0].starts_with("id name Simurgh"), "{read:#?}");
        assert!(read[1].starts_with("id author "), "{read:#?}");
        assert!(
            read[2..read.len() - 1]
                .iter()
                .all(|line| line.starts_with("option name "))
        );
    }
    gui.send("isready");
    assert_eq!(gui.until("readyok").pop().unwrap(), "readyok");
    assert_eq!(gui.quit(), [""; 0]);
}

#[test]
fn isready_comes_in_any_state_and_disturbs_no_search() {
    let mut gui = Gui::new();
    gui.sync();
    gui.send("go infinite");
    for _ in 0..3 {
        let read = gui.sync();
        assert!(
            !read.iter().any(|line| line.starts_with("bestmove")),
            "{read:#?}"
        );
    }
    gui.send("stop");
    gui.until("bestmove");
    gui.send("go ponder wtime 1000 btime 1000");
    let read = gui.sync();
    assert!(
        !read.iter().any(|line| line.starts_with("bestmove")),
        "{read:#?}"
    );
    gui.send("stop");
    gui.until("bestmove");
    gui.quit();
}

#[test]
fn strange_bytes_are_read_as_lines() {
    let mut gui = Gui::new();
    gui.sync();
    gui.send_bytes(b"\xef\xbb\xbf  isready\r\n");
    assert_eq!(gui.until("readyok").len(), 1);
    gui.send_bytes(b"\0isready\0\n\tisready\t\n\n   \n\r\n");
    gui.until("readyok");
    assert_eq!(gui.until("readyok").len(), 1);
    gui.send_bytes(b"\xff\xfe\x80garbage\x07\x1b[2J\n");
    let read = gui.sync();
    assert_eq!(read.len(), 1, "{read:#?}");
    assert!(
        read[0].starts_with("info string unknown command"),
        "{read:#?}"
    );
    assert!(!read[0].contains(|c: char| c.is_control()), "{read:#?}");
    gui.quit();
}

#[test]
fn very_long_lines_end_nothing() {
    let mut gui = Gui::new();
    gui.sync();
    for length in [10_000, 500_000, 3_000_000] {
        let read = gui.ask(&"x".repeat(length));
        assert_eq!(read.len(), 1);
        assert!(
            read[0].starts_with("info string ") && read[0].len() < 300,
            "{:?}",
            read[0]
        );
    }
    let shuffle = " g1f3 g8f6 f3g1 f6g8".repeat(400);
    assert_eq!(
        gui.ask(&format!("position startpos moves{shuffle}")),
        [""; 0]
    );
    gui.search("go nodes 10");
    gui.quit();
}

#[test]
fn unknown_commands_get_one_line_each() {
    let mut gui = Gui::new();
    gui.sync();
    gui.complaint("xyzzy", &["unknown command", "xyzzy"]);
    gui.complaint("joho debug on", &["unknown command", "joho debug on"]);
    gui.complaint("ISREADY", &["unknown command"]);
    gui.complaint("debug maybe", &["debug", "on or off", "maybe"]);
    gui.complaint("perft", &["perft", "depth"]);
    gui.complaint("genfens 3", &["genfens"]);
    gui.quiet("debug on");
    gui.quiet("debug off");
    gui.quiet("register later");
    gui.quiet("stop");
    gui.quiet("ponderhit");
    gui.quiet("");
    gui.quit();
}

#[test]
fn quit_and_end_of_input_end_the_process_in_any_state() {
    for last in [
        "",
        "isready",
        "go infinite",
        "go ponder",
        "go nodes 100000000",
        "perft 9",
    ] {
        for close in [false, true] {
            let mut gui = Gui::new();
            gui.sync();
            if !last.is_empty() {
                gui.send(last);
            }
            let read = if close {
                gui.close();
                gui.ends()
            } else {
                gui.quit()
            };
            let bestmoves = read
                .iter()
                .filter(|line| line.starts_with("bestmove"))
                .count();
            let expected = usize::from(last.starts_with("go"));
            assert_eq!(bestmoves, expected, "{last:?}, close {close}: {read:#?}");
        }
    }
}

#[test]
fn input_that_ends_at_once_is_worked_off_first() {
    let mut child = program(&["--backend", "material", "--threads", "1"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(b"position startpos moves e2e4\ngo nodes 20")
        .unwrap();
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(text.matches("bestmove ").count(), 1, "{text}");
}

#[test]
fn a_reader_that_goes_away_ends_the_process_quietly() {
    let mut child = program(&["--backend", "material", "--threads", "1"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let mut stdin = child.stdin.take().unwrap();
    let _ = stdin.write_all(b"uci\nisready\ngo infinite\n");
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    drop(stdin);
}

#[test]
fn arguments_are_commands() {
    let run = |arguments: &[&str]| {
        let output = program(arguments).stdin(Stdio::null()).output().unwrap();
        (
            output.status.code(),
            String::from_utf8(output.stdout).unwrap(),
        )
    };
    let (code, text) = run(&["genfens 10 seed 42 book None", "quit"]);
    assert_eq!(code, Some(0));
    let fens: Vec<&str> = text
        .lines()
        .map(|line| line.strip_prefix("info string genfens ").unwrap())
        .collect();
    assert_eq!(fens.len(), 10);
    for fen in fens {
        let (position, repairs) = simurgh::chess::Position::from_fen(fen).unwrap();
        assert!(
            repairs.is_empty() && !position.legal_moves().is_empty(),
            "{fen}"
        );
    }
    assert_eq!(run(&["genfens 10 seed 42 book None", "quit"]).1, text);
    assert_ne!(run(&["genfens 10 seed 43 book None", "quit"]).1, text);
    let (code, text) = run(&["--backend", "material", "go nodes 20", "quit"]);
    assert_eq!(
        (code, text.matches("bestmove ").count()),
        (Some(0), 1),
        "{text}"
    );
    let (code, text) = run(&["go", "perft", "2", "quit"]);
    assert_eq!(code, Some(0));
    assert!(text.contains("Nodes searched: 400"), "{text}");
    assert_eq!(run(&["nonsense"]).0, Some(2));
    assert_eq!(run(&["--threads", "100000"]).0, Some(2));
}

#[test]
fn the_log_file_has_both_directions() {
    let path = std::env::temp_dir().join(format!("simurgh-log-{}.txt", std::process::id()));
    let _ = std::fs::remove_file(&path);
    let mut gui = Gui::new();
    gui.sync();
    gui.complaint(
        "setoption name LogFile value /no/such/folder/log.txt",
        &["LogFile", "/no/such"],
    );
    gui.quiet(&format!("setoption name LogFile value {}", path.display()));
    gui.search("go nodes 5");
    gui.quit();
    let log = std::fs::read_to_string(&path).unwrap();
    let _ = std::fs::remove_file(&path);
    assert!(log.contains(" >> go nodes 5\n"), "{log}");
    assert!(log.contains(" << bestmove "), "{log}");
    assert!(log.contains(" >> quit\n"), "{log}");
}

#[test]
fn a_broken_engine_toml_is_one_line_and_the_handshake_works() {
    let folder = std::env::temp_dir().join(format!("simurgh-toml-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(
        folder.join("engine.toml"),
        "backend = \"material\"\nthread = 1\n",
    )
    .unwrap();
    let mut command = program(&[]);
    command.current_dir(&folder);
    let mut gui = Gui::start(command);
    let first = gui.next_within(Duration::from_secs(60)).unwrap();
    assert!(
        first.starts_with("info string ") && first.contains("'threads'"),
        "{first}"
    );
    gui.send("uci");
    gui.until("uciok");
    gui.quit();
    std::fs::write(
        folder.join("engine.toml"),
        "backend = \"material\"\nthreads = 1\n",
    )
    .unwrap();
    let mut command = program(&[]);
    command.current_dir(&folder);
    let mut gui = Gui::start(command);
    gui.quiet("debug on");
    let read = gui.search("go nodes 1");
    assert!(read[0].contains("network material"), "{read:#?}");
    gui.quit();
    let _ = std::fs::remove_dir_all(&folder);
}
