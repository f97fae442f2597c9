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
            Activation::Relu => l.max(x, l.splat(0.0)),
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
    /// Rows of W.
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
        let outputs = padded(outputs);
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
                    product(
                        l,
                        Operands {
                            a: self.input.as_ptr().add(start),
                            a_stride: inputs,
                            depth,
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
    /// [rows, depth], `a_stride` floats from row to row.
    pub(crate) a: *const f32,
    pub(crate) a_stride: usize,
    pub(crate) depth: usize,
    /// [depth, BLOCK], dense.
    pub(crate) b: *const f32,
    /// [rows, BLOCK], `c_stride` floats from row to row.
    pub(crate) c: *mut f32,
    pub(crate) c_stride: usize,
    /// [rows, BLOCK] and its stride (0: the same row each time); zeros if absent. May be `c`.
    pub(crate) initial: Option<(*const f32, usize)>,
}

/// Multiplies all `rows`, a register tile at a time. A row's result does not depend on the others: every
/// tile adds the products one by one in the same order.
///
/// # Safety
/// The operands' shapes, with `rows` rows, lie in allocated memory, and `c` overlaps neither `a` nor `b`.
#[inline(always)]
pub(crate) unsafe fn product<L: Lanes>(l: L, operands: Operands, rows: usize) {
    let mut row = 0;
    while row < rows {
        let left = rows - row;
        // SAFETY: the tile covers rows row..row + count of the caller's.
        let count = unsafe {
            let at = operands.skip(row);
            if L::WIDTH == BLOCK {
                match left {
                    12.. if left != 16 => tile::<L, 12, 1>(l, at),
                    8.. => tile::<L, 8, 1>(l, at),
                    4.. => tile::<L, 4, 1>(l, at),
                    3 => tile::<L, 3, 1>(l, at),
                    2 => tile::<L, 2, 1>(l, at),
                    _ => tile::<L, 1, 1>(l, at),
                }
            } else {
                match left {
                    9.. | 6 => tile::<L, 6, 2>(l, at),
                    5 => tile::<L, 5, 2>(l, at),
                    4.. => tile::<L, 4, 2>(l, at),
                    3 => tile::<L, 3, 2>(l, at),
                    2 => tile::<L, 2, 2>(l, at),
                    _ => tile::<L, 1, 2>(l, at),
                }
            }
        };
        row += count;
    }
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

/// One tile of R rows and N vectors (R·N accumulators in registers); returns R.
///
/// # Safety
/// As [`product`] with R rows; N·WIDTH is BLOCK.
#[inline(always)]
unsafe fn tile<L: Lanes, const R: usize, const N: usize>(l: L, x: Operands) -> usize {
    let mut acc = [[l.splat(0.0); N]; R];
    // SAFETY: all addresses lie within the shapes that the caller vouches for.
    unsafe {
        if let Some((initial, stride)) = x.initial {
            for (r, row) in acc.iter_mut().enumerate() {
                for (n, v) in row.iter_mut().enumerate() {
                    *v = l.load(initial.add(r * stride + n * L::WIDTH));
                }
            }
        }
        let (mut a, mut b) = (x.a, x.b);
        for _ in 0..x.depth {
            let mut weights = [l.splat(0.0); N];
            for (n, w) in weights.iter_mut().enumerate() {
                *w = l.load(b.add(n * L::WIDTH));
            }
            for (r, row) in acc.iter_mut().enumerate() {
                let value = l.splat(*a.add(r * x.a_stride));
                for (v, w) in row.iter_mut().zip(weights) {
                    *v = l.mul_add(value, w, *v);
                }
            }
            a = a.add(1);
            b = b.add(BLOCK);
        }
        for (r, row) in acc.iter().enumerate() {
            for (n, v) in row.iter().enumerate() {
                l.store(x.c.add(r * x.c_stride + n * L::WIDTH), *v);
            }
        }
    }
    R
}
