//! Kernels written in LLVM's text: their arguments are arrays of 32-bit words in global memory.

use crate::emit::Ir;
use crate::gpu::targets::features;
use crate::simt::generation::Generation;
use crate::simt::host_module::Gpu;
use crate::simt::tensor_map::Encoded;
use crate::simt::{Code, Fault, KERNEL, Mode, Problem, Region, RunError, SimtKernel, Timing, Trace};
use inkwell::context::Context;
use inkwell::memory_buffer::MemoryBuffer;
use std::fmt::Write;
use std::ptr;
use tile_ir::TargetDesc;
use tile_ir::abi::KernelAbi;
use tile_ir::tensor_map::{BoundMap, TensorMap};

/// A hand-written kernel.
pub(super) struct Kernel {
    code: Code,
}

/// Bytes of the shared array `@shared`.
pub(super) const SHARED_BYTES: usize = 32 * 1024;

/// Types of intrinsics by name, so that bodies needn't declare what they call: `result (operands)`.
fn declarations(body: &str, defined: &str) -> String {
    let mut declared = Vec::new();
    let mut text = String::new();
    for line in body.lines() {
        let Some((_, call)) = line.split_once("call ") else { continue };
        let Some(at) = call.find('@') else { continue };
        let end = at + call[at..].find('(').expect("a call has operands");
        let name = &call[at..end];
        if declared.contains(&name) || defined.contains(&format!("{name}(")) {
            continue;
        }
        declared.push(name);
        let types: Vec<String> = split(&call[end + 1..call.rfind(')').expect("a call ends")])
            .iter()
            .map(|operand| operand_type(operand))
            .collect();
        writeln!(text, "declare {}{name}({})", &call[..at], types.join(", ")).expect("a string grows");
    }
    text
}

/// Operands between commas that aren't within brackets.
fn split(operands: &str) -> Vec<String> {
    let (mut found, mut depth) = (vec![String::new()], 0);
    for c in operands.chars() {
        match c {
            '<' | '{' | '[' | '(' => depth += 1,
            '>' | '}' | ']' | ')' => depth -= 1,
            ',' if depth == 0 => {
                found.push(String::new());
                continue;
            }
            _ => {}
        }
        found.last_mut().expect("there is one").push(c);
    }
    found.retain(|operand| !operand.trim().is_empty());
    found
}

/// The type of an operand, which ends before its value.
fn operand_type(operand: &str) -> String {
    let operand = operand.trim();
    let immediate = ["immarg"].iter().any(|word| operand.contains(word));
    assert!(!immediate, "attributes aren't for calls");
    for value in [" %", " @", " zeroinitializer", " true", " false", " null", " undef", " poison"] {
        if let Some(at) = operand.rfind(value) {
            return operand[..at].to_owned();
        }
    }
    operand.rsplit_once(' ').expect("an operand has a type and a value").0.to_owned()
}

impl Kernel {
    /// A kernel for blocks of so many threads. Its parameters are `%a`, `%b`, `%c` in global memory; `%tid` and
    /// `%lane` are there, and what is called is declared.
    pub(super) fn new(gpu: &str, threads: u32, body: &str) -> Kernel {
        Kernel::with_parameters(
            gpu,
            threads,
            "ptr addrspace(1) %a, ptr addrspace(1) %b, ptr addrspace(1) %c",
            body,
        )
    }

    pub(super) fn with_parameters(gpu: &str, threads: u32, parameters: &str, body: &str) -> Kernel {
        Kernel::compile(gpu, threads, parameters, body).unwrap_or_else(|error| panic!("{error}"))
    }

    pub(super) fn compile(gpu: &str, threads: u32, parameters: &str, body: &str) -> Result<Kernel, String> {
        Kernel::compile_with("", gpu, threads, parameters, body)
    }

    /// A kernel that calls these functions, which aren't declared besides.
    pub(super) fn compile_with(
        functions: &str,
        gpu: &str,
        threads: u32,
        parameters: &str,
        body: &str,
    ) -> Result<Kernel, String> {
        Kernel::build(functions, gpu, [threads, 1], parameters, body)
    }

