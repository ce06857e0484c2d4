//! Bulk copies of tensors: boxes, swizzles, edges, mbarriers and groups.

use super::harness::{Kernel, aligned, words};
use crate::simt::{Fault, Memory, Problem, Timing};
use tile_ir::abi::KernelAbi;
use tile_ir::tensor_map::{BoundMap, MapAxis, Swizzle, TensorMap};
use tile_ir::{DType, Dim, Instance, log};
use tile_test_edit::Edit;

const BOTH: [Timing; 2] = [Timing::Late, Timing::Early];
const BARRIER: &str = "  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)\n";
const PARAMETERS: &str = "ptr addrspace(1) %a, ptr addrspace(1) %b, ptr byval([128 x i8]) align 64 %map";
const COLUMNS: usize = 96;
const ROWS: usize = 20;

/// A matrix of 16-bit elements in the array of this number, in boxes of 8 rows.
fn map(array: usize, width: u32, swizzle: Swizzle) -> impl Fn(&[u64]) -> Vec<BoundMap> {
    move |slots| {
        vec![BoundMap {
            address: slots[array],
            elem: DType::U16,
            extents: vec![COLUMNS as u64, ROWS as u64],
            strides: vec![COLUMNS as u64 * 2],
            tile: vec![width, 8],
            swizzle,
        }]
    }
}

/// Code for thread 0 alone.
fn leader(name: &str, code: &str) -> String {
    format!(
        "  br i1 %zero, label %{name}, label %{name}.end\n{name}:\n{code}  br label %{name}.end\n{name}.end:\n"
    )
}

const INIT: &str = "  call void @llvm.nvvm.mbarrier.init.shared(ptr addrspace(3) %bar, i32 1)\n";
const FENCE: &str = "  call void @llvm.nvvm.fence.mbarrier_init.release.cluster()\n";
const WAIT: &str = "  br label %wait\nwait:\n  \
    %w = call i1 @llvm.nvvm.mbarrier.try.wait.parity.scope.cta.space.cta(ptr addrspace(3) %bar, i32 0)\n  \
    br i1 %w, label %over, label %wait\nover:\n";

fn start() -> String {
    "  %bar = getelementptr i8, ptr addrspace(3) @shared, i32 8192\n  \
     %box = getelementptr i8, ptr addrspace(3) @shared, i32 1024\n  %zero = icmp eq i32 %tid, 0\n"
        .to_owned()
}

fn expect(bytes: u32) -> String {
    format!(
        "  %s = call i64 @llvm.nvvm.mbarrier.arrive.expect.tx.scope.cta.space.cta(ptr addrspace(3) %bar, i32 {bytes})\n"
    )
}

fn copy_in(x: i32, y: i32) -> String {
    format!(
        "  call void @llvm.nvvm.cp.async.bulk.tensor.g2s.cta.tile.2d(ptr addrspace(3) %box, ptr addrspace(3) %bar, \
         ptr %map, i32 {x}, i32 {y}, i64 0, i1 false)\n"
    )
}

/// Copies the bytes of the box to `%b`, 32 per thread.
const READ: &str = "\
  %bytes = mul i32 %tid, 32
  %from = getelementptr i8, ptr addrspace(3) %box, i32 %bytes
  %part = load <8 x i32>, ptr addrspace(3) %from, align 16
  %to = getelementptr i8, ptr addrspace(1) %b, i32 %bytes
  store <8 x i32> %part, ptr addrspace(1) %to, align 16
";

fn load(width: u32, x: i32, y: i32) -> String {
    let issue = format!("{}{}", expect(width * 16), copy_in(x, y));
    format!(
        "{}{}{BARRIER}{}{WAIT}",
        start(),
        leader("init", &format!("{INIT}{FENCE}")),
        leader("issue", &issue)
    )
}

fn run(
    body: &str,
    arrays: &mut [Vec<u32>],
    maps: &dyn Fn(&[u64]) -> Vec<BoundMap>,
    timing: Timing,
) -> Result<(), Fault> {
    let threads = 32;
    Kernel::with_parameters("sm_90a", threads, PARAMETERS, body)
        .run_with_maps(arrays, maps, 1, timing)
        .map(|_| ())
}

