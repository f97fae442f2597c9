//! When a game is decided before its end: by what both engines say of it, or by tablebases. The rules are those
//! of Cutechess. Knows scores and positions; who plays is decided elsewhere.

use std::str::FromStr;

use crate::chess::{Color, GameResult, Position, TableResult, Tablebases};
use crate::client::Score;

/// A draw: from a full move on, both engines have seen at most `score` centipawns either way for so many moves
/// in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DrawRule {
    /// Full moves of the game, book included, that must have been played.
    pub move_number: u32,
    /// Moves of each side in a row.
    pub move_count: u32,
    /// Centipawns.
    pub score: i64,
}

/// A win: the loser has seen at least `score` centipawns against itself for so many of its moves in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResignRule {
    /// Its moves in a row.
    pub move_count: u32,
    /// Centipawns.
    pub score: i64,
    /// Whether the winner must have seen as much for itself.
    pub two_sided: bool,
}

/// What counts towards a decision so far in one game.
#[derive(Clone, Debug, Default)]
pub struct Adjudicator {
    /// Plies in a row with a drawish score.
    drawish: u32,
    /// Moves in a row with a lost score, White's and Black's.
    lost: [u32; 2],
    /// Moves in a row with a won score.
    won: [u32; 2],
}

impl Adjudicator {
    /// Takes in what the side that moved said of its move, `None` if nothing, and that `moves` full moves are played.
    /// The result, if that decides the game.
    pub fn after_move(
        &mut self,
        mover: Color,
        score: Option<Score>,
        moves: u32,
        draw: Option<DrawRule>,
        resign: Option<ResignRule>,
    ) -> Option<GameResult> {
        // A mate is worth more than any score in centipawns.
        let cp = score.map(|score| match score {
            Score::Cp(cp) => cp,
            Score::Mate(n) if n > 0 => i64::MAX,
            Score::Mate(_) => -i64::MAX,
        });
        if let Some(rule) = draw {
            self.drawish = match cp {
                Some(cp) if cp.abs() <= rule.score => self.drawish + 1,
                _ => 0,
            };
            if moves >= rule.move_number && self.drawish >= 2 * rule.move_count {
                return Some(GameResult::Draw);
            }
        }
        let rule = resign?;
        let (own, other) = mover.fold_wb((0, 1), (1, 0));
        let next = |count: u32, holds: bool| if holds { count + 1 } else { 0 };
        self.lost[own] = next(self.lost[own], cp.is_some_and(|cp| cp <= -rule.score));
        self.won[own] = next(self.won[own], cp.is_some_and(|cp| cp >= rule.score));
        for (loser, winner) in [(own, other), (other, own)] {
            if self.lost[loser] >= rule.move_count
                && (!rule.two_sided || self.won[winner] >= rule.move_count)
            {
                return Some(match loser {
                    0 => GameResult::BlackWins,
                    _ => GameResult::WhiteWins,
                });
            }
        }
        None
    }
}

/// The result by tablebases, right after a capture or a pawn move.
pub fn by_tablebases(tables: &Tablebases, position: &Position) -> Option<GameResult> {
    let result = tables.probe_wdl(position)?;
    Some(match (result, position.turn()) {
        (TableResult::Win, Color::White) | (TableResult::Loss, Color::Black) => {
            GameResult::WhiteWins
        }
        (TableResult::Win, Color::Black) | (TableResult::Loss, Color::White) => {
            GameResult::BlackWins
        }
        _ => GameResult::Draw,
    })
}

/// Reads `key=value` words in any order; every key named in `keys` once, the others not at all.
fn numbers<const N: usize>(text: &str, keys: [&str; N]) -> Result<[Option<i64>; N], String> {
    let mut found = [None; N];
    for word in text.split_whitespace() {
        let expected = || format!("{word:?}: expected {}=NUMBER", keys.join("=NUMBER, "));
        let (key, value) = word.split_once('=').ok_or_else(expected)?;
        let at = keys.iter().position(|k| *k == key).ok_or_else(expected)?;
        let number = match value {
            "true" => 1,
            "false" => 0,
            _ => value.parse::<u32>().map_err(|_| expected())?.into(),
        };
        if found[at].replace(number).is_some() {
            return Err(format!("{key} stands twice"));
        }
    }
    Ok(found)
}

