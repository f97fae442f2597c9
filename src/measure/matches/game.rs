//! Plays one game: asks each side in turn, keeps the clocks, and judges every answer and every
//! variation. Decides nothing about the match.

use std::time::{Duration, SystemTime};

use crate::chess::{Color, Position};
use crate::client::{Answer, ClientError, Info, Limits, Score};
use crate::measure::adjudication::{Adjudicator, by_tablebases};
use crate::measure::book::Opening;
use crate::measure::clock::Clock;
use crate::measure::referee::{Referee, Variation};

use super::record::{Cause, GameRecord, MoveRecord};
use super::seat::Seat;
use super::{Pairing, Rules};

/// Remarks kept of one game; counts go on.
const MAX_REMARKS: usize = 20;

struct Table<'s, 'a> {
    /// White's and Black's seat.
    seats: [&'s mut Seat<'a>; 2],
    clocks: [Option<Clock>; 2],
    rules: &'s Rules,
    referee: Referee,
    /// What is sent as `position`: the FEN unless it is the start position, and the moves.
    fen: Option<String>,
    line: Vec<String>,
    moves: Vec<MoveRecord>,
    remarks: Vec<(Color, String)>,
    failed_start: [bool; 2],
    adjudicator: Adjudicator,
}

/// Plays a game to its end, whatever the engines do. `seats` are White's and Black's.
pub(super) fn play(
    pairing: Pairing,
    seats: [&mut Seat<'_>; 2],
    opening: &Opening,
    rules: &Rules,
) -> GameRecord {
    let started = SystemTime::now();
    let clock = |seat: &Seat| seat.contestant.pace.control.map(Clock::new);
    let mut table = Table {
        clocks: [clock(seats[0]), clock(seats[1])],
        seats,
        rules,
        referee: Referee::new(opening.start.clone()),
        fen: fen_to_send(&opening.start, rules.chess960),
        line: Vec::new(),
        moves: Vec::new(),
        remarks: Vec::new(),
        failed_start: [false; 2],
        adjudicator: Adjudicator::default(),
    };
    for &m in &opening.moves {
        table.push(m);
    }
    let cause = table.play();
    if cause.is_fault() {
        table.remark(table.loser(&cause), cause.to_string());
    }
    let result = cause.result(table.referee.turn());
    let faults = table.seats.map(|seat| std::mem::take(&mut seat.faults));
    GameRecord {
        pairing,
        result,
        cause,
        moves: table.moves,
        faults,
        remarks: table.remarks,
        failed_start: table.failed_start,
        started,
    }
}

fn fen_to_send(start: &Position, chess960: bool) -> Option<String> {
    let standard = *start == Position::startpos() && start.rule50() == 0 && start.fullmoves() == 1;
    (!standard || chess960).then(|| start.to_fen(chess960))
}

fn index(side: Color) -> usize {
    side.fold_wb(0, 1)
}

impl Table<'_, '_> {
    fn play(&mut self) -> Cause {
        for side in Color::ALL {
            if let Err(error) = self.seats[index(side)].sit_down(self.rules.chess960) {
                self.failed_start[index(side)] = true;
                return self.failed(side, &error);
            }
        }
        loop {
            if let Some(ending) = self.referee.ending() {
                return Cause::Rules(ending);
            }
            let number = self.referee.position().fullmoves();
            if self.rules.max_moves.is_some_and(|max| number > max) {
                return Cause::MaxMoves;
            }
            if let Err(cause) = self.half_move() {
                return cause;
            }
        }
    }

    fn half_move(&mut self) -> Result<(), Cause> {
        let side = self.referee.turn();
        let limits = self.limits(side);
        let mut watch = Watch::default();
        let answer = self.ask(side, &limits, &mut watch);
        self.count(side, &watch);
        let answer = answer?;

        let margin = self.seats[index(side)].contestant.pace.margin;
        let in_time = match &mut self.clocks[index(side)] {
            Some(clock) => clock.charge(answer.elapsed, margin),
            None => true,
        };
        let move_time = self.seats[index(side)].contestant.pace.move_time;
        if !in_time || move_time.is_some_and(|time| answer.elapsed > time + margin) {
            self.seats[index(side)].faults.time_losses += 1;
            return Err(Cause::TimeLoss(side));
        }
        let position = self.referee.position().clone();
        let played = position.parse_uci(&answer.best).map_err(|error| {
            self.seats[index(side)].faults.illegal_moves += 1;
            Cause::IllegalMove(side, error.to_string())
        })?;
        if let Some(first) = watch.pv.first() {
            let first = position.parse_uci(first);
            self.seats[index(side)].faults.pv_mismatches += u64::from(first != Ok(played));
        }
        self.push(played);
        if let Some(ponder) = &answer.ponder
            && self.referee.position().parse_uci(ponder).is_err()
        {
            self.seats[index(side)].faults.illegal_ponder_moves += 1;
            self.remark(
                side,
                format!("illegal ponder move {ponder:?} after {}", answer.best),
            );
        }
        let score = watch.last.as_ref().and_then(|info| info.score);
        self.moves.push(MoveRecord {
            played,
            elapsed: answer.elapsed,
            info: watch.last,
        });
        self.adjudicate(side, score)
    }

    /// Ends a game that is decided. A game that has ended by the rules is left to them.
    fn adjudicate(&mut self, mover: Color, score: Option<Score>) -> Result<(), Cause> {
        if self.referee.ending().is_some() {
            return Ok(());
        }
        let position = self.referee.position();
        // The number of the move to come, less one that is not yet complete.
        let moves = position.fullmoves() - 1;
        let (draw, resign) = (self.rules.draw, self.rules.resign);
        if let Some(result) = self
            .adjudicator
            .after_move(mover, score, moves, draw, resign)
        {
            return Err(Cause::Scores(result));
        }
        let tables = self.rules.tables.as_deref();
        match tables.and_then(|tables| by_tablebases(tables, position)) {
            Some(result) => Err(Cause::Tablebases(result)),
            None => Ok(()),
        }
    }

    /// Sends the position, starts the clock and waits for a move, or says how that failed.
    fn ask(&mut self, side: Color, limits: &Limits, watch: &mut Watch) -> Result<Answer, Cause> {
        let patience = self.patience(side);
        let seat = &mut self.seats[index(side)];
        let timed =
            seat.contestant.pace.control.is_some() || seat.contestant.pace.move_time.is_some();
        let Some(engine) = seat.engine() else {
            return Err(Cause::Crash(side, "no process".to_owned()));
        };
        let referee = &mut self.referee;
        let mut on_info = |info: Info| watch.see(info, referee);
        let answer = engine
            .position(self.fen.as_deref(), &self.line)
            .and_then(|()| engine.is_ready())
            .and_then(|()| engine.go(limits))
            .and_then(|()| engine.answer(patience, &mut on_info))
            .or_else(|error| match error {
                ClientError::Timeout {
                    waiting_for: "bestmove",
                    ..
                } => {
                    // Late, or gone for good? An engine that still answers `stop` is only late.
                    let late = engine.stop_and_answer(&mut on_info);
                    if timed || late.is_err() {
                        late
                    } else {
                        Err(error)
                    }
                }
                error => Err(error),
            });
        seat.faults.stray_bestmoves += engine_strays(seat);
        match answer {
            Ok(answer) => Ok(answer),
            Err(ClientError::BadBestmove(line)) => {
                seat.faults.illegal_moves += 1;
                Err(Cause::IllegalMove(side, format!("{line:?} is no answer")))
            }
            Err(error) => Err(self.failed(side, &error)),
        }
    }

    /// The cause that an error of this side's process is, counted; the process is given up.
    fn failed(&mut self, side: Color, error: &ClientError) -> Cause {
        let seat = &mut self.seats[index(side)];
        if matches!(error, ClientError::Cancelled { .. }) {
            return Cause::Interrupted;
        }
        seat.drop_engine();
        if error.is_crash() {
            seat.faults.crashes += 1;
            Cause::Crash(side, error.to_string())
        } else {
            seat.faults.stalls += 1;
            Cause::Stall(side, error.to_string())
        }
    }

    fn limits(&self, side: Color) -> Limits {
        let pace = &self.seats[index(side)].contestant.pace;
        let mut limits = Limits {
            move_time: pace.move_time,
            nodes: pace.nodes,
            depth: pace.depth,
            ..Limits::default()
        };
        if let Some(own) = &self.clocks[index(side)] {
            let [white, black] = &self.clocks;
            limits.white_time = white.as_ref().map(Clock::left);
            limits.black_time = black.as_ref().map(Clock::left);
            limits.white_increment = white.as_ref().map(Clock::increment);
            limits.black_increment = black.as_ref().map(Clock::increment);
            limits.moves_to_go = own.moves_to_go();
        }
        limits
    }

    /// How long this side may take before it is told to stop.
    fn patience(&self, side: Color) -> Duration {
        let pace = &self.seats[index(side)].contestant.pace;
        let clock = self.clocks[index(side)].as_ref().map(Clock::left);
        match clock.into_iter().chain(pace.move_time).min() {
            Some(time) => time + pace.margin,
            None => self.rules.stall,
        }
    }

    fn push(&mut self, m: crate::chess::Move) {
        self.line
            .push(self.referee.position().move_to_uci(m, self.rules.chess960));
        self.referee.play(m);
    }

    fn count(&mut self, side: Color, watch: &Watch) {
        let faults = &mut self.seats[index(side)].faults;
        faults.illegal_pvs += watch.illegal_pvs;
        faults.pvs_beyond_draw += watch.pvs_beyond_draw;
        faults.malformed_infos += watch.malformed;
        if let Some(pv) = &watch.first_illegal {
            self.remark(side, pv.clone());
        }
    }

    fn remark(&mut self, side: Color, text: String) {
        if self.remarks.len() < MAX_REMARKS {
            self.remarks.push((side, text));
        }
    }

    fn loser(&self, cause: &Cause) -> Color {
        match cause {
            Cause::TimeLoss(side)
            | Cause::Stall(side, _)
            | Cause::Crash(side, _)
            | Cause::IllegalMove(side, _) => *side,
            Cause::Rules(_)
            | Cause::MaxMoves
            | Cause::Scores(_)
            | Cause::Tablebases(_)
            | Cause::Interrupted => self.referee.turn(),
        }
    }
}

fn engine_strays(seat: &mut Seat<'_>) -> u64 {
    seat.engine()
        .map_or(0, |engine| u64::from(engine.take_strays()))
}

/// What the infos of one search showed.
#[derive(Default)]
struct Watch {
    /// The last info with a score for the first variation.
    last: Option<Info>,
    /// The last first variation.
    pv: Vec<String>,
    illegal_pvs: u64,
    pvs_beyond_draw: u64,
    malformed: u64,
    first_illegal: Option<String>,
}

impl Watch {
    fn see(&mut self, info: Info, referee: &mut Referee) {
        self.malformed += u64::from(info.malformed);
        match referee.try_variation(&info.pv) {
            Variation::Sound => {}
            Variation::BeyondDraw { .. } => self.pvs_beyond_draw += 1,
            Variation::Illegal { ply } => {
                self.illegal_pvs += 1;
                self.first_illegal.get_or_insert_with(|| {
                    let fen = referee.position().to_fen(true);
                    format!(
                        "illegal PV move {:?} in {:?} from {fen}",
                        info.pv[ply],
                        info.pv.join(" ")
                    )
                });
            }
        }
        if info.multipv.unwrap_or(1) == 1 {
            if !info.pv.is_empty() {
                self.pv.clone_from(&info.pv);
            }
            if info.score.is_some() {
                self.last = Some(info);
            }
        }
    }
}
