//! Products of warpgroups as inline PTX (PTX ISA, "wgmma.mma_async"). Knows the names of `targets/declared.rs`'s products.
//!
//! Products that follow each other with nothing but arithmetic between them become one statement: what one of them adds
//! to the sums of another is then neither a result nor an operand. Each sum of a statement is a value for LLVM, and a
//! tile's depth takes several products of up to 128 sums each, so that most of a kernel's instructions would be names for
//! sums on their way from one product to the next.
//!
//! Invariant: the instructions of a statement are in the order of the calls that it stands for.

use crate::emit::{Ir, Value};
use crate::gpu::targets::declared::{Assembly, Effect};
use inkwell::llvm_sys::prelude::LLVMValueRef;
use inkwell::types::BasicTypeEnum;
use inkwell::values::{
    AnyValue, AnyValueEnum, AsValueRef, BasicValue, CallSiteValue, FunctionValue, InstructionOpcode,
    InstructionValue,
};
use std::collections::HashMap;
use std::ops::Range;
use tile_ir::target::wgmma_has_columns;

/// What the names of products begin with.
const PREFIX: &str = "tile.wgmma.m64";

/// What a product's name says.
struct Form {
    /// The instruction without operands.
    instruction: String,
    /// What follows its operands: scales of A and B, then whether they are transposed, which only 16-bit elements can be.
    modifiers: String,
    /// The sums that a thread holds.
    sums: usize,
    /// Operands that tell the left factor.
    left: usize,
    is_integer: bool,
}

impl Form {
    /// `None` where no instruction is called so.
    fn of(name: &str) -> Option<Form> {
        let parts: Vec<&str> = name.strip_prefix("tile.wgmma.")?.split('.').collect();
        let [shape, result, a, b, from, majors @ ..] = parts.as_slice() else { return None };
        let columns: usize = shape.strip_prefix("m64n")?.split('k').next()?.parse().ok()?;
        let is_integer = *result == "s32";
        if !wgmma_has_columns(columns as u64, is_integer) {
            return None;
        }
        let (in_registers, a_major, b_major) = match (*from, majors) {
            ("ss", [a_major, b_major]) => (false, *a_major, *b_major),
            ("rs", [b_major]) => (true, "ka", *b_major),
            _ => return None,
        };
        let transposed = |major: &str| match major {
            "ka" | "kb" => Some(0),
            "ma" | "nb" => Some(1),
            _ => None,
        };
        let (a_major, b_major) = (transposed(a_major)?, transposed(b_major)?);
        let has_halves = ["f16", "bf16"].contains(a);
        if !has_halves && a_major + b_major != 0 {
            return None;
        }
        let modifiers = match (is_integer, has_halves, in_registers) {
            (true, ..) => String::new(),
            (false, true, false) => format!(", 1, 1, {a_major}, {b_major}"),
            (false, true, true) => format!(", 1, 1, {b_major}"),
            (false, false, _) => ", 1, 1".to_owned(),
        };
        let instruction = format!("wgmma.mma_async.sync.aligned.{shape}.{result}.{a}.{b}");
        let left = if in_registers { 4 } else { 1 };
        Some(Form { instruction, modifiers, sums: columns / 2, left, is_integer })
    }

    /// The register class of a sum.
    fn sum(&self) -> &'static str {
        if self.is_integer { "r" } else { "f" }
    }
}

/// A call of a product.
struct Product<'c> {
    form: Form,
    /// What it takes besides sums: the factors, and whether to add.
    operands: Vec<Value<'c>>,
    /// The number of its chain.
    chain: usize,
}

/// Products that add to each other's sums.
struct Chain<'c> {
    /// The sums that the first one adds to.
    first: Vec<Value<'c>>,
    register: &'static str,
    /// The number of the last product's call.
    last: usize,
}

/// Products that follow each other.
#[derive(Default)]
struct Run<'c> {
    calls: Vec<InstructionValue<'c>>,
    products: Vec<Product<'c>>,
    chains: Vec<Chain<'c>>,
    /// Parts of what calls give: the call's number, and the sum's.
    parts: HashMap<LLVMValueRef, (usize, usize)>,
    /// The instructions that take these parts from what calls give.
    extracts: Vec<InstructionValue<'c>>,
}

