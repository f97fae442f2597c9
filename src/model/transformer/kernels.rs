//! Attention and norms of one position over vector registers. Knows no weights' names and no network.

use super::NORM_EPS;
use crate::model::lanes::{Kernel, Lanes};
use crate::model::matmul::{BLOCK, Buffer, Operands, product};

/// A norm's parameters, `[d]` each.
pub(super) struct Norm {
    pub(super) weight: Buffer,
    /// None: root mean square.
    pub(super) bias: Option<Buffer>,
}

/// norm(α·x + f) of every token, in place of x or into `to`.
pub(super) struct Normalize<'a> {
    /// `[64, d]`
    pub(super) stream: &'a mut [f32],
    pub(super) branch: Option<&'a [f32]>,
    pub(super) alpha: f32,
    pub(super) norm: &'a Norm,
    pub(super) width: usize,
    pub(super) to: Option<&'a mut [f32]>,
}

impl<'a> Normalize<'a> {
    /// norm(x), in place.
    pub(super) fn alone(stream: &'a mut [f32], norm: &'a Norm, width: usize) -> Normalize<'a> {
        Normalize {
            stream,
            branch: None,
            alpha: 1.0,
            norm,
            width,
            to: None,
        }
    }
}

impl Kernel for Normalize<'_> {
    #[inline(always)]
    fn run<L: Lanes>(self, l: L) {
        let d = self.width;
        let stream = &mut self.stream[..64 * d];
        if let Some(branch) = self.branch {
            assert!(branch.len() >= 64 * d);
        }
        let to = match self.to {
            Some(to) => to[..64 * d].as_mut_ptr(),
            None => stream.as_mut_ptr(),
        };
        let weight = self.norm.weight.as_slice()[..d].as_ptr();
        let bias = self.norm.bias.as_ref().map(|b| b.as_slice()[..d].as_ptr());
        let alpha = l.splat(self.alpha);
        for token in 0..64 {
            // SAFETY: all slices were cut to, or checked for, 64·d or d floats; d is a multiple of WIDTH.
            unsafe {
                let x = stream.as_mut_ptr().add(token * d);
                let to = to.add(token * d);
                let (mut sum, mut square) = (l.splat(0.0), l.splat(0.0));
                for i in (0..d).step_by(L::WIDTH) {
                    let mut v = l.load(x.add(i));
                    if let Some(branch) = self.branch {
                        v = l.mul_add(alpha, v, l.load(branch.as_ptr().add(token * d + i)));
                        l.store(x.add(i), v);
                    }
                    sum = l.add(sum, v);
                }
                let mean = match bias {
                    Some(_) => total(l, sum) / d as f32,
                    None => 0.0,
                };
                let center = l.splat(mean);
                for i in (0..d).step_by(L::WIDTH) {
                    let v = l.sub(l.load(x.add(i)), center);
                    square = l.mul_add(v, v, square);
                }
                let variance = total(l, square) / d as f32;
                let scale = l.splat((variance + NORM_EPS as f32).sqrt().recip());
                for i in (0..d).step_by(L::WIDTH) {
                    let v = l.mul(l.sub(l.load(x.add(i)), center), scale);
                    let w = l.load(weight.add(i));
                    let y = match bias {
                        Some(bias) => l.mul_add(v, w, l.load(bias.add(i))),
                        None => l.mul(v, w),
                    };
                    l.store(to.add(i), y);
                }
            }
        }
    }
}

/// The sum of a vector's numbers.
#[inline(always)]
fn total<L: Lanes>(l: L, v: L::V) -> f32 {
    let mut numbers = [0.0_f32; BLOCK];
    // SAFETY: WIDTH is at most BLOCK.
    unsafe { l.store(numbers.as_mut_ptr(), v) };
    numbers.iter().sum()
}

/// The largest of a vector's numbers.
#[inline(always)]
fn largest<L: Lanes>(l: L, v: L::V) -> f32 {
    let mut numbers = [f32::NEG_INFINITY; BLOCK];
    // SAFETY: WIDTH is at most BLOCK.
    unsafe { l.store(numbers.as_mut_ptr(), v) };
    numbers.iter().copied().fold(f32::NEG_INFINITY, f32::max)
}

