//! The machine under the runtime's own trait.

use super::machine::{self, Code, Device, MULTIPROCESSORS, Machine, Outcome, Work};
use crate::gpu::architecture::Architecture;
use crate::gpu::driver::{
    Description, Driver, EncodedMap, EventHandle, EventKind, ExecutableHandle, Failure, FailureKind,
    FunctionHandle, GraphHandle, Grid, HostFunction, ModuleHandle, Pattern, PoolBytes, RowSize, Rows,
    StreamHandle,
};
use std::ffi::{CStr, c_void};
use tile_ir::abi::Launch;
use tile_ir::tensor_map::BoundMap;

/// A device of the process's own machines.
pub(super) struct Own {
    pub(super) device: &'static Device,
    pub(super) architecture: Architecture,
}

/// What the trait's callers read of an error.
pub(super) fn failure(code: Code) -> Failure {
    let message = code.words().to_string_lossy().into_owned();
    Failure { kind: FailureKind::of_code(code.0), message }
}

fn rows(Rows { first, pitch }: Rows) -> machine::Rows {
    machine::Rows { first, pitch }
}

impl Own {
    /// Has the machine do something, unless it refuses.
    fn ask<T>(&self, call: impl FnOnce(&mut Machine) -> Outcome<T>) -> Result<T, Failure> {
        self.device.asked().and_then(|mut machine| call(&mut machine)).map_err(failure)
    }

    fn enqueue(&self, on: StreamHandle, work: Work) -> Result<(), Failure> {
        self.ask(|machine| machine.enqueue(self.stream(on), self.device.ordinal, work))
    }

    fn stream(&self, stream: StreamHandle) -> machine::Handle {
        self.device.stream(stream.0)
    }
}

