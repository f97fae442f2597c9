//! The 3×3 convolution of the input planes on one CPU core. Planes are mostly empty, so their set squares
//! are gathered and only those multiplied; constant planes are one table look-up a border class. Knows
//! nothing of what the planes mean.

use super::lanes::{Isa, Kernel, Lanes};
use super::matmul::{Activation, Buffer, padded};

/// Output channels accumulated in registers at a time.
const WIDE: usize = 64;
const NARROW: usize = 16;
/// (first, inner, last) rank × (first, inner, last) file.
const CLASSES: usize = 9;

/// A 3×3 convolution with padding 1 from [boards, planes, 64] to [boards, 64, channels], channels padded
/// to 16. Exact for any planes, fast for sparse ones.
pub struct PlaneConv {
    planes: usize,
    /// Padded output channels.
    outputs: usize,
    /// [9 taps, planes, outputs].
    weights: Buffer,
    /// [planes, CLASSES, outputs]: the sum of the taps that lie on the board.
    constants: Buffer,
    bias: Buffer,
}

/// The set squares of one board's planes.
#[derive(Default)]
pub struct PlaneScratch {
    /// Entries per square.
    counts: Vec<usize>,
    /// [64, planes].
    entries: Vec<Entry>,
    /// [CLASSES, outputs]: bias and constant planes.
    base: Buffer,
}

#[derive(Clone, Copy, Default)]
struct Entry {
    /// Of the plane's weights within a tap's.
    offset: usize,
    value: f32,
}

impl PlaneConv {
    /// `weights` [outputs, planes, 3 ranks, 3 files] and `bias` [outputs]; `None` if the lengths disagree.
    pub fn new(planes: usize, outputs: usize, weights: &[f32], bias: &[f32]) -> Option<Self> {
        let expected = outputs.checked_mul(planes)?.checked_mul(9)?;
        if weights.len() != expected || bias.len() != outputs || expected == 0 {
            return None;
        }
        let wide = padded(outputs);
        let mut by_tap = Buffer::zeroed(9 * planes * wide);
        let mut constants = Buffer::zeroed(planes * CLASSES * wide);
        for (index, kernel) in weights.chunks_exact(9).enumerate() {
            let (output, plane) = (index / planes, index % planes);
            for (tap, w) in kernel.iter().enumerate() {
                by_tap.as_mut_slice()[(tap * planes + plane) * wide + output] = *w;
            }
            for class in 0..CLASSES {
                let inside =
                    |part: usize, step: usize| (part, step) != (0, 0) && (part, step) != (2, 2);
                let taps = (0..9).filter(|t| inside(class / 3, t / 3) && inside(class % 3, t % 3));
                let sum: f64 = taps.map(|t| f64::from(kernel[t])).sum();
                constants.as_mut_slice()[(plane * CLASSES + class) * wide + output] = sum as f32;
            }
        }
        let mut biases = Buffer::zeroed(wide);
        biases.as_mut_slice()[..outputs].copy_from_slice(bias);
        Some(PlaneConv {
            planes,
            outputs: wide,
            weights: by_tap,
            constants,
            bias: biases,
        })
    }

    /// Padded output channels.
    pub(crate) fn outputs(&self) -> usize {
        self.outputs
    }

    /// `planes` [boards, planes, 64] to `out` [boards, 64, outputs].
    pub(crate) fn forward(
        &self,
        isa: Isa,
        planes: &[f32],
        boards: usize,
        scratch: &mut PlaneScratch,
        out: &mut [f32],
        activation: Activation,
    ) {
        scratch.counts.resize(64, 0);
        scratch.entries.resize(64 * self.planes, Entry::default());
        scratch.base.reserve(CLASSES * self.outputs);
        isa.run(Forward {
            layer: self,
            planes: &planes[..boards * self.planes * 64],
            scratch,
            out: &mut out[..boards * 64 * self.outputs],
            activation,
        });
    }
}

struct Forward<'a> {
    layer: &'a PlaneConv,
    planes: &'a [f32],
    scratch: &'a mut PlaneScratch,
    out: &'a mut [f32],
    activation: Activation,
}

