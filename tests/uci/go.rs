//! `go`: every key, every kind of end, and the lines that come with it.

use std::time::{Duration, Instant};

use super::check;
use super::gui::{Gui, best, field, number, pv, scored};

/// Long enough to see that nothing comes, in milliseconds.
const NOTHING_COMES: Duration = Duration::from_millis(300);

fn ready() -> Gui {
    let mut gui = Gui::new();
    gui.sync();
    gui
}

fn no_bestmove(gui: &mut Gui) {
    let start = Instant::now();
    while let Some(left) = NOTHING_COMES.checked_sub(start.elapsed()) {
        let Some(line) = gui.next_within(left) else {
            return;
        };
        assert!(!line.starts_with("bestmove"), "{line} came too early");
    }
}

#[test]
fn limits_end_a_search_by_themselves() {
    let mut gui = ready();
    let game = check::game(None, &["e2e4"]);
    gui.quiet("position startpos moves e2e4");
    for go in [
        "go nodes 1",
        "go nodes 100",
        "go depth 2",
        "go movetime 50",
        "go mate 1 nodes 500",
        "go wtime 1000 btime 1000",
        "go btime 500 wtime 500 binc 10 winc 10",
        "go wtime 1000 btime 1000 movestogo 1",
        "go movestogo 40 binc 0 winc 0 btime 1000 wtime 1000",
        "go wtime 1 btime 1",
        "go nodes 200 searchmoves e7e5 c7c5",
        "go searchmoves e7e5 c7c5 nodes 200",
        "go nodes 50 depth 50 movetime 5000",
    ] {
        let lines = gui.search(go);
        let m = check::search(&lines, &game);
        if go.contains("searchmoves") {
            assert!(m == "e7e5" || m == "c7c5", "{go}: {m}");
        }
    }
    gui.quit();
}

#[test]
fn node_limits_hold() {
    let mut gui = ready();
    for nodes in [1, 2, 10, 333] {
        gui.quiet("ucinewgame");
        let lines = gui.search(&format!("go nodes {nodes}"));
        let last = scored(&lines).pop().unwrap().clone();
        // One minibatch is the most that may come on top.
        assert!(number(&last, "nodes") < nodes + 256, "{last}");
    }
    gui.quit();
}

#[test]
fn zeros_and_negative_clocks_bring_a_move_at_once() {
    let mut gui = ready();
    let game = check::game(None, &[]);
    for go in [
        "go nodes 0",
        "go depth 0",
        "go movetime 0",
        "go movetime -100",
        "go wtime 0 btime 0",
        "go wtime -1000 btime 5000",
        "go wtime -1000 btime -1000 winc 0 binc 0 movestogo 0",
        "go mate 0",
    ] {
        let start = Instant::now();
        let lines = gui.search(go);
        check::search(&lines, &game);
        assert!(
            start.elapsed() < Duration::from_secs(5),
            "{go} took {:?}",
            start.elapsed()
        );
    }
    let lines = gui.search("go nodes -5");
    assert!(lines[0].contains("nodes -5"), "{lines:#?}");
    check::search(&lines, &game);
    gui.quit();
}

#[test]
fn without_a_limit_only_stop_ends_it() {
    let mut gui = ready();
    let game = check::game(None, &[]);
    for go in [
        "go",
        "go infinite",
        "go btime 1000 binc 10",
        "go infinite nodes 5",
        "go depth",
    ] {
        gui.send(go);
        no_bestmove(&mut gui);
        gui.send("stop");
        let lines = gui.until("bestmove");
        assert!(
            game.current().parse_uci(&best(&lines)).is_ok(),
            "{go}: {lines:#?}"
        );
        assert_eq!(gui.sync(), [""; 0], "{go}");
    }
    gui.quit();
}

#[test]
fn counts_are_64_bit() {
    let mut gui = ready();
    for go in [
        "go nodes 5000000000",
        "go nodes 9223372036854775807",
        "go nodes 18446744073709551615",
        "go nodes 99999999999999999999999999",
        "go depth 99999999999",
        "go movetime 99999999999999999999",
        "go wtime 9223372036854775807 btime 9223372036854775807 winc 9223372036854775807",
        "go wtime 1000 btime 1000 movestogo 99999999999 infinite",
    ] {
        gui.send(go);
        let read = gui.sync();
        assert!(
            !read.iter().any(|line| line.starts_with("info string")),
            "{go}: {read:#?}"
        );
        assert!(
            !read.iter().any(|line| line.starts_with("bestmove")),
            "{go}: {read:#?}"
        );
        gui.send("stop");
        gui.until("bestmove");
    }
    gui.quit();
}

