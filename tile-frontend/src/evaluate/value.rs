//! Values of a `const fn`, and the types that they are declared to have.

use super::{Computed, Evaluator, error};
use crate::lower::named_format;
use crate::span::{Span, Spanned};
use syn::Type;
use tile_ir::DType;

#[derive(Clone, Debug)]
pub(crate) enum Value {
    /// An integer, and its type where something has said it.
    Int(i128, Option<DType>),
    Float(Float),
    Bool(bool),
    /// An array, a tuple, `()`.
    List(Vec<Value>),
}

/// A float. Until something says of which format it is, it is computed in both.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Float {
    pub(crate) double: f64,
    pub(crate) single: f32,
    /// f32 or f64.
    pub(crate) dtype: Option<DType>,
}

impl Float {
    /// The same as one of this format.
    pub(super) fn of(self, dtype: DType) -> Float {
        match dtype {
            DType::F32 => Float { double: self.single.into(), dtype: Some(dtype), ..self },
            _ => Float { single: self.double as f32, dtype: Some(dtype), ..self },
        }
    }

    /// Whether it is another number in another format, and nothing says yet which it has.
    pub(super) fn depends_on_format(self) -> bool {
        self.dtype.is_none() && f64::from(self.single).to_bits() != self.double.to_bits()
    }
}

impl Value {
    pub(super) fn unit() -> Value {
        Value::List(Vec::new())
    }

    /// The type of a number, where something has said it.
    pub(super) fn dtype(&self) -> Option<DType> {
        match self {
            Value::Int(_, dtype) => *dtype,
            Value::Float(float) => float.dtype,
            Value::Bool(_) => Some(DType::Bool),
            Value::List(_) => None,
        }
    }

    /// What it is, in a message.
    pub(super) fn kind(&self) -> String {
        let what = match self {
            Value::Int(..) => "an integer",
            Value::Float(_) => "a float",
            Value::Bool(_) => "a bool",
            Value::List(_) => "an array or tuple",
        };
        self.dtype().map_or(what, DType::rust_name).to_owned()
    }

    /// The value as one of this type, if it is a number that may be of it.
    pub(super) fn of(self, dtype: DType) -> Result<Value, String> {
        match self {
            Value::Bool(_) if dtype == DType::Bool => Ok(self),
            Value::Int(value, known) if dtype.is_int() && known.is_none_or(|known| known == dtype) => {
                let (least, greatest) = dtype.int_range();
                match (least..=greatest).contains(&value) {
                    true => Ok(Value::Int(value, Some(dtype))),
                    false => Err(format!("{value} doesn't fit {}", dtype.rust_name())),
                }
            }
            Value::Float(float) if is_float(dtype) && float.dtype.is_none_or(|known| known == dtype) => {
                Ok(Value::Float(float.of(dtype)))
            }
            other => Err(format!("this is {}, but {} is needed", other.kind(), dtype.rust_name())),
        }
    }
}

pub(super) fn is_float(dtype: DType) -> bool {
    matches!(dtype, DType::F32 | DType::F64)
}

impl Evaluator<'_> {
    /// A value where its type is written.
    pub(super) fn conform(&mut self, value: Value, ty: &Type, span: Span) -> Computed<Value> {
        match (ty, value) {
            (Type::Infer(_), value) => Ok(value),
            (Type::Paren(inner), value) => self.conform(value, &inner.elem, span),
            (Type::Group(inner), value) => self.conform(value, &inner.elem, span),
            (Type::Reference(inner), value) if inner.mutability.is_none() => {
                self.conform(value, &inner.elem, span)
            }
            (Type::Array(array), Value::List(values)) => self.each(values, |_| &array.elem, span),
            (Type::Slice(slice), Value::List(values)) => self.each(values, |_| &slice.elem, span),
            (Type::Tuple(tuple), Value::List(values)) if tuple.elems.len() == values.len() => {
                self.each(values, |at| &tuple.elems[at], span)
            }
            (ty, value) => {
                let Some(dtype) = number_type(ty) else {
                    let help = "use i8 … u64, usize, f32, f64 and bool, and arrays and tuples of these";
                    return error(
                        ty.span(),
                        "the macro computes no values of this type in a `const fn`",
                        help,
                    );
                };
                value.of(dtype).or_else(|message| error(span, message, HELP_OF_TYPES))
            }
        }
    }

    fn each<'t>(
        &mut self,
        values: Vec<Value>,
        ty: impl Fn(usize) -> &'t Type,
        span: Span,
    ) -> Computed<Value> {
        let values = values.into_iter().enumerate().map(|(at, value)| self.conform(value, ty(at), span));
        values.collect::<Computed<_>>().map(Value::List)
    }
}

/// What to do where the macro takes a number for one of another type than rustc.
pub(super) const HELP_OF_TYPES: &str = "the macro sees no type that rustc infers: write it where the number begins, `let mut sum: u64 = 0;` or `0u64`";

/// The type of Rust's numbers that is written here.
pub(super) fn number_type(ty: &Type) -> Option<DType> {
    let Type::Path(path) = ty else { return None };
    let dtype = named_format(&path.path)?;
    (dtype.is_int() || is_float(dtype) || dtype == DType::Bool).then_some(dtype)
}
