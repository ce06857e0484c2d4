//! Bulk copies of tensors between global and shared memory (PTX ISA, "cp.async.bulk.tensor",
//! "cp.reduce.async.bulk.tensor", and their groups), to one block or to several of a cluster.

use crate::simt::agents::Agent;
use crate::simt::block::Block;
use crate::simt::fault::Problem;
use crate::simt::flight::{Combine, Order, Piece, Proxy};
use crate::simt::host_module::WINDOW;
use crate::simt::instruction::{Call, Operation, Then};
use crate::simt::tensor_map::{decode, place};
use tile_ir::DType;
use tile_ir::tensor_map::{BoundMap, TENSOR_MAP_BYTES};

/// Alignment of a box in shared memory.
const BOX_ALIGNMENT: u64 = 128;

pub(super) fn find(name: &str) -> Option<Operation> {
    let name = name.strip_prefix("cp.async.bulk.")?;
    match name {
        "commit.group" => {
            return Operation::alone(|block, call| {
                block.threads[call.thread as usize].queues.bulk.commit();
                Ok(Then::GoOn)
            });
        }
        "wait.group" => {
            return Operation::alone(|block, call| {
                let over = block.threads[call.thread as usize].queues.bulk.wait(call.number(0) as usize);
                block.land_each(over, call.thread);
                Ok(Then::GoOn)
            });
        }
        "wait.group.read" => {
            return Operation::alone(|block, call| {
                let over = block.threads[call.thread as usize].queues.bulk.peek(call.number(0) as usize);
                over.into_iter().for_each(|flight| block.finish_reading(flight, call.thread));
                Ok(Then::GoOn)
            });
        }
        "prefetch.L2" => return Operation::nothing(),
        _ => {}
    }
    let (kind, rank) = name.strip_prefix("tensor.")?.rsplit_once('.')?;
    let rank: usize = rank.strip_suffix('d')?.parse().ok()?;
    if !(1..=5).contains(&rank) {
        return None;
    }
    match kind {
        "prefetch.tile" => Operation::nothing(),
        "g2s.tile" => Operation::alone(move |block, call| {
            // Operands behind the coordinates: a mask, a hint, whether there is a mask, whether there is a hint, and the
            // pair's group.
            let [mask, _hint, has_mask, _has_hint, group] = [0, 1, 2, 3, 4].map(|i| 3 + rank + i);
            if call.number(group) != 0 {
                return Err(Problem::Misuse("copies of a pair's group aren't modelled".to_owned()));
            }
            let mask = call.flag(has_mask).then(|| call.number(mask) & 0xffff);
            to_shared(block, call, rank, mask)
        }),
        "g2s.cta.tile" => Operation::alone(move |block, call| to_shared(block, call, rank, None)),
        "s2g.tile" => Operation::alone(move |block, call| to_global(block, call, rank, false)),
        "reduce.add.tile" => Operation::alone(move |block, call| to_global(block, call, rank, true)),
        _ => None,
    }
}

fn map_of(call: &Call<'_>, operand: usize, rank: usize) -> Result<BoundMap, Problem> {
    let address = call.word(operand);
    if !address.is_multiple_of(64) {
        return Err(Problem::Misaligned { alignment: 64, excess: address % 64 });
    }
    // SAFETY: the address is that of a kernel's parameter of so many bytes, for which the caller of the kernel vouches.
    let bytes = unsafe { &*(address as *const [u8; TENSOR_MAP_BYTES]) };
    match decode(bytes) {
        Some(map) if map.extents.len() == rank => Ok(map),
        Some(map) => {
            Err(Problem::Misuse(format!("copies a tensor of rank {} as one of {rank}", map.extents.len())))
        }
        None => Err(Problem::Misuse("its tensor map isn't one".to_owned())),
    }
}

/// The pieces of a box at coordinates: from the address in the tensor, `None` outside it, to that in shared memory.
fn pieces(
    block: &Block<'_>,
    map: &BoundMap,
    shared: u64,
    coordinates: &[i64],
) -> Vec<(Option<u64>, u64, usize)> {
    let element = map.elem.bytes();
    let inner = map.tile[0] as usize;
    let base = block.memory.of(block.home(shared).expect("verified: a box lies in shared memory").0);
    let mut found = Vec::new();
    let lines = map.box_bytes() / element / inner;
    for line in 0..lines {
        let row = line_address(map, coordinates, line);
        for first in (0..inner * element).step_by(16) {
            // Within the 18-bit window the swizzle goes by addresses.
            let linear = shared - base + WINDOW + (line * inner * element + first) as u64;
            let to = place(map.swizzle, linear) - WINDOW + base;
            let inside = |byte: usize| {
                let column = coordinates[0] + (byte / element) as i64;
                row.filter(|_| (0..map.extents[0] as i64).contains(&column))
            };
            let mut byte = 0;
            while byte < 16 {
                let is_inside = inside(first + byte).is_some();
                let length = (byte..16).take_while(|&at| inside(first + at).is_some() == is_inside).count();
                let from = inside(first + byte).map(|row| {
                    row.wrapping_add_signed(coordinates[0] * element as i64) + (first + byte) as u64
                });
                found.push((from, to + byte as u64, length));
                byte += length;
            }
        }
    }
    found
}

