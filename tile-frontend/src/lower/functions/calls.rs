//! Calls of functions: which of them a call means, and the arguments of each.

use crate::diagnostic::Diagnostic;
use crate::helpers::is_free;
use crate::hygiene;
use crate::lower::ops::folds::Fold;
use crate::lower::{Lowered, Lowering, names};
use crate::span::{Span, Spanned};
use crate::structs::Struct;
use crate::value::{Int, Val};
use syn::punctuated::Punctuated;
use syn::{Expr, ExprCall, Path, Token};
use tile_ir::ops::{Domain, Leaf, Literal};
use tile_ir::{DType, Dim, Op};

/// Values of a call's arguments and where they stand.
pub(in crate::lower) struct Arguments {
    pub(in crate::lower) values: Vec<Val>,
    pub(in crate::lower) spans: Vec<Span>,
}

impl Lowering {
    /// Evaluates arguments and checks their number.
    pub(in crate::lower) fn arguments(
        &mut self,
        name: &str,
        arguments: &Punctuated<Expr, Token![,]>,
        expected: usize,
        usage: &str,
        span: Span,
    ) -> Lowered<Arguments> {
        let values: Vec<Lowered<Val>> = arguments.iter().map(|argument| self.expression(argument)).collect();
        let values = values.into_iter().collect::<Lowered<Vec<Val>>>()?;
        if values.len() != expected {
            let plural = if expected == 1 { "" } else { "s" };
            let message = format!("`{name}` takes {expected} argument{plural}, not {}", values.len());
            return self.error(span, message, &format!("write `{usage}`"));
        }
        Ok(Arguments { values, spans: arguments.iter().map(Spanned::span).collect() })
    }

    pub(in crate::lower) fn call(&mut self, call: &ExprCall) -> Lowered<Val> {
        let Expr::Path(function) = &*call.func else {
            let help = match crate::rewrite::bare(&call.func) {
                Expr::Field(_) | Expr::Index(_) => "a closure is called by the name that it is bound to",
                _ => "write its code out, or bind the closure to a name",
            };
            return self.error(
                call.func.span(),
                "only functions and closures with a name can be called in a kernel",
                help,
            );
        };
        let path = &function.path;
        let name = path.segments.last().map(|segment| segment.ident.to_string()).unwrap_or_default();
        let owner = path.segments.iter().nth_back(1).map(|segment| segment.ident.to_string());
        if let Some((ident, variable)) =
            path.get_ident().and_then(|ident| Some((ident, self.scopes.find(&name)?)))
        {
            let place = self.scopes.variables[variable].span;
            if !hygiene::are_of_one_text(ident.span(), place.ends()[0]) {
                let message = format!(
                    "`{name}` is bound by a macro and called by what the macro is given, or the other way round: two names, which kernels can't tell apart"
                );
                let diagnostic =
                    Diagnostic::new(ident.span(), message).label(place, format!("`{name}` is bound here"));
                return self.report(diagnostic.help("give what the macro binds a name of its own"));
            }
            return match self.scopes.variables[variable].value.clone() {
                Val::Closure(closure) => self.call_closure(&name, &closure, call),
                Val::Poison => Err(crate::lower::Reported),
                other => {
                    let hides = names::is_function(&name) || self.text.helpers.function(path).is_some();
                    let help = match hides {
                        true => format!("the variable hides the function `{name}`: give it another name"),
                        false => "only functions and closures are called".to_owned(),
                    };
                    let message = format!("`{name}` is {}, which can't be called", self.kind_of(&other));
                    let diagnostic = Diagnostic::new(call.func.span(), message)
                        .label(place, format!("`{name}` is defined here"));
                    self.report(diagnostic.help(help))
                }
            };
        }
        if let Some(helper) = self.text.helpers.function(path).cloned() {
            return self.call_function(&helper, call);
        }
        if let Some(function) = self.text.helpers.const_function(path).cloned() {
            return self.call_const_function(&function, path, call);
        }
        match owner.as_deref() {
            Some("Tile") => self.constructor(&name, path, call),
            Some(owner) if name == "of" && !is_free(path) => self.element_of(owner, call),
            Some(owner)
                if name == "from_bits"
                    && let Some(dtype) = DType::from_rust_name(owner) =>
            {
                self.float_of_bits(dtype, call)
            }
            // To rustc the kernel hides the function.
            _ if path.is_ident(&self.kernel.name) && names::is_function(&name) => {
                let message =
                    format!("`{name}` is this kernel's own name, and to Rust the call is one of the kernel");
                let one = Leaf::from_name(&name).is_some_and(|leaf| leaf.operands() == 1);
                let help = match one {
                    true => format!("write `x.{name}()`, or give the kernel another name"),
                    false => {
                        "call it by its path, in `tile::kernel`, or give the kernel another name".to_owned()
                    }
                };
                self.error(call.func.span(), message, &help)
            }
            _ if names::is_known(path) => self.function(&name, path, call),
            _ if is_of_struct(path) => self.tuple_struct(path, call),
            _ => self.unknown_function(path, call),
        }
    }

