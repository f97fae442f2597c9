//! The search on fake backends: what it finds, what it keeps, when it stops, and that it always answers.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use simurgh::chess::{Game, Move, Position};
use simurgh::eval::{Answer, Backend, Fake};
use simurgh::options::Options;
use simurgh::search::{
    BestMove, Clock, Event, Handle, Info, Limits, Request, Score, Search, bench,
};

fn options() -> Options {
    Options {
        threads: 1,
        smart_pruning_factor: 0.0,
        seed: 1,
        hash: 256,
        ..Options::default()
    }
}

fn game(fen: &str, moves: &str) -> Arc<Game> {
    let start = match fen {
        "" => Position::startpos(),
        fen => Position::from_fen(fen).unwrap().0,
    };
    let mut game = Game::new(start);
    for text in moves.split_whitespace() {
        let m = game.current().parse_uci(text).unwrap();
        game.play(m);
    }
    Arc::new(game)
}

/// A search and its last request's events.
struct Bed {
    search: Search,
    options: Options,
    searchmoves: Vec<Move>,
}

struct Heard {
    game: Arc<Game>,
    events: Vec<Event>,
}

impl Bed {
    fn new(fake: Fake, options: Options) -> Bed {
        let backend: Arc<dyn Backend> = Arc::new(fake);
        Bed {
            search: Search::new(backend, &options).unwrap(),
            options,
            searchmoves: Vec::new(),
        }
    }

    fn start(
        &mut self,
        game: &Arc<Game>,
        limits: Limits,
        ponder: bool,
    ) -> (Handle, Receiver<Event>) {
        let (send, events) = channel();
        let handle = self.search.start(Request {
            game: game.clone(),
            limits,
            options: Arc::new(self.options.clone()),
            searchmoves: self.searchmoves.clone(),
            ponder,
            received: Instant::now(),
            on_event: Box::new(move |event| {
                let _ = send.send(event);
            }),
        });
        (handle, events)
    }

    fn go(&mut self, game: &Arc<Game>, limits: Limits) -> Heard {
        let (handle, events) = self.start(game, limits, false);
        handle.join();
        self.heard(game, &events)
    }

    /// Checks what must be true after every search.
    fn heard(&self, game: &Arc<Game>, events: &Receiver<Event>) -> Heard {
        let heard = Heard {
            game: game.clone(),
            events: events.try_iter().collect(),
        };
        let best_moves = heard
            .events
            .iter()
            .filter(|e| matches!(e, Event::BestMove(_)))
            .count();
        assert_eq!(best_moves, 1);
        let best = heard.best();
        let legal = game.current().legal_moves();
        match best.best {
            None => assert!(legal.is_empty()),
            Some(m) => {
                assert!(legal.contains(&m));
                assert_eq!(heard.info().lines[0].pv[0], m);
                if let Some(ponder) = best.ponder {
                    let mut next = game.current().clone();
                    next.play(m);
                    assert!(next.is_legal(ponder));
                }
            }
        }
        for event in &heard.events {
            if let Event::Info(info) = event {
                check_info(game, info);
            }
        }
        if let Some(census) = self.search.census() {
            assert_eq!((census.inflight, census.claimed), (0, 0));
        }
        heard
    }
}

fn check_info(game: &Game, info: &Info) {
    assert!(info.seldepth >= info.depth);
    for line in &info.lines {
        assert_eq!(line.wdl.iter().sum::<u32>(), 1000);
        let mut walk = game.clone();
        for &m in &line.pv {
            assert!(walk.current().is_legal(m), "{m} in {:?}", line.pv);
            walk.play(m);
        }
        if let Score::Mate(n) = line.score
            && !line.pv.is_empty()
        {
            let plies = if n > 0 { 2 * n - 1 } else { -2 * n };
            assert_eq!(line.pv.len() as i32, plies, "{line:?}");
            assert!(walk.current().is_check() && walk.current().legal_moves().is_empty());
        }
    }
}

