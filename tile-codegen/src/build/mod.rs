//! The build-script helper: device code for the kernels of a crate, out of `cargo build`.
//!
//! A build script is one line:
//!
//! ```no_run
//! tile_codegen::build::kernels().targets(["sm_90a", "gfx942", "cpu"]).emit();
//! ```
//!
//! Every `#[tile_kernel(instances(…))]` function under `src/`, and every kernel without parameters, is compiled for every
//! target. The macro finds the code by the fingerprint of the kernel's IR in the folder that `TILE_KERNELS` names; CPU
//! code is linked as a static library. Copies for people go to `target/tile/<package>/<kernel>/`, where several kernels
//! have a name to `<kernel>-<file>-<line>/`.

#[cfg(test)]
mod aarch64;
mod archive;
mod assemble;
mod embed;
mod remarks;
mod scan;

use crate::cache::Cache;
use crate::{Artifact, Code, Cpu, Options};
use remarks::Remarks;
use std::collections::HashSet;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use tile_ir::specialize::Binding;
use tile_ir::target::{Architecture, CpuLevel, Family};
use tile_ir::{Bindings, Instance, TargetDesc, Variant, gpu, passes, specialize, text};

/// The kernels of the crate whose build script calls this.
pub fn kernels() -> Kernels {
    Kernels { targets: vec!["cpu".to_owned()], sources: "src".to_owned(), ptxas: None }
}

/// What is to be compiled for what.
#[derive(Clone, Debug)]
pub struct Kernels {
    targets: Vec<String>,
    sources: String,
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

    /// The folder with the sources, relative to the package's. Without this call, `src`.
    #[must_use]
    pub fn sources(mut self, folder: impl Into<String>) -> Kernels {
        self.sources = folder.into();
        self
    }

    /// The `ptxas` that assembles the code for NVIDIA GPUs, so that nothing is compiled where the program runs. The PTX
    /// stays in the program for drivers that refuse what this `ptxas` makes. Without this call, drivers assemble.
    #[must_use]
    pub fn assemble_with(mut self, ptxas: impl Into<PathBuf>) -> Kernels {
        self.ptxas = Some(ptxas.into());
        self
    }

    /// Compiles everything and tells cargo about it. An error is reported to cargo and ends the build script.
    pub fn emit(self) {
        if let Err(errors) = self.run() {
            for line in errors.lines() {
                println!("cargo::error={line}");
            }
            std::process::exit(1);
        }
    }

    fn run(&self) -> Result<(), String> {
        let environment = Environment::read()?;
        println!("cargo::rerun-if-changed={}", self.sources);
        println!("cargo::rerun-if-changed=build.rs");
        let targets = self.target_descriptions()?;
        let scan::Scanned { found, refused, skipped } =
            scan::kernels(&environment.package_folder, Path::new(&self.sources))?;
        println!("cargo::rustc-env=TILE_KERNELS={}", environment.embedded_folder().display());
        let folder = environment.embedded_folder();
        fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        let ptxas = self.ptxas.as_deref();
        let (objects, remarks, warnings) = (Vec::new(), Remarks::default(), Vec::new());
        let written = HashSet::new();
        let mut output = Output { environment: &environment, ptxas, objects, remarks, warnings, written };
        let mut instances = 0;
        for kernel in &found {
            let mut compiled = Vec::new();
            for bindings in &kernel.instances {
                let instance = specialize(&kernel.kernel, bindings)
                    .map_err(|error| format!("{}: {error}", kernel.place))?;
                instances += 1;
                output.explain(kernel, &instance, &targets)?;
                for target in &targets {
                    compiled.extend(output.compile(kernel, &instance, target)?);
                }
            }
            output.embed(kernel, &compiled)?;
        }
        output.link()?;
        output.remove_what_was_written_before();
        for warning in output.remarks.texts().chain(output.warnings).chain(skipped) {
            println!("cargo::warning={warning}");
        }
        // Where a kernel is wrong, rustc's errors are what the user should see.
        if refused == 0 {
            self.summary(&environment, found.len(), instances);
        }
        Ok(())
    }

    fn target_descriptions(&self) -> Result<Vec<&'static TargetDesc>, String> {
        if self.targets.is_empty() {
            return Err("no targets: name some with `.targets([\"cpu\"])` in build.rs".to_owned());
        }
        let described = self.targets.iter().map(|name| TargetDesc::named(name));
        described.collect::<Result<_, _>>().map_err(|error| format!("{error} (named in build.rs)"))
    }

    fn summary(&self, environment: &Environment, kernels: usize, instances: usize) {
        if instances == 0 {
            println!(
                "cargo::warning=no kernel under `{}` names instances to compile; write `#[tile_kernel(instances(BM = 128, …))]`",
                self.sources
            );
            return;
        }
        let plural =
            |count: usize, word: &str| format!("{count} {word}{}", if count == 1 { "" } else { "s" });
        println!(
            "cargo::warning=compiled {} in {} for {}: see {}",
            plural(kernels, "kernel"),
            plural(instances, "instance"),
            self.targets.join(", "),
            environment.readable_folder().display()
        );
    }
}

