//! What holds of every schedule, checked: what emitters rely on without asking.

use super::access::is_used;
use super::exchange::scan;
use super::pipeline::{Fill, PAIR, TileCopy};
use super::{Buffer, CopiedLoop, Pipeline, Scheduled, TENSOR_ALIGNMENT, shape_of};
use crate::dtype::DType;
use crate::kernel::{OpData, OpId, RegionId, ValueId};
use crate::ops::{Carried, Op};
use crate::types::Type;
use std::collections::HashSet;
use std::fmt;
use tile_layout::linear::{Distribution, Operand};

/// A schedule that breaks an invariant: a bug of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// The op.
    pub op: OpId,
    /// What doesn't hold of it.
    pub problem: String,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "of {:?}: {}", self.op, self.problem)
    }
}

/// Checks the invariants of the module.
///
/// # Errors
/// The first op of which one doesn't hold.
pub fn verify(scheduled: &Scheduled) -> Result<(), Broken> {
    for op in scheduled.walk() {
        let broken = |problem| Broken { op, problem };
        check(scheduled, scheduled.op(op)).map_err(broken)?;
        scatter(scheduled, op).map_err(broken)?;
        product(scheduled, op).map_err(broken)?;
        scales(scheduled, op).map_err(broken)?;
        regions(scheduled, op).map_err(broken)?;
    }
    rings(scheduled)?;
    factors(scheduled)?;
    tensor_memory(scheduled)?;
    roles(scheduled)?;
    stages(scheduled)?;
    exchanges(scheduled)
}

fn is_tile(scheduled: &Scheduled, value: &ValueId) -> bool {
    shape_of(scheduled, *value).is_some()
}

fn check(scheduled: &Scheduled, data: &OpData) -> Result<(), String> {
    let pipelines = scheduled.pipelines();
    let tiles = data.operands.iter().chain(&data.results).copied().filter(|value| is_tile(scheduled, value));
    for tile in tiles.clone() {
        let shape = shape_of(scheduled, tile).expect("it is a tile");
        match (scheduled.laid_out.distributions.get(&tile), pipelines.holds(tile)) {
            (None, false) => return Err("a tile lies nowhere".to_owned()),
            (Some(_), true) => return Err("a tile lies in a ring and in threads".to_owned()),
            (Some(found), false) if found.shape() != shape => {
                return Err(format!("a distribution is of {:?}, its tile of {shape:?}", found.shape()));
            }
            _ => {}
        }
    }
    if pipelines.replace(data) {
        return Ok(());
    }
    if let Some((axis, _)) = scan::joins_parts(&data.op) {
        return joined(scheduled, data, axis);
    }
    let lies = |value: ValueId| scheduled.distribution(value);
    let goes_by_element = (data.op.is_leaf() || data.op == Op::GatherLoad)
        && data.results.iter().any(|result| is_tile(scheduled, result));
    let is_atomic = matches!(data.op, Op::Atomic(_));
    match &data.op {
        Op::Reduce { axis, .. } => {
            let expected = lies(data.operands[0]).without_axis(*axis).map_err(|error| error.to_string())?;
            same(lies(data.results[0]), &expected)
        }
        Op::Permute(permutation) => {
            let expected = lies(data.operands[0]).permuted(permutation).map_err(|error| error.to_string())?;
            same(lies(data.results[0]), &expected)
        }
        Op::ReduceWith { .. } => {
            let first = lies(data.results[0]);
            data.results.iter().try_for_each(|&result| same(lies(result), first))
        }
        _ if is_atomic => {
            let first = lies(data.operands[1]);
            tiles.clone().try_for_each(|tile| same(lies(tile), first))
        }
        _ if goes_by_element => {
            let result = lies(data.results[0]);
            let mut tiles = tiles.filter(|tile| !data.results.contains(tile));
            tiles.try_for_each(|tile| same(lies(tile), result))
        }
        _ => Ok(()),
    }
}

fn same(found: &Distribution, expected: &Distribution) -> Result<(), String> {
    match found == expected {
        true => Ok(()),
        false => Err(format!("a tile lies as {found}, where it is read as {expected}")),
    }
}

