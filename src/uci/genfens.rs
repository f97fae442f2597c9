//! The syntax of `genfens N seed S book FILE|None`, by which OpenBench asks for opening positions.
//! Refuses to make them: see [`crate::chess::genfens`].

use std::path::PathBuf;

/// What to generate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GenFens {
    pub count: usize,
    pub seed: u64,
    /// A file of positions or games; `None` starts from the start position.
    pub book: Option<PathBuf>,
}

/// Reads what follows `genfens`; words after the book (OpenBench lets users add their own) are
/// passed over.
pub fn parse(rest: &str) -> Option<GenFens> {
    let mut words = rest.split_whitespace();
    let count = words.next()?.parse().ok()?;
    let seed = (words.next()? == "seed")
        .then(|| words.next())??
        .parse()
        .ok()?;
    let book = match words.next() {
        None => None,
        Some("book") => match words.next()? {
            none if none.eq_ignore_ascii_case("none") => None,
            path => Some(PathBuf::from(path)),
        },
        Some(_) => return None,
    };
    Some(GenFens { count, seed, book })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn syntax() {
        assert_eq!(
            parse("10 seed 42 book None extra"),
            Some(GenFens {
                count: 10,
                seed: 42,
                book: None
            })
        );
        assert_eq!(
            parse("1 seed 0 book a.epd"),
            Some(GenFens {
                count: 1,
                seed: 0,
                book: Some("a.epd".into())
            })
        );
        assert_eq!(parse("10"), None);
        assert_eq!(parse("x seed 1 book None"), None);
    }
}
