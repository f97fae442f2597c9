//! Sums of values in fixed point, each from one point of view; the flip to the parent's view happens
//! here and nowhere else. Knows no tree.
//!
//! Integers make addition order-independent: the same visits give the same bits, whatever thread
//! came first.

use crate::eval::Wdl;

/// One, in W − L and in D: 2⁻³⁰ is the smallest step.
const UNIT: f64 = (1_u64 << 30) as f64;

/// One ply of moves left: 2⁻²⁰ is the smallest step.
const PLY: i64 = 1 << 20;

/// Most plies of moves left that are counted.
const MAX_PLIES: f32 = 2000.0;

/// A single value, from the side to move.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Value {
    wl: i64,
    d: i64,
    m: i64,
}

impl Value {
    /// From a network's answer; without a moves-left head M is 0.
    pub fn new(wdl: Wdl, moves_left: Option<f32>) -> Value {
        let fixed = |x: f32| (f64::from(x.clamp(-1.0, 1.0)) * UNIT) as i64;
        let plies = moves_left.unwrap_or(0.0).clamp(0.0, MAX_PLIES);
        Value {
            wl: fixed(wdl.q()),
            d: fixed(wdl.draw),
            m: (f64::from(plies) * PLY as f64) as i64,
        }
    }

    /// A certain result: `wl` is −1, 0 or 1.
    pub fn certain(wl: i32, plies: u32) -> Value {
        let one = UNIT as i64;
        Value {
            wl: i64::from(wl) * one,
            d: if wl == 0 { one } else { 0 },
            m: i64::from(plies) * PLY,
        }
    }

    /// The value counted `visits` times.
    pub fn times(self, visits: u32) -> Sums {
        let n = i64::from(visits);
        Sums {
            visits,
            wl: self.wl * n,
            d: self.d * n,
            m: self.m * n,
        }
    }
}

/// Sums over visits of one node, from its side to move.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    /// How many values were added.
    pub visits: u32,
    /// Sum of W − L.
    pub wl: i64,
    /// Sum of D.
    pub d: i64,
    /// Sum of moves left.
    pub m: i64,
}

/// Sums of a child as its parent's side to move sees them. Made by [`Sums::for_parent`] only.
#[derive(Clone, Copy, Debug)]
pub struct FlippedSums(Sums);

impl Sums {
    /// One ply up: wins become losses, the end is one ply further away.
    pub fn for_parent(self) -> FlippedSums {
        FlippedSums(Sums {
            visits: self.visits,
            wl: -self.wl,
            d: self.d,
            m: self.m + i64::from(self.visits) * PLY,
        })
    }

    /// Adds what a child brought.
    pub fn absorb(&mut self, child: FlippedSums) {
        self.visits += child.0.visits;
        self.wl += child.0.wl;
        self.d += child.0.d;
        self.m += child.0.m;
    }

    /// What is left without a child's part.
    #[must_use]
    pub fn without(self, child: FlippedSums) -> Sums {
        Sums {
            visits: self.visits.saturating_sub(child.0.visits),
            wl: self.wl - child.0.wl,
            d: self.d - child.0.d,
            m: self.m - child.0.m,
        }
    }

    /// Adds a difference without visits.
    pub fn adjust(&mut self, delta: Sums) {
        self.wl += delta.wl;
        self.d += delta.d;
        self.m += delta.m;
    }

    /// What is missing to have `visits` times `value` in all.
    pub fn missing_to(self, value: Value) -> Sums {
        let target = value.times(self.visits);
        Sums {
            visits: 0,
            wl: target.wl - self.wl,
            d: target.d - self.d,
            m: target.m - self.m,
        }
    }

    /// Mean of W − L.
    pub fn q(self) -> f32 {
        mean(self.wl, self.visits, UNIT)
    }

    /// Mean of D.
    pub fn d(self) -> f32 {
        mean(self.d, self.visits, UNIT)
    }

    /// Mean of moves left, plies.
    pub fn m(self) -> f32 {
        mean(self.m, self.visits, PLY as f64)
    }
}

fn mean(sum: i64, visits: u32, unit: f64) -> f32 {
    (sum as f64 / (f64::from(visits.max(1)) * unit)) as f32
}

/// Natural logarithm from exact operations only, so that every machine gets the same bits.
///
/// x = m·2ᵉ with m in [1/√2, √2); ln m = 2·artanh((m − 1)/(m + 1)) as a series; error below 1e-13.
pub fn ln(x: f64) -> f64 {
    if x <= 0.0 || x.is_nan() || x.is_infinite() {
        return if x == 0.0 { f64::NEG_INFINITY } else { x };
    }
    let bits = x.to_bits();
    let mut exponent = (bits >> 52) as i64 - 1023;
    let mut mantissa = f64::from_bits(bits & ((1 << 52) - 1) | 1023 << 52);
    if mantissa > std::f64::consts::SQRT_2 {
        mantissa /= 2.0;
        exponent += 1;
    }
    let t = (mantissa - 1.0) / (mantissa + 1.0);
    let square = t * t;
    let mut power = t;
    let mut sum = 0.0;
    for k in 0..10 {
        sum += power / f64::from(2 * k + 1);
        power *= square;
    }
    2.0 * sum + exponent as f64 * std::f64::consts::LN_2
}

/// eˣ from exact operations only; for x in about [−700, 700].
pub fn exp(x: f64) -> f64 {
    let k = (x / std::f64::consts::LN_2).round().clamp(-1000.0, 1000.0);
    let r = x - k * std::f64::consts::LN_2;
    let mut term = 1.0;
    let mut sum = 1.0;
    for n in 1..18 {
        term *= r / f64::from(n);
        sum += term;
    }
    sum * f64::from_bits(((k as i64 + 1023) as u64) << 52)
}

/// xʸ for x ≥ 0, from exact operations only.
pub fn pow(x: f64, y: f64) -> f64 {
    if x <= 0.0 { 0.0 } else { exp(y * ln(x)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_flip_a_ply() {
        let sums = Value::new(Wdl::from_q_d(0.5, 0.25), Some(10.0)).times(3);
        let mut parent = Sums::default();
        parent.absorb(sums.for_parent());
        assert_eq!((parent.q(), parent.d(), parent.m()), (-0.5, 0.25, 11.0));
        let mut grandparent = Sums::default();
        grandparent.absorb(parent.for_parent());
        assert_eq!(grandparent.q(), 0.5);
    }

    #[test]
    fn functions_agree_with_the_usual_ones() {
        for x in [1e-9, 0.3, 0.999, 1.0, 1.41421357, 1.5, 2.0, 38740.0, 1e12] {
            assert!(
                (ln(x) - x.ln()).abs() < 1e-12 * x.ln().abs().max(1.0),
                "{x}"
            );
            assert!((pow(x, 1.25) / x.powf(1.25) - 1.0).abs() < 1e-11, "{x}");
        }
        for x in [-30.0, -1.0, 0.0, 0.5, 20.0] {
            assert!((exp(x) / f64::exp(x) - 1.0).abs() < 1e-12, "{x}");
        }
    }
}
