//! Streams, events, graphs, and functions of the host.

use crate::context::{asked, count_capture, isnt_capturing};
use crate::machine::{Code, HostFunction, Work};
use crate::{check, functions, give};
use std::ffi::{c_int, c_uint, c_ulonglong, c_void};

const STREAM_NON_BLOCKING: c_uint = 1;
const EVENT_DISABLE_TIMING: c_uint = 2;
const CAPTURE_THREAD_LOCAL: c_int = 1;

functions! {
    fn cuStreamCreate(stream: *mut usize, flags: c_uint) {
        let (device, mut machine) = asked()?;
        // How others wait for the default stream isn't modelled.
        if flags != STREAM_NON_BLOCKING {
            return Err(Code::NOT_SUPPORTED);
        }
        give(stream, machine.create_stream(device.ordinal))
    }
    fn cuStreamDestroy_v2(stream: usize) { asked()?.1.destroy_stream(stream) }
    fn cuStreamSynchronize(stream: usize) {
        let (device, mut machine) = asked()?;
        machine.run(device.stream(stream))
    }
    fn cuStreamWaitEvent(stream: usize, event: usize, flags: c_uint) {
        let (device, mut machine) = asked()?;
        check(flags == 0)?;
        machine.wait(device.stream(stream), event, device.ordinal)
    }
    fn cuEventCreate(event: *mut usize, flags: c_uint) {
        let (device, mut machine) = asked()?;
        check(flags & !EVENT_DISABLE_TIMING == 0)?;
        give(event, machine.create_event(flags == 0, device.ordinal))
    }
    fn cuEventDestroy_v2(event: usize) { asked()?.1.destroy_event(event) }
    fn cuEventRecord(event: usize, stream: usize) {
        let (device, mut machine) = asked()?;
        machine.record(event, device.stream(stream), device.ordinal)
    }
    fn cuEventQuery(event: usize) {
        if asked()?.1.is_done(event)? { Ok(()) } else { Err(Code::NOT_READY) }
    }
    fn cuEventSynchronize(event: usize) { asked()?.1.synchronize_event(event) }
    fn cuEventElapsedTime(milliseconds: *mut f32, start: usize, end: usize) {
        give(milliseconds, (asked()?.1.elapsed(start, end)? * 1e3) as f32)
    }
    fn cuLaunchHostFunc(stream: usize, function: Option<HostFunction>, data: *mut c_void) {
        let (device, mut machine) = asked()?;
        let function = function.ok_or(Code::INVALID_VALUE)?;
        machine.enqueue(device.stream(stream), device.ordinal, Work::Call { function, data })
    }
    fn cuStreamBeginCapture_v2(stream: usize, mode: c_int) {
        let (device, mut machine) = asked()?;
        check(mode == CAPTURE_THREAD_LOCAL)?;
        machine.begin_capture(device.stream(stream), device.ordinal)?;
        count_capture(true);
        Ok(())
    }
    fn cuStreamEndCapture(stream: usize, graph: *mut usize) {
        let (_, mut machine) = asked()?;
        let captured = machine.end_capture(stream)?;
        count_capture(false);
        give(graph, captured)
    }
    fn cuGraphInstantiateWithFlags(executable: *mut usize, graph: usize, flags: c_ulonglong) {
        let (_, mut machine) = asked()?;
        isnt_capturing()?;
        check(flags == 0)?;
        give(executable, machine.instantiate(graph)?)
    }
    fn cuGraphDestroy(graph: usize) { asked()?.1.destroy_graph(graph) }
    fn cuGraphLaunch(executable: usize, stream: usize) {
        let (device, mut machine) = asked()?;
        machine.launch_graph(executable, device.stream(stream), device.ordinal)
    }
    fn cuGraphExecDestroy(executable: usize) { asked()?.1.destroy_executable(executable) }
}
