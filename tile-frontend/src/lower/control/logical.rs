//! `&&` and `||`. As in Rust, the right side is computed only where the left one leaves the answer open: what loads,
//! stores, prints or assigns there is a branch. A right side that only computes with numbers is computed in any case,
//! as an operand of `and` or `or`, which is what ranges of indices are read off: but where the left side is known, as it may be
//! in a turn of an unrolled loop, what it leaves out may have no value, `12 % i` where `i` is 0.

use crate::assigned::{self, member_name};
use crate::lower::{Lowered, Lowering, names};
use crate::rewrite::unwrapped;
use crate::span::{Span, Spanned};
use crate::value::Val;
use syn::{BinOp, Expr, ExprBinary, ExprUnary, Member, UnOp};
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
        let left = self.expression(&binary.left);
        let left = left.and_then(|left| self.side(connective, &left, binary.left.span(), binary.op.span()));
        match left {
            Ok(left) if self.decided(left).is_some() || !self.only_computes(&binary.right) => {
                self.short_circuit(connective, left, binary)
            }
            left => {
                let right = self.right(connective, binary);
                let operands = [binary.left.span(), binary.right.span()];
                let joined = Op::Binary(connective.op());
                self.emit_one(joined, &[left?, right?], binary.op.span(), &operands).map(Val::Data)
            }
        }
    }

    /// `if a { b } else { false }`, `if a { true } else { b }`: where `a` is known, the side that is taken.
    fn short_circuit(&mut self, connective: Connective, left: ValueId, binary: &ExprBinary) -> Lowered<Val> {
        let span = binary.op.span();
        let assigned = assigned::by_expression(&binary.right);
        let mut right = |lowering: &mut Self| lowering.right(connective, binary).map(Val::Data);
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

    fn right(&mut self, connective: Connective, binary: &ExprBinary) -> Lowered<ValueId> {
        let value = self.expression(&binary.right)?;
        self.side(connective, &value, binary.right.span(), binary.op.span())
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

    /// Whether an expression does nothing but compute with numbers that are there, so that no one sees whether it was
    /// computed.
    pub(in crate::lower) fn only_computes(&self, expression: &Expr) -> bool {
        only_computes(expression, &|receiver| self.is_struct(receiver))
    }

    /// Whether an expression is a variable or a part of one, and a struct, whose methods are functions that may do anything.
    fn is_struct(&self, expression: &Expr) -> bool {
        matches!(self.part_of_variable(expression), Some(Val::Record(..)))
    }

    /// The value of a variable, or of a field of one.
    fn part_of_variable(&self, expression: &Expr) -> Option<Val> {
        match unwrapped(expression) {
            Expr::Field(field) => match (self.part_of_variable(&field.base)?, &field.member) {
                (Val::List(parts), Member::Unnamed(at)) => parts.into_iter().nth(at.index as usize),
                (Val::Record(_, mut fields), member) => fields.remove(&member_name(member)),
                _ => None,
            },
            Expr::Unary(ExprUnary { op: UnOp::Deref(_), expr, .. }) => self.part_of_variable(expr),
            variable => self.variable(variable),
        }
    }
}

/// The same; `is_struct` says which receivers of methods are structs.
fn only_computes(expression: &Expr, is_struct: &dyn Fn(&Expr) -> bool) -> bool {
    let computes = |inner: &Expr| only_computes(inner, is_struct);
    match expression {
        Expr::Lit(_) | Expr::Path(_) => true,
        Expr::Paren(inner) => computes(&inner.expr),
        Expr::Group(inner) => computes(&inner.expr),
        Expr::Field(field) => computes(&field.base),
        Expr::Cast(cast) => computes(&cast.expr),
        Expr::Unary(unary) => computes(&unary.expr),
        Expr::Binary(binary) => {
            let assigns = assigned::is_compound_assignment(&binary.op);
            !assigns && computes(&binary.left) && computes(&binary.right)
        }
        Expr::MethodCall(call) => {
            let name = call.method.to_string();
            let is_plain =
                matches!(name.as_str(), "tiles" | "extent" | "div_ceil") || names::is_of_elements(&name);
            is_plain
                && !is_struct(&call.receiver)
                && computes(&call.receiver)
                && call.args.iter().all(computes)
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
        assert!(computes.iter().all(|it| only_computes(it, &|_| false)));
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
        assert!(!does.iter().any(|it| only_computes(it, &|_| false)));
    }
}
