//! Arithmetic of extents, as signatures and attributes write it: `m.div_ceil(BM).max(1)`.

use crate::diagnostic::Diagnostic;
use crate::span::Spanned;
use std::collections::HashMap;
use syn::{BinOp, Expr, Lit, Type};
use tile_ir::Dim;
use tile_ir::ops::TypeError;

/// The names that an extent may have.
pub(crate) type Names = HashMap<String, Dim>;

/// What an expression is an extent of, in words of errors.
pub(crate) struct Kind {
    /// `an extent of a grid`.
    pub(crate) name: &'static str,
    /// `an extent is a const parameter, a number`, to which operations of these are added.
    pub(crate) examples: &'static str,
    /// What a name may be: `name an axis of an argument, or a const parameter of the kernel`.
    pub(crate) names: &'static str,
}

/// An extent that is written, where a kernel may have it.
pub(crate) fn readable(extent: Dim, expression: &Expr) -> Result<Dim, Box<Diagnostic>> {
    match TypeError::refuse_long([&extent]) {
        Ok(()) => Ok(extent),
        Err(error) => Err(Box::new(Diagnostic::of_type_error(expression.span(), error))),
    }
}

/// The extent that an expression is.
pub(crate) fn lower(expression: &Expr, names: &Names, kind: &Kind) -> Result<Dim, Box<Diagnostic>> {
    let refused = || {
        let help = format!("{}, or {OPERATIONS} of these", kind.examples);
        Box::new(Diagnostic::new(expression.span(), format!("this isn't {}", kind.name)).help(help))
    };
    match expression {
        Expr::Lit(literal) => match &literal.lit {
            Lit::Int(int) => int.base10_parse::<i64>().map(Dim::from).map_err(|_| refused()),
            _ => Err(refused()),
        },
        Expr::Path(path) => {
            let ident = path.path.get_ident().ok_or_else(refused)?;
            names.get(&ident.to_string()).cloned().ok_or_else(|| {
                let message = format!("`{ident}` is no extent of the signature");
                Box::new(Diagnostic::new(expression.span(), message).help(kind.names))
            })
        }
        Expr::Paren(inner) => lower(&inner.expr, names, kind),
        _ => {
            if let Some((operand, function)) = of_one(expression) {
                return readable(function(&lower(operand, names, kind)?), expression);
            }
            let (left, function, right) = operation(expression).ok_or_else(refused)?;
            let (left, right) = (lower(left, names, kind)?, lower(right, names, kind)?);
            readable(function(&left, &right).ok_or_else(refused)?, expression)
        }
    }
}

/// Two sides and what they make: nothing where a shift isn't by a number.
pub(crate) type Operation<'e> = (&'e Expr, fn(&Dim, &Dim) -> Option<Dim>, &'e Expr);

/// What it says beside an expression that is none.
pub(crate) const OPERATIONS: &str = "`+ - * / %`, shifts by a number, `.div_ceil()`, `.min()`, `.max()`, `.ilog2()` and \
                                     `.next_power_of_two()`";

/// An operand and what is made of it.
pub(crate) type Function<'e> = (&'e Expr, fn(&Dim) -> Dim);

/// What an expression of one extent does with it: an extent is a `usize`, whatever it is converted from.
pub(crate) fn of_one(expression: &Expr) -> Option<Function<'_>> {
    match expression {
        Expr::MethodCall(call) if call.args.is_empty() => {
            let function: fn(&Dim) -> Dim = match call.method.to_string().as_str() {
                "ilog2" => Dim::ilog2,
                "next_power_of_two" => Dim::next_power_of_two,
                _ => return None,
            };
            Some((&call.receiver, function))
        }
        Expr::Cast(cast) if matches!(&*cast.ty, Type::Path(path) if path.path.is_ident("usize")) => {
            Some((&cast.expr, Dim::clone))
        }
        _ => None,
    }
}

/// What an expression of two extents does with them.
pub(crate) fn operation(expression: &Expr) -> Option<Operation<'_>> {
    match expression {
        Expr::MethodCall(call) if call.args.len() == 1 => {
            let function: fn(&Dim, &Dim) -> Option<Dim> = match call.method.to_string().as_str() {
                "div_ceil" => |a, b| Some(a.ceil_div(b)),
                "min" => |a, b| Some(a.at_most(b)),
                "max" => |a, b| Some(a.at_least(b)),
                _ => return None,
            };
            Some((&call.receiver, function, &call.args[0]))
        }
        Expr::Binary(binary) => {
            let function: fn(&Dim, &Dim) -> Option<Dim> = match binary.op {
                BinOp::Add(_) => |a, b| Some(a.clone() + b.clone()),
                BinOp::Sub(_) => |a, b| Some(a.clone() - b.clone()),
                BinOp::Mul(_) => |a, b| Some(a.clone() * b.clone()),
                BinOp::Div(_) => |a, b| Some(a.floor_div(b)),
                BinOp::Rem(_) => |a, b| Some(a.rem(b)),
                BinOp::Shl(_) => |a, b| Some(a.clone() * power(b)?),
                BinOp::Shr(_) => |a, b| Some(a.floor_div(&power(b)?)),
                _ => return None,
            };
            Some((&binary.left, function, &binary.right))
        }
        _ => None,
    }
}

/// What a shift by a number multiplies by.
fn power(by: &Dim) -> Option<Dim> {
    let by = by.as_const().and_then(|by| u32::try_from(by).ok())?;
    2i64.checked_pow(by).map(Dim::from)
}
