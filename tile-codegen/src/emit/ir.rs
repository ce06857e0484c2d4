//! A thin layer over inkwell's builder: one short infallible method per instruction. Loops and branches are in `control`.
//!
//! inkwell's builder fails only when it isn't positioned or operand types differ. Both are bugs of an
//! emitter, so they are panics here. Floating-point instructions carry no fast-math flags: results are
//! those of IEEE 754 unless an emitter asks for a fused multiply-add.

use super::float8::Float8Conversion;
use super::fold;
use inkwell::builder::{Builder, BuilderError};
use inkwell::context::Context;
use inkwell::intrinsics::Intrinsic;
use inkwell::module::{Linkage, Module};
use inkwell::types::{BasicType, BasicTypeEnum, FloatType, IntType};
use inkwell::values::{
    BasicValue, BasicValueEnum, CallSiteValue, FloatValue, FunctionValue, InstructionValue, IntValue,
    PointerValue,
};
use inkwell::{AddressSpace, FloatPredicate, IntPredicate};
use std::cell::RefCell;
use std::cmp::Ordering;
use std::collections::HashMap;
use tile_ir::DType;

/// The address space of a cluster's shared memory.
const SHARED_CLUSTER: u16 = 7;

/// An LLVM value in a register.
pub(crate) type Value<'c> = BasicValueEnum<'c>;

/// What the instruction set has, as far as emitters choose by it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Features {
    /// Conversions between f16 and f32 are instructions.
    pub(crate) half_conversion: bool,
    /// Vectors of floats are divided by an instruction, and of integers not.
    pub(crate) vector_division: bool,
    /// A fused multiply-add is an instruction.
    pub(crate) fma: bool,
    /// The product with a power of two is an instruction.
    pub(crate) scaling: bool,
    /// The larger and the smaller of two floats are instructions, with −0 < +0, also where NaN is ignored.
    pub(crate) extrema: bool,
    /// Floats become integers by an instruction that saturates.
    pub(crate) saturating_conversion: bool,
    /// Vectors of 16 f32 have the instructions of [`super::lanewise`].
    pub(crate) lanewise: bool,
    /// They have one that rounds to bf16 as well.
    pub(crate) lanewise_rounding: bool,
    /// Instructions of f32 that are right but for the last place.
    pub(crate) approximations: Option<Approximations>,
    /// LLVM puts 16-bit elements into words best where they are elements of vectors, by instructions that permute bytes.
    pub(crate) half_vectors: bool,
    /// Two f32 are rounded to a narrower format by one instruction.
    pub(crate) pair_rounding: Option<PairRounding>,
    /// How two 8-bit floats are converted by one instruction.
    pub(crate) float8: Option<Float8Conversion>,
    /// The intrinsic that gives the upper word of the product of two i32 without signs.
    pub(crate) upper_product: Option<&'static str>,
    /// Rotations, and bits in the opposite order, are instructions of words of 32 bits alone.
    pub(crate) word_permutations: bool,
    /// Two words are rotated as words by an amount that isn't known, too: in fewer instructions than LLVM makes of its op.
    pub(crate) pair_rotations: bool,
    /// The address space of tables that code brings along.
    pub(crate) table_space: u16,
}

impl Features {
    /// What the simplest processor has.
    pub(crate) const NONE: Features = Features {
        half_conversion: false,
        vector_division: false,
        fma: false,
        scaling: false,
        extrema: false,
        saturating_conversion: false,
        lanewise: false,
        lanewise_rounding: false,
        approximations: None,
        half_vectors: false,
        pair_rounding: None,
        float8: None,
        upper_product: None,
        word_permutations: false,
        pair_rotations: false,
        table_space: 0,
    };
}

/// Instructions that round two f32 to a narrower format, to nearest even: intrinsics or declarations that give the first
/// operand in the upper half of a word.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PairRounding {
    pub(crate) f16: &'static str,
    pub(crate) bf16: &'static str,
}

/// Instructions of f32 that are right but for the last place, by the names of their intrinsics.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Approximations {
    /// `2ˣ` within 2 ulp, and within 1 for `|x| <= ½`. Results below the smallest normal number are 0.
    pub(crate) exp2: &'static str,
    /// `1/x` of normal numbers, within 1 ulp.
    pub(crate) reciprocal: &'static str,
    /// `1/√x` within 2 ulp, also of subnormal numbers, where there is one.
    pub(crate) rsqrt: Option<&'static str>,
    /// `a·b + c` rounded once and kept from 0 to 1, and 0 for NaN, where LLVM doesn't find the instruction itself.
    pub(crate) saturated_mul_add: Option<&'static str>,
}

