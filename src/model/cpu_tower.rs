//! A residual tower (with or without squeeze-and-excitation) and its heads on one CPU core in fp32, without
//! libtorch: the fast path for small convolutional networks. Weights come as plain numbers with batch
//! norm folded; files, positions and what a head means are somebody else's business.

use std::sync::Arc;

use super::lanes::{Isa, Kernel, Lanes};
use super::matmul::{Activation, Buffer, Matmul, padded};
use super::plane_conv::{PlaneConv, PlaneScratch};
use super::tower_config::{
    ConvConfig, DenseConfig, HeadLayer, TowerConfig, TowerError, check_conv, check_dense,
    check_outputs, conv_length,
};
use super::winograd::{Epilogue, WinogradConv, WinogradScratch};

/// Boards that go through the tower together, so that their activations stay in the second level cache.
const GROUP: usize = 8;

/// The answers of one call; kept and handed in again, it is not allocated anew.
#[derive(Clone, Debug, Default)]
pub struct TowerOutput {
    /// Per head [batch, outputs]; a head that ends in a convolution gives [batch, channels, 64].
    pub heads: Vec<Vec<f32>>,
    /// The tower's output as tokens [batch, 64, channels] if the configuration keeps it.
    pub trunk: Vec<f32>,
}

/// An evaluator of a tower: shared weights and its own scratch memory.
pub struct CpuTower {
    network: Arc<Network>,
    isa: Isa,
    scratch: Scratch,
}

struct Network {
    activation: Activation,
    planes: usize,
    channels: usize,
    input: PlaneConv,
    blocks: Vec<Block>,
    heads: Vec<Head>,
    keep_trunk: bool,
}

struct Block {
    conv1: WinogradConv,
    conv2: WinogradConv,
    se: Option<(Matmul, Matmul)>,
}

enum HeadConv {
    Three(WinogradConv),
    One(Matmul),
}

struct Head {
    convs: Vec<(HeadConv, Activation)>,
    dense: Vec<(Matmul, Activation)>,
    /// Padded channels after the convolutions.
    wide: usize,
    /// Real channels after the convolutions, if there is no dense layer.
    planes: usize,
    /// Real outputs of the whole head.
    outputs: usize,
}

#[derive(Default)]
struct Scratch {
    planes: PlaneScratch,
    winograd: WinogradScratch,
    /// [GROUP, 64, channels]: the skip connection and the branch.
    trunk: Buffer,
    branch: Buffer,
    /// [GROUP, channels], [GROUP, squeezed], [GROUP, 2·channels].
    sums: Buffer,
    squeezed: Buffer,
    excited: Buffer,
    /// Activations between the convolutions of a head.
    head: [Buffer; 2],
    /// Per head [batch, 64·channels] before its dense layers.
    flat: Vec<Buffer>,
    dense: [Buffer; 2],
}

impl CpuTower {
    /// # Errors
    /// If a layer's numbers do not fit its shape, or its shape the layer before.
    pub fn new(config: &TowerConfig) -> Result<CpuTower, TowerError> {
        Self::with_isa(config, Isa::detect())
    }

