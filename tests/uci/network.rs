//! Conversations while a real network is loaded, changed and missed. Skipped without the shared
//! folder.

use std::time::{Duration, Instant};

use super::check;
use super::gui::{Gui, best};
use crate::shared;

/// Two networks, or `None`, said out loud, where the folder with them is missing.
fn networks() -> Option<[String; 2]> {
    let file = |name| Some(shared::file(name)?.to_string_lossy().into_owned());
    Some([file("nets/maia-1100.pb.gz")?, file("nets/maia-1900.pb.gz")?])
}

fn start(weights: &str) -> Gui {
    Gui::with(&["--threads", "1", "--weights", weights])
}

#[test]
fn a_load_is_waited_for_by_isready_and_by_nothing_else() {
    let Some([first, _]) = networks() else { return };
    let mut gui = start(&first);
    gui.send("isready");
    gui.send("uci");
    gui.send("d");
    let read = gui.until("readyok");
    assert!(read.iter().any(|line| line == "uciok"), "{read:#?}");
    assert!(
        !read.iter().any(|line| line.starts_with("info")),
        "{read:#?}"
    );
    gui.quiet("debug on");
    let lines = gui.search("go nodes 20");
    assert!(
        lines[0].starts_with("info string network maia-1100"),
        "{lines:#?}"
    );
    check::search(&lines, &check::game(None, &[]));
    gui.quit();
}

#[test]
fn quit_and_stop_during_a_load_are_in_time() {
    let Some([first, _]) = networks() else { return };
    for before in [
        "isready",
        "go infinite",
        "go nodes 100000",
        "isready\ngo infinite",
    ] {
        let mut gui = start(&first);
        gui.send("uci");
        gui.until("uciok");
        gui.send(before);
        let read = gui.quit();
        let bestmoves = read
            .iter()
            .filter(|line| line.starts_with("bestmove"))
            .count();
        assert_eq!(
            bestmoves,
            before.matches("go").count(),
            "{before}: {read:#?}"
        );
    }
    let mut gui = start(&first);
    gui.send("isready\ngo infinite\nstop");
    let lines = gui.until("bestmove");
    assert!(
        check::game(None, &[])
            .current()
            .parse_uci(&best(&lines))
            .is_ok()
    );
    // The load goes on and is used afterwards.
    gui.sync();
    let lines = gui.search("go nodes 20");
    check::search(&lines, &check::game(None, &[]));
    gui.quit();
}

#[test]
fn a_move_is_in_time_whatever_the_load_takes() {
    let Some([first, _]) = networks() else { return };
    let mut gui = start(&first);
    let asked = Instant::now();
    let lines = gui.search("go movetime 20");
    assert!(
        asked.elapsed() < Duration::from_secs(3),
        "{:?}",
        asked.elapsed()
    );
    check::search(&lines, &check::game(None, &[]));
    gui.quit();
}

#[test]
fn networks_change_in_the_middle_of_a_game() {
    let Some([first, second]) = networks() else {
        return;
    };
    let mut gui = start(&first);
    gui.quiet("debug on");
    let answer = |gui: &mut Gui| {
        let read = gui.ask("eval");
        read.iter()
            .find(|line| line.starts_with("WDL: "))
            .unwrap()
            .clone()
    };
    let before = answer(&mut gui);
    gui.ask("setoption name WeightsFile value /no/such/network.pb");
    assert_eq!(answer(&mut gui), before, "a bad path changes nothing");
    gui.send("go infinite");
    gui.send(&format!("setoption name WeightsFile value {second}"));
    let lines = gui.until("bestmove");
    assert!(
        check::game(None, &[])
            .current()
            .parse_uci(&best(&lines))
            .is_ok()
    );
    let lines = gui.search("go nodes 20");
    assert!(
        lines.iter().any(|line| line.contains("network maia-1900")),
        "{lines:#?}"
    );
    check::search(&lines, &check::game(None, &[]));
    assert_ne!(answer(&mut gui), before);
    gui.ask(&format!("setoption name WeightsFile value {first}"));
    assert_eq!(answer(&mut gui), before);
    gui.quit();
}

#[test]
fn the_same_file_with_other_content_is_loaded_when_named_again() {
    let Some([first, second]) = networks() else {
        return;
    };
    let name = format!("simurgh-changing-{}.pb.gz", std::process::id());
    let path = std::env::temp_dir().join(name);
    std::fs::copy(&first, &path).unwrap();
    let mut gui = start(path.to_str().unwrap());
    let set = format!("setoption name WeightsFile value {}", path.display());
    let answer = |gui: &mut Gui| {
        let read = gui.ask("eval");
        let line = read.iter().find(|line| line.starts_with("WDL: "));
        line.unwrap().clone()
    };
    let before = answer(&mut gui);
    std::fs::copy(&second, &path).unwrap();
    gui.quiet(&set);
    assert_ne!(answer(&mut gui), before);
    gui.quit();
    std::fs::remove_file(&path).unwrap();
}
