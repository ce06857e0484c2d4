//! `wgmma`: products of a warpgroup whose operands lie in shared memory, asynchronous (PTX ISA, "Asynchronous Warpgroup
//! Level Matrix Instructions").
//!
//! The product has no intrinsic: the emitter calls a declaration, `tile.wgmma.m64n{N}k{K}.{f32|s32}.{A}.{B}` and
//! then `.ss.{ka|ma}.{kb|nb}` or, with A in registers, `.rs.{kb|nb}`; so is the wait that passes sums on,
//! `tile.wgmma.wait.{G}.{f32|s32}.{N}`. Sums are computed at once, since nobody may write a product's operands before
//! somebody waited: they stay in flight till then. Where operations are done late, registers hold something else until
//! a wait has passed the sums on.

use super::operand::{Descriptor, Major, gather, pieces, reads};
use super::{Matrix, Sum, multiply};
use crate::simt::agents::Agent;
use crate::simt::block::Block;
use crate::simt::collective::{WARPGROUP, check_uniform};
use crate::simt::fault::Problem;
use crate::simt::flight::{Order, Piece, Proxy, Timing};
use crate::simt::format::{E4M3, E5M2, Format};
use crate::simt::instruction::{Call, LaneProblem, Operation, Party, Then};

const ROWS: usize = 64;

/// What a declaration's name says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Product {
    columns: usize,
    depth: usize,
    a: Format,
    b: Format,
    integer: bool,
    /// How A lies in shared memory; `None` for registers.
    a_major: Option<Major>,
    b_major: Major,
}

/// What the fence and the groups are called among the intrinsics.
pub(in crate::simt) fn find_intrinsic(name: &str) -> Option<Operation> {
    match name {
        "wgmma.fence.sync.aligned" => Operation::alone(|block, call| {
            block.threads[call.thread as usize].queues.fenced = true;
            Ok(Then::GoOn)
        }),
        "wgmma.commit_group.sync.aligned" => Operation::alone(|block, call| {
            block.threads[call.thread as usize].queues.products.commit();
            Ok(Then::GoOn)
        }),
        "wgmma.wait_group.sync.aligned" => Operation::alone(|block, call| {
            wait(block, call.thread, call.number(0) as usize);
            Ok(Then::GoOn)
        }),
        _ => None,
    }
}

/// Waits for all groups but so many. What is done with registers from here on must be ordered before other products,
/// except that these may add to the same sums.
fn wait(block: &mut Block<'_>, thread: u32, going_on: usize) {
    let queues = &mut block.threads[thread as usize].queues;
    queues.fenced = false;
    let over = queues.products.wait(going_on);
    block.land_each(over, thread);
}

/// The declarations.
pub(in crate::simt) fn find(name: &str) -> Option<Operation> {
    if let Some(sums) = name.strip_prefix("tile.wgmma.wait.") {
        let [going_on, _, count] = sums.split('.').collect::<Vec<_>>()[..] else { return None };
        let (going_on, count): (usize, usize) = (going_on.parse().ok()?, count.parse().ok()?);
        return Operation::alone(move |block, call| {
            wait(block, call.thread, going_on);
            let queues = &mut block.threads[call.thread as usize].queues;
            let going_on = queues.products.all();
            for sum in 0..count {
                call.give_word(sum, queues.sums.settle(call.number(sum), &going_on).into());
            }
            Ok(Then::GoOn)
        });
    }
    let product = product(name.strip_prefix("tile.wgmma.m64n")?)?;
    Operation::together(Party::Warpgroup, move |block, calls| product.run(block, calls))
}

fn format(name: &str) -> Option<Format> {
    Some(match name {
        "f16" => Format::F16,
        "bf16" => Format::Bf16,
        "tf32" => Format::Tf32,
        "e4m3" => E4M3,
        "e5m2" => E5M2,
        "s8" => Format::S8,
        "u8" => Format::U8,
        _ => return None,
    })
}

