//! Barriers of a block and of a warp, and fences that are intrinsics.

use crate::simt::barrier::{Reduction, Request};
use crate::simt::fault::Problem;
use crate::simt::instruction::{Call, Operation, Party, Then};
use crate::simt::order::{Fenced, Joined, Of, Ordering, Scope};

fn give_all(calls: &[Call<'_>], word: u64) {
    calls.iter().for_each(|call| call.give_word(0, word));
}

/// The predicate of a reducing barrier is its last operand.
fn predicates(calls: &[Call<'_>]) -> usize {
    calls.iter().filter(|call| call.flag(call.operands() - 1)).count()
}

/// NVIDIA's (PTX ISA, "barrier{.cta}", "barrier.cluster", "bar.warp.sync", "membar/fence", "mapa").
pub(super) fn nvidia(name: &str) -> Option<Operation> {
    match name {
        "bar.warp.sync" => warp(),
        "membar.cta" => fence(Scope::Block),
        "membar.gl" => fence(Scope::Device),
        "membar.sys" => fence(Scope::System),
        "barrier.cluster.arrive" => arrive_in_cluster(true),
        "barrier.cluster.arrive.relaxed" => arrive_in_cluster(false),
        "barrier.cluster.wait" => Operation::alone(|block, call| block.wait_in_cluster(call)),
        "mapa.shared.cluster" => map_to_block(),
        "fence.mbarrier_init.release.cluster" => Operation::alone(|block, call| {
            block.fence_mbarriers(call.thread, false);
            Ok(Then::GoOn)
        }),
        "fence.proxy.async" => fence_proxy(Fenced { shared: true, tensors: true }),
        "fence.proxy.async.global" => fence_proxy(Fenced { shared: false, tensors: true }),
        "fence.proxy.async.shared_cta" | "fence.proxy.async.shared_cluster" => {
            fence_proxy(Fenced { shared: true, tensors: false })
        }
        _ => of_block(name.strip_prefix("barrier.cta.")?),
    }
}

/// Lets the asynchronous proxy see what the generic one did.
fn fence_proxy(fenced: Fenced) -> Option<Operation> {
    Operation::alone(move |block, call| {
        block.threads[call.thread as usize].clock.fence_proxy(fenced);
        if fenced.shared {
            block.fence_mbarriers(call.thread, true);
        }
        Ok(Then::GoOn)
    })
}

/// The barrier of a block that has this name after `barrier.cta.`: what it does, and for how many threads.
fn of_block(name: &str) -> Option<Operation> {
    let (operation, rest) = ["sync", "arrive", "red.popc", "red.and", "red.or"]
        .into_iter()
        .find_map(|operation| Some((operation, name.strip_prefix(operation)?)))?;
    let (aligned, all) = match rest {
        ".aligned.all" => (true, true),
        ".aligned.count" => (true, false),
        ".all" => (false, true),
        ".count" => (false, false),
        _ => return None,
    };
    let waits = operation != "arrive";
    let reduction: Option<Reduction> = match operation {
        "red.popc" => Some(|calls| give_all(calls, predicates(calls) as u64)),
        "red.and" => Some(|calls| give_all(calls, u64::from(predicates(calls) == calls.len()))),
        "red.or" => Some(|calls| give_all(calls, u64::from(predicates(calls) > 0))),
        _ => None,
    };
    Operation::alone(move |block, call| {
        let count = (!all).then(|| call.number(1));
        let request = Request { barrier: call.number(0), count, waits, aligned, orders: true };
        block.arrive(call, request, reduction)
    })
}

/// The address that one in the block's own shared memory has in another block of the cluster.
fn map_to_block() -> Option<Operation> {
    Operation::alone(|block, call| {
        let (address, rank) = (call.word(0), call.number(1));
        if rank >= block.geometry.cluster || !block.is_own(call.thread, address) {
            let what = "maps the block's own shared memory to that of a block of its cluster";
            return Err(Problem::Misuse(format!("`mapa` {what}; there is no block {rank}")));
        }
        call.give_word(0, block.counterpart(call.thread, address, rank));
        Ok(Then::GoOn)
    })
}

fn arrive_in_cluster(releases: bool) -> Option<Operation> {
    Operation::alone(move |block, call| block.arrive_in_cluster(call, releases))
}

/// AMD's: execution waits, and memory is ordered by the fences around it (LLVM's AMDGPU usage guide, "Memory Model").
pub(super) fn amd(name: &str) -> Option<Operation> {
    match name {
        "s.barrier" => Operation::alone(|block, call| {
            let request = Request { barrier: 0, count: None, waits: true, aligned: true, orders: false };
            block.arrive(call, request, None)
        }),
        "s.barrier.signal" => Operation::alone(|block, call| {
            check_whole(call)?;
            let request = Request { barrier: SPLIT, count: None, waits: false, aligned: true, orders: false };
            block.arrive(call, request, None)
        }),
        "s.barrier.wait" => Operation::alone(|block, call| {
            check_whole(call)?;
            block.wait_at(call, SPLIT)
        }),
        "wave.barrier" => Operation::together(Party::Warp, |block, calls| {
            let of = |call: &Call<'_>| block.threads[call.thread as usize].clock.last_fence(Scope::Warp);
            let snapshots: Vec<_> = calls.iter().filter_map(of).collect();
            if let Some(joined) = Joined::of(&snapshots) {
                for call in calls {
                    block.threads[call.thread as usize].clock.bring(&joined, Scope::Warp);
                }
            }
            Ok(())
        }),
        _ => None,
    }
}

/// The number that the executor has for the barrier in two parts, apart from that in one.
const SPLIT: u32 = 1 << 16;

/// The barrier of the whole block is called -1.
fn check_whole(call: &Call<'_>) -> Result<(), Problem> {
    let bits = 8 * call.bytes(0).len();
    if call.word(0) == u64::MAX >> (64 - bits) {
        return Ok(());
    }
    Err(Problem::Misuse("a barrier of a part of the block isn't modelled".to_owned()))
}

/// Orders the memory of the lanes of a mask.
fn warp() -> Option<Operation> {
    Operation::together(Party::Mask(0), |block, calls| {
        let mut clock = |call: &Call<'_>| block.threads[call.thread as usize].clock.release(Scope::Block);
        let snapshots: Vec<_> = calls.iter().map(&mut clock).collect();
        let joined = Joined::of(&snapshots).expect("a mask has a lane");
        for call in calls {
            block.threads[call.thread as usize].clock.absorb(&joined);
        }
        Ok(())
    })
}

fn fence(scope: Scope) -> Option<Operation> {
    Operation::alone(move |block, call| {
        let order = Ordering { acquires: true, releases: true, scope, of: Of::All };
        block.threads[call.thread as usize].clock.fence(order);
        Ok(Then::GoOn)
    })
}
