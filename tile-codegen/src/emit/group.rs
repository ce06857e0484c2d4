//! Elements that lie next to each other in memory, moved by one instruction.
//!
//! Elements of fewer than 32 bits are packed into words: LLVM would split a vector of them into single accesses.

use super::{Ir, Value, fold};
use inkwell::types::BasicTypeEnum;
use inkwell::values::{BasicValueEnum, IntValue, PointerValue, VectorValue};
use tile_ir::DType;

const WORD: u32 = 32;

impl<'c> Ir<'c> {
    /// Reads `count` elements, a power of two of at most 16 bytes in all, from an address that is as aligned.
    pub(crate) fn load_group(&self, address: PointerValue<'c>, dtype: DType, count: u64) -> Vec<Value<'c>> {
        self.load_group_at(address, dtype, count, count)
    }

    /// [`Self::load_group`] from an address that is a multiple of the size of so many `aligned` elements.
    pub(crate) fn load_group_at(
        &self,
        address: PointerValue<'c>,
        dtype: DType,
        count: u64,
        aligned: u64,
    ) -> Vec<Value<'c>> {
        let storage = self.storage_type(dtype);
        let alignment = (aligned < count).then_some(aligned as u32 * dtype.bytes() as u32);
        let stored = match storage {
            _ if count == 1 => vec![self.load(storage, address)],
            BasicTypeEnum::IntType(ty) if ty.get_bit_width() < WORD => {
                let words = self.words_type((count * dtype.bytes() as u64) as u32);
                let words = self.load_at(words, address, alignment);
                self.split_words(words, ty.get_bit_width(), count as u32)
            }
            storage => self.elements(
                self.load_at(self.vector_type(storage, count as u32), address, alignment),
                count as u32,
            ),
        };
        self.values_from_storage(&stored, dtype)
    }

