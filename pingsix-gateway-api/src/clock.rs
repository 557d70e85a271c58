//! Two clocks: the time of day, for display only (transition times, renewals, events); and a clock that decides about
//! leases.

use std::fmt;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use jiff::Timestamp;
use rustix::time::{ClockId, clock_gettime};
use tokio::time::Instant;

/// Tells the time of day.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> Timestamp + Send + Sync>);

impl Clock {
    /// A clock of one's own.
    pub fn new(now: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        Self(Arc::new(now))
    }

    /// The time.
    pub fn now(&self) -> Timestamp {
        (self.0)()
    }
}

impl Default for Clock {
    /// The clock of the machine.
    fn default() -> Self {
        Self::new(Timestamp::now)
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Clock").field(&self.now()).finish()
    }
}

/// Tells how much time has passed, the time included for which the machine was suspended. Leases are judged by it.
///
/// [`Instant`] is `CLOCK_MONOTONIC` on Linux, which stands still while a machine is suspended: to a holder that wakes up,
/// its lease would seem to be as fresh as before, though others have long taken it.
///
/// Its times are [`Instant`]s of its own scale: comparable with each other, and no times to sleep until.
#[derive(Clone)]
pub struct LeaseClock(Arc<dyn Fn() -> Instant + Send + Sync>);

impl LeaseClock {
    /// A clock of one's own, for tests.
    pub fn new(now: impl Fn() -> Instant + Send + Sync + 'static) -> Self {
        Self(Arc::new(now))
    }

    /// The clock of tokio, which stands still while the machine is suspended, and goes with the paused time of tests.
    pub fn of_tokio() -> Self {
        Self::new(Instant::now)
    }

    /// The time.
    pub fn now(&self) -> Instant {
        (self.0)()
    }

    /// The time from now until then.
    pub fn until(&self, at: Instant) -> Duration {
        at.saturating_duration_since(self.now())
    }
}

impl Default for LeaseClock {
    /// The clock of the machine: `CLOCK_BOOTTIME` on Linux.
    fn default() -> Self {
        // All clocks of a process have one scale.
        static BEGIN: LazyLock<(Instant, Duration)> = LazyLock::new(|| (Instant::now(), since_boot()));
        Self::new(|| {
            let (instant, begin) = *BEGIN;
            instant + since_boot().saturating_sub(begin)
        })
    }
}

impl fmt::Debug for LeaseClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LeaseClock").field(&self.now()).finish()
    }
}

/// The processor time that the current thread has used.
pub(crate) fn thread_time() -> Duration {
    time_of(ClockId::ThreadCPUTime)
}

/// The time since the machine was started, suspended or not.
fn since_boot() -> Duration {
    // That of macOS goes on while the machine sleeps, and is called otherwise.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    const CLOCK: ClockId = ClockId::Boottime;
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    const CLOCK: ClockId = ClockId::Monotonic;
    time_of(CLOCK)
}

fn time_of(clock: ClockId) -> Duration {
    let time = clock_gettime(clock);
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_sleeps_uses_no_processor_time() {
        let before = thread_time();
        std::thread::sleep(Duration::from_millis(50));
        assert!(thread_time().saturating_sub(before) < Duration::from_millis(25));
    }

    #[test]
    fn the_clock_of_leases_is_that_of_the_machine_since_its_start() {
        let clock = LeaseClock::default();
        let (begin, boot) = (clock.now(), since_boot());
        std::thread::sleep(Duration::from_millis(20));
        let (passed, booted) = (clock.now() - begin, since_boot().saturating_sub(boot));
        assert!(passed >= Duration::from_millis(20));
        assert!(passed.abs_diff(booted) < Duration::from_secs(1), "{passed:?} {booted:?}");
        #[cfg(target_os = "linux")]
        {
            let uptime = std::fs::read_to_string("/proc/uptime").unwrap();
            let seconds: f64 = uptime.split_whitespace().next().unwrap().parse().unwrap();
            assert!((since_boot().as_secs_f64() - seconds).abs() < 5.0, "uptime counts suspension");
        }
    }
}
