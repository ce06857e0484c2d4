//! Which factors' tiles lie in rings, and where these lie in shared memory: as many as there is room for.
//!
//! A tile that a loop loads in every turn has no other place, and its ring wants the stages that hide the way from memory.
//! A left factor that is loaded before the loop could be held by registers as well, an instruction's parts of it in all
//! turns. Of these there are too few as soon as a turn has several products, while an instruction reads either place
//! alike. So such a tile gets what room two stages of every ring leave. Where the region is executed again, as the tile of
//! the grid of a block that goes on to further ones, its next tiles can only be copied while the present ones are read if
//! there is a second stage; it gets that of what nothing else needs ([`Spare`]).

use super::factor::{self, Factor, FactorId};
use super::obstacle::{Obstacle, Obstacles};
use super::ring::{Fill, Pipeline, RingFactor, TileCopy};
use super::shared_tile::Copyable;
use super::{PAIR, Pipelines, TILE_ALIGNMENT, empty};
use crate::analysis::Ranges;
use crate::analysis::uses::Uses;
use crate::kernel::{Kernel, OpId, RegionId};
use crate::schedule_hints::{LEAST_STAGES, MOST_STAGES, ScheduleHint};
use std::collections::HashSet;

/// What should be on its way while one stage is read, in bytes: a multiprocessor's share of the bandwidth times the
/// time that memory takes, with a margin.
const BYTES_ON_THEIR_WAY: u64 = 128 * 1024;

/// Room for the mbarriers of a ring, in bytes.
const BARRIERS_BYTES: u64 = 1024;

/// What becomes of shared memory that no ring needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::gpu) enum Spare {
    /// It is left to what threads exchange.
    Left,
    /// It has the next tiles of what whole loops read.
    NextTiles,
}

/// How many stages rings have.
#[derive(Clone, Copy)]
struct StageLimits<'r> {
    /// The most of those of loops.
    most: u64,
    /// The regions whose rings have two, of those that whole loops read and that else have one.
    doubled: &'r HashSet<RegionId>,
}

/// What rings are placed by.
pub(super) struct Placement<'k> {
    pub(super) kernel: &'k Kernel,
    pub(super) uses: &'k Uses,
    pub(super) ranges: Ranges,
    /// The products whose right factor consumers bring.
    pub(super) brought: &'k [OpId],
    /// The loads whose tiles both blocks of a pair read.
    pub(super) shared: HashSet<OpId>,
    /// Shared memory for all rings, in bytes.
    pub(super) available: u64,
    /// What becomes of the rest of it.
    pub(super) spare: Spare,
}