fn halves(words: &[u32]) -> Vec<u16> {
    words.iter().flat_map(|&word| [word as u16, (word >> 16) as u16]).collect()
}

/// Where the manual's figures have a piece of 16 bytes: rows of the span, and which pieces change places.
fn swizzled(swizzle: Swizzle, row: usize, piece: usize) -> usize {
    match swizzle {
        Swizzle::None => piece,
        Swizzle::Bytes32 => piece ^ (row / 4 % 2),
        Swizzle::Bytes64 => piece ^ (row / 2 % 4),
        Swizzle::Bytes128 => piece ^ (row % 8),
    }
}

#[test]
fn boxes_come_swizzled_and_zero_outside() {
    for (swizzle, width) in
        [(Swizzle::None, 64), (Swizzle::Bytes32, 16), (Swizzle::Bytes64, 32), (Swizzle::Bytes128, 64)]
    {
        for (x, y) in [(0, 0), (-3, 2), (80, 15), (16, -9)] {
            for timing in BOTH {
                let input = words(ROWS * COLUMNS / 2, 6);
                let mut arrays = [aligned(&input), vec![0; 256]];
                // Threads whose part is beyond a small box read nothing.
                let parts = width * 16 / 32;
                let read = format!(
                    "  %some = icmp ult i32 %tid, {parts}\n  br i1 %some, label %read, label %done\nread:\n{READ}  br label %done\ndone:\n"
                );
                let body = format!("{}{read}", load(width, x, y));
                run(&body, &mut arrays, &map(0, width, swizzle), timing)
                    .unwrap_or_else(|fault| panic!("{fault}"));
                let (input, result) = (halves(&input), halves(&arrays[1]));
                for row in 0..8 {
                    for column in 0..width as usize {
                        let (r, c) = (row as i32 + y, column as i32 + x);
                        let inside = (0..ROWS as i32).contains(&r) && (0..COLUMNS as i32).contains(&c);
                        let expected = if inside { input[r as usize * COLUMNS + c as usize] } else { 0 };
                        let at = row * width as usize + swizzled(swizzle, row, column / 8) * 8 + column % 8;
                        assert_eq!(result[at], expected, "{swizzle:?} at {x}, {y}: [{row}, {column}]");
                    }
                }
            }
        }
    }
}

/// A kernel whose schedule has a map: columns 8.. of `%x`. Slots have no word of it.
#[test]
fn maps_are_made_of_the_schedules_and_the_arguments() {
    let source = "kernel @k(%x: tensor<m x n x u16>, %y: mut tensor<m x n x u32>) {
  %v = partition %y [4, 8] : mut partition<m x n x u32, [4, 8]>
  %0 = constant 1 : i32
  print 0 \"{0}\" %0
}";
    let instance = Instance::parse(source, &[]).unwrap();
    let (abi, n) = (KernelAbi::of(&instance), Dim::size("n"));
    assert_eq!(abi.sizes, ["m", "n"]);
    let axes = vec![
        MapAxis { extent: n.clone() - Dim::from(8), stride: Dim::from(1), tile: 64 },
        MapAxis { extent: Dim::size("m"), stride: n, tile: 8 },
    ];
    let offset = Dim::from(8);
    let map = TensorMap { argument: 0, elem: DType::U16, offset, axes, swizzle: Swizzle::None };
    let parameters = "ptr addrspace(1) %x, ptr addrspace(1) %b, i64 %m, i64 %n, \
                      ptr byval([128 x i8]) align 64 %map, ptr addrspace(1) %log";
    let note = format!(
        "  %note = getelementptr i64, ptr addrspace(1) %log, i32 {}\n  store i64 7, ptr addrspace(1) %note\n",
        log::HEADER_WORDS
    );
    let body = format!("{}{READ}{}", load(64, 16, 15), leader("noting", &note));
    let kernel = Kernel::with_parameters("sm_90a", 32, parameters, &body).emitted(abi, vec![map]);

    let input = aligned(&words(ROWS * COLUMNS / 2, 6));
    let (mut output, mut messages) = (vec![0u32; ROWS * COLUMNS], vec![0u64; log::HEADER_WORDS + 1]);
    messages[log::CAPACITY] = 1;
    let addresses = [input.as_ptr() as u64, output.as_mut_ptr() as u64];
    let slots = [&addresses[..], &[ROWS as u64, COLUMNS as u64, messages.as_mut_ptr() as u64]].concat();
    // SAFETY: the slots are those of the contract: two tensors of their shapes, two sizes and a log.
    unsafe { kernel.run(&slots, 1) }.unwrap_or_else(|fault| panic!("{fault}"));

    let (input, output) = (halves(&input), halves(&output));
    for (row, column) in (0..8).flat_map(|row| (0..64).map(move |column| (row, column))) {
        let inside = 15 + row < ROWS && 8 + 16 + column < COLUMNS;
        let expected = if inside { input[(15 + row) * COLUMNS + 8 + 16 + column] } else { 0 };
        assert_eq!(output[row * 64 + column], expected, "[{row}, {column}]");
    }
    assert_eq!(messages[log::HEADER_WORDS], 7);
}

