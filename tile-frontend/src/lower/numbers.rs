//! Values of expressions as SSA values: literals and extents get an op.

use super::{Lowered, Lowering, Reported, kind, rust_elem};
use crate::copies::Occurrence;
use crate::elements::Elements;
use crate::span::Span;
use crate::value::{Int, Val};
use tile_ir::ops::{Domain, Literal};
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
                self.share(value, elem, what, span)?;
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

    /// A number as one of this format, whose type it is declared to be: one of `usize` that is known stays known.
    pub(super) fn declared_number(
        &mut self,
        value: Val,
        elem: &Elem,
        what: &str,
        span: Span,
    ) -> Lowered<Val> {
        let is_index = *elem == Elem::Known(DType::Index);
        match value {
            Val::Dim(_) if is_index => Ok(value),
            Val::Int(Int { value: number, .. }) if is_index => match i64::try_from(number) {
                Ok(number) => Ok(Val::Dim(Dim::from(number))),
                Err(_) => self.error(span, format!("{number} doesn't fit usize"), "use a smaller number"),
            },
            value => self.number(&value, elem, what, span).map(Val::Data),
        }
    }

    /// An integer of any type, where Rust's parameter is of any: a use that decides nothing of its type. What has no type of
    /// elements, or none yet, is converted to `wide`, and a literal is made in it.
    pub(super) fn any_integer(
        &mut self,
        value: &Val,
        wide: DType,
        what: &str,
        span: Span,
    ) -> Lowered<ValueId> {
        let scalar = match *value {
            Val::Data(scalar) => scalar,
            Val::Dim(ref dim) => self.extent(dim, span),
            _ => return self.number(&value.alone(), &wide.into(), what, span),
        };
        let elem = self.elem(scalar);
        match elem.known() {
            Some(dtype) if dtype.is_int() && dtype.is_element() => Ok(scalar),
            // Of a counter of a range of literals nothing else need say the format.
            Some(DType::Index) => self.emit_one(Op::Cast(wide.into()), &[scalar], span, &[span]),
            None if Elements::is_unknown(&elem) => {
                self.emit_one(Op::Cast(wide.into()), &[scalar], span, &[span])
            }
            None => Ok(scalar),
            Some(_) => self.number(value, &wide.into(), what, span),
        }
    }

    pub(super) fn literal(&mut self, value: &Val, elem: Elem, span: Span) -> Lowered<ValueId> {
        let (is_float, is_integer) = match (elem.known(), self.domain_of(&elem)) {
            (Some(dtype), _) => (dtype.is_float(), !dtype.is_float()),
            (None, domain) => (domain == Some(Domain::Float), domain == Some(Domain::Int)),
        };
        let literal = match value {
            Val::Int(int) if is_float => {
                let help = format!("write `{}.0`", int.value);
                return self.error(
                    span,
                    format!("an integer literal where {} is needed", rust_elem(&elem)),
                    &help,
                );
            }
            Val::Float(_) if is_integer => {
                return self.error(
                    span,
                    format!("a float literal where {} is needed", rust_elem(&elem)),
                    "write an integer, or convert the other side",
                );
            }
            Val::Int(int) => Literal::Int(int.value),
            Val::Float(float) if elem.known() == Some(DType::F32) => Literal::Float(float.single.into()),
            Val::Float(float) => Literal::Float(float.value),
            _ => unreachable!("called with a literal"),
        };
        let constant = self.emit_one(Op::Constant { value: literal, elem: elem.clone() }, &[], span, &[])?;
        match value {
            Val::Float(float) => {
                self.singles.insert(constant, float.single);
                self.note_literals(float.place, &elem);
            }
            Val::Int(int) => self.note_literals(int.places.iter().copied(), &elem),
            _ => {}
        }
        Ok(constant)
    }

    /// Notes where literals of this format are written.
    pub(super) fn note_literals(&mut self, places: impl IntoIterator<Item = Occurrence>, elem: &Elem) {
        self.literals.extend(places.into_iter().map(|place| (place, elem.clone())));
    }

    /// A value as one that has a name: all uses of a literal decide its type together, as they do for rustc.
    pub(super) fn named(&mut self, value: Val) -> Val {
        match value {
            Val::Int(mut int) => {
                let shared = int.shared.get_or_insert_with(|| self.elements.unknown()).clone();
                self.note_literals(int.places.drain(..), &shared);
                Val::Int(int)
            }
            Val::Float(mut float) => {
                let shared = float.shared.get_or_insert_with(|| self.elements.unknown()).clone();
                self.note_literals(float.place.take(), &shared);
                Val::Float(float)
            }
            Val::List(values) => Val::List(values.into_iter().map(|value| self.named(value)).collect()),
            Val::Iterator(values) => {
                Val::Iterator(values.into_iter().map(|value| self.named(value)).collect())
            }
            // Fields have their types since the value was made.
            value => value,
        }
    }

    /// Requires of a literal whose type other uses decide as well that they decide for this one.
    pub(super) fn share(&mut self, value: &Val, elem: &Elem, what: &str, span: Span) -> Lowered<()> {
        let Some(shared) = value.shared() else { return Ok(()) };
        let is_of_floats = self.elements.resolve(elem).known().map(DType::is_float);
        // A literal of the other kind is refused where its constant is made.
        if is_of_floats.is_some_and(|is_of_floats| is_of_floats != matches!(value, Val::Float(_)))
            || self.elements.unify(shared, elem)
        {
            return Ok(());
        }
        let (shared, elem) = (self.elements.resolve(shared), self.elements.resolve(elem));
        let (found, needed) = (rust_elem(&shared), rust_elem(&elem));
        let message = match what.starts_with('`') {
            true => format!("{what} mixes element types {found} and {needed}"),
            false => format!("{what} is {found}, but {needed} is needed"),
        };
        let help = format!(
            "write `… as {needed}`: a variable, a loop's counter too, is of one type, here {found}, wherever it is used"
        );
        self.error(span, message, &help)
    }

    pub(super) fn extent(&mut self, dim: &Dim, span: Span) -> ValueId {
        let op = match dim.as_const() {
            Some(value) => Op::Constant { value: Literal::Int(i128::from(value)), elem: DType::Index.into() },
            None => Op::Extent(dim.clone()),
        };
        self.append(op, &[], &[Type::INDEX], Vec::new(), span)[0]
    }

    /// Any scalar or tile as an SSA value; an open literal that has no name gets a format of its own.
    pub(super) fn data(&mut self, value: &Val, what: &str, span: Span) -> Lowered<ValueId> {
        match value {
            Val::Data(value) => Ok(*value),
            Val::Int(_) | Val::Float(_) => {
                let elem = value.shared().cloned().unwrap_or_else(|| self.elements.unknown());
                let elem = self.elements.resolve(&elem);
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
