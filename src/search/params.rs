//! The numbers of the formulas, copied from the options once per search. Knows no tree.

use crate::options::Options;

use super::values::{ln, pow};

/// Cpuct(N) = c + factor·ln((N + base)/base).
#[derive(Clone, Copy, Debug)]
pub struct Cpuct {
    constant: f32,
    base: f64,
    factor: f32,
}

impl Cpuct {
    /// Exploration at a node with so many visits.
    pub fn at(self, visits: u32) -> f32 {
        if self.factor == 0.0 {
            return self.constant;
        }
        let growth = ln((f64::from(visits) + self.base) / self.base);
        self.constant + self.factor * growth as f32
    }
}

/// First-play urgency: the value of an unvisited child.
#[derive(Clone, Copy, Debug)]
pub enum Fpu {
    /// Q(parent) − value·√(Σ priors of visited children).
    Reduction(f32),
    /// The value itself.
    Absolute(f32),
}

impl Fpu {
    /// Q of unvisited children, from the side that chooses.
    pub fn value(self, parent_q: f32, visited_policy: f32) -> f32 {
        match self {
            Fpu::Reduction(value) => parent_q - value * visited_policy.sqrt(),
            Fpu::Absolute(value) => value,
        }
    }
}

/// The moves-left utility: wins sooner, loses later.
#[derive(Clone, Copy, Debug)]
pub struct MovesLeft {
    max_effect: f32,
    threshold: f32,
    slope: f32,
    constant: f32,
    scaled: f32,
    quadratic: f32,
}

impl MovesLeft {
    /// True when it can matter below a parent with this Q.
    pub fn applies(&self, parent_q: f32) -> bool {
        parent_q.abs() > self.threshold
    }

    /// m = clamp(slope·(M_child − M_parent), ±max)·sign(−Q)·(a + b·q' + c·q'²) with
    /// q' = (|Q| − threshold)/(1 − threshold); Q from the side that chooses.
    pub fn utility(&self, q: f32, child_m: f32, parent_m: f32) -> f32 {
        let excess = (q.abs() - self.threshold) / (1.0 - self.threshold).max(1e-6);
        if excess <= 0.0 {
            return 0.0;
        }
        let m = (self.slope * (child_m - parent_m)).clamp(-self.max_effect, self.max_effect);
        let scale = self.constant + excess * (self.scaled + excess * self.quadratic);
        if q > 0.0 { -m * scale } else { m * scale }
    }
}

/// How many visits may be lost to collisions before a minibatch is cut.
#[derive(Clone, Copy, Debug)]
struct CollisionCurve {
    most: u32,
    start: f64,
    end: f64,
    power: f64,
}

/// Everything the search reads in its loop.
#[derive(Clone, Debug)]
pub struct Params {
    cpuct: [Cpuct; 2],
    fpu: [Fpu; 2],
    /// Value of a draw for the side to move at the root.
    pub draw_score: f32,
    /// Second occurrences inside the tree are draws.
    pub two_fold_draws: bool,
    /// Proven results propagate.
    pub sticky_endgames: bool,
    /// `None` when the network has no moves-left head.
    pub moves_left: Option<MovesLeft>,
    collisions: CollisionCurve,
    /// Collisions that end a minibatch.
    pub max_collision_events: u32,
    /// Cache hits and terminals are backed up while a minibatch is gathered.
    pub out_of_order: bool,
    /// At most this many times the minibatch size of them.
    pub max_out_of_order: f32,
    /// Earlier positions in the cache key.
    pub cache_history: usize,
    /// Softmax temperature of the priors.
    pub policy_temperature: f32,
    /// More than the best root move is of interest.
    pub other_lines: bool,
}

