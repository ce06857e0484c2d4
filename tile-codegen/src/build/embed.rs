//! The Rust expression that stands for a kernel's embedded code. The macro expands to it.

use super::output::{Compiled, LeftOut};
use crate::Code;
use std::fmt::Write;
use std::path::PathBuf;
use tile_ir::Bindings;
use tile_ir::specialize::Binding;

/// A block expression of type `&'static [tile::embedded::Embedded]`, which asks the linker for the library that has the CPU
/// code: cargo itself would give it to a package's library alone, where it has one, and not to a program beside it. `store`
/// writes the device code of an entry to a file with an extension.
///
/// It says nothing of lints: rustc keeps silent about what a macro has written, and an author who forbids one can't be asked
/// to allow it.
pub(super) fn expression(
    library: &str,
    compiled: &[Compiled],
    left_out: &[LeftOut],
    mut store: impl FnMut(usize, &str, &[u8]) -> Result<PathBuf, String>,
) -> Result<String, String> {
    let mut stored = |i: usize, extension: &str, bytes: &[u8]| {
        Ok::<_, String>(store(i, extension, bytes)?.display().to_string())
    };
    let mut declarations = String::new();
    let mut entries = String::new();
    for (i, compiled) in compiled.iter().enumerate() {
        let artifact = &compiled.artifact;
        let code = match (&artifact.code, compiled.level) {
            (Code::Object(_), level) => {
                let level = level.map_or("host", |level| level.name);
                let symbol = &artifact.symbol;
                let _ = writeln!(
                    declarations,
                    "        fn {symbol}(slots: *const u64, first: u64, end: u64, scratch: *mut u8, goes_on: bool, is_alone: bool);"
                );
                format!("Cpu {{ level: {level:?}, entry: {symbol} }}")
            }
            (Code::Ptx(text), _) => {
                let cubin = match &compiled.cubin {
                    Some(bytes) => format!("Some(::core::include_bytes!({:?}))", stored(i, "cubin", bytes)?),
                    None => "None".to_owned(),
                };
                let text = stored(i, "ptx", text.as_bytes())?;
                format!("Ptx {{ text: ::core::include_str!({text:?}), cubin: {cubin} }}")
            }
            (Code::Hsaco(bytes), _) => {
                format!("Hsaco(::core::include_bytes!({:?}))", stored(i, "hsaco", bytes)?)
            }
        };
        let bindings = self::bindings(&compiled.bindings);
        let launch = artifact.launch;
        let _ = writeln!(
            entries,
            "        ::tile::embedded::Embedded {{\n            target: {:?},\n            bindings: &[{bindings}],\n            \
             variant: ::tile::embedded::Variant::{:?},\n            code: ::tile::embedded::EmbeddedCode::{code},\n            symbol: {:?},\n            launch: \
             ::tile::embedded::launch({}, {}, {}, {}, {}, {}),\n            tensor_maps: &[{}],\n        }},",
            artifact.target,
            compiled.variant,
            artifact.symbol,
            launch.threads,
            launch.shared_bytes,
            launch.scratch_bytes,
            launch.shares_grid,
            launch.cluster,
            launch.blocks_per_tile,
            artifact.tensor_maps.iter().map(|map| format!("{:?}, ", map.to_string())).collect::<String>()
        );
    }
    for LeftOut { target, bindings, reason } in left_out {
        let bindings = self::bindings(bindings);
        let _ = writeln!(
            entries,
            "        ::tile::embedded::left_out({:?}, &[{bindings}], {reason:?}),",
            target.name
        );
    }
    let link = match declarations.as_str() {
        "" => String::new(),
        _ => format!("    #[link(name = {library:?}, kind = \"static\")]\n"),
    };
    Ok(format!(
        "{{\n{link}    unsafe extern \"C\" {{\n{declarations}    }}\n    \
         const EMBEDDED: &[::tile::embedded::Embedded] = &[\n{entries}    ];\n    EMBEDDED\n}}\n"
    ))
}

fn bindings(bindings: &Bindings) -> String {
    bindings.iter().map(|(name, value)| binding(name, *value)).collect()
}

