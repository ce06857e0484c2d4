//! Variants of an instance: code that relies on more of its run-time sizes than the kernel asks for. A launch takes
//! the first one whose demands its sizes meet.
//!
//! A demand is a [`Condition`] like those that users write, so that every analysis makes use of it: rows of a tensor
//! that begin at a multiple of 16 elements are read in wide vectors, and masks that then hide nothing go.

use crate::abi::{Argument, Bound, KernelAbi};
use crate::condition::Condition;
use crate::dim::Dim;
use crate::kernel::Kernel;
use crate::loc::Loc;
use crate::ops::Predicate;
use crate::specialize::Instance;
use std::collections::BTreeSet;

/// What sizes of rows are multiples of, in elements: 16 bytes of the smallest elements, so that vectors of any are
/// aligned.
const MULTIPLE: u64 = 16;

/// What code relies on besides what the kernel says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Variant {
    /// Every run-time size along which the elements of a tensor's rows lie is a multiple of 16.
    Aligned,
    /// Nothing.
    General,
}

impl Variant {
    /// Every variant, those that rely on more first.
    pub const ALL: [Variant; 2] = [Variant::Aligned, Variant::General];

    /// Its name in files.
    pub const fn name(self) -> &'static str {
        match self {
            Variant::Aligned => "aligned",
            Variant::General => "general",
        }
    }

    /// The instance as this variant; `None` where a variant that relies on less is the same.
    pub fn of(self, instance: &Instance) -> Option<Instance> {
        let abi = KernelAbi::of(instance);
        let sizes: BTreeSet<&str> = self.sizes(&abi).collect();
        match self {
            Variant::General => Some(instance.clone()),
            Variant::Aligned if sizes.is_empty() => None,
            Variant::Aligned => Some(instance.clone().rewrite(self.name(), |kernel| demand(kernel, &sizes))),
        }
    }

    /// Whether the sizes of a launch meet its demands.
    pub fn fits(self, abi: &KernelAbi, bound: &Bound) -> bool {
        let mut values = abi.sizes.iter().zip(&bound.sizes);
        values.all(|(name, value)| value.is_multiple_of(MULTIPLE) || self.sizes(abi).all(|size| size != name))
    }

    /// The sizes that it makes demands of, some more than once: of every tensor those of all axes but the first, of one
    /// axis that one.
    fn sizes(self, abi: &KernelAbi) -> impl Iterator<Item = &str> {
        let arguments = match self {
            Variant::General => &[],
            Variant::Aligned => abi.arguments.as_slice(),
        };
        let extents = arguments.iter().map(|argument| match argument {
            Argument::Tensor { extents, .. } => extents.as_slice(),
            Argument::Scalar { .. } => &[],
        });
        let rows = extents.flat_map(|extents| if extents.len() > 1 { &extents[1..] } else { extents });
        rows.filter_map(Dim::as_size)
    }
}

fn demand(kernel: &mut Kernel, sizes: &BTreeSet<&str>) {
    kernel.conditions.extend(sizes.iter().map(|&name| Condition {
        left: Dim::size(name).rem(&Dim::from(MULTIPLE as i64)),
        predicate: Predicate::Eq,
        right: Dim::from(0),
        source: format!("{name} % {MULTIPLE} == 0"),
        loc: Loc::UNKNOWN,
    }));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{specialize, text, verify};

    fn instance(parameters: &str) -> Instance {
        let source = format!(
            "kernel @k({parameters}, %y: mut tensor<m x n x f32>) {{
  %vy = partition %y [4, 8] : mut partition<m x n x f32, [4, 8]>
}}
"
        );
        specialize(&verify(text::parse(&source).unwrap()).unwrap(), &[]).unwrap()
    }

    #[test]
    fn rows_and_vectors_are_multiples_of_16_and_columns_are_not() {
        let instance = instance("%x: tensor<m x n x f32>, %v: tensor<k x f32>");
        let abi = KernelAbi::of(&instance);
        let fits = |m, n, k| {
            let bound = abi.bind(&[&[m, n], &[k], &[m, n]]).unwrap();
            Variant::ALL.into_iter().find(|variant| variant.fits(&abi, &bound)).unwrap()
        };
        assert_eq!(fits(3, 48, 16), Variant::Aligned);
        assert_eq!(fits(3, 48, 0), Variant::Aligned);
        assert_eq!(fits(16, 40, 16), Variant::General);
        assert_eq!(fits(16, 48, 17), Variant::General);
        let aligned = Variant::Aligned.of(&instance).unwrap();
        assert!(
            text::print(&aligned)
                .contains("where \"k % 16 == 0\": rem(k, 16) eq 0, \"n % 16 == 0\": rem(n, 16) eq 0")
        );
    }

    #[test]
    fn known_sizes_need_no_variant() {
        let source = "kernel @k(%y: mut tensor<n x 8 x f32>) {
  %vy = partition %y [4, 8] : mut partition<n x 8 x f32, [4, 8]>
}
";
        let instance = specialize(&verify(text::parse(source).unwrap()).unwrap(), &[]).unwrap();
        assert!(Variant::Aligned.of(&instance).is_none());
        assert!(Variant::General.of(&instance).is_some());
    }
}
