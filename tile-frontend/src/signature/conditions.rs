//! Conditions on extents: `where(m % BM == 0, !CAUSAL || m == n)`.

use super::Parser;
use crate::rewrite::predicate;
use crate::span::Spanned;
use quote::ToTokens;
use syn::{BinOp, Expr, ExprMethodCall, Stmt, UnOp};
use tile_ir::condition::{Comparison, Formula};
use tile_ir::kernel::{Generic, GenericKind};
use tile_ir::ops::Predicate;
use tile_ir::{Condition, Dim, Kernel, Loc};

const HELP: &str = "write a comparison of extents, such as `BK % 16 == 0`, a `bool` parameter, or `bias.is_some()` of an optional argument; \
     `!`, `&&` and `||` join them";

impl Parser<'_> {
    /// A condition, or several with `&&`, which are told apart in messages.
    pub(super) fn condition(&mut self, kernel: &mut Kernel, condition: &Expr) {
        if let Expr::Binary(binary) = condition
            && let BinOp::And(_) = binary.op
        {
            self.condition(kernel, &binary.left);
            return self.condition(kernel, &binary.right);
        }
        let generics = kernel.generics.clone();
        if let Some(formula) = self.formula(&generics, condition) {
            let start = condition.span().start();
            let loc = Loc::new(start.line as u32, start.column as u32 + 1);
            kernel.conditions.push(Condition { formula, source: text(condition), loc });
        }
    }

    fn formula(&mut self, generics: &[Generic], condition: &Expr) -> Option<Formula> {
        match condition {
            Expr::Paren(inner) => self.formula(generics, &inner.expr),
            Expr::Unary(unary) if matches!(unary.op, UnOp::Not(_)) => {
                self.formula(generics, &unary.expr).map(Formula::negated)
            }
            Expr::Binary(binary) => {
                let join = match binary.op {
                    BinOp::And(_) => Formula::and,
                    BinOp::Or(_) => Formula::or,
                    _ => return self.comparison(generics, binary),
                };
                // Each is looked at, so that each mistake is reported.
                let [left, right] = [&binary.left, &binary.right].map(|side| self.formula(generics, side));
                Some(join(left?, right?))
            }
            Expr::Path(path) => {
                let name = path.path.get_ident().map(ToString::to_string).unwrap_or_default();
                if generics.iter().any(|generic| generic.name == name && generic.kind == GenericKind::Bool) {
                    return Some(truth(name));
                }
                let help = match self.optional_arguments.contains(&name) {
                    true => format!("write `{name}.is_some()`"),
                    false => HELP.to_owned(),
                };
                self.no_condition(condition, &help)
            }
            Expr::MethodCall(call) if call.method == "is_power_of_two" && call.args.is_empty() => {
                let number = self.extent_expression(generics, &call.receiver)?;
                let (left, right) = (number.next_power_of_two(), number);
                Some(Formula::Compare(Comparison { left, predicate: Predicate::Eq, right }))
            }
            Expr::MethodCall(call) => match self.presence(call) {
                Some(formula) => Some(formula),
                None => self.no_condition(condition, HELP),
            },
            _ => self.no_condition(condition, HELP),
        }
    }

    fn comparison(&mut self, generics: &[Generic], binary: &syn::ExprBinary) -> Option<Formula> {
        let Some(predicate) = predicate(&binary.op) else {
            self.error(binary.op.span(), "this isn't a comparison", HELP);
            return None;
        };
        let [left, right] = [&binary.left, &binary.right].map(|side| self.extent_expression(generics, side));
        Some(Formula::Compare(Comparison { left: left?, predicate, right: right? }))
    }

    /// `bias.is_some()`: an optional argument is a `bool` of its name.
    fn presence(&self, call: &ExprMethodCall) -> Option<Formula> {
        let Expr::Path(path) = &*call.receiver else { return None };
        let name = path.path.get_ident()?.to_string();
        if !call.args.is_empty() || !self.optional_arguments.contains(&name) {
            return None;
        }
        match call.method.to_string().as_str() {
            "is_some" => Some(truth(name)),
            "is_none" => Some(truth(name).negated()),
            _ => None,
        }
    }

    fn no_condition(&mut self, condition: &Expr, help: &str) -> Option<Formula> {
        self.error(condition.span(), "this isn't a condition on extents", help);
        None
    }
}

/// A `bool` parameter, which counts 0 or 1 as an extent.
fn truth(parameter: String) -> Formula {
    let (left, right) = (Dim::param(parameter), Dim::from(0));
    Formula::Compare(Comparison { left, predicate: Predicate::Ne, right })
}

/// A condition as it is usually written. The text of tokens is another in a macro than in a build script, and the kernel's
/// fingerprint must not be.
fn text(expression: &Expr) -> String {
    match expression {
        Expr::Paren(inner) => format!("({})", text(&inner.expr)),
        Expr::Block(block) => match block.block.stmts.as_slice() {
            [Stmt::Expr(inner, None)] => format!("{{ {} }}", text(inner)),
            _ => "…".to_owned(),
        },
        Expr::Unary(unary) => format!("{}{}", unary.op.to_token_stream(), text(&unary.expr)),
        Expr::Binary(binary) => {
            let op = binary.op.to_token_stream();
            format!("{} {op} {}", text(&binary.left), text(&binary.right))
        }
        Expr::MethodCall(call) => {
            let arguments: Vec<String> = call.args.iter().map(text).collect();
            format!("{}.{}({})", text(&call.receiver), call.method, arguments.join(", "))
        }
        Expr::Cast(cast) => format!("{} as {}", text(&cast.expr), cast.ty.to_token_stream()),
        Expr::Lit(literal) => literal.to_token_stream().to_string(),
        Expr::Path(path) => crate::helpers::path_text(&path.path),
        _ => "…".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use syn::parse_quote;

    #[test]
    fn conditions_are_told_as_they_are_written() {
        let function = parse_quote! {
            fn f<const B: usize, const MASKED: bool>(x: &Tensor<f32, n>, y: &mut Tensor<f32, { n }>) {
                y.partition_view_mut([B]).store_masked(Tile::zeros([B]));
            }
        };
        let conditions = [
            "{ n } % 4 == 0",
            "!MASKED || (n + { 2 * B }) as usize > 3",
            "{ n / 2 }.div_ceil({ B }).is_power_of_two()",
        ];
        let attribute: proc_macro2::TokenStream =
            format!("where({})", conditions.join(", ")).parse().unwrap();
        let lowered = crate::lower(attribute, function, "src/lib.rs").unwrap();
        let told: Vec<&str> = lowered.kernel.conditions.iter().map(|it| it.source.as_str()).collect();
        assert_eq!(told, conditions);
    }
}
