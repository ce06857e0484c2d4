//! Matrix products: f32 beside libraries for linear algebra, narrow formats beside our own f32.

use super::{Factor, Row, Setting, TOLERANCE, check, widened};
use crate::Result;
use crate::contest::{Check, Contest, Contestant, Role, Shared};
use crate::kernels::{matmul, matmul_i8};
use crate::machine::has;
use crate::memory::{Memory, Plain};
use crate::peers::crates;
use crate::verdict::{Bars, Work};
use half::bf16;
use std::rc::Rc;
use tile::{Device, Tensor};

/// Rows, columns and depth of the products of f32.
const SHAPES: [[usize; 3]; 6] =
    [[256; 3], [512; 3], [1024; 3], [2048; 3], [1000, 1003, 997], [4096, 64, 4096]];

/// Those of narrow formats.
const NARROW: [usize; 3] = [1024; 3];

/// The part of the peak of multiply-adds that large products are to reach.
const SHARE: f64 = 0.90;

pub(super) fn rows() -> Vec<Row> {
    let mut rows: Vec<Row> = SHAPES
        .iter()
        .map(|&shape| Row::new(title("f32", shape), move |setting| floats(shape, setting)))
        .collect();
    rows.push(Row::new(title("bf16", NARROW), |setting| bf16s(NARROW, setting)));
    rows.push(Row::new(title("i8", NARROW), |setting| integers(NARROW, setting)));
    rows
}

fn title(format: &str, [m, n, k]: [usize; 3]) -> String {
    if m == n && n == k { format!("matmul {format} {m}³") } else { format!("matmul {format} {m}×{n}×{k}") }
}

fn operations([m, n, k]: [usize; 3]) -> f64 {
    2.0 * m as f64 * n as f64 * k as f64
}

/// Small products, of whole tiles and of others.
const SMALL: [[usize; 3]; 3] = [[64, 64, 64], [70, 33, 133], [1, 19, 300]];

fn check_small<T: Factor>(format: &str) -> Result<()> {
    for [m, n, k] in SMALL {
        check(&title(format, [m, n, k]), &[m, n], |device, c| {
            let (a, b) = (T::random(device, &[m, k], 1)?, T::random(device, &[k, n], 2)?);
            matmul::best(&a, &b, c).launch()
        })?;
    }
    Ok(())
}

/// Our product of two inputs, and the instance that it takes.
fn ours<T: Factor>(
    shared: &mut Shared,
    inputs: [usize; 2],
    [m, n, k]: [usize; 3],
    (role, name): (Role, &str),
) -> Result<(Contestant, String)> {
    // SAFETY: the contest drops contestants and memory together, and each contestant is done when its turn ends.
    let (a, b, mut c) = unsafe {
        let a = shared.inputs[inputs[0]].tensor::<T>(&[m, k])?;
        (a, shared.inputs[inputs[1]].tensor::<T>(&[k, n])?, shared.output.tensor::<f32>(&[m, n])?)
    };
    let instance = matmul::best(&a, &b, &mut c).instance()?;
    let contestant = Contestant::here(role, name, move |_| Ok(matmul::best(&a, &b, &mut c).launch()?));
    Ok((contestant, instance))
}

fn floats(shape: [usize; 3], setting: &Setting<'_>) -> Result<Contest> {
    check_small::<f32>("f32")?;
    let [m, n, k] = shape;
    let inputs = vec![Memory::floats(m * k, 1), Memory::floats(k * n, 2)];
    let mut shared = Shared { inputs, output: Memory::zeros::<f32>(m * n) };
    let (own, note) = ours::<f32>(&mut shared, [0, 1], shape, (Role::Ours, "ours"))?;
    let mut contestants = vec![own];
    if let Some(openblas) = &setting.peers.openblas {
        let openblas = Rc::clone(openblas);
        contestants.push(Contestant::here(Role::Peer, "OpenBLAS", move |shared| {
            let (a, b) = (shared.inputs[0].of(), shared.inputs[1].of());
            openblas.multiply([m, n, k], a, b, false, shared.output.of_mut());
            Ok(())
        }));
    }
    contestants.extend(crates::multiplying(shape, setting.threads)?);
    if let Some(torch) = &setting.peers.torch {
        let task = format!("matmul {} {m} {n} {k}", setting.threads);
        contestants.push(Contestant::elsewhere("torch", Rc::clone(torch), task));
    }
    let is_large = m == n && m >= 1024;
    Ok(Contest {
        title: title("f32", shape),
        threads: setting.threads,
        work: Work::Floats(operations(shape)),
        bars: Bars { peer: Some(0.95), limit: is_large.then_some(SHARE), seconds: None },
        shared,
        contestants,
        by_multiply_adds: true,
        check: Check::Floats(TOLERANCE),
        note,
    })
}

