//! The work of `migrate` and `check` grows in proportion to the input. Allocations count the work, because times differ from
//! run to run.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test that says what it measures")]

mod shapes;

use std::ffi::OsString;

use pingsix_gatewayctl::{Program, main_with};
use shapes::{apisix, long_ingress, rivals, routes, shared_host, tenants};

#[global_allocator]
static ALLOCATOR: dhat::Alloc = dhat::Alloc;

/// The least number of Ingresses, paths or names.
const MIN_COUNT: usize = 20;

/// The most growth for the second doubling of the input, as a multiple of that for the first one. Work in proportion to the input
/// has twice the growth, and work in proportion to its square four times.
const MAX_GROWTH_RATIO: u64 = 3;

/// Beyond these allocations and bytes, the growth is that of the input, and not of tables that double.
const NOISE: [u64; 2] = [2_000, 200_000];

/// An input of a size.
type Shape = fn(usize) -> String;

/// The allocations of a command, and their bytes.
fn work(command: &[&str], input: &str) -> [u64; 2] {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("input.yaml");
    std::fs::write(&file, input).unwrap();
    let arguments = std::iter::once("pingsix-gatewayctl").chain(command.iter().copied()).map(OsString::from);
    let arguments: Vec<OsString> = arguments.chain([file.into_os_string()]).collect();
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let profiler = dhat::Profiler::builder().testing().trim_backtraces(Some(0)).build();
    let _ = main_with(Program::Gatewayctl, arguments, &mut out, &mut err);
    let stats = dhat::HeapStats::get();
    drop(profiler);
    assert!(!out.is_empty(), "{}", String::from_utf8_lossy(&err));
    [stats.total_blocks, stats.total_bytes]
}

#[test]
fn the_work_is_in_proportion_to_the_input() {
    let shapes: [(&str, Shape); 6] = [
        ("tenants", tenants),
        ("shared host", shared_host),
        ("long Ingress", long_ingress),
        ("rivals", rivals),
        ("APISIX", apisix),
        ("routes", routes),
    ];
    let commands: [&[&str]; 3] = [&["migrate"], &["migrate", "--keep-ingress", "--all"], &["check"]];
    for (name, shape) in shapes {
        for command in commands {
            // The first run makes what the process keeps.
            let _ = work(command, &shape(1));
            let [small, middle, large] = [1, 2, 4].map(|times| work(command, &shape(MIN_COUNT * times)));
            for (unit, noise) in NOISE.iter().enumerate() {
                let (first, second) = (middle[unit] - small[unit], large[unit] - middle[unit]);
                println!("| {name} | {} | {} | {} | {} |", command.join(" "), small[unit], first, second);
                assert!(
                    second <= first * MAX_GROWTH_RATIO + noise,
                    "{} of {name}: {} to {} to {}",
                    command.join(" "),
                    small[unit],
                    middle[unit],
                    large[unit]
                );
            }
        }
    }
}
