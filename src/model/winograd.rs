//! 3×3 convolutions of the 8×8 board by Winograd's F(4×4, 3×3) on one CPU core: four tiles a board, 36
//! pointwise matrix products, and everything that follows a convolution in a residual tower fused into the
//! output transform. Knows nothing of networks.
//!
//! The minimal filter (Lavin and Gray, arXiv:1509.09308) interpolates at 0, ±A, ±B and ∞ in each
//! direction. With the product polynomials of the points, for inputs d₀…d₅:
//!
//! ```text
//! v0 = A²B²·d0 − (A² + B²)·d2 + d4           y0 = m0 + m1 + m2 + m3 + m4
//! v1, v2 = (d4 − B²·d2) ± A·(d3 − B²·d1)     y1 = A·(m1 − m2) + B·(m3 − m4)
//! v3, v4 = (d4 − A²·d2) ± B·(d3 − A²·d1)     y2 = A²·(m1 + m2) + B²·(m3 + m4)
//! v5 = A²B²·d1 − (A² + B²)·d3 + d5           y3 = A³·(m1 − m2) + B³·(m3 − m4) + m5
//! ```
//!
//! The filter side is (1, p, p²) over the product of the differences of p to the other points, computed
//! once in f64.

use super::lanes::{Isa, Kernel, Lanes};
use super::matmul::{Activation, BLOCK, Buffer, Operands, padded, product};

const A: f32 = 0.625;
const B: f32 = 1.5;
const A2: f32 = A * A;
const B2: f32 = B * B;

/// Points of the two-dimensional transform.
const POINTS: usize = 36;
/// 4×4 output tiles of a board.
const TILES: usize = 4;
/// Keeps the planes of the transformed data out of each other's cache sets.
const SKEW: usize = 16;

/// A 3×3 convolution with padding 1 of [boards, 64, channels] activations, channels padded to 16.
pub struct WinogradConv {
    /// Padded input channels.
    inputs: usize,
    /// Padded output channels.
    outputs: usize,
    /// [outputs / 16, POINTS, inputs, 16].
    weights: Buffer,
    bias: Buffer,
}

/// What the output transform does with y = convolution + bias.
pub(crate) enum Epilogue<'a> {
    /// out = act(y).
    Write(Activation),
    /// out = act(out + y): `out` holds the skip connection.
    Residual(Activation),
    /// out = y and sums [boards, outputs] = y summed over the squares.
    Sum(&'a mut [f32]),
}

/// Memory of the transformed inputs and products, reusable between convolutions.
#[derive(Default)]
pub struct WinogradScratch {
    transformed: Buffer,
    products: Buffer,
}

impl WinogradConv {
    /// `weights` [outputs, inputs, 3 ranks, 3 files] and `bias` [outputs]; `None` if the lengths disagree.
    pub fn new(inputs: usize, outputs: usize, weights: &[f32], bias: &[f32]) -> Option<Self> {
        let expected = outputs.checked_mul(inputs)?.checked_mul(9)?;
        if weights.len() != expected || bias.len() != outputs || expected == 0 {
            return None;
        }
        let (wide_in, wide_out) = (padded(inputs), padded(outputs));
        let filter = filter_transform();
        let mut packed = Buffer::zeroed(wide_out * wide_in * POINTS);
        let all = packed.as_mut_slice();
        for (index, kernel) in weights.chunks_exact(9).enumerate() {
            let (output, input) = (index / inputs, index % inputs);
            let at = (output / BLOCK * POINTS * wide_in + input) * BLOCK + output % BLOCK;
            for point in 0..POINTS {
                let (row, column) = (filter[point / 6], filter[point % 6]);
                let mut sum = 0.0;
                for (y, r) in row.iter().enumerate() {
                    for (x, c) in column.iter().enumerate() {
                        sum += r * c * f64::from(kernel[y * 3 + x]);
                    }
                }
                all[at + point * wide_in * BLOCK] = sum as f32;
            }
        }
        let mut biases = Buffer::zeroed(wide_out);
        biases.as_mut_slice()[..outputs].copy_from_slice(bias);
        Some(WinogradConv {
            inputs: wide_in,
            outputs: wide_out,
            weights: packed,
            bias: biases,
        })
    }