impl Heard {
    fn best(&self) -> BestMove {
        match self.events.last() {
            Some(Event::BestMove(best)) => *best,
            other => panic!("the last event is {other:?}"),
        }
    }

    fn best_uci(&self) -> String {
        let m = self.best().best.unwrap();
        self.game.current().move_to_uci(m, false)
    }

    fn info(&self) -> &Info {
        let infos = self.events.iter().rev();
        infos
            .filter_map(|event| match event {
                Event::Info(info) => Some(info),
                _ => None,
            })
            .next()
            .unwrap()
    }

    fn messages(&self) -> Vec<&str> {
        self.events
            .iter()
            .filter_map(|event| match event {
                Event::Message(text) => Some(text.as_str()),
                _ => None,
            })
            .collect()
    }
}

const KIWIPETE: &str = "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1";

#[test]
fn mates_in_one_and_two_are_found_and_scored() {
    for kind in [Answer::Uniform, Answer::Material, Answer::Random] {
        let mut bed = Bed::new(Fake::new(kind), options());
        let heard = bed.go(
            &game("6k1/5ppp/8/8/8/8/8/R6K w - - 0 1", ""),
            Limits::nodes(500),
        );
        assert_eq!(heard.best_uci(), "a1a8");
        assert_eq!(heard.info().lines[0].score, Score::Mate(1));
        assert_eq!(heard.info().lines[0].wdl, [1000, 0, 0]);
        bed.search.clear();
        let two = game("kbK5/pp6/1P6/8/8/8/8/R7 w - - 0 1", "");
        let heard = bed.go(&two, Limits::nodes(20_000));
        assert_eq!(heard.best_uci(), "a1a6");
        assert_eq!(heard.info().lines[0].score, Score::Mate(2));
    }
}

#[test]
fn being_mated_is_scored_and_the_longest_defence_chosen() {
    // The only move allows Ra8#.
    let mut bed = Bed::new(Fake::new(Answer::Uniform), options());
    let heard = bed.go(
        &game("7k/R7/6K1/8/8/8/8/8 b - - 0 1", ""),
        Limits::nodes(3000),
    );
    assert_eq!(heard.best_uci(), "h8g8");
    assert_eq!(heard.info().lines[0].score, Score::Mate(-1));
}

#[test]
fn a_finished_game_has_no_best_move() {
    let mut bed = Bed::new(Fake::new(Answer::Uniform), options());
    let mated = game("", "f2f3 e7e5 g2g4 d8h4");
    let heard = bed.go(&mated, Limits::nodes(10));
    assert_eq!(heard.best().best, None);
    assert_eq!(heard.info().lines[0].score, Score::Mate(0));
    let stalemate = game("7k/8/5KQ1/8/8/8/8/8 b - - 0 1", "");
    let heard = bed.go(&stalemate, Limits::nodes(10));
    assert_eq!(heard.best().best, None);
    assert_eq!(heard.info().lines[0].score, Score::Cp(0));
}

#[test]
fn a_tree_of_terminals_smaller_than_a_minibatch_ends() {
    // The only legal move captures into a dead draw.
    for fen in [
        "k7/8/8/8/8/8/6q1/7K w - - 0 1",
        "7k/8/8/8/8/8/1q6/K7 w - - 98 90",
    ] {
        let mut bed = Bed::new(Fake::new(Answer::Uniform), options());
        let heard = bed.go(&game(fen, ""), Limits::nodes(5000));
        assert!(heard.best().best.is_some());
        let mut bed = Bed::new(Fake::new(Answer::Uniform).queued(2, 64), options());
        bed.options.threads = 4;
        bed.go(&game(fen, ""), Limits::nodes(5000));
    }
}

