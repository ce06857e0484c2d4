//! The machine behind the functions of a vendor's library, which a test builds with `rustc`, and the processes that find it
//! where the system's loader looks first: a process loads a vendor's library once, and has one of them.

use super::machine::{Code, Controls};
use crate::gpu::cuda::Cuda;
use crate::gpu::driver::{Driver, Failure, FailureKind};
use crate::gpu::hip::Hip;
use crate::gpu::tests::often;
use libloading::Library;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use tile_ir::target::Family;

/// What tells a test's process of which vendor's library the suite is to run.
const VARIABLE: &str = "TILE_TEST_DRIVER";

/// Whose functions the library has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::gpu) enum Vendor {
    Cuda,
    Hip,
}

impl Vendor {
    /// The one that this process has the library of.
    pub(super) fn of_process() -> Option<Vendor> {
        match &*std::env::var(VARIABLE).ok()? {
            "cuda" => Some(Vendor::Cuda),
            "hip" => Some(Vendor::Hip),
            other => panic!("{VARIABLE} is `{other}`"),
        }
    }

    /// The name by which the vendor's library is looked for, and where its source is.
    fn library(self) -> (&'static str, &'static str) {
        match self {
            Vendor::Cuda => ("libcuda.so", "libcuda/lib.rs"),
            Vendor::Hip => ("libamdhip64.so", "libamdhip64.rs"),
        }
    }

    pub(super) fn family(self) -> Family {
        match self {
            Vendor::Cuda => Family::Nvptx,
            Vendor::Hip => Family::Amdgpu,
        }
    }

    pub(super) fn open(self, ordinal: usize) -> Box<dyn Driver> {
        match self {
            Vendor::Cuda => Box::new(Cuda::open(ordinal).expect("the library has the device")),
            Vendor::Hip => Box::new(Hip::open(ordinal).expect("the library has the device")),
        }
    }

    pub(super) fn failure(self, code: Code) -> Failure {
        let name = match self {
            Vendor::Cuda => code.cuda_name(),
            Vendor::Hip => code.hip_name(),
        };
        let message = format!("{} ({})", code.words().to_string_lossy(), name.to_string_lossy());
        Failure { kind: FailureKind::of_code(code.0), message }
    }

    /// The controls of the library that the process has loaded, or loads now.
    pub(super) fn controls(self) -> &'static Controls {
        static CONTROLS: OnceLock<(Library, usize)> = OnceLock::new();
        let (_, table) = CONTROLS.get_or_init(|| {
            // SAFETY: the library is the one that the test has built, whose function has this type.
            unsafe {
                let library = Library::new(self.library().0).expect("the library is where the loader looks");
                let controls = library.get::<extern "C" fn() -> *const Controls>("controls");
                let table = controls.expect("it is the test's library")();
                (library, table as usize)
            }
        });
        // SAFETY: the table is a static value of the library, which stays loaded.
        unsafe { &*(*table as *const Controls) }
    }

    /// Builds the library without one of its functions, or with all of them.
    pub(in crate::gpu) fn build(self, folder: &Path, lacks: Option<&str>) -> PathBuf {
        let (name, source) = self.library();
        let library = folder.join(name);
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/drivers").join(source);
        let mut rustc = Command::new(std::env::var_os("RUSTC").unwrap_or("rustc".into()));
        rustc.args(["--edition", "2024", "--crate-type", "cdylib", "--crate-name", "driver", "-Dwarnings"]);
        rustc.args(lacks.map(|name| format!("--cfg={name}"))).arg("-o").arg(&library).arg(source);
        let output = rustc.output().expect("rustc runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        library
    }
}

/// A folder for a library, which goes with this.
pub(in crate::gpu) struct Folder(PathBuf);

impl Folder {
    pub(in crate::gpu) fn new(name: &str) -> Folder {
        let folder = std::env::temp_dir().join(format!("tile-driver-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("there is room for temporary files");
        Folder(folder)
    }

    pub(in crate::gpu) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Runs tests in a process that has a vendor's library, and more variables; how many passed.
fn run(
    vendor: Vendor,
    variable: &str,
    lacks: Option<&str>,
    tests: &[&str],
    more: Option<(&str, &str)>,
) -> usize {
    let folder = Folder::new(variable);
    vendor.build(folder.path(), lacks);
    let mut test = Command::new(std::env::current_exe().expect("a test has a file"));
    test.args(tests).args(["--test-threads", "2"]);
    test.env(VARIABLE, variable).env("LD_LIBRARY_PATH", folder.path()).envs(more);
    let output = test.output().expect("the test's own file runs");
    let [text, errors] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
    assert!(output.status.success(), "on {variable}'s library:\n{text}\n{errors}");
    let passed = text.split("test result: ok. ").nth(1).and_then(|rest| rest.split(' ').next());
    passed.and_then(|count| count.parse().ok()).unwrap_or_else(|| panic!("no result in:\n{text}"))
}

/// Runs all tests of what the runtime makes of a driver, and those of a vendor's module, in a process that has its library.
/// In that process itself it runs these, which need it, and those that count what is allocated outside of the machine.
pub(in crate::gpu) fn suite(vendor: Vendor, module: &str, own: &[(&str, fn())]) {
    let Some(_) = Vendor::of_process() else {
        let variable = if vendor == Vendor::Cuda { "cuda" } else { "hip" };
        let passed = run(vendor, variable, None, &["gpu::tests::", module], None);
        assert!(passed > 70, "{passed} tests");
        return;
    };
    for (name, test) in own.iter().chain(often::TESTS) {
        println!("{name}");
        test();
    }
}

/// A driver from before CUDA 11.4 is an error that says so, and no panic of cudarc's.
#[test]
fn a_driver_that_lacks_a_function_is_told_of() {
    const NAME: &str = "gpu::stand_in::vendors::a_driver_that_lacks_a_function_is_told_of";
    const LACKS: &str = "cuGraphInstantiateWithFlags";
    if std::env::var_os(VARIABLE).is_some() {
        let message = "the NVIDIA driver is older than that of CUDA 11.4 (it lacks `cuGraphInstantiateWithFlags`); update it";
        assert_eq!(crate::gpu::cuda::count(), Err(message.to_owned()));
        assert!(crate::Device::cuda(0).is_err_and(|error| error.to_string().ends_with(message)));
        return;
    }
    assert_eq!(run(Vendor::Cuda, "older", Some(LACKS), &["--exact", NAME], None), 1);
}

/// The list of devices isn't locked meanwhile.
#[test]
fn who_is_told_of_a_limit_that_makes_no_sense_may_open_the_device() {
    const NAME: &str =
        "gpu::stand_in::vendors::who_is_told_of_a_limit_that_makes_no_sense_may_open_the_device";
    if std::env::var_os(VARIABLE).is_some() {
        let opens = || assert!(crate::Device::cuda(0).is_ok());
        assert_eq!(crate::journal::tests::told_who_does(opens, opens), 1);
        return;
    }
    let limit = ("TILE_MEMORY_HELD", "much");
    assert_eq!(run(Vendor::Cuda, "told", None, &["--exact", NAME], Some(limit)), 1);
}
