//! Ops on elements, and tiles made of nothing.

use super::writer::{Entry, Writer};
use tile_ir::DType;
use tile_ir::ops::{BinaryOp, Classification, Domain, Predicate, UnaryOp};
use tile_ir::round::Rounding;

impl Writer<'_> {
    pub(super) fn binary(&mut self) {
        let a = self.operand();
        let b = self.same_type_as(&a);
        if a.dtype.is_float() && self.choose(8) == 0 {
            let c = self.same_type_as(&a);
            self.define(&format!("mul_add {}, {}, {}", a.name, b.name, c.name), &a.shape, a.dtype);
            return;
        }
        let ops: Vec<BinaryOp> = BinaryOp::ALL
            .iter()
            .copied()
            .filter(|op| op.domain().accepts(a.dtype) && op.ulps().is_none())
            .collect();
        let op = ops[self.choose(ops.len())];
        // The sign of a NaN that an operation made is the machine's.
        let b = if op == BinaryOp::CopySign { self.summable(&b) } else { b };
        self.define(&format!("{} {}, {}", op.name(), a.name, b.name), &a.shape, a.dtype);
    }

    pub(super) fn unary(&mut self) {
        let a = self.operand();
        let question = a.dtype.is_float() && self.choose(8) == 0;
        if question {
            let question = Classification::ALL[self.choose(Classification::ALL.len())];
            self.define(&format!("{} {}", question.name(), a.name), &a.shape, DType::Bool);
            return;
        }
        let ops: Vec<UnaryOp> = UnaryOp::ALL
            .iter()
            .copied()
            .filter(|op| op.domain().accepts(a.dtype) && op.ulps().is_none())
            .collect();
        let op = ops[self.choose(ops.len())];
        self.define(&format!("{} {}", op.name(), a.name), &a.shape, a.dtype);
    }

    /// The tile in another format, by one of the three ways.
    pub(super) fn convert(&mut self) {
        let (tile, to) = (self.operand(), self.format());
        let way = self.choose(4);
        if way == 0 && tile.dtype.is_float() && to != DType::Bool && to != tile.dtype {
            let rounding = Rounding::ALL[self.choose(Rounding::ALL.len())];
            self.define(&format!("cast_with {} {}", rounding.name(), tile.name), &tile.shape, to);
            return;
        }
        if way == 2 && Domain::Float.accepts(tile.dtype) && Domain::Float.accepts(to) && to != tile.dtype {
            self.define(&format!("saturating_cast {}", tile.name), &tile.shape, to);
            return;
        }
        let bools = to == DType::Bool || tile.dtype == DType::Bool;
        if way == 2 && !bools && !tile.dtype.is_float() {
            let length = 1 + self.choose(40);
            let number = |at: usize| if to.is_float() { format!("{at}.0") } else { at.to_string() };
            let table: Vec<String> = (0..length).map(number).collect();
            self.define(&format!("lookup [{}] {}", table.join(", "), tile.name), &tile.shape, to);
            return;
        }
        if way == 1 && to.bits() == tile.dtype.bits() && to != tile.dtype && !bools {
            // The bits of a NaN are the machine's.
            let tile = self.summable(&tile);
            self.define(&format!("bitcast {}", tile.name), &tile.shape, to);
            return;
        }
        self.cast(&tile, to);
    }

    pub(super) fn choice(&mut self) {
        let a = self.operand();
        let b = self.same_type_as(&a);
        let condition = self.compared(&a, &b);
        let shape = a.shape.clone();
        let x = self.pick(|entry| entry.shape == shape && entry.dtype != DType::Index);
        if let Some(x) = x {
            let y = self.same_type_as(&x);
            self.define(&format!("select {}, {}, {}", condition.name, x.name, y.name), &a.shape, x.dtype);
        }
    }

    /// How two values of one type compare.
    pub(super) fn compared(&mut self, a: &Entry, b: &Entry) -> Entry {
        let predicates: Vec<Predicate> =
            Predicate::ALL.iter().copied().filter(|it| it.domain().accepts(a.dtype)).collect();
        let predicate = predicates[self.choose(predicates.len())].name();
        self.define(&format!("{predicate} {}, {}", a.name, b.name), &a.shape, DType::Bool)
    }

    pub(super) fn make(&mut self) {
        let like = self.tile();
        if self.choose(2) == 0 && like.dtype != DType::Bool {
            let axis = self.choose(like.shape.len());
            self.define(&format!("iota {axis}"), &like.shape, like.dtype);
        } else if let Some(scalar) = self.pick(|entry| entry.shape.is_empty()) {
            let scalar = if scalar.dtype == DType::Index { self.cast(&scalar, DType::I32) } else { scalar };
            self.splat(&scalar, &like.shape);
        }
    }

    pub(super) fn scalar(&mut self) {
        let format = self.format();
        let number = if self.choose(3) == 0 {
            self.extreme_number(format)
        } else {
            let value = self.choose(9) as u8;
            self.number(format, value)
        };
        let dtype = number.dtype;
        if let Some(other) = self.pick(|e| e.shape.is_empty() && e.dtype == dtype && dtype != DType::Bool) {
            self.define(&format!("sub {}, {}", number.name, other.name), &[], dtype);
        }
    }

    /// An index made of others, or a number of the launch; it may lie outside of everything.
    pub(super) fn index(&mut self) {
        let is_index = |entry: &Entry| entry.dtype == DType::Index;
        let a = self.pick(is_index).expect("the block's index is in scope");
        let b = self.pick(is_index).expect("the block's index is in scope");
        let axis = self.choose(self.tile.len());
        let made = match self.choose(8) {
            0 if !self.shares_tiles => self.define(&format!("block_id axis {axis}"), &[], DType::Index),
            1 if !self.shares_tiles => self.define(&format!("block_count axis {axis}"), &[], DType::Index),
            2 => {
                let number = self.cast(&a, DType::I16);
                self.cast(&number, DType::Index)
            }
            _ => {
                let ops: Vec<BinaryOp> =
                    BinaryOp::ALL.iter().copied().filter(|op| op.domain().accepts(DType::Index)).collect();
                let op = ops[self.choose(ops.len())].name();
                self.define(&format!("{op} {}, {}", a.name, b.name), &[], DType::Index)
            }
        };
        let number = self.choose(5);
        let number = self.define(&format!("constant {number}"), &[], DType::Index);
        self.define(&format!("add {}, {}", made.name, number.name), &[], DType::Index);
    }
}
