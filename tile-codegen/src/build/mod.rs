//! The build-script helper: device code for the kernels of a crate, out of `cargo build`.
//!
//! A build script is one line:
//!
//! ```no_run
//! tile_codegen::build::kernels().targets(["sm_90a", "gfx942", "cpu"]).emit();
//! ```
//!
//! Every `#[tile_kernel(instances(…))]` function of the package's library and programs, and every kernel without parameters,
//! is compiled for every target. The macro finds the code by the fingerprint of the kernel's IR in the folder that
//! `TILE_KERNELS` names; CPU code is linked as a static library. Copies for people go to
//! `target/tile/<package>/<kernel>/`, where several kernels have a name to `<kernel>-<file>-<line>/`.

#[cfg(test)]
mod aarch64;
mod archive;
mod assemble;
mod cargo;
mod embed;
mod instances;
mod output;
mod remarks;
mod scan;
#[cfg(test)]
mod systems;
#[cfg(test)]
mod tests;

use crate::System;
use cargo::{Cargo, Kind, Package, Target};
use output::{Output, Report};
use scan::Conditions;
use std::collections::HashSet;
use std::env::VarError;
use std::path::{Component, Path, PathBuf};
use tile_ir::TargetDesc;
use tile_ir::target::Architecture;

/// The kernels of the package whose build script calls this: of its library and its programs.
pub fn kernels() -> Kernels {
    Kernels { targets: vec!["cpu".to_owned()], also: Vec::new(), ptxas: None }
}

/// What is to be compiled for what.
#[derive(Clone, Debug)]
pub struct Kernels {
    targets: Vec<String>,
    also: Vec<String>,
    ptxas: Option<PathBuf>,
}

impl Kernels {
    /// The targets, by their names in [`tile_ir::target::TARGETS`]: `cpu`, `sm_90a`, `gfx942`. Without this call,
    /// `cpu`.
    #[must_use]
    pub fn targets<Name: Into<String>>(mut self, names: impl IntoIterator<Item = Name>) -> Kernels {
        self.targets = names.into_iter().map(Into::into).collect();
        self
    }

    /// Compiles also the kernels of the examples, tests or benchmarks whose files are in a folder of the package, such as
    /// `examples`. Kernels of code that only `cfg(test)` has are compiled at run time, with the feature `jit`.
    #[must_use]
    pub fn also(mut self, folder: impl Into<String>) -> Kernels {
        self.also.push(folder.into());
        self
    }

    /// The `ptxas` that assembles the code for NVIDIA GPUs, so that nothing is compiled where the program runs. The PTX
    /// stays in the program for drivers that refuse what this `ptxas` makes. Without this call, drivers assemble.
    #[must_use]
    pub fn assemble_with(mut self, ptxas: impl Into<PathBuf>) -> Kernels {
        self.ptxas = Some(ptxas.into());
        self
    }

    /// Compiles everything and tells cargo about it. Errors, of all kernels, are reported to cargo and end the build script.
    pub fn emit(self) {
        if let Err(errors) = self.run() {
            for line in errors.iter().flat_map(|error| error.lines()) {
                println!("cargo::error={line}");
            }
            std::process::exit(1);
        }
    }

    fn run(&self) -> Result<(), Vec<String>> {
        let environment = Environment::read().map_err(|error| vec![error])?;
        let targets = self.target_descriptions().map_err(|error| vec![error])?;
        let (package, unknown) = match environment.cargo.package() {
            Ok(package) => (package, None),
            Err(error) => {
                let warning = format!(
                    "cargo can't be asked for the targets of this package ({error}); kernels are looked for from \
                     src/lib.rs, src/main.rs and src/bin on"
                );
                (environment.cargo.conventional(), Some(warning))
            }
        };
        let roots = self.roots(&environment, &package).map_err(|error| vec![error])?;
        let scanned = scan::kernels(&environment.cargo, &package, &environment.conditions, &roots);
        let scanned = scanned.map_err(|error| vec![error])?;
        environment.rerun_where_changed(&scanned, &self.also, self.ptxas.as_deref());
        println!("cargo::rustc-env=TILE_KERNELS={}", environment.embedded_folder().display());
        let mut output = Output::new(&environment, &package, &targets, self.ptxas.as_deref());
        scanned.found.iter().for_each(|kernel| output.kernel(kernel));
        let Report { instances, warnings, errors } = output.finish();
        for warning in unknown.into_iter().chain(warnings).chain(scanned.skipped) {
            println!("cargo::warning={warning}");
        }
        if !errors.is_empty() {
            return Err(errors);
        }
        // Where a kernel is wrong, rustc's errors are what the user should see.
        if scanned.refused == 0 {
            summary(&targets, &environment.readable_folder(&package), scanned.found.len(), instances);
        }
        Ok(())
    }

    fn target_descriptions(&self) -> Result<Vec<&'static TargetDesc>, String> {
        if self.targets.is_empty() {
            return Err("no targets: name some with `.targets([\"cpu\"])` in build.rs".to_owned());
        }
        let described = self.targets.iter().map(|name| TargetDesc::named(name));
        let described: Vec<_> =
            described.collect::<Result<_, _>>().map_err(|error| format!("{error} (named in build.rs)"))?;
        // Lists may be put together from others: code for a target that is in two of them is wanted once.
        let mut seen = HashSet::new();
        Ok(described.into_iter().filter(|target| seen.insert(target.name)).collect())
    }

    /// The crates whose kernels are compiled.
    fn roots<'p>(&self, environment: &Environment, package: &'p Package) -> Result<Vec<&'p Target>, String> {
        let is_in = |target: &Target, folder: &str| target.root.starts_with(package.folder.join(folder));
        if let Some(folder) =
            self.also.iter().find(|folder| !package.targets.iter().any(|t| is_in(t, folder)))
        {
            return Err(format!(
                "no example, test or benchmark of the package is in `{folder}` (named in build.rs)"
            ));
        }
        let features = &environment.cargo.features;
        // Of the features of dependencies, `tile/npy`, nothing is told: what isn't built after all is read in vain.
        let is_given = |feature: &String| feature.contains('/') || features.contains(feature);
        let is_wanted = |target: &&Target| {
            let is_named = target.kind != Kind::Other || self.also.iter().any(|folder| is_in(target, folder));
            is_named && target.required_features.iter().all(is_given)
        };
        Ok(package.targets.iter().filter(is_wanted).collect())
    }
}

