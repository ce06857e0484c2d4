//! Reductions of the same rows that share a loop: the sum of a row and the sum of its squares, say.
//!
//! A reduction is **hosted** by an earlier one of its region if its own loop would read from tensors what the earlier one's
//! loop reads, and needs nothing that is computed only in between. That saves one pass over the row, from whichever cache
//! it comes.

use crate::cpu::fuse::{Fusion, is_reduction_of_rows, is_tile};
use std::collections::HashMap;
use tile_ir::kernel::OpData;
use tile_ir::{RegionId, ValueId};

/// The most reductions of one loop: each has a register of partial results, or several on processors with short ones.
const MOST: usize = 3;

/// By the result of a reduction that is hosted, that of its host.
pub(in crate::cpu) type Hosted = HashMap<ValueId, ValueId>;

/// Finds the reductions that have a host.
pub(in crate::cpu) fn decide(fusion: &Fusion<'_>) -> Hosted {
    let mut hosted = Hosted::new();
    decide_in(fusion, fusion.instance().body(), &mut hosted);
    hosted
}

fn decide_in(fusion: &Fusion<'_>, region: RegionId, hosted: &mut Hosted) {
    let instance = fusion.instance();
    let ops: Vec<&OpData> = instance.region(region).ops.iter().map(|&op| instance.op(op)).collect();
    let mut loops: Vec<(usize, Vec<&OpData>)> = Vec::new();
    for (at, &data) in ops.iter().enumerate() {
        data.regions.iter().for_each(|&inner| decide_in(fusion, inner, hosted));
        if !is_reduction_of_rows(instance, data) {
            continue;
        }
        let host = loops.iter_mut().find(|(place, members)| {
            members.len() < MOST && shares_rows(fusion, [members[0], data], &ops[..*place])
        });
        match host {
            Some((_, members)) => {
                hosted.insert(data.results[0], members[0].results[0]);
                members.push(data);
            }
            None => loops.push((at, vec![data])),
        }
    }
}

/// Whether the second of two reductions goes through the rows that the first does, and needs nothing but that and what comes
/// `before` it.
fn shares_rows(fusion: &Fusion<'_>, [first, second]: [&OpData; 2], before: &[&OpData]) -> bool {
    let shape = |data: &OpData| fusion.shape_of(data.operands[0]);
    let [rows, own] = [first, second].map(|data| fusion.streams_of(data));
    let reads_rows = own.iter().all(|load| rows.iter().any(|row| std::ptr::eq(*row, *load)));
    let has_gathers = [first, second].iter().any(|data| !fusion.gathers_of(data).is_empty());
    shape(first) == shape(second)
        && !own.is_empty()
        && reads_rows
        && !has_gathers
        && fusion.made_by(second).is_none()
        && fusion.keeps_rows(second)
        && needs(fusion, second).into_iter().all(|value| {
            let defined = fusion.definition(value);
            let is_beside = fusion.home(value) == fusion.home(second.results[0]);
            let comes_before = |data: &OpData| before.iter().any(|op| std::ptr::eq(*op, data));
            !fusion.is_left_to_reduction(value) && (!is_beside || defined.is_none_or(comes_before))
        })
}

/// The scalars and stored tiles that a reduction's loop needs.
fn needs(fusion: &Fusion<'_>, data: &OpData) -> Vec<ValueId> {
    let is_needed = |value: &ValueId| !is_tile(fusion.instance(), *value) || fusion.is_stored(*value);
    let computed = fusion.computed_by(data);
    computed.into_iter().flat_map(|op| op.operands.iter().copied().filter(is_needed)).collect()
}

impl<'a> Fusion<'a> {
    /// Whether another reduction's loop does this one.
    pub(in crate::cpu) fn is_hosted(&self, data: &OpData) -> bool {
        data.results.first().is_some_and(|result| self.hosted().contains_key(result))
    }

    /// The reductions that one hosts, in order.
    pub(in crate::cpu) fn hosted_by(&self, data: &OpData) -> Vec<&'a OpData> {
        let own = data.results.first();
        let hosted = self.hosted().iter().filter(|(_, first)| Some(*first) == own);
        let mut results: Vec<ValueId> = hosted.map(|(&result, _)| result).collect();
        results.sort_unstable();
        results.into_iter().filter_map(|result| self.definition(result)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tile_ir::Instance;

    /// How many reductions have a host, of a row `%x1` of one tensor and `%w1` of another.
    fn hosted(body: &str) -> usize {
        let source = format!(
            "kernel @k(%x: tensor<64 x 256 x f32>, %w: tensor<64 x 256 x f32>, %y: mut tensor<64 x 1 x f32>) {{
  %vx = partition %x [1, 256] : partition<64 x 256 x f32, [1, 256]>
  %vw = partition %w [1, 256] : partition<64 x 256 x f32, [1, 256]>
  %vy = partition %y [1, 1] : mut partition<64 x 1 x f32, [1, 1]>
  %i, %j = block_index %vy : index, index
  %x1 = load %vx[%i, %j] : tile<1 x 256 x f32>
  %w1 = load %vw[%i, %j] : tile<1 x 256 x f32>
  %a = reduce sum %x1 axis 1 : tile<1 x 1 x f32>
{body}  %r = add %a, %b : tile<1 x 1 x f32>
  store %vy, %r
}}
"
        );
        let instance = Instance::parse(&source, &[]).unwrap();
        Fusion::of(&instance).hosted().len()
    }

    const OTHER: &str = "  %b = reduce max %c axis 1 : tile<1 x 1 x f32>\n";

    #[test]
    fn reductions_of_a_row_share_a_loop() {
        let squares = format!("  %c = mul %x1, %x1 : tile<1 x 256 x f32>\n{OTHER}");
        assert_eq!(hosted(&squares), 1);
        let four = "  %p = reduce prod %x1 axis 1 : tile<1 x 1 x f32>
  %l = reduce min %x1 axis 1 : tile<1 x 1 x f32>
  %g = reduce max %x1 axis 1 : tile<1 x 1 x f32>
  %pl = add %p, %l : tile<1 x 1 x f32>
  %b = add %pl, %g : tile<1 x 1 x f32>
";
        assert_eq!(hosted(four), 2, "a loop of three and one of its own");
    }

    #[test]
    fn what_is_known_only_in_between_has_a_loop_of_its_own() {
        let centred =
            "  %ab = broadcast %a : tile<1 x 256 x f32>\n  %c = sub %x1, %ab : tile<1 x 256 x f32>\n";
        assert_eq!(hosted(&format!("{centred}{OTHER}")), 0);
        let other_row = "  %c = mul %w1, %w1 : tile<1 x 256 x f32>\n";
        assert_eq!(hosted(&format!("{other_row}{OTHER}")), 0, "another row");
        let two_rows = "  %c = mul %x1, %w1 : tile<1 x 256 x f32>\n";
        assert_eq!(hosted(&format!("{two_rows}{OTHER}")), 0, "one more row than the first reads");
    }
}