fn fails(body: &str, width: u32, is_expected: impl Fn(&Problem) -> bool) {
    for timing in BOTH {
        let mut arrays = [aligned(&words(ROWS * COLUMNS / 2, 6)), aligned(&[0; ROWS * COLUMNS / 2])];
        let fault =
            run(body, &mut arrays, &map(0, width, Swizzle::None), timing).expect_err("something is wrong");
        assert!(is_expected(&fault.problem), "{timing:?}: {fault}");
    }
}

#[test]
fn new_mbarriers_are_shown_to_copies() {
    let issue = format!("{}{}", expect(1024), copy_in(0, 0));
    let second = issue.edit("%s =", "%s2 =");
    // Thread 1 copies; thread 0 makes the mbarrier, and `before` and `after` stand around the barrier.
    let body = |before: &str, after: &str| {
        let other = format!("{}  %other = icmp eq i32 %tid, 1\n", start());
        let copy = leader("copy", &second).edit("%zero", "%other");
        let init = leader("init", &format!("{INIT}{before}"));
        format!("{other}{init}{BARRIER}{after}{copy}{WAIT}{READ}")
    };
    for timing in BOTH {
        let mut arrays = [aligned(&words(ROWS * COLUMNS / 2, 6)), aligned(&[0; ROWS * COLUMNS / 2])];
        run(&body(FENCE, ""), &mut arrays, &map(0, 64, Swizzle::None), timing)
            .unwrap_or_else(|fault| panic!("{fault}"));
    }
    let misuse = |words: &'static str| move |problem: &Problem| matches!(problem, Problem::Misuse(what) if what.contains(words));
    fails(&body("", ""), 64, misuse("no `fence.mbarrier_init`"));
    // The fence of thread 0 is behind the barrier, so thread 1 needn't see what it does.
    fails(&body("", &leader("late", FENCE)), 64, misuse("the fence of thread 0 isn't ordered"));
    // Nor does a fence order what another thread made.
    let of_other = leader("late", FENCE).edit("%zero", "%other");
    fails(&body("", &of_other), 64, misuse("no `fence.mbarrier_init`"));
    let without_barrier = body(FENCE, "").replacen(BARRIER, "", 1);
    fails(&without_barrier, 64, misuse("with no barrier between them"));
}