/// The product of a name after `tile.wgmma.m64n`.
fn product(name: &str) -> Option<Product> {
    let parts: Vec<&str> = name.split('.').collect();
    let [shape, result, a, b, places @ ..] = parts.as_slice() else { return None };
    let (columns, depth) = shape.split_once('k')?;
    let (columns, depth): (usize, usize) = (columns.parse().ok()?, depth.parse().ok()?);
    let (a_format, b_format) = (format(a)?, format(b)?);
    let integer = *result == "s32";
    let major = |place: &str, other: &str, k: &str| match place {
        _ if place == k => Some(Major::K),
        _ if place == other && a_format.bytes() == 2 => Some(Major::Other),
        _ => None,
    };
    let (a_major, b_major) = match places {
        ["ss", a, b] => (Some(major(a, "ma", "ka")?), major(b, "nb", "kb")?),
        ["rs", b] => (None, major(b, "nb", "kb")?),
        _ => return None,
    };
    let is_byte = |format| matches!(format, Format::S8 | Format::U8);
    let mixes = is_byte(a_format) && is_byte(b_format)
        || matches!((a_format, b_format), (Format::Float8(_), Format::Float8(_)));
    let has_columns = match columns {
        8 | 24 => true,
        _ if integer => columns.is_multiple_of(16),
        _ => columns.is_multiple_of(8),
    };
    let legal = (a_format == b_format || mixes)
        && depth * a_format.bytes() == 32
        && has_columns
        && (8..=256).contains(&columns)
        && integer == is_byte(a_format)
        && (integer || *result == "f32");
    legal.then_some(Product { columns, depth, a: a_format, b: b_format, integer, a_major, b_major })
}

/// The matrix that a descriptor names (PTX ISA, "Matrix Descriptor Format").
fn decode(bits: u64) -> Descriptor {
    let field = |first: u32| (bits >> first & 0x3fff) << 4;
    let swizzle = [0, 128, 64, 32][(bits >> 62) as usize];
    Descriptor { start: field(0), leading: field(16), stride: field(32), base: bits >> 49 & 7, swizzle }
}

impl Product {
    fn run(self, block: &mut Block<'_>, calls: &[Call<'_>]) -> Result<(), LaneProblem> {
        // B's descriptor, behind A's or A's registers, and whether to add behind that. Only registers are each thread's own.
        let (first, own_registers) = if self.a_major.is_some() { (1, 0) } else { (4, 4) };
        check_uniform(calls, own_registers..first + 2)?;
        let leader = calls[0];
        let fail = |problem| (leader.thread, problem);
        if let Some(call) = calls.iter().find(|call| !block.threads[call.thread as usize].queues.fenced) {
            let what = "multiplies before any `wgmma.fence` ordered its registers".to_owned();
            return Err((call.thread, Problem::Misuse(what)));
        }
        let a_pieces = self.a_major.map(|major| {
            pieces(block, leader.thread, decode(leader.word(0)), major, [ROWS, self.depth], self.a)
        });
        let b_pieces = pieces(
            block,
            leader.thread,
            decode(leader.word(first)),
            self.b_major,
            [self.columns, self.depth],
            self.b,
        );
        let reads = reads(block, &leader, a_pieces.iter().chain([&b_pieces])).map_err(fail)?;
        let group = leader.thread / WARPGROUP;
        block.check_reads_together(calls, &reads)?;
        let flight = issue(block, &leader, group, reads).map_err(fail)?;
        for call in calls {
            block.threads[call.thread as usize].queues.products.add(flight);
        }
        let a = match a_pieces {
            Some(pieces) => gather(&pieces, [ROWS, self.depth], self.a, false),
            None => self.registers(calls),
        };
        let b = gather(&b_pieces, [self.depth, self.columns], self.b, true);
        let (result, sum) =
            if self.integer { (Format::I32, Sum::I32 { saturates: false }) } else { (Format::F32, Sum::F32) };
        let c = if leader.number(first + 1) == 0 {
            Matrix::zero(ROWS, self.columns)
        } else {
            let lanes: Vec<Vec<u8>> = calls.iter().map(|call| added_to(block, call, first + 2)).collect();
            Matrix::gather([ROWS, self.columns], result, &lanes, &of_result)
        };
        let sums = multiply(&a, &b, &c, sum).encoded(result, calls, &of_result);
        for (call, sums) in calls.iter().zip(sums) {
            call.give_all(&held(block, call, flight, sums));
        }
        Ok(())
    }

    /// A in registers: of each warp as in `mma`, 16 rows.
    fn registers(self, calls: &[Call<'_>]) -> Matrix {
        let held = 4 / self.a.bytes();
        let fragment = move |thread: usize, i: usize| {
            let (warp, lane) = (thread / 32, thread % 32);
            let (register, element) = (i / held, i % held);
            let row = 16 * warp + lane / 4 + 8 * (register % 2);
            [row, lane % 4 * held + element + register / 2 * 4 * held]
        };
        let lanes: Vec<Vec<u8>> = calls.iter().map(|call| call.all_bytes(0..4)).collect();
        Matrix::gather([ROWS, self.depth], self.a, &lanes, &fragment)
    }
}

