//! What the author's hints ([`ScheduleHint`]) make of a schedule: how many threads a block has, and which part of a
//! multiprocessor. How many stages a ring has is said where rings are placed.
//!
//! A hint that can't be followed is left out, with a remark that says why.

use super::scheduler::schedule_as;
use super::{Remark, Scheduled, Threads, products};
use crate::kernel::Kernel;
use crate::schedule_hints::ScheduleHint;
use crate::specialize::Instance;
use crate::target::{Rates, TargetDesc};

/// The threads of a block that are asked for, but for those without work in products; a warp at least.
pub(super) fn threads(kernel: &Kernel, target: &TargetDesc) -> Option<Threads> {
    let warp = u64::from(target.warp);
    let asked = kernel.hints.of(ScheduleHint::Threads)?.clamp(warp, target.max_threads.into());
    let most = products::most_warps(kernel, target).map_or(asked, |warps| warps * warp);
    Some(Threads::of(asked.min(most), target))
}

/// That tiles are held by other threads than are asked for. Of fewer than a warp the others would be idle, and they could use
/// no matrix instruction.
fn other_threads(scheduled: &Scheduled, target: &TargetDesc) -> Option<Remark> {
    let (asked, has) = (scheduled.hints.of(ScheduleHint::Threads)?, scheduled.threads().of_block());
    let (name, warp) = (target.name, target.warp);
    let reason = if asked < u64::from(warp) {
        format!("its threads run in waves of {warp}, of which a block has a whole one")
    } else if asked > has {
        format!("there is work for {has} in the kernel's products")
    } else {
        return None;
    };
    Some(Remark::of_hint(format!("`threads = {asked}` isn't followed on {name}: {reason}")))
}

/// That stages are asked for where no tile is copied ahead, of a target that copies some.
fn no_stages(scheduled: &Scheduled, target: &TargetDesc) -> Option<Remark> {
    let asked = scheduled.hints.of(ScheduleHint::Stages)?;
    let copies_none = target.asynchronous_copies && scheduled.copied_bytes() == 0;
    copies_none.then(|| {
        Remark::of_hint(format!(
            "`stages = {asked}` isn't followed on {}: no loop's tiles are copied ahead",
            target.name
        ))
    })
}

/// The schedule that follows an instance's hints as far as the target can, in blocks of `given` threads if that is given.
pub(super) fn schedule(instance: Instance, target: &TargetDesc, given: Option<Threads>) -> Scheduled {
    let mut scheduled = in_shares(instance, target, given);
    let threads = if given.is_none() { other_threads(&scheduled, target) } else { None };
    let stages = no_stages(&scheduled, target);
    scheduled.remarks.extend(threads.into_iter().chain(stages));
    scheduled
}

/// The schedule by which as many blocks run on a multiprocessor as the instance asks for; as without that where it doesn't
/// ask, or they can't.
fn in_shares(instance: Instance, target: &TargetDesc, threads: Option<Threads>) -> Scheduled {
    let Some(blocks) = instance.hints.of(ScheduleHint::Occupancy) else {
        return schedule_as(instance, target, threads);
    };
    let share = TargetDesc { shared_bytes: share(target, blocks), ..*target };
    let shared = schedule_as(instance.clone(), &share, threads);
    match obstacle(&shared, &share, blocks) {
        None => Scheduled { blocks_at_once: Some(blocks as u32), ..shared },
        Some(reason) => {
            let mut alone = schedule_as(instance, target, threads);
            let message = format!("`occupancy = {blocks}` isn't followed on {}: {reason}", target.name);
            alone.remarks.push(Remark::of_hint(message));
            alone
        }
    }
}

/// Bytes of shared memory that each of so many blocks of a multiprocessor can have.
fn share(target: &TargetDesc, blocks: u64) -> u32 {
    let rates = Rates::of(target.name);
    let [all, reserve] = rates.map_or([target.shared_bytes, 0], |it| [it.shared_memory, it.shared_reserve]);
    let share = (u64::from(all) / blocks).saturating_sub(u64::from(reserve));
    share.clamp(1, u64::from(target.shared_bytes)) as u32
}

