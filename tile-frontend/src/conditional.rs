//! `#[cfg]` and `#[cfg_attr]` where the front end reads: it doesn't know what rustc will leave out, so a kernel could
//! come to mean something else than its Rust. On a whole kernel or function rustc has decided before.

use crate::diagnostic::Diagnostic;
use crate::span::Spanned;
use syn::visit::{self, Visit};
use syn::{Attribute, ItemFn, Macro};

/// The conditions inside a function.
pub(crate) fn inside(function: &ItemFn) -> Vec<Diagnostic> {
    let mut conditions = Conditions::default();
    conditions.visit_signature(&function.sig);
    conditions.visit_block(&function.block);
    conditions.0
}

/// What to say of an item of a module that a kernel uses and that has a condition.
pub(crate) fn on_item(attributes: &[Attribute]) -> Option<Diagnostic> {
    attributes.iter().find(|attribute| is_condition(attribute)).map(|attribute| {
        let name = attribute.path().get_ident().map(ToString::to_string).unwrap_or_default();
        let message = format!("a kernel uses this item, and can't know whether `#[{name}]` leaves it out");
        let help = "put the condition on the whole module, or choose by a const parameter of the kernel";
        Diagnostic::new(attribute.span(), message).help(help)
    })
}

/// Whether an attribute may leave out what it stands on.
pub(crate) fn is_condition(attribute: &Attribute) -> bool {
    attribute.path().is_ident("cfg") || attribute.path().is_ident("cfg_attr")
}

#[derive(Default)]
struct Conditions(Vec<Diagnostic>);

impl<'ast> Visit<'ast> for Conditions {
    fn visit_attribute(&mut self, attribute: &'ast Attribute) {
        if is_condition(attribute) {
            let name = attribute.path().get_ident().map(ToString::to_string).unwrap_or_default();
            let message = format!("`#[{name}]` can't stand inside a kernel or its functions");
            let help = "put it on the whole kernel or function, or choose by a const parameter, `const FAST: bool`: `if FAST { … }`";
            self.0.push(Diagnostic::new(attribute.span(), message).help(help));
        }
        visit::visit_attribute(self, attribute);
    }

    fn visit_macro(&mut self, called: &'ast Macro) {
        crate::macros::expressions(called).iter().for_each(|value| self.visit_expr(value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use syn::parse_quote;

    #[test]
    fn conditions_are_found_wherever_attributes_stand() {
        let function: ItemFn = parse_quote! {
            #[cfg(unix)]
            fn f(x: i32, #[cfg(unix)] y: i32) {
                #[allow(unused)]
                let a = 1;
                #[cfg(any())]
                let a = 2;
                match x {
                    #[cfg_attr(any(), allow(unused))]
                    1 => {}
                    _ => tile_println!("{}", { #[cfg(unix)] let b = 1; 2 }),
                }
            }
        };
        assert_eq!(inside(&function).len(), 4);
        assert!(on_item(&function.attrs).is_some());
    }
}
