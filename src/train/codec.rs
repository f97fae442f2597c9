//! Game records to bytes and back, in columns that compress well. Knows neither files nor checksums;
//! bytes of any origin are read without a panic.
//!
//! A block is six columns, each its length (u32, little-endian) and its bytes; numbers in them are
//! LEB128 varints, signed ones zigzag.
//!
//! | column | holds |
//! |---|---|
//! | games | a game: length of the start's FEN and the FEN (none: the start position), result, source, seed, plies |
//! | flags | a byte a ply: bit 0 a WDL label, bits 1–2 the policy label (0 none, 1 scores, 2 visits) |
//! | moves | a ply: how many labelled moves, each a byte; the move played as its place among them, or their count plus its index |
//! | scores | the first minus what the ply before would say, the others minus the one before them |
//! | wdl | win minus the ply before's loss, loss minus its win |
//! | visits | as they are |
//!
//! A move is its index among the legal moves, sorted by [`Move::raw`].

use super::record::{GameRecord, Ply, PolicyLabel, Source, WdlLabel};
use crate::chess::{GameResult, Move, Position};

const RESULTS: [GameResult; 4] = [
    GameResult::Unknown,
    GameResult::WhiteWins,
    GameResult::Draw,
    GameResult::BlackWins,
];

const HAS_WDL: u8 = 1;
const SCORES: u8 = 1 << 1;
const VISITS: u8 = 2 << 1;
const MAX_FEN: u64 = 200;

#[derive(Default)]
struct Columns {
    games: Vec<u8>,
    flags: Vec<u8>,
    moves: Vec<u8>,
    scores: Vec<u8>,
    wdl: Vec<u8>,
    visits: Vec<u8>,
}

/// The block of bytes of some games, whose moves must be legal ([`GameRecord::check`]).
pub fn encode(games: &[GameRecord]) -> Vec<u8> {
    let mut columns = Columns::default();
    for game in games {
        columns.game(game);
    }
    let Columns {
        games,
        flags,
        moves,
        scores,
        wdl,
        visits,
    } = columns;
    let mut block = Vec::new();
    for column in [games, flags, moves, scores, wdl, visits] {
        block.extend((column.len() as u32).to_le_bytes());
        block.extend(column);
    }
    block
}

impl Columns {
    fn game(&mut self, game: &GameRecord) {
        let fen = match is_startpos(&game.start) {
            true => String::new(),
            false => game.start.to_fen(game.start.needs_chess960()),
        };
        put(&mut self.games, fen.len() as u64);
        self.games.extend(fen.as_bytes());
        let result = RESULTS.iter().position(|&known| known == game.result);
        let source = Source::ALL.iter().position(|&known| known == game.source);
        put(&mut self.games, result.unwrap_or_default() as u64);
        put(&mut self.games, source.unwrap_or_default() as u64);
        put(&mut self.games, game.seed);
        put(&mut self.games, game.plies.len() as u64);
        let mut position = game.start.clone();
        let mut before = Forecast::default();
        for ply in &game.plies {
            self.ply(ply, &sorted_moves(&position), &mut before);
            position.play(ply.played);
        }
    }

    fn ply(&mut self, ply: &Ply, legal: &[Move], before: &mut Forecast) {
        let index = |m: Move| legal.iter().position(|&known| known == m).unwrap_or(0);
        let listed: Vec<Move> = ply.policy.moves().collect();
        put(&mut self.moves, listed.len() as u64);
        self.moves.extend(listed.iter().map(|&m| index(m) as u8));
        let place = listed.iter().position(|&m| m == ply.played);
        let place = place.unwrap_or_else(|| listed.len() + index(ply.played));
        put(&mut self.moves, place as u64);

        let mut flags = 0;
        if let Some(wdl) = ply.wdl {
            flags |= HAS_WDL;
            let (win, loss) = before.wdl();
            put_signed(&mut self.wdl, i64::from(wdl.win()) - win);
            put_signed(&mut self.wdl, i64::from(wdl.loss()) - loss);
        }
        match &ply.policy {
            PolicyLabel::None => {}
            PolicyLabel::Scores(scores) => {
                flags |= SCORES;
                let mut last = before.score();
                for &(_, cp) in scores {
                    put_signed(&mut self.scores, i64::from(cp) - last);
                    last = i64::from(cp);
                }
            }
            PolicyLabel::Visits(visits) => {
                flags |= VISITS;
                for &(_, count) in visits {
                    put(&mut self.visits, u64::from(count));
                }
            }
        }
        self.flags.push(flags);
        before.note(ply);
    }
}

