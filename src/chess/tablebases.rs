//! Syzygy tablebases: results of positions with few men, and which root moves keep them. A wrong or
//! broken file costs its answers, never the process. Knows nothing of search.

use std::fs;
use std::panic::{self, AssertUnwindSafe};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use shakmaty::{Chess, Position as _};
use shakmaty_syzygy::{Dtz, Tablebase, Wdl as SyzygyWdl};
use thiserror::Error;

use super::game::Game;
use super::moves::Move;
use super::position::Position;

/// A game-theoretical result under the 50-move rule, from the side to move: a win that the rule
/// frustrates, and a loss that it saves, are draws.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TableResult {
    /// The side to move loses.
    Loss,
    /// Neither side can win.
    Draw,
    /// The side to move wins.
    Win,
}

impl TableResult {
    /// −1, 0 or 1.
    pub fn sign(self) -> i32 {
        self as i32 - 1
    }

    fn from_syzygy(wdl: SyzygyWdl) -> TableResult {
        match wdl {
            SyzygyWdl::Loss => TableResult::Loss,
            SyzygyWdl::Win => TableResult::Win,
            SyzygyWdl::BlessedLoss | SyzygyWdl::Draw | SyzygyWdl::CursedWin => TableResult::Draw,
        }
    }
}

/// A root move with what the tables say about it, from the side that plays it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TableMove {
    /// The move.
    pub m: Move,
    /// The larger the better. All moves that win for certain in spite of the 50-move count have
    /// [`TableMove::WIN`]; wins that may come too late are lower, then draws (0), losses that may be
    /// saved, and certain losses (−[`TableMove::WIN`]).
    pub rank: i32,
    /// Plies to the next capture or pawn move with best play, signed from the side that plays the
    /// move; 0 for a draw. The shortest win has the smallest.
    pub dtz: i32,
}

impl TableMove {
    /// Rank of a certain win.
    pub const WIN: i32 = 1000;

    /// The result the move keeps.
    pub fn result(&self) -> TableResult {
        match self.rank {
            Self::WIN.. => TableResult::Win,
            i32::MIN..=-1000 => TableResult::Loss,
            _ => TableResult::Draw,
        }
    }
}

/// Something on the path that could not be used.
#[derive(Debug, Error)]
pub enum TablebaseError {
    /// No folder, or one that cannot be read.
    #[error("tablebase folder '{}': {source}", path.display())]
    Folder {
        /// As given.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A file with a table's name that is none.
    #[error("tablebase file '{}' left out: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: std::io::Error,
    },
}

/// The tables found on a path. Files are opened when they are first needed.
pub struct Tablebases {
    tables: Tablebase<Chess>,
    files: usize,
    /// Set when a table turned out to be broken in a way that its reader does not survive.
    broken: AtomicBool,
}

impl std::fmt::Debug for Tablebases {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Tablebases of {} files", self.files)
    }
}

impl Tablebases {
    /// Looks for tables in folders separated by `;`, and outside Windows by `:` too; empty names are
    /// passed over. Also gives the number of files found and what could not be used.
    pub fn new(paths: &str) -> (Tablebases, usize, Vec<TablebaseError>) {
        let mut found = Tablebases {
            tables: Tablebase::new(),
            files: 0,
            broken: AtomicBool::new(false),
        };
        let mut errors = Vec::new();
        let separator = |c: char| c == ';' || (c == ':' && !cfg!(windows));
        for path in paths.split(separator).map(str::trim) {
            if path.is_empty() || path == "<empty>" {
                continue;
            }
            if let Err(source) = found.add_folder(path.into(), &mut errors) {
                let path = path.into();
                errors.push(TablebaseError::Folder { path, source });
            }
        }
        let files = found.files;
        (found, files, errors)
    }

