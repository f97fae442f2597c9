//! Dense fp32 matrix products on one CPU core: packed weights, register tiles, and the activations that
//! follow them. Knows nothing of boards or networks.

use super::lanes::{Isa, Kernel, Lanes};

/// Output channels of one packed block of weights; every channel count is padded to a multiple of it.
pub(crate) const BLOCK: usize = 16;

/// Inner dimension of one pass: BLOCK·DEPTH weights and a few rows of DEPTH inputs stay in the first
/// level cache.
const DEPTH: usize = 256;

/// `n` rounded up to a multiple of [`BLOCK`].
pub(crate) fn padded(n: usize) -> usize {
    n.div_ceil(BLOCK) * BLOCK
}

/// What follows a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Activation {
    /// x.
    #[default]
    None,
    /// max(x, 0).
    Relu,
    /// x·tanh(ln(1 + eˣ)).
    Mish,
}

impl Activation {
    #[inline(always)]
    pub(crate) fn apply<L: Lanes>(self, l: L, x: L::V) -> L::V {
        match self {
            Activation::None => x,
            Activation::Relu => l.max(l.splat(0.0), x),
            Activation::Mish => {
                // tanh(ln(1 + e)) = n/(n + 2) with n = e² + 2e; beyond 20 the quotient is 1 in fp32.
                let e = l.exp(l.min(x, l.splat(20.0)));
                let n = l.mul(e, l.add(e, l.splat(2.0)));
                l.div(l.mul(x, n), l.add(n, l.splat(2.0)))
            }
        }
    }
}

/// Floats on cache line boundaries.
#[derive(Clone, Default)]
pub(crate) struct Buffer {
    lines: Vec<Line>,
}

#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line([f32; 16]);

impl Buffer {
    pub(crate) fn zeroed(floats: usize) -> Buffer {
        Buffer {
            lines: vec![Line([0.0; 16]); floats.div_ceil(16)],
        }
    }

    /// Makes room for at least `floats`, new ones zero.
    pub(crate) fn reserve(&mut self, floats: usize) {
        if self.lines.len() * 16 < floats {
            self.lines.resize(floats.div_ceil(16), Line([0.0; 16]));
        }
    }

    pub(crate) fn as_slice(&self) -> &[f32] {
        // SAFETY: a `Line` is exactly 16 floats without padding, and the lines are contiguous.
        unsafe { std::slice::from_raw_parts(self.lines.as_ptr().cast(), self.lines.len() * 16) }
    }

    pub(crate) fn as_mut_slice(&mut self) -> &mut [f32] {
        // SAFETY: as in `as_slice`, and `self` is borrowed mutably.
        unsafe {
            std::slice::from_raw_parts_mut(self.lines.as_mut_ptr().cast(), self.lines.len() * 16)
        }
    }
}

/// y = act(x·W + b) with W packed as [outputs / 16, inputs, 16].
pub(crate) struct Matmul {
    /// Rows of W, padded.
    pub(crate) inputs: usize,
    /// Columns of W, padded.
    pub(crate) outputs: usize,
    weights: Buffer,
    bias: Buffer,
}

impl Matmul {
    /// `weight(output, input)` and `bias(output)` give the padded matrix element by element.
    pub(crate) fn new(
        inputs: usize,
        outputs: usize,
        weight: impl Fn(usize, usize) -> f32,
        bias: impl Fn(usize) -> f32,
    ) -> Matmul {
        let (inputs, outputs) = (padded(inputs), padded(outputs));
        let mut weights = Buffer::zeroed(inputs * outputs);
        let panels = weights.as_mut_slice().chunks_exact_mut(inputs * BLOCK);
        for (block, panel) in panels.enumerate() {
            for (input, row) in panel.chunks_exact_mut(BLOCK).enumerate() {
                for (i, w) in row.iter_mut().enumerate() {
                    *w = weight(block * BLOCK + i, input);
                }
            }
        }
        let mut biases = Buffer::zeroed(outputs);
        for (i, b) in biases.as_mut_slice().iter_mut().enumerate() {
            *b = bias(i);
        }
        Matmul {
            inputs,
            outputs,
            weights,
            bias: biases,
        }
    }

