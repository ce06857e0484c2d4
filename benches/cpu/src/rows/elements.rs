//! Elements that don't depend on each other, their sum, and a transpose: 64 Mi of them, which no cache holds.

use super::{Factor, Row, Setting, TOLERANCE, check};
use crate::Result;
use crate::contest::{Check, Contest, Contestant, Role, Run, Shared};
use crate::kernels::{add, gelu_add_mul, sum_all, sum_rows, transpose};
use crate::limits::{self, Access};
use crate::memory::Memory;
use crate::peers::c_loops::CLoops;
use crate::verdict::{Bars, Work};
use tile::Tensor;

/// Rows and columns of the elements, where they have any.
const SIDE: usize = 8192;

const COUNT: usize = SIDE * SIDE;

/// The part of the limit that is asked for.
const SHARE: f64 = 0.95;

pub(super) fn rows() -> Vec<Row> {
    vec![
        Row::new("a + b, 64 Mi", additions),
        Row::new("gelu(a + b)·c, 64 Mi", gelus),
        Row::new("sum, 64 Mi", sums),
        Row::new("transpose 8192²", transposes),
    ]
}

/// A contest of our kernel, the C loop and the limits of an access.
fn contest(
    title: &str,
    access: Access,
    shared: Shared,
    (own, note): (Run, String),
    c_loop: fn(&CLoops, &mut Shared),
    setting: &Setting<'_>,
) -> Contest {
    let mut contestants = vec![Contestant::here(Role::Ours, "ours", own)];
    // A loop that reads as much and hardly computes shows what memory gives as well as one that combines bits.
    let roles = [Some(Role::Peer), (access == Access::Read).then_some(Role::Limit)];
    for role in roles.into_iter().flatten() {
        contestants.extend(super::c_loop(role, c_loop, setting));
    }
    contestants.extend(limits::of(access, setting.threads));
    let arrays = match access {
        Access::Read => 1,
        Access::Write(inputs) => inputs + 1,
    };
    Contest {
        title: title.to_owned(),
        threads: setting.threads,
        work: Work::Bytes(4.0 * (arrays * COUNT) as f64),
        bars: Bars { limit: Some(SHARE), ..Bars::default() },
        shared,
        contestants,
        by_multiply_adds: false,
        check: Check::Floats(TOLERANCE),
        note,
    }
}

/// So many inputs of all elements, and an output of as many as are said.
fn shared(inputs: u64, outputs: usize) -> Shared {
    let inputs = (0..inputs).map(|seed| Memory::floats(COUNT, seed + 1)).collect();
    Shared { inputs, output: Memory::zeros::<f32>(outputs) }
}

/// All inputs as tensors of a shape, and the output as one.
///
/// # Safety
/// The tensors aren't used after the memory is dropped, nor while somebody else's turn lasts.
unsafe fn tensors(
    shared: &mut Shared,
    input: &[usize],
    output: &[usize],
) -> Result<(Vec<Tensor<f32>>, Tensor<f32>)> {
    // SAFETY: the caller vouches for how the tensors are used.
    let inputs = shared.inputs.iter_mut().map(|memory| unsafe { memory.tensor(input) });
    let inputs = inputs.collect::<tile::Result<_>>()?;
    // SAFETY: as above.
    Ok((inputs, unsafe { shared.output.tensor(output) }?))
}

fn additions(setting: &Setting<'_>) -> Result<Contest> {
    for n in [64, 5000] {
        check("a + b", &[n], |device, y| {
            add::best(&f32::random(device, &[n], 1)?, &f32::random(device, &[n], 2)?, y).launch()
        })?;
    }
    let mut shared = shared(2, COUNT);
    // SAFETY: the contest drops contestants and memory together, and each contestant is done when its turn ends.
    let (x, mut y) = unsafe { tensors(&mut shared, &[COUNT], &[COUNT]) }?;
    let note = add::best(&x[0], &x[1], &mut y).instance()?;
    let own = move |_: &mut Shared| Ok(add::best(&x[0], &x[1], &mut y).launch()?);
    let c_loop = |c_loops: &CLoops, shared: &mut Shared| {
        c_loops.add(shared.inputs[0].of(), shared.inputs[1].of(), shared.output.of_mut());
    };
    Ok(contest("a + b, 64 Mi", Access::Write(2), shared, (Box::new(own), note), c_loop, setting))
}

