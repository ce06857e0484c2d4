//! What becomes of kernels that were found: which instances targets hold, and what is said of those that they don't.

use super::output::{Output, Report};
use super::{Cargo, Conditions, Environment, Kind, Target, instances, scan};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use tile_ir::specialize::Binding;
use tile_ir::{TargetDesc, VerifiedKernel, text};
use tile_test_edit::Edit;

/// Threads exchange the elements of a tile that has its axes swapped, all of them at a time from a size on.
const TURNED: &str = "\
kernel @turned<B>(%x: tensor<n x B x f32>, %y: mut tensor<n x B x f32>) {
  %vx = partition %x [B, B] : partition<n x B x f32, [B, B]>
  %vy = partition %y [B, B] : mut partition<n x B x f32, [B, B]>
  %i, %j = block_index %vy : index, index
  %zero = constant 0.0 : f32
  %a = load_masked %vx[%i, %j] pad %zero : tile<B x B x f32>
  %t = permute %a [1, 0] : tile<B x B x f32>
  %0 = constant 0 : index
  %3 = constant 3 : index
  %p, %q = for %k = %0 to %3 carry (%pi = %a, %qi = %t) : tile<B x B x f32>, tile<B x B x f32> {
    yield %qi, %pi
  }
  %flat = reshape %q : tile<1 x B*B x f32>
  %total = reduce sum %flat axis 1 : tile<1 x 1 x f32>
  %tb = broadcast %total : tile<B x B x f32>
  %out = add %tb, %p : tile<B x B x f32>
  store_masked %vy, %out
}
";

/// Where a build script of a package `app` writes.
pub(super) fn environment(folder: &Path) -> Environment {
    let (features, target) = Default::default();
    let manifest = folder.join("Cargo.toml");
    let out = folder.join("target/debug/build/app-1/out");
    Environment {
        package: "app".to_owned(),
        cargo: Cargo { program: env!("CARGO").into(), manifest, target, features, out },
        conditions: Conditions::default(),
        architecture: "x86_64".to_owned(),
        system: ["linux", "gnu"].map(ToOwned::to_owned),
    }
}

fn found(source: &str, name: &str, sizes: &[usize]) -> scan::Found {
    of_source(&source.edit("turned", name), name, sizes)
}

/// A kernel with a size `B`, as if it had been found in a program.
pub(super) fn of_source(source: &str, name: &str, sizes: &[usize]) -> scan::Found {
    let kernel = VerifiedKernel::parse(source).unwrap();
    let instances = sizes.iter().map(|&size| vec![("B".to_owned(), Binding::Const(size))]).collect();
    let (place, folder) = (format!("src/lib.rs:{}", name.len()), name.to_owned());
    scan::Found { kernel, instances, allows_slow_products: false, place, folder }
}

/// Where people look.
fn readable(environment: &Environment) -> PathBuf {
    environment.readable_folder(&environment.cargo.conventional())
}

/// Compiles kernels for targets.
fn report(folder: &Path, kernels: &[scan::Found], targets: &[&str]) -> Report {
    report_of(&environment(folder), kernels, targets, None)
}

fn report_of(
    environment: &Environment,
    kernels: &[scan::Found],
    targets: &[&str],
    ptxas: Option<&Path>,
) -> Report {
    let targets: Vec<_> = targets.iter().map(|name| TargetDesc::named(name).unwrap()).collect();
    let package = environment.cargo.conventional();
    let mut output = Output::new(environment, &package, &targets, ptxas);
    kernels.iter().for_each(|kernel| output.kernel(kernel));
    output.finish()
}

