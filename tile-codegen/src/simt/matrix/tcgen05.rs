//! `tcgen05`: products of the tensor cores' fifth generation, whose factors lie in shared memory and whose sums lie in
//! tensor memory (PTX ISA, "TensorCore 5th Generation Family Instructions": "Shared memory descriptor", "Instruction
//! descriptor", "Matrix Shape", "Layout D (M = 128 + cta-group::1)", "tcgen05.commit", "tcgen05.ld", "Matrix fragments for
//! shape .16x256b").
//!
//! One thread issues a product. It is in flight, with what it reads of shared memory and what it writes of tensor memory,
//! until somebody waited at an mbarrier that a later `tcgen05.commit` of that thread arrives at. Of the products there are
//! those of 128 rows by one block, dense, with sums in f32 or s32. The load has no intrinsic that waits: the emitter calls
//! a declaration, `tile.tcgen05.load.16x256b.x{N}.{f32|s32}`, of a whole warp, which is complete when it returns.

use super::operand::{Descriptor, Major, gather, pieces, reads};
use super::{Matrix, Sum, multiply};
use crate::simt::agents::Agent;
use crate::simt::block::Block;
use crate::simt::collective::check_uniform;
use crate::simt::fault::Problem;
use crate::simt::flight::{Order, Proxy};
use crate::simt::format::{E4M3, E5M2, Format};
use crate::simt::instruction::{Call, LaneProblem, Operation, Party, Then};
use crate::simt::mbarrier::Attached;
use crate::simt::tensor_memory::{Accumulator, Address, LANES, PART};

/// Rows of a product.
const ROWS: usize = LANES as usize;

/// Lanes of tensor memory that each warp of a warpgroup may load.
const LANES_OF_WARP: u32 = 32;

pub(in crate::simt) fn find_intrinsic(name: &str) -> Option<Operation> {
    match name.strip_prefix("tcgen05.")? {
        "alloc.shared.cg1" => Operation::together(Party::Warp, |block, calls| {
            check_uniform(calls, 0..2)?;
            let made = block.allocate(calls, calls[0].word(0), calls[0].number(1));
            made.map_err(|problem| (calls[0].thread, problem))
        }),
        "dealloc.cg1" => Operation::together(Party::Warp, |block, calls| {
            check_uniform(calls, 0..2)?;
            let freed = block.free(calls, Address::of(calls[0].number(0)), calls[0].number(1));
            freed.map_err(|problem| (calls[0].thread, problem))
        }),
        "relinq.alloc.permit.cg1" => Operation::together(Party::Warp, |block, calls| {
            block.relinquish(calls[0].thread);
            Ok(())
        }),
        "fence.before.thread.sync" => Operation::alone(|block, call| {
            block.threads[call.thread as usize].clock.fence_tensor_before();
            Ok(Then::GoOn)
        }),
        "fence.after.thread.sync" => Operation::alone(|block, call| {
            block.threads[call.thread as usize].clock.fence_tensor_after();
            Ok(Then::GoOn)
        }),
        "mma.shared" => Operation::alone(|block, call| {
            issue(block, call)?;
            Ok(Then::GoOn)
        }),
        "commit.shared.cg1" => Operation::alone(|block, call| commit(block, call, None)),
        "commit.mc.shared.cg1" => {
            Operation::alone(|block, call| commit(block, call, Some(call.number(1) & 0xffff)))
        }
        _ => None,
    }
}

/// The declaration of the load.
pub(in crate::simt) fn find(name: &str) -> Option<Operation> {
    let (count, format) = name.strip_prefix("tile.tcgen05.load.16x256b.x")?.split_once('.')?;
    let count: u32 = count.parse().ok()?;
    let legal = matches!(count, 1 | 2 | 4 | 8 | 16 | 32) && matches!(format, "f32" | "s32");
    legal.then(|| Operation::together(Party::Warp, move |block, calls| load(block, calls, count)))?
}

fn misuse<T>(what: impl Into<String>) -> Result<T, Problem> {
    Err(Problem::Misuse(what.into()))
}

