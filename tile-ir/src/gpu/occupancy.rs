//! Kernels of rows: how many threads hold a tile, and how many of their blocks are to run on a multiprocessor at once.
//!
//! A block of such a kernel reads a row, waits for memory, joins what its threads have, and writes: memory is busy only
//! while other blocks read. How many these are is decided by registers, of which an assembler takes as many as make one
//! thread's instructions independent, unless it is told. So it is told, where one tile is all that a thread keeps while it
//! waits for others: what else there is goes by element by element, and needs few ([`WORKING_REGISTERS`]).

use super::{LaidOut, Threads, largest_tile, shape_of};
use crate::kernel::{Kernel, OpId, ValueId};
use crate::ops::Op;
use crate::target::{Family, Rates, TargetDesc};

/// Elements of the smallest tile that this is about: of smaller ones enough blocks run at once whatever registers they take,
/// and fewer registers spill.
const LEAST_ELEMENTS: u64 = 8192;

/// Elements of such a tile that a thread holds: as f32 they are half of the registers that it has where a multiprocessor
/// has all its threads.
const ELEMENTS: u64 = 16;

/// Registers of a thread besides those of the tile that it keeps.
const WORKING_REGISTERS: u64 = 16;

/// Assemblers hand out registers in such portions (CUDA Occupancy Calculator, "Register allocation unit size").
const REGISTER_STEP: u64 = 8;

/// Threads of a block that has a large row; `None` where the kernel isn't of such rows.
pub(super) fn threads(kernel: &Kernel, target: &TargetDesc) -> Option<u64> {
    let largest = largest_tile(kernel);
    let count = (largest / ELEMENTS).next_power_of_two();
    let fits = largest >= LEAST_ELEMENTS && count <= u64::from(target.max_threads);
    (target.family == Family::Nvptx && fits && kept_elements(kernel)? <= largest).then_some(count)
}

/// How many blocks are to run on a multiprocessor at once; `None` where the assembler decides.
pub(super) fn blocks(laid_out: &LaidOut, target: &TargetDesc) -> Option<u32> {
    let (kernel, threads): (&Kernel, Threads) = (&laid_out.instance, laid_out.threads);
    let is_asked = target.family == Family::Nvptx && largest_tile(kernel) >= LEAST_ELEMENTS;
    let rates = Rates::of(target.name).filter(|_| is_asked)?;
    let kept = kept_elements(kernel)?.div_ceil(threads.count());
    let registers = (kept + WORKING_REGISTERS).next_multiple_of(REGISTER_STEP) * threads.of_block();
    let blocks = (u64::from(rates.registers) / registers).min(u64::from(rates.threads) / threads.of_block());
    (kept >= ELEMENTS && blocks > 1).then_some(blocks as u32)
}

/// The most elements that threads keep in registers while they wait for each other, if they do so in reductions alone, by
/// which one tile is kept; `None` for other kernels.
fn kept_elements(kernel: &Kernel) -> Option<u64> {
    let ops = &kernel.region(kernel.body()).ops;
    if !ops.iter().all(|&op| goes_by(&kernel.op(op).op)) {
        return None;
    }
    let is_reduction = |op: &OpId| matches!(kernel.op(*op).op, Op::Reduce { .. });
    let kept = ops.iter().enumerate().filter(|(_, op)| is_reduction(op)).map(|(at, _)| {
        let [before, after] = [&ops[..at], &ops[at + 1..]];
        let is_used = |value: &ValueId| after.iter().any(|&op| kernel.op(op).operands.contains(value));
        let results = before.iter().filter(|&&op| !is_repeated(&kernel.op(op).op));
        let tiles = results.flat_map(|&op| &kernel.op(op).results).filter(|value| is_used(value));
        let of_tile = |&value: &ValueId| Some((shape_of(kernel, value)?, kernel.ty(value).elem().known()?));
        let tiles: Vec<u64> = tiles
            .filter_map(of_tile)
            .map(|(shape, dtype)| shape.iter().product::<u64>() * (dtype.bytes() as u64).div_ceil(4))
            .collect();
        let large = tiles.iter().filter(|&&elements| elements > 1).count();
        (large <= 1).then(|| tiles.iter().copied().max().unwrap_or(0))
    });
    // A kernel without reductions waits for nobody.
    kept.collect::<Option<Vec<u64>>>()?.into_iter().max()
}