/// What cargo tells a build script.
struct Environment {
    package: String,
    package_folder: PathBuf,
    out: PathBuf,
    /// That of the machine that the program is built for, as Rust names it.
    architecture: String,
}

impl Environment {
    fn read() -> Result<Environment, String> {
        let variable = |name: &str| {
            std::env::var(name).map_err(|_| format!("`{name}` isn't set; call this from a build script"))
        };
        Ok(Environment {
            package: variable("CARGO_PKG_NAME")?,
            package_folder: variable("CARGO_MANIFEST_DIR")?.into(),
            out: variable("OUT_DIR")?.into(),
            architecture: variable("CARGO_CFG_TARGET_ARCH")?,
        })
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

    /// Where the macro looks.
    fn embedded_folder(&self) -> PathBuf {
        self.out.join("tile")
    }

    /// The target folder: `OUT_DIR` is `<target>/<profile>/build/<package>-<hash>/out`.
    fn target_folder(&self) -> &Path {
        self.out.ancestors().nth(4).unwrap_or(&self.out)
    }

    /// Where people look.
    fn readable_folder(&self) -> PathBuf {
        self.target_folder().join("tile").join(&self.package)
    }
}

/// Files written so far.
struct Output<'e> {
    environment: &'e Environment,
    ptxas: Option<&'e Path>,
    objects: Vec<(String, Vec<u8>)>,
    remarks: Remarks,
    warnings: Vec<String>,
    /// Those for people, with what is made of them beside.
    written: HashSet<PathBuf>,
}

/// One artifact with what the generated code says of it.
struct Compiled {
    artifact: Artifact,
    bindings: Bindings,
    variant: Variant,
    /// The instruction set, of CPU code.
    level: Option<&'static CpuLevel>,
    /// Machine code of PTX.
    cubin: Option<Vec<u8>>,
}

