//! Atomic accesses, fences and their scopes, within a block and across blocks.

use super::harness::{Kernel, problem};
use crate::simt::{Fault, Memory, Problem, Timing};
use tile_test_edit::Edit;

/// Runs two blocks of one thread: what the first writes to `%a[0]` the second reads once it found the flag `%b[0]`.
fn hand_over(publish: &str, find: &str) -> Result<(), Fault> {
    let body = format!(
        "  %block = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()\n  %first = icmp eq i32 %block, 0\n  \
         br i1 %first, label %write, label %read\n\
         write:\n  store i32 7, ptr addrspace(1) %a\n{publish}  br label %end\n\
         read:\n{find}  %r = load i32, ptr addrspace(1) %a\n  store i32 %r, ptr addrspace(1) %c\n  \
         br label %end\nend:"
    );
    let mut arrays = [vec![0], vec![0], vec![0]];
    Kernel::new("sm_90a", 1, &body).run_blocks(&mut arrays, 2, Timing::Late)?;
    assert_eq!(arrays[2], [7]);
    Ok(())
}

const RELEASE: &str = "  store atomic i32 1, ptr addrspace(1) %b syncscope(\"device\") release, align 4\n";
const ACQUIRE: &str = "  %f = load atomic i32, ptr addrspace(1) %b syncscope(\"device\") acquire, align 4\n";
const RELAXED_STORE: &str =
    "  store atomic i32 1, ptr addrspace(1) %b syncscope(\"device\") monotonic, align 4\n";
const RELAXED_LOAD: &str =
    "  %f = load atomic i32, ptr addrspace(1) %b syncscope(\"device\") monotonic, align 4\n";

fn is_race(result: &Result<(), Fault>) -> bool {
    matches!(result, Err(Fault { problem: Problem::Race { memory: Memory::Tensor(_), .. }, .. }))
}

#[test]
fn release_and_acquire_order_blocks() {
    hand_over(RELEASE, ACQUIRE).unwrap();
    let system = |text: &str| text.edit("syncscope(\"device\") ", "");
    hand_over(&system(RELEASE), &system(ACQUIRE)).unwrap();
    assert!(is_race(&hand_over(RELAXED_STORE, ACQUIRE)));
    assert!(is_race(&hand_over(RELEASE, RELAXED_LOAD)));
    assert!(is_race(&hand_over(RELEASE, "")));
}

/// What is read then wasn't released.
#[test]
fn a_relaxed_store_replaces_what_was_published() {
    assert!(is_race(&hand_over(&format!("{RELEASE}{RELAXED_STORE}"), ACQUIRE)));
    let fenced = format!("  fence syncscope(\"device\") release\n{RELAXED_STORE}");
    hand_over(&format!("{RELEASE}{fenced}"), ACQUIRE).unwrap();
}

/// Shared memory is another one in each block, though it may lie at the same address here.
#[test]
fn nothing_is_published_through_shared_memory_of_another_block() {
    let body = "  %block = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()\n  %first = icmp eq i32 %block, 0\n  \
                store i32 0, ptr addrspace(3) @shared\n  br i1 %first, label %write, label %read\n\
                write:\n  store i32 7, ptr addrspace(1) %a\n  \
                store atomic i32 1, ptr addrspace(3) @shared syncscope(\"device\") release, align 4\n  br label %end\n\
                read:\n  %f = load atomic i32, ptr addrspace(3) @shared syncscope(\"device\") acquire, align 4\n  \
                %r = load i32, ptr addrspace(1) %a\n  br label %end\nend:";
    let mut arrays = [vec![0], vec![0], vec![0]];
    let result = Kernel::new("sm_90a", 1, body).run_blocks(&mut arrays, 4, Timing::Late).map(|_| ());
    assert!(is_race(&result));
}

#[test]
fn updates_order_as_they_say() {
    let update = |order: &str| {
        format!("  %u = atomicrmw add ptr addrspace(1) %b, i32 1 syncscope(\"device\") {order}, align 4\n")
    };
    hand_over(&update("acq_rel"), &update("acq_rel").edit("%u", "%v")).unwrap();
    let read = update("monotonic").edit("%u", "%v");
    assert!(is_race(&hand_over(&update("acq_rel"), &read)));
    assert!(is_race(&hand_over(&update("monotonic"), &update("acq_rel").edit("%u", "%v"))));
}

#[test]
fn fences_order_relaxed_accesses() {
    let fence = |scope: &str, order: &str| format!("  fence syncscope(\"{scope}\") {order}\n");
    let released = |scope: &str| format!("{}{RELAXED_STORE}", fence(scope, "release"));
    let acquired = |scope: &str| format!("{RELAXED_LOAD}{}", fence(scope, "acquire"));
    hand_over(&released("device"), &acquired("device")).unwrap();
    assert!(is_race(&hand_over(&released("block"), &acquired("device"))));
    assert!(is_race(&hand_over(&released("device"), &acquired("block"))));
    let misplaced = format!("{RELAXED_STORE}{}", fence("device", "release"));
    assert!(is_race(&hand_over(&misplaced, &acquired("device"))));
}

#[test]
fn the_scope_of_a_block_orders_no_other() {
    let block = |text: &str| text.edit("device", "block");
    assert!(is_race(&hand_over(&block(RELEASE), ACQUIRE)));
    assert!(is_race(&hand_over(RELEASE, &block(ACQUIRE))));
}

