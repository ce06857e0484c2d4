//! `&&` and `||`. As in Rust, the right side is computed only where the left one leaves the answer open: what loads,
//! stores, prints or assigns there is a branch. A right side that only computes with numbers is computed in any case,
//! as an operand of `and` or `or`, which is what ranges of indices are read off.

use crate::assigned;
use crate::lower::{Lowered, Lowering, names};
use crate::span::{Span, Spanned};
use crate::value::Val;
use syn::{BinOp, Expr, ExprBinary};
use tile_ir::ops::{BinaryOp, Literal};
use tile_ir::{DType, Op, ValueId};

/// One of the two operators.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::lower) enum Connective {
    And,
    Or,
}

impl Connective {
    pub(in crate::lower) fn of(op: &BinOp) -> Option<Connective> {
        match op {
            BinOp::And(_) => Some(Connective::And),
            BinOp::Or(_) => Some(Connective::Or),
            _ => None,
        }
    }

    fn op(self) -> BinaryOp {
        match self {
            Connective::And => BinaryOp::And,
            Connective::Or => BinaryOp::Or,
        }
    }

    /// The operator that works element by element.
    fn symbol(self) -> &'static str {
        match self {
            Connective::And => "&",
            Connective::Or => "|",
        }
    }
}

impl Lowering {
    pub(in crate::lower) fn logical(&mut self, connective: Connective, binary: &ExprBinary) -> Lowered<Val> {
        if !only_computes(&binary.right) {
            return self.short_circuit(connective, binary);
        }
        let operands = [binary.left.span(), binary.right.span()];
        let (left, right) = (self.expression(&binary.left), self.expression(&binary.right));
        let a = self.side(connective, &left?, operands[0], binary.op.span());
        let b = self.side(connective, &right?, operands[1], binary.op.span());
        self.emit_one(Op::Binary(connective.op()), &[a?, b?], binary.op.span(), &operands).map(Val::Data)
    }

    /// `if a { b } else { false }`, `if a { true } else { b }`.
    fn short_circuit(&mut self, connective: Connective, binary: &ExprBinary) -> Lowered<Val> {
        let span = binary.op.span();
        let left = self.expression(&binary.left)?;
        let left = self.side(connective, &left, binary.left.span(), span)?;
        let assigned = assigned::by_expression(&binary.right);
        let mut right = |lowering: &mut Self| {
            let value = lowering.expression(&binary.right)?;
            lowering.side(connective, &value, binary.right.span(), span).map(Val::Data)
        };
        let mut known = |lowering: &mut Self| {
            let value = Literal::Int(i128::from(connective == Connective::Or));
            let constant = Op::Constant { value, elem: DType::Bool.into() };
            lowering.emit_one(constant, &[], span, &[]).map(Val::Data)
        };
        self.nesting += 1;
        let value = match connective {
            Connective::And => self.choose("&&", left, &assigned, span, &mut right, &mut known),
            Connective::Or => self.choose("||", left, &assigned, span, &mut known, &mut right),
        };
        self.nesting -= 1;
        value
    }

    /// One side: a bool that isn't a tile.
    fn side(&mut self, connective: Connective, value: &Val, place: Span, operator: Span) -> Lowered<ValueId> {
        let value = self.data(value, "an operand", place)?;
        if self.shape(value).is_some() {
            let symbol = connective.symbol();
            let message = format!("`{symbol}{symbol}` needs scalar conditions, not tiles");
            let help = format!("write `{symbol}`, which works element by element");
            return self.error(operator, message, &help);
        }
        self.require_elem(value, &DType::Bool.into(), "a condition", place)?;
        Ok(value)
    }
}

/// Whether an expression does nothing but compute with numbers that are there, so that no one sees whether it was
/// computed.
pub(in crate::lower) fn only_computes(expression: &Expr) -> bool {
    match expression {
        Expr::Lit(_) | Expr::Path(_) => true,
        Expr::Paren(inner) => only_computes(&inner.expr),
        Expr::Group(inner) => only_computes(&inner.expr),
        Expr::Field(field) => only_computes(&field.base),
        Expr::Cast(cast) => only_computes(&cast.expr),
        Expr::Unary(unary) => only_computes(&unary.expr),
        Expr::Binary(binary) => {
            let assigns = assigned::is_compound_assignment(&binary.op);
            !assigns && only_computes(&binary.left) && only_computes(&binary.right)
        }
        Expr::MethodCall(call) => {
            let name = call.method.to_string();
            let is_plain =
                matches!(name.as_str(), "tiles" | "extent" | "div_ceil") || names::is_of_elements(&name);
            is_plain && only_computes(&call.receiver) && call.args.iter().all(only_computes)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use syn::parse_quote;

    #[test]
    fn what_loads_prints_or_assigns_is_no_computation() {
        let computes: [Expr; 4] = [
            parse_quote!(i + 1 < x.tiles(0).div_ceil(2)),
            parse_quote!(!(state.0 == 3) || a as i32 > b.max(c)),
            parse_quote!(true),
            parse_quote!(-k % 2 == 1),
        ];
        assert!(computes.iter().all(only_computes));
        let does: [Expr; 5] = [
            parse_quote!(x.load_masked([i]).item() > 0.0),
            parse_quote!(unsafe { x.load_unchecked([i]) }.item() > 0.0),
            parse_quote!({
                k += 1;
                k > 3
            }),
            parse_quote!(checked(k)),
            parse_quote!(a && dbg!(b)),
        ];
        assert!(!does.iter().any(only_computes));
    }
}
