//! AdamW and Muon with averaged weights, over tensors, in fp32. Their whole state is in the open, to be saved.
//! Knows no network.

use tch::{Kind, TchError, Tensor};

type Result<T> = std::result::Result<T, TchError>;

const BETA1: f64 = 0.9;
const BETA2: f64 = 0.95;
const EPS: f64 = 1e-8;
const MUON_MOMENTUM: f64 = 0.95;
/// Root mean square of the numbers of a Muon step at a rate of 1, about that of an AdamW step, so that both
/// share a learning rate (Liu et al. 2025).
const MUON_RMS: f64 = 0.2;

/// Weights and everything that moves them (Loshchilov and Hutter 2019, algorithm 2).
pub struct AdamW {
    /// The weights.
    pub weights: Vec<Tensor>,
    /// Their averages over the steps.
    pub ema: Vec<Tensor>,
    /// First moments.
    pub first: Vec<Tensor>,
    /// Second moments.
    pub second: Vec<Tensor>,
    /// Steps taken.
    pub step: u64,
}

/// What moves a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// AdamW.
    Adam,
    /// Muon, on that many matrices side by side.
    Muon(i64),
}

/// Numbers of one step.
#[derive(Clone, Copy, Debug)]
pub struct StepSettings {
    pub learning_rate: f64,
    /// On tensors of two or more dimensions.
    pub weight_decay: f64,
    /// Largest norm of the gradient.
    pub clip: f64,
    /// Share of the average that stays.
    pub ema: f64,
}

impl AdamW {
    /// Before the first step.
    ///
    /// # Errors
    /// When libtorch refuses.
    pub fn new(weights: Vec<Tensor>) -> Result<AdamW> {
        let zeros = || {
            weights
                .iter()
                .map(Tensor::f_zeros_like)
                .collect::<Result<Vec<_>>>()
        };
        Ok(AdamW {
            first: zeros()?,
            second: zeros()?,
            ema: weights
                .iter()
                .map(Tensor::f_detach_copy)
                .collect::<Result<_>>()?,
            weights,
            step: 0,
        })
    }

    /// One step along `gradients`, clipped to a norm of `clip`, each tensor by its rule. Returns the norm before
    /// clipping; when it is no number, nothing was changed.
    ///
    /// # Errors
    /// When libtorch refuses.
    pub fn step(
        &mut self,
        gradients: &[Tensor],
        rules: &[Rule],
        settings: &StepSettings,
    ) -> Result<f64> {
        let _guard = tch::no_grad_guard();
        let mut squares = 0.0;
        for gradient in gradients {
            squares += gradient
                .f_square()?
                .f_sum(Kind::Double)?
                .f_double_value(&[])?;
        }
        let norm = squares.sqrt();
        if !norm.is_finite() {
            return Ok(norm);
        }
        let scale = match norm > settings.clip {
            true => settings.clip / norm,
            false => 1.0,
        };
        self.step += 1;
        // The averages follow quickly at first, when they hold little but the beginning.
        let stay = settings
            .ema
            .min((1 + self.step) as f64 / (10 + self.step) as f64);
        let (unbias1, unbias2) = (
            1.0 - BETA1.powf(self.step as f64),
            1.0 - BETA2.powf(self.step as f64),
        );
        for (index, (gradient, rule)) in gradients.iter().zip(rules).enumerate() {
            let weight = &mut self.weights[index];
            let (first, second) = (&mut self.first[index], &mut self.second[index]);
            let gradient = gradient.f_mul_scalar(scale)?;
            if weight.dim() >= 2 {
                let keep = 1.0 - settings.learning_rate * settings.weight_decay;
                let _ = weight.f_mul_scalar_(keep)?;
            }
            let direction = match *rule {
                Rule::Adam => {
                    let _ = first.f_lerp_(&gradient, 1.0 - BETA1)?;
                    let _ = second.f_lerp_(&gradient.f_square()?, 1.0 - BETA2)?;
                    let spread = second
                        .f_mul_scalar(1.0 / unbias2)?
                        .f_sqrt()?
                        .f_add_scalar(EPS)?;
                    first.f_div(&spread)?.f_mul_scalar(1.0 / unbias1)?
                }
                Rule::Muon(parts) => {
                    let _ = first.f_lerp_(&gradient, 1.0 - MUON_MOMENTUM)?;
                    // Nesterov's look ahead.
                    let ahead = gradient.f_lerp(first, MUON_MOMENTUM)?;
                    let blocks = ahead.f_chunk(parts, 1)?;
                    let orthogonal: Vec<Tensor> =
                        blocks.iter().map(orthogonal).collect::<Result<_>>()?;
                    Tensor::f_cat(&orthogonal, 1)?
                }
            };
            let _ = weight.f_add_(&direction.f_mul_scalar(-settings.learning_rate)?)?;
            let _ = self.ema[index].f_lerp_(weight, 1.0 - stay)?;
        }
        Ok(norm)
    }
}