#[test]
fn loads_that_are_wrong() {
    let right = format!("{}{READ}", load(64, 0, 0));
    let misuse = |problem: &Problem| matches!(problem, Problem::Misuse(_));
    fails(&right.edit(FENCE, ""), 64, misuse);
    fails(
        &right.edit(WAIT, ""),
        64,
        |problem| matches!(problem, Problem::InFlight { memory: Memory::Shared, operation, .. } if operation.name.contains("g2s")),
    );
    let unread = load(64, 0, 0).edit(WAIT, "");
    fails(&unread, 64, |problem| matches!(problem, Problem::Misuse(what) if what.contains("still writes")));
    let wrong_bytes = right.edit(&expect(1024), &expect(1040));
    fails(
        &wrong_bytes,
        64,
        |problem| matches!(problem, Problem::Stuck(what) if what.contains("misses 0 of 1 arrivals and 16 bytes")),
    );
    let none = right.edit(&copy_in(0, 0), "");
    fails(&none, 64, |problem| matches!(problem, Problem::Stuck(what) if what.contains("1024 bytes")));
    let aside = right.edit("@shared, i32 1024", "@shared, i32 1040");
    fails(&aside, 64, |problem| matches!(problem, Problem::Misaligned { alignment: 128, excess: 16 }));
    let rank = right.edit("g2s.cta.tile.2d", "g2s.cta.tile.1d").edit("i32 0, i32 0, i64 0", "i32 0, i64 0");
    fails(&rank, 64, misuse);
    // The box is overwritten while others may read it.
    let issue = format!("{}{}", expect(1024).edit("%s", "%t"), copy_in(0, 0));
    fails(&format!("{right}{}", leader("again", &issue)), 64, |problem| {
        // With copies at once, two phases may end before others ask for the first.
        matches!(problem, Problem::Race { .. } | Problem::InFlight { .. } | Problem::Stuck(_))
    });
}

#[test]
fn the_form_for_clusters_copies_to_the_own_block() {
    let cluster = "  %generic = addrspacecast ptr addrspace(3) %box to ptr\n  \
        %remote = addrspacecast ptr %generic to ptr addrspace(7)\n  \
        call void @llvm.nvvm.cp.async.bulk.tensor.g2s.tile.2d(ptr addrspace(7) %remote, ptr addrspace(3) %bar, ptr %map, \
        i32 8, i32 0, i16 0, i64 0, i1 false, i1 false, i32 0)\n";
    let body = format!("{}{READ}", load(64, 8, 0)).edit(&copy_in(8, 0), cluster);
    let input = words(ROWS * COLUMNS / 2, 6);
    let mut arrays = [aligned(&input), vec![0; 256]];
    run(&body, &mut arrays, &map(0, 64, Swizzle::None), Timing::Late)
        .unwrap_or_else(|fault| panic!("{fault}"));
    assert_eq!(arrays[1][..32], input[4..36]);
    assert_eq!(arrays[1][32..64], input[48 + 4..48 + 36]);
}

/// Boxes of one, three and five dimensions, each a little beyond the tensor, against loops over coordinates.
#[test]
fn boxes_of_every_rank() {
    let extents = [16u64, 5, 4, 3, 2];
    let tile = [8u32, 4, 2, 2, 2];
    let first = [-3i64, 2, 3, 1, 1];
    for rank in [1, 3, 4, 5] {
        let strides: Vec<u64> =
            (1..rank).map(|dimension| 4 * extents[..dimension].iter().product::<u64>()).collect();
        let map = |slots: &[u64]| {
            vec![BoundMap {
                address: slots[0],
                elem: DType::U32,
                extents: extents[..rank].to_vec(),
                strides: strides.clone(),
                tile: tile[..rank].to_vec(),
                swizzle: Swizzle::None,
            }]
        };
        let elements: u32 = tile[..rank].iter().product();
        let coordinates: Vec<String> = first[..rank].iter().map(|at| format!("i32 {at}")).collect();
        let issue = format!(
            "{}  call void @llvm.nvvm.cp.async.bulk.tensor.g2s.cta.tile.{rank}d(ptr addrspace(3) %box, \
             ptr addrspace(3) %bar, ptr %map, {}, i64 0, i1 false)\n",
            expect(4 * elements),
            coordinates.join(", ")
        );
        let prefetch = "  call void @llvm.nvvm.prefetch.tensormap.p0(ptr %map)\n";
        let threads = elements / 8;
        let body = format!(
            "{}{}{BARRIER}{}{WAIT}  %some = icmp ult i32 %tid, {threads}\n  br i1 %some, label %read, label %done\n\
             read:\n{READ}  br label %done\ndone:\n",
            start(),
            leader("init", &format!("{prefetch}{INIT}{FENCE}")),
            leader("issue", &issue)
        );
        let input = words(extents.iter().product::<u64>() as usize, 8);
        for timing in BOTH {
            let mut arrays = [aligned(&input), vec![0; 256]];
            run(&body, &mut arrays, &map, timing).unwrap_or_else(|fault| panic!("{rank}: {fault}"));
            for (i, &found) in arrays[1][..elements as usize].iter().enumerate() {
                let (mut rest, mut at, mut stride, mut inside) = (i, 0, 1, true);
                for dimension in 0..rank {
                    let coordinate = first[dimension] + (rest % tile[dimension] as usize) as i64;
                    rest /= tile[dimension] as usize;
                    inside &= (0..extents[dimension] as i64).contains(&coordinate);
                    at += coordinate * stride;
                    stride *= extents[dimension] as i64;
                }
                let expected = if inside { input[at as usize] } else { 0 };
                assert_eq!(found, expected, "element {i} of {rank} dimensions");
            }
        }
    }
}

