//! Statements beside what LLVM's code generator makes of the same instructions, and what becomes one.

use super::write;
use crate::emit::Ir;
use crate::gpu::features;
use crate::llvm::Machine;
use inkwell::context::Context;
use inkwell::memory_buffer::MemoryBuffer;
use inkwell::targets::FileType;
use std::process::Command;

/// Instructions that statements may have, with the type of what they give.
const INSTRUCTIONS: &[(&str, &str)] = &[
    ("fadd float %a, %b", "float"),
    ("fsub float %a, %b", "float"),
    ("fmul float %a, %b", "float"),
    ("fneg float %a", "float"),
    ("select i1 %c, float %a, float 0x3FB99999A0000000", "float"),
    ("select i1 %c, i32 %u, i32 -3", "i32"),
    ("and i32 %u, 252645135", "i32"),
    ("or i32 %u, %v", "i32"),
    ("xor i32 %u, 2147483647", "i32"),
    ("shl i32 %u, 5", "i32"),
    ("lshr i32 %u, %v", "i32"),
    ("call float @llvm.fma.f32(float %a, float 0xBFE0000000000000, float %b)", "float"),
    ("call float @llvm.nvvm.fma.rn.sat.f(float %a, float %b, float %a)", "float"),
    ("call float @llvm.fabs.f32(float %a)", "float"),
    ("call float @llvm.minnum.f32(float %a, float %b)", "float"),
    ("call float @llvm.maxnum.f32(float %a, float %b)", "float"),
    ("call float @llvm.minimumnum.f32(float %a, float 1.0)", "float"),
    ("call float @llvm.maximumnum.f32(float %a, float %b)", "float"),
    ("call float @llvm.minimum.f32(float %a, float %b)", "float"),
    ("call float @llvm.maximum.f32(float %a, float %b)", "float"),
    ("call float @llvm.nvvm.ex2.approx.ftz.f32(float %a)", "float"),
    ("call float @llvm.nvvm.rcp.approx.ftz.f(float %a)", "float"),
    ("call <2 x bfloat> @llvm.nvvm.ff2bf16x2.rn(float %a, float %b)", "<2 x bfloat>"),
    ("call <2 x half> @llvm.nvvm.ff2f16x2.rn(float %a, float %b)", "<2 x half>"),
    ("fcmp oeq float %a, %b", "i1"),
    ("fcmp ogt float %a, %b", "i1"),
    ("fcmp oge float %a, 0x3FF3333340000000", "i1"),
    ("fcmp olt float %a, %b", "i1"),
    ("fcmp ole float %a, %b", "i1"),
    ("fcmp one float %a, %b", "i1"),
    ("fcmp ord float %a, %b", "i1"),
    ("fcmp uno float %a, %b", "i1"),
    ("fcmp ueq float %a, %b", "i1"),
    ("fcmp ugt float %a, %b", "i1"),
    ("fcmp uge float %a, %b", "i1"),
    ("fcmp ult float %a, %b", "i1"),
    ("fcmp ule float %a, %b", "i1"),
    ("fcmp une float %a, %b", "i1"),
];

/// A kernel with this body, which ends in `%y` of a type.
fn kernel(body: &str, ty: &str) -> String {
    let float = |name: &str, count: usize| {
        format!("declare float @llvm.{name}({})\n", vec!["float"; count].join(", "))
    };
    let declared = [
        ("fma.f32", 3),
        ("nvvm.fma.rn.sat.f", 3),
        ("fabs.f32", 1),
        ("minnum.f32", 2),
        ("maxnum.f32", 2),
        ("minimumnum.f32", 2),
        ("maximumnum.f32", 2),
        ("minimum.f32", 2),
        ("maximum.f32", 2),
        ("nvvm.ex2.approx.ftz.f32", 1),
        ("nvvm.rcp.approx.ftz.f", 1),
    ];
    let declared: String = declared.into_iter().map(|(name, count)| float(name, count)).collect();
    format!(
        "{declared}declare <2 x bfloat> @llvm.nvvm.ff2bf16x2.rn(float, float)\n\
         declare <2 x half> @llvm.nvvm.ff2f16x2.rn(float, float)\n\
         declare void @llvm.nvvm.barrier.cta.sync.aligned.all(i32)\n\
         define ptx_kernel void @k(float %a, float %b, i1 %c, i32 %u, i32 %v, ptr addrspace(1) %out) {{\n\
         {body}  store {ty} %y, ptr addrspace(1) %out\n  ret void\n}}\n"
    )
}

/// A kernel with an instruction, and others that make a statement of it.
fn kernel_of(instruction: &str, ty: &str) -> String {
    let rcp = "call float @llvm.nvvm.rcp.approx.ftz.f(float";
    let (rest, given) = match ty {
        "float" => (format!("  %y = {rcp} %x)\n"), "float"),
        "i32" => (format!("  %f = bitcast i32 %x to float\n  %y = {rcp} %f)\n"), "float"),
        "i1" => ("  %y = select i1 %x, float %a, float %b\n".to_owned(), "float"),
        pair => (format!("  %y = bitcast {pair} %x to i32\n"), "i32"),
    };
    kernel(&format!("  %x = {instruction}\n{rest}"), given)
}

