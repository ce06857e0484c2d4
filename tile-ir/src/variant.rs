//! Variants of an instance: code that relies on more of its run-time sizes than the kernel asks for. A launch takes
//! the first one of its target's family whose demands its sizes meet.
//!
//! A demand is a [`Condition`] like those that users write, so that every analysis makes use of it: rows of a tensor
//! that begin at a multiple of 16 bytes are read in wide vectors and by tensor maps, and masks that then hide nothing
//! go. Masked tiles that reach over less than 2 GiB are read and written with offsets of 32 bits, whose bounds AMD's GPUs
//! check.

use crate::abi::{Argument, KernelAbi, LaunchSizes};
use crate::condition::Condition;
use crate::dim::Dim;
use crate::dtype::DType;
use crate::gpu::{NEAR_BYTES, TENSOR_ALIGNMENT, pair_axis, reach};
use crate::kernel::Kernel;
use crate::ops::{Op, Predicate};
use crate::specialize::Instance;
use crate::target::{Family, TARGETS, TargetDesc};
use crate::view::argument::LayoutSize;
use std::collections::BTreeMap;

/// What code relies on besides what the kernel says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Variant {
    /// The rows of every tensor begin at multiples of 16 bytes, where their extents are run-time sizes, and masked tiles
    /// reach over less than 2 GiB.
    AlignedNear,
    /// The rows of every tensor begin at multiples of 16 bytes, where their extents are run-time sizes.
    Aligned,
    /// What [`Variant::Aligned`] relies on; and there are pairs of tiles along an axis of the grid, more of them than a GPU
    /// has at a time, whose blocks share a factor of a product.
    Paired,
    /// Masked tiles reach over less than 2 GiB.
    Near,
    /// Nothing.
    General,
}

impl Variant {
    /// Every variant that a target may have code for, those that rely on more first.
    pub const fn of_target(target: &TargetDesc) -> &'static [Variant] {
        match target.family {
            Family::Cpu => &[Variant::General],
            Family::Nvptx if target.warpgroup_matrix.is_empty() => &[Variant::Aligned, Variant::General],
            Family::Nvptx => &[Variant::Paired, Variant::Aligned, Variant::General],
            Family::Amdgpu => &[Variant::AlignedNear, Variant::Near, Variant::General],
        }
    }

    /// Its name in files.
    pub const fn name(self) -> &'static str {
        match self {
            Variant::AlignedNear => "aligned-near",
            Variant::Aligned => "aligned",
            Variant::Paired => "paired",
            Variant::Near => "near",
            Variant::General => "general",
        }
    }

    const fn is_aligned(self) -> bool {
        matches!(self, Variant::AlignedNear | Variant::Aligned | Variant::Paired)
    }

    const fn is_near(self) -> bool {
        matches!(self, Variant::AlignedNear | Variant::Near)
    }

    /// The instance as this variant; `None` where a variant that relies on less is the same.
    pub fn of(self, instance: &Instance) -> Option<Instance> {
        let demands = Demands::of(self, instance, &KernelAbi::of(instance))?;
        let demand = |kernel: &mut Kernel| {
            kernel.conditions.extend(demands.conditions);
            kernel.pairs = demands.pairs;
        };
        Some(instance.clone().rewrite(self.name(), demand))
    }

    /// The first of these variants that has code of its own, and that.
    pub fn first_of(variants: impl Iterator<Item = Variant>, instance: &Instance) -> (Variant, Instance) {
        let mut own = variants.filter_map(|variant| Some((variant, variant.of(instance)?)));
        own.next().unwrap_or_else(|| (Variant::General, instance.clone()))
    }
}

/// What a variant relies on of an instance's launches.
#[derive(Clone, Debug)]
struct Demands {
    conditions: Vec<Condition>,
    /// The axis along which the grid has pairs of tiles.
    pairs: Option<usize>,
}

