//! Products of 8-bit floats on simulated threads of every GPU: by its own instructions where it has OCP's formats, else by
//! those of bf16.

use crate::pipelines::matmul;
use crate::support::{close, instance, run_simt_as, sample};
use tile_codegen::{Code, Options, compile};
use tile_ir::gpu::schedule;
use tile_ir::target::Family;
use tile_ir::{DType, Instance, Op, TargetDesc, interp, passes};
use tile_test_edit::Edit;

const NARROW: DType = DType::F8E4M3FN;
const WIDE: DType = DType::F8E5M2;

/// The kernel with factors of two formats, stored by rows along the depth or across it.
pub(crate) fn of_two_kinds([left, right]: [DType; 2], b: &str, tile: [usize; 3]) -> String {
    let is_right = |line: &str| ["%b: ", "%vb", "%lb", "%tb ="].iter().any(|name| line.contains(name));
    let source = matmul([left, DType::F32], "mk", b, tile);
    let source = source.edit(", %b:", ",\n%b:").edit(", %c:", ",\n%c:");
    let lines = source.lines().map(|line| match is_right(line) && !line.contains(" mma ") {
        true => line.edit(left.name(), right.name()).replace("%pad", "%other"),
        false => line.to_owned(),
    });
    let pad = format!("  %other = constant 0.0 : {right}\n  %none = constant");
    lines.collect::<Vec<_>>().join("\n").edit("  %none = constant", &pad)
}

/// The same of any sizes.
fn of_any_sizes(source: &str) -> String {
    let (head, body) = source.split_once(" where").expect("the kernel has conditions");
    format!("{head} {}", &body[body.find("{\n").expect("the kernel has a body")..])
}

/// What the intrinsic of a product of 8-bit floats is called, and the tile that takes the whole of it.
const INSTRUCTIONS: &[(&str, [usize; 3], &str)] = &[
    ("sm_80", [64, 32, 64], "llvm.nvvm.mma.m16n8k16.row.col.bf16"),
    ("sm_86", [64, 32, 64], "llvm.nvvm.mma.m16n8k16.row.col.bf16"),
    ("sm_89", [64, 32, 64], "llvm.nvvm.mma.m16n8k32.row.col.f32.A.B.f32"),
    ("sm_90a", [64, 32, 64], "llvm.nvvm.mma.m16n8k32.row.col.f32.A.B.f32"),
    ("sm_100a", [64, 32, 64], "llvm.nvvm.mma.m16n8k32.row.col.f32.A.B.f32"),
    ("sm_120f", [64, 32, 64], "llvm.nvvm.mma.m16n8k32.row.col.f32.A.B.f32"),
    ("gfx90a", [64, 32, 64], "llvm.amdgcn.mfma.f32.32x32x8bf16.1k"),
    ("gfx942", [64, 32, 64], "llvm.amdgcn.mfma.f32.32x32x8bf16.1k"),
    ("gfx950", [64, 64, 64], "llvm.amdgcn.mfma.scale.f32.32x32x64.f8f6f4"),
    ("gfx950", [16, 16, 128], "llvm.amdgcn.mfma.scale.f32.16x16x128.f8f6f4"),
    ("gfx950", [32, 32, 32], "llvm.amdgcn.mfma.f32.32x32x16.A.B"),
    ("gfx950", [16, 16, 32], "llvm.amdgcn.mfma.f32.16x16x32.A.B"),
    ("gfx1100", [64, 32, 64], "llvm.amdgcn.wmma.f32.16x16x16.bf16"),
    ("gfx1201", [64, 32, 64], "llvm.amdgcn.wmma.f32.16x16x16.A.B"),
];

/// What a vendor calls a format.
fn kind(family: Family, dtype: DType) -> &'static str {
    match (family, dtype) {
        (Family::Nvptx, NARROW) => "e4m3",
        (Family::Nvptx, _) => "e5m2",
        (_, NARROW) => "fp8",
        _ => "bf8",
    }
}

/// The kernel, if its product is done by the instruction and LLVM has that.
fn compiled((target, tile, name): (&str, [usize; 3], &str), formats: [DType; 2], b: &str) -> Instance {
    let target = TargetDesc::named(target).unwrap();
    let instance = instance(&of_any_sizes(&of_two_kinds(formats, b, tile)), &[]);
    let scheduled = schedule(passes::optimize(instance.clone()), target, None);
    let product = scheduled.walk().into_iter().find(|&op| scheduled.op(op).op == Op::Mma).unwrap();
    let instruction = scheduled.product(product).expect("a matrix instruction").instruction;
    let [left, right] = if instruction.exchanged { [1, 0] } else { [0, 1] };
    let name = name.replace('A', kind(target.family, formats[left]));
    assert_eq!(instruction.intrinsic, name.replace('B', kind(target.family, formats[right])), "{target}");
    // With more rows they would be done in tensor memory, where there is some.
    assert!(scheduled.remarks().iter().all(|remark| remark.message.contains("in tensor memory")), "{target}");
    compile(&instance, target, &Options::default()).unwrap();
    instance
}

