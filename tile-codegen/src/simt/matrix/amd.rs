//! `V_MFMA_*` of CDNA and `V_WMMA_*` of RDNA (the ISA manuals of CDNA 3 and 4, "Matrix Arithmetic Instructions", and of
//! RDNA 3 and 4, "Wave Matrix Multiply Accumulate").

use super::{Matrix, Sum, multiply, power_of_two};
use crate::simt::fault::Problem;
use crate::simt::format::{E4M3, E5M2, Format, float8};
use crate::simt::generation::Generation;
use crate::simt::host_module::Gpu;
use crate::simt::instruction::{Call, LaneProblem, Operation, Party};

pub(in crate::simt) fn find(name: &str, gpu: Gpu) -> Option<Operation> {
    if let Some(name) = name.strip_prefix("mfma.scale.") {
        let size = of_any_formats(name, gpu)?;
        return Operation::together(Party::Warp, move |_, calls| run_scaled(size, calls));
    }
    if let Some(name) = name.strip_prefix("mfma.") {
        if let Some(size) = of_any_formats(name, gpu) {
            let run = move |calls: &[Call<'_>]| {
                let product = named_formats(size, calls)?;
                product.add(calls, product.factors(calls));
                Ok(())
            };
            return Operation::together(Party::Warp, move |_, calls| run(calls));
        }
        let product = mfma(name, gpu)?;
        return Operation::together(Party::Warp, move |_, calls| product.run(calls));
    }
    let product = wmma(name.strip_prefix("wmma.")?, gpu)?;
    Operation::together(Party::Warp, move |_, calls| product.run(calls))
}

/// A product of CDNA, by a wave of 64 lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Mfma {
    /// Rows of A, columns of B.
    size: usize,
    depth: usize,
    a: Format,
    b: Format,
    result: Format,
    sum: Sum,
    /// Whether subnormal factors are zeros.
    flushes: bool,
}

/// The sizes and formats of a name such as `f32.32x32x8f16` or `f32.16x16x32.fp8.bf8`.
fn mfma(name: &str, gpu: Gpu) -> Option<Mfma> {
    let (result, name) = name.split_once('.')?;
    let (size, rest) = [("16x16x", 16), ("32x32x", 32)]
        .into_iter()
        .find_map(|(prefix, size)| Some((size, name.strip_prefix(prefix)?)))?;
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let depth = rest[..digits].parse().ok()?;
    let (result, sum) = match result {
        "f32" => (Format::F32, Sum::F32),
        "f64" => (Format::F64, Sum::F64),
        "i32" => (Format::I32, Sum::I32 { saturates: false }),
        _ => return None,
    };
    let formats = rest[digits..].trim_start_matches('.');
    let (a, b) = match formats {
        "f16" => (Format::F16, Format::F16),
        "bf16" | "bf16.1k" => (Format::Bf16, Format::Bf16),
        "f32" => (Format::F32, Format::F32),
        "f64" => (Format::F64, Format::F64),
        "i8" => (Format::S8, Format::S8),
        _ => {
            let (a, b) = formats.split_once('.')?;
            (float8(a, gpu.generation)?, float8(b, gpu.generation)?)
        }
    };
    // The depths of products with one block; others of these sizes have several.
    let depths: &[usize] = match (a.bytes(), size) {
        (8, 16) => &[4],
        (4, 16) => &[4],
        (4, 32) => &[2],
        (2, 16) => &[8, 16, 32],
        (2, 32) => &[4, 8, 16],
        (1, 16) => &[16, 32, 64],
        (1, 32) => &[8, 16, 32],
        _ => &[],
    };
    // Of 16-bit formats the shortest depth has one block only for bf16 without `1k`.
    let several = [(16, 8), (32, 4)].contains(&(size, depth)) && formats != "bf16" && a.bytes() == 2;
    // "MI200 MFMA behavior specifics" of AMD's MIOpen: factors of f16 and bf16. What it says of sums isn't modelled.
    let flushes = match gpu.generation {
        Generation::Cdna2 => a.bytes() == 2,
        Generation::Cdna3 | Generation::Cdna4 => false,
        Generation::Nvidia | Generation::Rdna3 | Generation::Rdna4 => return None,
    };
    (depths.contains(&depth) && !several).then_some(Mfma { size, depth, a, b, result, sum, flushes })
}