    /// Padded output channels.
    pub(crate) fn outputs(&self) -> usize {
        self.outputs
    }

    /// `input` [boards, 64, inputs] to `out` [boards, 64, outputs], both with padded channels. They may
    /// be the same memory only through [`Self::forward_in_place`].
    pub(crate) fn forward(
        &self,
        isa: Isa,
        input: &[f32],
        boards: usize,
        scratch: &mut WinogradScratch,
        out: &mut [f32],
        epilogue: Epilogue<'_>,
    ) {
        self.transform_input(isa, input, boards, scratch);
        self.multiply(isa, boards, scratch, out, epilogue);
    }

    /// As [`Self::forward`] with the input overwritten; the channel counts are equal.
    pub(crate) fn forward_in_place(
        &self,
        isa: Isa,
        data: &mut [f32],
        boards: usize,
        scratch: &mut WinogradScratch,
        epilogue: Epilogue<'_>,
    ) {
        self.transform_input(isa, data, boards, scratch);
        self.multiply(isa, boards, scratch, data, epilogue);
    }

    /// Fills `scratch.transformed` [POINTS, inputs / BLOCK, boards · TILES, BLOCK].
    pub(crate) fn transform_input(
        &self,
        isa: Isa,
        input: &[f32],
        boards: usize,
        scratch: &mut WinogradScratch,
    ) {
        let stride = boards * TILES * self.inputs + SKEW;
        scratch.transformed.reserve(stride * POINTS);
        isa.run(InputTransform {
            input: &input[..boards * 64 * self.inputs],
            channels: self.inputs,
            boards,
            stride,
            out: &mut scratch.transformed.as_mut_slice()[..stride * POINTS],
        });
    }

    /// The products and the output transform, from `scratch.transformed` of this layer's input.
    pub(crate) fn multiply(
        &self,
        isa: Isa,
        boards: usize,
        scratch: &mut WinogradScratch,
        out: &mut [f32],
        epilogue: Epilogue<'_>,
    ) {
        let stride = boards * TILES * BLOCK + SKEW;
        scratch.products.reserve(stride * POINTS);
        let input_stride = boards * TILES * self.inputs + SKEW;
        let (residual, activation, sums) = match epilogue {
            Epilogue::Write(activation) => (false, activation, None),
            Epilogue::Residual(activation) => (true, activation, None),
            Epilogue::Sum(sums) => {
                let sums = &mut sums[..boards * self.outputs];
                (false, Activation::None, Some(sums))
            }
        };
        isa.run(Multiply {
            layer: self,
            boards,
            input: &scratch.transformed.as_slice()[..input_stride * POINTS],
            input_stride,
            products: &mut scratch.products.as_mut_slice()[..stride * POINTS],
            stride,
            out: &mut out[..boards * 64 * self.outputs],
            residual,
            activation,
            sums,
        });
    }
}

/// Rows (1, p, p²) over the product of differences, for 0, A, −A, B, −B, ∞.
fn filter_transform() -> [[f64; 3]; 6] {
    let (a, b) = (f64::from(A), f64::from(B));
    let finite = [0.0, a, -a, b, -b];
    let mut rows = [[0.0, 0.0, 1.0]; 6];
    for (i, (row, p)) in rows.iter_mut().zip(finite).enumerate() {
        let others = finite.iter().enumerate().filter(|(j, _)| *j != i);
        let scale: f64 = others.map(|(_, q)| p - q).product();
        *row = [1.0 / scale, p / scale, p * p / scale];
    }
    rows
}

struct InputTransform<'a> {
    input: &'a [f32],
    channels: usize,
    boards: usize,
    stride: usize,
    out: &'a mut [f32],
}