/// Checks what simulated threads make of it.
fn check(case: (&str, [usize; 3], &str), formats: [DType; 2], b: &str, [m, n, k]: [usize; 3]) {
    let instance = compiled(case, formats, b);
    let b_shape = if b == "kn" { [k, n] } else { [n, k] };
    let arguments =
        [sample(formats[0], &[m, k], 1), sample(formats[1], &b_shape, 2), sample(DType::F32, &[m, n], 3)];
    let mut expected = arguments.to_vec();
    interp::run(&instance, &mut expected).unwrap();
    let actual = run_simt_as(case.0, &instance, &arguments, None);
    close(&actual[2], &expected[2], 0.0, &format!("{formats:?} on {}", case.0));
}

#[test]
fn instructions_of_their_own_where_the_formats_are_the_same() {
    for &case in INSTRUCTIONS {
        compiled(case, [NARROW; 2], "nk");
        compiled(case, [WIDE; 2], "nk");
        check(case, [NARROW, WIDE], "nk", [40, 30, 150]);
        check(case, [WIDE, NARROW], "kn", [17, 37, 70]);
    }
}

/// Ada's products of 8-bit floats have 13 bits behind the point, so that each is added to sums in f32; of 16 bits, on others
/// and where a kernel says that fewer bits do, the instruction adds.
#[test]
fn coarse_sums_are_added_up_beside_the_products() {
    let adds = |target: &str, dtype: DType, fast: bool| {
        let source = of_any_sizes(&of_two_kinds([dtype; 2], "nk", [32, 32, 64]));
        let source = if fast { source.replacen(" {\n", " fast_accumulation {\n", 1) } else { source };
        let target = TargetDesc::named(target).unwrap();
        let artifact = compile(&instance(&source, &[]), target, &Options::default()).unwrap();
        let Code::Ptx(ptx) = artifact.code else { panic!("PTX") };
        let count = |name: &str| ptx.lines().filter(|line| line.contains(name)).count();
        assert!(count("mma.sync.aligned.m16n8k") > 0, "{ptx}");
        (count("add.rn.f32"), 4 * count("mma.sync.aligned.m16n8k"))
    };
    let (added, summed) = adds("sm_89", NARROW, false);
    assert_eq!(added, summed);
    let others = [("sm_89", NARROW, true), ("sm_89", DType::BF16, false), ("sm_120f", WIDE, false)];
    for (target, dtype, fast) in others {
        assert_eq!(adds(target, dtype, fast).0, 0, "{target} {dtype:?} {fast}");
    }
}

/// A factor that is made from positions, which code knows; see `hidden_from_assembler`.
#[test]
fn words_of_products_that_are_unpacked_are_unknown_to_the_assembler() {
    let source = "\
kernel @positions(%x: tensor<64 x 64 x f8e5m2>, %y: mut tensor<64 x 16 x f32>) {
  %vx = partition %x [64, 32] : partition<64 x 64 x f8e5m2, [64, 32]>
  %vy = partition %y [64, 16] : mut partition<64 x 16 x f32, [64, 16]>
  %i, %j = block_index %vy : index, index
  %none = constant 0.0 : f32
  %zero = splat %none : tile<64 x 16 x f32>
  %0 = constant 0 : index
  %2 = constant 2 : index
  %sum = for %p = %0 to %2 carry (%acc = %zero) : tile<64 x 16 x f32> {
    %a = load %vx[%i, %p] : tile<64 x 32 x f8e5m2>
    %row = iota 0 : tile<32 x 16 x i32>
    %four = constant 4 : i32
    %fours = splat %four : tile<32 x 16 x i32>
    %rest = rem %row, %fours : tile<32 x 16 x i32>
    %b = cast %rest : tile<32 x 16 x f8e5m2>
    %next = mma %a, %b, %acc : tile<64 x 16 x f32>
    yield %next
  }
  store %vy, %sum
}
";
    let instance = instance(source, &[]);
    let ptx = compile(&instance, TargetDesc::named("sm_90a").unwrap(), &Options::default()).unwrap();
    let Code::Ptx(ptx) = ptx.code else { panic!("PTX") };
    let (before, _) = ptx.split_once("mma.sync.aligned.m16n8k32").expect("it is done by `mma.sync`");
    let word = before.lines().rev().find(|line| line.contains("%ctaid.y")).expect("a number that is 0");
    let zero = word.split_whitespace().nth(1).unwrap().trim_end_matches(',');
    let changed = before.lines().filter(|line| line.contains("xor.b32") && line.contains(zero));
    // A word that all threads have for both of `b`; those of `a` are read.
    assert_eq!(changed.count(), 1, "{before}");
}
