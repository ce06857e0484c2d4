//! The program that runs random kernels on both devices.

use super::kernel::ARGUMENTS;
use crate::steps::root;
use std::fmt::Write;

/// Blocks of a launch, each with an index of its own.
const BLOCKS: usize = 3;

/// Of a package beside the workspace.
pub(super) fn manifest() -> String {
    format!(
        "[package]\nname = \"random\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[workspace]\n\n[dependencies]\n\
         tile = {{ path = {:?}, features = [\"jit\"] }}\n",
        root()
    )
}

/// Runs every kernel on both devices, tells of those that differ, and fails if one does.
pub(super) fn program(kernels: &[(String, String)]) -> String {
    let mut text = "#![allow(warnings, arithmetic_overflow, unconditional_panic, overflowing_literals)]\n\
                    use tile::prelude::*;\n\n"
        .to_owned();
    for (_, kernel) in kernels {
        let _ = writeln!(text, "#[tile_kernel]\n{kernel}");
    }
    text += "fn main() -> tile::Result<()> {\n    let devices = [Device::reference(), Device::cpu()];\n    \
             let mut differ = 0;\n";
    for (name, _) in kernels {
        for set in 0..ARGUMENTS[0].1.len() {
            let given: Vec<&str> = ARGUMENTS.iter().map(|(_, values)| values[set]).collect();
            let given = given.join(", ");
            let _ = writeln!(
                text,
                "    let [a, b] = [0, 1].map(|at| {{ let mut y = Tensor::<i64>::zeros(&devices[at], [{BLOCKS}])?; \
                 {name}({given}, &mut y).launch()?; y.to_vec() }});\n    \
                 if a.as_ref().ok() != b.as_ref().ok() || a.is_err() {{ differ += 1; \
                 println!(\"{name}({given}): {{a:?}} as Rust, {{b:?}} natively\"); }}"
            );
        }
    }
    text += "    assert_eq!(differ, 0, \"launches differ\");\n    Ok(())\n}\n";
    text
}
