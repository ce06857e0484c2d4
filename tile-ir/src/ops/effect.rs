//! What ops do besides giving results, said of every op here and derived everywhere else: what passes must leave where it
//! is, what memory is reached, and what other blocks or the host see.

use super::Op;

/// What an op does besides giving results. What is in its regions does that itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Nothing.
    None,
    /// Reads elements of its first operand, a tensor or a partition.
    Reads,
    /// Writes elements of its first operand, a partition: those of the block's own tile.
    Writes,
    /// Reads and writes elements of its first operand, a tensor: any, to which other blocks come as well.
    ReadsAndWrites,
    /// Says something to the host.
    Says,
    /// Asks for what will be read of its first operand, a partition: no value depends on it.
    Hints,
    /// Ends a region.
    EndsRegion,
}

impl Effect {
    /// Whether values that are in a tensor come from it.
    pub const fn reads(self) -> bool {
        match self {
            Effect::Reads | Effect::ReadsAndWrites => true,
            Effect::None | Effect::Writes | Effect::Says | Effect::Hints | Effect::EndsRegion => false,
        }
    }

    /// Whether a tensor has other values after it.
    pub const fn writes(self) -> bool {
        match self {
            Effect::Writes | Effect::ReadsAndWrites => true,
            Effect::None | Effect::Reads | Effect::Says | Effect::Hints | Effect::EndsRegion => false,
        }
    }

    /// Whether others than the block's next ops see when it is done, or by which block.
    pub const fn is_seen_by_others(self) -> bool {
        match self {
            Effect::ReadsAndWrites | Effect::Says => true,
            Effect::None | Effect::Reads | Effect::Writes | Effect::Hints | Effect::EndsRegion => false,
        }
    }
}

impl Op {
    /// What the op does besides giving results.
    pub const fn effect(&self) -> Effect {
        match self {
            // Numbers and elements at a place.
            Op::Constant { .. } | Op::Extent(_) | Op::BlockId { .. } | Op::BlockCount { .. } => Effect::None,
            Op::Unary(_) | Op::Binary(_) | Op::Compare(_) | Op::Classify(_) | Op::Select => Effect::None,
            Op::Cast(_) | Op::CastWith(..) | Op::SaturatingCast(_) | Op::Bitcast(_) => Effect::None,
            Op::Lookup { .. } | Op::MulAdd => Effect::None,
            // Tiles of tiles and numbers.
            Op::Splat(_) | Op::Iota { .. } | Op::Broadcast(_) | Op::Reshape(_) | Op::Permute(_) => {
                Effect::None
            }
            Op::Movement(_) | Op::Gather { .. } | Op::Scatter { .. } | Op::Item => Effect::None,
            Op::Reduce { .. } | Op::Scan { .. } | Op::Sort { .. } | Op::Histogram(_) => Effect::None,
            Op::Mma | Op::MmaScaled | Op::ConvertLayout => Effect::None,
            // Views, of which no element is read.
            Op::View(_) | Op::Partition(_) | Op::BlockIndex => Effect::None,
            // Regions.
            Op::For | Op::While | Op::Tiles(_) | Op::If => Effect::None,
            Op::ReduceWith { .. } | Op::ScanWith { .. } => Effect::None,
            Op::Yield => Effect::EndsRegion,
            // Memory, and the host.
            Op::LoadMasked | Op::Load { .. } | Op::GatherLoad => Effect::Reads,
            Op::StoreMasked | Op::Store => Effect::Writes,
            Op::Atomic(_) => Effect::ReadsAndWrites,
            Op::Prefetch => Effect::Hints,
            Op::Print { .. } | Op::Assert { .. } => Effect::Says,
        }
    }

    /// Whether the op does something besides giving results, so that it must stay where it is.
    pub const fn has_effect(&self) -> bool {
        match self.effect() {
            Effect::None | Effect::Reads => false,
            Effect::Writes | Effect::ReadsAndWrites | Effect::Says | Effect::Hints | Effect::EndsRegion => {
                true
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::ops::Op;
    use crate::passes::{PIPELINE, run};
    use crate::view::Source;
    use crate::{Instance, VerifiedKernel};

    /// Every op with an effect, twice on the same operands, in a loop that changes none of these; and what reads what is
    /// written.
    const TWICE: &str = "\
kernel @k(%x: tensor<m x i32>, %c: mut tensor<n x i32>, %y: mut tensor<m x i32>) {
  %vx = partition %x [4] : partition<m x i32, [4]>
  %vy = partition %y [4] : mut partition<m x i32, [4]>
  %i = block_index %vy : index
  %0 = constant 0 : index
  %9 = constant 9 : index
  %one = constant 1 : i32
  %yes = constant true : bool
  %ones = splat %one : tile<4 x i32>
  %t = load_masked %vx[%i] pad %one : tile<4 x i32>
  %g = gather_load %x[%t] pad %one : tile<4 x i32>
  %r = for %p = %0 to %9 carry (%a = %g) : tile<4 x i32> {
    %u = load_masked %vy pad %one : tile<4 x i32>
    %v = load_masked %vy pad %one : tile<4 x i32>
    %w = add %u, %v : tile<4 x i32>
    store_masked %vy, %ones
    store_masked %vy, %ones
    %d = atomic add relaxed device %c[%ones], %ones : tile<4 x i32>
    %e = atomic add relaxed device %c[%ones], %ones : tile<4 x i32>
    prefetch %vx[%0]
    prefetch %vx[%0]
    print 0 \"{0}\" %one
    print 1 \"{0}\" %one
    %b = add %a, %w : tile<4 x i32>
    yield %b
  }
  store %vy, %r
}
";

    #[test]
    fn what_has_an_effect_is_done_where_it_stands_and_as_often() {
        for pass in PIPELINE {
            let rewritten = run(Instance::parse(TWICE, &[]).unwrap(), pass);
            let turn = rewritten.walk().into_iter().find(|&op| rewritten.op(op).op == Op::For).unwrap();
            let inside = rewritten.walk_in(rewritten.op(turn).regions[0]);
            let effects = inside.iter().filter(|&&op| rewritten.op(op).op.has_effect()).count();
            let loads = inside.iter().filter(|&&op| rewritten.op(op).op.is_load()).count();
            assert_eq!((effects, loads), (9, 2), "after {}", pass.name);
        }
    }

    #[test]
    fn an_op_that_reads_or_writes_reaches_a_tensor() {
        let kernel = VerifiedKernel::parse(TWICE).unwrap();
        for op in kernel.walk().into_iter().map(|op| kernel.op(op)) {
            let effect = op.op.effect();
            let reached = Source::reached_by(&kernel, op).map(|source| source.argument);
            assert_eq!(reached.is_some(), effect.reads() || effect.writes(), "{}", op.op.name());
            assert!(reached.is_none_or(|argument| kernel.params().contains(&argument)), "{}", op.op.name());
        }
    }
}
