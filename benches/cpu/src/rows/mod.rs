//! What is measured, a file per kind of work. A row is built when its turn comes, because its memory is large.

mod attention;
mod compile;
mod elements;
mod launch;
mod loops;
mod matmul;
mod normalize;

use crate::Result;
use crate::contest::{Contest, Contestant, Role, Shared, distance, is_within};
use crate::memory::{Memory, Plain};
use crate::peers::Peers;
use crate::peers::c_loops::CLoops;
use half::bf16;
use tile::prelude::{Float, MmaOperand};
use tile::{Device, Tensor, TensorRef};

/// What a row is built with.
pub(crate) struct Setting<'p> {
    pub(crate) peers: &'p Peers,
    /// Threads of each contestant.
    pub(crate) threads: usize,
}

/// Makes the contest of a row.
type Build = dyn Fn(&Setting<'_>) -> Result<Contest>;

/// A row: its title, and how it is built.
pub(crate) struct Row {
    pub(crate) title: String,
    /// Whether the number of threads matters.
    pub(crate) is_threaded: bool,
    build: Box<Build>,
}

impl Row {
    fn new(title: impl Into<String>, build: impl Fn(&Setting<'_>) -> Result<Contest> + 'static) -> Row {
        Row { title: title.into(), is_threaded: true, build: Box::new(build) }
    }

    /// A row that one thread does, however many there are.
    fn of_one_thread(self) -> Row {
        Row { is_threaded: false, ..self }
    }

    /// Checks our kernel at small sizes, against the reference device, and builds the contest.
    pub(crate) fn build(&self, setting: &Setting<'_>) -> Result<Contest> {
        (self.build)(setting).map_err(|error| format!("{}: {error}", self.title).into())
    }
}

/// A loop in C as a contestant, where there is a compiler for it.
fn c_loop(
    role: Role,
    run: impl Fn(&CLoops, &mut Shared) + 'static,
    setting: &Setting<'_>,
) -> Option<Contestant> {
    let c_loops = setting.peers.c_loops.clone()?;
    Some(Contestant::here(role, "C loop", move |shared| {
        run(&c_loops, shared);
        Ok(())
    }))
}

/// All rows.
pub(crate) fn all() -> Vec<Row> {
    let lists = [
        matmul::rows(),
        normalize::rows(),
        elements::rows(),
        loops::rows(),
        attention::rows(),
        compile::rows(),
        launch::rows(),
    ];
    lists.into_iter().flatten().collect()
}

/// How far our results may be from the reference device's, or a peer's: sums of thousands of f32, in any order.
const TOLERANCE: f64 = 1e-5;

/// Runs a kernel on the CPU and on the reference device and compares what it writes to a tensor of a shape.
fn check(
    what: &str,
    shape: &[usize],
    launch: impl Fn(&Device, &mut TensorRef<f32>) -> tile::Result<()>,
) -> Result<()> {
    let results = [Device::reference(), Device::cpu()].map(|device| {
        let mut output = Tensor::full(&device, shape, f32::NAN)?;
        launch(&device, &mut output)?;
        output.to_vec()
    });
    let [expected, actual] = results;
    let error = distance(&expected?, &actual?);
    if is_within(error, TOLERANCE) {
        return Ok(());
    }
    Err(format!("{what}: CPU and reference device are {error:.1e} of the result apart").into())
}

/// A floating-point format of inputs.
trait Factor: Plain + Float + MmaOperand<f32> {
    /// The number of the format that is nearest.
    fn nearest(number: f32) -> Self;

    /// A tensor of random numbers in [−1, 1).
    fn random(device: &Device, shape: &[usize], seed: u64) -> tile::Result<Tensor<Self>> {
        let memory = Memory::random(shape.iter().product(), seed, Self::nearest);
        Tensor::from_slice(device, memory.of::<Self>(), shape)
    }
}

impl Factor for f32 {
    fn nearest(number: f32) -> f32 {
        number
    }
}

impl Factor for bf16 {
    fn nearest(number: f32) -> bf16 {
        bf16::from_f32(number)
    }
}

/// The same numbers of a narrow format as f32.
fn widened<T: Plain>(memory: &Memory) -> Memory {
    let mut wide = Memory::zeros::<f32>(memory.of::<T>().len());
    let numbers = wide.of_mut::<f32>().iter_mut().zip(memory.of::<T>());
    numbers.for_each(|(wide, &narrow)| *wide = narrow.to_float() as f32);
    wide
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles_tell_rows_apart() {
        let mut titles: Vec<String> = all().into_iter().map(|row| row.title).collect();
        let count = titles.len();
        titles.sort();
        titles.dedup();
        assert_eq!(titles.len(), count);
    }

    #[test]
    fn a_wrong_kernel_is_seen() {
        let launch = |device: &Device, output: &mut TensorRef<f32>| {
            output.fill(if *device == Device::cpu() { 1.001 } else { 1.0 })
        };
        let message = check("ones", &[3], launch).unwrap_err().to_string();
        assert_eq!(message, "ones: CPU and reference device are 1.0e-3 of the result apart");
        assert!(check("ones", &[3], |_, output| output.fill(1.0)).is_ok());
        // What isn't written is NaN.
        assert!(check("nothing", &[3], |_, _| Ok(())).is_err());
    }
}
