//! The `simurgh` binary: dispatches to [`simurgh::cli`] and nothing else.

fn main() -> std::process::ExitCode {
    simurgh::cli::main()
}
