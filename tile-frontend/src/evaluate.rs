//! `const fn`s of a module, computed as Rust computes them: what one gives is a part of a kernel's constants, which the IR
//! holds as numbers.
//!
//! The front end doesn't see what rustc infers. So a number is open, as a literal is, until something says its type, and
//! what would depend on that type is refused.

mod expressions;
mod methods;
mod numbers;
mod statements;
#[cfg(test)]
mod tests;
mod value;

pub(crate) use value::{Float, Value};

use crate::conditional;
use crate::diagnostic::Diagnostic;
use crate::helpers::{Helpers, path_text};
use crate::span::{Span, Spanned};
use syn::{Expr, FnArg, GenericArgument, GenericParam, Ident, ItemFn, Path, PathArguments, ReturnType, Type};

/// A computation of more expressions than this is stopped: it may be endless, and runs in rustc and in the build script.
const MOST_STEPS: u32 = 1 << 22;

/// Calls inside of calls: rustc's stack, in which they are computed, has an end.
const MOST_CALLS: usize = 48;

/// What is written in place of a `for` that Rust doesn't run.
pub(crate) const OF_FOR: &str = "write a `while` with a counter of its own";

/// What a `const fn` gives for these arguments; `path` is what calls it.
pub(crate) fn call(
    function: &ItemFn,
    path: &Path,
    arguments: Vec<(Value, Span)>,
    helpers: &Helpers,
) -> Result<Value, Box<Diagnostic>> {
    let mut evaluator =
        Evaluator { helpers, variables: Vec::new(), constants: Vec::new(), calls: 0, steps: 0 };
    match evaluator.call(function, path, arguments) {
        Ok(value) => Ok(value),
        Err(Exit::Refused(refused)) => Err(refused),
        Err(_) => Err(Box::new(refused(path.span(), "nothing is left here", "rustc says more"))),
    }
}

/// Where a computation goes other than on.
enum Exit {
    Refused(Box<Diagnostic>),
    Return(Value),
    /// To the end of a loop or block, by its label, with a value.
    Break(Option<String>, Value),
    /// To the next turn of a loop.
    Continue(Option<String>),
}

impl From<Diagnostic> for Exit {
    fn from(refused: Diagnostic) -> Exit {
        Exit::Refused(Box::new(refused))
    }
}

type Computed<T> = Result<T, Exit>;

fn refused(span: impl Into<Span>, message: impl Into<String>, help: &str) -> Diagnostic {
    Diagnostic::new(span, message).help(help)
}

fn error<T>(span: impl Into<Span>, message: impl Into<String>, help: &str) -> Computed<T> {
    Err(refused(span, message, help).into())
}

/// What is known while a `const fn` is computed.
struct Evaluator<'h> {
    /// What the module has.
    helpers: &'h Helpers,
    /// The variables of the current call; what comes later hides what was there before.
    variables: Vec<Variable>,
    /// The constants that are being computed.
    constants: Vec<String>,
    /// How many calls are around the current place.
    calls: usize,
    steps: u32,
}

/// A variable, or a constant of a block, of a `const fn`.
struct Variable {
    name: String,
    value: Value,
    /// Whether a pattern compares with it.
    is_constant: bool,
}

impl Variable {
    fn constant(name: &Ident, value: Value) -> Variable {
        Variable { name: name.to_string(), value, is_constant: true }
    }
}

