//! Kernels and functions found in small packages, whose functions add numbers that tell them apart.

use super::super::cargo::Kind;
use super::*;
use std::fs;
use std::process::Command;
use tempfile::TempDir;
use tile_test_edit::Edit;

/// A kernel without parameters that stores what a call gives.
fn kernel(name: &str, call: &str) -> String {
    format!(
        "#[tile_kernel] fn {name}(y: &mut Tensor<f32, n>) {{ let mut y = y.partition_view_mut([8]); \
         y.store_masked({call}); }}\n"
    )
}

/// A function that adds a number.
fn adding(visibility: &str, name: &str, number: u32) -> String {
    format!("#[tile_fn] {visibility} fn {name}(x: Tile<f32, 1>) -> Tile<f32, 1> {{ x + {number}.0 }}\n")
}

/// `Tile::ones([8])` as an argument.
fn of_ones(function: &str) -> String {
    format!("{function}(Tile::ones([8]))")
}

/// Files in a folder, which is gone with it.
struct Files(TempDir);

impl Files {
    fn new<'f>(files: impl IntoIterator<Item = (&'f str, String)>) -> Files {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        Files(folder)
    }

    fn cargo(&self, package: &str, features: &[&str]) -> Cargo {
        Cargo {
            program: env!("CARGO").into(),
            manifest: self.0.path().join(package).join("Cargo.toml"),
            target: "x86_64-unknown-linux-gnu".to_owned(),
            features: features.iter().map(|&name| name.to_owned()).collect(),
            out: self.0.path().join("out"),
        }
    }

    /// The kernels of the package in this folder, whose targets are where cargo looks for them.
    fn scan(&self, features: &[&str]) -> Scanned {
        let cargo = self.cargo("", features);
        scan(&cargo, &cargo.conventional())
    }
}

fn scan(cargo: &Cargo, package: &Package) -> Scanned {
    let variables = [("CARGO_CFG_UNIX", ""), ("CARGO_CFG_TARGET_OS", "linux")];
    let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let conditions = Conditions::of(variables.into_iter());
    let roots: Vec<&Target> = package.targets.iter().filter(|target| target.kind != Kind::Other).collect();
    kernels(cargo, package, &conditions, &roots).unwrap()
}

/// The numbers that kernels add, in the order in which they add them.
fn numbers(scanned: &Scanned) -> Vec<(&str, Vec<u32>)> {
    let of = |found: &Found| {
        let text = text::print(&found.kernel);
        let constants =
            text.lines().filter_map(|line| line.split_once("= constant ")?.1.split_once(" : f32"));
        let numbers = constants.map(|(number, _)| number.parse::<f32>().unwrap() as u32);
        numbers.filter(|&number| number != 1).collect()
    };
    scanned.found.iter().map(|found| (found.kernel.name.as_str(), of(found))).collect()
}

/// The numbers of kernels in one file, all of which are found.
fn of_file(lines: &[String]) -> Vec<Vec<u32>> {
    let scanned = Files::new([("src/lib.rs", lines.concat())]).scan(&[]);
    assert_eq!((&scanned.skipped[..], scanned.refused), (&[][..], 0));
    numbers(&scanned).into_iter().map(|(_, numbers)| numbers).collect()
}