impl Mfma {
    fn run(self, calls: &[Call<'_>]) -> Result<(), LaneProblem> {
        check_wave(calls, 64)?;
        // `cbsz`, `abid` and `blgp` exchange what lanes hold.
        if let Some(call) = calls.iter().find(|call| (3..6).any(|operand| call.word(operand) != 0)) {
            let what = "a matrix product with broadcasts among lanes isn't modelled".to_owned();
            return Err((call.thread, Problem::Misuse(what)));
        }
        self.add(calls, self.factors(calls));
        Ok(())
    }

    /// The first two operands.
    fn factors(self, calls: &[Call<'_>]) -> [Matrix; 2] {
        let Mfma { size, depth, a, b, flushes, .. } = self;
        // Lanes that hold the same row follow each other in k.
        let held = (depth * size / 64).min(16 / a.bytes());
        let groups = 64 / size;
        // What doesn't fit into four registers is as much again, behind what all lanes have of the row in these.
        let along = |lane: usize, i: usize| i / held * held * groups + lane / size * held + i % held;
        let of_a = |lane: usize, i: usize| [lane % size, along(lane, i)];
        let of_b = |lane: usize, i: usize| [along(lane, i), lane % size];
        let factors = [
            Matrix::gather([size, depth], a, &operand(calls, 0), &of_a),
            Matrix::gather([depth, size], b, &operand(calls, 1), &of_b),
        ];
        let least = if a == Format::F16 { 2f64.powi(-14) } else { f64::from(f32::MIN_POSITIVE) };
        let flushed = |factor: Matrix| factor.map(|x| if x.abs() < least { 0.0 * x } else { x });
        if flushes { factors.map(flushed) } else { factors }
    }

    /// Gives lanes the product of these factors with the third operand added.
    fn add(self, calls: &[Call<'_>], [a, b]: [Matrix; 2]) {
        let Mfma { size, result, sum, .. } = self;
        let of_c = move |lane: usize, i: usize| {
            let group = lane / size;
            let row =
                if result == Format::F64 { 4 * i + group } else { i / 4 * (256 / size) + 4 * group + i % 4 };
            [row, lane % size]
        };
        let c = Matrix::gather([size, size], result, &operand(calls, 2), &of_c);
        multiply(&a, &b, &c, sum).scatter(result, calls, &of_c);
    }
}

/// Rows and depth of a name such as `f32.16x16x128.f8f6f4.v8i32.v8i32`, of factors of eight bits.
fn of_any_formats(name: &str, gpu: Gpu) -> Option<[usize; 2]> {
    match gpu.generation {
        Generation::Cdna4 => {}
        Generation::Nvidia | Generation::Cdna2 | Generation::Cdna3 => return None,
        Generation::Rdna3 | Generation::Rdna4 => return None,
    }
    match name {
        "f32.16x16x128.f8f6f4.v8i32.v8i32" => Some([16, 128]),
        "f32.32x32x64.f8f6f4.v8i32.v8i32" => Some([32, 64]),
        _ => None,
    }
}

/// A product whose factors' formats are operands (CDNA4 ISA, `V_MFMA_F32_16X16X128_F8F6F4`).
fn named_formats([size, depth]: [usize; 2], calls: &[Call<'_>]) -> Result<Mfma, LaneProblem> {
    check_wave(calls, 64)?;
    let format = |operand| match calls[0].word(operand) {
        0 => Ok(E4M3),
        1 => Ok(E5M2),
        _ => {
            let what = "a matrix product of formats of fewer than eight bits isn't modelled";
            Err((calls[0].thread, Problem::Misuse(what.to_owned())))
        }
    };
    Ok(Mfma { size, depth, a: format(3)?, b: format(4)?, result: Format::F32, sum: Sum::F32, flushes: false })
}

/// Elements along k that share a scale.
const BLOCK: usize = 32;

/// A product each of whose factors has a power of two for every 32 elements along k (CDNA4 ISA,
/// `V_MFMA_SCALE_F32_16X16X128_F8F6F4`). Lane `l` has that of row or column `l % size` and block `l / size`, in the byte of a
/// word that an operand selects.
fn run_scaled(size: [usize; 2], calls: &[Call<'_>]) -> Result<(), LaneProblem> {
    let product = Mfma { sum: Sum::F32OfAny, ..named_formats(size, calls)? };
    let [size, depth] = size;
    let scale = |row: usize, k: usize, first: usize| {
        let call = &calls[k / BLOCK * size + row];
        power_of_two((call.word(first + 1) >> (8 * call.word(first))) as u8)
    };
    let [mut a, mut b] = product.factors(calls);
    for (row, k) in (0..size).flat_map(|row| (0..depth).map(move |k| (row, k))) {
        *a.at([row, k]) *= scale(row, k, 5);
        *b.at([k, row]) *= scale(row, k, 7);
    }
    product.add(calls, [a, b]);
    Ok(())
}

fn operand(calls: &[Call<'_>], operand: usize) -> Vec<Vec<u8>> {
    calls.iter().map(|call| call.bytes(operand).to_vec()).collect()
}

fn check_wave(calls: &[Call<'_>], lanes: usize) -> Result<(), LaneProblem> {
    if calls.len() == lanes {
        return Ok(());
    }
    Err((
        calls[0].thread,
        Problem::Misuse(format!("a matrix product needs {lanes} lanes, not {}", calls.len())),
    ))
}

/// A product of RDNA, 16 by 16 by 16, by a wave of 32 lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Wmma {
    format: Element,
    result: Format,
    /// Whether both halves of the wave hold the same, as on RDNA 3.
    twice: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Element {
    Of(Format, Format),
    /// Bytes whose signs are operands.
    Byte,
}

const SIZE: usize = 16;

fn wmma(name: &str, gpu: Gpu) -> Option<Wmma> {
    let twice = match gpu.generation {
        Generation::Rdna3 => true,
        Generation::Rdna4 => false,
        Generation::Nvidia | Generation::Cdna2 | Generation::Cdna3 | Generation::Cdna4 => return None,
    };
    let mut parts = name.split('.');
    let (result, shape, a) = (parts.next()?, parts.next()?, parts.next()?);
    if shape != "16x16x16" {
        return None;
    }
    let (format, result) = match (result, a) {
        ("f32", "f16") => (Element::Of(Format::F16, Format::F16), Format::F32),
        ("f32", "bf16") => (Element::Of(Format::Bf16, Format::Bf16), Format::F32),
        ("i32", "iu8") => (Element::Byte, Format::I32),
        ("f32", "fp8" | "bf8") => {
            (Element::Of(float8(a, gpu.generation)?, float8(parts.next()?, gpu.generation)?), Format::F32)
        }
        _ => return None,
    };
    Some(Wmma { format, result, twice })
}

impl Wmma {
    fn run(self, calls: &[Call<'_>]) -> Result<(), LaneProblem> {
        check_wave(calls, 32)?;
        let sign = |operand| if calls[0].flag(operand) { Format::S8 } else { Format::U8 };
        let (a, b, [at_a, at_b, at_c], sum) = match self.format {
            Element::Of(a, b) => (a, b, [0, 1, 2], Sum::F32),
            Element::Byte => (sign(0), sign(2), [1, 3, 4], Sum::I32 { saturates: calls[0].flag(5) }),
        };
        if self.twice {
            for at in [at_a, at_b] {
                check_twice(calls, at)?;
            }
        }
        let held = if self.twice { 0 } else { 8 };
        let of_a = |lane: usize, i: usize| [lane % SIZE, lane / SIZE * held + i];
        let of_b = |lane: usize, i: usize| [lane / SIZE * held + i, lane % SIZE];
        let twice = self.twice;
        let of_c = move |lane: usize, i: usize| {
            let half = lane / SIZE;
            [if twice { 2 * i + half } else { 8 * half + i }, lane % SIZE]
        };
        let a = Matrix::gather([SIZE; 2], a, &operand(calls, at_a), &of_a);
        let b = Matrix::gather([SIZE; 2], b, &operand(calls, at_b), &of_b);
        let c = Matrix::gather([SIZE; 2], self.result, &operand(calls, at_c), &of_c);
        multiply(&a, &b, &c, sum).scatter(self.result, calls, &of_c);
        Ok(())
    }
}

/// Both halves of the wave must hold the same.
fn check_twice(calls: &[Call<'_>], operand: usize) -> Result<(), LaneProblem> {
    let (first, second) = calls.split_at(SIZE);
    let differs = |(one, other): &(&Call<'_>, &Call<'_>)| one.bytes(operand) != other.bytes(operand);
    match first.iter().zip(second).find(differs) {
        Some((one, other)) => {
            let what = format!("holds another part of operand {operand} than thread {}", one.thread);
            Err((other.thread, Problem::Misuse(what)))
        }
        None => Ok(()),
    }
}
