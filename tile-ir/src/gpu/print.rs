//! The text of a scheduled kernel: its IR, with every tile's distribution beside its definition.

use super::Scheduled;
use crate::kernel::ValueId;
use crate::text::print_with_notes;
use std::collections::HashMap;

/// The kernel's text, with the number of threads and what they hold.
pub fn print(scheduled: &Scheduled) -> String {
    let threads = scheduled.threads();
    let vectors: HashMap<ValueId, u64> = scheduled
        .accesses
        .iter()
        .flat_map(|(&op, access)| scheduled.op(op).results.iter().map(|&result| (result, access.vector)))
        .collect();
    let note = |value| {
        let distribution = scheduled.distributions.get(&value)?;
        let vector = vectors.get(&value).map_or_else(String::new, |vector| format!("vector {vector}, "));
        Some(format!("{vector}{distribution}"))
    };
    let text = print_with_notes(scheduled, &note);
    format!("; {} warps of {} lanes\n{text}", threads.warps, threads.lanes)
}
