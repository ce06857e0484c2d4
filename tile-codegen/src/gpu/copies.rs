//! Copies to shared memory some turns ahead ([`tile_ir::gpu::Copies`]): every thread asks for its groups of the tiles of a
//! later turn, and goes on.
//!
//! Before the loop the copies of its first turns begin, one group of instructions a turn (PTX ISA, "cp.async"): all but
//! one of the stages are filled. A turn waits for its own group; a barrier later all threads' copies are seen, and what
//! the turn before read is read. So the copies of the turn that is last in the ring may go to that stage. Every
//! turn ends a group, with or without copies in it: their number says which one is waited for, and after the loop
//! nothing is under way.
//!
//! What doesn't change from turn to turn is computed before the loop; a turn moves the addresses by one step.

use super::coordinates::{Coordinate, Mapping};
use super::region::Emitter;
use super::window::{Cursor, Sheet, Window};
use crate::emit::{Ir, Value};
use inkwell::IntPredicate;
use inkwell::values::{IntValue, PointerValue};
use tile_ir::gpu::{Buffer, CopiedLoop, StageCopy, Swizzled, WIDEST, Way};
use tile_ir::{OpId, ValueId};

/// A loop whose tiles are copied ahead, while it runs.
pub(super) struct Copying<'a, 'c> {
    copied: &'a CopiedLoop,
    ring: Buffer,
    /// The number of the turn after the last one, an i64.
    end: IntValue<'c>,
    origins: Vec<Origin<'a, 'c>>,
    /// The first byte of the stage that the turn reads, from the beginning of the ring, an i32.
    stage: IntValue<'c>,
}

/// Where a tile comes from, and which groups of it are the running thread's.
struct Origin<'a, 'c> {
    copy: &'a StageCopy,
    swizzled: &'a Swizzled,
    sheet: Sheet<'c>,
    /// The tile's index; `None` stands for the turn's number.
    index: Vec<Option<IntValue<'c>>>,
    is_masked: bool,
    mapping: Mapping<'c>,
    /// The window of turn 0, and there the address of the thread's first element.
    window: Window<'c>,
    first: PointerValue<'c>,
    /// Elements in memory from one turn's tile to the next one's.
    step: IntValue<'c>,
    /// The groups' first slots, and their places in shared memory.
    places: Vec<(u64, Coordinate<'c>)>,
}

impl<'c> Origin<'_, 'c> {
    /// The index of a turn's tile.
    fn at(&self, turn: IntValue<'c>) -> Vec<IntValue<'c>> {
        self.index.iter().map(|index| index.unwrap_or(turn)).collect()
    }
}

impl<'a, 'c> Emitter<'a, 'c> {
    /// Begins the copies of a loop's first turns, if tiles are copied for it.
    pub(super) fn begin_copies(
        &mut self,
        op: OpId,
        counter: ValueId,
        (start, end): (IntValue<'c>, IntValue<'c>),
    ) {
        let Some(copied) = self.scheduled.copies().of_loop(op) else { return };
        let ring = self.scheduled.buffers(op)[0];
        let origins = copied.copies.iter().map(|copy| self.origin(copy, counter)).collect();
        let copying = Copying { copied, ring, end, origins, stage: self.i32(0) };
        for stage in 0..copied.stages - 1 {
            let turn = self.ir.add(start, self.ir.i64(stage as i64));
            self.copy_turn(&copying, turn, self.i32(stage * copied.stage_bytes));
        }
        self.copying.insert(op, copying);
    }

    /// What a loop carries for its copies: the stage.
    pub(super) fn copied_stage(&self, op: OpId) -> Option<Value<'c>> {
        self.copying.get(&op).map(|copying| copying.stage.into())
    }

