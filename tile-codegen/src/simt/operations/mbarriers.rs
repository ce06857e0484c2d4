//! `mbarrier.*` (PTX ISA, "Parallel Synchronization and Communication Instructions: mbarrier"), and words that are sent to
//! a block's shared memory and counted by an mbarrier there (PTX ISA, "st.async").

use crate::simt::fault::Problem;
use crate::simt::flight::{Order, Piece, Proxy};
use crate::simt::instruction::{Operation, Then};
use crate::simt::mbarrier::{Arrival, Awaited, Wait};
use crate::simt::order::Scope;

pub(super) fn find(name: &str) -> Option<Operation> {
    let name = name.strip_prefix("mbarrier.")?;
    // Old forms end with the address space, new ones with scope and address space.
    let (name, scoped, reach) = match name.split_once(".scope.") {
        Some((name, reach)) => (name, true, Reach::named(reach)?),
        None => (name.strip_suffix(".shared").unwrap_or(name), false, Reach::OWN),
    };
    let relaxed = name.ends_with(".relaxed");
    let name = name.strip_suffix(".relaxed").unwrap_or(name);
    match (name, scoped) {
        ("init", false) => Operation::alone(|block, call| {
            block.make_mbarrier(call, call.word(0), call.number(1))?;
            Ok(Then::GoOn)
        }),
        ("inval", false) => Operation::alone(|block, call| {
            block.unmake_mbarrier(call, call.word(0))?;
            Ok(Then::GoOn)
        }),
        ("arrive", false) => arrive(reach, relaxed, |_| (1, 0)),
        ("arrive", true) => arrive(reach, relaxed, |operand| (operand, 0)),
        ("arrive.expect.tx", true) => arrive(reach, relaxed, |operand| (1, operand)),
        ("expect.tx", true) => bytes(1),
        ("complete.tx", true) => bytes(-1),
        ("test.wait", _) => wait([false, false], reach, relaxed),
        ("test.wait.parity", true) => wait([false, true], reach, relaxed),
        ("try.wait" | "try.wait.tl", true) => wait([true, false], reach, relaxed),
        ("try.wait.parity" | "try.wait.parity.tl", true) => wait([true, true], reach, relaxed),
        _ => None,
    }
}

/// Declarations of [`crate::gpu`].
pub(super) fn declared(name: &str) -> Option<Operation> {
    let bytes = match name.strip_prefix("tile.send.b")? {
        "32" => 4,
        "64" => 8,
        _ => return None,
    };
    Operation::alone(move |block, call| {
        let (to, barrier) = (call.word(0), call.word(2));
        let homes = [to, barrier].map(|address| block.home(address).map(|(rank, _)| rank));
        let [Some(rank), Some(counting)] = homes else {
            return Err(Problem::Misuse("sends to memory that no block of the cluster shares".to_owned()));
        };
        if rank != counting {
            let what =
                format!("sends to block {rank} of the cluster what an mbarrier of block {counting} counts");
            return Err(Problem::Misuse(what));
        }
        if !to.is_multiple_of(bytes as u64) {
            return Err(Problem::Misaligned { alignment: bytes as u64, excess: to % bytes as u64 });
        }
        block.check_begun(call.thread, rank)?;
        block.check_mbarrier(call, barrier)?;
        let piece = Piece { from: None, to: Some(to), bytes };
        let moment = block.moment_on(barrier);
        let order = Order {
            data: Some(call.bytes(1).to_vec()),
            ..Order::of(call, Proxy::Generic, vec![piece], moment)
        };
        block.issue_counted(call, order, barrier)?;
        Ok(Then::GoOn)
    })
}

/// How far an instruction reaches.
#[derive(Clone, Copy)]
struct Reach {
    /// Whose memory it orders.
    scope: Scope,
    /// Whether the mbarrier may be another block's.
    remote: bool,
}

impl Reach {
    const OWN: Reach = Reach { scope: Scope::Block, remote: false };

    fn named(name: &str) -> Option<Reach> {
        let (scope, space) = name.split_once(".space.")?;
        let scope = match scope {
            "cta" => Scope::Block,
            "cluster" => Scope::Cluster,
            _ => return None,
        };
        match space {
            "cta" => Some(Reach { scope, remote: false }),
            "cluster" => Some(Reach { scope, remote: true }),
            _ => None,
        }
    }
}

/// `of`: arrivals and bytes by the operand.
fn arrive(reach: Reach, relaxed: bool, of: fn(u32) -> (u32, u32)) -> Option<Operation> {
    Operation::alone(move |block, call| {
        let operand = if call.operands() > 1 { call.number(1) } else { 0 };
        if !reach.remote {
            block.check_own(call, call.word(0))?;
        }
        let (count, bytes) = of(operand);
        let releases = (!relaxed).then_some(reach.scope);
        let state = block.arrive_at(call, call.word(0), Arrival { count, bytes, releases })?;
        if !call.instruction.results.is_empty() {
            call.give_word(0, state);
        }
        Ok(Then::GoOn)
    })
}

fn bytes(sign: i64) -> Option<Operation> {
    Operation::alone(move |block, call| {
        block.expect_bytes(call, call.word(0), sign * i64::from(call.number(1)))?;
        Ok(Then::GoOn)
    })
}

fn wait([blocks, parity]: [bool; 2], reach: Reach, relaxed: bool) -> Option<Operation> {
    Operation::alone(move |block, call| {
        block.check_own(call, call.word(0))?;
        let awaited = if parity { Awaited::Parity(call.number(1)) } else { Awaited::State(call.word(1)) };
        block.wait_for(
            call,
            call.word(0),
            Wait { awaited, acquires: (!relaxed).then_some(reach.scope), blocks },
        )
    })
}
