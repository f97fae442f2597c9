//! Tablebases as a search asks for them. Refuses to read a table: that is the rules' room.

use std::sync::Arc;

use crate::chess::{Game, Move, Position, TableMove, Tablebases};
use crate::options::Options;
use crate::search::Oracle;

/// Tablebases that answer a search.
pub struct Tables {
    tables: Tablebases,
    /// Among moves that win for certain only those with the shortest way are left.
    fast_play: bool,
}

/// What a look at SyzygyPath gave.
pub struct Opened {
    /// `None` where there is no table.
    pub tables: Option<Arc<dyn Oracle>>,
    /// What was found.
    pub news: Option<String>,
    /// What could not be used, in one line.
    pub problem: Option<String>,
}

impl Tables {
    /// The tables on SyzygyPath.
    pub fn open(options: &Options) -> Opened {
        let (tables, files, errors) = Tablebases::new(&options.syzygy_path);
        let problems: Vec<String> = errors.iter().map(ToString::to_string).collect();
        let tables = Tables {
            tables,
            fast_play: options.syzygy_fast_play,
        };
        Opened {
            news: (files > 0).then(|| format!("SyzygyPath: {files} tablebase files")),
            problem: (!problems.is_empty()).then(|| format!("SyzygyPath: {}", problems.join("; "))),
            tables: match tables.tables.is_empty() {
                true => None,
                false => Some(Arc::new(tables)),
            },
        }
    }
}

impl Oracle for Tables {
    fn probe(&self, position: &Position) -> Option<i32> {
        self.tables.probe_wdl(position).map(|result| result.sign())
    }

    fn best_moves(&self, game: &Game) -> Option<Vec<Move>> {
        let moves = self.tables.root_moves(game)?;
        let best = moves.iter().map(|table| table.rank).max()?;
        let mut kept: Vec<&TableMove> = moves.iter().filter(|table| table.rank == best).collect();
        if self.fast_play && best >= TableMove::WIN {
            let shortest = kept.iter().map(|table| table.dtz).min()?;
            kept.retain(|table| table.dtz == shortest);
        }
        Some(kept.into_iter().map(|table| table.m).collect())
    }
}
