//! Exchange among the lanes of a wave on AMD's GPUs (the RDNA and CDNA ISA manuals: "DPP", "Data Share Operations",
//! `V_PERMLANE*`, `V_READLANE_B32`; LLVM's AMDGPU usage guide).
//!
//! Every lane of the wave must come: which lanes a device would find active within a branch is not modelled.

use super::is;
use crate::simt::fault::Problem;
use crate::simt::generation::Generation;
use crate::simt::host_module::Gpu;
use crate::simt::instruction::{Call, LaneProblem, Operation, Party, Then};

pub(super) fn find(name: &str, gpu: Gpu) -> Option<Operation> {
    let warp = gpu.warp;
    if is(name, "readfirstlane") {
        return Operation::together(Party::Warp, |_, calls| first_lane(calls));
    }
    if is(name, "readlane") {
        return Operation::together(Party::Warp, read_lane);
    }
    if is(name, "update.dpp") {
        let rdna = match gpu.generation {
            Generation::Rdna3 | Generation::Rdna4 => true,
            Generation::Cdna2 | Generation::Cdna3 | Generation::Cdna4 => false,
            Generation::Nvidia => return None,
        };
        return Operation::together(Party::Warp, move |_, calls| update_dpp(calls, rdna));
    }
    if is(name, "permlane64") {
        return exchange(|lane| lane ^ 32, 64, warp);
    }
    if is(name, "permlane16") {
        return Operation::together(Party::Warp, |_, calls| permlane16(calls, 0));
    }
    if is(name, "permlanex16") {
        return Operation::together(Party::Warp, |_, calls| permlane16(calls, 16));
    }
    match name {
        "permlane16.swap" => Operation::together(Party::Warp, |_, calls| swap(calls, 16)),
        "permlane32.swap" => Operation::together(Party::Warp, |_, calls| swap(calls, 32)),
        "ds.bpermute" => Operation::together(Party::Warp, |_, calls| {
            for call in calls {
                // Addresses are in bytes and wrap around the wave.
                let from = call.number(0) / 4 % calls.len() as u32;
                call.give(0, calls[from as usize].bytes(1));
            }
            Ok(())
        }),
        "ds.permute" => Operation::together(Party::Warp, |_, calls| {
            let mut result = vec![0; calls.len()];
            for call in calls {
                result[(call.number(0) / 4) as usize % calls.len()] = call.number(1);
            }
            calls.iter().zip(result).for_each(|(call, word)| call.give_word(0, u64::from(word)));
            Ok(())
        }),
        "ds.swizzle" => Operation::together(Party::Warp, |_, calls| {
            for (lane, call) in calls.iter().enumerate() {
                match swizzled(lane, call.number(1)).map(|from| calls.get(from)) {
                    Some(Some(source)) => call.give(0, source.bytes(0)),
                    Some(None) => {
                        return Err((call.thread, Problem::Misuse("the wave isn't full".to_owned())));
                    }
                    None => {
                        let what = format!("the pattern {:#x} of a swizzle isn't known", call.number(1));
                        return Err((call.thread, Problem::Misuse(what)));
                    }
                }
            }
            Ok(())
        }),
        "mbcnt.lo" => count_bits(warp, 0),
        "mbcnt.hi" => count_bits(warp, 32),
        _ => None,
    }
}

/// The lane that a lane reads by `DS_SWIZZLE_B32`: within 32 lanes the bits of its number are masked, set and flipped, or
/// lanes of a quad are named. The rotations and the Fourier transforms of newer GPUs aren't modelled.
fn swizzled(lane: usize, pattern: u32) -> Option<usize> {
    let five = |shift: u32| (pattern >> shift & 31) as usize;
    match pattern >> 15 {
        0 => Some(lane / 32 * 32 + ((((lane % 32) & five(0)) | five(5)) ^ five(10))),
        1 if pattern >> 8 == 0x80 => Some(lane / 4 * 4 + (pattern >> (2 * (lane % 4)) & 3) as usize),
        _ => None,
    }
}

/// Adds the bits of a mask that belong to lanes before the thread's own, of which the mask has 32 from `first` on.
fn count_bits(warp: u32, first: u32) -> Option<Operation> {
    Operation::alone(move |_, call| {
        let before = (call.thread % warp).saturating_sub(first).min(32);
        let mask = (1u64 << before) - 1;
        let bits = (call.word(0) & mask).count_ones();
        call.give_word(0, u64::from(call.number(1).wrapping_add(bits)));
        Ok(Then::GoOn)
    })
}