    /// `input` is [rows, inputs], `out` [rows, outputs].
    pub(crate) fn forward(
        &self,
        isa: Isa,
        input: &[f32],
        rows: usize,
        out: &mut [f32],
        activation: Activation,
    ) {
        let input = &input[..rows * self.inputs];
        let out = &mut out[..rows * self.outputs];
        isa.run(Forward {
            layer: self,
            input,
            rows,
            out,
            activation,
        });
    }
}

struct Forward<'a> {
    layer: &'a Matmul,
    input: &'a [f32],
    rows: usize,
    out: &'a mut [f32],
    activation: Activation,
}

impl Kernel for Forward<'_> {
    #[inline(always)]
    fn run<L: Lanes>(self, l: L) {
        let Matmul {
            inputs, outputs, ..
        } = *self.layer;
        let weights = self.layer.weights.as_slice().as_ptr();
        let bias = self.layer.bias.as_slice().as_ptr();
        let out = self.out.as_mut_ptr();
        for start in (0..inputs).step_by(DEPTH) {
            let depth = DEPTH.min(inputs - start);
            for block in 0..outputs / BLOCK {
                // SAFETY: `forward` cut `input` to rows·inputs and `out` to rows·outputs; the packed
                // weights hold inputs·BLOCK floats a block and the bias BLOCK; start + depth ≤ inputs.
                unsafe {
                    let c = out.add(block * BLOCK);
                    let initial = if start == 0 {
                        (bias.add(block * BLOCK), 0)
                    } else {
                        (c.cast_const(), outputs)
                    };
                    product::<L, false>(
                        l,
                        Operands {
                            a: self.input.as_ptr().add(start),
                            a_stride: inputs,
                            a_group: BLOCK,
                            depth,
                            next_b: weights.wrapping_add(((block + 1) * inputs + start) * BLOCK),
                            b: weights.add((block * inputs + start) * BLOCK),
                            c,
                            c_stride: outputs,
                            initial: Some(initial),
                        },
                        self.rows,
                    );
                }
            }
        }
        if self.activation != Activation::None {
            for chunk in self.out.chunks_exact_mut(L::WIDTH) {
                // SAFETY: the chunk is WIDTH floats.
                unsafe {
                    let x = l.load(chunk.as_ptr());
                    l.store(chunk.as_mut_ptr(), self.activation.apply(l, x));
                }
            }
        }
    }
}

/// c = initial + a·b for one block of columns.
#[derive(Clone, Copy)]
pub(crate) struct Operands {
    /// [rows, depth] if `a_stride` is not [`BLOCK`], else [depth / BLOCK, rows, BLOCK].
    pub(crate) a: *const f32,
    /// Floats from row to row.
    pub(crate) a_stride: usize,
    /// Floats from one group of BLOCK inputs to the next.
    pub(crate) a_group: usize,
    /// A multiple of BLOCK.
    pub(crate) depth: usize,
    /// [depth, BLOCK], dense.
    pub(crate) b: *const f32,
    /// Where the weights of the next product lie, or anywhere.
    pub(crate) next_b: *const f32,
    /// [rows, BLOCK], `c_stride` floats from row to row.
    pub(crate) c: *mut f32,
    pub(crate) c_stride: usize,
    /// [rows, BLOCK] and its stride (0: the same row each time); zeros if absent. May be `c`.
    pub(crate) initial: Option<(*const f32, usize)>,
}

