//! Build settings that Cargo cannot express: where the binary finds libtorch at run time, whether it is
//! linked to CUDA, and which network file is embedded. It downloads nothing (see `make libtorch`).

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed=LIBTORCH");
    println!("cargo:rerun-if-env-changed=SIMURGH_CUDA");
    println!("cargo:rerun-if-env-changed=EVALFILE");
    if let Some(libtorch) = env::var_os("LIBTORCH") {
        let lib = absolute(Path::new(&libtorch)).join("lib");
        println!("cargo:rustc-link-arg=-Wl,-rpath,{}", lib.display());
        let wheels = lib.join("../../nvidia");
        if wheels.is_dir() {
            println!("cargo:rerun-if-changed={}", wheels.display());
        }
        link_cuda(&lib);
    }
    embed_network();
    name_revision();
}

/// The commit, for the manifests of networks that are trained. Outside a repository there is none.
fn name_revision() {
    let git = |arguments: &[&str]| {
        let output = Command::new("git").args(arguments).output().ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        output.status.success().then(|| text.trim().to_owned())
    };
    // It changes with every commit.
    if let Some(log) =
        git(&["rev-parse", "--git-path", "logs/HEAD"]).filter(|log| Path::new(log).is_file())
    {
        println!("cargo:rerun-if-changed={log}");
    }
    if let Some(revision) = git(&["rev-parse", "HEAD"]) {
        println!("cargo:rustc-env=SIMURGH_REVISION={revision}");
    }
}

/// Makes the binary need `libtorch_cuda.so`, which registers the CUDA kernels and from which no symbol
/// is called: without this the linker drops it and CUDA is silently absent. The wheel carries that
/// library in a CPU set-up too, where its own libraries are missing and the binary would not start, so
/// cuBLAS decides. `SIMURGH_CUDA=0` or `1` overrides.
fn link_cuda(lib: &Path) {
    let wanted = match env::var("SIMURGH_CUDA").as_deref() {
        Ok("0") => false,
        Ok("1") => true,
        _ => {
            has_library(lib, "libcublas.")
                || nvidia_wheels(lib).any(|dir| has_library(&dir, "libcublas."))
        }
    };
    if wanted && lib.join("libtorch_cuda.so").exists() {
        println!("cargo:rustc-link-arg=-L{}", lib.display());
        println!("cargo:rustc-link-arg=-Wl,--no-as-needed");
        println!("cargo:rustc-link-arg=-ltorch_cuda");
        println!("cargo:rustc-link-arg=-Wl,--as-needed");
    }
}

/// The `lib` folders of NVIDIA's wheels, installed beside the `torch` package that holds `lib`.
fn nvidia_wheels(lib: &Path) -> impl Iterator<Item = PathBuf> {
    let wheels = lib.join("../../nvidia");
    fs::read_dir(wheels)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path().join("lib"))
}

fn has_library(dir: &Path, prefix: &str) -> bool {
    fs::read_dir(dir)
        .into_iter()
        .flatten()
        .flatten()
        .any(|entry| entry.file_name().to_string_lossy().starts_with(prefix))
}

/// Writes `embedded.rs` for `include!`: an expression of type `Option<(&str, &[u8])>`, the file name and
/// the bytes of the network named by `EVALFILE`, else of the one in `nets` that is called `embedded`.
fn embed_network() {
    let nets = absolute(Path::new("nets"));
    println!("cargo:rerun-if-changed={}", nets.display());
    let default = ["embedded.safetensors", "embedded.pb.gz"]
        .into_iter()
        .map(|name| nets.join(name))
        .find(|file| file.is_file());
    let file = match env::var_os("EVALFILE").filter(|name| !name.is_empty()) {
        Some(name) => {
            let file = absolute(Path::new(&name));
            if !file.is_file() {
                println!(
                    "cargo:error=EVALFILE={}: there is no such file",
                    file.display()
                );
            }
            println!("cargo:rerun-if-changed={}", file.display());
            Some(file)
        }
        None => default,
    };
    let text = match file {
        Some(file) => {
            let name = file
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            format!(
                "Some(({name:?}, include_bytes!({:?}) as &[u8]))",
                file.display().to_string()
            )
        }
        None => "None".to_string(),
    };
    let out = env::var_os("OUT_DIR")
        .map(PathBuf::from)
        .unwrap_or_default()
        .join("embedded.rs");
    if let Err(error) = fs::write(&out, text) {
        println!("cargo:error={}: {error}", out.display());
    }
}

fn absolute(path: &Path) -> PathBuf {
    let root = env::var_os("CARGO_MANIFEST_DIR")
        .map(PathBuf::from)
        .unwrap_or_default();
    root.join(path)
}
