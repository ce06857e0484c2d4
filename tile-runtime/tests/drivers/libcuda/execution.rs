//! Streams, events, graphs, and functions of the host.

use crate::common;
use crate::functions;
use crate::machine::{Code, HostFunction};
use std::ffi::{c_int, c_uint, c_void};

const STREAM_NON_BLOCKING: c_uint = 1;

functions! {
    fn cuStreamCreate(stream: *mut usize, flags: c_uint) {
        // How others wait for the default stream isn't modelled.
        if flags != STREAM_NON_BLOCKING {
            return Err(Code::NOT_SUPPORTED);
        }
        common::create_stream(stream)
    }
    fn cuStreamDestroy_v2(stream: usize) { common::destroy_stream(stream) }
    fn cuStreamSynchronize(stream: usize) { common::synchronize(stream) }
    fn cuStreamWaitEvent(stream: usize, event: usize, flags: c_uint) { common::wait(stream, event, flags) }
    fn cuEventCreate(event: *mut usize, flags: c_uint) { common::create_event(event, flags) }
    fn cuEventDestroy_v2(event: usize) { common::destroy_event(event) }
    fn cuEventRecord(event: usize, stream: usize) { common::record(event, stream) }
    fn cuEventQuery(event: usize) { common::query(event) }
    fn cuEventSynchronize(event: usize) { common::synchronize_event(event) }
    fn cuEventElapsedTime(milliseconds: *mut f32, start: usize, end: usize) {
        common::elapsed(milliseconds, start, end)
    }
    fn cuLaunchHostFunc(stream: usize, function: Option<HostFunction>, data: *mut c_void) {
        common::call(stream, function, data)
    }
    fn cuStreamBeginCapture_v2(stream: usize, mode: c_int) { common::begin_capture(stream, mode) }
    fn cuStreamEndCapture(stream: usize, graph: *mut usize) { common::end_capture(stream, graph) }
    fn cuGraphInstantiateWithFlags(executable: *mut usize, graph: usize, flags: u64) {
        common::instantiate(executable, graph, flags)
    }
    fn cuGraphDestroy(graph: usize) { common::destroy_graph(graph) }
    fn cuGraphLaunch(executable: usize, stream: usize) { common::launch_graph(executable, stream) }
    fn cuGraphExecDestroy(executable: usize) { common::destroy_executable(executable) }
}
