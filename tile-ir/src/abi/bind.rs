//! A launch's sizes, compared with what a kernel asks for: what is done at every launch, so that nothing is allocated
//! where everything fits.

use super::{
    Argument, BindError, Check, GridExtents, KernelAbi, LaunchSizes, REFERENCE_BLOCKS, Shared, Sharing,
    blocks_of,
};
use crate::condition::Condition;
use crate::dim::{Dim, DimError};
use crate::loc::Loc;
use crate::view::GivenTensor;
use smallvec::{SmallVec, smallvec};
use std::collections::BTreeSet;
use tile_layout::element_count;

/// The most blocks that may share tiles: what grids of every device have room for.
const MOST_BLOCKS: usize = i32::MAX as usize;

/// Where a run-time size got its value.
#[derive(Clone, Copy)]
struct Source<'a> {
    argument: &'a str,
    /// None of an argument that is a number.
    axis: Option<usize>,
    value: usize,
}

/// The run-time sizes of a launch, in the order of [`KernelAbi::sizes`].
struct SizeValues<'a> {
    names: &'a [String],
    sources: SmallVec<[Option<Source<'a>>; 8]>,
}

impl<'a> SizeValues<'a> {
    fn source(&self, name: &str) -> Option<Source<'a>> {
        let slot = self.names.iter().position(|size| size == name)?;
        self.sources[slot]
    }

    fn value(&self, name: &str) -> Option<i64> {
        i64::try_from(self.source(name)?.value).ok()
    }

    /// These sizes, each with what has bound it: `m = 10 (axis 0 of `x`), n = 4 (axis 1 of `x`)`.
    fn listed(&self, sizes: &BTreeSet<String>) -> String {
        let values = sizes.iter().filter_map(|size| {
            let Source { argument, axis, value } = self.source(size)?;
            Some(match axis {
                Some(axis) => format!("{size} = {value} (axis {axis} of `{argument}`)"),
                None => format!("{size} = {value} (an argument)"),
            })
        });
        values.collect::<Vec<_>>().join(", ")
    }
}