impl Output<'_> {
    /// Writes a file for people.
    fn write(&mut self, path: PathBuf, bytes: &[u8]) -> Result<(), String> {
        write(&path, bytes)?;
        self.written.insert(path);
        Ok(())
    }

    /// Removes what an earlier build has written for people of instances that are no more. A file that can't be removed only
    /// stays.
    fn remove_what_was_written_before(&self) {
        let folders = entries(&self.environment.readable_folder());
        for folder in folders.filter(|path| path.is_dir()) {
            entries(&folder)
                .filter(|path| !self.written.contains(path))
                .for_each(|path| drop(fs::remove_file(path)));
            // Only one that is empty.
            let _ = fs::remove_dir(folder);
        }
    }

    /// Writes an instance's IR for people: as code is made of it, after every pass that changed it, and as each GPU's
    /// threads share it. Warns of what is slower than it might be.
    fn explain(
        &mut self,
        kernel: &scan::Found,
        instance: &Instance,
        targets: &[&TargetDesc],
    ) -> Result<(), String> {
        let folder = self.environment.readable_folder().join(&kernel.folder);
        let name = instance_name(instance.bindings());
        let optimized = passes::optimize(instance.clone());
        self.write(folder.join(format!("{name}.tir")), text::print(&optimized).as_bytes())?;
        self.write(folder.join(format!("{name}.passes.tir")), passes::print_trace(instance).as_bytes())?;
        for target in targets.iter().filter(|target| target.family != Family::Cpu) {
            let variants = Variant::of_target(target).iter().copied();
            let (_, first) = Variant::first_of(variants, instance);
            let scheduled = crate::gpu::scheduled(&passes::optimize(first), target);
            let path = folder.join(format!("{name}.{}.schedule.tir", target.name));
            self.write(path, gpu::print(&scheduled).as_bytes())?;
            for remark in scheduled.remarks() {
                self.remarks.add(&kernel.place, remark.loc, &remark.message);
            }
        }
        Ok(())
    }

    /// Compiles an instance for a target: for the CPU at every level that makes a difference, for a GPU every variant.
    fn compile(
        &mut self,
        kernel: &scan::Found,
        instance: &Instance,
        target: &TargetDesc,
    ) -> Result<Vec<Compiled>, String> {
        let ways: Vec<(Variant, Option<&'static CpuLevel>)> = match target.family {
            Family::Cpu => {
                let levels = self.environment.architecture()?.levels();
                let levels = levels.filter(|level| crate::cpu::differs(instance, level));
                levels.map(|level| (Variant::General, Some(level))).collect()
            }
            _ => Variant::of_target(target).iter().map(|&variant| (variant, None)).collect(),
        };
        let instances =
            ways.into_iter().filter_map(|(variant, level)| Some((variant.of(instance)?, variant, level)));
        instances
            .map(|(instance, variant, level)| self.compile_way(kernel, &instance, target, (variant, level)))
            .collect()
    }

    fn compile_way(
        &mut self,
        kernel: &scan::Found,
        instance: &Instance,
        target: &TargetDesc,
        (variant, level): (Variant, Option<&'static CpuLevel>),
    ) -> Result<Compiled, String> {
        let mut name = instance_name(instance.bindings());
        if variant != Variant::General {
            name = format!("{name}-{}", variant.name());
        }
        let symbol = level.map(|level| cpu_symbol(instance, &name, level));
        let options = Options { symbol, cpu: level.map_or(Cpu::Host, Cpu::Level), ..Options::default() };
        let cache = Cache::new(self.environment.target_folder().join("tile").join("cache"));
        let cached = cache
            .compile(instance, target, &options)
            .map_err(|error| format!("{}: {error}{}", kernel.place, of_instance(instance)))?;
        self.warnings.extend(cached.warning);
        let artifact = cached.artifact;
        let folder = self.environment.readable_folder().join(&kernel.folder);
        let code_for = level.map_or(target.name, |level| level.name);
        let path = folder.join(format!("{name}.{code_for}.{}", artifact.code.extension()));
        self.write(path.clone(), artifact.code.bytes())?;
        let cubin = match (&artifact.code, self.ptxas) {
            (Code::Ptx(_), Some(ptxas)) => {
                let (cubin, bytes) = assemble::ptx(ptxas, target.name, &path)?;
                self.written.insert(cubin);
                Some(bytes)
            }
            _ => None,
        };
        let bindings = instance.bindings().clone();
        let compiled = Compiled { artifact, bindings, variant, level, cubin };
        if level.is_some() {
            self.objects
                .push((format!("{}.o", compiled.artifact.symbol), compiled.artifact.code.bytes().to_vec()));
        }
        Ok(compiled)
    }

    /// Writes the expression that the macro includes.
    fn embed(&self, kernel: &scan::Found, compiled: &[Compiled]) -> Result<(), String> {
        let folder = self.environment.embedded_folder();
        let fingerprint = text::fingerprint(&kernel.kernel);
        let stem = format!("{}-{fingerprint:016x}", kernel.kernel.name);
        let expression = embed::expression(compiled, |i, extension, bytes| {
            let path = folder.join(format!("{stem}-{i}.{extension}"));
            write(&path, bytes).map(|()| path)
        })?;
        write(&folder.join(format!("{stem}.rs")), expression.as_bytes())
    }

    /// Puts all CPU code into one static library.
    fn link(&self) -> Result<(), String> {
        if self.objects.is_empty() {
            return Ok(());
        }
        let name = format!("tile_kernels_{}", self.environment.package.replace('-', "_"));
        let path = self.environment.out.join(format!("lib{name}.a"));
        archive::write(&path, &self.objects).map_err(|error| format!("{}: {error}", path.display()))?;
        println!("cargo::rustc-link-search=native={}", self.environment.out.display());
        println!("cargo::rustc-link-lib=static={name}");
        Ok(())
    }
}

/// What is in a folder; nothing, if that isn't there.
fn entries(folder: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path())
}

/// Which instance an error is of, where a kernel may have several.
fn of_instance(instance: &Instance) -> String {
    let bindings = instance.bindings().iter().map(|(name, value)| format!("{name} = {value}"));
    let bindings: Vec<String> = bindings.collect();
    if bindings.is_empty() { String::new() } else { format!(" (instance {})", bindings.join(", ")) }
}

/// `BM128-BN128-BK64`; `default` without parameters.
fn instance_name(bindings: &Bindings) -> String {
    let mut name = String::new();
    for (parameter, value) in bindings {
        let separator = if name.is_empty() { "" } else { "-" };
        let _ = match value {
            Binding::Const(value) => write!(name, "{separator}{parameter}{value}"),
            Binding::Elem(dtype) => write!(name, "{separator}{parameter}_{dtype}"),
        };
    }
    if name.is_empty() { "default".to_owned() } else { name }
}

/// A symbol that no other instance of any kernel in the program has.
fn cpu_symbol(instance: &Instance, name: &str, level: &CpuLevel) -> String {
    let fingerprint = text::fingerprint(instance);
    let level = level.name.replace(['-', '.'], "_");
    format!("tile_{}_{}_{fingerprint:016x}_{level}", instance.name, name.replace('-', "_"))
}

/// Writes a file and its folder, unless it is there with this content.
fn write(path: &Path, bytes: &[u8]) -> Result<(), String> {
    if fs::read(path).is_ok_and(|old| old == bytes) {
        return Ok(());
    }
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)
        .and_then(|()| fs::write(path, bytes))
        .map_err(|error| format!("{}: {error}", path.display()))
}
