//! Calls of functions with `#[tile_fn]` and of local closures. A call has no op: the body is lowered in its place,
//! with the parameters bound to the arguments, so that shapes follow from the arguments.

pub(super) mod calls;
pub(super) mod closures;
mod computed;
pub(super) mod conform;
pub(super) mod generics;
mod of_structs;
mod parameters;

use crate::conditional;
use crate::diagnostic::Diagnostic;
use crate::exits;
use crate::helpers::Helper;
use crate::lower::control::exits::Frame;
use crate::lower::{Lowered, Lowering, kind, names};
use crate::rewrite::place;
use crate::span::{Span, Spanned};
use crate::text::{Defined, Text};
use crate::value::Val;
use std::collections::HashMap;
use std::rc::Rc;
use syn::{
    Block, Expr, ExprCall, ExprMethodCall, ExprPath, FnArg, Pat, ReturnType, Type, parse_quote_spanned,
};
use tile_ir::{DType, Elem};

/// A call that is being lowered.
pub(crate) struct Call {
    /// What is called.
    pub(in crate::lower) name: String,
    /// Where.
    pub(in crate::lower) span: Span,
    /// Whether it stands in a foreign text itself.
    pub(in crate::lower) is_foreign: bool,
    /// What a function's const parameters are bound to, where that is known.
    pub(in crate::lower) constants: HashMap<String, Option<Val>>,
}

/// One parameter of what is called, and its declared type.
pub(in crate::lower) type Parameter<'p> = (&'p Pat, Option<&'p Type>);

impl Lowering {
    /// The element format that a type names here: a number type, or a type parameter of what the text is a part of.
    pub(in crate::lower) fn element(&self, ty: &Type) -> Option<Elem> {
        let Type::Path(path) = ty else { return None };
        if let Some(name) = path.path.get_ident()
            && let Some(elem) = self.text.types.get(&name.to_string())
        {
            return Some(self.elements.resolve(elem));
        }
        DType::from_rust_name(&path.path.segments.last()?.ident.to_string()).map(Elem::Known)
    }

    /// The values of a call's arguments. Views and closures may be passed by reference.
    pub(in crate::lower) fn passed(&mut self, call: &ExprCall) -> Lowered<Vec<(Val, Span)>> {
        let values: Vec<Lowered<(Val, Span)>> = call
            .args
            .iter()
            .map(|argument| {
                let value = match argument {
                    Expr::Reference(reference) => match self.expression(&reference.expr)? {
                        value @ (Val::View(_)
                        | Val::WindowsView(..)
                        | Val::Atomic(_)
                        | Val::Closure(_)) => value,
                        other if reference.mutability.is_some() => {
                            let message = format!("`&mut` of {} can't be passed in a kernel", kind(&other));
                            let help = "a method of a struct may change it, `state.update(x)`; a function gives back what it changes, `x = f(x)`";
                            return self.error(argument.span(), message, help);
                        }
                        other => {
                            let message = format!("{} is passed by value", kind(&other));
                            return self.error(argument.span(), message, "remove the `&`");
                        }
                    },
                    Expr::Path(path) => self.no_function(path).and_then(|()| self.expression(argument))?,
                    argument => self.expression(argument)?,
                };
                Ok((value, argument.span()))
            })
            .collect();
        values.into_iter().collect()
    }

    /// Refuses the name of a function as an argument.
    fn no_function(&mut self, path: &ExprPath) -> Lowered<()> {
        let variable = path.path.get_ident().and_then(|name| self.scopes.find(&name.to_string()));
        let is_function = self.text.helpers.function(&path.path).is_some() || names::is_known(&path.path);
        if variable.is_some() || !is_function {
            return Ok(());
        }
        let name = crate::helpers::path_text(&path.path);
        let message = format!("`{name}` is a function, and arguments are values and closures");
        self.error(path.span(), message, &format!("write a closure that calls it: `|a| {name}(a)`"))
    }

    pub(in crate::lower) fn call_function(&mut self, helper: &Helper, call: &ExprCall) -> Lowered<Val> {
        self.check_condition(helper)?;
        let defined = self.defined(helper, call)?;
        let arguments = self.passed(call)?;
        self.apply_function(helper, defined, arguments, call).map(|(value, _)| value)
    }

