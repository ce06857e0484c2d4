//! `cp.async` and its groups (PTX ISA, "Data Movement and Conversion Instructions: Asynchronous copy").

use crate::simt::agents::Agent;
use crate::simt::block::Block;
use crate::simt::fault::Problem;
use crate::simt::flight::{Order, Piece, Proxy};
use crate::simt::instruction::{Call, Operation, Then};
use crate::simt::mbarrier::Attached;

pub(super) fn find(name: &str) -> Option<Operation> {
    let name = name.strip_prefix("cp.async.")?;
    match name {
        "commit.group" => Operation::alone(|block, call| {
            block.threads[call.thread as usize].queues.copies.commit();
            Ok(Then::GoOn)
        }),
        "wait.group" => Operation::alone(|block, call| {
            let over = block.threads[call.thread as usize].queues.copies.wait(call.number(0) as usize);
            block.land_each(over, call.thread);
            Ok(Then::GoOn)
        }),
        "wait.all" => Operation::alone(|block, call| {
            let over = block.threads[call.thread as usize].queues.copies.wait_all();
            block.land_each(over, call.thread);
            Ok(Then::GoOn)
        }),
        "mbarrier.arrive" | "mbarrier.arrive.shared" => arrival(true),
        "mbarrier.arrive.noinc" | "mbarrier.arrive.noinc.shared" => arrival(false),
        _ => {
            let (cache, rest) = name.split_once(".shared.global.")?;
            let sized = rest.ends_with(".s");
            let bytes: usize = rest.strip_suffix(".s").unwrap_or(rest).parse().ok()?;
            let legal = matches!((cache, bytes), ("ca", 4 | 8 | 16) | ("cg", 16));
            legal.then(|| Operation::alone(move |block, call| copy(block, call, bytes, sized)))?
        }
    }
}

/// Copies that many bytes, of which with `sized` the third operand says how many exist; the others are zero.
fn copy(block: &mut Block<'_>, call: &Call<'_>, bytes: usize, sized: bool) -> Result<Then, Problem> {
    let (to, from) = (call.word(0), call.word(1));
    let exist = if sized { call.number(2) as usize } else { bytes };
    if exist > bytes {
        return Err(Problem::Misuse(format!("copies {bytes} bytes, of which there can't be {exist}")));
    }
    for address in [to, from] {
        let excess = address % bytes as u64;
        if excess != 0 {
            return Err(Problem::Misaligned { alignment: bytes as u64, excess });
        }
    }
    if !block.is_own(call.thread, to) {
        return Err(Problem::Misuse("copies to what isn't shared memory".to_owned()));
    }
    let pieces = [
        Piece { from: Some(from), to: Some(to), bytes: exist },
        Piece { from: None, to: Some(to + exist as u64), bytes: bytes - exist },
    ];
    let moment = block.agents.next(block.block_of(call.thread), Agent::Copies(call.thread));
    let pieces = pieces.into_iter().filter(|piece| piece.bytes > 0).collect();
    let flight = block.issue(Order::of(call, Proxy::Generic, pieces, moment))?;
    block.threads[call.thread as usize].queues.copies.add(flight);
    Ok(Then::GoOn)
}

/// An arrival at an mbarrier once the thread's copies so far have ended. With `extra` it is one more than the object
/// was made for.
fn arrival(extra: bool) -> Option<Operation> {
    Operation::alone(move |block, call| {
        let address = call.word(0);
        if extra {
            block.expect_arrival(call, address)?;
        }
        let flights = block.threads[call.thread as usize].queues.copies.all();
        block.attach(call, address, Attached::Arrival { flights })?;
        Ok(Then::GoOn)
    })
}