    /// `Pair(a, b)`. rustc checks that there is such a struct.
    fn tuple_struct(&mut self, path: &Path, call: &ExprCall) -> Lowered<Val> {
        let fields: Vec<Lowered<Val>> = call.args.iter().map(|argument| self.expression(argument)).collect();
        let fields = fields.into_iter().collect::<Lowered<Vec<Val>>>()?;
        let fields = (0..).map(|at: usize| at.to_string()).zip(fields).zip(&call.args);
        let fields = fields.map(|((name, value), written)| {
            let value = self.field_value(path, &name, value, written.span())?;
            Ok((name, value))
        });
        let fields = fields.collect::<Lowered<_>>()?;
        Ok(Val::Record(Struct::named(path, &self.text), fields))
    }

    fn function(&mut self, name: &str, path: &Path, call: &ExprCall) -> Lowered<Val> {
        if name == "mma_scaled" {
            return self.mma_scaled(call);
        }
        if matches!(name, "mma" | "mma_tf32") {
            return self.mma(name, call);
        }
        if name == "select" {
            return self.select(call);
        }
        if let Some(fold) = Fold::of_function(name) {
            return self.fold_call(name, fold, call);
        }
        if matches!(name, "block_id" | "block_count") {
            return self.place_in_grid(name, call);
        }
        if name == "cat" || name == "stack" {
            return self.joined(name, call);
        }
        match Leaf::from_name(name).filter(|leaf| leaf.is_function()) {
            Some(leaf) => self.leaf_function(leaf, call),
            None => self.unknown_function(path, call),
        }
    }

    fn select(&mut self, call: &ExprCall) -> Lowered<Val> {
        let span = call.span();
        let arguments = self.arguments("select", &call.args, 3, "select(condition, a, b)", span)?;
        let [condition, a, b] = &arguments.values[..] else { unreachable!("three arguments were checked") };
        let spans = &arguments.spans;
        let condition = self.data(condition, "the condition of `select`", spans[0])?;
        let bool = tile_ir::DType::Bool.into();
        self.require_elem(condition, &bool, "the condition of `select`", spans[0])?;
        let [a, b] = self.pair(a, b, "`select`", span, [spans[1], spans[2]])?;
        // All three take the common shape.
        let [condition, a] = self.broadcast_pair(condition, a, "`select`", span)?;
        let [b, condition] = self.broadcast_pair(b, condition, "`select`", span)?;
        self.emit_one(Op::Select, &[condition, a, b], span, spans).map(Val::Data)
    }