fn gelus(setting: &Setting<'_>) -> Result<Contest> {
    for n in [64, 5000] {
        check("gelu(a + b)·c", &[n], |device, y| {
            let [a, b, c] =
                [f32::random(device, &[n], 1)?, f32::random(device, &[n], 2)?, f32::random(device, &[n], 3)?];
            gelu_add_mul::best(&a, &b, &c, y).launch()
        })?;
    }
    let mut shared = shared(3, COUNT);
    // SAFETY: the contest drops contestants and memory together, and each contestant is done when its turn ends.
    let (x, mut y) = unsafe { tensors(&mut shared, &[COUNT], &[COUNT]) }?;
    let note = gelu_add_mul::best(&x[0], &x[1], &x[2], &mut y).instance()?;
    let own = move |_: &mut Shared| Ok(gelu_add_mul::best(&x[0], &x[1], &x[2], &mut y).launch()?);
    let c_loop = |c_loops: &CLoops, shared: &mut Shared| {
        let inputs = [0, 1, 2].map(|at| shared.inputs[at].of());
        c_loops.gelu_add_mul(inputs, shared.output.of_mut());
    };
    Ok(contest("gelu(a + b)·c, 64 Mi", Access::Write(3), shared, (Box::new(own), note), c_loop, setting))
}

fn sums(setting: &Setting<'_>) -> Result<Contest> {
    for [m, n] in [[4, 64], [7, 5000]] {
        check("sum", &[1], |device, y| {
            let mut partial = Tensor::zeros(device, [m])?;
            sum_rows::best(&f32::random(device, &[m, n], 1)?, &mut partial).launch()?;
            sum_all::best(&partial, y).launch()
        })?;
    }
    let mut shared = shared(1, 1);
    // A sum of numbers around 0 is rounding errors.
    shared.inputs[0].of_mut::<f32>().iter_mut().for_each(|number| *number += 1.0);
    // SAFETY: the contest drops contestants and memory together, and each contestant is done when its turn ends.
    let (x, mut y) = unsafe { tensors(&mut shared, &[SIDE, SIDE], &[1]) }?;
    let mut partial = Tensor::zeros(&tile::Device::cpu(), [SIDE])?;
    let note = sum_rows::best(&x[0], &mut partial).instance()?;
    let own = move |_: &mut Shared| {
        sum_rows::best(&x[0], &mut partial).launch()?;
        Ok(sum_all::best(&partial, &mut y).launch()?)
    };
    let c_loop = |c_loops: &CLoops, shared: &mut Shared| {
        c_loops.sum(shared.inputs[0].of(), &mut shared.output.of_mut()[0]);
    };
    Ok(contest("sum, 64 Mi", Access::Read, shared, (Box::new(own), note), c_loop, setting))
}

fn transposes(setting: &Setting<'_>) -> Result<Contest> {
    for [m, n] in [[64, 64], [70, 131]] {
        check("transpose", &[n, m], |device, y| {
            transpose::best(&f32::random(device, &[m, n], 1)?, y).launch()
        })?;
    }
    let mut shared = shared(1, COUNT);
    // SAFETY: the contest drops contestants and memory together, and each contestant is done when its turn ends.
    let (x, mut y) = unsafe { tensors(&mut shared, &[SIDE, SIDE], &[SIDE, SIDE]) }?;
    let note = transpose::best(&x[0], &mut y).instance()?;
    let own = move |_: &mut Shared| Ok(transpose::best(&x[0], &mut y).launch()?);
    let c_loop = |c_loops: &CLoops, shared: &mut Shared| {
        c_loops.transpose(shared.inputs[0].of(), shared.output.of_mut(), SIDE);
    };
    Ok(contest("transpose 8192²", Access::Write(1), shared, (Box::new(own), note), c_loop, setting))
}