fn binding(name: &str, value: Binding) -> String {
    match value {
        Binding::Const(value) => format!("({name:?}, ::tile::embedded::Binding::Const({value})), "),
        Binding::Bool(value) => format!("({name:?}, ::tile::embedded::Binding::Bool({value})), "),
        Binding::Elem(dtype) => {
            format!("({name:?}, ::tile::embedded::Binding::Elem(::tile::ir::DType::{dtype:?})), ")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Artifact;
    use tile_ir::abi::Launch;
    use tile_ir::tensor_map::TensorMap;
    use tile_ir::{TargetDesc, Variant, text};

    const LAUNCH: Launch = Launch {
        threads: 128,
        shared_bytes: 64,
        scratch_bytes: 0,
        shares_grid: true,
        cluster: 2,
        blocks_per_tile: 2,
    };

    fn embedded(tensor_maps: Vec<TensorMap>, cubin: Option<Vec<u8>>) -> String {
        let artifact = Artifact {
            target: "sm_90a".to_owned(),
            symbol: "k".to_owned(),
            code: Code::Ptx(String::new()),
            launch: LAUNCH,
            tensor_maps,
        };
        let compiled =
            Compiled { artifact, bindings: Vec::new(), variant: Variant::General, level: None, cubin };
        expression("kernels", &[compiled], &[], |i, extension, _| {
            Ok(PathBuf::from(format!("k-{i}.{extension}")))
        })
        .unwrap()
    }

    #[test]
    fn an_instance_that_is_left_out_says_why() {
        let left_out = LeftOut {
            target: TargetDesc::named("gfx942").unwrap(),
            bindings: vec![("D".to_owned(), Binding::Const(128)), ("UP".to_owned(), Binding::Bool(true))],
            reason: "too \"large\"".to_owned(),
        };
        let expression =
            expression("kernels", &[], &[left_out], |_, _, _| unreachable!("there is no code")).unwrap();
        let expected = r#"::tile::embedded::left_out("gfx942", &[("D", ::tile::embedded::Binding::Const(128)), ("UP", ::tile::embedded::Binding::Bool(true)), ], "too \"large\""),"#;
        assert!(expression.contains(expected), "{expression}");
        assert!(!expression.contains("#[link"), "no CPU code: {expression}");
    }

    #[test]
    fn cpu_code_says_which_library_has_it() {
        let artifact = Artifact {
            target: "cpu".to_owned(),
            symbol: "tile_k".to_owned(),
            code: Code::Object(Vec::new()),
            launch: LAUNCH,
            tensor_maps: Vec::new(),
        };
        let (bindings, variant) = (Vec::new(), Variant::General);
        let compiled = Compiled { artifact, bindings, variant, level: None, cubin: None };
        let expression = expression("kernels", &[compiled], &[], |_, _, _| unreachable!("it is linked"));
        let expression = expression.unwrap();
        let expected = "#[link(name = \"kernels\", kind = \"static\")]";
        assert!(expression.contains(expected));
        assert!(!expression.contains("allow("), "an author may forbid it: {expression}");
    }

    #[test]
    fn tensor_maps_are_texts() {
        let maps = [
            "argument 0 : bf16 offset 0 [k stride 1 tile 64, m stride k tile 128] swizzle 128",
            "argument 2 : f32 offset n - 8 [8 stride 1 tile 8] swizzle 0",
        ];
        let maps_of = || maps.iter().map(|map| text::parse_tensor_map(map).unwrap()).collect();
        let expression = embedded(maps_of(), None);
        let expected = format!(
            "launch: ::tile::embedded::launch(128, 64, 0, true, 2, 2),\n            tensor_maps: &[{:?}, {:?}, ],",
            maps[0], maps[1]
        );
        assert!(expression.contains(&expected), "{expression}");
        assert!(embedded(Vec::new(), None).contains("tensor_maps: &[],"));
    }

    #[test]
    fn machine_code_is_beside_its_ptx() {
        let text = r#"text: ::core::include_str!("k-0.ptx")"#;
        let with = |cubin: &str| format!("EmbeddedCode::Ptx {{ {text}, cubin: {cubin} }}");
        let some = with(r#"Some(::core::include_bytes!("k-0.cubin"))"#);
        assert!(embedded(Vec::new(), Some(vec![1])).contains(&some));
        assert!(embedded(Vec::new(), None).contains(&with("None")));
    }
}