#[test]
fn nothing_stays_in_flight_whenever_a_search_is_stopped() {
    let fakes = [
        Fake::new(Answer::Random),
        Fake::new(Answer::Random).queued(2, 16),
        Fake::new(Answer::Random)
            .queued(2, 16)
            .slow(Duration::from_millis(3)),
    ];
    for fake in fakes {
        for threads in [1, 4] {
            let mut bed = Bed::new(fake.clone(), options());
            bed.options.threads = threads;
            let game = game(KIWIPETE, "");
            for round in 0..12_u64 {
                let (handle, events) = bed.start(&game, Limits::default(), false);
                std::thread::sleep(Duration::from_micros(round * round * 150));
                handle.stop();
                handle.join();
                bed.heard(&game, &events);
                if round % 5 == 4 {
                    bed.search.clear();
                }
            }
        }
    }
}

#[test]
fn one_thread_repeats_exactly() {
    for fake in [
        Fake::new(Answer::Random),
        Fake::new(Answer::Material).queued(3, 8),
    ] {
        let digest = || {
            let mut bed = Bed::new(fake.clone(), options());
            let heard = bed.go(&game(KIWIPETE, ""), Limits::nodes(3000));
            let nodes = heard.info().nodes;
            (
                heard.best(),
                nodes,
                bed.search.root_digest(),
                bed.search.totals(),
            )
        };
        assert_eq!(digest(), digest());
    }
    let signature = || bench(Arc::new(Fake::new(Answer::Material)), &options(), 300).unwrap();
    assert_eq!(signature().signature, signature().signature);
}

#[test]
fn node_limits_are_exact_with_any_number_of_workers() {
    for (threads, queued) in [(1, false), (4, false), (4, true)] {
        let fake = Fake::new(Answer::Random);
        let fake = if queued { fake.queued(2, 16) } else { fake };
        let mut bed = Bed::new(fake, options());
        bed.options.threads = threads;
        for nodes in [0, 1, 2, 100, 2345] {
            bed.search.clear();
            let heard = bed.go(&game("", ""), Limits::nodes(nodes));
            assert_eq!(heard.info().nodes, nodes.max(1), "{threads} {queued}");
        }
    }
}

#[test]
fn repetitions_in_the_tree_are_draws() {
    let fen = "5rk1/5ppp/8/8/8/8/q4PPP/6K1 w - - 0 1";
    let mut bed = Bed::new(Fake::new(Answer::Uniform), options());
    // Twice before: going back a third time is a draw by rule, so the child is proven.
    let twice = game(fen, "h2h3 a2b2 g1h2 b2a2 h2g1 a2b2 g1h2 b2a2 h2g1");
    let heard = bed.go(&twice, Limits::nodes(400));
    assert!(heard.best().best.is_some());
    let digest = bed.search.root_digest();
    let drawn = game(fen, "h2h3 a2b2 g1h2 b2a2 h2g1 a2b2 g1h2 b2a2 h2g1 a2b2");
    assert_eq!(drawn.repetitions(), 2);
    let back = drawn.moves().last().unwrap();
    let (_, visits, q) = digest.iter().find(|m| m.0 == Some(*back)).unwrap();
    assert!(*visits > 0);
    assert_eq!(*q, 0);
}

#[test]
fn second_occurrences_inside_the_tree_count_as_draws_if_asked_to() {
    let blocked = game("8/5k2/3p4/1p1Pp2p/pP2Pp1P/P4P1K/8/8 b - - 0 1", "");
    let expanded = |two_fold_draws| {
        let mut bed = Bed::new(Fake::new(Answer::Uniform), options());
        bed.options.two_fold_draws = two_fold_draws;
        bed.go(&blocked, Limits::nodes(3000));
        bed.search.totals().expanded
    };
    assert!(expanded(true) < expanded(false));
}

