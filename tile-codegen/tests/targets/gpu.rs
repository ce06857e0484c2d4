//! PTX and HSACO of whole kernels: LLVM selects every op, `ptxas` assembles, code objects have their kernel.

use crate::kernels::{CONTROL, SOFTMAX, matmul, movement, softmax_of_other_letters};
use crate::metadata;
use crate::several::{self, Part};
use crate::support::instance;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use tile_codegen::{Artifact, Code, Error, Options, compile};
use tile_ir::ops::{BinaryOp, Classification, Domain, Predicate, ReduceOp, UnaryOp};
use tile_ir::target::Family;
use tile_ir::{DType, Instance, Rounding, TargetDesc};

/// A target that has the instructions of `sm_80`, and less shared memory.
const AS_SM_80: &str = "sm_86";

/// The GPU targets whose instructions differ.
pub(crate) fn targets() -> Vec<&'static str> {
    let gpus = tile_ir::target::TARGETS.iter().filter(|target| target.family != Family::Cpu);
    gpus.map(|target| target.name).filter(|name| *name != AS_SM_80).collect()
}

/// Compiles for all [`targets`] and hands the code to the vendor's tools.
pub(crate) fn check(instance: &Instance) {
    check_for(instance, &targets());
}

pub(crate) fn check_for(instance: &Instance, targets: &[&str]) {
    for &target in targets {
        let artifact = build(instance, target).unwrap_or_else(|error| panic!("{target}: {error}"));
        match &artifact.code {
            Code::Ptx(text) => check_ptx(&artifact, text),
            Code::Hsaco(bytes) => check_hsaco(&artifact, bytes),
            Code::Object(_) => panic!("{target} gave an object of the host"),
        }
    }
}

/// Every second GPU target, from the first or the second on.
fn every_other(first: usize) -> Vec<&'static str> {
    targets().into_iter().skip(first).step_by(2).collect()
}

fn build(instance: &Instance, target: &str) -> Result<Artifact, Error> {
    compile(instance, TargetDesc::named(target).unwrap(), &Options::default())
}

/// A file that goes away with its value.
struct Scratch(PathBuf);

