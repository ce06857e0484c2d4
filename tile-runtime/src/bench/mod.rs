//! Measuring launches: warmed up, with cold caches, many times, beside something else.
//!
//! What is measured says itself how long it took, so that a launch can give its device's time
//! ([`Launch::launch_timed`](crate::Launch::launch_timed)) and anything else the clock's ([`timed`]).

mod ceilings;
mod cold;

pub use crate::columns::aligned;
pub use crate::quantity::{byte_rate, flop_rate, time};
pub use ceilings::Ceiling;

use crate::device::Device;
use crate::error::Result;
use cold::Cold;
use std::fmt;
use std::time::{Duration, Instant};

/// How something is measured on a device.
///
/// ```
/// # use tile_runtime as tile;
/// use std::time::Duration;
/// use tile::{Device, bench::Bench};
/// let bench = Bench::new(&Device::cpu()).warm_up(1).runs(5).warm_caches();
/// let mut times = [9, 3, 1, 2, 8, 4].into_iter().map(Duration::from_micros); // the first one warms up
/// let measured = bench.measure(|| Ok(times.next().unwrap_or_default()))?;
/// assert_eq!(measured.median(), Duration::from_micros(3));
/// assert_eq!(measured.to_string(), "3.00 µs (2.00 µs to 4.00 µs, 5 runs)");
/// # Ok::<(), tile::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Bench {
    device: Device,
    warm_up: usize,
    runs: usize,
    cold: bool,
}

impl Bench {
    /// 3 runs that don't count, then 30 that do, each after the device's caches have been filled with something else.
    pub fn new(device: &Device) -> Bench {
        Bench { device: device.clone(), warm_up: 3, runs: 30, cold: true }
    }

    /// The number of runs before those that count.
    pub fn warm_up(self, runs: usize) -> Bench {
        Bench { warm_up: runs, ..self }
    }

    /// The number of runs that count; 1 at least.
    pub fn runs(self, runs: usize) -> Bench {
        Bench { runs: runs.max(1), ..self }
    }

    /// Leaves in the caches what the run before has left there.
    pub fn warm_caches(self) -> Bench {
        Bench { cold: false, ..self }
    }

    /// Measures what says how long it took.
    ///
    /// # Errors
    /// The first error of a run; [`Error::OutOfMemory`](crate::Error::OutOfMemory) without room for what fills the caches.
    pub fn measure(&self, mut run: impl FnMut() -> Result<Duration>) -> Result<Measurement> {
        let mut cold = self.cold()?;
        for _ in 0..self.warm_up {
            run()?;
        }
        let times = (0..self.runs).map(|_| cold.then(&mut run)).collect::<Result<Vec<Duration>>>()?;
        Ok(Measurement::of(times))
    }

    /// Measures two in turns, so that what disturbs the machine disturbs both; every other turn begins with the second.
    ///
    /// # Errors
    /// As [`Bench::measure`].
    pub fn compare(
        &self,
        mut first: impl FnMut() -> Result<Duration>,
        mut second: impl FnMut() -> Result<Duration>,
    ) -> Result<Comparison> {
        let mut cold = self.cold()?;
        for _ in 0..self.warm_up {
            first()?;
            second()?;
        }
        let mut pairs = Vec::with_capacity(self.runs);
        for turn in 0..self.runs {
            pairs.push(if turn.is_multiple_of(2) {
                let first = cold.then(&mut first)?;
                (first, cold.then(&mut second)?)
            } else {
                let second = cold.then(&mut second)?;
                (cold.then(&mut first)?, second)
            });
        }
        Ok(Comparison::of(pairs))
    }

    fn cold(&self) -> Result<Cold> {
        if self.cold { Cold::of(&self.device) } else { Ok(Cold::warm()) }
    }
}

/// Runs something and gives the time that the clock shows for it, with all that the device is given to do, from when it has
/// nothing left of what it was given before. [`Launch::launch_timed`](crate::Launch::launch_timed) gives the time on a GPU
/// alone, without that of enqueueing and waiting.
///
/// ```
/// # use tile_runtime as tile;
/// use tile::{Device, Launch, Result, bench::{Bench, timed}};
/// fn both(device: &Device, mut launch: impl FnMut() -> Result<()>) -> Result<()> {
///     println!("{}", Bench::new(device).measure(|| timed(device, || { launch()?; launch() }))?);
///     Ok(())
/// }
/// ```
///
/// # Errors
/// What it reports; as [`Device::synchronize`] else.
pub fn timed<T>(device: &Device, run: impl FnOnce() -> Result<T>) -> Result<Duration> {
    device.synchronize()?;
    let start = Instant::now();
    run()?;
    device.synchronize()?;
    Ok(start.elapsed())
}

/// The times of runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Measurement {
    /// Shortest first; at least one.
    times: Vec<Duration>,
}

impl Measurement {
    fn of(mut times: Vec<Duration>) -> Measurement {
        times.sort_unstable();
        Measurement { times }
    }

    /// The times of all runs, the shortest first.
    pub fn times(&self) -> &[Duration] {
        &self.times
    }

    /// The time that half of the runs stay below.
    pub fn median(&self) -> Duration {
        self.quantile(0.5)
    }

