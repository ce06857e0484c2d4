//! Asynchronous copies: what is in flight, and what happens when it lands.
//!
//! A copy is issued, reads its source, and writes its destination, each as late as the rules allow or, in the other
//! [`Timing`], at once. Whatever the timing, its bytes stay marked in shadow memory until somebody waited for it.

use super::block::Block;
use super::fault::{self, Problem};
use super::instruction::{Call, LaneProblem};
use super::order::{Moment, Of};
use super::shadow::Access;
use super::tensor_memory::Accumulator;
use std::collections::HashSet;
use tile_ir::Loc;

/// When asynchronous operations do their work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Timing {
    /// When somebody waits for them.
    #[default]
    Late,
    /// When they are issued.
    Early,
}

/// Bytes that move together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    /// Where they come from; `None` for zeros, and for the bytes that the operation has.
    pub(super) from: Option<u64>,
    /// Where they go; `None` for an operation that only reads.
    pub(super) to: Option<u64>,
    pub(super) bytes: usize,
}

/// The proxy through which an operation reaches memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Proxy {
    Generic,
    Asynchronous,
}

/// What becomes of the destination's bytes (first) with those that arrive.
pub(super) type Combine = fn(&mut [u8], &[u8]);

/// What an instruction asks to be done asynchronously.
pub(super) struct Order {
    pub(super) name: String,
    pub(super) thread: u32,
    pub(super) place: Loc,
    pub(super) proxy: Proxy,
    /// None any more of an operation that has landed.
    pub(super) pieces: Vec<Piece>,
    pub(super) combine: Option<Combine>,
    /// The bytes, where the instruction itself has them.
    pub(super) data: Option<Vec<u8>>,
    /// When its accesses are said to be made: a time of the queue it is in.
    pub(super) moment: Moment,
    /// The sums in tensor memory that it writes.
    pub(super) accumulator: Option<Accumulator>,
}

impl Order {
    /// What a thread's call asks for, of which the bytes that arrive replace the destination's.
    pub(super) fn of(call: &Call<'_>, proxy: Proxy, pieces: Vec<Piece>, moment: Moment) -> Order {
        let Call { thread, instruction, .. } = call;
        let (name, place) = (instruction.name.clone(), instruction.place);
        Order {
            name,
            thread: *thread,
            place,
            proxy,
            pieces,
            combine: None,
            data: None,
            moment,
            accumulator: None,
        }
    }
}

/// An operation in flight, or landed.
pub(super) struct Flight {
    order: Order,
    /// Who issued it.
    issuer: Moment,
    data: Option<Vec<u8>>,
    delivered: bool,
    read: bool,
    landed: bool,
}

/// The operations of a block that were issued, by their numbers, which begin at 1: shadow memory has 0 for none.
#[derive(Default)]
pub(super) struct Flights(Vec<Flight>);

impl Flights {
    /// The number of the operation that is added next.
    fn next(&self) -> u32 {
        self.0.len() as u32 + 1
    }

    fn add(&mut self, flight: Flight) {
        self.0.push(flight);
    }

    /// The numbers so far.
    fn numbers(&self) -> std::ops::RangeInclusive<u32> {
        1..=self.0.len() as u32
    }

    /// The operation of a number.
    ///
    /// # Panics
    /// If none was given it.
    pub(super) fn of(&self, number: u32) -> &Flight {
        &self.0[number as usize - 1]
    }

    fn of_mut(&mut self, number: u32) -> &mut Flight {
        &mut self.0[number as usize - 1]
    }
}

impl Flight {
    /// What it is, for a thread of a block.
    pub(super) fn describe(&self, writes: bool, block: u32) -> fault::Operation {
        let (Order { name, place, .. }, issuer) = (&self.order, self.issuer);
        let other = (issuer.block != block).then_some(u64::from(issuer.block));
        fault::Operation { name: name.clone(), writes, thread: issuer.thread, block: other, place: *place }
    }

