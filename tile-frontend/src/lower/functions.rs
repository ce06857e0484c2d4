//! Calls of functions with `#[tile_fn]` and of local closures. A call has no op: the body is lowered in its place,
//! with the parameters bound to the arguments, so that shapes follow from the arguments.

use super::exits::Frame;
use super::{Lowered, Lowering, Reported, kind, rust_elem};
use crate::conditional;
use crate::diagnostic::Diagnostic;
use crate::exits;
use crate::helpers::{Helper, Helpers};
use crate::rewrite::{Place, place};
use crate::scope::Variable;
use crate::span::{Span, Spanned};
use crate::value::Val;
use std::collections::HashMap;
use syn::{
    Block, Expr, ExprCall, FnArg, GenericArgument, GenericParam, Pat, PathArguments, ReturnType, Type,
};
use tile_ir::{Dim, Elem};

/// A call that is being lowered.
pub(crate) struct Call {
    /// What is called.
    pub(super) name: String,
    /// Where.
    pub(super) span: Span,
    /// Where a function's name stands: functions of two modules may share a name. `None` for a closure, which
    /// can't name itself.
    defined: Option<(String, Place)>,
    /// Whether the called body stands in another file.
    pub(super) foreign: bool,
    /// Whether the called body stands in another module.
    pub(super) elsewhere: bool,
    /// What the function's type parameters are bound to.
    types: HashMap<String, Elem>,
    /// What its const parameters are bound to, where that is known.
    extents: HashMap<String, Option<Dim>>,
}

impl Call {
    pub(super) fn of_closure(name: &str, span: Span) -> Call {
        let (types, extents) = Default::default();
        Call { name: name.to_owned(), span, defined: None, foreign: false, elsewhere: false, types, extents }
    }
}

/// One parameter of what is called, and its declared type.
pub(super) type Parameter<'p> = (&'p Pat, Option<&'p Type>);

impl Lowering {
    /// The element format that a type names here: a number type, or a type parameter of the innermost function
    /// or of the kernel.
    pub(super) fn element(&self, ty: &Type) -> Option<Elem> {
        if let Type::Path(path) = ty
            && let Some(name) = path.path.get_ident()
            && let Some(elem) = self.calls.iter().rev().find_map(|call| call.types.get(&name.to_string()))
        {
            return Some(self.elements.resolve(elem));
        }
        crate::signature::element(&self.kernel.generics, ty)
    }

    /// The values of a call's arguments. Views may be passed by reference.
    pub(super) fn passed(&mut self, call: &ExprCall) -> Lowered<Vec<(Val, Span)>> {
        let values: Vec<Lowered<(Val, Span)>> = call
            .args
            .iter()
            .map(|argument| {
                let value = match argument {
                    Expr::Reference(reference) => match self.expression(&reference.expr)? {
                        view @ Val::View(_) => view,
                        other => {
                            let message = format!("{} is passed by value", kind(&other));
                            return self.error(argument.span(), message, "remove the `&`");
                        }
                    },
                    argument => self.expression(argument)?,
                };
                Ok((value, argument.span()))
            })
            .collect();
        values.into_iter().collect()
    }

    pub(super) fn call_function(&mut self, helper: &Helper, call: &ExprCall) -> Lowered<Val> {
        let function = &helper.function;
        // rustc has decided on functions of other modules.
        if helper.own.is_none()
            && let Some(refusal) = conditional::on_item(&function.attrs)
        {
            return self.report(refusal);
        }
        let name = function.sig.ident.to_string();
        let at = function.sig.ident.span();
        let defined = Some((at.file(), place(at.start())));
        let is_same = |call: &Call| call.name == name && call.defined == defined;
        if let Some(first) = self.calls.iter().position(is_same) {
            let cycle = self.calls[first + 1..].iter().map(|call| format!(" calls `{}`, which", call.name));
            let message = format!(
                "`{name}`{} calls `{name}`: a kernel has no stack of calls",
                cycle.collect::<String>()
            );
            return self.error(call.func.span(), message, "write a loop");
        }
        let arguments = self.passed(call)?;
        let inputs = function.sig.inputs.iter().filter_map(|input| match input {
            FnArg::Typed(input) => Some((&*input.pat, Some(&*input.ty))),
            FnArg::Receiver(_) => None,
        });
        let parameters: Vec<Parameter<'_>> = inputs.collect();
        self.check_count(&name, &parameters, arguments.len(), call.span())?;
        let mut site = Call::of_closure(&name, call.func.span());
        site.defined = defined;
        site.foreign = helper.foreign;
        site.elsewhere = helper.own.is_some();
        self.bind_generics(&mut site, helper, call)?;
        let outer = self.scopes.isolate();
        let seen = helper.own.as_ref().map(|own| std::mem::replace(&mut self.helpers, Helpers::clone(own)));
        self.calls.push(site);
        let value = self.bound_call(helper, &parameters, arguments, call);
        self.calls.pop();
        if let Some(seen) = seen {
            self.helpers = seen;
        }
        self.scopes.restore(outer);
        value
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
        self.define_extents(helper, call)?;
        let output = match &function.sig.output {
            ReturnType::Default => None,
            ReturnType::Type(_, ty) => Some(&**ty),
        };
        self.inlined(&function.block, output)
    }

