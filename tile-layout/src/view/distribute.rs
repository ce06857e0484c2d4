//! placeholder
pub struct Threads;
