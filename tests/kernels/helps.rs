//! What messages offer in place of what isn't of kernels, as they offer it: everything stands in a kernel here, so that
//! it compiles, and what it gives is compared with what the name means that it stands for. A test of the front end reads
//! the messages, and looks here for what they offer.

// What helps offer stands here as they say it; clippy would write some of it otherwise outside of kernels.
#![expect(clippy::unwrap_used, clippy::map_clone)]

mod arrays;
mod elements;
mod loops;
mod movements;
mod schedules;
mod tables;
mod together;
mod views;

use super::{Case, array, numbers, whole, widen};