    /// As [`Self::new`] for a chosen instruction set.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn with_isa(config: &TowerConfig, isa: Isa) -> Result<CpuTower, TowerError> {
        Ok(CpuTower {
            network: Arc::new(Network::new(config)?),
            isa,
            scratch: Scratch::default(),
        })
    }

    /// Another evaluator of the same weights.
    pub fn share(&self) -> CpuTower {
        CpuTower {
            network: Arc::clone(&self.network),
            isa: self.isa,
            scratch: Scratch::default(),
        }
    }

    /// The instruction set in use.
    pub fn isa(&self) -> Isa {
        self.isa
    }

    /// Evaluates `planes` [batch, planes, 64] on the calling thread. A board's answer does not depend on
    /// the others.
    ///
    /// # Errors
    /// If `planes` has another length.
    pub fn forward(
        &mut self,
        planes: &[f32],
        batch: usize,
        out: &mut TowerOutput,
    ) -> Result<(), TowerError> {
        let network = Arc::clone(&self.network);
        let size = network.planes * 64;
        if batch.checked_mul(size) != Some(planes.len()) {
            return Err(TowerError::Planes {
                found: planes.len(),
                batch,
                planes: network.planes,
            });
        }
        let scratch = &mut self.scratch;
        out.heads.resize_with(network.heads.len(), Vec::new);
        scratch
            .flat
            .resize_with(network.heads.len(), Buffer::default);
        for (i, head) in network.heads.iter().enumerate() {
            out.heads[i].resize(batch * head.outputs, 0.0);
            if !head.dense.is_empty() {
                scratch.flat[i].reserve(batch * 64 * head.wide);
            }
        }
        let kept = if network.keep_trunk {
            network.channels
        } else {
            0
        };
        out.trunk.resize(batch * 64 * kept, 0.0);

        let groups = batch.div_ceil(GROUP);
        for group in 0..groups {
            let boards = batch * group / groups..batch * (group + 1) / groups;
            let planes = &planes[boards.start * size..boards.end * size];
            network.body(self.isa, planes, boards.len(), scratch);
            if network.keep_trunk {
                let from = scratch.trunk.as_slice();
                let from = from.chunks_exact(network.input.outputs());
                let to = &mut out.trunk[boards.start * 64 * kept..boards.end * 64 * kept];
                for (to, from) in to.chunks_exact_mut(kept).zip(from) {
                    to.copy_from_slice(&from[..kept]);
                }
            }
            for (i, head) in network.heads.iter().enumerate() {
                let out = &mut out.heads[i];
                head.convolve(self.isa, i, boards.clone(), scratch, out);
            }
        }
        for (i, head) in network.heads.iter().enumerate() {
            head.densify(self.isa, i, batch, scratch, &mut out.heads[i]);
        }
        Ok(())
    }
}

impl Network {
    fn new(config: &TowerConfig) -> Result<Network, TowerError> {
        let input = &config.input;
        let name = "input convolution";
        check_conv(name, input, input.inputs, &[3])?;
        let channels = input.outputs;
        let plane_conv = PlaneConv::new(input.inputs, channels, &input.weights, &input.bias)
            .ok_or_else(|| conv_length(name, input))?;
        let mut blocks = Vec::new();
        for (i, block) in config.blocks.iter().enumerate() {
            let name = |part: &str| format!("block {i} {part}");
            let conv = |part: &str, conv: &ConvConfig| {
                let name = name(part);
                check_conv(&name, conv, channels, &[3])?;
                check_outputs(&name, conv.outputs, channels)?;
                winograd(&name, conv)
            };
            let se = block.se.as_ref().map(|se| {
                check_dense(&name("squeeze"), &se.squeeze, channels)?;
                check_dense(&name("excite"), &se.excite, se.squeeze.outputs)?;
                check_outputs(&name("excite"), se.excite.outputs, 2 * channels)?;
                Ok((plain_dense(&se.squeeze), excite_dense(&se.excite)))
            });
            blocks.push(Block {
                conv1: conv("first convolution", &block.conv1)?,
                conv2: conv("second convolution", &block.conv2)?,
                se: se.transpose()?,
            });
        }
        let heads = config.heads.iter().enumerate();
        let heads = heads.map(|(i, layers)| Head::new(i, layers, channels));
        Ok(Network {
            activation: config.activation,
            planes: input.inputs,
            channels,
            input: plane_conv,
            blocks,
            heads: heads.collect::<Result<_, _>>()?,
            keep_trunk: config.keep_trunk,
        })
    }