impl Kernel for InputTransform<'_> {
    #[inline(always)]
    fn run<L: Lanes>(self, l: L) {
        let channels = self.channels;
        for board in 0..self.boards {
            for channel in (0..channels).step_by(L::WIDTH) {
                // SAFETY: `transform_input` cut `input` to boards·64·channels and `out` to
                // POINTS·stride with stride > boards·TILES·channels; channels is a multiple of BLOCK.
                unsafe {
                    let from = self.input.as_ptr().add(board * 64 * channels + channel);
                    let row = channel / BLOCK * self.boards * TILES + board * TILES;
                    let to = self.out.as_mut_ptr().add(row * BLOCK + channel % BLOCK);
                    transform_half::<L, false>(l, from, channels, to, self.stride);
                    let to = to.add(2 * BLOCK);
                    transform_half::<L, true>(l, from, channels, to, self.stride);
                }
            }
        }
    }
}

/// The two tiles of the lower (or upper) ranks for WIDTH channels.
///
/// # Safety
/// `from` is one channel group of a board [64, channels]; `to` of [POINTS, 2 tiles, BLOCK] with
/// `stride` floats from point to point.
#[inline(always)]
unsafe fn transform_half<L: Lanes, const UPPER: bool>(
    l: L,
    from: *const f32,
    channels: usize,
    to: *mut f32,
    stride: usize,
) {
    // Lower tiles read ranks −1..=4, upper ones 3..=8; ranks −1 and 8 are zero.
    let first = if UPPER { 3 } else { 0 };
    let mut half = [[l.splat(0.0); 8]; 6]; // [point row, file]
    for file in 0..8 {
        let mut d = [l.splat(0.0); 5];
        for (i, d) in d.iter_mut().enumerate() {
            // SAFETY: rank ≤ 7 and file ≤ 7.
            *d = unsafe { l.load(from.add(((first + i) * 8 + file) * channels)) };
        }
        let column = if UPPER {
            points_last(l, d)
        } else {
            points_first(l, d)
        };
        for (row, v) in half.iter_mut().zip(column) {
            row[file] = v;
        }
    }
    for (row, d) in half.iter().enumerate() {
        let left = points_first(l, [d[0], d[1], d[2], d[3], d[4]]);
        let right = points_last(l, [d[3], d[4], d[5], d[6], d[7]]);
        for column in 0..6 {
            // SAFETY: the point is below POINTS and there are two tiles.
            unsafe {
                let p = to.add((row * 6 + column) * stride);
                l.store(p, left[column]);
                l.store(p.add(BLOCK), right[column]);
            }
        }
    }
}

/// v0…v5 where d0 = 0, from d1…d5.
#[inline(always)]
fn points_first<L: Lanes>(l: L, [d1, d2, d3, d4, d5]: [L::V; 5]) -> [L::V; 6] {
    let v0 = l.neg_mul_add(l.splat(A2 + B2), d2, d4);
    let v5 = l.mul_add(
        l.splat(A2 * B2),
        d1,
        l.neg_mul_add(l.splat(A2 + B2), d3, d5),
    );
    let [v1, v2, v3, v4] = points_middle(l, d1, d2, d3, d4);
    [v0, v1, v2, v3, v4, v5]
}

/// v0…v5 where d5 = 0, from d0…d4.
#[inline(always)]
fn points_last<L: Lanes>(l: L, [d0, d1, d2, d3, d4]: [L::V; 5]) -> [L::V; 6] {
    let v0 = l.mul_add(
        l.splat(A2 * B2),
        d0,
        l.neg_mul_add(l.splat(A2 + B2), d2, d4),
    );
    let v5 = l.neg_mul_add(l.splat(A2 + B2), d3, l.mul(l.splat(A2 * B2), d1));
    let [v1, v2, v3, v4] = points_middle(l, d1, d2, d3, d4);
    [v0, v1, v2, v3, v4, v5]
}