#[test]
fn finds_kernels_in_modules_and_leaves_wrong_ones_to_the_macro() {
    let filling = "fn NAME<const B: usize>(y: &mut Tensor<f32, n>) { let mut y = y.partition_view_mut([B]); \
                   y.store_masked(Tile::ones([B])); }";
    let kernel = |attribute: &str, name: &str| format!("{attribute}\n{}\n", filling.edit("NAME", name));
    let text = [
        format!("mod m {{ {} }}", kernel("#[tile::tile_kernel(instances(B = 4; B = 8))]", "nested")),
        kernel("#[tile_kernel]", "without_instances"),
        kernel("#[tile_kernel]", "without_parameters").edit("<const B: usize>", "").edit("[B]", "[8]"),
        kernel("#[tile_kernel(instances(B = 0))]", "refused"),
        kernel("#[inline]", "no_kernel"),
        format!(
            "#[tile_kernels] mod helped {{ const SIZE: usize = 4; #[tile_fn] pub fn one<const B: usize>() -> \
             Tile<f32, 1> {{ Sum {{ t: Tile::ones([B + 0 * SIZE]) }}.twice() }} #[derive(TileStruct)] struct Sum {{ t: \
             Tile<f32, 1> }} #[tile_fn] impl Sum {{ fn twice(self) -> Tile<f32, 1> {{ self.t + self.t }} }} #[tile_fn] pub fn with(x: Tile<f32, 1>, f: impl \
             Fn(Tile<f32, 1>) -> Tile<f32, 1>) -> Tile<f32, 1> {{ f(x) * SIZE as f32 }} {} }}\n",
            kernel("#[tile_kernel(instances(B = 4))]", "calling").edit("Tile::ones([B])", "one::<B>()")
        ),
        kernel("#[tile_kernel(instances(B = 4))]", "lost").edit("Tile::ones([B])", "two::<B>()"),
        kernel("#[tile_kernel(instances(B = 4))]", "across").edit("Tile::ones([B])", "helped::one::<B>()"),
        kernel("#[tile_kernel(instances(B = 4))]", "given")
            .edit("Tile::ones([B])", "helped::with(Tile::ones([B]), |t| two_calls(t) + 1.0)"),
        "macro_rules! doubled { ($name:ident) => { #[tile_kernel(instances(B = 4))] fn $name() {} } }\n"
            .to_owned(),
        "#[tile_fn] fn two_calls(x: Tile<f32, 1>) -> Tile<f32, 1> { module::of_file(x) }\n".to_owned(),
        "mod module; mod broken; mod absent;".to_owned(),
    ];
    let file = format!(
        "tile::kernels! {{ const ONE: f32 = 1.0; #[tile_fn] pub fn of_file(x: Tile<f32, 1>) -> Tile<f32, 1> {{ x + ONE }} {} }}\n",
        kernel("#[tile_kernel(instances(B = 4))]", "in_file")
            .edit("Tile::ones([B])", "of_file(super::two_calls(Tile::ones([B])))")
    );
    let files =
        [("src/lib.rs", text.concat()), ("src/module.rs", file), ("src/broken.rs", "fn {".to_owned())];
    let scanned = Files::new(files).scan(&[]);
    let names: Vec<_> =
        scanned.found.iter().map(|found| (found.kernel.name.as_str(), found.instances.len())).collect();
    assert_eq!(
        (names, scanned.refused),
        (
            vec![
                ("nested", 2),
                ("without_parameters", 1),
                ("calling", 1),
                ("across", 1),
                ("given", 1),
                ("in_file", 1)
            ],
            2
        )
    );
    assert_eq!(
        scanned.skipped,
        [
            "src/lib.rs:15: kernel `lost` isn't compiled ahead of time: `two` is no `#[tile_fn]` function in the files \
             that were read (one that a macro makes isn't seen); feature `jit` compiles it at run time",
            "src/lib.rs:20: kernels that `doubled!` makes aren't compiled ahead of time, because a build script reads \
             functions as they stand in files; feature `jit` compiles them at run time"
        ]
    );
    assert_eq!(scanned.found[0].place, "src/lib.rs:2");
}

#[test]
fn kernels_of_one_name_share_code_where_they_mean_the_same() {
    let module = |module: &str, instances: &str, filled: &str| {
        format!(
            "mod {module} {{ #[tile_kernel(instances({instances}))] fn fill<const B: usize>(y: &mut Tensor<f32, n>) {{ \
             let mut y = y.partition_view_mut([B]); y.store_masked(Tile::{filled}([B])); }} }}\n"
        )
    };
    let text = [
        module("first", "B = 4", "ones"),
        module("same", "B = 4 | 8", "ones"),
        module("other", "B = 4", "zeros"),
    ];
    let scanned = Files::new([("src/lib.rs", text.concat())]).scan(&[]);
    let found = scanned.found.iter();
    let found: Vec<_> = found.map(|found| (found.folder.as_str(), found.instances.len())).collect();
    assert_eq!(found, [("fill-src-lib.rs-1", 2), ("fill-src-lib.rs-3", 1)]);
}

#[test]
fn each_module_has_functions_of_its_own() {
    let module = |name: &str, number| {
        let call = of_ones("bump");
        format!("mod {name} {{ {} {} }}\n", adding("", "bump", number), kernel(name, &call))
    };
    assert_eq!(of_file(&[module("a", 2), module("b", 3)]), [[2], [3]]);
}

