//! Which functions of other modules a function calls, read off its syntax: it is expanded before it is lowered.

use crate::helpers::{Helpers, is_free, path_text};
use crate::lower::names;
use std::collections::{BTreeSet, HashSet};
use syn::visit::{self, Visit};
use syn::{Expr, ExprCall, ItemFn, Macro, PatIdent, Path};

/// The paths that a function, and what it calls of its own module, call functions of other modules by. `seen` is
/// what its module lets it see.
pub fn called_elsewhere(function: &ItemFn, seen: &Helpers) -> Vec<Path> {
    let mut search = Search { seen, entered: HashSet::new(), found: Vec::new() };
    search.function(function);
    search.found
}

struct Search<'h> {
    seen: &'h Helpers,
    entered: HashSet<String>,
    found: Vec<Path>,
}

impl Search<'_> {
    fn function(&mut self, function: &ItemFn) {
        if !self.entered.insert(function.sig.ident.to_string()) {
            return;
        }
        let mut calls = Calls::default();
        calls.visit_item_fn(function);
        for path in calls.called {
            if let Some(helper) = self.seen.function(&path) {
                self.function(&helper.function.clone());
                continue;
            }
            let last = path.segments.last().map(|segment| segment.ident.to_string()).unwrap_or_default();
            let is_local = path
                .get_ident()
                .is_some_and(|name| calls.bound.contains(&name.to_string()) || self.entered.contains(&last));
            let is_new = !self.found.iter().any(|known| path_text(known) == path_text(&path));
            if !is_local && is_new && is_free(&path) && !names::is_function(&last) {
                self.found.push(path);
            }
        }
    }
}

/// The paths that are called, without generic arguments, and the names that are bound.
#[derive(Default)]
struct Calls {
    called: Vec<Path>,
    bound: BTreeSet<String>,
}

impl<'ast> Visit<'ast> for Calls {
    fn visit_expr_call(&mut self, call: &'ast ExprCall) {
        if let Expr::Path(function) = &*call.func {
            self.called.push(crate::helpers::plain(&function.path));
        }
        visit::visit_expr_call(self, call);
    }

    fn visit_pat_ident(&mut self, pattern: &'ast PatIdent) {
        self.bound.insert(pattern.ident.to_string());
        visit::visit_pat_ident(self, pattern);
    }

    fn visit_macro(&mut self, called: &'ast Macro) {
        for value in crate::rewrite::expressions(called) {
            let mut inner = Calls::default();
            inner.visit_expr(&value);
            self.called.extend(inner.called);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use syn::parse_quote;

    #[test]
    fn calls_of_other_modules_are_found_through_those_of_the_own() {
        let items: Vec<syn::Item> = vec![parse_quote!(
            #[tile_fn]
            fn near(x: Tile<f32, 1>) -> Tile<f32, 1> {
                near(far(x))
            }
        )];
        let function = parse_quote! {
            fn f(x: Tile<f32, 1>, g: f32) -> Tile<f32, 1> {
                let own = |x: Tile<f32, 1>| x * T::of(2.0);
                tile_assert!(crate::a::checked(x) > 0.0);
                dbg!(own(exp(x)) + near(x) + super::other::<4>(x) + Tile::full([4], f32::from(g)))
            }
        };
        let found = called_elsewhere(&function, &Helpers::of(&items));
        let found: Vec<String> = found.iter().map(path_text).collect();
        assert_eq!(found, ["crate::a::checked", "far", "super::other"]);
    }
}
