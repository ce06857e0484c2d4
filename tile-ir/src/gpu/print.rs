//! The text of a scheduled kernel: its IR, and beside the definition of every tile where it lies and how it gets there.
//! Distributions are numbered in the order in which they appear, and told before the kernel.

use super::pipeline::{Fill, Major, TileCopy, Written, WrittenBy};
use super::{Orders, Pipeline, Read, Scheduled, Way};
use crate::kernel::{OpId, ValueId};
use crate::text::print_with_notes;
use std::collections::HashMap;
use std::fmt::Write;
use tile_layout::linear::Distribution;

/// The number of each distribution.
type Numbers<'s> = HashMap<&'s Distribution, usize>;

/// The kernel's text, with the number of threads and what they hold.
pub fn print(scheduled: &Scheduled) -> String {
    let mut text = threads(scheduled);
    let numbers = distributions(scheduled, &mut text);
    text += &rings(scheduled);
    text += &tensor_memory(scheduled);
    text += &brought(scheduled);
    text += &copies(scheduled);
    text += &accesses(scheduled, &numbers);
    text += &grid(scheduled);
    for remark in scheduled.remarks() {
        let _ = writeln!(text, "; {remark}");
    }
    let definitions = scheduled.definitions();
    let note = |value: ValueId| note(scheduled, &numbers, value, definitions.get(&value).copied());
    text + &print_with_notes(scheduled, &note)
}

/// Who executes the kernel.
fn threads(scheduled: &Scheduled) -> String {
    let threads = scheduled.threads();
    let mut text = match threads.blocks {
        1 => format!("; {} warps of {} lanes\n", threads.warps, threads.lanes),
        blocks => format!(
            "; {blocks} blocks, which share each tile, of {} warps of {} lanes\n",
            threads.warps / blocks,
            threads.lanes
        ),
    };
    if let Some(blocks) = scheduled.blocks_at_once() {
        let _ = writeln!(text, "; registers for {blocks} blocks at once on a multiprocessor");
    }
    text
}

/// Numbers distributions in the order in which they appear, and writes each.
fn distributions<'s>(scheduled: &'s Scheduled, text: &mut String) -> Numbers<'s> {
    let mut numbers = Numbers::new();
    for tile in scheduled.value_ids() {
        let Some(distribution) = scheduled.laid_out.distributions.get(&tile) else { continue };
        let next = numbers.len();
        if *numbers.entry(distribution).or_insert(next) == next {
            let _ = writeln!(text, "; #{next} {distribution}");
        }
    }
    numbers
}

/// The rings that a producer copies to.
fn rings(scheduled: &Scheduled) -> String {
    let mut text = String::new();
    for (_, pipeline) in scheduled.pipelines.all() {
        if pipeline.stages == 1 {
            let bytes = pipeline.stage_bytes;
            let _ = writeln!(text, "; a ring of 1 stage of {bytes} bytes, for tiles that whole loops read");
            continue;
        }
        let fills = pipeline.fills.len();
        let _ = writeln!(
            text,
            "; a ring of {} stages of {} bytes, {fills} fills in each, for {} threads that copy{}",
            pipeline.stages,
            pipeline.stage_bytes,
            scheduled.pipelines.producers(),
            if pipeline.alternates { ", read by two warpgroups alternately" } else { "" }
        );
    }
    text
}

/// The sums in tensor memory, and the left factors that are brought to shared memory for them.
fn tensor_memory(scheduled: &Scheduled) -> String {
    let (memory, mut text) = (scheduled.pipelines.tensor_memory(), String::new());
    for sums in memory.sums() {
        let (stages, columns) = (sums.stages.count, sums.stage_columns);
        let plural = if stages == 1 { "" } else { "s" };
        let kept = if sums.are_kept { "kept by their loop" } else { "of every turn" };
        let _ =
            writeln!(text, "; sums in tensor memory, {kept}, {stages} stage{plural} of {columns} columns");
    }
    for brought in memory.brought() {
        let (rows, place) = (brought.tile.rows, scheduled.pipelines.panels() + brought.place);
        let _ = writeln!(text, "; a left factor of {rows} rows is brought to shared memory, at {place}");
    }
    text
}

