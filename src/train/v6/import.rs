//! Lc0's records as ours: games put together again from positions and the moves played. Knows no chunk.
//!
//! What is lost: what happened before the first record of a file, or after a gap in it (the first position
//! then has no history, and a game becomes two); the number of the move; all values but the best move's;
//! moves left, which follow from the length of the game again; results that differ within a game (the
//! last counts); visit counts, and probabilities finer than 1/65,536. Positions marked for deletion lose
//! their labels.

use std::io::{BufRead, Read};
use std::path::{Path, PathBuf};

use super::{BLACK, MIRROR_FILES, MIRROR_RANKS, REFLECT, V6_BYTES, V6Record};
use crate::chess::{Board, Color, GameResult, Move, Position, Role, Square, open_maybe_packed};
use crate::encode::{InputFormat, Turn, move_index};
use crate::train::{GameRecord, Ply, PolicyLabel, Source, TrainError, WdlLabel};

/// Probabilities become whole numbers of this.
const SHARES: f32 = 65_536.0;
/// Remark in [`V6Record::invariance`]: not to be trained on.
const DELETED: u8 = 1 << 6;
/// Planes of one position.
const PER_POSITION: usize = 13;
const ROLES: [Role; 6] = Role::ALL;

impl V6Record {
    fn turn(&self) -> Turn {
        match self.format.is_canonical() {
            false => Turn::NONE,
            true => Turn {
                mirror_files: self.invariance & MIRROR_FILES != 0,
                mirror_ranks: self.invariance & MIRROR_RANKS != 0,
                reflect: self.invariance & REFLECT != 0,
            },
        }
    }

    fn mover(&self) -> Color {
        let black = match self.format.is_canonical() {
            true => self.invariance & BLACK != 0,
            false => self.side_or_ep != 0,
        };
        Color::from_white(!black)
    }

    /// The position, with move number 1.
    ///
    /// # Errors
    /// Says which part makes no position.
    pub fn position(&self) -> Result<Position, String> {
        let (turn, mover) = (self.turn(), self.mover());
        let flip = if mover == Color::Black { 56 } else { 0 };
        let mut board = Board::empty();
        for square in Square::ALL {
            let seen = 1u64 << turn.square(u8::from(square) ^ flip);
            for (plane, mask) in self.planes[..12].iter().enumerate() {
                if mask & seen == 0 {
                    continue;
                }
                if board.piece_at(square).is_some() {
                    return Err(format!("two pieces on {square}, expected one"));
                }
                let color = if plane < 6 { mover } else { !mover };
                board.set_piece_at(square, ROLES[plane % 6].of(color));
            }
        }
        let fen = format!(
            "{} {} {} {} {} 1",
            board.board_fen(),
            mover.char(),
            self.castling_field(mover)?,
            self.ep_field(&board, mover),
            self.rule50
        );
        match Position::from_fen(&fen) {
            Ok((position, repairs)) => match repairs.first() {
                Some(repair) => Err(format!("{repair} in {fen}")),
                None => Ok(position),
            },
            Err(error) => Err(format!("{error} in {fen}")),
        }
    }

    fn castling_field(&self, mover: Color) -> Result<String, String> {
        let [us_ooo, us_oo, them_ooo, them_oo] = self.castling;
        let mut field = String::new();
        for color in Color::ALL {
            let (oo, ooo) = match color == mover {
                true => (us_oo, us_ooo),
                false => (them_oo, them_ooo),
            };
            for (right, letter) in [(oo, 'k'), (ooo, 'q')] {
                let letter = match (right, self.format) {
                    (0, _) => continue,
                    (_, InputFormat::Classical) => letter,
                    (rook, _) if rook.is_power_of_two() => {
                        char::from(b'a' + rook.trailing_zeros() as u8)
                    }
                    (other, _) => {
                        return Err(format!("castling {other:#x}, expected one rook's file"));
                    }
                };
                field.push(color.fold_wb(letter.to_ascii_uppercase(), letter));
            }
        }
        match field.is_empty() {
            true => Ok("-".to_owned()),
            false => Ok(field),
        }
    }

