//! `cp.async`, its groups, and mbarriers, with copies as late and as early as may be.

use super::harness::{Kernel, store_result, words};
use crate::simt::{Fault, Memory, Problem, Timing};
use tile_test_edit::Edit;

const BOTH: [Timing; 2] = [Timing::Late, Timing::Early];

/// Each thread copies 16 bytes of `%a` to its place; then comes `rest`.
fn copy(rest: &str) -> String {
    format!(
        "  %bytes = mul i32 %tid, 16\n  %from = getelementptr i8, ptr addrspace(1) %a, i32 %bytes\n  \
         %to = getelementptr i8, ptr addrspace(3) @shared, i32 %bytes\n  \
         call void @llvm.nvvm.cp.async.cg.shared.global.16(ptr addrspace(3) %to, ptr addrspace(1) %from)\n{rest}"
    )
}

/// Each thread reads the first word of the thread 33 further on, which is another warp's.
fn read_other() -> String {
    format!(
        "  %further = add i32 %bytes, 528\n  %wrapped = and i32 %further, 1023\n  \
         %other = getelementptr i8, ptr addrspace(3) @shared, i32 %wrapped\n  \
         %r = load i32, ptr addrspace(3) %other\n{}",
        store_result("%r")
    )
}

const COMMIT: &str = "  call void @llvm.nvvm.cp.async.commit.group()\n";
const WAIT: &str = "  call void @llvm.nvvm.cp.async.wait.group(i32 0)\n";
const BARRIER: &str = "  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)\n";

fn run(body: &str, timing: Timing) -> Result<[Vec<u32>; 2], Fault> {
    let mut arrays = [words(256, 3), vec![0; 64]];
    Kernel::new("sm_90a", 64, body).run_blocks(&mut arrays, 1, timing)?;
    Ok(arrays)
}

fn fails(body: &str, is_expected: impl Fn(&Problem) -> bool) {
    for timing in BOTH {
        let fault = run(body, timing).expect_err("something is missing");
        assert!(is_expected(&fault.problem), "{timing:?}: {fault}");
    }
}

#[test]
fn copies_come_with_wait_and_barrier() {
    for timing in BOTH {
        let body = copy(&format!("{COMMIT}{WAIT}{BARRIER}{}", read_other()));
        let [input, result] = run(&body, timing).unwrap();
        assert_eq!(result, (0..64).map(|thread| input[(thread + 33) % 64 * 4]).collect::<Vec<_>>());
        let all = copy(&format!("  call void @llvm.nvvm.cp.async.wait.all()\n{BARRIER}{}", read_other()));
        run(&all, timing).unwrap_or_else(|fault| panic!("{fault}"));
    }
}

#[test]
fn what_is_missing_is_found() {
    let in_flight = |problem: &Problem| {
        matches!(problem, Problem::InFlight { memory: Memory::Shared, operation, .. }
        if operation.name.contains("cp.async") && operation.writes)
    };
    fails(&copy(&format!("{COMMIT}{BARRIER}{}", read_other())), in_flight);
    fails(&copy(&format!("{WAIT}{BARRIER}{}", read_other())), in_flight);
    let late = "  call void @llvm.nvvm.cp.async.wait.group(i32 1)\n";
    fails(&copy(&format!("{COMMIT}{late}{BARRIER}{}", read_other())), in_flight);
    let race = |problem: &Problem| {
        matches!(problem, Problem::Race { .. } | Problem::InFlight { .. } | Problem::Uninitialized { .. })
    };
    fails(&copy(&format!("{COMMIT}{WAIT}{}", read_other())), race);
    // A barrier before the wait, none after it.
    fails(&copy(&format!("{COMMIT}{BARRIER}{WAIT}{}", read_other())), race);
}

