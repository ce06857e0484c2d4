//! Whole pipelines as fast kernels have them: copies run ahead of products, in rings of stages. They are right with
//! copies as late and as early as may be; without any one of their waits or arrivals they are not.

use super::harness::{Kernel, aligned, settled, words};
use crate::simt::{Fault, Problem, Timing};
use half::bf16;
use std::fmt::Write;
use tile_ir::DType;
use tile_ir::tensor_map::{BoundMap, Swizzle};
use tile_test_edit::Edit;

const BOTH: [Timing; 2] = [Timing::Late, Timing::Early];

/// A matrix of small numbers as bf16, row by row, and as words.
fn matrix(rows: usize, columns: usize, seed: u32) -> (Vec<i32>, Vec<u32>) {
    let numbers: Vec<i32> = words(rows * columns, seed).iter().map(|word| (word % 7) as i32 - 3).collect();
    let bits = |number: i32| u32::from(bf16::from_f32(number as f32).to_bits());
    let packed = numbers.chunks(2).map(|pair| bits(pair[0]) | bits(pair[1]) << 16);
    let packed = packed.collect();
    (numbers, packed)
}

/// The product of A and the transpose of B, both with K elements per row.
fn product(a: &[i32], b: &[i32], depth: usize, row: usize, column: usize) -> f32 {
    (0..depth).map(|k| a[row * depth + k] * b[column * depth + k]).sum::<i32>() as f32
}

/// A warpgroup multiplies what a warp brings through two stages: 64 by 16, K = 256 in steps of 64.
mod specialized {
    use super::*;

    pub(super) const DEPTH: usize = 256;
    pub(super) const COLUMNS: usize = 16;
    const STEPS: usize = 4;
    const STAGE: usize = 12288;
    const B_IN_STAGE: usize = 8192;
    const STEP_BYTES: usize = 8192 + 2048;
    const MAPS: &str = "ptr addrspace(1) %a, ptr addrspace(1) %b, ptr addrspace(1) %c, \
                        ptr byval([128 x i8]) align 64 %ma, ptr byval([128 x i8]) align 64 %mb";

    fn at(name: &str, offset: usize) -> String {
        format!("  %{name} = getelementptr i8, ptr addrspace(3) @shared, i32 {offset}\n")
    }

    fn wait(name: &str, barrier: &str, parity: usize) -> String {
        format!(
            "  br label %{name}\n{name}:\n  \
             %{name}.w = call i1 @llvm.nvvm.mbarrier.try.wait.parity.scope.cta.space.cta(ptr addrspace(3) %{barrier}, i32 {parity})\n  \
             br i1 %{name}.w, label %{name}.over, label %{name}\n{name}.over:\n"
        )
    }

    /// What the producer does before a step: waits until the stage is free.
    pub(super) fn wait_empty(step: usize) -> String {
        wait(&format!("free{step}"), &format!("empty{}", step % 2), (step / 2 + 1) % 2)
    }

    pub(super) fn wait_full(step: usize) -> String {
        wait(&format!("there{step}"), &format!("full{}", step % 2), step / 2 % 2)
    }

    /// Thread 0 says that the stage is free.
    pub(super) fn free(step: usize) -> String {
        format!(
            "  br i1 %zero, label %arrive{step}, label %arrived{step}\narrive{step}:\n  \
             %e{step} = call i64 @llvm.nvvm.mbarrier.arrive.shared(ptr addrspace(3) %empty{})\n  \
             br label %arrived{step}\narrived{step}:\n",
            step % 2
        )
    }

