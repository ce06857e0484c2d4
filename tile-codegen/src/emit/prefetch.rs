//! A tile as ranges of memory, which prefetches ask for: its rows lie along the axis whose elements follow each
//! other, forwards or backwards. Where no axis does, each element is a row.

use super::{Ir, Value};
use inkwell::IntPredicate;
use inkwell::values::{IntValue, PointerValue};
use tile_ir::DType;

/// A tile in its tensor.
pub(crate) struct Rows<'c> {
    /// The address of the tile's first element, which may not exist.
    pub(crate) first: PointerValue<'c>,
    pub(crate) dtype: DType,
    pub(crate) tile: Vec<u64>,
    /// Elements from one place to the next, per axis.
    pub(crate) strides: Vec<IntValue<'c>>,
    /// The places along each axis that exist: from the first, where some are missing before it, to the last.
    pub(crate) begin: Vec<Option<IntValue<'c>>>,
    pub(crate) end: Vec<IntValue<'c>>,
}

impl<'c> Rows<'c> {
    fn stride(&self, axis: usize) -> Option<i64> {
        self.strides[axis].get_sign_extended_constant()
    }

    /// The axis that rows lie along.
    fn axis(&self) -> Option<usize> {
        let follows = |&axis: &usize| self.stride(axis).is_some_and(|stride| stride.abs() == 1);
        (0..self.tile.len()).filter(follows).max_by_key(|&axis| self.tile[axis])
    }

    /// How many rows there are along each axis: one along theirs, and one where all are the same.
    pub(crate) fn space(&self) -> Vec<u64> {
        let along = self.axis();
        let one = |axis: usize| Some(axis) == along || self.stride(axis) == Some(0);
        self.tile.iter().enumerate().map(|(axis, &extent)| if one(axis) { 1 } else { extent }).collect()
    }

    /// The largest number of lines of memory that a row lies in.
    pub(crate) fn lines(&self, line_bytes: u64) -> u64 {
        // The first element of the row may be the last of its line.
        match self.axis().map_or(1, |axis| self.tile[axis]) {
            0 | 1 => 1,
            elements => (elements - 2) * self.dtype.bytes() as u64 / line_bytes + 2,
        }
    }

    /// Where the elements of a row that exist begin, and how many bytes they take.
    pub(crate) fn range(&self, ir: &Ir<'c>, row: &[IntValue<'c>]) -> (PointerValue<'c>, IntValue<'c>) {
        let (zero, one) = (ir.i64(0), ir.i64(1));
        let (mut position, mut exists, mut count) = (zero, ir.bool(true), one);
        let along = self.axis();
        for (axis, &place) in row.iter().enumerate() {
            let (begin, end) = (self.begin[axis], self.end[axis]);
            if Some(axis) == along {
                let begin = begin.unwrap_or(zero);
                let some = ir.icmp(IntPredicate::SLT, begin, end);
                count = ir.select_int(some, ir.sub(end, begin), zero);
                let backwards = self.stride(axis) == Some(-1);
                let lowest = if backwards { ir.sub(one, end) } else { begin };
                position = ir.add(position, lowest);
                continue;
            }
            exists = ir.and(exists, ir.icmp(IntPredicate::SLT, place, end));
            if let Some(begin) = begin {
                exists = ir.and(exists, ir.icmp(IntPredicate::SGE, place, begin));
            }
            position = ir.add(position, ir.mul(place, self.strides[axis]));
        }
        let bytes = ir.mul(count, ir.i64(self.dtype.bytes() as i64));
        let start = ir.offset(ir.storage_type(self.dtype), self.first, position);
        (start, ir.select_int(exists, bytes, zero))
    }
}

/// What a line is asked for, in LLVM's numbers.
#[derive(Clone, Copy)]
enum Purpose {
    Read = 0,
    Write = 1,
}

impl<'c> Ir<'c> {
    /// How far into its line of memory an address is; `line_bytes` is a power of two.
    pub(crate) fn line_offset(&self, address: PointerValue<'c>, line_bytes: u64) -> IntValue<'c> {
        self.and(self.address(address), self.i64(line_bytes as i64 - 1))
    }

    /// The address so many bytes further, which may lie anywhere.
    pub(crate) fn bytes_further(&self, address: PointerValue<'c>, bytes: IntValue<'c>) -> PointerValue<'c> {
        // SAFETY: inkwell marks GEP unsafe because it may poison; one without `inbounds` doesn't.
        let further = unsafe { self.builder.build_gep(self.int_type(8), address, &[bytes], "") };
        further.expect("the builder is positioned")
    }

    /// LLVM's own prefetch, into all caches, of what will be read.
    pub(crate) fn prefetch(&self, address: PointerValue<'c>) {
        self.prefetch_near(address, Purpose::Read, 3);
    }

    /// LLVM's own prefetch, into all caches but the first, of what will be read when that has seen much else.
    pub(crate) fn prefetch_for_later(&self, address: PointerValue<'c>) {
        self.prefetch_near(address, Purpose::Read, 2);
    }

    /// LLVM's own prefetch, into all caches, of what will be written.
    pub(crate) fn prefetch_for_store(&self, address: PointerValue<'c>) {
        self.prefetch_near(address, Purpose::Write, 3);
    }

    /// A prefetch with LLVM's word for how near the line is to be kept, from 0 to 3.
    fn prefetch_near(&self, address: PointerValue<'c>, purpose: Purpose, locality: u64) {
        let number = |value| Value::from(self.context.i32_type().const_int(value, false));
        let data = number(1);
        let arguments = [address.into(), number(purpose as u64), number(locality), data];
        self.intrinsic("llvm.prefetch", &[address.get_type().into()], &arguments);
    }
}
