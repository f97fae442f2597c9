//! The protobuf messages of an Lc0 network file, written by hand. Field numbers and types only; what they
//! mean is decided elsewhere.
//!
//! Every nested message is boxed, so that an empty one costs a pointer: a file cannot make much more
//! memory out of its bytes than it has bytes.

use prost::Message;
use prost::bytes::Bytes;

/// The file.
#[derive(Clone, PartialEq, Message)]
pub struct Net {
    #[prost(fixed32, optional, tag = "1")]
    pub magic: Option<u32>,
    #[prost(bytes = "bytes", optional, tag = "2")]
    pub license: Option<Bytes>,
    #[prost(message, optional, boxed, tag = "3")]
    pub min_version: Option<Box<Version>>,
    #[prost(message, optional, boxed, tag = "4")]
    pub format: Option<Box<Format>>,
    #[prost(message, optional, boxed, tag = "10")]
    pub weights: Option<Box<Weights>>,
    #[prost(message, optional, boxed, tag = "11")]
    pub onnx_model: Option<Box<Onnx>>,
}

/// The oldest Lc0 that reads the file.
#[derive(Clone, PartialEq, Message)]
pub struct Version {
    #[prost(uint32, optional, tag = "1")]
    pub major: Option<u32>,
    #[prost(uint32, optional, tag = "2")]
    pub minor: Option<u32>,
    #[prost(uint32, optional, tag = "3")]
    pub patch: Option<u32>,
}

/// A graph instead of weights; only its presence matters here.
#[derive(Clone, PartialEq, Message)]
pub struct Onnx {}

#[derive(Clone, PartialEq, Message)]
pub struct Format {
    #[prost(int32, optional, tag = "1")]
    pub weights_encoding: Option<i32>,
    #[prost(message, optional, boxed, tag = "2")]
    pub network_format: Option<Box<NetworkFormat>>,
}

#[derive(Clone, PartialEq, Message)]
pub struct NetworkFormat {
    #[prost(int32, optional, tag = "1")]
    pub input: Option<i32>,
    #[prost(int32, optional, tag = "2")]
    pub output: Option<i32>,
    #[prost(int32, optional, tag = "3")]
    pub network: Option<i32>,
    #[prost(int32, optional, tag = "4")]
    pub policy: Option<i32>,
    #[prost(int32, optional, tag = "5")]
    pub value: Option<i32>,
    #[prost(int32, optional, tag = "6")]
    pub moves_left: Option<i32>,
    #[prost(int32, optional, tag = "7")]
    pub default_activation: Option<i32>,
    #[prost(int32, optional, tag = "8")]
    pub smolgen_activation: Option<i32>,
    #[prost(int32, optional, tag = "9")]
    pub ffn_activation: Option<i32>,
    #[prost(int32, optional, tag = "10")]
    pub input_embedding: Option<i32>,
}

/// One tensor, quantised or not.
#[derive(Clone, PartialEq, Message)]
pub struct Layer {
    #[prost(float, optional, tag = "1")]
    pub min_val: Option<f32>,
    #[prost(float, optional, tag = "2")]
    pub max_val: Option<f32>,
    #[prost(bytes = "bytes", optional, tag = "3")]
    pub params: Option<Bytes>,
    #[prost(int32, optional, tag = "4")]
    pub encoding: Option<i32>,
}

/// A tensor that may be absent.
pub type OptLayer = Option<Box<Layer>>;

#[derive(Clone, PartialEq, Message)]
pub struct ConvBlock {
    #[prost(message, optional, boxed, tag = "1")]
    pub weights: OptLayer,
    #[prost(message, optional, boxed, tag = "2")]
    pub biases: OptLayer,
    #[prost(message, optional, boxed, tag = "3")]
    pub bn_means: OptLayer,
    /// Variances, in spite of the name.
    #[prost(message, optional, boxed, tag = "4")]
    pub bn_stddivs: OptLayer,
    #[prost(message, optional, boxed, tag = "5")]
    pub bn_gammas: OptLayer,
    #[prost(message, optional, boxed, tag = "6")]
    pub bn_betas: OptLayer,
}

