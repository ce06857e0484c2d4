//! `threads = 256`, `stages = S` and `occupancy = 2` of `#[tile_kernel(…)]`: how GPUs schedule a kernel.

use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::extent::{self, Kind, Names};
use crate::span::Spanned;
use syn::Expr;
use tile_ir::{ScheduleHint, ScheduleHints};

/// What an expression of a hint is.
const NUMBER: Kind = Kind {
    name: "the number of a hint",
    examples: "a hint is a const parameter, a number",
    names: "name a const parameter of the kernel, or write a number",
};

/// The hints that the attribute gives.
pub(crate) fn lower(hints: &[(ScheduleHint, Expr)], names: &Names) -> Result<ScheduleHints, Diagnostics> {
    let (mut said, mut errors) = (ScheduleHints::default(), Vec::new());
    for (hint, expression) in hints {
        match extent::lower(expression, names, &NUMBER) {
            Err(error) => errors.push(*error),
            Ok(value) => {
                if let Err(error) = hint.check(&value) {
                    errors.push(Diagnostic::of_type_error(expression.span(), error));
                }
                if said.say(*hint, value).is_some() {
                    let message = format!("`{}` is said twice", hint.name());
                    let help = "say it once: values to compare are those of a const parameter";
                    errors.push(Diagnostic::new(expression.span(), message).help(help));
                }
            }
        }
    }
    if errors.is_empty() { Ok(said) } else { Err(Diagnostics::new(errors)) }
}
