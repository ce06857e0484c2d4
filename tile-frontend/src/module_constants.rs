//! Constants of a module whose formats Rust has no literals of, as rustc sees them: `const SCALE: bf16 = 0.1;` by its bits.

use crate::rewrite::{bare, float_of, of_bits};
use syn::spanned::Spanned;
use syn::visit_mut::{self, VisitMut};
use syn::{Expr, ExprCall, ItemConst, Type};
use tile_ir::DType;

/// Writes numbers of such formats in the value of a constant by their bits: where its type says the format, and in
/// `bf16::of(0.1)`, a function of a trait, which Rust computes in no constant.
pub fn constant(item: &mut ItemConst) {
    write_out(&item.ty, &mut item.expr);
    Calls.visit_expr_mut(&mut item.expr);
}

fn write_out(ty: &Type, value: &mut Expr) {
    match (ty, value) {
        (Type::Paren(ty), value) => write_out(&ty.elem, value),
        (Type::Group(ty), value) => write_out(&ty.elem, value),
        (Type::Array(array), Expr::Array(values)) => {
            values.elems.iter_mut().for_each(|value| write_out(&array.elem, value));
        }
        (Type::Array(array), Expr::Repeat(repeated)) => write_out(&array.elem, &mut repeated.expr),
        (Type::Tuple(tuple), Expr::Tuple(values)) => {
            tuple.elems.iter().zip(&mut values.elems).for_each(|(ty, value)| write_out(ty, value));
        }
        (Type::Path(ty), value) => {
            let format = ty.path.segments.last().and_then(|name| without_literals(&name.ident));
            if let (Some(format), Some(number)) = (format, float_of(bare(value))) {
                *value = of_bits(format, number, value.span());
            }
        }
        _ => {}
    }
}

fn without_literals(name: &syn::Ident) -> Option<DType> {
    let dtype = DType::from_rust_name(&name.to_string())?;
    (dtype.is_float() && !matches!(dtype, DType::F32 | DType::F64)).then_some(dtype)
}

struct Calls;

impl Calls {
    fn number(call: &ExprCall) -> Option<Expr> {
        let (Expr::Path(path), Some(literal)) = (&*call.func, call.args.first()) else { return None };
        let mut names = path.path.segments.iter().rev().map(|segment| &segment.ident);
        let (of, owner) = (names.next()?, names.next()?);
        let number = float_of(bare(literal)).filter(|_| of == "of")?;
        Some(of_bits(without_literals(owner)?, number, call.func.span()))
    }
}

impl VisitMut for Calls {
    fn visit_expr_mut(&mut self, expression: &mut Expr) {
        visit_mut::visit_expr_mut(self, expression);
        if let Expr::Call(call) = expression
            && let Some(number) = Self::number(call)
        {
            *expression = number;
        }
    }
}
