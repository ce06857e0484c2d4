//! Instructions of vectors of 16 f32 for which LLVM has no op, written as if they were of one element: those of AVX-512
//! that scale by powers of two, compare magnitudes and numbers, take entries of a table, and round to bf16.
//!
//! Each is a function of one element. Its calls tell the loop vectoriser of variants for vectors ("Vector Function ABI",
//! LLVM's language reference, `vector-function-abi-variant`), which it calls instead; thereafter all of them are inlined.
//! Every variant is the instruction of 16 lanes, of which it may need some, so that an element is the same bits wherever it
//! lies.

use super::extremum::Extremum;
use super::ir::{Ir, Value};
use inkwell::attributes::{Attribute, AttributeLoc};
use inkwell::module::Linkage;
use inkwell::types::{BasicType, BasicTypeEnum, VectorType};
use inkwell::values::{
    BasicValue, FloatValue, FunctionValue, InstructionOpcode, InstructionValue, IntValue, Operand,
    VectorValue,
};
use std::collections::HashSet;

/// Lanes of an instruction.
const LANES: u32 = 16;

/// How many instructions are asked for constants; what is computed of more results may be one.
const MOST_ASKED: usize = 256;

/// Lanes of the vectors that have variants: loops have as many as elements of 64 to 8 bits in 64 bytes, and few at the ends of
/// rows.
const VARIANTS: [u32; 5] = [4, 8, LANES, 2 * LANES, 4 * LANES];

/// Numbers that an instruction takes by their position.
pub(super) struct Table<'t> {
    /// What the module knows it by.
    pub(super) name: &'t str,
    pub(super) entries: [f32; LANES as usize],
}

/// What is done in every lane.
#[derive(Clone, Copy)]
enum Instruction<'t> {
    /// `VSCALEFPS`
    Scale,
    /// `VRANGEPS` of magnitudes
    Bound,
    /// `VRANGEPS` of numbers: the larger one, or the smaller.
    Extremum(Extremum),
    /// `VPERMPS`
    Take(&'t Table<'t>),
    /// `VCVTNEPS2BF16`
    Round,
}

impl<'c> Ir<'c> {
    /// `x · 2^⌊power⌋`, rounded once. Whatever the finite `x > 0`, it is ∞ of ∞, 0 of −∞ and NaN of NaN.
    pub(super) fn scaled_by(&self, x: FloatValue<'c>, power: FloatValue<'c>) -> FloatValue<'c> {
        self.in_lanes(Instruction::Scale, &[x.into(), power.into()]).into_float_value()
    }

    /// `x`, or the bound with its sign where its magnitude is larger. Of NaN it is the bound with either sign.
    pub(super) fn bounded(&self, x: FloatValue<'c>, bound: f64) -> FloatValue<'c> {
        self.in_lanes(Instruction::Bound, &[x.into(), self.f32().const_float(bound).into()])
            .into_float_value()
    }

    /// The larger or smaller number, with −0 < +0, where NaN is ignored: two comparisons and five selections otherwise. The
    /// instruction ignores quiet NaN alone; of a number and itself it is that number, of a signalling NaN a quiet one.
    pub(super) fn extremum_in_lanes(
        &self,
        a: FloatValue<'c>,
        b: FloatValue<'c>,
        wanted: Extremum,
    ) -> FloatValue<'c> {
        let of = |a: FloatValue<'c>, b: FloatValue<'c>| {
            self.in_lanes(Instruction::Extremum(wanted), &[a.into(), b.into()]).into_float_value()
        };
        let quiet = |x: FloatValue<'c>| if self.is_quiet(x) { x } else { of(x, x) };
        of(quiet(a), quiet(b))
    }

    /// The entry of a table at a position, which counts modulo 16.
    pub(super) fn entry(&self, table: &Table<'_>, position: IntValue<'c>) -> FloatValue<'c> {
        self.in_lanes(Instruction::Take(table), &[position.into()]).into_float_value()
    }

    /// Whether there is [`Ir::rounded_to_bf16`].
    pub(crate) fn rounds_to_bf16(&self) -> bool {
        self.features.lanewise && self.features.lanewise_rounding
    }

    /// The bits of the nearest bf16, of even ones of two: 0 where number or result is subnormal.
    pub(crate) fn rounded_to_bf16(&self, x: FloatValue<'c>) -> IntValue<'c> {
        self.in_lanes(Instruction::Round, &[x.into()]).into_int_value()
    }

    fn in_lanes(&self, instruction: Instruction<'_>, operands: &[Value<'c>]) -> Value<'c> {
        let types: Vec<BasicTypeEnum<'c>> = operands.iter().map(|operand| operand.get_type()).collect();
        let (name, of_one) = instruction.function(self, &types, 1);
        let vectors = "v".repeat(operands.len());
        let variants = VARIANTS.map(|lanes| {
            let (variant, _) = instruction.function(self, &types, lanes);
            format!("_ZGV_LLVM_N{lanes}{vectors}_{name}({variant})")
        });
        let operands: Vec<_> = operands.iter().map(|&operand| operand.into()).collect();
        let call = self.builder.build_call(of_one, &operands, "").expect("the builder is positioned");
        let variants =
            self.context.create_string_attribute("vector-function-abi-variant", &variants.join(","));
        call.add_attribute(AttributeLoc::Function, variants);
        call.try_as_basic_value().basic().expect("it has a result")
    }
}