impl Params {
    /// From the options and what the network has.
    pub fn new(options: &Options, has_moves_left: bool) -> Params {
        let cpuct = Cpuct {
            constant: options.cpuct as f32,
            base: options.cpuct_base,
            factor: options.cpuct_factor as f32,
        };
        let root_cpuct = match options.root_has_own_cpuct_params {
            true => Cpuct {
                constant: options.cpuct_at_root as f32,
                base: options.cpuct_base_at_root,
                factor: options.cpuct_factor_at_root as f32,
            },
            false => cpuct,
        };
        let fpu = |strategy: &str, value: f64| match strategy {
            "absolute" => Fpu::Absolute(value as f32),
            _ => Fpu::Reduction(value as f32),
        };
        let inner_fpu = fpu(&options.fpu_strategy, options.fpu_value);
        let root_fpu = match options.fpu_strategy_at_root.as_str() {
            "same" => inner_fpu,
            strategy => fpu(strategy, options.fpu_value_at_root),
        };
        let moves_left = MovesLeft {
            max_effect: options.moves_left_max_effect as f32,
            threshold: options.moves_left_threshold as f32,
            slope: options.moves_left_slope as f32,
            constant: options.moves_left_constant_factor as f32,
            scaled: options.moves_left_scaled_factor as f32,
            quadratic: options.moves_left_quadratic_factor as f32,
        };
        let used = has_moves_left && options.moves_left_max_effect > 0.0;
        Params {
            other_lines: options.multi_pv > 1,
            cpuct: [cpuct, root_cpuct],
            fpu: [inner_fpu, root_fpu],
            draw_score: options.draw_score as f32,
            two_fold_draws: options.two_fold_draws,
            sticky_endgames: options.sticky_endgames,
            moves_left: used.then_some(moves_left),
            collisions: CollisionCurve {
                most: options.max_collision_visits.clamp(1, 100_000_000) as u32,
                start: options.max_collision_visits_scaling_start as f64,
                end: options.max_collision_visits_scaling_end as f64,
                power: options.max_collision_visits_scaling_power,
            },
            max_collision_events: options.max_collision_events.clamp(1, 65536) as u32,
            out_of_order: options.out_of_order_eval,
            max_out_of_order: options.max_out_of_order_evals_factor as f32,
            cache_history: options.cache_history_length.clamp(0, 7) as usize,
            policy_temperature: options.policy_temperature as f32,
        }
    }

    /// Exploration constant at a node.
    pub fn cpuct(&self, root: bool, visits: u32) -> f32 {
        self.cpuct[usize::from(root)].at(visits)
    }

    /// First-play urgency at a node.
    pub fn fpu(&self, root: bool) -> Fpu {
        self.fpu[usize::from(root)]
    }

    /// Visits that may be lost to collisions while a minibatch is gathered from a tree of
    /// `visits`: 1 up to the start, then growing by the power to the most at the end.
    pub fn collision_budget(&self, visits: u32) -> u32 {
        let curve = &self.collisions;
        let n = f64::from(visits);
        if n >= curve.end {
            return curve.most;
        }
        if n <= curve.start {
            return 1;
        }
        let share = pow((n - curve.start) / (curve.end - curve.start), curve.power);
        (1.0 + share * f64::from(curve.most - 1)) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_the_documented_curves() {
        let params = Params::new(&Options::default(), true);
        assert!((params.cpuct(false, 0) - 1.745).abs() < 1e-6);
        let at_100k = 1.745 + 3.894 * (138_739.0_f32 / 38_739.0).ln();
        assert!((params.cpuct(true, 100_000) - at_100k).abs() < 1e-4);
        assert_eq!(params.collision_budget(28), 1);
        assert_eq!(params.collision_budget(145_000), 80_000);
        assert!((40..55).contains(&params.collision_budget(400)));
    }

    #[test]
    fn moves_left_hurries_wins_and_delays_losses() {
        let params = Params::new(&Options::default(), true);
        let m = params.moves_left.unwrap();
        assert!(m.applies(0.9) && !m.applies(0.8));
        assert!(m.utility(0.95, 10.0, 20.0) > 0.0);
        assert!(m.utility(0.95, 30.0, 20.0) < 0.0);
        assert!(m.utility(-0.95, 10.0, 20.0) < 0.0);
        assert_eq!(m.utility(0.5, 10.0, 20.0), 0.0);
        let full = m.utility(1.0, 0.0, 1000.0);
        assert!((full - 0.0345).abs() < 1e-4);
    }
}
