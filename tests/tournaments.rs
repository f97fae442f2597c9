//! Matches of three engines and more, and matches that go on after they were cut. The engines are the scripts of
//! `client`.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use simurgh::chess::pgn;
use simurgh::measure::matches::{
    self, Contestant, Faults, MatchPlan, Played, Summary, Tally, Tournament, read_played,
};

use crate::client::{Folder, nodes, plan, play};

fn add(plan: &mut MatchPlan, folder: &Folder, name: &str, mode: &str) {
    plan.contestants.push(Contestant {
        name: name.to_owned(),
        engine: folder.script(mode),
        ..plan.contestants[0].clone()
    });
}

fn three(folder: &Folder, tournament: Tournament) -> MatchPlan {
    let mut plan = plan(
        ("A", folder.script("good"), nodes(1)),
        ("B", folder.script("crash"), nodes(1)),
    );
    add(&mut plan, folder, "C", "good");
    plan.tournament = tournament;
    plan
}

#[test]
fn everybody_meets_everybody_with_both_colours_and_the_same_opening() {
    let folder = Folder::new();
    let mut plan = three(&folder, Tournament::RoundRobin);
    add(&mut plan, &folder, "D", "good");
    assert_eq!(plan.games(), 2 * 2 * 6);
    let mut seen: HashMap<(usize, usize), Vec<usize>> = HashMap::new();
    for number in 0..plan.games() {
        let pairing = plan.pairing(number);
        assert_eq!(pairing.number, number);
        let rounds = seen.entry((pairing.white, pairing.black)).or_default();
        rounds.push(pairing.round);
    }
    assert_eq!(seen.len(), 12);
    assert!(seen.values().all(|rounds| rounds == &[0, 1]));

    plan.tournament = Tournament::Gauntlet;
    assert_eq!(plan.encounters(), [(0, 1), (0, 2), (0, 3)]);
    plan.games_a_round = 1;
    let whites: Vec<usize> = (0..6).map(|number| plan.pairing(number).white).collect();
    assert_eq!(whites, [0, 0, 0, 1, 2, 3]);
}

#[test]
fn faults_are_charged_to_the_engine_they_are_of() {
    let folder = Folder::new();
    for (tournament, games, crashes) in [
        (Tournament::Gauntlet, 8, 4),
        (Tournament::RoundRobin, 12, 8),
    ] {
        let plan = three(&folder, tournament);
        let (tally, records) = play(&plan);
        assert_eq!((records.len() as u64, tally.games()), (games, games));
        let faults = Faults {
            crashes,
            ..Faults::default()
        };
        assert_eq!(tally.faults, [Faults::default(), faults, Faults::default()]);
        assert_eq!(tally.encounters[0].counts.wins, 4);
        assert_eq!(tally.encounters[1].counts.draws, 4);
        if tournament == Tournament::RoundRobin {
            assert_eq!(tally.encounters[2].counts.losses, 4);
        }
        let summary = Summary::new(&plan, &tally);
        // B lost every game: no rating says how much worse it is.
        let ratings: Vec<_> = summary.engines.iter().map(|one| one.rating).collect();
        assert_eq!(ratings, [Some(0.0), None, Some(0.0)]);
        let text = summary.to_string();
        let row = text
            .lines()
            .find(|line| line.starts_with("A ") && line.contains('·'));
        assert!(
            row.is_some_and(|row| row.contains(" 4/4") && row.contains(" 2/4")),
            "{text}"
        );
        let json = serde_json::to_value(&summary).unwrap();
        assert_eq!(json["encounters"][0]["results"]["wins"], 4);
        assert!(json.get("results").is_none());
    }
}

/// Plays on from `played`, to the end or until so many more games are over.
fn part(plan: &MatchPlan, played: &[Played], most: usize, out: &mut Vec<u8>) -> Tally {
    let cancel = Arc::new(AtomicBool::new(false));
    let mut games = 0;
    let stop = Arc::clone(&cancel);
    matches::run(plan, played, &cancel, &mut |game, _| {
        let text = game.to_pgn(plan, plan.book.opening(game.pairing.round));
        pgn::write(&mut *out, &text).unwrap();
        games += 1;
        if games == most {
            stop.store(true, Ordering::Relaxed);
        }
    })
    .unwrap()
}

#[test]
fn a_cut_match_goes_on_where_it_was() {
    let folder = Folder::new();
    let plan = three(&folder, Tournament::RoundRobin);
    let mut whole = Vec::new();
    let expected = part(&plan, &[], usize::MAX, &mut whole);
    let mut text = Vec::new();
    part(&plan, &[], 5, &mut text);
    let file = folder.write("games.pgn", &String::from_utf8(text.clone()).unwrap());
    let played = read_played(&file, &plan).unwrap();
    assert!((5..=7).contains(&played.len()), "{}", played.len());
    let tally = part(&plan, &played, usize::MAX, &mut text);
    assert_eq!((tally.games(), tally.resumed), (12, played.len() as u64));
    for (found, wanted) in tally.encounters.iter().zip(&expected.encounters) {
        assert_eq!(found.counts, wanted.counts);
        assert_eq!(found.as_white, wanted.as_white);
        assert_eq!(found.pentanomial, wanted.pentanomial);
    }
    let file = folder.write("games.pgn", &String::from_utf8(text).unwrap());
    let all = read_played(&file, &plan).unwrap();
    let numbers: HashSet<usize> = all.iter().map(|one| one.pairing.number).collect();
    assert_eq!((all.len(), numbers.len()), (12, 12));

    let refuse = |change: &dyn Fn(&mut MatchPlan), says: &str| {
        let mut other = plan.clone();
        change(&mut other);
        let error = read_played(&file, &other).unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    };
    refuse(&|plan| plan.contestants[0].name = "Z".to_owned(), "\"Z\"");
    refuse(&|plan| plan.contestants[2].pace.nodes = Some(7), "nodes 7");
    refuse(&|plan| plan.rounds = 1, "Round");
    refuse(
        &|plan| plan.tournament = Tournament::Gauntlet,
        "the match has",
    );
    let start = "8/8/8/8/8/k7/8/K6R w - - 0 1\n";
    let openings = folder.write("other.epd", start);
    let order = simurgh::measure::book::Order::Sequential { first: 0 };
    let book = simurgh::measure::book::Book::read(&openings, 0, order).unwrap();
    refuse(&|plan| plan.book = book.clone(), "the opening");
}