/// The address of the tensor's first element on a line of the box; `None` if the line is outside.
fn line_address(map: &BoundMap, coordinates: &[i64], mut line: usize) -> Option<u64> {
    let mut address = map.address;
    let outer = coordinates.iter().zip(&map.tile).zip(&map.extents).skip(1).zip(&map.strides);
    for (((first, tile), extent), stride) in outer {
        let coordinate = first + (line % *tile as usize) as i64;
        line /= *tile as usize;
        if !(0..*extent as i64).contains(&coordinate) {
            return None;
        }
        address += coordinate as u64 * stride;
    }
    Some(address)
}

fn coordinates(call: &Call<'_>, first: usize, rank: usize) -> Vec<i64> {
    (first..first + rank).map(|operand| i64::from(call.integer(operand))).collect()
}

fn check_box(block: &Block<'_>, call: &Call<'_>, address: u64) -> Result<(), Problem> {
    if !block.is_own(call.thread, address) {
        return Err(Problem::Misuse("a box lies in shared memory".to_owned()));
    }
    match address % BOX_ALIGNMENT {
        0 => Ok(()),
        excess => Err(Problem::Misaligned { alignment: BOX_ALIGNMENT, excess }),
    }
}

/// Where boxes narrower than their swizzle lie isn't said; the executor knows those that are as wide.
fn check_width(map: &BoundMap) -> Result<(), Problem> {
    let inner = u64::from(map.tile[0]) * map.elem.bytes() as u64;
    let span = map.swizzle.bytes();
    if span == 0 || inner == span || map.box_bytes() as u64 == inner {
        return Ok(());
    }
    Err(Problem::Misuse(format!(
        "a box {inner} bytes wide with a swizzle of {span} isn't modelled: make it as wide as the swizzle"
    )))
}

/// With a mask the box comes to the same place in the shared memory of every block that it names, and completes on the
/// mbarrier at the same place there.
fn to_shared(
    block: &mut Block<'_>,
    call: &Call<'_>,
    rank: usize,
    mask: Option<u32>,
) -> Result<Then, Problem> {
    let (to, barrier) = (call.word(0), call.word(1));
    let map = map_of(call, 2, rank)?;
    check_box(block, call, to)?;
    check_width(&map)?;
    block.check_own(call, barrier)?;
    for other in receivers(block, call, mask)? {
        let [to, barrier] = [to, barrier].map(|address| block.counterpart(call.thread, address, other));
        block.check_mbarrier(call, barrier)?;
        let pieces = pieces(block, &map, to, &coordinates(call, 3, rank));
        let pieces = pieces.into_iter().map(|(from, to, bytes)| Piece { from, to: Some(to), bytes });
        let moment = block.moment_on(barrier);
        let order = Order::of(call, Proxy::Asynchronous, pieces.collect(), moment);
        block.issue_counted(call, order, barrier)?;
    }
    Ok(Then::GoOn)
}

/// The blocks of the cluster that get a copy: those of a mask, or the thread's own.
fn receivers(block: &Block<'_>, call: &Call<'_>, mask: Option<u32>) -> Result<Vec<u32>, Problem> {
    let Some(mask) = mask else { return Ok(vec![block.rank_of(call.thread)]) };
    block.ranks_of_mask(mask).ok_or_else(|| {
        let blocks = block.geometry.cluster;
        Problem::Misuse(format!("copies to the blocks of mask {mask:#x}, of a cluster of {blocks}"))
    })
}

fn to_global(block: &mut Block<'_>, call: &Call<'_>, rank: usize, adds: bool) -> Result<Then, Problem> {
    let from = call.word(0);
    let map = map_of(call, 1, rank)?;
    check_box(block, call, from)?;
    check_width(&map)?;
    let pieces = pieces(block, &map, from, &coordinates(call, 2, rank));
    let inside = pieces
        .into_iter()
        .filter_map(|(global, shared, bytes)| Some(Piece { from: Some(shared), to: Some(global?), bytes }));
    let combine = if adds { Some(addition(map.elem)?) } else { None };
    let moment = block.agents.next(block.block_of(call.thread), Agent::Bulk(call.thread));
    let order = Order::of(call, Proxy::Asynchronous, inside.collect(), moment);
    let flight = block.issue(Order { combine, ..order })?;
    block.threads[call.thread as usize].queues.bulk.add(flight);
    Ok(Then::GoOn)
}

fn addition(element: DType) -> Result<Combine, Problem> {
    match element {
        DType::U32 | DType::I32 => Ok(|into, from| {
            each(into, from, |a, b| u32::from_le_bytes(a).wrapping_add(u32::from_le_bytes(b)).to_le_bytes());
        }),
        DType::U64 => Ok(|into, from| {
            each(into, from, |a, b| u64::from_le_bytes(a).wrapping_add(u64::from_le_bytes(b)).to_le_bytes());
        }),
        DType::F32 => Ok(|into, from| {
            each(into, from, |a, b| (f32::from_le_bytes(a) + f32::from_le_bytes(b)).to_le_bytes());
        }),
        other => Err(Problem::Misuse(format!("adding to elements of type {other:?} isn't modelled"))),
    }
}

fn each<const N: usize>(into: &mut [u8], from: &[u8], add: fn([u8; N], [u8; N]) -> [u8; N]) {
    for (into, from) in into.chunks_exact_mut(N).zip(from.chunks_exact(N)) {
        let operand = |bytes: &[u8]| bytes.try_into().expect("verified: a chunk has the length");
        into.copy_from_slice(&add(operand(into), operand(from)));
    }
}
