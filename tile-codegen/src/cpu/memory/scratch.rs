//! Where stored tiles lie in a block's scratch memory.
//!
//! **Lives.** Ops are numbered in order; a loop and a branch have a second number, at their end. A tile is
//! alive from a definition to its last read. A read inside a loop of a tile from outside it lasts to the
//! loop's end. Carried tiles are defined twice, on entry and by `yield`, and in between only as long as the
//! body reads them; results of a branch are defined by either `yield`.
//!
//! **Sharing.** A tile may take over the place of a tile whose last read is the definition, if that read is
//! in place, and no other op of the same loop reads that tile. So an accumulator's initial value, parameter, sum
//! and result share one place, and no copy of any is made. Two tiles that share a place are never alive at once,
//! but at that one op.
//!
//! **Packed factors.** An `mma` has places of its own for what it packs of its factors, for as long as it takes; where
//! the products of several turns of a loop are multiplied together, for as long as the loop takes; and for all of the
//! entry where the next blocks find them there. A sort has a place for the keys of a line.
//!
//! **Placing.** The largest first, each at the lowest offset that is free during its life.

use crate::cpu::fuse::{Fusion, Read, is_tile};
use crate::cpu::product::Products;
use std::collections::{HashMap, HashSet};
use tile_ir::dtype::DType;
use tile_ir::kernel::{OpData, OpId};
use tile_ir::{Instance, Op, RegionId, ValueId};

/// Alignment of every tile: a cache line, and the widest vector.
const ALIGNMENT: u64 = 64;

/// Bytes that an element takes in scratch memory: those of its compute type.
pub(in crate::cpu) fn element_bytes(dtype: DType) -> u64 {
    match dtype {
        dtype if dtype.is_narrow_float() => 4,
        _ => dtype.bytes() as u64,
    }
}

/// A place in scratch memory: one tile at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(in crate::cpu) struct Place {
    pub(in crate::cpu) offset: u64,
    pub(in crate::cpu) bytes: u64,
    /// Tells apart places that have one offset at different times.
    pub(in crate::cpu) id: usize,
}

impl Place {
    /// Whether two places have bytes in common.
    pub(in crate::cpu) fn overlaps(&self, other: &Place) -> bool {
        self.offset < other.offset + other.bytes && other.offset < self.offset + self.bytes
    }
}

/// The places of an instance: of its stored tiles, and of what ops need besides.
pub(in crate::cpu) struct Scratch {
    tiles: HashMap<ValueId, Place>,
    /// Of the factors that an `mma` packs, by the tile that it gives.
    factors: HashMap<ValueId, [Option<Place>; 2]>,
    /// Of the keys of a line, by the tile that the sort gives.
    keys: HashMap<ValueId, Place>,
    bytes: u64,
}

impl Scratch {
    pub(in crate::cpu) fn of<'a>(
        instance: &'a Instance,
        fusion: &'a Fusion<'a>,
        products: &'a Products<'a>,
    ) -> Self {
        let mut lives = Lives::of(instance, fusion, products);
        lives.share();
        lives.place()
    }

    /// The place of a tile; `None` for one that is computed where it is used.
    pub(in crate::cpu) fn place(&self, tile: ValueId) -> Option<Place> {
        self.tiles.get(&tile).copied()
    }

    /// The place of a tile that it shares with nothing at any time.
    pub(in crate::cpu) fn own_place(&self, tile: ValueId) -> Option<Place> {
        let place = self.place(tile)?;
        let others = self.tiles.iter().filter(|(other, _)| **other != tile).map(|(_, place)| place);
        let is_alone = !others.chain(self.beside_tiles()).any(|other| other.overlaps(&place));
        is_alone.then_some(place)
    }

    /// The places of the factors that an `mma` packs; `None` for one that it reads where it is.
    pub(in crate::cpu) fn packed(&self, product: ValueId) -> [Option<Place>; 2] {
        self.factors.get(&product).copied().unwrap_or_default()
    }

    /// The place of the keys of a line; `None` for an op that doesn't sort by keys.
    pub(in crate::cpu) fn keys(&self, sorted: ValueId) -> Option<Place> {
        self.keys.get(&sorted).copied()
    }

    /// The places that no tile has.
    fn beside_tiles(&self) -> impl Iterator<Item = &Place> {
        self.factors.values().flatten().flatten().chain(self.keys.values())
    }

    /// Every place, once.
    pub(in crate::cpu) fn places(&self) -> Vec<Place> {
        let distinct: HashSet<Place> = self.tiles.values().chain(self.beside_tiles()).copied().collect();
        let mut places: Vec<Place> = distinct.into_iter().collect();
        places.sort_unstable();
        places
    }

    /// Scratch memory of a block, in bytes.
    pub(in crate::cpu) fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// A time in which a tile is alive: half-open, in half-steps. Op `n` reads in `2n..2n + 2` and defines from