impl Demands {
    /// `None` where a variant that relies on less is the same.
    fn of(variant: Variant, instance: &Instance, abi: &KernelAbi) -> Option<Demands> {
        let aligned: Vec<Condition> =
            alignments(variant, abi).into_iter().map(|(name, of)| alignment(&name, of)).collect();
        let reaches = reaches(variant, instance);
        let pairs = if variant == Variant::Paired { pairs_of(instance, &aligned) } else { None };
        let is_own = match variant {
            Variant::AlignedNear | Variant::Aligned => !aligned.is_empty(),
            Variant::Paired => pairs.is_some(),
            Variant::Near => !reaches.is_empty(),
            Variant::General => true,
        };
        let conditions = aligned.into_iter().chain(reaches).collect();
        is_own.then_some(Demands { conditions, pairs })
    }

    fn are_met(&self, abi: &KernelAbi, bound: &LaunchSizes) -> bool {
        let size = |name: &str| {
            let slot = abi.sizes.iter().position(|size| size == name)?;
            i64::try_from(bound.sizes[slot]).ok()
        };
        // A number that overflows is no small one.
        let holds = |condition: &Condition| condition.holds(&size).unwrap_or(false);
        self.conditions.iter().all(holds) && self.pairs.is_none_or(|axis| has_pairs(bound, axis))
    }
}

/// The variants that an instance has, with what they rely on: those that rely on more first, and at last one that relies
/// on nothing. A launch asks them for its sizes, without a look at the kernel.
///
/// ```
/// use tile_ir::{Instance, TargetDesc, Variant, Variants};
///
/// let kernel = "kernel @k(%x: tensor<n x f32>, %y: mut tensor<n x f32>) {
///   %vy = partition %y [64] : mut partition<n x f32, [64]>
/// }";
/// let instance = Instance::parse(kernel, &[])?;
/// let abi = tile_ir::abi::KernelAbi::of(&instance);
/// let variants = Variants::of(&instance, &abi, TargetDesc::named("sm_80")?);
/// let bound = abi.bind(&[&[100], &[100]])?;
/// assert_eq!(variants.fitting(&abi, &bound).collect::<Vec<_>>(), [Variant::Aligned, Variant::General]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Variants(Vec<(Variant, Demands)>);

impl Variants {
    /// Those of an instance with this interface that a target may have code for.
    pub fn of(instance: &Instance, abi: &KernelAbi, target: &TargetDesc) -> Variants {
        let variants = Variant::of_target(target).iter();
        let own = variants.filter_map(|&variant| Some((variant, Demands::of(variant, instance, abi)?)));
        Variants(own.collect())
    }

    /// Those whose demands a launch meets.
    pub fn fitting<'v>(
        &'v self,
        abi: &'v KernelAbi,
        bound: &'v LaunchSizes,
    ) -> impl Iterator<Item = Variant> + 'v {
        self.0.iter().filter(|(_, demands)| demands.are_met(abi, bound)).map(|(variant, _)| *variant)
    }
}

/// Multiprocessors of the largest GPUs whose blocks run as clusters (NVIDIA H100 Tensor Core GPU Architecture: SXM5).
/// Where all tiles run at a time, what pairs save is read while nothing else is; DeepGEMM pairs larger grids alone, too.
const WAVE: usize = 132;

/// Whether all tiles of a launch can be taken in pairs along an axis, and there are more than run at a time.
fn has_pairs(bound: &LaunchSizes, axis: usize) -> bool {
    let space = bound.shared.as_ref().map_or(&bound.grid, |shared| &shared.space);
    let tiles: usize = space.iter().product();
    let all_are_shared =
        bound.shared.as_ref().is_none_or(|shared| shared.tiles == tiles && bound.blocks().is_multiple_of(2));
    space.get(axis).is_some_and(|extent| extent.is_multiple_of(2)) && tiles > WAVE && all_are_shared
}

/// The axis along which pairs of blocks share factors, where rows are aligned; `None` where it is known that no launch has
/// as many tiles as pairs are for.
fn pairs_of(instance: &Instance, aligned: &[Condition]) -> Option<usize> {
    let space = instance.grid_space()?;
    let tiles = space.iter().try_fold(1i64, |tiles, extent| Some(tiles.saturating_mul(extent.as_const()?)));
    if tiles.is_some_and(|tiles| tiles <= WAVE as i64) {
        return None;
    }
    let assumed = |kernel: &mut Kernel| kernel.conditions.extend(aligned.iter().cloned());
    let aligned = instance.clone().rewrite("aligned", assumed);
    let clustered = TARGETS.iter().filter(|target| !target.warpgroup_matrix.is_empty());
    clustered.into_iter().find_map(|target| pair_axis(&aligned, target))
}

