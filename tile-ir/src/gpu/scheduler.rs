//! The steps of a schedule, from an optimized instance to a [`Scheduled`] one, and how they are taken again until what
//! they want of shared memory fits.

use super::access::gathered_by_element;
use super::exchange::barriers::Barriers;
use super::exchange::movement::Moves;
use super::exchange::scratch::Scratch;
use super::exchange::{Exchanges, orders, uniform, ways};
use super::laid_out::LaidOut;
use super::pipeline::{self, Spare};
use super::room::Room;
use super::{
    Copies, Pipelines, Scheduled, Threads, cluster, hinted, occupancy, parts, print, remarks, rewrites,
    verify,
};
use crate::analysis::uses::Uses;
use crate::kernel::{Kernel, OpId};
use crate::specialize::Instance;
use crate::target::TargetDesc;
use std::borrow::Cow;
use std::collections::HashSet;

/// What schedules an instance for a target.
#[derive(Clone, Copy)]
pub(super) struct Scheduler<'t> {
    pub(super) target: &'t TargetDesc,
    /// The threads that hold each tile; without, as many as the kernel asks for.
    pub(super) threads: Option<Threads>,
    pub(super) room: Room,
}

/// The schedule for a block that has a target's shared memory to itself, or this part of it; the author's hints say of how
/// many threads where `given` doesn't.
pub(super) fn schedule_as(instance: Instance, target: &TargetDesc, given: Option<Threads>) -> Scheduled {
    let asked = hinted::threads(&instance, target);
    let shared = if given.is_none() { cluster::threads(&instance, target, asked) } else { None };
    let scheduler = |threads| Scheduler { target, threads, room: Room::ALL };
    let shared = shared.map(|threads| scheduler(Some(threads)).schedule(instance.clone()));
    match shared.filter(|shared| cluster::exchanges_reductions_alone(shared, &shared.scratch)) {
        Some(shared) => shared,
        None => scheduler(given.or(asked)).schedule(instance),
    }
}

/// The instance with what was found rewritten, if anything was.
fn with_rewritten<Found>(
    instance: Instance,
    name: &'static str,
    found: &[Found],
    run: impl FnOnce(&mut Kernel, &[Found]),
) -> Instance {
    if found.is_empty() { instance } else { instance.rewrite(name, |kernel| run(kernel, found)) }
}