/// The right factors that consumers bring to shared memory.
fn brought(scheduled: &Scheduled) -> String {
    let mut text = String::new();
    for brought in scheduled.pipelines.brought_right() {
        let Some(Written { tile, major, by }) = &brought.written else { continue };
        let stages =
            if brought.stages == 1 { "1 stage".to_owned() } else { format!("{} stages", brought.stages) };
        let along = if *major == Major::Depth { "along the depth" } else { "across the depth" };
        let by = match by {
            WrittenBy::Matrices(_) => "by matrix stores".to_owned(),
            WrittenBy::Runs(runs) => format!("{} bytes at once", runs.count() * tile.element),
        };
        let place = brought.place;
        let _ = writeln!(
            text,
            "; a right factor is brought to {stages} of shared memory, at {place}, {along}, {by}"
        );
    }
    text
}

/// What blocks copy for each other, and threads for themselves.
fn copies(scheduled: &Scheduled) -> String {
    let mut text = String::new();
    if let Some(axis) = scheduled.pipelines.pairs() {
        let _ = writeln!(
            text,
            "; blocks are pairs along axis {axis}: each copies half of what both read, for both"
        );
    }
    for (_, copied) in scheduled.copies.loops() {
        let _ = writeln!(
            text,
            "; a ring of {} stages of {} bytes, to which all threads copy",
            copied.stages, copied.stage_bytes
        );
    }
    text
}

/// Stores and atomic operations that are done otherwise than element by element, and shared memory.
fn accesses(scheduled: &Scheduled, numbers: &Numbers<'_>) -> String {
    let mut text = String::new();
    for (op, store) in
        scheduled.walk().into_iter().filter_map(|op| Some((op, scheduled.pipelines.store(op)?)))
    {
        let tensor = scheduled.tensor_name(scheduled.op(op).operands[0]);
        let _ = writeln!(text, "; {tensor} is stored by copies of panels, map {}", store.map);
    }
    for op in scheduled.walk().into_iter().filter(|&op| scheduled.scattered(op) > 1) {
        let data = scheduled.op(op);
        let tensor = scheduled.tensor_name(data.operands[0]);
        let (together, place) = (scheduled.scattered(op), &numbers[scheduled.distribution(data.operands[1])]);
        let _ = writeln!(text, "; rows of {tensor} are changed atomically by {together}, from #{place}");
    }
    if scheduled.shared_bytes() > 0 {
        let _ = writeln!(text, "; {} bytes of shared memory", scheduled.shared_bytes());
    }
    text
}

/// How blocks share the tiles of the grid.
fn grid(scheduled: &Scheduled) -> String {
    let mut text = String::new();
    if scheduled.shares_grid() {
        text.push_str("; as many blocks as run at once share the tiles\n");
    }
    if let Some(order) = scheduled.order_in_parts() {
        let _ = writeln!(text, "; the blocks of a part of the device have successive tiles, {order}");
    }
    text
}

/// What is written beside the definition of a value, which this op defines: where it lies, and how it gets there.
fn note(
    scheduled: &Scheduled,
    numbers: &Numbers<'_>,
    value: ValueId,
    definition: Option<OpId>,
) -> Option<String> {
    if scheduled.pipelines.holds(value) {
        let copy = definition.and_then(|op| scheduled.pipelines.copy(op));
        return copy.map(|(pipeline, fill, copy)| in_ring(pipeline, fill, copy));
    }
    let place = scheduled.laid_out.distributions.get(&value);
    if scheduled.pipelines.spares(value) && place.is_some() {
        return Some("its element is the producer's".to_owned());
    }
    let place = place.map(|place| format!("#{}", numbers[place]));
    let way = definition.and_then(|op| how(scheduled, op));
    let notes = [place, way, definition.and_then(|op| exchange(scheduled, op))];
    let notes: Vec<String> = notes.into_iter().flatten().collect();
    (!notes.is_empty()).then(|| notes.join(" "))
}

