//! Which counters of loops have to be known when the macro expands: those that index arrays of values, and those by which
//! tensors are moved, because views are made before loops.

use super::Lowering;
use super::view_movement::method_names;
use crate::value::Val;
use syn::visit::{self, Visit};
use syn::{Block, Expr, ExprIndex, ExprMethodCall, Ident};

/// Where a body indexes by a name.
pub(super) fn indexed_by<'b>(body: &'b Block, name: &Ident) -> Option<&'b ExprIndex> {
    let mut search = IndexedBy { name, found: None };
    search.visit_block(body);
    search.found
}

struct IndexedBy<'n, 'b> {
    name: &'n Ident,
    found: Option<&'b ExprIndex>,
}

impl<'b> Visit<'b> for IndexedBy<'_, 'b> {
    fn visit_expr_index(&mut self, index: &'b ExprIndex) {
        let mut names = Mentions { name: self.name, found: false };
        names.visit_expr(&index.index);
        if names.found && self.found.is_none() {
            self.found = Some(index);
        }
        visit::visit_expr_index(self, index);
    }
}

struct Mentions<'n> {
    name: &'n Ident,
    found: bool,
}

impl<'ast> Visit<'ast> for Mentions<'_> {
    fn visit_expr_path(&mut self, path: &'ast syn::ExprPath) {
        self.found |= path.path.is_ident(self.name);
    }
}

impl Lowering {
    /// Whether a body moves a tensor from before it by a name. Windows over a margin are selected at any index, so a counter
    /// that does nothing else isn't meant.
    pub(super) fn moves_tensors_by(&self, body: &Block, name: &Ident) -> bool {
        let mut search = MovedBy { lowering: self, name, found: false };
        search.visit_block(body);
        search.found
    }
}

struct MovedBy<'l, 'n> {
    lowering: &'l Lowering,
    name: &'n Ident,
    found: bool,
}

impl MovedBy<'_, '_> {
    /// Whether movements alone lead from a tensor to this, none of which makes windows.
    fn is_tensor(&self, expression: &Expr) -> bool {
        match expression {
            Expr::Path(path) => path.path.get_ident().is_some_and(|ident| {
                let variable = self.lowering.scopes.find(&ident.to_string());
                variable.is_some_and(|id| matches!(self.lowering.scopes.variables[id].value, Val::Tensor(_)))
            }),
            Expr::MethodCall(call) => {
                is_movement(call) && call.method != "unfold" && self.is_tensor(&call.receiver)
            }
            Expr::Paren(inner) => self.is_tensor(&inner.expr),
            _ => false,
        }
    }
}

fn is_movement(call: &ExprMethodCall) -> bool {
    method_names().any(|name| call.method == name)
}

impl<'ast> Visit<'ast> for MovedBy<'_, '_> {
    fn visit_expr_method_call(&mut self, call: &'ast ExprMethodCall) {
        let mut names = Mentions { name: self.name, found: false };
        call.args.iter().for_each(|argument| names.visit_expr(argument));
        self.found |= names.found && is_movement(call) && self.is_tensor(&call.receiver);
        visit::visit_expr_method_call(self, call);
    }
}