/// Writes words of `%a` to the box, 32 bytes per thread.
const WRITE: &str = "\
  %bytes = mul i32 %tid, 32
  %from = getelementptr i8, ptr addrspace(1) %a, i32 %bytes
  %part = load <8 x i32>, ptr addrspace(1) %from, align 16
  %to = getelementptr i8, ptr addrspace(3) %box, i32 %bytes
  store <8 x i32> %part, ptr addrspace(3) %to, align 16
";
const PROXY: &str = "  call void @llvm.nvvm.fence.proxy.async.shared_cta()\n";
const COMMIT: &str = "  call void @llvm.nvvm.cp.async.bulk.commit.group()\n";
const READ_OVER: &str = "  call void @llvm.nvvm.cp.async.bulk.wait.group.read(i32 0)\n";
const OVER: &str = "  call void @llvm.nvvm.cp.async.bulk.wait.group(i32 0)\n";

fn copy_out(kind: &str, x: i32, y: i32) -> String {
    format!(
        "  call void @llvm.nvvm.cp.async.bulk.tensor.{kind}.tile.2d(ptr addrspace(3) %box, ptr %map, i32 {x}, i32 {y}, \
         i64 0, i1 false)\n"
    )
}

fn store(kind: &str, wait: &str) -> String {
    let issue = format!("{}{COMMIT}{wait}", copy_out(kind, 80, 15));
    format!("{}{WRITE}{PROXY}{BARRIER}{}", start(), leader("issue", &issue))
}

#[test]
fn boxes_go_back_without_what_is_outside() {
    for timing in BOTH {
        for (kind, wait) in [("s2g", READ_OVER), ("s2g", OVER)] {
            let input = words(256, 7);
            let mut arrays = [input.clone(), aligned(&vec![0x0009_0009; ROWS * COLUMNS / 2])];
            run(&store(kind, wait), &mut arrays, &map(1, 64, Swizzle::Bytes128), timing)
                .unwrap_or_else(|fault| panic!("{fault}"));
            let (input, result) = (halves(&input), halves(&arrays[1]));
            for row in 0..ROWS {
                for column in 0..COLUMNS {
                    let inside = row >= 15 && column >= 80;
                    let (r, c) = (row.wrapping_sub(15), column.wrapping_sub(80));
                    let expected = if inside {
                        input[r * 64 + swizzled(Swizzle::Bytes128, r, c / 8) * 8 + c % 8]
                    } else {
                        9
                    };
                    assert_eq!(result[row * COLUMNS + column], expected, "[{row}, {column}]");
                }
            }
        }
    }
}

/// A copy that was read but isn't known to be written is none of what a thread did.
#[test]
fn a_release_covers_copies_that_are_waited_for() {
    for timing in BOTH {
        let told = |wait: &str| {
            let release = format!("{wait}  fence syncscope(\"device\") release\n");
            let mut arrays = [words(256, 7), aligned(&vec![0; ROWS * COLUMNS / 2])];
            run(&store("s2g", &release), &mut arrays, &map(1, 64, Swizzle::Bytes128), timing)
        };
        told(OVER).unwrap_or_else(|fault| panic!("{fault}"));
        let fault = told(READ_OVER).expect_err("a wait is missing");
        assert!(matches!(fault.problem, Problem::Unreleased { .. }), "{fault}");
        let message =
            "may still write when its thread releases what it did, as no wait for these writes comes before";
        assert!(fault.to_string().ends_with(message), "{fault}");
    }
}

