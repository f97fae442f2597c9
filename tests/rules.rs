//! Properties of positions and games that hold for any game: notation in and out, keys, repetitions,
//! and what a FEN may and may not be.

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use simurgh::chess::{Game, Position};

/// Start positions that reach odd corners: castling both ways, promotions, en passant, Chess960.
const STARTS: &[&str] = &[
    "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1",
    "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1",
    "r3k2r/Pppp1ppp/1b3nbN/nP6/BBP1P3/q4N2/Pp1P2PP/R2Q1RK1 w kq - 0 1",
    "8/pppppppp/8/4k3/8/4K3/PPPPPPPP/8 w - - 0 1",
    "n1n5/PPPk4/8/8/8/8/4Kppp/5N1N b - - 0 1",
    "bqnb1rkr/pp3ppp/3ppn2/2p5/5P2/P2P4/NPP1P1PP/BQ1BNRKR w HFhf - 2 9",
    "rk2r3/8/8/8/8/8/8/RK2R3 w EAea - 0 1",
    "1rkr4/8/8/8/8/8/8/1RKR4 w DBdb - 0 1",
    "1r2k1r1/pppppppp/8/8/8/8/PPPPPPPP/1R2K1R1 w GBgb - 0 1",
];

/// Plays random games from every start and shows each position with the game so far.
fn random_games(seed: u64, games: usize, plies: usize, mut look: impl FnMut(&Game)) {
    let mut random = StdRng::seed_from_u64(seed);
    for i in 0..games {
        let (start, repairs) = Position::from_fen(STARTS[i % STARTS.len()]).unwrap();
        assert!(repairs.is_empty());
        let mut game = Game::new(start);
        for _ in 0..plies {
            look(&game);
            let legal = game.current().legal_moves();
            if legal.is_empty() || game.current().is_insufficient_material() {
                break;
            }
            game.play(legal[random.random_range(0..legal.len())]);
        }
    }
}

#[test]
fn fens_round_trip() {
    random_games(1, 90, 150, |game| {
        let position = game.current();
        for chess960 in [false, true] {
            let fen = position.to_fen(chess960);
            let (again, repairs) = Position::from_fen(&fen).unwrap();
            assert!(repairs.is_empty(), "{fen}: {repairs:?}");
            assert_eq!(&again, position, "{fen}");
            assert_eq!(again.key(), position.key(), "{fen}");
            assert_eq!(again.to_fen(chess960), fen);
            assert_eq!(again.rule50(), position.rule50());
            assert_eq!(again.legal_moves(), position.legal_moves(), "{fen}");
        }
    });
}

#[test]
fn the_key_kept_by_play_is_the_full_key() {
    random_games(2, 180, 200, |game| {
        let position = game.current();
        assert_eq!(
            position.key(),
            position.full_key(),
            "{}",
            position.to_fen(true)
        );
    });
}

#[test]
fn moves_round_trip_in_every_notation() {
    random_games(3, 54, 120, |game| {
        let position = game.current();
        let legal = position.legal_moves();
        let mut seen = std::collections::HashSet::new();
        for m in legal {
            assert!(position.is_legal(m));
            for chess960 in [false, true] {
                let text = position.move_to_uci(m, chess960);
                assert_eq!(
                    position.parse_uci(&text),
                    Ok(m),
                    "{}",
                    position.to_fen(true)
                );
            }
            let san = position.to_san(m);
            assert_eq!(position.parse_san(&san), Ok(m), "{}", position.to_fen(true));
            assert!(seen.insert(san));
        }
    });
}

#[test]
fn repetitions_are_counted_by_definition() {
    // Few men on a small stage repeat often.
    let mut random = StdRng::seed_from_u64(4);
    let mut repeated = 0;
    for fen in [
        "k7/p7/P7/8/8/7p/7P/7K w - - 5 1",
        "rk5r/p6p/8/8/8/8/P6P/RK5R w HAha - 0 1",
    ] {
        for _ in 0..20 {
            let mut game = Game::new(Position::from_fen(fen).unwrap().0);
            for _ in 0..80 {
                let legal = game.current().legal_moves();
                game.play(legal[random.random_range(0..legal.len())]);
                let (current, earlier) = game.positions().split_last().unwrap();
                let count = earlier.iter().filter(|past| *past == current).count();
                assert_eq!(usize::from(game.repetitions()), count);
                assert_eq!(game.repeated(earlier.len()), count > 0);
                repeated += count;
            }
        }
    }
    assert!(repeated > 100);
}

