//! Which names a loop or branch assigns to, and how it may be left: those variables become carried values.

use crate::exits::{self, Exit};
use std::collections::BTreeSet;
use syn::visit::{self, Visit};
use syn::{
    Arm, BinOp, Block, Expr, ExprAssign, ExprBinary, ExprClosure, ExprForLoop, Local, Macro, Member,
    PatIdent, Stmt,
};

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
    let mut names = Names::default();
    names.visit_expr(expression);
    Assigned { names: names.assigned, exits: exits::of_expression(expression) }
}

/// What statements change.
pub(crate) fn by_statements(statements: &[Stmt]) -> Assigned {
    let mut names = Names::default();
    names.in_scope(|names| statements.iter().for_each(|statement| names.visit_stmt(statement)));
    Assigned { names: names.assigned, exits: exits::of_statements(statements) }
}

#[derive(Default)]
struct Names {
    assigned: BTreeSet<String>,
    /// The names that are bound inside so far, by scope.
    bound: Vec<BTreeSet<String>>,
}

impl Names {
    fn in_scope(&mut self, visit: impl FnOnce(&mut Self)) {
        self.bound.push(BTreeSet::new());
        visit(self);
        self.bound.pop();
    }

    fn assign(&mut self, name: String) {
        if !self.bound.iter().any(|scope| scope.contains(&name)) {
            self.assigned.insert(name);
        }
    }

    /// The variables that an assignment to this target changes.
    fn target(&mut self, target: &Expr) {
        match target {
            Expr::Path(path) => {
                path.path.get_ident().into_iter().for_each(|name| self.assign(name.to_string()))
            }
            Expr::Paren(inner) => self.target(&inner.expr),
            Expr::Group(inner) => self.target(&inner.expr),
            Expr::Index(index) => self.target(&index.expr),
            Expr::Field(field) => self.target(&field.base),
            Expr::Tuple(tuple) => tuple.elems.iter().for_each(|part| self.target(part)),
            Expr::Array(array) => array.elems.iter().for_each(|part| self.target(part)),
            Expr::Struct(record) => record.fields.iter().for_each(|field| self.target(&field.expr)),
            _ => {}
        }
    }
}

impl<'ast> Visit<'ast> for Names {
    fn visit_block(&mut self, block: &'ast Block) {
        self.in_scope(|names| visit::visit_block(names, block));
    }

    fn visit_arm(&mut self, arm: &'ast Arm) {
        self.in_scope(|names| visit::visit_arm(names, arm));
    }

    fn visit_expr_closure(&mut self, closure: &'ast ExprClosure) {
        self.in_scope(|names| visit::visit_expr_closure(names, closure));
    }

    fn visit_expr_for_loop(&mut self, repeated: &'ast ExprForLoop) {
        self.visit_expr(&repeated.expr);
        self.in_scope(|names| {
            names.visit_pat(&repeated.pat);
            names.visit_block(&repeated.body);
        });
    }

    fn visit_local(&mut self, local: &'ast Local) {
        // The value doesn't see the names.
        if let Some(init) = &local.init {
            self.visit_expr(&init.expr);
        }
        self.visit_pat(&local.pat);
    }

    fn visit_pat_ident(&mut self, pattern: &'ast PatIdent) {
        if let Some(scope) = self.bound.last_mut() {
            scope.insert(pattern.ident.to_string());
        }
        visit::visit_pat_ident(self, pattern);
    }

    fn visit_expr_assign(&mut self, assign: &'ast ExprAssign) {
        self.target(&assign.left);
        visit::visit_expr_assign(self, assign);
    }

    fn visit_expr_binary(&mut self, binary: &'ast ExprBinary) {
        if is_compound_assignment(&binary.op) {
            self.target(&binary.left);
        }
        visit::visit_expr_binary(self, binary);
    }

    fn visit_macro(&mut self, called: &'ast Macro) {
        crate::rewrite::expressions(called).iter().for_each(|value| self.visit_expr(value));
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
    use syn::parse_quote;

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
