//! How elements get from the threads that have them to those that want them: what each op exchanges ([`movement`],
//! [`reduction`], [`sorting`], [`ways`]), through which shared memory ([`swizzled`], [`scratch`]), and where threads wait for
//! each other ([`barriers`], [`orders`]).

pub(super) mod barriers;
pub(super) mod movement;
pub(super) mod orders;
pub(super) mod reduction;
pub(super) mod scratch;
pub(super) mod sorting;
pub(super) mod swizzled;
pub(super) mod uniform;
pub(super) mod ways;