    fn produce(step: usize) -> String {
        let stage = step % 2;
        let mut text = if step >= 2 { wait_empty(step) } else { String::new() };
        writeln!(
            text,
            "  %x{step} = call i64 @llvm.nvvm.mbarrier.arrive.expect.tx.scope.cta.space.cta(ptr addrspace(3) %full{stage}, i32 {STEP_BYTES})"
        )
        .unwrap();
        for (target, map) in [("a", "ma"), ("b", "mb")] {
            writeln!(
                text,
                "  call void @llvm.nvvm.cp.async.bulk.tensor.g2s.cta.tile.2d(ptr addrspace(3) %{target}{stage}, \
                 ptr addrspace(3) %full{stage}, ptr %{map}, i32 {}, i32 0, i64 0, i1 false)",
                64 * step
            )
            .unwrap();
        }
        text
    }

    pub(super) const WAIT_PRODUCTS: &str = "  call void @llvm.nvvm.wgmma.wait_group.sync.aligned(i64 0)\n";

    fn consume(step: usize) -> String {
        let stage = step % 2;
        let ty = format!("{{ {} }}", ["float"; COLUMNS / 2].join(", "));
        let mut text = format!("{}  call void @llvm.nvvm.wgmma.fence.sync.aligned()\n", wait_full(step));
        for part in 0..4 {
            let id = 4 * step + part;
            for (operand, start) in [("a", stage * STAGE), ("b", stage * STAGE + B_IN_STAGE)] {
                // 128-byte swizzle, 1024 bytes from eight rows to the next.
                let fields = (1u64 << 62 | 64 << 32 | 1 << 16).cast_signed();
                writeln!(
                    text,
                    "  %{operand}s{id} = add i64 %base, {}\n  %{operand}f{id} = lshr i64 %{operand}s{id}, 4\n  \
                     %d{operand}{id} = or i64 %{operand}f{id}, {fields}",
                    start + 32 * part
                )
                .unwrap();
            }
            let sum = |i: usize| {
                if id == 0 { "float 0.0".to_owned() } else { format!("float %v{}.{i}", id - 1) }
            };
            let sums: Vec<String> = (0..COLUMNS / 2).map(sum).collect();
            writeln!(
                text,
                "  %d{id} = call {ty} @tile.wgmma.m64n16k16.f32.bf16.bf16.ss.ka.kb(i64 %da{id}, i64 %db{id}, i32 1, {})",
                sums.join(", ")
            )
            .unwrap();
            for i in 0..COLUMNS / 2 {
                writeln!(text, "  %v{id}.{i} = extractvalue {ty} %d{id}, {i}").unwrap();
            }
        }
        text + "  call void @llvm.nvvm.wgmma.commit_group.sync.aligned()\n" + WAIT_PRODUCTS + &free(step)
    }

    pub(super) fn body() -> String {
        let mut text = String::from("  %zero = icmp eq i32 %tid, 0\n  %leader = icmp eq i32 %tid, 128\n");
        text += "  %base = ptrtoint ptr addrspace(3) @shared to i64\n";
        for stage in 0..2 {
            text += &at(&format!("a{stage}"), stage * STAGE);
            text += &at(&format!("b{stage}"), stage * STAGE + B_IN_STAGE);
            text += &at(&format!("full{stage}"), 30720 + 8 * stage);
            text += &at(&format!("empty{stage}"), 30752 + 8 * stage);
        }
        text += "  br i1 %zero, label %init, label %start\ninit:\n";
        for barrier in ["full0", "full1", "empty0", "empty1"] {
            writeln!(text, "  call void @llvm.nvvm.mbarrier.init.shared(ptr addrspace(3) %{barrier}, i32 1)")
                .unwrap();
        }
        text += "  call void @llvm.nvvm.fence.mbarrier_init.release.cluster()\n  br label %start\nstart:\n  \
                 call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)\n  \
                 %consumes = icmp ult i32 %tid, 128\n  br i1 %consumes, label %consumer, label %producer\n\
                 producer:\n  br i1 %leader, label %lead, label %end\nlead:\n";
        (0..STEPS).for_each(|step| text += &produce(step));
        text += "  br label %end\nconsumer:\n";
        (0..STEPS).for_each(|step| text += &consume(step));
        let sums: Vec<String> = (0..COLUMNS / 2).map(|i| format!("%v{}.{i}", 4 * STEPS - 1)).collect();
        text += &settled(&sums, "float", "result");
        for i in 0..COLUMNS / 2 {
            writeln!(
                text,
                "  %w{i} = mul i32 %tid, {}\n  %n{i} = add i32 %w{i}, {i}\n  \
                 %o{i} = getelementptr float, ptr addrspace(1) %c, i32 %n{i}\n  \
                 store float %result{i}, ptr addrspace(1) %o{i}",
                COLUMNS / 2
            )
            .unwrap();
        }
        text + "  br label %end\nend:"
    }