/// Sums lie where they are added to, and what an instruction multiplies where its fragments say.
fn product(scheduled: &Scheduled, op: OpId) -> Result<(), String> {
    let data = scheduled.op(op);
    if !data.op.is_product() {
        return Ok(());
    }
    let (lies, pipelines) = (|value: ValueId| scheduled.distribution(value), scheduled.pipelines());
    let sums = lies(data.results[0]);
    same(lies(data.operands[2]), sums)?;
    let Some(product) = scheduled.product(op) else { return Ok(()) };
    same(sums, &product.distribution(sums.shape(), Operand::Accumulator))?;
    for (operand, factor) in [Operand::A, Operand::B].into_iter().zip(&data.operands) {
        let is_brought = operand == Operand::B && pipelines.brought_right_for(op).is_some();
        if !pipelines.holds(*factor) && !is_brought {
            let found = lies(*factor);
            same(found, &product.distribution(found.shape(), operand))?;
        }
    }
    Ok(())
}

/// What a loop carries lies alike before it, in it and behind it, and what a branch gives as its ends have it.
fn regions(scheduled: &Scheduled, op: OpId) -> Result<(), String> {
    let data = scheduled.op(op);
    let ends = data.regions.iter().filter_map(|&region| scheduled.region(region).ops.last());
    let ends = ends.map(|&end| scheduled.op(end)).filter(|end| end.op == Op::Yield);
    let given = |at: usize| ends.clone().map(move |end| end.operands[at]);
    let is_tile = |(_, result): &(usize, ValueId)| is_tile(scheduled, result);
    for (i, result) in data.results.iter().copied().enumerate().filter(is_tile) {
        let alike: Vec<ValueId> = match (Carried::of(&data.op), &data.op) {
            (Some(at), _) => {
                let param = scheduled.region(data.regions[0]).params[at.param + i];
                given(at.yielded + i).chain([data.operands[at.initial + i], param]).collect()
            }
            (None, Op::If) => given(i).collect(),
            (None, _) => return Ok(()),
        };
        let lies = |value: ValueId| scheduled.distribution(value);
        alike.into_iter().try_for_each(|value| same(lies(value), lies(result)))?;
    }
    Ok(())
}

/// Instructions alone scale blocks, and take scales from where their fragments say.
fn scales(scheduled: &Scheduled, op: OpId) -> Result<(), String> {
    let data = scheduled.op(op);
    if data.op != Op::MmaScaled {
        return Ok(());
    }
    let product = scheduled.product(op).ok_or("no instruction scales its blocks")?;
    let scales = [(Operand::A, data.operands[3]), (Operand::B, data.operands[4])];
    let lie = |&(operand, tile): &(Operand, ValueId)| {
        let found = scheduled.distribution(tile);
        *found == product.distribution_of_scales(found.shape(), operand)
    };
    match scales.iter().all(lie) {
        true => Ok(()),
        false => Err("its scales lie elsewhere than its instruction takes them".to_owned()),
    }
}

/// Operands whose lines are joined from parts lie alike, by bits of places; and results where they do.
fn joined(scheduled: &Scheduled, data: &OpData, axis: usize) -> Result<(), String> {
    let lies = |value: ValueId| scheduled.distribution(value);
    let first = lies(data.operands[0]);
    let expected = match data.op {
        Op::ReduceWith { .. } => first.without_axis(axis).map_err(|error| error.to_string())?,
        _ => first.clone(),
    };
    let (operands, results) = (&data.operands[..data.results.len()], &data.results);
    let are_alike = operands.iter().all(|&operand| lies(operand) == first);
    let are_there = results.iter().all(|&result| *lies(result) == expected);
    match scan::steps(first, axis).is_some() && are_alike && are_there {
        true => Ok(()),
        false => Err("lines that are joined from parts don't lie by bits of places, or not alike".to_owned()),
    }
}

/// Several elements of an atomic operation go in one instruction only if that can be as wide and nobody asks for what was
/// there.
fn scatter(scheduled: &Scheduled, op: OpId) -> Result<(), String> {
    let (data, together) = (scheduled.op(op), scheduled.scattered(op));
    if together == 1 {
        return Ok(());
    }
    let Type::Tensor(tensor) = scheduled.ty(data.operands[0]) else { unreachable!("verified: a tensor") };
    let bytes = tensor.elem.known().map_or(0, DType::bytes) as u64;
    if together * bytes > TENSOR_ALIGNMENT {
        return Err("one instruction changes more than lies together".to_owned());
    }
    if is_used(scheduled, data) {
        return Err(
            "its old elements are used, and one instruction gives those of several to nobody".to_owned()
        );
    }
    Ok(())
}

