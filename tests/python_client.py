#!/usr/bin/env python3
"""Drives a UCI engine through python-chess, the client behind lichess-bot and many tools.

Plays whole games, ponders, analyses with MultiPV, stops in mid-search, changes options and networks in
mid-session, plays Chess960, and asks for the odd positions. It knows nothing of the engine but UCI.
Every check has a time limit of its own: a hang is a failure, never a wait.

    python3 tests/python_client.py ENGINE [--weights A --weights B] [--option Threads=1] [--only NAME]

Needs the package `chess` (1.11 or later). Exit code 0 if all went well, 1 if not, 2 for bad usage.
"""

import argparse
import contextlib
import logging
import os
import shlex
import signal
import sys
import time

try:
    import chess
    import chess.engine
    from chess.engine import Limit, Cp, Mate
except ImportError:
    sys.exit("SKIPPED: the python package `chess` is not installed")

MAX_PLIES = 160
STOP_SECONDS = 5.0
QUIT_SECONDS = 3.0


class Hang(Exception):
    """A check took longer than it may."""


class Complaints(logging.Handler):
    """What python-chess logs about the engine's lines: unreadable fields, illegal variations."""

    def __init__(self):
        super().__init__(logging.WARNING)
        self.lines = []

    def emit(self, record):
        # What the engine prints on standard error is its own affair.
        text = record.getMessage()
        # A remark may come at any time; python-chess expects none outside of a search.
        remark = "Unexpected engine output: " in text and "info string " in text
        if "stderr >>" not in text and not remark:
            self.lines.append(text)

    def take(self):
        lines, self.lines = self.lines, []
        return lines


@contextlib.contextmanager
def time_limit(seconds):
    def expire(_signal, _frame):
        raise Hang(f"not done within {seconds} s")

    old = signal.signal(signal.SIGALRM, expire)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)


def expect(condition, what):
    if not condition:
        raise AssertionError(what)


def skip(why):
    raise Skip(why)


class Skip(Exception):
    """A check that does not apply to this engine."""


class Session:
    def __init__(self, command, options, weights):
        self.command, self.weights = command, weights
        self.engine = chess.engine.SimpleEngine.popen_uci(command, timeout=60)
        listed = {name.lower(): name for name in self.engine.options}
        settings = dict(options)
        if weights and "weightsfile" in listed:
            settings["WeightsFile"] = weights[0]
        self.engine.configure(settings)

    def has(self, option):
        return option in self.engine.options

    def kill(self):
        transport = self.engine.transport
        with contextlib.suppress(Exception):
            os.kill(transport.get_pid(), signal.SIGKILL)
        with contextlib.suppress(Exception):
            self.engine.close()

    def play_game(self, limit, board=None, ponder=False, plies=MAX_PLIES):
        """The engine against itself; returns the board at the end."""
        board = board or chess.Board()
        game = object()
        white = black = limit.white_clock
        while not board.is_game_over(claim_draw=True) and board.ply() < plies:
            if limit.white_clock is not None:
                limit = Limit(white_clock=white, black_clock=black, white_inc=limit.white_inc, black_inc=limit.black_inc)
            began = time.monotonic()
            result = self.engine.play(board, limit, game=game, ponder=ponder, info=chess.engine.INFO_ALL)
            taken = time.monotonic() - began
            expect(result.move in board.legal_moves, f"{result.move} in {board.fen()}")
            pv = result.info.get("pv")
            if pv:
                expect(pv[0] == result.move, f"pv {pv[0]} but bestmove {result.move} in {board.fen()}")
            if limit.white_clock is not None:
                left = white if board.turn else black
                expect(taken <= left + 0.5, f"{taken:.2f} s taken of {left:.2f} s in {board.fen()}")
                left = max(0.0, left - taken) + limit.white_inc
                white, black = (left, black) if board.turn else (white, left)
            board.push(result.move)
        return board


def check_options(session):
    """lists what tools look for; python-chess raises on anything else"""
    for name in ["Threads", "Hash", "MultiPV", "Ponder", "UCI_Chess960"]:
        if not session.has(name):
            raise AssertionError(f"no option {name}")
    try:
        session.engine.configure({"NoSuchOption": 1})
    except chess.engine.EngineError:
        pass
    else:
        raise AssertionError("an unlisted option was accepted")
    session.engine.ping()