/// Warns where nothing was compiled. What was, cargo shows who asks, by `cargo build -vv`: cargo repeats warnings at
/// every build, and they are for what a person should change.
fn summary(targets: &[&TargetDesc], readable: &Path, kernels: usize, instances: usize) {
    if instances == 0 {
        println!(
            "cargo::warning=no kernel of this package names instances to compile; write \
             `#[tile_kernel(instances(BM = 128, …))]`"
        );
        return;
    }
    let names: Vec<&str> = targets.iter().map(|target| target.name).collect();
    let plural = |count: usize, word: &str| format!("{count} {word}{}", if count == 1 { "" } else { "s" });
    println!(
        "compiled {} in {} for {}: see {}",
        plural(kernels, "kernel"),
        plural(instances, "instance"),
        names.join(", "),
        readable.display()
    );
}

/// What cargo tells a build script.
struct Environment {
    package: String,
    cargo: Cargo,
    conditions: Conditions,
    /// That of the machine that the program is built for, as Rust names it.
    architecture: String,
    /// Its system and what more tells how programs are linked there (`target_os`, `target_env`), likewise.
    system: [String; 2],
}

impl Environment {
    fn read() -> Result<Environment, String> {
        let variable = |name: &str| {
            std::env::var(name).map_err(|error| match error {
                VarError::NotPresent => format!("`{name}` isn't set; call this from a build script"),
                VarError::NotUnicode(value) => {
                    format!("`{name}` is {value:?}, which isn't UTF-8; build in a folder whose path is")
                }
            })
        };
        let list =
            |text: String| text.split(',').filter(|name| !name.is_empty()).map(ToOwned::to_owned).collect();
        let cargo = Cargo {
            program: variable("CARGO")?.into(),
            manifest: Path::new(&variable("CARGO_MANIFEST_DIR")?).join("Cargo.toml"),
            target: variable("TARGET")?,
            // Unset without features.
            features: std::env::var("CARGO_CFG_FEATURE").map(list).unwrap_or_default(),
            out: variable("OUT_DIR")?.into(),
        };
        Ok(Environment {
            package: variable("CARGO_PKG_NAME")?,
            cargo,
            // Those of cargo are texts, whatever others are.
            conditions: Conditions::of(
                std::env::vars_os()
                    .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?))),
            ),
            architecture: variable("CARGO_CFG_TARGET_ARCH")?,
            system: [variable("CARGO_CFG_TARGET_OS")?, variable("CARGO_CFG_TARGET_ENV").unwrap_or_default()],
        })
    }

    /// Tells cargo what the code depends on; on build.rs it depends anyway. The folder with the sources is among it, and so are
    /// those of further programs, for the programs that may come to be there.
    fn rerun_where_changed(&self, scanned: &scan::Scanned, also: &[String], ptxas: Option<&Path>) {
        let folders = ["src"].into_iter().chain(also.iter().map(String::as_str));
        let folders = folders.map(|folder| self.cargo.manifest.with_file_name(folder));
        let folders: Vec<PathBuf> = folders.filter(|folder| folder.is_dir()).collect();
        let is_below = |file: &Path, folder: &PathBuf| {
            file.strip_prefix(folder)
                .is_ok_and(|rest| rest.components().all(|part| part != Component::ParentDir))
        };
        let files = scanned.files.iter().map(PathBuf::as_path);
        let beside = files.filter(|file| !folders.iter().any(|folder| is_below(file, folder)));
        // A name without a folder is looked for in `PATH`, which cargo doesn't.
        let ptxas = ptxas.filter(|ptxas| ptxas.is_file());
        for file in beside.chain(folders.iter().map(PathBuf::as_path)).chain(ptxas) {
            println!("cargo::rerun-if-changed={}", file.display());
        }
        if scanned.lacks_packages {
            // A file that is never there: cargo asks again until it can be told of the packages.
            println!("cargo::rerun-if-changed={}", self.cargo.out.join("packages").display());
        }
    }

    /// The architecture that CPU code is for: not that of the machine that builds, where the program is for another.
    fn architecture(&self) -> Result<Architecture, String> {
        Architecture::named(&self.architecture).ok_or_else(|| {
            let known = Architecture::ALL.map(Architecture::name).join(" and ");
            format!(
                "CPU code is generated for {known}, and the program is built for {}; leave `cpu` out of the targets in \
                 build.rs",
                self.architecture
            )
        })
    }

    /// The system that CPU code is for, likewise.
    fn system(&self) -> Result<System, String> {
        let [os, env] = &self.system;
        System::named(os, env).ok_or_else(|| {
            format!(
                "CPU code is generated for Linux, Android, macOS, Windows and most BSDs, and the program is built for {os}; \
                 leave `cpu` out of the targets in build.rs"
            )
        })
    }

    /// Where the macro looks.
    fn embedded_folder(&self) -> PathBuf {
        self.cargo.out.join("tile")
    }

    /// Where people look.
    fn readable_folder(&self, package: &Package) -> PathBuf {
        package.target_folder.join("tile").join(&self.package)
    }
}
