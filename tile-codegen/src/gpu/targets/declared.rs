//! Instructions of NVIDIA's that LLVM has no intrinsic for: the emitter calls a declaration whose name says which, and
//! the first step towards the back end makes inline PTX of it (`products/wgmma.rs` of products). The executor binds the same
//! names.
//!
//! * `tile.wgmma.m64n{N}k{K}.{f32|s32}.{A}.{B}.ss.{ka|ma}.{kb|nb}`: (i64 descriptor of A, i64 descriptor of B, i32
//!   whether to add, N/2 accumulators) → N/2 accumulators; `….rs.{kb|nb}` has four i32 with A's elements in place of
//!   A's descriptor (PTX ISA, "wgmma.mma_async").
//! * `tile.wgmma.wait.{G}.{f32|s32}.{N}`: (N accumulators) → N accumulators, when all products of the warp are complete
//!   but those of the G groups that were committed last (PTX ISA, "wgmma.wait_group").
//! * `tile.tcgen05.load.16x256b.x{N}.{f32|s32}`: (ptr to tensor memory) → 4·N sums, which are there: the load and its wait
//!   (PTX ISA, "tcgen05.ld", "tcgen05.wait::ld").
//! * `tile.prefetch.line`: (ptr); `tile.prefetch.range`: (ptr, i32 bytes) (PTX ISA, "prefetch",
//!   "cp.async.bulk.prefetch").
//! * `tile.send.b{32|64}`: (ptr in the cluster's shared memory, i32 or i64, ptr to the mbarrier there that counts the
//!   bytes) (PTX ISA, "st.async").
//! * `tile.store.…`, `tile.add.…`: [`crate::gpu::memory::scattered`].

use crate::emit::{Ir, Value};
use crate::gpu::memory::scattered;
use crate::gpu::pipeline::cluster::SEND;
use crate::gpu::products::wgmma;
use inkwell::attributes::{Attribute, AttributeLoc};
use inkwell::types::{BasicTypeEnum, FunctionType};
use inkwell::values::{
    BasicMetadataValueEnum, BasicValue, BasicValueEnum, CallSiteValue, FunctionValue, InstructionValue,
};
use tile_ir::DType;

/// The declarations that bring memory near.
pub(in crate::gpu) const PREFETCH_LINE: &str = "tile.prefetch.line";
pub(in crate::gpu) const PREFETCH_RANGE: &str = "tile.prefetch.range";

/// The format of sums that declarations name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::gpu) enum SumFormat {
    F32,
    S32,
}

impl SumFormat {
    /// That of sums of this format.
    pub(in crate::gpu) fn of(dtype: DType) -> SumFormat {
        if dtype.is_float() { SumFormat::F32 } else { SumFormat::S32 }
    }

    fn named(name: &str) -> Option<SumFormat> {
        [SumFormat::F32, SumFormat::S32].into_iter().find(|format| format.name() == name)
    }

    fn name(self) -> &'static str {
        match self {
            SumFormat::F32 => "f32",
            SumFormat::S32 => "s32",
        }
    }

    /// The inline assembly constraint of a register for a sum.
    fn register(self) -> &'static str {
        match self {
            SumFormat::F32 => "f",
            SumFormat::S32 => "r",
        }
    }

    /// The type of a sum.
    pub(in crate::gpu) fn ty<'c>(self, ir: &Ir<'c>) -> BasicTypeEnum<'c> {
        match self {
            SumFormat::F32 => ir.f32().into(),
            SumFormat::S32 => ir.int_type(32).into(),
        }
    }
}

/// The declaration that waits for products but so many groups, and gives so many of their sums.
pub(in crate::gpu) fn wait_name(going_on: u64, format: SumFormat, count: usize) -> String {
    format!("tile.wgmma.wait.{going_on}.{}.{count}", format.name())
}

/// The declaration that loads sums from tensor memory, of 16 rows and so many times 8 columns.
pub(in crate::gpu) fn load_of_sums(times: u64, format: SumFormat) -> String {
    format!("{LOAD_OF_SUMS}{times}.{}", format.name())
}

/// What the names of such begin with.
const LOAD_OF_SUMS: &str = "tile.tcgen05.load.16x256b.x";

