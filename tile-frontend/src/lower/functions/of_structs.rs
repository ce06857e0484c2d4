//! Parameters in `<…>` that the fields of a struct decide: of `state: State<T, N>` those of its tiles, numbers and arrays.

use super::conform::{arguments_of, type_arguments};
use crate::diagnostic::Diagnostic;
use crate::elements::Elements;
use crate::lower::fields::type_of;
use crate::lower::{Lowering, fields};
use crate::span::Span;
use crate::value::{Formats, Val};
use std::collections::{BTreeMap, HashMap};
use syn::visit_mut::{self, VisitMut};
use syn::{Expr, GenericArgument, GenericParam, Generics, Path, Type};

impl Lowering {
    /// Makes what a struct's declared type leaves open what its fields are. Of a struct that isn't seen nothing follows, so
    /// that something else must decide it.
    pub(in crate::lower) fn of_struct(&mut self, path: &Path, fields: &BTreeMap<String, Val>, span: Span) {
        let Some(item) = self.structure(path).cloned() else { return self.note_open(path, span) };
        let mut given = Given::of(&item.generics, path);
        for (name, value) in fields {
            if let Some(mut ty) = type_of(&item, name) {
                given.visit_type_mut(&mut ty);
                self.of_type(value, &ty, span);
            }
        }
    }

    /// The same of a field, whose type is declared. What doesn't fit is rustc's to report.
    fn of_type(&mut self, value: &Val, ty: &Type, span: Span) {
        match (value, ty) {
            (value, Type::Paren(inner)) => self.of_type(value, &inner.elem, span),
            (value, Type::Group(inner)) => self.of_type(value, &inner.elem, span),
            (Val::List(values), Type::Array(array)) => {
                if let Expr::Path(length) = &array.len {
                    self.number_of_parameter(&length.path, values.len());
                }
                values.iter().for_each(|value| self.of_type(value, &array.elem, span));
            }
            (Val::List(values), Type::Tuple(tuple)) => {
                values.iter().zip(&tuple.elems).for_each(|(value, ty)| self.of_type(value, ty, span));
            }
            (Val::Record(_, fields), Type::Path(path)) => self.of_struct(&path.path, fields, span),
            (value, Type::Path(path)) => {
                let rank = match value {
                    Val::Data(tile) => self.shape(*tile).map(|shape| shape.len()),
                    _ => None,
                };
                let elem = match (rank, type_arguments(path).first()) {
                    (None, _) => Some(ty),
                    (Some(_), Some(GenericArgument::Type(elem))) => Some(elem),
                    _ => None,
                };
                let elem = elem.and_then(|elem| self.element(elem));
                if let (Some(elem), Formats::Elements(found)) = (elem, self.formats_of(value)) {
                    self.elements.unify(&found, &elem);
                }
                if let Some(rank) = rank {
                    self.declared_rank(path, rank);
                }
            }
            _ => {}
        }
    }

    /// Notes the formats that a struct's type names and nothing has decided yet.
    fn note_open(&mut self, path: &Path, span: Span) {
        let arguments = path.segments.last().map(arguments_of).unwrap_or_default();
        for argument in arguments {
            let GenericArgument::Type(ty @ Type::Path(name)) = argument else { continue };
            let Some(elem) = self.element(ty).filter(Elements::is_unknown) else { continue };
            let (Some(name), Some(call)) = (name.path.get_ident(), self.calls.last()) else { continue };
            let message = format!("nothing that the kernel sees says what `{name}` of `{}` is", call.name);
            let mut diagnostic = Diagnostic::new(span, message).help(format!(
                "name it in `<…>` of the call, as in `{}::<f32>(…)`; of a struct in the function's own module, with \
                 `#[tile_kernels]`, its fields say it",
                call.name
            ));
            for (span, label) in self.sites().into_iter().skip(1) {
                diagnostic = diagnostic.label(span, label);
            }
            self.fields.push(fields::Undecided { elem, diagnostic });
        }
    }
}

/// What stands in `<…>` of a struct's type, by the names of the struct's own parameters.
struct Given(HashMap<String, GenericArgument>);

impl Given {
    fn of(generics: &Generics, path: &Path) -> Given {
        let names = generics.params.iter().filter_map(|parameter| match parameter {
            GenericParam::Type(parameter) => Some(parameter.ident.to_string()),
            GenericParam::Const(parameter) => Some(parameter.ident.to_string()),
            GenericParam::Lifetime(_) => None,
        });
        let arguments = path.segments.last().map(arguments_of).unwrap_or_default();
        Given(names.zip(arguments.into_iter().cloned()).collect())
    }

    fn argument(&self, name: &Path) -> Option<&GenericArgument> {
        self.0.get(&name.get_ident()?.to_string())
    }
}

impl VisitMut for Given {
    fn visit_type_mut(&mut self, ty: &mut Type) {
        let given = match &*ty {
            Type::Path(path) => self.argument(&path.path),
            _ => None,
        };
        match given {
            Some(GenericArgument::Type(given)) => *ty = given.clone(),
            _ => visit_mut::visit_type_mut(self, ty),
        }
    }

    /// A const parameter among arguments reads as a type.
    fn visit_generic_argument_mut(&mut self, argument: &mut GenericArgument) {
        let given = match &*argument {
            GenericArgument::Type(Type::Path(path)) => self.argument(&path.path),
            GenericArgument::Const(Expr::Path(path)) => self.argument(&path.path),
            _ => None,
        };
        match given {
            Some(given) => *argument = given.clone(),
            None => visit_mut::visit_generic_argument_mut(self, argument),
        }
    }

    fn visit_expr_mut(&mut self, expression: &mut Expr) {
        let given = match &*expression {
            Expr::Path(path) => self.argument(&path.path),
            _ => None,
        };
        match given {
            Some(GenericArgument::Const(given)) => *expression = given.clone(),
            Some(GenericArgument::Type(Type::Path(path))) => {
                *expression =
                    Expr::Path(syn::ExprPath { attrs: Vec::new(), qself: None, path: path.path.clone() });
            }
            _ => visit_mut::visit_expr_mut(self, expression),
        }
    }
}