def check_game_by_nodes(session):
    """plays a whole game at fixed nodes"""
    board = session.play_game(Limit(nodes=50))
    return f"{board.ply()} plies, {board.result(claim_draw=True)}"


def check_game_by_clock(session):
    """plays a whole game at 1+0.01"""
    board = session.play_game(Limit(white_clock=1.0, black_clock=1.0, white_inc=0.01, black_inc=0.01))
    return f"{board.ply()} plies, {board.result(claim_draw=True)}"


def check_move_time(session):
    """keeps a move time"""
    began = time.monotonic()
    session.play_game(Limit(time=0.1), plies=6)
    expect(time.monotonic() - began < 6 * 0.1 + 5, "took far too long")


def check_ponder(session):
    """ponders through a game: hits, misses and ends"""
    board = chess.Board()
    game, hits, offers = object(), 0, 0
    expected = None
    while not board.is_game_over(claim_draw=True) and board.ply() < 30:
        result = session.engine.play(
            board, Limit(white_clock=2, black_clock=2, white_inc=0.02, black_inc=0.02), game=game, ponder=True
        )
        expect(result.move in board.legal_moves, f"{result.move} in {board.fen()}")
        board.push(result.move)
        if board.is_game_over(claim_draw=True):
            break
        expected = result.ponder
        if expected is not None:
            offers += 1
            expect(expected in board.legal_moves, f"ponder {expected} in {board.fen()}")
        # Every other time the expected reply, else another one.
        others = [move for move in board.legal_moves if move != expected]
        hit = expected is not None and (hits * 2 <= offers or not others)
        hits += hit
        time.sleep(0.05)
        board.push(expected if hit else others[0])
    # A ponder search is still running here; the next command must end it.
    session.engine.ping()
    return f"{hits} hits of {offers} offers"


def check_multipv(session):
    """analyses with MultiPV: full sets, best first, legal variations"""
    fens = [chess.STARTING_FEN, "r1bqkbnr/pppp1ppp/2n5/4p3/2B1P3/5Q2/PPPP1PPP/RNB1K1NR w KQkq - 4 4"]
    for fen in fens:
        board = chess.Board(fen)
        for lines in [3, 1, 500]:
            if lines == 500 and session.engine.options["MultiPV"].max < 500:
                continue
            infos = session.engine.analyse(board, Limit(nodes=4000 if lines == 500 else 400), multipv=lines)
            expect(len(infos) == min(lines, board.legal_moves.count()), f"{len(infos)} lines, asked for {lines}")
            firsts = [info["pv"][0] for info in infos if info.get("pv")]
            expect(len(firsts) == len(infos) == len(set(firsts)), f"lines begin with {firsts}")
            for info in infos:
                line = board.copy()
                for move in info["pv"]:
                    expect(move in line.legal_moves, f"{move} of {info['pv']} in {fen}")
                    line.push(move)
            # Low ranks of a short search may not be sorted by score; the best may not be worse than all.
            scores = [info["score"].pov(board.turn) for info in infos[:3]]
            expect(scores[0] >= min(scores), f"best line first: {scores}")


def check_stop(session):
    """stops infinite searches at once, again and again"""
    board = chess.Board()
    for pause in [0.0, 0.01, 0.3, 0.0, 1.0]:
        with session.engine.analysis(board) as analysis:
            time.sleep(pause)
            began = time.monotonic()
            analysis.stop()
            best = analysis.wait()
            taken = time.monotonic() - began
        expect(taken < STOP_SECONDS, f"{taken:.1f} s from stop to bestmove")
        expect(best.move in board.legal_moves, f"bestmove {best.move}")
        board.push(best.move)


def check_reuse_while_searching(session):
    """starts another game in mid-search"""
    board = chess.Board()
    with session.engine.analysis(board):
        time.sleep(0.2)
        # python-chess sends stop by itself, and takes the answer for this search's.
        result = session.engine.play(board, Limit(nodes=20), game="another")
    expect(result.move in board.legal_moves, str(result.move))
    session.engine.ping()


