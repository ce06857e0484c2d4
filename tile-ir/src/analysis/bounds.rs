//! Whether the elements of a load or store exist: an obligation per axis, which is decided where extents are
//! numbers or the form shows it, and otherwise is checked at the launch.

use super::range::Range;
use super::ranges::Ranges;
use crate::dim::{Dim, DimError};
use crate::kernel::{Kernel, OpId, ValueId};
use crate::ops::Op;
use crate::types::{PartitionType, TensorType};
use crate::view::Source;

/// What one axis of a load or store, or of a selection on the way to its view, needs: for every index in a
/// range, elements `index*step .. index*step + tile` exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bound {
    /// The op's name, or `select`.
    pub op: &'static str,
    /// The op that has no such need.
    pub masked: &'static str,
    /// The axis of the view.
    pub axis: usize,
    index: Range,
    tile: Dim,
    step: Dim,
    extent: Dim,
    windows: Vec<(Dim, Dim)>,
}

/// A load with an index of which nothing is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unbounded {
    /// The operand of the load that is the index, if it is one.
    pub operand: Option<usize>,
    /// What is wrong.
    pub message: String,
}

impl Bound {
    /// Whether it holds, where that is known without sizes.
    pub fn decide(&self) -> Option<bool> {
        match self.violation("", &|_| None) {
            Ok(violation) => Some(violation.is_none()),
            Err(_) => self.holds_by_form().then_some(true),
        }
    }

    fn holds_by_form(&self) -> bool {
        let natural = |dim: Dim| dim.is_natural();
        let begins = |begin: &Dim| {
            let first = |min: &Dim| min.clone() * self.step.clone();
            self.index.min.iter().any(|min| natural(first(min) - begin.clone()))
        };
        let ends = |end: &Dim| {
            let last = |max: &Dim| max.clone() * self.step.clone() + self.tile.clone();
            self.index.max.iter().any(|max| natural(end.clone() - last(max)))
        };
        self.index.requires.iter().all(Dim::is_natural)
            && self.index.min.iter().any(Dim::is_natural)
            && ends(&self.extent)
            && self.windows.iter().all(|(begin, end)| begins(begin) && ends(end))
    }

    /// Why it doesn't hold for these sizes; `None` where it holds. `tensor` is what is read or written.
    ///
    /// # Errors
    /// [`DimError`] where an extent has no value.
    pub fn violation(
        &self,
        tensor: &str,
        lookup: &dyn Fn(&str) -> Option<i64>,
    ) -> Result<Option<String>, DimError> {
        let value = |dim: &Dim| dim.evaluate_signed(lookup);
        for span in &self.index.loops {
            if span.is_empty(lookup)? {
                return Ok(None);
            }
        }
        let (min, max) = self.index.evaluate(lookup)?;
        let place = || format!("`{}` of {tensor}", self.op);
        for required in &self.index.requires {
            let found = value(required)?;
            if found < 0 {
                let message = format!(
                    "{}: the index of axis {} relies on {required:#}, which is {found}",
                    place(),
                    self.axis
                );
                return Ok(Some(message));
            }
        }
        if min < 0 {
            return Ok(Some(format!("{}: the index of axis {} can be {min}", place(), self.axis)));
        }
        let (step, tile, extent) = (value(&self.step)?, value(&self.tile)?, value(&self.extent)?);
        let overflow = || DimError::Overflow(format!("{max}*{step} + {tile}"));
        let max = max.max(0);
        let first = min.checked_mul(step).ok_or_else(overflow)?;
        let end = max.checked_mul(step).and_then(|last| last.checked_add(tile)).ok_or_else(overflow)?;
        let mut inside = (0, extent);
        for (begin, end) in &self.windows {
            inside = (inside.0.max(value(begin)?), inside.1.min(value(end)?));
        }
        Ok(if end > inside.1 {
            Some(format!(
                "{}: {} of axis {} ends at element {end}, but {}",
                place(),
                self.tiled(max),
                self.axis,
                self.exist(inside.0, inside.1, extent)
            ))
        } else if first < inside.0 {
            Some(format!(
                "{}: {} of axis {} begins at element {first}, but {}",
                place(),
                self.tiled(min),
                self.axis,
                self.exist(inside.0, inside.1, extent)
            ))
        } else {
            None
        })
    }

