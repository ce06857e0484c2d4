//! How long idle threads spin before they sleep.
//!
//! Waking a thread costs microseconds, or more on a shared processor, and the system may put it on the processor of the
//! thread that wakes it, where it waits although another one is free. A thread that spins uses a processor that others
//! could use. So it spins for as long as the last jobs took, between two bounds: it then wastes at most as much time as the
//! work took, and is ready if launches follow each other as closely as launches of this length do.

use std::time::Duration;

/// The least, which is about as long as waking a thread takes.
const LEAST: Duration = Duration::from_micros(20);

/// The most: threads are asleep soon after the last launch, however long that was.
const MOST: Duration = Duration::from_millis(2);

/// How long threads look on for more work, as the jobs so far have shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Watch(Duration);

impl Watch {
    /// Before the first job.
    pub(super) const fn new() -> Watch {
        Watch(LEAST)
    }

    /// How long it is.
    pub(super) fn time(self) -> Duration {
        self.0
    }

    /// After a job that took so long: as long as that, but at least half of what it was, so that one short job among long
    /// ones sends nobody to sleep.
    pub(super) fn after(self, job: Duration) -> Watch {
        Watch(job.max(self.0 / 2).clamp(LEAST, MOST))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_look_on_for_as_long_as_jobs_take() {
        let micros = |micros| Duration::from_micros(micros);
        let after = |jobs: &[u64]| jobs.iter().fold(Watch::new(), |watch, &job| watch.after(micros(job)));
        assert_eq!(after(&[300]).time(), micros(300));
        assert_eq!(after(&[300, 1]).time(), micros(150));
        assert_eq!(after(&[300, 1, 1, 1, 1]).time(), LEAST);
        assert_eq!(after(&[300, 1, 200]).time(), micros(200));
        assert_eq!(after(&[1_000_000]).time(), MOST);
    }
}
