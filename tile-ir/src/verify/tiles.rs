//! The loop over tiles of a persistent kernel: that there is one, where it stands, and that ops which mean the tile
//! that the block owns stand in it.

use super::Verifier;
use crate::kernel::{Kernel, OpId};
use crate::ops::Op;

/// Where the verifier is, seen from the loop over tiles.
pub(super) struct TileLoops {
    /// The kernel's first loop over tiles.
    pub(super) first: Option<OpId>,
    /// Whether what is looked at stands in one.
    inside: bool,
}

impl TileLoops {
    pub(super) fn of(kernel: &Kernel) -> TileLoops {
        let first = kernel.walk().into_iter().find(|&op| matches!(kernel.op(op).op, Op::Tiles(_)));
        TileLoops { first, inside: false }
    }
}

impl Verifier<'_> {
    /// Blocks that share tiles own one in the loop over them only.
    pub(super) fn own_tile(&mut self, op: OpId) {
        let data = self.kernel.op(op);
        let view = data.operands.first().and_then(|&view| self.kernel.ty(view).as_partition());
        let is_own =
            data.op.is_load() || data.op.is_store() || matches!(data.op, Op::BlockIndex | Op::Prefetch);
        if !is_own || !view.is_some_and(|view| view.tensor.mutable) {
            return;
        }
        if self.tiles.first.is_some() && !self.tiles.inside {
            let tensor = self.kernel.tensor_name(data.operands[0]);
            let name = if data.op == Op::BlockIndex { "index" } else { data.op.name() };
            self.error_with_help(
                data.loc,
                format!(
                    "`{name}` of {tensor} stands outside of the loop over tiles, where the block owns no tile"
                ),
                "move it into the loop over `tiles_persistent`, where it means the loop's tile",
            );
        }
    }

    pub(super) fn tile_loop(&mut self, op: OpId, top_level: bool) {
        let loc = self.kernel.op(op).loc;
        if !top_level {
            self.error_with_help(
                loc,
                "the loop over tiles stands in a loop or branch, or after a `return`, so not every block would \
                 handle its tiles",
                "put it at the top level of the kernel, and the condition into it: `if … { continue; }`",
            );
        }
        if self.tiles.first != Some(op) {
            self.error_with_help(
                loc,
                "a kernel has one loop over tiles, and this is another",
                "do the work of both in the first, or write two kernels",
            );
        }
        let outside = std::mem::replace(&mut self.tiles.inside, true);
        self.loop_region(op);
        self.tiles.inside = outside;
    }
}

#[cfg(test)]
mod tests {
    use crate::verify::VerifyError;
    use crate::{text, verify};

    fn errors(head: &str, body: &str) -> Vec<String> {
        let source = format!(
            "kernel @k{head}(%x: tensor<m x n x f32>, %y: mut tensor<m x n x f32>) {{
  %vx = partition %x [4, 4] : partition<m x n x f32, [4, 4]>
  %vy = partition %y [4, 4] : mut partition<m x n x f32, [4, 4]>
  %0 = constant 0.0 : f32
  %t = splat %0 : tile<4 x 4 x f32>
  %c = constant true : bool
{body}
}}
"
        );
        let kernel = text::parse(&source).unwrap_or_else(|error| panic!("{error}\n{source}"));
        assert_eq!(text::print(&kernel), source);
        let message = |error: VerifyError| match error.help {
            Some(help) => format!("{} / {help}", error.message),
            None => error.message,
        };
        verify(kernel).err().unwrap_or_default().into_iter().map(message).collect()
    }

    #[test]
    fn a_loop_over_tiles_at_the_top_level_is_fine() {
        for order in ["row_major", "grouped(8)", "hilbert"] {
            let body = format!(
                "  %s = tiles %vy {order} carry (%a = %0) : f32 {{
    %i, %j = block_index %vy : index, index
    %1 = load %vx[%i, %j] : tile<4 x 4 x f32>
    if %c {{
      store %vy, %1
    }}
    yield %a
  }}"
            );
            assert_eq!(errors("", &body), [""; 0]);
        }
        assert_eq!(errors("<G>", "  tiles %vy grouped(G + 1) {\n    store_masked %vy, %t\n  }"), [""; 0]);
    }

    #[test]
    fn a_block_owns_a_tile_in_the_loop_only() {
        let body = "  tiles %vy row_major {\n    store_masked %vy, %t\n  }\n  store_masked %vy, %t";
        let help = " / move it into the loop over `tiles_persistent`, where it means the loop's tile";
        let outside = "stands outside of the loop over tiles, where the block owns no tile";
        assert_eq!(errors("", body), [format!("`store_masked` of `y` {outside}{help}")]);
        let body = "  prefetch %vy\n  tiles %vy row_major {\n    prefetch %vy\n    store_masked %vy, %t\n  }";
        assert_eq!(errors("", body), [format!("`prefetch` of `y` {outside}{help}")]);
        let body = "  %i, %j = block_index %vy : index, index
  %1 = load_masked %vy pad %0 : tile<4 x 4 x f32>
  tiles %vy row_major {
    store_masked %vy, %1
  }";
        let expected = ["index", "load_masked"].map(|op| format!("`{op}` of `y` {outside}{help}"));
        assert_eq!(errors("", body), expected);
    }

    #[test]
    fn there_is_one_loop_at_the_top_level() {
        let tiles = "tiles %vy row_major {\n    store_masked %vy, %t\n  }";
        assert_eq!(
            errors("", &format!("  {tiles}\n  {tiles}")),
            [
                "a kernel has one loop over tiles, and this is another / do the work of both in the first, or write two kernels"
            ]
        );
        let nested = "  if %c {\n    tiles %vy row_major {\n      store_masked %vy, %t\n    }\n  }";
        assert_eq!(
            errors("", nested),
            [
                "the loop over tiles stands in a loop or branch, or after a `return`, so not every block would handle its tiles / put it at the top level of the kernel, and the condition into it: `if … { continue; }`"
            ]
        );
    }

    #[test]
    fn orders_blocks_and_carried_values_are_checked() {
        let store = "    store_masked %vy, %t\n";
        assert_eq!(
            errors("", &format!("  tiles %vy grouped(0) {{\n{store}  }}")),
            ["the height `0` of a group is not positive"]
        );
        assert_eq!(
            errors("", &format!("  tiles %vy grouped(n) {{\n{store}  }}")),
            [
                "the height `n` of a group is known only at run time / it is a literal or a const parameter of the kernel"
            ]
        );
        assert_eq!(
            errors("", &format!("  tiles %vx row_major {{\n{store}  }}")),
            [
                "`tiles` needs a mutable partition view / make it with `partition_view_mut` of a `&mut Tensor` argument"
            ]
        );
        assert_eq!(
            errors("", &format!("  %b = block_id axis 1 : index\n  tiles %vy row_major {{\n{store}  }}")),
            [
                "axis 1 of `block_id` is out of range: the grid has rank 1 / blocks that share tiles have one axis; `tile.index()` is where the tile is"
            ]
        );
        assert_eq!(
            errors(
                "",
                &format!("  %s = tiles %vy row_major carry (%a = %0) : f32 {{\n{store}    yield %c\n  }}")
            ),
            ["a region of `tiles` yields (bool), but its results are (f32)"]
        );
        let unbounded = "  tiles %vy row_major {
    %b = block_id axis 0 : index
    %1 = load %vx[%b, %b] : tile<4 x 4 x f32>
    store_masked %vy, %1
  }";
        let found = errors("", unbounded);
        assert!(found[0].starts_with("the index of axis 0 can't be bounded"), "{found:?}");
    }
}