    /// The bound of a load or store of the single elements at an index.
    fn of_index(ranges: &Ranges, op: &Op, tensor: &TensorType, axis: usize, index: Range) -> Bound {
        let known = |dim: &Dim| ranges.facts().apply(dim);
        let windows = tensor.layout.as_ref().map_or_else(Vec::new, |layout| layout.windows[axis].clone());
        let windows = windows.iter().map(|(begin, end)| (known(begin), known(end))).collect();
        let (tile, step, extent) = (Dim::from(1), Dim::from(1), known(&tensor.extents[axis]));
        Bound { op: op.name(), masked: masked(op), axis, index, tile, step, extent, windows }
    }

    fn tiled(&self, index: i64) -> String {
        if self.op == "select" { format!("index {index}") } else { format!("tile {index}") }
    }

    fn exist(&self, begin: i64, end: i64, extent: i64) -> String {
        if (begin, end) != (0, extent) {
            return format!("elements exist from {begin} to {end}");
        }
        match self.extent.as_const() {
            Some(_) => format!("the axis has {extent} elements"),
            None => format!("the axis has {extent} elements ({:#})", self.extent),
        }
    }
}

/// The bounds of an unmasked load or store of a kernel, or those that a masked one would have without its mask.
/// Other ops have none.
///
/// # Errors
/// [`Unbounded`] where an index has no range.
pub fn bounds(kernel: &Kernel, ranges: &Ranges, op: OpId) -> Result<Vec<Bound>, Unbounded> {
    let data = kernel.op(op);
    let index = match data.load() {
        _ if data.op == (Op::Load { checked: false }) => return Ok(Vec::new()),
        None if !data.op.is_store() => return Ok(Vec::new()),
        _ => data.tile_index(),
    };
    let Some(view) = data.operands.first().and_then(|&view| kernel.ty(view).as_partition()) else {
        return Ok(Vec::new());
    };
    let first_operand = data.operands.len() - index.len();
    let mut found = selections(kernel, ranges, op)?;
    for axis in 0..view.tile.len() {
        let range = match view.index_along(axis, index) {
            None => own_tile(ranges, view, axis),
            Some(&value) => {
                let range = ranges.at(op, value);
                if !range.is_known() {
                    let number = view.indexed_axes().iter().position(|&indexed| indexed == axis);
                    return Err(unbounded(data.op.name(), axis, number.map(|number| first_operand + number)));
                }
                range
            }
        };
        let (tile, step) = (view.tile[axis].clone(), view.steps[axis].clone());
        found.push(Bound { tile, step, ..Bound::of_index(ranges, &data.op, &view.tensor, axis, range) });
    }
    Ok(found)
}

fn unbounded(op: &str, axis: usize, operand: Option<usize>) -> Unbounded {
    let message = format!(
        "the index of axis {axis} can't be bounded, but `{op}` needs every element inside the tensor"
    );
    Unbounded { operand, message }
}

fn own_tile(ranges: &Ranges, view: &PartitionType, axis: usize) -> Range {
    let last = ranges.facts().apply(&view.grid()[axis]) - Dim::from(1);
    Range { min: vec![Dim::from(0)], max: vec![last], ..Range::default() }
}

/// The selections that the view of a load or store was made by.
fn selections(kernel: &Kernel, ranges: &Ranges, op: OpId) -> Result<Vec<Bound>, Unbounded> {
    let data = kernel.op(op);
    let tensor = |view: ValueId| kernel.definition(view).and_then(|data| data.operands.first().copied());
    let Some(tensor) = data.operands.first().and_then(|&view| tensor(view)) else { return Ok(Vec::new()) };
    let selections = Source::of(kernel, tensor).selections;
    selections
        .into_iter()
        .map(|selection| {
            let range = ranges.at(op, selection.index);
            if !range.is_known() {
                let Unbounded { message, .. } = unbounded(data.op.name(), selection.axis, None);
                let message = message.replacen("the index of axis", "the `select` of axis", 1);
                return Err(Unbounded { operand: None, message });
            }
            let bound = Bound::of_index(ranges, &data.op, &selection.from, selection.axis, range);
            Ok(Bound { op: "select", ..bound })
        })
        .collect()
}