#[derive(Clone, PartialEq, Message)]
pub struct SeUnit {
    #[prost(message, optional, boxed, tag = "1")]
    pub w1: OptLayer,
    #[prost(message, optional, boxed, tag = "2")]
    pub b1: OptLayer,
    #[prost(message, optional, boxed, tag = "3")]
    pub w2: OptLayer,
    #[prost(message, optional, boxed, tag = "4")]
    pub b2: OptLayer,
}

#[derive(Clone, PartialEq, Message)]
pub struct Residual {
    #[prost(message, optional, boxed, tag = "1")]
    pub conv1: Option<Box<ConvBlock>>,
    #[prost(message, optional, boxed, tag = "2")]
    pub conv2: Option<Box<ConvBlock>>,
    #[prost(message, optional, boxed, tag = "3")]
    pub se: Option<Box<SeUnit>>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Smolgen {
    #[prost(message, optional, boxed, tag = "1")]
    pub compress: OptLayer,
    #[prost(message, optional, boxed, tag = "2")]
    pub dense1_w: OptLayer,
    #[prost(message, optional, boxed, tag = "3")]
    pub dense1_b: OptLayer,
    #[prost(message, optional, boxed, tag = "4")]
    pub ln1_gammas: OptLayer,
    #[prost(message, optional, boxed, tag = "5")]
    pub ln1_betas: OptLayer,
    #[prost(message, optional, boxed, tag = "6")]
    pub dense2_w: OptLayer,
    #[prost(message, optional, boxed, tag = "7")]
    pub dense2_b: OptLayer,
    #[prost(message, optional, boxed, tag = "8")]
    pub ln2_gammas: OptLayer,
    #[prost(message, optional, boxed, tag = "9")]
    pub ln2_betas: OptLayer,
}

#[derive(Clone, PartialEq, Message)]
pub struct Mha {
    #[prost(message, optional, boxed, tag = "1")]
    pub q_w: OptLayer,
    #[prost(message, optional, boxed, tag = "2")]
    pub q_b: OptLayer,
    #[prost(message, optional, boxed, tag = "3")]
    pub k_w: OptLayer,
    #[prost(message, optional, boxed, tag = "4")]
    pub k_b: OptLayer,
    #[prost(message, optional, boxed, tag = "5")]
    pub v_w: OptLayer,
    #[prost(message, optional, boxed, tag = "6")]
    pub v_b: OptLayer,
    #[prost(message, optional, boxed, tag = "7")]
    pub dense_w: OptLayer,
    #[prost(message, optional, boxed, tag = "8")]
    pub dense_b: OptLayer,
    #[prost(message, optional, boxed, tag = "9")]
    pub smolgen: Option<Box<Smolgen>>,
    #[prost(message, optional, boxed, tag = "10")]
    pub rpe_q: OptLayer,
    #[prost(message, optional, boxed, tag = "11")]
    pub rpe_k: OptLayer,
    #[prost(message, optional, boxed, tag = "12")]
    pub rpe_v: OptLayer,
}

#[derive(Clone, PartialEq, Message)]
pub struct Ffn {
    #[prost(message, optional, boxed, tag = "1")]
    pub dense1_w: OptLayer,
    #[prost(message, optional, boxed, tag = "2")]
    pub dense1_b: OptLayer,
    #[prost(message, optional, boxed, tag = "3")]
    pub dense2_w: OptLayer,
    #[prost(message, optional, boxed, tag = "4")]
    pub dense2_b: OptLayer,
}

#[derive(Clone, PartialEq, Message)]
pub struct EncoderLayer {
    #[prost(message, optional, boxed, tag = "1")]
    pub mha: Option<Box<Mha>>,
    #[prost(message, optional, boxed, tag = "2")]
    pub ln1_gammas: OptLayer,
    #[prost(message, optional, boxed, tag = "3")]
    pub ln1_betas: OptLayer,
    #[prost(message, optional, boxed, tag = "4")]
    pub ffn: Option<Box<Ffn>>,
    #[prost(message, optional, boxed, tag = "5")]
    pub ln2_gammas: OptLayer,
    #[prost(message, optional, boxed, tag = "6")]
    pub ln2_betas: OptLayer,
}

#[derive(Clone, PartialEq, Message)]
pub struct PolicyHead {
    #[prost(message, optional, boxed, tag = "1")]
    pub ip_pol_w: OptLayer,
    #[prost(message, optional, boxed, tag = "2")]
    pub ip_pol_b: OptLayer,
    #[prost(message, optional, boxed, tag = "3")]
    pub ip2_pol_w: OptLayer,
    #[prost(message, optional, boxed, tag = "4")]
    pub ip2_pol_b: OptLayer,
    #[prost(message, optional, boxed, tag = "5")]
    pub ip3_pol_w: OptLayer,
    #[prost(message, optional, boxed, tag = "6")]
    pub ip3_pol_b: OptLayer,
    #[prost(message, optional, boxed, tag = "7")]
    pub ip4_pol_w: OptLayer,
    #[prost(message, repeated, tag = "8")]
    pub pol_encoder: Vec<EncoderLayer>,
    #[prost(uint32, optional, tag = "9")]
    pub pol_headcount: Option<u32>,
    #[prost(message, optional, boxed, tag = "10")]
    pub policy1: Option<Box<ConvBlock>>,
    #[prost(message, optional, boxed, tag = "11")]
    pub policy: Option<Box<ConvBlock>>,
}

#[derive(Clone, PartialEq, Message)]
pub struct PolicyHeads {
    #[prost(message, optional, boxed, tag = "1")]
    pub ip_pol_w: OptLayer,
    #[prost(message, optional, boxed, tag = "2")]
    pub ip_pol_b: OptLayer,
    #[prost(message, optional, boxed, tag = "3")]
    pub vanilla: Option<Box<PolicyHead>>,
    #[prost(message, optional, boxed, tag = "4")]
    pub optimistic: Option<Box<PolicyHead>>,
    #[prost(message, optional, boxed, tag = "5")]
    pub soft: Option<Box<PolicyHead>>,
    #[prost(message, optional, boxed, tag = "6")]
    pub opponent: Option<Box<PolicyHead>>,
}

#[derive(Clone, PartialEq, Message)]
pub struct ValueHead {
    #[prost(message, optional, boxed, tag = "1")]
    pub ip_val_w: OptLayer,
    #[prost(message, optional, boxed, tag = "2")]
    pub ip_val_b: OptLayer,
    #[prost(message, optional, boxed, tag = "3")]
    pub ip1_val_w: OptLayer,
    #[prost(message, optional, boxed, tag = "4")]
    pub ip1_val_b: OptLayer,
    #[prost(message, optional, boxed, tag = "5")]
    pub ip2_val_w: OptLayer,
    #[prost(message, optional, boxed, tag = "6")]
    pub ip2_val_b: OptLayer,
    #[prost(message, optional, boxed, tag = "11")]
    pub value: Option<Box<ConvBlock>>,
}

#[derive(Clone, PartialEq, Message)]
pub struct ValueHeads {
    #[prost(message, optional, boxed, tag = "1")]
    pub winner: Option<Box<ValueHead>>,
    #[prost(message, optional, boxed, tag = "2")]
    pub q: Option<Box<ValueHead>>,
    #[prost(message, optional, boxed, tag = "3")]
    pub st: Option<Box<ValueHead>>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Weights {
    #[prost(message, optional, boxed, tag = "1")]
    pub input: Option<Box<ConvBlock>>,
    #[prost(message, repeated, tag = "2")]
    pub residual: Vec<Residual>,
    #[prost(message, optional, boxed, tag = "3")]
    pub policy: Option<Box<ConvBlock>>,
    #[prost(message, optional, boxed, tag = "4")]
    pub ip_pol_w: OptLayer,
    #[prost(message, optional, boxed, tag = "5")]
    pub ip_pol_b: OptLayer,
    #[prost(message, optional, boxed, tag = "6")]
    pub value: Option<Box<ConvBlock>>,
    #[prost(message, optional, boxed, tag = "7")]
    pub ip1_val_w: OptLayer,
    #[prost(message, optional, boxed, tag = "8")]
    pub ip1_val_b: OptLayer,
    #[prost(message, optional, boxed, tag = "9")]
    pub ip2_val_w: OptLayer,
    #[prost(message, optional, boxed, tag = "10")]
    pub ip2_val_b: OptLayer,
    #[prost(message, optional, boxed, tag = "11")]
    pub policy1: Option<Box<ConvBlock>>,
    #[prost(message, optional, boxed, tag = "12")]
    pub moves_left: Option<Box<ConvBlock>>,
    #[prost(message, optional, boxed, tag = "13")]
    pub ip1_mov_w: OptLayer,
    #[prost(message, optional, boxed, tag = "14")]
    pub ip1_mov_b: OptLayer,
    #[prost(message, optional, boxed, tag = "15")]
    pub ip2_mov_w: OptLayer,
    #[prost(message, optional, boxed, tag = "16")]
    pub ip2_mov_b: OptLayer,
    #[prost(message, optional, boxed, tag = "17")]
    pub ip2_pol_w: OptLayer,
    #[prost(message, optional, boxed, tag = "18")]
    pub ip2_pol_b: OptLayer,
    #[prost(message, optional, boxed, tag = "19")]
    pub ip3_pol_w: OptLayer,
    #[prost(message, optional, boxed, tag = "20")]
    pub ip3_pol_b: OptLayer,
    #[prost(message, repeated, tag = "21")]
    pub pol_encoder: Vec<EncoderLayer>,
    #[prost(message, optional, boxed, tag = "22")]
    pub ip4_pol_w: OptLayer,
    #[prost(uint32, optional, tag = "24")]
    pub pol_headcount: Option<u32>,
    #[prost(message, optional, boxed, tag = "25")]
    pub ip_emb_w: OptLayer,
    #[prost(message, optional, boxed, tag = "26")]
    pub ip_emb_b: OptLayer,
    #[prost(message, repeated, tag = "27")]
    pub encoder: Vec<EncoderLayer>,
    #[prost(uint32, optional, tag = "28")]
    pub headcount: Option<u32>,
    #[prost(message, optional, boxed, tag = "29")]
    pub ip_val_w: OptLayer,
    #[prost(message, optional, boxed, tag = "30")]
    pub ip_val_b: OptLayer,
    #[prost(message, optional, boxed, tag = "31")]
    pub ip_mov_w: OptLayer,
    #[prost(message, optional, boxed, tag = "32")]
    pub ip_mov_b: OptLayer,
    #[prost(message, optional, boxed, tag = "33")]
    pub ip_mult_gate: OptLayer,
    #[prost(message, optional, boxed, tag = "34")]
    pub ip_add_gate: OptLayer,
    #[prost(message, optional, boxed, tag = "35")]
    pub smolgen_w: OptLayer,
    #[prost(message, optional, boxed, tag = "37")]
    pub ip_emb_preproc_w: OptLayer,
    #[prost(message, optional, boxed, tag = "38")]
    pub ip_emb_preproc_b: OptLayer,
    #[prost(message, optional, boxed, tag = "39")]
    pub ip_emb_ln_gammas: OptLayer,
    #[prost(message, optional, boxed, tag = "40")]
    pub ip_emb_ln_betas: OptLayer,
    #[prost(message, optional, boxed, tag = "41")]
    pub ip_emb_ffn: Option<Box<Ffn>>,
    #[prost(message, optional, boxed, tag = "42")]
    pub ip_emb_ffn_ln_gammas: OptLayer,
    #[prost(message, optional, boxed, tag = "43")]
    pub ip_emb_ffn_ln_betas: OptLayer,
    #[prost(message, optional, boxed, tag = "44")]
    pub value_heads: Option<Box<ValueHeads>>,
    #[prost(message, optional, boxed, tag = "45")]
    pub policy_heads: Option<Box<PolicyHeads>>,
}