/// Calls a declaration whose last `results` operands it gives back changed.
pub(in crate::gpu) fn call<'c>(
    ir: &Ir<'c>,
    name: &str,
    operands: &[Value<'c>],
    results: usize,
) -> Vec<Value<'c>> {
    let types: Vec<_> = operands.iter().map(|operand| operand.get_type()).collect();
    call_for(ir, name, operands, &types[types.len() - results..])
}

/// Calls a declaration that gives values of these types.
pub(in crate::gpu) fn call_for<'c>(
    ir: &Ir<'c>,
    name: &str,
    operands: &[Value<'c>],
    results: &[BasicTypeEnum<'c>],
) -> Vec<Value<'c>> {
    let function = ir.module.get_function(name).unwrap_or_else(|| {
        let given = ir.context.struct_type(results, false);
        let types: Vec<_> = operands.iter().map(|operand| operand.get_type().into()).collect();
        let function = ir.module.add_function(name, given.fn_type(&types, false), None);
        for attribute in ["convergent", "nounwind"] {
            let kind = Attribute::get_named_enum_kind_id(attribute);
            function.add_attribute(AttributeLoc::Function, ir.context.create_enum_attribute(kind, 0));
        }
        function
    });
    ir.parts(ir.call(function, operands).expect("it has results"), results.len() as u32)
}

/// Inline PTX.
pub(in crate::gpu) struct Assembly {
    pub(in crate::gpu) text: String,
    pub(in crate::gpu) constraints: String,
    pub(in crate::gpu) effect: Effect,
}

/// What else than its results there is of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::gpu) enum Effect {
    /// It touches any memory, and all threads of a warp must come to it together.
    Warp,
    /// Loads and stores may move past it, and it stays.
    Hint,
    /// It reads and writes what its operands point to.
    Writes,
}

impl Effect {
    /// LLVM's attribute that says so.
    fn attribute(self) -> (&'static str, u64) {
        match self {
            Effect::Warp => ("convergent", 0),
            Effect::Hint => ("memory", INACCESSIBLE_MEMORY),
            Effect::Writes => ("memory", ARGUMENT_MEMORY | INACCESSIBLE_MEMORY),
        }
    }
}

impl Assembly {
    /// Writes it where the builder stands; gives its results.
    pub(in crate::gpu) fn call<'c>(
        &self,
        ir: &Ir<'c>,
        ty: FunctionType<'c>,
        operands: &[Value<'c>],
    ) -> Option<Value<'c>> {
        let (text, constraints) = (self.text.clone(), self.constraints.clone());
        let statement = ir.context.create_inline_asm(ty, text, constraints, true, false, None, false);
        let operands: Vec<BasicMetadataValueEnum<'c>> =
            operands.iter().map(|&operand| operand.into()).collect();
        let call = ir.builder.build_indirect_call(ty, statement, &operands, "");
        let call = call.expect("the builder is positioned");
        for (name, value) in [("nounwind", 0), self.effect.attribute()] {
            let kind = Attribute::get_named_enum_kind_id(name);
            call.add_attribute(AttributeLoc::Function, ir.context.create_enum_attribute(kind, value));
        }
        call.try_as_basic_value().basic()
    }
}

/// LLVM's `memory(inaccessiblemem: readwrite)`: loads and stores may move past it, and it stays.
pub(in crate::gpu) const INACCESSIBLE_MEMORY: u64 = 0b1100;

/// LLVM's `memory(argmem: readwrite)`.
const ARGUMENT_MEMORY: u64 = 0b11;

/// Calls a declaration that gives nothing, which has these of LLVM's attributes.
pub(in crate::gpu) fn call_without_result<'c>(
    ir: &Ir<'c>,
    name: &str,
    operands: &[Value<'c>],
    attributes: &[(&str, u64)],
) {
    let function = ir.module.get_function(name).unwrap_or_else(|| {
        let types: Vec<_> = operands.iter().map(|operand| operand.get_type().into()).collect();
        let function = ir.module.add_function(name, ir.context.void_type().fn_type(&types, false), None);
        for &(attribute, value) in attributes {
            let kind = Attribute::get_named_enum_kind_id(attribute);
            function.add_attribute(AttributeLoc::Function, ir.context.create_enum_attribute(kind, value));
        }
        function
    });
    ir.call(function, operands);
}