/// Puts inline PTX in place of every product.
///
/// # Errors
/// A name that no instruction has, in words.
pub(in crate::gpu) fn expand<'c>(ir: &Ir<'c>, functions: &[FunctionValue<'c>]) -> Result<(), String> {
    for block in functions.iter().flat_map(|function| function.get_basic_blocks()) {
        let mut run = Run::default();
        for instruction in block.get_instructions().collect::<Vec<_>>() {
            match product_name(instruction) {
                Some(name) => {
                    let form =
                        Form::of(&name).ok_or_else(|| format!("no PTX instruction is called `{name}`"))?;
                    if !run.takes(instruction, &form) {
                        std::mem::take(&mut run).finish(ir);
                    }
                    run.push(instruction, form);
                }
                None if run.passes(instruction) => {}
                None => std::mem::take(&mut run).finish(ir),
            }
        }
        run.finish(ir);
    }
    Ok(())
}

/// Whether a declaration is of a product.
pub(in crate::gpu) fn is_product(name: &str) -> bool {
    name.starts_with(PREFIX)
}

/// The name of the product that an instruction calls.
fn product_name(instruction: InstructionValue<'_>) -> Option<String> {
    let callee = CallSiteValue::try_from(instruction).ok()?.get_called_fn_value()?;
    let name = callee.get_name().to_str().ok()?;
    is_product(name).then(|| name.to_owned())
}

fn operands<'c>(instruction: InstructionValue<'c>, range: Range<u32>) -> Vec<Value<'c>> {
    let operand = |i| instruction.get_operand(i).expect("it has this operand");
    range.map(|i| operand(i).expect_value("a number")).collect()
}

/// The instructions that take sums from what a call gives, which nothing else does anything with.
fn parts<'c>(call: InstructionValue<'c>) -> impl Iterator<Item = InstructionValue<'c>> {
    let uses = std::iter::successors(call.get_first_use(), |part| part.get_next_use());
    uses.map(|part| {
        let part = match part.get_user().as_any_value_enum() {
            AnyValueEnum::FloatValue(part) => part.as_instruction(),
            AnyValueEnum::IntValue(part) => part.as_instruction(),
            _ => None,
        };
        part.expect("a product's sums are taken apart")
    })
}

impl<'c> Run<'c> {
    /// The call and the sum that a value is, if it is a part of what a call of the run gives.
    fn part(&self, value: Value<'c>) -> Option<(usize, usize)> {
        self.parts.get(&value.as_value_ref()).copied()
    }

