//! The keys of `go`, in any order. Refuses to know a position: move texts are passed on as written.

use super::command::SyntaxError;
use crate::engine::GoRequest;

const KEYS: [&str; 13] = [
    "searchmoves",
    "ponder",
    "infinite",
    "wtime",
    "btime",
    "winc",
    "binc",
    "movestogo",
    "movetime",
    "depth",
    "nodes",
    "mate",
    "perft",
];

/// Reads what follows `go`. Whatever is wrong is reported and skipped, never swallowed into the
/// next key: `wtime btime 1000` gives Black a clock and a complaint about `wtime`.
pub fn parse(rest: &str) -> (GoRequest, Vec<SyntaxError>) {
    let words: Vec<&str> = rest.split_whitespace().collect();
    let mut request = GoRequest::default();
    let mut complaints = Vec::new();
    let mut at = 0;
    while at < words.len() {
        let Some(key) = known(words[at]) else {
            let from = at;
            at = next_key(&words, at + 1);
            complaints.push(SyntaxError::GoUnknownKey(words[from..at].join(" ")));
            continue;
        };
        // The words up to the next key belong to this one.
        let end = next_key(&words, at + 1);
        let values = &words[at + 1..end];
        at = end;
        match key {
            "ponder" | "infinite" => {
                *(if key == "ponder" {
                    &mut request.ponder
                } else {
                    &mut request.infinite
                }) = true;
                if !values.is_empty() {
                    complaints.push(SyntaxError::GoUnknownKey(values.join(" ")));
                }
            }
            "searchmoves" => {
                if values.is_empty() {
                    complaints.push(SyntaxError::GoUnfinished { key });
                }
                request
                    .searchmoves
                    .extend(values.iter().map(|&text| text.to_owned()));
            }
            _ => {
                let Some((first, surplus)) = values.split_first() else {
                    complaints.push(SyntaxError::GoUnfinished { key });
                    continue;
                };
                match number(first) {
                    Some(number) => set(&mut request, key, number, first, &mut complaints),
                    None => complaints.push(SyntaxError::GoNotANumber {
                        key,
                        found: (*first).to_owned(),
                    }),
                }
                if !surplus.is_empty() {
                    complaints.push(SyntaxError::GoUnknownKey(surplus.join(" ")));
                }
            }
        }
    }
    (request, complaints)
}

fn known(word: &str) -> Option<&'static str> {
    KEYS.into_iter().find(|&key| key == word)
}

fn next_key(words: &[&str], from: usize) -> usize {
    (from..words.len())
        .find(|&at| known(words[at]).is_some())
        .unwrap_or(words.len())
}

/// A whole number of any length; what does not fit in 128 bits is as good as the largest that does.
fn number(word: &str) -> Option<i128> {
    let (negative, digits) = match word.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, word.strip_prefix('+').unwrap_or(word)),
    };
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let size = digits.parse().unwrap_or(i128::MAX);
    Some(if negative { -size } else { size })
}

/// Stores a number, cut to the size of its field. A clock may be negative; a count may not.
fn set(
    request: &mut GoRequest,
    key: &'static str,
    number: i128,
    found: &str,
    complaints: &mut Vec<SyntaxError>,
) {
    let clock = match key {
        "wtime" => Some(&mut request.white_time_ms),
        "btime" => Some(&mut request.black_time_ms),
        "winc" => Some(&mut request.white_increment_ms),
        "binc" => Some(&mut request.black_increment_ms),
        "movetime" => Some(&mut request.movetime_ms),
        _ => None,
    };
    if let Some(clock) = clock {
        // Half of the range, so that sums of a few never overflow.
        let limit = i128::from(i64::MAX / 2);
        *clock = i64::try_from(number.clamp(-limit, limit)).ok();
        return;
    }
    if number < 0 {
        complaints.push(SyntaxError::GoNegative {
            key,
            found: found.to_owned(),
        });
    }
    let count = u64::try_from(number.max(0)).unwrap_or(u64::MAX);
    let small = u32::try_from(count).unwrap_or(u32::MAX);
    match key {
        "nodes" => request.nodes = Some(count),
        "movestogo" => request.moves_to_go = Some(small),
        "depth" => request.depth = Some(small),
        "mate" => request.mate = Some(small),
        _ => request.perft = Some(small),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clean(text: &str) -> GoRequest {
        let (request, complaints) = parse(text);
        assert_eq!(complaints, [], "{text}");
        request
    }

    #[test]
    fn keys_in_any_order() {
        let expected = GoRequest {
            white_time_ms: Some(1000),
            black_time_ms: Some(-5),
            white_increment_ms: Some(10),
            black_increment_ms: Some(20),
            moves_to_go: Some(40),
            ..GoRequest::default()
        };
        assert_eq!(
            clean("wtime 1000 btime -5 winc 10 binc 20 movestogo 40"),
            expected
        );
        assert_eq!(
            clean("movestogo 40 binc 20 winc 10 btime -5 wtime 1000"),
            expected
        );
    }

    #[test]
    fn counts_are_64_bit() {
        assert_eq!(clean("nodes 18446744073709551615").nodes, Some(u64::MAX));
        assert_eq!(
            clean("nodes 99999999999999999999999999999999999999999999").nodes,
            Some(u64::MAX)
        );
        assert_eq!(clean("nodes 5000000000").nodes, Some(5_000_000_000));
        assert_eq!(
            clean("wtime 99999999999999999999").white_time_ms,
            Some(i64::MAX / 2)
        );
        assert_eq!(clean("depth 4294967296").depth, Some(u32::MAX));
    }

    #[test]
    fn searchmoves_end_at_the_next_key() {
        let request = clean("searchmoves e2e4 d2d4 nodes 5 ponder");
        assert_eq!(request.searchmoves, ["e2e4", "d2d4"]);
        assert_eq!((request.nodes, request.ponder), (Some(5), true));
    }

    #[test]
    fn an_unfinished_key_swallows_nothing() {
        let (request, complaints) = parse("wtime btime 1000 nodes");
        assert_eq!(
            request,
            GoRequest {
                black_time_ms: Some(1000),
                ..GoRequest::default()
            }
        );
        assert_eq!(
            complaints,
            [
                SyntaxError::GoUnfinished { key: "wtime" },
                SyntaxError::GoUnfinished { key: "nodes" }
            ]
        );
    }

    #[test]
    fn unknown_keys_and_values_are_skipped() {
        let (request, complaints) = parse("foo 5 nodes 7 8 depth abc infinite yes");
        assert_eq!(
            request,
            GoRequest {
                nodes: Some(7),
                infinite: true,
                ..GoRequest::default()
            }
        );
        assert_eq!(
            complaints,
            [
                SyntaxError::GoUnknownKey("foo 5".into()),
                SyntaxError::GoUnknownKey("8".into()),
                SyntaxError::GoNotANumber {
                    key: "depth",
                    found: "abc".into()
                },
                SyntaxError::GoUnknownKey("yes".into()),
            ]
        );
    }

    #[test]
    fn a_negative_count_is_zero() {
        let (request, complaints) = parse("nodes -3");
        assert_eq!(request.nodes, Some(0));
        assert_eq!(
            complaints,
            [SyntaxError::GoNegative {
                key: "nodes",
                found: "-3".into()
            }]
        );
    }
}