/// `2n + 1` on, so what an op reads and what it gives are alive together.
#[derive(Clone, Copy, Debug)]
struct Span {
    /// `None` for a packed factor, and for keys.
    tile: Option<ValueId>,
    start: usize,
    end: usize,
}

/// `to` may take over the place of `from` at an op, which reads `from` in place.
struct Handover {
    from: ValueId,
    to: ValueId,
    at: usize,
    reason: Reason,
}

/// Why a tile may take over the place of another, in the order in which handovers are tried, as one may rule out another:
/// the first ones save copies of loops.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Reason {
    /// It is the result of a loop, and the other the loop's parameter.
    LoopResult,
    /// It is a copy of the other: a parameter's of an initial value, or of what a `yield` gives.
    Copy,
    /// The op that gives it reads the other in place.
    InPlace,
}

/// What has one place.
struct Group {
    owner: Owner,
    spans: Vec<Span>,
    bytes: u64,
}

/// Whose place it is.
enum Owner {
    /// Tiles, which take it over from each other.
    Tiles(Vec<ValueId>),
    /// A packed factor: the product, and which of its factors.
    Factor(ValueId, usize),
    /// The keys of this sort.
    Keys(ValueId),
}

impl Owner {
    fn has(&self, tile: ValueId) -> bool {
        matches!(self, Owner::Tiles(tiles) if tiles.contains(&tile))
    }
}

/// A stored tile that an op reads.
struct ReadAt {
    tile: ValueId,
    at: usize,
    /// The loops around the op.
    around: Vec<OpId>,
}

struct Lives<'a> {
    instance: &'a Instance,
    fusion: &'a Fusion<'a>,
    products: &'a Products<'a>,
    /// The number of the next op.
    now: usize,
    /// The loops around the current op.
    around: Vec<OpId>,
    loop_ends: HashMap<OpId, usize>,
    definitions: HashMap<ValueId, Vec<usize>>,
    /// The loops around a tile's definition.
    loops_of: HashMap<ValueId, Vec<OpId>>,
    reads: Vec<ReadAt>,
    handovers: Vec<Handover>,
    groups: Vec<Group>,
}

impl<'a> Lives<'a> {
    fn of(instance: &'a Instance, fusion: &'a Fusion<'a>, products: &'a Products<'a>) -> Self {
        let mut lives = Lives {
            instance,
            fusion,
            products,
            now: 0,
            around: Vec::new(),
            loop_ends: HashMap::new(),
            definitions: HashMap::new(),
            loops_of: HashMap::new(),
            reads: Vec::new(),
            handovers: Vec::new(),
            groups: Vec::new(),
        };
        lives.region(instance.body(), &[]);
        let mut tiles: Vec<ValueId> = lives.definitions.keys().copied().collect();
        tiles.sort_unstable();
        let groups = tiles.into_iter().map(|tile| Group {
            owner: Owner::Tiles(vec![tile]),
            spans: lives.spans(tile),
            bytes: bytes_of(instance, tile),
        });
        let groups: Vec<Group> = groups.collect();
        lives.groups.extend(groups);
        lives
    }

    fn define(&mut self, tile: ValueId) {
        if !self.fusion.is_stored(tile) {
            return;
        }
        self.definitions.entry(tile).or_default().push(self.now);
        self.loops_of.entry(tile).or_insert_with(|| self.around.clone());
    }

    fn read(&mut self, tile: ValueId) {
        self.reads.push(ReadAt { tile, at: self.now, around: self.around.clone() });
    }

    /// Notes that `to`, defined now, may take over `from`, read now.
    fn hand_over(&mut self, from: ValueId, to: ValueId, reason: Reason) {
        let (stored, bytes) = (|v| self.fusion.is_stored(v), |v| bytes_of(self.instance, v));
        if stored(from) && stored(to) && bytes(from) == bytes(to) {
            self.handovers.push(Handover { from, to, at: self.now, reason });
        }
    }

    /// Notes that the factors which an `mma` packs are there from one op to another.
    fn pack(&mut self, product: &OpData, from: usize, to: usize) {
        let bytes = self.products.packed_bytes(self.instance, self.fusion, product);
        for (factor, bytes) in bytes.into_iter().enumerate().filter(|(_, bytes)| *bytes > 0) {
            let is_kept = self.products.plan(product.results[0]).is_kept(factor);
            let (start, end) = if is_kept { (0, usize::MAX) } else { (2 * from, 2 * to + 2) };
            let spans = vec![Span { tile: None, start, end }];
            self.groups.push(Group { owner: Owner::Factor(product.results[0], factor), spans, bytes });
        }
    }