/// The matrix that a descriptor names.
///
/// # Errors
/// What is no descriptor, and what isn't modelled.
fn decode(bits: u64) -> Result<Descriptor, Problem> {
    let field = |first: u32| (bits >> first & 0x3fff) << 4;
    let part = |first: u32, length: u32| bits >> first & ((1 << length) - 1);
    if part(46, 3) != 0b001 {
        return misuse(format!(
            "its descriptor {bits:#018x} of shared memory has {:#05b} in bits 46 to 48, where 0b001 stands",
            part(46, 3)
        ));
    }
    if part(14, 2) | part(30, 2) | part(53, 8) != 0 {
        return misuse(format!(
            "its descriptor {bits:#018x} of shared memory sets some of bits 14, 15, 30, 31 and 53 to 60, which are zero"
        ));
    }
    if part(52, 1) != 0 {
        return misuse(
            "a leading dimension with an absolute address (bit 52 of a descriptor) isn't modelled",
        );
    }
    let swizzle = match part(61, 3) {
        0 => 0,
        2 => 128,
        4 => 64,
        6 => 32,
        1 => {
            return misuse(
                "a swizzle of 128 bytes with atoms of 32 bytes (1 in bits 61 to 63) isn't modelled",
            );
        }
        other => return misuse(format!("there is no swizzle {other} (bits 61 to 63 of its descriptor)")),
    };
    Ok(Descriptor { start: field(0), leading: field(16), stride: field(32), base: part(49, 3), swizzle })
}

/// What an instruction descriptor says of a kind's products.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Product {
    a: Format,
    b: Format,
    columns: usize,
    /// Whether sums are integers; and if so, whether they stop at the limits.
    integer: Option<bool>,
    negated: [bool; 2],
    majors: [Major; 2],
}

impl Product {
    /// # Errors
    /// What is no descriptor of the kind's, and what isn't modelled.
    fn decode(bits: u32, kind: u32) -> Result<Product, Problem> {
        let part = |first: u32, length: u32| bits >> first & ((1 << length) - 1);
        let flag = |bit: u32| part(bit, 1) == 1;
        let integer = match kind {
            0..=2 => false,
            3 => true,
            other => return misuse(format!("products of kind {other} aren't modelled")),
        };
        if part(6, 1) | part(23, 1) | part(29, 1) != 0 {
            return misuse(format!(
                "its instruction descriptor {bits:#010x} sets some of bits 6, 23 and 29, which are zero"
            ));
        }
        if part(0, 3) != 0 {
            return misuse(
                "products with a sparse matrix (bits 0 to 2 of the instruction descriptor) aren't modelled",
            );
        }
        if part(30, 2) != 0 {
            return misuse(
                "its instruction descriptor has a maximum shift (bits 30 and 31), which is for `.ws` alone",
            );
        }
        match (integer, part(4, 2)) {
            (false, 1) | (true, 2) => {}
            (false, 0) if kind != 1 => return misuse("sums in f16 (0 in bits 4 and 5) aren't modelled"),
            (_, other) => {
                let kind = kind_name(kind);
                return misuse(format!(
                    "products of kind {kind} have no sums of format {other} (bits 4 and 5)"
                ));
            }
        }
        if !integer && flag(3) {
            return misuse(
                "sums that stop at the limits (bit 3 of the instruction descriptor) are for integers",
            );
        }
        if integer && (flag(13) || flag(14)) {
            return misuse("factors that are integers can't be negated (bits 13 and 14)");
        }
        let [a, b] = [format(kind, part(7, 3), 'A')?, format(kind, part(10, 3), 'B')?];
        let majors = [15, 16].map(|bit| if flag(bit) { Major::Other } else { Major::K });
        if a == Format::Tf32 && majors != [Major::K; 2] {
            return misuse(
                "a factor of tf32 whose elements along K don't follow each other takes a swizzle of 128 bytes with \
                 atoms of 32 bytes, which isn't modelled",
            );
        }
        let (rows, columns) = (part(24, 5) * 16, part(17, 6) * 8);
        if rows as usize != ROWS {
            return misuse(format!("products of {rows} rows aren't modelled: those of {ROWS} are"));
        }
        if !(16..=256).contains(&columns) || !columns.is_multiple_of(16) {
            return misuse(format!(
                "products of {rows} by {columns} aren't modelled: those of 16, 32 … 256 columns are"
            ));
        }
        Ok(Product {
            a,
            b,
            columns: columns as usize,
            integer: integer.then_some(flag(3)),
            negated: [flag(13), flag(14)],
            majors,
        })
    }

