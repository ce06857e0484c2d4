//! What is wrong with products whose sums are in tensor memory: each rule is broken in turn, and the fault says which.

use super::super::harness::{fault, is_right};
use super::*;
use crate::simt::Problem;
use tile_test_edit::Edit;

/// Two rounds: the second product's sums take the place of the first one's when all have loaded these.
fn rounds() -> String {
    let product = small();
    let arrive = "  %arrived = call i64 @llvm.nvvm.mbarrier.arrive.shared(ptr addrspace(3) %free)\n";
    let second = format!("{}{AFTER}{}{COMMIT}", wait("empty", "free", 0), product.multiply(false));
    format!(
        "{}  %is.loader = icmp ult i32 %tid, 128\n{}{}{AFTER}{}{}{}{}{BARRIER}{}",
        product.prepare(32),
        only("is.issuer", "issue", &format!("{}{COMMIT}", product.multiply(false))),
        wait("end", "done", 0),
        product.load(),
        only("is.loader", "hand", &format!("{BEFORE}{arrive}")),
        only("is.issuer", "again", &second),
        wait("end.again", "done", 1),
        free(32)
    )
}

#[test]
fn what_is_read_must_be_there_and_visible() {
    let product = small();
    let right = product.body(&product.multiply(false));
    product.fails(&right.edit(PROXY, ""), "with no proxy fence between them");
    let unordered = right.replacen(BARRIER, "", 1);
    for timing in BOTH {
        let fault = product.run(&unordered, timing).expect_err("a barrier is missing");
        assert!(matches!(fault.problem, Problem::Race { .. } | Problem::Uninitialized { .. }), "{fault}");
    }
}

#[test]
fn what_is_in_flight_is_not_overwritten() {
    let product = small();
    let right = product.body(&product.multiply(false));
    let store = only("is.first", "write", "  store i32 0, ptr addrspace(3) @shared\n");
    let end = wait("end", "done", 0);
    product.fails(
        &right.edit(&end, &format!("{BARRIER}{store}{end}")),
        "which `llvm.nvvm.tcgen05.mma.shared` of thread 128 still reads",
    );
    let later = right.edit(&end, &format!("{end}{store}"));
    product.run(&later, Timing::Late).unwrap_or_else(|fault| panic!("{fault}"));
}

#[test]
fn sums_are_loaded_when_they_are_there() {
    let product = small();
    let right = product.body(&product.multiply(false));
    product.fails(&right.edit(COMMIT, ""), "waits for the phase of parity 0");
    product.fails(
        &right.edit(&wait("end", "done", 0), BARRIER),
        "of tensor memory (lanes 0 to 15), which `llvm.nvvm.tcgen05.mma.shared` of thread 128 still writes: nobody \
         waited at the mbarrier of a `tcgen05.commit` after it",
    );
    product.fails(
        &right.edit(AFTER, ""),
        "of tensor memory (lanes 0 to 15), which a product wrote, with no `tcgen05.fence::after_thread_sync` in this \
         thread since it heard of that",
    );
    product.fails(&right.edit(&product.multiply(false), ""), "(lanes 0 to 15), which nobody wrote");
    product.fails(
        &right.edit(&product.multiply(false), &product.multiply(true)),
        "adds to column 480 of tensor memory (lanes 0 to 15), which nobody wrote",
    );
}

/// Only some threads wait, and others hear of it from them.
#[test]
fn sums_may_be_heard_of_from_others() {
    let product = small();
    let right = product.body(&product.multiply(false));
    let end = wait("end", "done", 0);
    let heard = right.edit(&end, &format!("{}{BARRIER}", only("is.first", "waits", &end)));
    for timing in BOTH {
        let result = product.run(&heard, timing).unwrap_or_else(|fault| panic!("{fault}"));
        product.compare(&result, 1);
    }
    product
        .fails(&right.edit(&end, &only("is.first", "waits", &end)), "(lanes 32 to 47), which nobody wrote");
}