#[test]
fn a_claimable_root_still_moves() {
    let fifty = game("3k4/8/8/8/8/8/4R3/4K3 w - - 100 120", "");
    let mut bed = Bed::new(Fake::new(Answer::Material), options());
    assert!(bed.go(&fifty, Limits::nodes(200)).best().best.is_some());
    let thrice = game("", "g1f3 g8f6 f3g1 f6g8 g1f3 g8f6 f3g1 f6g8");
    assert_eq!(thrice.repetitions(), 2);
    assert!(bed.go(&thrice, Limits::nodes(200)).best().best.is_some());
    let dead = game("4k3/8/8/8/8/8/8/4K3 w - - 0 1", "");
    assert!(bed.go(&dead, Limits::nodes(200)).best().best.is_some());
}

#[test]
fn a_drawn_child_that_becomes_the_root_is_searched() {
    let mut bed = Bed::new(Fake::new(Answer::Uniform), options());
    let before = game("", "g1f3 g8f6 f3g1 f6g8 g1f3 g8f6 f3g1");
    bed.go(&before, Limits::nodes(500));
    let after = game("", "g1f3 g8f6 f3g1 f6g8 g1f3 g8f6 f3g1 f6g8");
    let heard = bed.go(&after, Limits::nodes(500));
    assert_eq!(heard.info().nodes, 500);
}

#[test]
fn a_search_that_is_stopped_at_once_has_looked_once() {
    for fake in [
        Fake::new(Answer::Random),
        Fake::new(Answer::Random).queued(2, 8),
    ] {
        let mut bed = Bed::new(fake, options());
        for _ in 0..20 {
            bed.search.clear();
            let root = game("", "e2e4");
            let (handle, events) = bed.start(&root, Limits::default(), false);
            handle.stop();
            handle.join();
            bed.heard(&root, &events);
            let digest = bed.search.root_digest();
            assert!(digest.first().is_some_and(|(_, visits, _)| *visits > 0));
        }
    }
}

#[test]
fn nodes_of_another_search_do_not_count_where_moves_or_strength_are_limited() {
    let root = game("", "");
    let visits = |bed: &Bed| bed.search.root_digest()[0].1;
    let mut bed = Bed::new(Fake::new(Answer::Random), options());
    bed.go(&root, Limits::nodes(2000));
    let all = visits(&bed);
    assert!(all >= 1000);
    bed.searchmoves = ["a2a4", "h2h4"]
        .map(|m| root.current().parse_uci(m).unwrap())
        .to_vec();
    bed.go(&root, Limits::nodes(200));
    assert!((100..400).contains(&visits(&bed)));
    bed.searchmoves.clear();
    // Nor do the visits of the two moves count for all.
    bed.go(&root, Limits::nodes(150));
    let looked_at = bed
        .search
        .root_digest()
        .iter()
        .filter(|(_, n, _)| *n > 0)
        .count();
    assert!(looked_at > 4, "{looked_at}");
    for (fixed_nodes, uci_limit_strength) in [(1, false), (0, true)] {
        bed.options = options();
        bed.go(&root, Limits::nodes(2000));
        (bed.options.fixed_nodes, bed.options.uci_limit_strength) =
            (fixed_nodes, uci_limit_strength);
        bed.options.uci_elo = 800;
        bed.go(&root, Limits::nodes(2000));
        assert!(visits(&bed) < 500, "{}", visits(&bed));
    }
}

#[test]
fn searchmoves_are_kept_to() {
    let mut bed = Bed::new(Fake::new(Answer::Material), options());
    let root = game("6k1/5ppp/8/8/8/8/8/R6K w - - 0 1", "");
    bed.searchmoves = vec![root.current().parse_uci("h1g1").unwrap()];
    let heard = bed.go(&root, Limits::nodes(200));
    assert_eq!(heard.best_uci(), "h1g1");
    for (m, visits, _) in bed.search.root_digest() {
        if m.is_some() && m != Some(bed.searchmoves[0]) {
            assert_eq!(visits, 0);
        }
    }
    // Without a legal one among them all moves count.
    bed.searchmoves = vec![game("", "").current().parse_uci("e2e4").unwrap()];
    assert_eq!(bed.go(&root, Limits::nodes(500)).best_uci(), "a1a8");
}