#[test]
fn paths_and_uses_mean_what_they_do_in_rust() {
    let inner = adding("pub", "leaky", 4) + &adding("pub(crate)", "bump", 5);
    let modules = [
        format!("pub mod a {{ {} pub mod inner {{ {inner} }} }}\n", adding("pub", "leaky", 3)),
        format!(
            "pub mod b {{ pub use super::a::{{inner::{{self as deep, leaky as deeper}}, leaky}}; {} }}\n",
            adding("", "leaked", 6)
        ),
    ];
    for (uses, call, number) in [
        ("", "crate::a::leaky", 3),
        ("", "super::a::inner::bump", 5),
        ("use crate::a::leaky as lk;", "lk", 3),
        ("use crate::a::inner;", "inner::leaky", 4),
        ("use crate::{a::{self, inner::{bump, leaky as other}}};", "other", 4),
        ("use super::a as renamed;", "self::renamed::inner::bump", 5),
        ("use crate::a::inner::*;", "leaky", 4),
        ("use crate::a::inner::*; use crate::a::leaky;", "leaky", 3),
        ("use crate::b::*;", "leaky", 3),
        ("use crate::b::*;", "deep::bump", 5),
        ("use super::b::deeper;", "deeper", 4),
        ("mod own { pub use super::super::a::*; }", "own::inner::leaky", 4),
        ("extern crate self as whole;", "whole::a::leaky", 3),
    ] {
        let module = format!("mod k {{ {uses} {} }}\n", kernel("k", &of_ones(call)));
        let found = of_file(&[&modules[..], &[module]].concat());
        assert_eq!(found, [[number]], "`{uses}` and {call}");
    }
}

#[test]
fn a_function_is_found_where_the_function_stands_that_calls_it() {
    let twice = |number| {
        format!(
            "#[tile_fn] pub fn twice(x: Tile<f32, 1>) -> Tile<f32, 1> {{ bump(bump(x)) }} {}",
            adding("", "bump", number)
        )
    };
    let text = [
        format!("mod a {{ {} }}\nmod b {{ {} }}\n", twice(2), twice(3)),
        format!(
            "mod c {{ use super::b::twice; {} }}\n",
            kernel("k", &format!("crate::a::twice({})", of_ones("twice")))
        ),
    ];
    assert_eq!(of_file(&text), [[3, 3, 2, 2]]);
}

#[test]
fn globs_bring_what_is_visible() {
    let text = [
        format!(
            "mod a {{ {} pub mod inner {{ {} }} }}\n",
            adding("", "bump", 2),
            kernel("child", &of_ones("super::bump"))
        ),
        format!("mod b {{ {} }}\n", adding("pub", "bump", 3)),
        format!("mod c {{ use super::{{a::*, b::*}}; {} }}\n", kernel("k", &of_ones("bump"))),
        format!(
            "mod d {{ {} mod inner {{ use super::*; {} }} }}\n",
            adding("", "bump", 4),
            kernel("l", &of_ones("bump"))
        ),
    ];
    assert_eq!(of_file(&text), [[2], [3], [4]]);
}

#[test]
fn functions_in_a_block_are_found_before_those_around_it() {
    let inside =
        adding("", "bump", 2) + &kernel("inside", &format!("{} + {}", of_ones("bump"), of_ones("other")));
    let text = [
        adding("", "bump", 3),
        adding("", "other", 4),
        format!("fn main() {{ {inside} let run = || {{ {} }}; }}\n", kernel("deeper", &of_ones("bump"))),
        kernel("outside", &of_ones("bump")),
    ];
    assert_eq!(of_file(&text), [vec![2, 4], vec![2], vec![3]]);
}

#[test]
fn a_function_that_is_not_found_is_told_with_those_of_its_name() {
    let text = [
        format!("mod a {{ {} }}\n", adding("pub", "bump", 2)),
        format!("mod b {{ {} }}\n", adding("pub", "bump", 3)),
        format!("mod c {{ use super::{{a::*, b::*}};\n{} }}\n", kernel("two", &of_ones("bump"))),
        format!("mod d {{ {} }}\n", kernel("none", &of_ones("bump"))),
        format!(
            "mod e {{ #[tile_fn] pub fn via(x: Tile<f32, 1>) -> Tile<f32, 1> {{ bump(x) }} {} }}\n",
            kernel("deep", &of_ones("via"))
        ),
    ];
    let scanned = Files::new([("src/lib.rs", text.concat())]).scan(&[]);
    assert_eq!(
        scanned.skipped,
        [
            "src/lib.rs:6: kernel `two` isn't compiled ahead of time: `bump` may be any of `crate::a::bump` \
             (src/lib.rs:1), `crate::b::bump` (src/lib.rs:3); call one by its path; feature `jit` compiles it at run time",
            "src/lib.rs:8: kernel `none` isn't compiled ahead of time: `bump` leads to no `#[tile_fn]` function; those of \
             this name are `crate::a::bump` (src/lib.rs:1), `crate::b::bump` (src/lib.rs:3); feature `jit` compiles it at \
             run time",
            "src/lib.rs:10: kernel `deep` isn't compiled ahead of time: `bump`, which `crate::e::via` (src/lib.rs:10) \
             calls, leads to no `#[tile_fn]` function; those of this name are `crate::a::bump` (src/lib.rs:1), \
             `crate::b::bump` (src/lib.rs:3); feature `jit` compiles it at run time",
        ]
    );
}