#[test]
fn sums_are_replaced_when_all_have_loaded_them() {
    let product = small();
    let right = rounds();
    for timing in BOTH {
        let result = product.run(&right, timing).unwrap_or_else(|fault| panic!("{fault}"));
        product.compare(&result, 1);
    }
    product.fails(
        &right.edit(BEFORE, ""),
        "read, with no `tcgen05.fence::before_thread_sync` in that thread before it let this one go on",
    );
    let without = format!("{}{}", wait("empty", "free", 0), product.multiply(false));
    let with = format!("{}{AFTER}{}", wait("empty", "free", 0), product.multiply(false));
    product.fails(
        &right.edit(&with, &without),
        "read, with no `tcgen05.fence::after_thread_sync` in this thread since it heard of that",
    );
    // Early, the first product's phase is over and gone before anybody looks.
    let hasty = right.edit(&with, &product.multiply(false));
    product.fails_in(Timing::Late, &hasty, "read, with nothing between them that this thread waited for");
    product.fails_in(Timing::Early, &hasty, "waits for the phase of parity 0");
    // The phase may be known to be over though nobody else let this thread go on.
    let relaxed = right.edit("mbarrier.arrive.shared(", "mbarrier.arrive.relaxed.scope.cluster.space.cta(");
    let relaxed = relaxed.edit("ptr addrspace(3) %free)\n  br", "ptr addrspace(3) %free, i32 1)\n  br");
    for timing in BOTH {
        product.run(&relaxed, timing).unwrap_or_else(|fault| panic!("{fault}"));
    }
}

#[test]
fn products_follow_each_other_with_the_same_sums_and_shape() {
    let product = small();
    let wide = bf16_product(32, [true; 2], [128; 2]);
    let mixed = product.multiply(false) + &wide.multiply(false);
    product.fails(
        &product.body(&mixed),
        "still writes: nobody waited at the mbarrier of a `tcgen05.commit` after it",
    );
    let is_other = "  %is.other = icmp eq i32 %tid, 129\n";
    let other = format!("{is_other}{}", only("is.other", "other", &product.multiply(true)));
    let body = product.body(&product.multiply(false));
    let end = wait("end", "done", 0);
    product.fails(&body.edit(&end, &format!("{other}{end}")), "adds to column 480 of tensor memory");
    // Sums beside each other have nothing to do with each other.
    let beside = "  %beside = add i32 %base, 16\n  %e = inttoptr i32 %beside to ptr addrspace(6)\n";
    let both = product.multiply(false) + beside + &product.multiply_at("%e", false) + &product.multiply(true);
    for timing in BOTH {
        let result = product.run(&product.body(&both), timing).unwrap_or_else(|fault| panic!("{fault}"));
        product.compare(&result, 2);
    }
}

#[test]
fn warps_load_lanes_of_their_own() {
    let product = small();
    let right = product.body(&product.multiply(false));
    product.fails(
        &right.edit("add i32 %base, %rows", "add i32 %base, 2097152"),
        "warp 0 loads sixteen lanes of tensor memory from lane 0 or 16 on, not from lane 32",
    );
    product.fails(
        &right.edit("add i32 %low, 1048576", "add i32 %low, 524288"),
        "warp 0 loads sixteen lanes of tensor memory from lane 0 or 16 on, not from lane 8",
    );
    let differs = right.edit("add i32 %base, %rows", "add i32 %base, %tid");
    product.fails(&differs, "but all lanes must agree");
}

#[test]
fn memory_is_the_blocks_own() {
    let product = small();
    let right = product.body(&product.multiply(false));
    product.fails(
        &right.edit("%base = load i32, ptr addrspace(3) %where", "%base = add i32 0, 0"),
        "uses columns 0 to 15 of tensor memory, which the block doesn't have: the block has columns 480 to 511",
    );
    product.fails(
        &right
            .edit(&only("is.last", "alloc", &format!("{}{RELINQUISH}", allocate(32))), "")
            .edit("%base = load i32, ptr addrspace(3) %where", "%base = add i32 0, 0"),
        "which the block doesn't have: the block has none",
    );
    product.fails(
        &right
            .edit("%d = inttoptr i32 %base", "%lane16 = add i32 %base, 1048576\n  %d = inttoptr i32 %lane16"),
        "begin at lane 0 of tensor memory, not at lane 16",
    );
    product.fails(
        &right.edit(&free(32), ""),
        "32 columns of tensor memory from column 480 on are still allocated when the block ends",
    );
    product.fails(
        &right.edit(&deallocate(32), &deallocate(64)),
        "frees 64 columns of tensor memory from lane 0, column 480 on, but the allocation has 32",
    );
    product.fails(
        &right.edit(&deallocate(32), &format!("{}{}", deallocate(32), deallocate(32))),
        "uses column 480 of tensor memory, which thread 128 has freed",
    );
    let loads = product.load();
    product.fails(
        &right.edit(&loads, "").edit(&free(32), &format!("{}{BARRIER}{loads}", free(32))),
        "uses columns 480 to 495 of tensor memory, which thread 128 has freed",
    );
}