    fn add_folder(
        &mut self,
        folder: PathBuf,
        errors: &mut Vec<TablebaseError>,
    ) -> std::io::Result<()> {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            let kind = path.extension().and_then(|kind| kind.to_str());
            if !matches!(kind, Some("rtbw" | "rtbz")) {
                continue;
            }
            match self.tables.add_file(&path) {
                Ok(()) => self.files += 1,
                Err(source) => errors.push(TablebaseError::File { path, source }),
            }
        }
        Ok(())
    }

    /// True when there is nothing to ask.
    pub fn is_empty(&self) -> bool {
        self.files == 0
    }

    /// Most men, kings included, of a position that may be answered.
    pub fn max_men(&self) -> usize {
        self.tables.max_pieces()
    }

    fn covers(&self, position: &Position) -> bool {
        !self.is_empty()
            && position.board().occupied().count() <= self.max_men()
            && !position.castles().any()
            && !self.broken.load(Ordering::Relaxed)
    }

    /// The result for the side to move. Only for positions right after a capture or pawn move
    /// (rule-50 count 0) without castling rights; `None` for any other and where a table is missing.
    pub fn probe_wdl(&self, position: &Position) -> Option<TableResult> {
        if position.rule50() != 0 || !self.covers(position) {
            return None;
        }
        let wdl = self.guard(|| {
            self.tables
                .probe_wdl_after_zeroing(position.inner())
                .map_err(|error| log::debug!("tablebases: {error}"))
                .ok()
        })?;
        Some(TableResult::from_syzygy(wdl))
    }

    /// All legal moves of the game's position with their ranks, in the order of the move generator;
    /// `None` where a table is missing. The rule-50 count and repetitions of the game are minded.
    /// Without DTZ tables the ranks come from the results alone.
    pub fn root_moves(&self, game: &Game) -> Option<Vec<TableMove>> {
        let position = game.current();
        if !self.covers(position) {
            return None;
        }
        let moves = position.legal_moves();
        let rank_all = |rank: &dyn Fn(Move) -> Option<TableMove>| -> Option<Vec<TableMove>> {
            moves.iter().map(|&m| rank(m)).collect()
        };
        self.guard(|| {
            rank_all(&|m| self.rank_by_dtz(game, m))
                .or_else(|| rank_all(&|m| self.rank_by_wdl(game, m)))
        })
    }

    fn rank_by_dtz(&self, game: &Game, m: Move) -> Option<TableMove> {
        let after = After::new(game, m);
        let dtz = if after.drawn {
            0
        } else if after.mate {
            1
        } else if after.zeroing {
            let wdl = self.tables.probe_wdl_after_zeroing(&after.chess).ok()?;
            Dtz::before_zeroing(-wdl).0
        } else {
            let dtz = self.tables.probe_dtz(&after.chess).ok()?.ignore_rounding();
            -dtz.add_plies_saturating(1).0
        };
        // A position that came up before in the game may come up again on the way to the win.
        let repeated = game.repetitions() > 0;
        let count = game.current().rule50() as i32;
        Some(TableMove {
            m,
            rank: rank(dtz, count, repeated),
            dtz,
        })
    }

    fn rank_by_wdl(&self, game: &Game, m: Move) -> Option<TableMove> {
        let after = After::new(game, m);
        let wdl = if after.drawn {
            SyzygyWdl::Draw
        } else if after.mate {
            SyzygyWdl::Win
        } else {
            -self.tables.probe_wdl_after_zeroing(&after.chess).ok()?
        };
        let dtz = Dtz::before_zeroing(wdl).0;
        let rank = rank(dtz, 0, false);
        Some(TableMove { m, rank, dtz })
    }

    /// Runs a probe. The reader checks what it reads, but a hostile file can still make it panic:
    /// that ends the use of the tables instead.
    fn guard<T>(&self, probe: impl FnOnce() -> Option<T>) -> Option<T> {
        panic::catch_unwind(AssertUnwindSafe(probe)).unwrap_or_else(|_| {
            if !self.broken.swap(true, Ordering::Relaxed) {
                log::error!("a tablebase file is broken: tablebases are not used any more");
            }
            None
        })
    }
}

/// What follows a root move.
struct After {
    chess: Chess,
    /// By the rules: stalemate, bare kings, third repetition, 50 moves.
    drawn: bool,
    mate: bool,
    zeroing: bool,
}

impl After {
    fn new(game: &Game, m: Move) -> After {
        let mut after = game.current().clone();
        after.play(m);
        let stuck = after.inner().legal_moves().is_empty();
        let mate = stuck && after.is_check();
        let earlier = game.positions().iter().filter(|past| **past == after);
        After {
            drawn: !mate
                && (stuck
                    || after.is_insufficient_material()
                    || after.rule50() >= 100
                    || (after.rule50() > 0 && earlier.count() >= 2)),
            mate,
            zeroing: after.rule50() == 0,
            chess: after.inner().clone(),
        }
    }
}

