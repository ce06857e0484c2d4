//! Which names a loop or branch assigns to: those variables become carried values.

use std::collections::BTreeSet;
use syn::visit::{self, Visit};
use syn::{BinOp, Expr, ExprAssign, ExprBinary};

/// Names on the left of `=` and of compound assignments, anywhere inside. A name that is local to the inside
/// is among them; carrying a variable of the same name that it shadows is harmless.
pub(crate) fn names(expression: &Expr) -> BTreeSet<String> {
    let mut assigned = Assigned(BTreeSet::new());
    assigned.visit_expr(expression);
    assigned.0
}

struct Assigned(BTreeSet<String>);

impl Assigned {
    fn target(&mut self, target: &Expr) {
        if let Expr::Path(path) = target
            && let Some(name) = path.path.get_ident()
        {
            self.0.insert(name.to_string());
        }
    }
}

impl<'ast> Visit<'ast> for Assigned {
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
