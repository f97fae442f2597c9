//! Training data and training: records of labelled games, their files, generation. Refuses to know
//! how a trained network is used.

pub mod adamw;
pub mod batch;
pub mod checkpoint;
pub mod chunk;
mod codec;
pub mod config;
mod error;
pub mod games;
pub mod generate;
pub mod gradient;
pub mod kind;
pub mod labels;
pub mod reader;
mod record;
pub mod report;
mod sample;
pub mod trainer;
pub mod v6;

pub use error::TrainError;
pub use record::{GameRecord, Ply, PolicyLabel, Source, WdlLabel};
pub use sample::{MATE_CP, Sample, TrainingGame, win_probability};
