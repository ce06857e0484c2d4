//! The names that kernels know: functions, and methods by kind. What to say of a name that they don't know.

mod foreign;

pub(super) use foreign::{help_of_foreign_type, help_of_value};
pub(crate) use foreign::{help_of_parameter, help_of_type};

use super::ops::folds::Fold;
use super::ops::movement;
use super::tensors::view_movement;
use crate::helpers::is_free;
use foreign::foreign;
use tile_ir::DType;
use tile_ir::ops::{BinaryOp, Leaf, ReduceOp, ScanMode};

/// Functions that are no leaf ops.
const FUNCTIONS: &[&str] =
    &["mma", "mma_tf32", "mma_scaled", "select", "cat", "stack", "block_id", "block_count"];

/// How many names a message lists.
const LISTED: usize = 12;

/// A kind of methods.
type Kind = (&'static str, Vec<String>);

/// The modules of this crate that have the functions of kernels.
const OWN_MODULES: &[&str] = &["tile", "kernel", "prelude"];

/// Macros that Rust has without `use`: nothing else can be found out by calling a function's macro of the name.
const STANDARD_MACROS: &[&str] = &[
    "assert",
    "assert_eq",
    "assert_ne",
    "cfg",
    "column",
    "compile_error",
    "concat",
    "dbg",
    "debug_assert",
    "debug_assert_eq",
    "debug_assert_ne",
    "env",
    "eprint",
    "eprintln",
    "file",
    "format",
    "format_args",
    "include",
    "include_bytes",
    "include_str",
    "line",
    "matches",
    "module_path",
    "option_env",
    "panic",
    "print",
    "println",
    "stringify",
    "thread_local",
    "todo",
    "unimplemented",
    "unreachable",
    "vec",
    "write",
    "writeln",
];

/// The crates of Rust's library.
const STANDARD_CRATES: &[&str] = &["core", "std"];

/// Whether a kernel knows a function by this name.
pub(crate) fn is_function(name: &str) -> bool {
    functions().iter().any(|known| known == name)
}

/// Whether a method or function of this name computes element by element.
pub(super) fn is_of_elements(name: &str) -> bool {
    Leaf::from_name(name).is_some()
}

/// Methods of scalars that no row of the op tables names, and how many arguments they have.
const OF_SCALARS: [(&str, usize); 10] = [
    ("clamp", 2),
    ("ln", 0),
    ("mul_add", 2),
    ("overflowing_add", 1),
    ("overflowing_mul", 1),
    ("overflowing_sub", 1),
    ("pow", 1),
    ("powi", 1),
    ("wrapping_abs", 0),
    ("wrapping_neg", 0),
];

/// Whether a method of a scalar isn't the one that Rust has, if it has one.
pub(crate) fn is_other_than_rusts(name: &str, arguments: usize) -> bool {
    let leaf = Leaf::from_name(name).filter(|leaf| leaf.is_function() && !matches!(leaf, Leaf::Compare(_)));
    leaf.is_some_and(|leaf| leaf.operands() == arguments + 1)
        || BinaryOp::wrapping(name).is_some() && arguments == 1
        || OF_SCALARS.contains(&(name, arguments))
}

/// Whether a path is that of a function that kernels know: its bare name, or its name in a module of this crate.
pub(crate) fn is_known(path: &syn::Path) -> bool {
    let Some(last) = path.segments.last() else { return false };
    let is_own = |owner: &syn::PathSegment| OWN_MODULES.iter().any(|own| owner.ident == own);
    path.segments.iter().nth_back(1).is_none_or(is_own) && is_function(&last.ident.to_string())
}

/// The variants of types of Rust's library that a kernel has no values of.
const OPTIONS: &[&str] = &["Some", "None", "Ok", "Err"];

/// Whether a name is that of a variant of `Option` or `Result`.
pub(super) fn is_of_option(name: &syn::Ident) -> bool {
    OPTIONS.iter().any(|known| name == known)
}

/// Whether a bare name calls a macro of Rust.
pub(super) fn is_standard_macro(path: &syn::Path) -> bool {
    path.get_ident().is_some_and(|name| STANDARD_MACROS.iter().any(|known| name == known))
}

/// Whether a function of another module may be at a path.
pub(crate) fn may_be_elsewhere(path: &syn::Path) -> bool {
    let is_refused = is_foreign(path) || is_standard_macro(path) || is_of_standard_library(path);
    is_free(path) && !is_known(path) && !is_refused
}

/// Whether a path is that of another language's function, `tl::sum`, and one of which is known what it is here. rustc would say
/// of a path whose module isn't there no more than that, so nobody asks for such a function: one that is the author's is
/// called by a longer path, `self::tl::sum`.
pub(super) fn is_foreign(path: &syn::Path) -> bool {
    let names: Vec<String> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
    let [module, name] = &names[..] else { return false };
    let kinds = [tile_methods(), view_methods()];
    foreign::is_foreign_module(module)
        && (foreign(name).is_some() || is_function(name) || kinds.iter().any(|kinds| are_named(kinds, name)))
}

/// Whether a path is of Rust's library, by its crate.
pub(super) fn is_of_standard_library(path: &syn::Path) -> bool {
    let first = path.segments.first().filter(|_| path.segments.len() > 1);
    first.is_some_and(|first| STANDARD_CRATES.iter().any(|known| first.ident == known))
}

fn functions() -> Vec<String> {
    let leaf = Leaf::all().filter(|leaf| leaf.is_function()).map(Leaf::name);
    leaf.chain(FUNCTIONS.iter().copied()).map(ToOwned::to_owned).chain(Fold::functions()).collect()
}

/// The methods of tiles.
fn tile_methods() -> Vec<Kind> {
    let names = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
    let mut reductions: Vec<String> = ReduceOp::ALL.iter().map(|op| op.method().to_owned()).collect();
    reductions.push("mean".to_owned());
    reductions.extend(ReduceOp::ALL.iter().filter_map(|op| op.position_method()).map(ToOwned::to_owned));
    let scans = ReduceOp::ALL.iter().filter_map(|op| op.scan_method());
    let scans =
        scans.flat_map(|stem| ScanMode::ALL.iter().map(move |mode| format!("{stem}{}", mode.suffix())));
    let moving = movement::method_names().chain(["reshape", "broadcast", "permute", "t"]);
    let known = |name: &String| ReduceOp::from_method(name).is_none() && !FUNCTIONS.contains(&name.as_str());
    let mut functions: Vec<String> =
        functions().into_iter().filter(|name| known(name) && Fold::of_function(name).is_none()).collect();
    functions.extend(names(&[
        "clamp",
        "powi",
        "mul_add",
        "overflowing_add",
        "overflowing_sub",
        "overflowing_mul",
        "wrapping_abs",
        "wrapping_neg",
    ]));
    vec![
        ("reductions", reductions),
        ("scans", scans.collect()),
        (
            "sorting",
            names(&["sort", "sort_descending", "argsort", "argsort_descending", "top_k", "histogram"]),
        ),
        ("movements", moving.map(ToOwned::to_owned).collect()),
        (
            "conversions",
            names(&[
                "cast",
                "cast_with",
                "saturating_cast",
                "bitcast",
                "item",
                "pack_f4e2m1",
                "unpack_f4e2m1",
                "lookup",
            ]),
        ),
        ("functions of elements", functions),
    ]
}

/// The methods of tensors.
fn tensor_methods() -> Vec<Kind> {
    let views = [
        "partition_view",
        "partition_view_mut",
        "strided_view",
        "strided_view_mut",
        "atomic_view",
        "gather",
        "gather_or",
        "extent",
    ];
    vec![
        ("views and loads", views.map(ToOwned::to_owned).into()),
        ("movements", view_movement::method_names().map(ToOwned::to_owned).collect()),
    ]
}

/// The methods of partition views.
fn view_methods() -> Vec<Kind> {
    let names = [
        "load",
        "load_masked",
        "load_masked_or",
        "load_unchecked",
        "store",
        "store_masked",
        "prefetch",
        "index",
        "tiles",
        "extent",
        "spanning",
        "at",
        "tiles_persistent",
        "latency",
        "bulk_copy",
    ];
    vec![("methods of views", names.map(ToOwned::to_owned).into())]
}

/// Whether tiles or partition views have a method of this name: what may be bound with `mut`.
pub(crate) fn is_method_of_variables(name: &str) -> bool {
    let kinds = [tile_methods(), view_methods()];
    kinds.iter().any(|kinds| are_named(kinds, name))
}

/// Whether a method of these kinds has the name.
fn are_named(kinds: &[Kind], name: &str) -> bool {
    kinds.iter().any(|(_, names)| names.iter().any(|known| known == name))
}

/// What to write instead of a method that tiles don't have.
pub(super) fn help_of_tile(name: &str) -> String {
    help(name, &tile_methods(), "tile::kernel::Tile")
}

/// What to write instead of a method that scalars don't have.
pub(super) fn help_of_scalar(name: &str) -> String {
    let default =
        "scalars have operators, `as`, and the functions of `tile::prelude`: `abs`, `sqrt`, `exp`, …";
    match (name, foreign(name)) {
        ("item", _) => "this is a scalar already; leave the call out".to_owned(),
        ("cast", _) => "scalars are converted with `as`".to_owned(),
        (_, Some(known)) => known.to_owned(),
        _ => match nearest(name, &functions()).first() {
            Some(near) => format!("did you mean `{near}`? {default}"),
            None => default.to_owned(),
        },
    }
}

/// What to write instead of a method that tensors don't have.
pub(super) fn help_of_tensor(name: &str) -> String {
    help(name, &tensor_methods(), "tile::kernel::TensorView")
}

/// What to write instead of a method that partition views don't have.
pub(super) fn help_of_view(name: &str) -> String {
    if are_named(&tensor_methods(), name) {
        return format!(
            "`{name}` is a method of tensors: call it before the tensor is cut, or give the view a name of its own, `let tiles = x.partition_view([…]);`"
        );
    }
    help(name, &view_methods(), "tile::kernel::PartitionView")
}

/// What to write instead of a method that tiles of views don't have.
pub(super) fn help_of_view_tile(name: &str) -> String {
    let names = ["load", "load_masked", "load_masked_or", "store", "store_masked", "prefetch", "index"];
    help(
        name,
        &[("methods of tiles of views", names.map(ToOwned::to_owned).into())],
        "tile::kernel::ViewTileMut",
    )
}

/// What to write instead of a field of something that has none.
pub(super) fn help_of_field(name: &str) -> &'static str {
    foreign(name).unwrap_or("tuples have fields `.0`, `.1`, …, and structs their own")
}