/// The bar of a narrow format beside our f32, on processors with instructions for it.
fn narrow_bars(instructions: &[&str]) -> Bars {
    Bars { peer: instructions.iter().any(|name| has(name)).then_some(1.8), ..Bars::default() }
}

/// The note of a narrow format: its instance, and whether the processor has instructions for it.
fn narrow_note(bars: &Bars, instance: String, format: &str) -> String {
    match bars.peer {
        Some(_) => instance,
        None => format!("{instance} · this processor has no instructions for {format}"),
    }
}

/// The memory of a product of a narrow format, with its factors as f32 behind them.
fn narrow_memory<T: Plain>([m, n, k]: [usize; 3], number: fn(f32) -> T) -> Shared {
    let factors = [Memory::random(m * k, 1, number), Memory::random(k * n, 2, number)];
    let wide = factors.each_ref().map(widened::<T>);
    Shared { inputs: factors.into_iter().chain(wide).collect(), output: Memory::zeros::<f32>(m * n) }
}

/// A contest of a narrow format, ours, with our own f32 on the same numbers.
fn narrow(
    mut shared: Shared,
    (format, shape): (&str, [usize; 3]),
    setting: &Setting<'_>,
    bars: Bars,
    (own, note): (Contestant, String),
) -> Result<Contest> {
    let (floats, _) = ours::<f32>(&mut shared, [2, 3], shape, (Role::Peer, "our f32"))?;
    let (work, check) = match format {
        "i8" => (Work::Integers(operations(shape)), Check::Integers),
        _ => (Work::Floats(operations(shape)), Check::Floats(TOLERANCE)),
    };
    Ok(Contest {
        title: title(format, shape),
        threads: setting.threads,
        work,
        bars,
        shared,
        contestants: vec![own, floats],
        by_multiply_adds: false,
        check,
        note,
    })
}

fn bf16s(shape: [usize; 3], setting: &Setting<'_>) -> Result<Contest> {
    check_small::<bf16>("bf16")?;
    let mut shared = narrow_memory(shape, bf16::from_f32);
    let (own, instance) = ours::<bf16>(&mut shared, [0, 1], shape, (Role::Ours, "ours"))?;
    let bars = narrow_bars(&["avx512bf16", "amx-bf16", "bf16"]);
    let note = narrow_note(&bars, instance, "bf16");
    narrow(shared, ("bf16", shape), setting, bars, (own, note))
}

fn integers(shape: [usize; 3], setting: &Setting<'_>) -> Result<Contest> {
    let byte = |number: f32| (number * 128.0) as i8;
    for [m, n, k] in SMALL {
        let results = [Device::reference(), Device::cpu()].map(|device| {
            let tensor = |shape: [usize; 2], seed| {
                let memory = Memory::random(shape[0] * shape[1], seed, byte);
                Tensor::from_slice(&device, memory.of::<i8>(), shape)
            };
            let mut c = Tensor::full(&device, [m, n], i32::MIN)?;
            matmul_i8::best(&tensor([m, k], 1)?, &tensor([k, n], 2)?, &mut c).launch()?;
            c.to_vec()
        });
        let [expected, actual] = results;
        if expected? != actual? {
            return Err(format!("{}: CPU and reference device differ", title("i8", [m, n, k])).into());
        }
    }
    let [m, n, k] = shape;
    let mut shared = narrow_memory(shape, byte);
    // SAFETY: the contest drops contestants and memory together, and each contestant is done when its turn ends.
    let (a, b, mut c) = unsafe {
        let a = shared.inputs[0].tensor::<i8>(&[m, k])?;
        (a, shared.inputs[1].tensor::<i8>(&[k, n])?, shared.output.tensor::<i32>(&[m, n])?)
    };
    let bars = narrow_bars(&["avx512vnni", "avxvnni", "amx-int8", "i8mm"]);
    let note = narrow_note(&bars, matmul_i8::best(&a, &b, &mut c).instance()?, "i8");
    let own = Contestant::here(Role::Ours, "ours", move |_| Ok(matmul_i8::best(&a, &b, &mut c).launch()?));
    narrow(shared, ("i8", shape), setting, bars, (own, note))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_products_are_those_of_the_reference_device() {
        check_small::<f32>("f32").unwrap();
        check_small::<bf16>("bf16").unwrap();
    }

    #[test]
    fn titles_have_what_differs() {
        assert_eq!(title("f32", [512; 3]), "matmul f32 512³");
        assert_eq!(title("f32", [4096, 64, 4096]), "matmul f32 4096×64×4096");
        assert_eq!(operations([2, 3, 5]), 60.0);
    }
}