    /// The en-passant square. Formats that do not name it show it in the position before: an enemy pawn that
    /// was on its first rank, two squares away, with a pawn of the mover's beside it.
    fn ep_field(&self, board: &Board, mover: Color) -> String {
        let (turn, ours) = (self.turn(), board.pawns() & board.by_color(mover));
        let square = |seen: u8| {
            // A turn is undone by looking for the square that it sends there.
            let flip = if mover == Color::Black { 56 } else { 0 };
            let from = (0..64u8).find(|&square| turn.square(square) == seen);
            Square::new(u32::from(from.unwrap_or(seen) ^ flip))
        };
        for file in 0..8u8 {
            let passed = square(40 + file);
            let pushed = match self.format.is_canonical() {
                true => self.side_or_ep & 1 << file != 0,
                false => {
                    let before = self.planes[PER_POSITION + 6];
                    let now = self.planes[6];
                    let (from, to) = (1u64 << (48 + file), 1u64 << (32 + file));
                    let moved = before & from != 0 && now & from == 0;
                    let beside = [file.checked_sub(1), file.checked_add(1).filter(|&f| f < 8)];
                    let seen = |file: u8| ours.contains(square(32 + file));
                    let taken = beside.into_iter().flatten().any(seen);
                    moved && before & to == 0 && now & to != 0 && taken
                }
            };
            if pushed {
                return passed.to_string();
            }
        }
        "-".to_owned()
    }

    /// The move played and the labels.
    fn ply(&self, position: &Position) -> Result<Ply, String> {
        let (turn, mover) = (self.turn(), self.mover());
        let mut played = None;
        let mut shares: Vec<(Move, u32)> = Vec::new();
        for m in position.legal_moves() {
            let Some(index) = move_index(m, mover, turn) else {
                return Err(format!("{m} has no policy index"));
            };
            if index == self.played_index {
                played = Some(m);
            }
            let p = self.probabilities[usize::from(index)];
            if !p.is_finite() || p > 1.001 {
                return Err(format!("probability {p} of {m}, expected 0 to 1"));
            }
            let share = (p.max(0.0) * SHARES).round() as u32;
            if share > 0 {
                shares.push((m, share));
            }
        }
        let played = played.ok_or_else(|| {
            let fen = position.to_fen(true);
            format!(
                "played index {} is no legal move in {fen}",
                self.played_index
            )
        })?;
        if self.invariance & DELETED != 0 {
            return Ok(Ply::played(played));
        }
        shares.sort_by_key(|&(_, share)| std::cmp::Reverse(share));
        let known = self.best.q.is_finite() && self.best.d.is_finite();
        Ok(Ply {
            played,
            wdl: known.then(|| WdlLabel::from_q_d(self.best.q, self.best.d)),
            policy: match shares.is_empty() {
                true => PolicyLabel::None,
                false => PolicyLabel::Visits(shares),
            },
        })
    }

    fn result(&self) -> GameResult {
        let white = match self.mover() {
            Color::White => self.result_q,
            Color::Black => -self.result_q,
        };
        match white {
            q if q > 0.5 => GameResult::WhiteWins,
            q if q < -0.5 => GameResult::BlackWins,
            _ if self.result_d > 0.5 => GameResult::Draw,
            _ => GameResult::Unknown,
        }
    }
}

/// The games of a file of records, gzipped or not. After an error nothing more comes.
pub struct V6Reader {
    path: PathBuf,
    input: Box<dyn BufRead + Send>,
    number: u64,
    /// A record that begins the next game, and its position.
    next: Option<(V6Record, Position)>,
    done: bool,
}

