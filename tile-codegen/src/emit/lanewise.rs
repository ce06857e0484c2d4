//! Instructions of vectors of 16 f32 for which LLVM has no op, written as if they were of one element: those of AVX-512
//! that scale by powers of two, compare magnitudes, and take entries of a table.
//!
//! Each is a function of one element. Its calls tell the loop vectoriser of variants for vectors ("Vector Function ABI",
//! LLVM's language reference, `vector-function-abi-variant`), which it calls instead; thereafter all of them are inlined.
//! Every variant is the instruction of 16 lanes, of which it may need some, so that an element is the same bits wherever it
//! lies.

use super::ir::{Ir, Value};
use inkwell::attributes::{Attribute, AttributeLoc};
use inkwell::module::Linkage;
use inkwell::types::{BasicType, BasicTypeEnum, VectorType};
use inkwell::values::{BasicValueEnum, FloatValue, FunctionValue, IntValue, VectorValue};

/// Lanes of an instruction.
const LANES: u32 = 16;

/// Lanes of the vectors that have variants: of loops over f32, and where these are beside f64.
const VARIANTS: [u32; 2] = [8, LANES];

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
    /// `VRANGEPS`
    Bound,
    /// `VPERMPS`
    Take(&'t Table<'t>),
}

impl<'c> Ir<'c> {
    /// `x · 2^⌊power⌋`, rounded once. Whatever the finite `x > 0`, it is ∞ of ∞, 0 of −∞ and NaN of NaN.
    pub(super) fn scaled_by(&self, x: FloatValue<'c>, power: FloatValue<'c>) -> FloatValue<'c> {
        self.in_lanes(Instruction::Scale, &[x.into(), power.into()])
    }

    /// `x`, or the bound with its sign where its magnitude is larger. Of NaN it is the bound with either sign.
    pub(super) fn bounded(&self, x: FloatValue<'c>, bound: f64) -> FloatValue<'c> {
        self.in_lanes(Instruction::Bound, &[x.into(), self.f32().const_float(bound).into()])
    }

    /// The entry of a table at a position, which counts modulo 16.
    pub(super) fn entry(&self, table: &Table<'_>, position: IntValue<'c>) -> FloatValue<'c> {
        self.in_lanes(Instruction::Take(table), &[position.into()])
    }

    fn in_lanes(&self, instruction: Instruction<'_>, operands: &[Value<'c>]) -> FloatValue<'c> {
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
        call.try_as_basic_value().basic().expect("it has a result").into_float_value()
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
            Instruction::Take(table) => table.name,
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
        let ty = |ty: BasicTypeEnum<'c>| if lanes == 1 { ty } else { vector_of(ty, lanes).into() };
        let parameters: Vec<_> = types.iter().map(|&parameter| ty(parameter).into()).collect();
        let signature = ty(ir.f32().into()).fn_type(&parameters, false);
        let function = ir.module.add_function(name, signature, Some(Linkage::Internal));
        // It computes: calls may be moved, merged and left out, also where a condition is in front of them.
        for attribute in ["alwaysinline", "nounwind", "willreturn", "speculatable", "memory"] {
            let kind = Attribute::get_named_enum_kind_id(attribute);
            function.add_attribute(AttributeLoc::Function, ir.context.create_enum_attribute(kind, 0));
        }
        let caller = ir.builder.get_insert_block().expect("the builder is positioned");
        ir.builder.position_at_end(ir.context.append_basic_block(function, "entry"));
        let operands: Vec<_> = function.get_param_iter().map(|operand| ir.widened(operand)).collect();
        let result = self.emit(ir, &operands);
        ir.return_value(ir.narrowed(result, lanes));
        ir.builder.position_at_end(caller);
        function
    }

    /// The instruction itself, of 16 lanes.
    fn emit<'c>(self, ir: &Ir<'c>, operands: &[VectorValue<'c>]) -> VectorValue<'c> {
        let i32 = |value: u64| ir.context.i32_type().const_int(value, false).into();
        let every_lane = ir.int_type(LANES).const_all_ones().into();
        // Rounding as elsewhere.
        let as_set = i32(4);
        let (name, arguments): (&str, Vec<BasicValueEnum<'c>>) = match self {
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
            Instruction::Take(table) => {
                let entries = table.entries.map(|entry| ir.f32().const_float(entry.into()));
                let entries = VectorType::const_vector(&entries).into();
                ("llvm.x86.avx512.permvar.sf.512", vec![entries, operands[0].into()])
            }
        };
        ir.intrinsic(name, &[], &arguments).expect("it has a result").into_vector_value()
    }
}

fn vector_of(ty: BasicTypeEnum<'_>, lanes: u32) -> VectorType<'_> {
    match ty {
        BasicTypeEnum::FloatType(ty) => ty.vec_type(lanes),
        ty => ty.into_int_type().vec_type(lanes),
    }
}

impl<'c> Ir<'c> {
    /// An element or a vector as the first lanes of 16.
    fn widened(&self, operand: Value<'c>) -> VectorValue<'c> {
        let i32 = self.context.i32_type();
        let Value::VectorValue(vector) = operand else {
            let poison = vector_of(operand.get_type(), LANES).get_poison();
            let widened = self.builder.build_insert_element(poison, operand, i32.const_zero(), "");
            return widened.expect("the builder is positioned");
        };
        let lane = |lane: u32| match lane < vector.get_type().get_size() {
            true => i32.const_int(lane.into(), false),
            false => i32.get_poison(),
        };
        self.shuffled(vector, &(0..LANES).map(lane).collect::<Vec<_>>())
    }

    /// The first lanes, or the first one as an element.
    fn narrowed(&self, vector: VectorValue<'c>, lanes: u32) -> Value<'c> {
        let i32 = self.context.i32_type();
        if lanes == 1 {
            let first = self.builder.build_extract_element(vector, i32.const_zero(), "");
            return first.expect("the builder is positioned");
        }
        let lanes: Vec<_> = (0..lanes).map(|lane| i32.const_int(lane.into(), false)).collect();
        self.shuffled(vector, &lanes).into()
    }

    fn shuffled(&self, vector: VectorValue<'c>, lanes: &[IntValue<'c>]) -> VectorValue<'c> {
        let mask = VectorType::const_vector(lanes);
        let shuffled = self.builder.build_shuffle_vector(vector, vector.get_type().get_poison(), mask, "");
        shuffled.expect("the builder is positioned")
    }
}
