//! Local closures: lowered where they are called, with the variables that they captured where they were written.

use super::functions::{Call, Parameter};
use super::{Lowered, Lowering};
use crate::assigned;
use crate::scope::Variable;
use crate::span::{Span, Spanned};
use crate::value::{Closure, Val};
use std::collections::BTreeSet;
use std::rc::Rc;
use syn::visit::{self, Visit};
use syn::{Block, Expr, ExprCall, ExprClosure, ExprPath, Pat, PatIdent, ReturnType, Stmt};

impl Lowering {
    /// `|x| x * scale`: captures what it names, as it is now. Rust lets nothing change it while the closure is
    /// used, and a `move` closure has copies.
    pub(super) fn closure(&mut self, closure: &ExprClosure) -> Lowered<Val> {
        if let Some(word) = closure.asyncness {
            return self.error(word.span(), "a closure of a kernel can't be `async`", "remove the word");
        }
        let mut names = Names::default();
        names.visit_expr_closure(closure);
        let assigned = assigned::by_expression(&closure.body).names;
        if let Some(name) = assigned.iter().find(|name| !names.bound.contains(*name)) {
            let place = place_of_assignment(&closure.body, name).unwrap_or_else(|| closure.body.span());
            let message = format!("the closure assigns to `{name}`, which it captured");
            let help = "give the new value back, as in `x = step(x)`";
            return self.error(place, message, help);
        }
        let captured = names.used.iter().filter_map(|name| self.scopes.find(name));
        let captured = captured.map(|id| self.scopes.variables[id].clone());
        let captured = captured.map(|variable| Variable { mutable: false, ..variable }).collect();
        Ok(Val::Closure(Rc::new(Closure { syntax: closure.clone(), captured })))
    }

    pub(super) fn call_closure(&mut self, name: &str, closure: &Closure, call: &ExprCall) -> Lowered<Val> {
        let arguments = self.passed(call)?;
        let syntax = &closure.syntax;
        let parameters: Vec<Parameter<'_>> = syntax
            .inputs
            .iter()
            .map(|input| match input {
                Pat::Type(typed) => (&*typed.pat, Some(&*typed.ty)),
                pattern => (pattern, None),
            })
            .collect();
        self.check_count(name, &parameters, arguments.len(), call.span())?;
        let output = match &syntax.output {
            ReturnType::Default => None,
            ReturnType::Type(_, ty) => Some(&**ty),
        };
        let outer = self.scopes.isolate();
        for variable in &closure.captured {
            self.scopes.define(variable.clone());
        }
        self.scopes.enter();
        self.closures += 1;
        self.calls.push(Call::of_closure(name, call.func.span()));
        let body = as_block(&syntax.body);
        let value = self.bind_arguments(&parameters, arguments).and_then(|()| self.inlined(&body, output));
        self.calls.pop();
        self.closures -= 1;
        self.scopes.restore(outer);
        value
    }
}

fn as_block(body: &Expr) -> Block {
    match body {
        Expr::Block(block) if block.label.is_none() => block.block.clone(),
        other => {
            Block { brace_token: syn::token::Brace::default(), stmts: vec![Stmt::Expr(other.clone(), None)] }
        }
    }
}

/// The names that a closure binds itself, and those that it uses.
#[derive(Default)]
struct Names {
    bound: BTreeSet<String>,
    used: BTreeSet<String>,
}

impl<'ast> Visit<'ast> for Names {
    fn visit_pat_ident(&mut self, pattern: &'ast PatIdent) {
        self.bound.insert(pattern.ident.to_string());
        visit::visit_pat_ident(self, pattern);
    }

    fn visit_expr_path(&mut self, path: &'ast ExprPath) {
        self.used.extend(path.path.get_ident().map(ToString::to_string));
        visit::visit_expr_path(self, path);
    }

    fn visit_type_path(&mut self, path: &'ast syn::TypePath) {
        // `BM` of `f::<BM>(x)` reads as a type.
        self.used.extend(path.path.get_ident().map(ToString::to_string));
        visit::visit_type_path(self, path);
    }

    fn visit_macro(&mut self, called: &'ast syn::Macro) {
        if let Some(value) = crate::rewrite::debugged(called) {
            let mut inner = Names::default();
            inner.visit_expr(&value);
            self.used.extend(inner.used);
            self.bound.extend(inner.bound);
        }
    }
}

/// Where a name is assigned to.
fn place_of_assignment(body: &Expr, name: &str) -> Option<Span> {
    struct Find<'n> {
        name: &'n str,
        found: Option<Span>,
    }
    impl<'ast> Visit<'ast> for Find<'_> {
        fn visit_expr(&mut self, expression: &'ast Expr) {
            let target = match expression {
                Expr::Assign(assign) => Some(&assign.left),
                Expr::Binary(binary) if assigned::is_compound_assignment(&binary.op) => Some(&binary.left),
                _ => None,
            };
            let changed = target.map(|target| assigned::by_expression(&syn::parse_quote!(#target = 0)).names);
            if changed.is_some_and(|names| names.contains(self.name)) && self.found.is_none() {
                self.found = target.map(|target| target.span());
            }
            visit::visit_expr(self, expression);
        }
    }
    let mut find = Find { name, found: None };
    find.visit_expr(body);
    find.found
}
