//! Values as those of declared types: arguments and results of functions and closures.

use crate::diagnostic::Diagnostic;
use crate::lower::{Lowered, Lowering, Reported, kind, rust_elem};
use crate::parameters::{ATOMIC_VIEW, PARTITION_VIEW, VIEWS, is_view};
use crate::span::Span;
use crate::value::Val;
use syn::{Expr, GenericArgument, PathArguments, PathSegment, Type};
use tile_ir::{Dim, Elem, ValueId};

impl Lowering {
    /// A value as one of a declared type.
    pub(in crate::lower) fn conform(
        &mut self,
        value: Val,
        ty: &Type,
        what: &str,
        span: Span,
    ) -> Lowered<Val> {
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
            (Type::Reference(inner), value @ (Val::View(_) | Val::WindowsView(..) | Val::Atomic(_))) => {
                self.conform(value, &inner.elem, what, span)
            }
            (Type::Infer(_), value) => Ok(value),
            (Type::Tuple(tuple), Val::Unit) if tuple.elems.is_empty() => Ok(Val::Unit),
            (Type::Tuple(tuple), Val::List(values)) if tuple.elems.len() == values.len() => {
                let parts = tuple.elems.iter().zip(values).enumerate();
                let parts = parts
                    .map(|(i, (ty, value))| self.conform(value, ty, &format!("part {i} of {what}"), span));
                parts.collect::<Lowered<_>>().map(Val::List)
            }
            (Type::Array(array), Val::List(values)) => {
                if let Expr::Path(length) = &array.len {
                    self.number_of_parameter(&length.path, values.len());
                }
                let parts = values.into_iter().enumerate();
                let parts = parts.map(|(i, value)| {
                    self.conform(value, &array.elem, &format!("element {i} of {what}"), span)
                });
                parts.collect::<Lowered<_>>().map(Val::List)
            }
            (Type::Path(path), value) => match (last_name(ty).as_str(), value) {
                ("Tile", value) => self.tile_of(value, path, what, span),
                (name, Val::View(view)) if VIEWS.contains(&name) => {
                    let rank = self.view_type(view).tile.len();
                    self.of_rank_declared(rank, path, what, span)?;
                    Ok(Val::View(view))
                }
                (PARTITION_VIEW, Val::WindowsView(windowed, tile, steps)) => {
                    self.of_rank_declared(tile.len(), path, what, span)?;
                    Ok(Val::WindowsView(windowed, tile, steps))
                }
                (ATOMIC_VIEW, Val::Atomic(tensor)) => {
                    self.atomic_view_of(tensor, path, what, span).map(|()| Val::Atomic(tensor))
                }
                // rustc checks that it is this struct.
                (name, Val::Record(record, fields)) if !is_view(name) => {
                    self.of_struct(&path.path, &fields, span);
                    Ok(Val::Record(record.also_named(&path.path, &self.text), fields))
                }
                (_, value) => self.misfit(&value, ty, what, span),
            },
            (_, value) => self.misfit(&value, ty, what, span),
        }
    }

    /// What a value is, for a message.
    pub(in crate::lower) fn display_value(&self, value: &Val) -> String {
        match (value, value.shared()) {
            (Val::Data(data), _) => self.display_type(*data),
            (_, Some(elem)) => rust_elem(&self.elements.resolve(elem)),
            (other, None) => kind(other).to_owned(),
        }
    }

    fn misfit(&mut self, value: &Val, ty: &Type, what: &str, span: Span) -> Lowered<Val> {
        let found = self.display_value(value);
        let declared = type_text(ty);
        let message = format!("{what} is {found}, but is declared as `{declared}`");
        let help = if self.is_other_name(ty) {
            "another name of a type, `type Row = …`, isn't seen: write the type out"
        } else {
            "functions take and give tiles, numbers, views, and arrays, tuples and structs of these; they take closures where they declare `impl Fn(…)`"
        };
        self.report_at_call(Diagnostic::new(span, message).help(help))
    }

    /// Whether a type is none that is known by its name, nor one of another kind of value.
    fn is_other_name(&self, ty: &Type) -> bool {
        matches!(ty, Type::Path(_)) && self.element(ty).is_none() && {
            let name = last_name(ty);
            name != "Tile" && !is_view(&name)
        }
    }

    fn scalar_of(&mut self, value: Val, elem: &Elem, what: &str, span: Span, ty: &Type) -> Lowered<Val> {
        let is_number = matches!(value, Val::Int(_) | Val::Float(_) | Val::Dim(_) | Val::Data(_));
        if !is_number || !self.is_scalar(&value) {
            return self.misfit(&value, ty, what, span);
        }
        self.share(&value, elem, what, span)?;
        self.declared_number(value, elem, what, span)
    }

    fn tile_of(&mut self, value: Val, ty: &syn::TypePath, what: &str, span: Span) -> Lowered<Val> {
        let whole = Type::Path(ty.clone());
        let Val::Data(tile) = value else { return self.misfit(&value, &whole, what, span) };
        let Some(shape) = self.shape(tile) else { return self.misfit(&value, &whole, what, span) };
        if let Some(GenericArgument::Type(elem)) = type_arguments(ty).first()
            && let Some(elem) = self.element(elem)
        {
            let found = self.elem(tile);
            if !self.elements.unify(&found, &elem) {
                let (found, elem) = (self.elem(tile), self.elements.resolve(&elem));
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
        self.of_rank_declared(shape.len(), ty, what, span)?;
        Ok(value)
    }

    /// Requires of the tensor of an atomic view what `AtomicView<'_, i32, 1>` says.
    fn atomic_view_of(&mut self, tensor: ValueId, ty: &syn::TypePath, what: &str, span: Span) -> Lowered<()> {
        let (found, rank) = match self.kernel.ty(tensor) {
            tile_ir::Type::Tensor(tensor) => (tensor.elem.clone(), tensor.extents.len()),
            _ => unreachable!("an atomic view is of a tensor"),
        };
        if let Some(GenericArgument::Type(elem)) = type_arguments(ty).first()
            && let Some(elem) = self.element(elem)
            && !self.elements.unify(&found, &elem)
        {
            let elem = self.elements.resolve(&elem);
            let message = format!(
                "{what} is an atomic view of {}, but is declared as one of {}",
                rust_elem(&found),
                rust_elem(&elem)
            );
            let help = "declare its format, or let it follow from the argument: `fn f<T: Number>(view: &AtomicView<'_, T, 1>)`";
            return self.report_at_call(Diagnostic::new(span, message).help(help));
        }
        self.of_rank_declared(rank, ty, what, span)
    }

    /// Requires the rank that `Tile<f32, 2>` says, or `Tile<f32, R>` once a value has said what `R` is.
    fn of_rank_declared(&mut self, rank: usize, ty: &syn::TypePath, what: &str, span: Span) -> Lowered<()> {
        let Some(number) = self.declared_rank(ty, rank).filter(|&number| i64::try_from(rank) != Ok(number))
        else {
            return Ok(());
        };
        let text = match type_arguments(ty).get(1) {
            Some(GenericArgument::Type(name)) => format!("`{}`, which is {number}", type_text(name)),
            _ => number.to_string(),
        };
        let message = format!("{what} has rank {rank}, but is declared with rank {text}");
        self.report_at_call(Diagnostic::new(span, message).help("reshape it, or declare its rank"))
    }

    /// The rank that `Tile<f32, 2>` says, or `Tile<f32, R>`, of whose `R` a value of rank `found` decides where nothing has
    /// before; `None` for what says none.
    pub(in crate::lower) fn declared_rank(&mut self, ty: &syn::TypePath, found: usize) -> Option<i64> {
        match type_arguments(ty).get(1)? {
            GenericArgument::Const(Expr::Lit(literal)) => match &literal.lit {
                syn::Lit::Int(rank) => rank.base10_parse().ok(),
                _ => None,
            },
            // The name of a parameter reads as a type.
            GenericArgument::Type(Type::Path(name)) => self.number_of_parameter(&name.path, found),
            _ => None,
        }
    }

    /// What a const parameter of the function that is called is: what was written or found of another argument, and
    /// otherwise what is found of this one, as of `N` in `[Tile<f32, 2>; N]`.
    pub(super) fn number_of_parameter(&mut self, parameter: &syn::Path, found: usize) -> Option<i64> {
        let (name, call) = (parameter.get_ident()?, self.calls.last_mut()?);
        let constant = call.constants.get_mut(&name.to_string())?;
        if constant.is_none() {
            *constant = i64::try_from(found).ok().map(|found| Val::Dim(Dim::from(found)));
        }
        match constant {
            Some(Val::Dim(extent)) => extent.as_const(),
            _ => None,
        }
    }

    /// Reports something of the call itself: its place is at the call, so the innermost call isn't named again.
    pub(in crate::lower) fn report_at_call<T>(&mut self, diagnostic: Diagnostic) -> Lowered<T> {
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

/// What stands in `<…>` of a type, but for lifetimes.
pub(in crate::lower) fn type_arguments(ty: &syn::TypePath) -> Vec<&GenericArgument> {
    ty.path.segments.last().map(arguments_of).unwrap_or_default()
}

/// What stands in `<…>` behind a name of a path, but for lifetimes.
pub(crate) fn arguments_of(segment: &PathSegment) -> Vec<&GenericArgument> {
    let PathArguments::AngleBracketed(arguments) = &segment.arguments else { return Vec::new() };
    arguments.args.iter().filter(|argument| !matches!(argument, GenericArgument::Lifetime(_))).collect()
}

/// A type as it is usually written.
pub(in crate::lower) fn type_text(ty: &Type) -> String {
    let text = quote::ToTokens::to_token_stream(ty).to_string();
    [(" < ", "<"), (" >", ">"), (" ,", ","), (" ;", ";"), (" :: ", "::"), ("& ", "&")]
        .iter()
        .fold(text, |text, (from, to)| text.replace(from, to))
}
