//! The answer to `d`: a position for human eyes. Refuses to know anything but the rules of chess.

use std::fmt::Write;

use crate::chess::{Color, File, Game, Position, Rank, Square};

/// Board, FEN, key, repetitions and legal moves.
pub fn describe(game: &Game, chess960: bool) -> String {
    let position = game.current();
    let rule = " +---+---+---+---+---+---+---+---+\n";
    let mut text = String::from(rule);
    for rank in Rank::ALL.into_iter().rev() {
        for file in File::ALL {
            let piece = position.board().piece_at(Square::from_coords(file, rank));
            let _ = write!(text, " | {}", piece.map_or(' ', |piece| piece.char()));
        }
        let _ = writeln!(text, " | {}", rank.char());
        text.push_str(rule);
    }
    text.push_str("   a   b   c   d   e   f   g   h\n\n");
    let moves = position.legal_moves();
    let names: Vec<String> = moves
        .iter()
        .map(|&m| position.move_to_uci(m, chess960))
        .collect();
    let turn = match position.turn() {
        Color::White => "white",
        Color::Black => "black",
    };
    let _ = writeln!(text, "Fen: {}", position.to_fen(chess960));
    let _ = writeln!(text, "Key: {:016X}", position.key());
    let _ = writeln!(
        text,
        "To move: {turn}{}",
        if position.is_check() {
            ", in check"
        } else {
            ""
        }
    );
    let _ = writeln!(text, "Occurred before: {}", game.repetitions());
    let _ = write!(text, "Legal moves ({}): {}", names.len(), names.join(" "));
    text.truncate(text.trim_end().len());
    text
}

/// The FEN of the position with colours and sides of the board swapped: the same chess.
pub fn flipped(position: &Position) -> String {
    let fen = position.to_fen(false);
    let fields: Vec<&str> = fen.split(' ').collect();
    let swap = |text: &str| -> String {
        text.chars()
            .map(|c| {
                if c.is_ascii_uppercase() {
                    c.to_ascii_lowercase()
                } else {
                    c.to_ascii_uppercase()
                }
            })
            .collect()
    };
    let field = |index: usize| fields.get(index).copied().unwrap_or("-");
    let board: Vec<String> = field(0).rsplit('/').map(swap).collect();
    let turn = if field(1) == "w" { "b" } else { "w" };
    let en_passant: String = field(3)
        .chars()
        .map(|c| match c {
            '3' => '6',
            '6' => '3',
            other => other,
        })
        .collect();
    let mut rights: Vec<char> = swap(field(2)).chars().collect();
    rights.sort_by_key(char::is_ascii_lowercase);
    let rights: String = rights.into_iter().collect();
    let counters = format!("{} {}", position.rule50(), position.fullmoves());
    format!(
        "{} {turn} {rights} {en_passant} {counters}",
        board.join("/")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flipping_twice_changes_nothing() {
        for fen in [
            "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1",
            "rnbqkbnr/ppp1pppp/8/8/3pP3/8/PPPP1PPP/RNBQKBNR b Kq e3 0 3",
        ] {
            let (position, _) = Position::from_fen(fen).unwrap();
            let (other, repairs) = Position::from_fen(&flipped(&position)).unwrap();
            assert_eq!(repairs, []);
            assert_ne!(other.turn(), position.turn());
            assert_eq!(flipped(&other), fen);
        }
    }

    #[test]
    fn the_start_position() {
        let text = describe(&Game::default(), false);
        assert!(
            text.contains(" | r | n | b | q | k | b | n | r | 8\n"),
            "{text}"
        );
        assert!(
            text.contains("\nFen: rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1\n"),
            "{text}"
        );
        assert!(text.contains("Legal moves (20): "), "{text}");
    }
}
