//! The table of reductions: what joins the elements of an axis, from what it starts, and which formats it takes.
//!
//! A reduction is joined by a leaf op that is associative and commutative up to rounding, so that targets may
//! join in any order; the evaluator, the CPU and the GPU emitters know nothing else of it.

use super::Literal;
use super::elementwise::{BinaryOp, Domain};
use crate::dtype::{Class, DType};

macro_rules! reductions {
    ($($variant:ident $name:literal $combine:ident $domain:ident, $doc:literal;)*) => {
        /// A reduction along one axis, which stays with extent 1.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum ReduceOp { $(#[doc = $doc] $variant,)* }

        impl ReduceOp {
            /// Every reduction, in table order.
            pub const ALL: &[ReduceOp] = &[$(ReduceOp::$variant,)*];

            /// The name in IR text, and of the method that a kernel calls.
            pub const fn name(self) -> &'static str {
                match self { $(ReduceOp::$variant => $name,)* }
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

reductions! {
    Sum "sum" Add Number, "Sum of the elements; integers wrap, floats may be summed in any order.";
    Prod "prod" Mul Number, "Product of the elements; integers wrap, floats may be multiplied in any order.";
    Max "max" Max Number, "Largest element; NaN elements are ignored unless all are NaN.";
    Min "min" Min Number, "Smallest element; NaN elements are ignored unless all are NaN.";
    Any "any" Or Bool, "Whether any element is true.";
    All "all" And Bool, "Whether all elements are true.";
}

impl ReduceOp {
    /// The reduction with this name.
    pub fn from_name(name: &str) -> Option<ReduceOp> {
        ReduceOp::ALL.iter().copied().find(|op| op.name() == name)
    }

    /// What changes nothing that it is joined to: −0 for float sums, NaN where NaN is ignored. Called only on
    /// formats that [`Self::domain`] accepts.
    pub fn identity(self, dtype: DType) -> Literal {
        let bits = dtype.bits();
        match (self, dtype.class()) {
            (ReduceOp::Sum, Class::Float) => Literal::Float(-0.0),
            (ReduceOp::Prod, Class::Float) => Literal::Float(1.0),
            (ReduceOp::Sum | ReduceOp::Any, _) => Literal::Int(0),
            (ReduceOp::Prod | ReduceOp::All, _) => Literal::Int(1),
            (ReduceOp::Max | ReduceOp::Min, Class::Float) => Literal::Float(f64::NAN),
            (ReduceOp::Max, Class::Signed) => Literal::Int(-(1 << (bits - 1))),
            (ReduceOp::Min, Class::Signed) => Literal::Int((1 << (bits - 1)) - 1),
            (ReduceOp::Max, _) => Literal::Int(0),
            (ReduceOp::Min, _) => Literal::Int((1 << bits) - 1),
        }
    }

    /// The format in which partial results are kept: sums and products of floats narrower than f32 in f32,
    /// rounded once at the end.
    pub fn partial(self, dtype: DType) -> DType {
        let rounds = matches!(self, ReduceOp::Sum | ReduceOp::Prod);
        if rounds && dtype.is_narrow_float() { DType::F32 } else { dtype }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
                        for x in [0.0, -0.0, 1.5, f64::INFINITY, f64::NEG_INFINITY] {
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
        }
    }
}
