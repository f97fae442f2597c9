//! `info` lines of a foreign engine. Reads every field it can and counts what it cannot; the
//! moves of a variation stay text, because only a position can tell whether they are moves.

/// One `info` line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Info {
    /// Depth in plies.
    pub depth: Option<u32>,
    /// Selective depth in plies.
    pub seldepth: Option<u32>,
    /// Time since `go`, milliseconds.
    pub time_ms: Option<u64>,
    /// Nodes searched.
    pub nodes: Option<u64>,
    /// Nodes a second.
    pub nps: Option<u64>,
    /// The score from the side to move.
    pub score: Option<Score>,
    /// Whether the score is only a bound.
    pub bound: Bound,
    /// Win, draw and loss in per mille, from the side to move.
    pub wdl: Option<[u32; 3]>,
    /// Rank of the variation, from 1.
    pub multipv: Option<u32>,
    /// Fill of the cache in per mille.
    pub hashfull: Option<u32>,
    /// Tablebase hits.
    pub tbhits: Option<u64>,
    /// Expected plies (or moves, as the engine counts) to the end of the game.
    pub moves_left: Option<u32>,
    /// The variation, as printed.
    pub pv: Vec<String>,
    /// Free text after `string`.
    pub string: Option<String>,
    /// Fields whose value is missing or not what the protocol says.
    pub malformed: u32,
}

/// A score from the side to move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Score {
    /// Centipawns.
    Cp(i64),
    /// Moves to mate; negative if the side to move is mated.
    Mate(i64),
}

/// What a printed score says about the true one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Bound {
    /// The score itself.
    #[default]
    Exact,
    /// At least this.
    Lower,
    /// At most this.
    Upper,
}

const KEYS: [&str; 19] = [
    "depth",
    "seldepth",
    "time",
    "nodes",
    "nps",
    "score",
    "wdl",
    "multipv",
    "hashfull",
    "tbhits",
    "movesleft",
    "pv",
    "string",
    "currmove",
    "currmovenumber",
    "cpuload",
    "sbhits",
    "refutation",
    "currline",
];

impl Info {
    /// Reads the line; `None` if it does not begin with `info`.
    pub fn parse(line: &str) -> Option<Self> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (&first, mut rest) = words.split_first()?;
        if first != "info" {
            return None;
        }
        let mut info = Self::default();
        while let Some((&key, after)) = rest.split_first() {
            if key == "string" {
                info.string = Some(after.join(" "));
                break;
            }
            let end = after
                .iter()
                .position(|word| KEYS.contains(word))
                .unwrap_or(after.len());
            let (value, next) = after.split_at(end);
            info.field(key, value);
            rest = next;
        }
        Some(info)
    }

    fn field(&mut self, key: &str, value: &[&str]) {
        let read = match key {
            "depth" => number(value, &mut self.depth),
            "seldepth" => number(value, &mut self.seldepth),
            "time" => number(value, &mut self.time_ms),
            "nodes" => number(value, &mut self.nodes),
            "nps" => number(value, &mut self.nps),
            "multipv" => number(value, &mut self.multipv),
            "hashfull" => number(value, &mut self.hashfull),
            "tbhits" => number(value, &mut self.tbhits),
            "movesleft" => number(value, &mut self.moves_left),
            "score" => self.score_field(value),
            "wdl" => {
                let numbers: Vec<u32> = value.iter().map_while(|word| word.parse().ok()).collect();
                self.wdl = <[u32; 3]>::try_from(numbers).ok();
                self.wdl.is_some() && value.len() == 3
            }
            "pv" => {
                self.pv = value.iter().map(|&word| word.to_owned()).collect();
                !value.is_empty()
            }
            _ => KEYS.contains(&key),
        };
        self.malformed += u32::from(!read);
    }

    fn score_field(&mut self, value: &[&str]) -> bool {
        let (score, bounds) = match value {
            ["cp", text, bounds @ ..] => (text.parse().ok().map(Score::Cp), bounds),
            ["mate", text, bounds @ ..] => (text.parse().ok().map(Score::Mate), bounds),
            _ => return false,
        };
        self.score = score;
        self.bound = match bounds {
            [] => Bound::Exact,
            ["lowerbound"] => Bound::Lower,
            ["upperbound"] => Bound::Upper,
            _ => return false,
        };
        score.is_some()
    }
}

fn number<T: std::str::FromStr>(value: &[&str], field: &mut Option<T>) -> bool {
    *field = match value {
        [text] => text.parse().ok(),
        _ => None,
    };
    field.is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_line() {
        let info = Info::parse(
            "info depth 12 seldepth 20 multipv 2 score cp -31 upperbound wdl 100 800 100 nodes 54321 nps 900000 \
             hashfull 3 tbhits 0 movesleft 80 time 60 pv e2e4 e7e5 g1f3",
        )
        .unwrap();
        assert_eq!(info.depth, Some(12));
        assert_eq!(info.seldepth, Some(20));
        assert_eq!(info.multipv, Some(2));
        assert_eq!(info.score, Some(Score::Cp(-31)));
        assert_eq!(info.bound, Bound::Upper);
        assert_eq!(info.wdl, Some([100, 800, 100]));
        assert_eq!(
            (info.nodes, info.nps, info.time_ms),
            (Some(54321), Some(900_000), Some(60))
        );
        assert_eq!(info.moves_left, Some(80));
        assert_eq!(info.pv, ["e2e4", "e7e5", "g1f3"]);
        assert_eq!(info.malformed, 0);
    }

    #[test]
    fn strings_mates_and_other_lines() {
        let info = Info::parse("info string depth 3 pv nonsense").unwrap();
        assert_eq!(info.string.as_deref(), Some("depth 3 pv nonsense"));
        assert!(info.pv.is_empty());
        let info = Info::parse("info depth 5 score mate -3 pv a1a2 score").unwrap();
        assert_eq!(info.score, Some(Score::Mate(-3)));
        assert_eq!(info.malformed, 1);
        assert_eq!(
            Info::parse("info currmove e2e4 currmovenumber 1")
                .unwrap()
                .malformed,
            0
        );
        assert_eq!(Info::parse("bestmove e2e4"), None);
        assert_eq!(Info::parse(""), None);
    }

    #[test]
    fn malformed_fields_are_counted() {
        for line in [
            "info depth",
            "info depth x",
            "info nodes 1.5",
            "info wdl 1 2",
            "info score 12",
            "info pv",
        ] {
            assert_eq!(Info::parse(line).unwrap().malformed, 1, "{line}");
        }
    }
}
