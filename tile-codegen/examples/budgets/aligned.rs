//! The code of an instance that launches on aligned rows run.

use tile_ir::{Instance, Variant};

/// What launches on aligned rows take of an instance, by name: the code of aligned rows, and that whose blocks are pairs
/// where there is one.
pub(crate) fn on_aligned_rows(instance: &Instance) -> impl Iterator<Item = (&'static str, Instance)> {
    let aligned = Variant::Aligned.of(instance).unwrap_or_else(|| instance.clone());
    let paired = Variant::Paired.of(instance).map(|paired| (Variant::Paired.name(), paired));
    std::iter::once((Variant::Aligned.name(), aligned)).chain(paired)
}