#[test]
fn castling_rights_and_en_passant_make_positions_differ() {
    let mut game = Game::default();
    let play = |game: &mut Game, moves: &str| {
        for text in moves.split(' ') {
            game.play(game.current().parse_uci(text).unwrap());
        }
    };
    play(&mut game, "e2e4 e7e5 e1e2 e8e7 e2e1 e7e8");
    assert_eq!(game.repetitions(), 0, "the rights are gone");
    play(&mut game, "e1e2 e8e7 e2e1 e7e8");
    assert_eq!(game.repetitions(), 1);
    // With an enemy pawn beside the pushed one the first occurrence has a different square.
    let mut game = Game::new(
        Position::from_fen("4k3/8/8/8/5p2/8/4P3/4K3 w - -")
            .unwrap()
            .0,
    );
    play(&mut game, "e2e4 e8d8 e1d1 d8e8 d1e1");
    assert_eq!(game.repetitions(), 0);
    play(&mut game, "e8d8 e1d1 d8e8 d1e1");
    assert_eq!(game.repetitions(), 1);
}

#[test]
fn en_passant_is_what_the_networks_read() {
    for (fen, uci, square) in [
        // Nobody beside the pushed pawn.
        ("4k3/8/8/8/3p4/8/7P/4K3 w - -", "h2h4", "-"),
        ("4k3/8/8/8/6p1/8/7P/4K3 w - -", "h2h4", "h3"),
        // The same rank across the edge of the board is not beside.
        ("4k3/8/8/8/p7/8/7P/4K3 w - -", "h2h4", "-"),
        // A knight there, or an own pawn, cannot take.
        ("4k3/8/8/8/6n1/8/7P/4K3 w - -", "h2h4", "-"),
        ("4k3/8/8/8/6P1/8/7P/4K3 w - -", "h2h4", "-"),
        // Pinned, and so without a legal capture: set all the same.
        ("6k1/8/8/8/6p1/8/7P/4K1R1 w - -", "h2h4", "h3"),
        ("4k3/2p5/8/1P6/8/8/8/4K3 b - -", "c7c5", "c6"),
        // Two single steps.
        ("4k3/8/8/8/6p1/7P/8/4K3 w - -", "h3h4", "-"),
    ] {
        let (mut position, _) = Position::from_fen(fen).unwrap();
        position.play(position.parse_uci(uci).unwrap());
        let fen = position.to_fen(false);
        assert_eq!(fen.split(' ').nth(3), Some(square), "{fen}");
    }
    // From a FEN the field is taken as given, even if nothing can take.
    for (fen, kept) in [
        (
            "rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq e3 0 1",
            true,
        ),
        (
            "rnbqkbnr/pppp1ppp/8/4p3/4P3/8/PPPP1PPP/RNBQKBNR w KQkq e6 0 2",
            true,
        ),
        // Wrong rank for the mover, no pawn in front, square taken, home square taken.
        (
            "rnbqkbnr/pppp1ppp/8/4p3/4P3/8/PPPP1PPP/RNBQKBNR w KQkq e3 0 2",
            false,
        ),
        (
            "rnbqkbnr/pppp1ppp/8/4p3/4P3/8/PPPP1PPP/RNBQKBNR w KQkq d6 0 2",
            false,
        ),
        (
            "rnbqkb1r/pppp1ppp/4n3/4p3/4P3/8/PPPP1PPP/RNBQKBNR w KQkq e6 0 2",
            false,
        ),
        (
            "rnbqkbnr/pppppppp/8/4p3/4P3/8/PPPP1PPP/RNBQKBNR w KQkq e6 0 2",
            false,
        ),
        (
            "rnbqkbnr/pppp1ppp/8/8/4p3/8/PPPP1PPP/RNBQKBNR b KQkq e3 0 2",
            false,
        ),
    ] {
        let (position, repairs) = match Position::from_fen(fen) {
            Ok(found) => found,
            Err(error) => {
                assert!(error.to_string().contains("men"), "{fen}: {error}");
                continue;
            }
        };
        assert_eq!(position.ep_square().is_some(), kept, "{fen}");
        assert_eq!(repairs.is_empty(), kept, "{fen}: {repairs:?}");
    }
}

#[test]
fn castling_fields_are_read_as_x_fen_and_shredder_fen() {
    for (fen, standard, shredder) in [
        ("r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1", "KQkq", "HAha"),
        ("r3k2r/8/8/8/8/8/8/R3K2R w HAha - 0 1", "KQkq", "HAha"),
        ("r3k2r/8/8/8/8/8/8/R3K2R w qkQK - 0 1", "KQkq", "HAha"),
        ("1r2k1r1/8/8/8/8/8/8/1R2K1R1 w KQkq - 0 1", "KQkq", "GBgb"),
        // An inner rook's right is a file in both forms; KQ mean the outermost.
        ("4k3/8/8/8/8/8/8/1RR1K1RR w GCkq - 0 1", "GC", "GC"),
        ("4k3/8/8/8/8/8/8/1RR1K1RR w KQ - 0 1", "KQ", "HB"),
        ("4k3/8/8/8/8/8/8/1R2K1R1 w K - 0 1", "K", "G"),
    ] {
        let (position, _) = Position::from_fen(fen).unwrap();
        let field = |fen: String| fen.split(' ').nth(2).map(str::to_owned);
        assert_eq!(
            field(position.to_fen(false)).as_deref(),
            Some(standard),
            "{fen}"
        );
        assert_eq!(
            field(position.to_fen(true)).as_deref(),
            Some(shredder),
            "{fen}"
        );
        for chess960 in [false, true] {
            let (again, _) = Position::from_fen(&position.to_fen(chess960)).unwrap();
            assert_eq!(again, position, "{fen}");
        }
    }
    for (fen, kept, repairs) in [
        // No rook, a king that is not at home, a bishop where the rook should be, twice the same.
        ("4k3/8/8/8/8/8/8/4K2R w KQkq - 0 1", "K", 3),
        ("4k3/8/8/8/8/8/4K3/R6R w KQ - 0 1", "-", 2),
        ("4k3/8/8/8/8/8/8/4K2B w KH - 0 1", "-", 2),
        ("4k3/8/8/8/8/8/8/4K2R w KK - 0 1", "K", 0),
        ("4k3/8/8/8/8/8/8/4K1RR w KG - 0 1", "K", 1),
    ] {
        let (position, found) = Position::from_fen(fen).unwrap();
        assert_eq!(
            position.to_fen(false).split(' ').nth(2),
            Some(kept),
            "{fen}"
        );
        assert_eq!(found.len(), repairs, "{fen}: {found:?}");
        for repair in found {
            assert!(repair.to_string().contains("castling right"));
        }
    }
}

