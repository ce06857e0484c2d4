//! Arrays of arguments. Their elements are arguments of the IR, so which of them is used is known when the macro expands;
//! where a const parameter is the length, a loop over them has as many turns as there may be, each in a branch that an
//! instance takes or not.

use super::control::unroll::Unrolled;
use super::{Lowered, Lowering};
use crate::copies::Occurrence;
use crate::span::{Span, Spanned};
use crate::value::Val;
use syn::{Expr, ExprMethodCall, ExprPath};
use tile_ir::{Dim, Type, ValueId};

/// Whether a value is an array of tensors, or of arguments whose number is a const parameter.
pub(super) fn is_of_arguments(value: &Val) -> bool {
    match value {
        Val::Arguments(..) => true,
        Val::List(values) => matches!(values.first(), Some(Val::Tensor(_))),
        _ => false,
    }
}

impl Lowering {
    /// Whether an expression names an array of arguments.
    pub(super) fn names_arguments(&self, expression: &Expr) -> bool {
        self.variable(expression).is_some_and(|value| is_of_arguments(&value))
    }

    /// The value of the variable that an expression is, if it is one.
    pub(super) fn variable(&self, expression: &Expr) -> Option<Val> {
        let Expr::Path(path) = expression else { return None };
        let id = self.scopes.find(&path.path.get_ident()?.to_string())?;
        Some(self.scopes.variables[id].value.clone())
    }

    /// How many elements an array has.
    pub(super) fn length(&mut self, array: &Val, call: &ExprMethodCall) -> Lowered<Val> {
        self.arguments("len", &call.args, 0, "x.len()", call.span())?;
        match array {
            Val::Arguments(_, count) => Ok(Val::Dim(count.clone())),
            Val::List(values) | Val::Iterator(values) => Ok(Val::Dim(Dim::from(values.len() as i64))),
            _ => self.no_method("this", call, "an array of arguments has a length"),
        }
    }

    /// How long an array of arguments may be whose length is a const parameter.
    pub(super) fn most_arguments(&self, length: &Dim) -> Option<i64> {
        self.scopes.variables.iter().find_map(|variable| match &variable.value {
            Val::Arguments(values, count) if count == length => i64::try_from(values.len()).ok(),
            _ => None,
        })
    }

    /// A turn of a loop that an instance has where an array of arguments has more elements than `at`.
    pub(super) fn if_counted(&mut self, value: Val, at: i64, count: &Dim, span: Span) -> Lowered<Unrolled> {
        if at == 0 {
            return Ok(Unrolled::always(value));
        }
        let exists = self.exceeds(count, at, span)?;
        Ok(Unrolled { value, exists: Some(exists) })
    }

    /// Rust would move an optional output where a body looks whether it is given, and a loop may do so in every turn.
    pub(super) fn lend_optional(&mut self, value: &Val, path: &ExprPath) {
        if matches!(*value, Val::Optional(tensor, _) if self.is_written(tensor)) {
            self.rewrites.lent.insert(self.occurrence(path.span()), "as_deref_mut");
        }
    }

    /// And an array of outputs that a loop goes through.
    pub(super) fn lend_array(&mut self, value: &Val, expression: &Expr) {
        let (Val::List(values) | Val::Iterator(values) | Val::Arguments(values, _)) = value else { return };
        if matches!(values.first(), Some(&Val::Tensor(tensor)) if self.is_written(tensor)) {
            self.rewrites.lent.insert(Occurrence::at_start(expression), "each_mut");
        }
    }

    fn is_written(&self, tensor: ValueId) -> bool {
        matches!(self.kernel.ty(tensor), Type::Tensor(tensor) if tensor.mutable)
    }

    pub(super) fn unknown_argument<T>(&mut self, place: Span) -> Lowered<T> {
        let help = "index it by a literal, or by the counter of a `for` over its length; one of several tensors is chosen at \
                    run time where they are one, with another axis: `x.select(axis, i)`";
        self.error(place, "which of the arguments this is would be known only at run time", help)
    }
}