/// What to write instead of a function of Rust's library, of this module or type.
pub(super) fn help_of_standard(owner: &str, name: &str) -> String {
    let is_number = DType::from_rust_name(owner).is_some();
    match name {
        "default" if is_number => format!("write the number, `0` or `0.0`: `let x: {owner} = …;`"),
        "swap" if owner == "mem" => "write `(a, b) = (b, a)`".to_owned(),
        "replace" | "take" if owner == "mem" => "write `let old = x; x = …;`: values are copied".to_owned(),
        "drop" | "forget" if owner == "mem" => {
            "values of kernels are `Copy`, and nothing is to be freed; leave the call out".to_owned()
        }
        "from_fn" if owner == "array" => {
            "write `[0, 1, 2].map(|i| …)`, or `[x; 3]` and a loop over its length".to_owned()
        }
        "powi" | "clamp" | "mul_add" | "ln" | "to_bits" if is_number => {
            format!("write it as a method: `x.{name}(…)`")
        }
        "from" if is_number => format!("write `x as {owner}` of a scalar, `x.cast::<{owner}>()` of a tile"),
        "from_f32" | "from_f64" if is_number => {
            format!("write `{owner}::of(2.0)` of a literal, `x as {owner}` of a scalar")
        }
        "min" | "max" if matches!(owner, "cmp" | "usize") => {
            format!("write `{name}(a, b)`, and of `usize` in a `#[tile_fn]` `a.{name}(b)`")
        }
        name => help_of_known(name),
    }
}

