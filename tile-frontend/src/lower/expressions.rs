//! Expressions: one arm per kind of syntax, and what the language doesn't have.

use super::casts::is_integer;
use super::{Lowered, Lowering};
use crate::assigned::is_compound_assignment;
use crate::copies::Occurrence;
use crate::rewrite::{bare, is_literal};
use crate::span::{Span, Spanned};
use crate::value::{Float, Int, Val, has_a_format};
use syn::{Expr, ExprLit, ExprPath, ExprUnary, Lit, LitByteStr, LitInt, UnOp};
use tile_ir::array::{int_to_float, wrap_int};
use tile_ir::ops::{BinaryOp, Literal, UnaryOp};
use tile_ir::{DType, Dim, Op, Type};

impl Lowering {
    pub(super) fn expression(&mut self, expression: &Expr) -> Lowered<Val> {
        self.in_expression(expression, |lowering| lowering.expression_itself(expression))
    }

    /// Lowers a part of an expression, or all of it.
    pub(super) fn in_expression<T>(
        &mut self,
        expression: &Expr,
        lower: impl FnOnce(&mut Lowering) -> T,
    ) -> T {
        let outer = self.copies.len();
        self.copies.extend(Occurrence::of_copy(expression));
        let lowered = lower(self);
        self.copies.truncate(outer);
        lowered
    }

    fn expression_itself(&mut self, expression: &Expr) -> Lowered<Val> {
        match expression {
            Expr::Lit(literal) => self.literal_expression(&literal.lit),
            Expr::Path(path) => self.path(path),
            Expr::Paren(inner) => self.expression(&inner.expr),
            Expr::Group(inner) => self.expression(&inner.expr),
            Expr::Block(block) => match &block.label {
                Some(label) => self.labelled_block(label, &block.block),
                None => self.block(&block.block),
            },
            // What may stand in it, rustc checks: `load_unchecked` is the one unsafe function.
            Expr::Unsafe(block) => self.block(&block.block),
            Expr::Const(block) => self.const_block(&block.block),
            // `;` alone.
            Expr::Verbatim(tokens) if tokens.is_empty() => Ok(Val::Unit),
            Expr::Unary(unary) => self.unary_operator(unary),
            Expr::Binary(binary) if is_compound_assignment(&binary.op) => self.compound_assign(binary),
            Expr::Binary(binary) => self.binary_operator(binary),
            Expr::Assign(assign) => self.assign(assign),
            Expr::Cast(cast) => self.cast(cast),
            Expr::Array(array) => {
                let values = self.list(array.elems.iter())?;
                self.of_one_type(values, array.span()).map(Val::List)
            }
            Expr::Tuple(tuple) if tuple.elems.is_empty() => Ok(Val::Unit),
            Expr::Tuple(tuple) => self.list(tuple.elems.iter()).map(Val::List),
            Expr::Field(field) => self.field(field),
            Expr::Call(call) => self.call(call),
            Expr::MethodCall(call) => self.method(call),
            Expr::ForLoop(for_loop) => {
                self.straight("a loop", for_loop.for_token.span())?;
                if self.is_constant {
                    self.for_in_constant.get_or_insert(for_loop.for_token.span());
                }
                self.for_loop(for_loop)
            }
            Expr::While(repeated) => {
                self.straight("a loop", repeated.while_token.span())?;
                self.while_loop(repeated)
            }
            Expr::Loop(endless) => {
                self.straight("a loop", endless.loop_token.span())?;
                self.endless_loop(endless)
            }
            Expr::If(if_else) => self.if_else(if_else),
            Expr::Break(exit) => self.break_loop(exit),
            Expr::Continue(exit) => self.continue_loop(exit),
            Expr::Return(exit) => self.return_early(exit),
            Expr::Match(expression) => self.match_expression(expression),
            Expr::Index(index) => self.index(index),
            Expr::Repeat(repeat) => self.repeat_value(repeat),
            Expr::Struct(record) => self.record(record),
            Expr::Macro(called) => self.called_macro(&called.mac),
            Expr::Closure(closure) => self.closure(closure),
            other => self.refuse(other),
        }
    }