impl Instruction<'_> {
    /// The function of so many lanes and its name.
    fn function<'c>(
        self,
        ir: &Ir<'c>,
        types: &[BasicTypeEnum<'c>],
        lanes: u32,
    ) -> (String, FunctionValue<'c>) {
        let what = match self {
            Instruction::Scale => "scale",
            Instruction::Bound => "bound",
            Instruction::Extremum(Extremum::Larger) => "larger",
            Instruction::Extremum(Extremum::Smaller) => "smaller",
            Instruction::Take(table) => table.name,
            Instruction::Round => "round",
        };
        let name = format!("tile.{what}.{lanes}");
        let function = ir.module.get_function(&name).unwrap_or_else(|| self.define(ir, &name, types, lanes));
        (name, function)
    }

    fn define<'c>(
        self,
        ir: &Ir<'c>,
        name: &str,
        types: &[BasicTypeEnum<'c>],
        lanes: u32,
    ) -> FunctionValue<'c> {
        let ty = |ty: BasicTypeEnum<'c>| if lanes == 1 { ty } else { vector_type(ty, lanes).into() };
        let parameters: Vec<_> = types.iter().map(|&parameter| ty(parameter).into()).collect();
        let signature = ty(self.result(ir)).fn_type(&parameters, false);
        let function = ir.module.add_function(name, signature, Some(Linkage::Internal));
        // It computes: calls may be moved, merged and left out, also where a condition is in front of them.
        for attribute in ["alwaysinline", "nounwind", "willreturn", "speculatable", "memory"] {
            let kind = Attribute::get_named_enum_kind_id(attribute);
            function.add_attribute(AttributeLoc::Function, ir.context.create_enum_attribute(kind, 0));
        }
        let caller = ir.builder.get_insert_block().expect("the builder is positioned");
        ir.builder.position_at_end(ir.context.append_basic_block(function, "entry"));
        let part = |first| {
            let lanes = |operand| ir.sixteen_lanes(operand, first);
            self.emit(ir, &function.get_param_iter().map(lanes).collect::<Vec<_>>())
        };
        let parts = (0..lanes).step_by(LANES as usize).map(part).collect();
        ir.return_value(ir.first_lanes(parts, lanes));
        ir.builder.position_at_end(caller);
        function
    }

    /// The type of a lane of its result.
    fn result<'c>(self, ir: &Ir<'c>) -> BasicTypeEnum<'c> {
        match self {
            Instruction::Round => ir.int_type(16).into(),
            _ => ir.f32().into(),
        }
    }

    /// The instruction itself, of 16 lanes.
    fn emit<'c>(self, ir: &Ir<'c>, operands: &[VectorValue<'c>]) -> VectorValue<'c> {
        let i32 = |value: u64| ir.context.i32_type().const_int(value, false).into();
        let every_lane = ir.int_type(LANES).const_all_ones().into();
        // Rounding as elsewhere.
        let as_set = i32(4);
        let (name, arguments): (&str, Vec<Value<'c>>) = match self {
            Instruction::Scale => {
                let [x, power] = [operands[0].into(), operands[1].into()];
                ("llvm.x86.avx512.mask.scalef.ps.512", vec![x, power, x, every_lane, as_set])
            }
            Instruction::Bound => {
                let [x, bound] = [operands[0].into(), operands[1].into()];
                // The smaller magnitude, with the sign of the first.
                let choice = i32(2);
                ("llvm.x86.avx512.mask.range.ps.512", vec![x, bound, choice, x, every_lane, as_set])
            }
            Instruction::Extremum(wanted) => {
                let [a, b] = [operands[0].into(), operands[1].into()];
                // The larger or smaller one, with its own sign.
                let choice = i32(4 | u64::from(wanted == Extremum::Larger));
                ("llvm.x86.avx512.mask.range.ps.512", vec![a, b, choice, a, every_lane, as_set])
            }
            Instruction::Take(table) => {
                let entries = table.entries.map(|entry| ir.f32().const_float(entry.into()));
                let entries = VectorType::const_vector(&entries).into();
                ("llvm.x86.avx512.permvar.sf.512", vec![entries, operands[0].into()])
            }
            Instruction::Round => ("llvm.x86.avx512bf16.cvtneps2bf16.512", vec![operands[0].into()]),
        };
        let result = ir.intrinsic(name, &[], &arguments).expect("it has a result");
        let bits = ir.builder.build_bit_cast(result, vector_type(self.result(ir), LANES), "");
        bits.expect("as many bits").into_vector_value()
    }
}

