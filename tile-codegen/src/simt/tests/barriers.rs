//! Barriers of a block, of a part of one, and of a warp.

use super::harness::{Kernel, fault, is_right, problem, results, store_result};
use crate::simt::{Fault, Memory, Problem};
use tile_test_edit::Edit;

/// Each thread writes its number to shared memory, then reads its neighbour's.
fn neighbours(between: &str) -> String {
    format!(
        "  %own = getelementptr i32, ptr addrspace(3) @shared, i32 %tid\n  \
         store i32 %tid, ptr addrspace(3) %own\n{between}  \
         %next = xor i32 %tid, 1\n  \
         %other = getelementptr i32, ptr addrspace(3) @shared, i32 %next\n  \
         %r = load i32, ptr addrspace(3) %other\n{}",
        store_result("%r")
    )
}

fn is_race(problem: &Problem) -> bool {
    matches!(problem, Problem::Race { memory: Memory::Shared, .. } | Problem::Uninitialized { .. })
}

#[test]
fn a_barrier_orders_what_is_on_its_sides() {
    let body = neighbours("  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)\n");
    let [_, result] = results("sm_90a", 64, &body, [vec![0; 64], vec![0; 64]]);
    assert_eq!(result, (0..64).map(|thread| thread ^ 1).collect::<Vec<_>>());
    assert!(is_race(&problem("sm_90a", 64, &neighbours(""))));
}

#[test]
fn a_warp_orders_its_own_lanes() {
    is_right("sm_90a", 64, &neighbours("  call void @llvm.nvvm.bar.warp.sync(i32 -1)\n"));
    let shuffle = "  %s = call i32 @llvm.nvvm.shfl.sync.bfly.i32(i32 -1, i32 %tid, i32 1, i32 31)\n";
    assert!(is_race(&problem("sm_90a", 64, &neighbours(shuffle))), "a shuffle orders no memory");
}

#[test]
fn the_barrier_of_amd_needs_its_fences() {
    let fences = ["  fence syncscope(\"workgroup\") release\n", "  fence syncscope(\"workgroup\") acquire\n"];
    let with = |[before, after]: [&str; 2]| {
        neighbours(&format!("{before}  call void @llvm.amdgcn.s.barrier()\n{after}"))
    };
    is_right("gfx942", 64, &with(fences));
    is_right("gfx942", 128, &with(fences));
    for wrong in [["", fences[1]], [fences[0], ""], ["  fence syncscope(\"wavefront\") release\n", fences[1]]]
    {
        assert!(is_race(&problem("gfx942", 128, &with(wrong))), "{wrong:?}");
    }
}

/// What fences say that order shared memory, tensors, and both; and one that says nothing.
const TAGS: &str = "!0 = !{!\"amdgpu-synchronize-as\", !\"local\"}\n\
                    !1 = !{!\"amdgpu-synchronize-as\", !\"global\"}\n!2 = !{!0, !1}\n";
const LOCAL: &str = ", !mmra !0";
const GLOBAL: &str = ", !mmra !1";
const BOTH: &str = ", !mmra !2";
const PLAIN: &str = "";

/// Neighbours read what each other wrote to this memory, between fences of such tags.
fn fenced(memory: &str, [release, acquire]: [&str; 2], more: &str) -> Result<Result<(), Fault>, String> {
    let between = format!(
        "  fence syncscope(\"workgroup\") release{release}\n  call void @llvm.amdgcn.s.barrier()\n  \
         fence syncscope(\"workgroup\") acquire{acquire}\n{more}"
    );
    let body = neighbours(&between).edit("ptr addrspace(3) @shared", memory);
    let space = &memory[.."ptr addrspace(3)".len()];
    let body = body.edit("ptr addrspace(3)", space);
    let parameters = "ptr addrspace(1) %a, ptr addrspace(1) %b, ptr addrspace(1) %c";
    let kernel = Kernel::compile_with(TAGS, "gfx1201", 64, parameters, &body)?;
    Ok(kernel.run(&mut [vec![0; 64], vec![0; 64], vec![0; 64]]).map(|_| ()))
}

