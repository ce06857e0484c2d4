//! `docs/ops.md`: the rows of the op tables, then every other op with its rule, its uses and what is refused.

use crate::uses::{GROUPS, Group, Shell};
use std::fmt::Write;
use tile_frontend::Lowered;
use tile_ir::DType;
use tile_ir::ops::documented::Kind;
use tile_ir::ops::infer::mma_accumulators;
use tile_ir::ops::{Movement, Op};
use tile_ir::pages::{ops_page, rule};
use tile_ir::target::TARGETS;
use tile_ir::view::TensorMovement;

/// The whole page.
///
/// # Errors
/// The use that isn't what it is listed as.
pub(crate) fn page() -> Result<String, String> {
    let mut page = ops_page();
    for group in GROUPS {
        page += &section(group)?;
        if group.right.iter().any(|(op, _)| *op == "mma") {
            page += &products();
        }
    }
    page += &targets();
    Ok(page)
}

fn section(group: &Group) -> Result<String, String> {
    let mut text = format!("\n## {}\n\n", group.title);
    if group.shell == Shell::Atomics {
        text += "`counts` is an atomic view of i32 with one axis, `i` a tile of i32.\n\n";
    }
    if group.shell == Shell::Persistent {
        text += "`own` is the output in tiles `[4, 8]` of f32, `x` such a tile.\n\n";
    }
    text += "| op | in a kernel | rule |\n|---|---|---|\n";
    for (op, usage) in group.right {
        let lowered = lower(group.shell, usage)?.map_err(|message| format!("`{usage}`: {message}"))?;
        if !names(&lowered).iter().any(|name| name == op) {
            return Err(format!("`{usage}` has no `{op}`:\n{}", lowered.kernel));
        }
        let rule = rule_of(op).ok_or_else(|| format!("no op is called `{op}`"))?;
        let _ = writeln!(text, "| `{op}` | `{}` | {} |", escaped(usage), escaped(&rule));
    }
    text += "\n| refused | |\n|---|---|\n";
    for usage in group.wrong {
        let Err(message) = lower(group.shell, usage)? else {
            return Err(format!("`{usage}` is listed as wrong, but a kernel may contain it"));
        };
        let _ = writeln!(text, "| `{}` | {} |", escaped(usage), escaped(&message));
    }
    Ok(text)
}

/// A vertical bar ends a cell.
fn escaped(text: &str) -> String {
    text.replace('|', "\\|")
}

/// The kernel with a use in it, or what is said of its first mistake.
fn lower(shell: Shell, usage: &str) -> Result<Result<Lowered, String>, String> {
    let (attribute, kernel) = shell.kernel(usage);
    let no_rust = |error: &dyn std::fmt::Display| format!("`{usage}` isn't Rust: {error}");
    let function = syn::parse_str(&kernel).map_err(|error| no_rust(&error))?;
    let attribute = attribute.parse().map_err(|error| no_rust(&error))?;
    Ok(tile_frontend::lower(attribute, function, "example.rs").map_err(|errors| {
        let first = errors.iter().next().expect("a kernel that is refused has a mistake");
        first.help.as_ref().map_or(first.message.clone(), |help| format!("{}; {help}", first.message))
    }))
}

/// The ops of a kernel, and what its views are.
fn names(lowered: &Lowered) -> Vec<String> {
    let kernel = &lowered.kernel;
    let named = kernel.walk().into_iter().flat_map(|op| {
        let op = &kernel.op(op).op;
        let moved =
            if let Op::View(movement) = op { Some(format!("view {}", movement.kind())) } else { None };
        [Some(op.name().to_owned()), moved]
    });
    named.flatten().collect()
}

/// Names of the tables that this page lists otherwise: leaf ops by row, movements by kind.
const TABLES: &[&str] = &["unary", "binary", "compare", "classify", "movement"];

/// Every op that isn't a row of the first tables, with its documentation.
fn kinds() -> impl Iterator<Item = (String, &'static Kind)> {
    let ops = Op::KINDS.iter().filter(|kind| !TABLES.contains(&kind.name)).chain(Movement::KINDS);
    let ops = ops.map(|kind| (kind.name.to_owned(), kind));
    ops.chain(TensorMovement::KINDS.iter().map(|kind| (format!("view {}", kind.name), kind)))
}

fn rule_of(name: &str) -> Option<String> {
    let kind = kinds().find(|(kind, _)| kind == name).map(|(_, kind)| rule(kind));
    // The other mode of `scatter`.
    kind.or_else(|| {
        (name == "scatter_add").then(|| String::from("As `scatter`, but values are added, in order."))
    })
}

/// The formats that `mma` multiplies.
fn products() -> String {
    let mut text = String::from("\n| factors of `mma` | accumulators |\n|---|---|\n");
    for &left in DType::ALL {
        for &right in DType::ALL {
            let totals = mma_accumulators(left, right);
            if !totals.is_empty() {
                let names: Vec<&str> = totals.iter().map(|total| total.name()).collect();
                let _ = writeln!(text, "| {left} · {right} | {} |", names.join(", "));
            }
        }
    }
    text
}

fn targets() -> String {
    let mut text = String::from(
        "\n## Targets\n\nEvery op works on every target; prefetches do nothing where a target has no instruction for them. A kernel is refused where a block needs more shared memory \
         than the target has, or a tile more registers than a block's threads; the error names the kernel, the line, \
         what is needed and what there is.\n\n| target | shared memory of a block | threads of a block |\n|---|---|---|\n",
    );
    for target in TARGETS {
        let shared = match target.shared_bytes {
            0 => String::from("tiles are in memory"),
            bytes => format!("{} KiB", bytes / 1024),
        };
        let _ = writeln!(text, "| `{}` | {shared} | {} |", target.name, target.max_threads);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_use_is_what_it_is_listed_as() {
        page().unwrap();
    }

    /// Ops that schedules add and no kernel has.
    const SCHEDULED: &[&str] = &["convert_layout", "mma_scaled"];

    #[test]
    fn every_op_has_a_use() {
        let listed: Vec<&str> = GROUPS.iter().flat_map(|group| group.right).map(|(op, _)| *op).collect();
        let is_missing = |name: &String| ![&listed, SCHEDULED].concat().contains(&name.as_str());
        let missing: Vec<String> = kinds().map(|(name, _)| name).filter(is_missing).collect();
        assert_eq!(missing, [""; 0]);
    }
}
