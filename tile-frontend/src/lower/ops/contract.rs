//! `mma`, its precision modes, and the formats of its sums.

use crate::diagnostic::Diagnostic;
use crate::elements::Elements;
use crate::lower::{Lowered, Lowering};
use crate::signature::accumulator_of_parameter;
use crate::span::{Span, Spanned};
use crate::value::Val;
use syn::ExprCall;
use tile_ir::ops::infer::{display_shape, mma_accumulators};
use tile_ir::ops::{BinaryOp, UnaryOp};
use tile_ir::{DType, Dim, Elem, Op, ValueId};

/// Elements along K that share a scale, the usual numbers first.
const BLOCKS: [i64; 17] =
    [32, 16, 64, 128, 8, 4, 2, 1, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536];

impl Lowering {
    pub(in crate::lower) fn mma(&mut self, name: &str, call: &ExprCall) -> Lowered<Val> {
        let span = call.span();
        let arguments = self.arguments(name, &call.args, 3, &format!("{name}(a, b, acc)"), span)?;
        let names = ["first operand", "second operand", "accumulator"];
        let mut tiles = Vec::new();
        for ((value, &place), what) in arguments.values.iter().zip(&arguments.spans).zip(names) {
            tiles.push(self.tile(value, &format!("the {what} of `{name}`"), place)?);
        }
        let factors = [self.elem(tiles[0]), self.elem(tiles[1])];
        if factors.iter().any(Elements::is_unknown) {
            self.unify(tiles[0], tiles[1], &format!("`{name}`"), arguments.spans[1])?;
        }
        if name == "mma_tf32" {
            for (tile, &place) in tiles.iter_mut().zip(&arguments.spans).take(2) {
                self.require_elem(*tile, &DType::F32.into(), "an operand of `mma_tf32`", place)?;
                *tile = self.emit_one(Op::Unary(UnaryOp::RoundTf32), &[*tile], span, &[place])?;
            }
        }
        self.choose_accumulator(tiles[0], tiles[1], tiles[2]);
        self.emit_one(Op::Mma, &tiles, span, &arguments.spans).map(Val::Data)
    }

    /// Leaves an accumulator whose format is open those that there are for the factors' formats, or that a bound of the
    /// kernel names for them, as rustc does. What fits none of them is then wrong where it is asked for.
    fn choose_accumulator(&mut self, left: ValueId, right: ValueId, accumulator: ValueId) {
        let accumulator = self.elem(accumulator);
        if !Elements::is_unknown(&accumulator) {
            return;
        }
        let choice = match (self.elem(left), self.elem(right)) {
            (Elem::Known(left), Elem::Known(right)) => {
                let formats = mma_accumulators(left, right).iter().copied().map(Elem::from);
                self.elements.one_of(formats.collect())
            }
            (Elem::Param(left), Elem::Param(right)) if left == right => {
                let Some(named) = accumulator_of_parameter(&self.generics, &left) else { return };
                named
            }
            _ => return,
        };
        // Sums that other products make too, of other formats, are the type rule's to refuse.
        let _ = self.elements.unify(&accumulator, &choice);
    }

    /// Accumulators whose format nothing else decides have the one that there is; where there are two, nothing is decided.
    pub(in crate::lower) fn decide_accumulators(&mut self) {
        for op in self.kernel.op_ids() {
            let data = self.kernel.op(op);
            // The factors' formats may have been open before.
            if let (Op::Mma, &[left, right, accumulator]) = (&data.op, data.operands.as_slice()) {
                self.choose_accumulator(left, right, accumulator);
            }
        }
        self.elements.decide_only_choices();
    }