/// Multiplies all `rows`, a register tile at a time. A row's result does not depend on the others: every
/// tile adds the products one by one in the same order. PACKED promises a row stride of BLOCK.
///
/// # Safety
/// The operands' shapes, with `rows` rows, lie in allocated memory, and `c` overlaps neither `a` nor `b`.
#[inline(always)]
pub(crate) unsafe fn product<L: Lanes, const PACKED: bool>(l: L, operands: Operands, rows: usize) {
    let mut rest = operands;
    let mut left = rows;
    while left > 0 {
        // SAFETY: `rest` has `left` rows, and each tile is no taller.
        let count = unsafe {
            if L::WIDTH == BLOCK {
                match left {
                    12.. if left != 16 => tile::<L, 12, 1, PACKED>(l, rest, rows),
                    8.. => tile::<L, 8, 1, PACKED>(l, rest, rows),
                    4.. => tile::<L, 4, 1, PACKED>(l, rest, rows),
                    3 => tile::<L, 3, 1, PACKED>(l, rest, rows),
                    2 => tile::<L, 2, 1, PACKED>(l, rest, rows),
                    _ => tile::<L, 1, 1, PACKED>(l, rest, rows),
                }
            } else {
                match left {
                    9.. | 6 => tile::<L, 6, 2, PACKED>(l, rest, rows),
                    5 => tile::<L, 5, 2, PACKED>(l, rest, rows),
                    4.. => tile::<L, 4, 2, PACKED>(l, rest, rows),
                    3 => tile::<L, 3, 2, PACKED>(l, rest, rows),
                    2 => tile::<L, 2, 2, PACKED>(l, rest, rows),
                    _ => tile::<L, 1, 2, PACKED>(l, rest, rows),
                }
            }
        };
        left -= count;
        // SAFETY: as many rows as the tile had.
        rest = unsafe { rest.skip(count) };
        rest.next_b = rest
            .next_b
            .wrapping_add(rest.depth / BLOCK * lines(count, rows) * BLOCK);
    }
}

/// Cache lines of the next weights that a tile of `height` rows fetches for each BLOCK of its inputs, so that
/// all tiles together fetch all of them.
#[inline(always)]
fn lines(height: usize, rows: usize) -> usize {
    (BLOCK * height).div_ceil(rows)
}

impl Operands {
    /// # Safety
    /// There are at least `rows` rows.
    #[inline(always)]
    unsafe fn skip(self, rows: usize) -> Operands {
        // SAFETY: the caller vouches for the rows.
        unsafe {
            let mut rest = self;
            rest.a = rest.a.add(rows * rest.a_stride);
            rest.c = rest.c.add(rows * rest.c_stride);
            if let Some((p, stride)) = &mut rest.initial {
                *p = p.add(rows * *stride);
            }
            rest
        }
    }
}

/// One tile of R rows and N vectors (R·N accumulators in registers) of `rows` in all; returns R.
///
/// # Safety
/// As [`product`] with R rows; N·WIDTH is BLOCK.
#[inline(always)]
unsafe fn tile<L: Lanes, const R: usize, const N: usize, const PACKED: bool>(
    l: L,
    x: Operands,
    rows: usize,
) -> usize {
    let a_stride = if PACKED { BLOCK } else { x.a_stride };
    let fetched = lines(R, rows);
    let mut acc = [[l.splat(0.0); N]; R];
    // SAFETY: all addresses lie within the shapes that the caller vouches for; fetching ahead is a hint
    // that may name any address.
    unsafe {
        if let Some((initial, stride)) = x.initial {
            for (r, row) in acc.iter_mut().enumerate() {
                for (n, v) in row.iter_mut().enumerate() {
                    *v = l.load(initial.add(r * stride + n * L::WIDTH));
                }
            }
        }
        let (mut a, mut b, mut next) = (x.a, x.b, x.next_b);
        for _ in 0..x.depth / BLOCK {
            for _ in 0..fetched {
                l.fetch(next);
                next = next.wrapping_add(BLOCK);
            }
            for k in 0..BLOCK {
                let mut weights = [l.splat(0.0); N];
                for (n, w) in weights.iter_mut().enumerate() {
                    *w = l.load(b.add(k * BLOCK + n * L::WIDTH));
                }
                for (r, row) in acc.iter_mut().enumerate() {
                    let value = l.splat(*a.add(r * a_stride + k));
                    for (v, w) in row.iter_mut().zip(weights) {
                        *v = l.mul_add(value, w, *v);
                    }
                }
            }
            a = a.add(x.a_group);
            b = b.add(BLOCK * BLOCK);
        }
        for (r, row) in acc.iter().enumerate() {
            for (n, v) in row.iter().enumerate() {
                l.store(x.c.add(r * x.c_stride + n * L::WIDTH), *v);
            }
        }
    }
    R
}