    /// From the planes of a few boards to `scratch.trunk`.
    fn body(&self, isa: Isa, planes: &[f32], boards: usize, scratch: &mut Scratch) {
        let wide = self.input.outputs();
        let size = boards * 64 * wide;
        for buffer in [&mut scratch.trunk, &mut scratch.branch] {
            buffer.reserve(size);
        }
        let trunk = &mut scratch.trunk.as_mut_slice()[..size];
        let branch = &mut scratch.branch.as_mut_slice()[..size];
        let winograd = &mut scratch.winograd;
        let act = self.activation;
        self.input
            .forward(isa, planes, boards, &mut scratch.planes, trunk, act);
        for block in &self.blocks {
            let first = Epilogue::Write(act);
            block
                .conv1
                .forward(isa, trunk, boards, winograd, branch, first);
            let Some((squeeze, excite)) = &block.se else {
                block.conv2.transform_input(isa, branch, boards, winograd);
                let last = Epilogue::Residual(act);
                block.conv2.multiply(isa, boards, winograd, trunk, last);
                continue;
            };
            scratch.sums.reserve(boards * wide);
            scratch.squeezed.reserve(boards * squeeze.outputs);
            scratch.excited.reserve(boards * excite.outputs);
            let sums = &mut scratch.sums.as_mut_slice()[..boards * wide];
            let squeezed = scratch.squeezed.as_mut_slice();
            let excited = scratch.excited.as_mut_slice();
            let last = Epilogue::Sum(sums);
            block
                .conv2
                .forward_in_place(isa, branch, boards, winograd, last);
            for sum in sums.iter_mut() {
                *sum *= 1.0 / 64.0;
            }
            squeeze.forward(isa, sums, boards, squeezed, act);
            excite.forward(isa, squeezed, boards, excited, Activation::None);
            isa.run(Excite {
                channels: wide,
                branch,
                gates: &excited[..boards * 2 * wide],
                trunk,
                activation: act,
            });
        }
    }
}

/// trunk = act(sigmoid(γ)·branch + β + trunk).
struct Excite<'a> {
    channels: usize,
    /// [boards, 64, channels].
    branch: &'a [f32],
    /// [boards, 2, channels].
    gates: &'a [f32],
    trunk: &'a mut [f32],
    activation: Activation,
}

impl Kernel for Excite<'_> {
    #[inline(always)]
    fn run<L: Lanes>(self, l: L) {
        let channels = self.channels;
        let branch = self.branch.chunks_exact(64 * channels);
        let trunk = self.trunk.chunks_exact_mut(64 * channels);
        let gates = self.gates.chunks_exact(2 * channels);
        for ((branch, trunk), gates) in branch.zip(trunk).zip(gates) {
            for channel in (0..channels).step_by(L::WIDTH) {
                // SAFETY: the chunks are 64 squares of `channels` and 2·channels gates; channel + WIDTH ≤
                // channels, a multiple of 16.
                unsafe {
                    let gamma = l.sigmoid(l.load(gates.as_ptr().add(channel)));
                    let beta = l.load(gates.as_ptr().add(channels + channel));
                    for square in 0..64 {
                        let at = square * channels + channel;
                        let y = l.load(branch.as_ptr().add(at));
                        let x = l.load(trunk.as_ptr().add(at));
                        let sum = l.add(l.mul_add(gamma, y, beta), x);
                        l.store(trunk.as_mut_ptr().add(at), self.activation.apply(l, sum));
                    }
                }
            }
        }
    }
}

