//! Graphs: what was enqueued on a stream while it was captured, in its order.

use super::{Code, Handle, Machine, Outcome};

impl Machine {
    pub(super) fn isnt_capturing(&self, stream: Handle) -> Outcome<()> {
        if self.captures.contains_key(&stream) { Err(Code::IS_CAPTURING) } else { Ok(()) }
    }

    /// The default stream of a device can't be captured (CUDA Driver API, `cuStreamBeginCapture`).
    pub fn begin_capture(&mut self, stream: Handle, device: usize) -> Outcome<()> {
        self.isnt_capturing(stream)?;
        match self.streams.get(&stream) {
            Some(queue) if queue.device == device && !queue.is_default => {
                self.captures.insert(stream, Vec::new());
                Ok(())
            }
            Some(_) => Err(Code::IS_CAPTURING),
            None => Err(Code::INVALID_HANDLE),
        }
    }

    pub fn end_capture(&mut self, stream: Handle) -> Outcome<Handle> {
        let work = self.captures.remove(&stream).ok_or(Code::INVALID_VALUE)?;
        let graph = super::give();
        self.graphs.insert(graph, work);
        Ok(graph)
    }

    pub fn instantiate(&mut self, graph: Handle) -> Outcome<Handle> {
        let work = self.graphs.get(&graph).cloned().ok_or(Code::INVALID_VALUE)?;
        let executable = super::give();
        self.executables.insert(executable, work);
        Ok(executable)
    }

    pub fn destroy_graph(&mut self, graph: Handle) -> Outcome<()> {
        self.graphs.remove(&graph).map(drop).ok_or(Code::INVALID_VALUE)
    }

    pub fn destroy_executable(&mut self, executable: Handle) -> Outcome<()> {
        self.executables.remove(&executable).map(drop).ok_or(Code::INVALID_VALUE)
    }

    pub fn launch_graph(&mut self, executable: Handle, stream: Handle, device: usize) -> Outcome<()> {
        let work = self.executables.get(&executable).cloned().ok_or(Code::INVALID_VALUE)?;
        work.into_iter().try_for_each(|work| self.enqueue(stream, device, work))
    }
}