/// The op that does what a load or store does, and is defined for every index.
pub fn masked(op: &Op) -> &'static str {
    if op.is_store() { "store_masked" } else { "load_masked" }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::VerifiedKernel;
    use crate::text::parse;
    use tile_test_edit::Edit;

    /// The bounds of the first load of `x: tensor<m x f32>` in tiles of 4, in a kernel that isn't verified.
    fn first_load(lines: &str) -> Result<Vec<Bound>, Unbounded> {
        let source = format!(
            "kernel @k(%x: tensor<m x f32>, %s: index, %y: mut tensor<n x f32>) {{
  %v = partition %x [4] : partition<m x f32, [4]>
  %w = partition %y [8] : mut partition<n x f32, [8]>
  %i = block_index %w : index
{lines}
}}
"
        );
        let kernel = parse(&source).unwrap();
        let load = |op: &OpId| kernel.op(*op).op.is_load() || kernel.op(*op).op.is_store();
        let op = kernel.walk().into_iter().find(load).unwrap();
        bounds(&kernel, &Ranges::of(&kernel), op)
    }

    /// `4294967296*m′` times itself is no bound, `m*m` is.
    #[test]
    fn a_bound_that_conditions_make_too_large_is_checked_without_them() {
        let source =
            "kernel @k(%x: tensor<m x f32>, %y: mut tensor<n x f32>) where \"a\": rem(m, 4294967296) eq 0 {
  %v = partition %x [4] : partition<m x f32, [4]>
  %w = partition %y [4] : mut partition<n x f32, [4]>
  %zero = constant 0 : index
  %zeros = constant 0.0 : f32
  %tile = splat %zeros : tile<4 x f32>
  %end = extent m : index
  for %p = %zero to %end {
    for %q = %zero to %end {
      %r = mul %p, %q : index
      %t = load %v[%r] : tile<4 x f32>
    }
  }
  store_masked %w, %tile
}
";
        let kernel = VerifiedKernel::parse(source).unwrap();
        assert_eq!(crate::specialize(&kernel, &[]).unwrap().checks().len(), 1);
    }

    fn violation(lines: &str, m: i64, n: i64) -> Option<String> {
        let lookup = move |name: &str| match name {
            "m" => Some(m),
            "n" => Some(n),
            _ => None,
        };
        let bounds = first_load(lines).unwrap();
        bounds.iter().find_map(|bound| bound.violation("`x`", &lookup).unwrap())
    }

    #[test]
    fn block_indices_are_checked_with_sizes() {
        let load = "  %t = load %v[%i] : tile<4 x f32>";
        // Blocks 0..ceil(n/8), tiles of 4 of m.
        assert_eq!(violation(load, 8, 16), None);
        assert_eq!(violation(load, 100, 16), None);
        assert_eq!(
            violation(load, 7, 16).unwrap(),
            "`load` of `x`: tile 1 of axis 0 ends at element 8, but the axis has 7 elements (m)"
        );
        let store = "  store %w, %t";
        let filled = format!("  %z = constant 0.0 : f32\n  %t = splat %z : tile<8 x f32>\n{store}");
        assert_eq!(violation(&filled, 0, 16), None);
        assert_eq!(
            violation(&filled, 0, 17).unwrap(),
            "`store` of `x`: tile 2 of axis 0 ends at element 24, but the axis has 17 elements (n)"
        );
    }

    #[test]
    fn loops_that_run_over_nothing_read_nothing() {
        let lines = "  %a = constant 3 : index
  %b = extent floor_div(m, 4) - 1 : index
  for %p = %a to %b {
    %t = load %v[%p] : tile<4 x f32>
  }";
        assert_eq!(violation(lines, 3, 8), None);
        assert_eq!(violation(lines, 40, 8), None);
        let beyond = lines.edit(" - 1", " + 1");
        assert!(violation(&beyond, 40, 8).is_some());
        assert_eq!(violation(&beyond, 8, 8), None);
    }

    #[test]
    fn differences_must_not_be_negative() {
        let lines = "  %one = constant 1 : index
  %b = sub %i, %one : index
  %t = load %v[%b] : tile<4 x f32>";
        assert_eq!(violation(lines, 100, 8).unwrap(), "`load` of `x`: the index of axis 0 can be -1");
        let shifted = "  %one = constant 1 : index
  %end = extent m : index
  for %p = %one to %end {
    %b = sub %p, %one : index
    %q = div %b, %end : index
    %t = load %v[%q] : tile<4 x f32>
  }";
        // (p - 1) / m is at most m - 2, and m - 2 tiles of 4 don't fit m but for m = 1, where no p exists.
        assert_eq!(violation(shifted, 1, 8), None);
        assert!(violation(shifted, 4, 8).is_some());
    }

    #[test]
    fn data_bounds_nothing() {
        let error = first_load("  %t = load %v[%s] : tile<4 x f32>").unwrap_err();
        assert_eq!(error.operand, Some(1));
        assert_eq!(
            error.message,
            "the index of axis 0 can't be bounded, but `load` needs every element inside the tensor"
        );
    }
}
