//! Launches that are made again and again, recorded once.
//!
//! A graph is asked to run a closure that makes launches. The launches are compared with those that were recorded; where
//! they are the same, down to addresses and sizes, a GPU is handed all of them in one call, and else they are recorded
//! anew. So arguments are borrowed and checked in every run, and a graph borrows nothing between two runs.

use super::Access;
use crate::device::{Device, Kind};
use crate::error::{Error, Result};
use crate::gpu::{Captured, Ready};
use crate::launch::Launch;
use crate::profile::{self, ToNote};
use crate::tensor::Allocation;
use std::cell::Cell;
use std::fmt;
use std::sync::Arc;

/// Launches that a device runs one after the other, for the cost of one where they are the same as in the last run.
///
/// ```
/// # use tile_runtime as tile;
/// use tile::{Device, Error, Graph, Launch, Result, Tensor};
/// fn steps(graph: &mut Graph, next: for<'a> fn(&'a Tensor<f32>, &'a mut Tensor<f32>) -> Launch<'a>) -> Result<Vec<f32>> {
///     let x = Tensor::<f32>::ones(&Device::cpu(), [4])?;
///     let [mut y, mut z] = [x.to_dense()?, x.to_dense()?];
///     for _ in 0..100 {
///         graph.run(|graph| {
///             graph.launch(next(&x, &mut y))?;
///             graph.launch(next(&y, &mut z))
///         })?;
///     }
///     z.to_vec()
/// }
/// ```
///
/// Inside of the closure nothing has run yet on a GPU, so that on no device results can be read there, or tensors be made:
///
/// ```
/// # use tile_runtime::{Device, Error, Graph, Tensor};
/// let x = Tensor::<f32>::ones(&Device::cpu(), [4])?;
/// let early = Graph::new(&Device::cpu()).run(|_| x.to_vec().map(drop)).unwrap_err();
/// assert!(early.to_string().contains("inside of a graph there are launches alone"));
/// # Ok::<(), Error>(())
/// ```
pub struct Graph {
    device: Device,
    /// What was run last, on a GPU.
    recorded: Vec<Ready>,
    captured: Option<Captured>,
    captures: usize,
}

/// Takes the launches of one run of a [`Graph`].
pub struct Recorder<'g> {
    device: &'g Device,
    launches: Vec<Ready>,
    /// What is noted of each, in a profile.
    noted: Vec<ToNote>,
    /// How many profiles went on when the run began.
    profiles: usize,
    /// What the launches use: it stays until they are enqueued.
    memory: Vec<(Arc<Allocation>, Access)>,
}

thread_local! {
    /// Whether this thread runs the closure of a graph.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// Refuses what can't be done in the closure of a graph.
pub(crate) fn refuse_inside(what: &str) -> Result<()> {
    match INSIDE.get() {
        false => Ok(()),
        true => Err(Error::Stream {
            problem: format!(
                "inside of a graph there are launches alone, and this is {what}; do it before or after"
            ),
        }),
    }
}

/// Being inside of a closure, to its end or its panic.
struct Inside;

impl Inside {
    fn begin() -> Result<Inside> {
        refuse_inside("another graph")?;
        INSIDE.set(true);
        Ok(Inside)
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        INSIDE.set(false);
    }
}

impl Graph {
    /// A graph without launches.
    pub fn new(device: &Device) -> Graph {
        Graph { device: device.clone(), recorded: Vec::new(), captured: None, captures: 0 }
    }

    /// Makes launches and runs them, in their order, after all that the device's own stream has to do. On a GPU this
    /// returns when they are enqueued, and nothing runs if the closure fails. Elsewhere each is done when it has been made, also
    /// in a closure that fails later. In a [profile](crate::profile::profile) each launch is waited for.
    ///
    /// # Errors
    /// What the closure gives; [`Error::Stream`] inside of another graph's closure; [`Error::Driver`] if the device fails.
    pub fn run(&mut self, launches: impl FnOnce(&mut Recorder<'_>) -> Result<()>) -> Result<()> {
        let mut recorder = Recorder {
            device: &self.device,
            launches: Vec::new(),
            noted: Vec::new(),
            profiles: profile::depth(),
            memory: Vec::new(),
        };
        let inside = Inside::begin()?;
        let made = launches(&mut recorder);
        drop(inside);
        made?;
        let Recorder { launches, noted, memory, .. } = recorder;
        let Kind::Gpu(context) = &self.device.0 else { return Ok(()) };
        for (allocation, access) in &memory {
            allocation.uses().order(context, *access)?;
        }
        if launches.is_empty() {
            return Ok(());
        }
        if !noted.is_empty() {
            // The driver gives the time of all of a graph, and not of one launch in it.
            for (launch, note) in launches.iter().zip(noted) {
                note.note(context.time(launch)?.expect("a launch without copies is enqueued"));
            }
            return Ok(());
        }
        if self.captured.is_none() || self.recorded != launches {
            // What can't be captured leaves nothing that a later run could take for it.
            self.captured = None;
            self.captured = Some(context.capture(&launches)?);
            self.recorded = launches;
            self.captures += 1;
        }
        self.captured.as_ref().map_or(Ok(()), Captured::launch)
    }

    /// How often launches were recorded, because they were others than in the run before. The CPU, the reference and simulated
    /// devices run them as they are made.
    pub fn captures(&self) -> usize {
        self.captures
    }
}

impl Recorder<'_> {
    /// Takes a launch.
    ///
    /// # Errors
    /// As [`Launch::launch`]; [`Error::Refused`] for kernels that print or assert, which nobody would wait for, and for
    /// tensors of another device than the graph's; [`Error::Stream`] in a profile that began in the closure.
    pub fn launch(&mut self, launch: Launch<'_>) -> Result<()> {
        launch.site().locate(self.refuse_profiles_within())?;
        let memory: Vec<_> =
            launch.memory().map(|(allocation, access)| (Arc::clone(allocation), access)).collect();
        if let Some((ready, note)) = launch.in_graph(self.device, self.profiles > 0)? {
            self.launches.push(ready);
            self.noted.extend(note);
            self.memory.extend(memory);
        }
        Ok(())
    }

    /// A profile that ends in the closure would miss its launches, on a GPU.
    fn refuse_profiles_within(&self) -> Result<()> {
        if profile::depth() <= self.profiles {
            return Ok(());
        }
        let problem = "inside of a graph there are launches alone, which haven't run yet when a profile of them ends there; \
                       profile the whole of `Graph::run`";
        Err(Error::Stream { problem: problem.to_owned() })
    }
}

impl fmt::Debug for Recorder<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Recorder of {} launches on {}", self.launches.len(), self.device.name())
    }
}

impl fmt::Debug for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Graph of {} launches on {}", self.recorded.len(), self.device.name())
    }
}