/// The module that is emitted and the place in it.
pub(crate) struct Ir<'c> {
    pub(crate) context: &'c Context,
    pub(crate) module: Module<'c>,
    pub(crate) builder: Builder<'c>,
    pub(crate) features: Features,
    /// The bits that numbers were made of, in formats that aren't converted by an instruction: whoever wants these bits
    /// again needs no second conversion, which LLVM wouldn't see through.
    origins: RefCell<HashMap<FloatValue<'c>, (DType, IntValue<'c>)>>,
}

/// The instruction that was asked for, or the bug that prevented it.
pub(super) fn built<T>(result: Result<T, BuilderError>) -> T {
    result.unwrap_or_else(|error| panic!("emitters position the builder and match operand types: {error}"))
}

macro_rules! int_ops {
    ($($name:ident $method:ident;)*) => {
        $(pub(crate) fn $name(&self, a: IntValue<'c>, b: IntValue<'c>) -> IntValue<'c> {
            built(self.builder.$method(a, b, ""))
        })*
    };
}

macro_rules! float_ops {
    ($($name:ident $method:ident;)*) => {
        $(pub(crate) fn $name(&self, a: FloatValue<'c>, b: FloatValue<'c>) -> FloatValue<'c> {
            built(self.builder.$method(a, b, ""))
        })*
    };
}

impl<'c> Ir<'c> {
    pub(crate) fn new(context: &'c Context, name: &str, features: Features) -> Self {
        Ir::in_module(context, context.create_module(name), features)
    }

    /// Goes on in a module.
    pub(crate) fn in_module(context: &'c Context, module: Module<'c>, features: Features) -> Self {
        Ir { context, module, builder: context.create_builder(), features, origins: RefCell::default() }
    }

