//! Engines driven from outside: scripts that misbehave in one way each. Every fault must be counted
//! as what it is, and every match end.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use simurgh::chess::{GameResult, pgn};
use simurgh::client::{ClientError, Engine, EngineConfig, Exit, Limits, Timeouts};
use simurgh::measure::book::Book;
use simurgh::measure::matches::{
    self, Cause, Contestant, Faults, GameRecord, MatchPlan, Pace, Rules, Summary, Tally, Tournament,
};
use simurgh::measure::sprt::{Model, Sprt, Verdict};

/// An engine that dances with its king's knight and has one fault, its first argument. It reads no
/// move list beyond its length.
const SCRIPT: &str = r#"
mode=$1
exits_now() { exit 3; }
[ "$mode" = exit ] && exits_now
ply=0
answer() {
  if [ $((ply % 4)) = 0 ]; then move=g1f3; elif [ $((ply % 4)) = 1 ]; then move=g8f6
  elif [ $((ply % 4)) = 2 ]; then move=f3g1; else move=f6g8; fi
  if [ "$mode" = illegal ] && [ $ply -ge 2 ]; then move=e1e5; fi
  if [ "$mode" = none ]; then move='(none)'; fi
  if [ "$mode" = malformed ]; then echo bestmove; return; fi
  case $mode in
    illegalpv) echo "info depth 1 score cp 1 pv $move e1e5" ;;
    brokeninfo) echo "info depth one score cp 1 pv $move" ;;
    mismatch) echo "info depth 1 score cp 1 pv a2a3"; echo "info depth 1 score cp 1 pv a7a6" ;;
    lost) echo "info depth 7 score cp -700 pv $move" ;;
    long) head -c 300000 /dev/zero | tr '\0' 'x'; echo ;;
    *) echo "info depth 7 seldepth 9 nodes 100 nps 1000 time 3 score cp 12 pv $move" ;;
  esac
  case $mode in
    ponder) echo "bestmove $move ponder e1e5" ;;
    stray) echo "bestmove $move"; echo "bestmove $move" ;;
    *) echo "bestmove $move" ;;
  esac
}
while :; do
  if ! read -r word rest; then
    [ "$mode" = stubborn ] && { sleep 1; continue; }
    exit 0
  fi
  case $word in
    uci)
      [ "$mode" = mute ] && continue
      echo "banner of no consequence"
      echo "id name Script $mode"
      echo "option name UCI_Chess960 type check default false"
      echo "uciok" ;;
    isready) echo readyok ;;
    position)
      set -- $rest
      ply=$(($# > 2 ? $# - 2 : 0)) ;;
    go)
      case $mode in
        crash) [ $ply -ge 2 ] && { echo "out of luck" >&2; exit 7; } ; answer ;;
        silent) : ;;
        late) : ;;
        slow) sleep 0.5; answer ;;
        garbage) [ $ply -ge 2 ] && while :; do echo "lorem ipsum dolor"; done ; answer ;;
        *) answer ;;
      esac ;;
    stop) [ "$mode" = late ] && answer ;;
    quit) [ "$mode" = stubborn ] && continue; exit 0 ;;
  esac
done
"#;

/// A folder of its own that goes away at the end.
pub struct Folder(PathBuf);

