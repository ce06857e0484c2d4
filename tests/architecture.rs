//! The rules that keep the crates apart, as tests. A failure names the rule's reason: change the code, or
//! the rule and its reason together.

use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Crate, the workspace crates that it may depend on, and why no other.
const MAY_DEPEND_ON: &[(&str, &[&str], &str)] = &[
    ("tile-layout", &[], "layouts are pure functions on extents"),
    ("tile-ir", &["tile-layout"], "the IR knows neither Rust syntax nor a target"),
    (
        "tile-frontend",
        &["tile-ir", "tile-layout"],
        "the front end is target-free: `cargo check` never needs LLVM",
    ),
    (
        "tile-macros",
        &["tile-frontend"],
        "a macro is a thin shell, and one that links LLVM would bind to rustc's own",
    ),
    (
        "tile-codegen",
        &["tile-frontend", "tile-ir", "tile-layout"],
        "code generation is data in, data out; its build helper scans sources with the front end",
    ),
    (
        "tile-runtime",
        &["tile-ir", "tile-layout", "tile-codegen"],
        "the runtime sees code generation only through feature `jit`",
    ),
    (
        "tile",
        &["tile-macros", "tile-runtime", "tile-ir", "tile-layout"],
        "the root crate joins macro and runtime; LLVM comes in only through the runtime's feature `jit`",
    ),
];

/// Dependencies that exist only behind a feature.
const OPTIONAL: &[(&str, &str)] = &[("tile-runtime", "tile-codegen")];

/// The one crate that may name LLVM's bindings.
const LINKS_LLVM: &str = "tile-codegen";

/// Files longer than this are listed, to be talked about.
const LONG_FILE: usize = 600;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// What cargo says of the workspace's packages.
fn metadata() -> Value {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .current_dir(root())
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("cargo metadata is JSON")
}

fn text(value: &Value) -> String {
    value.as_str().expect("a string").to_owned()
}

fn list(value: &Value) -> Vec<Value> {
    value.as_array().expect("a list").clone()
}

/// Package name → its normal and build dependencies (name, optional).
fn dependencies() -> BTreeMap<String, Vec<(String, bool)>> {
    list(&metadata()["packages"])
        .iter()
        .map(|package| {
            let used = list(&package["dependencies"])
                .iter()
                .filter(|dependency| dependency["kind"] != "dev")
                .map(|dependency| (text(&dependency["name"]), dependency["optional"] == true))
                .collect();
            (text(&package["name"]), used)
        })
        .collect()
}