impl Placement<'_> {
    /// The rings of as many factors as there is room for; adds what keeps the others from that.
    pub(super) fn rings(&self, factors: Vec<Factor>, obstacles: &mut Obstacles) -> Pipelines {
        let loads = factor::loads_to_hold(&factors);
        let (before, mut placed): (Vec<Factor>, Vec<Factor>) =
            factors.into_iter().partition(|factor| loads.contains(&factor.load));
        let mut rings = loop {
            match self.with_fewer_stages(&placed) {
                Ok(rings) => break rings,
                Err((region, obstacle)) => {
                    let (none, others): (Vec<Factor>, Vec<Factor>) =
                        placed.into_iter().partition(|factor| factor.home == region);
                    self.add_obstacles(&none, &obstacle, obstacles);
                    placed =
                        factor::read_there_alone(self.kernel, self.uses, others, self.brought, obstacles);
                }
            }
        };
        for load in loads {
            let own = before.iter().filter(|factor| factor.load == load);
            let is_right_placed = |factor: &Factor| {
                let product = factor.id.product;
                self.brought.contains(&product)
                    || placed.iter().any(|other| other.id == FactorId::right(product))
            };
            let more: Vec<Factor> = placed.iter().chain(own.clone()).cloned().collect();
            if own.clone().all(is_right_placed)
                && let Ok(with_it) = self.with_fewer_stages(&more)
            {
                (placed, rings) = (more, with_it);
            }
        }
        match self.spare {
            Spare::Left => rings,
            Spare::NextTiles => self.with_next_tiles(&placed, rings),
        }
    }

    /// Gives a second stage to each ring of one whose region is executed again, where every other keeps its stages.
    fn with_next_tiles(&self, factors: &[Factor], mut rings: Pipelines) -> Pipelines {
        let mut doubled = HashSet::new();
        for region in rings.waiting_for_room(self.kernel) {
            doubled.insert(region);
            let keeps = |more: &Pipelines| {
                let stages = |rings: &Pipelines, other| rings.by_region[&other].stages;
                let mut others = rings.order.iter().filter(|&&other| other != region);
                others.all(|&other| stages(more, other) == stages(&rings, other))
            };
            let with_most = |most: u64| {
                self.rings_of(factors, StageLimits { most, doubled: &doubled }).ok().filter(keeps)
            };
            match (LEAST_STAGES..=MOST_STAGES).rev().find_map(with_most) {
                Some(more) => rings = more,
                None => {
                    doubled.remove(&region);
                }
            }
        }
        rings
    }

    /// Adds that there is no room for the ring of these factors.
    fn add_obstacles(&self, factors: &[Factor], no_room: &Obstacle, obstacles: &mut Obstacles) {
        for factor in factors {
            let view = self.kernel.op(factor.load).load().expect("a factor is loaded").view;
            let obstacle = match factor.is_loaded_before() {
                true => Obstacle::LoadedBefore(self.kernel.tensor_name(view)),
                false => no_room.clone(),
            };
            obstacles.add(factor.id, obstacle);
        }
    }

    /// The rings of all these factors, with as many stages at most as leave room for all.
    ///
    /// # Errors
    /// The first region for whose ring there is no room.
    fn with_fewer_stages(&self, factors: &[Factor]) -> Result<Pipelines, (RegionId, Obstacle)> {
        let none = HashSet::new();
        let rings = |most: u64| self.rings_of(factors, StageLimits { most, doubled: &none });
        let fitting = (LEAST_STAGES + 1..=MOST_STAGES).rev().find_map(|most| rings(most).ok());
        fitting.map_or_else(|| rings(LEAST_STAGES), Ok)
    }

    /// The rings of all these factors, those of outer regions first.
    ///
    /// # Errors
    /// The first region for whose ring there is no room.
    fn rings_of(
        &self,
        factors: &[Factor],
        limits: StageLimits<'_>,
    ) -> Result<Pipelines, (RegionId, Obstacle)> {
        let mut rings = Pipelines::default();
        let nested = self.kernel.walk().into_iter().flat_map(|op| &self.kernel.op(op).regions).copied();
        for region in std::iter::once(self.kernel.body()).chain(nested) {
            self.add(&mut rings, region, factors, limits).map_err(|obstacle| (region, obstacle))?;
        }
        Ok(rings)
    }

    /// Adds the ring of those of the factors that a region loads, if there are any.
    ///
    /// # Errors
    /// That there is no room for it.
    fn add(
        &self,
        rings: &mut Pipelines,
        region: RegionId,
        factors: &[Factor],
        limits: StageLimits<'_>,
    ) -> Result<(), Obstacle> {
        let own: Vec<&Factor> = factors.iter().filter(|factor| factor.home == region).collect();
        if own.is_empty() {
            return Ok(());
        }
        let tile_bytes = |factor: &Factor| factor.copyable.tile.bytes().next_multiple_of(TILE_ALIGNMENT);
        let tiles = factor::by_load(own.iter().copied());
        let stage_bytes: u64 = tiles.iter().map(|reading| tile_bytes(reading[0])).sum();
        let ring = rings.rings_end().next_multiple_of(TILE_ALIGNMENT);
        let asked = self.kernel.hints.of(ScheduleHint::Stages);
        let (least, wanted) = match own.iter().all(|factor| factor.is_loaded_before()) {
            true => [1 + u64::from(limits.doubled.contains(&region)); 2].into(),
            false => {
                let wanted = (1 + BYTES_ON_THEIR_WAY.div_ceil(stage_bytes)).min(limits.most);
                (LEAST_STAGES, asked.map_or(wanted, |asked| asked.min(limits.most)))
            }
        };
        let available = self.available.saturating_sub(ring + BARRIERS_BYTES);
        let stages = (available / stage_bytes).min(wanted);
        if stages < least {
            return Err(Obstacle::Room { stage: stage_bytes, available });
        }
        let (mut fills, mut offset): (Vec<Fill>, u64) = (Vec::new(), 0);
        for reading in tiles {
            let factor = reading[0];
            let readers = self.readers(region, &reading);
            let Copyable { tile, axes, map, outer, .. } = &factor.copyable;
            let rows = axes.iter().position(|axis| axis == outer);
            let halves = rows.filter(|_| self.shared.contains(&factor.load));
            let mut map = map.clone();
            halves.iter().for_each(|&rows| map.axes[rows].tile /= PAIR as u32);
            let fill = fills.iter().position(|fill| fill.readers == readers).unwrap_or(fills.len());
            if fill == fills.len() {
                let keeps_running = self.keeps_running(region, &readers, factors);
                fills.push(Fill { readers, copies: Vec::new(), keeps_running });
            }
            let (copies, map) = (&mut fills[fill].copies, rings.map(&map));
            for Factor { id, major, values, .. } in reading {
                let place = RingFactor { pipeline: region, fill, copy: copies.len(), major: *major };
                rings.factors.entry(id.product).or_default()[id.operand] = Some(place);
                rings.in_rings.extend(values);
            }
            let (load, axes, tile) = (factor.load, axes.clone(), *tile);
            let may_be_empty = empty::axes(self.kernel, &self.ranges, load);
            copies.push(TileCopy { load, map, axes, halves, may_be_empty, tile, offset });
            offset += tile_bytes(factor);
        }
        let barriers = ring + stages * stage_bytes;
        let pipeline = Pipeline { stages, fills, ring, stage_bytes, barriers, late: None, alternates: false };
        rings.by_region.insert(region, pipeline);
        rings.order.push(region);
        Ok(())
    }

    /// The ops of a region that are the products of these factors, or stand around them, in order.
    fn readers(&self, region: RegionId, factors: &[&Factor]) -> Vec<OpId> {
        let reads = |op: OpId, product: OpId| op == product || self.kernel.stands_in(product, op);
        let ops = self.kernel.region(region).ops.iter().copied();
        ops.filter(|&op| factors.iter().any(|factor| reads(op, factor.id.product))).collect()
    }

    /// Whether the product that alone reads tiles of a loop's ring goes on while the next turn's begins: it is the only
    /// one, and nothing but the next one needs its sums, nor registers its left factor. A right one that consumers bring has a
    /// stage for each of the two turns.
    fn keeps_running(&self, region: RegionId, readers: &[OpId], all: &[Factor]) -> bool {
        let mut of_turn = all.iter().filter(|factor| factor.turn == region);
        let &[product] = readers else { return false };
        let of_region = |product: &&OpId| self.kernel.region_of(**product) == Some(region);
        let brought: Vec<&OpId> = self.brought.iter().filter(of_region).collect();
        of_turn.clone().count() + brought.len() == 2
            && of_turn.all(|factor| factor.id.product == product)
            && brought.iter().all(|&&brought| brought == product)
            && factor::carries_sums(self.kernel, self.uses, region, product)
    }
}