impl Driver for Own {
    fn api(&self) -> &'static str {
        "stand-in"
    }

    fn ordinal(&self) -> usize {
        self.device.ordinal
    }

    fn describe(&self) -> Result<Description, Failure> {
        self.ask(|_| Ok(()))?;
        Ok(Description {
            name: "host memory".to_owned(),
            uuid: None,
            pci_bus: None,
            architecture: self.architecture.clone(),
            multiprocessors: MULTIPROCESSORS,
            warp: 64,
            clock: Some(1e9),
            memory_rate: None,
            shared_bytes: 65536,
            l2_bytes: 1 << 20,
            driver: "stand-in 1.0".to_owned(),
            clusters: false,
            pools: self.device.pools,
            grid_threads: Some(u32::MAX.into()),
        })
    }

    fn memory(&self) -> Result<(u64, u64), Failure> {
        self.ask(|machine| Ok((machine.limit - machine.reserved(), machine.limit)))
    }

    fn allocate(&self, bytes: usize) -> Result<u64, Failure> {
        self.ask(|machine| machine.allocate(bytes, self.device.ordinal))
    }

    unsafe fn free(&self, address: u64) -> Result<(), Failure> {
        self.ask(|machine| {
            machine.run_device(self.device.ordinal)?;
            machine.free(address)
        })
    }

    unsafe fn allocate_ordered(&self, bytes: usize, stream: StreamHandle) -> Result<u64, Failure> {
        self.ask(|machine| machine.allocate_ordered(bytes, self.device.ordinal, self.stream(stream)))
    }

    unsafe fn free_ordered(&self, address: u64, stream: StreamHandle) -> Result<(), Failure> {
        self.ask(|machine| machine.free_ordered(address, self.device.ordinal, self.stream(stream)))
    }

    fn pool_bytes(&self) -> Result<PoolBytes, Failure> {
        let machine::PoolBytes { reserved, used } =
            self.ask(|machine| Ok(machine.pool_bytes(self.device.ordinal)))?;
        Ok(PoolBytes { reserved, used })
    }

    fn hold_in_pool(&self, bytes: u64) -> Result<(), Failure> {
        self.ask(|machine| {
            machine.hold(self.device.ordinal, bytes);
            Ok(())
        })
    }

    fn trim_pool(&self) -> Result<(), Failure> {
        self.ask(|machine| {
            machine.trim(self.device.ordinal, 0);
            Ok(())
        })
    }

    fn allocate_pinned(&self, bytes: usize) -> Result<*mut u8, Failure> {
        self.ask(|machine| Ok(machine.pin(bytes)))
    }

    unsafe fn free_pinned(&self, first: *mut u8) -> Result<(), Failure> {
        self.ask(|machine| machine.unpin(first))
    }

    unsafe fn upload(
        &self,
        target: u64,
        source: *const u8,
        bytes: usize,
        on: StreamHandle,
    ) -> Result<(), Failure> {
        self.enqueue(on, Work::Upload { target, source, bytes })
    }

    unsafe fn download(
        &self,
        target: *mut u8,
        source: u64,
        bytes: usize,
        on: StreamHandle,
    ) -> Result<(), Failure> {
        self.enqueue(on, Work::Download { target, source, bytes })
    }

    unsafe fn copy(&self, target: u64, source: u64, bytes: usize, on: StreamHandle) -> Result<(), Failure> {
        self.enqueue(on, Work::copy(target, source, bytes, [self.device.ordinal; 2]))
    }

    unsafe fn copy_from_peer(
        &self,
        target: u64,
        peer: usize,
        source: u64,
        bytes: usize,
        on: StreamHandle,
    ) -> Result<(), Failure> {
        if peer == self.device.ordinal {
            return Err(Failure::refused("the device isn't its own peer"));
        }
        self.enqueue(on, Work::copy(target, source, bytes, [self.device.ordinal, peer]))
    }

    unsafe fn copy_rows(
        &self,
        target: Rows,
        source: Rows,
        RowSize { width, height }: RowSize,
        on: StreamHandle,
    ) -> Result<(), Failure> {
        let (target, source, devices) = (rows(target), rows(source), [self.device.ordinal; 2]);
        self.enqueue(on, Work::Copy { target, source, size: [width, height], devices })
    }

    unsafe fn fill(
        &self,
        target: u64,
        pattern: Pattern,
        count: usize,
        on: StreamHandle,
    ) -> Result<(), Failure> {
        let target = machine::Rows { first: target, pitch: count * pattern.bytes() };
        self.enqueue(on, fill(target, pattern, [count, 1]))
    }

    /// As one vendor, this one has no such call for halves.
    unsafe fn fill_rows(
        &self,
        target: Rows,
        pattern: Pattern,
        RowSize { width, height }: RowSize,
        on: StreamHandle,
    ) -> Result<bool, Failure> {
        if matches!(pattern, Pattern::Half(_)) {
            return Ok(false);
        }
        let work = fill(rows(target), pattern, [width / pattern.bytes(), height]);
        self.enqueue(on, work).map(|()| true)
    }

    fn create_stream(&self) -> Result<StreamHandle, Failure> {
        self.ask(|machine| Ok(StreamHandle(machine.create_stream(self.device.ordinal))))
    }

    unsafe fn destroy_stream(&self, stream: StreamHandle) -> Result<(), Failure> {
        self.ask(|machine| machine.destroy_stream(stream.0))
    }

    unsafe fn synchronize(&self, stream: StreamHandle) -> Result<(), Failure> {
        self.ask(|machine| machine.run(self.stream(stream)))
    }

    fn synchronize_device(&self) -> Result<(), Failure> {
        self.ask(|machine| machine.run_device(self.device.ordinal))
    }

    fn create_event(&self, kind: EventKind) -> Result<EventHandle, Failure> {
        let is_timed = kind == EventKind::Timed;
        self.ask(|machine| Ok(EventHandle(machine.create_event(is_timed, self.device.ordinal))))
    }

    unsafe fn destroy_event(&self, event: EventHandle) -> Result<(), Failure> {
        self.ask(|machine| machine.destroy_event(event.0))
    }

    unsafe fn record(&self, event: EventHandle, stream: StreamHandle) -> Result<(), Failure> {
        self.ask(|machine| machine.record(event.0, self.stream(stream), self.device.ordinal))
    }

    unsafe fn wait(&self, stream: StreamHandle, event: EventHandle) -> Result<(), Failure> {
        self.ask(|machine| machine.wait(self.stream(stream), event.0, self.device.ordinal))
    }

    unsafe fn is_done(&self, event: EventHandle) -> Result<bool, Failure> {
        self.ask(|machine| machine.is_done(event.0))
    }

    unsafe fn synchronize_event(&self, event: EventHandle) -> Result<(), Failure> {
        self.ask(|machine| machine.synchronize_event(event.0))
    }

    unsafe fn elapsed(&self, start: EventHandle, end: EventHandle) -> Result<f64, Failure> {
        self.ask(|machine| machine.elapsed(start.0, end.0))
    }

    fn load(&self, image: &[u8]) -> Result<ModuleHandle, Failure> {
        self.device.before_load(image);
        self.ask(|machine| Ok(ModuleHandle(machine.load(image, self.device.ordinal))))
    }

    unsafe fn unload(&self, module: ModuleHandle) -> Result<(), Failure> {
        self.ask(|machine| machine.unload(module.0))
    }

    unsafe fn function(
        &self,
        module: ModuleHandle,
        symbol: &CStr,
        shared_bytes: u32,
    ) -> Result<FunctionHandle, Failure> {
        self.ask(|machine| {
            let function = machine.function(module.0, &symbol.to_string_lossy())?;
            machine.allow_shared(function, shared_bytes).map(|()| FunctionHandle(function))
        })
    }

    unsafe fn blocks_per_multiprocessor(&self, _: FunctionHandle, _: &Launch) -> Result<u32, Failure> {
        self.ask(|_| Ok(machine::BLOCKS))
    }

    unsafe fn clusters_at_once(&self, _: FunctionHandle, _: &Launch) -> Result<u32, Failure> {
        Err(Failure::refused("the stand-in has no clusters"))
    }

    fn encode(&self, _: &BoundMap) -> Result<EncodedMap, Failure> {
        Err(Failure::refused("the stand-in has no tensor maps"))
    }

    unsafe fn launch(
        &self,
        function: FunctionHandle,
        Grid { blocks, threads, shared_bytes }: Grid,
        parameters: &mut [*mut c_void],
        on: StreamHandle,
    ) -> Result<(), Failure> {
        let grid = machine::Grid { blocks, threads, shared_bytes };
        let (ordinal, stream) = (self.device.ordinal, self.stream(on));
        self.ask(|machine| {
            let expected = machine.kernel(function.0, ordinal)?.0.parameters.len();
            assert_eq!(parameters.len(), expected, "a launch gives as many parameters as the kernel has");
            // SAFETY: the caller vouches for what the parameters point at.
            unsafe { machine.launch(function.0, ordinal, grid, parameters.as_ptr(), stream) }
        })
    }

    unsafe fn call(
        &self,
        function: HostFunction,
        data: *mut c_void,
        on: StreamHandle,
    ) -> Result<(), Failure> {
        self.enqueue(on, Work::Call { function, data })
    }

    unsafe fn begin_capture(&self, stream: StreamHandle) -> Result<(), Failure> {
        self.ask(|machine| machine.begin_capture(self.stream(stream), self.device.ordinal))
    }

    unsafe fn end_capture(&self, stream: StreamHandle) -> Result<GraphHandle, Failure> {
        self.ask(|machine| machine.end_capture(self.stream(stream)).map(GraphHandle))
    }

    unsafe fn instantiate(&self, graph: GraphHandle) -> Result<ExecutableHandle, Failure> {
        self.ask(|machine| machine.instantiate(graph.0).map(ExecutableHandle))
    }

    unsafe fn destroy_graph(&self, graph: GraphHandle) -> Result<(), Failure> {
        self.ask(|machine| machine.destroy_graph(graph.0))
    }

    unsafe fn launch_graph(&self, graph: ExecutableHandle, on: StreamHandle) -> Result<(), Failure> {
        self.ask(|machine| machine.launch_graph(graph.0, self.stream(on), self.device.ordinal))
    }

    unsafe fn destroy_executable(&self, graph: ExecutableHandle) -> Result<(), Failure> {
        self.ask(|machine| machine.destroy_executable(graph.0))
    }
}

fn fill(target: machine::Rows, pattern: Pattern, size: [usize; 2]) -> Work {
    match pattern {
        Pattern::Byte(byte) => Work::fill(target, [byte], size),
        Pattern::Half(half) => Work::fill(target, half.to_ne_bytes(), size),
        Pattern::Word(word) => Work::fill(target, word.to_ne_bytes(), size),
    }
}
