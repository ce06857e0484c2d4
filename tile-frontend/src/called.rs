//! Which functions of other modules a function calls, read off its syntax: it is expanded before it is lowered.

use crate::bindings;
use crate::helpers::{Helpers, path_text};
use crate::lower::names;
use std::collections::HashSet;
use syn::{Expr, ItemFn, Path};

/// The paths that a function, and what it calls of its own module, call functions of other modules by. `seen` is
/// what its module lets it see.
pub fn called_elsewhere(function: &ItemFn, seen: &Helpers) -> Vec<Path> {
    let mut search = Search { seen, entered: HashSet::new(), found: Vec::new() };
    search.function(&function.sig.ident.to_string(), function);
    search.found
}

struct Search<'h> {
    seen: &'h Helpers,
    entered: HashSet<String>,
    found: Vec<Path>,
}

impl Search<'_> {
    fn function(&mut self, path: &str, function: &ItemFn) {
        if !self.entered.insert(path.to_owned()) {
            return;
        }
        let seen = self.seen;
        for method in methods(function) {
            seen.methods(&method).for_each(|(path, helper)| self.function(path, &helper.function));
        }
        for path in calls(function) {
            if let Some(helper) = seen.function(&path) {
                self.function(&path_text(&path), &helper.function);
                continue;
            }
            let last = path.segments.last().map(|segment| segment.ident.to_string()).unwrap_or_default();
            let is_local = path.get_ident().is_some() && self.entered.contains(&last);
            let is_new = !self.found.iter().any(|known| path_text(known) == path_text(&path));
            if !is_local && is_new && names::may_be_elsewhere(&path) {
                self.found.push(path);
            }
        }
    }
}

/// The paths that a function calls, without generic arguments, but for those of variables: a variable's own
/// initialiser doesn't see it, and nothing does after its block.
fn calls(function: &ItemFn) -> Vec<Path> {
    let mut called = Vec::new();
    bindings::of_function(function, &mut |expression, bound| {
        let Expr::Call(call) = expression else { return };
        let Expr::Path(function) = &*call.func else { return };
        let variable = function.path.get_ident().map(ToString::to_string);
        if !variable.is_some_and(|name| bound.contains(&name)) {
            called.push(crate::helpers::plain(&function.path));
        }
    });
    called
}

/// The names of methods that a function calls: any type's of its own module.
fn methods(function: &ItemFn) -> HashSet<String> {
    let mut called = HashSet::new();
    bindings::of_function(function, &mut |expression, _| {
        if let Expr::MethodCall(call) = expression {
            called.insert(call.method.to_string());
        }
    });
    called
}

#[cfg(test)]
mod tests {
    use super::*;
    use syn::parse_quote;

    #[test]
    fn calls_of_other_modules_are_found_through_those_of_the_own() {
        let items: Vec<syn::Item> = vec![
            parse_quote!(
                #[tile_fn]
                fn near(x: Tile<f32, 1>) -> Tile<f32, 1> {
                    near(far(x)) + State { sum: x }.given()
                }
            ),
            parse_quote!(
                #[tile_fn]
                impl State {
                    fn given(self) -> Tile<f32, 1> {
                        Self::of_type(self) + free(self.sum)
                    }
                    fn of_type(self) -> Tile<f32, 1> {
                        further(self.given())
                    }
                }
            ),
        ];
        let function = parse_quote! {
            fn f(x: Tile<f32, 1>, g: f32) -> Tile<f32, 1> {
                let own = |x: Tile<f32, 1>| x * T::of(2.0);
                tile_assert!(crate::a::checked(x) > 0.0);
                dbg!(own(exp(x)) + near(x) + super::other::<4>(x) + Tile::full([4], f32::from(g)))
            }
        };
        let found = called_elsewhere(&function, &Helpers::of(&items));
        let found: Vec<String> = found.iter().map(path_text).collect();
        assert_eq!(found, ["crate::a::checked", "further", "free", "far", "super::other"]);
    }

    #[test]
    fn a_variable_hides_a_function_after_its_value_and_in_its_block() {
        let function = parse_quote! {
            fn f(x: Tile<f32, 1>, given: f32) -> Tile<f32, 1> {
                let norm = norm(x);
                {
                    let inner = |inner: f32| inner(given(norm(x)));
                }
                for index in index(x) {
                    index(x);
                }
                line(inner(norm)) + math::line(x)
            }
        };
        let found = called_elsewhere(&function, &Helpers::default());
        let found: Vec<String> = found.iter().map(path_text).collect();
        assert_eq!(found, ["norm", "index", "inner", "math::line"]);
    }
}
