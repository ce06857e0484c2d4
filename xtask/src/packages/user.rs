//! A user's crate: the kernel, the build script and the dependencies that README.md shows, and tests of them.

use crate::steps::root;
use std::fs;
use std::path::{Path, PathBuf};

/// The tests that stand below the README's program.
const TESTS: &str = include_str!("user_tests.txt");

/// Writes the crate into a folder. It asks for the packages by their versions, and finds each in its folder as if it had
/// been downloaded.
pub(super) fn write(folder: &Path, packages: &[(&str, PathBuf)]) -> Result<(), String> {
    let readme = read(&root().join("README.md"))?;
    let program = block(&readme, "rust", "use tile::prelude::*;")?;
    let build = block(&readme, "rust", "// build.rs")?;
    let dependencies = block(&readme, "toml", "[dependencies]")?;
    let sources = folder.join("src");
    fs::create_dir_all(&sources).map_err(|error| format!("{}: {error}", sources.display()))?;
    put(&sources.join("main.rs"), &format!("{program}\n{TESTS}"))?;
    // Many packages have a library, too, which cargo links otherwise than a program.
    put(&sources.join("lib.rs"), "//! Nothing that the program names.\n")?;
    put(&folder.join("build.rs"), build)?;
    put(&folder.join("Cargo.toml"), &manifest(dependencies, packages))?;
    // What others published since is no reason to fail.
    put(&folder.join("Cargo.lock"), &read(&root().join("Cargo.lock"))?)
}

fn manifest(dependencies: &str, packages: &[(&str, PathBuf)]) -> String {
    let found: String =
        packages.iter().map(|(name, folder)| format!("{name} = {{ path = {folder:?} }}\n")).collect();
    format!(
        "[package]\nname = \"user\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n{dependencies}\n\
         [patch.crates-io]\n{found}\n[workspace]\n"
    )
}

/// The block of code in a page that begins with a line.
fn block<'page>(page: &'page str, language: &str, first: &str) -> Result<&'page str, String> {
    let fence = format!("```{language}\n");
    let mut blocks = page.split(fence.as_str()).skip(1).filter_map(|rest| rest.split("```").next());
    let found = blocks.find(|block| block.starts_with(first));
    found.ok_or_else(|| format!("README.md has no block of {language} that begins with `{first}`"))
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

fn put(path: &Path, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_found_by_its_first_line() {
        let page = "text\n```toml\n[a]\n```\n\n```rust\nfn a() {}\n```\n```rust\n// b\nfn b() {}\n```\n";
        assert_eq!(block(page, "rust", "// b"), Ok("// b\nfn b() {}\n"));
        assert_eq!(block(page, "toml", "[a]"), Ok("[a]\n"));
        let missing = block(page, "rust", "// c").expect_err("there is none");
        assert_eq!(missing, "README.md has no block of rust that begins with `// c`");
    }
}