/// Rank of a move from its DTZ and the rule-50 count before it. Certain results are those that the
/// count cannot change: DTZ values may be one too small, hence 99.
fn rank(dtz: i32, count: i32, repeated: bool) -> i32 {
    // Between the certain results and a draw.
    let doubtful = |plies: i32| 500 - plies.clamp(1, 499);
    match dtz {
        0 => 0,
        1.. if dtz.saturating_add(count) <= 99 && !repeated => TableMove::WIN,
        1.. => doubtful(dtz.saturating_add(count)),
        // In check or not, a lost side can delay by at most as much again.
        _ if dtz.saturating_neg().saturating_mul(2).saturating_add(count) < 100 => -TableMove::WIN,
        _ => -doubtful(dtz.saturating_neg().saturating_add(count)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(fen: &str) -> Position {
        Position::from_fen(fen).unwrap().0
    }

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("simurgh-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    #[test]
    fn no_tables_no_answers() {
        for paths in ["", ";;", ":", "<empty>"] {
            let (tables, files, errors) = Tablebases::new(paths);
            assert_eq!((files, errors.len()), (0, 0), "{paths}");
            assert_eq!(tables.probe_wdl(&read("8/8/8/4k3/8/8/4P3/4K3 w - -")), None);
            assert_eq!(tables.root_moves(&Game::default()), None);
        }
        let (_, files, errors) = Tablebases::new("/no/such/folder;");
        assert_eq!(files, 0);
        assert!(errors[0].to_string().contains("'/no/such/folder'"));
    }

    /// The right names and lengths with anything inside: no answer, no panic.
    #[test]
    fn garbage_is_survived() {
        let folder = folder("garbage");
        let header = [0x71, 0xe8, 0x23, 0x5d, 0xd7, 0x66, 0x0c, 0xa5];
        for seed in 0..24u64 {
            let mut state = seed;
            for (name, magic) in [("KQvK.rtbw", 0), ("KQvK.rtbz", 4), ("KPvK.rtbw", 0)] {
                let mut bytes: Vec<u8> = (0..64 * (1 + seed as usize % 5) + 16)
                    .map(|_| {
                        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
                        (state >> 56) as u8 & if seed % 3 == 0 { 3 } else { 0xff }
                    })
                    .collect();
                if seed % 4 != 0 {
                    bytes[..4].copy_from_slice(&header[magic..magic + 4]);
                }
                fs::write(folder.join(name), bytes).unwrap();
            }
            let (tables, files, errors) = Tablebases::new(&folder.display().to_string());
            assert_eq!((files, errors.len(), tables.max_men()), (3, 0, 3));
            for fen in ["8/8/8/3k4/8/8/4Q3/4K3 w - -", "8/8/8/4k3/8/8/4P3/4K3 b - -"] {
                let position = read(fen);
                let _ = tables.probe_wdl(&position);
                let _ = tables.root_moves(&Game::new(position));
            }
        }
        fs::write(folder.join("KRvK.rtbw"), [0; 17]).unwrap();
        fs::write(folder.join("readme.txt"), "no table").unwrap();
        let (_, files, errors) = Tablebases::new(&format!("{};", folder.display()));
        assert_eq!((files, errors.len()), (3, 1));
        assert!(errors[0].to_string().contains("KRvK.rtbw"));
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn ranks_mind_the_fifty_move_rule() {
        for (dtz, count, repeated, expected) in [
            (0, 0, false, 0),
            (1, 0, false, 1000),
            (20, 79, false, 1000),
            (20, 80, false, 400),
            (20, 0, true, 480),
            (101, 0, false, 399),
            (-20, 0, false, -1000),
            (-20, 70, false, -410),
            (-101, 0, false, -399),
        ] {
            assert_eq!(
                rank(dtz, count, repeated),
                expected,
                "{dtz} {count} {repeated}"
            );
        }
    }

    #[test]
    fn draws_by_rule_after_the_move_are_seen() {
        let mut game = Game::new(read("8/8/8/4k3/8/8/4Q3/4K3 b - - 98 80"));
        game.play(game.current().parse_uci("e5d5").unwrap());
        let quiet = game.current().parse_uci("e1f2").unwrap();
        assert!(After::new(&game, quiet).drawn);
        let game = Game::new(read("7k/8/6K1/8/8/8/5Q2/8 w - - 99 80"));
        let mate = game.current().parse_uci("f2f8").unwrap();
        assert!(!After::new(&game, mate).drawn && After::new(&game, mate).mate);
        let stalemate = game.current().parse_uci("f2f7").unwrap();
        assert!(After::new(&game, stalemate).drawn);
    }
}