impl Evaluator<'_> {
    fn call(&mut self, function: &ItemFn, path: &Path, arguments: Vec<(Value, Span)>) -> Computed<Value> {
        let (name, span) = (function.sig.ident.to_string(), path.span());
        if let Some(refused) = conditional::on_item(&function.attrs) {
            return Err(refused.into());
        }
        if self.calls == MOST_CALLS {
            let message =
                format!("calls of `const fn`s go more than {MOST_CALLS} deep, and the last is of `{name}`");
            return error(span, message, "write a loop");
        }
        if arguments.len() != function.sig.inputs.len() {
            let message =
                format!("`{name}` takes {} arguments, not {}", function.sig.inputs.len(), arguments.len());
            return error(span, message, "give each parameter a value");
        }
        let parameters = self.const_parameters(function, path)?;
        let outer = std::mem::replace(&mut self.variables, parameters);
        self.calls += 1;
        let value = self.body(function, arguments);
        self.calls -= 1;
        self.variables = outer;
        value
    }

    fn body(&mut self, function: &ItemFn, arguments: Vec<(Value, Span)>) -> Computed<Value> {
        for (input, (value, span)) in function.sig.inputs.iter().zip(arguments) {
            let FnArg::Typed(input) = input else {
                return error(
                    input.span(),
                    "a method isn't computed here",
                    "write a function without `self`",
                );
            };
            let value = self.conform(value, &input.ty, span)?;
            self.bind(&input.pat, value)?;
        }
        let value = match self.block(&function.block) {
            Err(Exit::Return(value)) => value,
            other => other?,
        };
        let place = function.block.stmts.last().map_or(function.sig.ident.span().into(), Spanned::span);
        match &function.sig.output {
            ReturnType::Default => Ok(value),
            ReturnType::Type(_, ty) => self.conform(value, ty, place),
        }
    }

    /// Const parameters as variables, each with what the call says in `<…>`.
    fn const_parameters(&mut self, function: &ItemFn, path: &Path) -> Computed<Vec<Variable>> {
        let said: Vec<&GenericArgument> = match path.segments.last().map(|segment| &segment.arguments) {
            Some(PathArguments::AngleBracketed(said)) => said.args.iter().collect(),
            _ => Vec::new(),
        };
        let mut parameters = Vec::new();
        for (at, parameter) in function.sig.generics.params.iter().enumerate() {
            let GenericParam::Const(parameter) = parameter else {
                let message = "only const parameters of a `const fn` are known when the macro expands";
                return error(parameter.span(), message, "write the type out");
            };
            let name = parameter.ident.to_string();
            let value = match said.get(at) {
                Some(GenericArgument::Const(value)) => self.expression(value)?,
                // A name alone is read as that of a type.
                Some(GenericArgument::Type(Type::Path(named))) => {
                    let value = Expr::Path(syn::ExprPath {
                        attrs: Vec::new(),
                        qself: None,
                        path: named.path.clone(),
                    });
                    self.expression(&value)?
                }
                _ => {
                    let function = &function.sig.ident;
                    let help = format!("write `{function}::<…>(…)`");
                    return error(path.span(), format!("this call says no value of `{name}`"), &help);
                }
            };
            let value = self.conform(value, &parameter.ty, path.span())?;
            parameters.push(Variable::constant(&parameter.ident, value));
        }
        Ok(parameters)
    }

    /// The value of a constant of the module.
    fn constant(&mut self, name: &str, span: Span) -> Computed<Option<Value>> {
        let Some(item) = self.helpers.constant(name) else { return Ok(None) };
        if let Some(refused) = conditional::on_item(&item.attrs) {
            return Err(refused.into());
        }
        if self.constants.iter().any(|known| known == name) {
            return Err(Diagnostic::of_constant(span, name).into());
        }
        self.constants.push(name.to_owned());
        let outer = std::mem::take(&mut self.variables);
        let value = self.expression(&item.expr);
        self.variables = outer;
        self.constants.pop();
        self.conform(value?, &item.ty, item.expr.span()).map(Some)
    }

    /// Calls what a path names: a `const fn` of the module.
    fn call_path(&mut self, path: &Path, arguments: Vec<(Value, Span)>) -> Computed<Value> {
        let helpers = self.helpers;
        match helpers.const_function(path) {
            Some(function) => self.call(function, path, arguments),
            None => {
                let message = format!("`{}` isn't a `const fn` that the macro sees", path_text(path));
                error(
                    path.span(),
                    message,
                    "a `const fn` in a kernel's constant stands in the kernel's module, inside of `#[tile_kernels]`, and so does what it calls",
                )
            }
        }
    }

    fn step(&mut self, span: impl FnOnce() -> Span) -> Computed<()> {
        self.steps += 1;
        match self.steps > MOST_STEPS {
            true => error(
                span(),
                format!("this `const fn` takes more than {MOST_STEPS} steps"),
                "leave that much to the caller, and make it an argument or a tensor",
            ),
            false => Ok(()),
        }
    }
}