    /// `mma_scaled(a, scale_a, b, scale_b, acc)`, in the steps of `tile::kernel::mma_scaled`.
    pub(in crate::lower) fn mma_scaled(&mut self, call: &ExprCall) -> Lowered<Val> {
        let (name, span) = ("mma_scaled", call.span());
        let usage = "mma_scaled(a, scale_a, b, scale_b, acc)";
        let arguments = self.arguments(name, &call.args, 5, usage, span)?;
        let names =
            ["first operand", "scales of the first", "second operand", "scales of the second", "accumulator"];
        let mut tiles = Vec::new();
        for ((value, &place), what) in arguments.values.iter().zip(&arguments.spans).zip(names) {
            tiles.push(self.tile(value, &format!("the {what} of `{name}`"), place)?);
        }
        let spans = &arguments.spans;
        let a = self.scaled(tiles[0], tiles[1], 1, [spans[0], spans[1]])?;
        let b = self.scaled(tiles[2], tiles[3], 2, [spans[2], spans[3]])?;
        self.require_elem(tiles[4], &DType::F32.into(), "the accumulator of `mma_scaled`", spans[4])?;
        self.emit_one(Op::Mma, &[a, b, tiles[4]], span, &[spans[0], spans[2], spans[4]]).map(Val::Data)
    }

    /// A factor in f32 times its scales, each of which belongs to a block along the axis that is so many from the end.
    fn scaled(
        &mut self,
        tile: ValueId,
        scales: ValueId,
        from_end: usize,
        places: [Span; 2],
    ) -> Lowered<ValueId> {
        let (shape, blocks) = (self.shape(tile).unwrap_or_default(), self.shape(scales).unwrap_or_default());
        let axis = shape.len().saturating_sub(from_end);
        let is_alike = shape.len() >= 2
            && shape.len() == blocks.len()
            && (0..shape.len()).all(|i| i == axis || shape[i] == blocks[i]);
        let block = is_alike.then(|| {
            BLOCKS.into_iter().map(Dim::from).find(|block| {
                self.facts.apply(&(blocks[axis].clone() * block.clone())) == self.facts.apply(&shape[axis])
            })
        });
        let block = block.flatten();
        let Some(block) = block else {
            let message = format!(
                "scales of shape {} don't fit a factor of shape {}",
                display_shape(&blocks),
                display_shape(&shape)
            );
            let extents = shape.get(axis).zip(blocks.get(axis));
            let rounded = extents.and_then(|(extent, blocks)| {
                BLOCKS
                    .into_iter()
                    .map(Dim::from)
                    .find(|block| extent.floor_div(block) == *blocks)
                    .map(|block| extent.rem(&block))
                    .filter(|remainder| remainder.as_const().is_none())
            });
            let help = match rounded {
                Some(remainder) => format!("say that blocks are whole: `#[tile_kernel(where({remainder:#} == 0))]`"),
                None => "scales are [M, G] and [G, N] for factors [M, 32 * G] and [32 * G, N], leading axes as those of the factor; \
                         blocks are a power of two"
                    .to_owned(),
            };
            let diagnostic = Diagnostic::new(places[1], message).help(help);
            let diagnostic = self.with_origin(diagnostic, tile);
            let diagnostic = self.with_origin(diagnostic, scales);
            return self.report(diagnostic);
        };
        let (mut column, mut repeated) = (blocks.clone(), blocks);
        column.insert(axis + 1, Dim::from(1));
        repeated.insert(axis + 1, block);
        let [place, scale_place] = places;
        let scales = self.emit_one(Op::Cast(DType::F32.into()), &[scales], scale_place, &[scale_place])?;
        let scales = self.emit_one(Op::Reshape(column), &[scales], scale_place, &[scale_place])?;
        let scales = self.emit_one(Op::Broadcast(repeated), &[scales], scale_place, &[scale_place])?;
        let scales = self.emit_one(Op::Reshape(shape), &[scales], scale_place, &[scale_place])?;
        let factor = self.emit_one(Op::Cast(DType::F32.into()), &[tile], place, &[place])?;
        self.emit_one(Op::Binary(BinaryOp::Mul), &[factor, scales], place, &places)
    }
}
