//! Planes in, raw outputs out, by whatever computes a network fastest: libtorch in one of its precisions,
//! or the tower on one core. Knows neither positions nor evaluations.

use std::time::{Duration, Instant};

use tch::{Device, Kind};

use crate::encode::{PLANES, SQUARES};

use super::cpu::CpuNetwork;
use super::error::ModelError;
use super::settings::Precision;
use super::torch::{Network, Outputs, Placement};
use super::weights::NetworkWeights;

/// Numbers of one position.
pub const ROW: usize = PLANES * SQUARES;

/// libtorch's minibatches are padded to one of these sizes.
const SIZES: [usize; 33] = [
    1, 2, 3, 4, 5, 6, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160,
    192, 224, 256, 320, 384, 512, 640, 768, 1024,
];
/// Longest time spent on running padded sizes once at load.
const WARM_UP: Duration = Duration::from_millis(300);

/// A network ready to run. A clone shares the weights.
#[derive(Clone)]
pub enum Runner {
    /// In libtorch.
    Torch(Box<Network>),
    /// On one core without it.
    Cpu(Box<CpuNetwork>),
}

impl Runner {
    /// The network in the precision asked for; `auto` is the fastest of those that could be.
    ///
    /// # Errors
    /// When libtorch refuses.
    pub fn new(
        weights: &NetworkWeights,
        device: Device,
        precision: Precision,
        batch: usize,
    ) -> Result<(Runner, Precision), ModelError> {
        let candidates: &[Precision] = match (precision, device) {
            (Precision::Auto, Device::Cpu) if has_fast_bf16() => {
                &[Precision::Fp32, Precision::Bf16]
            }
            (Precision::Auto, Device::Cpu | Device::Mps) => &[Precision::Fp32],
            (Precision::Auto, _) => &[Precision::Fp16],
            _ => std::slice::from_ref(&precision),
        };
        let mut best: Option<(Duration, Runner, Precision)> = None;
        for &precision in candidates {
            let mut runner = Runner::in_precision(weights, device, precision)?;
            let time = match candidates.len() {
                1 => Duration::ZERO,
                _ => runner.time(batch)?,
            };
            if best.as_ref().is_none_or(|(fastest, ..)| time < *fastest) {
                best = Some((time, runner, precision));
            }
        }
        best.map(|(_, runner, precision)| (runner, precision))
            .ok_or_else(|| ModelError::UnknownSetting {
                setting: "precision",
                found: precision.name().to_owned(),
                expected: "auto, fp32, bf16 or fp16",
            })
    }

    fn in_precision(
        weights: &NetworkWeights,
        device: Device,
        precision: Precision,
    ) -> Result<Runner, ModelError> {
        if (precision, device) == (Precision::Fp32, Device::Cpu)
            && let Some(network) = CpuNetwork::new(weights)?
        {
            return Ok(Runner::Cpu(Box::new(network)));
        }
        let (kind, storage) = match (precision, device) {
            (Precision::Bf16, _) => (Kind::BFloat16, Kind::BFloat16),
            (Precision::Fp16, Device::Cpu) => (Kind::Float, Kind::Half),
            (Precision::Fp16, _) => (Kind::Half, Kind::Half),
            _ => (Kind::Float, Kind::Float),
        };
        let placement = Placement {
            device,
            kind,
            storage,
        };
        Ok(Runner::Torch(Box::new(Network::new(placement, weights)?)))
    }

    /// Evaluates planes `[batch, 112, 64]`. Gradients must be off on the calling thread.
    ///
    /// # Errors
    /// When the number of planes is wrong or libtorch refuses.
    pub fn forward(&mut self, planes: &[f32], batch: usize) -> Result<Outputs, ModelError> {
        match self {
            Runner::Torch(network) => Ok(network.forward(planes, batch)?),
            Runner::Cpu(network) => network.forward(planes, batch),
        }
    }

    /// The minibatch size at which `count` positions are run.
    pub fn padded(&self, count: usize) -> usize {
        match self {
            Runner::Torch(_) => {
                let index = SIZES.partition_point(|&size| size < count);
                SIZES.get(index).copied().unwrap_or(count)
            }
            Runner::Cpu(_) => count,
        }
    }

    /// Runs the padded sizes up to twice the preferred one, as far as time allows.
    ///
    /// # Errors
    /// When libtorch refuses.
    pub fn warm_up(&mut self, preferred: usize) -> Result<(), ModelError> {
        let start = Instant::now();
        let largest = SIZES.partition_point(|&size| size <= 2 * preferred);
        for &size in &SIZES[..largest] {
            self.forward(&vec![0.0; size * ROW], size)?;
            if start.elapsed() > WARM_UP || matches!(self, Runner::Cpu(_)) {
                break;
            }
        }
        Ok(())
    }

    /// The best of three runs after one that does not count.
    fn time(&mut self, batch: usize) -> Result<Duration, ModelError> {
        let planes = vec![0.0; batch * ROW];
        self.forward(&planes, batch)?;
        let mut best = Duration::MAX;
        for _ in 0..3 {
            let start = Instant::now();
            self.forward(&planes, batch)?;
            best = best.min(start.elapsed());
        }
        Ok(best)
    }
}

/// Whether bf16 is worth a try: elsewhere it is emulated, many times slower.
fn has_fast_bf16() -> bool {
    #[cfg(target_arch = "x86_64")]
    return std::arch::is_x86_feature_detected!("avx512bf16");
    #[cfg(not(target_arch = "x86_64"))]
    false
}
