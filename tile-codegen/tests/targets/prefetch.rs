//! Prefetches: which lines of memory GPU code asks for, which instructions it and native code have, and that no
//! result changes.

use crate::gpu;
use crate::support::{Memory, close, instance, run_native, run_simt, sample};
use std::collections::BTreeSet;
use tile_codegen::{Code, Options, compile, simt};
use tile_ir::{Array, DType, Instance, TargetDesc, interp};
use tile_test_edit::Edit;

/// A kernel that asks for one tile of a moved tensor, and gives 1.
fn asks(dtype: DType, view: &str, ty: &str, tile: [usize; 2], hints: &str, index: [usize; 2]) -> Instance {
    let ([rows, columns], [i, j]) = (tile, index);
    let source = format!(
        "kernel @k(%x: tensor<m x n x {dtype}>, %y: mut tensor<1 x f32>) {{
  %v = view %x {view} : {ty}
  %p = partition %v [{rows}, {columns}]{hints} : partition<{}, [{rows}, {columns}]>
  %vy = partition %y [1] : mut partition<1 x f32, [1]>
  %i = constant {i} : index
  %j = constant {j} : index
  prefetch %p[%i, %j]
  %one = constant 1.0 : f32
  %t = splat %one : tile<1 x f32>
  store_masked %vy, %t
}}
",
        &ty["tensor<".len()..ty.len() - 1]
    );
    instance(&source, &[])
}

/// What blocks of so many threads ask for: lines, and copies with their sizes; and where the tensor begins.
fn asked(instance: &Instance, x: &Array, threads: Option<u32>) -> (u64, Vec<(u64, Option<u64>)>) {
    let kernel = simt::compile(instance, TargetDesc::named("sm_90a").unwrap(), threads).unwrap();
    let memory = Memory::of(instance, &[x.clone(), sample(DType::F32, &[1], 0)]);
    // SAFETY: the slots are as the instance's ABI says, and tensors are as large as their shapes.
    let trace = unsafe { kernel.run(&memory.slots, memory.blocks) }.unwrap();
    (memory.slots[0], trace.prefetched)
}

type Position = fn(i: i64, j: i64, m: i64, n: i64) -> Option<i64>;

fn dense(i: i64, j: i64, m: i64, n: i64) -> Option<i64> {
    ((0..m).contains(&i) && (0..n).contains(&j)).then_some(i * n + j)
}

const VIEWS: &[(&str, &str, Position)] = &[
    ("permute [0, 1]", "tensor<m x n x {}>", dense),
    ("permute [1, 0]", "tensor<n x m x {}, strided [1, n]>", |i, j, m, n| dense(j, i, m, n)),
    ("flip [1]", "tensor<m x n x {}, strided [n, -1] offset n - 1>", |i, j, m, n| dense(i, n - 1 - j, m, n)),
    (
        "pad [(0, 0), (5, 9)]",
        "tensor<m x n + 14 x {}, strided [n, 1] offset -5 within [[], [(5, n + 5)]]>",
        |i, j, m, n| dense(i, j - 5, m, n),
    ),
    ("step 1 by 3", "tensor<m x ceil_div(n, 3) x {}, strided [n, 3]>", |i, j, m, n| dense(i, 3 * j, m, n)),
];

#[test]
fn every_line_of_what_exists_is_asked_for_and_no_other() {
    let sizes = [(DType::F32, [6usize, 200usize]), (DType::I8, [3, 1000]), (DType::F64, [7, 33])];
    let places =
        [([4, 70], [0, 0]), ([4, 70], [1, 2]), ([2, 300], [0, 1]), ([1, 1], [2, 3]), ([4, 70], [9, 0])];
    for &(view, ty, position) in VIEWS {
        for (dtype, [m, n]) in sizes {
            for (tile, index) in places {
                let ty = ty.edit("{}", dtype.name());
                let instance = asks(dtype, view, &ty, tile, "", index);
                for threads in [None, Some(4)] {
                    let (base, asked) = asked(&instance, &sample(dtype, &[m, n], 1), threads);
                    let first = [tile[0] * index[0], tile[1] * index[1]];
                    let elements = (0..tile[0] * tile[1]).map(|k| {
                        let place =
                            [first[0] + k / tile[1], first[1] + k % tile[1]].map(|place| place as i64);
                        position(place[0], place[1], m as i64, n as i64)
                    });
                    let address = |position: i64| (base + position as u64 * dtype.bytes() as u64) & !127;
                    let expected: BTreeSet<u64> = elements.flatten().map(address).collect();
                    assert!(asked.iter().all(|(_, bytes)| bytes.is_none()), "a copy that nobody asked for");
                    let found: BTreeSet<u64> = asked.iter().map(|&(line, _)| line).collect();
                    assert_eq!(found, expected, "{view} of {dtype}, tile {tile:?} at {index:?}, {threads:?}");
                }
            }
        }
    }
}

