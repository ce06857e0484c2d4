//! Operations on vectors: broadcasts, loads and stores of the lanes that exist, and transposition.
//!
//! They are emitted as vector instructions; nothing here relies on LLVM's vectoriser.

pub(super) mod lanes;
pub(super) mod narrow;
pub(super) mod processor;
pub(super) mod transpose;

pub(in crate::cpu) use crate::emit::vector_type;
use crate::emit::{Ir, Value};
use inkwell::IntPredicate;
use inkwell::attributes::{Attribute, AttributeLoc};
use inkwell::intrinsics::Intrinsic;
use inkwell::types::{BasicTypeEnum, VectorType};
use inkwell::values::{BasicValue, CallSiteValue, InstructionValue, IntValue, PointerValue, VectorValue};

/// An emitter positions its builder and matches operand types; anything else is a bug of it.
const POSITIONED: &str = "the builder is positioned";

impl<'c> Ir<'c> {
    /// One element in every lane.
    pub(in crate::cpu) fn in_every_lane(&self, element: Value<'c>, lanes: u32) -> VectorValue<'c> {
        let ty = vector_type(element.get_type(), lanes);
        let zero = self.context.i32_type().const_zero();
        let one = self.builder.build_insert_element(ty.get_poison(), element, zero, "").expect(POSITIONED);
        let mask = self.context.i32_type().vec_type(lanes).const_zero();
        self.builder.build_shuffle_vector(one, ty.get_poison(), mask, "").expect(POSITIONED)
    }

    /// The bits of a vector as one of another type.
    pub(in crate::cpu) fn vector_of_bits(
        &self,
        vector: VectorValue<'c>,
        ty: VectorType<'c>,
    ) -> VectorValue<'c> {
        self.builder.build_bit_cast(vector, ty, "").expect(POSITIONED).into_vector_value()
    }

    /// Which lanes of a vector of integers aren't zero: a bit each, the lowest for the first.
    pub(in crate::cpu) fn bits_of_lanes(&self, vector: VectorValue<'c>) -> IntValue<'c> {
        let (lanes, zero) = (vector.get_type().get_size(), vector.get_type().const_zero());
        let are_set = self.builder.build_int_compare(IntPredicate::NE, vector, zero, "").expect(POSITIONED);
        self.builder.build_bit_cast(are_set, self.int_type(lanes), "").expect(POSITIONED).into_int_value()
    }

    /// The lanes of two vectors, one after the other, that a list names.
    pub(in crate::cpu) fn lanes_at(
        &self,
        a: VectorValue<'c>,
        b: VectorValue<'c>,
        lanes: &[u32],
    ) -> VectorValue<'c> {
        let i32 = self.context.i32_type();
        let lanes: Vec<IntValue<'c>> = lanes.iter().map(|&lane| i32.const_int(lane.into(), false)).collect();
        self.builder.build_shuffle_vector(a, b, VectorType::const_vector(&lanes), "").expect(POSITIONED)
    }