#[test]
fn updates_at_the_scope_of_a_block_conflict_across_blocks() {
    let run = |gpu: &str, scope: &str| {
        let body = format!(
            "  %u = atomicrmw add ptr addrspace(1) %a, i32 1 syncscope(\"{scope}\") monotonic, align 4\n"
        );
        Kernel::new(gpu, 2, &body).run_blocks(&mut [vec![0], vec![0], vec![0]], 3, Timing::Late).map(|_| ())
    };
    run("sm_90a", "device").unwrap();
    run("gfx942", "agent").unwrap();
    assert!(is_race(&run("sm_90a", "block")));
    assert!(is_race(&run("gfx942", "workgroup")));
}

/// Only what a barrier brought to the thread that releases reaches the other block.
#[test]
fn a_release_covers_its_own_thread_alone() {
    let run = |barrier: &str| {
        let body = format!(
            "  %block = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()\n  \
             %at = getelementptr i32, ptr addrspace(1) %a, i32 %tid\n  \
             %first = icmp eq i32 %block, 0\n  br i1 %first, label %write, label %read\n\
             write:\n  store i32 7, ptr addrspace(1) %at\n{barrier}  %zero = icmp eq i32 %tid, 0\n  \
             br i1 %zero, label %publish, label %end\n\
             publish:\n{RELEASE}  br label %end\n\
             read:\n{ACQUIRE}  %r = load i32, ptr addrspace(1) %at\n  br label %end\nend:"
        );
        let mut arrays = [vec![0; 32], vec![0], vec![0]];
        Kernel::new("sm_90a", 32, &body).run_blocks(&mut arrays, 2, Timing::Late).map(|_| ())
    };
    run("  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)\n").unwrap();
    assert!(is_race(&run("")));
}

/// Threads of a block that hand over through shared memory: the second spins until the flag is there.
fn spin(publish: &str) -> String {
    format!(
        "  %flag = getelementptr i32, ptr addrspace(3) @shared, i32 1\n  \
         %zero = icmp eq i32 %tid, 0\n  br i1 %zero, label %init, label %sync\n\
         init:\n  store i32 0, ptr addrspace(3) %flag\n  br label %sync\n\
         sync:\n  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)\n  \
         %late = icmp eq i32 %tid, 1\n  br i1 %late, label %write, label %wait\n\
         write:\n  store i32 5, ptr addrspace(3) @shared\n{publish}  br label %end\n\
         wait:\n  br i1 %zero, label %loop, label %end\n\
         loop:\n  %f = load atomic i32, ptr addrspace(3) %flag syncscope(\"block\") acquire, align 4\n  \
         %done = icmp eq i32 %f, 1\n  br i1 %done, label %read, label %loop\n\
         read:\n  %r = load i32, ptr addrspace(3) @shared\n  store i32 %r, ptr addrspace(1) %b\n  \
         br label %end\nend:"
    )
}

#[test]
fn threads_may_spin_on_what_another_one_writes() {
    let store = "  store atomic i32 1, ptr addrspace(3) %flag syncscope(\"block\") release, align 4\n";
    let mut arrays = [vec![0], vec![0], vec![0]];
    Kernel::new("sm_90a", 32, &spin(store)).run(&mut arrays).unwrap_or_else(|fault| panic!("{fault}"));
    assert_eq!(arrays[1], [5]);
    let relaxed = store.edit("release", "monotonic");
    assert!(matches!(problem("sm_90a", 32, &spin(&relaxed)), Problem::Race { .. }));
}

/// Whenever one fails, another one didn't, however often.
#[test]
fn threads_may_try_again_as_often_as_others_get_on() {
    let updates = "  br label %start\nstart:\n  br label %outer\n\
         outer:\n  %i = phi i32 [ 0, %start ], [ %next, %done ]\n  br label %loop\n\
         loop:\n  %old = load atomic i32, ptr addrspace(1) %a syncscope(\"device\") monotonic, align 4\n  \
         %new = add i32 %old, 1\n  \
         %o = cmpxchg ptr addrspace(1) %a, i32 %old, i32 %new syncscope(\"device\") monotonic monotonic, align 4\n  \
         %ok = extractvalue { i32, i1 } %o, 1\n  br i1 %ok, label %done, label %loop\n\
         done:\n  %next = add i32 %i, 1\n  %more = icmp ult i32 %next, 80\n  \
         br i1 %more, label %outer, label %end\nend:";
    let mut arrays = [vec![0], vec![0], vec![0]];
    Kernel::new("sm_90a", 32, updates).run(&mut arrays).unwrap_or_else(|fault| panic!("{fault}"));
    assert_eq!(arrays[0], [32 * 80]);
}

#[test]
fn a_thread_that_spins_for_ever_is_told() {
    assert_eq!(problem("sm_90a", 32, &spin("")), Problem::Spins);
    let update = "  br label %loop\nloop:\n  \
                  %o = cmpxchg ptr addrspace(1) %a, i32 1, i32 2 syncscope(\"device\") acq_rel monotonic, align 4\n  \
                  %ok = extractvalue { i32, i1 } %o, 1\n  br i1 %ok, label %end, label %loop\nend:";
    assert!(matches!(problem("sm_90a", 2, update), Problem::Waits { .. }));
}
