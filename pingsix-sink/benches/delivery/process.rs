//! Resource usage of a process from `/proc`.

use std::fs;
use std::time::Duration;

fn status_field(pid: u32, field: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let value = status.lines().find_map(|line| line.strip_prefix(field)).unwrap();
    value.trim_start_matches(':').trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}

/// The resident memory in bytes.
pub(crate) fn memory(pid: u32) -> u64 {
    status_field(pid, "VmRSS")
}

/// The peak resident memory since it was [reset](reset_peak), in bytes.
pub(crate) fn peak_memory(pid: u32) -> u64 {
    status_field(pid, "VmHWM")
}

/// Resets the peak.
pub(crate) fn reset_peak(pid: u32) {
    fs::write(format!("/proc/{pid}/clear_refs"), "5").unwrap();
}

/// The processor time of its first thread.
pub(crate) fn time(pid: u32) -> Duration {
    let counts = fs::read_to_string(format!("/proc/{pid}/schedstat")).unwrap();
    Duration::from_nanos(counts.split(' ').next().unwrap().parse().unwrap())
}