impl Folder {
    pub fn new() -> Self {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path =
            std::env::temp_dir().join(format!("simurgh-client-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        std::fs::write(path.join("engine.sh"), SCRIPT).unwrap();
        Self(path)
    }

    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    pub fn script(&self, mode: &str) -> EngineConfig {
        EngineConfig {
            command: "/bin/sh".into(),
            args: vec![
                self.0.join("engine.sh").to_string_lossy().into_owned(),
                mode.to_owned(),
            ],
            timeouts: Timeouts {
                stop: Duration::from_millis(300),
                quit: Duration::from_millis(500),
                ..Timeouts::default()
            },
            ..EngineConfig::default()
        }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub fn nodes(nodes: u64) -> Pace {
    Pace {
        nodes: Some(nodes),
        ..Pace::default()
    }
}

pub fn plan(first: (&str, EngineConfig, Pace), second: (&str, EngineConfig, Pace)) -> MatchPlan {
    let contestant = |(name, engine, pace): (&str, EngineConfig, Pace)| Contestant {
        name: name.to_owned(),
        engine,
        pace,
        restart: false,
    };
    MatchPlan {
        contestants: vec![contestant(first), contestant(second)],
        tournament: Tournament::Gauntlet,
        book: Book::startpos(),
        rounds: 2,
        games_a_round: 2,
        concurrency: 2,
        rules: Rules {
            max_moves: Some(100),
            stall: Duration::from_millis(500),
            ..Rules::default()
        },
        event: "test".to_owned(),
        sprt: None,
    }
}

pub fn play(plan: &MatchPlan) -> (Tally, Vec<GameRecord>) {
    let mut games = Vec::new();
    let cancel = Arc::new(AtomicBool::new(false));
    let tally = matches::run(plan, &[], &cancel, &mut |game, _| games.push(game.clone())).unwrap();
    (tally, games)
}

/// Plays two rounds of a sound script against a bad one, and expects these faults of the latter.
fn bad_engine(mode: &str, pace: Pace, expected: Faults) -> (Tally, Vec<GameRecord>) {
    let folder = Folder::new();
    let plan = plan(
        ("good", folder.script("good"), nodes(1)),
        ("bad", folder.script(mode), pace),
    );
    let (tally, games) = play(&plan);
    assert_eq!(games.len(), 4, "{mode}: every game is played");
    assert_eq!(
        tally.faults[0],
        Faults::default(),
        "{mode}: the other side is innocent"
    );
    assert_eq!(tally.faults[1], expected, "{mode}: {games:?}");
    (tally, games)
}

fn loses_every_game(mode: &str, pace: Pace, expected: Faults) -> Vec<GameRecord> {
    let (tally, games) = bad_engine(mode, pace, expected);
    assert_eq!(tally.encounters[0].counts.wins, 4, "{mode}");
    assert_eq!(tally.encounters[0].pentanomial.0, [0, 0, 0, 0, 2], "{mode}");
    games
}

fn draws_every_game(mode: &str, expected: Faults) {
    let (tally, _) = bad_engine(mode, nodes(1), expected);
    assert_eq!(tally.encounters[0].counts.draws, 4, "{mode}");
    assert_eq!(tally.causes["3-fold repetition"], 4, "{mode}");
}

#[test]
fn sound_scripts_draw_without_a_fault() {
    draws_every_game("good", Faults::default());
    draws_every_game("long", Faults::default());
}

#[test]
fn crashes() {
    let games = loses_every_game(
        "crash",
        nodes(1),
        Faults {
            crashes: 4,
            ..Faults::default()
        },
    );
    for game in &games {
        let Cause::Crash(_, how) = &game.cause else {
            panic!("{:?}", game.cause)
        };
        assert!(
            how.contains("exit status: 7") && how.contains("out of luck"),
            "{how}"
        );
        assert!(game.moves.len() >= 2, "it played until then");
    }
}

#[test]
fn an_engine_that_exits_at_once() {
    let games = loses_every_game(
        "exit",
        nodes(1),
        Faults {
            crashes: 4,
            ..Faults::default()
        },
    );
    assert!(games.iter().all(|game| game.moves.is_empty()));
}

#[test]
fn a_match_with_an_engine_that_never_starts_is_given_up() {
    let folder = Folder::new();
    let mut plan = plan(
        ("good", folder.script("good"), nodes(1)),
        ("bad", folder.script("exit"), nodes(1)),
    );
    plan.rounds = 1000;
    let (tally, games) = play(&plan);
    assert!(games.len() < 20, "{}", games.len());
    assert!(tally.given_up.unwrap().contains("bad failed to start"));
}

#[test]
fn stalls() {
    let expected = Faults {
        stalls: 4,
        ..Faults::default()
    };
    loses_every_game("silent", nodes(1), expected);
    loses_every_game("late", nodes(1), expected);
    let games = loses_every_game("garbage", nodes(1), expected);
    assert!(
        games
            .iter()
            .all(|game| game.cause.to_string().contains("not UCI")),
        "{games:?}"
    );
}

#[test]
fn a_silent_handshake_is_a_stall() {
    let folder = Folder::new();
    let mut mute = folder.script("mute");
    mute.timeouts.handshake = Duration::from_millis(300);
    let (tally, games) = play(&plan(
        ("good", folder.script("good"), nodes(1)),
        ("mute", mute, nodes(1)),
    ));
    assert_eq!(
        (
            games.len(),
            tally.faults[1].stalls,
            tally.encounters[0].counts.wins
        ),
        (4, 4, 4)
    );
}

#[test]
fn illegal_moves() {
    let expected = Faults {
        illegal_moves: 4,
        ..Faults::default()
    };
    loses_every_game("malformed", nodes(1), expected);
    // These print a variation that begins with the same illegal move.
    let expected = Faults {
        illegal_pvs: 4,
        ..expected
    };
    loses_every_game("none", nodes(1), expected);
    let games = loses_every_game("illegal", nodes(1), expected);
    assert!(
        games
            .iter()
            .all(|game| game.cause.to_string().contains("e1e5")),
        "{games:?}"
    );
}

#[test]
fn time_losses() {
    let expected = Faults {
        time_losses: 4,
        ..Faults::default()
    };
    let clock = Pace {
        control: Some("0.1".parse().unwrap()),
        ..Pace::default()
    };
    loses_every_game("late", clock, expected);
    let move_time = Pace {
        move_time: Some(Duration::from_millis(100)),
        ..Pace::default()
    };
    loses_every_game("late", move_time.clone(), expected);
    loses_every_game(
        "silent",
        move_time,
        Faults {
            stalls: 4,
            ..Faults::default()
        },
    );
}

#[test]
fn games_are_adjudicated_by_scores() {
    let folder = Folder::new();
    let mut lost = plan(
        ("good", folder.script("good"), nodes(1)),
        ("lost", folder.script("lost"), nodes(1)),
    );
    lost.rules.resign = Some("movecount=2 score=700".parse().unwrap());
    let (tally, games) = play(&lost);
    assert_eq!(
        (tally.encounters[0].counts.wins, tally.faults[1]),
        (4, Faults::default())
    );
    for game in &games {
        let as_white = game.pairing.white == 1;
        let (plies, result) = match as_white {
            true => (3, GameResult::BlackWins),
            false => (4, GameResult::WhiteWins),
        };
        assert_eq!(game.cause, Cause::Scores(result));
        assert_eq!(game.moves.len(), plies);
        let text = game.to_pgn(&lost, lost.book.opening(0)).to_string();
        assert!(text.contains("[Termination \"adjudication\"]"), "{text}");
    }
    // The other side sees nothing for itself.
    lost.rules.resign = Some("movecount=2 score=700 twosided=true".parse().unwrap());
    assert_eq!(play(&lost).0.encounters[0].counts.draws, 4);

    let mut even = plan(
        ("A", folder.script("good"), nodes(1)),
        ("B", folder.script("good"), nodes(1)),
    );
    even.rules.draw = Some("movenumber=3 movecount=1 score=12".parse().unwrap());
    let (_, games) = play(&even);
    for game in &games {
        assert_eq!(
            (&game.cause, game.moves.len()),
            (&Cause::Scores(GameResult::Draw), 6)
        );
    }
}

#[test]
fn a_sequential_test_ends_the_match() {
    let folder = Folder::new();
    let mut plan = plan(
        ("good", folder.script("good"), nodes(1)),
        ("bad", folder.script("illegal"), nodes(1)),
    );
    plan.rounds = 1000;
    let test = Sprt {
        elo0: 0.0,
        elo1: 300.0,
        alpha: 0.05,
        beta: 0.05,
        model: Model::Normalised,
    };
    plan.sprt = Some(test);
    let (tally, games) = play(&plan);
    assert_eq!(tally.decided, Some(Verdict::H1));
    assert!(games.len() < 200, "{}", games.len());
    assert!(tally.ratio(&plan, &test).unwrap() >= test.bounds().1);
    let text = Summary::new(&plan, &tally).to_string();
    assert!(text.contains("H1 accepted"), "{text}");
}

#[test]
fn a_margin_forgives() {
    let margin = Duration::from_secs(20);
    let slow = Pace {
        move_time: Some(Duration::from_millis(1)),
        margin,
        ..Pace::default()
    };
    let folder = Folder::new();
    let mut plan = plan(
        ("good", folder.script("good"), nodes(1)),
        ("slow", folder.script("slow"), slow),
    );
    plan.rounds = 1;
    let (tally, _) = play(&plan);
    assert_eq!(
        (tally.encounters[0].counts.draws, tally.faults[1]),
        (2, Faults::default())
    );
    assert!(
        tally.usage[1].longest >= Duration::from_millis(500),
        "time is measured on our side"
    );
}

#[test]
fn faults_that_cost_no_game() {
    // Four games of eight plies: each side makes sixteen moves.
    draws_every_game(
        "illegalpv",
        Faults {
            illegal_pvs: 16,
            ..Faults::default()
        },
    );
    draws_every_game(
        "ponder",
        Faults {
            illegal_ponder_moves: 16,
            ..Faults::default()
        },
    );
    draws_every_game(
        "brokeninfo",
        Faults {
            malformed_infos: 16,
            ..Faults::default()
        },
    );
    draws_every_game(
        "stray",
        Faults {
            stray_bestmoves: 16,
            ..Faults::default()
        },
    );
    // One of its two variations is the other side's.
    draws_every_game(
        "mismatch",
        Faults {
            illegal_pvs: 16,
            pv_mismatches: 16,
            ..Faults::default()
        },
    );
}

#[test]
fn an_engine_that_ignores_quit_is_killed() {
    let (tally, _) = {
        let folder = Folder::new();
        let mut plan = plan(
            ("good", folder.script("good"), nodes(1)),
            ("bad", folder.script("stubborn"), nodes(1)),
        );
        plan.concurrency = 1;
        play(&plan)
    };
    assert_eq!(
        tally.faults[1],
        Faults {
            ignored_quits: 1,
            ..Faults::default()
        }
    );
    assert_eq!(tally.encounters[0].counts.draws, 4);
}

#[test]
fn errors_are_typed() {
    let folder = Folder::new();
    let missing = EngineConfig {
        command: "/nowhere/engine".into(),
        ..EngineConfig::default()
    };
    assert!(matches!(
        Engine::start(missing),
        Err(ClientError::Spawn { .. })
    ));
    assert!(matches!(
        Engine::start(folder.script("exit")),
        Err(ClientError::Exited { .. })
    ));
    let mut mute = folder.script("mute");
    mute.timeouts.handshake = Duration::from_millis(200);
    let error = Engine::start(mute).unwrap_err();
    assert!(
        matches!(
            error,
            ClientError::Timeout {
                waiting_for: "uciok",
                ..
            }
        ),
        "{error}"
    );

    let mut engine = Engine::start(folder.script("good")).unwrap();
    assert!(matches!(
        engine.set_option("A", "b\nquit"),
        Err(ClientError::LineBreak(_))
    ));
    assert_eq!(engine.name(), "Script good");
    assert_eq!(engine.quit(), Exit::Clean);
}

#[test]
fn unlisted_options_and_bad_values_are_complained_about() {
    let folder = Folder::new();
    let mut config = folder.script("good");
    config.options = vec![
        ("Nonsense".into(), "1".into()),
        ("uci_chess960".into(), "perhaps".into()),
    ];
    let engine = Engine::start(config).unwrap();
    assert_eq!(engine.complaints().len(), 2, "{:?}", engine.complaints());
}

#[test]
fn trouble_told_before_the_match_is_a_complaint() {
    let folder = Folder::new();
    let mut config = folder.script("good");
    let path = folder.write(
        "troubled.sh",
        "while read -r line; do case $line in
            uci) echo uciok ;;
            isready) echo 'info string Using 1 thread'; echo 'No such option: X'
                echo 'info string no network: playing by material values'; echo readyok ;;
            quit) exit ;;
        esac; done",
    );
    config.args = vec![path.to_string_lossy().into_owned()];
    let engine = Engine::start(config).unwrap();
    let complaints = engine.complaints();
    assert_eq!(complaints.len(), 2, "{complaints:?}");
    assert!(complaints[0].contains("No such option: X"));
    assert!(complaints[1].contains("no network"));
}

#[test]
fn engines_restart_after_a_crash() {
    let folder = Folder::new();
    let mut engine = Engine::start(folder.script("crash")).unwrap();
    let line = ["e2e4".to_owned(), "e7e5".to_owned()];
    for _ in 0..2 {
        engine.position(None, &line).unwrap();
        engine.go(&Limits::nodes(1)).unwrap();
        let error = engine
            .answer(Duration::from_secs(20), &mut |_| {})
            .unwrap_err();
        assert!(error.is_crash(), "{error}");
        assert!(!engine.is_alive());
        engine.restart().unwrap();
        assert!(engine.is_alive());
    }
}

#[test]
fn a_dropped_engine_leaves_nothing_behind() {
    let folder = Folder::new();
    // A wrapper whose child would outlive it; both hold the pipes.
    let wrapper = folder.write("wrapper.sh", "/bin/sh \"$1\" stubborn\n");
    let mut config = folder.script("stubborn");
    config.args[0] = wrapper.to_string_lossy().into_owned();
    config.args[1] = folder.0.join("engine.sh").to_string_lossy().into_owned();
    let began = Instant::now();
    drop(Engine::start(config).unwrap());
    assert!(began.elapsed() < Duration::from_secs(20));
    let folder_name = folder.0.to_string_lossy().into_owned();
    let deadline = Instant::now() + Duration::from_secs(20);
    while processes_with(&folder_name) > 0 {
        assert!(Instant::now() < deadline, "a process is left behind");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Processes (zombies too have no command line) that carry this text; 0 where there is no /proc.
fn processes_with(text: &str) -> usize {
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return 0;
    };
    let own = std::process::id().to_string();
    let lines = entries
        .flatten()
        .filter(|entry| entry.file_name().to_string_lossy() != own);
    let lines = lines.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    lines
        .filter(|line| String::from_utf8_lossy(line).contains(text))
        .count()
}

#[test]
fn a_cancelled_match_ends_and_counts_only_whole_games() {
    let folder = Folder::new();
    let slow = Pace {
        move_time: Some(Duration::from_secs(60)),
        ..Pace::default()
    };
    let mut plan = plan(
        ("good", folder.script("good"), nodes(1)),
        ("silent", folder.script("silent"), slow),
    );
    plan.concurrency = 1;
    let cancel = Arc::new(AtomicBool::new(false));
    let later = Arc::clone(&cancel);
    let canceller = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(500));
        later.store(true, Ordering::Relaxed);
    });
    let began = Instant::now();
    let mut games = Vec::new();
    let tally = matches::run(&plan, &[], &cancel, &mut |game, _| games.push(game.clone())).unwrap();
    canceller.join().unwrap();
    assert!(began.elapsed() < Duration::from_secs(30));
    assert_eq!(
        (tally.encounters[0].counts.games(), tally.unfinished),
        (0, 1)
    );
    assert_eq!(games[0].result, GameResult::Unknown);
}

