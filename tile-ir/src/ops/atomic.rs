//! Atomic operations on elements of a tensor: what they do, in which order others see it, and who the others are.

use super::{BinaryOp, Literal};
use crate::array::Array;
use crate::dtype::DType;
use crate::round::encode;

macro_rules! words {
    ($(#[$doc:meta])* $ty:ident { $($(#[$variant_doc:meta])* $variant:ident $name:literal $rust:literal;)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $ty {
            $($(#[$variant_doc])* $variant,)*
        }

        impl $ty {
            /// Every one.
            pub const ALL: &'static [$ty] = &[$($ty::$variant),*];

            /// The word in IR text.
            pub fn name(self) -> &'static str {
                match self { $($ty::$variant => $name),* }
            }

            /// What a kernel's source calls it.
            pub fn rust_name(self) -> &'static str {
                match self { $($ty::$variant => $rust),* }
            }

            /// The one with this word in IR text.
            pub fn from_name(name: &str) -> Option<$ty> {
                Self::ALL.iter().copied().find(|found| found.name() == name)
            }

            /// The one that a kernel's source calls so.
            pub fn from_rust_name(name: &str) -> Option<$ty> {
                Self::ALL.iter().copied().find(|found| found.rust_name() == name)
            }
        }
    };
}

words! {
    /// What is done to an element at once.
    AtomicKind {
        /// The value is added; integers wrap.
        Add "add" "fetch_add";
        /// The value is subtracted; integers wrap.
        Sub "sub" "fetch_sub";
        /// The smaller stays; NaN is ignored.
        Min "min" "fetch_min";
        /// The larger stays; NaN is ignored.
        Max "max" "fetch_max";
        /// Bitwise.
        And "and" "fetch_and";
        /// Bitwise.
        Or "or" "fetch_or";
        /// Bitwise.
        Xor "xor" "fetch_xor";
        /// The value replaces the element.
        Swap "swap" "swap";
        /// The second value replaces the element if its bits are those of the first.
        CompareExchange "compare_exchange" "compare_exchange";
        /// It is read.
        Load "load" "load";
        /// The value replaces the element, and nothing is read.
        Store "store" "store";
    }
}

words! {
    /// In which order other threads see the operation and what stands around it.
    Order {
        /// No order.
        Relaxed "relaxed" "Relaxed";
        /// What stands after it comes after it.
        Acquire "acquire" "Acquire";
        /// What stands before it comes before it.
        Release "release" "Release";
        /// Both.
        AcqRel "acq_rel" "AcqRel";
    }
}

words! {
    /// Between whom the operation is atomic and ordered.
    Scope {
        /// The threads of a block.
        Block "block" "BlockScope";
        /// The blocks of a launch.
        Device "device" "DeviceScope";
        /// Also other devices and the host.
        System "system" "SystemScope";
    }
}

/// An atomic operation with its attributes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Atomic {
    /// What is done.
    pub kind: AtomicKind,
    /// In which order others see it.
    pub order: Order,
    /// Who the others are.
    pub scope: Scope,
    /// Whether the last operand is a mask.
    pub masked: bool,
}

impl Order {
    /// Whether what stands before the operation comes before it.
    pub fn releases(self) -> bool {
        matches!(self, Order::Release | Order::AcqRel)
    }

    /// Whether what stands after the operation comes after it.
    pub fn acquires(self) -> bool {
        matches!(self, Order::Acquire | Order::AcqRel)
    }
}

impl AtomicKind {
    /// How many values it takes.
    pub fn values(self) -> usize {
        match self {
            AtomicKind::Load => 0,
            AtomicKind::CompareExchange => 2,
            _ => 1,
        }
    }

    /// Whether it gives the elements that were there.
    pub fn has_result(self) -> bool {
        self != AtomicKind::Store
    }

    /// Whether it is one of reading and writing, which has the order.
    pub fn accepts(self, order: Order) -> bool {
        match self {
            AtomicKind::Load => !order.releases(),
            AtomicKind::Store => !order.acquires(),
            _ => true,
        }
    }