#[test]
fn only_older_groups_are_waited_for() {
    let second = "  %more = add i32 %bytes, 1024\n  %to2 = getelementptr i8, ptr addrspace(3) @shared, i32 %more\n  \
                  call void @llvm.nvvm.cp.async.ca.shared.global.16(ptr addrspace(3) %to2, ptr addrspace(1) %from)\n";
    let one = "  call void @llvm.nvvm.cp.async.wait.group(i32 1)\n";
    let read = |address: &str| format!("  %v = load i32, ptr addrspace(3) {address}\n");
    let body = |address: &str| copy(&format!("{COMMIT}{second}{COMMIT}{one}{}", read(address)));
    for timing in BOTH {
        run(&body("%to"), timing).unwrap();
    }
    fails(&body("%to2"), |problem| matches!(problem, Problem::InFlight { .. }));
}

#[test]
fn a_source_in_flight_is_not_written() {
    let write = "  store i32 0, ptr addrspace(1) %from\n";
    fails(
        &copy(write),
        |problem| matches!(problem, Problem::InFlight { memory: Memory::Tensor(name), operation, .. } if name == "a" && !operation.writes),
    );
    for timing in BOTH {
        run(&copy(&format!("{COMMIT}{WAIT}{write}")), timing).unwrap();
    }
}

#[test]
fn a_buffer_is_not_copied_to_while_others_read_it() {
    let reuse = |barrier: &str| {
        copy(&format!(
            "{COMMIT}{WAIT}{BARRIER}{}{barrier}  \
             call void @llvm.nvvm.cp.async.cg.shared.global.16(ptr addrspace(3) %to, ptr addrspace(1) %from)\n",
            read_other()
        ))
    };
    for timing in BOTH {
        run(&reuse(BARRIER), timing).unwrap();
    }
    fails(&reuse(""), |problem| matches!(problem, Problem::Race { .. } | Problem::InFlight { .. }));
}

#[test]
fn copies_of_every_size() {
    for size in [4, 8, 16] {
        let body = copy(&format!("{COMMIT}{WAIT}{BARRIER}{}", read_other()))
            .edit("cg.shared.global.16", &format!("ca.shared.global.{size}"));
        for timing in BOTH {
            let [input, result] = run(&body, timing).unwrap_or_else(|fault| panic!("{fault}"));
            assert_eq!(result, (0..64).map(|thread| input[(thread + 33) % 64 * 4]).collect::<Vec<_>>());
        }
        let whole =
            "  %all = load <4 x i32>, ptr addrspace(3) %other\n  %r = extractelement <4 x i32> %all, i32 3\n";
        let beyond = body.edit("  %r = load i32, ptr addrspace(3) %other\n", whole);
        let result = Kernel::new("sm_90a", 64, &beyond).run(&mut [words(256, 3), vec![0; 80]]);
        assert_eq!(result.is_ok(), size == 16, "only {size} bytes came");
    }
}

#[test]
fn bytes_that_do_not_exist_are_zero() {
    let body = format!(
        "  %bytes = mul i32 %tid, 16\n  %from = getelementptr i8, ptr addrspace(1) %a, i32 %bytes\n  \
         %to = getelementptr i8, ptr addrspace(3) @shared, i32 %bytes\n  \
         call void @llvm.nvvm.cp.async.cg.shared.global.16.s(ptr addrspace(3) %to, ptr addrspace(1) %from, i32 6)\n\
         {COMMIT}{WAIT}  %at = getelementptr i8, ptr addrspace(3) %to, i32 4\n  %r = load i32, ptr addrspace(3) %at\n{}",
        store_result("%r")
    );
    for timing in BOTH {
        let [input, result] = run(&body, timing).unwrap();
        assert_eq!(result, (0..64).map(|thread| input[thread * 4 + 1] & 0xffff).collect::<Vec<_>>());
    }
    fails(&body.edit("i32 6)", "i32 17)"), |problem| matches!(problem, Problem::Misuse(_)));
    let aside = body.edit("@shared, i32 %bytes", "@shared, i32 4");
    fails(&aside, |problem| matches!(problem, Problem::Misaligned { alignment: 16, excess: 4 }));
}

