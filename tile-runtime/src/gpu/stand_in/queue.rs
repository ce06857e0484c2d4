//! What the stand-in has: memory, and streams whose work runs when somebody waits for it.

use super::super::driver::{
    EventHandle, ExecutableHandle, Failure, FailureKind, FunctionHandle, GraphHandle, HostFunction,
    ModuleHandle, Pattern, RowSize, Rows, StreamHandle,
};
use super::{Kernel, Live, UNWRITTEN};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ffi::c_void;

/// Something that is enqueued.
#[derive(Clone)]
pub(super) enum Work {
    Upload {
        target: u64,
        source: *const u8,
        bytes: usize,
    },
    Download {
        target: *mut u8,
        source: u64,
        bytes: usize,
    },
    /// Between memory of two devices, or twice the same.
    Copy {
        target: Rows,
        source: Rows,
        rows: RowSize,
        devices: [usize; 2],
    },
    Fill {
        target: Rows,
        pattern: Pattern,
        rows: RowSize,
    },
    Launch {
        kernel: usize,
        blocks: u32,
        slots: Vec<u64>,
    },
    Call {
        function: HostFunction,
        data: *mut c_void,
    },
    /// Gives memory to the pool.
    Free(u64),
    /// Memory that was freed and allocated again.
    Scramble(u64),
    /// Passes a mark, which is what an event stands for since it was recorded last.
    Pass(u64),
    /// Waits until a mark is passed.
    Wait(u64),
}

/// What memory is made of, so that it is aligned as tensors are.
type Line = u128;
const UNWRITTEN_LINE: Line = Line::from_ne_bytes([UNWRITTEN; size_of::<Line>()]);

struct Allocation {
    lines: Vec<Line>,
    bytes: usize,
    device: usize,
    /// Whether the pool has it.
    pooled: bool,
}

#[derive(Default)]
struct Event {
    timed: bool,
    mark: Option<u64>,
}

/// Where a mark is.
#[derive(Clone, Copy)]
enum Mark {
    /// In the queue of a stream.
    Ahead(StreamHandle),
    /// Passed after so many pieces of work.
    Passed(u64),
}

pub(super) struct State {
    pub(super) limit: u64,
    pub(super) lost: Option<Failure>,
    /// What the next calls fail with.
    pub(super) refusals: VecDeque<Option<Failure>>,
    /// What the next piece of work fails with.
    pub(super) breaks: Option<Failure>,
    pub(super) kernels: Vec<(String, Kernel)>,
    memory: BTreeMap<u64, Allocation>,
    pinned: HashMap<usize, Vec<Line>>,
    streams: HashMap<StreamHandle, VecDeque<Work>>,
    captures: HashMap<StreamHandle, Vec<Work>>,
    events: HashMap<EventHandle, Event>,
    marks: HashMap<u64, Mark>,
    modules: HashMap<ModuleHandle, Vec<u8>>,
    graphs: HashMap<usize, Vec<Work>>,
    /// Handles and marks that were given.
    given: u64,
    /// Pieces of work that ran.
    done: u64,
}

// SAFETY: the pointers are to memory that who enqueued the work vouches for, on every thread.
unsafe impl Send for State {}

fn unknown(what: &str) -> Failure {
    Failure::refused(format!("this {what} isn't there"))
}

fn out_of_memory() -> Failure {
    Failure { kind: FailureKind::OutOfMemory, message: "out of memory".to_owned() }
}

impl State {
    pub(super) fn new(limit: u64) -> State {
        State {
            limit,
            lost: None,
            refusals: VecDeque::new(),
            breaks: None,
            kernels: Vec::new(),
            memory: BTreeMap::new(),
            pinned: HashMap::new(),
            streams: HashMap::from([(StreamHandle::DEFAULT, VecDeque::new())]),
            captures: HashMap::new(),
            events: HashMap::new(),
            marks: HashMap::new(),
            modules: HashMap::new(),
            graphs: HashMap::new(),
            given: 0,
            done: 0,
        }
    }

    fn give(&mut self) -> usize {
        self.given += 1;
        self.given as usize
    }

    pub(super) fn live(&self) -> Live {
        let used = || self.memory.values().filter(|allocation| !allocation.pooled);
        Live {
            allocations: used().count(),
            bytes: used().map(|allocation| allocation.bytes as u64).sum(),
            pinned: self.pinned.len(),
            streams: self.streams.len() - 1,
            events: self.events.len(),
            modules: self.modules.len(),
            graphs: self.graphs.len(),
        }
    }

    pub(super) fn pending(&self) -> usize {
        self.streams.values().map(VecDeque::len).sum()
    }

    // Memory.

    pub(super) fn reserved(&self) -> u64 {
        self.memory.values().map(|allocation| allocation.bytes as u64).sum()
    }

