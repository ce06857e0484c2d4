//! Run-time sizes of a run: those that are given, and for the others small ones, so that along every axis one tile is
//! whole and the next one isn't; where the kernel asks for whole tiles, two of them.

use std::collections::{BTreeMap, BTreeSet};
use tile_ir::abi::{Argument, KernelAbi};
use tile_ir::{Instance, Type};

/// The tile of an axis that no view cuts.
const UNCUT: usize = 16;

/// Sizes by name.
pub(crate) type Sizes = BTreeMap<String, usize>;

/// Every size of a kernel.
///
/// # Errors
/// Where a size is given that the kernel doesn't have, and where the sizes don't fit it.
pub(crate) fn choose(instance: &Instance, given: &Sizes) -> Result<Sizes, String> {
    let abi = KernelAbi::of(instance);
    if let Some(unknown) = given.keys().find(|&name| !abi.sizes.contains(name)) {
        return Err(format!("there is no size `{unknown}`, but {}", abi.sizes.join(", ")));
    }
    let tiles = tiles(instance);
    let tile = |name: &String| tiles.get(name).copied().unwrap_or(UNCUT);
    let mut sizes: Sizes = abi.sizes.iter().map(|name| (name.clone(), 2 * tile(name))).collect();
    sizes.extend(given.clone());
    fits(&abi, &sizes).map_err(|problem| format!("{problem}; give other sizes with `--size`"))?;
    for name in abi.sizes.iter().filter(|&name| !given.contains_key(name)) {
        let ragged = tile(name) + tile(name).div_ceil(3);
        let changed = Sizes::from_iter(sizes.clone().into_iter().chain([(name.clone(), ragged)]));
        if fits(&abi, &changed).is_ok() {
            sizes = changed;
        }
    }
    Ok(sizes)
}

/// The shapes of the arguments; a scalar's has no axes.
///
/// # Errors
/// An extent that has no value.
pub(crate) fn shapes(abi: &KernelAbi, sizes: &Sizes) -> Result<Vec<Vec<usize>>, String> {
    let size = |name: &str| sizes.get(name).and_then(|&size| i64::try_from(size).ok());
    let shape = |argument: &Argument| match argument {
        Argument::Scalar { .. } => Ok(Vec::new()),
        Argument::Tensor { name, extents, .. } => extents
            .iter()
            .map(|extent| extent.evaluate(&size).map_err(|error| format!("an extent of `{name}`: {error}")))
            .collect(),
    };
    abi.arguments.iter().map(shape).collect()
}

fn fits(abi: &KernelAbi, sizes: &Sizes) -> Result<(), String> {
    let shapes = shapes(abi, sizes)?;
    let tensors = abi.arguments.iter().zip(&shapes);
    let tensors = tensors.filter(|(argument, _)| matches!(argument, Argument::Tensor { .. }));
    let tensors: Vec<&[usize]> = tensors.map(|(_, shape)| shape.as_slice()).collect();
    abi.bind(&tensors).map(drop).map_err(|error| error.to_string())
}

/// Of each size, the largest extent of the tiles that views cut along its axes.
fn tiles(instance: &Instance) -> Sizes {
    let mut tiles = Sizes::new();
    let views = instance.value_ids().filter_map(|value| match instance.ty(value) {
        Type::Partition(view) => Some(view),
        _ => None,
    });
    for (extent, tile) in views.flat_map(|view| view.tensor.extents.iter().zip(&view.tile)) {
        let tile = tile.as_const().and_then(|tile| usize::try_from(tile).ok());
        let mut names = BTreeSet::new();
        extent.collect_names(&mut BTreeSet::new(), &mut names);
        for name in names {
            let largest = tiles.entry(name).or_default();
            *largest = tile.unwrap_or(UNCUT).max(*largest);
        }
    }
    tiles
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::instances::instances_of;

    fn kernel(attribute: &str) -> Instance {
        let source = format!(
            "#[tile_kernel({attribute})]
fn copy<const B: usize>(x: &Tensor<f32, m, n>, y: &mut Tensor<f32, m, n>) {{
    let x = x.partition_view([1, B]);
    let mut y = y.partition_view_mut([1, B]);
    y.store_masked(x.load_masked(y.index()));
}}
"
        );
        instances_of(&source, "kernels.rs").unwrap().remove(0)
    }

    fn sizes(pairs: &[(&str, usize)]) -> Sizes {
        pairs.iter().map(|&(name, value)| (name.to_owned(), value)).collect()
    }

    #[test]
    fn tiles_are_whole_and_ragged() {
        let found = choose(&kernel("instances(B = 64)"), &Sizes::new());
        assert_eq!(found, Ok(sizes(&[("m", 2), ("n", 86)])));
        let found = choose(&kernel("instances(B = 64)"), &sizes(&[("m", 7)]));
        assert_eq!(found, Ok(sizes(&[("m", 7), ("n", 86)])));
    }

    #[test]
    fn conditions_hold() {
        let aligned = kernel("where(n % B == 0), instances(B = 64)");
        assert_eq!(choose(&aligned, &Sizes::new()), Ok(sizes(&[("m", 2), ("n", 128)])));
        let error = choose(&aligned, &sizes(&[("n", 65)])).unwrap_err();
        assert!(error.contains("n % B == 0") && error.ends_with("give other sizes with `--size`"), "{error}");
        let error = choose(&aligned, &sizes(&[("k", 65)])).unwrap_err();
        assert_eq!(error, "there is no size `k`, but m, n");
    }
}