impl FromStr for DrawRule {
    type Err = String;

    /// `movenumber=34 movecount=8 score=20`
    fn from_str(text: &str) -> Result<DrawRule, String> {
        match numbers(text, ["movenumber", "movecount", "score"])? {
            [Some(number), Some(count @ 1..), Some(score)] => Ok(DrawRule {
                move_number: number as u32,
                move_count: count as u32,
                score,
            }),
            _ => Err("expected movenumber=N movecount=N score=CP, movecount at least 1".to_owned()),
        }
    }
}

impl FromStr for ResignRule {
    type Err = String;

    /// `movecount=3 score=600 twosided=true`
    fn from_str(text: &str) -> Result<ResignRule, String> {
        match numbers(text, ["movecount", "score", "twosided"])? {
            [
                Some(count @ 1..),
                Some(score @ 1..),
                two @ (None | Some(0 | 1)),
            ] => Ok(ResignRule {
                move_count: count as u32,
                score,
                two_sided: two == Some(1),
            }),
            _ => Err(
                "expected movecount=N score=CP [twosided=true|false], both numbers at least 1"
                    .to_owned(),
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scores by turns from White on; the ply (from 1) and result at which the game is decided.
    fn decided(
        scores: &[i64],
        draw: Option<&str>,
        resign: Option<&str>,
    ) -> Option<(usize, GameResult)> {
        let draw = draw.map(|text| text.parse().unwrap());
        let resign = resign.map(|text| text.parse().unwrap());
        let mut adjudicator = Adjudicator::default();
        scores.iter().enumerate().find_map(|(ply, &cp)| {
            let mover = if ply % 2 == 0 {
                Color::White
            } else {
                Color::Black
            };
            let moves = (ply as u32).div_ceil(2);
            let score = match cp {
                9999 => Some(Score::Mate(3)),
                -9999 => Some(Score::Mate(-3)),
                7777 => None,
                cp => Some(Score::Cp(cp as _)),
            };
            adjudicator
                .after_move(mover, score, moves, draw, resign)
                .map(|result| (ply + 1, result))
        })
    }

    #[test]
    fn draws_need_both_sides_and_the_move_number() {
        let rule = Some("movenumber=4 movecount=2 score=10");
        assert_eq!(decided(&[0; 20], rule, None), Some((8, GameResult::Draw)));
        let rule = Some("movenumber=0 movecount=2 score=10");
        assert_eq!(
            decided(&[10, -10, 3, 0], rule, None),
            Some((4, GameResult::Draw))
        );
        assert_eq!(decided(&[0, 0, 0, 11, 0, 0, 0], rule, None), None);
        assert_eq!(decided(&[0, 0, 0, 7777, 0, 0, 0], rule, None), None);
        assert_eq!(decided(&[0, 0, 0, 9999, 0, 0, 0], rule, None), None);
    }

    #[test]
    fn a_side_resigns_after_its_own_moves_in_a_row() {
        let rule = Some("movecount=2 score=500");
        let won = Some((4, GameResult::WhiteWins));
        assert_eq!(decided(&[0, -500, 0, -9999], None, rule), won);
        assert_eq!(
            decided(&[-500, 0, -600], None, rule),
            Some((3, GameResult::BlackWins))
        );
        assert_eq!(decided(&[0, -500, 0, -499, 0, -500], None, rule), None);
        let rule = Some("movecount=2 score=500 twosided=true");
        assert_eq!(decided(&[0, -500, 0, -500, 0, -500], None, rule), None);
        assert_eq!(decided(&[700, -500, 9999, -500], None, rule), won);
        // The winner may be the last one to see it.
        let late = Some((5, GameResult::WhiteWins));
        assert_eq!(decided(&[0, -500, 700, -500, 700], None, rule), late);
    }

    #[test]
    fn bad_rules_are_named() {
        for text in [
            "",
            "movecount=3",
            "movecount=0 movenumber=1 score=5",
            "movecount=x",
            "score=-1",
        ] {
            assert!(text.parse::<DrawRule>().is_err(), "{text}");
            assert!(text.parse::<ResignRule>().is_err(), "{text}");
        }
        let twice = "movecount=3 movecount=3 score=5".parse::<ResignRule>();
        assert!(twice.unwrap_err().contains("twice"));
    }
}