impl Head {
    fn new(index: usize, layers: &[HeadLayer], channels: usize) -> Result<Head, TowerError> {
        let mut head = Head {
            convs: Vec::new(),
            dense: Vec::new(),
            wide: padded(channels),
            planes: channels,
            outputs: channels * 64,
        };
        for (i, layer) in layers.iter().enumerate() {
            let name = format!("head {index} layer {i}");
            match layer {
                HeadLayer::Conv(conv, activation) => {
                    if !head.dense.is_empty() {
                        return Err(TowerError::ConvAfterDense { layer: name });
                    }
                    check_conv(&name, conv, head.planes, &[1, 3])?;
                    let layer = if conv.size == 3 {
                        HeadConv::Three(winograd(&name, conv)?)
                    } else {
                        HeadConv::One(pointwise(conv))
                    };
                    head.convs.push((layer, *activation));
                    head.planes = conv.outputs;
                    head.wide = padded(conv.outputs);
                    head.outputs = conv.outputs * 64;
                }
                HeadLayer::Dense(dense, activation) => {
                    check_dense(&name, dense, head.outputs)?;
                    let layer = if head.dense.is_empty() {
                        flat_dense(dense, head.wide)
                    } else {
                        plain_dense(dense)
                    };
                    head.dense.push((layer, *activation));
                    head.outputs = dense.outputs;
                }
            }
        }
        Ok(head)
    }

    /// From `scratch.trunk` of boards `range` through the convolutions, to `scratch.flat` or to `out`.
    fn convolve(
        &self,
        isa: Isa,
        index: usize,
        range: std::ops::Range<usize>,
        scratch: &mut Scratch,
        out: &mut [f32],
    ) {
        let boards = range.len();
        let [current, next] = &mut scratch.head;
        let mut first = true;
        for (conv, activation) in &self.convs {
            let input = if first {
                scratch.trunk.as_slice()
            } else {
                current.as_slice()
            };
            match conv {
                HeadConv::Three(conv) => {
                    next.reserve(boards * 64 * conv.outputs());
                    let out = next.as_mut_slice();
                    let last = Epilogue::Write(*activation);
                    conv.forward(isa, input, boards, &mut scratch.winograd, out, last);
                }
                HeadConv::One(layer) => {
                    next.reserve(boards * 64 * layer.outputs);
                    layer.forward(isa, input, boards * 64, next.as_mut_slice(), *activation);
                }
            }
            std::mem::swap(current, next);
            first = false;
        }
        let end = if first {
            scratch.trunk.as_slice()
        } else {
            current.as_slice()
        };
        let size = 64 * self.wide;
        if !self.dense.is_empty() {
            let flat = scratch.flat[index].as_mut_slice();
            flat[range.start * size..range.end * size].copy_from_slice(&end[..boards * size]);
            return;
        }
        let out = &mut out[range.start * self.outputs..range.end * self.outputs];
        let boards = out.chunks_exact_mut(self.outputs);
        for (out, board) in boards.zip(end.chunks_exact(size)) {
            for (channel, out) in out.chunks_exact_mut(64).enumerate() {
                for (out, square) in out.iter_mut().zip(board.chunks_exact(self.wide)) {
                    *out = square[channel];
                }
            }
        }
    }

    /// From `scratch.flat` through the dense layers to `out`, the whole batch at once.
    fn densify(
        &self,
        isa: Isa,
        index: usize,
        batch: usize,
        scratch: &mut Scratch,
        out: &mut [f32],
    ) {
        let [current, next] = &mut scratch.dense;
        let mut first = true;
        let mut wide = 0;
        for (layer, activation) in &self.dense {
            let input = if first {
                scratch.flat[index].as_slice()
            } else {
                current.as_slice()
            };
            next.reserve(batch * layer.outputs);
            layer.forward(isa, input, batch, next.as_mut_slice(), *activation);
            wide = layer.outputs;
            std::mem::swap(current, next);
            first = false;
        }
        if wide > 0 {
            let rows = current.as_slice().chunks_exact(wide);
            for (out, row) in out.chunks_exact_mut(self.outputs).zip(rows) {
                out.copy_from_slice(&row[..self.outputs]);
            }
        }
    }
}

fn winograd(layer: &str, conv: &ConvConfig) -> Result<WinogradConv, TowerError> {
    WinogradConv::new(conv.inputs, conv.outputs, &conv.weights, &conv.bias)
        .ok_or_else(|| conv_length(layer, conv))
}

/// A 1×1 convolution as a product over squares; padded inputs have zero weights.
fn pointwise(conv: &ConvConfig) -> Matmul {
    dense_matmul(&conv.weights, &conv.bias, conv.inputs)
}

