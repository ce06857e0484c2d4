//! What instructions of LLVM's are called in PTX: those of which there is one of PTX's for each, as LLVM's code generator
//! would write it.

use crate::emit::{Ir, Value};
use inkwell::types::{BasicTypeEnum, FloatType};
use inkwell::values::{CallSiteValue, InstructionOpcode, InstructionValue};
use inkwell::{FloatPredicate, types::IntType};

/// What a register holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Float,
    Word,
    /// Two elements of 16 bits.
    Pair,
    Condition,
}

impl Kind {
    pub(super) const ALL: [Kind; 4] = [Kind::Float, Kind::Word, Kind::Pair, Kind::Condition];

    pub(super) fn of(ty: BasicTypeEnum<'_>) -> Option<Kind> {
        match ty {
            BasicTypeEnum::FloatType(ty) if is_single(ty) => Some(Kind::Float),
            BasicTypeEnum::IntType(ty) => of_bits(ty),
            BasicTypeEnum::VectorType(ty) if ty.get_size() == 2 => {
                let halves = ty.get_element_type();
                (halves.is_float_type() && halves.into_float_type().get_bit_width() == 16)
                    .then_some(Kind::Pair)
            }
            _ => None,
        }
    }

    /// What names of such registers begin with in a statement.
    pub(super) fn letter(self) -> char {
        match self {
            Kind::Float => 'f',
            Kind::Word => 'r',
            Kind::Pair => 'h',
            Kind::Condition => 'p',
        }
    }

    /// PTX's type of such a register.
    pub(super) fn ptx(self) -> &'static str {
        match self {
            Kind::Float => "f32",
            Kind::Word | Kind::Pair => "b32",
            Kind::Condition => "pred",
        }
    }

    /// How LLVM's inline assembly asks for such a register.
    pub(super) fn constraint(self) -> char {
        match self {
            Kind::Float => 'f',
            Kind::Word | Kind::Pair => 'r',
            Kind::Condition => 'b',
        }
    }

    /// The type of a statement that gives it.
    pub(super) fn given<'c>(self, ir: &Ir<'c>) -> BasicTypeEnum<'c> {
        match self {
            Kind::Float => ir.context.f32_type().into(),
            Kind::Word | Kind::Pair => ir.context.i32_type().into(),
            Kind::Condition => ir.context.bool_type().into(),
        }
    }
}

fn of_bits(ty: IntType<'_>) -> Option<Kind> {
    match ty.get_bit_width() {
        32 => Some(Kind::Word),
        1 => Some(Kind::Condition),
        _ => None,
    }
}

fn is_single(ty: FloatType<'_>) -> bool {
    ty == ty.get_context().f32_type()
}

/// An instruction in PTX.
pub(super) struct Spelling {
    pub(super) name: &'static str,
    /// What it gives.
    pub(super) given: Kind,
    role: Role,
}

/// What part an instruction may have in a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// It computes with floats, or what it gives is made of them: statements may end with it.
    Arithmetic,
    /// It is one of those that statements contain on their way to such: of words, which LLVM makes addresses of and joins
    /// to others, and comparisons, which may be branched on.
    Inner,
}

