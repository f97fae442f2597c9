//! EPD suites: best moves, moves to avoid, and moves with points. Knows no network.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use serde::Serialize;

use crate::chess::{self, Epd, Game, Move, epd};

use super::EvaluateError;
use super::desk::{Desk, SearchAnswer};
use super::results::{Effort, Rate};

/// A position of a suite.
#[derive(Clone, Debug)]
pub struct Task {
    game: Arc<Game>,
    best: Vec<Move>,
    avoid: Vec<Move>,
    /// Empty where moves have no points.
    points: HashMap<Move, u32>,
}

/// A suite that was read.
#[derive(Clone, Debug, Default)]
pub struct EpdSuite {
    /// The file's name without its ending.
    pub name: String,
    /// Its positions that ask for something.
    pub tasks: Vec<Task>,
    /// Records that could not be used.
    pub refused: usize,
}

/// How a suite went.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SuiteResult {
    /// Its name.
    pub name: String,
    /// By the policy's first choice; `None` without a policy.
    pub policy: Option<Scored>,
    /// By a search; `None` if the player does not search.
    pub search: Option<Scored>,
    /// What a move of that search cost.
    pub effort: Effort,
}

/// Positions solved in one way.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Scored {
    /// Solved: a best move was played, or none of those to avoid.
    pub solved: Rate,
    /// Points for the moves played; `None` where the suite has none.
    pub points: Option<u64>,
    /// Points of the best moves.
    pub most_points: Option<u64>,
    /// Of the solved ones, the median of the nodes from which the search held on to a solution.
    pub median_nodes: Option<f64>,
    /// The same in milliseconds.
    pub median_ms: Option<f64>,
}

/// Reads a suite. Records without `bm`, `am` or points in `c0` are read over.
///
/// # Errors
/// When the file cannot be read.
pub fn read(path: &Path) -> Result<EpdSuite, EvaluateError> {
    let reader = chess::open_maybe_packed(path).map_err(|e| EvaluateError::read(path, e))?;
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let mut suite = EpdSuite {
        name: stem.trim_end_matches(".epd").to_owned(),
        ..EpdSuite::default()
    };
    for record in epd::read(reader) {
        match record.as_ref().ok().and_then(task) {
            Some(task) => suite.tasks.push(task),
            None => suite.refused += 1,
        }
    }
    Ok(suite)
}

fn task(record: &Epd) -> Option<Task> {
    let task = Task {
        game: Arc::new(Game::new(record.position.clone())),
        best: record.moves("bm").ok()?,
        avoid: record.moves("am").ok()?,
        points: record
            .text("c0")
            .map_or_else(HashMap::new, |text| points(record, &text)),
    };
    let asks = !(task.best.is_empty() && task.avoid.is_empty() && task.points.is_empty());
    asks.then_some(task)
}

/// `f5=100, Bf2=46`: nothing unless all of it is like that.
fn points(record: &Epd, text: &str) -> HashMap<Move, u32> {
    let one = |word: &str| {
        let (m, points) = word.trim().rsplit_once('=')?;
        Some((
            record.position.parse_san(m.trim()).ok()?,
            points.trim().parse().ok()?,
        ))
    };
    let all: Option<HashMap<Move, u32>> = text.split(',').map(one).collect();
    all.unwrap_or_default()
}

impl Task {
    /// Whether a move solves it.
    fn is_solved(&self, m: Move) -> bool {
        if self.avoid.contains(&m) {
            return false;
        }
        match (self.best.is_empty(), self.avoid.is_empty()) {
            (false, _) => self.best.contains(&m),
            (true, false) => true,
            (true, true) => self.points.get(&m) == Some(&self.most()),
        }
    }

    fn most(&self) -> u32 {
        self.points.values().copied().max().unwrap_or(0)
    }

    /// Nodes and milliseconds from which a search held on to a solution to its end.
    fn held_from(&self, answer: &SearchAnswer) -> Option<(u64, f64)> {
        let position = self.game.current();
        let solves = |text: &str| position.parse_uci(text).is_ok_and(|m| self.is_solved(m));
        answer
            .trail
            .iter()
            .rev()
            .take_while(|(m, _, _)| solves(m))
            .last()
            .map(|&(_, nodes, ms)| (nodes, ms))
    }
}