/// A dense layer after another dense layer or a pooling.
fn plain_dense(dense: &DenseConfig) -> Matmul {
    dense_matmul(&dense.weights, &dense.bias, dense.inputs)
}

fn dense_matmul(weights: &[f32], bias: &[f32], inputs: usize) -> Matmul {
    let at = |o: usize, i: usize| {
        if o < bias.len() && i < inputs {
            weights[o * inputs + i]
        } else {
            0.0
        }
    };
    let bias_at = |o: usize| bias.get(o).copied().unwrap_or(0.0);
    Matmul::new(padded(inputs), bias.len(), at, bias_at)
}

/// The dense layer after the convolutions: its channel-major inputs are reordered to the activations'
/// [64, wide].
fn flat_dense(dense: &DenseConfig, wide: usize) -> Matmul {
    let at = |o: usize, i: usize| {
        let (square, channel) = (i / wide, i % wide);
        if o < dense.outputs && channel * 64 + square < dense.inputs {
            dense.weights[o * dense.inputs + channel * 64 + square]
        } else {
            0.0
        }
    };
    let bias_at = |o: usize| dense.bias.get(o).copied().unwrap_or(0.0);
    Matmul::new(64 * wide, dense.outputs, at, bias_at)
}

/// The excitation, γ and β each padded to whole blocks.
fn excite_dense(dense: &DenseConfig) -> Matmul {
    let channels = dense.outputs / 2;
    let wide = padded(channels);
    let output = |o: usize| (o % wide < channels).then_some(o / wide * channels + o % wide);
    let at = |o: usize, i: usize| match output(o) {
        Some(o) if i < dense.inputs => dense.weights[o * dense.inputs + i],
        _ => 0.0,
    };
    let bias_at = |o: usize| output(o).map_or(0.0, |o| dense.bias[o]);
    Matmul::new(padded(dense.inputs), 2 * wide, at, bias_at)
}

#[cfg(test)]
mod tests {
    use super::super::tower_config::{BlockConfig, SeConfig};
    use super::*;

    struct Noise(u64);

    impl Noise {
        /// Uniform in ±size, reproducible.
        fn take(&mut self, n: usize, size: f64) -> Vec<f32> {
            let mut next = || {
                self.0 ^= self.0 << 13;
                self.0 ^= self.0 >> 7;
                self.0 ^= self.0 << 17;
                ((self.0 >> 11) as f64 / (1_u64 << 52) as f64 - 1.0) * size
            };
            (0..n).map(|_| next() as f32).collect()
        }

        fn conv(&mut self, inputs: usize, outputs: usize, size: usize) -> ConvConfig {
            let area = inputs * size * size;
            ConvConfig {
                inputs,
                outputs,
                size,
                weights: self.take(outputs * area, (3.0 / area as f64).sqrt()),
                bias: self.take(outputs, 0.2),
            }
        }

        fn dense(&mut self, inputs: usize, outputs: usize) -> DenseConfig {
            DenseConfig {
                inputs,
                outputs,
                weights: self.take(outputs * inputs, (3.0 / inputs as f64).sqrt()),
                bias: self.take(outputs, 0.2),
            }
        }

        fn tower(&mut self, channels: usize, activation: Activation) -> TowerConfig {
            let mut block = |se: bool| BlockConfig {
                conv1: self.conv(channels, channels, 3),
                conv2: self.conv(channels, channels, 3),
                se: se.then(|| SeConfig {
                    squeeze: self.dense(channels, 5),
                    excite: self.dense(5, 2 * channels),
                }),
            };
            let blocks = vec![block(true), block(false), block(true)];
            TowerConfig {
                activation,
                input: self.conv(112, channels, 3),
                blocks,
                heads: vec![
                    vec![
                        HeadLayer::Conv(self.conv(channels, channels, 3), activation),
                        HeadLayer::Conv(self.conv(channels, 80, 3), Activation::None),
                    ],
                    vec![
                        HeadLayer::Conv(self.conv(channels, 9, 1), activation),
                        HeadLayer::Dense(self.dense(9 * 64, 33), activation),
                        HeadLayer::Dense(self.dense(33, 3), Activation::None),
                    ],
                    vec![
                        HeadLayer::Conv(self.conv(channels, 4, 1), activation),
                        HeadLayer::Dense(self.dense(4 * 64, 1858), Activation::None),
                    ],
                ],
                keep_trunk: true,
            }
        }

