//! Values of expressions as SSA values: literals and extents get an op.

use super::{Lowered, Lowering, Reported, kind, rust_elem};
use crate::rewrite::place;
use crate::span::Span;
use crate::value::Val;
use tile_ir::ops::Literal;
use tile_ir::{DType, Dim, Elem, Op, Type, ValueId};

impl Lowering {
    /// A number as an SSA value: literals and extents get an op, of this format where theirs is open.
    pub(super) fn number(&mut self, value: &Val, elem: &Elem, what: &str, span: Span) -> Lowered<ValueId> {
        match value {
            Val::Data(value) => {
                self.require_elem(*value, elem, what, span)?;
                Ok(*value)
            }
            Val::Int(_) | Val::Float(_) => {
                let elem = self.elements.resolve(elem);
                self.literal(value, elem, span)
            }
            Val::Dim(dim) => {
                if !self.elements.unify(elem, &DType::Index.into()) {
                    let found = rust_elem(&self.elements.resolve(elem));
                    let message = format!("{what} is usize, but {found} is needed");
                    return self.error(span, message, "convert it with `as`");
                }
                Ok(self.extent(dim, span))
            }
            Val::Poison => Err(Reported),
            other => {
                let message = format!("{what} must be a number, not {}", kind(other));
                self.error(span, message, "use a scalar or a literal")
            }
        }
    }

    pub(super) fn literal(&mut self, value: &Val, elem: Elem, span: Span) -> Lowered<ValueId> {
        let is_float = elem.known().is_some_and(DType::is_float);
        let literal = match value {
            Val::Int(int) if is_float => {
                let help = format!("write `{}.0`", int.value);
                return self.error(
                    span,
                    format!("an integer literal where {} is needed", rust_elem(&elem)),
                    &help,
                );
            }
            Val::Float(_) if elem.known().is_some_and(|dtype| !dtype.is_float()) => {
                return self.error(
                    span,
                    format!("a float literal where {} is needed", rust_elem(&elem)),
                    "write an integer, or convert the other side",
                );
            }
            Val::Int(int) => Literal::Int(int.value),
            Val::Float(value) => Literal::Float(*value),
            _ => unreachable!("called with a literal"),
        };
        let constant = self.emit_one(Op::Constant { value: literal, elem }, &[], span, &[])?;
        if matches!(value, Val::Float(_)) && self.in_own_text() {
            self.float_literals.push((place(span.start()), constant));
        }
        Ok(constant)
    }

    pub(super) fn extent(&mut self, dim: &Dim, span: Span) -> ValueId {
        let op = match dim.as_const() {
            Some(value) => Op::Constant { value: Literal::Int(i128::from(value)), elem: DType::Index.into() },
            None => Op::Extent(dim.clone()),
        };
        self.append(op, &[], &[Type::INDEX], Vec::new(), span)[0]
    }

    /// Any scalar or tile as an SSA value; an open literal gets a format of its own.
    pub(super) fn data(&mut self, value: &Val, what: &str, span: Span) -> Lowered<ValueId> {
        match value {
            Val::Data(value) => Ok(*value),
            Val::Int(_) | Val::Float(_) => {
                let elem = self.elements.unknown();
                self.literal(value, elem, span)
            }
            Val::Dim(dim) => Ok(self.extent(dim, span)),
            Val::Poison => Err(Reported),
            Val::Closure(_) => {
                self.error(span, format!("{what} must be a scalar or a tile, not a closure"), "call it")
            }
            Val::List(_) | Val::Record(..) => {
                let message = format!("{what} must be a scalar or a tile, not {}", kind(value));
                self.error(span, message, "name its parts: `a[0]`, `pair.1`, `state.sum`, each by itself")
            }
            Val::Optional(..) => {
                let message = format!("{what} must be a scalar or a tile, not {}", kind(value));
                let help = "take it apart, `if let Some(x) = x { … }`; a number has `x.unwrap_or(1.0)`, too";
                self.error(span, message, help)
            }
            other => {
                let message = format!("{what} must be a scalar or a tile, not {}", kind(other));
                self.error(span, message, "load a tile from a view with `load_masked`")
            }
        }
    }

    /// A tile as an SSA value.
    pub(super) fn tile(&mut self, value: &Val, what: &str, span: Span) -> Lowered<ValueId> {
        match value {
            Val::Data(tile) if self.shape(*tile).is_some() => Ok(*tile),
            Val::Poison => Err(Reported),
            Val::Data(_) | Val::Int(_) | Val::Float(_) | Val::Dim(_) => self.error(
                span,
                format!("{what} must be a tile, not a scalar"),
                "make one with `Tile::full([…], value)`",
            ),
            Val::List(_) | Val::Record(..) => {
                let message = format!("{what} must be a tile, not {}", kind(value));
                self.error(span, message, "name a part of it: `a[0]`, `pair.1`, `state.sum`")
            }
            other => {
                let message = format!("{what} must be a tile, not {}", kind(other));
                self.error(span, message, "load a tile from a view with `load_masked`")
            }
        }
    }
}
