//! How a network is to be run: device, precision, heads, history. Turns option texts into choices; runs
//! nothing.

use std::thread::available_parallelism;

use tch::{Cuda, Device};

use crate::encode::HistoryFill;
use crate::options::Options;

use super::error::ModelError;
use super::heads::{PolicyHead, ValueHead};

/// Arithmetic of a network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Precision {
    /// The fastest the device offers.
    #[default]
    Auto,
    /// 32-bit floats.
    Fp32,
    /// Brain floats.
    Bf16,
    /// Half floats; on a CPU only the weights, computed in fp32.
    Fp16,
}

impl Precision {
    /// The precision with that name in the options.
    pub fn from_name(name: &str) -> Option<Precision> {
        Some(match name {
            "auto" => Precision::Auto,
            "fp32" => Precision::Fp32,
            "bf16" => Precision::Bf16,
            "fp16" => Precision::Fp16,
            _ => return None,
        })
    }

    /// Its name in the options.
    pub fn name(self) -> &'static str {
        match self {
            Precision::Auto => "auto",
            Precision::Fp32 => "fp32",
            Precision::Bf16 => "bf16",
            Precision::Fp16 => "fp16",
        }
    }
}

/// Everything that decides how a network runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelOptions {
    /// `auto`, `cpu`, `cuda`, `cuda:N` or `mps`.
    pub device: String,
    /// Arithmetic.
    pub precision: Precision,
    /// Which policy head.
    pub policy_head: PolicyHead,
    /// Which value head.
    pub value_head: ValueHead,
    /// What stands before the first known position.
    pub history_fill: HistoryFill,
    /// Cores to use, at least 1.
    pub threads: usize,
    /// Leaves per call, 0 = what suits the device.
    pub minibatch_size: usize,
}

impl ModelOptions {
    /// The choices in the options.
    ///
    /// # Errors
    /// Names a setting that is not known.
    pub fn new(options: &Options) -> Result<ModelOptions, ModelError> {
        let unknown = |setting, found: &str, expected| ModelError::UnknownSetting {
            setting,
            found: found.to_owned(),
            expected,
        };
        let fill = match options.history_fill.as_str() {
            "no" => Some(HistoryFill::No),
            "fen_only" => Some(HistoryFill::FenOnly),
            "always" => Some(HistoryFill::Always),
            _ => None,
        };
        let cores = match usize::try_from(options.threads) {
            Ok(threads @ 1..) => threads,
            _ => available_parallelism().map_or(1, usize::from),
        };
        Ok(ModelOptions {
            device: options.device.trim().to_ascii_lowercase(),
            precision: Precision::from_name(&options.precision).ok_or_else(|| {
                unknown("precision", &options.precision, "auto, fp32, bf16 or fp16")
            })?,
            policy_head: PolicyHead::from_name(&options.policy_head).ok_or_else(|| {
                unknown(
                    "policy head",
                    &options.policy_head,
                    "vanilla, optimistic, soft or opponent",
                )
            })?,
            value_head: ValueHead::from_name(&options.value_head)
                .ok_or_else(|| unknown("value head", &options.value_head, "winner, q or st"))?,
            history_fill: fill.ok_or_else(|| {
                unknown(
                    "history fill",
                    &options.history_fill,
                    "no, fen_only or always",
                )
            })?,
            threads: cores,
            minibatch_size: usize::try_from(options.minibatch_size).unwrap_or(0),
        })
    }
}

/// The device with that name, if it is there.
pub fn device(name: &str) -> Result<Device, ModelError> {
    let missing = |reason: String| ModelError::NoDevice {
        device: name.to_owned(),
        reason,
    };
    let cuda = |index: usize| {
        let count = usize::try_from(Cuda::device_count()).unwrap_or(0);
        if !Cuda::is_available() || count == 0 {
            return Err(missing("this libtorch sees no CUDA device".to_owned()));
        }
        if index >= count {
            return Err(missing(format!(
                "there are {count} CUDA devices, numbered from 0"
            )));
        }
        Ok(Device::Cuda(index))
    };
    match name {
        "auto" | "" if Cuda::is_available() && Cuda::device_count() > 0 => Ok(Device::Cuda(0)),
        "auto" | "" if tch::utils::has_mps() => Ok(Device::Mps),
        "auto" | "" | "cpu" => Ok(Device::Cpu),
        "cuda" => cuda(0),
        "mps" if tch::utils::has_mps() => Ok(Device::Mps),
        "mps" => Err(missing("this libtorch has no Metal".to_owned())),
        _ => match name.strip_prefix("cuda:").map(str::parse) {
            Some(Ok(index)) => cuda(index),
            _ => Err(ModelError::UnknownSetting {
                setting: "device",
                found: name.to_owned(),
                expected: "auto, cpu, cuda, cuda:N or mps",
            }),
        },
    }
}

/// Its name in the options.
pub fn device_name(device: Device) -> String {
    match device {
        Device::Cpu => "cpu".to_owned(),
        Device::Cuda(index) => format!("cuda:{index}"),
        Device::Mps => "mps".to_owned(),
        Device::Vulkan => "vulkan".to_owned(),
    }
}