/// An mbarrier at byte 4096, made by thread 0 for so many arrivals.
fn mbarrier(count: u32, rest: &str) -> String {
    format!(
        "  %bar = getelementptr i8, ptr addrspace(3) @shared, i32 4096\n  %zero = icmp eq i32 %tid, 0\n  \
         br i1 %zero, label %init, label %ready\ninit:\n  \
         call void @llvm.nvvm.mbarrier.init.shared(ptr addrspace(3) %bar, i32 {count})\n  br label %ready\n\
         ready:\n{BARRIER}{rest}"
    )
}

/// Waits for the phase of a parity, in a loop as kernels do.
fn wait(parity: u32, name: &str) -> String {
    format!(
        "  br label %wait{parity}\nwait{parity}:\n  \
         %w{parity} = call i1 @llvm.nvvm.mbarrier.{name}.parity.scope.cta.space.cta(ptr addrspace(3) %bar, i32 {parity})\n  \
         br i1 %w{parity}, label %over{parity}, label %wait{parity}\nover{parity}:\n"
    )
}

const ARRIVE: &str = "  %s = call i64 @llvm.nvvm.mbarrier.arrive.shared(ptr addrspace(3) %bar)\n";

/// Each thread writes its place and reads that of the thread 33 further on, with `between`.
fn exchange(between: &str) -> String {
    format!(
        "  %bytes = mul i32 %tid, 16\n  %own = getelementptr i8, ptr addrspace(3) @shared, i32 %bytes\n  \
         store i32 %tid, ptr addrspace(3) %own\n{between}{}",
        read_other()
    )
}

#[test]
fn arrivals_and_waits_order_threads() {
    for timing in BOTH {
        for name in ["try.wait", "test.wait"] {
            let body = mbarrier(64, &exchange(&format!("{ARRIVE}{}", wait(0, name))));
            let [_, result] = run(&body, timing).unwrap_or_else(|fault| panic!("{name}: {fault}"));
            assert_eq!(result, (0..64).map(|thread| (thread + 33) % 64).collect::<Vec<_>>());
        }
    }
    let race = |problem: &Problem| matches!(problem, Problem::Race { .. } | Problem::Uninitialized { .. });
    fails(&mbarrier(64, &exchange(ARRIVE)), race);
    let relaxed = "  %s = call i64 @llvm.nvvm.mbarrier.arrive.relaxed.scope.cta.space.cta(ptr addrspace(3) %bar, i32 1)\n";
    fails(&mbarrier(64, &exchange(&format!("{relaxed}{}", wait(0, "try.wait")))), race);
    let unordered = wait(0, "try.wait").edit(".parity.scope", ".parity.relaxed.scope");
    fails(&mbarrier(64, &exchange(&format!("{ARRIVE}{unordered}"))), race);
    // The phase of parity 1 seems to be over before the first is: so the wait is for nothing.
    fails(&mbarrier(64, &exchange(&format!("{ARRIVE}{}", wait(1, "try.wait")))), race);
}

/// The time of a wait may run out, which kernels must ask for again.
#[test]
fn a_wait_that_is_not_repeated_is_found() {
    let once = "  %w = call i1 @llvm.nvvm.mbarrier.try.wait.parity.scope.cta.space.cta(ptr addrspace(3) %bar, i32 0)\n";
    let body = mbarrier(64, &exchange(&format!("{ARRIVE}{once}")));
    let fault = run(&body, Timing::Late).expect_err("a loop is missing");
    assert!(matches!(fault.problem, Problem::Race { .. } | Problem::Uninitialized { .. }), "{fault}");
}