/// Why so many blocks can't run on a multiprocessor at once, each with such a share of it.
fn obstacle(scheduled: &Scheduled, share: &TargetDesc, blocks: u64) -> Option<String> {
    let (threads, bytes) = (scheduled.block_threads(), scheduled.shared_bytes());
    let most = Rates::of(share.name).map_or(u64::MAX, |rates| u64::from(rates.threads));
    if !scheduled.pipelines().is_empty() {
        return Some(
            "warpgroups that multiply and copy hand registers to each other, for which a block has the multiprocessor to itself"
                .to_owned(),
        );
    }
    if blocks * threads > most {
        return Some(format!(
            "{blocks} blocks of {threads} threads are more than the {most} threads of a multiprocessor"
        ));
    }
    let available = share.shared_bytes;
    (bytes > u64::from(available)).then(|| {
        format!("a block needs {bytes} bytes of shared memory, and each of {blocks} can have {available}")
    })
}

#[cfg(test)]
mod tests {
    use super::super::pipeline::tests::{MATMUL, twice};
    use super::super::schedule;
    use super::*;
    use crate::passes;
    use tile_test_edit::Edit;

    /// A product of bf16 in tiles of 128×128×64, and the hints that its text has.
    fn product(hints: &str, target: &str) -> Scheduled {
        let text = MATMUL.replacen(" {\n", &format!("{hints} {{\n"), 1);
        scheduled(&text, &[("M", 128), ("N", 128), ("K", 64)], target)
    }

