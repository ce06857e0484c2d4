//! `cargo xtask docs`: the pages that are made from the op tables, `docs/ir.md` and `docs/ops.md`. What they say is
//! decided in `tile_ir::pages`; what is refused, by the front end.

use crate::generated::Generated;
use crate::ops_page;
use crate::steps::root;
use std::collections::BTreeMap;
use tile_ir::pages::ir_page;

/// The pages.
pub(crate) fn generated() -> Result<Generated, String> {
    let (ir, ops) = (root().join("docs/ir.md"), root().join("docs/ops.md"));
    let files = BTreeMap::from([(ir, ir_page()), (ops, ops_page::page()?)]);
    Ok(Generated { command: "docs", files, leftovers: Vec::new() })
}