    /// The chain whose last product has exactly these sums, which nobody else looks at.
    fn chain_of(&self, sums: &[Value<'c>]) -> Option<usize> {
        let (call, _) = self.part(*sums.first()?)?;
        let chain = self.products[call].chain;
        let is_passed_on = |(i, &sum): (usize, &Value<'c>)| {
            let used = sum.as_instruction_value().and_then(|sum| sum.get_first_use());
            self.part(sum) == Some((call, i)) && used.is_some_and(|used| used.get_next_use().is_none())
        };
        let all = sums.len() == self.chains[chain].first.len() && sums.iter().enumerate().all(is_passed_on);
        (all && self.chains[chain].last == call).then_some(chain)
    }

    /// The sums that a call adds to.
    fn sums(call: InstructionValue<'c>, form: &Form) -> Vec<Value<'c>> {
        let first = form.left as u32 + 2;
        operands(call, first..first + form.sums as u32)
    }

    /// Whether a product can be in one statement with those before it.
    fn takes(&self, call: InstructionValue<'c>, form: &Form) -> bool {
        let sums = Run::sums(call, form);
        self.chain_of(&sums).is_some() || !sums.iter().any(|&sum| self.part(sum).is_some())
    }

    fn push(&mut self, call: InstructionValue<'c>, form: Form) {
        let (number, sums) = (self.calls.len(), Run::sums(call, &form));
        let chain = match self.chain_of(&sums) {
            Some(chain) => chain,
            None => {
                self.chains.push(Chain { first: sums, register: form.sum(), last: number });
                self.chains.len() - 1
            }
        };
        self.chains[chain].last = number;
        for extract in parts(call) {
            let sum = extract.get_indices()[0] as usize;
            self.parts.insert(extract.as_value_ref(), (number, sum));
            self.extracts.push(extract);
        }
        let operands = operands(call, 0..form.left as u32 + 2);
        self.products.push(Product { form, operands, chain });
        self.calls.push(call);
    }

    /// Whether an instruction may stand between products of one statement: it is a part of what one gives, or arithmetic on
    /// other values.
    fn passes(&self, instruction: InstructionValue<'c>) -> bool {
        use InstructionOpcode as Opcode;
        match instruction.get_opcode() {
            Opcode::ExtractValue => true,
            Opcode::Add
            | Opcode::Or
            | Opcode::And
            | Opcode::Shl
            | Opcode::LShr
            | Opcode::ZExt
            | Opcode::Trunc => {
                let mut operands = instruction.get_operands().flatten().filter_map(|operand| operand.value());
                !operands.any(|operand| self.part(operand).is_some())
            }
            _ => false,
        }
    }

    /// Puts the statement in place of the calls.
    fn finish(self, ir: &Ir<'c>) {
        let Some(&last) = self.calls.last() else { return };
        ir.builder.position_before(&last);
        let mut firsts = vec![0];
        for chain in &self.chains {
            firsts.push(firsts[firsts.len() - 1] + chain.first.len());
        }
        let (assembly, operands) = self.statement(&firsts);
        let results: Vec<BasicTypeEnum<'c>> =
            self.chains.iter().flat_map(|chain| &chain.first).map(|sum| sum.get_type()).collect();
        let types: Vec<_> = operands.iter().map(|operand| operand.get_type().into()).collect();
        let ty = ir.context.struct_type(&results, false).fn_type(&types, false);
        let given = assembly.call(ir, ty, &operands).expect("a statement gives its sums");
        let sums = ir.parts(given, results.len() as u32);
        for &extract in &self.extracts {
            let (call, sum) = self.parts[&extract.as_value_ref()];
            let chain = self.products[call].chain;
            if self.chains[chain].last == call {
                let new = sums[firsts[chain] + sum]
                    .as_instruction_value()
                    .expect("a part of a statement's results");
                extract.replace_all_uses_with(&new);
            }
        }
        // Those of later products are operands of none any more when it is the turn of earlier ones.
        for (number, call) in self.calls.iter().enumerate().rev() {
            let own = self.extracts.iter().filter(|extract| self.parts[&extract.as_value_ref()].0 == number);
            own.for_each(|extract| extract.erase_from_basic_block());
            call.erase_from_basic_block();
        }
    }

    /// The statement, in which a chain's sums are operands from its number in `firsts` on, and what it takes.
    fn statement(&self, firsts: &[usize]) -> (Assembly, Vec<Value<'c>>) {
        let registers: Vec<&str> =
            self.chains.iter().flat_map(|chain| chain.first.iter().map(|_| chain.register)).collect();
        let mut constraints: Vec<String> = registers.iter().map(|register| format!("={register}")).collect();
        let (mut operands, mut text) = (Vec::new(), vec!["{ .reg .pred p;".to_owned()]);
        for product in &self.products {
            let (adds, factors) = product.operands.split_last().expect("whether to add is the last operand");
            let mut name = |operand: Value<'c>| {
                constraints.push(register_of(operand).to_owned());
                operands.push(operand);
                format!("${}", registers.len() + operands.len() - 1)
            };
            let mut names: Vec<String> = factors.iter().map(|&factor| name(factor)).collect();
            let known = adds.into_int_value().get_zero_extended_constant();
            names.push(known.map_or_else(|| name(*adds), |adds| adds.to_string()));
            text.push(product.instruction(firsts[product.chain], &names));
        }
        constraints.extend((0..registers.len()).map(|i| i.to_string()));
        operands.extend(self.chains.iter().flat_map(|chain| chain.first.iter().copied()));
        let text = text.join(" ") + " }";
        (Assembly { text, constraints: constraints.join(","), effect: Effect::Warp }, operands)
    }
}

/// The register class of an operand that is no sum: a descriptor, or a word.
fn register_of(operand: Value<'_>) -> &'static str {
    if operand.into_int_value().get_type().get_bit_width() == 64 { "l" } else { "r" }
}

impl Product<'_> {
    /// Its instructions, with the number of the first sum and what the other operands are called.
    fn instruction(&self, first_sum: usize, operands: &[String]) -> String {
        let form = &self.form;
        let sums: Vec<String> = (first_sum..first_sum + form.sums).map(|i| format!("${i}")).collect();
        let (left, [right, adds]) = operands.split_at(form.left) else { unreachable!() };
        let left = if left.len() > 1 { format!("{{{}}}", left.join(", ")) } else { left[0].clone() };
        format!(
            "setp.ne.b32 p, {adds}, 0; {} {{{}}}, {left}, {right}, p{};",
            form.instruction,
            sums.join(", "),
            form.modifiers
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gpu::targets::features;
    use inkwell::context::Context;
    use inkwell::memory_buffer::MemoryBuffer;
    use tile_test_edit::Edit;

    const NAME: &str = "tile.wgmma.m64n8k16.f32.bf16.bf16.ss.ka.kb";
    const TYPE: &str = "{ float, float, float, float }";

    /// A product `%{name}` of the descriptor `%{b}`, added to `%{sums}0`, `%{sums}1`…, and the parts of what it gives.
    fn product(name: &str, b: &str, sums: &str) -> String {
        let sum = |i| format!("float %{sums}{i}");
        let sums: Vec<String> = (0..4).map(sum).collect();
        let part = |i| format!("  %{name}{i} = extractvalue {TYPE} %{name}, {i}\n");
        let parts: String = (0..4).map(part).collect();
        format!("  %{name} = call {TYPE} @{NAME}(i64 %a, i64 %{b}, i32 1, {})\n{parts}", sums.join(", "))
    }

    /// The statements of a function with this body, and what is left of it.
    fn expanded(body: &str) -> (Vec<String>, String) {
        let sums = ["x", "y"].map(|name| (0..4).map(move |i| format!("float %{name}{i}")));
        let parameters: Vec<String> = sums.into_iter().flatten().collect();
        let text = format!(
            "declare {TYPE} @{NAME}(i64, i64, i32, float, float, float, float)\n\
             declare void @llvm.nvvm.wgmma.commit_group.sync.aligned()\n\
             define float @k(i64 %a, i64 %b, {}) {{\n{body}}}\n",
            parameters.join(", ")
        );
        let context = Context::create();
        let buffer = MemoryBuffer::create_from_memory_range_copy(text.as_bytes(), "kernel");
        let module = context.create_module_from_ir(buffer).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let ir = Ir::in_module(&context, module, features::NVPTX);
        let function = ir.module.get_function("k").unwrap();
        expand(&ir, &[function]).unwrap();
        ir.module.verify().unwrap();
        let text = function.print_to_string().to_string();
        assert!(!text.contains(NAME), "{text}");
        let statements = text.lines().filter(|line| line.contains(" asm "));
        (statements.map(str::to_owned).collect(), text)
    }

    /// The products of a statement, each by the number of its first sum.
    fn sums_of(statement: &str) -> Vec<&str> {
        let products = statement.split("bf16.bf16 {$").skip(1);
        products.map(|product| product.split(',').next().unwrap()).collect()
    }

    #[test]
    fn products_on_the_way_to_each_other_are_one_statement() {
        let next = "  %next = add i64 %b, 2\n";
        let body = [&product("p", "b", "x"), next, &product("q", "next", "p"), "  ret float %q3\n"].concat();
        let (statements, text) = expanded(&body);
        assert_eq!(statements.len(), 1, "{text}");
        assert_eq!(sums_of(&statements[0]), ["0", "0"]);
        // Results, two descriptors each, and what is added to; of whether to add, nothing is asked.
        assert!(statements[0].contains("\"=f,=f,=f,=f,l,l,l,l,0,1,2,3\""), "{text}");
        assert_eq!(text.matches("extractvalue").count(), 4, "{text}");
    }

    #[test]
    fn products_with_other_sums_keep_their_order() {
        let body =
            [("p", "x"), ("q", "y"), ("r", "p"), ("s", "q")].map(|(name, sums)| product(name, "b", sums));
        let body = body.concat() + "  %sum = fadd float %r0, %s0\n  ret float %sum\n";
        let (statements, text) = expanded(&body);
        assert_eq!(statements.len(), 1, "{text}");
        assert_eq!(sums_of(&statements[0]), ["0", "4", "0", "4"]);
        assert!(text.contains("extractvalue { float, float, float, float, float, float, float, float }"));
    }

    #[test]
    fn what_happens_between_products_stays_there() {
        let commit = "  call void @llvm.nvvm.wgmma.commit_group.sync.aligned()\n";
        let body = [&product("p", "b", "x"), commit, &product("q", "b", "p"), "  ret float %q0\n"].concat();
        let (statements, text) = expanded(&body);
        assert_eq!(statements.len(), 2, "{text}");
        let lines: Vec<bool> = text
            .lines()
            .filter(|line| line.contains(" asm ") || line.contains("commit_group"))
            .map(|line| line.contains(" asm "))
            .collect();
        assert_eq!(lines, [true, false, true], "{text}");
    }

    #[test]
    fn sums_that_are_looked_at_are_results() {
        let ends = [
            "  %sum = fadd float %p0, %q0\n  ret float %sum\n",
            // Some of them go on to a product, the others are what it adds to besides.
            "  ret float %q0\n",
        ];
        let bodies = [
            [&product("p", "b", "x"), &product("q", "b", "p"), ends[0]].concat(),
            [&product("p", "b", "x"), &product("q", "b", "p").edit("%p3", "%y3"), ends[1]].concat(),
        ];
        for body in bodies {
            let (statements, text) = expanded(&body);
            assert_eq!(statements.len(), 2, "{text}");
        }
    }
}
