//! Variants of an instance: code that relies on more of its run-time sizes than the kernel asks for. A launch takes
//! the first one whose demands its sizes meet.
//!
//! A demand is a [`Condition`] like those that users write, so that every analysis makes use of it: rows of a tensor
//! that begin at a multiple of 16 bytes are read in wide vectors and by tensor maps, and masks that then hide nothing
//! go.

use crate::abi::{Argument, Bound, KernelAbi};
use crate::condition::Condition;
use crate::dim::Dim;
use crate::dtype::DType;
use crate::gpu::TENSOR_ALIGNMENT;
use crate::kernel::Kernel;
use crate::loc::Loc;
use crate::ops::Predicate;
use crate::specialize::Instance;
use std::collections::BTreeMap;

/// What code relies on besides what the kernel says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Variant {
    /// The rows of every tensor begin at multiples of 16 bytes, where their extents are run-time sizes.
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
        let demands = self.demands(&KernelAbi::of(instance));
        match self {
            Variant::General => Some(instance.clone()),
            Variant::Aligned if demands.is_empty() => None,
            Variant::Aligned => {
                Some(instance.clone().rewrite(self.name(), |kernel| demand(kernel, &demands)))
            }
        }
    }

    /// Whether the sizes of a launch meet its demands.
    pub fn fits(self, abi: &KernelAbi, bound: &Bound) -> bool {
        let demands = self.demands(abi);
        let mut values = abi.sizes.iter().zip(&bound.sizes);
        values.all(|(name, value)| demands.get(name.as_str()).is_none_or(|&of| value.is_multiple_of(of)))
    }

    /// The sizes that it makes demands of, and what each must be a multiple of.
    fn demands(self, abi: &KernelAbi) -> BTreeMap<String, u64> {
        let mut demands = BTreeMap::new();
        if self == Variant::Aligned {
            for argument in &abi.arguments {
                let Argument::Tensor { dtype, extents, .. } = argument else { continue };
                if let Some((size, multiple)) = aligned_rows(*dtype, extents) {
                    let most = demands.entry(size.to_owned()).or_insert(multiple);
                    *most = multiple.max(*most);
                }
            }
        }
        demands
    }
}

/// What aligns the rows of a tensor: a size, and what it must be a multiple of, in elements. It is the last of the run-time
/// sizes that elements lie along in memory, and so that of all larger strides, too. `None` where the extents behind it
/// align rows already, or no size does.
fn aligned_rows(dtype: DType, extents: &[Dim]) -> Option<(&str, u64)> {
    let multiple = (TENSOR_ALIGNMENT / dtype.bytes() as u64).max(1);
    let rows = if extents.len() > 1 { &extents[1..] } else { extents };
    let mut known = 1;
    for extent in rows.iter().rev() {
        match (extent.as_size(), extent.as_const()) {
            _ if known % multiple == 0 => return None,
            (Some(size), _) => return Some((size, multiple)),
            (None, Some(extent)) => known *= extent.unsigned_abs(),
            (None, None) => return None,
        }
    }
    None
}

fn demand(kernel: &mut Kernel, demands: &BTreeMap<String, u64>) {
    kernel.conditions.extend(demands.iter().map(|(name, multiple)| Condition {
        left: Dim::size(name).rem(&Dim::from(*multiple as i64)),
        predicate: Predicate::Eq,
        right: Dim::from(0),
        source: format!("{name} % {multiple} == 0"),
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
    fn rows_and_vectors_are_multiples_of_16_bytes_and_columns_are_not() {
        let instance = instance("%x: tensor<m x n x bf16>, %v: tensor<k x i8>");
        let abi = KernelAbi::of(&instance);
        let fits = |m, n, k| {
            let bound = abi.bind(&[&[m, n], &[k], &[m, n]]).unwrap();
            Variant::ALL.into_iter().find(|variant| variant.fits(&abi, &bound)).unwrap()
        };
        assert_eq!(fits(3, 48, 16), Variant::Aligned);
        assert_eq!(fits(3, 48, 0), Variant::Aligned);
        assert_eq!(fits(3, 40, 16), Variant::Aligned);
        assert_eq!(fits(16, 44, 16), Variant::General);
        assert_eq!(fits(16, 48, 17), Variant::General);
        let aligned = Variant::Aligned.of(&instance).unwrap();
        assert!(
            text::print(&aligned)
                .contains("where \"k % 16 == 0\": rem(k, 16) eq 0, \"n % 8 == 0\": rem(n, 8) eq 0")
        );
    }

    /// What lies behind a size may align rows by itself, or not at all.
    #[test]
    fn the_last_size_along_which_elements_lie_is_asked() {
        let dims = |extents: &[&str]| -> Vec<Dim> {
            let dim = |text: &&str| text.parse::<i64>().map_or_else(|_| Dim::size(*text), Dim::from);
            extents.iter().map(dim).collect()
        };
        let of = |dtype, extents: &[&str]| {
            aligned_rows(dtype, &dims(extents)).map(|(size, multiple)| (size.to_owned(), multiple))
        };
        let demand = |size: &str, multiple| Some((size.to_owned(), multiple));
        assert_eq!(of(DType::BF16, &["b", "s", "h", "n"]), demand("n", 8));
        assert_eq!(of(DType::BF16, &["h", "p", "r", "128"]), None);
        assert_eq!(of(DType::F32, &["m", "n", "3"]), demand("n", 4));
        assert_eq!(of(DType::F32, &["m", "3"]), None);
        assert_eq!(of(DType::I8, &["n"]), demand("n", 16));
        assert_eq!(of(DType::F64, &["m", "n"]), demand("n", 2));
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
