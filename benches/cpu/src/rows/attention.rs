//! Attention in one kernel, beside the same mathematics as calls of a library: products by OpenBLAS, a softmax by C.

use super::{Row, Setting, TOLERANCE, check, random};
use crate::Result;
use crate::contest::{Check, Contest, Contestant, Role, Shared};
use crate::kernels::attention;
use crate::memory::Memory;
use crate::verdict::{Bars, Work};
use std::f32::consts::LOG2_E;
use std::rc::Rc;

/// Elements of a head.
const WIDTH: usize = 64;

const HEADS: usize = 8;
const LENGTH: usize = 2048;

const TITLE: &str = "attention f32 8×2048×64";

pub(super) fn rows() -> Vec<Row> {
    vec![Row::new(TITLE, contest)]
}

/// 1/√D, where weights are powers of e.
fn scale() -> f32 {
    1.0 / (WIDTH as f32).sqrt()
}

fn check_small() -> Result<()> {
    for (heads, queries, keys) in [(1, 64, 64), (2, 33, 150)] {
        check("attention", &[heads, queries, WIDTH], |device, o| {
            let q = random(device, &[heads, queries, WIDTH], 1)?;
            let k = random(device, &[heads, keys, WIDTH], 2)?;
            let v = random(device, &[heads, keys, WIDTH], 3)?;
            attention::best(&q, &k, &v, o, scale() * LOG2_E).launch()
        })?;
    }
    Ok(())
}

fn contest(setting: &Setting<'_>) -> Result<Contest> {
    check_small()?;
    let shape = [HEADS, LENGTH, WIDTH];
    let count = shape.iter().product();
    let inputs = (1..=3).map(|seed| Memory::floats(count, seed)).collect();
    let mut shared = Shared { inputs, output: Memory::zeros::<f32>(count) };
    // SAFETY: the contest drops contestants and memory together, and each contestant is done when its turn ends.
    let (q, k, v, mut o) = unsafe {
        let q = shared.inputs[0].tensor::<f32>(&shape)?;
        let k = shared.inputs[1].tensor::<f32>(&shape)?;
        (q, k, shared.inputs[2].tensor::<f32>(&shape)?, shared.output.tensor::<f32>(&shape)?)
    };
    let mut note = attention::best(&q, &k, &v, &mut o, scale() * LOG2_E).instance()?;
    let own = Contestant::here(Role::Ours, "ours", move |_| {
        Ok(attention::best(&q, &k, &v, &mut o, scale() * LOG2_E).launch()?)
    });
    let mut contestants = vec![own];
    match (&setting.peers.openblas, &setting.peers.c_loops) {
        (Some(openblas), Some(c_loops)) => {
            let (openblas, c_loops) = (Rc::clone(openblas), Rc::clone(c_loops));
            let mut scores = Memory::zeros::<f32>(LENGTH * LENGTH);
            contestants.push(Contestant::here(Role::Peer, "OpenBLAS + C loop", move |shared| {
                let head = LENGTH * WIDTH;
                for first in (0..count).step_by(head) {
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
    Ok(Contest {
        title: TITLE.to_owned(),
        threads: setting.threads,
        work: Work::Floats(4.0 * (HEADS * LENGTH * LENGTH * WIDTH) as f64),
        bars: Bars { peer: Some(1.3), ..Bars::default() },
        shared,
        contestants,
        by_multiply_adds: true,
        check: Check::Floats(TOLERANCE),
        note,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_attention_is_that_of_the_reference_device() {
        check_small().unwrap();
    }
}
