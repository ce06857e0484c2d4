//! `cargo xtask packages`: what a user of the published packages gets. They are packed as for crates.io and unpacked, and
//! the crate of README.md is built and tested with these alone, by the oldest Rust that they name.

mod user;

use crate::setup;
use crate::steps::{cargo, root, run, show_closing_lines, target};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What is published, each after what it depends on.
const PACKAGES: [&str; 7] =
    ["tile-layout", "tile-ir", "tile-frontend", "tile-macros", "tile-codegen", "tile-runtime", "tile"];

/// What every package must hold for its licence's sake.
const LICENCES: [&str; 2] = ["LICENSE-APACHE", "LICENSE-MIT"];

/// The devices that every machine has.
const DEVICES: [&str; 2] = ["reference", "cpu"];

/// Packs, unpacks, builds, tests and runs.
pub(crate) fn check() -> Result<(), String> {
    setup::llvm()?;
    let packed = pack()?;
    let unpacked = PACKAGES.iter().map(|name| unpack(&packed, name)).collect::<Result<Vec<_>, _>>()?;
    let folder = target().join("packages").join("user");
    user::write(&folder, &PACKAGES.into_iter().zip(unpacked).collect::<Vec<_>>())?;
    let rust = Rust::oldest()?;
    let shown = run(
        "tests of the README's crate",
        rust.cargo(&folder).args(["test", "--config", "term.quiet=false"]),
    )?;
    show_closing_lines(&shown);
    for device in DEVICES {
        let name = format!("the README's crate on {device}");
        run(&name, rust.cargo(&folder).arg("run").env("TILE_DEVICE", device))?;
    }
    Ok(())
}

/// Packs every package as `cargo publish` would, without building it; gives the folder where they are.
fn pack() -> Result<PathBuf, String> {
    let folder = target().join("packages");
    let mut package = cargo(&["package", "--no-verify", "--allow-dirty", "--target-dir"]);
    package.arg(&folder).args(PACKAGES.iter().flat_map(|name| ["--package", name]));
    run("packages, as crates.io would get them", &mut package)?;
    Ok(folder.join("package"))
}

/// Unpacks a package, and gives its folder.
fn unpack(packed: &Path, name: &str) -> Result<PathBuf, String> {
    let stem = format!("{name}-{}", env!("CARGO_PKG_VERSION"));
    let folder = packed.join(&stem);
    if folder.exists() {
        fs::remove_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    }
    let mut tar = Command::new("tar");
    // With the time of now: a package's files are all of 2006, which cargo takes for those that it has built before.
    tar.arg("-xzmf").arg(packed.join(stem + ".crate")).arg("-C").arg(packed);
    run(&format!("unpacking {name}"), &mut tar)?;
    match LICENCES.iter().find(|licence| !folder.join(licence).exists()) {
        Some(missing) => Err(format!("package {name} has no {missing}: link it into the package's folder")),
        None => Ok(folder),
    }
}

/// The Rust that builds the user's crate.
struct Rust {
    /// Its toolchain's name, as rustup knows it; `None`: the one that runs this.
    toolchain: Option<String>,
}

impl Rust {
    /// The oldest that the packages name, where it is installed; else, after saying so, the one that runs this.
    fn oldest() -> Result<Rust, String> {
        let manifest = root().join("Cargo.toml");
        let text =
            fs::read_to_string(&manifest).map_err(|error| format!("{}: {error}", manifest.display()))?;
        let version = rust_version(&text).ok_or("Cargo.toml names no `rust-version`")?;
        let listed = Command::new("rustup").args(["toolchain", "list"]).output();
        let listed =
            listed.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
        let toolchain = toolchain_of(&listed, version).map(str::to_owned);
        if toolchain.is_none() {
            println!(
                "Rust {version}, the oldest that the packages name, isn't installed, so the present one builds them; \
                 `rustup toolchain install {version} --profile minimal` installs it"
            );
        }
        Ok(Rust { toolchain })
    }

    /// Its cargo, in a crate's folder.
    fn cargo(&self, folder: &Path) -> Command {
        let mut command = match &self.toolchain {
            Some(toolchain) => {
                let mut rustup = Command::new("rustup");
                rustup.args(["run", toolchain, "cargo"]);
                rustup.env_remove("RUSTUP_TOOLCHAIN").env_remove("RUSTC").env_remove("RUSTDOC");
                rustup
            }
            None => cargo(&[]),
        };
        command.current_dir(folder).env("CARGO_TARGET_DIR", folder.join("target"));
        command
    }
}

/// The value of `rust-version` in a manifest.
fn rust_version(manifest: &str) -> Option<&str> {
    let line = manifest.lines().find_map(|line| line.strip_prefix("rust-version"))?;
    line.split('"').nth(1)
}

/// The first of the listed toolchains that is of this version.
fn toolchain_of<'list>(listed: &'list str, version: &str) -> Option<&'list str> {
    let mut names = listed.lines().filter_map(|line| line.split(' ').next());
    names.find(|name| {
        name.strip_prefix(version).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '-']))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_toolchain_is_found_by_its_version() {
        let listed =
            "stable-x86_64-unknown-linux-gnu (active, default)\n1.9-x\n1.90.0-x86_64-unknown-linux-gnu\n";
        assert_eq!(toolchain_of(listed, "1.90"), Some("1.90.0-x86_64-unknown-linux-gnu"));
        assert_eq!(toolchain_of(listed, "1.9"), Some("1.9-x"));
        assert_eq!(toolchain_of(listed, "1.91"), None);
        assert_eq!(rust_version("[workspace.package]\nrust-version = \"1.90\"\n"), Some("1.90"));
    }

    #[test]
    fn what_is_published_is_every_package_that_users_get() {
        let manifests = fs::read_dir(root()).expect("the workspace").filter_map(|entry| {
            let folder = entry.ok()?.path();
            let text = fs::read_to_string(folder.join("Cargo.toml")).ok()?;
            let name = folder.file_name()?.to_str()?.to_owned();
            (!text.contains("publish = false")).then_some(name)
        });
        let mut found: Vec<String> = manifests.chain(["tile".to_owned()]).collect();
        found.sort();
        let mut listed = PACKAGES;
        listed.sort_unstable();
        assert_eq!(found, listed);
    }
}
