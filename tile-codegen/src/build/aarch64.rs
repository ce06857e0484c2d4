//! What a build script makes for AArch64 of the kernels whose machine code is recorded and of the examples': machine code
//! without calls, and the inner loops of products instruction by instruction.
//!
//! Runs on any machine, for LLVM assembles; what the code computes the tests in `tests/targets` say, with an emulator.

use super::cargo::{Cargo, Kind, Target};
use super::scan::{self, Conditions};
use crate::cpu;
use crate::llvm::Machine;
use crate::options::Cpu;
use crate::system::System;
use inkwell::context::Context;
use inkwell::targets::FileType;
use std::path::Path;
use tile_ir::target::{Architecture, CpuLevel};
use tile_ir::{Instance, passes, specialize};

/// The code of an instance on processors of a level, as text and as an object.
fn code(instance: &Instance, level: &'static CpuLevel) -> (String, Vec<u8>) {
    let (context, machine) = (Context::create(), Machine::cpu(Cpu::Level(level), System::Elf).unwrap());
    let instance = passes::optimize(instance.clone());
    let (module, _) = cpu::emit(&context, &instance, &machine, "kernel").unwrap();
    let emit = |kind| machine.emit("kernel", &module, kind).unwrap();
    (String::from_utf8(emit(FileType::Assembly)).unwrap(), emit(FileType::Object))
}

/// Instructions of a text, without what the assembler is told besides.
fn instructions(text: &str) -> Vec<&str> {
    text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("//")).collect()
}

/// The loops that have no other in them: the lines from a label to the branch back to it.
fn innermost_loops(text: &str) -> Vec<Vec<&str>> {
    let lines = instructions(text);
    let label =
        |name: &str| lines.iter().position(|line| line.split(':').next() == Some(name) && line.contains(':'));
    let back = lines.iter().enumerate().filter_map(|(end, line)| {
        let target = line.split([' ', '\t', ',']).next_back().filter(|target| target.starts_with(".LBB"))?;
        let begin = label(target)?;
        (begin < end).then_some((begin, end))
    });
    let loops: Vec<(usize, usize)> = back.collect();
    let has_none = |&&(begin, end): &&(usize, usize)| {
        !loops.iter().any(|&(b, e)| (b, e) != (begin, end) && begin <= b && e <= end)
    };
    let bodies = loops.iter().filter(has_none).map(|&(begin, end)| lines[begin + 1..=end].to_vec());
    bodies.collect()
}

/// A product in a loop along K, of tiles that are whole numbers of register blocks.
fn product(factors: [&str; 2], sum: &str) -> Instance {
    let [left, right] = factors;
    let zero = if sum == "i32" { "0" } else { "0.0" };
    let source = format!(
        "kernel @product<M, N, K>(%a: tensor<m x k x {left}>, %b: tensor<k x n x {right}>, %c: mut tensor<m x n x {sum}>)
   where \"m\": rem(m, M) eq 0, \"n\": rem(n, N) eq 0, \"k\": rem(k, K) eq 0 {{
  %va = partition %a [M, K] : partition<m x k x {left}, [M, K]>
  %vb = partition %b [K, N] : partition<k x n x {right}, [K, N]>
  %vc = partition %c [M, N] : mut partition<m x n x {sum}, [M, N]>
  %i, %j = block_index %vc : index, index
  %zero = constant {zero} : {sum}
  %first = splat %zero : tile<M x N x {sum}>
  %0 = constant 0 : index
  %1 = extent ceil_div(k, K) : index
  %all = for %p = %0 to %1 carry (%acc = %first) : tile<M x N x {sum}> {{
    %ta = load %va[%i, %p] : tile<M x K x {left}>
    %tb = load %vb[%p, %j] : tile<K x N x {right}>
    %next = mma %ta, %tb, %acc : tile<M x N x {sum}>
    yield %next
  }}
  store %vc, %all
}}
"
    );
    Instance::parse(&source, &[("M", 48), ("N", 64), ("K", 64)]).unwrap()
}

/// The lines of the loop that has most lines with an instruction.
fn loop_with<'t>(text: &'t str, instruction: &str) -> Vec<&'t str> {
    let count = |body: &Vec<&str>| body.iter().filter(|line| line.starts_with(instruction)).count();
    innermost_loops(text).into_iter().max_by_key(count).expect("there are loops")
}

