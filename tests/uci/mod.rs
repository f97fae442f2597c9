//! UCI transcripts against the real program, on backends without a network. Timing is tested only
//! where a promise names a time, and then with room for a loaded machine.

mod check;
mod go;
mod gui;
mod handshake;
mod network;
mod options;
mod position;
mod random;
mod shell;
