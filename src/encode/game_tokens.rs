//! A game as tokens for the GPT that reads moves: special tokens, ratings, and every move a piece could make.
//! Knows moves and positions; never a tensor.
//!
//! | tokens | stand for |
//! |---|---|
//! | 0 … 7 | `<pad>` `<bos>` `<eos>` `<unk>` `<1-0>` `<0-1>` `<1/2-1/2>` `<mask>` |
//! | 8 … 34 | White's rating, `<w600>` to `<w3200>` in steps of 100 |
//! | 35 … 61 | Black's rating, `<b600>` to `<b3200>` |
//! | 62 … 2029 | UCI moves: for each from-square a1, b1 … h8, each to-square in that order that a queen or a knight reaches on an empty board; after a plain move from the last rank but one to the last, its promotions to n, b, r, q |
//!
//! A game is `<bos> <wR> <bR> move move …`.

use std::sync::LazyLock;

use crate::chess::{Game, Move, Position, Role, Square};

/// Tokens in all.
pub const VOCABULARY: usize = 2030;
/// Fills up rows of a minibatch.
pub const PAD: u16 = 0;
/// Ends every game.
pub const EOS: u16 = 2;
/// Begins every game.
pub const BOS: u16 = 1;
/// Tokens before the first move: `<bos>` and both ratings.
pub const PROMPT: usize = 3;
/// The first token that is a move.
pub const FIRST_MOVE: u16 = 62;

const SPECIAL: [&str; 8] = [
    "<pad>",
    "<bos>",
    "<eos>",
    "<unk>",
    "<1-0>",
    "<0-1>",
    "<1/2-1/2>",
    "<mask>",
];
const RATING_STEPS: u16 = 27;
const LOWEST: u16 = 600;

struct Moves {
    /// By token − FIRST_MOVE.
    list: Vec<Move>,
    /// Token of from, to and promotion (none, n, b, r, q), 0 where there is none.
    tokens: Vec<u16>,
}

fn slot(from: usize, to: usize, promotion: Option<Role>) -> usize {
    let piece = match promotion {
        None => 0,
        Some(Role::Knight) => 1,
        Some(Role::Bishop) => 2,
        Some(Role::Rook) => 3,
        Some(_) => 4,
    };
    (from * 64 + to) * 5 + piece
}

static MOVES: LazyLock<Moves> = LazyLock::new(|| {
    let mut moves = Moves {
        list: Vec::new(),
        tokens: vec![0; 64 * 64 * 5],
    };
    let promotions = [Role::Knight, Role::Bishop, Role::Rook, Role::Queen];
    for from in 0..64_usize {
        for to in 0..64_usize {
            let files = (to % 8).abs_diff(from % 8);
            let ranks = (to / 8).abs_diff(from / 8);
            let straight = files == 0 || ranks == 0 || files == ranks;
            if from == to || !(straight || files * ranks == 2) {
                continue;
            }
            let promotes = files <= 1 && matches!((from / 8, to / 8), (6, 7) | (1, 0));
            let pieces = promotions.into_iter().filter(|_| promotes).map(Some);
            for piece in std::iter::once(None).chain(pieces) {
                moves.tokens[slot(from, to, piece)] = FIRST_MOVE + moves.list.len() as u16;
                moves.list.push(Move::new(
                    Square::new(from as u32),
                    Square::new(to as u32),
                    piece,
                ));
            }
        }
    }
    moves
});

/// The token of a move played in `position`. None for castling in Chess960 where the king's way is no move of
/// the vocabulary, or is another move's.
pub fn move_token(position: &Position, m: Move) -> Option<u16> {
    let (from, mut to) = (usize::from(m.from()), usize::from(m.to()));
    if position.is_castling(m) {
        // UCI: the king moves two files from the e-file.
        let file = if to > from { 6 } else { 2 };
        if from % 8 != 4 || !(to % 8 == 7 || to % 8 == 0) {
            return None;
        }
        to = from / 8 * 8 + file;
    }
    match MOVES.tokens[slot(from, to, m.promotion())] {
        0 => None,
        token => Some(token),
    }
}