/// The shared memory through which an op's threads exchange elements, and whether they wait before that.
fn exchange(scheduled: &Scheduled, op: OpId) -> Option<String> {
    let buffers = scheduled.buffers(op).iter();
    let mut words: Vec<String> =
        buffers.map(|buffer| format!("in {}..{}", buffer.offset, buffer.offset + buffer.bytes)).collect();
    if scheduled.waits_before(op) {
        words.push("after a barrier".to_owned());
    }
    if !words.is_empty() && scheduled.orders(op) == Orders::AllMemory {
        words.push("ordering tensors".to_owned());
    }
    (!words.is_empty()).then(|| words.join(" "))
}

/// Where a copied tile lies.
fn in_ring(pipeline: &Pipeline, fill: usize, copy: &TileCopy) -> String {
    let tile = copy.tile;
    let Fill { readers, keeps_running, .. } = &pipeline.fills[fill];
    let read = match readers.as_slice() {
        _ if *keeps_running => " of a product that keeps running".to_owned(),
        [_] => String::new(),
        several => format!(" of {} products", several.len()),
    };
    format!(
        "in the ring at {}: {} panels of {} rows of {} bytes, map {}, {}fill {fill}{read}",
        copy.offset,
        tile.panels,
        tile.rows,
        tile.swizzle.bytes(),
        copy.map,
        if copy.halves.is_some() { "half from each block of a pair, " } else { "" },
    )
}

/// How an op's result gets where it lies, in words.
fn how(scheduled: &Scheduled, op: OpId) -> Option<String> {
    if let Some((copied, copy)) = scheduled.copies.copy(op) {
        return Some(format!("copied {} turns ahead to shared memory by {}", copied.stages - 1, copy.group));
    }
    if scheduled.copies.is_ahead(op) {
        return Some("of the turn that is copied".to_owned());
    }
    if let Some(access) = scheduled.laid_out.accesses.get(&op) {
        let whole = (access.whole != access.vector).then(|| format!(", whole tiles by {}", access.whole));
        return Some(format!("by {}{}", access.vector, whole.unwrap_or_default()));
    }
    if let Some(product) = scheduled.laid_out.products.get(&op) {
        let late = match &scheduled.pipelines {
            pipelines if pipelines.is_late(op) => ", a turn later",
            pipelines if pipelines.is_overtaken(op) => ", after the next product",
            _ => "",
        };
        let mut shape = product.instruction.shape;
        if scheduled.pipelines.tensor_memory().of_product(op).is_some() {
            // Of such a product an instruction has the columns of all warpgroups.
            shape.n *= product.parts()[1] as u32;
        }
        let memory = scheduled.pipelines.tensor_memory();
        let is_added_late = memory.of_product(op).is_some_and(|number| memory.sums()[number].late.is_some());
        let added = if is_added_late { ", added up a turn later" } else { "" };
        let scales = product.instruction.scales;
        let scaled = scales.map_or(String::new(), |scales| format!(" scaling blocks of {}", scales.block));
        return Some(format!("{shape}{scaled}{late}{added}"));
    }
    let way = match scheduled.laid_out.ways.get(&op)? {
        Way::Renamed(_) => "renamed".to_owned(),
        Way::RowMajor => "through shared memory".to_owned(),
        Way::InRounds { bytes } => format!("through {bytes} bytes of shared memory, in rounds"),
        Way::Swizzled(swizzled) => {
            let read = match &swizzled.read {
                Read::Slots(width) => format!("read by {width}"),
                Read::Matrices(load) if load.transposed => format!("{} transposed matrices", load.matrices),
                Read::Matrices(load) => format!("{} matrices", load.matrices),
            };
            format!("through shared memory, written by {}, {read}", swizzled.write)
        }
    };
    let staged = if scheduled.laid_out.staged.contains_key(&op) { ", staged" } else { "" };
    Some(format!("{way}{staged}"))
}