#[test]
fn an_instance_is_left_out_for_the_targets_that_can_not_hold_it() {
    let folder = tempfile::tempdir().unwrap();
    let kernel = found(TURNED, "turned", &[16, 150]);
    let fingerprint = text::fingerprint(&kernel.kernel);
    let Report { instances, warnings, errors } = report(folder.path(), &[kernel], &["sm_90a", "gfx942"]);
    assert_eq!((instances, &errors[..]), (2, &[][..]));
    assert_eq!(
        warnings,
        [
            "src/lib.rs:6: left out for gfx942: kernel `turned` needs 90112 bytes of shared memory per block, but gfx942 \
             has 65536; use smaller tiles (instance B = 150)"
        ]
    );
    let embedded = environment(folder.path()).embedded_folder().join(format!("turned-{fingerprint:016x}.rs"));
    let embedded = std::fs::read_to_string(embedded).unwrap();
    let held = |target: &str, size: u32| {
        let entry = format!(
            "target: {target:?},\n            bindings: &[(\"B\", ::tile::embedded::Binding::Const({size})), ]"
        );
        embedded.contains(&entry)
    };
    assert!(
        held("sm_90a", 16) && held("sm_90a", 150) && held("gfx942", 16) && !held("gfx942", 150),
        "{embedded}"
    );
    let left_out = "::tile::embedded::left_out(\"gfx942\", &[(\"B\", ::tile::embedded::Binding::Const(150)), ], \"kernel \
                    `turned` needs 90112 bytes";
    assert!(embedded.contains(left_out), "{embedded}");
}

/// The kernel above with arguments that may be absent.
fn with_optional(names: &[&str]) -> VerifiedKernel {
    let generics: String = names.iter().map(|name| format!(", {name}: bool")).collect();
    let arguments: String = names.iter().map(|name| format!(", %{name}: f32 if {name}")).collect();
    let source =
        TURNED.edit("<B>", &format!("<B{generics}>")).edit(") {\n  %vx", &format!("{arguments}) {{\n  %vx"));
    VerifiedKernel::parse(&source).unwrap_or_else(|error| panic!("{error}\n{source}"))
}

/// All ways in which arguments may be given, of each size.
fn with_and_without(names: &[&str], sizes: &[usize]) -> Vec<Vec<(String, Binding)>> {
    let of_size = |&size: &usize| {
        (0..1 << names.len()).map(move |ways: usize| {
            let given = |(i, name): (usize, &&str)| ((*name).to_owned(), Binding::Bool(ways >> i & 1 == 1));
            let size = ("B".to_owned(), Binding::Const(size));
            [size].into_iter().chain(names.iter().enumerate().map(given)).collect()
        })
    };
    sizes.iter().flat_map(of_size).collect()
}

/// What is said of a tile that a target can't hold is said once, not for each way in which arguments may be given.
#[test]
fn instances_that_differ_in_optional_arguments_are_left_out_together() {
    let folder = tempfile::tempdir().unwrap();
    let names = ["bias", "gate"];
    let (place, name) = ("src/lib.rs:6".to_owned(), "turned".to_owned());
    let kernel = scan::Found {
        kernel: with_optional(&names),
        instances: with_and_without(&names, &[16, 150]),
        allows_slow_products: false,
        place,
        folder: name,
    };
    let Report { warnings, errors, .. } = report(folder.path(), &[kernel], &["gfx942"]);
    assert_eq!(errors, [""; 0]);
    assert_eq!(
        warnings,
        [
            "src/lib.rs:6: left out for gfx942: kernel `turned` needs 90112 bytes of shared memory per block, but gfx942 \
             has 65536; use smaller tiles (instance B = 150, bias = false, gate = false, and 3 more that differ in `bool`s \
             or optional arguments)"
        ]
    );
}

#[test]
fn a_target_that_is_named_twice_is_one() {
    let names = |targets: &[&str]| {
        let described = super::kernels().targets(targets.iter().copied()).target_descriptions();
        described.unwrap().iter().map(|target| target.name).collect::<Vec<_>>()
    };
    assert_eq!(names(&["cpu", "sm_90a", "cpu", "gfx942", "sm_90a"]), ["cpu", "sm_90a", "gfx942"]);
}