    /// The first lanes of so many vectors, a power of two, then their second ones, and so on.
    pub(in crate::cpu) fn interleaved(&self, vectors: Vec<VectorValue<'c>>) -> VectorValue<'c> {
        if let [vector] = vectors[..] {
            return vector;
        }
        let every_second = |first| vectors.iter().copied().skip(first).step_by(2).collect();
        let [even, odd] = [0, 1].map(|first| self.interleaved(every_second(first)));
        let lanes = even.get_type().get_size();
        let pairs: Vec<u32> = (0..lanes).flat_map(|lane| [lane, lane + lanes]).collect();
        self.lanes_at(even, odd, &pairs)
    }

    /// The lanes whose numbers are below `count`, an i64 from 0 on.
    pub(in crate::cpu) fn lanes_below(&self, count: IntValue<'c>, lanes: u32) -> VectorValue<'c> {
        let count = self.lesser(count, self.i64(i64::from(lanes)));
        let count = self.in_every_lane(self.zext_or_trunc(count, 32).into(), lanes);
        let i32 = self.context.i32_type();
        let numbers: Vec<IntValue<'c>> = (0..lanes).map(|lane| i32.const_int(lane.into(), false)).collect();
        let numbers = VectorType::const_vector(&numbers);
        self.builder.build_int_compare(IntPredicate::ULT, numbers, count, "").expect(POSITIONED)
    }

    /// The elements from an address on, in the lanes that a mask has; memory of the others isn't touched, and they are
    /// those of `otherwise`. The load itself comes along, for what is to be said of it.
    pub(in crate::cpu) fn load_lanes(
        &self,
        from: PointerValue<'c>,
        mask: VectorValue<'c>,
        otherwise: VectorValue<'c>,
        alignment: u32,
    ) -> (VectorValue<'c>, InstructionValue<'c>) {
        let overloads = [otherwise.get_type().into(), from.get_type().into()];
        let arguments = [from.into(), mask.into(), otherwise.into()];
        let load = self.aligned_call("llvm.masked.load", &overloads, &arguments, 0, alignment);
        let value = load.try_as_basic_value().basic().expect("a load has a result").into_vector_value();
        (value, value.as_instruction_value().expect("a load is an instruction"))
    }

    /// Writes the lanes that a mask has, and touches no memory of others.
    pub(in crate::cpu) fn store_lanes(
        &self,
        to: PointerValue<'c>,
        mask: VectorValue<'c>,
        value: VectorValue<'c>,
        alignment: u32,
    ) -> InstructionValue<'c> {
        let overloads = [value.get_type().into(), to.get_type().into()];
        let arguments = [value.into(), to.into(), mask.into()];
        let store = self.aligned_call("llvm.masked.store", &overloads, &arguments, 1, alignment);
        store.try_as_basic_value().instruction().expect("a store is an instruction")
    }

    /// Calls an intrinsic that is told how far the argument of a number is aligned, in bytes.
    fn aligned_call(
        &self,
        name: &str,
        overloads: &[BasicTypeEnum<'c>],
        arguments: &[Value<'c>],
        argument: u32,
        alignment: u32,
    ) -> CallSiteValue<'c> {
        let intrinsic = Intrinsic::find(name).expect("LLVM has masked loads and stores");
        let function = intrinsic.get_declaration(&self.module, overloads).expect("of every vector type");
        let arguments: Vec<_> = arguments.iter().map(|&argument| argument.into()).collect();
        let call = self.builder.build_call(function, &arguments, "").expect(POSITIONED);
        let align = Attribute::get_named_enum_kind_id("align");
        let align = self.context.create_enum_attribute(align, alignment.into());
        call.add_attribute(AttributeLoc::Param(argument), align);
        call
    }

    /// The columns of a square of as many rows as these have lanes, a power of two: in each step, every other group of
    /// lanes of a row changes places with the neighbouring group of the row so far below, at half the distance of the
    /// step before (Eklundh, "A fast computer method for matrix transposing", 1972).
    pub(in crate::cpu) fn transposed(&self, mut rows: Vec<VectorValue<'c>>) -> Vec<VectorValue<'c>> {
        let count = rows.len() as u32;
        debug_assert!(count.is_power_of_two() && rows.iter().all(|row| row.get_type().get_size() == count));
        let mut distance = count / 2;
        while distance > 0 {
            let pick = |take_lower: bool| -> Vec<u32> {
                let lane = |lane: u32| match (take_lower, lane & distance == 0) {
                    (false, true) => lane,
                    (false, false) => count + lane - distance,
                    (true, true) => lane + distance,
                    (true, false) => count + lane,
                };
                (0..count).map(lane).collect()
            };
            for upper in (0..count).filter(|row| row & distance == 0) {
                let (a, b) = (rows[upper as usize], rows[(upper + distance) as usize]);
                rows[upper as usize] = self.lanes_at(a, b, &pick(false));
                rows[(upper + distance) as usize] = self.lanes_at(a, b, &pick(true));
            }
            distance /= 2;
        }
        rows
    }
}