    /// A kernel as by [`Kernel::new`], for clusters of so many blocks.
    pub(super) fn of_clusters(gpu: &str, threads: u32, blocks: u32, body: &str) -> Kernel {
        let parameters = "ptr addrspace(1) %a, ptr addrspace(1) %b, ptr addrspace(1) %c";
        Kernel::build("", gpu, [threads, blocks], parameters, body).unwrap_or_else(|error| panic!("{error}"))
    }

    fn build(
        functions: &str,
        gpu: &str,
        extent: [u32; 2],
        parameters: &str,
        body: &str,
    ) -> Result<Kernel, String> {
        let warp = if gpu.starts_with("gfx9") { 64 } else { 32 };
        let nvidia = gpu.starts_with("sm_");
        let tid = if nvidia { "llvm.nvvm.read.ptx.sreg.tid.x" } else { "llvm.amdgcn.workitem.id.x" };
        let body = format!("  %tid = call i32 @{tid}()\n  %lane = urem i32 %tid, {warp}\n{body}");
        let triple = if nvidia { "nvptx64-nvidia-cuda" } else { "amdgcn-amd-amdhsa" };
        let text = format!(
            "target triple = \"{triple}\"\n\
             @shared = internal addrspace(3) global [{SHARED_BYTES} x i8] undef, align 1024\n\
             {functions}{}\ndefine void @{KERNEL}({parameters}) {{\n{body}\n  ret void\n}}\n",
            declarations(&body, functions)
        );
        let context = Box::new(Context::create());
        // SAFETY: the code drops the context after everything that borrows it.
        let lent: &'static Context = unsafe { &*ptr::from_ref(context.as_ref()) };
        let buffer = MemoryBuffer::create_from_memory_range_copy(text.as_bytes(), "kernel");
        let module = lent
            .create_module_from_ir(buffer)
            .unwrap_or_else(|error| panic!("{}\n{text}", error.to_string()));
        let ir = Ir::in_module(lent, module, features::NVPTX);
        let banks = TargetDesc::named(gpu).expect("a target").shared_banks;
        let gpu = Gpu { generation: Generation::of(gpu)?, warp, banks };
        Ok(Kernel { code: Code::of(context, ir, gpu, extent, SHARED_BYTES)? })
    }

    /// The kernel as if it were emitted for an instance with this contract.
    pub(super) fn emitted(self, abi: KernelAbi, tensor_maps: Vec<TensorMap>) -> SimtKernel {
        SimtKernel {
            code: self.code,
            abi,
            sites: Vec::new(),
            tensor_maps,
            blocks_per_tile: 1,
            has_order_of_grid: true,
        }
    }

    /// Runs blocks on arrays, named after the parameters.
    pub(super) fn run_blocks(
        &self,
        arrays: &mut [Vec<u32>],
        blocks: u64,
        timing: Timing,
    ) -> Result<Trace, Fault> {
        self.run_with_maps(arrays, &|_| Vec::new(), blocks, timing)
    }

    /// Runs blocks on arrays and then on tensor maps, which know where the arrays are.
    pub(super) fn run_with_maps(
        &self,
        arrays: &mut [Vec<u32>],
        maps: &dyn Fn(&[u64]) -> Vec<BoundMap>,
        blocks: u64,
        timing: Timing,
    ) -> Result<Trace, Fault> {
        let mut slots: Vec<u64> = arrays.iter_mut().map(|array| array.as_mut_ptr() as u64).collect();
        let names = ["a", "b", "c", "d"];
        let regions = arrays
            .iter()
            .zip(names)
            .zip(&slots)
            .map(|((array, name), &start)| Region::new(name, start, array.len() * 4, true));
        let regions = regions.collect();
        let maps: Vec<Encoded> =
            maps(&slots).iter().map(|map| Encoded::of(map).expect("a legal map")).collect();
        slots.extend(maps.iter().map(Encoded::address));
        slots.resize(8, 0);
        // SAFETY: there is a slot for each parameter, and the arrays are memory.
        let run = unsafe { self.code.run(&slots, regions, blocks, Mode { timing, counted: true }) };
        run.map_err(|error| match error {
            RunError::Fault(fault) => fault,
            other => panic!("{other}"),
        })
    }