/// `cp.async` writes as threads do, so a bulk copy from there needs the fence, too.
#[test]
fn copies_after_each_other_need_a_proxy_fence() {
    let issue = format!("{}{COMMIT}{READ_OVER}", copy_out("s2g", 0, 0));
    let body = |fence: &str| {
        format!(
            "{}  %bytes = mul i32 %tid, 32\n  %from = getelementptr i8, ptr addrspace(1) %a, i32 %bytes\n  \
             %to = getelementptr i8, ptr addrspace(3) %box, i32 %bytes\n  \
             %from2 = getelementptr i8, ptr addrspace(1) %from, i32 16\n  \
             %to2 = getelementptr i8, ptr addrspace(3) %to, i32 16\n  \
             call void @llvm.nvvm.cp.async.cg.shared.global.16(ptr addrspace(3) %to, ptr addrspace(1) %from)\n  \
             call void @llvm.nvvm.cp.async.cg.shared.global.16(ptr addrspace(3) %to2, ptr addrspace(1) %from2)\n  \
             call void @llvm.nvvm.cp.async.wait.all()\n{fence}{BARRIER}{}",
            start(),
            leader("issue", &issue)
        )
    };
    for timing in BOTH {
        let mut arrays = [aligned(&words(256, 7)), aligned(&[9; ROWS * COLUMNS / 2])];
        run(&body(PROXY), &mut arrays, &map(1, 64, Swizzle::None), timing)
            .unwrap_or_else(|fault| panic!("{fault}"));
        assert_eq!(arrays[1][..32], arrays[0][..32]);
        let fault =
            run(&body(""), &mut arrays, &map(1, 64, Swizzle::None), timing).expect_err("a fence is missing");
        assert!(matches!(fault.problem, Problem::Unfenced { .. }), "{fault}");
    }
}

/// A box comes onto what threads wrote, and from a tensor that threads wrote: each needs a fence for its own memory.
#[test]
fn boxes_come_after_a_proxy_fence_of_the_memory_that_was_written() {
    const ALL: &str = "  call void @llvm.nvvm.fence.proxy.async()\n";
    const GLOBAL: &str = "  call void @llvm.nvvm.fence.proxy.async.global()\n";
    let onto =
        ("  store i32 7, ptr addrspace(3) %box\n", "writes byte 1024 of shared memory", [PROXY, GLOBAL]);
    let from = ("  store i32 7, ptr addrspace(1) %a\n", "reads byte 0 of `a`", [GLOBAL, PROXY]);
    for (write, told, [right, other]) in [onto, from] {
        for timing in BOTH {
            let told_with = |fence: &str| {
                let written = leader("write", &format!("{write}{fence}"));
                let body = load(64, 0, 0).replacen(BARRIER, &format!("{written}{BARRIER}"), 1);
                let mut arrays = [aligned(&vec![0; ROWS * COLUMNS / 2]), vec![0; 256]];
                run(&body, &mut arrays, &map(0, 64, Swizzle::None), timing).map_err(|fault| fault.to_string())
            };
            for fence in [right, ALL] {
                told_with(fence).unwrap_or_else(|fault| panic!("{fault}"));
            }
            for fence in [other, ""] {
                let fault = told_with(fence).expect_err("a fence is missing");
                let told = format!("{told} through the asynchronous proxy, which thread 0 wrote");
                assert!(fault.contains(&told), "{timing:?}: {fault}");
            }
        }
    }
}

