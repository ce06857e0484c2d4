//! Instructions that several threads carry out together: they wait for each other, then the last one does the work.

use super::block::{Block, State};
use super::fault::Problem;
use super::instruction::{Call, LaneProblem, Party, Then};
use std::ops::Range;

/// Threads of a warpgroup.
pub(super) const WARPGROUP: u32 = 128;

type Run<'r> = &'r dyn Fn(&mut Block<'_>, &[Call<'_>]) -> Result<(), LaneProblem>;

/// Whether these operands are the same in the calls of all lanes.
///
/// # Errors
/// The first lane that has another one.
pub(super) fn check_uniform(calls: &[Call<'_>], operands: Range<usize>) -> Result<(), LaneProblem> {
    for operand in operands {
        let first = calls[0].word(operand);
        if let Some(call) = calls.iter().find(|call| call.word(operand) != first) {
            return Err((call.thread, Problem::NotUniform { first, other: call.word(operand) }));
        }
    }
    Ok(())
}

impl Block<'_> {
    /// The calling thread comes to an instruction of several.
    pub(super) fn meet(&mut self, call: &Call<'_>, party: Party, run: Run<'_>) -> Result<Then, LaneProblem> {
        let members = self.members(call, party).map_err(|problem| (call.thread, problem))?;
        self.threads[call.thread as usize].state = State::AtCollective(call.number);
        let here = |&member: &u32| self.threads[member as usize].state == State::AtCollective(call.number);
        if !members.iter().all(here) {
            return Ok(Then::Wait);
        }
        let calls: Vec<_> = members.iter().map(|&member| self.call_of(member, call.number)).collect();
        if let Party::Mask(operand) = party {
            let mask = call.number(operand);
            if let Some(other) = calls.iter().find(|other| other.number(operand) != mask) {
                let what = format!(
                    "has the mask {:#010x} where thread {} of its warp has {mask:#010x}",
                    other.number(operand),
                    self.within(call.thread)
                );
                return Err((other.thread, Problem::Misuse(what)));
            }
        }
        run(self, &calls)?;
        self.progress();
        for member in members {
            self.threads[member as usize].state = State::Ready;
        }
        Ok(Then::Wait)
    }

    /// The threads of a party, in order.
    fn members(&self, call: &Call<'_>, party: Party) -> Result<Vec<u32>, Problem> {
        let width = if party == Party::Warpgroup { WARPGROUP } else { self.geometry.warp };
        let within = self.within(call.thread);
        let (block, first) = (call.thread - within, call.thread - within % width);
        let end = block + self.geometry.threads;
        let all = first..(first + width).min(end);
        let Party::Mask(operand) = party else {
            if party == Party::Warpgroup && all.len() < WARPGROUP as usize {
                let what = format!("`{}` is for {WARPGROUP} threads", call.instruction.name);
                return Err(Problem::Misuse(what));
            }
            return Ok(all.collect());
        };
        let (mask, lane) = (call.number(operand), call.thread - first);
        let members: Vec<u32> =
            (0..32).filter(|lane| mask >> lane & 1 == 1).map(|lane| first + lane).collect();
        if mask >> lane & 1 == 0 {
            return Err(Problem::Misuse(format!("lane {lane} isn't in its own mask {mask:#010x}")));
        }
        match members.last() {
            Some(&last) if last >= end => {
                let what =
                    format!("the mask {mask:#010x} has lane {}, but the block ends before it", last - first);
                Err(Problem::Misuse(what))
            }
            _ => Ok(members),
        }
    }

    /// The members of the party that a waiting thread misses, in words.
    fn missing(&self, thread: u32, number: u32) -> String {
        let call = self.call_of(thread, number);
        let super::instruction::Operation::Together { party, .. } = call.instruction.operation else {
            return String::new();
        };
        let width = if party == Party::Warpgroup { WARPGROUP } else { self.geometry.warp };
        let members = self.members(&call, party).unwrap_or_default();
        let away = |member: &&u32| self.threads[**member as usize].state != State::AtCollective(number);
        let lanes: Vec<u32> =
            members.iter().filter(away).map(|&member| self.within(member) % width).collect();
        ranges(&lanes)
    }

    /// Nobody can run: reports what everybody waits for, one thread for each.
    pub(super) fn stuck(&mut self) {
        let mut groups: Vec<(u32, String, Vec<u32>)> = Vec::new();
        let all = 0..self.threads.len() as u32;
        for thread in all.clone() {
            let (rank, what, within) = (self.rank_of(thread), self.waiting(thread), self.within(thread));
            match groups.iter_mut().find(|(block, other, _)| *block == rank && *other == what) {
                Some((.., threads)) => threads.push(within),
                None => groups.push((rank, what, vec![within])),
            }
        }
        let waiting = groups.iter().map(|(rank, what, threads)| {
            let block = match self.geometry.cluster {
                1 => String::new(),
                _ => format!(" of block {}", self.number + u64::from(*rank)),
            };
            match threads.as_slice() {
                [thread] => format!("thread {thread}{block} {what}"),
                threads => format!("threads {}{block} {what}", ranges(threads)),
            }
        });
        let waiting = waiting.collect::<Vec<_>>().join("; ");
        let alive = |thread: &u32| self.threads[*thread as usize].state != State::Ended;
        let thread = all.into_iter().find(alive).unwrap_or(0);
        self.fail(thread, self.place_of(thread), Problem::Stuck(waiting));
    }

    /// What a thread does, in words.
    fn waiting(&self, thread: u32) -> String {
        match self.threads[thread as usize].state {
            State::Ready => "can run".to_owned(),
            State::AtBarrier(number) => self.describe_barrier(self.rank_of(thread), number),
            State::AtCluster => self.describe_cluster_barrier(),
            State::AtCollective(number) => {
                let instruction = self.instruction(number);
                let place = instruction.place;
                let place = if place.is_known() { format!(" at {place}") } else { String::new() };
                let missing = self.missing(thread, number);
                format!("waits for lanes {missing} to come to `{}`{place}", instruction.name)
            }
            State::AtPhase(address, parity) => self.describe_phase(address, parity),
            State::Ended => "has ended".to_owned(),
        }
    }
}

/// Numbers in order, those that follow each other as a range.
fn ranges(numbers: &[u32]) -> String {
    let mut found: Vec<(u32, u32)> = Vec::new();
    for &number in numbers {
        match found.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => found.push((number, number)),
        }
    }
    let text = |&(first, last): &(u32, u32)| {
        if first == last { first.to_string() } else { format!("{first} to {last}") }
    };
    found.iter().map(text).collect::<Vec<_>>().join(", ")
}
