//! `cargo xtask gallery`: the pictures of layouts in `docs/gallery`, and the page that shows them. What the pictures show
//! is decided in `tile_layout::picture`.

use crate::generated::Generated;
use crate::steps::root;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use tile_layout::picture::{Colour, Exhibit, gallery};

/// The exhibits that the page shows as they look in a terminal too.
const IN_TERMINAL: [&str; 3] = ["hierarchical", "banks-swizzled", "view-padded-flipped"];

const INTRODUCTION: &str = "\
# Gallery

What layouts look like. Every picture is made by `tile_layout::picture` from the expression next to it; \
`cargo xtask gallery` writes this page and the pictures, `cargo xtask gallery --check` tells whether they are \
current. Any layout, view or fragment can be drawn the same way: `Picture::layout(&layout)?.to_svg()`, or \
`.to_terminal(Colour::Ansi256)` for a quick look.

These are pictures of layouts. Kernels to look at, which are tested on every device, are [listed in the README](../README.md#a-kernel).
";

/// The page and its pictures.
pub(crate) fn generated() -> Result<Generated, String> {
    let files = files()?;
    let leftovers = leftovers(&files)?;
    Ok(Generated { command: "gallery", files, leftovers })
}

fn page() -> PathBuf {
    root().join("docs/gallery.md")
}

fn pictures() -> PathBuf {
    root().join("docs/gallery")
}

/// All files of the gallery with what they contain.
fn files() -> Result<BTreeMap<PathBuf, String>, String> {
    let exhibits = gallery().map_err(|error| format!("the gallery can't be drawn: {error}"))?;
    let svg =
        |exhibit: &Exhibit| (pictures().join(exhibit.name).with_extension("svg"), exhibit.picture.to_svg());
    let mut files: BTreeMap<PathBuf, String> = exhibits.iter().map(svg).collect();
    let sections: Vec<String> = exhibits.iter().map(section).collect();
    files.insert(page(), format!("{INTRODUCTION}\n{}", sections.join("\n")));
    Ok(files)
}

/// Pictures that no exhibit has any more.
fn leftovers(files: &BTreeMap<PathBuf, String>) -> Result<Vec<PathBuf>, String> {
    let is_picture = |path: &Path| path.extension().is_some_and(|extension| extension == "svg");
    let Ok(entries) = fs::read_dir(pictures()) else { return Ok(Vec::new()) };
    let paths: Result<Vec<PathBuf>, String> =
        entries.map(|entry| entry.map(|entry| entry.path()).map_err(|error| error.to_string())).collect();
    Ok(paths?.into_iter().filter(|path| is_picture(path) && !files.contains_key(path)).collect())
}

/// The part of the page about one exhibit.
fn section(exhibit: &Exhibit) -> String {
    let Exhibit { name, title, caption, expression, picture } = exhibit;
    let mut text =
        format!("## {title}\n\n{caption}\n\n```rust\n{expression}\n```\n\n![{title}](gallery/{name}.svg)\n");
    if IN_TERMINAL.contains(name) {
        text += &format!("\nIn a terminal:\n\n```text\n{}```\n", picture.to_terminal(Colour::Off));
    }
    text
}