/// Stages hold what is copied to them, and rings and barriers lie apart.
fn rings(scheduled: &Scheduled) -> Result<(), Broken> {
    let mut end = 0;
    for (region, pipeline) in scheduled.pipelines().all() {
        let op = pipeline.fills[0].first_reader();
        let broken = |problem: &str| Err(Broken { op, problem: problem.to_owned() });
        if pipeline.ring < end {
            return broken("its ring overlaps the one before");
        }
        let mut used = 0;
        for copy in pipeline.fills.iter().flat_map(|fill| &fill.copies) {
            if copy.offset < used {
                return broken("two copies of a stage overlap");
            }
            used = copy.offset + copy.tile.bytes();
            let parts = if copy.halves.is_some() { PAIR } else { 1 };
            if parts * boxes_bytes(scheduled, copy) != copy.tile.bytes() {
                return broken("a copy brings another number of bytes than its tile has");
            }
            if copy.halves.is_some() && scheduled.pipelines().pairs().is_none() {
                return broken("blocks copy halves for each other and aren't pairs");
            }
        }
        let multiplies =
            pipeline.fills.iter().flat_map(|fill| &fill.readers).any(|&op| scheduled.op(op).op == Op::Mma);
        if used > pipeline.stage_bytes || pipeline.stages < if multiplies { 2 } else { 1 } {
            return broken("a stage has no room for its copies, or there is one alone");
        }
        if pipeline.barriers < pipeline.ring + pipeline.stages * pipeline.stage_bytes {
            return broken("its barriers overlap its stages");
        }
        end = pipeline.end();
        let ahead: HashSet<OpId> = scheduled.pipelines().tensor_memory().ahead(region).collect();
        if !pipeline.fills.iter().all(|fill| fill.readers.is_sorted_by_key(|op| !ahead.contains(op))) {
            return broken("a product that is multiplied ahead isn't the first to read its tiles");
        }
        late(scheduled, region, pipeline)?;
    }
    Ok(())
}

/// Products alone read tiles in rings, and each is among the readers of its tiles, or within one.
fn factors(scheduled: &Scheduled) -> Result<(), Broken> {
    for op in scheduled.walk() {
        let data = scheduled.op(op);
        let reads = data.operands.iter().any(|&operand| scheduled.pipelines().holds(operand));
        if reads && !scheduled.pipelines().replace(data) && scheduled.pipelines().factors(op).is_none() {
            return Err(Broken { op, problem: "it reads a ring, and is no product".to_owned() });
        }
        if let Some([_, None]) = scheduled.pipelines().factors(op) {
            let number = scheduled.pipelines().brought_right_for(op);
            let brought = number.map(|number| &scheduled.pipelines().brought_right()[number]);
            if brought.is_none_or(|brought| brought.written.is_none()) {
                let problem = "its right factor neither lies in a ring nor is brought to shared memory";
                return Err(Broken { op, problem: problem.to_owned() });
            }
        }
        for factor in scheduled.pipelines().factors(op).into_iter().flatten().flatten() {
            let pipeline = scheduled.pipelines().of_region(factor.pipeline);
            let is_read_by = |&reader: &OpId| reader == op || scheduled.stands_in(op, reader);
            if pipeline.is_none_or(|pipeline| !pipeline.fills[factor.fill].readers.iter().any(is_read_by)) {
                let problem = "it neither waits for the tile that it reads, nor keeps it from being left";
                return Err(Broken { op, problem: problem.to_owned() });
            }
        }
    }
    Ok(())
}

/// Sums of tensor memory are carried and given as their product has them, in columns that no others have.
fn tensor_memory(scheduled: &Scheduled) -> Result<(), Broken> {
    let memory = scheduled.pipelines().tensor_memory();
    let mut end = 0;
    for sums in memory.sums() {
        let op = sums.products[0].0;
        let broken = |problem: &str| Err(Broken { op, problem: problem.to_owned() });
        if sums.first < end {
            return broken("its sums overlap others in tensor memory");
        }
        end = sums.first + sums.stages.count * sums.stage_columns;
        if end > memory.columns() {
            return broken("its sums end behind what the block has of tensor memory");
        }
    }
    for op in scheduled.walk() {
        let data = scheduled.op(op);
        let broken = |problem: &str| Err(Broken { op, problem: problem.to_owned() });
        let allowed = data.op == Op::Yield || memory.of_product(op).is_some();
        if !allowed && data.operands.iter().any(|&value| memory.keeps(scheduled, value)) {
            return broken("it needs sums that no thread holds yet");
        }
        if memory.brought_for(op).is_some_and(|brought| memory.brought()[brought].matrices.is_none()) {
            return broken("its left factor can't be brought to shared memory from where it lies");
        }
    }
    Ok(())
}

