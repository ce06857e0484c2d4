//! `mma.sync`, `ldmatrix` and `stmatrix` (PTX ISA, "Matrix Fragments for mma.m16n8k8" and the sections after it; "Block
//! Scaling for mma.sync"; "ldmatrix"; "stmatrix").

use super::{Matrix, Sum, multiply, power_of_two};
use crate::simt::block::Block;
use crate::simt::fault::Problem;
use crate::simt::format::{E4M3, E5M2, Format};
use crate::simt::instruction::{Call, LaneProblem, Operation, Party};

/// What `mma` multiplies. A and B have elements of the same size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Product {
    depth: usize,
    a: Format,
    b: Format,
    /// Of C and D.
    result: Format,
    sum: Sum,
}

const ROWS: usize = 16;
const COLUMNS: usize = 8;

pub(in crate::simt) fn find(name: &str) -> Option<Operation> {
    if let Some(rest) = name.strip_prefix("mma.block.scale.m16n8k32.row.col.mxf8f6f4.scale.1x.") {
        let formats = rest.strip_prefix("f32.")?.strip_suffix(".f32.ue8m0")?;
        let (a, b) = formats.split_once('.')?;
        let factors = [float8(a)?, float8(b)?];
        return Operation::together(Party::Warp, move |_, calls| multiply_scaled(factors, calls));
    }
    if let Some(rest) = name.strip_prefix("mma.m16n8k") {
        let product = product(rest)?;
        return Operation::together(Party::Warp, move |_, calls| {
            multiply_accumulate(product, calls);
            Ok(())
        });
    }
    let (name, loads) = match name.strip_prefix("ldmatrix.sync.aligned.m8n8.x") {
        Some(name) => (name, true),
        None => (name.strip_prefix("stmatrix.sync.aligned.m8n8.x")?, false),
    };
    let (count, rest) = name.split_once('.')?;
    let count: usize = count.parse().ok().filter(|count| [1, 2, 4].contains(count))?;
    let transposed = rest.starts_with("trans.");
    let rest = rest.strip_prefix("trans.").unwrap_or(rest);
    if rest != "b16" && !rest.starts_with("b16.p") {
        return None;
    }
    Operation::together(Party::Warp, move |block, calls| {
        if loads { load(block, calls, count, transposed) } else { store(block, calls, count, transposed) }
    })
}

fn float8(name: &str) -> Option<Format> {
    match name {
        "e4m3" => Some(E4M3),
        "e5m2" => Some(E5M2),
        _ => None,
    }
}

/// The product of a name after `mma.m16n8k`.
fn product(name: &str) -> Option<Product> {
    let (depth, name) = name.split_once(".row.col.")?;
    let depth = depth.parse().ok()?;
    let saturates = name.starts_with("satfinite.");
    let name = name.strip_prefix("satfinite.").unwrap_or(name);
    let integer = |name| match name {
        "s8" => Some(Format::S8),
        "u8" => Some(Format::U8),
        _ => None,
    };
    let of = |a, b, result| Some(Product { depth, a, b, result, sum: Sum::F32 });
    match *name.split('.').collect::<Vec<_>>() {
        ["bf16"] if [8, 16].contains(&depth) => of(Format::Bf16, Format::Bf16, Format::F32),
        ["tf32"] if depth == 8 => of(Format::Tf32, Format::Tf32, Format::F32),
        ["f32", "f32"] if [8, 16].contains(&depth) => of(Format::F16, Format::F16, Format::F32),
        ["f16", "f16"] if [8, 16].contains(&depth) => of(Format::F16, Format::F16, Format::F16),
        ["f32", a, b, "f32"] if [16, 32].contains(&depth) => of(float8(a)?, float8(b)?, Format::F32),
        ["f16", a, b, "f16"] if [16, 32].contains(&depth) => of(float8(a)?, float8(b)?, Format::F16),
        [a] | [a, _] if [16, 32].contains(&depth) => {
            let b = name.split('.').next_back().unwrap_or(a);
            let sum = Sum::I32 { saturates };
            Some(Product { depth, a: integer(a)?, b: integer(b)?, result: Format::I32, sum })
        }
        _ => None,
    }
}

/// The row and column of A. A register holds four bytes of a row; registers alternate between the upper and the lower
/// eight rows.
fn of_a(bytes: usize, lane: usize, i: usize) -> [usize; 2] {
    let held = 4 / bytes;
    let (register, element) = (i / held, i % held);
    [lane / 4 + 8 * (register % 2), lane % 4 * held + element + register / 2 * 4 * held]
}

/// The row and column of B.
fn of_b(bytes: usize, lane: usize, i: usize) -> [usize; 2] {
    let held = 4 / bytes;
    let (register, element) = (i / held, i % held);
    [lane % 4 * held + element + register * 4 * held, lane / 4]
}

/// The row and column of C and D.
fn of_c(lane: usize, i: usize) -> [usize; 2] {
    [lane / 4 + 8 * (i / 2), lane % 4 * 2 + i % 2]
}

/// Registers of a lane's part of a factor of so many elements of so many bytes.
fn registers(elements: usize, bytes: usize) -> usize {
    elements * bytes / 32 / 4
}

