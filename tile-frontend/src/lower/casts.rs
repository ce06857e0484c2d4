//! Conversions of scalars with `as`.

use super::known::known;
use super::{Lowered, Lowering};
use crate::elements::FORMATS;
use crate::span::Spanned;
use crate::value::{Float, Int, Val};
use syn::{Expr, ExprCast, Lit, UnOp};
use tile_ir::array::{int_to_float, wrap_int};
use tile_ir::ops::Literal;
use tile_ir::{DType, Dim, Elem, Op};

impl Lowering {
    /// What is converted. To rustc a literal is of the type that it is converted to, where that is one of its kind.
    fn operand_of_cast(&mut self, operand: &Expr, to: Option<&Elem>) -> Lowered<Val> {
        let elem = to.and_then(|to| of_literal(literal_in(operand)?, to));
        match elem {
            Some(elem) => self.literal_of(operand, &elem),
            None => self.expression(operand),
        }
    }

    /// A literal of this format, or what `-` and `!` make of it.
    fn literal_of(&mut self, expression: &Expr, elem: &Elem) -> Lowered<Val> {
        match expression {
            Expr::Paren(inner) => self.literal_of(&inner.expr, elem),
            Expr::Group(inner) => self.literal_of(&inner.expr, elem),
            Expr::Unary(unary) => {
                let value = self.literal_of(&unary.expr, elem)?;
                self.in_expression(expression, |lowering| lowering.operated_on(unary, value))
            }
            literal => Ok(match self.expression(literal)? {
                Val::Int(int) => Val::Int(Int { shared: Some(elem.clone()), ..int }),
                Val::Float(float) => Val::Float(Float { shared: Some(elem.clone()), ..float }),
                value => value,
            }),
        }
    }

    pub(super) fn cast(&mut self, cast: &ExprCast) -> Lowered<Val> {
        let target = self.element(&cast.ty);
        let value = self.operand_of_cast(&cast.expr, target.as_ref())?;
        let Some(to) = target else {
            let formats = format!("use {FORMATS} or usize");
            let help = match crate::lower::functions::conform::type_text(&cast.ty).as_str() {
                "isize" | "i128" => "use i64: indices fit it, below zero too",
                "u128" => "use u64",
                "_" => "write the type: the front end doesn't know what rustc infers",
                "char" => "a kernel has no texts; use u32",
                _ => &formats,
            };
            return self.error(cast.ty.span(), "`as` converts to number types only", help);
        };
        let span = cast.span();
        if self.in_own_text() {
            let from = match &value {
                Val::Data(value) => Some(self.elem(*value)),
                literal => literal.shared().cloned(),
            };
            self.scalar_casts.push((self.occurrence(cast.as_token.span()), from, to.clone()));
        }
        if let (Some(number), Some(dtype)) = (known(&value), to.known().filter(is_integer)) {
            return Ok(Val::Int(Int::of(wrap_int(dtype, number), to)));
        }
        match &value {
            Val::Dim(_) if to == Elem::Known(DType::Index) => return Ok(value),
            // What indexes an array is known still.
            Val::Int(Int { value: at @ 0.., .. })
                if to == Elem::Known(DType::Index) && *at <= i64::MAX.into() =>
            {
                return Ok(Val::Dim(Dim::from(*at as i64)));
            }
            // Rustc sees an integer, a counter perhaps, and the conversion: no literal of that format.
            Val::Int(int) => {
                let constant = Op::Constant { value: int_literal(int.value, &to), elem: to };
                return self.emit_one(constant, &[], span, &[]).map(Val::Data);
            }
            Val::Data(tile) if self.shape(*tile).is_some() => {
                return self.error(
                    span,
                    "`as` converts scalars, and this is a tile",
                    &format!("write `.cast::<{}>()`", super::rust_elem(&to)),
                );
            }
            _ => {}
        }
        if to == Elem::Known(DType::Index)
            && let Some(dim) = self.exact(&value)
        {
            return Ok(Val::Dim(dim));
        }
        let value = self.data(&value, "the operand of `as`", cast.expr.span())?;
        self.emit_one(Op::Cast(to), &[value], span, &[cast.expr.span()]).map(Val::Data)
    }
}

/// The format of a number that is written out and converted, where that is one of its kind: the one that it is converted to.
/// An index is too wide to be negative, and stands for 64 bits of either sign.
fn of_literal(literal: &Lit, to: &Elem) -> Option<Elem> {
    match (literal, to.known()?) {
        (Lit::Int(int), DType::Index) if int.suffix().is_empty() => Some(DType::I64.into()),
        (Lit::Int(int), dtype) if int.suffix().is_empty() && is_integer(&dtype) => Some(dtype.into()),
        (Lit::Float(float), dtype @ (DType::F32 | DType::F64)) if float.suffix().is_empty() => {
            Some(dtype.into())
        }
        _ => None,
    }
}

/// The literal in an expression that is one but for `-`, `!` and parentheses.
fn literal_in(expression: &Expr) -> Option<&Lit> {
    match expression {
        Expr::Lit(literal) => Some(&literal.lit),
        Expr::Paren(inner) => literal_in(&inner.expr),
        Expr::Group(inner) => literal_in(&inner.expr),
        Expr::Unary(unary) if !matches!(unary.op, UnOp::Deref(_)) => literal_in(&unary.expr),
        _ => None,
    }
}

/// Whether a format is an integer of elements, whose numbers Rust has literals of.
pub(super) fn is_integer(dtype: &DType) -> bool {
    dtype.is_int() && dtype.is_element()
}

/// An integer as a literal of the format that it is converted to, in which it wraps as with Rust's `as`.
fn int_literal(value: i128, to: &Elem) -> Literal {
    match to.known() {
        Some(dtype) if dtype.is_float() => Literal::Float(int_to_float(dtype, value)),
        Some(dtype) => Literal::Int(wrap_int(dtype, value)),
        None => Literal::Int(value),
    }
}
