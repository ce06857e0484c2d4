//! `mma` and its precision modes.

use super::{Lowered, Lowering};
use crate::elements::Elements;
use crate::span::Spanned;
use crate::value::Val;
use syn::ExprCall;
use tile_ir::ops::UnaryOp;
use tile_ir::{DType, Op};

impl Lowering {
    pub(super) fn mma(&mut self, name: &str, call: &ExprCall) -> Lowered<Val> {
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
        self.emit_one(Op::Mma, &tiles, span, &arguments.spans).map(Val::Data)
    }
}
