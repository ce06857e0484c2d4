//! Streams, events, and the work that runs when somebody waits for it.

use super::{Code, Grid, Handle, Machine, Outcome};
use std::collections::VecDeque;
use std::ffi::c_void;

/// A function of the host that a stream calls.
pub type HostFunction = unsafe extern "C" fn(data: *mut c_void);

/// Rows of so many bytes, a row every `pitch` bytes.
#[derive(Clone, Copy, Debug)]
pub struct Rows {
    pub first: u64,
    pub pitch: usize,
}

/// Something that is enqueued.
#[derive(Clone)]
pub enum Work {
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
    /// Rows of `size[0]` bytes, `size[1]` of them, between memory of two devices, or twice the same: first the one that
    /// gets them.
    Copy {
        target: Rows,
        source: Rows,
        size: [usize; 2],
        devices: [usize; 2],
    },
    /// The first bytes of a pattern, again and again.
    Fill {
        target: Rows,
        pattern: [u8; 4],
        pattern_bytes: usize,
        size: [usize; 2],
    },
    Launch {
        kernel: usize,
        grid: Grid,
        words: Vec<u64>,
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

pub(super) struct Stream {
    pub(super) device: usize,
    pub(super) is_default: bool,
    pub(super) queue: VecDeque<Work>,
}

pub(super) struct Event {
    device: usize,
    timed: bool,
    mark: Option<u64>,
}

/// Where a mark is.
#[derive(Clone, Copy)]
pub(super) enum Mark {
    /// In the queue of a stream.
    Ahead(Handle),
    /// Passed after so many pieces of work.
    Passed(u64),
}

/// How much a stream holds before whoever enqueues more waits.
const MOST_QUEUED: usize = 1024;

/// The most bytes from one row to the next.
const MOST_PITCH: usize = i32::MAX as usize;

impl Work {
    /// A copy of bytes that lie one after the other.
    pub fn copy(target: u64, source: u64, bytes: usize, devices: [usize; 2]) -> Work {
        let [target, source] = [target, source].map(|first| Rows { first, pitch: bytes });
        Work::Copy { target, source, size: [bytes, 1], devices }
    }

    /// Fills rows of so many patterns with one.
    pub fn fill<const N: usize>(target: Rows, pattern: [u8; N], [count, height]: [usize; 2]) -> Work {
        let mut bytes = [0; 4];
        bytes[..N].copy_from_slice(&pattern);
        Work::Fill { target, pattern: bytes, pattern_bytes: N, size: [count * N, height] }
    }

    /// What drivers refuse before anything is enqueued: rows that overlap or are too far apart, and patterns that begin at
    /// no multiple of their size.
    fn check(&self) -> Outcome<()> {
        let is_fine = |rows: &Rows, [width, height]: [usize; 2]| {
            height == 1 || (width..=MOST_PITCH).contains(&rows.pitch)
        };
        let is_fine = match self {
            Work::Copy { target, source, size, .. } => is_fine(target, *size) && is_fine(source, *size),
            Work::Fill { target, pattern_bytes, size, .. } => {
                let is_aligned = target.first.is_multiple_of(*pattern_bytes as u64)
                    && (size[1] == 1 || target.pitch.is_multiple_of(*pattern_bytes));
                is_aligned && is_fine(target, *size)
            }
            _ => true,
        };
        if is_fine { Ok(()) } else { Err(Code::INVALID_VALUE) }
    }
}

impl Machine {
    /// The default stream of a device that is added is its first.
    pub fn create_stream(&mut self, device: usize) -> Handle {
        let stream = super::give();
        let is_default = self.streams.values().all(|stream| stream.device != device);
        self.streams.insert(stream, Stream { device, is_default, queue: VecDeque::new() });
        stream
    }

    /// How many streams there are that were made.
    pub(super) fn made_streams(&self) -> usize {
        self.streams.values().filter(|stream| !stream.is_default).count()
    }

    pub(super) fn queued(&self) -> usize {
        self.streams.values().map(|stream| stream.queue.len()).sum()
    }

    pub fn destroy_stream(&mut self, stream: Handle) -> Outcome<()> {
        self.run(stream)?;
        match self.streams.get(&stream) {
            Some(queue) if !queue.is_default => {
                self.streams.remove(&stream);
                Ok(())
            }
            _ => Err(Code::INVALID_HANDLE),
        }
    }

    /// Enqueues work of a device on one of its streams.
    pub fn enqueue(&mut self, on: Handle, device: usize, work: Work) -> Outcome<()> {
        work.check()?;
        let stream = self.streams.get_mut(&on).filter(|stream| stream.device == device);
        let stream = stream.ok_or(Code::INVALID_HANDLE)?;
        if let Some(capture) = self.captures.get_mut(&on) {
            capture.push(work);
            return Ok(());
        }
        stream.queue.push_back(work);
        if stream.queue.len() > MOST_QUEUED {
            self.run_one(on)?;
        }
        Ok(())
    }

    pub fn create_event(&mut self, timed: bool, device: usize) -> Handle {
        let event = super::give();
        self.events.insert(event, Event { device, timed, mark: None });
        event
    }

    pub fn destroy_event(&mut self, event: Handle) -> Outcome<()> {
        self.events.remove(&event).map(drop).ok_or(Code::INVALID_HANDLE)
    }

    fn event(&mut self, event: Handle) -> Outcome<&mut Event> {
        self.events.get_mut(&event).ok_or(Code::INVALID_HANDLE)
    }

    /// An event and the stream that it is recorded on are of one device.
    pub fn record(&mut self, event: Handle, stream: Handle, device: usize) -> Outcome<()> {
        self.isnt_capturing(stream)?;
        let known = self.event(event)?;
        if known.device != device {
            return Err(Code::INVALID_HANDLE);
        }
        let mark = super::give() as u64;
        known.mark = Some(mark);
        self.marks.insert(mark, Mark::Ahead(stream));
        self.enqueue(stream, device, Work::Pass(mark))
    }

    /// The event may be another device's.
    pub fn wait(&mut self, stream: Handle, event: Handle, device: usize) -> Outcome<()> {
        self.isnt_capturing(stream)?;
        match self.event(event)?.mark {
            Some(mark) => self.enqueue(stream, device, Work::Wait(mark)),
            None => Ok(()),
        }
    }

    pub fn synchronize_event(&mut self, event: Handle) -> Outcome<()> {
        match self.event(event)?.mark {
            Some(mark) => self.run_to(mark),
            None => Ok(()),
        }
    }

    /// Whether an event's work is done, after a piece of work of its stream.
    pub fn is_done(&mut self, event: Handle) -> Outcome<bool> {
        let Some(mark) = self.event(event)?.mark else { return Ok(true) };
        if let Some(Mark::Ahead(stream)) = self.marks.get(&mark).copied() {
            self.run_one(stream)?;
        }
        Ok(!matches!(self.marks.get(&mark), Some(Mark::Ahead(_))))
    }

    /// Seconds between two events: a microsecond for a piece of work.
    pub fn elapsed(&mut self, start: Handle, end: Handle) -> Outcome<f64> {
        let mut passed = |event| {
            let event = self.event(event)?;
            let mark = event.mark.filter(|_| event.timed).ok_or(Code::INVALID_HANDLE)?;
            match self.marks.get(&mark) {
                Some(&Mark::Passed(done)) => Ok(done),
                _ => Err(Code::NOT_READY),
            }
        };
        let (start, end) = (passed(start)?, passed(end)?);
        Ok((end as f64 - start as f64) * 1e-6)
    }

    /// Whether a stream is idle, after a piece of its work.
    pub(super) fn step(&mut self, stream: Handle) -> Outcome<bool> {
        self.run_one(stream)?;
        Ok(self.streams.get(&stream).is_none_or(|stream| stream.queue.is_empty()))
    }

    /// Runs all work of a stream.
    pub fn run(&mut self, stream: Handle) -> Outcome<()> {
        self.isnt_capturing(stream)?;
        while self.run_one(stream)? {}
        let device = self.streams.get(&stream).ok_or(Code::INVALID_HANDLE)?.device;
        self.release(device);
        Ok(())
    }

    /// Runs all work of a device.
    pub fn run_device(&mut self, device: usize) -> Outcome<()> {
        let own = self.streams.iter().filter(|(_, stream)| stream.device == device);
        let streams: Vec<Handle> = own.map(|(&handle, _)| handle).collect();
        streams.into_iter().try_for_each(|stream| self.run(stream))
    }

    fn run_to(&mut self, mark: u64) -> Outcome<()> {
        while let Some(&Mark::Ahead(stream)) = self.marks.get(&mark) {
            self.run_one(stream)?;
        }
        Ok(())
    }

    /// Runs the next piece of work of a stream; whether there was one.
    fn run_one(&mut self, stream: Handle) -> Outcome<bool> {
        let queue = &mut self.streams.get_mut(&stream).ok_or(Code::INVALID_HANDLE)?.queue;
        let Some(work) = queue.pop_front() else { return Ok(false) };
        let result = match self.breaks.take() {
            Some(code) => Err(code),
            None => self.perform(work),
        };
        self.done += 1;
        if let Err(code) = result
            && code.is_sticky()
        {
            self.lost = Some(code);
        }
        result.map(|()| true)
    }

    fn perform(&mut self, work: Work) -> Outcome<()> {
        // SAFETY of the copies and calls below: memory of the device is looked up; memory of the host, data and words are
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
            Work::Copy { target, source, size: [width, height], devices } => {
                for row in 0..height as u64 {
                    let at = |rows: Rows| rows.first + row * rows.pitch as u64;
                    let source = self.bytes_of(devices[1], at(source), width)?;
                    let target = self.bytes_of(devices[0], at(target), width)?;
                    // SAFETY: see above; the two may overlap.
                    unsafe { target.copy_from(source, width) };
                }
            }
            Work::Fill { target, pattern, pattern_bytes, size: [width, height] } => {
                for row in 0..height as u64 {
                    let first = self.bytes(target.first + row * target.pitch as u64, width)?;
                    // SAFETY: the bytes are there.
                    unsafe {
                        match pattern_bytes {
                            1 => first.write_bytes(pattern[0], width),
                            _ => (0..width).for_each(|i| first.add(i).write(pattern[i % pattern_bytes])),
                        }
                    }
                }
            }
            Work::Launch { kernel, grid, words } => {
                let kernel = &self.kernels[kernel];
                (kernel.run)(kernel.data, grid, words.as_ptr(), words.len());
            }
            Work::Call { function, data } => {
                super::IS_IN_HOST_FUNCTION.set(true);
                // SAFETY: see above.
                unsafe { function(data) };
                super::IS_IN_HOST_FUNCTION.set(false);
            }
            Work::Free(address) => self.give_to_pool(address)?,
            Work::Scramble(address) => self.scramble(address)?,
            Work::Pass(mark) => {
                self.marks.insert(mark, Mark::Passed(self.done));
            }
            Work::Wait(mark) => self.run_to(mark)?,
        }
        Ok(())
    }
}