/// What the labels of the ply before lead to expect, seen from the side to move.
#[derive(Default)]
struct Forecast {
    wdl: Option<WdlLabel>,
    score: i64,
}

impl Forecast {
    fn wdl(&self) -> (i64, i64) {
        let last = self.wdl.map(|last| (last.loss(), last.win()));
        let (win, loss) = last.unwrap_or_default();
        (i64::from(win), i64::from(loss))
    }

    fn score(&self) -> i64 {
        -self.score
    }

    fn note(&mut self, ply: &Ply) {
        self.wdl = ply.wdl.or(self.wdl.take());
        if let PolicyLabel::Scores(scores) = &ply.policy {
            self.score = scores.first().map_or(0, |&(_, cp)| i64::from(cp));
        } else {
            self.score = 0;
        }
    }
}

/// Reads `count` games from a block.
///
/// # Errors
/// Says what does not fit.
pub fn decode(block: &[u8], count: u32) -> Result<Vec<GameRecord>, String> {
    let mut rest = block;
    let mut columns = [&[][..]; 6];
    for column in &mut columns {
        let (length, after) = rest
            .split_first_chunk::<4>()
            .ok_or("a column's length is cut off")?;
        let length = u32::from_le_bytes(*length) as usize;
        if length > after.len() {
            let left = after.len();
            return Err(format!("a column of {length} bytes in {left} bytes"));
        }
        (*column, rest) = after.split_at(length);
    }
    if !rest.is_empty() {
        return Err(format!("{} bytes after the last column", rest.len()));
    }
    let mut reader = Reader {
        games: columns[0],
        flags: columns[1],
        moves: columns[2],
        scores: columns[3],
        wdl: columns[4],
        visits: columns[5],
    };
    let mut games = Vec::new();
    for number in 0..count {
        let game = reader.game();
        games.push(game.map_err(|why| format!("game {number} of {count}: {why}"))?);
    }
    let left = [
        reader.games,
        reader.flags,
        reader.moves,
        reader.scores,
        reader.wdl,
        reader.visits,
    ];
    match left.iter().map(|column| column.len()).sum::<usize>() {
        0 => Ok(games),
        left => Err(format!("{left} bytes are left after {count} games")),
    }
}

struct Reader<'a> {
    games: &'a [u8],
    flags: &'a [u8],
    moves: &'a [u8],
    scores: &'a [u8],
    wdl: &'a [u8],
    visits: &'a [u8],
}