def check_mates(session):
    """finds mate in one; finished games get no move"""
    board = chess.Board("7k/8/6K1/8/8/8/8/R7 w - - 0 1")
    result = session.engine.play(board, Limit(nodes=400), info=chess.engine.INFO_SCORE)
    expect(result.move == chess.Move.from_uci("a1a8"), f"{result.move} instead of a1a8")
    expect(result.info["score"].relative == Mate(1), f"score {result.info['score']}")
    for fen, score in [("R6k/8/6K1/8/8/8/8/8 b - - 0 1", Mate(0)), ("7k/5Q2/6K1/8/8/8/8/8 b - - 0 1", Cp(0))]:
        info = session.engine.analyse(chess.Board(fen), Limit(nodes=10))
        expect(info["score"].relative == score, f"{info['score']} in {fen}")


def check_odd_positions(session):
    """claimable draws, one legal move, promotions, en passant"""
    for fen in [
        "7k/8/8/8/8/8/8/K5R1 w - - 99 80",
        "7k/8/8/8/8/8/8/K5R1 b - - 120 90",
        "8/P7/8/8/8/8/7k/K7 w - - 0 1",
        "k7/8/8/3pP3/8/8/8/K7 w - d6 0 2",
        "7k/8/8/8/8/8/1r6/K7 w - - 0 1",
        "r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1",
    ]:
        board = chess.Board(fen)
        result = session.engine.play(board, Limit(nodes=30))
        expect(result.move in board.legal_moves, f"{result.move} in {fen}")
    board = chess.Board()
    for move in ["g1f3", "g8f6", "f3g1", "f6g8"] * 2:
        board.push_uci(move)
    result = session.engine.play(board, Limit(nodes=30))
    expect(result.move in board.legal_moves, f"{result.move} after a third repetition")


def check_root_moves(session):
    """searches only the moves it is told to"""
    board = chess.Board()
    only = [chess.Move.from_uci("a2a3"), chess.Move.from_uci("h2h4")]
    for _ in range(3):
        result = session.engine.play(board, Limit(nodes=100), root_moves=only)
        expect(result.move in only, f"{result.move} is not one of {only}")


def check_limits(session):
    """answers every kind of limit"""
    board = chess.Board()
    for limit in [
        Limit(nodes=1), Limit(depth=1), Limit(depth=3), Limit(time=0.001), Limit(mate=1, time=0.2),
        Limit(nodes=100, time=5), Limit(white_clock=0.01, black_clock=60), Limit(white_clock=1, black_clock=1, remaining_moves=1),
    ]:
        result = session.engine.play(board, limit)
        expect(result.move in board.legal_moves, f"{result.move} at {limit}")


def check_change_options(session):
    """changes options between and after searches"""
    engine = session.engine
    for settings in [{"Hash": 8}, {"Threads": 2}, {"Threads": 1}, {"Hash": 32, "Move Overhead": 50}]:
        usable = {name: value for name, value in settings.items() if session.has(name)}
        engine.configure(usable)
        expect(engine.play(chess.Board(), Limit(nodes=50)).move is not None, f"no move with {usable}")
    for name in ["UCI_ShowWDL"]:
        if session.has(name):
            engine.configure({name: True})
            info = engine.analyse(chess.Board(), Limit(nodes=100))
            expect("wdl" in info, "no wdl with UCI_ShowWDL")
            expect(sum(info["wdl"].relative) == 1000, f"{info['wdl']} does not sum to 1000")
            engine.configure({name: False})


def check_change_network(session):
    """changes networks in mid-session, also to one that is not there"""
    if not session.has("WeightsFile"):
        skip("no option WeightsFile")
    if not session.weights:
        skip("no --weights given")
    engine, board = session.engine, chess.Board()
    answers = {}
    for weights in (session.weights + session.weights[:1]) * 2:
        engine.configure({"WeightsFile": weights})
        engine.ping()
        info = engine.analyse(board, Limit(nodes=1), game=object())
        answers.setdefault(weights, set()).add(str(info.get("score")))
    engine.configure({"WeightsFile": "/nowhere/network.pb.gz"})
    engine.ping()
    expect(engine.play(board, Limit(nodes=10)).move in board.legal_moves, "no move after a bad path")
    engine.configure({"WeightsFile": session.weights[0]})
    engine.ping()
    with engine.analysis(board) as analysis:
        time.sleep(0.3)
        analysis.stop()
        analysis.wait()
    return f"scores {answers}"