/// The module with its arithmetic in statements, or as it is, as text of LLVM's and as PTX.
fn compiled(text: &str, in_statements: bool) -> (String, String) {
    let context = Context::create();
    let machine = Machine::nvptx("sm_90a", "+ptx80").unwrap();
    let buffer = MemoryBuffer::create_from_memory_range_copy(text.as_bytes(), "kernel");
    let module = context.create_module_from_ir(buffer).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let ir = Ir::in_module(&context, module, features::NVPTX);
    machine.prepare(&ir.module);
    if in_statements {
        write(&ir);
        ir.module.verify().unwrap();
    }
    let ptx = machine.emit("k", &ir.module, FileType::Assembly).unwrap();
    (ir.module.to_string(), String::from_utf8(ptx).unwrap())
}

/// The instructions of PTX, but for those that name registers and move what they hold, each with the numbers among its
/// operands.
fn instructions(ptx: &str) -> Vec<String> {
    let other =
        ["mov.", "ld.param", "st.", "ret", "cvta.", "and.pred", "setp.eq.b32", "setp.ne.b32", "and.b16", "."];
    let lines = ptx.lines().skip_while(|line| !line.starts_with('{')).map(str::trim);
    let lines = lines.filter(|line| line.ends_with(';') && !line.starts_with(['{', '/']));
    let lines = lines.filter(|line| !other.iter().any(|other| line.starts_with(other)));
    let is_number = |operand: &&str| operand.starts_with("0f") || operand.parse::<i64>().is_ok();
    let mut lines: Vec<String> = lines
        .map(|line| {
            let mut words = line.split([' ', '\t', ',', ';']).filter(|word| !word.is_empty());
            let name = words.next().unwrap_or_default();
            std::iter::once(name).chain(words.filter(is_number)).collect::<Vec<_>>().join(" ")
        })
        .collect();
    lines.sort();
    lines
}

#[test]
fn instructions_are_called_as_llvm_calls_them() {
    for (instruction, ty) in INSTRUCTIONS {
        let text = kernel_of(instruction, ty);
        let ((llvm, ours), (_, theirs)) = (compiled(&text, true), compiled(&text, false));
        assert_eq!(llvm.matches(" asm ").count(), 1, "{llvm}");
        assert!(!instructions(&theirs).is_empty(), "{theirs}");
        assert_eq!(instructions(&ours), instructions(&theirs), "{instruction}\n{ours}\n{theirs}");
    }
}

/// With the assembler whose path `TILE_PTXAS` is; elsewhere the check says that it did nothing.
#[test]
fn the_assembler_takes_them() {
    let Some(assembler) = std::env::var_os("TILE_PTXAS") else {
        println!("TILE_PTXAS isn't set: nothing is assembled");
        return;
    };
    let folder = std::env::temp_dir().join(format!("tile-statements-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    for (i, (instruction, ty)) in INSTRUCTIONS.iter().enumerate() {
        let source = folder.join(format!("{i}.ptx"));
        std::fs::write(&source, compiled(&kernel_of(instruction, ty), true).1).unwrap();
        let output = Command::new(&assembler)
            .args(["-arch=sm_90a", "-o"])
            .arg(folder.join(format!("{i}.cubin")))
            .arg(&source)
            .output()
            .unwrap();
        assert!(output.status.success(), "{instruction}: {}", String::from_utf8_lossy(&output.stderr));
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

/// The statements of a kernel with this body, each by the names of its instructions.
fn statements(body: &str) -> Vec<String> {
    let (llvm, _) = compiled(&kernel(body, "float"), true);
    let statements = llvm.lines().filter_map(|line| line.split(" asm \"").nth(1)?.split('"').next());
    let names = |statement: &str| {
        let lines = statement.split("\\0A\\09").skip(1).filter_map(|line| line.split_once('.'));
        lines.map(|(name, _)| name.to_owned()).collect::<Vec<_>>().join(" ")
    };
    statements.map(names).collect()
}

#[test]
fn what_leads_to_one_value_is_one_statement() {
    // `%x` is used twice, by what leads to the same value.
    let body = "  %x = fadd float %a, %b\n  %s = fmul float %x, %x\n  %y = fmul float %s, %x\n";
    assert_eq!(statements(body), ["add mul mul"]);
}

#[test]
fn what_two_values_need_is_a_statement_of_its_own() {
    let body = "  %x = fadd float %a, %b\n  %z = fmul float %x, %a\n  %s = fneg float %z\n  \
                %t = fmul float %z, %b\n  %n = fneg float %t\n  %y = fmul float %s, %b\n  \
                store float %n, ptr addrspace(1) %out\n";
    assert_eq!(statements(body), ["add mul", "mul neg", "neg mul"]);
}

#[test]
fn a_statement_moves_past_nothing_that_acts() {
    let x = "  %x = fadd float %a, %b\n  %s = fmul float %x, %x\n";
    let y = "  %t = fneg float %s\n  %y = fmul float %t, %x2\n  \n";
    let barrier = "  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)\n";
    let straight = [x, y].concat().replace("%x2", "%b");
    assert_eq!(statements(&straight), ["add mul neg mul"]);
    let parted = [x, barrier, y].concat().replace("%x2", "%b");
    assert_eq!(statements(&parted), ["add mul", "neg mul"]);
}

#[test]
fn addresses_and_branches_stay_with_llvm() {
    let body = "  %w = shl i32 %u, 2\n  %o = or i32 %w, 1\n  %at = getelementptr float, ptr addrspace(1) %out, i32 %o\n  \
                %y = load float, ptr addrspace(1) %at\n";
    assert!(statements(body).is_empty());
    let body = "  %x = fneg float %a\n  %less = fcmp olt float %x, %b\n  br i1 %less, label %end, label %more\n\
                more:\n  br label %end\nend:\n  %y = phi float [ %x, %0 ], [ %b, %more ]\n";
    assert!(statements(body).is_empty());
}
