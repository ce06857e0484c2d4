//! A walk through Rust's expressions that knows at each which names are bound there. What a macro that may stand in a
//! kernel is given is walked too.
//!
//! Names are bound in blocks, arms, closures and functions, and by the patterns of `for` loops and of `let`, whose
//! values don't see them.

use std::collections::HashSet;
use syn::visit::{self, Visit};
use syn::{
    Arm, Block, Expr, ExprClosure, ExprForLoop, ExprIf, ExprLet, ItemFn, Local, Macro, PatIdent, Stmt,
};

/// The names that are bound between where a walk began and an expression.
#[derive(Default)]
pub(crate) struct Bound {
    /// By scope, the innermost last.
    scopes: Vec<HashSet<String>>,
}

impl Bound {
    pub(crate) fn contains(&self, name: &str) -> bool {
        self.scopes.iter().any(|scope| scope.contains(name))
    }
}

/// Calls `each` for an expression and all inside of it, the outer before the inner.
pub(crate) fn of_expression(expression: &Expr, each: &mut dyn FnMut(&Expr, &Bound)) {
    Walk { bound: Bound::default(), each }.visit_expr(expression);
}

/// The same for the expressions of a block's statements.
pub(crate) fn of_statements(statements: &[Stmt], each: &mut dyn FnMut(&Expr, &Bound)) {
    Walk { bound: Bound::default(), each }
        .in_scope(|walk| statements.iter().for_each(|statement| walk.visit_stmt(statement)));
}

/// The same for those of a function, in which its arguments are bound.
pub(crate) fn of_function(function: &ItemFn, each: &mut dyn FnMut(&Expr, &Bound)) {
    Walk { bound: Bound::default(), each }.visit_item_fn(function);
}

struct Walk<'e> {
    bound: Bound,
    each: &'e mut dyn FnMut(&Expr, &Bound),
}

impl Walk<'_> {
    fn in_scope(&mut self, visit: impl FnOnce(&mut Self)) {
        self.bound.scopes.push(HashSet::new());
        visit(self);
        self.bound.scopes.pop();
    }
}

impl<'ast> Visit<'ast> for Walk<'_> {
    fn visit_expr(&mut self, expression: &'ast Expr) {
        (self.each)(expression, &self.bound);
        visit::visit_expr(self, expression);
    }

    fn visit_item_fn(&mut self, function: &'ast ItemFn) {
        self.in_scope(|walk| visit::visit_item_fn(walk, function));
    }

    fn visit_block(&mut self, block: &'ast Block) {
        self.in_scope(|walk| visit::visit_block(walk, block));
    }

    fn visit_arm(&mut self, arm: &'ast Arm) {
        self.in_scope(|walk| visit::visit_arm(walk, arm));
    }

    /// What `if let` binds, its own block sees.
    fn visit_expr_if(&mut self, branch: &'ast ExprIf) {
        self.in_scope(|walk| {
            walk.visit_expr(&branch.cond);
            walk.visit_block(&branch.then_branch);
        });
        if let Some((_, otherwise)) = &branch.else_branch {
            self.visit_expr(otherwise);
        }
    }

    fn visit_expr_let(&mut self, matched: &'ast ExprLet) {
        self.visit_expr(&matched.expr);
        self.visit_pat(&matched.pat);
    }

    fn visit_expr_closure(&mut self, closure: &'ast ExprClosure) {
        self.in_scope(|walk| visit::visit_expr_closure(walk, closure));
    }

    fn visit_expr_for_loop(&mut self, repeated: &'ast ExprForLoop) {
        self.visit_expr(&repeated.expr);
        self.in_scope(|walk| {
            walk.visit_pat(&repeated.pat);
            walk.visit_block(&repeated.body);
        });
    }

    fn visit_local(&mut self, local: &'ast Local) {
        if let Some(init) = &local.init {
            visit::visit_local_init(self, init);
        }
        self.visit_pat(&local.pat);
    }

    fn visit_pat_ident(&mut self, pattern: &'ast PatIdent) {
        if let Some(scope) = self.bound.scopes.last_mut() {
            scope.insert(pattern.ident.to_string());
        }
        visit::visit_pat_ident(self, pattern);
    }

    fn visit_macro(&mut self, called: &'ast Macro) {
        crate::macros::expressions(called).iter().for_each(|value| self.visit_expr(value));
    }
}