/// Whether an op is done element by element, or is a reduction, or is about memory and places.
fn goes_by(op: &Op) -> bool {
    let is_of_places = matches!(op, Op::BlockIndex | Op::Partition(_) | Op::View(_) | Op::Prefetch);
    let is_of_tiles = matches!(op, Op::Reduce { .. }) || is_repeated(op);
    op.is_leaf() || op.is_load() || op.is_store() || is_of_places || is_of_tiles
}

/// Whether an op gives tiles that take no registers of their own.
fn is_repeated(op: &Op) -> bool {
    matches!(op, Op::Splat(_) | Op::Broadcast(_) | Op::Iota { .. })
}

#[cfg(test)]
mod tests {
    use super::super::schedule;
    use super::*;
    use crate::{Instance, passes};

    /// Threads of a block and blocks of a multiprocessor, for rows of so many elements.
    fn of(extent: u64, ops: &str, target: &str) -> (u64, Option<u32>) {
        let text = format!(
            "kernel @k(%x: tensor<m x {extent} x f32>, %z: tensor<m x {extent} x f32>, %y: mut tensor<m x {extent} x f32>) {{
  %vx = partition %x [1, {extent}] : partition<m x {extent} x f32, [1, {extent}]>
  %vz = partition %z [1, {extent}] : partition<m x {extent} x f32, [1, {extent}]>
  %vy = partition %y [1, {extent}] : mut partition<m x {extent} x f32, [1, {extent}]>
  %i, %j = block_index %vy : index, index
  %t = load %vx[%i, %j] : tile<1 x {extent} x f32>
  %u = load %vz[%i, %j] : tile<1 x {extent} x f32>
  %v = mul %t, %u : tile<1 x {extent} x f32>
{}  store %vy, %r
}}
",
            ops.replace('W', &extent.to_string())
        );
        let instance =
            passes::optimize(Instance::parse(&text, &[]).unwrap_or_else(|error| panic!("{error}")));
        let scheduled = schedule(instance, TargetDesc::named(target).unwrap(), None);
        (scheduled.block_threads(), scheduled.blocks_at_once())
    }

    const SUM: &str = "  %s = reduce sum %v axis 1 : tile<1 x 1 x f32>
  %b = broadcast %s : tile<1 x W x f32>
";
    const DIVIDED: &str = "  %r = div %v, %b : tile<1 x W x f32>\n";

    #[test]
    fn rows_have_blocks_that_fill_a_multiprocessor() {
        let normalized = format!("{SUM}{DIVIDED}");
        assert_eq!(of(8192, &normalized, "sm_90a"), (512, Some(4)));
        assert_eq!(of(16384, &normalized, "sm_80"), (1024, Some(2)));
        // A thread of a cluster keeps 64 elements, and has 80 registers.
        assert_eq!(of(131_072, &normalized, "sm_90a"), (256, Some(3)));
        assert_eq!(of(8192, &normalized, "gfx942"), (256, None));
    }

    #[test]
    fn small_rows_and_kernels_that_keep_more_are_the_assemblers() {
        let normalized = format!("{SUM}{DIVIDED}");
        assert_eq!(of(4096, &normalized, "sm_90a"), (256, None));
        let two =
            format!("{SUM}  %w = div %v, %b : tile<1 x W x f32>\n  %r = sub %w, %t : tile<1 x W x f32>\n");
        assert_eq!(of(8192, &two, "sm_90a"), (256, None));
        let sorted = "  %r, %places = sort %v axis 1 : tile<1 x W x f32>, tile<1 x W x i32>\n";
        assert_eq!(of(8192, sorted, "sm_90a"), (256, None));
        assert_eq!(of(8192, "  %r = exp %v : tile<1 x W x f32>\n", "sm_90a"), (256, None));
    }
}