    pub(super) fn pooled(&self) -> u64 {
        let pooled = self.memory.values().filter(|allocation| allocation.pooled);
        pooled.map(|allocation| allocation.bytes as u64).sum()
    }

    pub(super) fn allocate(&mut self, bytes: usize, device: usize) -> Result<u64, Failure> {
        if self.reserved() + bytes as u64 > self.limit {
            return Err(out_of_memory());
        }
        let mut lines = vec![UNWRITTEN_LINE; bytes.div_ceil(size_of::<Line>())];
        let address = lines.as_mut_ptr() as u64;
        self.memory.insert(address, Allocation { lines, bytes, device, pooled: false });
        Ok(address)
    }

    pub(super) fn free(&mut self, address: u64) -> Result<(), Failure> {
        self.memory.remove(&address).map(drop).ok_or_else(|| unknown("memory"))
    }

    /// Memory that is in the pool, or that the same stream frees before whatever comes next; else more.
    pub(super) fn allocate_ordered(
        &mut self,
        bytes: usize,
        device: usize,
        stream: StreamHandle,
    ) -> Result<u64, Failure> {
        let fits = |allocation: &Allocation| {
            allocation.device == device && (bytes..=2 * bytes).contains(&allocation.bytes)
        };
        let pooled = self.memory.iter_mut().find(|(_, allocation)| allocation.pooled && fits(allocation));
        if let Some((&address, allocation)) = pooled {
            allocation.pooled = false;
            return Ok(address);
        }
        let queue = self.streams.get_mut(&stream).ok_or_else(|| unknown("stream"))?;
        for work in queue {
            match *work {
                Work::Free(address) if self.memory.get(&address).is_some_and(fits) => {
                    *work = Work::Scramble(address);
                    return Ok(address);
                }
                _ => {}
            }
        }
        self.allocate(bytes, device)
    }

    pub(super) fn trim(&mut self) {
        self.memory.retain(|_, allocation| !allocation.pooled);
    }

    pub(super) fn pin(&mut self, bytes: usize) -> *mut u8 {
        let mut lines = vec![UNWRITTEN_LINE; bytes.div_ceil(size_of::<Line>()).max(1)];
        let first = lines.as_mut_ptr();
        self.pinned.insert(first as usize, lines);
        first.cast()
    }

    pub(super) fn unpin(&mut self, first: *mut u8) -> Result<(), Failure> {
        self.pinned.remove(&(first as usize)).map(drop).ok_or_else(|| unknown("pinned memory"))
    }

    /// Where bytes of the device lie, if they are there.
    fn bytes(&mut self, address: u64, bytes: usize) -> Result<*mut u8, Failure> {
        let around = self.memory.range_mut(..=address).next_back();
        let inside = around.filter(|(first, allocation)| {
            !allocation.pooled && address + bytes as u64 <= *first + allocation.bytes as u64
        });
        let (first, allocation) = inside.ok_or_else(|| Failure {
            kind: FailureKind::Lost,
            message: "an illegal memory access was encountered".to_owned(),
        })?;
        let offset = (address - first) as usize;
        // SAFETY: the offset is inside the allocation.
        Ok(unsafe { allocation.lines.as_mut_ptr().cast::<u8>().add(offset) })
    }

    /// The same of a device's bytes. A copy that takes another's for its own loses the device.
    fn bytes_of(&mut self, device: usize, address: u64, bytes: usize) -> Result<*mut u8, Failure> {
        let first = self.bytes(address, bytes)?;
        let around = self.memory.range(..=address).next_back();
        match around.is_some_and(|(_, allocation)| allocation.device == device) {
            true => Ok(first),
            false => {
                Err(Failure { kind: FailureKind::Lost, message: "the memory is another device's".to_owned() })
            }
        }
    }

    // Streams and events.

    pub(super) fn create_stream(&mut self) -> StreamHandle {
        let stream = StreamHandle(self.give());
        self.streams.insert(stream, VecDeque::new());
        stream
    }

    pub(super) fn destroy_stream(&mut self, stream: StreamHandle) -> Result<(), Failure> {
        self.run(stream)?;
        self.streams.remove(&stream).map(drop).ok_or_else(|| unknown("stream"))
    }

    pub(super) fn enqueue(&mut self, on: StreamHandle, work: Work) -> Result<(), Failure> {
        if let Some(capture) = self.captures.get_mut(&on) {
            capture.push(work);
            return Ok(());
        }
        self.streams.get_mut(&on).ok_or_else(|| unknown("stream"))?.push_back(work);
        Ok(())
    }

    pub(super) fn create_event(&mut self, timed: bool) -> EventHandle {
        let event = EventHandle(self.give());
        self.events.insert(event, Event { timed, mark: None });
        event
    }

