//! Times the compiler on a matmul kernel: front end, and IR to code of each target; and IR to PTX of the kernels in the
//! files that it is given, as launches on aligned rows take them on an H200. `cargo xtask bench compile` runs it.

#[path = "budgets/aligned.rs"]
mod aligned;
#[path = "budgets/instances.rs"]
#[allow(dead_code, reason = "the budgets' own list isn't timed")]
mod instances;

use std::time::Instant;
use tile_codegen::{Options, compile};
use tile_ir::target::TARGETS;
use tile_ir::{Binding, TargetDesc, Variant, specialize};

const RUNS: usize = 21;

const MATMUL: &str = "
fn matmul<const BM: usize, const BN: usize, const BK: usize>(
    a: &Tensor<bf16, m, k>, b: &Tensor<bf16, k, n>, c: &mut Tensor<f32, m, n>,
) {
    let a = a.partition_view([BM, BK]);
    let b = b.partition_view([BK, BN]);
    let mut c = c.partition_view_mut([BM, BN]);
    let [i, j] = c.index();
    let mut acc = Tile::zeros([BM, BN]);
    for p in 0..a.tiles(1) {
        acc = mma(a.load_masked([i, p]), b.load_masked([p, j]), acc);
    }
    c.store_masked(acc);
}";

/// Median, smallest and largest time in milliseconds.
fn time(mut run: impl FnMut()) -> [f64; 3] {
    run();
    let mut times: Vec<f64> = (0..RUNS)
        .map(|_| {
            let start = Instant::now();
            run();
            start.elapsed().as_secs_f64() * 1e3
        })
        .collect();
    times.sort_by(f64::total_cmp);
    [times[RUNS / 2], times[0], times[RUNS - 1]]
}

fn print_row(name: &str, [median, least, most]: [f64; 3], bar: &str) {
    println!("{name:<44} {median:>9.2} {least:>9.2} {most:>9.2}   {bar}");
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let parse = || syn::parse_str::<syn::ItemFn>(MATMUL);
    let lower = || {
        tile_frontend::lower(Default::default(), parse()?, "bench.rs")
            .map_err(Box::<dyn std::error::Error>::from)
    };
    println!(
        "{:<44} {:>9} {:>9} {:>9}   bar (milliseconds, {RUNS} runs)",
        "matmul, bf16, tiles 128×128×64", "median", "min", "max"
    );
    let expansion = time(|| drop(lower()));
    print_row("parse and lower to verified IR", expansion, "≤ 10");
    let kernel = lower()?.kernel;
    let bindings =
        [("BM", 128), ("BN", 128), ("BK", 64)].map(|(name, value)| (name.to_owned(), Binding::Const(value)));
    let instance = specialize(&kernel, &bindings)?;
    for target in TARGETS {
        let bar = match target.name {
            "cpu" => "≤ 60",
            name if name.starts_with("sm_") => "≤ 50",
            _ => "",
        };
        // Launches take the first variant that their sizes allow.
        let variants = Variant::of_target(target).iter();
        for (variant, instance) in variants.filter_map(|it| Some((it.name(), it.of(&instance)?))) {
            compile(&instance, target, &Options::default())?;
            let code = time(|| drop(compile(&instance, target, &Options::default())));
            print_row(&format!("IR to code for {target}, {variant}"), code, bar);
        }
    }
    kernels_of_files(std::env::args().skip(1))
}

fn kernels_of_files(files: impl Iterator<Item = String>) -> Result<(), Box<dyn std::error::Error>> {
    let target = TargetDesc::named("sm_90a")?;
    println!("\n{:<44} {:>9} {:>9} {:>9}   bar", format!("IR to code for {target}"), "median", "min", "max");
    for file in files {
        let source = std::fs::read_to_string(&file).map_err(|error| format!("{file}: {error}"))?;
        for instance in instances::instances_of(&source, &file)? {
            for (variant, compiled) in aligned::on_aligned_rows(&instance) {
                let code = time(|| drop(compile(&compiled, target, &Options::default())));
                print_row(&format!("{} {variant}", instances::label(&instance)), code, "≤ 50");
            }
        }
    }
    Ok(())
}
