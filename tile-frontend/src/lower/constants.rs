//! `const` items of a body, and arithmetic of `usize` that is known when the macro expands.

use super::casts::is_integer;
use super::functions::calls::Arguments;
use super::known::known;
use super::ops::folding::symbolic;
use super::{Lowered, Lowering, Reported};
use crate::conditional;
use crate::constants::in_order;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::evaluate;
use crate::helpers::Helpers;
use crate::rewrite::place;
use crate::scope::{Changes, Scopes, Variable};
use crate::signature::Signature;
use crate::span::{Span, Spanned};
use crate::value::{Int, Val};
use std::rc::Rc;
use syn::{Block, ExprMethodCall, Generics, ItemConst, Stmt, Type};
use tile_ir::array::wrap_int;
use tile_ir::ops::BinaryOp;
use tile_ir::{DType, Dim, Elem, Kernel, Op, ValueId};

/// The largest exponent of a power that is known: no format holds more factors.
const MOST_FACTORS: i128 = 64;

/// The extent that a constant of the module is where a signature names it, which is lowered before any body.
pub(crate) fn extent_of(item: &ItemConst, span: Span, helpers: &Helpers) -> Result<Dim, Diagnostics> {
    let name = item.ident.to_string();
    let signature = Signature { kernel: Kernel::new(name.clone(), Vec::new()), scopes: Scopes::default() };
    let mut lowering = Lowering::new(signature, Generics::default(), helpers);
    let found = match lowering.module_constant(&name, item) {
        Ok(Val::Dim(extent)) => return Ok(extent),
        Ok(value) => lowering.display_value(&value),
        Err(Reported) => return Err(Diagnostics::new(lowering.errors)),
    };
    let help = format!("write `const {name}: usize`");
    Err(Diagnostic::new(span, format!("`{name}` is {found}, and an extent is a `usize`")).help(help).into())
}

impl Lowering {
    /// The constants of a block, which all of it sees, as items of Rust: those first that others are made of.
    pub(super) fn constants(&mut self, statements: &[Stmt]) {
        for item in in_order(statements) {
            // What is wrong is reported; the constant is known by its name all the same.
            let _ = self.constant(item);
        }
    }

    /// `const N: usize = 2 * BM;`
    fn constant(&mut self, item: &ItemConst) -> Lowered<()> {
        let noted = self.scalar_arithmetic.len();
        let (value, for_loop) = self.of_constant(|lowering| lowering.expression(&item.expr));
        let value = value.and_then(|value| self.constant_value(item, &value));
        let value = match value {
            Ok(value) if !self.is_generic(&value) => self.without_for(for_loop).map(|()| value),
            value => value,
        };
        if !value.as_ref().is_ok_and(|value| self.is_generic(value)) {
            // It stays an item of Rust, whose operators are computed before the kernel runs.
            self.scalar_arithmetic.truncate(noted);
        }
        let (value, result) = match value {
            Ok(value) => (value, Ok(())),
            Err(reported) => (Val::Poison, Err(reported)),
        };
        if self.is_generic(&value) && self.in_own_text() {
            self.rewrites.constants.insert(place(item.ident.span().start()));
        }
        self.scopes.define(Variable {
            name: item.ident.to_string(),
            value,
            changes: Changes::Never,
            constant: true,
            span: item.ident.span().into(),
        });
        result
    }

    /// `const { 2 * BM }`, which Rust computes before the kernel runs: with its own operators.
    pub(super) fn const_block(&mut self, block: &Block) -> Lowered<Val> {
        let outer = std::mem::replace(&mut self.in_constant, true);
        let errors = self.errors.len();
        let (value, for_loop) = self.of_constant(|lowering| lowering.block(block));
        let value = value.and_then(|value| self.without_for(for_loop).map(|()| value));
        self.no_function_is_missing(errors);
        self.in_constant = outer;
        value
    }

    /// Lowers the value of a constant; also says where a `for` is in it.
    fn of_constant<T>(&mut self, lower: impl FnOnce(&mut Lowering) -> T) -> (T, Option<Span>) {
        let outer = std::mem::replace(&mut self.is_constant, true);
        let loops_around = self.for_in_constant.take();
        let value = lower(self);
        self.is_constant = outer;
        (value, std::mem::replace(&mut self.for_in_constant, loops_around))
    }

    /// Refuses a `for` in what is Rust's to compute, which says of it only that the iterator's functions aren't `const`.
    fn without_for(&mut self, for_loop: Option<Span>) -> Lowered<()> {
        match for_loop {
            Some(span) => self.error(span, "Rust runs no `for` in a constant", evaluate::OF_FOR),
            None => Ok(()),
        }
    }

    /// Functions of Rust's `const` world are no functions of kernels: none is looked for in other modules.
    fn no_function_is_missing(&mut self, errors: usize) {
        self.errors[errors..].iter_mut().for_each(|error| error.missing = None);
    }