#[test]
fn positions_that_cannot_be_are_refused_by_name() {
    for (fen, part) in [
        ("rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP w KQkq - 0 1", "7 ranks"),
        (
            "rnbqkbnr/pppppppp/8/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1",
            "9 ranks",
        ),
        (
            "rnbqkbnr/ppppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1",
            "rank 7",
        ),
        (
            "rnbqkbnr/pppp3/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1",
            "rank 7",
        ),
        (
            "rnbqkbnr/pppp0ppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1",
            "'0' in rank 7",
        ),
        (
            "rnbq1bnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQ - 0 1",
            "black has 0 kings",
        ),
        (
            "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBKKBNR w KQkq - 0 1",
            "white has 2 kings",
        ),
        (
            "rnbqkbnr/pppppppp/8/8/8/P7/PPPPPPPP/RNBQKBNR w KQkq - 0 1",
            "white has 17 men",
        ),
        (
            "rnbqkbnr/pppppppp/p7/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1",
            "black has 17 men",
        ),
        (
            "rnbqkbpr/pppppppn/8/8/8/8/PPPPPPP1/RNBQKBNR w KQkq - 0 1",
            "pawn stands on g8",
        ),
        ("4k3/8/8/8/8/8/4r3/4K2p w - - 0 1", "pawn stands on h1"),
        ("4k3/4r3/8/8/8/8/8/4K3 b - - 0 1", "white is in check"),
        ("4k3/8/8/8/8/8/8/4K3 W - - 0 1", "side to move 'W'"),
        ("4k3/8/8/8/8/8/8/4K3 w - - x 1", "rule-50 count 'x'"),
        ("4k3/8/8/8/8/8/8/4K3 w - - 0 4294967297", "move number"),
        ("   ", "empty FEN"),
    ] {
        let message = match Position::from_fen(fen) {
            Ok((position, _)) => panic!("{fen} was taken as {}", position.to_fen(false)),
            Err(error) => error.to_string(),
        };
        assert!(message.contains(part), "{fen}: {message}");
        assert!(!message.contains('\n'));
    }
}

/// Changed, cut and glued FENs and moves: an answer or a refusal, never a panic, and what is taken
/// can be played on and written.
#[test]
fn damaged_text_never_panics() {
    let mut random = StdRng::seed_from_u64(5);
    let letters: Vec<char> = "12345678/pnbrqkPNBRQK wb-KQkqahAHe36 0é\0\u{fffd}9,"
        .chars()
        .collect();
    let mut taken = 0;
    for i in 0..20_000 {
        let mut text: Vec<char> = STARTS[i % STARTS.len()].chars().collect();
        for _ in 0..random.random_range(1..6) {
            let at = random.random_range(0..text.len());
            let letter = letters[random.random_range(0..letters.len())];
            match random.random_range(0..4) {
                0 => text[at] = letter,
                1 => text.insert(at, letter),
                2 if text.len() > 1 => drop(text.remove(at)),
                _ => text.truncate(at.max(1)),
            }
        }
        let text: String = text.into_iter().collect();
        let Ok((position, _)) = Position::from_fen(&text) else {
            continue;
        };
        taken += 1;
        let (again, _) = Position::from_fen(&position.to_fen(true)).unwrap();
        assert_eq!(again, position, "{text}");
        let mut game = Game::new(position);
        for _ in 0..4 {
            let legal = game.current().legal_moves();
            let Some(&m) = legal.first() else { break };
            let _ = game.current().to_san(m);
            game.play(m);
            assert_eq!(game.current().key(), game.current().full_key(), "{text}");
        }
        let junk: String = text.chars().rev().take(5).collect();
        assert!(game.current().parse_uci(&junk).is_err() || junk.len() >= 4);
        let _ = game.current().parse_san(&junk);
    }
    assert!(taken > 300, "{taken}");
}
