//! Tensors and their views: how they are cut, moved and indexed, and what loads, stores, gathers and updates their elements.

pub(super) mod atomics;
pub(super) mod gather;
pub(super) mod hints;
pub(super) mod spanning;
pub(super) mod unwritten;
pub(super) mod view_movement;
pub(super) mod views;
pub(super) mod windows;