#[test]
fn modules_whose_conditions_are_unknown_are_alternatives() {
    let module = |condition: &str, number| {
        format!("#[cfg({condition})] mod a {{ {} }}\n", adding("pub", "bump", number))
    };
    let text =
        [module("debug_assertions", 2), module("not(debug_assertions)", 3), kernel("k", &of_ones("a::bump"))];
    let scanned = Files::new([("src/lib.rs", text.concat())]).scan(&[]);
    assert_eq!(
        scanned.skipped,
        [
            "src/lib.rs:5: kernel `k` isn't compiled ahead of time: `a::bump` may be in any of several modules of one name, \
             and a build script can't decide their `cfg`; feature `jit` compiles it at run time"
        ]
    );
}

#[test]
fn what_cfg_leaves_out_is_not_compiled() {
    let text = [
        "#[cfg(feature = \"fast\")] mod fast;\n#[cfg(not(feature = \"fast\"))] mod slow;\n".to_owned(),
        "#[cfg_attr(unix, path = \"os/unix.rs\")] #[cfg_attr(windows, path = \"os/windows.rs\")] mod os;\n"
            .to_owned(),
        format!("#[cfg(test)] mod tests {{ {} }}\n", kernel("tested", &of_ones("bump"))),
        format!("#[cfg(windows)] {}", kernel("windowed", &of_ones("nobody"))),
        format!("#[cfg(windows)] {}#[cfg(unix)] {}", adding("", "bump", 2), adding("", "bump", 3)),
        kernel("k", &of_ones("bump")),
    ];
    let of_module = |name: &str| kernel(name, &of_ones("super::bump"));
    let files = Files::new([
        ("src/lib.rs", text.concat()),
        ("src/fast.rs", of_module("fast")),
        ("src/slow.rs", of_module("slow")),
        ("src/os/unix.rs", of_module("os_unix")),
        ("src/os/windows.rs", of_module("os_windows")),
        ("src/nobody.rs", of_module("nobody")),
    ]);
    let names = |features: &[&str]| -> Vec<String> {
        let scanned = files.scan(features);
        assert_eq!((&scanned.skipped[..], scanned.refused), (&[][..], 0));
        numbers(&scanned).into_iter().map(|(name, numbers)| format!("{name} {numbers:?}")).collect()
    };
    assert_eq!(names(&[]), ["k [3]", "os_unix [3]", "slow [3]"]);
    assert_eq!(names(&["fast"]), ["fast [3]", "k [3]", "os_unix [3]"]);
}