#[test]
fn many_instances_by_optional_arguments_are_warned_of() {
    let names = ["bias", "cap", "gate"];
    let warning = |sizes: std::ops::Range<usize>| {
        let sizes: Vec<usize> = sizes.collect();
        instances::many(&scan::Found {
            kernel: with_optional(&names),
            instances: with_and_without(&names, &sizes),
            allows_slow_products: false,
            place: "src/lib.rs:6".to_owned(),
            folder: "turned".to_owned(),
        })
    };
    assert_eq!(warning(1..17), None);
    assert_eq!(
        warning(1..18).unwrap(),
        "src/lib.rs:6: kernel `turned` has 136 instances, each of which is compiled for every target: 17 of its list, each \
         in 8 ways, with and without 3 optional arguments (`bias`, `cap`, `gate`); say in the list which are wanted, \
         `instances(…, bias = true)`, or name the combinations that matter, `instances(…; …)`"
    );
    // Of a list that says all of it nothing is said.
    let sizes: Vec<usize> = (1..200).collect();
    assert_eq!(instances::many(&found(TURNED, "turned", &sizes)), None);
}

/// Products of so few rows that no warpgroup does them.
const FEW_ROWS: &str = "\
kernel @turned<B>(%a: tensor<m x k x bf16>, %b: tensor<k x n x bf16>, %c: mut tensor<m x n x f32>) {
  %va = partition %a [B, B] : partition<m x k x bf16, [B, B]>
  %vb = partition %b [B, B] : partition<k x n x bf16, [B, B]>
  %vc = partition %c [B, B] : mut partition<m x n x f32, [B, B]>
  %i, %j = block_index %vc : index, index
  %pad = constant 0.0 : bf16
  %none = constant 0.0 : f32
  %zero = splat %none : tile<B x B x f32>
  %0 = constant 0 : index
  %end = extent ceil_div(k, B) : index
  %sum = for %p = %0 to %end carry (%acc = %zero) : tile<B x B x f32> {
    %ta = load_masked %va[%i, %p] pad %pad : tile<B x B x bf16>
    %tb = load_masked %vb[%p, %j] pad %pad : tile<B x B x bf16>
    %next = mma %ta, %tb, %acc : tile<B x B x f32>
    yield %next
  }
  store_masked %vc, %sum
}
";

/// It is a warning, unless the author says that it is meant so.
#[test]
fn slow_products_are_warned_of_where_they_are_not_allowed() {
    let folder = tempfile::tempdir().unwrap();
    let warnings = |kernel: scan::Found| {
        let Report { warnings, errors, .. } = report(folder.path(), &[kernel], &["sm_90a"]);
        assert_eq!(errors, [""; 0]);
        warnings
    };
    let slow = warnings(found(FEW_ROWS, "slow", &[32]));
    assert_eq!(slow.len(), 1);
    assert!(
        slow[0].starts_with("src/lib.rs:4, on sm_90a: a product isn't done by warpgroups (`wgmma`)"),
        "{}",
        slow[0]
    );
    let allowed = scan::Found { allows_slow_products: true, ..found(FEW_ROWS, "slow", &[32]) };
    assert_eq!(warnings(allowed), [""; 0]);
    // Nobody said so of hints.
    let hinted = FEW_ROWS.edit(" {\n  %va", " occupancy 32 {\n  %va");
    let allowed = scan::Found { allows_slow_products: true, ..found(&hinted, "slow", &[32]) };
    let [hint] = &warnings(allowed)[..] else { panic!("one hint isn't followed") };
    assert!(hint.starts_with("src/lib.rs:4, on sm_90a: `occupancy = 32` isn't followed"), "{hint}");
}

