//! How long an engine may think: time controls as people write them, and a running clock. Knows
//! no engine; the times it is charged are measured elsewhere.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// A time control: base time for so many moves (or all), with an increment a move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeControl {
    /// Moves the base time is for, after which it is added again; `None` for the whole game.
    pub moves: Option<u32>,
    /// Base time.
    pub base: Duration,
    /// Added after every move.
    pub increment: Duration,
}

/// A text that is not a time control.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error(
    "time control {0:?}, expected [MOVES/]TIME[+INCREMENT] in seconds or minutes:seconds, such as 10+0.1, 40/60 or 1:30+1"
)]
pub struct TimeControlError(String);

impl FromStr for TimeControl {
    type Err = TimeControlError;

    fn from_str(text: &str) -> Result<Self, TimeControlError> {
        let error = || TimeControlError(text.to_owned());
        let (moves, rest) = match text.split_once('/') {
            Some((moves, rest)) => (Some(moves.parse().map_err(|_| error())?), rest),
            None => (None, text),
        };
        let (base, increment) = match rest.split_once('+') {
            Some((base, increment)) => (base, seconds(increment).ok_or_else(error)?),
            None => (rest, Duration::ZERO),
        };
        let base = match base.split_once(':') {
            Some((minutes, rest)) => {
                let minutes: u32 = minutes.parse().map_err(|_| error())?;
                let minutes = Duration::from_secs(60)
                    .checked_mul(minutes)
                    .ok_or_else(error)?;
                minutes + seconds(rest).ok_or_else(error)?
            }
            None => seconds(base).ok_or_else(error)?,
        };
        if moves == Some(0) || (base.is_zero() && increment.is_zero()) {
            return Err(error());
        }
        Ok(Self {
            moves,
            base,
            increment,
        })
    }
}

impl fmt::Display for TimeControl {
    /// As in PGN's TimeControl tag: seconds.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(moves) = self.moves {
            write!(f, "{moves}/")?;
        }
        write!(f, "{}", self.base.as_secs_f64())?;
        if !self.increment.is_zero() {
            write!(f, "+{}", self.increment.as_secs_f64())?;
        }
        Ok(())
    }
}

/// Reads a time in seconds, a year at most.
pub fn seconds(text: &str) -> Option<Duration> {
    const YEAR: f64 = 366.0 * 86_400.0;
    let number: f64 = text.parse().ok()?;
    (0.0..=YEAR)
        .contains(&number)
        .then(|| Duration::from_secs_f64(number))
}

/// One side's clock.
#[derive(Clone, Debug)]
pub struct Clock {
    control: TimeControl,
    left: Duration,
    moves: u32,
}

impl Clock {
    /// A full clock.
    pub fn new(control: TimeControl) -> Self {
        Self {
            control,
            left: control.base,
            moves: 0,
        }
    }

    /// Time left.
    pub fn left(&self) -> Duration {
        self.left
    }

    /// The increment a move.
    pub fn increment(&self) -> Duration {
        self.control.increment
    }

    /// Moves to the next time control.
    pub fn moves_to_go(&self) -> Option<u32> {
        self.control.moves.map(|moves| moves - self.moves % moves)
    }

    /// Charges a move; false if it took longer than the time left and `margin`. Time over within
    /// the margin is forgiven, not owed.
    pub fn charge(&mut self, elapsed: Duration, margin: Duration) -> bool {
        if elapsed > self.left + margin {
            self.left = Duration::ZERO;
            return false;
        }
        self.left = self.left.saturating_sub(elapsed) + self.control.increment;
        self.moves += 1;
        if self
            .control
            .moves
            .is_some_and(|moves| self.moves.is_multiple_of(moves))
        {
            self.left += self.control.base;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn reads_and_prints() {
        for (text, moves, base, increment, printed) in [
            ("10+0.1", None, 10_000, 100, "10+0.1"),
            ("1", None, 1000, 0, "1"),
            ("40/60", Some(40), 60_000, 0, "40/60"),
            ("1:30+1", None, 90_000, 1000, "90+1"),
            ("40/0:05+0.05", Some(40), 5000, 50, "40/5+0.05"),
            ("0+1", None, 0, 1000, "0+1"),
        ] {
            let control: TimeControl = text.parse().unwrap();
            let expected = TimeControl {
                moves,
                base: ms(base),
                increment: ms(increment),
            };
            assert_eq!(control, expected, "{text}");
            assert_eq!(control.to_string(), printed);
        }
        for text in [
            "", "x", "-1", "0", "0/10", "10+", "+1", "1:2:3", "nan", "inf", "1e99", "10+-1", "a/10",
        ] {
            assert!(text.parse::<TimeControl>().is_err(), "{text}");
        }
    }

    #[test]
    fn clocks_run() {
        let mut clock = Clock::new("2/1+0.1".parse().unwrap());
        assert_eq!(clock.moves_to_go(), Some(2));
        assert!(clock.charge(ms(400), Duration::ZERO));
        assert_eq!((clock.left(), clock.moves_to_go()), (ms(700), Some(1)));
        assert!(clock.charge(ms(720), ms(50)), "within the margin");
        assert_eq!((clock.left(), clock.moves_to_go()), (ms(1100), Some(2)));
        assert!(!clock.charge(ms(1151), ms(50)));
    }
}
