//! `cargo xtask docs`: writes the pages that are made from the op tables, `docs/ir.md` and `docs/ops.md`. With
//! `--check` it writes nothing and fails where a page isn't what it would write. What the pages say is decided in
//! `tile_ir::reference`; what is refused, by the front end.

use crate::ops_page;
use crate::steps::root;
use std::fs;
use std::path::PathBuf;
use tile_ir::reference::ir_page;

fn pages() -> Result<[(PathBuf, String); 2], String> {
    Ok([(root().join("docs/ir.md"), ir_page()), (root().join("docs/ops.md"), ops_page::page()?)])
}

/// Writes the pages.
pub(crate) fn write() -> Result<(), String> {
    for (path, text) in pages()? {
        fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))?;
        println!("✓ {}", path.display());
    }
    Ok(())
}

/// Fails where a page is missing or stale.
pub(crate) fn check() -> Result<(), String> {
    let pages = pages()?;
    let stale = pages.iter().filter(|(path, text)| fs::read_to_string(path).ok().as_ref() != Some(text));
    let names: Vec<String> = stale.map(|(path, _)| path.display().to_string()).collect();
    if names.is_empty() {
        println!("✓ all {} pages made from the op tables are current", pages.len());
        return Ok(());
    }
    Err(format!("these pages are stale; run `cargo xtask docs`:\n{}", names.join("\n")))
}