    /// What the language doesn't have, by name.
    fn refuse(&mut self, expression: &Expr) -> Lowered<Val> {
        let (what, help) = match expression {
            Expr::Reference(_) => (
                "a reference",
                "remove the `&`: tiles and views are passed by value, and operators take values",
            ),
            Expr::Range(_) => ("a range outside a `for`", "write `for p in a..b`"),
            Expr::Let(_) => (
                "`let` as a condition of anything but `if`",
                "of a number, `matches!(x, 1..=9)` is a condition; optional arguments are taken apart by `if let`",
            ),
            Expr::Try(_) => ("`?`", "a kernel has no errors to return"),
            Expr::Await(_) | Expr::Async(_) => ("`async`", "launches are asynchronous, kernels are not"),
            _ => ("this expression", "write it with tiles, arithmetic, loops and branches"),
        };
        self.error(expression.span(), format!("{what} isn't supported in a kernel"), help)
    }

    pub(super) fn literal_expression(&mut self, literal: &Lit) -> Lowered<Val> {
        let span = Span::from(literal.span());
        match literal {
            Lit::Int(int) => self.integer_literal(int, false, span),
            Lit::Float(float) => {
                let (Ok(value), Ok(single)) = (float.base10_parse::<f64>(), float.base10_parse::<f32>())
                else {
                    return self.error(span, "this isn't a number", "write it as in `1.5e-3`");
                };
                match DType::from_rust_name(float.suffix()) {
                    None => {
                        let place = self.in_own_text().then(|| self.occurrence(span));
                        Ok(Val::Float(Float { value, single, shared: None, place }))
                    }
                    Some(DType::F32) => self.typed(Literal::Float(single.into()), DType::F32, span),
                    Some(dtype) => self.typed(Literal::Float(value), dtype, span),
                }
            }
            Lit::Bool(value) => self.typed(Literal::Int(i128::from(value.value)), DType::Bool, span),
            Lit::Byte(byte) => self.typed_integer(byte.value().into(), DType::U8, span),
            Lit::Char(_) => {
                let help = "write its number, or `b'a'`, which is one of u8";
                self.error(span, "a kernel computes with numbers and bools only", help)
            }
            Lit::ByteStr(_) => {
                let help = "with a star it is an array of u8, `*b\"abcd\"`";
                self.error(span, "this is a reference to an array, and a kernel has none", help)
            }
            _ => {
                let help = "texts are printed, `tile_println!(\"x = {x}\")`; to choose by a name, use a number or a const parameter";
                self.error(span, "a kernel computes with numbers and bools only", help)
            }
        }
    }

    /// `*b"abcd"`, an array of u8.
    fn bytes(&mut self, bytes: &LitByteStr, span: Span) -> Lowered<Val> {
        let numbers = bytes.value().into_iter().map(|byte| self.typed_integer(byte.into(), DType::U8, span));
        numbers.collect::<Lowered<_>>().map(Val::List)
    }

    /// A literal of an integer, with a minus before it where it is negative: the least number of a format is none without.
    fn integer_literal(&mut self, literal: &LitInt, negative: bool, span: Span) -> Lowered<Val> {
        // A pattern's literal has its own minus.
        let value = literal.base10_parse::<i128>().ok().filter(|&value| has_a_format(value));
        let Some(value) = value else {
            return self.error(span, "the number is too large", "no format holds it");
        };
        let value = if negative { -value } else { value };
        match literal.suffix() {
            "" => {
                let places = self.in_own_text().then(|| self.occurrence(span)).into_iter().collect();
                Ok(Val::Int(Int { value, shared: None, places }))
            }
            "usize" => match i64::try_from(value) {
                Ok(..0) => self.negated_size(span),
                Ok(value) => Ok(Val::Dim(Dim::from(value))),
                Err(_) => self.error(span, "the number doesn't fit usize", "use a smaller one"),
            },
            suffix => match DType::from_rust_name(suffix) {
                Some(dtype) if dtype.is_float() => {
                    let sign = if negative { -1.0 } else { 1.0 };
                    self.typed(Literal::Float(sign * int_to_float(dtype, value.abs())), dtype, span)
                }
                Some(dtype) => self.typed_integer(value, dtype, span),
                None => self.error(
                    span,
                    format!("`{suffix}` isn't a number type of kernels"),
                    "use i8 … u64 or f32, f64",
                ),
            },
        }
    }