/// The sums that a thread's product adds to, whose own product may go on: these are added up in order.
fn added_to(block: &mut Block<'_>, call: &Call<'_>, first: usize) -> Vec<u8> {
    let sums = &mut block.threads[call.thread as usize].queues.sums;
    let registers = (first..call.operands()).map(|operand| call.number(operand));
    registers.flat_map(|register| sums.settle(register, &[]).to_le_bytes()).collect()
}

/// What a thread's registers hold of a product's sums before it waited: if operations are done as late as they may be,
/// not yet these.
fn held(block: &mut Block<'_>, call: &Call<'_>, product: u32, sums: Vec<u8>) -> Vec<u8> {
    if block.timing == Timing::Early {
        return sums;
    }
    let expected = &mut block.threads[call.thread as usize].queues.sums;
    let words = sums.chunks_exact(4).map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]]));
    words.flat_map(|word| expected.expect(product, word).to_le_bytes()).collect()
}

/// The row and column of an accumulator (PTX ISA, "WGMMA .m64nNk16 register fragment layout for matrix D").
fn of_result(thread: usize, i: usize) -> [usize; 2] {
    let (warp, lane) = (thread / 32, thread % 32);
    [16 * warp + lane / 4 + 8 * (i / 2 % 2), 8 * (i / 4) + lane % 4 * 2 + i % 2]
}

fn issue(block: &mut Block<'_>, leader: &Call<'_>, group: u32, reads: Vec<Piece>) -> Result<u32, Problem> {
    let moment = block.agents.next(block.block_of(leader.thread), Agent::Warpgroup(group));
    block.issue(Order::of(leader, Proxy::Asynchronous, reads, moment))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_descriptor_is_taken_apart() {
        for (mode, swizzle) in [(0, 0), (1, 128), (2, 64), (3, 32)] {
            let decoded = decode(0x123 | 0x40 << 16 | 0x20 << 32 | 5 << 49 | mode << 62);
            let expected = Descriptor { start: 0x1230, leading: 0x400, stride: 0x200, base: 5, swizzle };
            assert_eq!(decoded, expected);
        }
    }

    #[test]
    fn names_say_what_is_legal() {
        assert!(product("128k16.f32.bf16.bf16.ss.ka.nb").is_some());
        assert!(product("8k32.s32.s8.u8.rs.kb").is_some());
        assert!(product("256k32.f32.e4m3.e5m2.ss.ka.kb").is_some());
        for wrong in [
            "12k16.f32.bf16.bf16.ss.ka.kb",
            "264k16.f32.bf16.bf16.ss.ka.kb",
            "64k8.f32.bf16.bf16.ss.ka.kb",
            "64k8.f32.tf32.tf32.ss.ka.nb",
            "64k16.f32.bf16.f16.ss.ka.kb",
            "64k32.f32.s8.s8.ss.ka.kb",
            "64k16.f32.bf16.bf16.rs.ka.kb",
        ] {
            assert_eq!(product(wrong), None, "{wrong}");
        }
    }
}