#[test]
fn modules_are_in_the_files_where_rustc_looks() {
    let root = "mod flat; mod nested; #[path = \"elsewhere/named.rs\"] mod named;\n\
                mod inline { mod below; #[path = \"given.rs\"] mod given; }\ninclude!(\"included.in\");\n";
    let files = Files::new([
        ("src/main.rs", root.to_owned()),
        ("src/flat.rs", "mod child;".to_owned()),
        ("src/flat/child.rs", kernel("k1", "Tile::ones([8])")),
        ("src/child.rs", kernel("wrong1", "Tile::ones([8])")),
        ("src/nested/mod.rs", "mod child;".to_owned()),
        ("src/nested/child.rs", kernel("k2", "Tile::ones([8])")),
        ("src/elsewhere/named.rs", "mod beside;".to_owned()),
        ("src/elsewhere/beside.rs", kernel("k3", "Tile::ones([8])")),
        ("src/elsewhere/named/beside.rs", kernel("wrong2", "Tile::ones([8])")),
        ("src/inline/below.rs", kernel("k4", "Tile::ones([8])")),
        ("src/inline/given.rs", kernel("k5", "Tile::ones([8])")),
        ("src/given.rs", kernel("wrong3", "Tile::ones([8])")),
        ("src/included.in", kernel("k6", "Tile::ones([8])")),
        ("src/bin/one.rs", kernel("k7", "Tile::ones([8])")),
        ("src/bin/two/main.rs", "mod own;".to_owned()),
        ("src/bin/two/own.rs", kernel("k8", "Tile::ones([8])")),
    ]);
    let scanned = files.scan(&[]);
    let mut names: Vec<&str> = scanned.found.iter().map(|found| found.kernel.name.as_str()).collect();
    names.sort_unstable();
    assert_eq!(names, ["k1", "k2", "k3", "k4", "k5", "k6", "k7", "k8"]);
    let read = |name: &str| scanned.files.iter().any(|file| file.ends_with(name));
    assert!(read("src/inline/given.rs") && !read("src/given.rs"), "{:?}", scanned.files);
}

#[test]
fn raw_names_are_those_of_files_without_the_prefix() {
    let files = Files::new([
        ("src/lib.rs", "mod r#type; mod r#move { mod below; }".to_owned()),
        ("src/type.rs", format!("mod r#in; {}", kernel("k1", "Tile::ones([8])"))),
        ("src/type/in.rs", kernel("k2", "Tile::ones([8])")),
        ("src/move/below.rs", kernel("k3", "Tile::ones([8])")),
    ]);
    let scanned = files.scan(&[]);
    let mut names: Vec<&str> = scanned.found.iter().map(|found| found.kernel.name.as_str()).collect();
    names.sort_unstable();
    assert_eq!(names, ["k1", "k2", "k3"]);
}

#[test]
fn what_a_build_script_wrote_is_included() {
    let root = "include!(concat!(env!(\"OUT_DIR\"), \"/made.rs\"));\n\
                mod inner { include!(concat!(env!(\"CARGO_MANIFEST_DIR\"), \"/shared\", \"/given.rs\",)); }\n\
                include!(env!(\"ELSEWHERE\"));\n";
    let files = Files::new([
        ("src/lib.rs", root.to_owned()),
        ("out/made.rs", kernel("made", "Tile::ones([8])")),
        ("shared/given.rs", kernel("given", "Tile::ones([8])")),
    ]);
    let scanned = files.scan(&[]);
    let mut names: Vec<&str> = scanned.found.iter().map(|found| found.kernel.name.as_str()).collect();
    names.sort_unstable();
    assert_eq!(names, ["given", "made"]);
    let read = |name: &str| scanned.files.iter().any(|file| file.ends_with(name));
    assert!(read("shared/given.rs") && !read("out/made.rs"), "{:?}", scanned.files);
    assert_eq!(
        scanned.skipped,
        [
            "src/lib.rs:3: what this `include!` brings isn't read, because a build script knows literals, `OUT_DIR` and \
          `CARGO_MANIFEST_DIR` alone; kernels in it aren't compiled ahead of time, and feature `jit` compiles them at run time"
        ]
    );
}

/// So that the script runs again once they are there. Where rustc may need none, it would run at every build.
#[test]
fn files_that_are_not_there_are_watched_where_rustc_needs_them() {
    let root = "#[path = \"../shared/module.rs\"] mod module; mod absent; mod flat; mod nested;\n\
                include!(\"../shared/included.rs\"); include!(concat!(env!(\"OUT_DIR\"), \"/made.rs\"));\n\
                #[cfg(windows)] mod left_out; #[cfg(debug_assertions)] mod unknown;\n\
                #[cfg(of_the_build_script)] include!(\"../shared/unknown.rs\");\n\
                #[cfg(of_the_build_script)] mod around { mod unknown; }\n";
    let files = Files::new([
        ("src/lib.rs", root.to_owned()),
        ("src/flat.rs", String::new()),
        ("src/nested/mod.rs", String::new()),
    ]);
    let mut watched = files.scan(&[]).files;
    watched.sort();
    let mut expected = [
        "Cargo.toml",
        "src/lib.rs",
        "src/flat.rs",
        "src/nested/mod.rs",
        "src/../shared/module.rs",
        "src/../shared/included.rs",
        "src/absent.rs",
        "src/absent/mod.rs",
    ]
    .map(|name| files.0.path().join(name));
    expected.sort();
    assert_eq!(watched, expected);
}

