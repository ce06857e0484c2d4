//! What messages say of values: what they are, and where that comes from.

use super::Lowering;
use crate::diagnostic::Diagnostic;
use crate::elements::Elements;
use crate::scope::Variable;
use crate::span::Span;
use crate::value::Val;
use tile_ir::ops::TypeError;
use tile_ir::ops::infer::display_shape;
use tile_ir::{Elem, Type, ValueId};

impl Lowering {
    /// A type error at the operand that it blames, with where each operand comes from.
    pub(super) fn explain(
        &self,
        error: TypeError,
        operands: &[ValueId],
        span: Span,
        operand_spans: &[Span],
    ) -> Diagnostic {
        let place = error.operand.and_then(|i| operand_spans.get(i).copied()).unwrap_or(span);
        let mut diagnostic = Diagnostic::of_type_error(place, error);
        for &operand in operands {
            diagnostic = self.with_origin(diagnostic, operand);
        }
        diagnostic
    }

    /// Adds where a value's shape and format come from: its variable, the view it was loaded from, or the
    /// origin of the tile that it was made of.
    pub(super) fn with_origin(&self, diagnostic: Diagnostic, value: ValueId) -> Diagnostic {
        let is_value = |variable: &&Variable| match variable.value {
            Val::Data(data) => data == value,
            Val::View(view) => view == value,
            _ => false,
        };
        if let Some(variable) = self.scopes.variables.iter().rev().find(is_value) {
            let label = match self.kernel.ty(value) {
                Type::Partition(view) => {
                    format!("`{}` has tiles {}", variable.name, display_shape(&view.tile))
                }
                _ => format!("`{}` is {}", variable.name, self.display_type(value)),
            };
            return diagnostic.label(variable.span, label);
        }
        let maker = self.kernel.op_ids().map(|op| self.kernel.op(op)).find(|op| op.results.contains(&value));
        match maker.and_then(|op| op.operands.first()) {
            Some(&operand) if !matches!(self.kernel.ty(operand), Type::Scalar(_)) => {
                self.with_origin(diagnostic, operand)
            }
            _ => diagnostic,
        }
    }

    /// What to call a value in a message that tells tiles from numbers.
    pub(super) fn kind_of(&self, value: &Val) -> &'static str {
        match value {
            Val::Data(data) if self.shape(*data).is_some() => "a tile",
            value => kind(value),
        }
    }

    /// A type as a message shows it: without placeholders.
    pub(super) fn display_type(&self, value: ValueId) -> String {
        let ty = self.ty(value);
        let unknown = Elements::is_unknown(ty.elem());
        match &ty {
            Type::Tile(tile) if unknown => {
                format!("a tile of shape {}", display_shape(&tile.shape))
            }
            Type::Scalar(_) if unknown => "a number".to_owned(),
            Type::Scalar(Elem::Known(dtype)) => dtype.rust_name().to_owned(),
            ty => format!("{ty:#}"),
        }
    }
}

/// What to call a value in a message.
pub(super) fn kind(value: &Val) -> &'static str {
    match value {
        Val::Int(_) | Val::Float(_) | Val::Data(_) => "a number",
        Val::Dim(_) => "a usize",
        Val::Tensor(_) => "a tensor",
        Val::Optional(..) => "an optional argument",
        Val::Windows(..) => "windows over a margin",
        Val::View(_) | Val::WindowsView(..) => "a partition view",
        Val::ViewTile(_) => "a tile of a view",
        Val::Atomic(_) => "an atomic view",
        Val::Arguments(..) => "an array of arguments",
        Val::List(_) => "an array or tuple",
        Val::Iterator(_) => "an iterator",
        Val::Record(..) => "a struct",
        Val::Closure(_) => "a closure",
        Val::Unit => "`()`",
        Val::Never | Val::Unset => "nothing, because control leaves here",
        Val::Poison => "an error",
    }
}

/// A format by its Rust name.
pub(super) fn rust_elem(elem: &Elem) -> String {
    match elem {
        Elem::Known(dtype) => dtype.rust_name().to_owned(),
        Elem::Param(_) if Elements::is_unknown(elem) => "a number".to_owned(),
        Elem::Param(name) => name.clone(),
    }
}