    fn negated_size<T>(&mut self, span: Span) -> Lowered<T> {
        self.error(span, "a usize can't be negated", "convert it first: `-(n as i32)`")
    }

    /// An integer that says its type, which is known all the same.
    fn typed_integer(&mut self, value: i128, dtype: DType, span: Span) -> Lowered<Val> {
        match is_integer(&dtype) && wrap_int(dtype, value) == value {
            true => Ok(Val::Int(Int::of(value, dtype.into()))),
            false => self.typed(Literal::Int(value), dtype, span),
        }
    }

    pub(super) fn typed(&mut self, value: Literal, dtype: DType, span: Span) -> Lowered<Val> {
        self.emit_one(Op::Constant { value, elem: dtype.into() }, &[], span, &[]).map(Val::Data)
    }

    fn path(&mut self, path: &ExprPath) -> Lowered<Val> {
        if let Some(ident) = path.path.get_ident() {
            let name = ident.to_string();
            return match self.scopes.find(&name) {
                Some(id) => match self.scopes.variables[id].value.clone() {
                    Val::Poison => Err(super::Reported),
                    Val::Unset => self.unassigned(&name, path.span()),
                    value => {
                        self.lend_optional(&value, path);
                        Ok(value)
                    }
                },
                None => match self.text.helpers.constant(&name).cloned() {
                    Some(item) => self.module_constant(&name, &item),
                    None => self.unknown_name(&name, path.span()),
                },
            };
        }
        let segments: Vec<String> =
            path.path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        let name = segments.join("::");
        if let Some(item) = self.text.helpers.constant(&name).cloned() {
            return self.module_constant(&name, &item);
        }
        match constant_of(&segments) {
            Some((Constant::Float(value), dtype)) => self.typed(Literal::Float(value), dtype, path.span()),
            Some((Constant::Int(value), dtype)) => self.typed(Literal::Int(value), dtype, path.span()),
            None => {
                if let Some(value) = self.constant_of_parameter(&segments, path.span())? {
                    return Ok(value);
                }
                self.error(path.span(), format!("`{name}` isn't known in a kernel"), &help_of_path(&segments))
            }
        }
    }

    pub(super) fn unassigned<T>(&mut self, name: &str, span: Span) -> Lowered<T> {
        self.error(span, format!("`{name}` has no value here"), "assign to it before it is used")
    }

    pub(super) fn unknown_name<T>(&mut self, name: &str, span: Span) -> Lowered<T> {
        let is_constant = name.chars().all(|c| c.is_uppercase() || c == '_' || c.is_ascii_digit());
        if name == "None" {
            return self.error(span, "`None` isn't a value of kernels", super::unknown::OF_OPTIONS);
        }
        if float_const(name).is_some() && name.len() > 1 {
            let help = format!("kernels don't follow `use` to constants: write `std::f32::consts::{name}`");
            return self.error(span, format!("`{name}` isn't defined in the kernel"), &help);
        }
        // A capital letter is a const parameter that was forgotten.
        let help = if let Some(known) = super::names::help_of_value(name).filter(|_| name.len() > 1) {
            known
        } else if is_constant {
            "a kernel sees constants, `const` and not `static`, that are written in it or in its own module with `#[tile_kernels]`, and none that `use` brings; or make it a const parameter: `const N: usize`"
        } else {
            "kernels see their arguments, their run-time sizes, const parameters and their own variables"
        };
        self.error(span, format!("`{name}` isn't defined in the kernel"), help)
    }

    fn unary_operator(&mut self, unary: &ExprUnary) -> Lowered<Val> {
        let span = unary.span();
        if let (UnOp::Neg(_), Expr::Lit(ExprLit { lit: Lit::Int(literal), .. })) = (&unary.op, &*unary.expr) {
            return self.integer_literal(literal, true, span);
        }
        if let (UnOp::Deref(_), Expr::Lit(ExprLit { lit: Lit::ByteStr(bytes), .. })) =
            (&unary.op, &*unary.expr)
        {
            return self.bytes(bytes, span);
        }
        let value = self.expression(&unary.expr)?;
        self.operated_on(unary, value)
    }

