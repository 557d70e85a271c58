//! This program again as a child process, whose time and memory can be measured: it reads commands, one per line, and
//! answers each.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use tokio::sync::mpsc;

/// Prefix of the answers, because the test harness writes lines as well.
const ANSWER_PREFIX: &str = "answer: ";

/// The child process. Ends with this value.
pub(crate) struct ChildServer {
    child: Child,
    commands: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl ChildServer {
    /// Starts this program with other arguments, and returns its first line, which precedes all commands.
    pub(crate) fn start(arguments: &[&str]) -> (Self, String) {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (commands, answers) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let mut child_process = Self { child, commands, answers: BufReader::new(answers) };
        let first = child_process.read();
        (child_process, first)
    }

    fn read(&mut self) -> String {
        loop {
            let mut line = String::new();
            assert_ne!(self.answers.read_line(&mut line).unwrap(), 0, "the process has ended");
            if let Some((_, answer)) = line.trim().split_once(ANSWER_PREFIX) {
                return answer.to_owned();
            }
        }
    }

    pub(crate) fn request(&mut self, command: &str) -> String {
        writeln!(self.commands, "{command}").unwrap();
        self.read()
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for ChildServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// In the child process: writes an answer.
pub(crate) fn answer(answer: &str) {
    let mut out = std::io::stdout();
    writeln!(out, "{ANSWER_PREFIX}{answer}").unwrap();
    out.flush().unwrap();
}

/// In the child process: the commands, from a thread that blocks on its input.
pub(crate) fn commands() -> mpsc::Receiver<String> {
    let (sender, commands) = mpsc::channel(1);
    std::thread::spawn(move || {
        for line in std::io::stdin().lines() {
            if sender.blocking_send(line.unwrap_or_default()).is_err() {
                break;
            }
        }
    });
    commands
}