    /// The time that a part of the runs, of 0 to 1, stays below.
    pub fn quantile(&self, part: f64) -> Duration {
        self.times[nearest(part, self.times.len())]
    }

    /// So many a second, at the median time.
    pub fn rate(&self, count: f64) -> f64 {
        count / self.median().as_secs_f64()
    }
}

/// The position of a quantile among so many sorted values.
fn nearest(part: f64, count: usize) -> usize {
    ((count - 1) as f64 * part.clamp(0.0, 1.0)).round() as usize
}

impl fmt::Display for Measurement {
    /// The median, and what half of the runs lie between: `12.3 µs (12.1 µs to 12.9 µs, 30 runs)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [quarter, median, three] = [0.25, 0.5, 0.75].map(|part| time(self.quantile(part).as_secs_f64()));
        write!(f, "{median} ({quarter} to {three}, {} runs)", self.times.len())
    }
}

/// The times of two, measured in turns.
///
/// ```
/// # use tile_runtime as tile;
/// use std::time::Duration;
/// use tile::{Device, bench::Bench};
/// let bench = Bench::new(&Device::cpu()).runs(4).warm_caches();
/// let compared = bench.compare(|| Ok(Duration::from_micros(20)), || Ok(Duration::from_micros(30)))?;
/// assert_eq!(compared.to_string(), "1.50 times as long (1.50 to 1.50): 30.0 µs and 20.0 µs");
/// # Ok::<(), tile::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// The first.
    pub first: Measurement,
    /// The second.
    pub second: Measurement,
    /// The second's time by the first's, turn by turn; the least first.
    ratios: Vec<f64>,
}

impl Comparison {
    fn of(pairs: Vec<(Duration, Duration)>) -> Comparison {
        // Two that take no time at all, as launches without blocks do, take as long as each other.
        let ratio = |(first, second): &(Duration, Duration)| match first == second {
            true => 1.0,
            false => second.as_secs_f64() / first.as_secs_f64(),
        };
        let mut ratios: Vec<f64> = pairs.iter().map(ratio).collect();
        ratios.sort_unstable_by(f64::total_cmp);
        let (first, second) = pairs.into_iter().unzip();
        Comparison { first: Measurement::of(first), second: Measurement::of(second), ratios }
    }

    /// How many times as long as the first the second takes: the median of the turns.
    pub fn ratio(&self) -> f64 {
        self.quantile(0.5)
    }

    /// The ratio that a part of the turns, of 0 to 1, stays below.
    pub fn quantile(&self, part: f64) -> f64 {
        self.ratios[nearest(part, self.ratios.len())]
    }

    /// Whether half of the turns lie around 1, so that neither is faster for certain.
    pub fn is_even(&self) -> bool {
        self.quantile(0.25) <= 1.0 && self.quantile(0.75) >= 1.0
    }
}

impl fmt::Display for Comparison {
    /// `1.50 times as long (1.45 to 1.58): 3.00 ms and 2.00 ms`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [quarter, median, three] = [0.25, 0.5, 0.75].map(|part| self.quantile(part));
        let [second, first] = [&self.second, &self.first].map(|one| time(one.median().as_secs_f64()));
        write!(f, "{median:.2} times as long ({quarter:.2} to {three:.2}): {second} and {first}")?;
        if self.is_even() { f.write_str(", even") } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;

    fn milliseconds(times: &[u64]) -> Vec<Duration> {
        times.iter().map(|&time| Duration::from_millis(time)).collect()
    }

    #[test]
    fn a_comparison_is_made_turn_by_turn() {
        // The machine becomes ten times slower in the middle, for both.
        let pairs = milliseconds(&[10, 10, 100, 100]).into_iter().zip(milliseconds(&[15, 16, 150, 140]));
        let compared = Comparison::of(pairs.collect());
        assert_eq!(compared.to_string(), "1.50 times as long (1.50 to 1.50): 140 ms and 100 ms");
        let even = Comparison::of(
            milliseconds(&[10, 11, 10]).into_iter().zip(milliseconds(&[11, 10, 10])).collect(),
        );
        assert_eq!(even.to_string(), "1.00 times as long (1.00 to 1.10): 10.0 ms and 10.0 ms, even");
        let nothing = Comparison::of(vec![(Duration::ZERO, Duration::ZERO)]);
        assert_eq!(nothing.to_string(), "1.00 times as long (1.00 to 1.00): 0.00 µs and 0.00 µs, even");
    }

    #[test]
    fn both_are_first_in_turn() {
        let order = std::cell::RefCell::new(String::new());
        let run = |name| {
            order.borrow_mut().push(name);
            Ok(Duration::from_micros(1))
        };
        let bench = Bench::new(&Device::cpu()).warm_up(1).runs(3).warm_caches();
        bench.compare(|| run('a'), || run('b')).unwrap();
        assert_eq!(*order.borrow(), "ababbaab");
    }

    #[test]
    fn errors_end_a_measurement() {
        let fails = || Err(Error::TooLarge { shape: vec![1] });
        assert!(Bench::new(&Device::cpu()).measure(fails).is_err());
    }
}