/// Puts inline PTX in place of every call of a declaration above.
///
/// # Errors
/// A call of a `tile.` declaration that isn't one of them, in words.
pub(crate) fn expand(ir: &Ir<'_>) -> Result<(), String> {
    let (defined, declarations): (Vec<_>, Vec<_>) =
        ir.module.get_functions().partition(|function| function.count_basic_blocks() > 0);
    wgmma::expand(ir, &defined)?;
    for function in declarations {
        let name = function.get_name().to_string_lossy().into_owned();
        if !name.starts_with("tile.") {
            continue;
        }
        if !wgmma::is_product(&name) {
            let assembly = assembly(&name).ok_or_else(|| format!("no PTX instruction is called `{name}`"))?;
            for (instruction, call) in calls(&defined, function) {
                replace(ir, function.get_type(), instruction, call, &assembly);
            }
        }
        // SAFETY: nothing calls it any more.
        unsafe { function.delete() };
    }
    Ok(())
}

/// Puts something else in place of every call of the declarations that are known by their names, which are removed.
pub(in crate::gpu) fn replace_calls<'c, K>(
    ir: &Ir<'c>,
    known: impl Fn(&str) -> Option<K>,
    put: impl Fn(InstructionValue<'c>, &K),
) {
    let (defined, declarations): (Vec<_>, Vec<_>) =
        ir.module.get_functions().partition(|function| function.count_basic_blocks() > 0);
    for function in declarations {
        let Some(known) = known(&function.get_name().to_string_lossy()) else { continue };
        for (call, _) in calls(&defined, function) {
            ir.builder.position_before(&call);
            put(call, &known);
            call.erase_from_basic_block();
        }
        // SAFETY: nothing calls it any more.
        unsafe { function.delete() };
    }
}

/// The calls of a function in others.
pub(in crate::gpu) fn calls<'c>(
    functions: &[FunctionValue<'c>],
    callee: FunctionValue<'c>,
) -> Vec<(InstructionValue<'c>, CallSiteValue<'c>)> {
    let blocks = functions.iter().flat_map(|function| function.get_basic_blocks());
    let instructions = blocks.flat_map(|block| block.get_instructions().collect::<Vec<_>>());
    instructions
        .filter_map(|instruction| {
            let call = CallSiteValue::try_from(instruction).ok()?;
            (call.get_called_fn_value() == Some(callee)).then_some((instruction, call))
        })
        .collect()
}

fn replace<'c>(
    ir: &Ir<'c>,
    ty: FunctionType<'c>,
    instruction: InstructionValue<'c>,
    call: CallSiteValue<'c>,
    assembly: &Assembly,
) {
    ir.builder.position_before(&instruction);
    let operand = |i| instruction.get_operand(i).expect("a call has its arguments");
    let operands: Vec<Value<'c>> =
        (0..call.count_arguments()).map(|i| operand(i).expect_value("an argument is a value")).collect();
    if let Some(result) = assembly.call(ir, ty, &operands) {
        replace_uses(instruction, result);
    }
    instruction.erase_from_basic_block();
}

pub(in crate::gpu) fn replace_uses<'c>(instruction: InstructionValue<'c>, result: BasicValueEnum<'c>) {
    let result = result.as_instruction_value().expect("the result isn't a constant");
    instruction.replace_all_uses_with(&result);
}

fn assembly(name: &str) -> Option<Assembly> {
    let statement = |text: &str, constraints: &str| {
        Some(Assembly { text: text.to_owned(), constraints: constraints.to_owned(), effect: Effect::Hint })
    };
    match name {
        PREFETCH_LINE => statement("prefetch.global.L2 [$0];", "l"),
        PREFETCH_RANGE => statement("cp.async.bulk.prefetch.L2.global [$0], $1;", "l,r"),
        _ if name.starts_with(LOAD_OF_SUMS) => loaded_sums(&name[LOAD_OF_SUMS.len()..]),
        _ if name.starts_with(SEND) => send(&name[SEND.len()..]),
        _ => match name.strip_prefix("tile.wgmma.wait.") {
            Some(sums) => wait(sums),
            None => scattered::assembly(name),
        },
    }
}