    pub(super) fn run(body: &str, timing: Timing) -> Result<(), Fault> {
        let (a, a_words) = matrix(64, DEPTH, 31);
        let (b, b_words) = matrix(COLUMNS, DEPTH, 32);
        let mut arrays = [aligned(&a_words), aligned(&b_words), vec![0; 64 * COLUMNS]];
        let map = |address: u64, rows: usize| BoundMap {
            address,
            elem: DType::BF16,
            extents: vec![DEPTH as u64, rows as u64],
            strides: vec![2 * DEPTH as u64],
            tile: vec![64, rows as u32],
            swizzle: Swizzle::Bytes128,
        };
        let maps = |slots: &[u64]| vec![map(slots[0], 64), map(slots[1], COLUMNS)];
        Kernel::with_parameters("sm_90a", 160, MAPS, body).run_with_maps(&mut arrays, &maps, 1, timing)?;
        for thread in 0..128 {
            for i in 0..COLUMNS / 2 {
                let (warp, lane) = (thread / 32, thread % 32);
                let row = warp * 16 + lane / 4 + if i % 4 < 2 { 0 } else { 8 };
                let column = i / 4 * 8 + lane % 4 * 2 + i % 2;
                let found = f32::from_bits(arrays[2][thread * COLUMNS / 2 + i]);
                assert_eq!(found, product(&a, &b, DEPTH, row, column), "[{row}, {column}]");
            }
        }
        Ok(())
    }
}

#[test]
fn a_warp_brings_what_a_warpgroup_multiplies() {
    for timing in BOTH {
        specialized::run(&specialized::body(), timing).unwrap_or_else(|fault| panic!("{timing:?}: {fault}"));
    }
}

#[test]
fn each_wait_of_the_warps_is_needed() {
    use specialized::{WAIT_PRODUCTS, body, free, run, wait_empty, wait_full};
    let right = body();
    let mut changed: Vec<(String, String)> = Vec::new();
    for step in 0..4 {
        changed.push((format!("no wait for full {step}"), right.edit(&wait_full(step), "")));
    }
    for step in 2..4 {
        changed.push((format!("no wait for empty {step}"), right.edit(&wait_empty(step), "")));
        changed.push((format!("no arrival {step}"), right.edit(&free(step - 2), "")));
    }
    changed.push(("no wait for products".to_owned(), right.edit(WAIT_PRODUCTS, "")));
    let one_left = WAIT_PRODUCTS.edit("i64 0", "i64 1");
    changed.push(("products wait too late".to_owned(), right.edit(WAIT_PRODUCTS, &one_left)));
    for (what, body) in changed {
        assert_ne!(body, right, "{what}");
        for timing in BOTH {
            let fault = run(&body, timing).expect_err(&format!("{what}, {timing:?}"));
            let known = matches!(
                fault.problem,
                Problem::InFlight { .. }
                    | Problem::Race { .. }
                    | Problem::Uninitialized { .. }
                    | Problem::Stuck(_)
                    | Problem::Misuse(_)
            );
            assert!(known, "{what}, {timing:?}: {fault}");
        }
    }
}

/// Two warps multiply 32 by 8, K = 64 in steps of 16, with `cp.async` through two stages.
mod staged {
    use super::*;