#[test]
fn memory_is_freed_when_nobody_uses_it() {
    let product = small();
    let right = product.body(&product.multiply(false));
    let end = format!("{}{AFTER}", wait("end", "done", 0));
    let early = right.edit(&free(32), "").edit(&end, &format!("{}{end}", free(32)));
    product.fails(
        &early,
        "frees column 480 of tensor memory (lanes 0 to 15), which `llvm.nvvm.tcgen05.mma.shared`",
    );
    // Who comes first depends on when the product ends.
    let unordered = right.edit(&format!("{BARRIER}{}", free(32)), &free(32));
    let read = "frees column 480 of tensor memory (lanes 0 to 15), which thread 4 read, with nothing between them that \
                this thread waited for";
    product.fails_in(Timing::Late, &unordered, read);
    let freed = "uses columns 480 to 495 of tensor memory, which thread 128 has freed";
    product.fails_in(Timing::Early, &unordered, freed);
}

#[test]
fn allocations_are_as_the_manual_says() {
    let product = small();
    let right = product.body(&product.multiply(false));
    let with = |what: &str| right.edit(&allocate(32), what);
    for columns in [16, 48, 1024] {
        product.fails(
            &with(&allocate(columns)),
            &format!("asks for {columns} columns of tensor memory: it takes"),
        );
    }
    product.fails(
        &with(&(allocate(32) + RELINQUISH + &allocate(32))),
        "asks for tensor memory after thread 128 gave up the right to more",
    );
    product.fails(&with(&(allocate(32) + &allocate(64))), "asks for 64 columns of tensor memory after 32");
    product.fails(
        &with(&(allocate(512) + &allocate(32))),
        "asks for 32 columns of tensor memory and would wait forever: the block has columns 0 to 511 of 512",
    );
    product.fails(
        &with("  call void @llvm.nvvm.tcgen05.alloc.shared.cg1(ptr addrspace(3) %where, i32 %tid)\n"),
        "must agree",
    );
}

#[test]
fn descriptors_are_checked() {
    let product = small();
    let right = product.body(&product.multiply(false));
    let a = product.a.descriptor();
    product.fails(
        &right.edit(&a.cast_signed().to_string(), &(a ^ 1 << 46).cast_signed().to_string()),
        "has 0b000 in bits 46 to 48",
    );
    product.fails(&right.edit("i32 0, i32 1, i32 0)", "i32 0, i32 2, i32 0)"), "pairs of blocks");
    product.fails(&right.edit("i32 0, i32 1, i32 0)", "i32 0, i32 1, i32 1)"), "in the collector");
    product.fails(&right.edit("%db.base, 16384", "%db.base, 33000"), "outside it");
}

#[test]
fn no_load_reaches_tensor_memory() {
    let body = "  %p = inttoptr i32 0 to ptr addrspace(6)\n  %x = load i32, ptr addrspace(6) %p\n";
    let refused = Kernel::compile("sm_100a", 32, "ptr addrspace(1) %a", body).map(|_| ());
    assert_eq!(refused, Err("no load or store reaches tensor memory".to_owned()));
}

/// The lanes of the warp that allocates may read the address at once; others wait for a barrier.
#[test]
fn an_address_is_the_warps_before_it_is_others() {
    let get = "  %where = getelementptr i8, ptr addrspace(3) @shared, i32 64\n";
    let whole = format!("{get}{}{ADDRESS}{}", allocate(64), deallocate(64));
    is_right("sm_100a", 32, &whole);
    let by_first = only("is.low", "alloc", &allocate(64));
    let shared = format!(
        "{get}  %is.low = icmp ult i32 %tid, 32\n{by_first}{BARRIER}{ADDRESS}{BARRIER}{}",
        only("is.low", "free", &deallocate(64))
    );
    is_right("sm_100a", 64, &shared);
    let early = fault("sm_100a", 64, &shared.replacen(BARRIER, "", 1)).to_string();
    assert!(
        early.contains("reads byte 64 of shared memory, which an asynchronous operation wrote"),
        "{early}"
    );
    let misaligned = fault("sm_100a", 32, &whole.edit("i32 64\n", "i32 66\n")).to_string();
    assert!(misaligned.contains("alignment of 4 bytes"), "{misaligned}");
}

#[test]
fn a_block_waits_for_its_products() {
    let product = small();
    let issue = format!("{}{COMMIT}", product.multiply(false));
    let body = product.body(&product.multiply(false));
    let end = body.split(&only("is.issuer", "issue", &issue)).next().expect("a part before").to_owned();
    product.fails(
        &(end + &only("is.issuer", "issue", &issue)),
        "still reads shared memory when the block ends: nobody waited for it",
    );
}