impl Kernel for Forward<'_> {
    #[inline(always)]
    fn run<L: Lanes>(mut self, l: L) {
        let outputs = self.layer.outputs;
        let boards = self.planes.chunks_exact(self.layer.planes * 64);
        for (board, planes) in boards.enumerate() {
            self.gather(l, planes);
            let mut channel = 0;
            while channel + WIDE <= outputs {
                if L::WIDTH == 16 {
                    self.accumulate::<L, 4>(l, board, channel);
                } else {
                    self.accumulate::<L, 8>(l, board, channel);
                }
                channel += WIDE;
            }
            while channel < outputs {
                if L::WIDTH == 16 {
                    self.accumulate::<L, 1>(l, board, channel);
                } else {
                    self.accumulate::<L, 2>(l, board, channel);
                }
                channel += NARROW;
            }
        }
    }
}

impl Forward<'_> {
    /// Fills the scratch from one board's planes.
    #[inline(always)]
    fn gather<L: Lanes>(&mut self, l: L, planes: &[f32]) {
        let PlaneConv {
            planes: count,
            outputs,
            ..
        } = *self.layer;
        self.scratch.counts.fill(0);
        let base = &mut self.scratch.base.as_mut_slice()[..CLASSES * outputs];
        for class in base.chunks_exact_mut(outputs) {
            class.copy_from_slice(&self.layer.bias.as_slice()[..outputs]);
        }
        for (index, plane) in planes.chunks_exact(64).enumerate() {
            let mut set = 0;
            for (i, chunk) in plane.chunks_exact(L::WIDTH).enumerate() {
                // SAFETY: the chunk is WIDTH floats.
                set |= unsafe { l.nonzero(l.load(chunk.as_ptr())) } << (i * L::WIDTH);
            }
            let value = plane[0];
            if set == u64::MAX && plane.iter().all(|x| *x == value) {
                let weights = &self.layer.constants.as_slice()[index * CLASSES * outputs..];
                for (b, w) in base.iter_mut().zip(weights) {
                    *b += value * w;
                }
                continue;
            }
            while set != 0 {
                let square = set.trailing_zeros() as usize;
                set &= set - 1;
                let slot = &mut self.scratch.counts[square];
                self.scratch.entries[square * count + *slot] = Entry {
                    offset: index * outputs,
                    value: plane[square],
                };
                *slot += 1;
            }
        }
    }

    /// N vectors of output channels from `channel` on, all squares of one board.
    #[inline(always)]
    fn accumulate<L: Lanes, const N: usize>(&mut self, l: L, board: usize, channel: usize) {
        let PlaneConv {
            planes, outputs, ..
        } = *self.layer;
        let base = &self.scratch.base.as_slice()[..CLASSES * outputs];
        let weights = &self.layer.weights.as_slice()[..9 * planes * outputs];
        let out = &mut self.out[board * 64 * outputs..][..64 * outputs];
        let part = |coordinate: usize| match coordinate {
            0 => 0,
            7 => 2,
            _ => 1,
        };
        for square in 0..64 {
            let (rank, file) = (square / 8, square % 8);
            let class = part(rank) * 3 + part(file);
            let mut acc = [l.splat(0.0); N];
            for (n, v) in acc.iter_mut().enumerate() {
                let start = class * outputs + channel + n * L::WIDTH;
                // SAFETY: class < CLASSES and channel + N·WIDTH ≤ outputs.
                *v = unsafe { l.load(base.as_ptr().add(start)) };
            }
            for y in rank.saturating_sub(1)..=(rank + 1).min(7) {
                for x in file.saturating_sub(1)..=(file + 1).min(7) {
                    let tap = (y + 1 - rank) * 3 + (x + 1 - file);
                    let near = y * 8 + x;
                    let entries = &self.scratch.entries[near * planes..];
                    for entry in &entries[..self.scratch.counts[near]] {
                        let value = l.splat(entry.value);
                        let start = tap * planes * outputs + entry.offset + channel;
                        for (n, v) in acc.iter_mut().enumerate() {
                            // SAFETY: tap < 9, offset is a plane's times outputs and channel + N·WIDTH
                            // ≤ outputs.
                            let w = unsafe { l.load(weights.as_ptr().add(start + n * L::WIDTH)) };
                            *v = l.mul_add(value, w, *v);
                        }
                    }
                }
            }
            for (n, v) in acc.iter().enumerate() {
                let start = square * outputs + channel + n * L::WIDTH;
                let v = self.activation.apply(l, *v);
                // SAFETY: square < 64 and channel + N·WIDTH ≤ outputs.
                unsafe { l.store(out.as_mut_ptr().add(start), v) };
            }
        }
    }
}