/// A step along K is 24 multiplications of vectors, or of what the level multiplies at once, and the loads of four vectors
/// and six elements: no register is spilled, moved or filled otherwise. Elements of floats are multiplied where they lie in a
/// register, but for those of one row, which are loaded into all lanes because their address goes on to the next step; LLVM
/// loads integers so as well.
#[test]
fn a_step_of_a_product_is_24_multiply_adds_and_10_loads() {
    for (factors, sum, level, instruction) in [
        (["f32"; 2], "f32", "armv8-a", "fmla"),
        (["f64"; 2], "f64", "armv8-a", "fmla"),
        (["bf16"; 2], "f32", "armv8-a", "fmla"),
        (["f16"; 2], "f32", "armv8-a", "fmla"),
        (["i32"; 2], "i32", "armv8-a", "mla"),
        (["bf16"; 2], "f32", "armv8.6-a", "bfdot"),
        (["i8"; 2], "i32", "armv8.2-a", "sdot"),
        (["u8"; 2], "i32", "armv8.2-a", "udot"),
        (["u8", "i8"], "i32", "armv8.6-a", "usdot"),
    ] {
        let (text, _) = code(&product(factors, sum), CpuLevel::named(level).unwrap());
        let body = loop_with(&text, instruction);
        let all = body.join("\n");
        let of = |name: &str| body.iter().filter(|line| line.starts_with(&format!("{name}\t"))).count();
        let elements = of("ldr") + of("ld1r");
        assert_eq!((of(instruction), elements, 2 * of("ldp")), (24, 6, 4), "{factors:?} on {level}:\n{all}");
        for other in ["[sp", "mov\tv", "dup", "bl\t"] {
            assert!(!all.contains(other), "{other} in {factors:?} on {level}:\n{all}");
        }
    }
}

/// LLVM takes each kernel for each level for which a build script would compile it, and nothing of it is a call.
#[test]
fn kernels_are_code_without_calls() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let packages =
        ["tile-codegen", "", "examples/digits", "examples/matmul", "examples/softmax", "examples/vector_add"];
    let found = packages.into_iter().flat_map(|package| {
        let (program, manifest) = (env!("CARGO").into(), root.join(package).join("Cargo.toml"));
        let (target, features, out) = Default::default();
        let cargo = Cargo { program, manifest, target, features, out };
        let package = cargo.package().unwrap();
        let is_wanted = |target: &&Target| {
            target.kind == Kind::Program || target.root.starts_with(package.folder.join("examples"))
        };
        let roots: Vec<&Target> = package.targets.iter().filter(is_wanted).collect();
        scan::kernels(&cargo, &package, &Conditions::default(), &roots).unwrap().found
    });
    let mut compiled = 0;
    for kernel in found {
        for bindings in &kernel.instances {
            let instance = specialize(&kernel.kernel, bindings).unwrap();
            for level in crate::levels_of(&instance, Architecture::Aarch64) {
                let (text, object) = code(&instance, level);
                let calls = |line: &&str| line.starts_with("bl\t") || line.starts_with("blr\t");
                let called: Vec<&str> = instructions(&text).into_iter().filter(calls).collect();
                assert!(called.is_empty(), "{} on {level} calls {called:?}", kernel.place);
                // "ELF for the Arm 64-bit Architecture", 5.1.1: a machine of number 183.
                assert_eq!((&object[..4], &object[18..20]), (&b"\x7fELF"[..], &[183, 0][..]));
                compiled += 1;
            }
        }
    }
    assert!(compiled > 20, "{compiled} codes");
}

/// Outputs larger than the caches are stored past them, a pair of vectors at a time, and need no barrier.
#[test]
fn large_outputs_are_stored_past_the_caches() {
    let source = "kernel @double(%x: tensor<n x f32>, %y: mut tensor<n x f32>) {
  %vx = partition %x [1024] : partition<n x f32, [1024]>
  %vy = partition %y [1024] : mut partition<n x f32, [1024]>
  %i = block_index %vy : index
  %pad = constant 0.0 : f32
  %a = load_masked %vx[%i] pad %pad : tile<1024 x f32>
  %r = add %a, %a : tile<1024 x f32>
  store_masked %vy, %r
}";
    let instance = Instance::parse(source, &[]).unwrap();
    let (text, _) = code(&instance, Architecture::Aarch64.least());
    assert!(text.contains("stnp\tq"), "{text}");
    assert!(!text.contains("dmb") && !text.contains("dsb"), "{text}");
}