    pub(super) fn destroy_event(&mut self, event: EventHandle) -> Result<(), Failure> {
        self.events.remove(&event).map(drop).ok_or_else(|| unknown("event"))
    }

    fn event(&mut self, event: EventHandle) -> Result<&mut Event, Failure> {
        self.events.get_mut(&event).ok_or_else(|| unknown("event"))
    }

    pub(super) fn record(&mut self, event: EventHandle, stream: StreamHandle) -> Result<(), Failure> {
        self.isnt_capturing(stream)?;
        let mark = self.give() as u64;
        self.event(event)?.mark = Some(mark);
        self.marks.insert(mark, Mark::Ahead(stream));
        self.enqueue(stream, Work::Pass(mark))
    }

    pub(super) fn wait(&mut self, stream: StreamHandle, event: EventHandle) -> Result<(), Failure> {
        self.isnt_capturing(stream)?;
        match self.event(event)?.mark {
            Some(mark) => self.enqueue(stream, Work::Wait(mark)),
            None => Ok(()),
        }
    }

    pub(super) fn synchronize_event(&mut self, event: EventHandle) -> Result<(), Failure> {
        match self.event(event)?.mark {
            Some(mark) => self.run_to(mark),
            None => Ok(()),
        }
    }

    /// Whether an event's work is done, after a piece of work of its stream.
    pub(super) fn is_done(&mut self, event: EventHandle) -> Result<bool, Failure> {
        let Some(mark) = self.event(event)?.mark else { return Ok(true) };
        if let Some(Mark::Ahead(stream)) = self.marks.get(&mark).copied() {
            self.run_one(stream)?;
        }
        Ok(!matches!(self.marks.get(&mark), Some(Mark::Ahead(_))))
    }

    /// A microsecond for a piece of work.
    pub(super) fn elapsed(&mut self, start: EventHandle, end: EventHandle) -> Result<f64, Failure> {
        let mut passed = |event| {
            let event = self.event(event)?;
            let mark = event.mark.filter(|_| event.timed).ok_or_else(|| unknown("event's time"))?;
            match self.marks.get(&mark) {
                Some(&Mark::Passed(done)) => Ok(done),
                _ => Err(Failure::refused("the work before the event isn't done")),
            }
        };
        let (start, end) = (passed(start)?, passed(end)?);
        Ok((end as f64 - start as f64) * 1e-6)
    }

    /// Whether a stream is idle, after a piece of its work.
    pub(super) fn step(&mut self, stream: StreamHandle) -> Result<bool, Failure> {
        self.run_one(stream)?;
        Ok(self.streams.get(&stream).is_none_or(VecDeque::is_empty))
    }

    // Work.

    /// Runs all work of a stream.
    pub(super) fn run(&mut self, stream: StreamHandle) -> Result<(), Failure> {
        self.isnt_capturing(stream)?;
        while self.run_one(stream)? {}
        Ok(())
    }

    pub(super) fn run_everything(&mut self) -> Result<(), Failure> {
        let streams: Vec<StreamHandle> = self.streams.keys().copied().collect();
        streams.into_iter().try_for_each(|stream| self.run(stream))
    }

    fn run_to(&mut self, mark: u64) -> Result<(), Failure> {
        while let Some(&Mark::Ahead(stream)) = self.marks.get(&mark) {
            self.run_one(stream)?;
        }
        Ok(())
    }

    /// Runs the next piece of work of a stream; whether there was one.
    fn run_one(&mut self, stream: StreamHandle) -> Result<bool, Failure> {
        let queue = self.streams.get_mut(&stream).ok_or_else(|| unknown("stream"))?;
        let Some(work) = queue.pop_front() else { return Ok(false) };
        let result = match self.breaks.take() {
            Some(failure) => Err(failure),
            None => self.perform(work),
        };
        self.done += 1;
        if let Err(failure) = &result
            && failure.kind == FailureKind::Lost
        {
            self.lost = Some(failure.clone());
        }
        result.map(|()| true)
    }