impl Scheduler<'_> {
    /// The schedule with the most room that fits into shared memory; one that doesn't fit where none does.
    pub(super) fn schedule(mut self, instance: Instance) -> Scheduled {
        let instance = self.of_matrices(self.in_formats_of_target(instance));
        loop {
            let scheduled = self.steps(instance.clone());
            if self.fits(&scheduled) {
                return self.with_next_tiles(scheduled, instance);
            }
            match self.room.tightened(&scheduled, self.target) {
                Some(tighter) => self.room = tighter,
                None => return scheduled,
            }
        }
    }

    fn fits(&self, scheduled: &Scheduled) -> bool {
        scheduled.shared_bytes() <= u64::from(self.target.shared_bytes)
    }

    /// The instance with the factors of its products in formats that the target multiplies.
    fn in_formats_of_target(&self, instance: Instance) -> Instance {
        let scales = self.threads.is_none_or(|threads| threads.are_whole_warps(self.target));
        let scaled = if scales { rewrites::scaled::found(&instance, self.target) } else { Vec::new() };
        let instance = with_rewritten(instance, "scaled", &scaled, rewrites::scaled::run);
        let narrower = rewrites::narrow::needed(&instance, self.target);
        let instance = with_rewritten(instance, "narrow", &narrower, rewrites::narrow::run);
        let widened = rewrites::widen::needed(&instance, self.target);
        with_rewritten(instance, "widen", &widened, rewrites::widen::run)
    }

    /// An instance whose products of single matrices are no products of stacks, where that gives it pipelines.
    fn of_matrices(&self, instance: Instance) -> Instance {
        let single = rewrites::single::needed(&instance, self.target);
        if single.is_empty() {
            return instance;
        }
        let other = instance.clone().rewrite("single", |kernel| rewrites::single::run(kernel, &single));
        if self.pipelines(&other).is_empty() { instance } else { other }
    }

    /// The schedule that also has a next turn's tiles in shared memory that this one, which fits, leaves; this one where
    /// there is no room for such.
    fn with_next_tiles(self, scheduled: Scheduled, instance: Instance) -> Scheduled {
        if !scheduled.pipelines().wait_for_room(&scheduled) {
            return scheduled;
        }
        let room = Room { spare: Spare::NextTiles, ..self.room };
        let more = Scheduler { room, ..self }.steps(instance);
        if self.fits(&more) { more } else { scheduled }
    }

    /// The steps.
    fn steps(&self, instance: Instance) -> Scheduled {
        let target = self.target;
        let (instance, pipelines) = self.pipelined(instance);
        let (instance, mut pipelines, shares_grid) = self.persistent(instance, pipelines);
        let obstacles = remarks::obstacles(&instance, target, &pipelines, |kernel| self.pipelines(kernel));
        let threads = self.threads_of(&instance, &pipelines);
        let instance = instance.rewrite("masks", |kernel| rewrites::masks::run(kernel, &pipelines));
        let may_copy =
            target.asynchronous_copies && pipelines.is_empty() && rewrites::ahead::may_load(&instance);
        let copies = |laid_out: &LaidOut| match may_copy {
            true => Copies::of(laid_out, target, self.room.scratch),
            false => Copies::default(),
        };
        // Whether a tile can be copied is known when all tiles have distributions, and what can't is loaded ahead, which
        // comes before.
        let mut staying = match may_copy {
            true => copies(&LaidOut::of(instance.clone(), target, threads, &pipelines)).into_replaced(),
            false => HashSet::new(),
        };
        staying.extend(gathered_by_element(&instance, target));
        let instance =
            instance.rewrite("ahead", |kernel| rewrites::ahead::run(kernel, threads, &pipelines, &staying));
        let mut laid_out = LaidOut::of(instance, target, threads, &pipelines);
        let copies = copies(&laid_out);
        ways::in_rounds(&mut laid_out, self.room.conversion);
        pipelines.find_roles(&laid_out.instance);
        pipelines.find_late(&laid_out);
        pipelines.keep_stores(&laid_out, target);
        let order_in_parts = parts::order(&laid_out.instance, target);
        let moves = Moves::of(&laid_out.instance, &laid_out.distributions);
        let uniform = uniform::uniform(&laid_out, &moves);
        let exchanges = Exchanges {
            laid_out: &laid_out,
            moves: &moves,
            uniform: &uniform,
            pipelines: &pipelines,
            copies: &copies,
        };
        let scratch = Scratch::of(&exchanges, u64::from(target.shared_bytes));
        let barriers = Barriers::of(&exchanges, &scratch);
        let ordering_tensors = orders::ordering_tensors(&laid_out.instance);
        let remarks = remarks::remarks(&laid_out, target, &copies, &obstacles);
        let blocks_at_once = occupancy::blocks(&laid_out, target);
        let scheduled = Scheduled {
            laid_out,
            blocks_at_once,
            moves,
            uniform,
            pipelines,
            copies,
            shares_grid,
            order_in_parts,
            scratch,
            barriers,
            ordering_tensors,
            remarks,
            sends: target.sends,
            float8_conversions: target.float8_conversions,
        };
        debug_assert_eq!(verify(&scheduled), Ok(()), "{}", print(&scheduled));
        scheduled
    }

    /// The pipelines of a kernel as it is.
    fn pipelines(&self, kernel: &Kernel) -> Pipelines {
        Pipelines::of(kernel, self.target, self.threads, self.room)
    }

    /// An instance with its pipelines, whose products keep the precision of their sums.
    fn pipelined(&self, instance: Instance) -> (Instance, Pipelines) {
        if self.target.has_tensor_memory() {
            return self.with_sums_in_tensor_memory(instance);
        }
        let instance = self.stacked(instance);
        let pipelines = self.pipelines(&instance);
        let coarse = |op: &OpId| rewrites::promote::is_needed(&instance, &pipelines, *op);
        let coarse: Vec<OpId> = instance.walk().into_iter().filter(coarse).collect();
        if coarse.is_empty() {
            return (instance, pipelines);
        }
        let instance = instance.rewrite("promote", |kernel| rewrites::promote::run(kernel, &coarse));
        let pipelines = self.pipelines(&instance);
        (instance, pipelines)
    }

    /// An instance with its pipelines, where the sums of products lie in tensor memory.
    fn with_sums_in_tensor_memory(&self, instance: Instance) -> (Instance, Pipelines) {
        let changed = pipeline::changed_by_threads(&instance, &Uses::of(&instance));
        if changed.is_empty() {
            let instance = self.stacked(instance);
            let pipelines = self.pipelines(&instance);
            return (instance, pipelines);
        }
        let added = instance.clone().rewrite("promote", |kernel| rewrites::promote::run(kernel, &changed));
        let added = self.stacked(added);
        let pipelines = self.pipelines(&added);
        // Where there are none, what keeps them is told of the kernel as it is.
        if pipelines.is_empty() { (instance, pipelines) } else { (added, pipelines) }
    }

    /// An instance whose loads of factors are of stacks, where that makes copies of them.
    fn stacked(&self, instance: Instance) -> Instance {
        match rewrites::stacks::copied(&instance, self.target, |kernel| self.pipelines(kernel)) {
            Cow::Borrowed(_) => instance,
            Cow::Owned(stacked) => instance.rewrite("stacks", |kernel| *kernel = stacked),
        }
    }

    /// An instance with its pipelines whose blocks go on to further tiles where that pays, and whether they do.
    fn persistent(&self, instance: Instance, pipelines: Pipelines) -> (Instance, Pipelines, bool) {
        let Some(order) = rewrites::persistent::order(&instance, self.target, &pipelines) else {
            return (instance, pipelines, false);
        };
        let instance = instance.rewrite("persistent", |kernel| rewrites::persistent::run(kernel, order));
        let pipelines = self.pipelines(&instance);
        (instance, pipelines, true)
    }

    /// The threads that hold each tile.
    fn threads_of(&self, kernel: &Kernel, pipelines: &Pipelines) -> Threads {
        match self.threads {
            Some(threads) => threads,
            None if !pipelines.is_empty() => {
                Threads::of(pipelines.consumers() * u64::from(self.target.warp), self.target)
            }
            None => Threads::chosen(kernel, self.target),
        }
    }
}