#[test]
fn fences_of_shared_memory_order_no_tensors() {
    let in_shared = |tags| fenced("ptr addrspace(3) @shared", tags, "").expect("a kernel");
    let in_tensor = |tags| fenced("ptr addrspace(1) %c", tags, "").expect("a kernel");
    for tags in [[LOCAL; 2], [LOCAL, PLAIN], [PLAIN, LOCAL], [PLAIN; 2], [BOTH; 2]] {
        assert!(in_shared(tags).is_ok(), "{tags:?}");
    }
    for tags in [[LOCAL; 2], [LOCAL, PLAIN], [PLAIN, LOCAL], [LOCAL, BOTH]] {
        let fault = in_tensor(tags).expect_err("nothing orders the tensor");
        let is_missed =
            matches!(&fault.problem, Problem::Race { memory: Memory::Tensor(name), .. } if name == "c");
        assert!(is_missed, "{tags:?}: {fault}");
    }
    for tags in [[PLAIN; 2], [BOTH; 2]] {
        assert!(in_tensor(tags).is_ok(), "{tags:?}");
    }
    let later = "  fence syncscope(\"workgroup\") acquire\n";
    assert!(fenced("ptr addrspace(1) %c", [PLAIN, LOCAL], later).expect("a kernel").is_ok());
    assert!(fenced("ptr addrspace(1) %c", [LOCAL; 2], later).expect("a kernel").is_err());
    let refused = fenced("ptr addrspace(1) %c", [GLOBAL; 2], "").expect_err("not modelled");
    assert!(refused.contains("\"amdgpu-synchronize-as\", \"global\""), "{refused}");
}

#[test]
fn a_barrier_in_two_parts() {
    let body = |signal: &str, after: &str| {
        neighbours(&format!(
            "  fence syncscope(\"workgroup\") release\n{signal}  call void @llvm.amdgcn.s.barrier.wait(i16 -1)\n{after}"
        ))
    };
    let signal = "  call void @llvm.amdgcn.s.barrier.signal(i32 -1)\n";
    let acquire = "  fence syncscope(\"workgroup\") acquire\n";
    let [_, result] = results("gfx1201", 64, &body(signal, acquire), [vec![0; 64], vec![0; 64]]);
    assert_eq!(result, (0..64).map(|thread| thread ^ 1).collect::<Vec<_>>());
    assert!(is_race(&problem("gfx1201", 64, &body(signal, ""))));
    assert!(matches!(problem("gfx1201", 64, &body("", acquire)), Problem::Misuse(_)));
    // Half of the block doesn't arrive.
    let half = format!(
        "  %early = icmp ult i32 %tid, 32\n  br i1 %early, label %go, label %end\ngo:\n{signal}  \
         call void @llvm.amdgcn.s.barrier.wait(i16 -1)\n  br label %end\nend:"
    );
    assert!(matches!(problem("gfx1201", 64, &half), Problem::Stuck(_)));
}

#[test]
fn a_wave_orders_its_lanes_by_fences() {
    let body = |release: &str| {
        neighbours(&format!(
            "{release}  call void @llvm.amdgcn.wave.barrier()\n  fence syncscope(\"wavefront\") acquire\n"
        ))
    };
    is_right("gfx1100", 64, &body("  fence syncscope(\"wavefront\") release\n"));
    assert!(is_race(&problem("gfx1100", 64, &body(""))));
}