        /// Scattered pieces, constant planes, and one plane of arbitrary numbers.
        fn planes(&mut self, batch: usize) -> Vec<f32> {
            let mut all = self.take(batch * 112 * 64, 1.0);
            for board in all.chunks_exact_mut(112 * 64) {
                for (i, plane) in board.chunks_exact_mut(64).enumerate() {
                    match i {
                        0..104 => plane
                            .iter_mut()
                            .for_each(|x| *x = f32::from(u8::from(*x > 0.9))),
                        104 | 111 => plane.fill(1.0),
                        109 => plane.fill(0.37),
                        110 => {}
                        _ => plane.fill(0.0),
                    }
                }
            }
            all
        }
    }

    fn act(activation: Activation, x: f64) -> f64 {
        match activation {
            Activation::None => x,
            Activation::Relu => x.max(0.0),
            Activation::Mish => x * x.exp().ln_1p().tanh(),
        }
    }

    /// [inputs, 64] to [outputs, 64], directly.
    fn conv(x: &[f64], config: &ConvConfig, activation: Activation) -> Vec<f64> {
        let (size, half) = (config.size as i32, config.size as i32 / 2);
        let mut out = Vec::new();
        for output in 0..config.outputs {
            for square in 0..64 {
                let mut sum = f64::from(config.bias[output]);
                for input in 0..config.inputs {
                    for tap in 0..size * size {
                        let rank = square / 8 + tap / size - half;
                        let file = square % 8 + tap % size - half;
                        if (0..8).contains(&rank) && (0..8).contains(&file) {
                            let w = (output * config.inputs + input) * (size * size) as usize;
                            sum += f64::from(config.weights[w + tap as usize])
                                * x[input * 64 + (rank * 8 + file) as usize];
                        }
                    }
                }
                out.push(act(activation, sum));
            }
        }
        out
    }

    fn dense(x: &[f64], config: &DenseConfig, activation: Activation) -> Vec<f64> {
        let rows = config.weights.chunks_exact(config.inputs);
        let sums = rows.zip(&config.bias).map(|(row, bias)| {
            let products = row.iter().zip(x).map(|(w, x)| f64::from(*w) * x);
            act(activation, f64::from(*bias) + products.sum::<f64>())
        });
        sums.collect()
    }

    /// Trunk [channels, 64] and heads of one board in f64, as the definitions read.
    fn naive(config: &TowerConfig, planes: &[f32]) -> (Vec<f64>, Vec<Vec<f64>>) {
        let a = config.activation;
        let planes: Vec<f64> = planes.iter().map(|x| f64::from(*x)).collect();
        let mut x = conv(&planes, &config.input, a);
        for block in &config.blocks {
            let mut y = conv(&conv(&x, &block.conv1, a), &block.conv2, Activation::None);
            if let Some(se) = &block.se {
                let means: Vec<f64> = y
                    .chunks_exact(64)
                    .map(|plane| plane.iter().sum::<f64>() / 64.0)
                    .collect();
                let gates = dense(&dense(&means, &se.squeeze, a), &se.excite, Activation::None);
                let channels = means.len();
                for (i, y) in y.iter_mut().enumerate() {
                    let gamma = 1.0 / (1.0 + (-gates[i / 64]).exp());
                    *y = gamma * *y + gates[channels + i / 64];
                }
            }
            for (x, y) in x.iter_mut().zip(y) {
                *x = act(a, *x + y);
            }
        }
        let heads = config.heads.iter().map(|layers| {
            layers.iter().fold(x.clone(), |x, layer| match layer {
                HeadLayer::Conv(config, a) => conv(&x, config, *a),
                HeadLayer::Dense(config, a) => dense(&x, config, *a),
            })
        });
        let heads = heads.collect();
        (x, heads)
    }

