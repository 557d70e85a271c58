//! Processes with a processor of their own, and their resources from `/proc`.

use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

/// The first argument of this program when it is a load.
pub(crate) const LOAD_ARGUMENT: &str = "load";
/// Clock ticks in a second, on all current Linux systems.
const TICKS_PER_SECOND: f64 = 100.0;
/// The time after which a tool is ended, besides the time of the measurement.
const MAX_OVERHEAD: Duration = Duration::from_secs(30);

/// A processor.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Processor {
    /// The one of the proxies.
    Proxy,
    /// The one of loads and backends.
    Load,
}

/// A command that runs on one processor.
pub(crate) fn pinned(processor: Processor, program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new("taskset");
    let list = match processor {
        Processor::Proxy => "0",
        Processor::Load => "1",
    };
    command.args(["--cpu-list", list]).arg(program).stdin(Stdio::null());
    command
}

/// Runs a tool on the processor of loads, and returns its output.
pub(crate) fn tool(program: impl AsRef<OsStr>, arguments: &[&str]) -> String {
    let seconds = (crate::duration() + MAX_OVERHEAD).as_secs().to_string();
    let output = Command::new("timeout")
        .args([&seconds, "taskset", "--cpu-list", "1"])
        .arg(program)
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{arguments:?}: {text}{}", String::from_utf8_lossy(&output.stderr));
    text
}

/// A process, with the processes that it has started. Ends with this value.
#[derive(Debug)]
pub(crate) struct Process(Child);

impl Process {
    pub(crate) fn start(command: &mut Command) -> Self {
        Self(command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}")))
    }

    fn pids(&self) -> Vec<u32> {
        let pid = self.0.id();
        let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
        [pid].into_iter().chain(children.split_whitespace().map(|pid| pid.parse().unwrap())).collect()
    }

    /// The processor time in seconds, user and system.
    pub(crate) fn cpu(&self) -> f64 {
        self.pids().into_iter().map(cpu).sum()
    }

    /// The resident memory in bytes.
    pub(crate) fn memory(&self) -> f64 {
        self.pids().into_iter().map(memory).sum()
    }

    /// Makes the process read its configuration again.
    pub(crate) fn reload(&self) {
        kill_process(Pid::from_child(&self.0), Signal::HUP).unwrap();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let children = self.pids().split_off(1);
        // The first process goes first, because it would start the others again.
        let _ = self.0.kill();
        let _ = self.0.wait();
        for pid in children.into_iter().filter_map(|pid| Pid::from_raw(pid.try_into().unwrap())) {
            let _ = kill_process(pid, Signal::KILL);
        }
    }
}

fn cpu(pid: u32) -> f64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    // The name can hold anything; the third field follows its parenthesis.
    let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
    fields[11..13].iter().map(|ticks| ticks.parse::<f64>().unwrap()).sum::<f64>() / TICKS_PER_SECOND
}

fn memory(pid: u32) -> f64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    resident.trim().trim_end_matches(" kB").parse::<f64>().unwrap() * 1024.0
}

/// This program again, as a load or a backend on the processor of loads. It answers commands, one line each.
pub(crate) struct Load {
    commands: ChildStdin,
    answers: BufReader<ChildStdout>,
    _process: Process,
}

impl Load {
    pub(crate) fn start(name: &str, arguments: &[String]) -> Self {
        let mut command = pinned(Processor::Load, std::env::current_exe().unwrap());
        command.args([LOAD_ARGUMENT, name]).args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = Process::start(&mut command);
        let (commands, answers) = (process.0.stdin.take().unwrap(), process.0.stdout.take().unwrap());
        Self { commands, answers: BufReader::new(answers), _process: process }
    }

    /// The next answer.
    pub(crate) fn answer(&mut self) -> String {
        let mut line = String::new();
        assert_ne!(self.answers.read_line(&mut line).unwrap(), 0, "the load has ended");
        line.trim().to_owned()
    }

    /// The next answer, as numbers.
    pub(crate) fn numbers(&mut self) -> Vec<f64> {
        self.answer().split(' ').map(|number| number.parse().unwrap()).collect()
    }

    pub(crate) fn ask(&mut self, command: &str) -> String {
        writeln!(self.commands, "{command}").unwrap();
        self.answer()
    }
}
