//! Data generation: games that teachers play and label, several at a time, into one file that grows.
//! Knows neither how a teacher thinks nor how progress is shown.

mod openings;
mod play;
mod self_play;
mod uci_teacher;

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crossbeam::channel::{self, Sender};
use parking_lot::Mutex;
use rand::rngs::StdRng;

use super::chunk::ChunkWriter;
use super::{GameRecord, Ply, Source, TrainError};
use crate::chess::Game;

pub use openings::Openings;
pub use play::Rules;
pub use self_play::SelfPlay;
pub use uci_teacher::UciTeacher;

/// How often a game is begun anew when its teacher fails.
const TRIES: usize = 3;
/// Finished games wait in memory no longer than this.
const FLUSH_AFTER: Duration = Duration::from_secs(300);

/// What is to be generated.
#[derive(Debug)]
pub struct Plan {
    /// Seed of the run. A game's own seed follows from it and the game's number; games whose seed is
    /// in the file already are not played again.
    pub seed: u64,
    /// Games in the file at the end, those that it begins with included.
    pub games: u64,
    /// Games at a time.
    pub workers: usize,
    /// Where games begin.
    pub openings: Openings,
    /// How they go on and end.
    pub rules: Rules,
}

/// Someone who says what to play and how a position stands.
pub trait Teacher {
    /// What its records are marked with.
    fn source(&self) -> Source;

    /// The next position is of another game.
    ///
    /// # Errors
    /// When the teacher fails.
    fn new_game(&mut self) -> Result<(), TrainError>;

    /// Labels the current position, which has legal moves; the move played is the best one.
    ///
    /// # Errors
    /// When the teacher fails or its answer makes no sense.
    fn label(&mut self, game: &Game, random: &mut StdRng) -> Result<Ply, TrainError>;

    /// Gets ready again after an error.
    ///
    /// # Errors
    /// When it cannot.
    fn recover(&mut self) -> Result<(), TrainError>;
}

/// How far a run is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Games in the file.
    pub games: u64,
    /// Games of this run.
    pub played: u64,
    /// Labelled positions in the file.
    pub positions: u64,
    /// Labelled positions of this run.
    pub labelled: u64,
    /// Labels of this run that were dropped, because the file had one for the position.
    pub repeats: u64,
}

/// Plays the games that are missing and adds each as it ends. `cancel` ends the run, which is no
/// error: games under way are lost, finished ones are on the disk. It is set when a teacher fails.
///
/// # Errors
/// A file that cannot be read or written, a teacher that cannot be made or fails again and again.
pub fn run<T: Teacher>(
    plan: &Plan,
    output: &Path,
    teacher: &(dyn Fn() -> Result<T, TrainError> + Sync),
    cancel: &Arc<AtomicBool>,
    on_progress: &mut dyn FnMut(&Progress),
) -> Result<Progress, TrainError> {
    let (mut writer, known) = ChunkWriter::append(output)?;
    let mut seen = HashSet::new();
    let mut seeds = HashSet::new();
    for index in 0..known.chunks().len() {
        for mut game in known.read(index)? {
            seeds.insert(game.seed);
            game.unlabel_repeats(&mut seen);
        }
    }
    let mut progress = Progress {
        games: writer.games(),
        positions: writer.positions(),
        ..Progress::default()
    };
    on_progress(&progress);
    let missing = plan.games.saturating_sub(progress.games);
    let queue = Queue {
        left: Mutex::new((missing, 0)),
        run: plan.seed,
        known: seeds,
    };
    let mut failure = None;
    let mut flushed = Instant::now();
    std::thread::scope(|scope| {
        let (sender, receiver) = channel::bounded(plan.workers);
        for _ in 0..(plan.workers as u64).min(missing) {
            let sender = sender.clone();
            let queue = &queue;
            scope.spawn(move || {
                if let Err(error) = work(plan, queue, teacher, cancel, &sender) {
                    // The receiver outlives the workers.
                    let _ = sender.send(Err(error));
                }
            });
        }
        drop(sender);
        for game in receiver {
            let added = game.and_then(|mut game: GameRecord| {
                let repeats = game.unlabel_repeats(&mut seen) as u64;
                let labelled = game.labelled() as u64;
                writer.push(game)?;
                if flushed.elapsed() >= FLUSH_AFTER {
                    writer.flush()?;
                    flushed = Instant::now();
                }
                progress.repeats += repeats;
                progress.labelled += labelled;
                progress.played += 1;
                progress.games = writer.games();
                progress.positions = writer.positions();
                on_progress(&progress);
                Ok(())
            });
            if let Err(error) = added {
                cancel.store(true, Ordering::Relaxed);
                failure.get_or_insert(error);
            }
        }
    });
    // What was finished before a failure is kept too.
    let saved = writer.finish();
    match failure {
        Some(error) => Err(error),
        None => saved.map(|_| progress),
    }
}

