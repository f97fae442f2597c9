//! One child process as a stream of lines with time stamps. Knows pipes, threads and signals, and
//! not a word of UCI beyond `quit`.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crossbeam::channel::{self, Receiver, RecvTimeoutError, Sender};
use parking_lot::Mutex;

use super::error::ClientError;

/// Longest line kept; the rest of a longer one is read and dropped.
const MAX_LINE_BYTES: u64 = 64 * 1024;
/// Lines that may wait unread before the child is made to wait.
const MAX_LINES: usize = 1 << 16;
/// Lines of standard error kept for messages.
const STDERR_LINES: usize = 8;
/// How often a wait for the process' end looks again.
const POLL: Duration = Duration::from_millis(2);

/// One line of the child's output and when it was read.
#[derive(Debug)]
pub(super) struct Line {
    pub at: Instant,
    pub text: String,
}

/// A running child; killed with its process group and reaped when dropped.
#[derive(Debug)]
pub(super) struct Process {
    child: Child,
    input: Option<Sender<String>>,
    output: Receiver<Line>,
    stderr: Arc<Mutex<VecDeque<String>>>,
    /// Disconnected when standard error has been read to its end.
    stderr_open: Receiver<()>,
}

impl Process {
    /// Starts the program in a process group of its own (a Ctrl-C in the terminal is ours alone).
    pub fn spawn(
        program: &Path,
        args: &[String],
        dir: Option<&Path>,
        env: &[(String, String)],
    ) -> Result<Self, ClientError> {
        let failed = |source| ClientError::Spawn {
            command: program.to_owned(),
            source,
        };
        let mut command = Command::new(program);
        command
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command.envs(env.iter().map(|(key, value)| (key, value)));
        if let Some(dir) = dir {
            command.current_dir(dir);
        }
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let mut child = command.spawn().map_err(failed)?;

        let (input, lines_in) = channel::unbounded::<String>();
        let (lines_out, output) = channel::bounded(MAX_LINES);
        let stderr = Arc::new(Mutex::new(VecDeque::new()));
        let (open, stderr_open) = channel::bounded::<()>(0);
        let mut threads: Vec<Box<dyn FnOnce() + Send>> = Vec::new();
        if let Some(pipe) = child.stdin.take() {
            threads.push(Box::new(move || write_lines(pipe, &lines_in)));
        }
        if let Some(pipe) = child.stdout.take() {
            threads.push(Box::new(move || {
                read_lines(pipe, |at, text| lines_out.send(Line { at, text }).is_ok());
            }));
        }
        if let Some(pipe) = child.stderr.take() {
            let kept = Arc::clone(&stderr);
            threads.push(Box::new(move || {
                let _open = open;
                read_lines(pipe, |_, text| {
                    let mut kept = kept.lock();
                    if kept.len() == STDERR_LINES {
                        kept.pop_front();
                    }
                    kept.push_back(text);
                    true
                });
            }));
        }
        let mut process = Self {
            child,
            input: Some(input),
            output,
            stderr,
            stderr_open,
        };
        for thread in threads {
            // The threads end by themselves when the pipes close; nobody waits for them, since a
            // grandchild may hold a pipe open for ever.
            if let Err(source) = std::thread::Builder::new()
                .name("engine pipe".into())
                .spawn(thread)
            {
                process.kill();
                return Err(failed(source));
            }
        }
        Ok(process)
    }

    /// Queues a line for the child; false if its input is closed.
    pub fn send(&self, line: &str) -> bool {
        self.input
            .as_ref()
            .is_some_and(|input| input.send(line.to_owned()).is_ok())
    }

    /// The next line, waiting until `deadline` at most.
    pub fn receive(&self, deadline: Instant) -> Result<Line, RecvTimeoutError> {
        self.output.recv_deadline(deadline)
    }

    /// A line that is there already.
    pub fn try_receive(&self) -> Option<Line> {
        self.output.try_recv().ok()
    }

    /// The exit status if the process ends before `deadline`.
    pub fn wait_exit(&mut self, deadline: Instant) -> Option<ExitStatus> {
        loop {
            if let Ok(Some(status)) = self.child.try_wait() {
                return Some(status);
            }
            if Instant::now() >= deadline {
                return None;
            }
            std::thread::sleep(POLL);
        }
    }

    /// The last lines of standard error, joined; of a process that has ended, all of them, unless
    /// another process holds the pipe open until `deadline`.
    pub fn stderr(&self, deadline: Instant) -> String {
        let _ = self.stderr_open.recv_deadline(deadline);
        Vec::from(self.stderr.lock().clone()).join(" | ")
    }

    /// Closes the child's input.
    pub fn close_input(&mut self) {
        self.input = None;
    }

    /// Kills the child's process group, unless it has ended, and reaps it.
    pub fn kill(&mut self) {
        if matches!(self.child.try_wait(), Ok(Some(_))) {
            return;
        }
        #[cfg(unix)]
        if let Ok(group) = i32::try_from(self.child.id()) {
            let _ = nix::sys::signal::killpg(
                nix::unistd::Pid::from_raw(group),
                nix::sys::signal::Signal::SIGKILL,
            );
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

fn write_lines(mut pipe: impl Write, lines: &Receiver<String>) {
    for mut line in lines {
        line.push('\n');
        if pipe
            .write_all(line.as_bytes())
            .and_then(|()| pipe.flush())
            .is_err()
        {
            return;
        }
    }
}

/// Hands each line on, without its end and as UTF-8 as far as it is, until the pipe ends or the
/// receiver says stop.
fn read_lines(pipe: impl Read, mut hand_on: impl FnMut(Instant, String) -> bool) {
    let mut pipe = BufReader::new(pipe);
    let mut bytes = Vec::new();
    loop {
        bytes.clear();
        match (&mut pipe)
            .take(MAX_LINE_BYTES)
            .read_until(b'\n', &mut bytes)
        {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        let at = Instant::now();
        if !hand_on(at, String::from_utf8_lossy(&bytes).trim().to_owned()) {
            return;
        }
        // The tail of an overlong line is no line of its own.
        while bytes.last() != Some(&b'\n') {
            bytes.clear();
            match (&mut pipe)
                .take(MAX_LINE_BYTES)
                .read_until(b'\n', &mut bytes)
            {
                Ok(0) | Err(_) => return,
                Ok(_) => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_and_broken_lines() {
        let mut text = vec![b'x'; 3 * MAX_LINE_BYTES as usize];
        text.extend_from_slice(b"\n\xff\xfe ok \r\nlast");
        let mut lines = Vec::new();
        read_lines(&text[..], |_, line| {
            lines.push(line);
            true
        });
        assert_eq!(lines.len(), 3);
        assert_eq!(lines[0].len(), MAX_LINE_BYTES as usize);
        assert!(lines[1].ends_with("ok"));
        assert_eq!(lines[2], "last");
    }
}
