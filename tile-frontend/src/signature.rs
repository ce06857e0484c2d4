//! The signature of a kernel: compile-time parameters, tensors with named extents, scalars.

mod arguments;
mod bounds;
mod conditions;
mod extents;
mod sizes;

pub use bounds::is_bool;
pub(crate) use bounds::{accumulator_of_parameter, bounds_of, domain_of_parameter, refused_const_parameter};
pub use sizes::{Size, lone_name, sizes};

use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::elements::FORMATS;
use crate::helpers::Helpers;
use crate::scope::{Changes, Scopes, Variable};
use crate::span::{Span, Spanned};
use crate::value::Val;
use arguments::{Argument, Form, array, parameter};
use bounds::{bounded, domain_of, is_type_parameter, narrower};
use std::collections::{BTreeSet, HashMap};
use syn::{
    Expr, GenericArgument, GenericParam, Generics, ItemFn, Lifetime, PathArguments, ReturnType, Safety,
};
use tile_ir::kernel::{Generic, GenericKind};
use tile_ir::ops::{Domain, Predicate};
use tile_ir::types::TensorType;
use tile_ir::{Builder, DType, Dim, Elem, Kernel, Loc, Op, Presence, Type, ValueId};

/// The highest rank of a tensor.
pub(crate) const MAX_RANK: usize = 6;

/// A kernel with its arguments, and the names that its body sees.
pub(crate) struct Signature {
    pub(crate) kernel: Kernel,
    pub(crate) scopes: Scopes,
}

impl Signature {
    /// The extents that are names in the body: const parameters and run-time sizes.
    pub(crate) fn extents(&self) -> HashMap<String, Dim> {
        let named = self.scopes.variables.iter().filter_map(|variable| match &variable.value {
            Val::Dim(dim) => Some((variable.name.clone(), dim.clone())),
            _ => None,
        });
        named.collect()
    }

    /// The extents that are names in a grid: besides these, numbers that a launch passes.
    pub(crate) fn extents_of_grid(&self) -> HashMap<String, Dim> {
        let mut names = self.extents();
        for &param in self.kernel.params().iter().filter(|param| *self.kernel.ty(**param) == Type::INDEX) {
            let is_optional = self.kernel.optional.contains_key(&param);
            if let Some(name) = self.kernel.value(param).name.as_ref().filter(|_| !is_optional) {
                names.entry(name.clone()).or_insert_with(|| Dim::size(name));
            }
        }
        names
    }
}

