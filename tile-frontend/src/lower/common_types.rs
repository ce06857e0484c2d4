//! Values that are of one type together: to rustc all elements of an array, all arms of a `match` and what all calls of a
//! closure are given and give. Any of them may decide the formats of the literals in the others, part by part. Where they
//! differ, rustc says so; here that decides nothing.

use super::{Lowered, Lowering};
use crate::span::Span;
use crate::value::{Float, Formats, Int, Val};
use tile_ir::DType;

impl Lowering {
    /// What is known of a value's type, which outlives the kernel that the value is of.
    pub(super) fn formats_of(&self, value: &Val) -> Formats {
        let all = |parts: &[Val]| Formats::Parts(parts.iter().map(|part| self.formats_of(part)).collect());
        match value {
            Val::Dim(_) => Formats::Elements(DType::Index.into()),
            Val::Data(data) => Formats::Elements(self.elem(*data)),
            Val::List(parts) | Val::Iterator(parts) => all(parts),
            Val::Record(_, fields) => {
                Formats::Parts(fields.values().map(|field| self.formats_of(field)).collect())
            }
            value => value.shared().cloned().map_or(Formats::Open, Formats::Elements),
        }
    }

    /// Makes two types one.
    pub(super) fn unify_formats(&mut self, a: &Formats, b: &Formats) {
        match (a, b) {
            (Formats::Elements(a), Formats::Elements(b)) => {
                self.elements.unify(a, b);
            }
            (Formats::Parts(a), Formats::Parts(b)) => {
                a.iter().zip(b).for_each(|(a, b)| self.unify_formats(a, b));
            }
            _ => {}
        }
    }

    /// A value whose type these others have as well.
    pub(super) fn of_type_with(&mut self, value: Val, others: impl IntoIterator<Item = Formats>) -> Val {
        let mut others = others.into_iter().peekable();
        if others.peek().is_none() {
            return value;
        }
        let value = self.named(value);
        let formats = self.formats_of(&value);
        others.for_each(|other| self.unify_formats(&formats, &other));
        value
    }

    /// The elements of an array.
    pub(super) fn of_one_type(&mut self, mut values: Vec<Val>, span: Span) -> Lowered<Vec<Val>> {
        self.make_one_type(values.iter_mut().collect(), span)?;
        Ok(values)
    }

    /// The same of values of one kind: of arrays, tuples and structs it is their parts, each with those of the others.
    fn make_one_type(&mut self, mut values: Vec<&mut Val>, span: Span) -> Lowered<()> {
        let count = values.first_mut().map_or(0, |value| parts_of(value).len());
        if count > 0 && values.iter_mut().all(|value| parts_of(value).len() == count) {
            let mut beside: Vec<Vec<&mut Val>> = (0..count).map(|_| Vec::new()).collect();
            for value in values {
                beside.iter_mut().zip(parts_of(value)).for_each(|(parts, part)| parts.push(part));
            }
            return beside.into_iter().try_for_each(|parts| self.make_one_type(parts, span));
        }
        let known = values.iter().find_map(|value| self.formats_of(value).elements().cloned());
        let elem = known.unwrap_or_else(|| self.elements.unknown());
        for value in values {
            self.share(value, &elem, "an element of an array", span)?;
            match value {
                Val::Int(Int { shared, .. }) | Val::Float(Float { shared, .. }) => {
                    shared.get_or_insert_with(|| elem.clone());
                }
                // What else it may be, rustc says.
                Val::Dim(_) => {
                    self.elements.unify(&DType::Index.into(), &elem);
                }
                Val::Data(data) => {
                    let found = self.elem(*data);
                    self.elements.unify(&found, &elem);
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// The parts of an array, a tuple or a struct.
fn parts_of(value: &mut Val) -> Vec<&mut Val> {
    match value {
        Val::List(parts) => parts.iter_mut().collect(),
        Val::Record(_, fields) => fields.values_mut().collect(),
        _ => Vec::new(),
    }
}
