//! What is known not to run: an arm that doesn't fit, what an exit leaves out, the body of a loop without turns. Nothing of it
//! gets into the kernel, and it is exempt from checks. But rustc sees it as it sees everything else, so it is lowered for what
//! must be rewritten there, and for what it says of the types of variables.

use super::{Lowered, Lowering};
use crate::value::{Formats, Val};

/// How deep what isn't reached is looked for in itself: twice as much is lowered with each.
const MOST_WITHIN: usize = 4;

impl Lowering {
    /// Whether what isn't reached from here is looked at.
    pub(super) fn looks_within(&self) -> bool {
        self.unreached < MOST_WITHIN
    }

    /// [`Self::unreached`] of what a known condition or an exit leaves out, as a constant of the kernel may decide: an output
    /// that is stored to there alone is none that was forgotten.
    pub(super) fn not_taken(&mut self, lower: impl FnOnce(&mut Self) -> Lowered<Val>) -> Option<Formats> {
        let so_far = self.ops_so_far();
        self.unreached(|lowering| {
            let value = lower(lowering);
            let written = lowering.written_since(so_far);
            lowering.written_elsewhere.extend(written);
            value
        })
    }

    /// Lowers what isn't reached, and leaves the kernel as it was; gives the type of what it would have given. Each
    /// turn of an unrolled loop has variables of its own, so it is lowered for each.
    pub(super) fn unreached(&mut self, lower: impl FnOnce(&mut Self) -> Lowered<Val>) -> Option<Formats> {
        if !self.looks_within() {
            return None;
        }
        let (kernel, scopes, frames) = (self.kernel.clone(), self.scopes.clone(), self.frames.clone());
        let (declared, singles, called) = (self.declared.clone(), self.singles.clone(), self.called.clone());
        let (folded, bounds, errors) = (self.folded.len(), self.bounds.len(), self.errors.len());
        let (messages, region, nesting) = (self.messages, self.region, self.nesting);
        // What is wrong there is no mistake, or rustc's to report.
        self.unreached += 1;
        let value = lower(self).ok().map(|value| self.named(value));
        let formats = value.map(|value| self.formats_of(&value));
        self.unreached -= 1;
        // But functions of other modules are looked up for it.
        let of_names: Vec<_> = self.errors.drain(errors..).filter(|error| error.missing.is_some()).collect();
        self.errors.extend(of_names);
        self.folded.truncate(folded);
        self.bounds.truncate(bounds);
        (self.messages, self.region, self.nesting) = (messages, region, nesting);
        (self.declared, self.singles, self.called) = (declared, singles, called);
        (self.kernel, self.scopes, self.frames) = (kernel, scopes, frames);
        formats
    }
}
