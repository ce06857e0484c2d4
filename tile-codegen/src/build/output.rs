//! What a build script makes of the kernels that it found: code for every target, embedded in the program, and files for
//! people.

use super::cargo::Package;
use super::remarks::Remarks;
use super::{Environment, archive, assemble, embed, instances, scan};
use crate::cache::Cache;
use crate::checksum::checksum;
use crate::{Artifact, Code, Cpu, Error, Options, compiler, whole_file};
use std::collections::HashSet;
use std::fmt::Write;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use tile_ir::gpu::{self, Remark, RemarkKind, Scheduled};
use tile_ir::specialize::Binding;
use tile_ir::target::{CpuLevel, Family};
use tile_ir::{Bindings, Instance, TargetDesc, Variant, passes, specialize, text};

/// Files written so far.
pub(super) struct Output<'e> {
    environment: &'e Environment,
    package: &'e Package,
    ptxas: Option<&'e Path>,
    targets: &'e [&'static TargetDesc],
    /// How many instances were compiled.
    instances: usize,
    objects: Vec<(String, Vec<u8>)>,
    remarks: Remarks,
    warnings: Vec<String>,
    errors: Vec<String>,
    /// Those for people, and those that the macro includes.
    written: HashSet<PathBuf>,
}

/// One artifact with what the generated code says of it.
pub(super) struct Compiled {
    pub(super) artifact: Artifact,
    pub(super) bindings: Bindings,
    pub(super) variant: Variant,
    /// The instruction set, of CPU code.
    pub(super) level: Option<&'static CpuLevel>,
    /// Machine code of PTX.
    pub(super) cubin: Option<Vec<u8>>,
}

/// An instance that a target can't hold, where it holds others of the kernel.
pub(super) struct LeftOut {
    pub(super) target: &'static TargetDesc,
    pub(super) bindings: Bindings,
    /// What it needs and what there is.
    pub(super) reason: String,
}

/// Why there is no code of an instance for a target.
enum Problem {
    /// The target can't hold it.
    NoRoom(String),
    Other(String),
}

impl From<String> for Problem {
    fn from(text: String) -> Problem {
        Problem::Other(text)
    }
}

/// What became of all kernels.
pub(super) struct Report {
    pub(super) instances: usize,
    pub(super) warnings: Vec<String>,
    /// Of all kernels, so that a build shows what is wrong at once.
    pub(super) errors: Vec<String>,
}

