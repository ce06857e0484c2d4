//! What an author's hints make of code for GPUs: the code says what the assembler is to know, and on simulated threads it
//! computes what it computes without them.

use crate::copies::check_on;
use crate::pipelines::matmul;
use crate::support::{instance, sample};
use tile_codegen::{Options, compile};
use tile_ir::gpu::schedule;
use tile_ir::{DType, TargetDesc, passes};

/// A product of bf16 with these hints, in tiles of 64×64×32.
fn product(hints: &str) -> String {
    let product = matmul([DType::BF16, DType::F32], "mk", "kn", [64, 64, 32]);
    product.replacen(" {\n", &format!("{hints} {{\n"), 1)
}

/// Fewer turns than stages, as many, and more; threads of two warps, and of as many as rows have work for.
#[test]
fn products_of_every_schedule_agree() {
    const ALL: [&str; 5] = ["", " stages 2", " threads 128 stages 5", " stages 8", " threads 64 occupancy 2"];
    // Warpgroups have 128 threads: where a block has fewer, warps multiply what all threads copy.
    let cases: [(&str, &[&str], usize); 4] =
        [("sm_80", &ALL, 2), ("sm_90a", &ALL[..4], 0), ("sm_90a", &ALL[4..], 2), ("gfx942", &ALL, 0)];
    for (target, hints, copied) in cases {
        for (hints, k) in hints.iter().flat_map(|hints| [32, 96, 320].map(|k| (hints, k))) {
            let factors = [[72, k], [k, 80]].map(|shape| sample(DType::BF16, &shape, shape[0]));
            let arguments = [&factors[..], &[sample(DType::F32, &[72, 80], 1)]].concat();
            check_on(target, &product(hints), &arguments, copied, 1e-4);
        }
    }
}

fn ptx(source: &str) -> String {
    let target = TargetDesc::named("sm_80").unwrap();
    let artifact = compile(&instance(source, &[]), target, &Options::default()).unwrap();
    String::from_utf8(artifact.code.bytes().to_vec()).unwrap()
}

#[test]
fn assemblers_are_told_how_many_threads_and_blocks_there_are() {
    let directives = |hints: &str| {
        let ptx = ptx(&product(hints));
        let directives = ptx
            .lines()
            .map(str::trim)
            .filter(|line| line.starts_with(".reqntid") || line.starts_with(".minncta"));
        directives.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(directives(" threads 64"), [".reqntid 64, 1, 1"]);
    assert_eq!(directives(" threads 128 occupancy 3"), [".reqntid 128, 1, 1", ".minnctapersm 3"]);
}

/// Fewer threads than a wave are none: code has a whole one, whose instructions multiply.
#[test]
fn products_of_less_than_a_wave_are_those_of_a_whole_one() {
    let arguments = [[72, 96], [96, 80], [72, 80]].map(|shape| sample(DType::BF16, &shape, shape[0]));
    let arguments = [&arguments[..2], &[sample(DType::F32, &[72, 80], 1)]].concat();
    for target in ["gfx90a", "gfx942", "gfx950"] {
        check_on(target, &product(" threads 32"), &arguments, 0, 1e-4);
        let instance = passes::optimize(instance(&product(" threads 32"), &[]));
        let scheduled = schedule(instance, TargetDesc::named(target).unwrap(), None);
        let op = scheduled.walk().into_iter().find(|&op| scheduled.op(op).op.is_product()).unwrap();
        assert!(scheduled.product(op).is_some() && scheduled.block_threads() == 64, "{target}");
    }
}