#[test]
fn aligned_rows_are_copies_where_the_view_says_so() {
    let ty = "tensor<m x n x f32>";
    let rows = |n: usize, hint: &str| {
        let instance = asks(DType::F32, "permute [0, 1]", ty, [4, 64], hint, [1, 1]);
        let (base, mut asked) = asked(&instance, &sample(DType::F32, &[6, n], 1), None);
        asked.sort_unstable();
        // Arguments lie on multiples of 8 bytes; only a row on a multiple of 16 is a copy.
        (base, asked)
    };
    // Rows 4 and 5 of 6, columns 64 to 99 of 100: two rows of 144 bytes.
    let (base, copies) = rows(100, " bulk_copy true");
    let starts = [4, 5].map(|row| base + 4 * (100 * row + 64));
    if base % 16 == 0 {
        assert_eq!(copies, starts.map(|start| (start, Some(144))));
    } else {
        assert!(copies.iter().all(|(_, bytes)| bytes.is_none()), "{base}: {copies:?}");
    }
    // The second row begins 4 bytes off.
    for (n, hint) in [(101, " bulk_copy true"), (100, " bulk_copy false"), (100, "")] {
        let (_, lines) = rows(n, hint);
        let odd = lines.iter().filter(|(_, bytes)| bytes.is_none()).count();
        assert!(odd >= 2, "{n}{hint}: {lines:?}");
        assert!(n == 101 || odd == lines.len(), "{n}{hint}: {lines:?}");
    }
}

/// Sums rows of `x`, reading a tile beyond the end in its last turns, and doubles what lies in `y`.
fn sums(hints: &str) -> String {
    format!(
        "kernel @sums(%x: tensor<m x n x f32>, %y: mut tensor<m x 1 x f32>) {{
  %vx = partition %x [4, 24]{hints} : partition<m x n x f32, [4, 24]>
  %vy = partition %y [4, 1] : mut partition<m x 1 x f32, [4, 1]>
  %i, %c = block_index %vy : index, index
  %zero = constant 0 : index
  %far = constant 18446744073709551615 : index
  %end = extent ceil_div(n, 24) + 2 : index
  %pad = constant 0.0 : f32
  %start = splat %pad : tile<4 x 1 x f32>
  prefetch %vy
  prefetch %vx[%far, %far]
  prefetch %vx[%i, %end]
  %sum = for %p = %zero to %end carry (%a = %start) : tile<4 x 1 x f32> {{
    %t = load_masked %vx[%i, %p] pad %pad : tile<4 x 24 x f32>
    %s = reduce sum %t axis 1 : tile<4 x 1 x f32>
    %next = add %a, %s : tile<4 x 1 x f32>
    yield %next
  }}
  %old = load_masked %vy pad %pad : tile<4 x 1 x f32>
  %both = add %old, %sum : tile<4 x 1 x f32>
  store_masked %vy, %both
}}
"
    )
}

#[test]
fn no_result_changes() {
    let arguments = [sample(DType::F32, &[10, 100], 1), sample(DType::F32, &[10, 1], 2)];
    let row = |i: usize| (0..100).map(|j| arguments[0].get_f64(100 * i + j)).sum::<f64>();
    for hints in ["", " latency 1", " latency 3", " latency 64 bulk_copy true", " bulk_copy false"] {
        let instance = instance(&sums(hints), &[]);
        let mut evaluated = arguments.clone();
        interp::run(&instance, &mut evaluated).unwrap();
        let found = [
            evaluated.to_vec(),
            run_native(&instance, &arguments, &Options::default()),
            run_simt(&instance, &arguments, None),
            run_simt(&instance, &arguments, Some(4)),
        ];
        for found in &found {
            close(&found[0], &arguments[0], 0.0, "x");
            for i in 0..10 {
                assert_eq!(found[1].get_f64(i), arguments[1].get_f64(i) + row(i), "row {i} with{hints}");
            }
        }
    }
}

fn ptx(hints: &str, target: &str) -> String {
    // Without the prefetches that it has anyway.
    let lines: Vec<String> =
        sums(hints).lines().filter(|line| !line.starts_with("  prefetch")).map(str::to_owned).collect();
    let instance = instance(&lines.join("\n"), &[]);
    gpu::check_for(&instance, &[target]);
    let artifact = compile(&instance, TargetDesc::named(target).unwrap(), &Options::default()).unwrap();
    match artifact.code {
        Code::Ptx(text) => text,
        _ => panic!("PTX was asked for"),
    }
}

#[test]
fn the_instructions_are_those_of_the_target() {
    let (line, range) = ("prefetch.global.L2 ", "cp.async.bulk.prefetch.L2.global ");
    let has = |hints: &str, target: &str| {
        let text = ptx(hints, target);
        (text.contains(line), text.contains(range))
    };
    for target in ["sm_80", "sm_90a", "sm_100a"] {
        assert_eq!(has("", target), (false, false));
        assert_eq!(has(" latency 2", target), (true, false));
        assert_eq!(has(" latency 2 bulk_copy false", target), (true, false));
    }
    assert_eq!(has(" latency 2 bulk_copy true", "sm_80"), (true, false));
    assert_eq!(has(" latency 2 bulk_copy true", "sm_90a"), (true, true));
    assert_eq!(has(" latency 2 bulk_copy true", "sm_100a"), (true, true));
    gpu::check(&instance(&sums(" latency 2 bulk_copy true"), &[]));
}
