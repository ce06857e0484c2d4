//! The Rust expression that stands for a kernel's embedded code. The macro includes it.

use super::Compiled;
use crate::Code;
use std::fmt::Write;
use std::path::PathBuf;
use tile_ir::specialize::Binding;

/// A block expression of type `&'static [tile::embedded::Embedded]`. `store` writes device code to a file.
pub(super) fn expression(
    compiled: &[Compiled],
    store: impl Fn(usize, &Code) -> Result<PathBuf, String>,
) -> Result<String, String> {
    let mut declarations = String::new();
    let mut entries = String::new();
    for (i, compiled) in compiled.iter().enumerate() {
        let artifact = &compiled.artifact;
        let code = match (&artifact.code, compiled.level) {
            (Code::Object(_), level) => {
                let level = level.map_or("host", |level| level.name());
                let symbol = &artifact.symbol;
                let _ = writeln!(
                    declarations,
                    "        fn {symbol}(slots: *const u64, first: u64, end: u64, scratch: *mut u8);"
                );
                format!("Cpu {{ level: {level:?}, entry: {symbol} }}")
            }
            (Code::Ptx(_), _) => {
                format!("Ptx(::core::include_str!({:?}))", store(i, &artifact.code)?.display().to_string())
            }
            (Code::Hsaco(_), _) => {
                format!(
                    "Hsaco(::core::include_bytes!({:?}))",
                    store(i, &artifact.code)?.display().to_string()
                )
            }
        };
        let bindings: String = compiled.bindings.iter().map(|(name, value)| binding(name, *value)).collect();
        let launch = artifact.launch;
        let _ = writeln!(
            entries,
            "        ::tile::embedded::Embedded {{\n            target: {:?},\n            bindings: &[{bindings}],\n            \
             variant: ::tile::embedded::Variant::{:?},\n            code: ::tile::embedded::EmbeddedCode::{code},\n            symbol: {:?},\n            launch: \
             ::tile::embedded::launch({}, {}, {}),\n        }},",
            artifact.target,
            compiled.variant,
            artifact.symbol,
            launch.threads,
            launch.shared_bytes,
            launch.scratch_bytes
        );
    }
    Ok(format!(
        "{{\n    #[allow(improper_ctypes, non_snake_case, clippy::all)]\n    unsafe extern \"C\" {{\n{declarations}    }}\n    \
         const EMBEDDED: &[::tile::embedded::Embedded] = &[\n{entries}    ];\n    EMBEDDED\n}}\n"
    ))
}

fn binding(name: &str, value: Binding) -> String {
    match value {
        Binding::Const(value) => format!("({name:?}, ::tile::embedded::Binding::Const({value})), "),
        Binding::Elem(dtype) => {
            format!("({name:?}, ::tile::embedded::Binding::Elem(::tile::ir::DType::{dtype:?})), ")
        }
    }
}