/// softmax(q·kᵀ + bias)·v of one position, head by head.
pub(super) struct Attention<'a> {
    pub(super) heads: usize,
    pub(super) depth: usize,
    /// `[64, 3, h, k]`
    pub(super) qkv: &'a [f32],
    /// `[h, 64, 64]`
    pub(super) bias: Option<&'a [f32]>,
    pub(super) keys: &'a mut [f32],
    pub(super) values: &'a mut [f32],
    pub(super) logits: &'a mut [f32],
    /// `[64, h, k]`
    pub(super) out: &'a mut [f32],
}

impl Kernel for Attention<'_> {
    #[inline(always)]
    fn run<L: Lanes>(self, l: L) {
        let (k, inner) = (self.depth, self.heads * self.depth);
        let qkv = &self.qkv[..64 * 3 * inner];
        let out = &mut self.out[..64 * inner];
        let keys = &mut self.keys[..64 * k];
        let values = &mut self.values[..64 * k];
        let logits = &mut self.logits[..64 * 64];
        for head in 0..self.heads {
            for (square, row) in qkv.chunks_exact(3 * inner).enumerate() {
                let key = &row[inner + head * k..inner + (head + 1) * k];
                let block = square / BLOCK * BLOCK * k + square % BLOCK;
                for (i, &x) in key.iter().enumerate() {
                    keys[block + i * BLOCK] = x;
                }
                let value = &row[2 * inner + head * k..2 * inner + (head + 1) * k];
                for (part, numbers) in value.chunks_exact(BLOCK).enumerate() {
                    let at = (part * 64 + square) * BLOCK;
                    values[at..at + BLOCK].copy_from_slice(numbers);
                }
            }
            let bias = self.bias.map(|bias| &bias[head * 4096..(head + 1) * 4096]);
            for block in 0..64 / BLOCK {
                let b = &keys[block * BLOCK * k..(block + 1) * BLOCK * k];
                // SAFETY: `qkv` has 64 rows of 3·inner floats and the head's queries lie in each; `b` is
                // [k, BLOCK]; the logits and the bias are [64, 64].
                unsafe {
                    product::<L, false>(
                        l,
                        Operands {
                            a: qkv.as_ptr().add(head * k),
                            a_stride: 3 * inner,
                            a_group: BLOCK,
                            depth: k,
                            b: b.as_ptr(),
                            next_b: b.as_ptr(),
                            c: logits.as_mut_ptr().add(block * BLOCK),
                            c_stride: 64,
                            initial: bias.map(|bias| (bias.as_ptr().add(block * BLOCK), 64)),
                        },
                        64,
                    );
                }
            }
            let mut sums = [0.0_f32; 64];
            for (row, sum) in logits.chunks_exact_mut(64).zip(&mut sums) {
                // SAFETY: a row is 64 floats, a multiple of WIDTH.
                unsafe {
                    let mut high = l.load(row.as_ptr());
                    for i in (L::WIDTH..64).step_by(L::WIDTH) {
                        high = l.max(high, l.load(row.as_ptr().add(i)));
                    }
                    let high = l.splat(largest(l, high));
                    let mut all = l.splat(0.0);
                    for i in (0..64).step_by(L::WIDTH) {
                        let e = l.exp(l.sub(l.load(row.as_ptr().add(i)), high));
                        all = l.add(all, e);
                        l.store(row.as_mut_ptr().add(i), e);
                    }
                    *sum = total(l, all);
                }
            }
            for part in 0..k / BLOCK {
                let b = &values[part * 64 * BLOCK..(part + 1) * 64 * BLOCK];
                let at = head * k + part * BLOCK;
                // SAFETY: the logits are [64, 64], `b` [64, BLOCK], and the head's columns lie in each of the
                // 64 rows of `out`.
                unsafe {
                    product::<L, false>(
                        l,
                        Operands {
                            a: logits.as_ptr(),
                            a_stride: 64,
                            a_group: BLOCK,
                            depth: 64,
                            b: b.as_ptr(),
                            next_b: b.as_ptr(),
                            c: out.as_mut_ptr().add(at),
                            c_stride: inner,
                            initial: None,
                        },
                        64,
                    );
                }
                for (row, sum) in out.chunks_exact_mut(inner).zip(&sums) {
                    for x in &mut row[at..at + BLOCK] {
                        *x /= sum;
                    }
                }
            }
        }
    }
}
