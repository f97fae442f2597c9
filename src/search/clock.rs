//! How long to think: from clocks to a time for this move. Knows no tree; what it learns about reuse
//! and speed it is told after each move.

use std::time::Duration;

use crate::options::Options;

use super::request::Clock;

/// What earlier moves of the game taught.
#[derive(Clone, Copy, Debug)]
pub struct Experience {
    /// Share of a tree that is still there at the next move, smoothed.
    reuse: f64,
    /// Visits per second, smoothed.
    nps: f64,
}

impl Default for Experience {
    fn default() -> Experience {
        Experience {
            reuse: 0.0,
            nps: 0.0,
        }
    }
}

impl Experience {
    /// At the start of a search: the last tree's visits and how many of them are kept.
    pub fn note_reuse(&mut self, last_visits: u32, kept: u32) {
        if last_visits > 0 {
            let share = f64::from(kept.min(last_visits)) / f64::from(last_visits);
            self.reuse += 0.25 * (share - self.reuse);
        }
    }

    /// At the end of a search.
    pub fn note_speed(&mut self, playouts: u64, time: Duration) {
        let seconds = time.as_secs_f64();
        if seconds < 0.01 || playouts == 0 {
            return;
        }
        let nps = playouts as f64 / seconds;
        self.nps = match self.nps {
            0.0 => nps,
            known => known + 0.3 * (nps - known),
        };
    }
}

/// Time for the move, counted from the arrival of `go`, and how far it may be stretched.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Budget {
    /// Stop here when nothing is unclear.
    pub usual: Duration,
    /// Never think longer.
    pub most: Duration,
}

/// Moves a game goes on for, as the time manager sees it.
const MOVES_AHEAD: f64 = 26.0;

/// What is kept back for everything between us and the clock: the option, but never more than a
/// tenth of what is left.
pub fn overhead(options: &Options, left: Duration) -> Duration {
    let wanted = Duration::from_millis(options.move_overhead_ms.max(0) as u64);
    wanted.min(left / 10)
}

/// The time for a fixed `movetime`.
pub fn fixed(options: &Options, movetime: Duration) -> Budget {
    let time = movetime - overhead(options, movetime);
    Budget {
        usual: time,
        most: time,
    }
}

/// Shares the clock out. Without moves to go a part of what is left plus most of the increment, never
/// more than a fifth of what is left; with them an even share. A tree that kept more than usual needs
/// less time for the same total of visits.
pub fn from_clock(
    options: &Options,
    clock: Clock,
    experience: &Experience,
    kept_visits: u32,
) -> Budget {
    let left_ms = clock.remaining_ms.max(0) as f64;
    let left = Duration::from_millis(clock.remaining_ms.max(0) as u64);
    let available = (left_ms - overhead(options, left).as_secs_f64() * 1000.0).max(0.0);
    let increment = clock.increment_ms.max(0) as f64;
    let (moves, share) = match clock.moves_to_go {
        None | Some(0) => (MOVES_AHEAD, 0.2),
        // The last move before the control may not use all: the measurement of time has edges.
        Some(n) => {
            let n = f64::from(n);
            ((n + 0.3).min(MOVES_AHEAD), (1.5 / n).min(0.75))
        }
    };
    let even = available / moves + 0.85 * increment;
    let total = even * scale_for_reuse(experience, even, kept_visits) * options.slow_mover;
    let most = available * share;
    let usual = total.min(most * 0.75);
    Budget {
        usual: milliseconds(usual),
        most: milliseconds(most.min(usual * 2.5)),
    }
}

/// With reuse r and even times a move ends with T = new/(1 − r) visits. Aim at the same T whatever
/// was kept this time: new = T − kept.
fn scale_for_reuse(experience: &Experience, even_ms: f64, kept: u32) -> f64 {
    let new = experience.nps * even_ms / 1000.0;
    if new < 50.0 {
        return 1.0;
    }
    let total = new / (1.0 - experience.reuse.min(0.8));
    ((total - f64::from(kept)) / new).clamp(0.5, 1.5)
}

fn milliseconds(ms: f64) -> Duration {
    Duration::from_secs_f64(ms.max(0.0) / 1000.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clock(remaining_ms: i64, increment_ms: i64, moves_to_go: Option<u32>) -> Clock {
        Clock {
            remaining_ms,
            increment_ms,
            moves_to_go,
        }
    }

    fn budget(clock: Clock) -> Budget {
        from_clock(&Options::default(), clock, &Experience::default(), 0)
    }

    #[test]
    fn a_game_at_a_second_and_a_hundredth_never_runs_out() {
        // Every move uses the most it may and loses eight milliseconds on top.
        let mut left = 1000_i64;
        for _ in 0..500 {
            let b = budget(clock(left, 10, None));
            left -= b.most.as_millis() as i64 + 8;
            assert!(left > 0);
            left += 10;
        }
    }

    #[test]
    fn move_controls_are_met() {
        for control in 1..=40_u32 {
            let mut left = 10_000_i64;
            for to_go in (1..=control).rev() {
                let b = budget(clock(left, 0, Some(to_go)));
                assert!(b.usual <= b.most);
                left -= b.most.as_millis() as i64 + 5;
                assert!(left > 0, "{control} {to_go}");
            }
        }
    }

    #[test]
    fn no_time_means_at_once() {
        for ms in [0, -1, -100_000] {
            assert_eq!(budget(clock(ms, 0, None)).most, Duration::ZERO);
        }
        assert!(budget(clock(1, 0, Some(1))).most < Duration::from_millis(1));
    }

    #[test]
    fn a_kept_tree_saves_time() {
        let mut experience = Experience::default();
        experience.note_speed(10_000, Duration::from_secs(1));
        let at = |kept| {
            from_clock(
                &Options::default(),
                clock(60_000, 0, None),
                &experience,
                kept,
            )
            .usual
        };
        assert!(at(10_000) < at(0));
    }
}