#[test]
fn lines_come_as_a_full_set_best_first() {
    let mut bed = Bed::new(Fake::new(Answer::Material), options());
    bed.options.multi_pv = 4;
    let root = game(KIWIPETE, "");
    for nodes in [0, 1, 5, 3000] {
        let heard = bed.go(&root, Limits::nodes(nodes));
        let lines = &heard.info().lines;
        assert_eq!(lines.len(), 4);
        assert!(lines.windows(2).all(|pair| pair[0].nodes >= pair[1].nodes));
    }
    let few = game("7k/R7/6K1/8/8/8/8/8 b - - 0 1", "");
    assert_eq!(bed.go(&few, Limits::nodes(50)).info().lines.len(), 1);
}

#[test]
fn movetime_is_never_exceeded_even_by_a_slow_backend() {
    for delay in [0, 400] {
        let fake = Fake::new(Answer::Uniform)
            .queued(1, 32)
            .slow(Duration::from_millis(delay));
        let mut bed = Bed::new(fake, options());
        let game = game("", "");
        for ms in [0, 50, 200] {
            let start = Instant::now();
            bed.go(&game, Limits::movetime(Duration::from_millis(ms)));
            // Generous: other tests share the cores.
            assert!(
                start.elapsed() < Duration::from_millis(ms + 150),
                "{delay} {ms}"
            );
        }
    }
}

#[test]
fn hopeless_clocks_answer_at_once() {
    let mut bed = Bed::new(Fake::new(Answer::Uniform).queued(1, 8), options());
    for remaining_ms in [0, -5000, 1] {
        let start = Instant::now();
        let limits = Limits {
            clock: Some(Clock {
                remaining_ms,
                increment_ms: 0,
                moves_to_go: Some(1),
            }),
            ..Limits::default()
        };
        bed.go(&game("", ""), limits);
        assert!(start.elapsed() < Duration::from_millis(150));
    }
}

#[test]
fn pondering_never_ends_by_itself() {
    let mut bed = Bed::new(Fake::new(Answer::Material), options());
    bed.options.smart_pruning_factor = 1.33;
    for fen in [
        "",
        "6k1/5ppp/8/8/8/8/8/R6K w - - 0 1",
        "7k/R7/6K1/8/8/8/8/8 b - - 0 1",
    ] {
        let game = game(fen, "");
        let limits = Limits {
            nodes: Some(100),
            movetime: Some(Duration::from_millis(20)),
            ..Limits::default()
        };
        let (handle, events) = bed.start(&game, limits.clone(), true);
        std::thread::sleep(Duration::from_millis(120));
        assert!(!handle.is_finished());
        handle.ponderhit();
        handle.join();
        bed.heard(&game, &events);
        let (handle, events) = bed.start(&game, limits, true);
        std::thread::sleep(Duration::from_millis(30));
        assert!(!handle.is_finished());
        handle.stop();
        handle.join();
        bed.heard(&game, &events);
    }
    let mated = game("", "f2f3 e7e5 g2g4 d8h4");
    let (handle, events) = bed.start(&mated, Limits::default(), false);
    std::thread::sleep(Duration::from_millis(50));
    assert!(!handle.is_finished());
    handle.stop();
    handle.join();
    bed.heard(&mated, &events);
}

#[test]
fn a_broken_backend_still_gives_a_legal_move_and_says_why() {
    let base = || Fake::new(Answer::Uniform);
    for after in [0, 1, 200] {
        for fake in [
            base().failing_after(after),
            base().nan_after(after),
            base().panicking_after(after),
        ] {
            for fake in [fake.clone(), fake.queued(2, 8)] {
                let mut bed = Bed::new(fake, options());
                bed.options.threads = 2;
                let heard = bed.go(&game("", ""), Limits::nodes(5000));
                assert_eq!(heard.messages().len(), 1, "{:?}", heard.messages());
            }
        }
    }
}

