//! Formats of values: which are one, which is needed, and what a type parameter leaves open.

use super::describe::rust_elem;
use super::{Lowered, Lowering};
use crate::diagnostic::Diagnostic;
use crate::span::Span;
use tile_ir::kernel::GenericKind;
use tile_ir::ops::{Domain, ScatterMode};
use tile_ir::{DType, Elem, Op, Type, ValueId};

impl Lowering {
    /// Makes two formats one, or reports the mismatch.
    pub(super) fn unify(&mut self, a: ValueId, b: ValueId, what: &str, span: Span) -> Lowered<()> {
        let (left, right) = (self.elem(a), self.elem(b));
        if self.elements.unify(&left, &right) {
            return Ok(());
        }
        let (left, right) = (self.elem(a), self.elem(b));
        let message = format!("{what} mixes element types {} and {}", rust_elem(&left), rust_elem(&right));
        let (left, right) = (rust_elem(&left), rust_elem(&right));
        let is_shift = matches!(what, "`<<`" | "`>>`");
        let help = match (self.shape(a), self.shape(b)) {
            // The result has the format of what is shifted.
            (_, Some(_)) if is_shift => format!("convert the distance: `.cast::<{left}>()`"),
            (None, None) => format!("convert one side: `… as {left}` or `… as {right}`"),
            (Some(_), None) => format!("convert the scalar: `… as {left}`"),
            (None, Some(_)) => format!("convert the scalar: `… as {right}`"),
            (Some(_), Some(_)) => {
                format!("convert one side: `.cast::<{left}>()` or `.cast::<{right}>()`")
            }
        };
        let diagnostic = Diagnostic::new(span, message).help(help);
        let diagnostic = self.with_origin(diagnostic, a);
        let diagnostic = self.with_origin(diagnostic, b);
        self.report(diagnostic)
    }

    /// Requires a value's format.
    pub(super) fn require_elem(
        &mut self,
        value: ValueId,
        elem: &Elem,
        what: &str,
        span: Span,
    ) -> Lowered<()> {
        let found = self.elem(value);
        if self.elements.unify(&found, elem) {
            return Ok(());
        }
        let (found, elem) = (self.elem(value), self.elements.resolve(elem));
        let message = format!("{what} is {}, but {} is needed", rust_elem(&found), rust_elem(&elem));
        let help = match (self.shape(value), &elem) {
            (_, Elem::Known(DType::Bool)) => "compare it, as in `x > 0.0`".to_owned(),
            (Some(_), Elem::Known(DType::Index)) => {
                "a `usize` is a number, and this is a tile; of one with a single element, `x.item() as usize` is it"
                    .to_owned()
            }
            (Some(_), elem) => format!("convert it with `.cast::<{}>()`", rust_elem(elem)),
            (None, elem) => format!("convert it with `as {}`", rust_elem(elem)),
        };
        self.error(span, message, &help)
    }

    /// Refuses an op that some format within a type parameter's bound doesn't have. Signedness has no bound
    /// of its own: it is checked when the kernel is specialised.
    pub(super) fn check_bounds(&mut self, op: &Op, operands: &[Type], span: Span) -> Lowered<()> {
        let needed = match op {
            Op::Unary(op) => op.domain(),
            Op::Binary(op) => op.domain(),
            Op::Compare(predicate) => predicate.domain(),
            Op::Classify(classification) => classification.domain(),
            Op::Reduce { op, .. } | Op::Scan { op, .. } => op.domain(),
            Op::Sort { .. } => Domain::Number,
            Op::Histogram(_) => Domain::Int,
            Op::Scatter { mode: ScatterMode::Add, .. } => Domain::Number,
            _ => return Ok(()),
        };
        let needed = if needed == Domain::SignedNumber { Domain::Number } else { needed };
        let Some(Elem::Param(name)) = operands.first().map(Type::elem) else { return Ok(()) };
        let Some(generic) = self.kernel.generics.iter().find(|generic| generic.name == *name) else {
            return Ok(());
        };
        let GenericKind::Elem(bound) = generic.kind else { return Ok(()) };
        let mut formats = DType::ALL.iter().filter(|dtype| dtype.is_element() && bound.accepts(**dtype));
        if formats.all(|&dtype| needed.accepts(dtype)) {
            return Ok(());
        }
        let spelling = op.spelling();
        let message =
            format!("`{spelling}` needs {}, but `{name}` may be {}", needed.describe(), bound.describe());
        if needed == Domain::Bool {
            return self.error(span, message, "reduce a tile of `bool`, as a comparison gives");
        }
        let wanted = match needed {
            Domain::Float => "Float",
            Domain::Int | Domain::IntOrBool => "Int",
            _ => "Number",
        };
        self.error(span, message, &format!("declare `{name}: {wanted}`"))
    }
}