    /// Whether a constant is made of the kernel's parameters.
    pub(super) fn is_generic(&self, constant: &Val) -> bool {
        match constant {
            Val::Dim(dim) => dim.as_const().is_none(),
            Val::Data(value) => self.follows_from_parameters(*value),
            Val::List(parts) => parts.iter().any(|part| self.is_generic(part)),
            _ => false,
        }
    }

    fn follows_from_parameters(&self, value: ValueId) -> bool {
        let Some(data) = self.kernel.definition(value) else { return false };
        let inside = data.regions.iter().flat_map(|&region| self.kernel.walk_in(region));
        let mut ops = inside.map(|op| &self.kernel.op(op).op).chain([&data.op]);
        ops.any(|op| matches!(op, Op::Extent(dim) if dim.as_const().is_none()))
            || data.operands.iter().any(|&operand| self.follows_from_parameters(operand))
    }

    /// A `const` item of the module around the kernel, by the path that the kernel names it by.
    pub(super) fn module_constant(&mut self, path: &str, item: &ItemConst) -> Lowered<Val> {
        if let Some(refusal) = conditional::on_item(&item.attrs) {
            return self.report(refusal);
        }
        if self.constants.iter().any(|known| known == path) {
            return self.report(Diagnostic::of_constant(item.ident.span(), path));
        }
        self.constants.push(path.to_owned());
        let outer = self.scopes.isolate();
        let errors = self.errors.len();
        let text = Rc::new(self.text.of_constants());
        let value = self.in_text(&text, |lowering| {
            let (value, for_loop) = lowering.of_constant(|lowering| lowering.expression(&item.expr));
            lowering.without_for(for_loop)?;
            lowering.constant_value(item, &value?)
        });
        self.constants.pop();
        self.no_function_is_missing(errors);
        self.scopes.restore(outer);
        value
    }

    fn constant_value(&mut self, item: &ItemConst, value: &Val) -> Lowered<Val> {
        self.constant_of_type(value, &item.ty, item.expr.span())
    }

    /// A number, or an array, tuple or struct of constants.
    fn constant_of_type(&mut self, value: &Val, ty: &Type, span: Span) -> Lowered<Val> {
        match (ty, value) {
            (Type::Array(array), Val::List(values)) => {
                let parts = values.iter().map(|value| self.constant_of_type(value, &array.elem, span));
                return parts.collect::<Lowered<_>>().map(Val::List);
            }
            (Type::Tuple(tuple), Val::List(values)) if tuple.elems.len() == values.len() => {
                let parts = values.iter().zip(&tuple.elems);
                let parts = parts.map(|(value, ty)| self.constant_of_type(value, ty, span));
                return parts.collect::<Lowered<_>>().map(Val::List);
            }
            _ => {}
        }
        let Some(elem) = self.element(ty) else {
            let help =
                "use usize, i32, f32, …, and arrays and tuples of these; a struct is made in the kernel";
            return self.error(ty.span(), "a constant of a kernel is a number or a bool", help);
        };
        match value {
            Val::Int(_) | Val::Dim(_) if elem == Elem::from(DType::Index) => {
                self.static_dim(value, "a constant of type usize", span).map(Val::Dim)
            }
            Val::Data(_) if elem == Elem::from(DType::Index) => {
                let help = "use literals, const parameters, `+ - * / %`, `div_ceil`, `min`, `max`, `ilog2`, \
                            `next_power_of_two`, and of literals also `pow`; a `const fn` of the kernel's `#[tile_kernels]` \
                            module may have loops";
                self.error(span, "this isn't known when the macro expands", help)
            }
            Val::Int(Int { value: number, .. })
                if elem
                    .known()
                    .is_some_and(|dtype| is_integer(&dtype) && wrap_int(dtype, *number) == *number) =>
            {
                self.share(value, &elem, "the constant", span)?;
                Ok(Val::Int(Int::of(*number, elem)))
            }
            value => self.number(value, &elem, "the constant", span).map(Val::Data),
        }
    }