#[test]
fn the_tree_stops_growing_at_its_limit_and_the_engine_does_not() {
    let mut bed = Bed::new(Fake::new(Answer::Random), options());
    bed.options.ram_limit_mb = 4;
    let heard = bed.go(&game("", ""), Limits::nodes(1_000_000));
    assert!(heard.best().best.is_some());
    assert!(bed.search.tree_bytes() < 5 << 20);
    let (handle, events) = bed.start(&game("", ""), Limits::default(), false);
    std::thread::sleep(Duration::from_millis(100));
    assert!(!handle.is_finished());
    handle.stop();
    handle.join();
    bed.heard(&game("", ""), &events);
}

#[test]
fn the_tree_survives_moves_and_what_falls_away_is_freed() {
    let mut bed = Bed::new(Fake::new(Answer::Random), options());
    let heard = bed.go(&game("", ""), Limits::nodes(20_000));
    let best = heard.best();
    let (m, reply) = (best.best.unwrap(), best.ponder.unwrap());
    let before = bed.search.root_digest();
    let (_, kept, _) = before.iter().find(|e| e.0 == Some(m)).unwrap();
    let mut next = (*game("", "")).clone();
    next.play(m);
    let heard = bed.go(&Arc::new(next.clone()), Limits::nodes(1));
    assert_eq!(heard.info().nodes, u64::from(*kept));
    next.play(reply);
    let next = Arc::new(next);
    let heard = bed.go(&next, Limits::nodes(1));
    assert!(heard.info().nodes > 1);
    // The same position again keeps everything; another game starts afresh.
    let again = bed.go(&next, Limits::nodes(1));
    assert_eq!(again.info().nodes, heard.info().nodes);
    let deadline = Instant::now() + Duration::from_secs(10);
    let census = bed.search.census().unwrap();
    while bed.search.tree_bytes() > census.nodes * 600 && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(bed.search.tree_bytes() <= census.nodes * 600);
    let other = bed.go(&game("", "d2d4"), Limits::nodes(1));
    assert_eq!(other.info().nodes, 1);
}

#[test]
fn a_million_expanded_nodes_fit_in_400_megabytes() {
    let mut bed = Bed::new(Fake::new(Answer::Random), options());
    bed.options.hash = 2048;
    bed.go(&game("", ""), Limits::nodes(200_000));
    let expanded = bed.search.totals().expanded;
    let per_node = bed.search.tree_bytes() as f64 / expanded as f64;
    assert!(per_node < 400.0, "{per_node}");
}

#[test]
fn the_cache_answers_transpositions_and_stays_in_its_bounds() {
    let fake = Fake::new(Answer::Random).queued(1, 32);
    let mut bed = Bed::new(fake, options());
    bed.options.nn_cache_size = 1000;
    let heard = bed.go(
        &game("8/2p5/3p4/KP5r/1R3p1k/8/4P1P1/8 w - - 0 1", ""),
        Limits::nodes(4000),
    );
    assert!(bed.search.cache().hits() > 0);
    assert!(bed.search.cache().len() <= 1024);
    assert!(heard.info().hashfull > 900);
    let totals = bed.search.totals();
    assert!(totals.evaluations < totals.expanded);
}

