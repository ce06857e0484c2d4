//! Where the counter of a loop must be known when the macro expands: where it indexes an array of values, where an axis, a
//! start or a distance is written, which are part of an op, and where a tensor is moved by it, because views are made before
//! loops.

use crate::bindings;
use crate::lower::Lowering;
use crate::lower::tensors::view_movement::method_names;
use crate::value::Val;
use syn::{BinOp, Block, Expr, ExprIndex, ExprMethodCall, Ident};

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

/// That a body indexes by a name of around it.
pub(in crate::lower) struct Indexed {
    /// The first place where it does.
    pub(in crate::lower) first: ExprIndex,
    /// Whether the name is a `usize` there, or in another index: it is computed with as it is. What it is converted to, or
    /// passed to, says nothing of it.
    pub(in crate::lower) by_size: bool,
}

/// Where a body indexes by a name of around it.
pub(in crate::lower) fn indexed_by(body: &Block, name: &Ident) -> Option<Indexed> {
    let mut found: Option<Indexed> = None;
    each_that_sees(body, name, &mut |expression| {
        let Expr::Index(index) = expression else { return };
        if mentions(&index.index, name) {
            let found = found.get_or_insert_with(|| Indexed { first: index.clone(), by_size: false });
            found.by_size |= has_type_of(&index.index, name);
        }
    });
    found
}

/// Whether an expression is of the type of a name in it, by its form.
fn has_type_of(expression: &Expr, name: &Ident) -> bool {
    match expression {
        Expr::Path(path) => path.path.is_ident(name),
        Expr::Paren(inner) => has_type_of(&inner.expr, name),
        Expr::Group(inner) => has_type_of(&inner.expr, name),
        Expr::Unary(unary) => has_type_of(&unary.expr, name),
        Expr::Binary(binary) => {
            let is_shift = matches!(binary.op, BinOp::Shl(_) | BinOp::Shr(_));
            has_type_of(&binary.left, name) || !is_shift && has_type_of(&binary.right, name)
        }
        Expr::MethodCall(call) => has_type_of(&call.receiver, name),
        _ => false,
    }
}

/// Whether a body has a name of around it where an axis, a start or a distance is written.
pub(in crate::lower) fn says_where(body: &Block, name: &Ident) -> bool {
    let mut found = false;
    each_that_sees(body, name, &mut |expression| {
        let Expr::MethodCall(call) = expression else { return };
        let row = STATIC.iter().find(|(method, _)| call.method == method);
        let Some(&(_, position)) = row else { return };
        let mut arguments =
            call.args.iter().enumerate().filter(|(at, _)| position.is_none_or(|only| only == *at));
        found |= arguments.any(|(_, argument)| mentions(argument, name));
    });
    found
}

/// Calls `each` for the expressions in a body in which a name means what it does around the body.
fn each_that_sees(body: &Block, name: &Ident, each: &mut dyn FnMut(&Expr)) {
    let name = name.to_string();
    bindings::of_statements(&body.stmts, &mut |expression, bound| {
        if !bound.contains(&name) {
            each(expression);
        }
    });
}

/// Whether a name stands in an expression, as one of around it.
pub(crate) fn mentions(expression: &Expr, name: &Ident) -> bool {
    let mut found = false;
    bindings::of_expression(expression, &mut |inner, bound| {
        let Expr::Path(path) = inner else { return };
        found |= path.path.is_ident(name) && !bound.contains(&name.to_string());
    });
    found
}

impl Lowering {
    /// Whether a body moves a tensor from before it by a name. Windows over a margin are selected at any index, so a counter
    /// that does nothing else isn't meant.
    pub(in crate::lower) fn moves_tensors_by(&self, body: &Block, name: &Ident) -> bool {
        let mut found = false;
        each_that_sees(body, name, &mut |expression| {
            let Expr::MethodCall(call) = expression else { return };
            let is_meant = call.args.iter().any(|argument| mentions(argument, name));
            found |= is_meant && is_movement(call) && self.is_moved_tensor(&call.receiver);
        });
        found
    }

    /// Whether movements alone lead from a tensor to this, none of which makes windows.
    fn is_moved_tensor(&self, expression: &Expr) -> bool {
        match expression {
            Expr::Path(_) => matches!(self.variable(expression), Some(Val::Tensor(_))),
            Expr::MethodCall(call) => {
                is_movement(call) && call.method != "unfold" && self.is_moved_tensor(&call.receiver)
            }
            Expr::Paren(inner) => self.is_moved_tensor(&inner.expr),
            _ => false,
        }
    }
}

fn is_movement(call: &ExprMethodCall) -> bool {
    method_names().any(|name| call.method == name)
}
