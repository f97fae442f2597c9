//! What is special about the root: which moves are considered and with which priors. Knows no
//! formulas of selection.

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use crate::chess::Move;
use crate::options::Options;

use super::node::Edge;

/// One root move, in the order of the root's edges.
#[derive(Clone, Copy, Debug)]
pub struct RootMove {
    /// Its prior, noise included.
    pub prior: f32,
    /// False when searchmoves or a tablebase leaves it out.
    pub allowed: bool,
}

/// Which root moves a search considers, decided before it starts.
#[derive(Clone, Debug, Default)]
pub struct RootFilter {
    /// Empty means all.
    pub allowed: Vec<Move>,
    /// Share and shape of the noise; a share of 0 is none.
    pub noise: Noise,
}

/// Dirichlet noise in the priors.
#[derive(Clone, Copy, Debug, Default)]
pub struct Noise {
    epsilon: f32,
    alpha: f32,
    seed: u64,
}

impl Noise {
    /// From the options; `seed` decides the draw.
    pub fn new(options: &Options, seed: u64) -> Noise {
        Noise {
            epsilon: options.dirichlet_noise_epsilon as f32,
            alpha: options.dirichlet_noise_alpha as f32,
            seed,
        }
    }
}

impl RootFilter {
    /// True when the move may be played.
    pub fn allows(&self, m: Move) -> bool {
        self.allowed.is_empty() || self.allowed.contains(&m)
    }

    /// The root moves once the root's edges are known. P ← (1 − ε)P + ε·Dirichlet(α).
    pub fn apply(&self, edges: &[Edge]) -> Vec<RootMove> {
        let mut moves: Vec<RootMove> = edges
            .iter()
            .map(|edge| edge.load())
            .map(|edge| RootMove {
                prior: edge.prior(),
                allowed: self.allows(edge.mv()),
            })
            .collect();
        if self.noise.epsilon > 0.0 {
            let mut rng = SmallRng::seed_from_u64(self.noise.seed);
            let draws: Vec<f32> = moves
                .iter()
                .map(|_| gamma(&mut rng, self.noise.alpha))
                .collect();
            let sum: f32 = draws.iter().sum();
            if sum > f32::MIN_POSITIVE {
                for (m, draw) in moves.iter_mut().zip(draws) {
                    m.prior += self.noise.epsilon * (draw / sum - m.prior);
                }
            }
        }
        moves
    }
}

/// A draw from the Gamma distribution with this shape and scale 1 (Marsaglia and Tsang 2000; below
/// shape 1 by the power of a uniform number).
fn gamma(rng: &mut SmallRng, shape: f32) -> f32 {
    let boost = if shape < 1.0 {
        rng.random::<f32>().powf(1.0 / shape.max(1e-6))
    } else {
        1.0
    };
    let d = if shape < 1.0 { shape + 1.0 } else { shape } - 1.0 / 3.0;
    let c = 1.0 / (9.0 * d).sqrt();
    loop {
        let x = normal(rng);
        let v = (1.0 + c * x).powi(3);
        let u: f32 = rng.random();
        if v > 0.0 && u.ln() < 0.5 * x * x + d - d * v + d * v.ln() {
            return boost * d * v;
        }
    }
}

/// A standard normal draw (Box and Muller).
fn normal(rng: &mut SmallRng) -> f32 {
    let u: f32 = 1.0 - rng.random::<f32>();
    let angle = std::f32::consts::TAU * rng.random::<f32>();
    (-2.0 * u.ln()).sqrt() * angle.cos()
}

#[cfg(test)]
mod tests {
    use super::super::node::Prior;
    use super::*;

    #[test]
    fn noise_keeps_the_sum_and_filters_keep_the_order() {
        let edges: Vec<Edge> = (0..20).map(|_| Edge::default()).collect();
        for (i, edge) in edges.iter().enumerate() {
            edge.write(Move::from_raw(i as u16), Prior::new(0.05));
        }
        let options = Options {
            dirichlet_noise_epsilon: 0.25,
            ..Options::default()
        };
        let filter = RootFilter {
            allowed: vec![Move::from_raw(3)],
            noise: Noise::new(&options, 1),
        };
        let moves = filter.apply(&edges);
        let sum: f32 = moves.iter().map(|m| m.prior).sum();
        assert!((sum - 1.0).abs() < 1e-2);
        assert!(moves.iter().any(|m| m.prior > 0.06));
        let allowed: Vec<bool> = moves.iter().map(|m| m.allowed).collect();
        assert_eq!(allowed.iter().filter(|a| **a).count(), 1);
        assert!(allowed[3]);
    }
}