#[test]
fn boxes_narrower_than_their_swizzle_are_not_modelled() {
    let mut arrays = [aligned(&words(ROWS * COLUMNS / 2, 6)), vec![0; 256]];
    let fault = run(&load(32, 0, 0), &mut arrays, &map(0, 32, Swizzle::Bytes128), Timing::Late);
    assert!(matches!(fault.expect_err("a refusal").problem, Problem::Misuse(_)));
}

#[test]
fn additions_to_global_memory() {
    let sums = |slots: &[u64]| {
        vec![BoundMap {
            address: slots[1],
            elem: DType::F32,
            extents: vec![16, 16],
            strides: vec![64],
            tile: vec![16, 16],
            swizzle: Swizzle::None,
        }]
    };
    let issue = format!("{}{COMMIT}{OVER}", copy_out("reduce.add", 0, 0));
    let body = format!("{}{WRITE}{PROXY}{BARRIER}{}", start(), leader("issue", &issue));
    let number = |i: usize| i as f32 / 4.0;
    for timing in BOTH {
        let input: Vec<u32> = (0..256).map(|i| number(i).to_bits()).collect();
        let mut arrays = [input, aligned(&[1.5f32.to_bits(); 256])];
        run(&body, &mut arrays, &sums, timing).unwrap_or_else(|fault| panic!("{fault}"));
        let expected: Vec<u32> = (0..256).map(|i| (number(i) + 1.5).to_bits()).collect();
        assert_eq!(arrays[1], expected);
    }
}

#[test]
fn stores_that_are_wrong() {
    let fails = |body: &str, is_expected: &dyn Fn(&Problem) -> bool| {
        for timing in BOTH {
            let mut arrays = [words(256, 7), aligned(&[9; ROWS * COLUMNS / 2])];
            let fault =
                run(body, &mut arrays, &map(1, 64, Swizzle::None), timing).expect_err("something is wrong");
            assert!(is_expected(&fault.problem), "{timing:?}: {fault}");
        }
    };
    let right = store("s2g", READ_OVER);
    fails(&right.edit(PROXY, ""), &|problem| {
        matches!(problem, Problem::Unfenced { memory: Memory::Shared, .. })
    });
    fails(&right.edit(BARRIER, ""), &|problem| {
        matches!(problem, Problem::Race { .. } | Problem::Uninitialized { .. })
    });
    let ends =
        |problem: &Problem| matches!(problem, Problem::Misuse(what) if what.contains("when the block ends"));
    fails(&right.edit(READ_OVER, ""), &ends);
    fails(&right.edit(COMMIT, ""), &ends);
    // Shared memory is written again, without and with a wait, which only helps the thread that waited.
    let again = "  store i32 0, ptr addrspace(3) %box\n";
    let rewrite = |wait: &str| store("s2g", &format!("{wait}{again}"));
    fails(
        &rewrite(""),
        &|problem| matches!(problem, Problem::InFlight { operation, .. } if !operation.writes),
    );
    let mut arrays = [words(256, 7), aligned(&[9; ROWS * COLUMNS / 2])];
    run(&rewrite(READ_OVER), &mut arrays, &map(1, 64, Swizzle::None), Timing::Late)
        .unwrap_or_else(|fault| panic!("{fault}"));
    let other = format!("{right}  store i32 0, ptr addrspace(3) %box\n");
    fails(&other, &|problem| matches!(problem, Problem::Race { .. }));
    // The result is read back too early.
    let back = format!(
        "{right}{}",
        leader(
            "back",
            &format!(
                "  %at = getelementptr i8, ptr addrspace(1) %b, i32 {}\n  %v = load i32, ptr addrspace(1) %at\n",
                (15 * COLUMNS + 80) * 2
            )
        )
    );
    fails(&back, &|problem| matches!(problem, Problem::InFlight { operation, .. } if operation.writes));
}

#[test]
fn register_counts_are_checked() {
    let set = |count: u32| format!("  call void @llvm.nvvm.setmaxnreg.dec.sync.aligned.u32(i32 {count})\n");
    super::harness::is_right("sm_90a", 32, &set(40));
    for count in [42, 16, 264] {
        assert!(Kernel::compile("sm_90a", 32, PARAMETERS, &set(count)).is_err(), "{count}");
    }
}