/// The tokens of White's and Black's ratings, taken to the nearest step of the scale.
pub fn rating_tokens(white: u16, black: u16) -> [u16; 2] {
    let step = |rating: u16| {
        let above = rating.saturating_sub(LOWEST);
        ((above + 50) / 100).min(RATING_STEPS - 1)
    };
    let first = SPECIAL.len() as u16;
    [first + step(white), first + RATING_STEPS + step(black)]
}

/// `<bos>`, both ratings and the moves of a game. None for one that begins elsewhere than at the start position,
/// or has a move without a token.
pub fn row_of(game: &Game, white: u16, black: u16) -> Option<Vec<u16>> {
    if !game.starts_from_startpos() {
        return None;
    }
    let [white, black] = rating_tokens(white, black);
    let mut row = vec![BOS, white, black];
    for (position, &m) in game.positions().iter().zip(game.moves()) {
        row.push(move_token(position, m)?);
    }
    Some(row)
}

/// What a token is called in files and messages.
pub fn token_name(token: u16) -> Option<String> {
    let index = usize::from(token);
    if let Some(name) = SPECIAL.get(index) {
        return Some((*name).to_owned());
    }
    if token < FIRST_MOVE {
        let rating = token - SPECIAL.len() as u16;
        let (side, step) = match rating.checked_sub(RATING_STEPS) {
            None => ('w', rating),
            Some(step) => ('b', step),
        };
        return Some(format!("<{side}{}>", LOWEST + 100 * step));
    }
    let m = MOVES.list.get(usize::from(token - FIRST_MOVE))?;
    Some(m.to_string())
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn the_vocabulary_is_whole_and_has_no_name_twice() {
        let names: HashSet<String> = (0..VOCABULARY as u16)
            .map(|token| token_name(token).unwrap())
            .collect();
        assert_eq!(names.len(), VOCABULARY);
        assert_eq!(token_name(VOCABULARY as u16), None);
        let name = |token| token_name(token).unwrap();
        assert_eq!((name(8), name(34)), ("<w600>".into(), "<w3200>".into()));
        assert_eq!((name(35), name(61)), ("<b600>".into(), "<b3200>".into()));
        // a1 reaches b1 first.
        assert_eq!((name(62), name(2029)), ("a1b1".into(), "h8g8".into()));
        let promotions = names
            .iter()
            .filter(|name| name.len() == 5 && !name.starts_with('<'));
        assert_eq!(promotions.filter(|name| name.ends_with('q')).count(), 44);
    }

    #[test]
    fn ratings_go_to_the_nearest_step() {
        let names =
            |white, black| rating_tokens(white, black).map(|token| token_name(token).unwrap());
        assert_eq!(names(1849, 1850), ["<w1800>", "<b1900>"]);
        assert_eq!(names(0, 4000), ["<w600>", "<b3200>"]);
    }

    #[test]
    fn every_move_of_a_game_has_its_own_name() {
        let mut game = Game::default();
        let moves = "e2e4 d7d5 e4d5 g8f6 g1f3 c7c6 d5c6 g7g6 c6b7 f8g7 f1e2 e8g8 e1g1 d8d7 b7a8n";
        for text in moves.split_whitespace() {
            let m = game.current().parse_uci(text).unwrap();
            let legal = game.current().legal_moves();
            let tokens: HashSet<u16> = legal
                .iter()
                .map(|&m| move_token(game.current(), m).unwrap())
                .collect();
            assert_eq!(tokens.len(), legal.len());
            let token = move_token(game.current(), m).unwrap();
            assert_eq!(token_name(token).unwrap(), text);
            game.play(m);
        }
    }

    #[test]
    fn castling_from_elsewhere_has_no_token() {
        let (position, _) = Position::from_fen("1k6/8/8/8/8/8/8/1K1R4 w D - 0 1").unwrap();
        let castling = *position
            .legal_moves()
            .iter()
            .find(|&&m| position.is_castling(m))
            .unwrap();
        assert_eq!(move_token(&position, castling), None);
    }
}
