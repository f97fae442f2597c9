//! Playing weaker on purpose: from an Elo to a number of visits and a temperature. Knows no tree.

use crate::options::Options;

/// What UCI_LimitStrength asks for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Handicap {
    /// Visits of the root.
    pub visits: u64,
    /// Temperature of the choice among root moves.
    pub temperature: f64,
}

impl Handicap {
    /// `None` at full strength. Visits double every 150 Elo from 4 at 1000; the temperature falls from
    /// 1.5 at 500 to 0 at 2500.
    pub fn new(options: &Options) -> Option<Handicap> {
        options.uci_limit_strength.then(|| {
            let elo = options.uci_elo as f64;
            let visits = 4.0 * ((elo - 1000.0) / 150.0).exp2();
            Handicap {
                visits: visits.round().clamp(2.0, 1e9) as u64,
                temperature: ((2500.0 - elo) / 2000.0 * 1.5).max(0.0),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_higher_elo_means_more_visits_and_less_chance() {
        let at = |elo| {
            Handicap::new(&Options {
                uci_limit_strength: true,
                uci_elo: elo,
                ..Options::default()
            })
            .unwrap()
        };
        assert!(at(1000).visits < at(1500).visits && at(1500).visits < at(2500).visits);
        assert!(at(1000).temperature > at(2000).temperature);
        assert_eq!(at(3000).temperature, 0.0);
        assert_eq!(Handicap::new(&Options::default()), None);
    }
}
