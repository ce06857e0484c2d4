//! Exchange among the lanes of a warp on NVIDIA's GPUs (PTX ISA, "shfl.sync", "vote.sync", "match.sync", "redux.sync",
//! "elect.sync").

use crate::simt::block::Block;
use crate::simt::fault::Problem;
use crate::simt::instruction::{Call, LaneProblem, Operation, Party};

/// The mask of most instructions here is their first operand.
const MASK: Party = Party::Mask(0);

pub(super) fn find(name: &str) -> Option<Operation> {
    if let Some(rest) = name.strip_prefix("shfl.sync.") {
        return shuffle(rest);
    }
    if let Some(rest) = name.strip_prefix("redux.sync.") {
        return reduction(rest);
    }
    match name {
        "elect.sync" => Operation::together(MASK, elect),
        "activemask" => Operation::alone(|_, _| {
            Err(Problem::Misuse("asks which lanes are active, which nobody says".to_owned()))
        }),
        "vote.all.sync" => vote(|votes, _| u64::from(votes.iter().all(|&vote| vote))),
        "vote.any.sync" => vote(|votes, _| u64::from(votes.iter().any(|&vote| vote))),
        "vote.uni.sync" => vote(|votes, _| u64::from(votes.iter().all(|&vote| vote == votes[0]))),
        "vote.ballot.sync" => vote(|votes, lanes| {
            votes.iter().zip(lanes).fold(0, |all, (&vote, lane)| all | u64::from(vote) << lane)
        }),
        "match.any.sync.i32" | "match.any.sync.i64" => Operation::together(MASK, |_, calls| {
            for call in calls {
                call.give_word(0, equal_lanes(calls, call));
            }
            Ok(())
        }),
        "match.all.sync.i32p" | "match.all.sync.i64p" => Operation::together(MASK, |_, calls| {
            let mask = u64::from(calls[0].number(0));
            let all = equal_lanes(calls, &calls[0]) == mask;
            for call in calls {
                call.give_word(0, if all { mask } else { 0 });
                call.give_word(1, u64::from(all));
            }
            Ok(())
        }),
        _ => None,
    }
}

fn lane(call: &Call<'_>) -> u32 {
    call.thread % 32
}

fn equal_lanes(calls: &[Call<'_>], call: &Call<'_>) -> u64 {
    let equal = calls.iter().filter(|other| other.word(1) == call.word(1));
    equal.fold(0, |lanes, other| lanes | 1 << lane(other))
}

fn vote(result: fn(&[bool], &[u32]) -> u64) -> Option<Operation> {
    Operation::together(MASK, move |_, calls| {
        let votes: Vec<bool> = calls.iter().map(|call| call.flag(1)).collect();
        let lanes: Vec<u32> = calls.iter().map(lane).collect();
        calls.iter().for_each(|call| call.give_word(0, result(&votes, &lanes)));
        Ok(())
    })
}

/// The lowest lane of the mask is elected.
fn elect(_: &mut Block<'_>, calls: &[Call<'_>]) -> Result<(), LaneProblem> {
    for call in calls {
        call.give_word(0, u64::from(lane(&calls[0])));
        call.give_word(1, u64::from(call.thread == calls[0].thread));
    }
    Ok(())
}

/// The lane that a lane reads from, and whether it is within the segment that the clamp operand gives.
fn source(mode: &str, lane: u32, operand: u32, clamp: u32) -> Option<(u32, bool)> {
    let (value, limit, segment) = (operand & 31, clamp & 31, clamp >> 8 & 31);
    let most = lane & segment | limit & !segment;
    let least = lane & segment;
    let (from, inside) = match mode {
        "up" => (lane.wrapping_sub(value), lane as i32 - value as i32 >= most as i32),
        "down" => (lane + value, lane + value <= most),
        "bfly" => (lane ^ value, lane ^ value <= most),
        "idx" => (least | value & !segment, least | value & !segment <= most),
        _ => return None,
    };
    Some(if inside { (from, true) } else { (lane, false) })
}

fn shuffle(rest: &str) -> Option<Operation> {
    let (mode, ty) = rest.split_once('.')?;
    source(mode, 0, 0, 0)?;
    let predicate = matches!(ty, "i32p" | "f32p");
    if !predicate && !matches!(ty, "i32" | "f32") {
        return None;
    }
    let mode = mode.to_owned();
    Operation::together(MASK, move |_, calls| {
        for call in calls {
            let (from, inside) =
                source(&mode, lane(call), call.number(2), call.number(3)).expect("the mode was found");
            let Some(other) = calls.iter().find(|other| lane(other) == from) else {
                let what = format!("reads lane {from}, which isn't in the mask {:#010x}", call.number(0));
                return Err((call.thread, Problem::Misuse(what)));
            };
            call.give_word(0, other.word(1));
            if predicate {
                call.give_word(1, u64::from(inside));
            }
        }
        Ok(())
    })
}

fn reduction(operator: &str) -> Option<Operation> {
    let combine: fn(u32, u32) -> u32 = match operator {
        "add" => u32::wrapping_add,
        "min" => |a, b| a.cast_signed().min(b.cast_signed()).cast_unsigned(),
        "max" => |a, b| a.cast_signed().max(b.cast_signed()).cast_unsigned(),
        "umin" => std::cmp::min,
        "umax" => std::cmp::max,
        "and" => |a, b| a & b,
        "or" => |a, b| a | b,
        "xor" => |a, b| a ^ b,
        _ => return None,
    };
    // The mask follows the value here.
    Operation::together(Party::Mask(1), move |_, calls| {
        let all = calls.iter().map(|call| call.number(0)).reduce(combine).expect("a mask has a lane");
        calls.iter().for_each(|call| call.give_word(0, u64::from(all)));
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::source;

    /// Sources of all lanes by the rules of PTX's pseudocode, for segments of a width: `clamp` is what CUDA's
    /// `__shfl_*_sync` pass for it.
    #[test]
    fn lanes_read_within_their_segment() {
        for width in [2u32, 8, 32] {
            let segment = (32 - width) << 8;
            for lane in 0..32u32 {
                let (first, place) = (lane / width * width, lane % width);
                for delta in 0..width {
                    let read = |mode, clamp| source(mode, lane, delta, segment | clamp).unwrap();
                    let up = if place >= delta { (lane - delta, true) } else { (lane, false) };
                    assert_eq!(read("up", 0), up);
                    let down = if place + delta < width { (lane + delta, true) } else { (lane, false) };
                    assert_eq!(read("down", 31), down);
                    assert_eq!(read("idx", 31), (first + delta, true));
                    assert_eq!(read("bfly", 31), (lane ^ delta, true));
                }
            }
        }
    }
}
