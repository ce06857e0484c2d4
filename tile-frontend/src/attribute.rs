//! What stands in `#[tile_kernel(…)]`: `instances(BM = 128, BN = 64; BM = 64, BN = 64)`, `grid = [m.div_ceil(BM)]`.

use crate::diagnostic::{Diagnostic, Diagnostics};
use proc_macro2::{Span, TokenStream};
use syn::parse::{Parse, ParseStream};
use syn::{ExprArray, Ident, LitInt, Token, parenthesized};
use tile_ir::specialize::SpecializeError;
use tile_ir::{Binding, Bindings, DType, VerifiedKernel, specialize};

/// The parsed attribute.
pub(crate) struct Attribute {
    instances: Vec<Instance>,
    /// Blocks along each axis, where the outputs' tiles don't say.
    pub(crate) grid: Option<ExprArray>,
}

struct Instance {
    span: Span,
    bindings: Bindings,
    /// Where each bound name stands.
    names: Vec<Span>,
}

pub(crate) fn parse(tokens: TokenStream) -> Result<Attribute, Diagnostics> {
    Ok(syn::parse2(tokens)?)
}

impl Parse for Attribute {
    fn parse(input: ParseStream<'_>) -> syn::Result<Attribute> {
        let (mut instances, mut grid) = (Vec::new(), None);
        while !input.is_empty() {
            let key: Ident = input.parse()?;
            if key == "grid" {
                input.parse::<Token![=]>()?;
                grid = Some(input.parse::<ExprArray>().map_err(|error| {
                    syn::Error::new(
                        error.span(),
                        "a grid is an array of extents\n  help: write `grid = [m.div_ceil(BM), 4]`",
                    )
                })?);
                if !input.is_empty() {
                    input.parse::<Token![,]>()?;
                }
                continue;
            }
            if key != "instances" {
                let message = format!(
                    "`{key}` isn't an option of `tile_kernel`; write `instances(NAME = value, …)` or `grid = [blocks, …]`"
                );
                return Err(syn::Error::new(key.span(), message));
            }
            let list;
            parenthesized!(list in input);
            while !list.is_empty() {
                instances.push(Instance::parse(&list)?);
                if !list.is_empty() {
                    list.parse::<Token![;]>()?;
                }
            }
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        Ok(Attribute { instances, grid })
    }
}

impl Instance {
    fn parse(input: ParseStream<'_>) -> syn::Result<Instance> {
        let span = input.span();
        let (mut bindings, mut names) = (Bindings::new(), Vec::new());
        while !input.is_empty() && !input.peek(Token![;]) {
            let name: Ident = input.parse()?;
            input.parse::<Token![=]>()?;
            if bindings.iter().any(|(bound, _)| name == bound) {
                return Err(syn::Error::new(name.span(), format!("`{name}` is given twice")));
            }
            bindings.push((name.to_string(), Self::value(input)?));
            names.push(name.span());
            if !input.is_empty() && !input.peek(Token![;]) {
                input.parse::<Token![,]>()?;
            }
        }
        Ok(Instance { span, bindings, names })
    }

    /// The smallest place of an error.
    fn place(&self, error: &SpecializeError) -> Span {
        let SpecializeError::Wrong { parameter, .. } = error else { return self.span };
        let position = self.bindings.iter().position(|(name, _)| name == parameter);
        position.map_or(self.span, |position| self.names[position])
    }

    fn value(input: ParseStream<'_>) -> syn::Result<Binding> {
        if input.peek(LitInt) {
            let literal: LitInt = input.parse()?;
            let value = literal.base10_parse().map(Binding::Const);
            return value.map_err(|_| syn::Error::new(literal.span(), "a const parameter is a `usize`"));
        }
        let name: Ident = input.parse().map_err(|error| {
            syn::Error::new(error.span(), "expected an integer or an element type such as `f32`")
        })?;
        match DType::from_rust_name(&name.to_string()) {
            Some(dtype) if dtype.is_element() => Ok(Binding::Elem(dtype)),
            _ => Err(syn::Error::new(name.span(), format!("`{name}` isn't an element type"))),
        }
    }
}

impl Attribute {
    /// The instances, each proved by specialising the kernel.
    pub(crate) fn specialize(self, kernel: &VerifiedKernel) -> Result<Vec<Bindings>, Diagnostics> {
        let mut errors = Vec::new();
        let mut instances = Vec::new();
        for wanted in self.instances {
            match specialize(kernel, &wanted.bindings) {
                Ok(instance) => instances.push(instance.bindings().clone()),
                Err(error) => {
                    let diagnostic = Diagnostic::new(wanted.place(&error), error.to_string());
                    errors.push(match &error {
                        SpecializeError::Missing { parameter, .. } => {
                            diagnostic.help(format!("add `{parameter} = …` to the instance"))
                        }
                        _ => diagnostic,
                    });
                }
            }
        }
        if errors.is_empty() { Ok(instances) } else { Err(Diagnostics::new(errors)) }
    }
}