#[inline(always)]
fn points_middle<L: Lanes>(l: L, d1: L::V, d2: L::V, d3: L::V, d4: L::V) -> [L::V; 4] {
    let (a2, b2) = (l.splat(A2), l.splat(B2));
    let even_a = l.neg_mul_add(b2, d2, d4);
    let odd_a = l.neg_mul_add(b2, d1, d3);
    let even_b = l.neg_mul_add(a2, d2, d4);
    let odd_b = l.neg_mul_add(a2, d1, d3);
    let (a, b) = (l.splat(A), l.splat(B));
    [
        l.mul_add(a, odd_a, even_a),
        l.neg_mul_add(a, odd_a, even_a),
        l.mul_add(b, odd_b, even_b),
        l.neg_mul_add(b, odd_b, even_b),
    ]
}

/// y0…y3 from m0…m5.
#[inline(always)]
fn outputs_of<L: Lanes>(l: L, m: [L::V; 6]) -> [L::V; 4] {
    let (sum_a, dif_a) = (l.add(m[1], m[2]), l.sub(m[1], m[2]));
    let (sum_b, dif_b) = (l.add(m[3], m[4]), l.sub(m[3], m[4]));
    [
        l.add(l.add(m[0], sum_a), sum_b),
        l.mul_add(l.splat(A), dif_a, l.mul(l.splat(B), dif_b)),
        l.mul_add(l.splat(A2), sum_a, l.mul(l.splat(B2), sum_b)),
        l.mul_add(
            l.splat(A2 * A),
            dif_a,
            l.mul_add(l.splat(B2 * B), dif_b, m[5]),
        ),
    ]
}

struct Multiply<'a> {
    layer: &'a WinogradConv,
    boards: usize,
    input: &'a [f32],
    input_stride: usize,
    products: &'a mut [f32],
    stride: usize,
    out: &'a mut [f32],
    residual: bool,
    activation: Activation,
    sums: Option<&'a mut [f32]>,
}

impl Kernel for Multiply<'_> {
    #[inline(always)]
    fn run<L: Lanes>(mut self, l: L) {
        let WinogradConv {
            inputs, outputs, ..
        } = *self.layer;
        let weights = self.layer.weights.as_slice().as_ptr();
        for block in 0..outputs / BLOCK {
            for point in 0..POINTS {
                // SAFETY: `multiply` cut the transformed input to POINTS·input_stride with
                // input_stride > boards·TILES·inputs, and the products likewise with BLOCK columns; the
                // weights are [blocks, POINTS, inputs, BLOCK].
                unsafe {
                    product::<L, true>(
                        l,
                        Operands {
                            a: self.input.as_ptr().add(point * self.input_stride),
                            a_stride: BLOCK,
                            a_group: self.boards * TILES * BLOCK,
                            depth: inputs,
                            b: weights.add((block * POINTS + point) * inputs * BLOCK),
                            next_b: weights
                                .wrapping_add((block * POINTS + point + 1) * inputs * BLOCK),
                            c: self.products.as_mut_ptr().add(point * self.stride),
                            c_stride: BLOCK,
                            initial: None,
                        },
                        self.boards * TILES,
                    );
                }
            }
            match (self.residual, self.activation) {
                (false, Activation::None) => self.write(l, block, false, Activation::None),
                (false, Activation::Relu) => self.write(l, block, false, Activation::Relu),
                (false, Activation::Mish) => self.write(l, block, false, Activation::Mish),
                (true, Activation::None) => self.write(l, block, true, Activation::None),
                (true, Activation::Relu) => self.write(l, block, true, Activation::Relu),
                (true, Activation::Mish) => self.write(l, block, true, Activation::Mish),
            }
        }
    }
}