#[test]
fn kernels_that_stand_in_macros_are_told() {
    let text = format!(
        "cfg_if::cfg_if! {{ if #[cfg(unix)] {{ {} }} }}\nthread_local! {{ static tile_kernel: u8 = 0; }}\n",
        kernel("k", "Tile::ones([8])")
    );
    let scanned = Files::new([("src/lib.rs", text)]).scan(&[]);
    assert_eq!(
        scanned.skipped,
        [
            "src/lib.rs:1: kernels that `cfg_if::cfg_if!` makes aren't compiled ahead of time, because a build script reads \
          functions as they stand in files; feature `jit` compiles them at run time"
        ]
    );
}

const MANIFEST: &str = "[package]\nname = \"app\"\nversion = \"0.1.0\"\nedition = \"2024\"\n";

#[test]
fn targets_are_those_of_the_manifest() {
    let manifest = format!(
        "{MANIFEST}[features]\nfast = []\n[lib]\nname = \"blocks\"\npath = \"sources/blocks.rs\"\n[[bin]]\nname = \"quick\"\n\
         path = \"quick.rs\"\nrequired-features = [\"fast\"]\n"
    );
    let files = Files::new([
        ("Cargo.toml", manifest),
        ("sources/blocks.rs", adding("pub", "bump", 2)),
        ("src/main.rs", format!("use blocks::bump as raised;\n{}", kernel("k", &of_ones("raised")))),
        ("quick.rs", String::new()),
        ("examples/shown.rs", String::new()),
    ]);
    let cargo = files.cargo("", &[]);
    let package = cargo.package().unwrap();
    let mut targets: Vec<_> =
        package.targets.iter().map(|target| (target.kind, target.name.as_str())).collect();
    targets.sort_by_key(|(_, name)| *name);
    let expected =
        [(Kind::Program, "app"), (Kind::Library, "blocks"), (Kind::Program, "quick"), (Kind::Other, "shown")];
    assert_eq!(targets, expected);
    let quick = package.targets.iter().find(|target| target.name == "quick").unwrap();
    assert_eq!(quick.required_features, ["fast"]);
    let scanned = scan(&cargo, &package);
    assert_eq!((&scanned.skipped[..], numbers(&scanned)), (&[][..], vec![("k", vec![2])]));
}

/// rustc says of a circle that it finds no macro, which is an error that needs no warning besides.
#[test]
fn functions_that_call_each_other_in_a_circle_are_left_to_rustc() {
    let module = |name: &str, called: &str| {
        format!(
            "mod {name} {{ #[tile_fn] pub fn step(x: Tile<f32, 1>) -> Tile<f32, 1> {{ super::{called}::step(x) }} }}\n"
        )
    };
    let text = [module("a", "b"), module("b", "a"), kernel("k", &of_ones("a::step"))];
    let scanned = Files::new([("src/lib.rs", text.concat())]).scan(&[]);
    assert_eq!((scanned.found.len(), scanned.refused, &scanned.skipped[..]), (0, 1, &[][..]));
}

/// A package with functions of kernels, one that brings them under its own name, and one that calls them.
fn workspace() -> Files {
    let package = |name: &str, rest: &str| {
        format!("[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"2024\"\n{rest}")
    };
    let tile = "tile = { path = \"../tile\" }\n";
    let app = format!(
        "[dependencies]\n{tile}facade = {{ path = \"../facade\" }}\nrenamed = {{ package = \"build-blocks\", path = \
         \"../blocks\", features = [\"more\"] }}\n"
    );
    let facade = format!("[dependencies]\n{tile}build-blocks = {{ path = \"../blocks\" }}\n");
    let blocks = format!("[features]\nmore = []\nother = []\n[dependencies]\n{tile}");
    let root = "#[cfg(feature = \"more\")] pub mod more;\n#[cfg(feature = \"other\")] compile_error!();\n";
    let more = adding("", "inner", 3)
        + "#[tile_fn] pub fn through(x: Tile<f32, 1>) -> Tile<f32, 1> { inner(crate::bump(x)) }\n"
        + &kernel("of_the_library", "Tile::ones([8])");
    let calls = [
        kernel("by_path", &of_ones("renamed::bump")),
        kernel("by_use", &of_ones("through")),
        kernel("by_facade", &of_ones("facade::raised")),
        kernel("lost", &of_ones("renamed::absent")),
        kernel("lost_too", &of_ones("elsewhere")),
    ];
    let calls = format!("use renamed::{{more::*, made as elsewhere}};\n{}", calls.concat());
    let members = "[workspace]\nresolver = \"3\"\nmembers = [\"app\", \"blocks\", \"facade\", \"tile\"]\n";
    Files::new([
        ("Cargo.toml", members.to_owned()),
        ("tile/Cargo.toml", package("tile", "")),
        ("tile/src/lib.rs", String::new()),
        ("blocks/Cargo.toml", package("build-blocks", &blocks)),
        ("blocks/src/lib.rs", format!("{root}{}", adding("pub", "bump", 2))),
        ("blocks/src/more.rs", more),
        ("facade/Cargo.toml", package("facade", &facade)),
        ("facade/src/lib.rs", "pub use build_blocks::bump as raised;\n".to_owned()),
        ("app/Cargo.toml", package("app", &app)),
        ("app/src/lib.rs", calls),
    ])
}

