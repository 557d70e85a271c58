//! A program again, in a process of its own whose time and memory nobody shares: it takes orders, a line each, and gives an
//! answer to each.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use tokio::sync::mpsc;

/// What the lines begin with that are an answer: the harness of tests writes lines as well.
const ANSWER: &str = "answer: ";

/// Such a process. Ends with this value.
pub(crate) struct Commanded {
    child: Child,
    orders: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Commanded {
    /// This program with other arguments, and its first answer, which nobody has asked for.
    pub(crate) fn start(arguments: &[&str]) -> (Self, String) {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (orders, answers) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let mut commanded = Self { child, orders, answers: BufReader::new(answers) };
        let first = commanded.read();
        (commanded, first)
    }

    fn read(&mut self) -> String {
        loop {
            let mut line = String::new();
            assert_ne!(self.answers.read_line(&mut line).unwrap(), 0, "the process has ended");
            if let Some((_, answer)) = line.trim().split_once(ANSWER) {
                return answer.to_owned();
            }
        }
    }

    pub(crate) fn ask(&mut self, order: &str) -> String {
        writeln!(self.orders, "{order}").unwrap();
        self.read()
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Commanded {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// In such a process: gives an answer.
pub(crate) fn answer(answer: &str) {
    let mut out = std::io::stdout();
    writeln!(out, "{ANSWER}{answer}").unwrap();
    out.flush().unwrap();
}

/// In such a process: the orders, by a thread that waits for them and takes no time.
pub(crate) fn orders() -> mpsc::Receiver<String> {
    let (sender, orders) = mpsc::channel(1);
    std::thread::spawn(move || {
        for line in std::io::stdin().lines() {
            if sender.blocking_send(line.unwrap_or_default()).is_err() {
                break;
            }
        }
    });
    orders
}