    /// Waits for the tiles of a turn, and begins to copy those of a later one; `carried` ends with the stage.
    pub(super) fn begin_copied_turn(&mut self, op: OpId, turn: IntValue<'c>, carried: &[Value<'c>]) {
        let Some(mut copying) = self.copying.remove(&op) else { return };
        let ir = self.ir;
        copying.stage = carried.last().expect("a loop carries its stage").into_int_value();
        let CopiedLoop { stages, stage_bytes, copies } = copying.copied;
        ir.intrinsic("llvm.nvvm.cp.async.wait.group", &[], &[self.i32(stages - 2).into()]);
        self.sync();
        let later = ir.add(turn, ir.i64(*stages as i64 - 1));
        let is_first = ir.icmp(IntPredicate::EQ, copying.stage, self.i32(0));
        let before = ir.sub(copying.stage, self.i32(*stage_bytes));
        let before = ir.select_int(is_first, self.i32((stages - 1) * stage_bytes), before);
        self.copy_turn(&copying, later, before);
        for (copy, origin) in copies.iter().zip(&copying.origins) {
            let tile = self.instance.op(copy.convert).results[0];
            self.stage_copied(tile, self.buffer_of(&copying, origin), origin.swizzled, copying.stage);
        }
        self.copying.insert(op, copying);
    }

    /// Goes on to the next stage, at the end of a turn; gives it.
    pub(super) fn next_copied_stage(&mut self, op: OpId) -> Option<Value<'c>> {
        let copying = self.copying.get(&op)?;
        let (ir, copied) = (self.ir, copying.copied);
        let next = ir.add(copying.stage, self.i32(copied.stage_bytes));
        let wraps = ir.icmp(IntPredicate::EQ, next, self.i32(copied.bytes()));
        Some(ir.select_int(wraps, self.i32(0), next).into())
    }

    fn origin(&self, copy: &'a StageCopy, counter: ValueId) -> Origin<'a, 'c> {
        let (ir, scheduled) = (self.ir, self.scheduled);
        let data = self.instance.op(copy.load);
        let load = data.load().expect("a copy stands for a load");
        let Way::Swizzled(swizzled) = scheduled.way(copy.convert) else {
            unreachable!("a copied tile lies where a conversion wants it")
        };
        let sheet = self.sheet(load.view);
        let index: Vec<_> =
            load.index.iter().map(|&value| (value != counter).then(|| self.index(value))).collect();
        let at_first: Vec<_> = index.iter().map(|index| index.unwrap_or(ir.i64(0))).collect();
        let window = self.window_of(&sheet, &at_first);
        let mapping = self.mapping(data.results[0]);
        let (first, _) = self.locate(&window, &mapping, &mut Cursor::default(), 0, None);
        let steps = (0..index.len()).filter(|&axis| index[axis].is_none());
        let step = steps.fold(ir.i64(0), |sum, axis| ir.add(sum, window.tile_step(ir, &sheet, axis)));
        let operand = self.instance.op(copy.convert).operands[0];
        let distribution = scheduled.distribution(operand);
        let places = self.swizzled_places((distribution, copy.group), swizzled, sheet.dtype());
        let is_masked = load.pad.is_some();
        Origin { copy, swizzled, sheet, index, is_masked, mapping, window, first, step, places }
    }

    /// The tile's part of the first stage.
    fn buffer_of(&self, copying: &Copying<'a, 'c>, origin: &Origin<'a, 'c>) -> Buffer {
        let elements = origin.mapping.distribution().shape().iter().product::<u64>();
        let dtype = origin.sheet.dtype();
        let bytes = elements * dtype.bytes() as u64;
        Buffer { offset: copying.ring.offset + origin.copy.offset, bytes, dtype }
    }

    /// Begins the copies of a turn, if there is such a turn, to the stage that begins at this byte; ends their group.
    fn copy_turn(&self, copying: &Copying<'a, 'c>, turn: IntValue<'c>, stage: IntValue<'c>) {
        let ir = self.ir;
        let exists = ir.icmp(IntPredicate::ULT, turn, copying.end);
        ir.if_then(exists, || {
            for origin in &copying.origins {
                let buffer = self.buffer_of(copying, origin);
                let to = self.shared_base_at(buffer, stage);
                self.where_it_holds(origin.mapping.is_owner(), || self.copy_groups(origin, turn, to));
            }
        });
        ir.intrinsic("llvm.nvvm.cp.async.commit.group", &[], &[]);
    }

    fn copy_groups(&self, origin: &Origin<'a, 'c>, turn: IntValue<'c>, to: PointerValue<'c>) {
        let (ir, mapping, dtype) = (self.ir, &origin.mapping, origin.sheet.dtype());
        let moved = ir.mul(turn, origin.step);
        let window = origin.window.moved(ir, moved);
        let mask = origin.is_masked.then(|| self.mask(&window, &origin.sheet, &origin.at(turn)));
        let first = ir.offset(ir.storage_type(dtype), origin.first, moved);
        let mut cursor = Cursor::at(mapping.coordinates(ir, 0), first);
        for &(slot, place) in &origin.places {
            let (from, inside) = self.locate(&window, mapping, &mut cursor, slot, mask.as_ref());
            let bytes = origin.copy.group * dtype.bytes() as u64;
            let exists = mask.as_ref().map(|mask| match inside {
                Some(inside) => ir.and(inside, mask.any),
                None => mask.any,
            });
            copy_group(ir, (self.byte_from(to, place), from), bytes, exists);
        }
    }
}

/// Begins to copy a group of so many bytes; one that doesn't exist becomes zeros.
fn copy_group<'c>(
    ir: &Ir<'c>,
    (to, from): (PointerValue<'c>, PointerValue<'c>),
    bytes: u64,
    exists: Option<IntValue<'c>>,
) {
    let cache = if bytes == WIDEST { "cg" } else { "ca" };
    let name = format!("llvm.nvvm.cp.async.{cache}.shared.global.{bytes}");
    let places: [Value<'c>; 2] = [to.into(), from.into()];
    match exists {
        None => ir.intrinsic(&name, &[], &places),
        Some(exists) => {
            let [all, none] = [bytes, 0].map(|bytes| ir.context.i32_type().const_int(bytes, false));
            let [to, from] = places;
            let operands = [to, from, ir.select_int(exists, all, none).into()];
            ir.intrinsic(&format!("{name}.s"), &[], &operands)
        }
    };
}