/// Hands out the seeds of the games to play.
struct Queue {
    /// Games left to hand out, number of the next one.
    left: Mutex<(u64, u64)>,
    run: u64,
    known: HashSet<u64>,
}

impl Queue {
    fn next(&self) -> Option<u64> {
        let mut left = self.left.lock();
        left.0 = left.0.checked_sub(1)?;
        loop {
            let seed = game_seed(self.run, left.1);
            left.1 += 1;
            if !self.known.contains(&seed) {
                return Some(seed);
            }
        }
    }
}

/// The seed of game `number` (from 0) of a run; never 0. One step of SplitMix64 (Steele, Lea and
/// Flood 2014) from the hash of the run's seed.
fn game_seed(run: u64, number: u64) -> u64 {
    let mix = |x: u64| {
        let mut z = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    };
    mix(mix(run) ^ number).max(1)
}

fn work<T: Teacher>(
    plan: &Plan,
    queue: &Queue,
    teacher: &(dyn Fn() -> Result<T, TrainError> + Sync),
    cancel: &AtomicBool,
    sender: &Sender<Result<GameRecord, TrainError>>,
) -> Result<(), TrainError> {
    let stopped = || cancel.load(Ordering::Relaxed);
    // Whatever fails after the end was asked for fails because of that.
    let unless_stopped = |result: Result<(), TrainError>| match result {
        Err(_) if stopped() => Ok(()),
        other => other,
    };
    let mut teacher = match teacher() {
        Ok(teacher) => teacher,
        Err(error) => return unless_stopped(Err(error)),
    };
    while let Some(seed) = queue.next().filter(|_| !stopped()) {
        let mut tries = 0;
        let game = loop {
            tries += 1;
            match play::play(plan, seed, &mut teacher, cancel) {
                Ok(game) => break game,
                Err(_) if stopped() => return Ok(()),
                Err(error) if tries >= TRIES => return Err(error),
                Err(error) => {
                    log::warn!("{error}; the game is played again");
                    unless_stopped(teacher.recover())?;
                }
            }
        };
        let Some(game) = game else { return Ok(()) };
        if sender.send(Ok(game)).is_err() {
            return Ok(());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::train::chunk::ChunkFile;
    use crate::train::{PolicyLabel, WdlLabel};
    use std::sync::atomic::AtomicU64;

    /// Plays the first legal move, sees nothing, and fails when told to.
    struct Dull<'a> {
        labels: &'a AtomicU64,
        fails_at: Option<u64>,
    }

    impl Teacher for Dull<'_> {
        fn source(&self) -> Source {
            Source::Engine
        }

        fn new_game(&mut self) -> Result<(), TrainError> {
            Ok(())
        }

        fn label(&mut self, game: &Game, _: &mut StdRng) -> Result<Ply, TrainError> {
            let number = self.labels.fetch_add(1, Ordering::Relaxed);
            let played = game.current().legal_moves()[0];
            if self.fails_at.is_some_and(|at| number >= at) {
                let why = "a fault".to_owned();
                return Err(TrainError::Record { ply: 0, why });
            }
            Ok(Ply {
                played,
                wdl: WdlLabel::new(0, 1000, 0),
                policy: PolicyLabel::Scores(vec![(played, 0)]),
            })
        }

        fn recover(&mut self) -> Result<(), TrainError> {
            Ok(())
        }
    }

    fn plan(games: u64) -> Plan {
        Plan {
            seed: 7,
            games,
            workers: 2,
            openings: Openings::new(None, 2..=4, 0.5).unwrap(),
            rules: Rules {
                max_plies: 12,
                random_moves: 0.5,
                ..Rules::default()
            },
        }
    }

    fn scratch(name: &str) -> std::path::PathBuf {
        let name = format!("simurgh-generate-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let _ = std::fs::remove_file(&path);
        path
    }

    fn records(path: &Path) -> Vec<GameRecord> {
        let file = ChunkFile::open(path).unwrap();
        let chunks = 0..file.chunks().len();
        let mut games: Vec<_> = chunks.flat_map(|i| file.read(i).unwrap()).collect();
        games.sort_by_key(|game| game.seed);
        games
    }

    #[test]
    fn a_run_in_two_parts_plays_the_games_of_one_and_labels_no_position_twice() {
        let (parts, whole) = (scratch("parts"), scratch("whole"));
        let labels = AtomicU64::new(0);
        let teacher = || {
            Ok(Dull {
                labels: &labels,
                fails_at: None,
            })
        };
        let go = |path: &Path, games| {
            let cancel = Arc::new(AtomicBool::new(false));
            run(&plan(games), path, &teacher, &cancel, &mut |_| {}).unwrap()
        };
        assert_eq!(go(&parts, 5).played, 5);
        let second = go(&parts, 12);
        assert_eq!((second.games, second.played), (12, 7));
        assert_eq!(go(&parts, 12).played, 0);
        go(&whole, 12);
        let (parts_games, whole_games) = (records(&parts), records(&whole));
        let lines = |games: &[GameRecord]| -> Vec<_> {
            let line = |game: &GameRecord| {
                let moves: Vec<_> = game.plies.iter().map(|ply| ply.played).collect();
                (game.seed, game.start.to_fen(true), moves, game.result)
            };
            games.iter().map(line).collect()
        };
        assert_eq!(lines(&parts_games), lines(&whole_games));
        let mut seen = HashSet::new();
        for mut game in parts_games {
            assert_ne!(game.seed, 0);
            assert_eq!(game.unlabel_repeats(&mut seen), 0);
        }
        assert_eq!(seen.len() as u64, second.positions);
        let _ = (std::fs::remove_file(parts), std::fs::remove_file(whole));
    }

    #[test]
    fn what_was_played_before_a_failure_or_an_interrupt_is_kept() {
        let path = scratch("failure");
        let labels = AtomicU64::new(0);
        let teacher = |fails_at| {
            let labels = &labels;
            move || Ok(Dull { labels, fails_at })
        };
        let cancel = Arc::new(AtomicBool::new(false));
        let failing = teacher(Some(60));
        let error = run(&plan(1000), &path, &failing, &cancel, &mut |_| {}).unwrap_err();
        assert!(error.to_string().contains("a fault"), "{error}");
        assert!(cancel.load(Ordering::Relaxed));
        let kept = records(&path).len() as u64;
        assert!(kept > 0 && kept < 1000);

        let cancel = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&cancel);
        let sound = teacher(None);
        let progress = run(&plan(1000), &path, &sound, &cancel, &mut |progress| {
            if progress.played == 3 {
                flag.store(true, Ordering::Relaxed);
            }
        });
        let played = progress.unwrap().played;
        assert!((3..100).contains(&played), "{played}");
        assert_eq!(records(&path).len() as u64, kept + played);
        let _ = std::fs::remove_file(path);
    }
}