fn first_lane(calls: &[Call<'_>]) -> Result<(), LaneProblem> {
    let first = &calls[0];
    if let Some(other) = calls.iter().find(|other| other.bytes(0) != first.bytes(0)) {
        let problem = Problem::NotUniform { first: first.word(0), other: other.word(0) };
        return Err((other.thread, problem));
    }
    calls.iter().for_each(|call| call.give(0, first.bytes(0)));
    Ok(())
}

fn read_lane(_: &mut crate::simt::block::Block<'_>, calls: &[Call<'_>]) -> Result<(), LaneProblem> {
    let from = calls[0].number(1);
    if let Some(other) = calls.iter().find(|other| other.number(1) != from) {
        let problem = Problem::NotUniform { first: u64::from(from), other: other.word(1) };
        return Err((other.thread, problem));
    }
    let Some(source) = calls.get(from as usize) else {
        let what = format!("reads lane {from} of a wave with {} lanes", calls.len());
        return Err((calls[0].thread, Problem::Misuse(what)));
    };
    calls.iter().for_each(|call| call.give(0, source.bytes(0)));
    Ok(())
}

fn exchange(from: fn(usize) -> usize, lanes: u32, warp: u32) -> Option<Operation> {
    if warp != lanes {
        // In smaller waves it moves nothing.
        return Operation::alone(|_, call| {
            call.give(0, call.bytes(0));
            Ok(Then::GoOn)
        });
    }
    Operation::together(Party::Warp, move |_, calls| {
        for (lane, call) in calls.iter().enumerate() {
            let Some(other) = calls.get(from(lane)) else {
                return Err((call.thread, Problem::Misuse("the wave isn't full".to_owned())));
            };
            call.give(0, other.bytes(0));
        }
        Ok(())
    })
}

/// The last operand but one of `v_permlane16`: lanes that are off are read as well. All lanes are on here.
fn permlane16(calls: &[Call<'_>], other_row: usize) -> Result<(), LaneProblem> {
    for (lane, call) in calls.iter().enumerate() {
        let selects = call.word(2) & 0xffff_ffff | call.word(3) << 32;
        let select = (selects >> (4 * (lane % 16)) & 15) as usize;
        let from = ((lane / 16 * 16) ^ other_row) + select;
        let Some(source) = calls.get(from) else {
            return Err((call.thread, Problem::Misuse("the wave isn't full".to_owned())));
        };
        call.give(0, source.bytes(1));
    }
    Ok(())
}

/// Odd rows of the first operand change places with even rows of the second.
fn swap(calls: &[Call<'_>], row: usize) -> Result<(), LaneProblem> {
    for (lane, call) in calls.iter().enumerate() {
        let odd = lane / row % 2 == 1;
        let other = if odd { lane - row } else { lane + row };
        let Some(other) = calls.get(other) else {
            return Err((call.thread, Problem::Misuse("the wave isn't full".to_owned())));
        };
        let (first, second) =
            if odd { (other.bytes(1), call.bytes(1)) } else { (call.bytes(0), other.bytes(0)) };
        call.give(0, first);
        call.give(1, second);
    }
    Ok(())
}

/// The lane that a lane reads under a control word of DPP: `Ok(None)` where it reads none, as at the end of a row.
fn dpp_source(lane: usize, control: u32, lanes: usize, rdna: bool) -> Result<Option<usize>, String> {
    let (row, place) = (lane / 16 * 16, lane % 16);
    let amount = (control & 15) as usize;
    let found = match control {
        0x000..=0x0ff => Some(lane / 4 * 4 + (control >> (2 * (lane % 4)) & 3) as usize),
        0x101..=0x10f => (place + amount < 16).then_some(lane + amount),
        0x111..=0x11f => (place >= amount).then(|| lane - amount),
        0x121..=0x12f => Some(row + (place + 16 - amount) % 16),
        0x130 if !rdna => (lane + 1 < lanes).then_some(lane + 1),
        0x134 if !rdna => Some((lane + 1) % lanes),
        0x138 if !rdna => lane.checked_sub(1),
        0x13c if !rdna => Some((lane + lanes - 1) % lanes),
        0x140 => Some(row + 15 - place),
        0x141 => Some(row + place / 8 * 8 + 7 - place % 8),
        0x142 if !rdna => row.checked_sub(1),
        0x143 if !rdna => (lane / 32 * 32).checked_sub(1),
        0x150..=0x15f => Some(row + amount),
        0x160..=0x16f if rdna => Some(row + (place ^ amount)),
        _ => return Err(format!("the GPU has no control {control:#x} of DPP")),
    };
    Ok(found)
}

fn update_dpp(calls: &[Call<'_>], rdna: bool) -> Result<(), LaneProblem> {
    for (lane, call) in calls.iter().enumerate() {
        let [control, rows, banks] = [2, 3, 4].map(|operand| call.number(operand));
        let enabled = rows >> (lane / 16 % 4) & 1 == 1 && banks >> (lane % 16 / 4) & 1 == 1;
        let source = dpp_source(lane, control, calls.len(), rdna)
            .map_err(|what| (call.thread, Problem::Misuse(what)))?;
        let source = source.and_then(|source| calls.get(source));
        match source {
            _ if !enabled => call.give(0, call.bytes(0)),
            Some(source) => call.give(0, source.bytes(1)),
            None if call.flag(5) => call.give(0, &vec![0; call.bytes(0).len()]),
            None => call.give(0, call.bytes(0)),
        }
    }
    Ok(())
}