impl Reader<'_> {
    fn game(&mut self) -> Result<GameRecord, String> {
        let length = get(&mut self.games)?;
        if length > MAX_FEN || length > self.games.len() as u64 {
            return Err(format!("a FEN of {length} characters"));
        }
        let (fen, rest) = self.games.split_at(length as usize);
        self.games = rest;
        let start = match fen {
            [] => Position::startpos(),
            fen => {
                let fen = std::str::from_utf8(fen).map_err(|_| "a FEN that is no text")?;
                let parsed = Position::from_fen(fen).map_err(|error| error.to_string())?;
                parsed.0
            }
        };
        let result = get(&mut self.games)?;
        let source = get(&mut self.games)?;
        let mut game = GameRecord {
            result: *known(&RESULTS, result, "result")?,
            source: *known(&Source::ALL, source, "source")?,
            seed: get(&mut self.games)?,
            ..GameRecord::new(start, Source::Labels)
        };
        let plies = get(&mut self.games)?;
        if plies > self.flags.len() as u64 {
            return Err(format!("{plies} plies, with {} left", self.flags.len()));
        }
        let mut position = game.start.clone();
        let mut before = Forecast::default();
        for number in 0..plies {
            let ply = self.ply(&sorted_moves(&position), &before);
            let ply = ply.map_err(|why| format!("ply {number}: {why}"))?;
            before.note(&ply);
            position.play(ply.played);
            game.plies.push(ply);
        }
        Ok(game)
    }

    fn ply(&mut self, legal: &[Move], before: &Forecast) -> Result<Ply, String> {
        let flags = byte(&mut self.flags)?;
        let count = get(&mut self.moves)?;
        if count > legal.len() as u64 {
            return Err(format!("{count} labels for {} legal moves", legal.len()));
        }
        let mut listed = Vec::with_capacity(count as usize);
        for _ in 0..count {
            let index = byte(&mut self.moves)?;
            let m = *known(legal, u64::from(index), "move")?;
            if listed.contains(&m) {
                return Err(format!("two labels for {m}"));
            }
            listed.push(m);
        }
        let place = get(&mut self.moves)?;
        let played = match place.checked_sub(count) {
            None => listed[place as usize],
            Some(index) => *known(legal, index, "move played")?,
        };
        let wdl = match flags & HAS_WDL {
            0 => None,
            _ => {
                let (win, loss) = before.wdl();
                let win = get_signed(&mut self.wdl)?.saturating_add(win);
                let loss = get_signed(&mut self.wdl)?.saturating_add(loss);
                let label = u16::try_from(win).ok().zip(u16::try_from(loss).ok());
                let label = label.and_then(|(win, loss)| {
                    let draw = 1000u16.checked_sub(win)?.checked_sub(loss)?;
                    WdlLabel::new(win, draw, loss)
                });
                Some(label.ok_or_else(|| format!("W {win} and L {loss} per mille"))?)
            }
        };
        let policy = match flags & !HAS_WDL {
            0 if count > 0 => return Err(format!("{count} labels of no kind")),
            0 => PolicyLabel::None,
            SCORES => PolicyLabel::Scores(self.scores(listed, before.score())?),
            VISITS => {
                let mut visits = Vec::with_capacity(listed.len());
                for m in listed {
                    let count = get(&mut self.visits)?;
                    let count = u32::try_from(count).map_err(|_| format!("{count} visits"))?;
                    visits.push((m, count));
                }
                PolicyLabel::Visits(visits)
            }
            _ => return Err(format!("flags {flags:#04x}")),
        };
        Ok(Ply {
            played,
            wdl,
            policy,
        })
    }

    fn scores(&mut self, listed: Vec<Move>, mut last: i64) -> Result<Vec<(Move, i16)>, String> {
        let mut scores = Vec::with_capacity(listed.len());
        for m in listed {
            last = get_signed(&mut self.scores)?.saturating_add(last);
            let cp = i16::try_from(last).map_err(|_| format!("a score of {last} cp"))?;
            scores.push((m, cp));
        }
        Ok(scores)
    }
}

/// Equal in every counter too.
fn is_startpos(position: &Position) -> bool {
    *position == Position::startpos() && position.rule50() == 0 && position.fullmoves() == 1
}

fn sorted_moves(position: &Position) -> Vec<Move> {
    let mut moves = position.legal_moves().to_vec();
    moves.sort_unstable();
    moves
}

fn known<'a, T>(all: &'a [T], number: u64, what: &str) -> Result<&'a T, String> {
    let index = usize::try_from(number).ok();
    index
        .and_then(|index| all.get(index))
        .ok_or_else(|| format!("{what} {number}, with {} known", all.len()))
}

fn put(column: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        column.push(number as u8 | 0x80);
        number >>= 7;
    }
    column.push(number as u8);
}

fn put_signed(column: &mut Vec<u8>, number: i64) {
    put(column, (number << 1 ^ number >> 63) as u64);
}

fn byte(column: &mut &[u8]) -> Result<u8, String> {
    let (&first, rest) = column.split_first().ok_or("a column is cut off")?;
    *column = rest;
    Ok(first)
}

fn get(column: &mut &[u8]) -> Result<u64, String> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let part = byte(column)?;
        let bits = u64::from(part & 0x7f);
        if bits << shift >> shift != bits {
            break;
        }
        number |= bits << shift;
        if part < 0x80 {
            return Ok(number);
        }
    }
    Err("a number of more than 64 bits".to_owned())
}

