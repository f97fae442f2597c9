//! The program as a shell meets it: exit codes, closed pipes, full disks, files that are none.

use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::{Output, Stdio};
use std::time::Duration;

use super::gui::{Gui, program};

fn run(arguments: &[&str]) -> (Option<i32>, String, String) {
    read(program(arguments).stdin(Stdio::null()).output().unwrap())
}

fn read(output: Output) -> (Option<i32>, String, String) {
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (
        output.status.code(),
        text(output.stdout),
        text(output.stderr),
    )
}

fn temporary(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("simurgh-shell-{}-{name}", std::process::id()))
}

#[cfg(unix)]
#[test]
fn raw_refuses_to_write_over_its_input() {
    let (input, link) = (temporary("raw.jsonl"), temporary("raw-link.jsonl"));
    std::fs::write(&input, "{\"id\": 1}\n").unwrap();
    let _ = std::fs::remove_file(&link);
    for hard in [true, false] {
        match hard {
            true => std::fs::hard_link(&input, &link).unwrap(),
            false => std::os::unix::fs::symlink(&input, &link).unwrap(),
        }
        for output in [&input, &link] {
            let (input, output) = (input.to_str().unwrap(), output.to_str().unwrap());
            let (code, _, errors) = run(&["raw", "--input", input, "--output", output]);
            assert_eq!((code, errors.lines().count()), (Some(2), 1), "{errors}");
            assert!(errors.contains("--output"), "{errors}");
        }
        std::fs::remove_file(&link).unwrap();
    }
    assert_eq!(std::fs::read_to_string(&input).unwrap(), "{\"id\": 1}\n");
    std::fs::remove_file(&input).unwrap();
}

#[test]
fn a_closed_pipe_ends_a_command_quietly() {
    for arguments in [
        &["describe", "--options"][..],
        &["describe", "--toml"],
        &["perft", "4"],
        &["bench", "--nodes", "1"],
    ] {
        let mut child = program(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let (code, _, errors) = read(child.wait_with_output().unwrap());
        assert_eq!(code, Some(0), "{arguments:?}: {errors}");
        assert!(!errors.contains("panicked"), "{arguments:?}: {errors}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_one_line_and_exit_code_2() {
    for arguments in [
        &["describe", "--options"][..],
        &["perft", "1"],
        &["bench", "--nodes", "1"],
    ] {
        let full = std::fs::OpenOptions::new()
            .write(true)
            .open("/dev/full")
            .unwrap();
        let output = program(arguments)
            .stdin(Stdio::null())
            .stdout(full)
            .output();
        let (code, _, errors) = read(output.unwrap());
        assert_eq!(
            (code, errors.lines().count()),
            (Some(2), 1),
            "{arguments:?}: {errors}"
        );
        assert!(errors.contains("standard output"), "{errors}");
    }
}

#[test]
fn what_was_asked_is_answered_before_the_end_of_input_ends_the_process() {
    for (asked, answer) in [
        ("isready\n", "readyok"),
        ("isready", "readyok"),
        ("isready\nquit\n", "readyok"),
        ("go infinite\nisready\n", "readyok"),
        ("eval\n", "WDL"),
        ("d\n", "Fen: "),
    ] {
        let mut child = program(&["--backend", "material", "--threads", "1"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(asked.as_bytes()).unwrap();
        drop(stdin);
        let mut text = String::new();
        let mut stdout = child.stdout.take().unwrap();
        stdout.read_to_string(&mut text).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(0));
        assert!(text.contains(answer), "{asked:?}: {text}");
    }
    let (code, text, _) = run(&["--backend", "material", "isready", "quit"]);
    assert_eq!((code, text.as_str()), (Some(0), "readyok\n"));
}

#[test]
fn failing_genfens_has_exit_code_2() {
    for line in ["genfens 3 seed 1 book /no/such/book", "genfens 3"] {
        let (code, text, errors) = run(&[line, "quit"]);
        assert_eq!((code, text.as_str()), (Some(2), ""), "{line}");
        assert!(errors.contains("genfens"), "{line}: {errors}");
    }
}

#[test]
fn errors_say_what_holds_where_they_are_told() {
    let (code, _, errors) = run(&["--threads", "100000", "perft", "1"]);
    assert_eq!((code, errors.lines().count()), (Some(2), 1), "{errors}");
    assert!(!errors.contains("stays"), "{errors}");
    let folder = temporary("toml");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("engine.toml"), "threads = 1\nthread = 1\n").unwrap();
    let output = program(&["perft", "1"]).current_dir(&folder).output();
    std::fs::remove_dir_all(&folder).unwrap();
    let (code, _, errors) = read(output.unwrap());
    assert_eq!((code, errors.lines().count()), (Some(2), 1), "{errors}");
    assert!(errors.contains("nothing in this file is used"), "{errors}");
}

#[cfg(unix)]
#[test]
fn named_pipes_are_no_weights_and_no_log() {
    let pipe = temporary("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    if !made.is_ok_and(|status| status.success()) {
        eprintln!("skipped: no mkfifo");
        return;
    }
    let mut gui = Gui::new();
    let pipe_text = pipe.to_str().unwrap();
    gui.complaint(
        &format!("setoption name LogFile value {pipe_text}"),
        &["LogFile", "not a regular file"],
    );
    gui.send("setoption name Backend value torch");
    let told = gui.ask(&format!("setoption name WeightsFile value {pipe_text}"));
    assert!(told[0].contains("not a regular file"), "{told:#?}");
    gui.quit();
    std::fs::remove_file(&pipe).unwrap();
}

#[cfg(target_os = "linux")]
#[test]
fn a_log_that_cannot_be_written_is_told_of_once() {
    let mut gui = Gui::new();
    gui.sync();
    gui.send("setoption name LogFile value /dev/full");
    let mut told = gui.ask("d");
    told.extend(gui.search("go nodes 5"));
    let complaints = told.iter().filter(|line| line.contains("LogFile"));
    assert_eq!(complaints.count(), 1, "{told:#?}");
    assert!(gui.next_within(Duration::from_millis(1)).is_none());
    gui.quit();
}
