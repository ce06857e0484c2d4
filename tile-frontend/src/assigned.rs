//! Which names a loop or branch assigns to, and how it may be left: those variables become carried values.

use crate::exits::{self, Exit};
use std::collections::BTreeSet;
use syn::visit::{self, Visit};
use syn::{BinOp, Expr, ExprAssign, ExprBinary, Macro, Member, Stmt};

/// What a piece of syntax changes outside of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Assigned {
    /// Names on the left of `=` and of compound assignments, anywhere inside. A name that is local to the
    /// inside is among them; carrying a variable of the same name that it shadows is harmless.
    pub(crate) names: BTreeSet<String>,
    /// The exits that leave it.
    pub(crate) exits: Vec<Exit>,
}

/// What an expression changes.
pub(crate) fn by_expression(expression: &Expr) -> Assigned {
    let mut names = Names::default();
    names.visit_expr(expression);
    Assigned { names: names.0, exits: exits::of_expression(expression) }
}

/// What statements change.
pub(crate) fn by_statements(statements: &[Stmt]) -> Assigned {
    let mut names = Names::default();
    statements.iter().for_each(|statement| names.visit_stmt(statement));
    Assigned { names: names.0, exits: exits::of_statements(statements) }
}

#[derive(Default)]
struct Names(BTreeSet<String>);

impl Names {
    /// The variables that an assignment to this target changes.
    fn target(&mut self, target: &Expr) {
        match target {
            Expr::Path(path) => self.0.extend(path.path.get_ident().map(ToString::to_string)),
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