    pub(super) fn check_count(
        &mut self,
        name: &str,
        parameters: &[Parameter<'_>],
        count: usize,
        span: Span,
    ) -> Lowered<()> {
        if parameters.len() == count {
            return Ok(());
        }
        let plural = if parameters.len() == 1 { "" } else { "s" };
        let message = format!("`{name}` takes {} argument{plural}, not {count}", parameters.len());
        let names: Vec<String> = parameters.iter().map(|(pattern, _)| pattern_text(pattern)).collect();
        self.error(span, message, &format!("write `{name}({})`", names.join(", ")))
    }

    /// Binds parameters to arguments of their declared types, in a scope that the caller made.
    pub(super) fn bind_arguments(
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
    pub(super) fn inlined(&mut self, body: &Block, output: Option<&Type>) -> Lowered<Val> {
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
    pub(super) fn returned(&mut self, frame: &Frame, value: Val, name: &str, span: Span) -> Lowered<Val> {
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

    /// Binds type and const parameters to what the turbofish says. Types that it leaves out follow from the
    /// arguments.
    fn bind_generics(&mut self, site: &mut Call, helper: &Helper, call: &ExprCall) -> Lowered<()> {
        let generics = type_and_const_parameters(helper);
        let given = turbofish(call);
        if !given.is_empty() && given.len() != generics.len() {
            let plural = if generics.len() == 1 { "" } else { "s" };
            let message = format!(
                "`{}` has {} parameter{plural} in `<…>`, not {}",
                site.name,
                generics.len(),
                given.len()
            );
            let help = format!("write `{}`", turbofish_text(&site.name, &generics));
            return self.error(call.func.span(), message, &help);
        }
        for (i, generic) in generics.into_iter().enumerate() {
            let given = given.get(i).filter(|given| !is_inferred(given));
            match generic {
                GenericParam::Type(parameter) => {
                    let elem = match given {
                        Some(given) => self.type_argument(given)?,
                        None => self.elements.unknown(),
                    };
                    let generics = &helper.function.sig.generics;
                    self.note_bound(parameter, generics, &elem, &site.name, call.func.span());
                    site.types.insert(parameter.ident.to_string(), elem);
                }
                GenericParam::Const(parameter) => {
                    let dim = match given {
                        Some(given) => Some(self.const_argument(given)?),
                        None => None,
                    };
                    site.extents.insert(parameter.ident.to_string(), dim);
                }
                GenericParam::Lifetime(_) => {}
            }
        }
        Ok(())
    }

    fn type_argument(&mut self, given: &GenericArgument) -> Lowered<Elem> {
        let elem = match given {
            GenericArgument::Type(ty) => self.element(ty),
            _ => None,
        };
        match elem {
            Some(elem) => Ok(elem),
            None => {
                let help = "use bool, i8 … u64, f16, bf16, f32, f64 or a type parameter";
                self.error(given.span(), "this isn't an element type", help)
            }
        }
    }

    fn const_argument(&mut self, given: &GenericArgument) -> Lowered<Dim> {
        let value = match given {
            GenericArgument::Const(expression) => self.expression(expression)?,
            // A name reads as a type.
            GenericArgument::Type(Type::Path(path)) => {
                let path = &path.path;
                self.expression(&syn::parse_quote!(#path))?
            }
            _ => Val::Unit,
        };
        self.static_dim(&value, "a const parameter", given.span())
    }

    /// Makes the function's const parameters variables; all must be known by now.
    fn define_extents(&mut self, helper: &Helper, call: &ExprCall) -> Lowered<()> {
        let site = self.calls.last().expect("a function is called");
        let (name, extents) = (site.name.clone(), site.extents.clone());
        for (parameter, dim) in extents {
            let Some(dim) = dim else {
                let message = format!("the const parameter `{parameter}` of `{name}` isn't known here");
                let generics = type_and_const_parameters(helper);
                let help = format!(
                    "write `{}`; rustc would infer it, but kernels are expanded before",
                    turbofish_text(&name, &generics)
                );
                let diagnostic = Diagnostic::new(call.func.span(), message).help(help);
                return self.report_at_call(diagnostic);
            };
            self.scopes.define(Variable {
                name: parameter,
                value: Val::Dim(dim),
                mutable: false,
                constant: false,
                span: call.func.span(),
            });
        }
        Ok(())
    }

    /// A value as one of a declared type.
    pub(super) fn conform(&mut self, value: Val, ty: &Type, what: &str, span: Span) -> Lowered<Val> {
        if matches!(value, Val::Poison) {
            return Err(Reported);
        }
        if let Some(elem) = self.element(ty) {
            return self.scalar_of(value, &elem, what, span, ty);
        }
        match (ty, value) {
            (Type::Paren(inner), value) => self.conform(value, &inner.elem, what, span),
            (Type::Group(inner), value) => self.conform(value, &inner.elem, what, span),
            (Type::Reference(inner), value @ Val::View(_)) => self.conform(value, &inner.elem, what, span),
            (Type::Infer(_), value) => Ok(value),
            (Type::Tuple(tuple), Val::Unit) if tuple.elems.is_empty() => Ok(Val::Unit),
            (Type::Tuple(tuple), Val::List(values)) if tuple.elems.len() == values.len() => {
                let parts = tuple.elems.iter().zip(values).enumerate();
                let parts = parts
                    .map(|(i, (ty, value))| self.conform(value, ty, &format!("part {i} of {what}"), span));
                parts.collect::<Lowered<_>>().map(Val::List)
            }
            (Type::Array(array), Val::List(values)) => {
                self.note_length(&array.len, values.len());
                let parts = values.into_iter().enumerate();
                let parts = parts.map(|(i, value)| {
                    self.conform(value, &array.elem, &format!("element {i} of {what}"), span)
                });
                parts.collect::<Lowered<_>>().map(Val::List)
            }
            (Type::Path(path), value) => match (last_name(ty).as_str(), value) {
                ("Tile", value) => self.tile_of(value, path, what, span),
                ("PartitionView" | "PartitionViewMut", value @ Val::View(_)) => Ok(value),
                // The struct's definition isn't seen here; rustc checks it.
                (name, value @ Val::Record(..)) if name != "PartitionView" && name != "PartitionViewMut" => {
                    Ok(value)
                }
                (_, value) => self.misfit(&value, ty, what, span),
            },
            (_, value) => self.misfit(&value, ty, what, span),
        }
    }

    fn misfit(&mut self, value: &Val, ty: &Type, what: &str, span: Span) -> Lowered<Val> {
        let found = match value {
            Val::Data(data) => self.display_type(*data),
            other => kind(other).to_owned(),
        };
        let declared = type_text(ty);
        let message = format!("{what} is {found}, but is declared as `{declared}`");
        let help = "functions take and give tiles, numbers, partition views, and arrays, tuples and structs of these";
        self.report_at_call(Diagnostic::new(span, message).help(help))
    }

    fn scalar_of(&mut self, value: Val, elem: &Elem, what: &str, span: Span, ty: &Type) -> Lowered<Val> {
        let is_index = *elem == Elem::Known(tile_ir::DType::Index);
        match value {
            Val::Dim(_) if is_index => Ok(value),
            Val::Int(int) if is_index => match i64::try_from(int) {
                Ok(int) => Ok(Val::Dim(Dim::from(int))),
                Err(_) => self.error(span, format!("{int} doesn't fit usize"), "use a smaller number"),
            },
            Val::Data(tile) if self.shape(tile).is_some() => self.misfit(&value, ty, what, span),
            Val::Int(_) | Val::Float(_) | Val::Dim(_) | Val::Data(_) => {
                self.number(&value, elem, what, span).map(Val::Data)
            }
            other => self.misfit(&other, ty, what, span),
        }
    }

    fn tile_of(&mut self, value: Val, ty: &syn::TypePath, what: &str, span: Span) -> Lowered<Val> {
        let whole = Type::Path(ty.clone());
        let Val::Data(tile) = value else { return self.misfit(&value, &whole, what, span) };
        let Some(shape) = self.shape(tile) else { return self.misfit(&value, &whole, what, span) };
        let arguments = match ty.path.segments.last().map(|segment| &segment.arguments) {
            Some(PathArguments::AngleBracketed(arguments)) => arguments.args.iter().collect(),
            _ => Vec::new(),
        };
        if let Some(GenericArgument::Type(elem)) = arguments.first()
            && let Some(elem) = self.element(elem)
        {
            let found = self.elem(tile);
            if !self.elements.unify(&found, &elem) {
                let message = format!(
                    "{what} is a tile of {}, but is declared as a tile of {}",
                    rust_elem(&found),
                    rust_elem(&elem)
                );
                let help = format!("convert it: `.cast::<{}>()`", rust_elem(&elem));
                let diagnostic = Diagnostic::new(span, message).help(help);
                let diagnostic = self.with_origin(diagnostic, tile);
                return self.report_at_call(diagnostic);
            }
        }
        let rank = match arguments.get(1) {
            Some(GenericArgument::Const(Expr::Lit(literal))) => match &literal.lit {
                syn::Lit::Int(rank) => rank.base10_parse::<usize>().ok(),
                _ => None,
            },
            _ => None,
        };
        match rank.filter(|rank| *rank != shape.len()) {
            None => Ok(value),
            Some(rank) => {
                let message = format!("{what} has rank {}, but is declared with rank {rank}", shape.len());
                self.report_at_call(Diagnostic::new(span, message).help("reshape it, or declare its rank"))
            }
        }
    }

    /// Binds `N` of `[Tile<f32, 2>; N]`.
    fn note_length(&mut self, length: &Expr, count: usize) {
        let Expr::Path(path) = length else { return };
        let (Some(name), Some(call)) = (path.path.get_ident(), self.calls.last_mut()) else { return };
        if let Some(extent @ None) = call.extents.get_mut(&name.to_string()) {
            *extent = i64::try_from(count).ok().map(Dim::from);
        }
    }

    /// Reports something of the call itself: its place is at the call, so the innermost call isn't named again.
    fn report_at_call<T>(&mut self, diagnostic: Diagnostic) -> Lowered<T> {
        let call = self.calls.pop();
        let reported = self.report(diagnostic);
        self.calls.extend(call);
        reported
    }
}

fn type_and_const_parameters(helper: &Helper) -> Vec<&GenericParam> {
    let generics = helper.function.sig.generics.params.iter();
    generics.filter(|generic| !matches!(generic, GenericParam::Lifetime(_))).collect()
}

fn turbofish(call: &ExprCall) -> Vec<&GenericArgument> {
    let Expr::Path(path) = &*call.func else { return Vec::new() };
    match path.path.segments.last().map(|segment| &segment.arguments) {
        Some(PathArguments::AngleBracketed(arguments)) => arguments.args.iter().collect(),
        _ => Vec::new(),
    }
}

fn is_inferred(argument: &GenericArgument) -> bool {
    matches!(argument, GenericArgument::Type(Type::Infer(_)))
}

fn turbofish_text(name: &str, generics: &[&GenericParam]) -> String {
    let names = generics.iter().map(|generic| match generic {
        GenericParam::Type(parameter) => parameter.ident.to_string(),
        GenericParam::Const(parameter) => parameter.ident.to_string(),
        GenericParam::Lifetime(parameter) => parameter.lifetime.to_string(),
    });
    format!("{name}::<{}>(…)", names.collect::<Vec<_>>().join(", "))
}

fn last_name(ty: &Type) -> String {
    match ty {
        Type::Path(path) => {
            path.path.segments.last().map(|segment| segment.ident.to_string()).unwrap_or_default()
        }
        _ => String::new(),
    }
}

fn pattern_text(pattern: &Pat) -> String {
    match pattern {
        Pat::Ident(name) => name.ident.to_string(),
        Pat::Type(typed) => pattern_text(&typed.pat),
        _ => "_".to_owned(),
    }
}

/// A type as it is usually written.
fn type_text(ty: &Type) -> String {
    let text = quote::ToTokens::to_token_stream(ty).to_string();
    [(" < ", "<"), (" >", ">"), (" ,", ","), (" ;", ";"), (" :: ", "::"), ("& ", "&")]
        .iter()
        .fold(text, |text, (from, to)| text.replace(from, to))
}
