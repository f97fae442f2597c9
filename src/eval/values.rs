//! Values with their point of view: Wdl, Policy, Evaluation. Knows no search and no network.

/// Probabilities of win, draw and loss for the side to move; they sum to one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Wdl {
    /// P(the side to move wins).
    pub win: f32,
    /// P(draw); 0 where a network does not tell draws apart.
    pub draw: f32,
    /// P(the side to move loses).
    pub loss: f32,
}

impl Wdl {
    /// A certain draw.
    pub const DRAW: Wdl = Wdl {
        win: 0.0,
        draw: 1.0,
        loss: 0.0,
    };

    /// From Q = W − L in [−1, 1] and D in [0, 1 − |Q|].
    pub fn from_q_d(q: f32, d: f32) -> Wdl {
        Wdl {
            win: (1.0 - d + q) / 2.0,
            draw: d,
            loss: (1.0 - d - q) / 2.0,
        }
    }

    /// Q = P(win) − P(loss), in [−1, 1].
    pub fn q(self) -> f32 {
        self.win - self.loss
    }

    /// The same seen by the opponent.
    #[must_use]
    pub fn flip(self) -> Wdl {
        Wdl {
            win: self.loss,
            draw: self.draw,
            loss: self.win,
        }
    }

    /// True when all three are finite.
    pub fn is_finite(self) -> bool {
        self.win.is_finite() && self.draw.is_finite() && self.loss.is_finite()
    }
}

/// All outputs of a policy, those of illegal moves too: what a network would play if nobody told it the rules.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OpenPolicy {
    /// One logit for each move that the network can name.
    pub logits: Vec<f32>,
    /// The output of each legal move, in the order the leaf lists them.
    pub legal: Vec<usize>,
}

/// Probabilities of the legal moves, in the order the leaf lists them; they sum to one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Policy(pub Vec<f32>);

impl Policy {
    /// The same probability for each of `moves` moves.
    pub fn uniform(moves: usize) -> Policy {
        Policy(vec![1.0 / moves.max(1) as f32; moves])
    }

    /// Softmax of `logits / temperature`, in fp32.
    pub fn softmax(mut logits: Vec<f32>, temperature: f32) -> Policy {
        let max = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let mut sum = 0.0;
        for logit in &mut logits {
            *logit = ((*logit - max) / temperature).exp();
            sum += *logit;
        }
        for p in &mut logits {
            *p /= sum;
        }
        Policy(logits)
    }
}

/// What a network says of one leaf, from its side to move.
#[derive(Clone, Debug, PartialEq)]
pub struct Evaluation {
    /// Win, draw, loss.
    pub wdl: Wdl,
    /// Probability of each legal move.
    pub policy: Policy,
    /// Plies until the game ends, if the network has the head.
    pub moves_left: Option<f32>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flipping_twice_is_the_identity_and_once_negates_q() {
        let wdl = Wdl::from_q_d(0.25, 0.5);
        assert_eq!(wdl.flip().flip(), wdl);
        assert_eq!(wdl.flip().q(), -wdl.q());
        assert_eq!(wdl.win + wdl.draw + wdl.loss, 1.0);
    }

    #[test]
    fn softmax_sums_to_one_and_survives_large_logits() {
        let policy = Policy::softmax(vec![1000.0, 999.0, -1000.0], 1.0);
        assert!((policy.0.iter().sum::<f32>() - 1.0).abs() < 1e-6);
        assert!((policy.0[0] / policy.0[1] - std::f32::consts::E).abs() < 1e-4);
    }
}
