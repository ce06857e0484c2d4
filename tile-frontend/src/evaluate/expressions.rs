//! Expressions of a `const fn`: one arm per kind of syntax.

use super::statements::name_of;
use super::value::number_type;
use super::{Computed, Evaluator, Exit, Float, OF_FOR, Value, error};
use crate::assigned::is_compound_assignment;
use crate::helpers::path_text;
use crate::lower::number_of_path;
use crate::rewrite::{bare, is_literal};
use crate::span::{Span, Spanned};
use crate::value::has_a_format;
use syn::{BinOp, Expr, ExprCall, ExprIndex, ExprPath, Lit, LitFloat, LitInt, Member};
use tile_ir::DType;
use tile_ir::array::int_to_float;
use tile_ir::ops::Literal;

impl Evaluator<'_> {
    pub(super) fn expression(&mut self, expression: &Expr) -> Computed<Value> {
        self.step(|| expression.span())?;
        match expression {
            Expr::Lit(literal) => literal_value(&literal.lit),
            Expr::Path(path) => self.path(path),
            Expr::Paren(inner) => self.expression(&inner.expr),
            Expr::Group(inner) => self.expression(&inner.expr),
            Expr::Block(block) => match &block.label {
                Some(label) => self.labelled_block(label, &block.block),
                None => self.block(&block.block),
            },
            Expr::Const(block) => self.block(&block.block),
            Expr::Unary(unary) => {
                let value = self.expression(&unary.expr)?;
                self.unary(&unary.op, value, unary.span())
            }
            Expr::Binary(binary) if is_compound_assignment(&binary.op) => {
                // Rust computes the right side of numbers first.
                let right = self.expression(&binary.right)?;
                let left = self.expression(&binary.left)?;
                let value = self.binary(&binary.op, left, right, binary.span())?;
                self.assign(&binary.left, value)
            }
            Expr::Binary(binary) => self.operator(binary),
            Expr::Assign(assign) => {
                let value = self.expression(&assign.right)?;
                self.assign(&assign.left, value)
            }
            Expr::Cast(cast) => {
                let value = self.expression(&cast.expr)?;
                // A literal is of the format that it is converted to.
                if let (Value::Float(float), false) = (&value, is_literal(bare(&cast.expr)))
                    && float.depends_on_format()
                {
                    return error(cast.expr.span(), "of which format is this?", super::value::HELP_OF_TYPES);
                }
                match number_type(&cast.ty) {
                    Some(dtype) => self.cast(value, dtype, cast.span()),
                    None => error(
                        cast.ty.span(),
                        "a `const fn` converts to numbers",
                        "use i8 … u64, usize, f32 and f64",
                    ),
                }
            }
            Expr::Array(array) => self.list(array.elems.iter()),
            Expr::Tuple(tuple) => self.list(tuple.elems.iter()),
            Expr::Repeat(repeat) => {
                let value = self.expression(&repeat.expr)?;
                let count = self.expression(&repeat.len)?;
                let count = position(&count).filter(|&count| count <= 1 << 20);
                match count {
                    Some(count) => Ok(Value::List(vec![value; count])),
                    None => {
                        error(repeat.len.span(), "this is no length of an array", "write a number up to 2²⁰")
                    }
                }
            }
            Expr::Field(_) | Expr::Index(_) => self.part(expression),
            Expr::Call(call) => self.called(call),
            Expr::MethodCall(call) => {
                let receiver = self.expression(&call.receiver)?;
                let arguments = self.arguments(call.args.iter())?;
                self.method(&call.method, receiver, &arguments)
            }
            Expr::If(branch) => self.if_else(branch),
            Expr::Match(expression) => self.match_arms(expression),
            Expr::While(repeated) => self.while_loop(repeated),
            Expr::Loop(endless) => self.endless_loop(endless),
            Expr::Break(exit) => {
                let value = self.given(exit.expr.as_deref())?;
                Err(Exit::Break(exit.label.as_ref().map(name_of), value))
            }
            Expr::Continue(exit) => Err(Exit::Continue(exit.label.as_ref().map(name_of))),
            Expr::Return(exit) => {
                let value = self.given(exit.expr.as_deref())?;
                Err(Exit::Return(value))
            }
            Expr::Reference(reference) if reference.mutability.is_none() => self.expression(&reference.expr),
            Expr::Macro(called) => self.called_macro(&called.mac),
            Expr::ForLoop(repeated) => {
                error(repeated.for_token.span(), "Rust runs no `for` in a `const fn`", OF_FOR)
            }
            other => {
                let help = "use arithmetic, arrays, `if`, `match`, `while` and `loop`";
                error(other.span(), "the macro doesn't compute this expression in a `const fn`", help)
            }
        }
    }

    fn list<'e>(&mut self, values: impl Iterator<Item = &'e Expr>) -> Computed<Value> {
        values.map(|value| self.expression(value)).collect::<Computed<_>>().map(Value::List)
    }

    fn arguments<'e>(&mut self, values: impl Iterator<Item = &'e Expr>) -> Computed<Vec<(Value, Span)>> {
        values.map(|value| Ok((self.expression(value)?, value.span()))).collect()
    }

    fn path(&mut self, path: &ExprPath) -> Computed<Value> {
        let (name, span) = (path_text(&path.path), path.span());
        if let Some(known) = self.variables.iter().rev().find(|known| known.name == name) {
            return Ok(known.value.clone());
        }
        if let Some(value) = self.constant(&name, span)? {
            return Ok(value);
        }
        match number_of_path(&path.path) {
            Some((Literal::Int(value), dtype)) => Ok(Value::Int(value, Some(dtype))),
            Some((Literal::Float(value), dtype @ (DType::F32 | DType::F64))) => {
                Ok(Value::Float(Float { double: value, single: value as f32, dtype: None }.of(dtype)))
            }
            _ => {
                let help = "a `const fn` in a kernel's constant sees its variables and the constants of its `#[tile_kernels]` module";
                error(span, format!("`{name}` isn't known here"), help)
            }
        }
    }

    fn operator(&mut self, binary: &syn::ExprBinary) -> Computed<Value> {
        let decides = match binary.op {
            BinOp::And(_) => Some(false),
            BinOp::Or(_) => Some(true),
            _ => None,
        };
        if let Some(decides) = decides {
            let holds = self.condition(&binary.left)?;
            let holds = if holds == decides { holds } else { self.condition(&binary.right)? };
            return Ok(Value::Bool(holds));
        }
        let left = self.expression(&binary.left)?;
        let right = self.expression(&binary.right)?;
        self.binary(&binary.op, left, right, binary.span())
    }

    /// `f(x)`, `u32::pow(x, 2)`, `f32::from_bits(x)`.
    fn called(&mut self, call: &ExprCall) -> Computed<Value> {
        let Expr::Path(function) = &*call.func else {
            return error(
                call.func.span(),
                "a `const fn` calls functions by their names",
                "write the name of one",
            );
        };
        let mut arguments = self.arguments(call.args.iter())?;
        let path = &function.path;
        let mut names = path.segments.iter().rev();
        let (name, owner) = (names.next(), names.next());
        let owner = owner.and_then(|owner| DType::from_rust_name(&owner.ident.to_string()));
        let (Some(name), Some(owner)) = (name, owner) else { return self.call_path(path, arguments) };
        if arguments.is_empty() {
            return error(path.span(), "this has no value here", "write the number");
        }
        let (receiver, span) = arguments.remove(0);
        if name.ident == "from_bits" {
            return self.of_bits(owner, receiver, span);
        }
        match receiver.of(owner) {
            Ok(receiver) => self.method(&name.ident, receiver, &arguments),
            Err(message) => error(span, message, super::value::HELP_OF_TYPES),
        }
    }

    /// The value of a part of an array or tuple.
    fn part(&mut self, place: &Expr) -> Computed<Value> {
        // A variable isn't copied for a part of it.
        if let Some(parts) = self.place(place)? {
            return Ok(parts.clone());
        }
        let (base, at, span) = match place {
            Expr::Field(field) => (&field.base, field_number(&field.member), field.span()),
            Expr::Index(index) => (&index.expr, Some(self.index(index)?), index.index.span()),
            other => return self.expression(other),
        };
        match (self.expression(base)?, at) {
            (Value::List(values), Some(at)) if at < values.len() => Ok(values[at].clone()),
            _ => error(span, "there is no such part", "they are counted from 0"),
        }
    }

    fn index(&mut self, index: &ExprIndex) -> Computed<usize> {
        let at = self.expression(&index.index)?;
        match position(&at) {
            Some(at) => Ok(at),
            None => error(
                index.index.span(),
                format!("an index is a usize, and this is {}", at.kind()),
                "convert it: `i as usize`",
            ),
        }
    }

    /// The part of a variable that is named, if it is a variable's.
    fn place(&mut self, place: &Expr) -> Computed<Option<&mut Value>> {
        match place {
            Expr::Path(path) => {
                let name = path_text(&path.path);
                let variable = self.variables.iter_mut().rev().find(|known| known.name == name);
                Ok(variable.map(|variable| &mut variable.value))
            }
            Expr::Paren(inner) => self.place(&inner.expr),
            Expr::Group(inner) => self.place(&inner.expr),
            Expr::Field(field) => {
                let at = field_number(&field.member);
                self.part_of_place(&field.base, at, field.span())
            }
            Expr::Index(index) => {
                let at = self.index(index)?;
                self.part_of_place(&index.expr, Some(at), index.index.span())
            }
            _ => Ok(None),
        }
    }

    fn part_of_place(&mut self, base: &Expr, at: Option<usize>, span: Span) -> Computed<Option<&mut Value>> {
        let Some(whole) = self.place(base)? else { return Ok(None) };
        let Value::List(values) = whole else {
            return error(span, format!("{} has no parts", whole.kind()), "arrays and tuples have");
        };
        let count = values.len();
        match at.and_then(|at| values.get_mut(at)) {
            Some(part) => Ok(Some(part)),
            None => {
                error(span, format!("there is no such part: there are {count}"), "they are counted from 0")
            }
        }
    }

    fn assign(&mut self, left: &Expr, value: Value) -> Computed<Value> {
        if let Expr::Infer(_) = left {
            return Ok(Value::unit());
        }
        let span = left.span();
        match self.place(left)? {
            Some(place) => {
                let value = match place.dtype() {
                    Some(dtype) => value
                        .of(dtype)
                        .or_else(|message| error(span, message, super::value::HELP_OF_TYPES))?,
                    None => value,
                };
                *place = value;
                Ok(Value::unit())
            }
            None => error(span, "only variables and their parts are assigned to", "write `x = …`"),
        }
    }
}