impl KernelAbi {
    /// Binds run-time sizes from the shapes of the tensor arguments (in order; scalars are skipped) and
    /// computes the grid. The tiles of a persistent kernel are shared as in the evaluators.
    ///
    /// # Errors
    /// [`BindError`] where ranks, extents or grids disagree.
    pub fn bind(&self, shapes: &[&[usize]]) -> Result<LaunchSizes, BindError> {
        let dense: SmallVec<[GivenTensor<'_>; 8]> =
            shapes.iter().map(|shape| GivenTensor::dense(shape)).collect();
        self.bind_tensors(&dense, &|_| None)
    }

    /// [`KernelAbi::bind`] of tensors that lie as the instance is made for, and of the numbers that are sizes, by their positions
    /// among the arguments.
    ///
    /// # Errors
    /// As [`KernelAbi::bind`].
    pub fn bind_tensors(
        &self,
        tensors: &[GivenTensor<'_>],
        number: &dyn Fn(usize) -> Option<u64>,
    ) -> Result<LaunchSizes, BindError> {
        let values = self.bind_sizes(tensors, number)?;
        // Where they don't hold, extents may have no value: `n / stride` with a stride of 0.
        self.check_conditions(&values)?;
        self.check_declared(tensors, &values)?;
        self.check_views(&values)?;
        let grid = self.bind_grid(&values)?;
        if grid.iter().all(|&tiles| tiles > 0) {
            self.check_bounds(&values)?;
        }
        let sizes =
            values.sources.iter().map(|source| source.map_or(0, |source| source.value as u64)).collect();
        let all = self.count(&grid)?;
        let shared = self.persistent.then(|| Shared { space: grid.clone(), tiles: all });
        self.share(LaunchSizes { sizes, grid, shared }, Sharing::default(), REFERENCE_BLOCKS)
    }

    /// The launch with the blocks of a persistent kernel as `sharing` says; where it says nothing, no more than the
    /// device runs `at_once`. Of no tiles there is no block.
    ///
    /// # Errors
    /// [`BindError::Sharing`] where something is said of a kernel that isn't persistent, or of no blocks.
    pub fn share(
        &self,
        mut bound: LaunchSizes,
        sharing: Sharing,
        at_once: usize,
    ) -> Result<LaunchSizes, BindError> {
        let wrong = |problem: &str| {
            Err(BindError::Sharing { kernel: self.kernel.clone(), problem: problem.to_owned() })
        };
        let Some(shared) = &mut bound.shared else {
            return match sharing {
                Sharing { blocks: None, first_tiles: None } => Ok(bound),
                Sharing { blocks: Some(_), .. } => wrong(
                    "`blocks` says how many blocks share the tiles of `tiles_persistent`, over which this kernel has \
                     no loop; its grid has one block per tile",
                ),
                Sharing { .. } => wrong(
                    "`first_tiles` counts the tiles of `tiles_persistent`, over which this kernel has no loop",
                ),
            };
        };
        if sharing.blocks == Some(0) {
            return wrong("`blocks(0)` leaves nobody to handle its tiles; give one block or more");
        }
        if sharing.blocks.is_some_and(|blocks| blocks > MOST_BLOCKS) {
            return wrong("`blocks` is at most 2³¹ − 1, and more blocks than tiles have nothing to do");
        }
        let all = blocks_of(&shared.space);
        shared.tiles = sharing.first_tiles.map_or(all, |tiles| tiles.min(all));
        let blocks = sharing.blocks.unwrap_or(at_once.clamp(1, shared.tiles.max(1)));
        bound.grid = smallvec![if shared.tiles == 0 { 0 } else { blocks }];
        Ok(bound)
    }

    fn tensors(&self) -> impl Iterator<Item = (&str, &[Dim])> {
        self.arguments.iter().filter_map(|argument| match argument {
            Argument::Tensor { name, extents, .. } => Some((name.as_str(), extents.as_slice())),
            Argument::Scalar { .. } => None,
        })
    }

    fn bind_sizes<'a>(
        &'a self,
        tensors: &[GivenTensor<'_>],
        number: &dyn Fn(usize) -> Option<u64>,
    ) -> Result<SizeValues<'a>, BindError> {
        let mut values = SizeValues { names: &self.sizes, sources: smallvec![None; self.sizes.len()] };
        for ((argument, extents), GivenTensor { extents: shape, .. }) in self.tensors().zip(tensors) {
            if extents.len() != shape.len() {
                return Err(BindError::Rank {
                    kernel: self.kernel.clone(),
                    argument: argument.to_owned(),
                    shape: shape.to_vec(),
                    actual: shape.len(),
                    expected: extents.len(),
                });
            }
            for (axis, (extent, &value)) in extents.iter().zip(*shape).enumerate() {
                if i64::try_from(value).is_err() {
                    return Err(self.too_long(argument, axis, value));
                }
                let Some(size) = extent.as_size() else { continue };
                let slot = self.sizes.iter().position(|name| name == size);
                let slot = slot.expect("the sizes are those of the tensors' extents");
                let first = *values.sources[slot].get_or_insert(Source { argument, axis: Some(axis), value });
                if first.value != value {
                    return Err(self.conflict(size, first, (argument, axis, value)));
                }
            }
        }
        for &(position, slot) in &self.size_arguments {
            let Some(given) = number(position) else { continue };
            let value = self.number(slot, given, values.sources[slot])?;
            values.sources[slot].get_or_insert(Source {
                argument: self.arguments[position].name(),
                axis: None,
                value,
            });
        }
        let first = self.sizes.len() - self.layout_sizes.len();
        for (slot, &(number, size)) in values.sources[first..].iter_mut().zip(&self.layout_sizes) {
            let Some(tensor) = tensors.get(number) else { continue };
            // It has no name of its own that another argument could bind otherwise.
            *slot = Some(Source { argument: "", axis: None, value: size.value(tensor) });
        }
        Ok(values)
    }

    /// The value of a size that is passed as a number; `bound` is what has bound it before.
    fn number(&self, slot: usize, given: u64, bound: Option<Source<'_>>) -> Result<usize, BindError> {
        let value = usize::try_from(given).ok().filter(|&value| i64::try_from(value).is_ok());
        // A launch that fits makes no text.
        let (kernel, size) = (|| self.kernel.as_str().into(), || self.sizes[slot].as_str().into());
        match (bound, value) {
            (Some(Source { argument, axis, value: extent }), _) if extent as u64 != given => {
                Err(BindError::Number {
                    kernel: kernel(),
                    size: size(),
                    argument: argument.into(),
                    axis: axis.unwrap_or_default(),
                    extent,
                    number: given,
                })
            }
            (_, Some(value)) => Ok(value),
            (_, None) => Err(BindError::TooLarge { kernel: kernel(), size: size(), number: given }),
        }
    }

    fn too_long(&self, argument: &str, axis: usize, actual: usize) -> BindError {
        BindError::TooLong { kernel: self.kernel.as_str().into(), argument: argument.into(), axis, actual }
    }

    fn conflict(&self, size: &str, first: Source<'_>, second: (&str, usize, usize)) -> BindError {
        BindError::Conflict {
            kernel: self.kernel.as_str().into(),
            size: size.into(),
            first_argument: first.argument.into(),
            // Tensors are bound before numbers: an axis came first.
            first_axis: first.axis.unwrap_or_default(),
            first: first.value,
            second_argument: second.0.into(),
            second_axis: second.1,
            second: second.2,
        }
    }

    fn check_declared(&self, tensors: &[GivenTensor<'_>], values: &SizeValues<'_>) -> Result<(), BindError> {
        for ((argument, extents), tensor) in self.tensors().zip(tensors) {
            for (axis, (extent, &actual)) in extents.iter().zip(tensor.extents).enumerate() {
                let expected = self.evaluate(extent, values, || format!("axis {axis} of `{argument}`"))?;
                if expected != actual {
                    let mut sizes = BTreeSet::new();
                    extent.collect_names(&mut BTreeSet::new(), &mut sizes);
                    return Err(BindError::Extent {
                        kernel: self.kernel.clone(),
                        argument: argument.to_owned(),
                        axis,
                        actual,
                        expected,
                        declared: format!("{extent:#}"),
                        values: listed_behind(&values.listed(&sizes)).into(),
                    });
                }
            }
        }
        Ok(())
    }

    fn check_conditions(&self, values: &SizeValues<'_>) -> Result<(), BindError> {
        let mut unknown = None;
        for condition in &self.conditions {
            match condition.holds(&|name| values.value(name)) {
                Ok(true) => {}
                Ok(false) => return Err(self.broken(condition, values)),
                Err(source) => unknown = unknown.or(Some((condition, source))),
            }
        }
        // A condition that says why is the better message: `stride > 0` beside `n % stride == 0`.
        unknown.map_or(Ok(()), |(condition, source)| {
            let values = values.listed(&condition.names().1);
            Err(self.uncomputed(format!("`{}`", condition.source), source, values))
        })
    }

    fn broken(&self, condition: &Condition, values: &SizeValues<'_>) -> BindError {
        let Condition { formula, source, .. } = condition;
        BindError::Condition {
            kernel: self.kernel.as_str().into(),
            condition: source.as_str().into(),
            place: condition.place(&self.file).into(),
            bound: format!("{formula:#}").into(),
            values: values.listed(&condition.names().1).into(),
        }
    }

    fn bind_grid(&self, values: &SizeValues<'_>) -> Result<GridExtents, BindError> {
        let mut agreed: Option<(&str, GridExtents)> = None;
        for (argument, space) in &self.grids {
            let grid = space
                .iter()
                .enumerate()
                .map(|(axis, dim)| self.evaluate(dim, values, || format!("axis {axis} of the grid")));
            let grid = grid.collect::<Result<_, _>>()?;
            match &agreed {
                None => agreed = Some((argument, grid)),
                Some((_, first)) if *first == grid => {}
                Some((first_argument, first)) => {
                    return Err(BindError::Grid {
                        kernel: self.kernel.clone(),
                        first_argument: (*first_argument).into(),
                        first: first.to_vec(),
                        second_argument: argument.as_str().into(),
                        second: grid.to_vec(),
                    });
                }
            }
        }
        Ok(agreed.expect("verified: a kernel has a grid or a mutable partition view").1)
    }

    /// The number of blocks of a grid, which offsets and counts, too, must have room for.
    fn count(&self, grid: &[usize]) -> Result<usize, BindError> {
        if grid.contains(&0) {
            return Ok(0);
        }
        let blocks = element_count(grid).filter(|&blocks| i64::try_from(blocks).is_ok());
        blocks.ok_or_else(|| self.too_many_blocks(grid))
    }

    fn too_many_blocks(&self, grid: &[usize]) -> BindError {
        BindError::Blocks { kernel: self.kernel.as_str().into(), grid: grid.to_vec() }
    }

    fn check_views(&self, values: &SizeValues<'_>) -> Result<(), BindError> {
        self.checks.iter().try_for_each(|check| match check {
            Check::View { tensor, requirement, loc } => {
                self.holds(*loc, requirement.violation(tensor, &|name| values.value(name)))
            }
            Check::Access { .. } => Ok(()),
        })
    }

    fn check_bounds(&self, values: &SizeValues<'_>) -> Result<(), BindError> {
        self.checks.iter().try_for_each(|check| match check {
            Check::View { .. } => Ok(()),
            Check::Access { tensor, bound, loc } => {
                let violation = bound.violation(tensor, &|name| values.value(name));
                let helped =
                    |problem| format!("{problem}; use `{}`, which is defined for every index", bound.masked);
                self.holds(*loc, violation.map(|problem| problem.map(helped)))
            }
        })
    }

    /// `, at src/main.rs:12:9`, where both are known.
    fn place(&self, loc: Loc) -> String {
        let is_known = loc.is_known() && !self.file.is_empty();
        if is_known { format!(", at {}", loc.in_file(&self.file)) } else { String::new() }
    }

    fn holds(&self, loc: Loc, violation: Result<Option<String>, DimError>) -> Result<(), BindError> {
        match violation {
            Ok(None) => Ok(()),
            Ok(Some(problem)) => Err(BindError::Check {
                kernel: self.kernel.as_str().into(),
                place: self.place(loc).into(),
                problem: problem.into(),
            }),
            Err(source) => Err(self.uncomputed("an extent".to_owned(), source, String::new())),
        }
    }

    fn evaluate(
        &self,
        dim: &Dim,
        values: &SizeValues<'_>,
        what: impl Fn() -> String,
    ) -> Result<usize, BindError> {
        dim.evaluate(&|name| values.value(name)).map_err(|problem| {
            let mut sizes = BTreeSet::new();
            dim.collect_names(&mut BTreeSet::new(), &mut sizes);
            self.uncomputed(what(), problem, values.listed(&sizes))
        })
    }

    fn uncomputed(&self, extent: String, problem: DimError, values: String) -> BindError {
        let values = listed_behind(&values);
        BindError::Dim {
            kernel: self.kernel.as_str().into(),
            extent: extent.into(),
            problem,
            values: values.into(),
        }
    }
}

/// `, where m = 10`; nothing where there are no values.
fn listed_behind(values: &str) -> String {
    if values.is_empty() { String::new() } else { format!(", where {values}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Instance;

    /// Also where there is no element at all: a kernel that asks for the extent would get another number.
    #[test]
    fn axes_longer_than_positions_are_refused() {
        let source = "\
kernel @counts(%x: tensor<n x m x f32>, %y: mut tensor<k x i64>) {
  %vy = partition %y [1] : mut partition<k x i64, [1]>
  %n = extent n : index
  %number = cast %n : i64
  %t = splat %number : tile<1 x i64>
  store_masked %vy, %t
}
";
        let instance = Instance::parse(source, &[]).unwrap();
        let bind = |n: usize| KernelAbi::of(&instance).bind(&[&[n, 0], &[1]]);
        let longest = i64::MAX as usize;
        assert_eq!(bind(longest).unwrap().sizes[0], longest as u64);
        assert_eq!(
            bind(longest + 1).unwrap_err().to_string(),
            "axis 0 of `x` of kernel `counts` has 9223372036854775808 elements, and positions end at \
             9223372036854775807; pass a part of it"
        );
    }
}
