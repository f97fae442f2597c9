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

impl Tables {
    /// The tables on SyzygyPath, if there are any, and a remark on what was found.
    pub fn open(options: &Options) -> (Option<Arc<dyn Oracle>>, Option<String>) {
        let (tables, files, errors) = Tablebases::new(&options.syzygy_path);
        if files == 0 && errors.is_empty() {
            return (None, None);
        }
        let mut remark = format!("SyzygyPath: {files} tablebase files");
        for error in errors {
            remark.push_str(&format!("; {error}"));
        }
        let usable = !tables.is_empty();
        let tables = Tables {
            tables,
            fast_play: options.syzygy_fast_play,
        };
        (
            usable.then(|| Arc::new(tables) as Arc<dyn Oracle>),
            Some(remark),
        )
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
