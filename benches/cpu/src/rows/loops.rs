//! Kernels of several kinds beside C loops for the same work, without bars: what isn't products, long rows or elements alone.

use super::{Factor, Row, Setting, TOLERANCE, c_loop, check};
use crate::Result;
use crate::contest::{Check, Contest, Contestant, Role, Shared};
use crate::kernels::{depthwise, distances, neighbours, row_times_matrix, softmax_of_short_rows};
use crate::memory::Memory;
use crate::peers::c_loops::CLoops;
use crate::verdict::{Bars, Work};
use tile::{Tensor, TensorRef};

/// A kernel, and what it is measured with.
#[derive(Clone, Copy)]
struct Loop {
    title: &'static str,
    /// Extents of the inputs and of the output, which are measured; and such as are checked.
    measured: (&'static [&'static [usize]], &'static [usize]),
    checked: (&'static [&'static [usize]], &'static [usize]),
    launch: fn(&[Tensor<f32>], &mut TensorRef<f32>) -> tile::Result<()>,
    instance: fn(&[Tensor<f32>], &mut TensorRef<f32>) -> tile::Result<String>,
    c_loop: fn(&CLoops, &mut Shared),
}

/// Launches the best instance of a kernel of so many inputs, and says which it is.
macro_rules! best {
    ($kernel:ident, $($input:literal),*) => {
        (
            |x: &[Tensor<f32>], y: &mut TensorRef<f32>| $kernel::best($(&x[$input],)* y).launch(),
            |x: &[Tensor<f32>], y: &mut TensorRef<f32>| $kernel::best($(&x[$input],)* y).instance(),
        )
    };
}

fn loops() -> Vec<Loop> {
    let mut loops = Vec::new();
    let mut of = |title, measured, checked, (launch, instance), c_loop| {
        loops.push(Loop { title, measured, checked, launch, instance, c_loop });
    };
    of(
        "mean of neighbours 4096²",
        (&[&[4096, 4096]], &[4096, 4096]),
        (&[&[9, 300]], &[9, 300]),
        best!(neighbours, 0),
        |c, shared| c.neighbours(shared.inputs[0].of(), shared.output.of_mut(), 4096),
    );
    of(
        "depthwise 3×3, 64×512²",
        (&[&[64, 512, 512], &[64, 3, 3]], &[64, 512, 512]),
        (&[&[2, 9, 200], &[2, 3, 3]], &[2, 9, 200]),
        best!(depthwise, 0, 1),
        |c, shared| {
            c.depthwise(shared.inputs[0].of(), shared.inputs[1].of(), shared.output.of_mut(), [512, 512]);
        },
    );
    of(
        "softmax 2²⁰×16",
        (&[&[1 << 20, 16]], &[1 << 20, 16]),
        (&[&[70, 16]], &[70, 16]),
        best!(softmax_of_short_rows, 0),
        |c, shared| c.softmax(shared.inputs[0].of(), shared.output.of_mut(), 16),
    );
    of(
        "distances 2048²×16",
        (&[&[2048, 16], &[2048, 16]], &[2048, 2048]),
        (&[&[20, 16], &[70, 16]], &[20, 70]),
        best!(distances, 0, 1),
        |c, shared| {
            c.distances(shared.inputs[0].of(), shared.inputs[1].of(), shared.output.of_mut(), 16);
        },
    );
    of(
        "row × matrix 4096²",
        (&[&[1, 4096], &[4096, 4096]], &[1, 4096]),
        (&[&[1, 200], &[200, 300]], &[1, 300]),
        best!(row_times_matrix, 0, 1),
        |c, shared| {
            c.row_times_matrix(shared.inputs[0].of(), shared.inputs[1].of(), shared.output.of_mut());
        },
    );
    loops
}

pub(super) fn rows() -> Vec<Row> {
    loops().into_iter().map(|of| Row::new(of.title, move |setting| contest(of, setting))).collect()
}

fn check_small(of: Loop) -> Result<()> {
    let (inputs, output) = of.checked;
    check(of.title, output, |device, y| {
        let inputs: Vec<Tensor<f32>> = inputs
            .iter()
            .zip(1..)
            .map(|(shape, seed)| f32::random(device, shape, seed))
            .collect::<tile::Result<_>>()?;
        (of.launch)(&inputs, y)
    })
}

fn contest(of: Loop, setting: &Setting<'_>) -> Result<Contest> {
    check_small(of)?;
    let (inputs, output) = of.measured;
    let count = |shape: &[usize]| shape.iter().product::<usize>();
    let memories = inputs.iter().zip(1..).map(|(shape, seed)| Memory::floats(count(shape), seed));
    let mut shared = Shared { inputs: memories.collect(), output: Memory::zeros::<f32>(count(output)) };
    // SAFETY: the contest drops contestants and memory together, and each contestant is done when its turn ends.
    let x = shared.inputs.iter_mut().zip(inputs).map(|(memory, shape)| unsafe { memory.tensor(shape) });
    let x: Vec<Tensor<f32>> = x.collect::<tile::Result<_>>()?;
    // SAFETY: as above.
    let mut y = unsafe { shared.output.tensor::<f32>(output) }?;
    let note = (of.instance)(&x, &mut y)?;
    let own = Contestant::here(Role::Ours, "ours", move |_| Ok((of.launch)(&x, &mut y)?));
    let contestants = [own].into_iter().chain(c_loop(Role::Peer, of.c_loop, setting)).collect();
    let bytes = 4 * (inputs.iter().map(|shape| count(shape)).sum::<usize>() + count(output));
    Ok(Contest {
        title: of.title.to_owned(),
        threads: setting.threads,
        work: Work::Bytes(bytes as f64),
        bars: Bars::default(),
        shared,
        contestants,
        by_multiply_adds: false,
        check: Check::Floats(TOLERANCE),
        note,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_ones_are_those_of_the_reference_device() {
        for of in loops() {
            check_small(of).unwrap();
        }
    }
}