pub(crate) fn parse(
    function: &ItemFn,
    conditions: &[Expr],
    helpers: &Helpers,
    file: &str,
) -> Result<Signature, Diagnostics> {
    let mut parser = Parser {
        errors: Vec::new(),
        sizes: HashMap::new(),
        numbers: function.sig.inputs.iter().filter_map(arguments::number_argument).collect(),
        given_sizes: BTreeSet::new(),
        lifetimes: BTreeSet::from(["_".to_owned()]),
        optional_arguments: BTreeSet::new(),
        optional_sizes: Vec::new(),
        optional: None,
        anonymous: 0,
        declared: false,
        helpers,
    };
    parser.refuse_modifiers(function);
    let generics = parser.generics(function);
    let mut kernel = Kernel::new(function.sig.ident.to_string(), generics);
    kernel.file = file.to_owned();
    let mut scopes = Scopes::default();
    scopes.enter();
    for generic in &kernel.generics {
        if generic.kind == GenericKind::Const {
            let value = Val::Dim(Dim::param(&generic.name));
            scopes.define(Variable {
                name: generic.name.clone(),
                value,
                changes: Changes::Never,
                constant: false,
                span: function.sig.generics.span(),
            });
        }
    }
    let mut arguments = Vec::new();
    for input in &function.sig.inputs {
        arguments.extend(parser.argument(&kernel.generics, conditions, input));
    }
    parser.declared = true;
    parser.sizes_of_optional();
    let optional = arguments.iter().filter(|argument| matches!(argument.form, Form::Optional(_)));
    parser.optional_arguments = optional.map(|argument| argument.name.clone()).collect();
    for condition in conditions {
        parser.condition(&mut kernel, condition);
    }
    for (size, span) in &parser.sizes {
        scopes.define(Variable {
            name: size.clone(),
            value: Val::Dim(Dim::size(size)),
            changes: Changes::Never,
            constant: false,
            span: *span,
        });
    }
    let is_bool = |generic: &&Generic| generic.kind == GenericKind::Bool;
    let bools: Vec<String> = kernel.generics.iter().filter(is_bool).map(|it| it.name.clone()).collect();
    let mut optional = Vec::new();
    for Argument { name, changes, form, span } in arguments {
        if parser.sizes.contains_key(&name) {
            let message = format!("`{name}` is both an argument and a run-time size");
            let help = "make it a `usize`, which may be a size, or give one of them another name";
            parser.error(span, message, help);
        }
        let value = match form {
            Form::One(ty) if parser.given_sizes.contains(&name) => {
                let param = kernel.new_param(ty, &name);
                kernel.given_sizes.insert(param);
                // What the body assigns to is no longer what the launch was given.
                if changes == Changes::Allowed { Val::Data(param) } else { Val::Dim(Dim::size(&name)) }
            }
            Form::One(ty) => parameter(&mut kernel, ty, &name),
            Form::Optional(ty) => {
                let param = kernel.new_param(ty, &name);
                optional.push((name, changes, param, span));
                continue;
            }
            Form::Array(elements, length) => array(&mut kernel, elements, &length, &name),
        };
        scopes.define(Variable { name, value, changes, constant: false, span });
    }
    for name in bools {
        let value = Val::Data(truth(&mut kernel, &name, &name));
        let (changes, span) = (Changes::Never, function.sig.generics.span());
        scopes.define(Variable { name, value, changes, constant: false, span });
    }
    for (name, changes, param, span) in optional {
        kernel.generics.push(Generic { name: name.clone(), kind: GenericKind::Bool });
        kernel.optional.insert(param, Presence { parameter: name.clone(), above: 0 });
        let value = Val::Optional(param, truth(&mut kernel, &name, &format!("has_{name}")));
        scopes.define(Variable { name, value, changes, constant: false, span });
    }
    if parser.errors.is_empty() {
        Ok(Signature { kernel, scopes })
    } else {
        Err(Diagnostics::new(parser.errors))
    }
}

/// A `bool` parameter as a value of the body, under a name: whether it counts 1 as an extent.
fn truth(kernel: &mut Kernel, parameter: &str, name: &str) -> ValueId {
    let mut builder = Builder::new(kernel);
    let (number, zero) = (builder.extent(Dim::param(parameter)), builder.int(0, DType::Index));
    let compared = builder.op(Op::Compare(Predicate::Ne), &[number, zero], Loc::UNKNOWN);
    let value = compared.expect("indices are compared");
    kernel.name_value(value, name);
    value
}

struct Parser<'h> {
    errors: Vec<Diagnostic>,
    /// Run-time sizes and where each is first named.
    sizes: HashMap<String, Span>,
    /// The arguments that are one `usize`, and those of them that an extent or a condition names: they are run-time sizes.
    numbers: BTreeSet<String>,
    given_sizes: BTreeSet<String>,
    /// The lifetimes of which nothing is to be said where a reference has them: `'_`, and those that are refused already.
    lifetimes: BTreeSet<String>,
    /// The optional arguments, once all arguments are known.
    optional_arguments: BTreeSet<String>,
    /// Run-time sizes that optional arguments name, with the argument.
    optional_sizes: Vec<(String, String, Span)>,
    /// The optional argument whose extents are read.
    optional: Option<String>,
    anonymous: usize,
    /// Whether all sizes are declared: a new name is a mistake.
    declared: bool,
    helpers: &'h Helpers,
}