    /// The op that joins an element with the value, where one does.
    pub fn binary(self) -> Option<BinaryOp> {
        Some(match self {
            AtomicKind::Add => BinaryOp::Add,
            AtomicKind::Sub => BinaryOp::Sub,
            AtomicKind::Min => BinaryOp::Min,
            AtomicKind::Max => BinaryOp::Max,
            AtomicKind::And => BinaryOp::And,
            AtomicKind::Or => BinaryOp::Or,
            AtomicKind::Xor => BinaryOp::Xor,
            _ => return None,
        })
    }

    /// Whether elements of a format can be operated on so.
    pub fn supports(self, dtype: DType) -> bool {
        match dtype {
            DType::I32 | DType::U32 | DType::I64 | DType::U64 => true,
            DType::F32 | DType::F64 => {
                !matches!(self, AtomicKind::Sub | AtomicKind::And | AtomicKind::Or | AtomicKind::Xor)
            }
            DType::F16 | DType::BF16 => {
                matches!(self, AtomicKind::Add | AtomicKind::Load | AtomicKind::Store)
            }
            _ => dtype.is_element() && matches!(self, AtomicKind::Load | AtomicKind::Store),
        }
    }

    /// What can be done to elements of a format, as a sentence.
    pub fn summary(dtype: DType) -> String {
        let kinds = AtomicKind::ALL.iter().filter(|kind| kind.supports(dtype));
        let names: Vec<String> = kinds.map(|kind| format!("`{}`", kind.rust_name())).collect();
        let (last, others) = names.split_last().expect("elements are loaded and stored");
        format!("{dtype} has {} and {last}; i32, u32, i64 and u64 have every operation", others.join(", "))
    }

    /// The element after the operation.
    ///
    /// # Panics
    /// If there are fewer than [`AtomicKind::values`].
    pub fn update(self, dtype: DType, old: Literal, values: &[Literal]) -> Literal {
        if let Some(op) = self.binary() {
            return Array::scalar(dtype, old).binary(op, &Array::scalar(dtype, values[0])).get(0);
        }
        match self {
            AtomicKind::Load => old,
            AtomicKind::CompareExchange if bits(dtype, old) != bits(dtype, values[0]) => old,
            AtomicKind::CompareExchange => values[1],
            _ => values[0],
        }
    }
}

/// A number as it lies in memory.
fn bits(dtype: DType, value: Literal) -> i128 {
    match value {
        Literal::Int(value) => value,
        Literal::Float(value) => i128::from(encode(dtype, value)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comparisons_are_of_bits() {
        let exchange = |old: f64, expected: f64| {
            let values = [Literal::Float(expected), Literal::Float(7.0)];
            AtomicKind::CompareExchange.update(DType::F32, Literal::Float(old), &values)
        };
        assert_eq!(exchange(f64::NAN, f64::NAN), Literal::Float(7.0));
        assert_eq!(
            exchange(f64::from(f32::NAN), f64::from_bits(0x7ff8_0000_2000_0000)),
            Literal::Float(f64::NAN)
        );
        assert_eq!(exchange(-0.0, -0.0), Literal::Float(7.0));
        assert_eq!(exchange(-0.0, 0.0), Literal::Float(-0.0));
    }

    #[test]
    fn updates_wrap_and_ignore_nan() {
        let int = |kind: AtomicKind, dtype, old, value| {
            kind.update(dtype, Literal::Int(old), &[Literal::Int(value)])
        };
        assert_eq!(
            int(AtomicKind::Add, DType::I32, i128::from(i32::MAX), 1),
            Literal::Int(i128::from(i32::MIN))
        );
        assert_eq!(int(AtomicKind::Sub, DType::U32, 0, 1), Literal::Int(i128::from(u32::MAX)));
        assert_eq!(int(AtomicKind::Xor, DType::U64, 6, 3), Literal::Int(5));
        let max =
            |old, value| AtomicKind::Max.update(DType::F64, Literal::Float(old), &[Literal::Float(value)]);
        assert_eq!((max(f64::NAN, 2.0), max(2.0, f64::NAN)), (Literal::Float(2.0), Literal::Float(2.0)));
    }
}
