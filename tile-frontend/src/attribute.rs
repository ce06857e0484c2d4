//! What stands in `#[tile_kernel(…)]`: `instances(BM = 128, BN = 64 | 128; BM = 64, BN = 64)`,
//! `where(BK % 16 == 0, m % BM == 0)`, `grid = [m.div_ceil(BM)]` or `grid = tiles`, `threads = 256`, `stages = S`,
//! `occupancy = 2`, `fast_accumulation` or `fast_accumulation = FAST`, `allow(slow_product)`.

use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::groups;
use proc_macro2::{Span, TokenStream};
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::{Expr, ExprArray, Ident, LitBool, LitInt, Token, parenthesized, token};
use tile_ir::kernel::{Generic, GenericKind};
use tile_ir::specialize::SpecializeError;
use tile_ir::{
    Binding, Bindings, DType, FastAccumulation, Kernel, Loc, Presence, ScheduleHint, VerifiedKernel,
    specialize,
};

/// The parsed attribute.
pub(crate) struct Attribute {
    /// The conditions of `where(…)`.
    pub(crate) conditions: Vec<Expr>,
    instances: Vec<Instances>,
    /// What it says of the grid.
    pub(crate) grid: Option<GridOption>,
    /// What it says of how GPUs schedule the kernel.
    pub(crate) hints: Vec<(ScheduleHint, Expr)>,
    fast_accumulation: FastOption,
    /// Whether it says that products are slower than they might be, and meant so.
    pub(crate) allows_slow_products: bool,
}

/// Which instances may have sums of 8-bit floats in fewer bits.
enum FastOption {
    /// All, or none.
    All(bool),
    /// Those whose parameter of this name is true.
    Where(Ident),
}

/// What an attribute says of the grid.
pub(crate) enum GridOption {
    /// `tiles`: a block for each tile of the outputs.
    Tiles,
    /// Blocks along each axis.
    Extents(ExprArray),
}

/// More combinations than this in one list are a mistake: each is compiled for every target.
const MOST_COMBINATIONS: usize = 256;

/// Instances in one list: every combination of the values of its parameters.
struct Instances {
    span: Span,
    parameters: Vec<Choices>,
}

/// The values that a parameter takes: `BN = 64 | 128`.
struct Choices {
    name: Ident,
    values: Vec<Binding>,
}

pub(crate) fn parse(tokens: TokenStream) -> Result<Attribute, Diagnostics> {
    let mut attribute: Attribute = syn::parse2(tokens)?;
    let extents = match &mut attribute.grid {
        Some(GridOption::Extents(extents)) => Some(&mut extents.elems),
        _ => None,
    };
    let hints = attribute.hints.iter_mut().map(|(_, value)| value);
    let expressions = attribute.conditions.iter_mut().chain(hints).chain(extents.into_iter().flatten());
    expressions.for_each(groups::write_out_in_expression);
    Ok(attribute)
}

/// What an error about the options says.
const OPTIONS: &str = "write `instances(NAME = value | value, …)`, `where(condition, …)`, `grid = [blocks, …]`, `grid = tiles`, \
                       `threads = value`, `stages = value`, `occupancy = value`, `fast_accumulation` or \
                       `allow(slow_product)`";