/// What to write instead of a function of another library, where kernels have one of this name or near it.
pub(super) fn help_of_known(name: &str) -> String {
    if is_function(name) {
        return format!("write `{}`", usage(name));
    }
    help_of_function(name).unwrap_or_else(|| "kernels call the functions of `tile::prelude`".to_owned())
}

/// How a function of kernels is called.
fn usage(name: &str) -> String {
    let arguments = match Leaf::from_name(name).map(Leaf::operands) {
        Some(1) => "x",
        Some(_) => "a, b",
        None => "…",
    };
    format!("{name}({arguments})")
}

/// What to write instead of a function that kernels don't have; `None` where nothing is near.
pub(super) fn help_of_function(name: &str) -> Option<String> {
    if let Some(known) = foreign(name) {
        return Some(known.to_owned());
    }
    for (kinds, of) in [(tile_methods(), "tiles"), (view_methods(), "partition views")] {
        if are_named(&kinds, name) {
            return Some(format!("it is a method of {of}: `x.{name}(…)`"));
        }
    }
    let all = functions();
    let near = nearest(name, &all);
    (!near.is_empty()).then(|| format!("did you mean {}?", listed(&near, "or")))
}

fn help(name: &str, kinds: &[Kind], table: &str) -> String {
    if let Some(known) = foreign(name) {
        return known.to_owned();
    }
    let all: Vec<String> = kinds.iter().flat_map(|(_, names)| names.clone()).collect();
    let near = nearest(name, &all);
    let table = format!("all are in the documentation of `{table}`");
    let Some(best) = near.first() else {
        let each = if kinds.len() == 1 { LISTED } else { 4 };
        let kinds: Vec<String> =
            kinds.iter().map(|(kind, names)| format!("{kind} ({})", some_of(names, each))).collect();
        return format!("there are {}; {table}", kinds.join(", "));
    };
    let kind = kinds.iter().find(|(_, names)| names.contains(best)).expect("a near name is of a kind");
    format!(
        "did you mean {}? There are {} ({}); {table}",
        listed(&near, "or"),
        kind.0,
        some_of(&kind.1, LISTED)
    )
}