    pub(super) fn run(&self, arrays: &mut [Vec<u32>]) -> Result<Trace, Fault> {
        self.run_blocks(arrays, 1, Timing::Late)
    }
}

/// Words whose first lies at a multiple of 16 bytes, as tensors' do.
pub(super) fn aligned(words: &[u32]) -> Vec<u32> {
    // Such an allocation comes at the latest after a few tries, which are kept till then.
    let mut kept = Vec::new();
    loop {
        let array = words.to_vec();
        if array.as_ptr().addr().is_multiple_of(16) {
            return array;
        }
        kept.push((array, vec![0u8; kept.len() + 1]));
    }
}

/// Runs one block that must be right; gives the arrays.
pub(super) fn results<const N: usize>(
    gpu: &str,
    threads: u32,
    body: &str,
    mut arrays: [Vec<u32>; N],
) -> [Vec<u32>; N] {
    let result = Kernel::new(gpu, threads, body).run(&mut arrays);
    result.unwrap_or_else(|fault| panic!("{fault}"));
    arrays
}

/// What is wrong with one block, whose arrays are of a thousand words.
pub(super) fn problem(gpu: &str, threads: u32, body: &str) -> Problem {
    let fault = fault(gpu, threads, body);
    fault.problem
}

pub(super) fn fault(gpu: &str, threads: u32, body: &str) -> Fault {
    let mut arrays = [vec![0; 1000], vec![0; 1000], vec![0; 1000]];
    Kernel::new(gpu, threads, body).run(&mut arrays).expect_err("something is wrong")
}

/// Whether one block of a kernel is right, with arrays of a thousand words.
pub(super) fn is_right(gpu: &str, threads: u32, body: &str) {
    results(gpu, threads, body, [vec![0; 1000], vec![0; 1000], vec![0; 1000]]);
}

/// Stores word `value` of each thread into `%b`.
pub(super) fn store_result(value: &str) -> String {
    format!(
        "  %result.at = getelementptr i32, ptr addrspace(1) %b, i32 %tid\n  \
         store i32 {value}, ptr addrspace(1) %result.at\n"
    )
}

/// Loads each thread's word of `%a` as `%x`.
pub(super) const LOAD: &str = "\
  %input.at = getelementptr i32, ptr addrspace(1) %a, i32 %tid
  %x = load i32, ptr addrspace(1) %input.at
";

/// Words that look random.
pub(super) fn words(count: usize, seed: u32) -> Vec<u32> {
    let mut state = seed.wrapping_mul(2_654_435_761).wrapping_add(12345);
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state
    };
    (0..count).map(|_| next()).collect()
}

/// Gives sums that somebody waited for the names `%{to}0`, `%{to}1`…: registers have them after any later wait.
pub(super) fn settled(sums: &[String], element: &str, to: &str) -> String {
    let ty = format!("{{ {} }}", vec![element; sums.len()].join(", "));
    let format = if element == "i32" { "s32" } else { "f32" };
    let operands: Vec<String> = sums.iter().map(|sum| format!("{element} {sum}")).collect();
    // So many groups may go on that this waits for none.
    let call = format!("@tile.wgmma.wait.99.{format}.{}({})", sums.len(), operands.join(", "));
    let part = |i: usize| format!("  %{to}{i} = extractvalue {ty} %{to}, {i}\n");
    format!("  %{to} = call {ty} {call}\n{}", (0..sums.len()).map(part).collect::<String>())
}

/// Each of so many threads copies its share of so many bytes at `%a` to `@shared`, of which `%tid` is its number.
pub(super) fn copy_to_shared(bytes: usize, threads: usize) -> String {
    let mut text = String::new();
    for i in 0..bytes / 16 / threads {
        text += &format!(
            "  %row{i} = add i32 %tid, {}\n  %byte{i} = mul i32 %row{i}, 16\n  \
             %from{i} = getelementptr i8, ptr addrspace(1) %a, i32 %byte{i}\n  \
             %v{i} = load <4 x i32>, ptr addrspace(1) %from{i}, align 4\n  \
             %to{i} = getelementptr i8, ptr addrspace(3) @shared, i32 %byte{i}\n  \
             store <4 x i32> %v{i}, ptr addrspace(3) %to{i}, align 16\n",
            i * threads
        );
    }
    text
}