impl Parse for Attribute {
    fn parse(input: ParseStream<'_>) -> syn::Result<Attribute> {
        let mut attribute = Attribute {
            conditions: Vec::new(),
            instances: Vec::new(),
            grid: None,
            hints: Vec::new(),
            fast_accumulation: FastOption::All(false),
            allows_slow_products: false,
        };
        let mut said = Vec::new();
        while !input.is_empty() {
            let key: Ident = input.call(Ident::parse_any)?;
            // Of hints the values are looked at as well, so that these are refused later.
            if matches!(&*key.to_string(), "grid" | "fast_accumulation") && said.contains(&key) {
                let message = format!("`{key}` is said twice\n  help: say it once");
                return Err(syn::Error::new(key.span(), message));
            }
            said.push(key.clone());
            match key.to_string().as_str() {
                "grid" => attribute.grid = Some(grid(input)?),
                "where" => {
                    in_parentheses(input, "`where(n % 16 == 0, k <= BK)`")?;
                    let list;
                    parenthesized!(list in input);
                    attribute.conditions.extend(Punctuated::<Expr, Token![,]>::parse_terminated(&list)?);
                }
                "fast_accumulation" => attribute.fast_accumulation = fast_accumulation(input)?,
                "instances" => attribute.instances.extend(instances(input)?),
                "allow" => {
                    allowed(input)?;
                    attribute.allows_slow_products = true;
                }
                other => match ScheduleHint::named(other) {
                    Some(hint) => attribute.hints.push((hint, hint_value(hint, input)?)),
                    None => {
                        let message = format!("`{key}` isn't an option of `tile_kernel`; {OPTIONS}");
                        return Err(syn::Error::new(key.span(), message));
                    }
                },
            }
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        Ok(attribute)
    }
}

/// Refuses an option whose list doesn't stand in parentheses.
fn in_parentheses(input: ParseStream<'_>, usage: &str) -> syn::Result<()> {
    if input.peek(token::Paren) {
        return Ok(());
    }
    Err(input.error(format!("what this option says stands in parentheses\n  help: write {usage}")))
}

/// The one warning of build scripts that a kernel may allow.
fn allowed(input: ParseStream<'_>) -> syn::Result<()> {
    in_parentheses(input, "`allow(slow_product)`")?;
    let list;
    let key = parenthesized!(list in input);
    let names = Punctuated::<Ident, Token![,]>::parse_terminated(&list)?;
    let help = "write `allow(slow_product)`";
    if names.is_empty() {
        let message = format!("nothing is allowed\n  help: {help}");
        return Err(syn::Error::new(key.span.join(), message));
    }
    match names.iter().find(|name| *name != "slow_product") {
        Some(other) => {
            let message = format!("`{other}` is no warning that can be allowed\n  help: {help}");
            Err(syn::Error::new(other.span(), message))
        }
        None => Ok(()),
    }
}

fn fast_accumulation(input: ParseStream<'_>) -> syn::Result<FastOption> {
    if input.parse::<Option<Token![=]>>()?.is_none() {
        return Ok(FastOption::All(true));
    }
    if let Some(said) = input.parse::<Option<LitBool>>()? {
        return Ok(FastOption::All(said.value));
    }
    input.parse().map(FastOption::Where).map_err(|error| {
        let message = "`fast_accumulation` is said of all instances, or of those of a `bool` parameter\n  help: write \
                       `fast_accumulation`, or `fast_accumulation = FAST`";
        syn::Error::new(error.span(), message)
    })
}

fn hint_value(hint: ScheduleHint, input: ParseStream<'_>) -> syn::Result<Expr> {
    input.parse::<Token![=]>()?;
    input.parse().map_err(|error| {
        let name = hint.name();
        let message =
            format!("`{name}` is a number\n  help: write a literal or const parameters: `{name} = 4`");
        syn::Error::new(error.span(), message)
    })
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

fn instances(input: ParseStream<'_>) -> syn::Result<Vec<Instances>> {
    in_parentheses(input, "`instances(BM = 64 | 128, BN = 64)`, with the names of the kernel's parameters")?;
    let list;
    parenthesized!(list in input);
    let mut instances = vec![Instances::parse(&list)?];
    while !list.is_empty() {
        list.parse::<Token![;]>()?;
        if !list.is_empty() {
            instances.push(Instances::parse(&list)?);
        }
    }
    Ok(instances)
}

impl Instances {
    fn parse(input: ParseStream<'_>) -> syn::Result<Instances> {
        let (span, mut parameters) = (input.span(), Vec::<Choices>::new());
        while !input.is_empty() && !input.peek(Token![;]) {
            let choices = Choices::parse(input)?;
            let name = &choices.name;
            if parameters.iter().any(|known| known.name == *name) {
                let message = format!(
                    "`{name}` is given twice\n  help: several values are written `{name} = 64 | 128`"
                );
                return Err(syn::Error::new(name.span(), message));
            }
            parameters.push(choices);
            if !input.is_empty() && !input.peek(Token![;]) {
                input.parse::<Token![,]>()?;
            }
        }
        Ok(Instances { span, parameters })
    }

    /// What is said of more combinations than are meant. `added` is the first optional argument of which nothing is said.
    fn too_many(&self, added: Option<&str>) -> Option<Diagnostic> {
        let count = self.count();
        if count <= MOST_COMBINATIONS {
            return None;
        }
        let message = format!(
            "these choices are {count} instances, each of which is compiled for every target; at most \
             {MOST_COMBINATIONS} stand in a list"
        );
        let help = "name fewer values, or the combinations that matter: `instances(…; …)`";
        let of_optional = added.map_or_else(String::new, |name| {
            format!(
                "; an optional argument of which nothing is said is given in one instance and left out in another, \
                 `{name} = true` has it given"
            )
        });
        Some(Diagnostic::new(self.span, message).help(format!("{help}{of_optional}")))
    }

    fn count(&self) -> usize {
        self.parameters.iter().fold(1, |count, choices| count.saturating_mul(choices.values.len()))
    }

    /// Every combination; the values of the last parameter change fastest.
    fn combinations(&self) -> Vec<Bindings> {
        self.parameters.iter().fold(vec![Bindings::new()], |combinations, Choices { name, values }| {
            let with = |bindings: &Bindings| {
                let bindings = bindings.clone();
                values
                    .iter()
                    .map(move |&value| bindings.iter().cloned().chain([(name.to_string(), value)]).collect())
            };
            combinations.iter().flat_map(with).collect()
        })
    }

    /// An optional argument of which nothing is said is given in one instance and left out in another. Gives what is wrong
    /// with so many combinations.
    fn complete(&mut self, kernel: &VerifiedKernel) -> Option<Diagnostic> {
        let is_said = |parameter: &&str| self.parameters.iter().any(|choices| choices.name == **parameter);
        let unsaid: Vec<&str> = optional_arguments(kernel).filter(|parameter| !is_said(parameter)).collect();
        let choices = unsaid.iter().map(|parameter| {
            let values = vec![Binding::Bool(true), Binding::Bool(false)];
            Choices { name: Ident::new(parameter, self.span), values }
        });
        self.parameters.extend(choices);
        self.too_many(unsaid.first().copied())
    }

    /// The smallest place of an error.
    fn place(&self, error: &SpecializeError) -> Span {
        let SpecializeError::Wrong { parameter, .. } = error else { return self.span };
        let wrong = self.parameters.iter().find(|choices| choices.name == parameter);
        wrong.map_or(self.span, |choices| choices.name.span())
    }

    /// What the instances are bound to, each proved by specialising the kernel. Of several combinations those that
    /// break a condition of the kernel are none.
    fn specialize(&self, kernel: &VerifiedKernel) -> Result<Vec<Bindings>, Vec<SpecializeError>> {
        let (mut made, mut errors) = (Vec::new(), Vec::new());
        for bindings in self.combinations() {
            match specialize(kernel, &bindings) {
                Ok(instance) => made.push(instance.bindings().clone()),
                // A mistake in one parameter is in many combinations.
                Err(error) if errors.contains(&error) => {}
                Err(error) => errors.push(error),
            }
        }
        let is_left_out = |error: &SpecializeError| matches!(error, SpecializeError::Condition { .. });
        let (left_out, mistakes): (Vec<_>, Vec<_>) = errors.into_iter().partition(is_left_out);
        match left_out.into_iter().next() {
            _ if !mistakes.is_empty() => Err(mistakes),
            Some(first) if made.is_empty() => Err(vec![first]),
            _ => Ok(made),
        }
    }

    fn diagnostic(&self, error: &SpecializeError) -> Diagnostic {
        let diagnostic = Diagnostic::new(self.place(error), error.to_string());
        match error {
            SpecializeError::Missing { parameter, .. } => {
                diagnostic.help(format!("add `{parameter} = …` to the instance"))
            }
            SpecializeError::Condition { kernel, condition, values, loc, .. } => {
                let of_all = if self.count() > 1 { " in one combination, and none is left" } else { "" };
                let message = format!("`{kernel}` needs `{condition}`, but {values}{of_all}");
                // A condition that nobody wrote is that of an array of arguments.
                let (note, help) = match *loc == Loc::UNKNOWN {
                    true => (String::new(), "an array of arguments has at least one element"),
                    false => {
                        let note = format!("\n  line {}: the condition", loc.line);
                        (note, "choose other values, or change the condition")
                    }
                };
                Diagnostic::new(self.place(error), message + &note).help(help)
            }
            SpecializeError::Invalid { errors, .. } => {
                let help = errors.first().and_then(|error| error.help.clone());
                help.into_iter().fold(diagnostic, Diagnostic::help)
            }
            _ => diagnostic,
        }
    }
}

impl Choices {
    fn parse(input: ParseStream<'_>) -> syn::Result<Choices> {
        let name: Ident = input.parse()?;
        input.parse::<Token![=]>()?;
        let mut values = vec![value(input)?];
        while input.peek(Token![|]) {
            input.parse::<Token![|]>()?;
            let span = input.span();
            let next = value(input)?;
            if values.contains(&next) {
                let message = format!("`{name}` takes this value already");
                return Err(syn::Error::new(span, message));
            }
            values.push(next);
        }
        Ok(Choices { name, values })
    }
}

fn value(input: ParseStream<'_>) -> syn::Result<Binding> {
    if input.peek(LitInt) {
        let literal: LitInt = input.parse()?;
        let value = literal.base10_parse().map(Binding::Const);
        return value.map_err(|_| syn::Error::new(literal.span(), "a const parameter is a `usize`"));
    }
    if input.peek(LitBool) {
        return Ok(Binding::Bool(input.parse::<LitBool>()?.value));
    }
    let name: Ident = input.parse().map_err(|error| {
        let message =
            "expected an integer, `true`, `false` or an element type such as `f32`, or several: `64 | 128`";
        syn::Error::new(error.span(), message)
    })?;
    match DType::from_rust_name(&name.to_string()) {
        Some(dtype) if dtype.is_element() => Ok(Binding::Elem(dtype)),
        _ => Err(syn::Error::new(name.span(), format!("`{name}` isn't an element type"))),
    }
}

/// The names of the optional arguments: those of `bool` parameters that say whether they are given.
fn optional_arguments(kernel: &VerifiedKernel) -> impl Iterator<Item = &str> {
    let depends = |name: &str| kernel.optional.values().any(|presence| presence.parameter == name);
    let names = kernel.generics.iter().filter(|generic| generic.kind == GenericKind::Bool);
    names.map(|generic| generic.name.as_str()).filter(move |name| depends(name))
}

impl Attribute {
    /// Which instances may add up products of 8-bit floats in fewer bits.
    pub(crate) fn fast_accumulation(&self, kernel: &Kernel) -> Result<FastAccumulation, Diagnostics> {
        let name = match &self.fast_accumulation {
            FastOption::All(false) => return Ok(FastAccumulation::No),
            FastOption::All(true) => return Ok(FastAccumulation::Yes),
            FastOption::Where(name) => name,
        };
        let parameter = name.to_string();
        let is_bool = |generic: &Generic| generic.name == parameter && generic.kind == GenericKind::Bool;
        if !kernel.generics.iter().any(is_bool) {
            let message = format!(
                "`{parameter}` isn't a `bool` parameter of the kernel\n  help: declare `const {parameter}: bool`, or write \
                 `fast_accumulation` alone for all instances"
            );
            return Err(syn::Error::new(name.span(), message).into());
        }
        Ok(FastAccumulation::If(Presence { parameter, above: 0 }))
    }

    /// The instances, in the order in which they are named, each once. A kernel without parameters has one, named
    /// or not; optional arguments of which nothing is said make it those with each and those without.
    pub(crate) fn specialize(mut self, kernel: &VerifiedKernel) -> Result<Vec<Bindings>, Diagnostics> {
        if self.instances.is_empty() && kernel.generics.len() == optional_arguments(kernel).count() {
            self.instances.push(Instances { span: Span::call_site(), parameters: Vec::new() });
        }
        let (mut instances, mut diagnostics) = (Vec::new(), Vec::new());
        for mut wanted in self.instances {
            if let Some(too_many) = wanted.complete(kernel) {
                diagnostics.push(too_many);
                continue;
            }
            match wanted.specialize(kernel) {
                Ok(made) => made.into_iter().for_each(|bindings| {
                    if !instances.contains(&bindings) {
                        instances.push(bindings);
                    }
                }),
                Err(errors) => diagnostics.extend(errors.iter().map(|error| wanted.diagnostic(error))),
            }
        }
        if diagnostics.is_empty() { Ok(instances) } else { Err(Diagnostics::new(diagnostics)) }
    }
}
