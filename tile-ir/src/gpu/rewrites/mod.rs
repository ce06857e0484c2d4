//! Steps of the schedule that change the kernel itself, from IR to IR: the formats in which products multiply, and what
//! scales them ([`scaled`], [`narrow`], [`widen`], [`promote`]), where tiles come from ([`stacks`]) and what they are ([`single`]), and the turns of
//! loops ([`persistent`], [`masks`], [`ahead`]).

pub(super) mod ahead;
pub(super) mod masks;
pub(super) mod narrow;
pub(super) mod persistent;
pub(super) mod promote;
pub(super) mod scaled;
pub(super) mod single;
pub(super) mod stacks;
pub(super) mod widen;