#[test]
fn crates_depend_downward_only() {
    let dependencies = dependencies();
    let mut broken = Vec::new();
    for (name, allowed, reason) in MAY_DEPEND_ON {
        for (used, optional) in &dependencies[*name] {
            let inside = MAY_DEPEND_ON.iter().any(|(known, ..)| known == used);
            if inside && !allowed.contains(&used.as_str()) {
                broken.push(format!("{name} depends on {used}, but {reason}"));
            }
            if OPTIONAL.contains(&(name, used)) && !optional {
                broken.push(format!("{name} depends on {used} without a feature, but {reason}"));
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

/// A registry knows no paths: what is published finds the other packages by their versions.
#[test]
fn packages_say_which_version_of_each_other_they_need() {
    let published = |name: &str| MAY_DEPEND_ON.iter().any(|(known, ..)| *known == name);
    let mut found = 0;
    for package in list(&metadata()["packages"]).iter().filter(|package| published(&text(&package["name"]))) {
        for used in list(&package["dependencies"]).iter().filter(|used| published(&text(&used["name"]))) {
            let (from, to) = (text(&package["name"]), text(&used["name"]));
            assert_ne!(used["req"], "*", "{from} needs a version of {to} in [workspace.dependencies]");
            assert_eq!(text(&used["req"]), format!("^{}", text(&package["version"])), "{from} on {to}");
            found += 1;
        }
    }
    assert!(found > MAY_DEPEND_ON.len(), "{found} dependencies");
}

#[test]
fn only_code_generation_names_llvm() {
    let users: Vec<_> = dependencies()
        .into_iter()
        .filter(|(name, used)| {
            name != LINKS_LLVM && used.iter().any(|(used, _)| used == "inkwell" || used == "llvm-sys")
        })
        .map(|(name, _)| name)
        .collect();
    assert!(users.is_empty(), "{users:?} depend on LLVM's bindings; only {LINKS_LLVM} may");
    for (path, text) in sources() {
        let inside = path.starts_with(LINKS_LLVM) || path == Path::new("tests/architecture.rs");
        assert!(inside || !text.contains("inkwell::"), "{} uses inkwell", path.display());
    }
}

/// Every `.rs` file of the workspace, relative to its root, with its text.
fn sources() -> Vec<(PathBuf, String)> {
    files("rs")
}

/// Every file of the workspace with this extension, relative to its root, with its text.
fn files(wanted: &str) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    let mut folders = vec![root().to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder)
            .expect("a folder of the workspace")
            .map(|entry| entry.expect("an entry"))
        {
            let path = entry.path();
            let name = entry.file_name().to_string_lossy().into_owned();
            if path.is_dir() {
                // Cargo's, beside a manifest; `src/target` is code.
                let built = name == "target" && folder.join("Cargo.toml").exists();
                if !built && !name.starts_with('.') {
                    folders.push(path);
                }
            } else if path.extension().is_some_and(|extension| extension == wanted) {
                let text = std::fs::read_to_string(&path).expect("a file of the workspace is UTF-8");
                found.push((path.strip_prefix(root()).expect("a path under the root").to_owned(), text));
            }
        }
    }
    found.sort();
    found
}

#[test]
fn every_file_says_what_it_is() {
    let silent: Vec<_> =
        sources().into_iter().filter(|(_, text)| !text.starts_with("//!")).map(|(path, _)| path).collect();
    assert!(silent.is_empty(), "files without a `//!` header: {silent:?}");
}

/// The layout library is used by itself: each of its public items shows how, in an example that runs.
#[test]
fn every_public_layout_item_has_an_example() {
    let mut bare = Vec::new();
    for (path, text) in sources().into_iter().filter(|(path, _)| path.starts_with("tile-layout/src")) {
        let mut documentation = Vec::new();
        for (number, line) in text.lines().map(str::trim).enumerate() {
            let item = ["fn", "const fn", "struct", "enum", "trait", "const", "type"].iter().any(|kind| {
                line.strip_prefix("pub ").is_some_and(|rest| rest.starts_with(&format!("{kind} ")))
            });
            if item && !documentation.iter().any(|line: &&str| line.starts_with("/// ```")) {
                bare.push(format!("{}:{}: {line}", path.display(), number + 1));
            }
            if line.starts_with("///") || line.starts_with("#[") {
                documentation.push(line);
            } else {
                documentation.clear();
            }
        }
    }
    assert!(bare.is_empty(), "public items without an example:\n{}", bare.join("\n"));
}

/// The name by which a link to a heading ends, as GitHub makes it.
fn anchor(heading: &str) -> String {
    heading
        .chars()
        .filter(|character| character.is_alphanumeric() || matches!(character, ' ' | '-' | '_'))
        .map(|character| if character == ' ' { '-' } else { character.to_ascii_lowercase() })
        .collect()
}

/// The lines of a page outside of its code blocks.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    text.lines()
        .scan(false, |in_code, line| {
            let fence = line.trim_start().starts_with("```");
            *in_code ^= fence;
            Some((*in_code || fence, line))
        })
        .filter_map(|(code, line)| (!code).then_some(line))
}

/// A page that moves, or a decision that gets another name, takes its links along.
#[test]
fn links_between_pages_lead_somewhere() {
    let pages: BTreeMap<PathBuf, String> = files("md").into_iter().collect();
    let anchors: BTreeMap<&Path, Vec<String>> = pages
        .iter()
        .map(|(path, text)| {
            let headings = prose(text).filter(|line| line.starts_with('#'));
            let anchors = headings.map(|line| anchor(line.trim_start_matches('#').trim_start())).collect();
            (path.as_path(), anchors)
        })
        .collect();
    let mut broken = Vec::new();
    for (page, text) in &pages {
        let links =
            prose(text).flat_map(|line| line.split("](").skip(1)).filter_map(|rest| rest.split(')').next());
        let within = |link: &&str| link.contains('#') || link.contains(".md") || link.contains('/');
        for link in links.filter(|link| !link.contains("://")).filter(within) {
            let (file, heading) = link.split_once('#').unwrap_or((link, ""));
            let target = if file.is_empty() {
                page.clone()
            } else {
                let path = root().join(page.parent().expect("a file has a folder")).join(file);
                let Ok(path) = path.canonicalize() else {
                    broken.push(format!("{}: {link}: no such file", page.display()));
                    continue;
                };
                path.strip_prefix(root()).expect("a link within the workspace").to_owned()
            };
            let known = anchors.get(target.as_path());
            if !heading.is_empty() && known.is_some_and(|known| !known.iter().any(|known| known == heading)) {
                broken.push(format!("{}: {link}: no such heading", page.display()));
            }
        }
    }
    assert!(broken.is_empty(), "links that lead nowhere:\n{}", broken.join("\n"));
}

/// What the environment may say of a program stands in one table.
#[test]
fn every_environment_variable_is_documented() {
    let page = std::fs::read_to_string(root().join("docs/launches.md")).expect("the page");
    let is_read = |path: &Path| {
        path.starts_with("tile-runtime/src") && !path.starts_with("tile-runtime/src/gpu/stand_in")
    };
    let mut missing = Vec::new();
    for (path, text) in sources().into_iter().filter(|(path, _)| is_read(path)) {
        let names = text.split("\"TILE_").skip(1).filter_map(|rest| rest.split_once('"'));
        // A message that begins with one is no name.
        let is_name = |name: &str| name.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_');
        for name in names.filter(|(name, _)| is_name(name)).map(|(name, _)| format!("TILE_{name}")) {
            if !page.contains(&format!("`{name}`")) {
                missing.push(format!("{}: {name}", path.display()));
            }
        }
    }
    assert!(missing.is_empty(), "docs/launches.md doesn't name {missing:?}");
}

/// What isn't from launches, among the variants of the runtime's error: of tensors and views, files and other libraries. An
/// `InLaunch` has one of the others in it.
const NOT_FROM_LAUNCHES: &[&str] = &[
    "InLaunch",
    "ElementCount",
    "TooLarge",
    "Layout",
    "SharedElements",
    "Slice",
    "ShapeMismatch",
    "Sequence",
    "File",
    "Dlpack",
    "Address",
    "Unsupported",
];

/// Who matches on a launch's error finds each variant in the page's table, with its message and the remedy.
#[test]
fn every_error_of_a_launch_is_explained() {
    let read = |path: &str| std::fs::read_to_string(root().join(path)).expect("a file of the workspace");
    let source = read("tile-runtime/src/error.rs");
    let (_, body) = source.split_once("pub enum Error {").expect("the enum");
    let (body, _) = body.split_once("\n}").expect("its end");
    let variants: Vec<&str> = body
        .lines()
        .filter_map(|line| line.strip_prefix("    "))
        .filter(|line| line.starts_with(|first: char| first.is_ascii_uppercase()))
        .filter_map(|line| line.split([' ', '(', ',']).next())
        .collect();
    assert!(variants.contains(&"Arguments") && variants.contains(&"Driver"), "{variants:?}");
    let page = read("docs/getting-started.md");
    let (_, section) = page.split_once("## What the errors mean").expect("the section");
    let (section, _) = section.split_once("\n## ").expect("the next section");
    let (_, table) = section.split_once("| message | variant |").expect("the table of a launch's errors");
    let named: Vec<&str> = table
        .lines()
        .filter_map(|line| line.rsplit(" | `").next()?.split_once("` | ").map(|(name, _)| name))
        .collect();
    let is_one_of = |names: &[&str], name: &str| names.contains(&name);
    let missing: Vec<_> = variants
        .iter()
        .filter(|variant| is_one_of(&named, variant) == is_one_of(NOT_FROM_LAUNCHES, variant))
        .collect();
    assert!(missing.is_empty(), "in the table, or not from launches, and not both: {missing:?}");
    let unknown: Vec<_> =
        named.iter().chain(NOT_FROM_LAUNCHES).filter(|name| !is_one_of(&variants, name)).collect();
    assert!(unknown.is_empty(), "no variants: {unknown:?}");
}

/// The names that a text sets as code and that end in `.rs`, with `{a,b}.rs` as two.
fn named_files(text: &str) -> Vec<String> {
    let code = prose(text).flat_map(|line| line.split('`').skip(1).step_by(2));
    code.filter(|name| name.ends_with(".rs") && !name.contains(' '))
        .flat_map(|name| match name.split_once('{').zip(name.split_once('}')) {
            Some(((before, _), (inside, after))) => inside[before.len() + 1..]
                .split(',')
                .map(|choice| format!("{before}{choice}{after}"))
                .collect(),
            None => vec![name.to_owned()],
        })
        .collect()
}

/// Who reads the map to find a file finds it.
#[test]
fn the_map_names_files_that_exist() {
    let sources: Vec<_> = sources().into_iter().map(|(path, _)| path).collect();
    let map = std::fs::read_to_string(root().join("docs/ARCHITECTURE.md")).expect("the map");
    let mut missing = named_files(&map);
    missing.retain(|name| !sources.iter().any(|path| path.ends_with(name)));
    assert!(missing.is_empty(), "docs/ARCHITECTURE.md names files that don't exist: {missing:?}");
}

#[test]
fn nothing_is_left_undone() {
    // Spelled in two parts so that this file passes its own test.
    let forbidden = [["#[ign", "ore"], ["tod", "o!("], ["unimpl", "emented!("]].map(|parts| parts.concat());
    let mut broken = Vec::new();
    for (path, text) in sources() {
        for (number, line) in text.lines().enumerate() {
            for word in forbidden.iter().filter(|word| line.contains(*word)) {
                broken.push(format!("{}:{}: `{word}`", path.display(), number + 1));
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn long_files_are_listed() {
    for (path, text) in sources() {
        let lines = text.lines().count();
        if lines > LONG_FILE {
            println!("{}: {lines} lines; split it, or know why not", path.display());
        }
    }
}
