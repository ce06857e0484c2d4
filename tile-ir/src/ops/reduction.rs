//! The table of reductions: what joins the elements of an axis, from what it starts, and which formats it takes.
//!
//! A reduction is joined by a leaf op that is associative and commutative up to rounding, so that targets may
//! join in any order; the evaluator, the CPU and the GPU emitters know nothing else of it.

use super::Literal;
use super::elementwise::{BinaryOp, Domain};
use crate::dtype::{Class, DType};

/// Gives the rows of [`ops::ReduceOp`](crate::ops::ReduceOp) to the macro of this name:
/// `Variant name by method joins BinaryOp of Domain, "meaning";`, with the name in IR text and the method that a kernel calls.
#[doc(hidden)]
#[macro_export]
macro_rules! reductions {
    ($with:ident) => {
        $with! {
            Sum sum by sum joins Add of Number, "Sum of the elements; integers wrap, floats may be summed in any order.";
            Prod prod by prod joins Mul of Number, "Product of the elements; integers wrap, floats may be multiplied in any order.";
            Max max by max joins Max of Number, "Largest element; NaN elements are ignored unless all are NaN.";
            Min min by min joins Min of Number, "Smallest element; NaN elements are ignored unless all are NaN.";
            Maximum maximum by reduce_maximum joins Maximum of Float, "Largest element; NaN if any is NaN.";
            Minimum minimum by reduce_minimum joins Minimum of Float, "Smallest element; NaN if any is NaN.";
            And and by reduce_and joins And of Int, "Bitwise and of the elements.";
            Or or by reduce_or joins Or of Int, "Bitwise or of the elements.";
            Xor xor by reduce_xor joins Xor of Int, "Bitwise exclusive or of the elements.";
            Any any by any joins Or of Bool, "Whether any element is true.";
            All all by all joins And of Bool, "Whether all elements are true.";
        }
    };
}

macro_rules! reduce_op {
    ($($variant:ident $name:ident by $method:ident joins $combine:ident of $domain:ident, $doc:literal;)*) => {
        /// A reduction along one axis, which stays with extent 1.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum ReduceOp { $(#[doc = $doc] $variant,)* }

        impl ReduceOp {
            /// Every reduction, in table order.
            pub const ALL: &[ReduceOp] = &[$(ReduceOp::$variant,)*];

            /// The name in IR text.
            pub const fn name(self) -> &'static str {
                match self { $(ReduceOp::$variant => stringify!($name),)* }
            }

            /// The name of the method that a kernel calls.
            pub const fn method(self) -> &'static str {
                match self { $(ReduceOp::$variant => stringify!($method),)* }
            }

            /// The op that joins two partial results.
            pub const fn combine(self) -> BinaryOp {
                match self { $(ReduceOp::$variant => BinaryOp::$combine,)* }
            }

            /// The element classes that it accepts.
            pub const fn domain(self) -> Domain {
                match self { $(ReduceOp::$variant => Domain::$domain,)* }
            }

            /// The meaning, in a sentence.
            pub const fn doc(self) -> &'static str {
                match self { $(ReduceOp::$variant => $doc,)* }
            }
        }
    };
}

reductions!(reduce_op);

impl ReduceOp {
    /// The reduction with this name.
    pub fn from_name(name: &str) -> Option<ReduceOp> {
        ReduceOp::ALL.iter().copied().find(|op| op.name() == name)
    }

    /// The reduction that a kernel calls by this method.
    pub fn from_method(name: &str) -> Option<ReduceOp> {
        ReduceOp::ALL.iter().copied().find(|op| op.method() == name)
    }

    /// The name of the method that gives the position of what the reduction finds; `None` for those that make a new value.
    pub const fn position_method(self) -> Option<&'static str> {
        match self {
            ReduceOp::Max => Some("argmax"),
            ReduceOp::Min => Some("argmin"),
            ReduceOp::Maximum => Some("argmaximum"),
            ReduceOp::Minimum => Some("argminimum"),
            _ => None,
        }
    }

    /// The reduction whose position a kernel asks for by this method.
    pub fn from_position_method(name: &str) -> Option<ReduceOp> {
        ReduceOp::ALL.iter().copied().find(|op| op.position_method() == Some(name))
    }

    /// What changes nothing that it is joined to: −0 for float sums, NaN where NaN is ignored. Called only on
    /// formats that [`Self::domain`] accepts.
    pub fn identity(self, dtype: DType) -> Literal {
        match (self, dtype.class()) {
            (ReduceOp::Sum, Class::Float) => Literal::Float(-0.0),
            (ReduceOp::Prod, Class::Float) => Literal::Float(1.0),
            (ReduceOp::Maximum, _) => bounds(dtype).0,
            (ReduceOp::Minimum, _) => bounds(dtype).1,
            (ReduceOp::Max | ReduceOp::Min, Class::Float) => Literal::Float(f64::NAN),
            (ReduceOp::Sum | ReduceOp::Any | ReduceOp::Or | ReduceOp::Xor, _) => Literal::Int(0),
            (ReduceOp::Prod | ReduceOp::All, _) => Literal::Int(1),
            (ReduceOp::Max, _) => bounds(dtype).0,
            (ReduceOp::Min, _) => bounds(dtype).1,
            (ReduceOp::And, Class::Signed) => Literal::Int(-1),
            (ReduceOp::And, _) => Literal::Int(dtype.int_range().1),
        }
    }

    /// The format in which partial results are kept: sums and products of floats narrower than f32 in f32,
    /// rounded once at the end.
    pub fn partial(self, dtype: DType) -> DType {
        let rounds = matches!(self, ReduceOp::Sum | ReduceOp::Prod);
        if rounds && dtype.is_narrow_float() { DType::F32 } else { dtype }
    }
}

/// What no element of a format is below, and what none is above: infinities where it has them.
pub(super) fn bounds(dtype: DType) -> (Literal, Literal) {
    match dtype.float_format() {
        Some(format) => {
            let most = if format.has_infinity { f64::INFINITY } else { format.max() };
            (Literal::Float(-most), Literal::Float(most))
        }
        None => {
            let (least, most) = dtype.int_range();
            (Literal::Int(least), Literal::Int(most))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::array::round_float;

    #[test]
    fn an_identity_changes_nothing() {
        for &op in ReduceOp::ALL {
            let combine = op.combine();
            for &dtype in DType::ALL.iter().filter(|dtype| dtype.is_element() && op.domain().accepts(**dtype))
            {
                match op.identity(dtype) {
                    Literal::Int(identity) => {
                        for x in [0, 1] {
                            assert_eq!(combine.int()(identity, x, dtype), x, "{op:?} of {dtype}");
                        }
                    }
                    Literal::Float(identity) => {
                        let values = [0.0, -0.0, 1.5, f64::INFINITY, f64::NEG_INFINITY];
                        let values = values.map(|x| round_float(dtype, x)).into_iter();
                        for x in values.filter(|x| !x.is_nan()) {
                            assert_eq!(
                                combine.float()(identity, x).to_bits(),
                                x.to_bits(),
                                "{op:?} of {dtype}"
                            );
                        }
                    }
                }
            }
            assert_eq!(ReduceOp::from_name(op.name()), Some(op));
            assert_eq!(ReduceOp::from_method(op.method()), Some(op));
        }
    }
}
