//! A profile in the format that `chrome://tracing` and Perfetto show (Trace Event Format, "complete events").

use super::Profile;
use crate::error::{Error, Result};
use serde_json::{Value, json};
use std::path::Path;

impl Profile {
    /// The launches as JSON for `chrome://tracing` and <https://ui.perfetto.dev>: a row for each device, with what each
    /// launch was of and did.
    pub fn chrome_trace(&self) -> String {
        let begin = self.launches.iter().map(|launched| launched.start).min();
        let mut devices: Vec<String> = Vec::new();
        let mut row = |name: String| {
            devices.iter().position(|known| *known == name).unwrap_or_else(|| {
                devices.push(name);
                devices.len() - 1
            })
        };
        let launched: Vec<Value> = self
            .launches
            .iter()
            .map(|launched| {
                let since = begin.map_or(0.0, |begin| launched.start.duration_since(begin).as_secs_f64());
                json!({
                    "name": launched.kernel,
                    "ph": "X",
                    "pid": 0,
                    "tid": row(launched.device.name()),
                    "ts": since * 1e6,
                    "dur": launched.time.as_secs_f64() * 1e6,
                    "args": {
                        "instance": launched.instance,
                        "blocks": launched.blocks,
                        "bytes": launched.bytes(),
                        "flops": launched.flops(),
                    },
                })
            })
            .collect();
        let names = devices.iter().enumerate().map(|(row, name)| {
            json!({ "name": "thread_name", "ph": "M", "pid": 0, "tid": row, "args": { "name": name } })
        });
        let events: Vec<Value> = names.chain(launched).collect();
        json!({ "displayTimeUnit": "ns", "traceEvents": events }).to_string()
    }

    /// Writes [`Profile::chrome_trace`] to a file.
    ///
    /// # Errors
    /// [`Error::File`] where it can't be written.
    pub fn write_chrome_trace(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        let failed = |error: std::io::Error| Error::File {
            path: path.display().to_string(),
            problem: error.to_string(),
            kind: Some(error.kind()),
        };
        std::fs::write(path, self.chrome_trace()).map_err(failed)
    }
}