    /// What an operator of one operand gives of it.
    pub(super) fn operated_on(&mut self, unary: &ExprUnary, value: Val) -> Lowered<Val> {
        let span = unary.span();
        match (&unary.op, &value) {
            (UnOp::Neg(minus), Val::Float(float)) => {
                // A literal is written with its minus; a variable may be of a type parameter, which has no such operator.
                let place = float.place.map(|_| self.occurrence(span));
                if let (Some(shared), None) = (&float.shared, place) {
                    self.note_operator(minus.span(), "neg", Type::Scalar(shared.clone()));
                }
                let (value, single) = (-float.value, -float.single);
                Ok(Val::Float(Float { value, single, shared: float.shared.clone(), place }))
            }
            (UnOp::Neg(_), Val::Dim(_)) => self.negated_size(span),
            (UnOp::Neg(minus), _) => {
                if let Val::Int(int) = &value {
                    let mut negated = Int { value: -int.value, ..int.clone() };
                    if is_literal(bare(&unary.expr)) {
                        // It is written with its minus.
                        let here = self.occurrence(span);
                        negated.places.iter_mut().for_each(|at| *at = here);
                    } else {
                        // It may be of a type parameter, which has no such operator.
                        let shared = negated.shared.get_or_insert_with(|| self.elements.unknown()).clone();
                        self.note_literals(negated.places.drain(..), &shared);
                        self.note_operator(minus.span(), "neg", Type::Scalar(shared));
                    }
                    if let Some(negated) = self.known_result(negated, BinaryOp::Sub, span) {
                        return Ok(negated);
                    }
                }
                let negated = self.unary(UnaryOp::Neg, &value, span, unary.expr.span())?;
                if matches!(&negated, Val::Data(data) if self.shape(*data).is_none()) {
                    self.note_scalar(minus.span(), "neg", &negated);
                }
                Ok(negated)
            }
            (UnOp::Not(_), _) => self.unary(UnaryOp::Not, &value, span, unary.expr.span()),
            // What a reference is to. Rust tells references from values; here both are the value.
            (
                UnOp::Deref(_),
                Val::Int(_) | Val::Float(_) | Val::Dim(_) | Val::Data(_) | Val::List(_) | Val::Record(..),
            ) => Ok(value),
            _ => self.error(span, "nothing can be dereferenced in a kernel", "tiles and scalars are values"),
        }
    }

    fn list<'e>(&mut self, elements: impl Iterator<Item = &'e Expr>) -> Lowered<Vec<Val>> {
        let values = elements.map(|element| match self.expression(element)? {
            Val::Closure(_) => {
                let help = "bind it to a name of its own, and call it by that";
                self.error(element.span(), "a closure can't be a part of a tuple or an array", help)
            }
            value => Ok(value),
        });
        // Each is looked at, so that each mistake is reported.
        values.collect::<Vec<Lowered<Val>>>().into_iter().collect()
    }
}

/// What to write instead of a path that isn't known.
fn help_of_path(segments: &[String]) -> String {
    let [.., owner, name] = segments else { return String::new() };
    let is_type = |name: &str| name.starts_with(char::is_uppercase);
    let is_constant = name.chars().all(|c| c.is_uppercase() || c == '_' || c.is_ascii_digit());
    match owner.as_str() {
        "consts" if float_const(name).is_some() => {
            format!("kernels don't follow `use` to constants: write `std::f32::consts::{name}`")
        }
        owner if DType::from_rust_name(owner).is_some() || owner == "consts" || owner.len() == 1 => {
            "kernels know `f32::INFINITY`, `f32::MAX`, `i32::MAX` and their kin, and `std::f32::consts`; of a type parameter \
             `T` they know `T::ZERO`, `T::ONE`, `T::MIN`, `T::MAX`, `T::of(0.5)`, and of a `Float` also `T::INFINITY`, \
             `T::NEG_INFINITY`, `T::NAN`, `T::EPSILON` and `T::MIN_POSITIVE`"
                .to_owned()
        }
        "Rounding" => "a direction stands in the call: `x.cast_with::<f16>(Rounding::Up)`".to_owned(),
        owner if is_type(owner) && (!is_constant || name.len() == 1) => super::unknown::OF_ENUMS.to_owned(),
        _ => format!(
            "constants of other modules, and of types whose `impl` has no `#[tile_fn]`, aren't seen: write its value in the kernel, \
             or in its module with `#[tile_kernels]`, as a constant of its own, or make `{name}` a const parameter, or an argument, which a launch gives"
        ),
    }
}

