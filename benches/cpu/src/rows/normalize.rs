//! Softmax and normalisation of rows: limited by memory, which must give and take every element once.

use super::{Factor, Row, Setting, TOLERANCE, c_loop, check};
use crate::Result;
use crate::contest::{Check, Contest, Contestant, Role, Shared};
use crate::kernels::{layernorm, rmsnorm, softmax};
use crate::limits::{self, Access};
use crate::memory::Memory;
use crate::peers::c_loops::CLoops;
use crate::verdict::{Bars, Work};
use std::rc::Rc;
use tile::{Device, Tensor, TensorRef};

/// Rows and their elements.
const SHAPES: [[usize; 2]; 2] = [[4096, 4096], [16384, 8192]];

/// What is computed of a row.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Softmax,
    RmsNorm,
    LayerNorm,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::Softmax => "softmax",
            Kind::RmsNorm => "rmsnorm",
            Kind::LayerNorm => "layernorm",
        }
    }
}

pub(super) fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    for kind in [Kind::Softmax, Kind::RmsNorm, Kind::LayerNorm] {
        for shape in SHAPES {
            rows.push(Row::new(title(kind, shape), move |setting| contest(kind, shape, setting)));
        }
    }
    rows
}

fn title(kind: Kind, [m, n]: [usize; 2]) -> String {
    format!("{} {m}×{n}", kind.name())
}

/// The launch of a kernel, of which there is one form for each kind.
macro_rules! launch_of {
    ($kind:expr, $x:expr, $weight:expr, $bias:expr, $y:expr) => {
        match $kind {
            Kind::Softmax => softmax::best($x, $y),
            Kind::RmsNorm => rmsnorm::best($x, $weight, $y),
            Kind::LayerNorm => layernorm::best($x, $weight, $bias, $y),
        }
    };
}

fn check_small(kind: Kind) -> Result<()> {
    for [m, n] in [[3, 64], [5, 1000], [2, 1025]] {
        check(&title(kind, [m, n]), &[m, n], |device: &Device, y: &mut TensorRef<f32>| {
            let [x, weight, bias]: [Tensor<f32>; 3] = [
                f32::random(device, &[m, n], 1)?,
                f32::random(device, &[1, n], 2)?,
                f32::random(device, &[1, n], 3)?,
            ];
            launch_of!(kind, &x, &weight, &bias, y).launch()
        })?;
    }
    Ok(())
}

fn contest(kind: Kind, [m, n]: [usize; 2], setting: &Setting<'_>) -> Result<Contest> {
    check_small(kind)?;
    let inputs = vec![Memory::floats(m * n, 1), Memory::floats(n, 2), Memory::floats(n, 3)];
    let mut shared = Shared { inputs, output: Memory::zeros::<f32>(m * n) };
    // SAFETY: the contest drops contestants and memory together, and each contestant is done when its turn ends.
    let (x, weight, bias, mut y) = unsafe {
        let x = shared.inputs[0].tensor::<f32>(&[m, n])?;
        let weight = shared.inputs[1].tensor::<f32>(&[1, n])?;
        (x, weight, shared.inputs[2].tensor::<f32>(&[1, n])?, shared.output.tensor::<f32>(&[m, n])?)
    };
    let note = launch_of!(kind, &x, &weight, &bias, &mut y).instance()?;
    let own = Contestant::here(Role::Ours, "ours", move |_| {
        Ok(launch_of!(kind, &x, &weight, &bias, &mut y).launch()?)
    });
    let mut contestants = vec![own];
    let in_c = move |c_loops: &CLoops, shared: &mut Shared| {
        let (x, y) = (shared.inputs[0].of(), shared.output.of_mut());
        let (weight, bias) = (shared.inputs[1].of(), shared.inputs[2].of());
        match kind {
            Kind::Softmax => c_loops.softmax(x, y, n),
            Kind::RmsNorm => c_loops.rmsnorm(x, weight, y),
            Kind::LayerNorm => c_loops.layernorm(x, weight, bias, y),
        }
    };
    contestants.extend(c_loop(Role::Peer, in_c, setting));
    if let Some(torch) = &setting.peers.torch {
        let task = format!("{} {} {m} {n}", kind.name(), setting.threads);
        contestants.push(Contestant::elsewhere("torch", Rc::clone(torch), task));
    }
    contestants.extend(limits::of(Access::Write(1), setting.threads));
    Ok(Contest {
        title: title(kind, [m, n]),
        threads: setting.threads,
        work: Work::Bytes(2.0 * 4.0 * (m * n) as f64),
        bars: Bars { peer: Some(1.0), limit: Some(0.95), seconds: None },
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
    fn small_rows_are_those_of_the_reference_device() {
        for kind in [Kind::Softmax, Kind::RmsNorm, Kind::LayerNorm] {
            check_small(kind).unwrap();
        }
    }
}