/// What sizes must be multiples of, so that rows of tensors are aligned.
pub(crate) fn alignments(variant: Variant, abi: &KernelAbi) -> Vec<(String, u64)> {
    let mut demands: BTreeMap<&str, u64> = BTreeMap::new();
    if variant.is_aligned() {
        let is_tensor = |argument: &&Argument| matches!(argument, Argument::Tensor { .. });
        for (number, argument) in abi.arguments.iter().filter(is_tensor).enumerate() {
            for (size, multiple) in aligned_lines(abi, number, argument) {
                let most = demands.entry(size).or_insert(multiple);
                *most = multiple.max(*most);
            }
        }
    }
    demands.into_iter().map(|(name, of)| (name.to_owned(), of)).collect()
}

/// What the tiles that are read and written with a mask must reach over at most, where sizes decide that.
fn reaches(variant: Variant, kernel: &Kernel) -> Vec<Condition> {
    let mut demands: Vec<Condition> = Vec::new();
    if !variant.is_near() {
        return demands;
    }
    for op in kernel.walk() {
        let data = kernel.op(op);
        if !matches!(data.op, Op::LoadMasked | Op::StoreMasked) {
            continue;
        }
        let ty = kernel.ty(data.operands[0]).as_partition().expect("verified: a view");
        let bytes = ty.tensor.elem.known().expect("an instance has no dtype parameters").bytes();
        let Some(reach) = reach(ty, bytes).filter(|reach| reach.as_const().is_none()) else { continue };
        let demand = nearness(reach);
        if !demands.contains(&demand) {
            demands.push(demand);
        }
    }
    demands
}

fn alignment(name: &str, multiple: u64) -> Condition {
    Condition::compare(Dim::size(name).rem(&Dim::from(multiple as i64)), Predicate::Eq, Dim::from(0))
}

/// The condition that [`crate::gpu::Access::near`] looks for.
fn nearness(reach: Dim) -> Condition {
    Condition::compare(reach, Predicate::Lt, Dim::from(NEAR_BYTES as i64))
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
            // Of the product no more matters, which may exceed all numbers.
            (None, Some(extent)) => known = known % multiple * (extent.unsigned_abs() % multiple),
            (None, None) => return None,
        }
    }
    None
}

