//! Type and const parameters of functions: what a call says that they are.

use super::Call;
use super::conform::arguments_of;
use crate::callable;
use crate::diagnostic::Diagnostic;
use crate::elements::FORMATS;
use crate::helpers::Helper;
use crate::lower::{Lowered, Lowering};
use crate::scope::{Changes, Variable};
use crate::signature::is_bool;
use crate::span::Spanned;
use crate::text::Text;
use crate::value::Val;
use syn::{ConstParam, Expr, ExprCall, GenericArgument, GenericParam, Type};
use tile_ir::{DType, Elem};

impl Lowering {
    /// Binds type and const parameters to what `<…>` says: those of an `impl` behind its type, `State::<f32>::new()`, the
    /// function's own behind its name. Those that are left out follow from the arguments.
    pub(super) fn bind_generics(
        &mut self,
        site: &mut Call,
        mut text: Text,
        helper: &Helper,
        call: &ExprCall,
    ) -> Lowered<Text> {
        let (of_impl, own) = parameters_of(helper);
        let written = written_at(call, 0);
        if !written.is_empty() && written.len() != own.len() {
            let plural = if own.len() == 1 { "" } else { "s" };
            let message = format!(
                "`{}` has {} parameter{plural} in `<…>`, not {}",
                site.name,
                own.len(),
                written.len()
            );
            let help = format!("write `{}`", turbofish_text(&site.name, helper, |at| at >= of_impl.len()));
            return self.error(call.func.span(), message, &help);
        }
        let of_type = written_at(call, 1);
        let of_impl = of_impl.iter().map(|generic| {
            let at = helper.owner.as_ref().and_then(|owner| owner.position_of(generic));
            (*generic, at.and_then(|at| of_type.get(at).copied()))
        });
        let own = own.iter().enumerate().map(|(at, generic)| (*generic, written.get(at).copied()));
        for (generic, given) in of_impl.chain(own) {
            let given = given.filter(|given| !is_inferred(given));
            match generic {
                GenericParam::Type(parameter) => {
                    let name = parameter.ident.to_string();
                    let generics = &helper.function.sig.generics;
                    if let Some(callable) = callable::of_parameter(parameter, generics) {
                        text.closures.insert(name, callable);
                        continue;
                    }
                    let elem = match given {
                        Some(given) => self.type_argument(given)?,
                        None => self.elements.unknown(),
                    };
                    self.note_bound(parameter, generics, &elem, &site.name, call.func.span());
                    text.types.insert(name, elem);
                }
                GenericParam::Const(parameter) => {
                    let value = match given {
                        Some(given) => Some(self.const_argument(parameter, given)?),
                        None => None,
                    };
                    site.constants.insert(parameter.ident.to_string(), value);
                }
                GenericParam::Lifetime(_) => {}
            }
        }
        Ok(text)
    }

    fn type_argument(&mut self, given: &GenericArgument) -> Lowered<Elem> {
        let elem = match given {
            GenericArgument::Type(ty) => self.element(ty),
            _ => None,
        };
        match elem {
            Some(elem) => Ok(elem),
            None => {
                let help = format!("use {FORMATS} or a type parameter");
                self.error(given.span(), "this isn't an element type", &help)
            }
        }
    }