/// Runs `simurgh match` and returns its exit code, standard output and standard error.
fn run_match(args: &[&str]) -> (i32, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_simurgh"))
        .arg("match")
        .args(args)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (
        output.status.code().unwrap_or(-1),
        text(&output.stdout),
        text(&output.stderr),
    )
}

#[test]
fn the_command_writes_text_json_and_pgn() {
    let folder = Folder::new();
    let script = folder.0.join("engine.sh").to_string_lossy().into_owned();
    let (json, games) = (folder.0.join("result.json"), folder.0.join("games.pgn"));
    let bad = format!("args={script} illegalpv");
    let good = format!("args={script} good");
    let args = [
        "--engine",
        "cmd=/bin/sh",
        &good,
        "--engine",
        "cmd=/bin/sh",
        "name=B",
        &bad,
        "--each",
        "nodes=5",
        "--rounds",
        "3",
        "--concurrency",
        "2",
        "--report-every",
        "2",
        "--json",
        json.to_str().unwrap(),
        "--pgn-out",
        games.to_str().unwrap(),
    ];
    let (code, out, err) = run_match(&args);
    assert_eq!(code, 0, "{err}");
    assert!(
        out.contains("Score of Script good vs B: 0 wins, 6 draws, 0 losses [0.5000] 6 games"),
        "{out}"
    );
    assert!(out.contains("pentanomial, 3 pairs"), "{out}");
    assert!(
        err.contains("6/6 games") && err.contains("illegal PV move"),
        "{err}"
    );

    let text = std::fs::read_to_string(&json).unwrap();
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(value["pentanomial"], serde_json::json!([0, 0, 3, 0, 0]));
    assert_eq!(value["engines"][1]["faults"]["illegal_pvs"], 24);
    assert_eq!(value["elo"], 0.0);
    assert!(value["elo_error"].is_null(), "not known is null");

    let games: Vec<_> = pgn::read(std::fs::File::open(&games).unwrap())
        .map(Result::unwrap)
        .collect();
    assert_eq!(games.len(), 6);
    for game in &games {
        assert_eq!((game.result, game.moves.len()), (GameResult::Draw, 8));
        assert_eq!(game.tag("Termination"), Some("normal"));
        assert!(
            game.comment(7)
                .unwrap()
                .ends_with("draw by 3-fold repetition"),
            "{game:?}"
        );
    }
    assert!(games.iter().any(|game| {
        game.comment(0)
            .is_some_and(|text| text.starts_with("+0.12/7 "))
    }));

    let (code, _, err) = run_match(&[&args[..], &["--strict"]].concat());
    assert_eq!(code, 2);
    assert!(err.contains("24 faults, expected none"), "{err}");
}