    /// `state.update(x)`, a function of the module for the type of `state`. `path` is its path, `update` of its place.
    pub(in crate::lower) fn call_method(
        &mut self,
        helper: &Helper,
        receiver: Val,
        path: syn::Path,
        call: &ExprMethodCall,
    ) -> Lowered<Val> {
        let mut called: ExprCall = parse_quote_spanned!(call.method.span()=> #path());
        called.args.clone_from(&call.args);
        let defined = self.defined(helper, &called)?;
        let mut arguments = self.passed(&called)?;
        arguments.insert(0, (receiver, call.receiver.span()));
        let (value, changed) = self.apply_function(helper, defined, arguments, &called)?;
        if let (variable @ Expr::Path(_), Some(changed)) = (&*call.receiver, changed) {
            self.set(variable, Ok(changed), call.method.span().into())?;
        }
        Ok(value)
    }

    /// rustc has decided on functions of other modules.
    pub(in crate::lower) fn check_condition(&mut self, helper: &Helper) -> Lowered<()> {
        match conditional::on_item(&helper.function.attrs).filter(|_| helper.own.is_none()) {
            Some(refusal) => self.report(refusal),
            None => Ok(()),
        }
    }

    /// What a function gives, and what a method with `&mut self` has made of `self`.
    fn apply_function(
        &mut self,
        helper: &Helper,
        defined: Defined,
        arguments: Vec<(Val, Span)>,
        call: &ExprCall,
    ) -> Lowered<(Val, Option<Val>)> {
        let function = &helper.function;
        let name = function.sig.ident.to_string();
        let inputs = function.sig.inputs.iter().filter_map(|input| match input {
            FnArg::Typed(input) => Some((&*input.pat, Some(&*input.ty))),
            FnArg::Receiver(_) => None,
        });
        let parameters: Vec<Parameter<'_>> = inputs.collect();
        self.check_count(&name, &parameters, arguments.len(), call.span())?;
        let text = self.text_of(helper, defined);
        let mut site = self.site(&name, call.func.span());
        let text = self.bind_generics(&mut site, text, helper, call)?;
        let outer = self.scopes.isolate();
        let callers = std::mem::replace(&mut self.text, Rc::new(text));
        self.calls.push(site);
        let value = self.bound_call(helper, &parameters, arguments, call);
        let changed = self.scopes.find("self").filter(|_| helper.is_update);
        let changed = changed.map(|id| self.scopes.variables[id].value.clone());
        self.calls.pop();
        self.text = callers;
        self.scopes.restore(outer);
        Ok((value?, changed))
    }

    /// A call from the current place.
    pub(in crate::lower) fn site(&self, name: &str, span: Span) -> Call {
        let is_foreign = self.text.is_foreign;
        Call { name: name.to_owned(), span, is_foreign, constants: HashMap::new() }
    }

    /// Where a function stands that isn't being called yet. A closure's body may call the function that was given
    /// the closure, if the closure stands outside of it.
    fn defined(&mut self, helper: &Helper, call: &ExprCall) -> Lowered<Defined> {
        let (function, span) = (&helper.function, call.func.span());
        let at = function.sig.ident.span();
        let name = function.sig.ident.to_string();
        let defined = (name, at.file(), place(at.start()));
        let Some(first) = self.text.functions.iter().position(|known| *known == defined) else {
            return Ok(defined);
        };
        let name = defined.0;
        let through = self.text.functions[first + 1..].iter().map(|(name, ..)| name);
        let diagnostic = Diagnostic::of_circle(span, &name, through);
        self.report(diagnostic)
    }

    /// A function's text as it is called from the current one, without what its parameters are.
    fn text_of(&self, helper: &Helper, defined: Defined) -> Text {
        let callers = &self.text;
        let mut functions = callers.functions.clone();
        functions.push(defined);
        Text {
            helpers: helper.own.clone().unwrap_or_else(|| Rc::clone(&callers.helpers)),
            functions,
            types: HashMap::new(),
            closures: HashMap::new(),
            is_own: false,
            is_foreign: helper.foreign || callers.is_foreign,
            is_elsewhere: helper.own.is_some() || callers.is_elsewhere,
        }
    }

    fn bound_call(
        &mut self,
        helper: &Helper,
        parameters: &[Parameter<'_>],
        arguments: Vec<(Val, Span)>,
        call: &ExprCall,
    ) -> Lowered<Val> {
        let function = &helper.function;
        self.bind_arguments(parameters, arguments)?;
        self.define_constants(helper, call)?;
        let output = match &function.sig.output {
            ReturnType::Default => None,
            ReturnType::Type(_, ty) => Some(&**ty),
        };
        self.inlined(&function.block, output)
    }

    pub(in crate::lower) fn check_count(
        &mut self,
        name: &str,
        parameters: &[Parameter<'_>],
        count: usize,
        span: Span,
    ) -> Lowered<()> {
        if parameters.len() == count {
            return Ok(());
        }
        let mut names: Vec<String> = parameters.iter().map(|(pattern, _)| pattern_text(pattern)).collect();
        let is_method = names.first().is_some_and(|name| name == "self");
        let (mut usage, mut given) = (name.to_owned(), count);
        if is_method && count > 0 {
            names.remove(0);
            (usage, given) = (format!("state.{name}"), count - 1);
        }
        let plural = if names.len() == 1 { "" } else { "s" };
        let message = format!("`{name}` takes {} argument{plural}, not {given}", names.len());
        self.error(span, message, &format!("write `{usage}({})`", names.join(", ")))
    }

    /// Binds parameters to arguments of their declared types, in a scope that the caller made.
    pub(in crate::lower) fn bind_arguments(
        &mut self,
        parameters: &[Parameter<'_>],
        arguments: Vec<(Val, Span)>,
    ) -> Lowered<()> {
        let name = self.calls.last().map(|call| call.name.clone()).unwrap_or_default();
        for (&(pattern, ty), (value, span)) in parameters.iter().zip(arguments) {
            let what = format!("argument `{}` of `{name}`", pattern_text(pattern));
            let value = match ty {
                Some(ty) => self.conform(value, ty, &what, span)?,
                None => value,
            };
            self.bind(pattern, value)?;
        }
        Ok(())
    }

    /// The body of what is called, in a scope that has its parameters.
    pub(in crate::lower) fn inlined(&mut self, body: &Block, output: Option<&Type>) -> Lowered<Val> {
        let call = self.calls.last().expect("a body is inlined in a call");
        let (name, span) = (call.name.clone(), call.span);
        self.enter_call(!exits::of_block(body).is_empty(), span);
        let value = self.block(body);
        let frame = self.leave_loop();
        let place = body.stmts.last().map_or(span, Spanned::span);
        let value = self.returned(&frame, value?, &name, place)?;
        match output {
            Some(ty) => self.conform(value, ty, &format!("the value of `{name}`"), place),
            None => Ok(value),
        }
    }

    /// What a call or a labelled block gives: the value at its end, or that of the exit that was taken.
    pub(in crate::lower) fn returned(
        &mut self,
        frame: &Frame,
        value: Val,
        name: &str,
        span: Span,
    ) -> Lowered<Val> {
        let early = self.loop_value(frame);
        match (value, early) {
            (Val::Never, early) => Ok(early),
            (value, Val::Unit) => Ok(value),
            (value, early) => {
                let before = frame.first_given().unwrap_or(span);
                if let (Val::Data(a), Val::Data(b)) = (&early, &value)
                    && self.shape(*a) != self.shape(*b)
                {
                    let (was, is) = (self.display_type(*a), self.display_type(*b));
                    let message = format!("`{name}` gives {is} here, but {was} before");
                    let diagnostic =
                        Diagnostic::new(span, message).label(before, format!("`{name}` gives {was}"));
                    let help = match name.starts_with('\'') {
                        true => "a block gives one shape",
                        false => "a function gives one shape",
                    };
                    return self.report(diagnostic.help(help));
                }
                let what = format!("the value of `{name}`");
                let value = self.same_type_as(&early, &what, before, value, span)?;
                let Some(live) = self.goes_on_after(frame) else { return Ok(value) };
                let nothing = crate::assigned::Assigned::default();
                let (mut last, mut taken) =
                    (|_: &mut Self| Ok(value.clone()), |_: &mut Self| Ok(early.clone()));
                self.choose("if", live, &nothing, span, &mut last, &mut taken)
            }
        }
    }
}

fn pattern_text(pattern: &Pat) -> String {
    match pattern {
        Pat::Ident(name) => name.ident.to_string(),
        Pat::Type(typed) => pattern_text(&typed.pat),
        _ => "_".to_owned(),
    }
}
