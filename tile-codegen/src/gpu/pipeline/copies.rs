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

use crate::emit::{Ir, Value};
use crate::gpu::coordinates::{Coordinate, Mapping, both};
use crate::gpu::memory::gathered::Gathered;
use crate::gpu::memory::window::{Cursor, Sheet, Window};
use crate::gpu::region::Emitter;
use inkwell::IntPredicate;
use inkwell::values::{IntValue, PointerValue};
use tile_ir::gpu::{Buffer, CopiedLoop, StageCopy, Swizzled, WIDEST, Way};
use tile_ir::kernel::LoadOperands;
use tile_ir::{DType, OpId, ValueId};

/// A loop whose tiles are copied ahead, while it runs.
pub(in crate::gpu) struct Copying<'a, 'c> {
    copied: &'a CopiedLoop,
    ring: Buffer,
    counter: ValueId,
    /// The number of the turn after the last one, an i64.
    end: IntValue<'c>,
    tiles: Vec<Tile<'a, 'c>>,
    /// The first byte of the stage that the turn reads, from the beginning of the ring, an i32.
    stage: IntValue<'c>,
}

/// A tile that is copied, and which groups of it are the running thread's.
struct Tile<'a, 'c> {
    copy: &'a StageCopy,
    swizzled: &'a Swizzled,
    dtype: DType,
    origin: Origin<'a, 'c>,
    mapping: Mapping<'c>,
    /// The groups' first slots, and their places in shared memory.
    places: Vec<(u64, Coordinate<'c>)>,
}

/// Where a tile comes from.
enum Origin<'a, 'c> {
    View(Box<Moving<'c>>),
    /// Rows of a tensor, by tiles of indices for every axis.
    Rows(Gathered<'c>, &'a [ValueId]),
}

/// The tiles of a view in a loop's turns.
struct Moving<'c> {
    sheet: Sheet<'c>,
    /// The tile's index; `None` stands for the turn's number.
    index: Vec<Option<IntValue<'c>>>,
    is_masked: bool,
    /// The window of turn 0, and there the address of the thread's first element.
    window: Window<'c>,
    first: PointerValue<'c>,
    /// Elements in memory from one turn's tile to the next one's.
    step: IntValue<'c>,
}

impl Tile<'_, '_> {
    fn group_bytes(&self) -> u64 {
        self.copy.group * self.dtype.bytes() as u64
    }
}

impl<'c> Moving<'c> {
    /// The index of a turn's tile.
    fn at(&self, turn: IntValue<'c>) -> Vec<IntValue<'c>> {
        self.index.iter().map(|index| index.unwrap_or(turn)).collect()
    }
}

impl<'a, 'c> Emitter<'a, 'c> {
    /// Begins the copies of a loop's first turns, if tiles are copied for it.
    pub(in crate::gpu) fn begin_copies(
        &mut self,
        op: OpId,
        counter: ValueId,
        start: IntValue<'c>,
        end: IntValue<'c>,
    ) {
        let Some(copied) = self.scheduled.copies().of_loop(op) else { return };
        let ring = self.scheduled.buffers(op)[0];
        let tiles = copied.copies.iter().map(|copy| self.copied_tile(copy, counter)).collect();
        let copying = Copying { copied, ring, counter, end, tiles, stage: self.i32(0) };
        for stage in 0..copied.stages - 1 {
            let turn = self.ir.add(start, self.ir.i64(stage as i64));
            self.copy_turn(&copying, turn, self.i32(stage * copied.stage_bytes));
        }
        self.copying.insert(op, copying);
    }

    /// What a loop carries for its copies: the stage.
    pub(in crate::gpu) fn copied_stage(&self, op: OpId) -> Option<Value<'c>> {
        self.copying.get(&op).map(|copying| copying.stage.into())
    }

    /// Waits for the tiles of a turn, and begins to copy those of a later one; `carried` ends with the stage.
    pub(in crate::gpu) fn begin_copied_turn(&mut self, op: OpId, turn: IntValue<'c>, carried: &[Value<'c>]) {
        let Some(mut copying) = self.copying.remove(&op) else { return };
        let ir = self.ir;
        copying.stage = carried.last().expect("a loop carries its stage").into_int_value();
        let CopiedLoop { stages, stage_bytes, .. } = copying.copied;
        ir.intrinsic("llvm.nvvm.cp.async.wait.group", &[], &[self.i32(stages - 2).into()]);
        self.sync();
        let later = ir.add(turn, ir.i64(*stages as i64 - 1));
        let is_first = ir.icmp(IntPredicate::EQ, copying.stage, self.i32(0));
        let before = ir.sub(copying.stage, self.i32(*stage_bytes));
        let before = ir.select_int(is_first, self.i32((stages - 1) * stage_bytes), before);
        self.copy_turn(&copying, later, before);
        for tile in &copying.tiles {
            let result = self.instance.op(tile.copy.convert).results[0];
            self.stage_copied(result, buffer_of(&copying, tile), tile.swizzled, copying.stage);
        }
        self.copying.insert(op, copying);
    }