impl Multiply<'_> {
    /// The output transform of one block of channels, all boards.
    #[inline(always)]
    fn write<L: Lanes>(&mut self, l: L, block: usize, residual: bool, activation: Activation) {
        let outputs = self.layer.outputs;
        let bias = &self.layer.bias.as_slice()[block * BLOCK..][..BLOCK];
        for board in 0..self.boards {
            for lane in (0..BLOCK).step_by(L::WIDTH) {
                let channel = block * BLOCK + lane;
                let mut sum = l.splat(0.0);
                for tile in 0..TILES {
                    // SAFETY: `multiply` cut the products to POINTS·stride with stride >
                    // boards·TILES·BLOCK, and `out` to boards·64·outputs; lane + WIDTH ≤ BLOCK.
                    unsafe {
                        let bias = l.load(bias.as_ptr().add(lane));
                        let from = (board * TILES + tile) * BLOCK + lane;
                        let y = inverse_tile(l, self.products.as_ptr().add(from), self.stride);
                        let square = tile / 2 * 32 + tile % 2 * 4;
                        let to = (board * 64 + square) * outputs + channel;
                        let to = self.out.as_mut_ptr().add(to);
                        for (rank, row) in y.iter().enumerate() {
                            for (file, v) in row.iter().enumerate() {
                                let p = to.add((rank * 8 + file) * outputs);
                                let mut v = l.add(*v, bias);
                                if residual {
                                    v = l.add(v, l.load(p));
                                }
                                sum = l.add(sum, v);
                                l.store(p, activation.apply(l, v));
                            }
                        }
                    }
                }
                if let Some(sums) = &mut self.sums {
                    let sums = &mut sums[board * outputs + channel..][..L::WIDTH];
                    // SAFETY: the slice is WIDTH floats.
                    unsafe { l.store(sums.as_mut_ptr(), sum) };
                }
            }
        }
    }
}