#[test]
fn a_target_that_holds_no_instance_is_an_error_and_so_are_those_of_other_kernels() {
    let folder = tempfile::tempdir().unwrap();
    let kernels = [
        found(TURNED, "turned", &[150, 160]),
        found(TURNED, "well", &[16]),
        found(TURNED, "turned_too", &[150]),
    ];
    let Report { errors, .. } = report(folder.path(), &kernels, &["gfx942"]);
    let needs = |place: usize, name: &str, bytes: u32, size: u32| {
        format!(
            "src/lib.rs:{place}: kernel `{name}` needs {bytes} bytes of shared memory per block, but gfx942 has 65536; use \
             smaller tiles (instance B = {size})"
        )
    };
    let expected = [
        needs(6, "turned", 90112, 150),
        needs(6, "turned", 102400, 160),
        needs(10, "turned_too", 90112, 150),
    ];
    assert_eq!(errors, expected);
}

/// Rust declares what C calls by ASCII names alone.
#[test]
fn names_of_other_letters_are_written_in_ascii() {
    let folder = tempfile::tempdir().unwrap();
    let kernel = VerifiedKernel::parse(&TURNED.edit("turned", "größe").edit("B", "BLÖCKE")).unwrap();
    let fingerprint = text::fingerprint(&kernel);
    let (place, folder_of_kernel) = ("src/lib.rs:6".to_owned(), "größe".to_owned());
    let found = scan::Found {
        kernel,
        instances: vec![vec![("BLÖCKE".to_owned(), Binding::Const(16))]],
        allows_slow_products: false,
        place,
        folder: folder_of_kernel,
    };
    let Report { errors, .. } = report(folder.path(), &[found], &["sm_90a", "gfx942", "cpu"]);
    assert_eq!(errors, [""; 0]);
    let embedded = environment(folder.path()).embedded_folder().join(format!("größe-{fingerprint:016x}.rs"));
    let embedded = std::fs::read_to_string(embedded).unwrap();
    let declared: Vec<&str> = embedded.lines().filter_map(|line| line.trim().strip_prefix("fn ")).collect();
    assert!(!declared.is_empty());
    for function in declared {
        assert!(
            function.is_ascii() && function.starts_with("tile_gr_uf6__udf_e_BL_ud6_CKE16_"),
            "{function}"
        );
    }
    assert!(embedded.contains(r#"symbol: "gr_uf6__udf_e","#), "{embedded}");
}

/// Cargo builds a program whose dependency has the feature, which a build script isn't told.
#[test]
fn programs_that_ask_for_features_of_dependencies_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let mut environment = environment(folder.path());
    environment.cargo.features = vec!["fast".to_owned()];
    let mut package = environment.cargo.conventional();
    package.targets = [["fast", "tile/npy"], ["fast", "other"]]
        .map(|features| Target {
            kind: Kind::Program,
            name: features[1].to_owned(),
            root: folder.path().join("main.rs"),
            required_features: features.map(ToOwned::to_owned).to_vec(),
        })
        .to_vec();
    let roots = super::kernels().roots(&environment, &package).unwrap();
    let names: Vec<&str> = roots.iter().map(|target| target.name.as_str()).collect();
    assert_eq!(names, ["tile/npy"]);
}

/// Code of a kernel that is no more would refer to objects that aren't linked.
#[test]
fn nothing_of_a_kernel_that_is_no_more_stays() {
    let folder = tempfile::tempdir().unwrap();
    let files = |folder: &Path| {
        let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
        let mut names: Vec<String> = entries.map(|name| name.to_string_lossy().into_owned()).collect();
        names.sort();
        names
    };
    let embedded = environment(folder.path()).embedded_folder();
    let readable = readable(&environment(folder.path()));
    report(folder.path(), &[found(TURNED, "first", &[8]), found(TURNED, "second", &[8])], &["cpu"]);
    assert_eq!(
        (files(&embedded).len(), files(&readable)),
        (2, vec!["first".to_owned(), "second".to_owned()])
    );
    report(folder.path(), &[found(TURNED, "second", &[8])], &["cpu"]);
    assert_eq!((files(&embedded).len(), files(&readable)), (1, vec!["second".to_owned()]));
    assert!(files(&embedded)[0].starts_with("second-"), "{:?}", files(&embedded));
}

/// The one that another build script of the package has, of another profile.
fn environment_of_release(folder: &Path) -> Environment {
    let mut environment = environment(folder);
    environment.cargo.out = folder.join("target/release/build/app-2/out");
    environment
}

/// As another build does it, whose kernel of that name is another one.
#[cfg(unix)]
#[test]
fn what_is_assembled_is_not_what_another_build_has_written_meanwhile() {
    use std::process::Command;
    let folder = tempfile::tempdir().unwrap();
    let environment = environment(folder.path());
    let readable = readable(&environment);
    let script = format!(
        "#!/bin/sh\nfor file in {}/*/*.ptx; do echo another > \"$file\"; done\ncp \"$4\" \"$3\"\n",
        readable.display()
    );
    let (source, ptxas) = (folder.path().join("source"), folder.path().join("ptxas"));
    std::fs::write(&source, script).unwrap();
    // No other test's child has it open for writing, so that it can be run.
    let installed = Command::new("install").args(["-m", "755"]).args([&source, &ptxas]).status().unwrap();
    assert!(installed.success());
    let Report { errors, .. } =
        report_of(&environment, &[found(TURNED, "turned", &[16])], &["sm_80"], Some(&ptxas));
    assert_eq!(errors, [""; 0]);
    let files_of = |folder: &Path, extension: &str| {
        let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let mut files: Vec<_> =
            files.filter(|path| path.extension().is_some_and(|e| e == extension)).collect();
        files.sort();
        files
    };
    let embedded = environment.embedded_folder();
    let cubins = files_of(&embedded, "cubin");
    assert_eq!(cubins.len(), files_of(&embedded, "ptx").len(), "no others stay");
    assert!(!cubins.is_empty());
    for cubin in &cubins {
        let [machine, text] = [cubin, &cubin.with_extension("ptx")].map(|path| std::fs::read(path).unwrap());
        assert!(machine == text, "{} isn't made of its own text", cubin.display());
    }
    assert_eq!(files_of(&readable.join("turned"), "cubin").len(), cubins.len());
}

/// Two build scripts of a package, which write the same files for people, and some that the other one removes.
#[test]
fn builds_at_once_neither_fail_nor_leave_half_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let environments = [environment(folder.path()), environment_of_release(folder.path())];
    let longer = TURNED
        .edit("  %out = add %tb, %p", "  %more = add %tb, %tb : tile<B x B x f32>\n  %out = add %more, %p");
    let of = |build: usize| {
        let (source, own) = [(TURNED, "debug"), (&*longer, "release")][build];
        [found(source, "both", &[8]), found(TURNED, own, &[8])]
    };
    let file = readable(&environments[0]).join("both").join("B8.tir");
    let whole = [0, 1].map(|build| {
        let Report { errors, .. } = report_of(&environments[build], &of(build), &["sm_80"], None);
        assert_eq!(errors, [""; 0]);
        std::fs::read(&file).unwrap()
    });
    assert_ne!(whole[0], whole[1]);
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut seen = 0;
            while !is_over.load(Ordering::Relaxed) {
                let bytes = std::fs::read(&file).unwrap();
                assert!(whole.contains(&bytes), "{}", String::from_utf8_lossy(&bytes));
                seen += 1;
            }
            seen
        });
        let build = |build: usize| {
            let (environment, kernels) = (&environments[build], of(build));
            scope.spawn(move || {
                let built = (0..10).map(|_| report_of(environment, &kernels, &["sm_80"], None).errors);
                built.flatten().collect::<Vec<_>>()
            })
        };
        let builds = [0, 1].map(build).map(|build| build.join().unwrap());
        is_over.store(true, Ordering::Relaxed);
        assert_eq!(builds, [const { Vec::<String>::new() }; 2]);
        assert!(reader.join().unwrap() > 0);
    });
}