    /// Goes on to the next stage, at the end of a turn; gives it.
    pub(in crate::gpu) fn next_copied_stage(&mut self, op: OpId) -> Option<Value<'c>> {
        let copying = self.copying.get(&op)?;
        let (ir, copied) = (self.ir, copying.copied);
        let next = ir.add(copying.stage, self.i32(copied.stage_bytes));
        let wraps = ir.icmp(IntPredicate::EQ, next, self.i32(copied.bytes()));
        Some(ir.select_int(wraps, self.i32(0), next).into())
    }

    fn copied_tile(&self, copy: &'a StageCopy, counter: ValueId) -> Tile<'a, 'c> {
        let (instance, scheduled) = (self.instance, self.scheduled);
        let data = instance.op(copy.load);
        let Way::Swizzled(swizzled) = scheduled.way(copy.convert) else {
            unreachable!("a copied tile lies where a conversion wants it")
        };
        let (tile, dtype) = (data.results[0], self.dtype(data.results[0]));
        let mapping = self.mapping(tile);
        let origin = match data.load() {
            Some(load) => Origin::View(Box::new(self.moving(&load, &mapping, counter))),
            None => Origin::Rows(self.gathered(data), &data.operands[2..]),
        };
        let operand = instance.op(copy.convert).operands[0];
        let distribution = scheduled.distribution(operand);
        let places = self.swizzled_places(distribution, copy.group, swizzled, dtype);
        Tile { copy, swizzled, dtype, origin, mapping, places }
    }

    fn moving(&self, load: &LoadOperands<'_>, mapping: &Mapping<'c>, counter: ValueId) -> Moving<'c> {
        let ir = self.ir;
        let sheet = self.sheet(load.view);
        let index: Vec<_> =
            load.index.iter().map(|&value| (value != counter).then(|| self.index(value))).collect();
        let at_first: Vec<_> = index.iter().map(|index| index.unwrap_or(ir.i64(0))).collect();
        let window = self.window_of(&sheet, &at_first);
        let (first, _) = self.locate(&window, mapping, &mut Cursor::default(), 0, None);
        let steps = (0..index.len()).filter(|&axis| index[axis].is_none());
        let step = steps.fold(ir.i64(0), |sum, axis| ir.add(sum, window.tile_step(ir, &sheet, axis)));
        Moving { sheet, index, is_masked: load.pad.is_some(), window, first, step }
    }

    /// Begins the copies of a turn, if there is such a turn, to the stage that begins at this byte; ends their group.
    fn copy_turn(&mut self, copying: &Copying<'a, 'c>, turn: IntValue<'c>, stage: IntValue<'c>) {
        let ir = self.ir;
        let exists = ir.icmp(IntPredicate::ULT, turn, copying.end);
        ir.if_then(exists, || match copying.copied.address.as_slice() {
            [] => self.copy_tiles(copying, turn, stage),
            address => self.apart(|emitter| {
                emitter.set_scalar(copying.counter, turn.into());
                for &op in address {
                    emitter.op(op, emitter.instance.op(op));
                }
                emitter.copy_tiles(copying, turn, stage);
            }),
        });
        ir.intrinsic("llvm.nvvm.cp.async.commit.group", &[], &[]);
    }

    fn copy_tiles(&self, copying: &Copying<'a, 'c>, turn: IntValue<'c>, stage: IntValue<'c>) {
        for tile in &copying.tiles {
            let to = self.shared_base_at(buffer_of(copying, tile), stage);
            self.where_it_holds(tile.mapping.is_owner(), || match &tile.origin {
                Origin::View(moving) => self.copy_groups(tile, moving, turn, to),
                Origin::Rows(gathered, indices) => self.copy_rows(tile, gathered, indices, to),
            });
        }
    }

    fn copy_groups(
        &self,
        tile: &Tile<'a, 'c>,
        moving: &Moving<'c>,
        turn: IntValue<'c>,
        to: PointerValue<'c>,
    ) {
        let (ir, mapping) = (self.ir, &tile.mapping);
        let moved = ir.mul(turn, moving.step);
        let window = moving.window.moved(ir, moved);
        let mask = moving.is_masked.then(|| self.mask(&window, &moving.sheet, &moving.at(turn)));
        let first = ir.offset(ir.storage_type(tile.dtype), moving.first, moved);
        let mut cursor = Cursor::at(mapping.coordinates(ir, 0), first);
        for &(slot, place) in &tile.places {
            let (from, inside) = self.locate(&window, mapping, &mut cursor, slot, mask.as_ref());
            let exists = mask.as_ref().map(|mask| match inside {
                Some(inside) => ir.and(inside, mask.any),
                None => mask.any,
            });
            copy_group(ir, self.byte_from(to, place), from, tile.group_bytes(), exists);
        }
    }

    /// Copies groups of rows, by indices of the turn that are computed.
    fn copy_rows(
        &self,
        tile: &Tile<'a, 'c>,
        gathered: &Gathered<'c>,
        indices: &[ValueId],
        to: PointerValue<'c>,
    ) {
        for &(slot, place) in &tile.places {
            let (from, exists) = self.gathered_slot(gathered, indices, slot);
            let exists = both(self.ir, Some(exists), tile.mapping.is_element(self.ir, slot));
            copy_group(self.ir, self.byte_from(to, place), from, tile.group_bytes(), exists);
        }
    }
}

/// A tile's part of the first stage.
fn buffer_of(copying: &Copying<'_, '_>, tile: &Tile<'_, '_>) -> Buffer {
    let elements = tile.mapping.distribution().shape().iter().product::<u64>();
    let bytes = elements * tile.dtype.bytes() as u64;
    Buffer { offset: copying.ring.offset + tile.copy.offset, bytes, dtype: tile.dtype }
}

/// Begins to copy a group of so many bytes; one that doesn't exist becomes zeros.
fn copy_group<'c>(
    ir: &Ir<'c>,
    to: PointerValue<'c>,
    from: PointerValue<'c>,
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