def check_chess960(session):
    """plays whole games of Chess960, and standard chess again"""
    for number in [0, 518, 959]:
        board = chess.Board.from_chess960_pos(number)
        session.play_game(Limit(nodes=20), board=board)
    castle = chess.Board("rk2r3/pppppppp/8/8/8/8/PPPPPPPP/RK2R3 w EAea - 0 1", chess960=True)
    king_takes_rook = chess.Move.from_uci("b1e1")
    result = session.engine.play(castle, Limit(nodes=20), root_moves=[king_takes_rook])
    expect(result.move == king_takes_rook, f"{result.move} instead of castling b1e1")
    standard = chess.Board("r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1")
    castling = chess.Move.from_uci("e1g1")
    result = session.engine.play(standard, Limit(nodes=20), root_moves=[castling])
    expect(result.move == castling, f"{result.move} instead of castling e1g1")


def check_quit(session):
    """ends within moments, exit code 0, also in mid-search"""
    for searching in [False, True]:
        other = Session(session.command, {}, session.weights)
        try:
            if searching:
                other.engine.analysis(chess.Board())
                time.sleep(0.2)
            began = time.monotonic()
            other.engine.quit()
            code = other.engine.returncode.result(timeout=QUIT_SECONDS)
            taken = time.monotonic() - began
            expect(code == 0, f"exit code {code}")
            expect(taken < QUIT_SECONDS, f"{taken:.1f} s to quit")
        finally:
            other.kill()


# Name, seconds it may take.
CHECKS = [
    (check_options, 30),
    (check_game_by_nodes, 120),
    (check_game_by_clock, 120),
    (check_move_time, 60),
    (check_ponder, 120),
    (check_multipv, 120),
    (check_stop, 60),
    (check_reuse_while_searching, 60),
    (check_mates, 60),
    (check_odd_positions, 60),
    (check_root_moves, 60),
    (check_limits, 60),
    (check_change_options, 120),
    (check_change_network, 300),
    (check_chess960, 180),
    (check_quit, 120),
]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("engine", help="the engine with its arguments, quoted as for a shell")
    parser.add_argument("--weights", action="append", default=[], help="a network; give two to change between")
    parser.add_argument("--option", action="append", default=[], help="NAME=VALUE, set at the start")
    parser.add_argument("--only", action="append", default=[], help="run only checks with this in their name")
    parser.add_argument("--slow", type=float, default=1.0, help="multiply every time limit")
    args = parser.parse_args()
    command = shlex.split(args.engine)
    try:
        options = dict(option.split("=", 1) for option in args.option)
    except ValueError:
        parser.error("--option expects NAME=VALUE")

    complaints = Complaints()
    logger = logging.getLogger("chess.engine")
    logger.addHandler(complaints)
    logger.propagate = False
    failed = skipped = 0
    session = None
    for check, seconds in CHECKS:
        name = check.__name__.removeprefix("check_")
        if args.only and not any(part in name for part in args.only):
            continue
        began = time.monotonic()
        verdict, detail = "ok", None
        try:
            with time_limit(seconds * args.slow):
                if session is None:
                    session = Session(command, options, args.weights)
                detail = check(session)
                lines = complaints.take()
                expect(not lines, f"python-chess complains: {lines[:3]}")
        except Skip as why:
            verdict, detail, skipped = "SKIPPED", why, skipped + 1
        except (Hang, AssertionError, chess.engine.EngineError, TimeoutError, OSError) as error:
            verdict, detail, failed = "FAILED", f"{type(error).__name__}: {error}", failed + 1
            complaints.take()
            # Whatever state it is in, the next check gets a fresh process.
            if session:
                session.kill()
                session = None
        taken = time.monotonic() - began
        print(f"{name:<24} {verdict:<8} {taken:6.1f} s  {check.__doc__}{f' ({detail})' if detail else ''}", flush=True)
    if session:
        try:
            with time_limit(30):
                session.engine.quit()
        except (Hang, chess.engine.EngineError, TimeoutError) as error:
            print(f"quit FAILED: {error}")
            failed += 1
            session.kill()
    print(f"{failed} failed, {skipped} skipped")
    # Threads of a killed session must not keep us: this program never hangs either.
    sys.stdout.flush()
    os._exit(1 if failed else 0)


if __name__ == "__main__":
    main()