impl Scratch {
    fn new(artifact: &Artifact, bytes: &[u8]) -> Scratch {
        use std::sync::atomic::{AtomicU64, Ordering};
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("tile-test-{}-{number}.{}", std::process::id(), artifact.code.extension());
        let path = std::env::temp_dir().join(name);
        std::fs::write(&path, bytes).unwrap();
        Scratch(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// NVIDIA's assembler: `TILE_PTXAS`, or the one that the test command installs.
fn ptxas() -> Option<PathBuf> {
    let installed = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/tools/ptxas");
    let named = std::env::var_os("TILE_PTXAS").map(PathBuf::from);
    named.or(Some(installed)).filter(|path| path.exists())
}

/// Assembles; gives what `ptxas -v` says about registers, spills and shared memory.
fn assemble(artifact: &Artifact, text: &str) -> Option<String> {
    let Some(ptxas) = ptxas() else {
        eprintln!(
            "ptxas is not installed (TILE_PTXAS or target/tools/ptxas): the PTX of `{}` is not assembled",
            artifact.symbol
        );
        return None;
    };
    let file = Scratch::new(artifact, text.as_bytes());
    let mut command = Command::new(ptxas);
    let architecture = format!("-arch={}", artifact.target);
    command.args(["-v", architecture.as_str(), "-o", "/dev/null"]).arg(&file.0);
    let output = command.output().unwrap();
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "ptxas refuses {}: {words}\n{text}", artifact.symbol);
    Some(words)
}

fn check_ptx(artifact: &Artifact, text: &str) {
    assert!(text.contains(&format!(".entry {}(", artifact.symbol)), "{text}");
    assert!(text.contains(&format!(".reqntid {}", artifact.launch.threads)), "{text}");
    assert!(!text.contains(".extern .func"), "a library call in\n{text}");
    assemble(artifact, text);
}

fn check_hsaco(artifact: &Artifact, bytes: &[u8]) {
    assert_eq!(&bytes[..4], b"\x7fELF");
    // Code objects of version 5, which ROCm 6.0 loads; version 6 is 4 (LLVM's AMDGPU usage guide, "ELF Header").
    assert_eq!(bytes[8], 3);
    let kernel = metadata::of_kernel(bytes);
    assert_eq!(kernel[".symbol"], format!("{}.kd", artifact.symbol), "{kernel}");
    assert!(kernel[".vgpr_spill_count"].is_u64(), "{kernel}");
    assert_eq!(kernel[".max_flat_workgroup_size"], artifact.launch.threads, "{kernel}");
    assert!(!kernel.to_string().contains("hidden_"), "the kernel has implicit arguments: {kernel}");
}

/// LLVM ends the process where a symbol has a letter that the target's symbols haven't.
#[test]
fn names_of_other_letters() {
    let instance = instance(&softmax_of_other_letters(), &[("BLÖCKE", 4), ("W", 128)]);
    check(&instance);
    let symbol = |name: Option<&str>| {
        let options = Options { symbol: name.map(ToOwned::to_owned), ..Options::default() };
        compile(&instance, TargetDesc::named("sm_90a").unwrap(), &options).unwrap().symbol
    };
    assert_eq!(
        (symbol(None), symbol(Some("größer"))),
        ("gr_uf6__udf_e".to_owned(), "gr_uf6__udf_er".to_owned())
    );
}

#[test]
fn matmul_of_every_format() {
    // Of the two odd tiles every target gets each format in one.
    for (number, (operand, accumulator)) in [
        ("f32", "f32"),
        ("bf16", "f32"),
        ("f16", "f32"),
        ("f16", "f16"),
        ("f64", "f64"),
        ("i8", "i32"),
        ("u8", "i32"),
    ]
    .into_iter()
    .enumerate()
    {
        let source = matmul(operand, accumulator);
        let (some, others) = (every_other(number % 2), every_other((number + 1) % 2));
        check_for(&instance(&source, &[("BM", 32), ("BN", 64), ("BK", 16)]), &[AS_SM_80]);
        check(&instance(&source, &[("BM", 32), ("BN", 64), ("BK", 16)]));
        check_for(&instance(&source, &[("BM", 48), ("BN", 80), ("BK", 5)]), &some);
        check_for(&instance(&source, &[("BM", 1), ("BN", 300), ("BK", 7)]), &others);
    }
}

#[test]
fn kernels_with_control_flow_and_movement() {
    check(&instance(SOFTMAX, &[("B", 4), ("W", 1024)]));
    check(&instance(SOFTMAX, &[("B", 3), ("W", 80)]));
    check(&instance(SOFTMAX, &[("B", 1), ("W", 32768)]));
    check(&instance(CONTROL, &[("B", 16)]));
    // More than 64 slots, and more shared memory than most AMD GPUs have.
    check_for(&instance(CONTROL, &[("B", 150)]), &["sm_80", "sm_90a", "sm_100a", "gfx950"]);
    // Formats of one width move in one way: every target gets every width, and half of the formats.
    let moved = DType::ALL.iter().filter(|dtype| dtype.is_number() && dtype.is_element());
    let mut of_width: HashMap<usize, usize> = HashMap::new();
    for dtype in moved {
        let number = of_width.entry(dtype.bytes()).or_default();
        check_for(&instance(&movement(dtype.name()), &[("A", 48), ("B", 80)]), &every_other(*number % 2));
        *number += 1;
    }
    assert!(of_width.values().all(|&formats| formats > 1), "{of_width:?}");
}

#[test]
fn reductions_of_every_format() {
    let places = [([48, 80], 1), ([256, 8], 0), ([1, 512], 1)];
    for (number, &dtype) in DType::ALL.iter().filter(|dtype| dtype.is_element()).enumerate() {
        let ops = ReduceOp::ALL.iter().filter(|op| op.domain().accepts(dtype));
        let part = |(op, &(shape, axis)): (&ReduceOp, &([usize; 2], usize))| {
            let mut reduced = shape;
            reduced[axis] = 1;
            Part::single(dtype, &shape, &format!("reduce {} %a axis {axis}", op.name()), &reduced)
        };
        let parts: Vec<Part> = ops.zip(places.iter().cycle()).map(part).collect();
        if parts.is_empty() {
            continue;
        }
        check_for(&instance(&several::kernel(&parts), &[]), &every_other(number % 2));
    }
}

/// One kernel with every leaf op that a format has, on an odd tile.
fn every_op(dtype: DType, shape: &[usize]) -> String {
    let extents: String = shape.iter().map(|extent| format!("{extent} x ")).collect();
    let (tile, flags) = (format!("tile<{extents}{dtype}>"), format!("tile<{extents}bool>"));
    let names = (0..shape.len()).map(|axis| format!("%i{axis}")).collect::<Vec<_>>().join(", ");
    let indices = vec!["index"; shape.len()].join(", ");
    let sizes: String = (0..shape.len()).map(|axis| format!("n{axis} x ")).collect();
    let pad = match dtype {
        DType::Bool => "false",
        dtype if dtype.is_float() => "0.0",
        _ => "0",
    };
    let mut text = format!(
        "kernel @every_op(%x: tensor<{sizes}{dtype}>, %alpha: {dtype}, %y: mut tensor<{sizes}{dtype}>) {{
  %vx = partition %x {shape:?} : partition<{sizes}{dtype}, {shape:?}>
  %vy = partition %y {shape:?} : mut partition<{sizes}{dtype}, {shape:?}>
  {names} = block_index %vy : {indices}
  %pad = constant {pad} : {dtype}
  %a = load_masked %vx[{names}] pad %pad : {tile}
  %b = load_masked %vy pad %alpha : {tile}
"
    );
    let mut last = "%a".to_owned();
    // Every value reaches the result: it is taken where it equals `b`.
    let mut value = |name: String, line: String, text: &mut String| {
        text.push_str(&format!("  {name}_v = {line} : {tile}\n  {name}_c = eq {name}_v, %b : {flags}\n"));
        text.push_str(&format!("  {name}_s = select {name}_c, {name}_v, {last} : {tile}\n"));
        last = format!("{name}_s");
    };
    for op in UnaryOp::ALL.iter().filter(|op| op.domain().accepts(dtype)) {
        value(format!("%u_{}", op.name()), format!("{} %a", op.name()), &mut text);
    }
    for op in BinaryOp::ALL.iter().filter(|op| op.domain().accepts(dtype)) {
        value(format!("%b_{}", op.name()), format!("{} %a, %b", op.name()), &mut text);
    }
    for predicate in Predicate::ALL.iter().filter(|p| p.domain().accepts(dtype)) {
        let name = format!("%p_{}", predicate.name());
        text.push_str(&format!("  {name}_f = {} %a, %b : {flags}\n", predicate.name()));
        value(name.clone(), format!("select {name}_f, %a, %b"), &mut text);
    }
    for c in Classification::ALL.iter().filter(|c| c.domain().accepts(dtype)) {
        let name = format!("%q_{}", c.name());
        text.push_str(&format!("  {name}_f = {} %a : {flags}\n", c.name()));
        value(name.clone(), format!("select {name}_f, %a, %b"), &mut text);
    }
    for other in DType::ALL.iter().filter(|other| other.is_element()) {
        let name = format!("%c_{other}");
        text.push_str(&format!("  {name}_o = cast %b : tile<{extents}{other}>\n"));
        value(name.clone(), format!("cast {name}_o"), &mut text);
    }
    if Domain::Float.accepts(dtype) {
        value("%fused".to_owned(), "mul_add %a, %b, %a".to_owned(), &mut text);
        for rounding in Rounding::ALL {
            for other in [DType::F8E4M3FN, DType::F8E8M0FNU, DType::F16, DType::F32, DType::I32] {
                let (name, rounding) = (format!("%d_{}_{other}", rounding.name()), rounding.name());
                text.push_str(&format!("  {name}_o = cast_with {rounding} %b : tile<{extents}{other}>\n"));
                value(name.clone(), format!("cast {name}_o"), &mut text);
            }
        }
    }
    for other in DType::ALL.iter().filter(|other| other.is_element() && **other != DType::Bool) {
        if other.bits() == dtype.bits() && dtype != DType::Bool {
            let name = format!("%w_{other}");
            text.push_str(&format!("  {name}_o = bitcast %b : tile<{extents}{other}>\n"));
            value(name.clone(), format!("bitcast {name}_o"), &mut text);
        }
    }
    text.push_str(&format!("  store_masked %vy, {last}\n}}\n"));
    text
}

#[test]
fn every_op_of_every_format() {
    // Every target gets every op once: which tile they are on doesn't change what is selected, if threads have two
    // elements, which some instructions take together.
    let (some, others) = (every_other(0), every_other(1));
    for &dtype in DType::ALL.iter().filter(|dtype| dtype.is_element()) {
        check_for(&instance(&every_op(dtype, &[6, 20]), &[]), &some);
        check_for(&instance(&every_op(dtype, &[130]), &[]), &others);
    }
}

#[test]
fn tiles_that_do_not_fit_are_refused_with_numbers() {
    let message = |instance: &Instance, target| build(instance, target).unwrap_err().to_string();
    assert_eq!(
        message(&instance(CONTROL, &[("B", 150)]), "gfx942"),
        "kernel `control` needs 90112 bytes of shared memory per block, but gfx942 has 65536; use smaller tiles"
    );
    assert_eq!(
        message(&instance(SOFTMAX, &[("B", 64), ("W", 4096)]), "sm_80"),
        "kernel `softmax`: tile<64 x 4096 x f32> takes 1024 registers per thread on sm_80, more than the 256 that \
         this compiler spends on one tile; use a smaller tile"
    );
    // The blocks of a cluster share a tile of 64×4096, but none of so many rows.
    assert_eq!(
        message(&instance(SOFTMAX, &[("B", 1024), ("W", 4096)]), "sm_90a"),
        "kernel `softmax`: tile<1024 x 4096 x f32> takes 512 registers per thread on sm_90a, more than the 256 that \
         this compiler spends on one tile; use a smaller tile"
    );
}

/// The sums of the columns of a tile that is made of a column.
const WIDE: &str = "\
kernel @wide<M, N>(%x: tensor<M x 1 x f32>, %y: mut tensor<1 x N x f32>) {
  %vx = partition %x [M, 1] : partition<M x 1 x f32, [M, 1]>
  %vy = partition %y [1, N] : mut partition<1 x N x f32, [1, N]>
  %i, %j = block_index %vy : index, index
  %t = load %vx[%i, %i] : tile<M x 1 x f32>
  %b = broadcast %t : tile<M x N x f32>
  %e = exp %b : tile<M x N x f32>
  %s = reduce sum %e axis 0 : tile<1 x N x f32>
  store %vy, %s
}
";

/// Before anything is done for each of their elements.
#[test]
fn tiles_of_very_many_elements_are_refused() {
    let instance = instance(WIDE, &[("M", 4001), ("N", 4001)]);
    assert_eq!(
        build(&instance, "sm_80").unwrap_err().to_string(),
        "kernel `wide`: tile<4001 x 4001 x f32> takes 15632 registers per thread on sm_80, more than the 256 that this \
         compiler spends on one tile; use a smaller tile"
    );
    assert!(tile_codegen::remarks(&instance, TargetDesc::named("sm_80").unwrap()).is_empty());
}

/// The first number before these words.
fn number_before(text: &str, words: &str) -> u64 {
    let (before, _) = text.split_once(words).unwrap_or_else(|| panic!("no `{words}` in {text}"));
    before.rsplit(' ').next().and_then(|word| word.parse().ok()).unwrap()
}

#[test]
fn a_large_matmul_stays_in_registers_and_compiles_quickly() {
    let instance = instance(&matmul("bf16", "f32"), &[("BM", 128), ("BN", 128), ("BK", 64)]);
    for target in targets() {
        let start = std::time::Instant::now();
        let artifact = build(&instance, target).unwrap();
        eprintln!("{target}: 128 x 128 x 64 bf16 matmul compiled in {:?}", start.elapsed());
        match &artifact.code {
            Code::Ptx(text) => {
                let Some(words) = assemble(&artifact, text) else { continue };
                eprintln!("{words}");
                assert_eq!(number_before(&words, " bytes spill stores"), 0, "{words}");
            }
            Code::Hsaco(bytes) => {
                let kernel = metadata::of_kernel(bytes);
                let counts = kernel.as_object().unwrap().iter();
                let counts = counts.filter(|(key, _)| key.contains("gpr") || key.contains("_segment"));
                eprintln!("{:?}", counts.collect::<Vec<_>>());
                assert_eq!(kernel[".vgpr_spill_count"], 0, "{kernel}");
            }
            Code::Object(_) => panic!("{target} gave an object of the host"),
        }
    }
}