    /// `y = x` in tiles of so many f32, with a sum that threads exchange.
    fn row(extent: usize, hints: &str, target: &str) -> Scheduled {
        let text = format!(
            "kernel @row(%x: tensor<64 x {extent} x f32>, %y: mut tensor<64 x {extent} x f32>){hints} {{
  %vx = partition %x [1, {extent}] : partition<64 x {extent} x f32, [1, {extent}]>
  %vy = partition %y [1, {extent}] : mut partition<64 x {extent} x f32, [1, {extent}]>
  %i, %j = block_index %vy : index, index
  %t = load %vx[%i, %j] : tile<1 x {extent} x f32>
  %s = reduce sum %t axis 1 : tile<1 x 1 x f32>
  %b = broadcast %s : tile<1 x {extent} x f32>
  %r = sub %t, %b : tile<1 x {extent} x f32>
  store %vy, %r
}}
"
        );
        scheduled(&text, &[], target)
    }

    fn scheduled(text: &str, numbers: &[(&str, usize)], target: &str) -> Scheduled {
        let instance = Instance::parse(text, numbers).unwrap_or_else(|error| panic!("{error}"));
        schedule(passes::optimize(instance), TargetDesc::named(target).unwrap(), None)
    }

    fn remarks(scheduled: &Scheduled) -> Vec<String> {
        scheduled.remarks().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_block_has_the_threads_that_are_asked_for() {
        for target in ["sm_80", "sm_90a", "gfx942", "gfx1100"] {
            let threads = [64, 512].map(|threads| row(2048, &format!(" threads {threads}"), target));
            assert_eq!(threads.map(|it| it.block_threads()), [64, 512], "{target}");
        }
        // Beside a producer's warpgroup.
        assert_eq!(product("", "sm_90a").block_threads(), 256 + 128);
        assert_eq!(product(" threads 128", "sm_90a").block_threads(), 128 + 128);
        assert_eq!(product(" threads 128", "sm_80").block_threads(), 128);
    }

    /// Waves of AMD's data centre processors have 64 threads.
    #[test]
    fn a_block_has_a_wave_at_least() {
        for target in ["gfx90a", "gfx942", "gfx950"] {
            let said = format!(
                "`threads = 32` isn't followed on {target}: its threads run in waves of 64, of which a block has a whole one"
            );
            for scheduled in [product(" threads 32", target), row(2048, " threads 32", target)] {
                assert_eq!((scheduled.block_threads(), remarks(&scheduled)), (64, vec![said.clone()]));
            }
        }
        for target in ["sm_80", "gfx1100"] {
            let scheduled = row(2048, " threads 32", target);
            assert_eq!((scheduled.block_threads(), remarks(&scheduled)), (32, vec![]), "{target}");
        }
    }

    /// A product that goes on by rows has none for further warps.
    #[test]
    fn a_block_has_no_threads_without_work_in_products() {
        let rest = "    %most = reduce max %next axis 1 : tile<M x 1 x f32>
    %all = broadcast %most : tile<M x N x f32>
    %rest = sub %next, %all : tile<M x N x f32>
    yield %rest";
        let by_rows = MATMUL.edit("    yield %next", rest);
        let product = |threads: u64, target: &str| {
            let text = by_rows.replacen(" {\n", &format!(" threads {threads} {{\n"), 1);
            let product = scheduled(&text, &[("M", 64), ("N", 64), ("K", 64)], target);
            (product.threads().of_block(), remarks(&product))
        };
        let said = "`threads = 512` isn't followed on sm_80: there is work for 128 in the kernel's products";
        assert_eq!(product(512, "sm_80"), (128, vec![said.to_owned()]));
        assert_eq!(product(128, "sm_80"), (128, vec![]));
    }

    #[test]
    fn blocks_of_a_cluster_have_them_too() {
        let of = |hints: &str| row(131_072, hints, "sm_90a").threads();
        assert_eq!((of("").of_block(), of("").blocks), (256, 8));
        assert_eq!((of(" threads 512").of_block(), of(" threads 512").blocks), (512, 4));
    }

    #[test]
    fn rings_have_the_stages_that_are_asked_for_and_fit() {
        let ring = |hints: &str| product(hints, "sm_90a").pipelines().all().next().unwrap().1.stages;
        assert_eq!(["", " stages 2", " stages 6", " stages 8"].map(ring), [5, 2, 6, 6]);
        let copied = |hints: &str| product(hints, "sm_80").copies().loops().next().unwrap().1.stages;
        assert_eq!(["", " stages 2", " stages 5", " stages 8"].map(copied), [4, 2, 5, 5]);
    }

    /// Nothing is said of targets that copy nothing ahead, whatever the kernel is.
    #[test]
    fn stages_of_nothing_that_is_copied_ahead_are_told_of() {
        for target in ["sm_80", "sm_90a", "sm_100a", "sm_120f"] {
            let said = format!("`stages = 3` isn't followed on {target}: no loop's tiles are copied ahead");
            assert_eq!(remarks(&row(2048, " stages 3", target)), [said], "{target}");
            assert_eq!(remarks(&product(" stages 3", target)), [""; 0], "{target}");
        }
        for target in ["gfx942", "gfx1100"] {
            assert_eq!(remarks(&row(2048, " stages 3", target)), [""; 0], "{target}");
        }
    }

    /// What one ring would take of shared memory, the other needs.
    #[test]
    fn every_ring_has_stages_where_more_are_asked_for_than_fit() {
        let rings = |hints: &str| {
            let text = twice().replacen(" {\n", &format!("{hints} {{\n"), 1);
            let scheduled = scheduled(&text, &[("M", 128), ("N", 128), ("K", 64)], "sm_90a");
            let stages = scheduled.pipelines().all().map(|(_, ring)| ring.stages).collect::<Vec<_>>();
            (stages, remarks(&scheduled))
        };
        for hints in ["", " stages 5", " stages 6", " stages 8"] {
            assert_eq!(rings(hints), (vec![4, 2], vec![]), "{hints}");
        }
        assert_eq!(rings(" stages 3"), (vec![3, 3], vec![]));
    }

    #[test]
    fn blocks_share_a_multiprocessor() {
        let asked = product(" occupancy 2", "sm_80");
        assert_eq!((asked.blocks_at_once(), remarks(&asked)), (Some(2), vec![]));
        // (164 KiB - 2 KiB) / 2 for each.
        assert!(asked.shared_bytes() <= 81 << 10, "{}", asked.shared_bytes());
        assert!(product("", "sm_80").shared_bytes() > 81 << 10);
        assert_eq!(row(2048, " occupancy 4", "gfx942").blocks_at_once(), Some(4));
    }

    #[test]
    fn what_cannot_be_followed_is_said() {
        let refused = |scheduled: Scheduled| {
            assert_eq!(scheduled.blocks_at_once(), None);
            remarks(&scheduled).join("\n")
        };
        insta::assert_snapshot!(
            [
                refused(product(" occupancy 2", "sm_90a")),
                refused(row(2048, " threads 1024 occupancy 3", "sm_90a")),
                refused(product(" occupancy 8", "sm_80")),
            ]
            .join("\n")
        );
    }
}