enum Constant {
    Float(f64),
    Int(i128),
}

/// The number that a path of Rust's own names.
pub(crate) fn number_of_path(path: &syn::Path) -> Option<(Literal, DType)> {
    let segments: Vec<String> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
    constant_of(&segments).map(|(value, dtype)| match value {
        Constant::Float(value) => (Literal::Float(value), dtype),
        Constant::Int(value) => (Literal::Int(value), dtype),
    })
}

/// `f32::INFINITY`, `i32::MAX`, `std::f32::consts::LN_2` and their kin.
fn constant_of(segments: &[String]) -> Option<(Constant, DType)> {
    let (name, path) = segments.split_last()?;
    let (scope, consts) = match path {
        [.., scope, module] if module == "consts" => (scope, true),
        [.., scope] => (scope, false),
        [] => return None,
    };
    let dtype = DType::from_rust_name(scope)?;
    if dtype.is_float() {
        let value = if consts { float_const(name)? } else { float_limit(name, dtype)? };
        return Some((Constant::Float(value), dtype));
    }
    let bits = dtype.bits();
    if name == "BITS" && dtype.is_int() {
        return Some((Constant::Int(bits.into()), DType::U32));
    }
    let value = match (name.as_str(), dtype.is_signed()) {
        ("MAX", true) => (1i128 << (bits - 1)) - 1,
        ("MAX", false) => (1i128 << bits) - 1,
        ("MIN", true) => -(1i128 << (bits - 1)),
        ("MIN", false) => 0,
        _ => return None,
    };
    dtype.is_int().then_some((Constant::Int(value), dtype))
}

fn float_limit(name: &str, dtype: DType) -> Option<f64> {
    let format = dtype.float_format()?;
    Some(match name {
        "INFINITY" if format.has_infinity => f64::INFINITY,
        "NEG_INFINITY" if format.has_infinity => f64::NEG_INFINITY,
        "NAN" => f64::NAN,
        "MAX" => format.max(),
        "MIN" => -format.max(),
        "EPSILON" => format.epsilon(),
        "MIN_POSITIVE" => 2f64.powi(format.min_exponent()),
        _ => return None,
    })
}

fn float_const(name: &str) -> Option<f64> {
    use std::f64::consts;
    Some(match name {
        "PI" => consts::PI,
        "TAU" => consts::TAU,
        "E" => consts::E,
        "LN_2" => consts::LN_2,
        "LN_10" => consts::LN_10,
        "LOG2_E" => consts::LOG2_E,
        "LOG2_10" => consts::LOG2_10,
        "LOG10_E" => consts::LOG10_E,
        "LOG10_2" => consts::LOG10_2,
        "SQRT_2" => consts::SQRT_2,
        "FRAC_1_SQRT_2" => consts::FRAC_1_SQRT_2,
        "FRAC_2_SQRT_PI" => consts::FRAC_2_SQRT_PI,
        "FRAC_1_PI" => consts::FRAC_1_PI,
        "FRAC_2_PI" => consts::FRAC_2_PI,
        "FRAC_PI_2" => consts::FRAC_PI_2,
        "FRAC_PI_3" => consts::FRAC_PI_3,
        "FRAC_PI_4" => consts::FRAC_PI_4,
        "FRAC_PI_6" => consts::FRAC_PI_6,
        "FRAC_PI_8" => consts::FRAC_PI_8,
        _ => return None,
    })
}