/// The producer comes to every copy, and the multiplier to every product; they have what they need for that, and consumers leave
/// them nothing else that they need.
fn roles(scheduled: &Scheduled) -> Result<(), Broken> {
    let (pipelines, slice) = (scheduled.pipelines(), scheduled.pipelines().slice());
    for op in scheduled.walk() {
        let broken = |problem: &str| Err(Broken { op, problem: problem.to_owned() });
        let data = scheduled.op(op);
        if !pipelines.replace(data) && data.operands.iter().any(|&operand| pipelines.spares(operand)) {
            return broken("consumers need what they leave to the producer");
        }
        if pipelines.replace(data) && data.op.has_effect() {
            return broken("nobody changes the memory that it changes");
        }
        let around = || scheduled.owner_of(scheduled.region_of(op)?);
        if pipelines.tensor_memory().of_product(op).is_some()
            && around().is_some_and(|around| !slice.executes(around))
        {
            return broken("nobody multiplies in its loop");
        }
        let is_copy = pipelines.copy(op).is_some();
        if !slice.executes(op) {
            if is_copy {
                return broken("nobody copies the tile");
            }
            continue;
        }
        let needed = match (&data.op, data.load()) {
            (Op::For, _) => &data.operands[..2],
            (Op::Tiles(_), _) => &[],
            (_, Some(load)) => load.index,
            _ => &data.operands,
        };
        let is_number = |value: ValueId| matches!(scheduled.ty(value), Type::Scalar(_) | Type::Tile(_));
        if needed.iter().any(|&operand| is_number(operand) && !slice.has(operand)) {
            return broken("the producer executes it without a number that it needs");
        }
    }
    Ok(())
}

/// What one block copies of a tile.
fn boxes_bytes(scheduled: &Scheduled, copy: &TileCopy) -> u64 {
    let map = &scheduled.tensor_maps()[copy.map];
    let elements: u64 = map.axes.iter().map(|axis| u64::from(axis.tile)).product();
    copy.tile.panels * elements * copy.tile.element
}

/// What is done a turn later isn't used in its own turn, and what is done ahead needs nothing of that; the late product
/// and that beside which it is issued read the ring.
fn late(scheduled: &Scheduled, region: RegionId, pipeline: &Pipeline) -> Result<(), Broken> {
    let Some(late) = &pipeline.late else { return Ok(()) };
    let broken = |op, problem: &str| Err(Broken { op, problem: problem.to_owned() });
    let body = scheduled.walk_in(region);
    if !pipeline.is_read_by(late.product) || !pipeline.is_read_by(late.beside) || late.does(late.beside) {
        return broken(late.product, "it is late beside no product of its loop");
    }
    // What is done ahead comes first, and what is late comes last.
    let in_order = |fill: &Fill| {
        !fill.readers[1..].contains(&late.beside)
            && !fill.readers.iter().rev().skip(1).any(|&op| op == late.product)
            && late.overtaken.is_none_or(|overtaken| {
                let place = |op: OpId| fill.readers.iter().position(|&reader| reader == op);
                place(overtaken.product)
                    .is_none_or(|product| place(overtaken.by).is_none_or(|by| by < product))
            })
    };
    if !pipeline.fills.iter().all(in_order) {
        return broken(late.product, "a tile is read before it was waited for, or after it was left");
    }
    let given: HashSet<ValueId> =
        late.ops.iter().flat_map(|&op| &scheduled.op(op).results).copied().collect();
    let needs = |op: OpId, values: &HashSet<ValueId>| {
        scheduled.op(op).operands.iter().any(|operand| values.contains(operand))
    };
    if let Some(&op) = body.iter().find(|&&op| !late.does(op) && needs(op, &given)) {
        return broken(op, "it needs what is done a turn later");
    }
    let is_own = |op: &&OpId| !late.is_ahead(**op) && !scheduled.pipelines().replace(scheduled.op(**op));
    let own: HashSet<ValueId> =
        body.iter().filter(is_own).flat_map(|&op| &scheduled.op(op).results).copied().collect();
    match late.ahead.iter().chain([&late.beside]).find(|&&op| needs(op, &own)) {
        Some(&op) => broken(op, "it is done ahead of what it needs"),
        None => Ok(()),
    }
}