fn get_signed(column: &mut &[u8]) -> Result<i64, String> {
    let number = get(column)?;
    Ok((number >> 1) as i64 ^ -((number & 1) as i64))
}

#[cfg(test)]
pub mod tests {
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};

    use super::*;

    /// A game of random moves with labels of every kind.
    pub fn random_game(seed: u64, start: &str) -> GameRecord {
        let mut random = StdRng::seed_from_u64(seed);
        let mut game = GameRecord::new(
            Position::from_fen(start).unwrap().0,
            Source::ALL[random.random_range(0..4)],
        );
        game.seed = random.random();
        game.result = RESULTS[random.random_range(0..4)];
        let mut position = game.start.clone();
        for _ in 0..random.random_range(0..120) {
            let mut legal = position.legal_moves().to_vec();
            if legal.is_empty() {
                break;
            }
            let played = legal[random.random_range(0..legal.len())];
            let win = random.random_range(0..=1000);
            let loss = random.random_range(0..=1000 - win);
            for i in (1..legal.len()).rev() {
                legal.swap(i, random.random_range(0..=i));
            }
            let listed = legal.into_iter();
            let policy = match random.random_range(0..3) {
                0 => PolicyLabel::None,
                1 => PolicyLabel::Scores(listed.take(4).map(|m| (m, random.random())).collect()),
                _ => PolicyLabel::Visits(listed.map(|m| (m, random.random())).collect()),
            };
            game.plies.push(Ply {
                played,
                wdl: WdlLabel::new(win, 1000 - win - loss, loss).filter(|_| random.random()),
                policy,
            });
            position.play(played);
        }
        game
    }

    pub const STARTS: [&str; 5] = [
        "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1",
        "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 4 3",
        "4k3/8/8/3pP3/8/8/8/4K3 w - d6 0 10",
        "bqnb1rkr/pp3ppp/3ppn2/2p5/5P2/P2P4/NPP1P1PP/BQ1BNRKR w HFhf - 2 9",
        "R6R/3Q4/1Q4Q1/4Q3/2Q4Q/Q4Q2/pp1Q4/kBNN1KB1 w - - 0 1",
    ];

    pub fn random_games() -> Vec<GameRecord> {
        (0..40)
            .map(|seed| random_game(seed, STARTS[seed as usize % STARTS.len()]))
            .collect()
    }

    #[test]
    fn games_of_every_kind_come_back() {
        let games = random_games();
        for game in &games {
            game.check().unwrap();
        }
        let block = encode(&games);
        let again = decode(&block, games.len() as u32).unwrap();
        assert_eq!(again, games);
        for (a, b) in games.iter().zip(&again) {
            assert_eq!(a.start.to_fen(true), b.start.to_fen(true));
        }
    }

    #[test]
    fn damaged_blocks_are_refused_or_read_but_never_panic() {
        let games = random_games();
        let block = encode(&games[..4]);
        for cut in 0..block.len() {
            assert!(decode(&block[..cut], 4).is_err(), "{cut}");
        }
        assert!(decode(&block, 3).is_err());
        assert!(decode(&block, 5).is_err());
        let mut random = StdRng::seed_from_u64(1);
        for _ in 0..2000 {
            let mut damaged = block.clone();
            let at = random.random_range(0..damaged.len());
            damaged[at] = random.random();
            let _ = decode(&damaged, 4);
        }
    }

    #[test]
    fn numbers_of_every_size_come_back() {
        for number in [0, 1, 127, 128, 1 << 32, u64::MAX] {
            let mut column = Vec::new();
            put(&mut column, number);
            assert_eq!(get(&mut &column[..]), Ok(number));
        }
        for number in [0, 1, -1, 63, -64, 64, i64::MAX, i64::MIN] {
            let mut column = Vec::new();
            put_signed(&mut column, number);
            assert_eq!(get_signed(&mut &column[..]), Ok(number));
        }
        assert!(get(&mut &[0xff; 11][..]).is_err());
        assert!(get(&mut &[0x80][..]).is_err());
    }
}
