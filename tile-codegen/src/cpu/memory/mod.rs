//! Where elements lie and how they get there and back: tiles in their tensors ([`views`], [`joined`], [`short_rows`],
//! [`gathered`], [`strided`]) and in memory of a block's own ([`scratch`], [`buffer`]); stores ([`stores`], [`streaming`],
//! [`behind`]), those that LLVM 22 would make others of ([`single_lanes`], [`blended`]), and what is asked for before it is
//! needed ([`ahead`], [`prefetch`], [`pieces`]).

pub(super) mod ahead;
pub(super) mod behind;
pub(super) mod blended;
pub(super) mod buffer;
pub(super) mod gathered;
pub(super) mod joined;
pub(super) mod parts;
pub(super) mod pieces;
pub(super) mod prefetch;
mod runs;
pub(super) mod scratch;
pub(super) mod short_rows;
pub(super) mod single_lanes;
pub(super) mod stores;
pub(super) mod streaming;
pub(super) mod strided;
pub(super) mod views;
