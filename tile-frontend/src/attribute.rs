//! What stands in `#[tile_kernel(…)]`: `instances(BM = 128, BN = 64; BM = 64, BN = 64)` and
//! `where(BK % 16 == 0, m % BM == 0)`, `grid = [m.div_ceil(BM)]` or `grid = tiles`.

use crate::diagnostic::{Diagnostic, Diagnostics};
use proc_macro2::{Span, TokenStream};
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::{Expr, ExprArray, Ident, LitInt, Token, parenthesized};
use tile_ir::specialize::SpecializeError;
use tile_ir::{Binding, Bindings, DType, VerifiedKernel, specialize};

/// The parsed attribute.
pub(crate) struct Attribute {
    /// The conditions of `where(…)`.
    pub(crate) conditions: Vec<Expr>,
    instances: Vec<Instance>,
    /// What it says of the grid.
    pub(crate) grid: Option<GridOption>,
}

/// What an attribute says of the grid.
pub(crate) enum GridOption {
    /// `tiles`: a block for each tile of the outputs.
    Tiles,
    /// Blocks along each axis.
    Extents(ExprArray),
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

/// What an error about the options says.
const OPTIONS: &str =
    "write `instances(NAME = value, …)`, `where(condition, …)`, `grid = [blocks, …]` or `grid = tiles`";

impl Parse for Attribute {
    fn parse(input: ParseStream<'_>) -> syn::Result<Attribute> {
        let mut attribute = Attribute { conditions: Vec::new(), instances: Vec::new(), grid: None };
        while !input.is_empty() {
            let key: Ident = input.call(Ident::parse_any)?;
            match key.to_string().as_str() {
                "grid" => attribute.grid = Some(grid(input)?),
                "where" => {
                    let list;
                    parenthesized!(list in input);
                    attribute.conditions.extend(Punctuated::<Expr, Token![,]>::parse_terminated(&list)?);
                }
                "instances" => attribute.instances.extend(instances(input)?),
                _ => {
                    let message = format!("`{key}` isn't an option of `tile_kernel`; {OPTIONS}");
                    return Err(syn::Error::new(key.span(), message));
                }
            }
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        Ok(attribute)
    }
}

fn grid(input: ParseStream<'_>) -> syn::Result<GridOption> {
    input.parse::<Token![=]>()?;
    if input.peek(Ident) && input.fork().parse::<Ident>()? == "tiles" {
        input.parse::<Ident>()?;
        return Ok(GridOption::Tiles);
    }
    input.parse().map(GridOption::Extents).map_err(|error| {
        let message = "a grid is an array of extents, or `tiles`\n  help: write `grid = [m.div_ceil(BM), 4]`";
        syn::Error::new(error.span(), message)
    })
}

fn instances(input: ParseStream<'_>) -> syn::Result<Vec<Instance>> {
    let list;
    parenthesized!(list in input);
    let mut instances = Vec::new();
    while !list.is_empty() {
        instances.push(Instance::parse(&list)?);
        if !list.is_empty() {
            list.parse::<Token![;]>()?;
        }
    }
    Ok(instances)
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
                        SpecializeError::Condition { kernel, condition, values, loc, .. } => {
                            let message = format!("`{kernel}` needs `{condition}`, but {values}");
                            let note = format!("\n  line {}: the condition", loc.line);
                            Diagnostic::new(wanted.place(&error), message + &note)
                                .help("choose other values, or change the condition")
                        }
                        _ => diagnostic,
                    });
                }
            }
        }
        if errors.is_empty() { Ok(instances) } else { Err(Diagnostics::new(errors)) }
    }
}
