//! `cargo xtask passes FILE.tir [NAME=VALUE…]`: a kernel's IR after every pass that changes it, and what is known of
//! its index values. Parameters are numbers, `bool`s or element formats: `BM=64 CAUSAL=true T=f32`.

use tile_ir::analysis::{divisibility, ranges};
use tile_ir::{Binding, passes, specialize, text, verify};

/// Prints the passes of a kernel: its file, then what its parameters are bound to.
pub(crate) fn run(arguments: &[&str]) -> Result<(), String> {
    let [file, parameters @ ..] = arguments else { return Err("which file?".to_owned()) };
    let source = std::fs::read_to_string(file).map_err(|error| format!("{file}: {error}"))?;
    let kernel = text::parse(&source).map_err(|error| format!("{file}:{error}"))?;
    let kernel = verify(kernel).map_err(|errors| {
        let lines: Vec<String> =
            errors.iter().map(|error| format!("{file}:{}: {error}", error.loc)).collect();
        lines.join("\n")
    })?;
    let bindings = parameters.iter().map(|parameter| binding(parameter)).collect::<Result<Vec<_>, _>>()?;
    let instance = specialize(&kernel, &bindings).map_err(|error| error.to_string())?;
    println!("{}", passes::print_trace(&instance));
    println!("; ranges\n\n{}", ranges::print(&instance));
    print!("; divisors\n\n{}", divisibility::print(&instance));
    Ok(())
}

fn binding(parameter: &str) -> Result<(String, Binding), String> {
    let expected = || format!("`{parameter}` isn't a parameter; write `BM=64`, `CAUSAL=true` or `T=f32`");
    let (name, value) = parameter.split_once('=').ok_or_else(expected)?;
    Ok((name.to_owned(), value.parse().map_err(|_| expected())?))
}