#[test]
fn wrong_keys_are_reported_and_swallow_nothing() {
    let mut gui = ready();
    gui.quiet("position startpos moves e2e4");
    let game = check::game(None, &["e2e4"]);
    let cases: [(&str, &[&str]); 7] = [
        ("go wtime btime 100", &["wtime", "no value"]),
        ("go nodes abc movetime 20", &["nodes", "abc"]),
        ("go foo 5 nodes 10", &["foo 5"]),
        ("go nodes 10 depth", &["depth", "no value"]),
        ("go nodes 10 20", &["20"]),
        ("go searchmoves nodes 10", &["searchmoves", "no value"]),
        ("go nodes 1.5 movetime 20", &["nodes", "1.5"]),
    ];
    for (go, parts) in cases {
        let lines = gui.search(go);
        check::search(&lines, &game);
        let remarks: Vec<&String> = lines
            .iter()
            .filter(|line| line.starts_with("info string"))
            .collect();
        assert_eq!(remarks.len(), 1, "{go}: {lines:#?}");
        for part in parts {
            assert!(remarks[0].contains(part), "{go}: {remarks:#?}");
        }
    }
    gui.quit();
}

#[test]
fn searchmoves_without_a_legal_move_means_all() {
    let mut gui = ready();
    let lines = gui.search("go nodes 20 searchmoves e2e5 nonsense");
    check::search(&lines, &check::game(None, &[]));
    let remark = lines
        .iter()
        .find(|line| line.starts_with("info string"))
        .unwrap();
    assert!(
        remark.contains("e2e5") && remark.contains("nonsense"),
        "{remark}"
    );
    let lines = gui.search("go nodes 20 searchmoves e2e5 a2a3");
    assert_eq!(best(&lines), "a2a3");
    gui.quit();
}

#[test]
fn pondering_waits_for_ponderhit_or_stop() {
    let mut gui = ready();
    let game = check::game(None, &["e2e4", "e7e5"]);
    gui.quiet("position startpos moves e2e4 e7e5");
    for (go, end) in [
        ("go ponder movetime 50", "ponderhit"),
        ("go ponder wtime 300 btime 300", "ponderhit"),
        ("go wtime 1000 btime 1000 ponder", "stop"),
        ("go ponder", "stop"),
        ("go ponder nodes 10", "ponderhit"),
        ("go ponder nodes 10", "stop"),
        ("go ponder infinite", "stop"),
        ("go ponder depth 1", "ponderhit"),
    ] {
        gui.send(go);
        let mut lines = Vec::new();
        let start = Instant::now();
        while let Some(left) = NOTHING_COMES.checked_sub(start.elapsed()) {
            let Some(line) = gui.next_within(left) else {
                break;
            };
            lines.push(line);
        }
        assert!(
            !lines.iter().any(|line| line.starts_with("bestmove")),
            "{go}: {lines:#?}"
        );
        gui.send(end);
        lines.extend(gui.until("bestmove"));
        check::search(&lines, &game);
        assert!(!pv(scored(&lines)[0]).is_empty());
        gui.quiet("stop");
        gui.quiet("ponderhit");
    }
    // ponderhit, then stop; and ponderhit of a search without limits goes on.
    gui.send("go ponder");
    gui.send("ponderhit");
    no_bestmove(&mut gui);
    gui.send("stop");
    gui.until("bestmove");
    gui.quit();
}

#[test]
fn storms_of_commands_bring_one_move_for_each_go() {
    let mut gui = ready();
    let mut sent = 0;
    for round in 0..30 {
        gui.send(
            [
                "go infinite",
                "go nodes 100000",
                "go ponder",
                "go movetime 10000",
            ][round % 4],
        );
        sent += 1;
        if round % 3 == 0 {
            gui.send("stop\nstop\nstop\nponderhit\nstop");
        }
    }
    gui.send("stop");
    let mut seen = 0;
    while seen < sent {
        gui.until("bestmove");
        seen += 1;
    }
    assert_eq!(gui.sync(), [""; 0]);
    gui.quit();
}

#[test]
fn mated_and_stalemated_roots_have_no_move() {
    let mut gui = ready();
    for (fen, score) in [
        (
            "rnb1kbnr/pppp1ppp/8/4p3/6Pq/5P2/PPPPP2P/RNBQKBNR w KQkq - 1 3",
            "mate 0",
        ),
        ("7k/5Q2/6K1/8/8/8/8/8 b - - 0 1", "cp 0"),
    ] {
        gui.quiet(&format!("position fen {fen}"));
        for go in [
            "go nodes 10",
            "go movetime 100",
            "go wtime 1000 btime 1000",
            "go depth 0",
        ] {
            let lines = gui.search(go);
            assert_eq!(
                lines,
                [
                    format!("info depth 0 score {score}"),
                    "bestmove (none)".into()
                ]
            );
        }
        for go in ["go infinite", "go ponder", "go ponder movetime 10"] {
            gui.send(go);
            no_bestmove(&mut gui);
            gui.send("stop");
            let lines = gui.until("bestmove");
            assert_eq!(lines.last().unwrap(), "bestmove (none)");
            assert!(
                gui.transcript
                    .contains(&format!("info depth 0 score {score}"))
            );
        }
    }
    gui.quit();
}