impl V6Reader {
    /// Opens a file.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn open(path: impl AsRef<Path>) -> Result<V6Reader, TrainError> {
        let path = path.as_ref();
        let input = open_maybe_packed(path).map_err(|e| TrainError::io("read", path, e))?;
        Ok(V6Reader {
            path: path.to_owned(),
            input,
            number: 0,
            next: None,
            done: false,
        })
    }

    /// The next record with its position.
    fn record(&mut self) -> Result<Option<(V6Record, Position)>, TrainError> {
        let mut bytes = Vec::with_capacity(V6_BYTES);
        let mut limited = (&mut self.input).take(V6_BYTES as u64);
        let read = limited.read_to_end(&mut bytes);
        read.map_err(|e| TrainError::io("read", &self.path, e))?;
        if bytes.is_empty() {
            return Ok(None);
        }
        let bytes: [u8; V6_BYTES] = bytes.try_into().map_err(|bytes: Vec<u8>| {
            let length = bytes.len();
            self.fault(format!("cut off: {length} bytes, expected {V6_BYTES}"))
        })?;
        let record = V6Record::from_bytes(&bytes).map_err(|why| self.fault(why))?;
        let position = record.position().map_err(|why| self.fault(why))?;
        self.number += 1;
        Ok(Some((record, position)))
    }

    fn fault(&self, why: String) -> TrainError {
        TrainError::V6 {
            path: self.path.clone(),
            record: self.number,
            why,
        }
    }

    fn game(&mut self) -> Result<Option<GameRecord>, TrainError> {
        let first = match self.next.take() {
            Some(first) => Some(first),
            None => self.record()?,
        };
        let Some((mut record, start)) = first else {
            return Ok(None);
        };
        let mut position = start.clone();
        let mut game = GameRecord::new(start, Source::Lc0);
        loop {
            let ply = record.ply(&position);
            // The record was counted when it was read.
            let ply = ply.map_err(|why| TrainError::V6 {
                path: self.path.clone(),
                record: self.number - 1,
                why,
            })?;
            position.play(ply.played);
            game.plies.push(ply);
            game.result = record.result();
            match self.record()? {
                None => return Ok(Some(game)),
                Some((next, seen)) if follows(&seen, &position) => record = next,
                gap => {
                    self.next = gap;
                    return Ok(Some(game));
                }
            }
        }
    }
}

/// True when `seen` is the position that was reached; its en-passant square may not be known.
fn follows(seen: &Position, reached: &Position) -> bool {
    seen.board() == reached.board()
        && seen.turn() == reached.turn()
        && seen.castles().castling_rights() == reached.castles().castling_rights()
        && seen.rule50() == reached.rule50().min(u32::from(u8::MAX))
}

impl Iterator for V6Reader {
    type Item = Result<GameRecord, TrainError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        let game = self.game().transpose();
        self.done = !matches!(game, Some(Ok(_)));
        game
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::train::TrainingGame;
    use crate::train::codec::tests::random_games;
    use crate::train::v6::write_game;

    const FORMATS: [i32; 7] = [1, 2, 3, 4, 5, 132, 133];

    fn scratch(name: &str) -> PathBuf {
        let name = format!("simurgh-v6-{name}-{}.gz", std::process::id());
        std::env::temp_dir().join(name)
    }

    fn read(path: &Path) -> Vec<Result<GameRecord, TrainError>> {
        V6Reader::open(path).unwrap().collect()
    }

    /// Some game with policy, value and result everywhere.
    fn labelled(game: &GameRecord) -> GameRecord {
        let mut game = game.clone();
        let mut position = game.start.clone();
        game.result = GameResult::BlackWins;
        for (number, ply) in game.plies.iter_mut().enumerate() {
            ply.wdl = WdlLabel::new(200, 500, 300);
            if ply.policy.moves().next().is_none() {
                let legal = position.legal_moves();
                ply.policy = PolicyLabel::Scores(vec![(legal[number % legal.len()], 13)]);
            }
            position.play(ply.played);
        }
        game
    }

    #[test]
    fn games_come_back_from_every_input_format() {
        let path = scratch("round-trip");
        let mut played = 0;
        for game in random_games().iter().filter(|game| !game.plies.is_empty()) {
            let game = labelled(game);
            let sent = Arc::new(TrainingGame::new(game.clone()));
            for number in FORMATS {
                let format = InputFormat::from_number(number).unwrap();
                // Rights of inner rooks are not told by flags.
                if number == 1 && game.start.needs_chess960() {
                    continue;
                }
                let records = V6Record::of_game(&sent, format, 0.1);
                // A label of visits that are all zero says nothing.
                if records.len() < game.plies.len() {
                    continue;
                }
                write_game(&path, &records).unwrap();
                let back: Vec<GameRecord> = read(&path).into_iter().map(Result::unwrap).collect();
                assert_eq!(back.len(), 1, "format {number}");
                let back = &back[0];
                assert_eq!(back.start.board(), game.start.board());
                assert_eq!(back.start.turn(), game.start.turn());
                assert_eq!(back.start.rule50(), game.start.rule50());
                let rights = |game: &GameRecord| game.start.castles().castling_rights();
                assert_eq!(rights(back), rights(&game));
                assert_eq!(back.result, game.result);
                assert_eq!(back.plies.len(), game.plies.len());
                let again = Arc::new(TrainingGame::new(back.clone()));
                for (one, two) in sent.samples().zip(again.samples()) {
                    assert_eq!(one.label().played, two.label().played);
                    assert_eq!(one.label().wdl, two.label().wdl);
                    let mut left: Vec<_> = one.policy_target(0.1);
                    left.retain(|&(_, p)| p > 1e-4);
                    for (m, p) in left {
                        let target = two.policy_target(0.1);
                        let found = target.iter().find(|(other, _)| *other == m).unwrap().1;
                        assert!((p - found).abs() < 1e-3, "{p} {found}");
                    }
                    played += 1;
                }
            }
        }
        assert!(played > 200, "{played}");
        let _ = std::fs::remove_file(path);
    }