    /// `yields` are the tiles that the region's `yield` gives its values to.
    fn region(&mut self, region: RegionId, yields: &[ValueId]) {
        let instance = self.instance;
        for &op in &instance.region(region).ops {
            let data = instance.op(op);
            match data.op {
                ref kind if kind.is_loop() => self.carrying_loop(op, data),
                Op::If => {
                    data.regions.iter().for_each(|&inner| self.region(inner, &data.results));
                    self.now += 1;
                }
                Op::Yield => {
                    // A `while` yields its condition before what it carries.
                    self.copies(data, last(&data.operands, yields.len()), yields);
                    self.now += 1;
                }
                _ => self.op(data),
            }
        }
    }

    fn op(&mut self, data: &OpData) {
        let is_left = data.results.first().is_some_and(|&tile| self.fusion.is_left_to_reduction(tile));
        let own = Some(data).filter(|data| !is_left && !self.fusion.is_hosted(data));
        let hosted = own.into_iter().flat_map(|data| self.fusion.hosted_by(data));
        let in_loop: Vec<&OpData> = self.fusion.made_by(data).into_iter().chain(own).chain(hosted).collect();
        for (number, one) in in_loop.iter().enumerate() {
            let others = [&in_loop[..number], &in_loop[number + 1..]].concat();
            let others = others.into_iter().flat_map(|other| self.fusion.reads(other)).map(|read| read.tile);
            let others: Vec<ValueId> = others.collect();
            self.accesses(one, &others);
        }
        self.now += 1;
    }

    /// Notes what an op reads and gives now, and what `others` of its loop read. What it makes of a tile doesn't take that
    /// one's place where they need it as it was.
    fn accesses(&mut self, data: &OpData, others: &[ValueId]) {
        let reads = self.fusion.reads(data);
        let is_emitted = data.results.iter().all(|&r| !is_tile(self.instance, r) || self.fusion.is_stored(r));
        if is_emitted {
            for read in &reads {
                self.read(read.tile);
            }
            for &result in &data.results {
                self.define(result);
                let in_place = |read: &&Read| {
                    let is_elsewhere = reads.iter().any(|r| r.tile == read.tile && !r.in_place);
                    read.in_place && !is_elsewhere && !others.contains(&read.tile)
                };
                reads
                    .iter()
                    .filter(in_place)
                    .for_each(|read| self.hand_over(read.tile, result, Reason::InPlace));
            }
        }
        if data.op == Op::Mma && !self.products.is_accumulated(data.results[0]) {
            self.pack(data, self.now, self.now);
        }
        let bytes = crate::cpu::lines::sort::key_bytes(self.instance, data);
        if bytes > 0 {
            let spans = vec![Span { tile: None, start: 2 * self.now, end: 2 * self.now + 2 }];
            self.groups.push(Group { owner: Owner::Keys(data.results[0]), spans, bytes });
        }
    }

    /// Tiles copied from `sources` to `targets` now, as if all at once.
    fn copies(&mut self, data: &OpData, sources: &[ValueId], targets: &[ValueId]) {
        let reads = self.fusion.reads(data);
        reads.iter().for_each(|read| self.read(read.tile));
        for (&from, &to) in sources.iter().zip(targets) {
            self.define(to);
            if reads.iter().all(|read| read.tile != from || read.in_place) {
                self.hand_over(from, to, Reason::Copy);
            }
        }
    }

    fn carrying_loop(&mut self, op: OpId, data: &OpData) {
        let count = data.results.len();
        let params = last(&self.instance.region(data.regions[0]).params, count);
        self.around.push(op);
        params.iter().for_each(|&param| drop(self.loops_of.insert(param, self.around.clone())));
        self.around.pop();
        self.copies(data, last(&data.operands, count), params);
        let begin = self.now;
        self.now += 1;
        self.around.push(op);
        self.region(data.regions[0], params);
        self.around.pop();
        self.loop_ends.insert(op, self.now);
        for (&param, &result) in params.iter().zip(&data.results) {
            if self.fusion.is_stored(param) {
                self.read(param);
            }
            self.define(result);
            self.hand_over(param, result, Reason::LoopResult);
        }
        if let Some(accumulation) = data.results.first().and_then(|&sum| self.products.accumulation(sum)) {
            self.pack(accumulation.product, begin, self.now);
        }
        self.now += 1;
    }

