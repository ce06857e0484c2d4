//! GPU targets.
use crate::{Artifact, Error, Options};
use tile_ir::{Instance, TargetDesc};
pub(crate) fn compile(
    instance: &Instance,
    target: &TargetDesc,
    options: &Options,
) -> Result<Artifact, Error> {
    let _ = (instance, options);
    Err(Error::Host(format!("{target} is not available")))
}