    /// A row of A, or a column of B, is 32 bytes deep.
    fn depth(self) -> usize {
        32 / self.a.bytes()
    }

    fn result(self) -> (Format, Sum) {
        match self.integer {
            Some(saturates) => (Format::I32, Sum::I32 { saturates }),
            None => (Format::F32, Sum::F32),
        }
    }
}

fn kind_name(kind: u32) -> &'static str {
    ["f16", "tf32", "f8f6f4", "i8"].get(kind as usize).copied().unwrap_or("unknown")
}

/// The format of a factor.
fn format(kind: u32, bits: u32, factor: char) -> Result<Format, Problem> {
    Ok(match (kind, bits) {
        (0, 0) => Format::F16,
        (0, 1) => Format::Bf16,
        (1, 2) => Format::Tf32,
        (2, 0) => E4M3,
        (2, 1) => E5M2,
        (2, 3..=5) => return misuse(format!("{factor} of floats of four and six bits isn't modelled")),
        (3, 0) => Format::U8,
        (3, 1) => Format::S8,
        _ => {
            let kind = kind_name(kind);
            return misuse(format!("products of kind {kind} have no {factor} of format {bits}"));
        }
    })
}

/// Issues a product: its sums, two descriptors of factors, that of the instruction, whether to add, and what kind it is.
fn issue(block: &mut Block<'_>, call: &Call<'_>) -> Result<(), Problem> {
    if call.number(6) != 1 {
        return misuse("products by pairs of blocks (`.cta_group::2`) aren't modelled");
    }
    if call.number(7) != 0 {
        return misuse("products that keep factors in the collector aren't modelled");
    }
    let product = Product::decode(call.number(3), call.number(5))?;
    let (columns, depth) = (product.columns, product.depth());
    let Address { lane, column } = Address::of(call.number(0));
    if lane != 0 {
        return misuse(format!(
            "the sums of {ROWS} rows begin at lane 0 of tensor memory, not at lane {lane}"
        ));
    }
    let held = |operand: usize, others: usize| {
        let (major, format) =
            if operand == 1 { (product.majors[0], product.a) } else { (product.majors[1], product.b) };
        let descriptor = decode(call.word(operand))?;
        Ok(pieces(block, call.thread, descriptor, major, [others, depth], format))
    };
    let [a, b] = [held(1, ROWS)?, held(2, columns)?];
    let (thread, adds) = (call.thread, call.flag(4));
    let sums = Accumulator { thread, column, columns: columns as u32, depth: depth as u32 };
    block.check_sums(call, sums, adds)?;
    let reads = reads(block, call, [&a, &b])?;
    let moment = block.agents.next(block.block_of(thread), Agent::Tensor(thread));
    let order = Order::of(call, Proxy::Asynchronous, reads, moment);
    let flight = block.issue(Order { accumulator: Some(sums), ..order })?;
    block.begin_sums(flight, sums, moment);
    block.threads[thread as usize].queues.tensor.push(flight);

    let mut a = gather(&a, [ROWS, depth], product.a, false);
    let mut b = gather(&b, [depth, columns], product.b, true);
    for (matrix, negated) in [(&mut a, product.negated[0]), (&mut b, product.negated[1])] {
        matrix.elements.iter_mut().filter(|_| negated).for_each(|element| *element = -*element);
    }
    let (result, sum) = product.result();
    let c = if adds {
        let elements = block.sums(sums).into_iter().map(|word| result.decode(&word.to_le_bytes()));
        Matrix { columns, elements: elements.collect() }
    } else {
        Matrix::zero(ROWS, columns)
    };
    let encode = |element: f64| match product.integer {
        Some(_) => (element as i32).cast_unsigned(),
        None => (element as f32).to_bits(),
    };
    block.set_sums(sums, multiply(&a, &b, &c, sum).elements.into_iter().map(encode));
    Ok(())
}