/// A number as an index or a length.
fn position(value: &Value) -> Option<usize> {
    match value {
        Value::Int(at, None | Some(DType::Index)) => usize::try_from(*at).ok(),
        _ => None,
    }
}

fn field_number(member: &Member) -> Option<usize> {
    match member {
        Member::Unnamed(number) => usize::try_from(number.index).ok(),
        Member::Named(_) => None,
    }
}

fn literal_value(literal: &Lit) -> Computed<Value> {
    match literal {
        Lit::Int(literal) => integer(literal),
        Lit::Float(literal) => float(literal),
        Lit::Bool(literal) => Ok(Value::Bool(literal.value)),
        Lit::Byte(literal) => Ok(Value::Int(literal.value().into(), Some(DType::U8))),
        // A reference to an array is the array here.
        Lit::ByteStr(literal) => {
            let bytes = literal.value().into_iter().map(|byte| Value::Int(byte.into(), Some(DType::U8)));
            Ok(Value::List(bytes.collect()))
        }
        other => error(
            other.span(),
            "a `const fn` of a kernel's constant computes with numbers and bools",
            "write a number; `b'a'` is one of u8",
        ),
    }
}

fn integer(literal: &LitInt) -> Computed<Value> {
    let Some(value) = literal.base10_parse::<i128>().ok().filter(|&value| has_a_format(value)) else {
        return error(literal.span(), "the number is too large", "no format holds it");
    };
    match DType::from_rust_name(literal.suffix()) {
        Some(dtype @ (DType::F32 | DType::F64)) => {
            let value = int_to_float(dtype, value);
            Ok(Value::Float(Float { double: value, single: value as f32, dtype: Some(dtype) }))
        }
        dtype if dtype.is_some() != literal.suffix().is_empty() => Ok(Value::Int(value, dtype)),
        _ => error(literal.span(), "this isn't a number type of kernels", "use i8 … u64, usize, f32, f64"),
    }
}

fn float(literal: &LitFloat) -> Computed<Value> {
    let (Ok(double), Ok(single)) = (literal.base10_parse::<f64>(), literal.base10_parse::<f32>()) else {
        return error(literal.span(), "this isn't a number", "write it as in `1.5e-3`");
    };
    let open = Float { double, single, dtype: None };
    Ok(Value::Float(DType::from_rust_name(literal.suffix()).map_or(open, |dtype| open.of(dtype))))
}
