//! What is said of an op where it is declared, as data: the documentation of ops is written once.

/// A kind of op.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind {
    /// The name in IR text.
    pub name: &'static str,
    /// The lines of its documentation.
    pub doc: &'static [&'static str],
}

/// Declares an enum of ops, each with its documentation and, after `=`, its name in IR text.
macro_rules! documented {
    (
        $(#[$meta:meta])*
        pub enum $enum:ident {
            $(
                $(#[doc = $doc:literal])+
                $variant:ident $(($($tuple:tt)*))? $({ $($fields:tt)* })? = $name:literal,
            )*
        }
    ) => {
        $(#[$meta])*
        pub enum $enum {
            $($(#[doc = $doc])+ $variant $(($($tuple)*))? $({ $($fields)* })?,)*
        }

        impl $enum {
            /// Every kind, in order of declaration.
            pub const KINDS: &[$crate::ops::documented::Kind] = &[
                $($crate::ops::documented::Kind { name: $name, doc: &[$($doc),+] },)*
            ];

            /// The name of the kind in IR text.
            pub const fn kind(&self) -> &'static str {
                match self {
                    $($enum::$variant { .. } => $name,)*
                }
            }
        }
    };
}
pub(crate) use documented;
