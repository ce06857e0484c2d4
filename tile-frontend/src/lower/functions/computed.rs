//! Calls of `const fn`s in constants: what they give is known when the macro expands.

use crate::evaluate::{self, Float, Value};
use crate::lower::known::known;
use crate::lower::{Lowered, Lowering};
use crate::rewrite::place;
use crate::span::{Span, Spanned};
use crate::value::{self, Int, Val};
use quote::ToTokens;
use std::rc::Rc;
use syn::{ExprCall, ItemFn, Path};
use tile_ir::ops::Literal;
use tile_ir::{DType, Dim, Elem, Op};

impl Lowering {
    pub(in crate::lower) fn call_const_function(
        &mut self,
        function: &ItemFn,
        path: &Path,
        call: &ExprCall,
    ) -> Lowered<Val> {
        let (name, span) = (&function.sig.ident, call.span());
        if !self.is_constant {
            let help = format!(
                "call it in a constant, `const {{ {name}(…) }}`; a function that a kernel calls when it runs has `#[tile_fn]` and no `const`"
            );
            return self.error(
                call.func.span(),
                format!("`{name}` is a `const fn`, which constants call"),
                &help,
            );
        }
        let mut arguments = Vec::new();
        for argument in &call.args {
            let value = self.expression(argument)?;
            match self.known_value(&value) {
                Some(value) => arguments.push((value, argument.span())),
                None => {
                    let message = format!(
                        "an argument of the `const fn` `{name}` must be known when the macro expands, and this isn't"
                    );
                    return self.error(argument.span(), message, "give it literals and constants of these");
                }
            }
        }
        // A table is named often, and computed once.
        let values: Vec<&Value> = arguments.iter().map(|(value, _)| value).collect();
        let at = (name.span().file(), place(name.span().start()));
        let key = (at, format!("{}{values:?}", path.to_token_stream()));
        if let Some(value) = self.computed.get(&key) {
            return self.computed_value(value.clone(), span);
        }
        let helpers = Rc::clone(&self.text.helpers);
        match evaluate::call(function, path, arguments, &helpers) {
            Ok(value) => {
                self.computed.insert(key, value.clone());
                self.computed_value(value, span)
            }
            Err(refused) => self.report(refused.label(span, format!("`{name}` is called here"))),
        }
    }

    /// A number that is known, as a `const fn` is given it.
    fn known_value(&self, value: &Val) -> Option<Value> {
        match value {
            Val::Int(int) => Some(Value::Int(
                int.value,
                int.shared.as_ref().and_then(|elem| self.elements.resolve(elem).known()),
            )),
            Val::Dim(_) => known(value).map(|value| Value::Int(value, Some(DType::Index))),
            Val::Float(float) => {
                let dtype = float.shared.as_ref().and_then(|elem| self.elements.resolve(elem).known());
                Some(Value::Float(Float { double: float.value, single: float.single, dtype }))
            }
            Val::Data(value) => {
                let Op::Constant { value, elem: Elem::Known(dtype) } = self.kernel.definition(*value)?.op
                else {
                    return None;
                };
                match value {
                    Literal::Int(truth) if dtype == DType::Bool => Some(Value::Bool(truth != 0)),
                    Literal::Int(value) => Some(Value::Int(value, Some(dtype))),
                    Literal::Float(value) => {
                        Some(Value::Float(Float { double: value, single: value as f32, dtype: Some(dtype) }))
                    }
                }
            }
            Val::List(values) => {
                values.iter().map(|value| self.known_value(value)).collect::<Option<_>>().map(Value::List)
            }
            _ => None,
        }
    }

    /// What a `const fn` gives, as a constant.
    fn computed_value(&mut self, value: Value, span: Span) -> Lowered<Val> {
        Ok(match value {
            Value::Int(value, Some(DType::Index)) => match i64::try_from(value) {
                Ok(value) => Val::Dim(Dim::from(value)),
                Err(_) => {
                    return self.error(
                        span,
                        format!("{value} doesn't fit an extent"),
                        "use a smaller number",
                    );
                }
            },
            Value::Int(value, Some(dtype)) => Val::Int(Int::of(value, dtype.into())),
            Value::Int(value, None) => Val::int(value),
            Value::Float(Float { double, single, dtype }) => {
                Val::Float(value::Float { value: double, single, shared: dtype.map(Elem::from), place: None })
            }
            Value::Bool(holds) => return self.typed(Literal::Int(holds.into()), DType::Bool, span),
            Value::List(values) if values.is_empty() => Val::Unit,
            Value::List(values) => {
                let values = values.into_iter().map(|value| self.computed_value(value, span));
                Val::List(values.collect::<Lowered<_>>()?)
            }
        })
    }
}