#[test]
fn the_mirrored_position_has_the_same_value() {
    let white = game(
        "r1bqk1nr/pppp1ppp/2n5/2b1p3/2B1P3/5N2/PPPP1PPP/RNBQK2R w KQkq - 4 4",
        "",
    );
    let black = game(
        "rnbqk2r/pppp1ppp/5n2/2b1p3/2B1P3/2N5/PPPP1PPP/R1BQK1NR b KQkq - 4 4",
        "",
    );
    let q = |game: &Arc<Game>| {
        let mut bed = Bed::new(Fake::new(Answer::Material), options());
        bed.go(game, Limits::nodes(1));
        bed.search.root_digest()[0].2
    };
    assert_eq!(q(&white), q(&black));
    let up = game("4k3/8/8/8/8/8/8/Q3K3 w - - 0 1", "");
    let down = game("4k3/8/8/8/8/8/8/Q3K3 b - - 0 1", "");
    assert!(q(&up) > 500_000);
    assert!(q(&down) < -500_000);
    let mut bed = Bed::new(Fake::new(Answer::Material), options());
    let heard = bed.go(&down, Limits::nodes(300));
    assert!(matches!(heard.info().lines[0].score, Score::Cp(cp) if cp < -100));
}

#[test]
fn proofs_spread_to_the_root() {
    let mut bed = Bed::new(Fake::new(Answer::Uniform), options());
    let root = game("7k/R7/6K1/8/8/8/8/8 b - - 0 1", "");
    bed.go(&root, Limits::nodes(200));
    let digest = bed.search.root_digest();
    assert_eq!(digest[0].2, -1_000_000);
    bed.search.clear();
    bed.options.sticky_endgames = false;
    bed.go(&root, Limits::nodes(60));
    assert!(bed.search.root_digest()[0].2 > -1_000_000);
}

#[test]
fn limited_strength_and_fixed_nodes_bound_the_visits() {
    let mut bed = Bed::new(Fake::new(Answer::Material), options());
    bed.options.fixed_nodes = 1;
    let heard = bed.go(&game("", ""), Limits::movetime(Duration::from_secs(5)));
    assert_eq!(heard.info().nodes, 1);
    bed.options.fixed_nodes = 0;
    bed.options.uci_limit_strength = true;
    bed.options.uci_elo = 1000;
    bed.search.clear();
    let heard = bed.go(&game("", ""), Limits::nodes(100_000));
    assert!(heard.info().nodes < 10);
}

#[test]
fn a_new_search_ends_the_running_one_with_its_best_move() {
    let mut bed = Bed::new(Fake::new(Answer::Random), options());
    let root = game("", "");
    let (_first, events) = bed.start(&root, Limits::default(), false);
    let (second, _) = bed.start(&root, Limits::nodes(10), false);
    assert!(events.iter().any(|e| matches!(e, Event::BestMove(_))));
    second.join();
    let (_, events) = bed.start(&root, Limits::default(), false);
    drop(bed);
    assert!(events.iter().any(|e| matches!(e, Event::BestMove(_))));
}

#[test]
fn a_full_tree_goes_on_when_the_next_move_frees_memory() {
    let mut bed = Bed::new(Fake::new(Answer::Material), options());
    bed.options.ram_limit_mb = 12;
    for _ in 0..6 {
        bed.search.clear();
        let heard = bed.go(&game("", ""), Limits::nodes(1_000_000));
        let messages = heard.messages();
        assert_eq!(messages.len(), 1, "{messages:?}");
        assert!(messages[0].contains("the tree is full: 12 MiB"));
        let next = game("", "e2e4 e7e5");
        bed.go(&next, Limits::movetime(Duration::from_secs(10)));
        assert!(bed.search.totals().playouts > 2000);
    }
    // Whoever watches a full tree still hears of it.
    let (handle, events) = bed.start(&game("", ""), Limits::default(), false);
    let end = Instant::now() + Duration::from_secs(2);
    while events
        .recv()
        .is_ok_and(|event| !matches!(event, Event::Message(_)))
    {
        assert!(Instant::now() < end + Duration::from_secs(20));
    }
    std::thread::sleep(Duration::from_millis(2300));
    assert!(
        events
            .try_iter()
            .filter(|e| matches!(e, Event::Info(_)))
            .count()
            >= 2
    );
    handle.stop();
    handle.join();
}