impl Spelling {
    /// `None` where an instruction is none of these.
    pub(super) fn of(instruction: InstructionValue<'_>) -> Option<Spelling> {
        use InstructionOpcode as Opcode;
        let given = Kind::of(BasicTypeEnum::try_from(instruction.get_type()).ok()?)?;
        let (name, role, takes_numbers) = match (instruction.get_opcode(), given) {
            (Opcode::FAdd, Kind::Float) => ("add.rn.f32", Role::Arithmetic, true),
            (Opcode::FSub, Kind::Float) => ("sub.rn.f32", Role::Arithmetic, true),
            (Opcode::FMul, Kind::Float) => ("mul.rn.f32", Role::Arithmetic, true),
            (Opcode::FNeg, Kind::Float) => ("neg.f32", Role::Arithmetic, false),
            (Opcode::FCmp, Kind::Condition) => {
                (comparison(instruction.get_fcmp_predicate()?)?, Role::Inner, true)
            }
            (Opcode::Select, Kind::Float) => ("selp.f32", Role::Arithmetic, true),
            (Opcode::Select, Kind::Word) => ("selp.b32", Role::Inner, true),
            (Opcode::BitCast, Kind::Float | Kind::Word) => ("mov.b32", Role::Arithmetic, false),
            (Opcode::And, Kind::Word) => ("and.b32", Role::Inner, true),
            (Opcode::Or, Kind::Word) => ("or.b32", Role::Inner, true),
            (Opcode::Xor, Kind::Word) => ("xor.b32", Role::Inner, true),
            (Opcode::Shl, Kind::Word) => ("shl.b32", Role::Inner, true),
            (Opcode::LShr, Kind::Word) => ("shr.u32", Role::Inner, true),
            (Opcode::Call, _) => {
                let (name, takes_numbers) = function(instruction)?;
                (name, Role::Arithmetic, takes_numbers)
            }
            _ => return None,
        };
        let spelling = Spelling { name, given, role };
        let is_written = |operand: Value<'_>| {
            let kind = Kind::of(operand.get_type());
            kind.is_some_and(|kind| kind != Kind::Condition || name.starts_with("selp"))
                && (takes_numbers || number(operand).is_none())
        };
        spelling.operands(instruction).into_iter().all(is_written).then_some(spelling)
    }

    /// Whether a statement may end with it.
    pub(super) fn may_be_last(&self) -> bool {
        self.role == Role::Arithmetic
    }

    /// The operands, as PTX has them in order.
    pub(super) fn operands<'c>(&self, instruction: InstructionValue<'c>) -> Vec<Value<'c>> {
        let is_call = instruction.get_opcode() == InstructionOpcode::Call;
        let count = instruction.get_num_operands() - u32::from(is_call);
        let operand = |i| instruction.get_operand(i).expect("it has this operand").expect_value("a value");
        let mut operands: Vec<Value<'c>> = (0..count).map(operand).collect();
        if instruction.get_opcode() == InstructionOpcode::Select {
            operands.rotate_left(1);
        }
        operands
    }
}

/// A comparison of floats.
fn comparison(predicate: FloatPredicate) -> Option<&'static str> {
    Some(match predicate {
        FloatPredicate::OEQ => "setp.eq.f32",
        FloatPredicate::OGT => "setp.gt.f32",
        FloatPredicate::OGE => "setp.ge.f32",
        FloatPredicate::OLT => "setp.lt.f32",
        FloatPredicate::OLE => "setp.le.f32",
        FloatPredicate::ONE => "setp.ne.f32",
        FloatPredicate::ORD => "setp.num.f32",
        FloatPredicate::UNO => "setp.nan.f32",
        FloatPredicate::UEQ => "setp.equ.f32",
        FloatPredicate::UGT => "setp.gtu.f32",
        FloatPredicate::UGE => "setp.geu.f32",
        FloatPredicate::ULT => "setp.ltu.f32",
        FloatPredicate::ULE => "setp.leu.f32",
        FloatPredicate::UNE => "setp.neu.f32",
        FloatPredicate::PredicateFalse | FloatPredicate::PredicateTrue => return None,
    })
}

/// A call of one of LLVM's functions, and whether its operands may be numbers.
fn function(instruction: InstructionValue<'_>) -> Option<(&'static str, bool)> {
    let callee = CallSiteValue::try_from(instruction).ok()?.get_called_fn_value()?;
    Some(match callee.get_name().to_bytes() {
        b"llvm.fma.f32" => ("fma.rn.f32", true),
        b"llvm.nvvm.fma.rn.sat.f" => ("fma.rn.sat.f32", true),
        b"llvm.fabs.f32" => ("abs.f32", false),
        b"llvm.minnum.f32" | b"llvm.minimumnum.f32" => ("min.f32", true),
        b"llvm.maxnum.f32" | b"llvm.maximumnum.f32" => ("max.f32", true),
        b"llvm.minimum.f32" => ("min.NaN.f32", true),
        b"llvm.maximum.f32" => ("max.NaN.f32", true),
        b"llvm.nvvm.ex2.approx.ftz.f32" => ("ex2.approx.ftz.f32", false),
        b"llvm.nvvm.rcp.approx.ftz.f" => ("rcp.approx.ftz.f32", false),
        b"llvm.nvvm.ff2bf16x2.rn" => ("cvt.rn.bf16x2.f32", false),
        b"llvm.nvvm.ff2f16x2.rn" => ("cvt.rn.f16x2.f32", false),
        _ => return None,
    })
}

/// A number that doesn't change, as PTX writes it.
pub(super) fn number(operand: Value<'_>) -> Option<String> {
    match operand {
        Value::FloatValue(number) if number.is_const() && is_single(number.get_type()) => {
            let (number, _) = number.get_constant()?;
            Some(format!("0f{:08X}", (number as f32).to_bits()))
        }
        Value::IntValue(number) => {
            let number = number.get_zero_extended_constant()?;
            Some((number as u32 as i32).to_string())
        }
        _ => None,
    }
}