/// The 4×4 outputs of one tile for WIDTH channels.
///
/// # Safety
/// WIDTH floats are readable at each of `from` + point·stride, point < POINTS.
#[inline(always)]
unsafe fn inverse_tile<L: Lanes>(l: L, from: *const f32, stride: usize) -> [[L::V; 4]; 4] {
    let mut half = [[l.splat(0.0); 6]; 4]; // [rank, point column]
    for column in 0..6 {
        let mut m = [l.splat(0.0); 6];
        for (row, m) in m.iter_mut().enumerate() {
            // SAFETY: the point is below POINTS.
            *m = unsafe { l.load(from.add((row * 6 + column) * stride)) };
        }
        for (rank, v) in half.iter_mut().zip(outputs_of(l, m)) {
            rank[column] = v;
        }
    }
    // A plain loop: a closure handed to the standard library is compiled without the vector features.
    let mut tile = [[l.splat(0.0); 4]; 4];
    for (row, half) in tile.iter_mut().zip(half) {
        *row = outputs_of(l, half);
    }
    tile
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::lanes::Isa;

    /// Uniform in −1..1, reproducible.
    fn noise(seed: u64, n: usize) -> Vec<f32> {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        (0..n)
            .map(|_| {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                (state >> 40) as f32 / (1 << 23) as f32 - 1.0
            })
            .collect()
    }

    /// Direct convolution in f64 of [boards, 64, inputs] activations.
    fn direct(input: &[f32], inputs: usize, weights: &[f32], bias: &[f32]) -> Vec<f64> {
        let outputs = bias.len();
        let mut all = Vec::new();
        for board in input.chunks_exact(64 * inputs) {
            for square in 0..64_i32 {
                for output in 0..outputs {
                    let mut sum = f64::from(bias[output]);
                    for tap in 0..9_i32 {
                        let (rank, file) = (square / 8 + tap / 3 - 1, square % 8 + tap % 3 - 1);
                        if !(0..8).contains(&rank) || !(0..8).contains(&file) {
                            continue;
                        }
                        let row = &board[(rank * 8 + file) as usize * inputs..][..inputs];
                        for (c, x) in row.iter().enumerate() {
                            let w = weights[(output * inputs + c) * 9 + tap as usize];
                            sum += f64::from(*x) * f64::from(w);
                        }
                    }
                    all.push(sum);
                }
            }
        }
        all
    }

    fn widen(values: &[f32], channels: usize) -> Vec<f32> {
        let mut wide = Vec::new();
        for row in values.chunks_exact(channels) {
            wide.extend_from_slice(row);
            wide.resize(wide.len() + padded(channels) - channels, 0.0);
        }
        wide
    }

    /// Root mean square error relative to the root mean square of the answer.
    fn compare(wide: &[f32], exact: &[f64], channels: usize) -> f64 {
        let (mut error, mut norm) = (0.0, 0.0);
        for (row, want) in wide
            .chunks_exact(padded(channels))
            .zip(exact.chunks_exact(channels))
        {
            for (got, want) in row.iter().zip(want) {
                error += (f64::from(*got) - want).powi(2);
                norm += want.powi(2);
            }
        }
        (error / norm).sqrt()
    }

    #[test]
    fn agrees_with_direct_convolution() {
        for isa in Isa::available() {
            for (inputs, outputs, boards) in [(64, 64, 3), (112, 64, 1), (5, 80, 2), (32, 7, 4)] {
                let input = noise(1, boards * 64 * inputs);
                let weights = noise(2, outputs * inputs * 9);
                let bias = noise(3, outputs);
                let Some(conv) = WinogradConv::new(inputs, outputs, &weights, &bias) else {
                    panic!("shapes agree");
                };
                let exact = direct(&input, inputs, &weights, &bias);
                let wide = widen(&input, inputs);
                let mut scratch = WinogradScratch::default();
                let mut out = vec![0.0; boards * 64 * conv.outputs()];
                let mut run = |out: &mut [f32], epilogue| {
                    conv.forward(isa, &wide, boards, &mut scratch, out, epilogue)
                };

                run(&mut out, Epilogue::Write(Activation::None));
                let error = compare(&out, &exact, outputs);
                eprintln!("{isa} {inputs}->{outputs}: relative error {error:.1e}");
                assert!(error < 2e-6);

                let skip = noise(4, boards * 64 * outputs);
                let mut with_skip = widen(&skip, outputs);
                run(&mut with_skip, Epilogue::Residual(Activation::Relu));
                let wanted = exact.iter().zip(&skip);
                let wanted: Vec<f64> = wanted.map(|(y, x)| (y + f64::from(*x)).max(0.0)).collect();
                assert!(compare(&with_skip, &wanted, outputs) < 2e-6);

                let mut sums = vec![0.0; boards * conv.outputs()];
                run(&mut out, Epilogue::Sum(&mut sums));
                let mut wanted = vec![0.0; boards * outputs];
                for (i, y) in exact.iter().enumerate() {
                    wanted[i / (64 * outputs) * outputs + i % outputs] += y;
                }
                assert!(compare(&sums, &wanted, outputs) < 2e-6);
            }
        }
    }

    #[test]
    fn a_board_does_not_depend_on_its_neighbours() {
        for isa in Isa::available() {
            let (inputs, outputs, boards) = (16, 32, 7);
            let input = noise(1, boards * 64 * inputs);
            let weights = noise(2, outputs * inputs * 9);
            let bias = noise(3, outputs);
            let Some(conv) = WinogradConv::new(inputs, outputs, &weights, &bias) else {
                panic!("shapes agree");
            };
            let mut scratch = WinogradScratch::default();
            let mut all = vec![0.0; boards * 64 * outputs];
            let mut one = vec![0.0; 64 * outputs];
            let epilogue = || Epilogue::Write(Activation::Mish);
            conv.forward(isa, &input, boards, &mut scratch, &mut all, epilogue());
            for board in 0..boards {
                let input = &input[board * 64 * inputs..];
                conv.forward(isa, input, 1, &mut scratch, &mut one, epilogue());
                assert_eq!(one, all[board * 64 * outputs..][..64 * outputs]);
            }
        }
    }

    #[test]
    fn refuses_lengths_that_disagree() {
        assert!(WinogradConv::new(2, 3, &[0.0; 53], &[0.0; 3]).is_none());
        assert!(WinogradConv::new(2, 3, &[0.0; 54], &[0.0; 2]).is_none());
        assert!(WinogradConv::new(0, 3, &[], &[0.0; 3]).is_none());
    }
}
