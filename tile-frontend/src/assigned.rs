//! Which names a loop or branch assigns to, and how it may be left: those variables become carried values.

use crate::bindings::{self, Bound};
use crate::exits::{self, Exit};
use std::collections::BTreeSet;
use syn::{BinOp, Expr, Member, Stmt};

/// What a piece of syntax changes outside of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Assigned {
    /// Names on the left of `=` and of compound assignments, anywhere inside, but for those that are bound there.
    pub(crate) names: BTreeSet<String>,
    /// The exits that leave it.
    pub(crate) exits: Vec<Exit>,
}

/// What an expression changes.
pub(crate) fn by_expression(expression: &Expr) -> Assigned {
    let mut names = BTreeSet::new();
    bindings::of_expression(expression, &mut |inner, bound| assign(inner, bound, &mut names));
    Assigned { names, exits: exits::of_expression(expression) }
}

/// What statements change.
pub(crate) fn by_statements(statements: &[Stmt]) -> Assigned {
    let mut names = BTreeSet::new();
    bindings::of_statements(statements, &mut |inner, bound| assign(inner, bound, &mut names));
    Assigned { names, exits: exits::of_statements(statements) }
}

/// Adds the names that an expression assigns to itself, but for those that are bound there.
fn assign(expression: &Expr, bound: &Bound, names: &mut BTreeSet<String>) {
    let target = match expression {
        Expr::Assign(assign) => &assign.left,
        Expr::Binary(binary) if is_compound_assignment(&binary.op) => &binary.left,
        _ => return,
    };
    each_variable(target, &mut |name| {
        if !bound.contains(&name) {
            names.insert(name);
        }
    });
}

/// The variables that an assignment to this target changes.
pub(crate) fn by_target(target: &Expr) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    each_variable(target, &mut |name| {
        names.insert(name);
    });
    names
}

/// Goes through these.
fn each_variable(target: &Expr, found: &mut dyn FnMut(String)) {
    match target {
        Expr::Path(path) => path.path.get_ident().into_iter().for_each(|name| found(name.to_string())),
        Expr::Paren(inner) => each_variable(&inner.expr, found),
        Expr::Group(inner) => each_variable(&inner.expr, found),
        // `*self` of a method.
        Expr::Unary(unary) => each_variable(&unary.expr, found),
        Expr::Index(index) => each_variable(&index.expr, found),
        Expr::Field(field) => each_variable(&field.base, found),
        Expr::Tuple(tuple) => tuple.elems.iter().for_each(|part| each_variable(part, found)),
        Expr::Array(array) => array.elems.iter().for_each(|part| each_variable(part, found)),
        Expr::Struct(record) => record.fields.iter().for_each(|field| each_variable(&field.expr, found)),
        _ => {}
    }
}

/// `+=` and its kin.
pub(crate) fn is_compound_assignment(op: &BinOp) -> bool {
    matches!(
        op,
        BinOp::AddAssign(_)
            | BinOp::SubAssign(_)
            | BinOp::MulAssign(_)
            | BinOp::DivAssign(_)
            | BinOp::RemAssign(_)
            | BinOp::BitXorAssign(_)
            | BinOp::BitAndAssign(_)
            | BinOp::BitOrAssign(_)
            | BinOp::ShlAssign(_)
            | BinOp::ShrAssign(_)
    )
}

/// The text of a field's name.
pub(crate) fn member_name(member: &Member) -> String {
    match member {
        Member::Named(name) => name.to_string(),
        Member::Unnamed(index) => index.index.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use syn::{Block, parse_quote};

    fn assigned(block: Block) -> Vec<String> {
        by_statements(&block.stmts).names.into_iter().collect()
    }

    #[test]
    fn a_name_that_is_bound_before_it_is_assigned_is_not_the_one_around() {
        let inside: [Block; 6] = [
            parse_quote!({
                let mut a = 0;
                a += 1;
            }),
            parse_quote!({
                let (mut a, [mut b, _]) = x;
                while c {
                    (a, b[0]) = (b, a);
                }
            }),
            parse_quote!({
                for mut a in 0..4 {
                    a += 1;
                }
            }),
            parse_quote!({
                match x {
                    mut a if a > 3 => a = 1,
                    _ => {}
                }
            }),
            parse_quote!({
                let f = |mut a: i32| {
                    a += 1;
                    a
                };
            }),
            parse_quote!({
                let State { sum: mut a, .. } = x;
                a.part = 1;
            }),
        ];
        for block in inside {
            assert_eq!(assigned(block), [""; 0]);
        }
    }

    #[test]
    fn a_name_that_is_bound_later_or_elsewhere_is_the_one_around() {
        let around: [Block; 6] = [
            parse_quote!({
                a += 1;
                let mut a = 0;
            }),
            parse_quote!({
                let mut a = {
                    a += 1;
                    a
                };
            }),
            parse_quote!({
                {
                    let mut a = 0;
                }
                a = 1;
            }),
            parse_quote!({
                for a in {
                    a = 3;
                    0..a
                } {}
            }),
            parse_quote!({
                match x {
                    a if a > 3 => {}
                    _ => a = 1,
                }
            }),
            parse_quote!({
                let f = |a: i32| a;
                a.part[0] = 1;
            }),
        ];
        for block in around {
            assert_eq!(assigned(block), ["a"]);
        }
    }
}
