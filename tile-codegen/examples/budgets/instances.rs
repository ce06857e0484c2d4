//! The instances of the list: those that the `#[tile_kernel]` functions of files name, and of `kernels.rs`.

use std::error::Error;
use std::fmt::Write;
use tile_ir::{Binding, Instance, specialize};

/// The kernels beside those of the files.
const KERNELS: &str = include_str!("kernels.rs");

/// All of them, those of the files first.
///
/// # Errors
/// Where a file can't be read, or a kernel in it is wrong.
pub(crate) fn all(files: impl IntoIterator<Item = String>) -> Result<Vec<Instance>, Box<dyn Error>> {
    let mut instances = Vec::new();
    for file in files {
        let source = std::fs::read_to_string(&file).map_err(|error| format!("{file}: {error}"))?;
        instances.extend(instances_of(&source, &file)?);
    }
    instances.extend(instances_of(KERNELS, "kernels.rs")?);
    Ok(instances)
}

/// The instances of the kernels at the top of a file.
///
/// # Errors
/// Where a kernel is wrong.
pub(crate) fn instances_of(source: &str, file: &str) -> Result<Vec<Instance>, Box<dyn Error>> {
    let mut instances = Vec::new();
    for item in syn::parse_file(source).map_err(|error| format!("{file}: {error}"))?.items {
        let syn::Item::Fn(mut function) = item else { continue };
        let Some(place) = function.attrs.iter().position(tile_frontend::is_kernel) else { continue };
        let attribute = function.attrs.remove(place);
        let tokens = attribute.meta.require_list().map(|list| list.tokens.clone()).unwrap_or_default();
        let lowered =
            tile_frontend::lower(tokens, function, file).map_err(|errors| format!("{file}: {errors}"))?;
        for bindings in &lowered.instances {
            instances.push(specialize(&lowered.kernel, bindings)?);
        }
    }
    Ok(instances)
}

/// `gemm(T=bf16, BM=128, BN=128, BK=64)`.
pub(crate) fn label(instance: &Instance) -> String {
    let mut label = format!("{}(", instance.name);
    for (i, (name, value)) in instance.bindings().iter().enumerate() {
        let separator = if i > 0 { ", " } else { "" };
        let _ = match value {
            Binding::Const(value) => write!(label, "{separator}{name}={value}"),
            Binding::Bool(value) => write!(label, "{separator}{name}={value}"),
            Binding::Elem(dtype) => write!(label, "{separator}{name}={dtype}"),
        };
    }
    label + ")"
}