impl<'c> Ir<'c> {
    /// Whether a float is known not to be a signalling NaN: a constant by its bits, and what arithmetic gives. But LLVM lets
    /// arithmetic leave NaN as it is, and does so where a constant makes it a move or a change of sign: `x · 1`, `−0 − x`.
    fn is_quiet(&self, x: FloatValue<'c>) -> bool {
        use InstructionOpcode::{FAdd, FDiv, FMul, FSub};
        if x.is_const() {
            let bits = self.bits(x).get_zero_extended_constant();
            return bits.is_some_and(|bits| !is_signalling(f32::from_bits(bits as u32)));
        }
        x.as_instruction().is_some_and(|it| {
            let is_arithmetic = matches!(it.get_opcode(), FAdd | FDiv | FMul | FSub);
            let of: Vec<Value<'c>> = operands(it).collect();
            // Of two equal ones either both are constants, and so the result, or none is.
            let are_equal = of.windows(2).all(|pair| pair[0] == pair[1]);
            is_arithmetic && (are_equal || !of.into_iter().any(|operand| may_be_constant(operand)))
        })
    }
}

fn is_signalling(x: f32) -> bool {
    x.is_nan() && x.to_bits() & 1 << (f32::MANTISSA_DIGITS - 2) == 0
}

fn operands<'c>(instruction: InstructionValue<'c>) -> impl Iterator<Item = Value<'c>> {
    instruction.get_operands().flatten().filter_map(Operand::value)
}

/// Whether LLVM may find that a number is a constant, or one of several: what is computed or chosen from constants alone.
/// Each instruction is asked once, however many ways lead to it, and not more than [`MOST_ASKED`].
fn may_be_constant(x: Value<'_>) -> bool {
    use InstructionOpcode::{Phi, Select};
    let (mut asked, mut next) = (HashSet::new(), vec![x]);
    while let Some(x) = next.pop() {
        let Some(instruction) = x.as_instruction_value() else {
            let is_constant = match x {
                Value::FloatValue(x) => x.is_const(),
                Value::IntValue(x) => x.is_const(),
                Value::PointerValue(x) => x.is_const(),
                _ => false,
            };
            if !is_constant {
                return false;
            }
            continue;
        };
        let is_chosen = matches!(instruction.get_opcode(), Select | Phi);
        if !is_chosen && asked.len() < MOST_ASKED && asked.insert(instruction) {
            next.extend(operands(instruction));
        }
    }
    true
}

/// The type of so many elements.
pub(crate) fn vector_type(element: BasicTypeEnum<'_>, lanes: u32) -> VectorType<'_> {
    match element {
        BasicTypeEnum::FloatType(ty) => ty.vec_type(lanes),
        BasicTypeEnum::IntType(ty) => ty.vec_type(lanes),
        _ => unreachable!("elements are integers or floats"),
    }
}

impl<'c> Ir<'c> {
    /// The lanes of a vector from `first` on, or those that there are, or an element in the first one.
    fn sixteen_lanes(&self, operand: Value<'c>, first: u32) -> VectorValue<'c> {
        let Value::VectorValue(vector) = operand else {
            let poison = vector_type(operand.get_type(), LANES).get_poison();
            let zero = self.context.i32_type().const_zero();
            let vector = self.builder.build_insert_element(poison, operand, zero, "");
            return vector.expect("the builder is positioned");
        };
        let end = vector.get_type().get_size();
        let lanes = (first..first + LANES).map(|lane| (lane < end).then_some(lane));
        self.shuffled(vector, vector, lanes)
    }

    /// The first lanes of a power of two of vectors, one after the other; one lane as an element.
    fn first_lanes(&self, mut vectors: Vec<VectorValue<'c>>, lanes: u32) -> Value<'c> {
        while vectors.len() > 1 {
            let joined = |pair: &[VectorValue<'c>]| {
                self.shuffled(pair[0], pair[1], (0..2 * pair[0].get_type().get_size()).map(Some))
            };
            vectors = vectors.chunks(2).map(joined).collect();
        }
        if lanes == 1 {
            let zero = self.context.i32_type().const_zero();
            let first = self.builder.build_extract_element(vectors[0], zero, "");
            return first.expect("the builder is positioned");
        }
        self.shuffled(vectors[0], vectors[0], (0..lanes).map(Some)).into()
    }

    /// The lanes of two vectors, one after the other, that a list names; any number where it names none.
    fn shuffled(
        &self,
        a: VectorValue<'c>,
        b: VectorValue<'c>,
        lanes: impl Iterator<Item = Option<u32>>,
    ) -> VectorValue<'c> {
        let i32 = self.context.i32_type();
        let lane =
            |lane: Option<u32>| lane.map_or(i32.get_poison(), |lane| i32.const_int(lane.into(), false));
        let mask = VectorType::const_vector(&lanes.map(lane).collect::<Vec<_>>());
        self.builder.build_shuffle_vector(a, b, mask, "").expect("the builder is positioned")
    }
}
