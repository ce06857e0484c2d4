//! What was compiled last: a test that runs a kernel on several arguments compiles it once for each target.
//!
//! Knows nothing of kernels. A test has a thread of its own, and what is kept in a `thread_local!` ends with it.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

/// More than the targets that any test goes through for one kernel.
const KEPT: usize = 16;

/// Values by the text of what they were made of, the one used last at the end.
pub(crate) struct Recent<T>(RefCell<VecDeque<(String, Rc<T>)>>);

impl<T> Recent<T> {
    pub(crate) const fn new() -> Recent<T> {
        Recent(RefCell::new(VecDeque::new()))
    }

    /// The value that was made of this, or a new one.
    pub(crate) fn get(&self, of: String, make: impl FnOnce() -> T) -> Rc<T> {
        let known = {
            let mut kept = self.0.borrow_mut();
            let place = kept.iter().position(|(made_of, _)| *made_of == of);
            place.and_then(|place| kept.remove(place))
        };
        let (of, value) = known.unwrap_or_else(|| (of, Rc::new(make())));
        let mut kept = self.0.borrow_mut();
        kept.push_back((of, Rc::clone(&value)));
        if kept.len() > KEPT {
            kept.pop_front();
        }
        value
    }
}