    /// One span per definition, to the last read before the next.
    fn spans(&self, tile: ValueId) -> Vec<Span> {
        let definitions = &self.definitions[&tile];
        let reads = self.reads.iter().filter(|read| read.tile == tile);
        let ends = reads.map(|&ReadAt { at, ref around, .. }| {
            let left = around.iter().find(|op| !self.loops_of[&tile].contains(op));
            (at, left.map_or(at, |op| self.loop_ends[op]))
        });
        let ends: Vec<(usize, usize)> = ends.collect();
        let spans = definitions.iter().enumerate().map(|(i, &defined)| {
            // A carried tile is read by its `yield` before it is defined there.
            let next = definitions.get(i + 1).copied().unwrap_or(usize::MAX);
            let within = ends.iter().filter(|&&(at, _)| defined < at && at <= next);
            let last = within.map(|&(_, end)| end).max().unwrap_or(defined);
            Span { tile: Some(tile), start: 2 * defined + 1, end: 2 * last + 2 }
        });
        spans.collect()
    }

    /// Joins groups along handovers, where no two tiles are alive at once.
    fn share(&mut self) {
        let mut handovers = std::mem::take(&mut self.handovers);
        handovers.sort_by_key(|handover| handover.reason);
        let allowed: HashSet<(ValueId, ValueId, usize)> =
            handovers.iter().map(|h| (h.from, h.to, h.at)).collect();
        for handover in &handovers {
            let group_of = |tile| self.groups.iter().position(|group| group.owner.has(tile));
            let (Some(a), Some(b)) = (group_of(handover.from), group_of(handover.to)) else { continue };
            if a == b || !compatible(&self.groups[a].spans, &self.groups[b].spans, &allowed) {
                continue;
            }
            let other = self.groups.swap_remove(a.max(b));
            let joined = &mut self.groups[a.min(b)];
            if let (Owner::Tiles(tiles), Owner::Tiles(others)) = (&mut joined.owner, other.owner) {
                tiles.extend(others);
            }
            joined.spans.extend(other.spans);
        }
    }

    fn place(mut self) -> Scratch {
        let bytes = |group: &Group| group.bytes.next_multiple_of(ALIGNMENT);
        self.groups.sort_by_key(|group| (std::cmp::Reverse(bytes(group)), group.spans[0].start));
        let mut placed: Vec<(Place, &[Span])> = Vec::new();
        let mut scratch =
            Scratch { tiles: HashMap::new(), factors: HashMap::new(), keys: HashMap::new(), bytes: 0 };
        for (id, group) in self.groups.iter().enumerate() {
            let mut taken: Vec<Place> = placed
                .iter()
                .filter(|(_, spans)| !compatible(spans, &group.spans, &HashSet::new()))
                .map(|&(place, _)| place)
                .collect();
            taken.sort_unstable();
            let mut place = Place { offset: 0, bytes: bytes(group), id };
            for other in &taken {
                if place.overlaps(other) {
                    place.offset = other.offset + other.bytes;
                }
            }
            scratch.bytes = scratch.bytes.max(place.offset + place.bytes);
            match &group.owner {
                Owner::Tiles(tiles) => scratch.tiles.extend(tiles.iter().map(|&tile| (tile, place))),
                &Owner::Factor(product, factor) => {
                    scratch.factors.entry(product).or_default()[factor] = Some(place);
                }
                &Owner::Keys(sorted) => drop(scratch.keys.insert(sorted, place)),
            }
            placed.push((place, &group.spans));
        }
        scratch
    }
}

/// The last `count` values: what is carried, behind bounds, counters and conditions.
fn last(values: &[ValueId], count: usize) -> &[ValueId] {
    &values[values.len().saturating_sub(count)..]
}

/// Whether no span of one meets a span of the other, but at an op where one tile takes over the other's place.
fn compatible(a: &[Span], b: &[Span], allowed: &HashSet<(ValueId, ValueId, usize)>) -> bool {
    let takes_over = |from: &Span, to: &Span| {
        let tiles = from.tile.zip(to.tile).filter(|_| from.end == to.start + 1);
        tiles.is_some_and(|(a, b)| allowed.contains(&(a, b, to.start / 2)))
    };
    a.iter().all(|x| {
        b.iter().all(|y| x.end <= y.start || y.end <= x.start || takes_over(x, y) || takes_over(y, x))
    })
}

fn bytes_of(instance: &Instance, tile: ValueId) -> u64 {
    let ty = instance.ty(tile).as_tile().expect("only tiles are stored");
    let dtype = ty.elem.known().expect("an instance has no dtype parameters");
    crate::cpu::region::extents(&ty.shape).iter().product::<i64>() as u64 * element_bytes(dtype)
}