    pub(super) fn perform(&mut self, work: Work) -> Result<(), Failure> {
        // SAFETY of the copies and calls below: memory of the device is looked up; memory of the host, data and slots are
        // what who enqueued the work vouches for.
        match work {
            Work::Upload { target, source, bytes } => {
                let target = self.bytes(target, bytes)?;
                // SAFETY: see above.
                unsafe { target.copy_from_nonoverlapping(source, bytes) };
            }
            Work::Download { target, source, bytes } => {
                let source = self.bytes(source, bytes)?;
                // SAFETY: see above.
                unsafe { target.copy_from_nonoverlapping(source, bytes) };
            }
            Work::Copy { target, source, rows, devices } => {
                for row in 0..rows.height as u64 {
                    let at = |rows: Rows| rows.first + row * rows.pitch as u64;
                    let source = self.bytes_of(devices[1], at(source), rows.width)?;
                    let target = self.bytes_of(devices[0], at(target), rows.width)?;
                    // SAFETY: see above; the two may overlap.
                    unsafe { target.copy_from(source, rows.width) };
                }
            }
            Work::Fill { target, pattern, rows } => self.fill(target, pattern, rows)?,
            Work::Launch { kernel, blocks, slots } => (self.kernels[kernel].1)(blocks, &slots),
            // SAFETY: see above.
            Work::Call { function, data } => unsafe { function(data) },
            Work::Free(address) => {
                self.scramble(address)?;
                self.memory.entry(address).and_modify(|allocation| allocation.pooled = true);
            }
            Work::Scramble(address) => self.scramble(address)?,
            Work::Pass(mark) => {
                self.marks.insert(mark, Mark::Passed(self.done));
            }
            Work::Wait(mark) => self.run_to(mark)?,
        }
        Ok(())
    }

    fn fill(&mut self, rows: Rows, pattern: Pattern, size: RowSize) -> Result<(), Failure> {
        for row in 0..size.height as u64 {
            let first = rows.first + row * rows.pitch as u64;
            if !first.is_multiple_of(pattern.bytes() as u64) {
                return Err(Failure::refused("misaligned address"));
            }
            let target = self.bytes(first, size.width)?;
            // SAFETY: the bytes are there, and the address is one of such numbers.
            (0..size.width / pattern.bytes()).for_each(|i| unsafe {
                match pattern {
                    Pattern::Byte(byte) => target.add(i).write(byte),
                    Pattern::Half(half) => target.cast::<u16>().add(i).write(half),
                    Pattern::Word(word) => target.cast::<u32>().add(i).write(word),
                }
            });
        }
        Ok(())
    }

    fn scramble(&mut self, address: u64) -> Result<(), Failure> {
        let allocation = self.memory.get_mut(&address).ok_or_else(|| unknown("memory"))?;
        allocation.lines.fill(UNWRITTEN_LINE);
        Ok(())
    }

    // Code.

    pub(super) fn load(&mut self, image: &[u8]) -> ModuleHandle {
        let module = ModuleHandle(self.give());
        self.modules.insert(module, image.to_vec());
        module
    }

    pub(super) fn unload(&mut self, module: ModuleHandle) -> Result<(), Failure> {
        self.modules.remove(&module).map(drop).ok_or_else(|| unknown("module"))
    }

    pub(super) fn function(&self, module: ModuleHandle, symbol: &str) -> Result<FunctionHandle, Failure> {
        let image = self.modules.get(&module).ok_or_else(|| unknown("module"))?;
        let number = self.kernels.iter().position(|(name, _)| name == symbol);
        let number = number.filter(|_| image.windows(symbol.len()).any(|bytes| bytes == symbol.as_bytes()));
        number.map(FunctionHandle).ok_or_else(|| unknown("function"))
    }

    // Graphs.

    fn isnt_capturing(&self, stream: StreamHandle) -> Result<(), Failure> {
        let refused = || Failure::refused("operation not permitted when stream is capturing");
        if self.captures.contains_key(&stream) { Err(refused()) } else { Ok(()) }
    }

    pub(super) fn begin_capture(&mut self, stream: StreamHandle) -> Result<(), Failure> {
        self.isnt_capturing(stream)?;
        self.captures.insert(stream, Vec::new());
        Ok(())
    }

    pub(super) fn end_capture(&mut self, stream: StreamHandle) -> Result<GraphHandle, Failure> {
        let work = self.captures.remove(&stream).ok_or_else(|| unknown("capture"))?;
        let graph = self.give();
        self.graphs.insert(graph, work);
        Ok(GraphHandle(graph))
    }

    pub(super) fn instantiate(&mut self, graph: GraphHandle) -> Result<ExecutableHandle, Failure> {
        let work = self.graphs.get(&graph.0).cloned().ok_or_else(|| unknown("graph"))?;
        let executable = self.give();
        self.graphs.insert(executable, work);
        Ok(ExecutableHandle(executable))
    }

    pub(super) fn destroy_graph(&mut self, graph: usize) -> Result<(), Failure> {
        self.graphs.remove(&graph).map(drop).ok_or_else(|| unknown("graph"))
    }

    pub(super) fn launch_graph(
        &mut self,
        graph: ExecutableHandle,
        stream: StreamHandle,
    ) -> Result<(), Failure> {
        let work = self.graphs.get(&graph.0).cloned().ok_or_else(|| unknown("graph"))?;
        work.into_iter().try_for_each(|work| self.enqueue(stream, work))
    }
}