impl Parser<'_> {
    fn error(&mut self, span: impl Into<Span>, message: impl Into<String>, help: &str) {
        self.errors.push(Diagnostic::new(span, message).help(help));
    }

    /// Notes what is wrong once, however often it is read: with a constant of the module, with the elements of an array.
    fn refuse(&mut self, errors: Diagnostics) {
        for error in errors {
            if !self.errors.iter().any(|known| known.is_same(&error)) {
                self.errors.push(error);
            }
        }
    }

    fn refuse_modifiers(&mut self, function: &ItemFn) {
        let signature = &function.sig;
        let refused = [
            signature.constness.map(|token| (token.span(), "const")),
            signature.asyncness.map(|token| (token.span(), "async")),
            signature.abi.as_ref().map(|abi| (abi.span(), "extern")),
            match &signature.safety {
                Safety::Unsafe(token) => Some((token.span(), "unsafe")),
                Safety::Safe(token) => Some((token.span(), "safe")),
                Safety::Default => None,
            },
        ];
        for (span, word) in refused.into_iter().flatten() {
            self.error(span, format!("a kernel can't be `{word}`"), "remove the word");
        }
        if let ReturnType::Type(_, ty) = &signature.output {
            let help = "write results through a `&mut Tensor` argument";
            self.error(ty.span(), "a kernel returns nothing", help);
        }
        let predicates = signature.generics.where_clause.iter().flat_map(|clause| &clause.predicates);
        for predicate in predicates {
            if bounded(predicate).is_none_or(|name| !is_type_parameter(&signature.generics, name)) {
                let help = "write `T: Float` of a type parameter here, and conditions on extents in `#[tile_kernel(where(BK % 16 == 0))]`";
                self.error(predicate.span(), "`where` of a kernel bounds its type parameters", help);
            }
        }
        if let Some(variadic) = &signature.variadic {
            self.error(variadic.span(), "a kernel has a fixed number of arguments", "list them");
        }
    }

    fn generics(&mut self, function: &ItemFn) -> Vec<Generic> {
        let mut generics = Vec::new();
        for param in &function.sig.generics.params {
            match param {
                GenericParam::Const(param) => {
                    let kind = if is_bool(&param.ty) { GenericKind::Bool } else { GenericKind::Const };
                    self.errors.extend(refused_const_parameter(param, "a kernel"));
                    generics.push(Generic { name: param.ident.to_string(), kind });
                }
                GenericParam::Type(param) => {
                    let kind = GenericKind::Elem(self.domain(param, &function.sig.generics));
                    generics.push(Generic { name: param.ident.to_string(), kind });
                }
                GenericParam::Lifetime(param) => {
                    self.lifetimes.insert(param.lifetime.ident.to_string());
                    self.error(
                        param.span(),
                        "a kernel has no lifetime parameters",
                        "remove it; arguments are borrowed for the launch",
                    );
                }
            }
        }
        generics
    }

    fn domain(&mut self, param: &syn::TypeParam, generics: &Generics) -> Domain {
        let help = format!("write `{0}: Float`, `{0}: Int`, `{0}: Number` or `{0}: Element`", param.ident);
        let mut domain = None;
        let bounds = bounds_of(param, generics);
        for bound in &bounds {
            // `Bits` is a bound of functions alone.
            let Some(found) = domain_of(bound).filter(|&found| found != Domain::IntOrBool) else {
                self.error(bound.span(), "this bound says nothing about an element type", &help);
                continue;
            };
            domain = Some(narrower(domain.unwrap_or(Domain::Any), found));
        }
        if domain.is_none() && bounds.is_empty() {
            self.error(
                param.ident.span(),
                format!("`{}` needs a bound that says what it may be", param.ident),
                &help,
            );
        }
        domain.unwrap_or(Domain::Any)
    }

    /// Run-time sizes that nothing but optional arguments says have no value without these.
    fn sizes_of_optional(&mut self) {
        for (size, argument, span) in std::mem::take(&mut self.optional_sizes) {
            if !self.sizes.contains_key(&size) {
                let message = format!("only `{argument}` says what `{size}` is, and that may be left out");
                let help = format!(
                    "name an extent that another argument has, or write `_`, and `{argument}.extent(axis)` where it is given"
                );
                self.error(span, message, &help);
            }
        }
    }

    fn argument_type(&mut self, generics: &[Generic], ty: &syn::Type, name: &str) -> Option<Type> {
        match ty {
            syn::Type::Reference(reference) => {
                let mutable = reference.mutability.is_some();
                let is_new = |it: &&Lifetime| !self.lifetimes.contains(&it.ident.to_string());
                if let Some(lifetime) = reference.lifetime.as_ref().filter(is_new) {
                    let wrong = Diagnostic::new(lifetime.span(), "a tensor of a kernel has no lifetime");
                    self.refuse(wrong.help("remove it; arguments are borrowed for the launch").into());
                }
                self.tensor(generics, &reference.elem, mutable, name).map(Type::Tensor)
            }
            syn::Type::Path(path) if path.path.segments.last().is_some_and(|s| s.ident == "Tensor") => {
                let help = "write `&Tensor<…>` to read it or `&mut Tensor<…>` to write it";
                self.error(ty.span(), "a tensor is passed by reference", help);
                None
            }
            _ => match element(generics, ty) {
                Some(elem) => Some(Type::Scalar(elem)),
                None => {
                    let help = "arguments are `&Tensor<…>`, `&mut Tensor<…>`, numbers such as `f32`, `i32`, `usize`, `Option<…>` of these, or arrays such as `[&Tensor<…>; 4]`";
                    self.error(ty.span(), "a kernel can't take an argument of this type", help);
                    None
                }
            },
        }
    }

    fn tensor(
        &mut self,
        generics: &[Generic],
        ty: &syn::Type,
        mutable: bool,
        name: &str,
    ) -> Option<TensorType> {
        let segment = match ty {
            syn::Type::Path(path) => path.path.segments.last(),
            _ => None,
        };
        let axes = "an element type, then one extent per axis";
        let example = match mutable {
            true => format!("write `{name}: &mut Tensor<f32, m, n>`: {axes}"),
            false => format!("write `{name}: &Tensor<f32, m, n>`: {axes}"),
        };
        let Some(segment) = segment.filter(|segment| segment.ident == "Tensor") else {
            self.error(ty.span(), "a kernel takes references to tensors only", &example);
            return None;
        };
        let PathArguments::AngleBracketed(arguments) = &segment.arguments else {
            self.error(ty.span(), "the tensor has no element type and no extents", &example);
            return None;
        };
        let mut arguments = arguments.args.iter();
        let elem = match arguments.next() {
            Some(GenericArgument::Type(ty)) => match element(generics, ty) {
                Some(Elem::Known(DType::Index)) | None => {
                    let help = format!("use {FORMATS} or a type parameter of the kernel");
                    self.error(ty.span(), "this isn't an element type", &help);
                    None
                }
                elem => elem,
            },
            Some(other) => {
                self.error(other.span(), "the first argument of `Tensor` is an element type", &example);
                None
            }
            None => {
                self.error(ty.span(), "the tensor has no element type and no extents", &example);
                return None;
            }
        };
        let extents: Vec<Option<Dim>> =
            arguments.map(|argument| self.extent(generics, argument, name)).collect();
        if extents.is_empty() || extents.len() > MAX_RANK {
            let message = format!("a tensor has 1 to {MAX_RANK} axes, not {}", extents.len());
            let help = match (&elem, extents.is_empty()) {
                (Some(elem), true) if mutable => {
                    format!("{example}; one number is `{name}: &mut Tensor<{elem}, 1>`")
                }
                (Some(elem), true) => {
                    format!("{example}; a number is an argument by itself, `{name}: {elem}`")
                }
                _ => example,
            };
            self.error(ty.span(), message, &help);
            return None;
        }
        Some(TensorType::dense(extents.into_iter().collect::<Option<_>>()?, elem?, mutable))
    }
}

/// What stands in the `Option<…>` of an optional argument.
pub fn optional(ty: &syn::Type) -> Option<&syn::Type> {
    let syn::Type::Path(path) = ty else { return None };
    let segment = path.path.segments.last().filter(|segment| segment.ident == "Option")?;
    let PathArguments::AngleBracketed(arguments) = &segment.arguments else { return None };
    match arguments.args.first() {
        Some(GenericArgument::Type(inner)) if arguments.args.len() == 1 => Some(inner),
        _ => None,
    }
}

/// The element format that a type names: a Rust number type or a type parameter of the kernel.
fn element(generics: &[Generic], ty: &syn::Type) -> Option<Elem> {
    let syn::Type::Path(path) = ty else { return None };
    let name = path.path.segments.last()?.ident.to_string();
    let is_param = |generic: &&Generic| generic.name == name && matches!(generic.kind, GenericKind::Elem(_));
    if path.path.segments.len() == 1 && generics.iter().any(|generic| is_param(&generic)) {
        return Some(Elem::Param(name));
    }
    DType::from_rust_name(&name).map(Elem::Known)
}