    /// One of the methods [`of_known`], of numbers that are known; `None` where a number isn't.
    pub(super) fn known_method(
        &mut self,
        receiver: &Val,
        arguments: &Arguments,
        call: &ExprMethodCall,
    ) -> Lowered<Option<Val>> {
        let name = call.method.to_string();
        let other = arguments.values.first();
        let (Some(a), false) = (known(receiver), other.is_some_and(|other| known(other).is_none())) else {
            return match (receiver, other) {
                (_, Some(other)) if name != "pow" => {
                    let extreme = extreme(&name, receiver, other);
                    if extreme.is_some() {
                        self.share_with(receiver, other, &format!("`{name}`"), call.span())?;
                    }
                    Ok(extreme)
                }
                (Val::Dim(dim), None) if dim.is_static() && name == "ilog2" => {
                    // In Rust a `u32`.
                    let log = self.extent(&dim.ilog2(), call.span());
                    let log = self.emit_one(Op::Cast(DType::U32.into()), &[log], call.span(), &[])?;
                    Ok(Some(Val::Data(log)))
                }
                (Val::Dim(dim), None) if dim.is_static() => Ok(symbolic(dim.next_power_of_two())),
                (Val::Int(_) | Val::Dim(_), _) => self.unknown_number(&name, call.receiver.span()),
                _ => Ok(None),
            };
        };
        if let ("pow", Some(exponent)) = (name.as_str(), other) {
            return self.power(receiver, exponent, call).map(Some);
        }
        let b = other.and_then(known).unwrap_or(0);
        let value = match name.as_str() {
            "min" => Some(a.min(b)),
            "max" => Some(a.max(b)),
            "ilog2" => a.checked_ilog2().map(i128::from),
            _ => u64::try_from(a).ok().and_then(u64::checked_next_power_of_two).map(i128::from),
        };
        let Some(value) = value else {
            return self.error(call.span(), format!("`{name}` of {a} has no value"), "use another number");
        };
        if name == "ilog2" {
            // In Rust a `u32`, of a number of any type.
            return Ok(Some(Val::Int(Int::of(value, DType::U32.into()))));
        }
        let shared = match other {
            Some(other) => self.share_with(receiver, other, &format!("`{name}`"), call.span())?,
            None => receiver.shared().cloned(),
        };
        let is_dim = matches!(receiver, Val::Dim(_))
            || matches!(other, Some(Val::Dim(_)))
            || other.is_none() && shared.is_none();
        Ok(Some(match i64::try_from(value) {
            Ok(extent) if is_dim => Val::Dim(Dim::from(extent)),
            _ => Val::Int(Int { value, shared, places: Vec::new() }),
        }))
    }

    /// `a.pow(b)` of numbers that are known: a product, which wraps where that of operators does.
    fn power(&mut self, receiver: &Val, exponent: &Val, call: &ExprMethodCall) -> Lowered<Val> {
        let (span, places) = (call.span(), [call.receiver.span(); 2]);
        // An exponent is a `u32` in Rust.
        self.share(exponent, &DType::U32.into(), "an exponent", span)?;
        let (base, times) = (known(receiver).unwrap_or(0), known(exponent).unwrap_or(0));
        let times = match times {
            // These are no larger: it matters only whether the exponent is even.
            3.. if (-1..=1).contains(&base) => 2 - times % 2,
            0..=MOST_FACTORS => times,
            _ => return self.error(span, format!("`pow` of {base} has no value"), "use another number"),
        };
        let mut power = match receiver {
            Val::Dim(_) => Val::Dim(Dim::from(1)),
            receiver => Val::Int(Int { value: 1, shared: receiver.shared().cloned(), places: Vec::new() }),
        };
        for _ in 0..times {
            power = self.arithmetic(BinaryOp::Mul, &power, receiver, span, places)?;
        }
        self.note_scalar(call.method.span().into(), "pow", &power);
        Ok(power)
    }

    /// The type that two known numbers have together, if it is decided by more than this use.
    pub(super) fn share_with(
        &mut self,
        left: &Val,
        right: &Val,
        what: &str,
        span: Span,
    ) -> Lowered<Option<Elem>> {
        let elem = match (left, right) {
            (Val::Dim(_), _) | (_, Val::Dim(_)) => Some(DType::Index.into()),
            (left, right) => left.shared().or_else(|| right.shared()).cloned(),
        };
        if let Some(elem) = &elem {
            self.share(left, elem, what, span)?;
            self.share(right, elem, what, span)?;
        }
        Ok(elem)
    }

    fn unknown_number<T>(&mut self, name: &str, span: Span) -> Lowered<T> {
        let message = format!("`{name}` needs a number that is known when the macro expands");
        let help = match name {
            "pow" => "write a product, `n * n`",
            _ => "a size is known when the kernel runs: make the result an argument of its own",
        };
        self.error(span, message, help)
    }
}

/// How many arguments a method of numbers has that is computed where these are known, and how it is written.
pub(super) fn of_known(name: &str) -> Option<(usize, String)> {
    match name {
        "min" | "max" | "pow" => Some((1, format!("a.{name}(b)"))),
        "ilog2" | "next_power_of_two" => Some((0, format!("a.{name}()"))),
        _ => None,
    }
}

/// The smaller or larger of two extents.
fn extreme(name: &str, a: &Val, b: &Val) -> Option<Val> {
    let extent = |value: &Val| match value {
        Val::Int(int) => i64::try_from(int.value).ok().map(Dim::from),
        Val::Dim(dim) => Some(dim.clone()),
        _ => None,
    };
    let (a, b) = (extent(a)?, extent(b)?);
    symbolic(if name == "min" { a.at_most(&b) } else { a.at_least(&b) })
}
