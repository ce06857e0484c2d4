//! Constants made of const parameters, which Rust's items don't see: variables of the block, for rustc.
//!
//! All of a block sees an item, so they stand at its start, those first that others are made of. As a variable's pattern the
//! name of a constant of the file would mean that constant, so each has a name that nobody writes.

use crate::lower::mentions;
use crate::macros;
use crate::messages;
use proc_macro2::Span;
use std::collections::HashMap;
use syn::visit_mut::{self, VisitMut};
use syn::{
    Block, Expr, ExprPath, FieldValue, GenericArgument, Ident, Item, ItemConst, Local, Macro, Stmt,
    parse_quote,
};

/// The constants of a block, those first that others are made of.
pub(crate) fn in_order(statements: &[Stmt]) -> Vec<&ItemConst> {
    let mut left: Vec<&ItemConst> = statements.iter().filter_map(item).collect();
    let mut ordered = Vec::new();
    while !left.is_empty() {
        let is_ready = |item: &&ItemConst| left.iter().all(|other| !mentions(&item.expr, &other.ident));
        // rustc reports a circle.
        let next = left.iter().position(is_ready).unwrap_or(0);
        ordered.push(left.remove(next));
    }
    ordered
}

fn item(statement: &Stmt) -> Option<&ItemConst> {
    match statement {
        Stmt::Item(Item::Const(item)) => Some(item),
        _ => None,
    }
}

/// Makes variables of the block's own constants that are made of parameters. Says of each which names it has: for its author,
/// and for rustc.
pub(crate) fn as_variables(
    block: &mut Block,
    mut is_generic: impl FnMut(&ItemConst) -> bool,
) -> Vec<[Ident; 2]> {
    let mut names = Vec::new();
    let mut variables: Vec<Stmt> = Vec::new();
    for ItemConst { ident, ty, expr, .. } in
        in_order(&block.stmts).into_iter().filter(|item| is_generic(item))
    {
        let variable = Ident::new(&format!("__tile_{ident}"), Span::mixed_site().located_at(ident.span()));
        let mut declared: Stmt =
            parse_quote!(#[allow(non_snake_case, unused_variables)] let #variable: #ty = 0;);
        // What is parsed again may have its attributes elsewhere.
        if let Stmt::Local(Local { init: Some(init), .. }) = &mut declared {
            init.expr = expr.clone();
        }
        variables.push(declared);
        names.push([ident.clone(), variable]);
    }
    if names.is_empty() {
        return names;
    }
    block.stmts.retain(|statement| {
        !item(statement).is_some_and(|item| names.iter().any(|[name, _]| *name == item.ident))
    });
    block.stmts.splice(0..0, variables);
    let by_name = names.iter().map(|[name, variable]| (name.to_string(), variable.clone()));
    let mut renamed = Renamed(by_name.collect());
    block.stmts.iter_mut().for_each(|statement| renamed.visit_stmt_mut(statement));
    names
}

/// Variables in place of constants, by the names of these.
struct Renamed(HashMap<String, Ident>);

impl Renamed {
    fn variable(&self, path: &ExprPath) -> Option<Ident> {
        let name = path.path.get_ident()?;
        let variable = self.0.get(&name.to_string())?;
        Some(Ident::new(&variable.to_string(), variable.span().located_at(name.span())))
    }
}

impl VisitMut for Renamed {
    /// A block's own constants hide those around it.
    fn visit_block_mut(&mut self, block: &mut Block) {
        let own = block.stmts.iter().filter_map(item);
        let hidden: Vec<_> = own.filter_map(|item| self.0.remove_entry(&item.ident.to_string())).collect();
        visit_mut::visit_block_mut(self, block);
        self.0.extend(hidden);
    }

    fn visit_expr_path_mut(&mut self, path: &mut ExprPath) {
        if let Some(variable) = self.variable(path) {
            path.path = variable.into();
        }
    }

    /// `State { WIDTH }` is `State { WIDTH: WIDTH }`.
    fn visit_field_value_mut(&mut self, field: &mut FieldValue) {
        if matches!(&field.expr, Expr::Path(path) if self.variable(path).is_some()) {
            field.colon_token.get_or_insert_with(Default::default);
        }
        visit_mut::visit_field_value_mut(self, field);
    }

    /// What is Rust's to compute sees no variable.
    fn visit_generic_argument_mut(&mut self, _: &mut GenericArgument) {}

    fn visit_macro_mut(&mut self, called: &mut Macro) {
        messages::name_captured(called, |name| self.0.get(name).cloned());
        macros::rewrite(called, self);
    }
}