#[test]
fn the_command_refuses_what_it_cannot_play() {
    for (args, expected) in [
        (&["--each", "tc=0"][..], "time control"),
        (&["--engine"][..], "no limit"),
        (
            &["--engine", "cmd=/nowhere/engine", "--each", "nodes=1"][..],
            "cannot start",
        ),
        (&["--engine", "speed=3"][..], "unknown key"),
        (
            &["--each", "nodes=1", "--openings", "/nowhere/book.epd"][..],
            "cannot read the openings",
        ),
        (&["--each", "nodes=1", "--rounds", "0"][..], "rounds"),
    ] {
        let (code, _, err) = run_match(args);
        assert_eq!(code, 2, "{args:?}: {err}");
        assert!(err.contains(expected), "{args:?}: {err}");
    }
}

#[cfg(unix)]
#[test]
fn an_interrupt_prints_the_result_so_far() {
    let folder = Folder::new();
    let script = format!("args={} good", folder.0.join("engine.sh").display());
    let child = Command::new(env!("CARGO_BIN_EXE_simurgh"))
        .args([
            "match",
            "--engine",
            "cmd=/bin/sh",
            &script,
            "--engine",
            "cmd=/bin/sh",
            &script,
        ])
        .args(["--each", "nodes=1", "--rounds", "1000000"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    std::thread::sleep(Duration::from_secs(2));
    let killed = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status()
        .unwrap();
    assert!(killed.success());
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success());
    assert!(
        text.contains("Score of Script good vs Script good (2):"),
        "{text}"
    );
}
