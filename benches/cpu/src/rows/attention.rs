//! Attention in one kernel: f32 beside the same mathematics as calls of a library, products by OpenBLAS and a softmax by C;
//! bf16 beside our own f32.

use super::{Factor, Row, Setting, TOLERANCE, check, widened};
use crate::Result;
use crate::contest::{Check, Contest, Contestant, Role, Shared};
use crate::kernels::attention;
use crate::memory::Memory;
use crate::verdict::{Bars, Work};
use half::bf16;
use std::f32::consts::LOG2_E;
use std::rc::Rc;

/// Elements of a head.
const WIDTH: usize = 64;

const HEADS: usize = 8;
const LENGTH: usize = 2048;

/// Elements of each operand.
const COUNT: usize = HEADS * LENGTH * WIDTH;

/// How far results are apart of which one has weights of bf16: half a step of the format.
const ROUNDED: f64 = 1.0 / 512.0;

pub(super) fn rows() -> Vec<Row> {
    vec![Row::new(title("f32"), floats), Row::new(title("bf16"), bf16s)]
}

fn title(format: &str) -> String {
    format!("attention {format} {HEADS}×{LENGTH}×{WIDTH}")
}

/// 1/√D, where weights are powers of e.
fn scale() -> f32 {
    1.0 / (WIDTH as f32).sqrt()
}

fn check_small<T: Factor>(format: &str) -> Result<()> {
    for (heads, queries, keys) in [(1, 64, 64), (2, 33, 150)] {
        check(&title(format), &[heads, queries, WIDTH], |device, o| {
            let q = T::random(device, &[heads, queries, WIDTH], 1)?;
            let k = T::random(device, &[heads, keys, WIDTH], 2)?;
            let v = T::random(device, &[heads, keys, WIDTH], 3)?;
            attention::best(&q, &k, &v, o, scale() * LOG2_E).launch()
        })?;
    }
    Ok(())
}

/// Our attention of three inputs, from this one on, and the instance that it takes.
fn ours<T: Factor>(
    shared: &mut Shared,
    first: usize,
    (role, name): (Role, &str),
) -> Result<(Contestant, String)> {
    let shape = [HEADS, LENGTH, WIDTH];
    // SAFETY: the contest drops contestants and memory together, and each contestant is done when its turn ends.
    let (q, k, v, mut o) = unsafe {
        let q = shared.inputs[first].tensor::<T>(&shape)?;
        let k = shared.inputs[first + 1].tensor::<T>(&shape)?;
        (q, k, shared.inputs[first + 2].tensor::<T>(&shape)?, shared.output.tensor::<f32>(&shape)?)
    };
    let instance = attention::best(&q, &k, &v, &mut o, scale() * LOG2_E).instance()?;
    let contestant = Contestant::here(role, name, move |_| {
        Ok(attention::best(&q, &k, &v, &mut o, scale() * LOG2_E).launch()?)
    });
    Ok((contestant, instance))
}

fn floats(setting: &Setting<'_>) -> Result<Contest> {
    check_small::<f32>("f32")?;
    let inputs = (1..=3).map(|seed| Memory::floats(COUNT, seed)).collect();
    let mut shared = Shared { inputs, output: Memory::zeros::<f32>(COUNT) };
    let (own, mut note) = ours::<f32>(&mut shared, 0, (Role::Ours, "ours"))?;
    let mut contestants = vec![own];
    match (&setting.peers.openblas, &setting.peers.c_loops) {
        (Some(openblas), Some(c_loops)) => {
            let (openblas, c_loops) = (Rc::clone(openblas), Rc::clone(c_loops));
            let mut scores = Memory::zeros::<f32>(LENGTH * LENGTH);
            contestants.push(Contestant::here(Role::Peer, "OpenBLAS + C loop", move |shared| {
                let head = LENGTH * WIDTH;
                for first in (0..COUNT).step_by(head) {
                    let [q, k, v] = [0, 1, 2].map(|at| &shared.inputs[at].of::<f32>()[first..first + head]);
                    let scores = scores.of_mut::<f32>();
                    openblas.multiply([LENGTH, LENGTH, WIDTH], q, k, true, scores);
                    c_loops.softmax_in_place(scores, LENGTH, scale());
                    let o = &mut shared.output.of_mut::<f32>()[first..first + head];
                    openblas.multiply([LENGTH, WIDTH, LENGTH], scores, v, false, o);
                }
                Ok(())
            }));
        }
        _ => note += " · the peer needs OpenBLAS and a C compiler",
    }
    let bars = Bars { peer: Some(1.3), ..Bars::default() };
    let contest = contest("f32", setting, (shared, contestants), (bars, note));
    Ok(Contest { by_multiply_adds: true, ..contest })
}

fn bf16s(setting: &Setting<'_>) -> Result<Contest> {
    check_small::<bf16>("bf16")?;
    let inputs: Vec<Memory> = (1..=3).map(|seed| Memory::random(COUNT, seed, bf16::from_f32)).collect();
    let wide: Vec<Memory> = inputs.iter().map(widened::<bf16>).collect();
    let inputs = inputs.into_iter().chain(wide).collect();
    let mut shared = Shared { inputs, output: Memory::zeros::<f32>(COUNT) };
    let (own, note) = ours::<bf16>(&mut shared, 0, (Role::Ours, "ours"))?;
    let (floats, _) = ours::<f32>(&mut shared, 3, (Role::Peer, "our f32"))?;
    let contest = contest("bf16", setting, (shared, vec![own, floats]), (Bars::default(), note));
    Ok(Contest { check: Check::Floats(ROUNDED), ..contest })
}

/// A contest of attention, of results that differ in the order of sums.
fn contest(
    format: &str,
    setting: &Setting<'_>,
    (shared, contestants): (Shared, Vec<Contestant>),
    (bars, note): (Bars, String),
) -> Contest {
    Contest {
        title: title(format),
        threads: setting.threads,
        work: Work::Floats(4.0 * (HEADS * LENGTH * LENGTH * WIDTH) as f64),
        bars,
        shared,
        contestants,
        by_multiply_adds: false,
        check: Check::Floats(TOLERANCE),
        note,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_attention_is_that_of_the_reference_device() {
        check_small::<f32>("f32").unwrap();
        check_small::<bf16>("bf16").unwrap();
    }
}