    fn game(fen: &str, moves: &str) -> GameRecord {
        let start = Position::from_fen(fen).unwrap().0;
        let mut record = GameRecord::new(start.clone(), Source::Engine);
        let mut position = start;
        for text in moves.split_whitespace() {
            let m = position.parse_uci(text).unwrap();
            record.plies.push(Ply::played(m));
            position.play(m);
        }
        labelled(&record)
    }

    #[test]
    fn en_passant_castling_and_promotion_survive() {
        let path = scratch("special");
        let special = [
            ("4k3/8/8/3pP3/8/8/8/4K3 w - d6 0 10", "e5d6 e8d7"),
            ("4k3/8/8/8/3Pp3/8/8/4K3 b - d3 0 10", "e4d3 e1f2"),
            ("r3k2r/8/8/8/8/8/8/R3K2R b KQkq - 3 9", "e8c8 e1g1"),
            ("8/P5k1/8/8/8/8/1p4K1/2N5 w - - 0 1", "a7a8n b2c1q"),
            // Turned by the canonical formats: king on the left, no pawns.
            ("8/1k6/8/8/2K5/8/5R2/8 b - - 7 40", "b7a6 f2f6 a6a5"),
        ];
        for (fen, moves) in special {
            let sent = game(fen, moves);
            let training = Arc::new(TrainingGame::new(sent.clone()));
            for number in FORMATS {
                let format = InputFormat::from_number(number).unwrap();
                write_game(&path, &V6Record::of_game(&training, format, 0.1)).unwrap();
                let back: Vec<_> = read(&path).into_iter().map(Result::unwrap).collect();
                assert_eq!(back.len(), 1, "{fen} in format {number}");
                assert_eq!(back[0].start, sent.start, "{fen} in format {number}");
                let moves = |game: &GameRecord| -> Vec<Move> {
                    game.plies.iter().map(|ply| ply.played).collect()
                };
                assert_eq!(moves(&back[0]), moves(&sent), "{fen} in format {number}");
            }
        }
        let _ = std::fs::remove_file(path);
    }

    #[test]
    fn a_gap_makes_two_games_and_damage_is_named() {
        let path = scratch("damage");
        let fen = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1";
        let sent = game(fen, "e2e4 e7e5 g1f3 b8c6 f1b5");
        let training = Arc::new(TrainingGame::new(sent));
        let mut records = V6Record::of_game(&training, InputFormat::Classical, 0.1);
        records.remove(2);
        write_game(&path, &records).unwrap();
        let back: Vec<_> = read(&path).into_iter().map(Result::unwrap).collect();
        let lengths: Vec<usize> = back.iter().map(|game| game.plies.len()).collect();
        assert_eq!(lengths, [2, 2]);

        let whole: Vec<u8> = records.iter().flat_map(V6Record::to_bytes).collect();
        let mut two_kings = whole.clone();
        two_kings[7440] ^= 1 << 3;
        let mut bad_index = whole.clone();
        bad_index[V6_BYTES + 8344] = 0xff;
        bad_index[V6_BYTES + 8345] = 0x1;
        for (bytes, record, says) in [
            (&whole[..whole.len() - 1], 3, "cut off: 8355 bytes"),
            (&two_kings[..], 0, "two pieces on"),
            (&bad_index[..], 1, "played index 511"),
            (&b"no records"[..], 0, "cut off: 10 bytes"),
        ] {
            std::fs::write(&path, bytes).unwrap();
            let error = read(&path).pop().unwrap().unwrap_err().to_string();
            let named = format!("record {record}: ");
            assert!(error.contains(&named) && error.contains(says), "{error}");
        }
        let _ = std::fs::remove_file(path);
    }
}
