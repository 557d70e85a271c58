//! What a process has used, from `/proc`.

use std::fs;
use std::time::Duration;

fn of_status(pid: u32, field: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let value = status.lines().find_map(|line| line.strip_prefix(field)).unwrap();
    value.trim_start_matches(':').trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}

/// The memory that it has resident, in bytes.
pub(crate) fn memory(pid: u32) -> u64 {
    of_status(pid, "VmRSS")
}

/// The most that it had resident since that was [forgotten](forget_peak).
pub(crate) fn peak_memory(pid: u32) -> u64 {
    of_status(pid, "VmHWM")
}

/// Counts the peak from now on.
pub(crate) fn forget_peak(pid: u32) {
    fs::write(format!("/proc/{pid}/clear_refs"), "5").unwrap();
}

/// The time that its first thread has spent on a processor.
pub(crate) fn time(pid: u32) -> Duration {
    let counts = fs::read_to_string(format!("/proc/{pid}/schedstat")).unwrap();
    Duration::from_nanos(counts.split(' ').next().unwrap().parse().unwrap())
}