impl<'e> Output<'e> {
    pub(super) fn new(
        environment: &'e Environment,
        package: &'e Package,
        targets: &'e [&'static TargetDesc],
        ptxas: Option<&'e Path>,
    ) -> Output<'e> {
        let (objects, remarks, warnings, errors) = Default::default();
        let (instances, written) = Default::default();
        Output {
            environment,
            package,
            ptxas,
            targets,
            instances,
            objects,
            remarks,
            warnings,
            errors,
            written,
        }
    }

    /// Compiles the instances of a kernel for every target. What is wrong with one hides nothing of the others.
    pub(super) fn kernel(&mut self, kernel: &scan::Found) {
        self.warnings.extend(instances::many(kernel));
        let (mut compiled, mut left_out) = (Vec::new(), Vec::new());
        let before = self.errors.len();
        for bindings in &kernel.instances {
            let instance = specialize(&kernel.kernel, bindings).map_err(|error| error.to_string());
            let explained = instance.and_then(|instance| self.explain(kernel, &instance).map(|()| instance));
            let instance = match explained {
                Ok(instance) => instance,
                Err(error) => {
                    self.errors.push(format!("{}: {error}", kernel.place));
                    continue;
                }
            };
            self.instances += 1;
            for &target in self.targets {
                match self.compile(kernel, &instance, target) {
                    Ok(code) => compiled.extend(code),
                    Err(Problem::NoRoom(reason)) => {
                        left_out.push(LeftOut { target, bindings: bindings.clone(), reason });
                    }
                    Err(Problem::Other(error)) => {
                        self.errors.push(format!("{}: {error}{}", kernel.place, of_instance(bindings)));
                    }
                }
            }
        }
        self.tell_of(kernel, &left_out, &compiled);
        if self.errors.len() == before
            && let Err(error) = self.embed(kernel, &compiled, &left_out)
        {
            self.errors.push(error);
        }
    }

    /// A target that holds an instance of a kernel can do without others; one that holds none has no use.
    fn tell_of(&mut self, kernel: &scan::Found, left_out: &[LeftOut], compiled: &[Compiled]) {
        for (LeftOut { target, bindings, reason }, others) in instances::told(left_out) {
            let (place, instance) = (&kernel.place, of_instance_and(bindings, others));
            if compiled.iter().any(|code| code.artifact.target == target.name) {
                self.warnings.push(format!("{place}: left out for {}: {reason}{instance}", target.name));
            } else {
                self.errors.push(format!("{place}: {reason}{instance}"));
            }
        }
    }

    /// Links the CPU code of all kernels, and removes what is no more.
    pub(super) fn finish(mut self) -> Report {
        if self.errors.is_empty() {
            if let Err(error) = self.link() {
                self.errors.push(error);
            }
            self.remove_what_was_written_before();
        }
        let Output { instances, remarks, warnings, errors, .. } = self;
        Report { instances, warnings: remarks.texts().chain(warnings).collect(), errors }
    }

    fn readable_folder(&self) -> PathBuf {
        self.environment.readable_folder(self.package)
    }

    /// Writes a file for people or for the macro.
    fn write(&mut self, path: PathBuf, bytes: &[u8]) -> Result<(), String> {
        write(&path, bytes)?;
        self.written.insert(path);
        Ok(())
    }

    /// Removes what an earlier build has written of kernels and instances that are no more: the macro would include code that
    /// refers to objects which aren't linked. A file that can't be removed only stays.
    fn remove_what_was_written_before(&self) {
        let remove_others = |folder: &Path| {
            let is_other =
                |path: &PathBuf| !(self.written.contains(path) || whole_file::is_being_written(path));
            let others = entries(folder).filter(is_other);
            others.for_each(|path| drop(fs::remove_file(path)));
        };
        remove_others(&self.environment.embedded_folder());
        for folder in entries(&self.readable_folder()).filter(|path| path.is_dir()) {
            remove_others(&folder);
            // Only one that is empty.
            let _ = fs::remove_dir(folder);
        }
    }

    /// Writes an instance's IR for people: as code is made of it, and after every pass that changed it.
    fn explain(&mut self, kernel: &scan::Found, instance: &Instance) -> Result<(), String> {
        let folder = self.readable_folder().join(&kernel.folder);
        let name = instance_name(instance.bindings());
        let optimized = passes::optimize(instance.clone());
        self.write(folder.join(format!("{name}.tir")), text::print(&optimized).as_bytes())?;
        self.write(folder.join(format!("{name}.passes.tir")), passes::print_trace(instance).as_bytes())
    }

    /// Writes for people how the threads of a GPU share an instance, also of one that doesn't fit, unless it is far too large.
    fn explain_schedule(
        &mut self,
        kernel: &scan::Found,
        instance: &Instance,
        target: &TargetDesc,
    ) -> Result<Option<Scheduled>, String> {
        let variants = Variant::of_target(target).iter().copied();
        let (_, first) = Variant::first_of(variants, instance);
        let Some(scheduled) = crate::gpu::scheduled(&passes::optimize(first), target) else {
            return Ok(None);
        };
        let folder = self.readable_folder().join(&kernel.folder);
        let name = instance_name(instance.bindings());
        let path = folder.join(format!("{name}.{}.schedule.tir", target.name));
        self.write(path, gpu::print(&scheduled).as_bytes())?;
        Ok(Some(scheduled))
    }

    /// Compiles an instance for a target: for the CPU at every level that makes a difference, for a GPU every variant. Warns
    /// of what is slower than it might be.
    fn compile(
        &mut self,
        kernel: &scan::Found,
        instance: &Instance,
        target: &'static TargetDesc,
    ) -> Result<Vec<Compiled>, Problem> {
        let ways: Vec<(Variant, Option<&'static CpuLevel>)> = match target.family {
            Family::Cpu => {
                let levels = crate::levels_of(instance, self.environment.architecture()?);
                levels.map(|level| (Variant::General, Some(level))).collect()
            }
            _ => Variant::of_target(target).iter().map(|&variant| (variant, None)).collect(),
        };
        let scheduled = match target.family {
            Family::Cpu => None,
            _ => self.explain_schedule(kernel, instance, target)?,
        };
        let instances =
            ways.into_iter().filter_map(|(variant, level)| Some((variant.of(instance)?, variant, level)));
        let compiled: Vec<Compiled> = instances
            .map(|(instance, variant, level)| self.compile_way(kernel, &instance, target, variant, level))
            .collect::<Result<_, _>>()?;
        // Of an instance that is left out nothing is slow.
        let is_allowed =
            |remark: &Remark| kernel.allows_slow_products && remark.kind == RemarkKind::SlowProduct;
        let remarks = scheduled.iter().flat_map(Scheduled::remarks);
        for remark in remarks.filter(|remark| !is_allowed(remark)) {
            self.remarks.add(&kernel.place, target.name, remark);
        }
        Ok(compiled)
    }

    fn compile_way(
        &mut self,
        kernel: &scan::Found,
        instance: &Instance,
        target: &'static TargetDesc,
        variant: Variant,
        level: Option<&'static CpuLevel>,
    ) -> Result<Compiled, Problem> {
        let mut name = instance_name(instance.bindings());
        if variant != Variant::General {
            name = format!("{name}-{}", variant.name());
        }
        let symbol = level.map(|level| cpu_symbol(instance, &name, level, &compiler()));
        let mut options = Options { symbol, ..Options::default() };
        if let Some(level) = level {
            options.cpu = Cpu::Level(level);
            options.system = self.environment.system()?;
        }
        let cache = Cache::new(self.package.target_folder.join("tile").join("cache"));
        let cached = cache.compile(instance, target, &options).map_err(|error| match error {
            Error::SharedMemory { .. } | Error::Registers { .. } => Problem::NoRoom(error.to_string()),
            error => Problem::Other(error.to_string()),
        })?;
        self.warnings.extend(cached.warning);
        let artifact = cached.artifact;
        let folder = self.readable_folder().join(&kernel.folder);
        let code_for = level.map_or(target.name, |level| level.name);
        let file = format!("{name}.{code_for}.{}", artifact.code.extension());
        self.write(folder.join(&file), artifact.code.bytes())?;
        let cubin = match (&artifact.code, self.ptxas) {
            (Code::Ptx(text), Some(ptxas)) => {
                // Apart from the files for people: another build of the package may write those now. It goes with the files of
                // earlier builds.
                let own = self.environment.embedded_folder().join(format!("{}-{file}", kernel.folder));
                write(&own, text.as_bytes())?;
                let cubin = assemble::ptx(ptxas, target.name, &own)?;
                self.write(folder.join(file).with_extension("cubin"), &cubin)?;
                Some(cubin)
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
    fn embed(
        &mut self,
        kernel: &scan::Found,
        compiled: &[Compiled],
        left_out: &[LeftOut],
    ) -> Result<(), String> {
        let folder = self.environment.embedded_folder();
        let fingerprint = text::fingerprint(&kernel.kernel);
        let stem = format!("{}-{fingerprint:016x}", kernel.kernel.name);
        let library = self.library();
        let expression = embed::expression(&library, compiled, left_out, |i, extension, bytes| {
            let path = folder.join(format!("{stem}-{i}.{extension}"));
            self.write(path.clone(), bytes).map(|()| path)
        })?;
        self.write(folder.join(format!("{stem}.rs")), expression.as_bytes())
    }

    /// The library that all CPU code is put into.
    fn library(&self) -> String {
        format!("tile_kernels_{}", self.environment.package.replace('-', "_"))
    }

    /// Puts all CPU code into one static library, which what the macro includes asks for.
    fn link(&self) -> Result<(), String> {
        if self.objects.is_empty() {
            return Ok(());
        }
        let system = self.environment.system()?;
        let path = self.environment.cargo.out.join(system.library_file(&self.library()));
        archive::write(&path, system, &self.objects)
            .map_err(|error| format!("{}: {error}", path.display()))?;
        println!("cargo::rustc-link-search=native={}", self.environment.cargo.out.display());
        Ok(())
    }
}

/// What is in a folder; nothing, if that isn't there.
fn entries(folder: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path())
}

/// Which instance an error is of, where a kernel may have several.
fn of_instance(bindings: &Bindings) -> String {
    of_instance_and(bindings, 0)
}

/// The same of an instance and as many others that differ from it in `bool`s.
fn of_instance_and(bindings: &Bindings, others: usize) -> String {
    let bindings = bindings.iter().map(|(name, value)| format!("{name} = {value}"));
    let bindings: Vec<String> = bindings.collect();
    let and = match others {
        0 => String::new(),
        others => format!(", and {others} more that differ in `bool`s or optional arguments"),
    };
    if bindings.is_empty() { String::new() } else { format!(" (instance {}{and})", bindings.join(", ")) }
}

/// `BM128-BN128-BK64`; `default` without parameters.
fn instance_name(bindings: &Bindings) -> String {
    let mut name = String::new();
    for (parameter, value) in bindings {
        let separator = if name.is_empty() { "" } else { "-" };
        let _ = match value {
            Binding::Const(value) => write!(name, "{separator}{parameter}{value}"),
            Binding::Bool(value) => write!(name, "{separator}{parameter}_{value}"),
            Binding::Elem(dtype) => write!(name, "{separator}{parameter}_{dtype}"),
        };
    }
    if name.is_empty() { "default".to_owned() } else { name }
}

/// A symbol that no other instance of any kernel in the program has, nor the same one as another version of this library
/// compiles it, which a dependency may be built with: how its code is called may differ.
fn cpu_symbol(instance: &Instance, name: &str, level: &CpuLevel, compiler: &str) -> String {
    let fingerprint = checksum(format!("{compiler}\n{}", text::print(instance)).bytes());
    let level = level.name.replace(['-', '.'], "_");
    format!("tile_{}_{}_{fingerprint:016x}_{level}", instance.name, name.replace('-', "_"))
}

/// Writes a file and its folder, unless it is there with this content. Other builds of the package write and read the files
/// for people at the same time, and `rust-analyzer` may read what the macro includes.
fn write(path: &Path, bytes: &[u8]) -> Result<(), String> {
    if fs::read(path).is_ok_and(|old| old == bytes) {
        return Ok(());
    }
    let folder = path.parent().unwrap_or(Path::new("."));
    let once = || fs::create_dir_all(folder).and_then(|()| whole_file::write(path, bytes));
    // Another build may remove the folder, as long as that is empty.
    let is_gone = |written: &io::Result<()>| {
        written.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
    };
    let written = std::iter::repeat_with(once).take(TRIES).find(|written| !is_gone(written));
    let written = written.unwrap_or_else(once);
    written.map_err(|error| format!("{}: {error}", path.display()))
}

/// How often a file is written anew whose folder somebody removes.
const TRIES: usize = 10;

#[cfg(test)]
mod tests {
    use super::*;
    use tile_ir::target::Architecture;

    /// What two versions of the library make of one kernel, in crates of one program.
    #[test]
    fn symbols_are_one_compilers() {
        let source = "kernel @k(%y: mut tensor<n x f32>) {\n%v = partition %y [4] : mut partition<n x f32, [4]>\n%0 = constant \
                      1.0 : f32\n%t = splat %0 : tile<4 x f32>\nstore_masked %v, %t\n}";
        let (instance, level) = (Instance::parse(source, &[]).unwrap(), Architecture::X86_64.least());
        let of = |compiler: &str| cpu_symbol(&instance, "default", level, compiler);
        let other = compiler().replace(env!("TILE_CODEGEN_SOURCES"), "0123456789abcdef");
        let symbols = [of(&compiler()), of(&other), of("tile-codegen 0.0.1")];
        assert!(symbols.iter().all(|symbol| symbol.starts_with("tile_k_default_")), "{symbols:?}");
        assert_eq!(symbols.iter().collect::<HashSet<_>>().len(), 3, "{symbols:?}");
    }
}
