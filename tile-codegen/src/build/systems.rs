//! The static library that a build script makes for programs of each system and architecture, as its linker reads it: the
//! format of the objects, what they define, and what they ask of others.
//!
//! Runs on any machine. That such programs run, `cargo xtask windows` shows for Windows, and the tests of native code for
//! Linux, on AArch64 by an emulator.

use super::Environment;
use super::output::{Output, Report};
use super::tests::{environment, of_source};
use object::read::archive::ArchiveFile;
use object::{BinaryFormat, Object, ObjectSymbol};
use std::collections::BTreeSet;
use std::path::Path;
use tile_ir::target::Architecture;
use tile_ir::{Instance, TargetDesc};

/// Exponentials of rows by their sums, times a row that all blocks share.
const ROWS: &str = "\
kernel @rows<B>(%x: tensor<m x B x f32>, %w: tensor<B x f32>, %y: mut tensor<m x B x f32>) {
  %vx = partition %x [4, B] : partition<m x B x f32, [4, B]>
  %vw = partition %w [B] : partition<B x f32, [B]>
  %vy = partition %y [4, B] : mut partition<m x B x f32, [4, B]>
  %i, %j = block_index %vy : index, index
  %zero = constant 0.0 : f32
  %a = load_masked %vx[%i, %j] pad %zero : tile<4 x B x f32>
  %row = load_masked %vw[%j] pad %zero : tile<B x f32>
  %rows = reshape %row : tile<1 x B x f32>
  %all = broadcast %rows : tile<4 x B x f32>
  %e = exp %a : tile<4 x B x f32>
  %s = reduce sum %e axis 1 : tile<4 x 1 x f32>
  %sums = broadcast %s : tile<4 x B x f32>
  %q = div %e, %sums : tile<4 x B x f32>
  %r = mul %q, %all : tile<4 x B x f32>
  store_masked %vy, %r
}
";

/// What Rust calls the systems that are programmed for, beside the format of their objects.
const SYSTEMS: [([&str; 2], BinaryFormat); 5] = [
    (["linux", "gnu"], BinaryFormat::Elf),
    (["android", ""], BinaryFormat::Elf),
    (["macos", ""], BinaryFormat::MachO),
    (["windows", "gnu"], BinaryFormat::Coff),
    (["windows", "msvc"], BinaryFormat::Coff),
];

/// What every program has that objects may ask for: functions that LLVM puts in the place of loops, and on Windows what
/// Microsoft's compiler and GNU's call before they take much of the stack, and a mark of code with floats; without the
/// underscores in front.
const PROVIDED: [&str; 6] = ["memcpy", "memset", "memmove", "chkstk", "chkstk_ms", "fltused"];

/// The library of a package with one kernel, for programs of a system and architecture.
fn library(folder: &Path, architecture: Architecture, [os, env]: [&str; 2]) -> Vec<u8> {
    let environment = Environment {
        architecture: architecture.name().to_owned(),
        system: [os.to_owned(), env.to_owned()],
        ..environment(folder)
    };
    let targets = [TargetDesc::cpu()];
    let package = environment.cargo.conventional();
    let mut output = Output::new(&environment, &package, &targets, None);
    output.kernel(&of_source(ROWS, "rows", &[64]));
    let Report { errors, .. } = output.finish();
    assert!(errors.is_empty(), "{errors:?}");
    let name = if env == "msvc" { "tile_kernels_app.lib" } else { "libtile_kernels_app.a" };
    std::fs::read(environment.cargo.out.join(name)).unwrap()
}

#[test]
fn libraries_are_their_systems() {
    for (names, format) in SYSTEMS {
        for architecture in Architecture::ALL {
            let folder = tempfile::tempdir().unwrap();
            let library = library(folder.path(), architecture, names);
            let archive = ArchiveFile::parse(&*library).unwrap();
            let indexed: BTreeSet<Vec<u8>> =
                archive.symbols().unwrap().unwrap().map(|symbol| symbol.unwrap().name().to_vec()).collect();
            let mut objects = 0;
            for member in archive.members() {
                let data = member.unwrap().data(&*library).unwrap();
                let object = object::File::parse(data).unwrap();
                assert_eq!(object.format(), format, "{names:?}");
                assert_eq!(object.architecture(), of_object(architecture), "{names:?}");
                // C's names have an underscore in front on macOS.
                let prefix = if format == BinaryFormat::MachO { "_tile_rows_" } else { "tile_rows_" };
                let entry = object.symbols().find_map(|symbol| {
                    let name = symbol.name_bytes().ok().filter(|name| name.starts_with(prefix.as_bytes()));
                    name.filter(|_| symbol.is_global() && symbol.is_definition())
                });
                assert!(entry.is_some_and(|entry| indexed.contains(entry)), "{entry:?} on {names:?}");
                for asked in object.symbols().filter(ObjectSymbol::is_undefined) {
                    let asked = asked.name().unwrap();
                    let is_provided = PROVIDED.contains(&asked.trim_start_matches('_'));
                    assert!(is_provided || asked.is_empty(), "{asked} on {names:?} {architecture:?}");
                }
                objects += 1;
            }
            let instance = Instance::parse(ROWS, &[("B", 64)]).unwrap();
            assert_eq!(objects, crate::levels_of(&instance, architecture).count());
        }
    }
}

fn of_object(architecture: Architecture) -> object::Architecture {
    match architecture {
        Architecture::X86_64 => object::Architecture::X86_64,
        Architecture::Aarch64 => object::Architecture::Aarch64,
    }
}
