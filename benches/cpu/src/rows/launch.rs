//! What a launch of a small grid costs the thread that makes it, code and choice being there.

use super::{Factor, Row, Setting, check};
use crate::Result;
use crate::contest::{Check, Contest, Contestant, Role, Shared};
use crate::kernels::scale_add;
use crate::memory::Memory;
use crate::verdict::{Bars, Work};

/// Elements: four blocks of 64.
const COUNT: usize = 256;

/// Seconds that a launch may take.
const MOST: f64 = 2e-6;

const TITLE: &str = "launch of 4 blocks";

pub(super) fn rows() -> Vec<Row> {
    vec![Row::new(TITLE, contest)]
}

fn contest(setting: &Setting<'_>) -> Result<Contest> {
    check("x + 3w", &[COUNT], |device, y| {
        scale_add::best(&f32::random(device, &[COUNT], 1)?, &f32::random(device, &[COUNT], 2)?, y).launch()
    })?;
    let inputs = vec![Memory::floats(COUNT, 1), Memory::floats(COUNT, 2)];
    let mut shared = Shared { inputs, output: Memory::zeros::<f32>(COUNT) };
    // SAFETY: the contest drops contestants and memory together, and each contestant is done when its turn ends.
    let (x, w, mut y) = unsafe {
        let x = shared.inputs[0].tensor::<f32>(&[COUNT])?;
        (x, shared.inputs[1].tensor::<f32>(&[COUNT])?, shared.output.tensor::<f32>(&[COUNT])?)
    };
    scale_add::best(&x, &w, &mut y).warm()?;
    let own = move |_: &mut Shared| Ok(scale_add::best(&x, &w, &mut y).launch()?);
    Ok(Contest {
        title: TITLE.to_owned(),
        threads: setting.threads,
        work: Work::Once,
        bars: Bars { seconds: Some(MOST), ..Bars::default() },
        shared,
        contestants: vec![Contestant::here(Role::Ours, "ours", own)],
        by_multiply_adds: false,
        check: Check::Alone,
        note: "CubeCL publishes 10 µs for a launch on its CPU runtime".to_owned(),
    })
}
