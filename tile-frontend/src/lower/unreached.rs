//! What is known not to run: an arm that doesn't fit, what an exit leaves out, the body of a loop without turns. Nothing of it
//! gets into the kernel, and it is exempt from checks. But rustc sees it as it sees everything else, so it is lowered for what
//! must be rewritten there, and for what it says of the types of variables.

use super::{Lowered, Lowering};
use crate::rewrite::place;
use crate::span::Span;
use crate::value::Val;

impl Lowering {
    /// Notes that what stands at a place is lowered as a part of the kernel.
    pub(super) fn reached(&mut self, at: Span) {
        if self.in_own_text() {
            self.seen.insert(place(at.start()));
        }
    }

    /// Lowers what isn't reached, and leaves the kernel as it was.
    pub(super) fn unreached(&mut self, at: Span, lower: impl FnOnce(&mut Self) -> Lowered<Val>) {
        // Once is enough for rustc, which sees an unrolled loop's body once, too.
        if self.in_own_text() && !self.seen.insert(place(at.start())) {
            return;
        }
        let (kernel, scopes, frames) = (self.kernel.clone(), self.scopes.clone(), self.frames.clone());
        let (declared, singles, called) = (self.declared.clone(), self.singles.clone(), self.called.clone());
        let (folded, bounds, errors) = (self.folded.len(), self.bounds.len(), self.errors.len());
        let (messages, region, nesting) = (self.messages, self.region, self.nesting);
        // What is wrong there is no mistake, or rustc's to report.
        let _ = lower(self);
        // But functions of other modules are looked up for it.
        let of_names: Vec<_> = self.errors.drain(errors..).filter(|error| error.missing.is_some()).collect();
        self.errors.extend(of_names);
        self.folded.truncate(folded);
        self.bounds.truncate(bounds);
        (self.messages, self.region, self.nesting) = (messages, region, nesting);
        (self.declared, self.singles, self.called) = (declared, singles, called);
        (self.kernel, self.scopes, self.frames) = (kernel, scopes, frames);
    }
}