    pub(super) const DEPTH: usize = 64;
    const STEPS: usize = 4;
    const STAGE: usize = 2048;
    pub(super) const COMMIT: &str = "  call void @llvm.nvvm.cp.async.commit.group()\n";
    pub(super) const BARRIER: &str = "  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)\n";

    pub(super) fn wait(pending: u32) -> String {
        format!("  call void @llvm.nvvm.cp.async.wait.group(i32 {pending})\n")
    }

    /// Brings a step: thread t has the half row t of A; of B, which has 8 rows, threads below 16 have one.
    fn bring(step: usize) -> String {
        format!(
            "  %ga{step} = getelementptr i8, ptr addrspace(1) %afrom, i32 {k}\n  \
             %sa{step} = getelementptr i8, ptr addrspace(3) %ato, i32 {stage}\n  \
             call void @llvm.nvvm.cp.async.cg.shared.global.16(ptr addrspace(3) %sa{step}, ptr addrspace(1) %ga{step})\n  \
             br i1 %hasb, label %b{step}, label %after{step}\nb{step}:\n  \
             %gb{step} = getelementptr i8, ptr addrspace(1) %bfrom, i32 {k}\n  \
             %sb{step} = getelementptr i8, ptr addrspace(3) %ato, i32 {b}\n  \
             call void @llvm.nvvm.cp.async.cg.shared.global.16(ptr addrspace(3) %sb{step}, ptr addrspace(1) %gb{step})\n  \
             br label %after{step}\nafter{step}:\n",
            k = 32 * step,
            stage = step % 2 * STAGE,
            b = step % 2 * STAGE + 1024
        )
    }

    fn multiply(step: usize) -> String {
        let sum = |i: usize| {
            if step == 0 { "float 0.0".to_owned() } else { format!("float %v{}.{i}", step - 1) }
        };
        let mut text = format!(
            "  %la{step} = getelementptr i8, ptr addrspace(3) %arow, i32 {}\n  \
             %fa{step} = call {{ i32, i32, i32, i32 }} @llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4.b16.p3(ptr addrspace(3) %la{step})\n  \
             %lb{step} = getelementptr i8, ptr addrspace(3) %brow, i32 {}\n  \
             %fb{step} = call {{ i32, i32 }} @llvm.nvvm.ldmatrix.sync.aligned.m8n8.x2.b16.p3(ptr addrspace(3) %lb{step})\n",
            step % 2 * STAGE,
            step % 2 * STAGE + 1024
        );
        for i in 0..4 {
            writeln!(text, "  %a{step}.{i} = extractvalue {{ i32, i32, i32, i32 }} %fa{step}, {i}").unwrap();
        }
        for i in 0..2 {
            writeln!(text, "  %b{step}.{i} = extractvalue {{ i32, i32 }} %fb{step}, {i}").unwrap();
        }
        writeln!(
            text,
            "  %d{step} = call {{ float, float, float, float }} @llvm.nvvm.mma.m16n8k16.row.col.bf16(i32 %a{step}.0, \
             i32 %a{step}.1, i32 %a{step}.2, i32 %a{step}.3, i32 %b{step}.0, i32 %b{step}.1, {}, {}, {}, {})",
            sum(0),
            sum(1),
            sum(2),
            sum(3)
        )
        .unwrap();
        for i in 0..4 {
            writeln!(text, "  %v{step}.{i} = extractvalue {{ float, float, float, float }} %d{step}, {i}")
                .unwrap();
        }
        text
    }

