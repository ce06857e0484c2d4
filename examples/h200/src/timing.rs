//! How long rows take on an NVIDIA GPU, by its own events, and how long a launch takes on the host.
//!
//! Before each timed run something else is read, which leaves the L2 cache without what the run reads, and without lines
//! that were written: the run would wait while those go to memory. Of rows that compute more than they move there is a
//! second time: back to back for a second, when power limits the clock.

use crate::problem::{Problem, Result};
use crate::problems::{Linear, Sum};
use crate::tensors::{AnyTensor, Role};
use cudarc::driver::{CudaContext, CudaEvent, CudaStream, sys::CUevent_flags};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tile::{Device, Stream};

/// What is read before each run: 256 MiB of f32, several times what the L2 cache holds.
const OTHER: Sum = Sum { rows: 256, width: 1 << 18 };
/// How long a row runs before it is measured.
const WARM_UP: Duration = Duration::from_millis(50);
/// Runs are measured until there are so many, and for so long.
const RUNS: usize = 30;
const MEASURED: Duration = Duration::from_millis(150);
/// The GPU idles so long before a burst, so that its clock is high.
const IDLE: Duration = Duration::from_millis(200);
/// How long runs follow each other without a pause in the second regime.
const SUSTAINED: Duration = Duration::from_secs(1);
/// Launches that are enqueued before somebody waits; a stream takes a thousand.
const ENQUEUED: u32 = 200;
/// Runs that follow each other before the host looks, and how many such batches the GPU has while the host waits for one.
const BATCH: u32 = 10;
const AHEAD: usize = 3;

/// Times of a row in microseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Times {
    /// The median of runs with a cold L2 cache.
    pub median: f64,
    /// The shortest of these.
    pub shortest: f64,
    /// The longest of these.
    pub longest: f64,
    /// The mean of runs back to back, of a row that computes more than it moves.
    pub sustained: Option<f64>,
}

/// A GPU with a stream of its own.
pub struct Timer {
    device: Device,
    context: Arc<CudaContext>,
    stream: Arc<CudaStream>,
    other: Vec<AnyTensor>,
}

impl Timer {
    /// A timer for the GPU of this number.
    ///
    /// # Errors
    /// Where there is none.
    pub fn new(ordinal: usize) -> Result<Timer> {
        // Says so where there is no driver, which cudarc doesn't survive.
        let device = Device::cuda(ordinal)?;
        let context = CudaContext::new(ordinal)?;
        let stream = context.new_stream()?;
        let mut timer = Timer { device, context, stream, other: Vec::new() };
        timer.other = timer.tensors(&OTHER)?;
        Ok(timer)
    }

    /// The device.
    pub fn device(&self) -> &Device {
        &self.device
    }

    fn stream(&self) -> Result<Stream> {
        // SAFETY: the stream is one of the device's primary context, and lives as long as the timer.
        Ok(unsafe { Stream::from_raw(&self.device, self.stream.cu_stream().cast()) }?)
    }

    fn event(&self) -> Result<CudaEvent> {
        Ok(self.stream.record_event(Some(CUevent_flags::CU_EVENT_DEFAULT))?)
    }

    /// The tensors of a problem; inputs are random.
    fn tensors(&self, problem: &dyn Problem) -> Result<Vec<AnyTensor>> {
        let specs = problem.tensors();
        let tensors = specs.iter().zip(1..).map(|(spec, stream)| match spec.role {
            Role::Input => AnyTensor::normal(&self.device, spec, stream),
            Role::Scratch | Role::Output => AnyTensor::zeros(&self.device, spec),
        });
        let tensors = tensors.collect::<Result<_>>()?;
        self.context.synchronize()?;
        Ok(tensors)
    }

    /// Measures a problem.
    ///
    /// # Errors
    /// Where the GPU has too little memory, and as [`Problem::launch`].
    pub fn time(&mut self, problem: &dyn Problem) -> Result<Times> {
        let mut tensors = self.tensors(problem)?;
        let stream = self.stream()?;
        let start = Instant::now();
        while start.elapsed() < WARM_UP {
            problem.launch(&mut tensors, Some(&stream))?;
            self.stream.synchronize()?;
        }
        std::thread::sleep(IDLE);
        let mut times = Vec::new();
        let start = Instant::now();
        while times.len() < RUNS || start.elapsed() < MEASURED {
            OTHER.launch(&mut self.other, Some(&stream))?;
            let before = self.event()?;
            problem.launch(&mut tensors, Some(&stream))?;
            times.push(f64::from(before.elapsed_ms(&self.event()?)?) * 1e3);
        }
        times.sort_by(f64::total_cmp);
        let sustained = problem.operations().map(|_| self.sustained(problem, &mut tensors)).transpose()?;
        Ok(Times {
            median: times[times.len() / 2],
            shortest: times[0],
            longest: times[times.len() - 1],
            sustained,
        })
    }

    fn sustained(&self, problem: &dyn Problem, tensors: &mut [AnyTensor]) -> Result<f64> {
        let stream = self.stream()?;
        let (mut runs, mut ahead) = (0, VecDeque::new());
        let (start, first) = (Instant::now(), self.event()?);
        while start.elapsed() < SUSTAINED {
            for _ in 0..BATCH {
                problem.launch(tensors, Some(&stream))?;
            }
            runs += BATCH;
            ahead.push_back(self.event()?);
            // The GPU has other batches while the host is woken.
            if ahead.len() > AHEAD
                && let Some(batch) = ahead.pop_front()
            {
                batch.synchronize()?;
            }
        }
        Ok(f64::from(first.elapsed_ms(&self.event()?)?) * 1e3 / f64::from(runs))
    }

    /// How many microseconds the host needs to enqueue a launch with five tensors, three of them by tensor maps.
    ///
    /// # Errors
    /// As [`Problem::launch`].
    pub fn host_latency(&self) -> Result<f64> {
        let problem = Linear { m: 128, n: 128, k: 64 };
        let (stream, mut tensors) = (self.stream()?, self.tensors(&problem)?);
        let mut latencies = Vec::new();
        for _ in 0..RUNS {
            self.stream.synchronize()?;
            let start = Instant::now();
            for _ in 0..ENQUEUED {
                problem.launch(&mut tensors, Some(&stream))?;
            }
            latencies.push(start.elapsed().as_secs_f64() * 1e6 / f64::from(ENQUEUED));
        }
        latencies.sort_by(f64::total_cmp);
        Ok(latencies[RUNS / 2])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_gpu_is_an_error() {
        let error = Timer::new(4096).map(drop).unwrap_err().to_string();
        assert!(error.starts_with("device `cuda:4096` isn't available"), "{error}");
    }
}
