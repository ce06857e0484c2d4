//! Launches that are measured with every instance that they may take, so that others like them take the fastest.

use super::{Checked, Launch};
use crate::choices::Choices;
use crate::choose::Fitting;
use crate::device::Device;
use crate::error::Result;
use crate::messages::Sink;
use crate::stream::Stream;
use crate::stream::graph::refuse_inside;
use std::time::Duration;

/// How often every instance runs, after once that isn't counted.
const ROUNDS: usize = 5;

impl<'a> Launch<'a> {
    /// Runs every instance that a launch of `best` may take, several times in turns, and has launches like this one take
    /// the fastest: those of the kernel on this device with tensors of the same formats and shapes that lie alike, the same
    /// sizes and `bool`s, the same [`Launch::blocks`] and [`Launch::first_tiles`] if they say any, and as many threads of the
    /// CPU's pool, as long as the program runs. What was measured is given, and displayed is a table.
    ///
    /// The kernel runs on the launch's tensors. What it writes it has written many times then, so where it adds to what
    /// is there, tune it with a copy.
    ///
    /// ```
    /// # use tile_runtime::{Device, Result};
    /// # fn example(kernel: tile_runtime::Launch<'_>) -> Result<()> {
    /// let tuned = kernel.tune()?;
    /// println!("{tuned}"); // every instance with its time; what the first is can be written at the call as well
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Launch::launch`]; [`Error::Refused`](crate::Error::Refused) where the launch says which instance it takes.
    pub fn tune(mut self) -> Result<Choices> {
        let site = self.site();
        let measured = refuse_inside("tuning a launch").and_then(|()| self.measure_candidates());
        site.locate(measured.and_then(|()| self.assess()))
    }

    /// [`Launch::tune`], after all that a stream was given before. That matters for memory without an owner, as that of
    /// other libraries is: what these enqueue on their stream nobody else waits for. When this returns everything has
    /// run, so the stream goes on with what it is given next.
    ///
    /// ```
    /// # use tile_runtime::{Result, Stream};
    /// # fn example(kernel: tile_runtime::Launch<'_>, stream: &Stream) -> Result<()> {
    /// println!("{}", kernel.tune_on(stream)?);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Launch::tune`]; [`Error::Refused`](crate::Error::Refused) where the stream is another device's.
    pub fn tune_on(self, stream: &Stream) -> Result<Choices> {
        let site = self.site();
        site.locate(refuse_inside("tuning a launch").and_then(|()| self.wait_for_stream(stream)))?;
        self.tune()
    }

    fn wait_for_stream(&self, stream: &Stream) -> Result<()> {
        self.check_device(self.device()?, "stream", stream.device())?;
        // Who enqueued what fails before it is told of that.
        let _ = stream.record()?.wait();
        Ok(())
    }

    fn measure_candidates(&mut self) -> Result<()> {
        if self.candidates.is_empty() {
            return Err(self.refused(
                "it says which instance it takes; `best(…)` of a kernel with `instances(…)` is tuned",
            ));
        }
        let mut sink = self.sink.take();
        let (device, shapes, layouts) = (self.device()?, self.shapes(), self.layouts()?);
        let numbers = self.given_sizes()?;
        let query = self.query(device, &shapes, &numbers, &layouts);
        query.tune(&|abi| self.bound(abi), |fitting| self.times(fitting, device, &mut sink))
    }

    /// The shortest time of each instance.
    fn times(
        &self,
        fitting: &[(usize, Fitting)],
        device: &'a Device,
        sink: &mut Option<Sink<'_>>,
    ) -> Result<Vec<Duration>> {
        let mut shortest = vec![Duration::MAX; fitting.len()];
        for round in 0..=ROUNDS {
            for ((number, fits), shortest) in fitting.iter().zip(&mut shortest) {
                let (number, prepared, bound) = (*number, fits.prepared, fits.bound.clone());
                let time = self.run_checked(&Checked { number, prepared, device, bound }, true, sink)?;
                if round > 0 {
                    *shortest = time.min(*shortest);
                }
            }
        }
        Ok(shortest)
    }
}