    fn const_argument(&mut self, parameter: &ConstParam, given: &GenericArgument) -> Lowered<Val> {
        let value = match given {
            GenericArgument::Const(expression) => self.expression(expression)?,
            // A name reads as a type.
            GenericArgument::Type(Type::Path(path)) => {
                let path = &path.path;
                self.expression(&syn::parse_quote!(#path))?
            }
            _ => Val::Unit,
        };
        self.check_const_argument(given, &value)?;
        match is_bool(&parameter.ty) {
            true => {
                self.number(&value, &DType::Bool.into(), "the const parameter", given.span()).map(Val::Data)
            }
            false => self.static_dim(&value, "a const parameter", given.span()).map(Val::Dim),
        }
    }

    /// Refuses a `const` made of const parameters as an argument in `<…>`, where Rust takes items and single parameters.
    fn check_const_argument(&mut self, given: &GenericArgument, value: &Val) -> Lowered<()> {
        let path = match given {
            GenericArgument::Const(Expr::Path(path)) => &path.path,
            GenericArgument::Type(Type::Path(path)) => &path.path,
            _ => return Ok(()),
        };
        let Some(name) = path.get_ident().map(ToString::to_string) else { return Ok(()) };
        let is_constant = self.scopes.find(&name).is_some_and(|id| self.scopes.variables[id].constant);
        if !is_constant || !self.is_generic(value) {
            return Ok(());
        }
        let message =
            format!("`{name}` is made of const parameters, which Rust has no arguments in `<…>` of");
        let help = format!(
            "make it a const parameter itself, `const {name}: usize`, and say in the kernel's `where` what it is, as in `{name} == 2 * B`"
        );
        self.error(given.span(), message, &help)
    }

    /// Makes the function's const parameters variables; all must be known by now.
    pub(super) fn define_constants(&mut self, helper: &Helper, call: &ExprCall) -> Lowered<()> {
        let site = self.calls.last().expect("a function is called");
        let (name, constants) = (site.name.clone(), site.constants.clone());
        let generics = type_and_const_parameters(helper);
        let is_open = |at: usize| match generics[at] {
            GenericParam::Const(parameter) => {
                matches!(constants.get(&parameter.ident.to_string()), Some(None))
            }
            _ => false,
        };
        let open = (0..generics.len()).find(|&at| is_open(at)).map(|at| generics[at]);
        if let Some(GenericParam::Const(parameter)) = open {
            let message = format!("the const parameter `{}` of `{name}` isn't known here", parameter.ident);
            let help = format!(
                "write `{}`; of const parameters only ranks and lengths of arrays follow from the arguments",
                turbofish_text(&name, helper, is_open)
            );
            return self.report_at_call(Diagnostic::new(call.func.span(), message).help(help));
        }
        for (parameter, value) in constants {
            let Some(value) = value else { continue };
            self.scopes.define(Variable {
                name: parameter,
                value,
                changes: Changes::Never,
                constant: false,
                span: call.func.span(),
            });
        }
        Ok(())
    }
}

fn type_and_const_parameters(helper: &Helper) -> Vec<&GenericParam> {
    let generics = helper.function.sig.generics.params.iter();
    generics.filter(|generic| !matches!(generic, GenericParam::Lifetime(_))).collect()
}

/// A function's parameters in `<…>`: those of the `impl` that it is of, and its own.
fn parameters_of(helper: &Helper) -> (Vec<&GenericParam>, Vec<&GenericParam>) {
    let mut of_impl = type_and_const_parameters(helper);
    let own = of_impl.split_off(helper.owner.as_ref().map_or(0, |owner| owner.parameters));
    (of_impl, own)
}

/// What a call says in `<…>` behind a name in its path, which are counted from the end.
fn written_at(call: &ExprCall, from_end: usize) -> Vec<&GenericArgument> {
    let Expr::Path(path) = &*call.func else { return Vec::new() };
    path.path.segments.iter().nth_back(from_end).map(arguments_of).unwrap_or_default()
}

fn is_inferred(argument: &GenericArgument) -> bool {
    matches!(argument, GenericArgument::Type(Type::Infer(_)))
}

/// A call with the parameters that are to be written, by their positions, and `_` for the others.
fn turbofish_text(name: &str, helper: &Helper, is_written: impl Fn(usize) -> bool) -> String {
    let (of_impl, own) = parameters_of(helper);
    let generics = &helper.function.sig.generics;
    let listed = |parameters: &[&GenericParam], from: usize| {
        let names = (from..).zip(parameters).map(|(at, generic)| match generic {
            _ if !is_written(at) => "_".to_owned(),
            // A closure's type has no name.
            GenericParam::Type(parameter) if callable::of_parameter(parameter, generics).is_some() => {
                "_".to_owned()
            }
            GenericParam::Type(parameter) => parameter.ident.to_string(),
            GenericParam::Const(parameter) => parameter.ident.to_string(),
            GenericParam::Lifetime(parameter) => parameter.lifetime.to_string(),
        });
        let names: Vec<String> = names.collect();
        let any = (from..from + parameters.len()).any(&is_written);
        if any { format!("::<{}>", names.join(", ")) } else { String::new() }
    };
    let (of_type, own) = (listed(&of_impl, 0), listed(&own, of_impl.len()));
    match &helper.owner {
        Some(owner) if !of_type.is_empty() => format!("{}{of_type}::{name}{own}(…)", owner.name()),
        _ => format!("{name}{own}(…)"),
    }
}