    /// Writes elements, as [`Self::load_group`] reads them.
    pub(crate) fn store_group(&self, address: PointerValue<'c>, dtype: DType, values: &[Value<'c>]) {
        self.store_group_at(address, dtype, values, values.len() as u64);
    }

    /// [`Self::store_group`] to an address that is a multiple of the size of so many `aligned` elements.
    pub(crate) fn store_group_at(
        &self,
        address: PointerValue<'c>,
        dtype: DType,
        values: &[Value<'c>],
        aligned: u64,
    ) {
        let alignment = (aligned < values.len() as u64).then_some(aligned as u32 * dtype.bytes() as u32);
        self.store_at(address, self.stored_group(values, dtype), alignment);
    }

    /// Elements as one value, as they lie in memory.
    fn stored_group(&self, values: &[Value<'c>], dtype: DType) -> Value<'c> {
        let stored: Vec<Value<'c>> =
            values.iter().map(|&value| self.value_to_storage(value, dtype)).collect();
        match (stored.as_slice(), self.storage_type(dtype)) {
            (&[value], _) => value,
            (values, BasicTypeEnum::IntType(ty)) if ty.get_bit_width() < WORD => {
                self.packed(values, ty.get_bit_width())
            }
            (values, storage) => self.vector(values, storage).into(),
        }
    }

    /// Elements as words, for instructions that know no other types: so many bytes as an integer, or as a vector of
    /// words where they are more than one.
    pub(crate) fn group_in_words(&self, values: &[Value<'c>], dtype: DType) -> Value<'c> {
        let words = self.words_type((values.len() * dtype.bytes()) as u32);
        self.reinterpret(self.stored_group(values, dtype), words)
    }

    /// So many elements from what [`Self::group_in_words`] makes of them.
    pub(crate) fn group_of_words(&self, words: Value<'c>, dtype: DType, count: u32) -> Vec<Value<'c>> {
        let storage = self.storage_type(dtype);
        let stored = match storage {
            BasicTypeEnum::IntType(ty) if ty.get_bit_width() < WORD => {
                self.split_words(words, ty.get_bit_width(), count)
            }
            _ if count == 1 => vec![self.reinterpret(words, storage)],
            _ => self.elements(self.reinterpret(words, self.vector_type(storage, count)), count),
        };
        self.values_from_storage(&stored, dtype)
    }

    /// The type of so many bytes, a power of two, in words.
    pub(crate) fn words_type(&self, bytes: u32) -> BasicTypeEnum<'c> {
        let bits = bytes * 8;
        if bits <= WORD {
            self.int_type(bits).into()
        } else {
            self.vector_type(self.int_type(WORD).into(), bits / WORD)
        }
    }

    /// A value, each of whose words of 32 bits goes through a function; a shorter value is the low bits of one.
    pub(crate) fn by_words(
        &self,
        value: Value<'c>,
        word: impl Fn(IntValue<'c>) -> IntValue<'c>,
    ) -> Value<'c> {
        let number = match value {
            Value::FloatValue(float) => self.bits(float),
            value => value.into_int_value(),
        };
        let bits = number.get_type().get_bit_width();
        let number = if bits <= WORD {
            self.zext_or_trunc(word(self.zext_or_trunc(number, WORD)), bits)
        } else {
            let amount = |i: u32| number.get_type().const_int((i * WORD).into(), false);
            let moved = (0..bits / WORD).map(|i| {
                let low = self.zext_or_trunc(self.lshr(number, amount(i)), WORD);
                self.shl(self.zext_or_trunc(word(low), bits), amount(i))
            });
            moved.reduce(|a, b| self.or(a, b)).expect("a value has bits")
        };
        match value {
            Value::FloatValue(float) => self.float_of_bits(number, float.get_type()).into(),
            _ => number.into(),
        }
    }

    /// Elements as words of 32 bits, the first in the lowest bits.
    pub(crate) fn words(&self, values: &[Value<'c>], dtype: DType) -> Vec<Value<'c>> {
        let stored: Vec<Value<'c>> =
            values.iter().map(|&value| self.value_to_storage(value, dtype)).collect();
        let bits = dtype.bytes() as u32 * 8;
        stored.chunks((WORD / bits) as usize).map(|chunk| self.packed(chunk, bits)).collect()
    }

    /// The elements of a word, of which it has `count`.
    pub(crate) fn unpacked(&self, word: Value<'c>, dtype: DType, count: u64) -> Vec<Value<'c>> {
        let (word, bits) = (word.into_int_value(), WORD / count as u32);
        let element = |i: u32| {
            let shifted = self.lshr(word, word.get_type().const_int((i * bits).into(), false));
            let stored = self.zext_or_trunc(shifted, bits).into();
            self.reinterpret(stored, self.storage_type(dtype))
        };
        let stored: Vec<Value<'c>> = (0..count as u32).map(element).collect();
        self.values_from_storage(&stored, dtype)
    }

    /// How many elements of a format a word has, if they come in and out of it at no cost.
    pub(crate) fn elements_of_word(dtype: DType) -> Option<u64> {
        let is_free = dtype.is_int() || dtype.is_narrow_float();
        let count = u64::from(WORD / 8) / dtype.bytes().min(4) as u64;
        (is_free && count > 1).then_some(count)
    }

    /// One of two groups of elements: in words, where elements are smaller.
    pub(crate) fn select_group(
        &self,
        condition: IntValue<'c>,
        then: &[Value<'c>],
        otherwise: &[Value<'c>],
        dtype: DType,
    ) -> Vec<Value<'c>> {
        let select = |(&then, &otherwise)| self.select(condition, then, otherwise);
        let count = Self::elements_of_word(dtype).filter(|&count| (then.len() as u64).is_multiple_of(count));
        let Some(count) = count else {
            if !(dtype.is_narrow_float() && dtype.bits() == 8) {
                return then.iter().zip(otherwise).map(select).collect();
            }
            // What is chosen among numbers would have to be converted to bits again.
            let stored = |values: &[Value<'c>]| -> Vec<Value<'c>> {
                values.iter().map(|&value| self.value_to_storage(value, dtype)).collect()
            };
            let chosen = stored(then).iter().zip(&stored(otherwise)).map(select).collect::<Vec<_>>();
            return self.values_from_storage(&chosen, dtype);
        };
        let words = [then, otherwise].map(|elements| self.words(elements, dtype));
        let chosen = words[0].iter().zip(&words[1]).map(select);
        chosen.flat_map(|word| self.unpacked(word, dtype, count)).collect()
    }

    /// A group of elements that something gives if a condition holds, and otherwise another: in words, where elements are
    /// smaller.
    pub(crate) fn group_if(
        &self,
        condition: IntValue<'c>,
        then: impl FnOnce() -> Vec<Value<'c>>,
        otherwise: &[Value<'c>],
        dtype: DType,
    ) -> Vec<Value<'c>> {
        let whole = |&count: &u64| (otherwise.len() as u64).is_multiple_of(count);
        let Some(count) = Self::elements_of_word(dtype).filter(whole) else {
            return self.if_else(condition, then, || otherwise.to_vec());
        };
        let words = |values: &[Value<'c>]| self.words(values, dtype);
        let words = self.if_else(condition, || words(&then()), || words(otherwise));
        words.into_iter().flat_map(|word| self.unpacked(word, dtype, count)).collect()
    }

    /// Elements as one integer of at most 64 bits.
    pub(crate) fn packed_words(&self, values: &[Value<'c>], dtype: DType) -> Value<'c> {
        let words = self.words(values, dtype);
        let number = |word: Value<'c>| self.zext_or_trunc(word.into_int_value(), 64);
        match words.as_slice() {
            [word] => *word,
            &[low, high] => {
                let high = self.shl(number(high), self.i64(i64::from(WORD)));
                self.or(number(low), high).into()
            }
            words => unreachable!("{} words aren't 64 bits", words.len()),
        }
    }

    /// Elements as one vector of a type of the format's width; a single element as it is.
    pub(crate) fn gathered(
        &self,
        values: &[Value<'c>],
        dtype: DType,
        element: BasicTypeEnum<'c>,
    ) -> Value<'c> {
        let stored =
            values.iter().map(|&value| self.reinterpret(self.value_to_storage(value, dtype), element));
        match stored.collect::<Vec<_>>().as_slice() {
            &[value] => value,
            values => self.vector(values, element).into(),
        }
    }

    /// Elements as a vector of words.
    pub(crate) fn word_vector(&self, values: &[Value<'c>], dtype: DType) -> Value<'c> {
        self.vector(&self.words(values, dtype), self.int_type(WORD).into()).into()
    }

    /// The same bits as another type.
    pub(crate) fn reinterpret(&self, value: Value<'c>, ty: BasicTypeEnum<'c>) -> Value<'c> {
        if value.get_type() == ty {
            return value;
        }
        self.builder.build_bit_cast(value, ty, "").expect("the builder is positioned")
    }

    /// The elements of a vector or a structure; a single element is one.
    pub(crate) fn parts(&self, all: Value<'c>, count: u32) -> Vec<Value<'c>> {
        match all {
            Value::VectorValue(_) => self.elements(all, count),
            Value::StructValue(all) => {
                let part =
                    |i| self.builder.build_extract_value(all, i, "").expect("the builder is positioned");
                (0..count).map(part).collect()
            }
            one => vec![one],
        }
    }

    fn vector_type(&self, element: BasicTypeEnum<'c>, count: u32) -> BasicTypeEnum<'c> {
        match element {
            BasicTypeEnum::FloatType(ty) => ty.vec_type(count).into(),
            BasicTypeEnum::IntType(ty) => ty.vec_type(count).into(),
            _ => unreachable!("elements are integers or floats"),
        }
    }

    fn elements(&self, vector: Value<'c>, count: u32) -> Vec<Value<'c>> {
        let vector = vector.into_vector_value();
        let index = |i: u32| self.context.i32_type().const_int(i.into(), false);
        let element = |i| self.builder.build_extract_element(vector, index(i), "");
        (0..count).map(|i| element(i).expect("the builder is positioned")).collect()
    }

    /// A vector of elements of this type.
    pub(super) fn vector(&self, values: &[Value<'c>], element: BasicTypeEnum<'c>) -> VectorValue<'c> {
        let ty = self.vector_type(element, values.len() as u32).into_vector_type();
        let insert = |vector: VectorValue<'c>, (i, &value): (usize, &BasicValueEnum<'c>)| {
            let index = self.context.i32_type().const_int(i as u64, false);
            self.builder.build_insert_element(vector, value, index, "").expect("the builder is positioned")
        };
        values.iter().enumerate().fold(ty.get_poison(), insert)
    }

    /// The integers of so many bits, fewer than a word has, in a value of [`Self::words_type`].
    pub(super) fn split_words(&self, words: Value<'c>, bits: u32, count: u32) -> Vec<Value<'c>> {
        let parts = |word: Value<'c>| {
            let word = word.into_int_value();
            let width = word.get_type().get_bit_width();
            let part = move |i: u32| {
                let shifted = self.lshr(word, word.get_type().const_int((i * bits).into(), false));
                Value::from(self.zext_or_trunc(shifted, bits))
            };
            (0..width / bits).map(part).collect::<Vec<_>>()
        };
        let words = self.parts(words, (count * bits).div_ceil(WORD));
        words.into_iter().flat_map(parts).collect()
    }

    fn packed(&self, values: &[Value<'c>], bits: u32) -> Value<'c> {
        let width = WORD.min(bits * values.len() as u32);
        let chunks = || values.chunks((width / bits) as usize);
        let known: Option<Vec<Value<'c>>> =
            chunks().map(|parts| fold::word(parts, width).map(Value::from)).collect();
        if known.is_none() && self.features.half_vectors && 2 * bits == WORD && values.len() > 1 {
            let (words, word) = (values.len() as u32 / 2, self.int_type(WORD).into());
            let ty = if words == 1 { word } else { self.vector_type(word, words) };
            return self.reinterpret(self.vector(values, self.int_type(bits).into()).into(), ty);
        }
        let words = known.unwrap_or_else(|| chunks().map(|parts| self.joined(parts, width).into()).collect());
        match words.as_slice() {
            [word] => *word,
            words => self.vector(words, self.int_type(width).into()).into(),
        }
    }

    /// Integers as one of `width` bits, the first in the lowest.
    pub(super) fn joined(&self, parts: &[Value<'c>], width: u32) -> IntValue<'c> {
        let (ty, bits) = (self.int_type(width), u64::from(width) / parts.len() as u64);
        let shifted = parts.iter().enumerate().map(|(i, part)| {
            let part = self.zext_or_trunc(part.into_int_value(), width);
            if i == 0 { part } else { self.shl(part, ty.const_int(i as u64 * bits, false)) }
        });
        shifted.reduce(|a, b| self.or(a, b)).expect("a word has parts")
    }
}