    /// `T::of(2.0)`.
    fn element_of(&mut self, owner: &str, call: &ExprCall) -> Lowered<Val> {
        let arguments = self.arguments("of", &call.args, 1, "T::of(2.0)", call.span())?;
        let ty: syn::Type = syn::parse_str(owner).unwrap_or(syn::Type::Verbatim(Default::default()));
        let Some(elem) = self.element(&ty) else {
            return self.error(
                call.func.span(),
                format!("`{owner}` isn't an element type"),
                "write `T::of(2.0)` of a type parameter",
            );
        };
        let span = arguments.spans[0];
        let literal = match &arguments.values[0] {
            value @ Val::Float(float) => {
                self.share(value, &DType::F64.into(), "what `of` takes", span)?;
                Literal::Float(float.value)
            }
            Val::Int(Int { value, shared: None, .. }) => Literal::Int(*value),
            _ => {
                return self.error(
                    span,
                    "`of` takes a literal",
                    "write `T::of(2.0)`; of another value `k`, `Tile::full([1], k).cast::<T>()` is a tile of T",
                );
            }
        };
        let literal = elem.known().map_or(literal, |dtype| literal.in_format(dtype));
        if let (Literal::Float(value), Some(Domain::Int)) = (literal, self.domain_of(&elem))
            && value.fract() != 0.0
        {
            let message = format!("{value} isn't a number of {owner}, which is an integer");
            return self.error(span, message, "write an integer");
        }
        self.emit_one(Op::Constant { value: literal, elem }, &[], call.span(), &[]).map(Val::Data)
    }

    /// The extents of an array expression. What the conditions say to be one extent has one form, however it is written.
    pub(in crate::lower) fn extents(&mut self, value: &Val, span: Span) -> Lowered<Vec<Dim>> {
        match value {
            Val::List(values) => values
                .iter()
                .map(|value| {
                    let extent = self.static_dim(value, "a tile extent", span)?;
                    Ok(self.facts.joined(&extent))
                })
                .collect(),
            Val::Poison => Err(crate::lower::Reported),
            _ => self.error(span, "extents are an array", "write `[M, N]`, with one extent per axis"),
        }
    }

    /// An axis number below the rank.
    pub(in crate::lower) fn axis(&mut self, value: &Val, rank: usize, span: Span) -> Lowered<usize> {
        self.not_from_the_end(value, rank, span)?;
        let dim = self.static_dim(value, "an axis", span)?;
        match dim.as_const().and_then(|axis| usize::try_from(axis).ok()) {
            Some(axis) if axis < rank => Ok(axis),
            Some(axis) => {
                let message = format!("axis {axis} is out of range: the rank is {rank}");
                self.error(span, message, &format!("axes are numbered from 0 to {}", rank.saturating_sub(1)))
            }
            None => self.error(span, "an axis is a literal", "write 0, 1, …"),
        }
    }

    /// Refuses an axis that is counted from the end, as in NumPy.
    pub(in crate::lower) fn not_from_the_end(&mut self, value: &Val, rank: usize, span: Span) -> Lowered<()> {
        let Val::Int(Int { value: axis @ ..0, .. }) = value else { return Ok(()) };
        let from_start = i128::try_from(rank).map_or(-1, |rank| rank + axis);
        let help = match (axis, from_start) {
            (_, ..0) => format!("axes are numbered from 0 to {}", rank.saturating_sub(1)),
            (-1, last) => format!("write `{last}`, the last axis of {rank}"),
            (_, number) => format!("write `{number}`, which is axis {axis} of {rank} from the end"),
        };
        self.error(span, format!("axes count from 0, and this is {axis}"), &help)
    }
}

/// Whether a path is of a tuple struct, by its form: `Pair`, `state::Pair`. The variants of an enum are `Enum::Variant`, and
/// those of `Option` and `Result` are known.
fn is_of_struct(path: &Path) -> bool {
    let is_upper = |segment: &syn::PathSegment| segment.ident.to_string().starts_with(char::is_uppercase);
    let mut segments = path.segments.iter().rev();
    let is_struct = segments.next().is_some_and(|last| is_upper(last) && !names::is_of_option(&last.ident));
    is_struct && !segments.any(is_upper)
}