    /// The moment of its accesses.
    pub(super) fn moment(&self) -> Moment {
        self.order.moment
    }

    /// The sums in tensor memory that it writes.
    pub(super) fn accumulator(&self) -> Option<Accumulator> {
        self.order.accumulator
    }

    /// Whether somebody waited for its end.
    pub(super) fn has_landed(&self) -> bool {
        self.landed
    }
}

impl Block<'_> {
    /// Begins an operation; gives its number.
    ///
    /// # Errors
    /// If it conflicts with what was done before.
    pub(super) fn issue(&mut self, mut order: Order) -> Result<u32, Problem> {
        let flight = self.flights.next();
        let issuer = self.threads[order.thread as usize].clock.moment();
        for &Piece { from, to, bytes } in &order.pieces {
            let by = (order.thread, order.place, order.proxy);
            if let Some(from) = from {
                self.begin_access(by, from, bytes, false)?;
            }
            if let Some(to) = to {
                self.begin_access(by, to, bytes, true)?;
            }
        }
        for piece in &order.pieces {
            if let Some(from) = piece.from {
                self.each_cell(from, piece.bytes, |_, cell| cell.begin_read(flight))?;
            }
            if let Some(to) = piece.to {
                self.each_cell(to, piece.bytes, |_, cell| cell.begin_write(flight))?;
            }
        }
        let data = order.data.take();
        self.flights.add(Flight { order, issuer, data, delivered: false, read: false, landed: false });
        if self.timing == Timing::Early {
            self.fetch(flight);
            self.deliver(flight);
        }
        Ok(flight)
    }

    /// An operation of a thread is about to read or write bytes, if it may.
    ///
    /// # Errors
    /// If it conflicts with what was done before.
    fn begin_access(
        &mut self,
        (thread, place, proxy): (u32, Loc, Proxy),
        address: u64,
        bytes: usize,
        writes: bool,
    ) -> Result<(), Problem> {
        let moment = self.threads[thread as usize].clock.moment();
        let access = Access { moment, reads: !writes, writes, atomic: None, begins: true, place };
        // Asked before the access is noted, which then is the last write; a race is the first thing to tell.
        let is_seen = match proxy {
            Proxy::Asynchronous => self.check_proxy(thread, address, bytes, writes),
            Proxy::Generic => Ok(()),
        };
        self.note(thread, address, bytes, access)?;
        is_seen
    }

    /// Whether all threads that issue an operation of the asynchronous proxy together may read this shared memory.
    ///
    /// # Errors
    /// The first of them that nothing orders after a write, or that no proxy fence does.
    pub(super) fn check_reads_together(
        &mut self,
        calls: &[Call<'_>],
        pieces: &[Piece],
    ) -> Result<(), LaneProblem> {
        let reads = || pieces.iter().filter_map(|piece| Some((piece.from?, piece.bytes)));
        let mut writes = HashSet::new();
        for (from, bytes) in reads() {
            let found = self.each_cell(from, bytes, |_, cell| writes.extend(cell.writes()));
            found.map_err(|problem| (calls[0].thread, problem))?;
        }
        for call in calls {
            let clock = &self.threads[call.thread as usize].clock;
            let is_seen = |&(moment, generic): &(Moment, bool)| {
                clock.knows_of(moment, Of::Shared) && (!generic || clock.proxied(moment, Of::Shared))
            };
            if writes.iter().all(is_seen) {
                continue;
            }
            let by = (call.thread, call.place(), Proxy::Asynchronous);
            for (from, bytes) in reads() {
                let may_read = self.begin_access(by, from, bytes, false);
                may_read.map_err(|problem| (call.thread, problem))?;
            }
        }
        Ok(())
    }

    /// Whether an operation that nobody has waited for yet works on a tensor that the kernel writes.
    pub(super) fn has_flights_in_tensors(&self) -> bool {
        let addresses = |flight: &Flight| -> Vec<u64> {
            flight.order.pieces.iter().flat_map(|piece| [piece.from, piece.to]).flatten().collect()
        };
        let is_written = |&address: &u64| !self.is_shared(address) && self.global.is_written(address);
        let going_on = self.flights.0.iter().filter(|flight| !flight.landed);
        going_on.flat_map(addresses).any(|address| is_written(&address))
    }

    /// Checks that none of these operations writes to a tensor, where their thread takes such writes for made.
    ///
    /// # Errors
    /// The first that does, with its place.
    pub(super) fn check_writes(&self, flights: &[u32]) -> Result<(), (Loc, Problem)> {
        let to_tensor = |piece: &Piece| piece.to.is_some_and(|to| !self.is_shared(to));
        let mut orders = flights.iter().map(|&flight| &self.flights.of(flight).order);
        match orders.find(|order| order.pieces.iter().any(to_tensor)) {
            Some(order) => Err((order.place, Problem::Unreleased { name: order.name.clone() })),
            None => Ok(()),
        }
    }

    /// Reads the source, once.
    fn fetch(&mut self, flight: u32) {
        let flight = self.flights.of_mut(flight);
        if flight.data.is_some() || flight.delivered {
            return;
        }
        let mut data = Vec::new();
        for piece in flight.order.pieces.iter().filter(|piece| piece.to.is_some()) {
            let end = data.len() + piece.bytes;
            match piece.from {
                // SAFETY: the bytes are an argument's or shared memory's, which `issue` found out.
                Some(from) => data
                    .extend_from_slice(unsafe { std::slice::from_raw_parts(from as *const u8, piece.bytes) }),
                None => data.resize(end, 0),
            }
        }
        flight.data = Some(data);
    }

    /// Writes the destination, once.
    fn deliver(&mut self, flight: u32) {
        let flight = self.flights.of_mut(flight);
        let Some(data) = flight.data.take().filter(|_| !flight.delivered) else { return };
        flight.delivered = true;
        let mut data = data.as_slice();
        for piece in &flight.order.pieces {
            let Some(to) = piece.to else { continue };
            let (bytes, rest) = data.split_at(piece.bytes);
            data = rest;
            // SAFETY: as in `fetch`.
            let target = unsafe { std::slice::from_raw_parts_mut(to as *mut u8, piece.bytes) };
            match flight.order.combine {
                Some(combine) => combine(target, bytes),
                None => target.copy_from_slice(bytes),
            }
        }
    }

    /// The data reach their destination, which nobody may look at yet.
    pub(super) fn arrive_in_memory(&mut self, flight: u32) {
        self.fetch(flight);
        self.deliver(flight);
    }

    /// The operation has read its source: this thread waited for it.
    pub(super) fn finish_reading(&mut self, number: u32, waiter: u32) {
        self.fetch(number);
        let flight = self.flights.of_mut(number);
        let Order { pieces, moment, place, .. } = &flight.order;
        let (moment, place) = (*moment, *place);
        if !std::mem::replace(&mut flight.read, true) {
            let clock = self.threads[waiter as usize].clock.clone();
            let sources: Vec<_> =
                pieces.iter().filter_map(|piece| Some((piece.from?, piece.bytes))).collect();
            for (from, bytes) in sources {
                let ended = self.each_cell(from, bytes, |_, cell| cell.end_read(moment, place, &clock));
                ended.expect("verified: `issue` found the bytes");
            }
        }
        self.threads[waiter as usize].clock.learn(moment);
    }

    /// The operation is over: this thread waited for it.
    pub(super) fn land(&mut self, number: u32, waiter: u32) {
        self.finish_reading(number, waiter);
        self.deliver(number);
        let flight = self.flights.of_mut(number);
        let Order { pieces, moment, place, proxy, accumulator, .. } = &mut flight.order;
        let (moment, place, generic) = (*moment, *place, *proxy == Proxy::Generic);
        let accumulator = *accumulator;
        if accumulator.is_some() {
            self.threads[waiter as usize].clock.learn_tensor(moment);
        }
        if std::mem::replace(&mut flight.landed, true) {
            return;
        }
        // Nobody asks any more for the pieces of what has been read and written: a block may copy gigabytes in its life.
        let pieces = std::mem::take(pieces);
        for (to, bytes) in pieces.iter().filter_map(|piece| Some((piece.to?, piece.bytes))) {
            let ended = self.each_cell(to, bytes, |_, cell| cell.end_write(moment, place, generic));
            ended.expect("verified: `issue` found the bytes");
        }
        if let Some(accumulator) = accumulator {
            self.end_sums(number, accumulator, moment, place);
        }
    }

    /// Operations are over: this thread waited for them.
    pub(super) fn land_each(&mut self, over: impl IntoIterator<Item = u32>, waiter: u32) {
        over.into_iter().for_each(|flight| self.land(flight, waiter));
    }

    /// Whatever is still under way when the block ends reaches its end, too; an operation that still reads shared
    /// memory, or a bulk copy that still writes it, may find another block's.
    ///
    /// # Errors
    /// Such an operation, with its thread.
    pub(super) fn land_all(&mut self) -> Result<(), (u32, Loc, Problem)> {
        for number in self.flights.numbers() {
            let flight = self.flights.of(number);
            let Order { thread, place, pieces, name, proxy, .. } = &flight.order;
            let thread = *thread;
            let from_shared = |piece: &Piece| piece.from.is_some_and(|from| self.is_shared(from));
            let to_shared = |piece: &Piece| piece.to.is_some_and(|to| self.is_shared(to));
            let reads = !flight.read && pieces.iter().any(from_shared);
            let bulk = *proxy == Proxy::Asynchronous;
            let writes = !flight.landed && bulk && pieces.iter().any(to_shared);
            if reads || writes {
                let does = if reads { "reads" } else { "writes" };
                let what =
                    format!("`{name}` still {does} shared memory when the block ends: nobody waited for it");
                return Err((thread, *place, Problem::Misuse(what)));
            }
            self.land(number, thread);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::block::{Geometry, Start};
    use super::super::instruction::Program;
    use super::super::memory::SharedMemory;
    use super::*;
    use std::num::NonZeroU32;

    /// A block that copies for a long time has little of it in memory, and what it copied is there.
    #[test]
    fn what_has_landed_takes_no_memory_for_its_pieces() {
        let (bytes, program) = (1024, Program::default());
        let mut array = vec![0u64; bytes / 8];
        let start = array.as_mut_ptr() as u64;
        let geometry = Geometry { threads: 1, cluster: 1, warp: 32, stack: 0 };
        let memory = SharedMemory { start, bytes, stride: bytes as u64 };
        let timing = Timing::Late;
        let mut block =
            Block::new(Start { number: 0, blocks: 1, geometry, timing, program: &program, memory });
        let held = |block: &Block<'_>| {
            block.flights.0.iter().map(|flight| flight.order.pieces.capacity()).sum::<usize>()
        };
        for copy in 1..=100 {
            let moment = Moment::of_agent(0, 0, NonZeroU32::new(copy).unwrap());
            let pieces =
                (0..bytes as u64).step_by(8).map(|at| Piece { from: None, to: Some(start + at), bytes: 8 });
            let order = Order {
                name: "copy".to_owned(),
                thread: 0,
                place: Loc::UNKNOWN,
                proxy: Proxy::Asynchronous,
                pieces: pieces.collect(),
                combine: None,
                data: Some(vec![copy as u8; bytes]),
                moment,
                accumulator: None,
            };
            let flight = block.issue(order).unwrap();
            assert_eq!(held(&block), bytes / 8);
            block.land(flight, 0);
            assert_eq!(held(&block), 0);
        }
        block.land_all().unwrap();
        assert!(array.iter().all(|word| word.to_le_bytes() == [100; 8]), "{array:?}");
    }
}
