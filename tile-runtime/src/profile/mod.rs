//! What a part of a program launches, how long that takes, and how much of the device's rates it reaches.
//!
//! [`profile`](fn@profile) notes every launch of its thread. Times are the device's, so a launch on a GPU is waited for; how
//! much a launch does follows from its kernel's IR ([`tile_ir::counts`]).

mod table;
mod trace;

use crate::bench::Ceiling;
use crate::device::Device;
use std::cell::RefCell;
use std::time::{Duration, Instant};
use tile_ir::DType;
use tile_ir::counts::Totals;

/// The launches of a part of a program. Displayed, it is a table with a line for each kernel.
///
/// The first display in a process measures what each device in it reaches at most, about a second for each of memory and
/// arithmetic: on the CPU on all threads that launches use, with buffers of 256 MiB to 2 GiB together, but no more than an
/// eighth of the memory that the process may use; on a GPU in 512 MiB of its memory. Where that is too little the table has
/// rates without percentages. [`Device::ceiling`] says when that is so, and called before has it measured then.
/// [`Profile::launches`] and [`Profile::chrome_trace`] measure nothing.
#[derive(Clone, Debug)]
pub struct Profile {
    launches: Vec<Launched>,
    time: Duration,
}

/// A launch.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Launched {
    /// The kernel's name.
    pub kernel: &'static str,
    /// What its parameters were bound to: `BM = 128, T = f32`.
    pub instance: String,
    /// Where it ran.
    pub device: Device,
    /// How many blocks ran.
    pub blocks: usize,
    /// When it began.
    pub start: Instant,
    /// How long its device took for it.
    pub time: Duration,
    /// How much it did.
    pub totals: Totals,
}

/// A launch that is noted when it has run.
pub(crate) struct ToNote {
    pub(crate) kernel: &'static str,
    pub(crate) instance: String,
    pub(crate) device: Device,
    pub(crate) blocks: usize,
    pub(crate) totals: Totals,
}

thread_local! {
    /// The launches of the profiles that go on, of one within another last.
    static RECORDED: RefCell<Vec<Vec<Launched>>> = const { RefCell::new(Vec::new()) };
}

/// Runs something, noting what this thread launches meanwhile; on a panic nothing is kept.
///
/// ```
/// # use tile_runtime as tile;
/// use tile::profile::profile;
/// let (answer, profile) = profile(|| 42); // launches nothing
/// assert_eq!((answer, profile.launches().len()), (42, 0));
/// ```
pub fn profile<R>(run: impl FnOnce() -> R) -> (R, Profile) {
    let recording = Recording::begin();
    let start = Instant::now();
    let result = run();
    let time = start.elapsed();
    (result, Profile { launches: recording.end(), time })
}

/// A profile that goes on; it ends when this is dropped.
struct Recording;

impl Recording {
    fn begin() -> Recording {
        RECORDED.with_borrow_mut(|recorded| recorded.push(Vec::new()));
        Recording
    }

    /// What was launched. It counts for a profile around this one, too.
    fn end(self) -> Vec<Launched> {
        RECORDED.with_borrow_mut(|recorded| {
            let own = recorded.last().cloned().unwrap_or_default();
            if let Some(around) = recorded.len().checked_sub(2).and_then(|around| recorded.get_mut(around)) {
                around.extend(own.iter().cloned());
            }
            own
        })
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        RECORDED.with_borrow_mut(Vec::pop);
    }
}

/// Runs something of which nothing is noted, whatever profiles go on.
pub(crate) fn aside<R>(run: impl FnOnce() -> R) -> R {
    struct Aside(Vec<Vec<Launched>>);
    impl Drop for Aside {
        fn drop(&mut self) {
            RECORDED.set(std::mem::take(&mut self.0));
        }
    }
    let _aside = (depth() > 0).then(|| Aside(RECORDED.take()));
    run()
}

/// Whether launches of this thread are noted.
pub(crate) fn is_on() -> bool {
    depth() > 0
}

/// How many profiles of this thread go on, each within another. None do in one that is about to end.
pub(crate) fn depth() -> usize {
    RECORDED.try_with(|recorded| recorded.borrow().len()).unwrap_or(0)
}

impl ToNote {
    /// Notes the launch, which has run just now and taken so long. What came before that was looking for code, or compiling it,
    /// and waiting for others.
    pub(crate) fn note(self, time: Duration) {
        let ToNote { kernel, instance, device, blocks, totals } = self;
        record(Launched { kernel, instance, device, blocks, start: Instant::now() - time, time, totals });
    }
}

/// Notes a launch.
fn record(launched: Launched) {
    RECORDED.with_borrow_mut(|recorded| recorded.last_mut().map(|own| own.push(launched)));
}

impl Profile {
    /// The launches in their order.
    pub fn launches(&self) -> &[Launched] {
        &self.launches
    }

    /// How long the closure took.
    pub fn time(&self) -> Duration {
        self.time
    }

    /// The time of all launches.
    pub fn launched_time(&self) -> Duration {
        self.launches.iter().map(|launched| launched.time).sum()
    }
}

impl Launched {
    /// Bytes that memory gave and took at least: of every tensor no more than it has.
    pub fn bytes(&self) -> u64 {
        self.totals.compulsory()
    }

    /// Floating-point operations.
    pub fn flops(&self) -> u64 {
        self.totals.flops()
    }

    /// The rate that bounds its arithmetic: products of the format that most factors have, or else multiply-adds.
    fn arithmetic(&self) -> Ceiling {
        let products = self.totals.products.iter();
        let most = products.max_by_key(|(shape, count)| shape.multiply_adds().saturating_mul(**count));
        most.map_or(Ceiling::MultiplyAdd(DType::F32), |(shape, _)| Ceiling::Product(shape.factor))
    }
}

#[cfg(test)]
mod tests;