#[test]
fn mates_that_are_not_there_end_the_search() {
    let two = game("kbK5/pp6/1P6/8/8/8/8/R7 w - - 0 1", "");
    let mate = |moves| Limits {
        mate: Some(moves),
        ..Limits::default()
    };
    for kind in [Answer::Uniform, Answer::Random, Answer::Material] {
        let mut bed = Bed::new(Fake::new(kind), options());
        let start = Instant::now();
        for moves in [1, 2, 3] {
            bed.go(&game("", ""), mate(moves));
        }
        let heard = bed.go(&two, mate(1));
        assert_ne!(heard.info().lines[0].score, Score::Mate(1));
        for moves in [2, 3, 30] {
            let heard = bed.go(&two, mate(moves));
            assert_eq!(heard.info().lines[0].score, Score::Mate(2));
            assert_eq!(heard.best_uci(), "a1a6");
        }
        bed.searchmoves = vec![two.current().parse_uci("a1b1").unwrap()];
        let heard = bed.go(&two, mate(2));
        assert_eq!(heard.best_uci(), "a1b1");
        bed.searchmoves.clear();
        assert!(start.elapsed() < Duration::from_secs(20));
        let (handle, _) = bed.start(&two, mate(u32::MAX), true);
        std::thread::sleep(Duration::from_millis(100));
        assert!(!handle.is_finished());
        handle.ponderhit();
        handle.join();
    }
}

#[test]
fn fixed_nodes_are_searched_whatever_they_prove() {
    let mut bed = Bed::new(Fake::new(Answer::Material), options());
    bed.options.smart_pruning_factor = 1.33;
    bed.options.fixed_nodes = 700;
    for fen in [
        "6k1/5ppp/8/8/8/8/8/R6K w - - 0 1",
        "7k/R7/6K1/8/8/8/8/8 b - - 0 1",
        "4k3/8/8/8/8/8/8/Q3K3 w - - 0 1",
        KIWIPETE,
    ] {
        let heard = bed.go(&game(fen, ""), Limits::default());
        assert_eq!(heard.info().nodes, 700);
    }
}

#[test]
fn what_one_move_proves_does_not_end_the_search_of_others() {
    let mut bed = Bed::new(Fake::new(Answer::Material), options());
    bed.options.smart_pruning_factor = 1.33;
    let root = game("6k1/5ppp/8/8/8/8/8/R6K w - - 0 1", "");
    let heard = bed.go(&root, Limits::nodes(500));
    assert!(heard.info().nodes < 500);
    bed.searchmoves = vec![root.current().parse_uci("h1g1").unwrap()];
    let heard = bed.go(&root, Limits::nodes(1000));
    assert_eq!(heard.best_uci(), "h1g1");
    assert_eq!(heard.info().nodes, 1000);
    bed.searchmoves.clear();
    bed.search.clear();
    bed.options.multi_pv = 3;
    let heard = bed.go(&root, Limits::nodes(1000));
    assert_eq!(heard.info().nodes, 1000);
    let lines = &heard.info().lines;
    assert_eq!(lines[0].score, Score::Mate(1));
    assert!(lines[1].nodes > 20 && lines[2].nodes > 20);
    // Every move proven: nothing is left to learn.
    let over = game("7k/R7/6K1/8/8/8/8/8 b - - 0 1", "");
    let heard = bed.go(&over, Limits::movetime(Duration::from_secs(10)));
    assert!(heard.info().time < Duration::from_secs(5));
}

#[test]
fn unvisited_lines_never_look_better_than_visited_ones() {
    for nodes in [1, 2, 5, 10, 15] {
        let mut bed = Bed::new(Fake::new(Answer::Random), options());
        bed.options.multi_pv = 500;
        let heard = bed.go(&game(KIWIPETE, ""), Limits::nodes(nodes));
        let mut least = i32::MAX;
        for line in &heard.info().lines {
            let Score::Cp(cp) = line.score else {
                panic!("{line:?}");
            };
            assert!(line.nodes > 0 || cp <= least);
            least = least.min(cp);
        }
    }
}
