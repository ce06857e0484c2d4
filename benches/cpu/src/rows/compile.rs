//! How long the compiler takes from IR to machine code of matrix products.

use super::{Row, Setting};
use crate::Result;
use crate::contest::{Check, Contest, Contestant, Role, Shared};
use crate::kernels::matmul;
use crate::memory::Memory;
use crate::verdict::{Bars, Work};
use tile::ir::{Binding, Instance, TargetDesc, VerifiedKernel, specialize};
use tile::{Device, Tensor};
use tile_codegen::Options;

/// Seconds that a product may take.
const MOST: f64 = 0.060;

pub(super) fn rows() -> Vec<Row> {
    vec![
        Row::new("compile matmul f32", |setting| {
            let [a, b] = [(); 2].map(|()| Tensor::<f32>::zeros(&Device::cpu(), [1024, 1024]));
            let mut c = Tensor::zeros(&Device::cpu(), [1024, 1024])?;
            let chosen = matmul::best(&a?, &b?, &mut c).instance()?;
            contest("compile matmul f32", &matmul::ir(), &chosen, setting)
        })
        .of_one_thread(),
        Row::new("compile matmul bf16", |setting| {
            let tiles = "T = bf16, BM = 128, BN = 128, BK = 64";
            contest("compile matmul bf16", &matmul::ir(), tiles, setting)
        })
        .of_one_thread(),
    ]
}

/// An instance of a kernel by its name: `BM = 128, BN = 64`.
fn instance(kernel: &VerifiedKernel, name: &str) -> Result<Instance> {
    let binding = |text: &str| {
        let (name, value) = text.split_once(" = ")?;
        Some((name.to_owned(), value.parse::<Binding>().ok()?))
    };
    let bindings: Option<Vec<_>> = name.split(", ").map(binding).collect();
    let bindings = bindings.ok_or_else(|| format!("`{name}` isn't an instance"))?;
    Ok(specialize(kernel, &bindings)?)
}

fn contest(title: &str, kernel: &VerifiedKernel, name: &str, setting: &Setting<'_>) -> Result<Contest> {
    let instance = instance(kernel, name)?;
    let run = move |_: &mut Shared| {
        tile_codegen::compile(&instance, TargetDesc::cpu(), &Options::default())?;
        Ok(())
    };
    Ok(Contest {
        title: title.to_owned(),
        threads: setting.threads,
        work: Work::Once,
        bars: Bars { seconds: Some(MOST), ..Bars::default() },
        shared: Shared { inputs: Vec::new(), output: Memory::zeros::<f32>(0) },
        contestants: vec![Contestant::here(Role::Ours, "ours", run)],
        by_multiply_adds: false,
        check: Check::Alone,
        note: name.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instances_are_found_by_their_names() {
        let kernel = matmul::ir();
        assert!(instance(&kernel, "T = f32, BM = 64, BN = 32, BK = 64").is_ok());
        assert!(instance(&kernel, "T = f32").is_err() && instance(&kernel, "tiles").is_err());
    }
}