#[test]
fn a_root_that_could_be_claimed_gets_a_move() {
    let mut gui = ready();
    let shuffle = [
        "g1f3", "g8f6", "f3g1", "f6g8", "g1f3", "g8f6", "f3g1", "f6g8",
    ];
    gui.quiet(&format!("position startpos moves {}", shuffle.join(" ")));
    let lines = gui.search("go nodes 50");
    check::search(&lines, &check::game(None, &shuffle));
    let fen = "4k3/8/8/8/8/8/4R3/4K3 b - - 100 90";
    gui.quiet(&format!("position fen {fen}"));
    let lines = gui.search("go nodes 50");
    check::search(&lines, &check::game(Some(fen), &[]));
    let fen = "4k3/8/8/8/8/8/8/4K3 w - - 0 1";
    gui.quiet(&format!("position fen {fen}"));
    let lines = gui.search("go nodes 20");
    check::search(&lines, &check::game(Some(fen), &[]));
    gui.quit();
}

#[test]
fn mates_are_counted_in_moves_and_their_lines_end_in_mate() {
    let mut gui = ready();
    for (fen, mate) in [
        ("6k1/5ppp/8/8/8/8/8/4R1K1 w - - 0 1", Some(1)),
        ("k7/8/1K6/8/8/8/8/7R w - - 0 1", Some(1)),
        ("7k/8/5K2/8/8/8/8/6R1 b - - 0 1", None),
    ] {
        gui.quiet(&format!("position fen {fen}"));
        let lines = gui.search("go nodes 2000");
        check::search(&lines, &check::game(Some(fen), &[]));
        if let Some(mate) = mate {
            assert_eq!(
                number(scored(&lines).last().unwrap(), "mate"),
                mate,
                "{lines:#?}"
            );
        }
    }
    gui.quiet("position fen 6k1/5ppp/8/8/8/8/8/4R1K1 w - - 0 1");
    assert_eq!(best(&gui.search("go mate 1")), "e1e8");
    gui.quit();
}

#[test]
fn lines_come_in_full_sets_best_first() {
    let mut gui = ready();
    let game = check::game(None, &[]);
    for wanted in [2usize, 5, 500] {
        gui.quiet(&format!("setoption name MultiPV value {wanted}"));
        let lines = gui.search("go nodes 300");
        check::search(&lines, &game);
        let infos = scored(&lines);
        let expected = wanted.min(20);
        let mut at = 0;
        while at < infos.len() {
            for k in 1..=expected {
                assert_eq!(number(infos[at], "multipv"), k as i64, "{lines:#?}");
                at += 1;
            }
        }
        let mut firsts: Vec<String> = check::last_set(&infos)
            .into_iter()
            .map(|line| pv(line)[0].clone())
            .collect();
        firsts.sort();
        firsts.dedup();
        assert_eq!(firsts.len(), expected, "{lines:#?}");
    }
    gui.quiet("setoption name MultiPV value 1");
    let lines = gui.search("go nodes 30");
    assert!(
        scored(&lines)
            .iter()
            .all(|line| field(line, "multipv").is_none()),
        "{lines:#?}"
    );
    gui.quit();
}

#[test]
fn wdl_follows_the_score_when_asked_for() {
    let mut gui = ready();
    let lines = gui.search("go nodes 30");
    assert!(
        !lines.iter().any(|line| line.contains(" wdl ")),
        "{lines:#?}"
    );
    gui.quiet("setoption name UCI_ShowWDL value true");
    let lines = gui.search("go nodes 30");
    check::search(&lines, &check::game(None, &[]));
    assert!(
        scored(&lines).iter().all(|line| line.contains(" wdl ")),
        "{lines:#?}"
    );
    gui.quit();
}

#[test]
fn one_thread_and_fixed_nodes_repeat_exactly() {
    let run = || {
        let mut gui = ready();
        gui.quiet("position startpos moves e2e4 c7c5");
        let lines = gui.search("go nodes 500");
        let last = scored(&lines).pop().unwrap().clone();
        gui.quit();
        (best(&lines), number(&last, "nodes"), pv(&last))
    };
    assert_eq!(run(), run());
}
