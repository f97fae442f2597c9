//! From values to what people read: centipawns, mates, per mille. Knows no tree.

use crate::eval::Wdl;

use super::event::Score;

/// What `score cp` shows; the names are those of the option ScoreType.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScoreType {
    /// 90·tan(1.5637541897·Q), Q = W − L.
    Centipawn,
    /// The same with Q = W − L + DrawScore·D.
    CentipawnWithDrawScore,
    /// 295·Q/(1 − 0.976953126·Q¹⁴).
    Centipawn2019,
    /// 290.680623072·tan(1.548090806·Q).
    Centipawn2018,
    /// (Q + 1)·5000.
    WinPercentage,
    /// 10000·(W − L + DrawScore·D).
    Q,
    /// 10000·(W − L).
    WMinusL,
    /// Where W, D and L allow it the mean of a logistic model of the advantage, else
    /// 45·tan(1.56728071628·Q).
    WdlMu,
}

/// Largest size of a score in centipawns.
const MOST_CP: f32 = 20_000.0;

impl ScoreType {
    /// From the option's word.
    pub fn from_option(word: &str) -> ScoreType {
        match word {
            "centipawn" => ScoreType::Centipawn,
            "centipawn_with_drawscore" => ScoreType::CentipawnWithDrawScore,
            "centipawn_2019" => ScoreType::Centipawn2019,
            "centipawn_2018" => ScoreType::Centipawn2018,
            "win_percentage" => ScoreType::WinPercentage,
            "Q" => ScoreType::Q,
            "W-L" => ScoreType::WMinusL,
            _ => ScoreType::WdlMu,
        }
    }

    /// The number shown for a value. `has_wdl` tells whether draws were told apart.
    pub fn score(self, wdl: Wdl, draw_score: f32, has_wdl: bool) -> Score {
        let wl = wdl.q().clamp(-1.0, 1.0);
        let q = (wl + draw_score * wdl.draw).clamp(-1.0, 1.0);
        let cp = match self {
            ScoreType::Centipawn => 90.0 * (1.563_754_2 * wl).tan(),
            ScoreType::CentipawnWithDrawScore => 90.0 * (1.563_754_2 * q).tan(),
            ScoreType::Centipawn2019 => 295.0 * q / (1.0 - 0.976_953_1 * q.powi(14)),
            ScoreType::Centipawn2018 => 290.680_62 * (1.548_090_8 * q).tan(),
            ScoreType::WinPercentage => (q + 1.0) * 5000.0,
            ScoreType::Q => q * 10_000.0,
            ScoreType::WMinusL => wl * 10_000.0,
            ScoreType::WdlMu => wdl_mu(wdl, wl, has_wdl),
        };
        Score::Cp(cp.clamp(-MOST_CP, MOST_CP).round() as i32)
    }
}

/// 100·mu with a = ln(1/L − 1), b = ln(1/W − 1), mu = (a − b)/(a + b), where that is larger than the
/// tangent formula and W, D, L are not degenerate.
fn wdl_mu(wdl: Wdl, wl: f32, has_wdl: bool) -> f32 {
    let tangent = 45.0 * (1.567_280_7 * wl).tan();
    let usable = |p: f32| p > 1e-4 && p < 0.9999;
    if !has_wdl || !usable(wdl.win) || !usable(wdl.loss) || wl.abs() + wdl.draw > 0.996 {
        return tangent;
    }
    let a = (1.0 / wdl.loss - 1.0).ln();
    let b = (1.0 / wdl.win - 1.0).ln();
    let mu = 100.0 * (a - b) / (a + b);
    if mu.is_finite() && a + b > 0.0 && mu.abs() > tangent.abs() {
        mu
    } else {
        tangent
    }
}

/// Win, draw, loss in per mille; they sum to 1000.
pub fn per_mille(wdl: Wdl) -> [u32; 3] {
    let share = |p: f32| (p.clamp(0.0, 1.0) * 1000.0).round() as u32;
    let win = share(wdl.win);
    let loss = share(wdl.loss).min(1000 - win);
    [win, 1000 - win - loss, loss]
}

/// Moves to mate from plies: odd when the side to move mates, even when it is mated.
pub fn mate(plies: u32, wins: bool) -> Score {
    let moves = plies.div_ceil(2).min(i32::MAX as u32) as i32;
    Score::Mate(if wins { moves } else { -moves })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cp(score: Score) -> i32 {
        match score {
            Score::Cp(cp) => cp,
            Score::Mate(_) => i32::MAX,
        }
    }

    #[test]
    fn scores_are_odd_and_grow_with_q() {
        for kind in [
            ScoreType::Centipawn,
            ScoreType::Centipawn2019,
            ScoreType::Centipawn2018,
            ScoreType::WdlMu,
            ScoreType::Q,
        ] {
            let mut last = i32::MIN;
            for step in -20..=20 {
                let q = step as f32 / 20.0;
                let wdl = Wdl::from_q_d(q, 0.5 * (1.0 - q.abs()));
                let score = cp(kind.score(wdl, 0.0, true));
                assert!(score >= last, "{kind:?} {q}");
                assert_eq!(score, -cp(kind.score(wdl.flip(), 0.0, true)));
                last = score;
            }
        }
    }

    #[test]
    fn per_mille_sums_to_a_thousand() {
        for step in 0..=1000 {
            let q = step as f32 / 500.0 - 1.0;
            let wdl = Wdl::from_q_d(q, 0.333 * (1.0 - q.abs()));
            assert_eq!(per_mille(wdl).iter().sum::<u32>(), 1000);
        }
    }

    #[test]
    fn mates_count_moves() {
        assert_eq!(mate(1, true), Score::Mate(1));
        assert_eq!(mate(3, true), Score::Mate(2));
        assert_eq!(mate(2, false), Score::Mate(-1));
        assert_eq!(mate(0, false), Score::Mate(0));
    }
}