/// Has an mbarrier get an arrival when the thread's products so far have ended; with a mask, that at the same place in
/// each block of the cluster that it names.
fn commit(block: &mut Block<'_>, call: &Call<'_>, mask: Option<u32>) -> Result<Then, Problem> {
    let (thread, barrier) = (call.thread, call.word(0));
    block.check_own(call, barrier)?;
    let ranks = match mask {
        None => vec![block.rank_of(thread)],
        Some(mask) => block.ranks_of_mask(mask).ok_or_else(|| {
            let blocks = block.geometry.cluster;
            Problem::Misuse(format!("arrives in the blocks of mask {mask:#x}, of a cluster of {blocks}"))
        })?,
    };
    let mut flights = std::mem::take(&mut block.threads[thread as usize].queues.tensor);
    flights.retain(|&flight| !block.flights.of(flight).has_landed());
    block.threads[thread as usize].queues.tensor = flights.clone();
    let last = flights.last().map(|&flight| block.flights.of(flight).moment());
    for rank in ranks {
        block.check_begun(thread, rank)?;
        let address = block.counterpart(thread, barrier, rank);
        let moment = last.unwrap_or_else(|| block.threads[thread as usize].clock.moment());
        block.note_remote_at(thread, address, moment, &call.instruction.name, call.place());
        block.attach(call, address, Attached::Arrival { flights: flights.clone() })?;
    }
    Ok(Then::GoOn)
}

/// The row and column of a word that a lane loads.
fn fragment(lane: u32, word: u32) -> [u32; 2] {
    [lane / 4 + 8 * (word / 2 % 2), 8 * (word / 4) + 2 * (lane % 4) + word % 2]
}

