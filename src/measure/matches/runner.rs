//! Runs a match: hands games to workers and collects what they played. Prints nothing.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crossbeam::channel::{self, Sender};

use crate::measure::sprt::Verdict;

use super::record::GameRecord;
use super::resume::Played;
use super::seat::Seat;
use super::tally::Tally;
use super::{Faults, MatchPlan, game};

/// Times in a row that an engine may fail to start before the match is given up.
const MAX_FAILED_STARTS: u32 = 5;

/// A match that cannot be played.
#[derive(Debug, thiserror::Error)]
pub enum MatchError {
    /// Fewer than two engines.
    #[error("a match needs at least two engines, found {0}")]
    Engines(usize),
    /// A test between more than two.
    #[error("a sequential test needs two engines, found {0}")]
    Test(usize),
    /// An engine that would think for ever.
    #[error("engine {0} has no limit, expected one of tc, st, movetime, nodes, depth")]
    Unlimited(String),
    /// Nothing to play.
    #[error("a match needs at least one round of one or two games and one worker")]
    NoGames,
    /// A worker could not be started.
    #[error("cannot start a worker thread: {0}")]
    Thread(#[from] std::io::Error),
}

enum Event {
    Game(Box<GameRecord>),
    Left { contestant: usize, faults: Faults },
}

/// Plays the match but for the games that are `played`; `on_game` hears of every game as it ends. Setting `cancel` ends it: games in
/// progress are cut off and not counted.
///
/// # Errors
/// A plan that cannot be played. What engines do is never an error.
pub fn run(
    plan: &MatchPlan,
    played: &[Played],
    cancel: &Arc<AtomicBool>,
    on_game: &mut dyn FnMut(&GameRecord, &Tally),
) -> Result<Tally, MatchError> {
    if plan.contestants.len() < 2 {
        return Err(MatchError::Engines(plan.contestants.len()));
    }
    if plan.sprt.is_some() && plan.contestants.len() > 2 {
        return Err(MatchError::Test(plan.contestants.len()));
    }
    if plan.games() == 0 || plan.concurrency == 0 || plan.games_a_round > 2 {
        return Err(MatchError::NoGames);
    }
    if let Some(one) = plan.contestants.iter().find(|one| one.pace.is_unlimited()) {
        return Err(MatchError::Unlimited(one.name.clone()));
    }
    let next = AtomicUsize::new(0);
    let (events_in, events) = channel::unbounded();
    let mut tally = Tally::new(plan);
    for game in played {
        tally.add_played(plan, game);
    }
    let done: HashSet<usize> = played.iter().map(|game| game.pairing.number).collect();
    let done = &done;
    if decide(plan, &mut tally) {
        return Ok(tally);
    }
    let mut failed_starts = vec![0; plan.contestants.len()];
    std::thread::scope(|scope| {
        for number in 0..plan.concurrency.min(plan.games()) {
            let events = events_in.clone();
            let worker = || work(plan, done, &next, cancel, events);
            let name = format!("match worker {number}");
            if let Err(error) = std::thread::Builder::new()
                .name(name)
                .spawn_scoped(scope, worker)
            {
                cancel.store(true, Ordering::Relaxed);
                return Err(error);
            }
        }
        drop(events_in);
        for event in events {
            match event {
                Event::Left { contestant, faults } => tally.faults[contestant].add(&faults),
                Event::Game(record) => {
                    tally.add(plan, &record);
                    for (side, player) in [record.pairing.white, record.pairing.black]
                        .into_iter()
                        .enumerate()
                    {
                        failed_starts[player] = match record.failed_start[side] {
                            true => failed_starts[player] + 1,
                            // White failing first says nothing about Black.
                            false if record.failed_start[1 - side] => failed_starts[player],
                            false => 0,
                        };
                        if failed_starts[player] == MAX_FAILED_STARTS {
                            let name = &plan.contestants[player].name;
                            tally.given_up = Some(format!(
                                "{name} failed to start {MAX_FAILED_STARTS} times in a row"
                            ));
                            cancel.store(true, Ordering::Relaxed);
                        }
                    }
                    if decide(plan, &mut tally) {
                        cancel.store(true, Ordering::Relaxed);
                    }
                    on_game(&record, &tally);
                }
            }
        }
        Ok(())
    })?;
    Ok(tally)
}

/// Asks the plan's test. True from its decision on.
fn decide(plan: &MatchPlan, tally: &mut Tally) -> bool {
    if let Some(sprt) = &plan.sprt
        && tally.decided.is_none()
        && let Some(ratio) = tally.ratio(plan, sprt)
        && sprt.verdict(ratio) != Verdict::Open
    {
        tally.decided = Some(sprt.verdict(ratio));
    }
    tally.decided.is_some()
}

fn work(
    plan: &MatchPlan,
    done: &HashSet<usize>,
    next: &AtomicUsize,
    cancel: &Arc<AtomicBool>,
    events: Sender<Event>,
) {
    let mut seats: Vec<Seat> = plan
        .contestants
        .iter()
        .map(|one| Seat::new(one, Arc::clone(cancel)))
        .collect();
    while !cancel.load(Ordering::Relaxed) {
        let number = next.fetch_add(1, Ordering::Relaxed);
        if number >= plan.games() {
            break;
        }
        if done.contains(&number) {
            continue;
        }
        let pairing = plan.pairing(number);
        let Ok([white, black]) = seats.get_disjoint_mut([pairing.white, pairing.black]) else {
            break;
        };
        let record = game::play(
            pairing,
            [white, black],
            plan.book.opening(pairing.round),
            &plan.rules,
        );
        if events.send(Event::Game(Box::new(record))).is_err() {
            break;
        }
    }
    for (contestant, seat) in seats.iter_mut().enumerate() {
        seat.leave();
        // Nobody listens any more only if the match has failed.
        let _ = events.send(Event::Left {
            contestant,
            faults: seat.faults,
        });
    }
}
