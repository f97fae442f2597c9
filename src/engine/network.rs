//! Which network is used and how it is brought in: the file asked for, else the one inside the
//! binary, else a stand-in. Refuses to know what a network computes.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::SystemTime;

use crossbeam::channel::{Receiver, bounded};

use crate::eval::{Answer, Backend, Fake};
use crate::model::{self, ModelError, ModelOptions, Source};
use crate::options::Options;

/// What network is wanted: the options that decide it, and which asking this is.
#[derive(Clone)]
pub struct NetworkWish {
    pub options: Arc<Options>,
    /// Grows whenever such an option is set: then a failed load is tried again.
    pub generation: u64,
    /// Another one means that the file was written to.
    pub stamp: FileStamp,
}

/// Time and size of the network file when it was last named; `None` where there is none.
pub type FileStamp = Option<(Option<SystemTime>, u64)>;

/// The stamp of the file that the options name.
pub fn file_stamp(options: &Options) -> FileStamp {
    let Source::File(path) = Source::of_options(options)? else {
        return None;
    };
    let file = path.metadata().ok()?;
    Some((file.modified().ok(), file.len()))
}

impl NetworkWish {
    /// True when both lead to the same backend.
    pub fn same_network(&self, other: &NetworkWish) -> bool {
        let stand_in = |wish: &NetworkWish| fake(&wish.options.backend).is_some();
        if stand_in(self) && stand_in(other) {
            return self.options.backend == other.options.backend;
        }
        let key = |wish: &NetworkWish| {
            let o = &wish.options;
            [
                &o.weights,
                &o.backend,
                &o.device,
                &o.precision,
                &o.policy_head,
                &o.value_head,
            ]
            .into_iter()
            .chain([&o.history_fill])
            .cloned()
            .chain([o.threads.to_string(), o.minibatch_size.to_string()])
            .collect::<Vec<String>>()
        };
        key(self) == key(other) && self.stamp == other.stamp
    }
}

/// Keys of the options that [`NetworkWish::same_network`] reads.
pub const NETWORK_KEYS: [&str; 9] = [
    "weights",
    "backend",
    "device",
    "precision",
    "policy_head",
    "value_head",
    "history_fill",
    "threads",
    "minibatch_size",
];

/// What a load brought.
pub struct Loaded {
    /// `None` where it failed and the network there is stays.
    pub backend: Option<Arc<dyn Backend>>,
    /// What the user should know at once: one line, where something went wrong.
    pub problem: Option<String>,
}

/// The backend that needs no network: material values, equal priors.
pub fn material() -> Arc<dyn Backend> {
    Arc::new(Fake::new(Answer::Material))
}

/// Loads on a thread of its own. With `keep`, a failure leaves the network that is there; else a
/// substitute is found.
pub fn start_loading(wish: NetworkWish, keep: bool) -> Receiver<Loaded> {
    let (sender, receiver) = bounded(1);
    let work = move || {
        let loaded = catch_unwind(AssertUnwindSafe(|| load(&wish.options, keep)));
        let _ = sender.send(loaded.unwrap_or_else(|_| Loaded {
            backend: (!keep).then(material),
            problem: Some("loading the network failed; see stderr".to_owned()),
        }));
    };
    // Where there is no thread to be had the receiver finds nobody at the other end.
    let _ = std::thread::Builder::new()
        .name("load".to_owned())
        .spawn(work);
    receiver
}

fn load(options: &Options, keep: bool) -> Loaded {
    let fine = |backend| Loaded {
        backend: Some(backend),
        problem: None,
    };
    if let Some(answer) = fake(&options.backend) {
        return fine(Arc::new(Fake::new(answer)));
    }
    let Some(source) = Source::of_options(options) else {
        let problem = "no network: WeightsFile is empty and the binary contains none";
        return stand_in(problem.to_owned());
    };
    let error = match open(&source, options) {
        Ok(backend) => return fine(backend),
        Err(error) => error,
    };
    let problem = match &source {
        Source::File(_) => format!("WeightsFile {}: {error}", options.weights),
        Source::Embedded => format!("the network inside the binary: {error}"),
    };
    if keep {
        return Loaded {
            backend: None,
            problem: Some(format!("{problem}; the network used so far stays")),
        };
    }
    let inside = matches!(source, Source::File(_)) && model::embedded().is_some();
    match inside.then(|| open(&Source::Embedded, options)) {
        Some(Ok(backend)) => Loaded {
            backend: Some(backend),
            problem: Some(format!("{problem}; the one inside the binary is used")),
        },
        _ => stand_in(problem),
    }
}

/// What a stand-in of that name answers; `None` for a network.
fn fake(backend: &str) -> Option<Answer> {
    match backend {
        "material" => Some(Answer::Material),
        "uniform" => Some(Answer::Uniform),
        "random" => Some(Answer::Random),
        _ => None,
    }
}

fn open(source: &Source, options: &Options) -> Result<Arc<dyn Backend>, ModelError> {
    model::load_backend(source, &ModelOptions::new(options)?)
}

fn stand_in(problem: String) -> Loaded {
    Loaded {
        backend: Some(material()),
        problem: Some(format!(
            "{problem}; warning: playing by material values alone"
        )),
    }
}