/// What aligns the lines along which elements of a tensor follow each other in memory: of a dense one, the rows; else its
/// other strides and, as of dense ones, how long they are. Nothing where no elements are known to follow each other, or
/// where they begin anywhere.
fn aligned_lines<'a>(abi: &'a KernelAbi, number: usize, argument: &'a Argument) -> Vec<(&'a str, u64)> {
    let Argument::Tensor { dtype, extents, layout, .. } = argument else { return Vec::new() };
    let Some(layout) = layout else { return aligned_rows(*dtype, extents).into_iter().collect() };
    let line = layout.strides.iter().rposition(|stride| stride.as_const() == Some(1));
    let strides = abi.layout_sizes_of(number);
    let begins_anywhere = strides.clone().any(|(size, _)| size == LayoutSize::Offset);
    let Some(line) = line.filter(|_| !begins_anywhere) else { return Vec::new() };
    let multiple = (TENSOR_ALIGNMENT / dtype.bytes() as u64).max(1);
    strides.map(|(_, name)| name).chain(extents[line].as_size()).map(|size| (size, multiple)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::Sharing;
    use crate::text;
    use tile_test_edit::Edit;

    fn target(name: &str) -> &'static TargetDesc {
        TargetDesc::named(name).unwrap()
    }

    fn instance(parameters: &str) -> Instance {
        let source = format!(
            "kernel @k({parameters}, %y: mut tensor<m x n x f32>) {{
  %vy = partition %y [4, 8] : mut partition<m x n x f32, [4, 8]>
}}
"
        );
        Instance::parse(&source, &[]).unwrap()
    }

    #[test]
    fn rows_and_vectors_are_multiples_of_16_bytes_and_columns_are_not() {
        let instance = instance("%x: tensor<m x n x bf16>, %v: tensor<k x i8>");
        let abi = KernelAbi::of(&instance);
        let fits = |m, n, k| {
            let bound = abi.bind(&[&[m, n], &[k], &[m, n]]).unwrap();
            Variants::of(&instance, &abi, target("sm_80")).fitting(&abi, &bound).next().unwrap()
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

    /// A tile has three rows of `n` f32, which count as four.
    #[test]
    fn tiles_that_reach_far_are_for_the_general_variant() {
        let source =
            "kernel @k(%y: mut tensor<m x n x f32>, %z: mut tensor<n x f32>, %x: tensor<m x n x f32>) {
  %vy = partition %y [3, 8] : mut partition<m x n x f32, [3, 8]>
  %vx = partition %x [300, 8] : partition<m x n x f32, [300, 8]>
  %zero = constant 0.0 : f32
  %t = splat %zero : tile<3 x 8 x f32>
  store_masked %vy, %t
}
";
        let instance = Instance::parse(source, &[]).unwrap();
        let abi = KernelAbi::of(&instance);
        let taken = |m: usize, n: usize| {
            let bound = abi.bind(&[&[m, n], &[n], &[m, n]]).unwrap();
            Variants::of(&instance, &abi, target("gfx942")).fitting(&abi, &bound).next().unwrap()
        };
        // Four rows and eight elements: 16·n + 32 bytes.
        assert_eq!(taken(1 << 10, (1 << 27) - 4), Variant::AlignedNear);
        assert_eq!(taken(1 << 10, (1 << 27) - 3), Variant::Near);
        assert_eq!(taken(1, (1 << 27) - 2), Variant::General);
        let near = Variant::Near.of(&instance).unwrap();
        assert!(text::print(&near).contains("lt 2147483648"), "{}", text::print(&near));
    }

    #[test]
    fn known_sizes_need_no_variant() {
        let source = "kernel @k(%y: mut tensor<n x 8 x f32>) {
  %vy = partition %y [4, 8] : mut partition<n x 8 x f32, [4, 8]>
}
";
        let instance = Instance::parse(source, &[]).unwrap();
        assert!(Variant::Aligned.of(&instance).is_none());
        assert!(Variant::AlignedNear.of(&instance).is_none());
        assert!(Variant::Near.of(&instance).is_none());
        assert!(Variant::General.of(&instance).is_some());
    }

    const MATMUL: &str =
        "kernel @k(%a: tensor<m x k x bf16>, %b: tensor<k x n x bf16>, %c: mut tensor<m x n x f32>) {
  %va = partition %a [128, 64] : partition<m x k x bf16, [128, 64]>
  %vb = partition %b [64, 256] : partition<k x n x bf16, [64, 256]>
  %vc = partition %c [128, 256] : mut partition<m x n x f32, [128, 256]>
  %i, %j = block_index %vc : index, index
  %pad = constant 0.0 : bf16
  %none = constant 0.0 : f32
  %zero = splat %none : tile<128 x 256 x f32>
  %0 = constant 0 : index
  %end = extent ceil_div(k, 64) : index
  %sum = for %p = %0 to %end carry (%acc = %zero) : tile<128 x 256 x f32> {
    %ta = load_masked %va[%i, %p] pad %pad : tile<128 x 64 x bf16>
    %tb = load_masked %vb[%p, %j] pad %pad : tile<64 x 256 x bf16>
    %next = mma %ta, %tb, %acc : tile<128 x 256 x f32>
    yield %next
  }
  store_masked %vc, %sum
}
";

    fn matmul(source: &str) -> Instance {
        Instance::parse(source, &[]).unwrap()
    }

    /// Pairs are of tiles along the first axis: an even number, and more tiles than a wave.
    #[test]
    fn many_tiles_in_pairs_have_a_variant() {
        let instance = matmul(MATMUL);
        let abi = KernelAbi::of(&instance);
        let variants = Variants::of(&instance, &abi, target("sm_90a"));
        let taken = |m, n, k| {
            let bound = abi.bind(&[&[m, k], &[k, n], &[m, n]]).unwrap();
            variants.fitting(&abi, &bound).next().unwrap()
        };
        assert_eq!(taken(2048, 4096, 512), Variant::Paired);
        assert_eq!(taken(2048 - 5, 4096, 512), Variant::Paired);
        assert_eq!(taken(2048 - 128, 4096, 512), Variant::Aligned, "15 tiles");
        assert_eq!(taken(1024, 4096, 512), Variant::Aligned, "128 tiles are no wave");
        assert_eq!(taken(2048, 4096, 516), Variant::General);
        let bound = abi.bind(&[&[2048, 512], &[512, 4096], &[2048, 4096]]).unwrap();
        let of_other = Variants::of(&instance, &abi, target("sm_120f"));
        assert_eq!(of_other.fitting(&abi, &bound).next(), Some(Variant::Aligned));
        let paired = text::print(&Variant::Paired.of(&instance).unwrap());
        assert!(paired.contains("\"n % 8 == 0\": rem(n, 8) eq 0 pairs 0 {"), "{paired}");
        assert_eq!(text::print(&text::parse(&paired).unwrap()), paired);
    }

    /// What no launch takes isn't made: blocks of the one tile of an axis, and grids that are known to be small.
    #[test]
    fn pairs_that_there_never_are_have_no_variant() {
        let of = |rows: &str, columns: &str| {
            let sized = MATMUL.edit("<m x", &format!("<{rows} x")).edit(" x n x", &format!(" x {columns} x"));
            Variant::Paired.of(&matmul(&sized)).map(|instance| instance.pairs)
        };
        assert_eq!(of("m", "256"), Some(Some(0)));
        assert_eq!(of("128", "n"), Some(Some(1)));
        assert_eq!(of("128", "256"), None);
        assert_eq!(of("1024", "4096"), None, "128 tiles are no wave");
        assert_eq!(of("2048", "4096"), Some(Some(0)));
        // Of so many tiles the number exceeds 64 bits.
        assert_eq!(of("549755813888", "1099511627776"), Some(Some(0)));
    }

    /// However large the extents behind a size are: what counts of their product are the powers of two in it.
    #[test]
    fn extents_behind_a_size_align_rows_by_their_powers_of_two() {
        let n = Dim::size("n");
        let rows = |extents: [i64; 3]| {
            let behind = extents.map(Dim::from).to_vec();
            aligned_rows(DType::U8, &[&[Dim::size("m"), n.clone()], behind.as_slice()].concat())
                .map(|(size, _)| size.to_owned())
        };
        let odd = (1 << 32) + 1;
        assert_eq!(rows([odd, odd, odd]).as_deref(), Some("n"));
        assert_eq!(rows([odd, 8, odd]).as_deref(), Some("n"));
        assert_eq!(rows([odd * 2, 8, odd]), None);
        assert_eq!(rows([1 << 40, 1 << 40, odd]), None);
    }

    /// All tiles of a persistent kernel, by an even number of blocks.
    #[test]
    fn blocks_that_share_tiles_take_pairs_of_all() {
        let persistent = MATMUL
            .edit("  %i, %j = block_index", "  tiles %vc grouped(8) {\n  %i, %j = block_index")
            .edit("store_masked %vc, %sum\n", "store_masked %vc, %sum\n  yield\n  }\n");
        let instance = matmul(&persistent);
        let abi = KernelAbi::of(&instance);
        let variants = Variants::of(&instance, &abi, target("sm_90a"));
        let bound = abi.bind(&[&[2048, 512], &[512, 4096], &[2048, 4096]]).unwrap();
        let taken = |blocks, first_tiles| {
            let sharing = Sharing { blocks, first_tiles };
            let bound = abi.share(bound.clone(), sharing, 132).unwrap();
            variants.fitting(&abi, &bound).next().unwrap()
        };
        assert_eq!(taken(None, None), Variant::Paired);
        assert_eq!(taken(Some(66), None), Variant::Paired);
        assert_eq!(taken(Some(67), None), Variant::Aligned);
        assert_eq!(taken(None, Some(256)), Variant::Paired);
        assert_eq!(taken(None, Some(254)), Variant::Aligned);
        // What a block carries from one of its tiles to the next shows which these are.
        let carries = persistent
            .edit(
                "  tiles %vc grouped(8) {",
                "  %last = tiles %vc grouped(8) carry (%count = %start) : f32 {",
            )
            .edit("  %vc = partition", "  %start = constant 0.0 : f32\n  %vc = partition")
            .edit("  yield\n", "  yield %count\n");
        assert!(Variant::Paired.of(&matmul(&carries)).is_none());
    }
}