    /// The instructions of all functions, in order: what looks at a whole module goes through them.
    pub(crate) fn instructions(&self) -> impl Iterator<Item = InstructionValue<'c>> {
        let blocks = self.module.get_functions().flat_map(FunctionValue::get_basic_blocks);
        blocks.flat_map(|block| block.get_instructions())
    }

    /// Notes that a number was made of the bits that it has in a format. Whoever removes the number before all code is
    /// emitted must not call this.
    pub(super) fn note_origin(&self, number: FloatValue<'c>, dtype: DType, bits: IntValue<'c>) {
        self.origins.borrow_mut().insert(number, (dtype, bits));
    }

    /// The bits that a number was made of, if they were of this format.
    pub(super) fn origin(&self, number: FloatValue<'c>, dtype: DType) -> Option<IntValue<'c>> {
        self.origins.borrow().get(&number).filter(|(format, _)| *format == dtype).map(|&(_, bits)| bits)
    }

    pub(crate) fn int_type(&self, bits: u32) -> IntType<'c> {
        let bits = std::num::NonZeroU32::new(bits).expect("integer types have a width");
        self.context.custom_width_int_type(bits).expect("LLVM has every small integer width")
    }

    pub(crate) fn f32(&self) -> FloatType<'c> {
        self.context.f32_type()
    }

    pub(crate) fn f64(&self) -> FloatType<'c> {
        self.context.f64_type()
    }

    pub(crate) fn i64(&self, value: i64) -> IntValue<'c> {
        self.context.i64_type().const_int(value as u64, true)
    }

    pub(crate) fn bool(&self, value: bool) -> IntValue<'c> {
        self.context.bool_type().const_int(u64::from(value), false)
    }

    /// Whether all of these hold.
    pub(crate) fn all(&self, conditions: impl IntoIterator<Item = IntValue<'c>>) -> IntValue<'c> {
        conditions.into_iter().fold(self.bool(true), |all, holds| self.and(all, holds))
    }

    int_ops! {
        add build_int_add; sub build_int_sub; mul build_int_mul; and build_and; or build_or; xor build_xor;
        shl build_left_shift; udiv build_int_unsigned_div; urem build_int_unsigned_rem;
        sdiv build_int_signed_div; srem build_int_signed_rem;
    }

    float_ops! {
        fadd build_float_add; fsub build_float_sub; fmul build_float_mul; fdiv build_float_div;
    }

    pub(crate) fn lshr(&self, a: IntValue<'c>, b: IntValue<'c>) -> IntValue<'c> {
        fold::shifted_right(a, b).unwrap_or_else(|| built(self.builder.build_right_shift(a, b, false, "")))
    }

    pub(crate) fn ashr(&self, a: IntValue<'c>, b: IntValue<'c>) -> IntValue<'c> {
        built(self.builder.build_right_shift(a, b, true, ""))
    }

    pub(crate) fn icmp(&self, predicate: IntPredicate, a: IntValue<'c>, b: IntValue<'c>) -> IntValue<'c> {
        built(self.builder.build_int_compare(predicate, a, b, ""))
    }

    pub(crate) fn fcmp(
        &self,
        predicate: FloatPredicate,
        a: FloatValue<'c>,
        b: FloatValue<'c>,
    ) -> IntValue<'c> {
        built(self.builder.build_float_compare(predicate, a, b, ""))
    }

    pub(crate) fn is_nan(&self, a: FloatValue<'c>) -> IntValue<'c> {
        self.fcmp(FloatPredicate::UNO, a, a)
    }

    pub(crate) fn fneg(&self, a: FloatValue<'c>) -> FloatValue<'c> {
        built(self.builder.build_float_neg(a, ""))
    }

    pub(crate) fn select(&self, condition: IntValue<'c>, a: Value<'c>, b: Value<'c>) -> Value<'c> {
        built(self.builder.build_select(condition, a, b, ""))
    }

    pub(crate) fn select_float(
        &self,
        condition: IntValue<'c>,
        a: FloatValue<'c>,
        b: FloatValue<'c>,
    ) -> FloatValue<'c> {
        self.select(condition, a.into(), b.into()).into_float_value()
    }

    pub(crate) fn select_int(
        &self,
        condition: IntValue<'c>,
        a: IntValue<'c>,
        b: IntValue<'c>,
    ) -> IntValue<'c> {
        self.select(condition, a.into(), b.into()).into_int_value()
    }

    /// The smaller of two unsigned integers.
    pub(crate) fn lesser(&self, a: IntValue<'c>, b: IntValue<'c>) -> IntValue<'c> {
        self.select_int(self.icmp(IntPredicate::ULT, a, b), a, b)
    }

    /// The larger of two unsigned integers.
    pub(crate) fn greater(&self, a: IntValue<'c>, b: IntValue<'c>) -> IntValue<'c> {
        self.select_int(self.icmp(IntPredicate::UGT, a, b), a, b)
    }

    /// How far it is from one unsigned integer up to another, or 0.
    pub(crate) fn up_to(&self, from: IntValue<'c>, to: IntValue<'c>) -> IntValue<'c> {
        let zero = to.get_type().const_zero();
        self.select_int(self.icmp(IntPredicate::ULT, from, to), self.sub(to, from), zero)
    }

    /// The bits of a float as an integer of its width.
    pub(crate) fn bits(&self, a: FloatValue<'c>) -> IntValue<'c> {
        let ty = self.int_type(float_bits(a.get_type()));
        fold::bits(a, ty).unwrap_or_else(|| built(self.builder.build_bit_cast(a, ty, "")).into_int_value())
    }

    pub(crate) fn float_of_bits(&self, a: IntValue<'c>, ty: FloatType<'c>) -> FloatValue<'c> {
        built(self.builder.build_bit_cast(a, ty, "")).into_float_value()
    }

    /// An integer of another width: truncated, or extended by its sign, if it has one, or zeros.
    pub(crate) fn resize(&self, a: IntValue<'c>, bits: u32, signed: bool) -> IntValue<'c> {
        if signed { self.sext_or_trunc(a, bits) } else { self.zext_or_trunc(a, bits) }
    }

    /// An integer of another width: truncated, or extended by its sign.
    pub(crate) fn sext_or_trunc(&self, a: IntValue<'c>, bits: u32) -> IntValue<'c> {
        let extended = || built(self.builder.build_int_s_extend(a, self.int_type(bits), ""));
        self.truncated(a, bits).unwrap_or_else(extended)
    }

    /// An integer of another width: truncated, or extended by zeros.
    pub(crate) fn zext_or_trunc(&self, a: IntValue<'c>, bits: u32) -> IntValue<'c> {
        let extended = || built(self.builder.build_int_z_extend(a, self.int_type(bits), ""));
        self.truncated(a, bits).unwrap_or_else(extended)
    }

    /// The lowest bits of an integer; `None` where it hasn't as many.
    fn truncated(&self, a: IntValue<'c>, bits: u32) -> Option<IntValue<'c>> {
        let truncate = || built(self.builder.build_int_truncate(a, self.int_type(bits), ""));
        match a.get_type().get_bit_width().cmp(&bits) {
            Ordering::Less => None,
            Ordering::Equal => Some(a),
            Ordering::Greater => Some(fold::before_zeros(a, bits).unwrap_or_else(truncate)),
        }
    }

    pub(crate) fn fptrunc(&self, a: FloatValue<'c>, ty: FloatType<'c>) -> FloatValue<'c> {
        fold::before_extension(a, ty).unwrap_or_else(|| built(self.builder.build_float_trunc(a, ty, "")))
    }

    pub(crate) fn fpext(&self, a: FloatValue<'c>, ty: FloatType<'c>) -> FloatValue<'c> {
        built(self.builder.build_float_ext(a, ty, ""))
    }

    /// Truncates a float that the type has room for.
    pub(crate) fn float_to_int(&self, a: FloatValue<'c>, signed: bool, ty: IntType<'c>) -> IntValue<'c> {
        if signed {
            built(self.builder.build_float_to_signed_int(a, ty, ""))
        } else {
            built(self.builder.build_float_to_unsigned_int(a, ty, ""))
        }
    }

    pub(crate) fn int_to_float(&self, a: IntValue<'c>, signed: bool, ty: FloatType<'c>) -> FloatValue<'c> {
        if signed {
            return self.sitofp(a, ty);
        }
        built(self.builder.build_unsigned_int_to_float(a, ty, ""))
    }

    /// The nearest float to a signed integer.
    pub(crate) fn sitofp(&self, a: IntValue<'c>, ty: FloatType<'c>) -> FloatValue<'c> {
        built(self.builder.build_signed_int_to_float(a, ty, ""))
    }

    /// Calls an intrinsic, overloaded on the given types.
    pub(crate) fn intrinsic(
        &self,
        name: &str,
        overloads: &[BasicTypeEnum<'c>],
        args: &[Value<'c>],
    ) -> Option<Value<'c>> {
        let intrinsic = Intrinsic::find(name).unwrap_or_else(|| panic!("LLVM 22 has the intrinsic {name}"));
        let declaration = intrinsic
            .get_declaration(&self.module, overloads)
            .unwrap_or_else(|| panic!("the overload types of {name} are right"));
        let args: Vec<_> = args.iter().map(|&arg| arg.into()).collect();
        built(self.builder.build_call(declaration, &args, "")).try_as_basic_value().basic()
    }

    /// A value by way of a register that an empty statement of assembly "changes".
    pub(crate) fn through_register(&self, value: Value<'c>, register: &str) -> CallSiteValue<'c> {
        let ty = value.get_type();
        let function = ty.fn_type(&[ty.into()], false);
        let constraints = format!("={register},0");
        let statement =
            self.context.create_inline_asm(function, String::new(), constraints, false, false, None, false);
        let call = self.builder.build_indirect_call(function, statement, &[value.into()], "");
        built(call)
    }

    /// An intrinsic of one float type throughout.
    pub(crate) fn float_intrinsic(&self, name: &str, args: &[FloatValue<'c>]) -> FloatValue<'c> {
        let values: Vec<Value<'c>> = args.iter().map(|&arg| arg.into()).collect();
        let result = self.intrinsic(name, &[args[0].get_type().into()], &values);
        result.expect("a float intrinsic has a result").into_float_value()
    }

    /// An instruction of f32 by its intrinsic, which may know f32 alone or other types as well.
    pub(crate) fn f32_instruction(&self, name: &str, args: &[FloatValue<'c>]) -> FloatValue<'c> {
        let overloaded = Intrinsic::find(name).is_some_and(|intrinsic| intrinsic.is_overloaded());
        let overloads: &[BasicTypeEnum<'c>] = if overloaded { &[self.f32().into()] } else { &[] };
        let values: Vec<Value<'c>> = args.iter().map(|&arg| arg.into()).collect();
        self.intrinsic(name, overloads, &values).expect("it has a result").into_float_value()
    }

    /// An intrinsic of one integer type throughout.
    pub(crate) fn int_intrinsic(&self, name: &str, args: &[IntValue<'c>]) -> IntValue<'c> {
        let values: Vec<Value<'c>> = args.iter().map(|&arg| arg.into()).collect();
        let result = self.intrinsic(name, &[args[0].get_type().into()], &values);
        result.expect("an integer intrinsic has a result").into_int_value()
    }

    /// `a·b + c`, fused where the target can. For polynomial evaluation, where both roundings are accurate.
    pub(crate) fn mul_add(&self, a: FloatValue<'c>, b: FloatValue<'c>, c: FloatValue<'c>) -> FloatValue<'c> {
        if self.features.fma {
            self.float_intrinsic("llvm.fma", &[a, b, c])
        } else {
            self.fadd(self.fmul(a, b), c)
        }
    }

    /// The address of element `index` of an array of `ty`.
    pub(crate) fn element(
        &self,
        ty: BasicTypeEnum<'c>,
        base: PointerValue<'c>,
        index: IntValue<'c>,
    ) -> PointerValue<'c> {
        // SAFETY: inkwell marks GEP unsafe because it may poison; emitters index within the object they allocated.
        built(unsafe { self.builder.build_in_bounds_gep(ty, base, &[index], "") })
    }

    /// A pointer as an i64: in an address space of its own, from where that begins.
    pub(crate) fn address(&self, pointer: PointerValue<'c>) -> IntValue<'c> {
        self.builder
            .build_ptr_to_int(pointer, self.context.i64_type(), "")
            .expect("the builder is positioned")
    }

    /// A pointer into the shared memory of a block as one into that of its cluster.
    pub(crate) fn in_cluster(&self, pointer: PointerValue<'c>) -> PointerValue<'c> {
        let cast = |pointer, space: u16| {
            let ty = self.context.ptr_type(AddressSpace::from(space));
            self.builder.build_address_space_cast(pointer, ty, "").expect("the builder is positioned")
        };
        cast(cast(pointer, 0), SHARED_CLUSTER)
    }

    pub(crate) fn load(&self, ty: BasicTypeEnum<'c>, pointer: PointerValue<'c>) -> Value<'c> {
        built(self.builder.build_load(ty, pointer, ""))
    }

    /// A load from an address of this alignment, in bytes; as aligned as the type asks where nothing is said.
    pub(crate) fn load_at(
        &self,
        ty: BasicTypeEnum<'c>,
        pointer: PointerValue<'c>,
        alignment: Option<u32>,
    ) -> Value<'c> {
        let loaded = self.load(ty, pointer);
        if let Some(alignment) = alignment {
            let load = loaded.as_instruction_value().expect("a load is an instruction");
            load.set_alignment(alignment).expect("a power of two");
        }
        loaded
    }

    pub(crate) fn store(&self, pointer: PointerValue<'c>, value: Value<'c>) {
        self.store_at(pointer, value, None);
    }

    /// A store to an address of this alignment, as in [`Self::load_at`].
    pub(crate) fn store_at(&self, pointer: PointerValue<'c>, value: Value<'c>, alignment: Option<u32>) {
        let store = built(self.builder.build_store(pointer, value));
        if let Some(alignment) = alignment {
            store.set_alignment(alignment).expect("a power of two");
        }
    }

    /// The address of a zero of a type, which is there to be read.
    pub(crate) fn zero_in_memory(&self, ty: BasicTypeEnum<'c>) -> PointerValue<'c> {
        let name = format!("zero.{}", ty.print_to_string().to_string());
        let global = self.module.get_global(&name).unwrap_or_else(|| {
            let global = self.module.add_global(ty, None, &name);
            global.set_initializer(&ty.const_zero());
            global.set_constant(true);
            global.set_linkage(Linkage::Private);
            global
        });
        global.as_pointer_value()
    }

    pub(crate) fn return_void(&self) {
        built(self.builder.build_return(None));
    }

    pub(crate) fn return_value(&self, value: Value<'c>) {
        built(self.builder.build_return(Some(&value)));
    }

    pub(crate) fn call(&self, function: FunctionValue<'c>, args: &[Value<'c>]) -> Option<Value<'c>> {
        let args: Vec<_> = args.iter().map(|&arg| arg.into()).collect();
        built(self.builder.build_call(function, &args, "")).try_as_basic_value().basic()
    }

    /// The multi-index of a position in a row-major space: the last axis counts fastest.
    pub(crate) fn delinearize(&self, position: IntValue<'c>, space: &[IntValue<'c>]) -> Vec<IntValue<'c>> {
        let mut rest = position;
        let mut index = vec![rest; space.len()];
        for axis in (1..space.len()).rev() {
            index[axis] = self.urem(rest, space[axis]);
            rest = self.udiv(rest, space[axis]);
        }
        index[0] = rest;
        index
    }
}

/// Width of a float type that values in registers have.
pub(crate) fn float_bits(ty: FloatType<'_>) -> u32 {
    ty.get_bit_width()
}
