//! The tables of leaf ops whose result is `bool`: comparisons of two elements, classifications of one float.

use super::elementwise::Domain;

macro_rules! predicates {
    ($($variant:ident $name:literal $symbol:literal $method:tt $domain:ident, $doc:literal;)*) => {
        /// A comparison of two elements of one format; the result is `bool`.
        /// Float comparisons are Rust's: every one but `ne` is false on NaN.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Predicate { $(#[doc = $doc] $variant,)* }

        impl Predicate {
            /// Every predicate, in table order.
            pub const ALL: &[Predicate] = &[$(Predicate::$variant,)*];

            /// The name in IR text, and of the method that a kernel calls.
            pub const fn name(self) -> &'static str {
                match self { $(Predicate::$variant => $name,)* }
            }

            /// The Rust operator.
            pub const fn symbol(self) -> &'static str {
                match self { $(Predicate::$variant => $symbol,)* }
            }

            /// The meaning, in a sentence.
            pub const fn doc(self) -> &'static str {
                match self { $(Predicate::$variant => $doc,)* }
            }

            /// The element classes that it accepts.
            pub const fn domain(self) -> Domain {
                match self { $(Predicate::$variant => Domain::$domain,)* }
            }

            /// The predicate with this name.
            pub fn from_name(name: &str) -> Option<Predicate> {
                Predicate::ALL.iter().copied().find(|p| p.name() == name)
            }

            /// The truth value; integers and floats alike.
            pub fn holds<T: PartialOrd>(self, a: T, b: T) -> bool {
                match self { $(Predicate::$variant => a $method b,)* }
            }
        }
    };
}

predicates! {
    Eq "eq" "==" == Any, "Equal.";
    Ne "ne" "!=" != Any, "Not equal; true on NaN.";
    Lt "lt" "<" < Number, "Less.";
    Le "le" "<=" <= Number, "Less or equal.";
    Gt "gt" ">" > Number, "Greater.";
    Ge "ge" ">=" >= Number, "Greater or equal.";
}

impl Predicate {
    /// The predicate that holds of `b, a` where this one holds of `a, b`.
    #[must_use]
    pub const fn swapped(self) -> Predicate {
        match self {
            Predicate::Eq | Predicate::Ne => self,
            Predicate::Lt => Predicate::Gt,
            Predicate::Le => Predicate::Ge,
            Predicate::Gt => Predicate::Lt,
            Predicate::Ge => Predicate::Le,
        }
    }

    /// The predicate that holds of integers where this one doesn't.
    #[must_use]
    pub const fn negated(self) -> Predicate {
        match self {
            Predicate::Eq => Predicate::Ne,
            Predicate::Ne => Predicate::Eq,
            Predicate::Lt => Predicate::Ge,
            Predicate::Le => Predicate::Gt,
            Predicate::Gt => Predicate::Le,
            Predicate::Ge => Predicate::Lt,
        }
    }
}

/// Gives the rows of [`ops::Classification`](crate::ops::Classification) to the macro of this name.
#[doc(hidden)]
#[macro_export]
macro_rules! classifications {
    ($with:ident) => {
        $with! {
            IsNan is_nan, f64::is_nan, "Whether it isn't a number.";
            IsInfinite is_infinite, f64::is_infinite, "Whether it is ∞ or −∞.";
            IsFinite is_finite, f64::is_finite, "Whether it is neither infinite nor NaN.";
        }
    };
}

macro_rules! classification {
    ($($variant:ident $name:ident, $float:expr, $doc:literal;)*) => {
        /// A question about one float; the result is `bool`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Classification { $(#[doc = $doc] $variant,)* }

        impl Classification {
            /// Every classification, in table order.
            pub const ALL: &[Classification] = &[$(Classification::$variant,)*];

            /// The name in IR text, and of the method that a kernel calls.
            pub const fn name(self) -> &'static str {
                match self { $(Classification::$variant => stringify!($name),)* }
            }

            /// The meaning, in a sentence.
            pub const fn doc(self) -> &'static str {
                match self { $(Classification::$variant => $doc,)* }
            }

            /// The classification with this name.
            pub fn from_name(name: &str) -> Option<Classification> {
                Classification::ALL.iter().copied().find(|c| c.name() == name)
            }

            /// The answer.
            pub fn holds(self, x: f64) -> bool {
                let answer: fn(f64) -> bool = match self { $(Classification::$variant => $float,)* };
                answer(x)
            }
        }
    };
}

classifications!(classification);

impl Classification {
    /// The element classes that it accepts.
    pub const fn domain(self) -> Domain {
        Domain::Float
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn swapped_and_negated_predicates_agree_with_numbers() {
        for &predicate in Predicate::ALL {
            for (a, b) in [(1, 2), (2, 2), (3, 2)] {
                assert_eq!(predicate.swapped().holds(b, a), predicate.holds(a, b));
                assert_eq!(predicate.negated().holds(a, b), !predicate.holds(a, b));
            }
        }
    }

    #[test]
    fn names_are_unique_within_a_table() {
        for p in Predicate::ALL {
            assert_eq!(Predicate::from_name(p.name()), Some(*p));
        }
        for c in Classification::ALL {
            assert_eq!(Classification::from_name(c.name()), Some(*c));
        }
    }

    #[test]
    fn exactly_one_class_of_nan_infinite_and_finite_holds() {
        for (x, class) in [
            (f64::NAN, Classification::IsNan),
            (f64::NEG_INFINITY, Classification::IsInfinite),
            (f64::INFINITY, Classification::IsInfinite),
            (-0.0, Classification::IsFinite),
            (f64::from_bits(1), Classification::IsFinite),
            (f64::MAX, Classification::IsFinite),
        ] {
            for &other in Classification::ALL {
                assert_eq!(other.holds(x), other == class, "{} of {x}", other.name());
            }
        }
    }
}