    #[test]
    fn agrees_with_the_definitions() -> Result<(), TowerError> {
        for (channels, activation) in [(32, Activation::Relu), (24, Activation::Mish)] {
            let mut noise = Noise(0x1234_5678_9abc_def1);
            let config = noise.tower(channels, activation);
            let planes = noise.planes(2);
            for isa in Isa::available() {
                let mut out = TowerOutput::default();
                CpuTower::with_isa(&config, isa)?.forward(&planes, 2, &mut out)?;
                let mut worst = 0.0_f64;
                for board in 0..2 {
                    let planes = &planes[board * 112 * 64..][..112 * 64];
                    let (trunk, heads) = naive(&config, planes);
                    for (got, wanted) in out.heads.iter().zip(&heads) {
                        let got = &got[board * wanted.len()..][..wanted.len()];
                        for (got, wanted) in got.iter().zip(wanted) {
                            worst = worst.max((f64::from(*got) - wanted).abs());
                        }
                    }
                    for (i, wanted) in trunk.iter().enumerate() {
                        let got = out.trunk[(board * 64 + i % 64) * channels + i / 64];
                        worst = worst.max((f64::from(got) - wanted).abs());
                    }
                }
                eprintln!("{isa} {activation:?}: largest error {worst:.1e}");
                assert!(worst < 2e-5);
            }
        }
        Ok(())
    }

    #[test]
    fn a_row_does_not_depend_on_the_batch() -> Result<(), TowerError> {
        let mut noise = Noise(0x0fed_cba9_8765_4321);
        let config = noise.tower(16, Activation::Mish);
        let batch = 21;
        let planes = noise.planes(batch);
        let tower = CpuTower::new(&config)?;
        let (mut all, mut one) = (TowerOutput::default(), TowerOutput::default());
        tower.share().forward(&planes, batch, &mut all)?;
        let mut single = tower.share();
        for board in 0..batch {
            single.forward(&planes[board * 112 * 64..][..112 * 64], 1, &mut one)?;
            for (all, one) in all.heads.iter().zip(&one.heads) {
                assert_eq!(&all[board * one.len()..][..one.len()], one);
            }
            let size = one.trunk.len();
            assert_eq!(all.trunk[board * size..][..size], one.trunk);
        }
        Ok(())
    }

    #[test]
    fn refuses_what_does_not_fit() -> Result<(), TowerError> {
        let mut noise = Noise(0x1111_2222_3333_4444);
        let good = noise.tower(16, Activation::Relu);
        let mut short = good.clone();
        short.blocks[1].conv2.weights.pop();
        let mut narrow = good.clone();
        narrow.blocks[0].conv1.outputs = 8;
        narrow.blocks[0].conv1.weights.truncate(8 * 16 * 9);
        narrow.blocks[0].conv1.bias.truncate(8);
        let mut empty = good.clone();
        empty.input = ConvConfig {
            size: 3,
            ..ConvConfig::default()
        };
        let mut flat = good.clone();
        flat.heads[1].swap(0, 1);
        let mut five = good.clone();
        five.input.size = 5;
        for bad in [short, narrow, empty, flat, five] {
            assert!(CpuTower::new(&bad).is_err());
        }
        let mut tower = CpuTower::new(&good)?;
        let mut out = TowerOutput::default();
        assert!(tower.forward(&[0.0; 100], 1, &mut out).is_err());
        tower.forward(&[], 0, &mut out)?;
        assert!(out.heads.iter().all(Vec::is_empty));
        Ok(())
    }
}