    pub(super) fn body() -> String {
        let mut text = String::from(
            "  %row = udiv i32 %tid, 2\n  %half = and i32 %tid, 1\n  %h = mul i32 %half, 16\n  \
             %r = mul i32 %row, 128\n  %rh = add i32 %r, %h\n  \
             %afrom = getelementptr i8, ptr addrspace(1) %a, i32 %rh\n  \
             %bfrom = getelementptr i8, ptr addrspace(1) %b, i32 %rh\n  %hasb = icmp ult i32 %tid, 16\n  \
             %t16 = mul i32 %tid, 16\n  %ato = getelementptr i8, ptr addrspace(3) @shared, i32 %t16\n  \
             %warp = udiv i32 %tid, 32\n  %w = mul i32 %warp, 512\n  %l16 = and i32 %lane, 15\n  \
             %lrow = mul i32 %l16, 32\n  %lhalf = udiv i32 %lane, 16\n  %lh = mul i32 %lhalf, 16\n  \
             %aw = add i32 %w, %lrow\n  %awh = add i32 %aw, %lh\n  \
             %arow = getelementptr i8, ptr addrspace(3) @shared, i32 %awh\n  \
             %l8 = and i32 %lane, 7\n  %b8 = mul i32 %l8, 32\n  %bk = lshr i32 %l16, 3\n  %bh = mul i32 %bk, 16\n  \
             %bo = add i32 %b8, %bh\n  %brow = getelementptr i8, ptr addrspace(3) @shared, i32 %bo\n",
        );
        text += &(bring(0) + COMMIT);
        for step in 0..STEPS {
            if step + 1 < STEPS {
                text += &(bring(step + 1) + COMMIT + &wait(1));
            } else {
                text += &wait(0);
            }
            // Everybody's part is there; later, everybody has read it.
            text += &(BARRIER.to_owned() + &multiply(step) + BARRIER);
        }
        for i in 0..4 {
            writeln!(
                text,
                "  %m{i} = mul i32 %tid, 4\n  %n{i} = add i32 %m{i}, {i}\n  \
                 %o{i} = getelementptr float, ptr addrspace(1) %c, i32 %n{i}\n  \
                 store float %v{}.{i}, ptr addrspace(1) %o{i}",
                STEPS - 1
            )
            .unwrap();
        }
        text
    }

    pub(super) fn run(body: &str, timing: Timing) -> Result<(), Fault> {
        let (a, a_words) = matrix(32, DEPTH, 41);
        let (b, b_words) = matrix(8, DEPTH, 42);
        let mut arrays = [aligned(&a_words), aligned(&b_words), vec![0; 256]];
        Kernel::new("sm_80", 64, body).run_blocks(&mut arrays, 1, timing)?;
        for thread in 0..64 {
            for i in 0..4 {
                let (warp, lane) = (thread / 32, thread % 32);
                let row = warp * 16 + lane / 4 + if i < 2 { 0 } else { 8 };
                let column = lane % 4 * 2 + i % 2;
                let found = f32::from_bits(arrays[2][thread * 4 + i]);
                assert_eq!(found, product(&a, &b, DEPTH, row, column), "[{row}, {column}]");
            }
        }
        Ok(())
    }
}

#[test]
fn copies_run_a_stage_ahead() {
    for timing in BOTH {
        staged::run(&staged::body(), timing).unwrap_or_else(|fault| panic!("{timing:?}: {fault}"));
    }
}

#[test]
fn each_wait_of_the_stages_is_needed() {
    use staged::{BARRIER, COMMIT, body, run, wait};
    let right = body();
    let mut changed = vec![right.edit(&wait(1), ""), right.edit(&wait(0), ""), right.replacen(COMMIT, "", 1)];
    changed.push(right.edit(&wait(1), &wait(2)));
    // Each barrier in turn, but for those after the last two products: no copy follows them.
    for number in [0, 1, 2, 3, 4, 6] {
        let (at, _) = right.match_indices(BARRIER).nth(number).expect("there are so many");
        changed.push(right[..at].to_owned() + &right[at + BARRIER.len()..]);
    }
    for (number, body) in changed.iter().enumerate() {
        for timing in BOTH {
            let fault = run(body, timing).expect_err(&format!("change {number}, {timing:?}"));
            let known = matches!(
                fault.problem,
                Problem::InFlight { .. } | Problem::Race { .. } | Problem::Uninitialized { .. }
            );
            assert!(known, "change {number}, {timing:?}: {fault}");
        }
    }
}