/// The nearest matrix to `m` whose singular values are all the same, about [`MUON_RMS`]·√max(rows, columns),
/// by Newton and Schulz's iteration (Jordan et al. 2024, Muon).
fn orthogonal(m: &Tensor) -> Result<Tensor> {
    let (rows, columns) = m.size2()?;
    let tall = rows > columns;
    let mut x = match tall {
        true => m.f_transpose(0, 1)?,
        false => m.shallow_clone(),
    };
    let norm = x
        .f_square()?
        .f_sum(Kind::Float)?
        .f_double_value(&[])?
        .sqrt();
    x = x.f_mul_scalar(1.0 / (norm + 1e-7))?;
    for _ in 0..5 {
        let a = x.f_matmul(&x.f_transpose(0, 1)?)?;
        let b = a
            .f_mul_scalar(-4.7750)?
            .f_add(&a.f_matmul(&a)?.f_mul_scalar(2.0315)?)?;
        x = x.f_mul_scalar(3.4445)?.f_add(&b.f_matmul(&x)?)?;
    }
    let x = match tall {
        true => x.f_transpose(0, 1)?,
        false => x,
    };
    x.f_mul_scalar(MUON_RMS * (rows.max(columns) as f64).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SETTINGS: StepSettings = StepSettings {
        learning_rate: 0.1,
        weight_decay: 0.5,
        clip: 1.0,
        ema: 0.999,
    };

    fn number(tensor: &Tensor) -> f64 {
        tensor.double_value(&[0, 0])
    }

    #[test]
    fn steps_are_those_of_the_formula() {
        let start = Tensor::from_slice(&[2.0_f32]).reshape([1, 1]);
        let mut adam = AdamW::new(vec![start]).unwrap();
        let (mut w, mut m, mut v) = (2.0_f64, 0.0_f64, 0.0_f64);
        for (t, g) in [0.5_f64, -0.2, 3.0].into_iter().enumerate() {
            let gradient = Tensor::from_slice(&[g as f32]).reshape([1, 1]);
            let norm = adam.step(&[gradient], &[Rule::Adam], &SETTINGS).unwrap();
            assert!((norm - g.abs()).abs() < 1e-6);
            let g = g.clamp(-1.0, 1.0);
            m = 0.9 * m + 0.1 * g;
            v = 0.95 * v + 0.05 * g * g;
            let t = t as i32 + 1;
            let (mh, vh) = (m / (1.0 - 0.9_f64.powi(t)), v / (1.0 - 0.95_f64.powi(t)));
            w -= 0.1 * (mh / (vh.sqrt() + 1e-8) + 0.5 * w);
            assert!((number(&adam.weights[0]) - w).abs() < 1e-5, "{t}");
        }
    }

    #[test]
    fn vectors_do_not_decay_and_nan_changes_nothing() {
        let start = Tensor::from_slice(&[2.0_f32]);
        let mut adam = AdamW::new(vec![start]).unwrap();
        let zero = Tensor::from_slice(&[0.0_f32]);
        adam.step(&[zero], &[Rule::Adam], &SETTINGS).unwrap();
        assert_eq!(adam.weights[0].double_value(&[0]), 2.0);
        let nan = Tensor::from_slice(&[f32::NAN]);
        assert!(
            adam.step(&[nan], &[Rule::Adam], &SETTINGS)
                .unwrap()
                .is_nan()
        );
        assert_eq!((adam.step, adam.weights[0].double_value(&[0])), (1, 2.0));
    }

    #[test]
    fn muon_moves_all_directions_of_a_matrix_alike() {
        // Two blocks side by side, each with singular values from 1 to 1/16.
        let block = Tensor::eye(8, (Kind::Float, tch::Device::Cpu))
            * Tensor::from_slice(
                &(0..8)
                    .map(|i| 1.0 / (1.0 + 15.0 * i as f32 / 7.0))
                    .collect::<Vec<_>>(),
            );
        let gradient = Tensor::cat(&[&block, &(&block * 100.0)], 1);
        let mut adam = AdamW::new(vec![Tensor::zeros_like(&gradient)]).unwrap();
        let settings = StepSettings {
            clip: 1e9,
            ..SETTINGS
        };
        adam.step(&[gradient], &[Rule::Muon(2)], &settings).unwrap();
        for half in adam.weights[0].chunk(2, 1) {
            let wanted = 0.1 * MUON_RMS * 8.0_f64.sqrt();
            for i in 0..8 {
                let moved = -half.double_value(&[i, i]);
                assert!(
                    (0.6..1.3).contains(&(moved / wanted)),
                    "{i}: {moved} {wanted}"
                );
            }
            let all = half.abs().sum(Kind::Double).double_value(&[]);
            let diagonal = half.diag(0).abs().sum(Kind::Double).double_value(&[]);
            assert!((all - diagonal).abs() < 1e-5);
        }
    }
}
