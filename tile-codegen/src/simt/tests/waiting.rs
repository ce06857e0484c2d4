//! Blocks that wait for each other through tensors: for earlier ones, for later ones, and for ever.

use super::harness::Kernel;
use crate::simt::*;

const BLOCK: &str = "  %block = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()\n  \
    %blocks = call i32 @llvm.nvvm.read.ptx.sreg.nctaid.x()\n";

/// Every block stores into its word of `%a` and waits for that of `other`, by a thread for all of them.
fn handshake(other: &str, stores: [&str; 2]) -> String {
    let store = "  store atomic i32 1, ptr addrspace(1) %own syncscope(\"device\") release, align 4\n";
    let [before, after] = stores.map(|text| if text.is_empty() { "" } else { store });
    format!(
        "{BLOCK}{other}  %own = getelementptr i32, ptr addrspace(1) %a, i32 %block\n  \
         %at = getelementptr i32, ptr addrspace(1) %a, i32 %other\n  \
         %flag = getelementptr i32, ptr addrspace(3) @shared, i32 0\n  \
         %first = icmp eq i32 %tid, 0\n  br i1 %first, label %begin, label %loop\n\
         begin:\n{before}  br label %loop\n\
         loop:\n  br i1 %first, label %ask, label %told\n\
         ask:\n  %f = load atomic i32, ptr addrspace(1) %at syncscope(\"device\") acquire, align 4\n  \
         store i32 %f, ptr addrspace(3) %flag\n  br label %told\n\
         told:\n  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)\n  \
         %g = load i32, ptr addrspace(3) %flag\n  \
         call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)\n  \
         %come = icmp eq i32 %g, 1\n  br i1 %come, label %done, label %loop\n\
         done:\n  br i1 %first, label %last, label %end\n\
         last:\n{after}  br label %end\nend:"
    )
}

/// The block before; the first one waits for itself.
const BEFORE: &str = "  %less = sub i32 %block, 1\n  %other = call i32 @llvm.smax.i32(i32 %less, i32 0)\n";
/// The block behind; the last one waits for the first.
const BEHIND: &str = "  %more = add i32 %block, 1\n  %other = urem i32 %more, %blocks\n";

fn run(body: &str, blocks: u64) -> Result<Vec<u32>, Fault> {
    let mut arrays = [vec![0; 1000], vec![0], vec![0]];
    Kernel::new("sm_90a", 64, body).run_blocks(&mut arrays, blocks, Timing::Late)?;
    let [words, ..] = arrays;
    Ok(words)
}

#[test]
fn blocks_may_wait_for_earlier_ones_and_for_later_ones() {
    for other in [BEFORE, BEHIND] {
        for blocks in [2, 5, 100] {
            let words =
                run(&handshake(other, ["store", ""]), blocks).unwrap_or_else(|fault| panic!("{fault}"));
            assert_eq!(words.iter().sum::<u32>(), blocks as u32);
        }
    }
}

#[test]
fn blocks_that_all_wait_are_told() {
    let fault = run(&handshake(BEHIND, ["", "store"]), 3).unwrap_err();
    assert_eq!(
        fault.to_string(),
        "block 0, thread 0: waits for ever: byte 4 of `a` stays as it is, because blocks 0 to 2 all wait; let a block \
         store what others wait for before it waits itself"
    );
}

#[test]
fn more_blocks_than_can_wait_at_once_are_told() {
    let fault = run(&handshake("  %other = sub i32 %blocks, 1\n", ["", "store"]), 1000).unwrap_err();
    let problem = fault.problem.to_string();
    assert!(
        problem.contains("blocks 0 to 127 all wait, and blocks from 128 on begin only when"),
        "{problem}"
    );
}

/// A loop that counts ends, however long nothing changes, also one that looks at many places in a turn.
#[test]
fn a_thread_may_look_for_a_while() {
    let look = |i: usize| {
        format!(
            "  %at{i} = getelementptr i32, ptr addrspace(1) %own, i32 {i}\n  \
             %f{i} = load atomic i32, ptr addrspace(1) %at{i} syncscope(\"device\") monotonic, align 4\n"
        )
    };
    for places in [1, 2, 9] {
        let looks: String = (0..places).map(look).collect();
        let body = format!(
            "  %own = getelementptr i32, ptr addrspace(1) %a, i32 %tid\n  br label %loop\n\
             loop:\n  %i = phi i32 [ 0, %0 ], [ %next, %loop ]\n{looks}  \
             %next = add i32 %i, 1\n  %more = icmp ult i32 %next, 3000\n  br i1 %more, label %loop, label %end\nend:"
        );
        run(&body, 3).unwrap_or_else(|fault| panic!("{fault}"));
    }
}

/// Nobody waits by an update of which nothing is made, however long it leaves memory as it is: of a tensor, and of shared memory.
#[test]
fn updates_of_which_nothing_is_made_may_change_nothing_for_long() {
    let begin = "  %own = getelementptr i32, ptr addrspace(3) @shared, i32 %tid\n  store i32 0, ptr addrspace(3) %own\n  \
                 call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)\n  \
                 %first = icmp eq i32 %tid, 0\n  br label %begin\nbegin:\n  br i1 %first, label %loop, label %end\n";
    let update = |kind: &str, turns: u32| {
        format!(
            "{begin}loop:\n  %i = phi i32 [ 0, %begin ], [ %next, %joined ]\n  %on = icmp ne i32 %i, 5\n  \
             br i1 %on, label %update, label %joined\n\
             update:\n  %was = atomicrmw {kind} syncscope(\"device\") monotonic, align 4\n  br label %joined\n\
             joined:\n  %found = phi i32 [ 0, %loop ], [ %was, %update ]\n  %more = mul i32 %found, 2\n  \
             %next = add i32 %i, 1\n  %again = icmp ult i32 %next, {turns}\n  br i1 %again, label %loop, label %end\nend:"
        )
    };
    let of_tensor = update("umax ptr addrspace(1) %a, i32 7", 1_100_000);
    assert_eq!(run(&of_tensor, 1).unwrap_or_else(|fault| panic!("{fault}"))[0], 7);
    let of_shared = update("add ptr addrspace(3) @shared, i32 0", 200_000);
    run(&of_shared, 1).unwrap_or_else(|fault| panic!("{fault}"));
}