#[test]
fn functions_of_other_packages_are_found() {
    let files = workspace();
    let mut lock = Command::new(env!("CARGO"));
    let locked = lock.args(["generate-lockfile", "--offline"]).current_dir(files.0.path()).output().unwrap();
    assert!(locked.status.success(), "{}", String::from_utf8_lossy(&locked.stderr));
    let cargo = files.cargo("app", &[]);
    let scanned = scan(&cargo, &cargo.package().unwrap());
    assert_eq!(
        numbers(&scanned),
        [("by_path", vec![2]), ("by_use", vec![2, 3]), ("by_facade", vec![2])],
        "{:?}",
        scanned.skipped
    );
    assert_eq!(
        scanned.skipped,
        [
            "src/lib.rs:5: kernel `lost` isn't compiled ahead of time: `renamed::absent` is no `#[tile_fn]` function in \
             the files that were read (one that a macro makes isn't seen); feature `jit` compiles it at run time",
            "src/lib.rs:6: kernel `lost_too` isn't compiled ahead of time: `elsewhere`, which `use` brings as \
             `renamed::made`, is no `#[tile_fn]` function in the files that were read (one that a macro makes isn't seen); \
             feature `jit` compiles it at run time"
        ]
    );
    for file in
        ["Cargo.lock", "app/Cargo.toml", "blocks/Cargo.toml", "blocks/src/more.rs", "facade/src/lib.rs"]
    {
        assert!(scanned.files.contains(&files.0.path().join(file)), "{file} isn't in {:?}", scanned.files);
    }
    assert!(!scanned.files.contains(&files.0.path().join("tile/src/lib.rs")));
}

/// Cargo resolves nothing without a lock file, which a build script doesn't write.
#[test]
fn what_cargo_can_not_say_is_found_by_path_or_told() {
    let files = workspace();
    let calls = kernel("near", &of_ones("facade::raised")) + &kernel("far", &of_ones("remote::bump"));
    fs::write(files.0.path().join("app/src/lib.rs"), calls).unwrap();
    let manifest = files.0.path().join("app/Cargo.toml");
    let app = fs::read_to_string(&manifest).unwrap() + "remote = \"1\"\n";
    fs::write(&manifest, app).unwrap();
    let cargo = files.cargo("app", &[]);
    let scanned = scan(&cargo, &cargo.package().unwrap());
    assert_eq!(
        (numbers(&scanned), scanned.lacks_packages),
        (vec![("near", vec![2])], true),
        "{:?}",
        scanned.skipped
    );
    let [far] = &scanned.skipped[..] else { panic!("{:?}", scanned.skipped) };
    let expected = "src/lib.rs:2: kernel `far` isn't compiled ahead of time: `remote::bump` leads to crate `remote`, which the \
                    build script can't read (error: ";
    assert!(far.starts_with(expected), "{far}");
    // Where the package isn't of the workspace that is built, `cargo fetch` there would be of no use.
    let remedy =
        format!("`cargo fetch --manifest-path {}` brings what is missing; feature", manifest.display());
    assert!(far.contains(&remedy), "{far}");
    assert!(!files.0.path().join("Cargo.lock").exists());
    let gone = Cargo { program: "no/such/cargo".into(), ..cargo };
    assert!(gone.package().unwrap_err().starts_with("no/such/cargo: "));
    assert_eq!(gone.conventional().targets[0].root, files.0.path().join("app/src/lib.rs"));
}