#[test]
fn a_named_barrier_is_for_its_own_threads() {
    // Each half of the block has a barrier of its own.
    let body = |count: u32| {
        neighbours(&format!(
            "  %half = udiv i32 %tid, 64\n  %id = add i32 %half, 1\n  \
             call void @llvm.nvvm.barrier.cta.sync.aligned.count(i32 %id, i32 {count})\n"
        ))
    };
    is_right("sm_90a", 128, &body(64));
    let Problem::Stuck(what) = problem("sm_90a", 128, &body(96)) else { panic!("stuck") };
    assert!(what.contains("barrier 1 (64 of 96 are there)"), "{what}");
    let Problem::Misuse(what) = problem("sm_90a", 128, &body(63)) else { panic!("misuse") };
    assert!(what.contains("multiple of 32"), "{what}");
}

#[test]
fn warps_come_to_a_barrier_whole() {
    let body = "  %early = icmp ult i32 %lane, 16\n  br i1 %early, label %go, label %end\ngo:\n  \
                call void @llvm.nvvm.barrier.cta.sync.aligned.count(i32 1, i32 32)\n  br label %end\nend:";
    let Problem::Misuse(what) = problem("sm_90a", 64, body) else { panic!("misuse") };
    assert!(what.contains("only some lanes of warp"), "{what}");
}

/// The first warp writes and arrives; the second waits and reads.
fn producer(arrive: &str) -> String {
    format!(
        "  %slot = getelementptr i32, ptr addrspace(3) @shared, i32 %lane\n  \
         %first = icmp ult i32 %tid, 32\n  br i1 %first, label %produce, label %consume\n\
         produce:\n  store i32 %tid, ptr addrspace(3) %slot\n{arrive}  br label %end\n\
         consume:\n  call void @llvm.nvvm.barrier.cta.sync.aligned.count(i32 3, i32 64)\n  \
         %r = load i32, ptr addrspace(3) %slot\n  br label %end\nend:"
    )
}

#[test]
fn a_producer_arrives_without_waiting() {
    is_right(
        "sm_90a",
        64,
        &producer("  call void @llvm.nvvm.barrier.cta.arrive.aligned.count(i32 3, i32 64)\n"),
    );
    let Problem::Stuck(what) = problem("sm_90a", 64, &producer("")) else { panic!("stuck") };
    assert!(what.contains("barrier 3"), "{what}");
    let other = "  call void @llvm.nvvm.barrier.cta.arrive.aligned.count(i32 3, i32 96)\n";
    assert!(matches!(problem("sm_90a", 64, &producer(other)), Problem::Misuse(_)));
}

#[test]
fn barriers_that_reduce() {
    let body = format!(
        "  %p = icmp ult i32 %tid, 40\n  \
         %n = call i32 @llvm.nvvm.barrier.cta.red.popc.aligned.all(i32 0, i1 %p)\n  \
         %o = call i1 @llvm.nvvm.barrier.cta.red.or.aligned.all(i32 0, i1 %p)\n  \
         %a1 = call i1 @llvm.nvvm.barrier.cta.red.and.aligned.all(i32 0, i1 %p)\n  \
         %oi = zext i1 %o to i32\n  %ai = zext i1 %a1 to i32\n  \
         %s = shl i32 %oi, 8\n  %t = shl i32 %ai, 9\n  %u = or i32 %n, %s\n  %r = or i32 %u, %t\n{}",
        store_result("%r")
    );
    let [_, result] = results("sm_90a", 64, &body, [vec![0; 64], vec![0; 64]]);
    assert_eq!(result, vec![40 | 1 << 8; 64]);
}

#[test]
fn threads_at_different_barriers_are_told() {
    for (gpu, call) in [
        ("sm_90a", "  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)\n"),
        ("gfx942", "  call void @llvm.amdgcn.s.barrier()\n"),
    ] {
        let body = format!(
            "  %early = icmp ult i32 %tid, 64\n  br i1 %early, label %one, label %two\n\
             one:\n{call}  br label %end\ntwo:\n{call}  br label %end\nend:"
        );
        let fault = fault(gpu, 128, &body);
        assert!(fault.to_string().contains("at another instruction than thread 0"), "{fault}");
        assert_eq!(fault.thread, 64);
    }
}
