//! From the wishes of a `go` to the limits of a search. Refuses to know how they are kept.

use std::time::Duration;

use super::request::GoRequest;
use crate::chess::Color;
use crate::options::Options;
use crate::search::{Clock, Limits};

/// The limits `request` sets for the side to move; FixedNodes stands in for all of them, and
/// `go infinite` still waits for `stop`.
///
/// Zero nodes, depth or movetime ask for one evaluation; an own clock of zero or less asks for an
/// answer at once. A clock of the other side alone is no limit.
pub fn limits(request: &GoRequest, turn: Color, options: &Options) -> Limits {
    if let Some(nodes) = positive(options.fixed_nodes) {
        return Limits {
            infinite: request.infinite,
            ..Limits::nodes(nodes)
        };
    }
    let (time, increment) = match turn {
        Color::White => (request.white_time_ms, request.white_increment_ms),
        Color::Black => (request.black_time_ms, request.black_increment_ms),
    };
    let clock = time.map(|remaining_ms| Clock {
        remaining_ms,
        increment_ms: increment.unwrap_or(0).max(0),
        moves_to_go: request.moves_to_go.filter(|&moves| moves > 0),
    });
    let mut limits = Limits {
        depth: request.depth.filter(|&depth| depth > 0),
        mate: request.mate.filter(|&moves| moves > 0),
        nodes: request.nodes,
        movetime: request.movetime_ms.filter(|&ms| ms > 0).map(milliseconds),
        clock,
        ..Limits::default()
    };
    let at_once = request.nodes == Some(0)
        || request.depth == Some(0)
        || request.mate == Some(0)
        || request.movetime_ms.is_some_and(|ms| ms <= 0)
        || time.is_some_and(|ms| ms <= 0);
    if at_once {
        limits.nodes = Some(1);
    }
    // A GUI that says infinite means it, whatever else it says.
    limits.infinite = request.infinite;
    limits
}

fn positive(count: i64) -> Option<u64> {
    u64::try_from(count).ok().filter(|&count| count > 0)
}

fn milliseconds(ms: i64) -> Duration {
    Duration::from_millis(ms.unsigned_abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(request: &GoRequest) -> Limits {
        limits(request, Color::White, &Options::default())
    }

    #[test]
    fn nothing_and_the_other_clock_are_endless() {
        assert!(of(&GoRequest::default()).is_endless());
        let other = GoRequest {
            black_time_ms: Some(1000),
            ..GoRequest::default()
        };
        assert!(of(&other).is_endless());
        assert_eq!(
            limits(&other, Color::Black, &Options::default())
                .clock
                .map(|clock| clock.remaining_ms),
            Some(1000)
        );
    }

    #[test]
    fn zeros_ask_for_one_evaluation() {
        for request in [
            GoRequest {
                nodes: Some(0),
                ..GoRequest::default()
            },
            GoRequest {
                depth: Some(0),
                ..GoRequest::default()
            },
            GoRequest {
                movetime_ms: Some(0),
                ..GoRequest::default()
            },
            GoRequest {
                movetime_ms: Some(-7),
                ..GoRequest::default()
            },
        ] {
            assert_eq!(of(&request), Limits::nodes(1), "{request:?}");
        }
        let flagged = GoRequest {
            white_time_ms: Some(-1),
            ..GoRequest::default()
        };
        assert_eq!(of(&flagged).nodes, Some(1));
    }

    #[test]
    fn fixed_nodes_replaces_whatever_was_asked() {
        let options = Options {
            fixed_nodes: 1,
            ..Options::default()
        };
        let request = GoRequest {
            infinite: true,
            depth: Some(9),
            ..GoRequest::default()
        };
        let held = Limits {
            infinite: true,
            ..Limits::nodes(1)
        };
        assert_eq!(limits(&request, Color::White, &options), held);
    }
}