/// Takes a suite by the policy alone and by search.
///
/// # Errors
/// When the player or the store fails.
pub fn take(desk: &mut Desk<'_>, suite: &EpdSuite) -> Result<SuiteResult, EvaluateError> {
    let tasks = &suite.tasks;
    let games: Vec<Arc<Game>> = tasks.iter().map(|task| Arc::clone(&task.game)).collect();
    desk.begin(&format!("{}, policy only", suite.name), tasks.len());
    let policy = desk.first_choices(&games)?.map(|moves| {
        let mut scored = Scored::default();
        for (task, m) in tasks.iter().zip(moves) {
            scored.add(task, m);
        }
        scored
    });
    desk.step(tasks.len());
    desk.begin(&format!("{}, with search", suite.name), tasks.len());
    let mut scored = Some(Scored::default());
    let (mut nodes, mut times) = (Vec::new(), Vec::new());
    for task in tasks {
        let Some(answer) = desk.search(&task.game, desk.nodes)? else {
            scored = None;
            break;
        };
        let m = answer.best_move(&task.game)?;
        if let Some(scored) = &mut scored {
            scored.add(task, m);
        }
        if let Some((at_nodes, at_ms)) = task.held_from(&answer) {
            nodes.push(at_nodes as f64);
            times.push(at_ms);
        }
        desk.step(1);
    }
    if let Some(scored) = &mut scored {
        scored.median_nodes = median(nodes);
        scored.median_ms = median(times);
    }
    Ok(SuiteResult {
        name: suite.name.clone(),
        policy,
        search: scored,
        effort: desk.effort(desk.nodes),
    })
}

impl Scored {
    fn add(&mut self, task: &Task, m: Move) {
        self.solved.add(task.is_solved(m));
        if !task.points.is_empty() {
            let points = task.points.get(&m).copied().unwrap_or(0);
            *self.points.get_or_insert(0) += u64::from(points);
            *self.most_points.get_or_insert(0) += u64::from(task.most());
        }
    }
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() % 2 {
        1 => values.get(middle).copied(),
        _ => Some((values.get(middle.checked_sub(1)?)? + values.get(middle)?) / 2.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Option<Task> {
        task(&Epd::parse(text).unwrap())
    }

    #[test]
    fn best_avoid_and_points() {
        let fen = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq -";
        let solved =
            |task: &Task, text| task.is_solved(task.game.current().parse_uci(text).unwrap());
        let best = of(&format!("{fen} bm e4 d4;")).unwrap();
        assert!(solved(&best, "e2e4") && solved(&best, "d2d4") && !solved(&best, "a2a3"));
        let avoid = of(&format!("{fen} am f3;")).unwrap();
        assert!(!solved(&avoid, "f2f3") && solved(&avoid, "a2a3"));
        let both = of(&format!("{fen} bm e4; am f3;")).unwrap();
        assert!(solved(&both, "e2e4") && !solved(&both, "a2a3"));
        let points = of(&format!("{fen} bm e4; c0 \"e4=100, Nf3=46\";")).unwrap();
        let mut scored = Scored::default();
        for text in ["e2e4", "g1f3", "a2a3"] {
            scored.add(&points, points.game.current().parse_uci(text).unwrap());
        }
        assert_eq!((scored.points, scored.most_points), (Some(146), Some(300)));
        assert_eq!(scored.solved, Rate { hits: 1, of: 3 });
        let remark = of(&format!("{fen} bm e4; c0 \"a remark = of sorts\";")).unwrap();
        assert!(remark.points.is_empty());
        assert!(of(fen).is_none());
        assert!(of(&format!("{fen} bm Qh5;")).is_none());
    }

    #[test]
    fn a_solution_counts_from_where_it_was_held() {
        let task = of("rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - bm e4 d4;").unwrap();
        let answer = |trail: &[(&str, u64)]| SearchAnswer {
            best: String::new(),
            q: None,
            nodes: 100,
            ms: 50.0,
            trail: trail
                .iter()
                .map(|&(m, nodes)| (m.to_owned(), nodes, nodes as f64 / 2.0))
                .collect(),
        };
        let held = |trail: &[(&str, u64)]| task.held_from(&answer(trail));
        assert_eq!(
            held(&[("e2e4", 1), ("a2a3", 5), ("d2d4", 20), ("e2e4", 60)]),
            Some((20, 10.0))
        );
        assert_eq!(held(&[("e2e4", 1), ("a2a3", 5)]), None);
        assert_eq!(median(vec![3.0, 1.0]), Some(2.0));
        assert_eq!(median(vec![3.0, 1.0, 9.0]), Some(3.0));
        assert_eq!(median(Vec::new()), None);
    }
}