/// The names that are a slip of the keyboard away, or go on where this one ends, the nearest first.
fn nearest(name: &str, all: &[String]) -> Vec<String> {
    let allowed = (name.len() / 3).clamp(1, 3);
    let distance = |known: &String| match (name.len(), known.starts_with(name)) {
        // Of two letters every name of two is near.
        (2 | 4.., true) => 1,
        (..=2, false) => usize::MAX,
        _ => strsim::damerau_levenshtein(name, known),
    };
    let mut near: Vec<(usize, &String)> = all
        .iter()
        .map(|known| (distance(known), known))
        .filter(|(distance, _)| *distance <= allowed)
        .collect();
    near.sort();
    near.dedup();
    near.into_iter().take(3).map(|(_, known)| known.clone()).collect()
}

fn some_of(names: &[String], count: usize) -> String {
    let more = if names.len() > count { ", …" } else { "" };
    let names: Vec<String> = names.iter().take(count).map(|name| format!("`{name}`")).collect();
    format!("{}{more}", names.join(", "))
}

fn listed(names: &[String], joining: &str) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    match quoted.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} {joining} {last}", rest.join(", ")),
        _ => quoted.concat(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_find_their_names() {
        for (slip, name) in [
            ("sumn", "sum"),
            ("cumsun", "cumsum"),
            ("reshpae", "reshape"),
            ("sqr_t", "sqrt"),
            ("argso", "argsort"),
            ("sq", "sqrt"),
        ] {
            assert!(
                help_of_tile(slip).starts_with(&format!("did you mean `{name}`")),
                "{}",
                help_of_tile(slip)
            );
        }
        assert_eq!(help_of_function("expp").as_deref(), Some("did you mean `exp` or `exp2`?"));
        assert_eq!(help_of_function("frobnicate"), None);
    }

    #[test]
    fn scalars_are_converted_with_as() {
        for (name, ..) in foreign::FOREIGN {
            let help = help_of_scalar(name);
            assert!(!help.contains(".cast::<") || help.contains(" as "), "{name}: {help}");
        }
    }

    #[test]
    fn every_message_is_short_and_names_the_table() {
        for help in [help_of_tile("frobnicate"), help_of_tensor("frobnicate"), help_of_view("lod")] {
            assert!(help.len() < 500 && help.contains("documentation of `tile::kernel"), "{help}");
        }
    }

    #[test]
    fn foreign_names_are_unknown_here() {
        for (name, ..) in foreign::FOREIGN {
            let known = are_named(&tile_methods(), name);
            let row = "take its row from `FOREIGN`, and what that offered from `tests/kernels/helps`";
            assert!(!known && !is_function(name), "kernels have `{name}` themselves: {row}");
        }
        assert!(foreign::FOREIGN.is_sorted_by_key(|(name, ..)| name));
        assert!(STANDARD_MACROS.is_sorted());
    }
}
