//! Rows of tensors whose elements are a few places apart, such as one colour of an image's pixels or the real parts of
//! complex numbers: what a line of a store needs is **picked** out of vectors that are loaded whole.
//!
//! LLVM's vectoriser does the same for loops that may end with scalar iterations, but makes one load per lane of a single
//! vector.

use crate::cpu::region::Emitter;
use crate::cpu::vectors::vector_type;
use crate::emit::Value;
use inkwell::values::{BasicValue, IntValue, PointerValue, VectorValue};
use tile_ir::ValueId;
use tile_ir::cpu::MOST_APART;

/// Lanes of a tile's row, as memory has them, on the stack.
pub(in crate::cpu) struct Picked<'c> {
    tile: ValueId,
    lanes: PointerValue<'c>,
}

impl<'a, 'c> Emitter<'a, 'c> {
    /// Picks the elements from `first` on of a row, so many, of the tiles that ops on elements read to compute these.
    pub(in crate::cpu) fn pick(
        &mut self,
        tiles: &[ValueId],
        row: &[IntValue<'c>],
        first: IntValue<'c>,
        lanes: i64,
    ) -> Vec<Picked<'c>> {
        let read = self.fusion.read_in_place(tiles).into_iter();
        read.filter_map(|tile| self.picked(tile, row, first, lanes)).collect()
    }

    /// Makes picked elements those that ops read, in a lane; until they are [let go](Self::let_go_of_picked).
    pub(in crate::cpu) fn know_picked(&mut self, picked: &[Picked<'c>], lane: IntValue<'c>) {
        for &Picked { tile, lanes } in picked {
            let (ir, dtype) = (self.ir, self.dtype(tile));
            let ty = ir.storage_type(dtype);
            let stored = ir.load(ty, ir.element(ty, lanes, lane));
            self.sources.known.insert(tile, ir.value_from_storage(stored, dtype));
        }
    }

    /// Ends that.
    pub(in crate::cpu) fn let_go_of_picked(&mut self, picked: &[Picked<'c>]) {
        self.sources.known.retain(|tile, _| !picked.iter().any(|picked| picked.tile == *tile));
    }

    fn picked(
        &mut self,
        tile: ValueId,
        row: &[IntValue<'c>],
        first: IntValue<'c>,
        lanes: i64,
    ) -> Option<Picked<'c>> {
        let ir = self.ir;
        let window = self.sources.streams.get(&tile)?.whole_window()?.clone();
        let apart = window.element_stride()?.get_sign_extended_constant()?;
        let ty = ir.storage_type(window.dtype());
        if !(2..=MOST_APART).contains(&apart) {
            return None;
        }
        let start = self.row_element(&window, self.row_address(&window, row), first);
        // The last vector ends with the last element that is picked: behind it there may be nothing.
        let last = (lanes - 1) * (apart - 1);
        let begins: Vec<i64> = (0..apart).map(|number| (number * lanes).min(last)).collect();
        let load = |&begin: &i64| -> VectorValue<'c> {
            let from = ir.offset(ty, start, ir.i64(begin));
            let alignment = window.dtype().bytes() as u32;
            let loaded = ir.load_at(vector_type(ty, lanes as u32).into(), from, Some(alignment));
            self.buffers.mark_tensor_access(loaded.as_instruction_value(), window.tensor());
            loaded.into_vector_value()
        };
        let vectors: Vec<VectorValue<'c>> = begins.iter().map(load).collect();
        let mut picked = vectors[0];
        for (number, &begin) in begins.iter().enumerate() {
            let lane_of = |lane: i64| match lane * apart - begin {
                at if (0..lanes).contains(&at) => lanes + at,
                _ => lane,
            };
            let places: Vec<u32> = (0..lanes).map(|lane| lane_of(lane) as u32).collect();
            picked = ir.lanes_at(picked, vectors[number], &places);
        }
        let array = self.lane_array(ty, lanes);
        ir.store(array, Value::from(picked));
        Some(Picked { tile, lanes: array })
    }
}