/// Loads so many times sixteen lanes of eight columns.
fn load(block: &mut Block<'_>, calls: &[Call<'_>], count: u32) -> Result<(), LaneProblem> {
    check_uniform(calls, 0..1)?;
    let leader = calls[0];
    let fail = |what: String| Err((leader.thread, Problem::Misuse(what)));
    let (from, words) = (Address::of(leader.number(0)), 4 * count);
    if leader.instruction.results.len() != words as usize {
        return fail(format!("`{}` gives {words} words to each lane", leader.instruction.name));
    }
    let warp = block.within(leader.thread) / block.geometry.warp;
    let first = warp % 4 * LANES_OF_WARP;
    if from.lane != first && from.lane != first + PART {
        return fail(format!(
            "warp {warp} loads sixteen lanes of tensor memory from lane {first} or {} on, not from lane {}",
            first + PART,
            from.lane
        ));
    }
    block.check_load(calls, from, 8 * count, |lane, column| column / 2 % 4 == lane % 4)?;
    for (lane, call) in (0..).zip(calls) {
        for word in 0..words {
            let [row, column] = fragment(lane, word);
            let loaded = block.tensor_word(call.thread, from.lane + row, from.column + column);
            call.give_word(word as usize, loaded.into());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A shared-memory descriptor of the table's fixed bits, and these.
    fn descriptor(fields: u64) -> u64 {
        1 << 46 | fields
    }

    fn words(result: Result<impl std::fmt::Debug, Problem>) -> String {
        result.expect_err("something is wrong").to_string()
    }

    #[test]
    fn descriptors_of_shared_memory() {
        let bits = descriptor(0x123 | 0x45 << 16 | 0x67 << 32 | 5 << 49 | 2 << 61);
        let expected = Descriptor { start: 0x1230, leading: 0x450, stride: 0x670, base: 5, swizzle: 128 };
        assert_eq!(decode(bits), Ok(expected));
        for (mode, swizzle) in [(0, 0), (2, 128), (4, 64), (6, 32)] {
            assert_eq!(decode(descriptor(mode << 61)).map(|it| it.swizzle), Ok(swizzle));
        }
        for (bits, expected) in [
            (0, "has 0b000 in bits 46 to 48"),
            (descriptor(1 << 47), "has 0b011 in bits 46 to 48"),
            (descriptor(1 << 14), "which are zero"),
            (descriptor(1 << 31), "which are zero"),
            (descriptor(1 << 53), "which are zero"),
            (descriptor(1 << 60), "which are zero"),
            (descriptor(1 << 52), "absolute address"),
            (descriptor(1 << 61), "atoms of 32 bytes"),
            (descriptor(3 << 61), "there is no swizzle 3"),
            (descriptor(7 << 61), "there is no swizzle 7"),
        ] {
            let what = words(decode(bits));
            assert!(what.contains(expected), "{bits:#x}: {what}");
        }
    }

    /// An instruction descriptor of 128 by so many columns, and these fields.
    fn instruction(columns: u32, fields: u32) -> u32 {
        8 << 24 | (columns / 8) << 17 | fields
    }

    #[test]
    fn descriptors_of_instructions() {
        let of = |kind, fields| Product::decode(instruction(64, fields), kind);
        let product = Product {
            a: Format::Bf16,
            b: Format::F16,
            columns: 64,
            integer: None,
            negated: [false, true],
            majors: [Major::Other, Major::K],
        };
        assert_eq!(of(0, 1 << 4 | 1 << 7 | 1 << 14 | 1 << 15), Ok(product));
        let tf32 = of(1, 1 << 4 | 2 << 7 | 2 << 10).map(|it| (it.a, it.b, it.depth()));
        assert_eq!(tf32, Ok((Format::Tf32, Format::Tf32, 8)));
        let floats = of(2, 1 << 4 | 1 << 10 | 1 << 16).map(|it| (it.a, it.b, it.depth(), it.majors));
        assert_eq!(floats, Ok((E4M3, E5M2, 32, [Major::K, Major::Other])));
        let integers = of(3, 2 << 4 | 1 << 7 | 1 << 3).map(|it| (it.a, it.b, it.integer));
        assert_eq!(integers, Ok((Format::S8, Format::U8, Some(true))));
    }

    #[test]
    fn what_is_no_instruction_is_said() {
        let f32 = 1 << 4;
        for (kind, bits, expected) in [
            (4, instruction(64, f32), "kind 4"),
            (0, instruction(64, f32 | 1 << 6), "bits 6, 23 and 29"),
            (0, instruction(64, f32 | 1 << 23), "bits 6, 23 and 29"),
            (0, instruction(64, f32 | 1 << 29), "bits 6, 23 and 29"),
            (0, instruction(64, f32 | 1 << 2), "sparse"),
            (0, instruction(64, f32 | 1), "sparse"),
            (0, instruction(64, f32 | 1 << 30), "maximum shift"),
            (0, instruction(64, 0), "sums in f16"),
            (0, instruction(64, 2 << 4), "kind f16 have no sums of format 2"),
            (1, instruction(64, 2 << 7 | 2 << 10), "kind tf32 have no sums of format 0"),
            (3, instruction(64, f32), "kind i8 have no sums of format 1"),
            (0, instruction(64, f32 | 1 << 3), "are for integers"),
            (3, instruction(64, 2 << 4 | 1 << 13), "can't be negated"),
            (0, instruction(64, f32 | 2 << 7), "kind f16 have no A of format 2"),
            (1, instruction(64, f32 | 2 << 7), "kind tf32 have no B of format 0"),
            (2, instruction(64, f32 | 5 << 10), "B of floats of four and six bits"),
            (1, instruction(64, f32 | 2 << 7 | 2 << 10 | 1 << 16), "atoms of 32 bytes"),
            (0, 4 << 24 | 8 << 17 | f32, "products of 64 rows"),
            (0, instruction(8, f32), "products of 128 by 8"),
            (0, instruction(40, f32), "products of 128 by 40"),
            (0, instruction(264, f32), "products of 128 by 264"),
        ] {
            let what = words(Product::decode(bits, kind));
            assert!(what.contains(expected), "{kind} {bits:#x}: {what}");
        }
    }

    #[test]
    fn a_load_gives_every_word_once() {
        let mut found: Vec<_> =
            (0..32).flat_map(|lane| (0..8).map(move |word| fragment(lane, word))).collect();
        found.sort_unstable();
        let all: Vec<_> = (0..16).flat_map(|row| (0..16).map(move |column| [row, column])).collect();
        assert_eq!(found, all);
        // The manual's figure: lane 5 begins in row 1, columns 2 and 3, and goes on eight rows below.
        assert_eq!([0, 1, 2, 3, 4].map(|word| fragment(5, word)), [[1, 2], [1, 3], [9, 2], [9, 3], [1, 10]]);
    }
}
