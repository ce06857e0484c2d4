//! Arithmetic of extents, as signatures and attributes write it: `m.div_ceil(BM).max(1)`.

use syn::{BinOp, Expr};
use tile_ir::Dim;

/// Two sides and what they make: nothing where a shift isn't by a number.
pub(crate) type Operation<'e> = (&'e Expr, fn(&Dim, &Dim) -> Option<Dim>, &'e Expr);

/// What it says beside an expression that is none.
pub(crate) const OPERATIONS: &str = "`+ - * / %`, shifts by a number, `.div_ceil()`, `.min()` and `.max()`";

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
