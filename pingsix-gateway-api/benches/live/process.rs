//! The resources of a process, from `/proc`.

use std::fs;
use std::time::Duration;

/// Clock ticks a second, on every Linux of our time.
const TICKS_PER_SECOND: u64 = 100;

/// Processor time of a process, user and system.
pub(crate) fn cpu(pid: u32) -> Duration {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    // The name may hold anything; what follows its parenthesis starts with the third field.
    let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
    let ticks: u64 = fields[11..13].iter().map(|ticks| ticks.parse::<u64>().unwrap()).sum();
    Duration::from_millis(ticks * 1000 / TICKS_PER_SECOND)
}

/// The resident memory of a process, in bytes.
pub(crate) struct Memory {
    pub(crate) resident: u64,
    /// The maximum since the process started.
    pub(crate) peak: u64,
}

pub(crate) fn memory(pid: u32) -> Memory {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let bytes = |field: &str| {
        let value = status.lines().find_map(|line| line.strip_prefix(field)).unwrap();
        value.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
    };
    Memory { resident: bytes("VmRSS:"), peak: bytes("VmHWM:") }
}
