//! Where the counter of a loop must be known when the macro expands: where it indexes an array of values, where an axis, a
//! start or a distance is written, which are part of an op, and where a tensor is moved by it, because views are made before
//! loops.

use crate::lower::Lowering;
use crate::lower::tensors::view_movement::method_names;
use crate::value::Val;
use syn::visit::{self, Visit};
use syn::{Block, Expr, ExprIndex, ExprMethodCall, Ident};

/// Methods whose arguments, or the one at this position, are parts of an op; those of scalars that have the name of one,
/// as `n.max(i)`, aren't among them.
const STATIC: [(&str, Option<usize>); 27] = [
    ("all", Some(0)),
    ("any", Some(0)),
    ("argmax", Some(0)),
    ("argmin", Some(0)),
    ("cummax", Some(0)),
    ("cummin", Some(0)),
    ("cumprod", Some(0)),
    ("cumsum", Some(0)),
    ("extent", Some(0)),
    ("extract", None),
    ("flip", None),
    ("gather", Some(1)),
    ("insert", Some(0)),
    ("mean", Some(0)),
    ("pad", Some(0)),
    ("permute", None),
    ("prod", Some(0)),
    ("roll", None),
    ("select", Some(0)),
    ("shift", None),
    ("sort", Some(0)),
    ("split_even", Some(0)),
    ("squeeze", None),
    ("sum", Some(0)),
    ("take", Some(1)),
    ("tiles", Some(0)),
    ("unsqueeze", None),
];

/// Where a body indexes by a name.
pub(in crate::lower) fn indexed_by<'b>(body: &'b Block, name: &Ident) -> Option<&'b ExprIndex> {
    let mut search = Search { name, index: None, is_static: false };
    search.visit_block(body);
    search.index
}

/// Whether a body has the name where an axis, a start or a distance is written.
pub(in crate::lower) fn says_where(body: &Block, name: &Ident) -> bool {
    let mut search = Search { name, index: None, is_static: false };
    search.visit_block(body);
    search.is_static
}

struct Search<'n, 'b> {
    name: &'n Ident,
    /// The first index that has the name.
    index: Option<&'b ExprIndex>,
    is_static: bool,
}

impl<'b> Visit<'b> for Search<'_, 'b> {
    fn visit_expr_index(&mut self, index: &'b ExprIndex) {
        if self.index.is_none() && mentions(&index.index, self.name) {
            self.index = Some(index);
        }
        visit::visit_expr_index(self, index);
    }

    fn visit_expr_method_call(&mut self, call: &'b ExprMethodCall) {
        let row = STATIC.iter().find(|(method, _)| call.method == method);
        if let Some(&(_, position)) = row {
            let mut arguments =
                call.args.iter().enumerate().filter(|(at, _)| position.is_none_or(|only| only == *at));
            self.is_static |= arguments.any(|(_, argument)| mentions(argument, self.name));
        }
        visit::visit_expr_method_call(self, call);
    }
}

/// Whether a name stands in an expression.
fn mentions(expression: &Expr, name: &Ident) -> bool {
    let mut names = Mentions { name, found: false };
    names.visit_expr(expression);
    names.found
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
    pub(in crate::lower) fn moves_tensors_by(&self, body: &Block, name: &Ident) -> bool {
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
        let is_meant = call.args.iter().any(|argument| mentions(argument, self.name));
        self.found |= is_meant && is_movement(call) && self.is_tensor(&call.receiver);
        visit::visit_expr_method_call(self, call);
    }
}
