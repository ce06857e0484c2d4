//! `mbarrier.*` (PTX ISA, "Parallel Synchronization and Communication Instructions: mbarrier").

use crate::simt::instruction::{Operation, Then};
use crate::simt::mbarrier::{Arrival, Awaited, Wait};

pub(super) fn find(name: &str) -> Option<Operation> {
    let name = name.strip_prefix("mbarrier.")?;
    // Old forms end with the address space, new ones with scope and address space.
    let (name, scoped) = match name.split_once(".scope.") {
        Some((
            name,
            "cta.space.cta" | "cluster.space.cta" | "cta.space.cluster" | "cluster.space.cluster",
        )) => (name, true),
        Some(_) => return None,
        None => (name.strip_suffix(".shared").unwrap_or(name), false),
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
        ("arrive", false) => arrive(|_| Arrival { count: 1, bytes: 0, releases: true }),
        ("arrive", true) if relaxed => {
            arrive(|operand| Arrival { count: operand, bytes: 0, releases: false })
        }
        ("arrive", true) => arrive(|operand| Arrival { count: operand, bytes: 0, releases: true }),
        ("arrive.expect.tx", true) if relaxed => {
            arrive(|operand| Arrival { count: 1, bytes: operand, releases: false })
        }
        ("arrive.expect.tx", true) => arrive(|operand| Arrival { count: 1, bytes: operand, releases: true }),
        ("expect.tx", true) => bytes(1),
        ("complete.tx", true) => bytes(-1),
        ("test.wait", _) => wait(false, false, relaxed),
        ("test.wait.parity", true) => wait(false, true, relaxed),
        ("try.wait" | "try.wait.tl", true) => wait(true, false, relaxed),
        ("try.wait.parity" | "try.wait.parity.tl", true) => wait(true, true, relaxed),
        _ => None,
    }
}

fn arrive(of: fn(u32) -> Arrival) -> Option<Operation> {
    Operation::alone(move |block, call| {
        let operand = if call.operands() > 1 { call.number(1) } else { 0 };
        let state = block.arrive_at(call, call.word(0), of(operand))?;
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

fn wait(blocks: bool, parity: bool, relaxed: bool) -> Option<Operation> {
    Operation::alone(move |block, call| {
        let awaited = if parity { Awaited::Parity(call.number(1)) } else { Awaited::State(call.word(1)) };
        block.wait_for(call, call.word(0), Wait { awaited, acquires: !relaxed, blocks })
    })
}