/// The statement that sends a word of so many bits.
fn send(bits: &str) -> Option<Assembly> {
    let register = match bits {
        "32" => "r",
        "64" => "l",
        _ => return None,
    };
    let text = format!("st.async.shared::cluster.mbarrier::complete_tx::bytes.b{bits} [$0], $1, [$2];");
    Some(Assembly { text, constraints: format!("l,{register},l"), effect: Effect::Writes })
}

/// The statement that loads sums from tensor memory and waits for them.
fn loaded_sums(form: &str) -> Option<Assembly> {
    let (times, format) = form.split_once('.')?;
    let times: usize = times.parse().ok().filter(|times: &usize| times.is_power_of_two() && *times <= 32)?;
    let register = format!("={}", SumFormat::named(format)?.register());
    let names: Vec<String> = (0..4 * times).map(|i| format!("${i}")).collect();
    let text = format!(
        "tcgen05.ld.sync.aligned.16x256b.x{times}.b32 {{{}}}, [${}]; tcgen05.wait::ld.sync.aligned;",
        names.join(", "),
        names.len()
    );
    let constraints = [vec![register; names.len()], vec!["r".to_owned()]].concat().join(",");
    Some(Assembly { text, constraints, effect: Effect::Warp })
}

/// The statement that waits, through which the sums go.
fn wait(sums: &str) -> Option<Assembly> {
    let (going_on, sums) = sums.split_once('.')?;
    let going_on: u64 = going_on.parse().ok()?;
    let (format, count) = sums.split_once('.')?;
    let count: usize = count.parse().ok().filter(|&count| count > 0)?;
    let register = SumFormat::named(format)?.register();
    let mut constraints = vec![format!("={register}"); count];
    constraints.extend((0..count).map(|i| i.to_string()));
    let text = format!("wgmma.wait_group.sync.aligned {going_on};");
    Some(Assembly { text, constraints: constraints.join(","), effect: Effect::Warp })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gpu::targets::features;
    use crate::llvm::Machine;
    use inkwell::context::Context;
    use inkwell::memory_buffer::MemoryBuffer;
    use inkwell::targets::FileType;
    use std::process::Command;

    /// A kernel that calls a declaration once and stores what it gives.
    fn kernel(name: &str, operands: &[&str], accumulator: &str, columns: usize) -> String {
        let count = columns / 2;
        let ty = format!("{{ {} }}", vec![accumulator; count].join(", "));
        let mut types = operands.to_vec();
        types.extend(vec![accumulator; count]);
        let zero = if accumulator == "i32" { "0" } else { "0.0" };
        let mut values: Vec<String> =
            operands.iter().enumerate().map(|(i, ty)| format!("{ty} %p{i}")).collect();
        values.extend(vec![format!("{accumulator} {zero}"); count]);
        let parameters: Vec<String> =
            operands.iter().enumerate().map(|(i, ty)| format!("{ty} %p{i}")).collect();
        let stores: String = (0..count)
            .map(|i| {
                format!(
                    "  %d{i} = extractvalue {ty} %d, {i}\n  \
                     %at{i} = getelementptr i32, ptr addrspace(1) %out, i32 {i}\n  \
                     store {accumulator} %d{i}, ptr addrspace(1) %at{i}\n"
                )
            })
            .collect();
        format!(
            "declare void @tile.prefetch.line(ptr addrspace(1))\n\
             declare void @tile.prefetch.range(ptr addrspace(1), i32)\n\
             declare void @llvm.nvvm.wgmma.fence.sync.aligned()\n\
             declare void @llvm.nvvm.wgmma.commit_group.sync.aligned()\n\
             declare void @llvm.nvvm.wgmma.wait_group.sync.aligned(i64)\n\
             declare {ty} @{name}({})\n\
             define ptx_kernel void @k({}, ptr addrspace(1) %out) \"nvvm.reqntid\"=\"128,1,1\" {{\n  \
             call void @tile.prefetch.line(ptr addrspace(1) %out)\n  \
             call void @tile.prefetch.range(ptr addrspace(1) %out, i32 64)\n  \
             call void @llvm.nvvm.wgmma.fence.sync.aligned()\n  %d = call {ty} @{name}({})\n  \
             call void @llvm.nvvm.wgmma.commit_group.sync.aligned()\n  \
             call void @llvm.nvvm.wgmma.wait_group.sync.aligned(i64 0)\n{stores}  ret void\n}}\n",
            types.join(", "),
            parameters.join(", "),
            values.join(", ")
        )
    }

    fn ptx(text: &str) -> Result<String, String> {
        let context = Context::create();
        let machine = Machine::nvptx("sm_90a", "").unwrap();
        let buffer = MemoryBuffer::create_from_memory_range_copy(text.as_bytes(), "kernel");
        let module = context.create_module_from_ir(buffer).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let ir = Ir::in_module(&context, module, features::NVPTX);
        machine.prepare(&ir.module);
        expand(&ir)?;
        machine.optimize("k", &ir.module).unwrap();
        let text = machine.emit("k", &ir.module, FileType::Assembly).unwrap();
        Ok(String::from_utf8(text).unwrap())
    }

    const BOTH_SHARED: [&str; 3] = ["i64", "i64", "i32"];
    const A_IN_REGISTERS: [&str; 6] = ["i32", "i32", "i32", "i32", "i64", "i32"];

    /// Shapes of every kind, with the operands besides accumulators.
    fn shapes() -> Vec<(&'static str, &'static [&'static str], &'static str, usize)> {
        vec![
            ("tile.wgmma.m64n8k16.f32.bf16.bf16.ss.ka.kb", &BOTH_SHARED, "float", 8),
            ("tile.wgmma.m64n128k16.f32.bf16.bf16.ss.ma.nb", &BOTH_SHARED, "float", 128),
            ("tile.wgmma.m64n256k16.f32.f16.f16.ss.ka.nb", &BOTH_SHARED, "float", 256),
            ("tile.wgmma.m64n64k16.f32.bf16.bf16.rs.nb", &A_IN_REGISTERS, "float", 64),
            ("tile.wgmma.m64n24k8.f32.tf32.tf32.ss.ka.kb", &BOTH_SHARED, "float", 24),
            ("tile.wgmma.m64n32k32.f32.e4m3.e5m2.rs.kb", &A_IN_REGISTERS, "float", 32),
            ("tile.wgmma.m64n96k32.s32.u8.u8.ss.ka.kb", &BOTH_SHARED, "i32", 96),
        ]
    }

    #[test]
    fn declarations_become_instructions() {
        for (name, operands, accumulator, columns) in shapes() {
            let text = ptx(&kernel(name, operands, accumulator, columns)).unwrap();
            let shape = name.strip_prefix("tile.wgmma.").unwrap();
            let end = shape.find(".ss").or_else(|| shape.find(".rs")).unwrap();
            let instruction = format!("wgmma.mma_async.sync.aligned.{}", &shape[..end]);
            assert_eq!(text.matches(&instruction).count(), 1, "{text}");
            assert!(
                text.contains("prefetch.global.L2") && text.contains("cp.async.bulk.prefetch.L2"),
                "{text}"
            );
            assert!(!text.contains("tile."), "{text}");
        }
    }

    /// With the assembler whose path `TILE_PTXAS` is; elsewhere the check says that it did nothing.
    #[test]
    fn the_assembler_takes_them() {
        let Some(assembler) = std::env::var_os("TILE_PTXAS") else {
            println!("TILE_PTXAS isn't set: nothing is assembled");
            return;
        };
        let folder = std::env::temp_dir().join(format!("tile-declared-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        for (i, (name, operands, accumulator, columns)) in shapes().into_iter().enumerate() {
            let source = folder.join(format!("{i}.ptx"));
            std::fs::write(&source, ptx(&kernel(name, operands, accumulator, columns)).unwrap()).unwrap();
            let output = Command::new(&assembler)
                .args(["-arch=sm_90a", "-o"])
                .arg(folder.join(format!("{i}.cubin")))
                .arg(&source)
                .output()
                .unwrap();
            assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn unknown_names_are_refused() {
        for name in [
            "tile.wgmma.m64n12k16.f32.bf16.bf16.ss.ka.kb",
            "tile.wgmma.m64n8k8.f32.tf32.tf32.ss.ma.kb",
            "tile.wgmma.m64n8k16.f32.bf16.bf16.sr.ka.kb",
        ] {
            assert!(ptx(&kernel(name, &BOTH_SHARED, "float", 8)).is_err(), "{name}");
        }
    }
}
