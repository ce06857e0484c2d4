//! Values as those of declared types: arguments and results of functions and closures.

use super::{Lowered, Lowering, Reported, kind, rust_elem};
use crate::diagnostic::Diagnostic;
use crate::parameters::VIEWS;
use crate::span::Span;
use crate::value::Val;
use syn::{Expr, GenericArgument, PathArguments, Type};
use tile_ir::{Dim, Elem};

impl Lowering {
    /// A value as one of a declared type.
    pub(super) fn conform(&mut self, value: Val, ty: &Type, what: &str, span: Span) -> Lowered<Val> {
        if matches!(value, Val::Poison) {
            return Err(Reported);
        }
        if let Some(callable) = self.text.callable(ty) {
            return self.declared(value, callable, what, span);
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
                (name, value @ Val::View(_)) if VIEWS.contains(&name) => Ok(value),
                // The struct's definition isn't seen here; rustc checks it.
                (name, value @ Val::Record(..)) if !VIEWS.contains(&name) => Ok(value),
                (_, value) => self.misfit(&value, ty, what, span),
            },
            (_, value) => self.misfit(&value, ty, what, span),
        }
    }

    /// What a value is, for a message.
    pub(super) fn display_value(&self, value: &Val) -> String {
        match value {
            Val::Data(data) => self.display_type(*data),
            other => kind(other).to_owned(),
        }
    }

    fn misfit(&mut self, value: &Val, ty: &Type, what: &str, span: Span) -> Lowered<Val> {
        let found = self.display_value(value);
        let declared = type_text(ty);
        let message = format!("{what} is {found}, but is declared as `{declared}`");
        let help = "functions take and give tiles, numbers, partition views, and arrays, tuples and structs of these; they take closures where they declare `impl Fn(…)`";
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
    pub(super) fn report_at_call<T>(&mut self, diagnostic: Diagnostic) -> Lowered<T> {
        let call = self.calls.pop();
        let reported = self.report(diagnostic);
        self.calls.extend(call);
        reported
    }
}

fn last_name(ty: &Type) -> String {
    match ty {
        Type::Path(path) => {
            path.path.segments.last().map(|segment| segment.ident.to_string()).unwrap_or_default()
        }
        _ => String::new(),
    }
}

/// A type as it is usually written.
pub(super) fn type_text(ty: &Type) -> String {
    let text = quote::ToTokens::to_token_stream(ty).to_string();
    [(" < ", "<"), (" >", ">"), (" ,", ","), (" ;", ";"), (" :: ", "::"), ("& ", "&")]
        .iter()
        .fold(text, |text, (from, to)| text.replace(from, to))
}