#[test]
fn phases_follow_each_other() {
    let again =
        "  %s2 = call i64 @llvm.nvvm.mbarrier.arrive.scope.cta.space.cta(ptr addrspace(3) %bar, i32 1)\n";
    for timing in BOTH {
        let body = mbarrier(
            64,
            &exchange(&format!("{ARRIVE}{}{again}{}", wait(0, "try.wait"), wait(1, "try.wait"))),
        );
        run(&body, timing).unwrap_or_else(|fault| panic!("{fault}"));
        let state = format!(
            "{ARRIVE}  br label %loop\nloop:\n  \
             %w = call i1 @llvm.nvvm.mbarrier.test.wait.shared(ptr addrspace(3) %bar, i64 %s)\n  \
             br i1 %w, label %over, label %loop\nover:\n"
        );
        run(&mbarrier(64, &exchange(&state)), timing).unwrap_or_else(|fault| panic!("{fault}"));
    }
}

#[test]
fn a_wait_that_nobody_can_end_is_told() {
    for name in ["try.wait", "test.wait"] {
        fails(&mbarrier(65, &format!("{ARRIVE}{}", wait(0, name))), |problem| {
            matches!(problem, Problem::Stuck(what)
                if what.contains("the mbarrier at byte 4096 of shared memory, which misses 1 of 65 arrivals and 0 bytes"))
        });
    }
    let bytes = "  %s = call i64 @llvm.nvvm.mbarrier.arrive.expect.tx.scope.cta.space.cta(ptr addrspace(3) %bar, i32 8)\n";
    fails(
        &mbarrier(64, &format!("{bytes}{}", wait(0, "try.wait"))),
        |problem| matches!(problem, Problem::Stuck(what) if what.contains("misses 0 of 64 arrivals and 512 bytes")),
    );
}

#[test]
fn misuses_of_mbarriers() {
    let misuse = |problem: &Problem| matches!(problem, Problem::Misuse(_));
    let many =
        "  %s = call i64 @llvm.nvvm.mbarrier.arrive.scope.cta.space.cta(ptr addrspace(3) %bar, i32 65)\n";
    fails(&mbarrier(64, many), misuse);
    fails(&mbarrier(0, ARRIVE), misuse);
    fails(&mbarrier(64, ARRIVE).edit(BARRIER, ""), misuse);
    let touched = "  %v = load i32, ptr addrspace(3) %bar\n";
    fails(
        &mbarrier(64, touched),
        |problem| matches!(problem, Problem::InFlight { operation, .. } if operation.name.contains("mbarrier.init")),
    );
    let end = format!(
        "{ARRIVE}{}  br i1 %zero, label %inval, label %done\ninval:\n  \
         call void @llvm.nvvm.mbarrier.inval.shared(ptr addrspace(3) %bar)\n  store i32 0, ptr addrspace(3) %bar\n  \
         br label %done\ndone:\n",
        wait(0, "try.wait")
    );
    for timing in BOTH {
        // Others may still ask when thread 0 ends it, so a barrier comes before.
        let body = mbarrier(64, &end.edit("  br i1 %zero", &format!("{BARRIER}  br i1 %zero")));
        run(&body, timing).unwrap_or_else(|fault| panic!("{fault}"));
    }
}

#[test]
fn copies_arrive_at_an_mbarrier() {
    let arrive = "  call void @llvm.nvvm.cp.async.mbarrier.arrive.noinc.shared(ptr addrspace(3) %bar)\n";
    let right = mbarrier(64, &copy(&format!("{arrive}{}{}", wait(0, "try.wait"), read_other())));
    for timing in BOTH {
        let [input, result] = run(&right, timing).unwrap_or_else(|fault| panic!("{fault}"));
        assert_eq!(result, (0..64).map(|thread| input[(thread + 33) % 64 * 4]).collect::<Vec<_>>());
    }
    // Arrivals that are extra don't end the phase by themselves.
    let extra = right.edit(".noinc", "");
    fails(&extra, |problem| matches!(problem, Problem::Stuck(_)));
    let plain = right.edit(arrive, ARRIVE);
    fails(&plain, |problem| matches!(problem, Problem::InFlight { .. }));
}