fn lanes(calls: &[Call<'_>], operands: std::ops::Range<usize>) -> Vec<Vec<u8>> {
    calls.iter().map(|call| call.all_bytes(operands.clone())).collect()
}

/// A and B, which are the first operands.
fn factors(depth: usize, [a, b]: [Format; 2], calls: &[Call<'_>]) -> [Matrix; 2] {
    let bytes = a.bytes();
    let first_b = registers(ROWS * depth, bytes);
    let of_a = lanes(calls, 0..first_b);
    let of_b = lanes(calls, first_b..first_b + registers(COLUMNS * depth, bytes));
    [
        Matrix::gather([ROWS, depth], a, &of_a, &|lane, i| self::of_a(bytes, lane, i)),
        Matrix::gather([depth, COLUMNS], b, &of_b, &|lane, i| self::of_b(bytes, lane, i)),
    ]
}

fn multiply_accumulate(product: Product, calls: &[Call<'_>]) {
    let Product { depth, a, b, result, sum } = product;
    let first_c = registers((ROWS + COLUMNS) * depth, a.bytes());
    let [a, b] = factors(depth, [a, b], calls);
    let c = lanes(calls, first_c..calls[0].operands());
    let c = Matrix::gather([ROWS, COLUMNS], result, &c, &of_c);
    multiply(&a, &b, &c, sum).scatter(result, calls, &of_c);
}

/// The depth of a product with `.scale_vec::1X`, all of which shares a scale.
const SCALED_DEPTH: usize = 32;

/// A product of 8-bit floats, `(A * scale_A) * (B * scale_B) + C` (PTX ISA, "Block Scaling for mma.sync"): each row of A and
/// each column of B has a power of two. The operands behind C are, for A and then for B, a word, which of its bytes is the
/// scale, and which lanes of a quad give it: one of two pairs for the rows that the quad has of A, and one of four for its column of B.
fn multiply_scaled(formats: [Format; 2], calls: &[Call<'_>]) -> Result<(), LaneProblem> {
    let first_c = registers((ROWS + COLUMNS) * SCALED_DEPTH, 1);
    let first_scale = first_c + 4;
    let [a, b] = [first_scale, first_scale + 3];
    if calls[0].word(a + 2) > 1 || calls[0].word(b + 2) > 3 {
        let what =
            "a quad has two pairs of lanes for the scales of A, and four lanes for those of B".to_owned();
        return Err((calls[0].thread, Problem::Misuse(what)));
    }
    let scale = |lane: usize, word: usize| {
        let call = &calls[lane];
        power_of_two((call.word(word) >> (8 * call.word(word + 1))) as u8)
    };
    let [mut of_a, mut of_b] = factors(SCALED_DEPTH, formats, calls);
    for k in 0..SCALED_DEPTH {
        for row in 0..ROWS {
            let pair = calls[0].word(a + 2) as usize;
            *of_a.at([row, k]) *= scale(row % 8 * 4 + pair * 2 + row / 8, a);
        }
        for column in 0..COLUMNS {
            let one = calls[0].word(b + 2) as usize;
            *of_b.at([k, column]) *= scale(column * 4 + one, b);
        }
    }
    let c = Matrix::gather([ROWS, COLUMNS], Format::F32, &lanes(calls, first_c..first_scale), &of_c);
    multiply(&of_a, &of_b, &c, Sum::F32OfAny).scatter(Format::F32, calls, &of_c);
    Ok(())
}

/// Bytes of a row of an 8 by 8 matrix of 16-bit elements, and its alignment.
const ROW: usize = 16;

/// The row and column of the element of a lane.
fn of_part(lane: usize, i: usize, transposed: bool) -> [usize; 2] {
    let place = [lane / 4, lane % 4 * 2 + i];
    if transposed { [place[1], place[0]] } else { place }
}

fn load(
    block: &mut Block<'_>,
    calls: &[Call<'_>],
    count: usize,
    transposed: bool,
) -> Result<(), LaneProblem> {
    let mut rows = Vec::new();
    for call in &calls[..8 * count] {
        let row = block.load(call, call.word(0), ROW, ROW);
        rows.push(row.map_err(|problem| (call.thread, problem))?);
    }
    for (lane, call) in calls.iter().enumerate() {
        for matrix in 0..count {
            let element = |i| {
                let [row, column] = of_part(lane, i, transposed);
                let row = &rows[8 * matrix + row];
                [row[2 * column], row[2 * column + 1]]
            };
            call.give(matrix, &[element(0), element(1)].concat());
        }
    }
    Ok(())
}

fn store(
    block: &mut Block<'_>,
    calls: &[Call<'_>],
    count: usize,
    transposed: bool,
) -> Result<(), LaneProblem> {
    let mut rows = vec![[0u8; ROW]; 8 * count];
    for (lane, call) in calls.iter().enumerate() {
        for matrix in 0..count {
            for (i, element) in call.bytes(1 + matrix).chunks_exact(2).enumerate() {
                let [row, column] = of_part(lane, i, transposed);
                rows[8 * matrix + row][2 * column..2 * column + 2].copy_from_slice(element);
            }
        }
    }
    for (call, row) in calls.iter().zip(rows) {
        block.store(call, call.word(0), &row, ROW).map_err(|problem| (call.thread, problem))?;
    }
    Ok(())
}