/// Stages hold what all threads copy to them, in groups that lie together in memory, and every thread computes by itself
/// where its groups come from.
fn stages(scheduled: &Scheduled) -> Result<(), Broken> {
    for (op, copied) in scheduled.copies().loops() {
        let broken = |op, problem: &str| Err(Broken { op, problem: problem.to_owned() });
        let mut used = 0;
        for copy in &copied.copies {
            if copy.offset < used {
                return broken(copy.load, "two copies of a stage overlap");
            }
            used = copy.offset + scheduled.laid_out.bytes(scheduled.op(copy.load).results[0]);
            let together = scheduled.laid_out.accesses.get(&copy.load).map_or(1, |access| access.vector);
            if copy.group > together {
                return broken(copy.load, "a copy moves more together than lies together");
            }
        }
        if used > copied.stage_bytes || copied.stages < 2 {
            return broken(op, "a stage has no room for its copies, or there is one alone");
        }
        addresses(scheduled, op, copied)?;
    }
    Ok(())
}

/// Where gathered tiles come from follows from a turn's number and what the loop doesn't change, in every thread alone.
fn addresses(scheduled: &Scheduled, for_op: OpId, copied: &CopiedLoop) -> Result<(), Broken> {
    let region = scheduled.op(for_op).regions[0];
    let ops = scheduled.walk_in(region);
    let params = &scheduled.region(region).params;
    let mut unknown: HashSet<ValueId> =
        ops.iter().flat_map(|&op| &scheduled.op(op).results).copied().collect();
    unknown.extend(&params[Carried::FOR.param..]);
    for &op in &copied.address {
        let data = scheduled.op(op);
        let exchanges = match &data.op {
            Op::Reshape(_) => scheduled.reshape(op).is_none(),
            _ => scheduled.moves.movement(op).is_some_and(|movement| movement.is_exchanged(0)),
        };
        if exchanges || !data.op.is_repeatable() || data.operands.iter().any(|value| unknown.contains(value))
        {
            let problem = "it can't be computed ahead of its turn, by every thread alone".to_owned();
            return Err(Broken { op, problem });
        }
        unknown.retain(|value| !data.results.contains(value));
    }
    let gathers = copied.copies.iter().map(|copy| copy.load);
    let mut gathers = gathers.filter(|&load| scheduled.op(load).op == Op::GatherLoad);
    match gathers.find(|&op| scheduled.op(op).operands.iter().any(|value| unknown.contains(value))) {
        Some(op) => Err(Broken { op, problem: "it is copied ahead of its indices".to_owned() }),
        None => Ok(()),
    }
}

/// Buffers lie behind the rings, and what one op leaves in its buffers no other op writes over before it was read.
fn exchanges(scheduled: &Scheduled) -> Result<(), Broken> {
    let ops = scheduled.walk();
    let rings = scheduled.pipelines().bytes();
    for (position, &op) in ops.iter().enumerate() {
        let broken = |problem: &str| Err(Broken { op, problem: problem.to_owned() });
        let own = scheduled.buffers(op);
        let end = |buffer: &Buffer| buffer.offset + buffer.bytes;
        if own.iter().any(|buffer| buffer.offset < rings || end(buffer) > scheduled.shared_bytes()) {
            return broken("a buffer lies over a ring, or beyond shared memory");
        }
        let stays = match scheduled.staged_for(op) {
            Some(product) => ops.iter().position(|&other| other == product).unwrap_or(position),
            None => position,
        };
        let later = ops[position + 1..=stays].iter().flat_map(|&other| scheduled.buffers(other));
        let apart = own
            .iter()
            .enumerate()
            .all(|(i, buffer)| own[..i].iter().chain(later.clone()).all(|other| !buffer.overlaps(other)));
        if !apart {
            return broken("a buffer lies over another that is in use");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
