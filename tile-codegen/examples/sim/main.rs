//! Runs kernels thread by thread on the host as a GPU would, and compares with the evaluator: `sim KERNEL [--target
//! sm_90a] [--size m=128,n=64] [--early] -- FILE.rs…`. The kernels are those of the `#[tile_kernel]` functions of the
//! files and those of `budgets/kernels.rs`. `cargo xtask sim` runs it with the files of the examples.
//!
//! [`options`] is what the command line says, [`sizes`] and [`inputs`] what a run is given, [`simulation`] the run, and
//! [`comparison`] what is said of its outputs. Fails where a kernel does what it mustn't, or gives something else than
//! the evaluator.

mod comparison;
mod inputs;
#[path = "../budgets/instances.rs"]
mod instances;
mod options;
mod simulation;
mod sizes;

use options::Options;
use std::error::Error;
use std::process::ExitCode;
use tile_ir::Instance;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match run(&words) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Runs what the words say; gives whether everything agrees.
fn run(words: &[String]) -> Result<bool, Box<dyn Error>> {
    let (words, files) = match words.iter().position(|word| word == "--") {
        Some(end) => (&words[..end], &words[end + 1..]),
        None => (words, &[][..]),
    };
    let options = Options::parse(words)?;
    let instances = instances::all(files.iter().cloned())?;
    let mut agrees = true;
    for instance in selected(&instances, &options.kernel)? {
        let report = simulation::run(instance, &options)
            .map_err(|error| format!("{} on {}: {error}", instances::label(instance), options.target))?;
        println!("{report}");
        agrees &= report.agrees();
    }
    Ok(agrees)
}

/// The instances of a kernel, or one by its name in full.
///
/// # Errors
/// Where nothing is called so: what there is.
fn selected<'i>(instances: &'i [Instance], wanted: &str) -> Result<Vec<&'i Instance>, String> {
    let short = |name: &str| name.replace(' ', "");
    let is_wanted =
        |instance: &&Instance| instance.name == wanted || short(&instances::label(instance)) == short(wanted);
    let found: Vec<&Instance> = instances.iter().filter(is_wanted).collect();
    if found.is_empty() {
        let known: Vec<String> =
            instances.iter().map(|instance| format!("  {}", instances::label(instance))).collect();
        return Err(format!(
            "no kernel is called `{wanted}`; name one of these, or one of their instances in quotes:\n{}",
            known.join("\n")
        ));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KERNELS: &str = "
#[tile_kernel(instances(B = 8; B = 16))]
fn double<const B: usize>(x: &Tensor<f32, n>, y: &mut Tensor<f32, n>) {
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    let tile = x.load_masked(y.index());
    y.store_masked(tile + tile);
}

#[tile_kernel(where(n % B == 0), instances(B = 16))]
fn sums<const B: usize>(x: &Tensor<f16, m, n>, y: &mut Tensor<f32, m, 1>) {
    let x = x.partition_view([1, B]);
    let mut y = y.partition_view_mut([1, 1]);
    let [i, _] = y.index();
    let mut sums = Tile::zeros([1, B]);
    for p in 0..x.tiles(1) {
        sums += x.load_masked([i, p]).cast::<f32>();
    }
    y.store_masked(sums.sum(1));
}
";

    fn instances() -> Vec<Instance> {
        instances::instances_of(KERNELS, "kernels.rs").unwrap()
    }

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn kernels_are_found_by_name_or_in_full() {
        let instances = instances();
        let names = |wanted| -> Vec<String> {
            selected(&instances, wanted).unwrap().into_iter().map(instances::label).collect()
        };
        assert_eq!(names("double"), ["double(B=8)", "double(B=16)"]);
        assert_eq!(names("double(B=16)"), ["double(B=16)"]);
        assert_eq!(
            selected(&instances, "triple").unwrap_err(),
            "no kernel is called `triple`; name one of these, or one of their instances in quotes:\n  double(B=8)\n  \
             double(B=16)\n  sums(B=16)"
        );
    }

    #[test]
    fn tiny_kernels_agree() {
        let instances = instances();
        for target in ["sm_90a", "gfx942"] {
            for (kernel, options) in
                [("double(B=8)", ""), ("double(B=16)", " --size n=33"), ("sums", " --early")]
            {
                let options =
                    Options::parse(&words(&format!("{kernel} --target {target}{options}"))).unwrap();
                for instance in selected(&instances, kernel).unwrap() {
                    let report = simulation::run(instance, &options).unwrap();
                    assert!(report.agrees(), "{report}");
                    let text = report.to_string();
                    assert!(text.contains("agrees") && !text.contains("differs"), "{text}");
                }
            }
        }
    }

    #[test]
    fn assertions_that_fail_are_shown() {
        let source = "
#[tile_kernel(instances(B = 8))]
fn roots<const B: usize>(x: &Tensor<f32, n>, y: &mut Tensor<f32, n>) {
    let x = x.partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    let tile = x.load_masked(y.index());
    tile_assert!(tile >= 0.0, \"no root\");
    y.store_masked(tile);
}
";
        let instances = instances::instances_of(source, "kernels.rs").unwrap();
        let report = simulation::run(&instances[0], &Options::parse(&words("roots")).unwrap()).unwrap();
        assert!(report.agrees());
        assert!(report.to_string().contains("block 0: no root (false at element ["), "{report}");
    }

    #[test]
    fn a_report_says_what_ran() {
        let options = Options::parse(&words("double(B=8) --size n=13")).unwrap();
        let text = simulation::run(&instances()[0], &options).unwrap().to_string();
        assert!(
            text.starts_with(
                "double(B=8) of kernels.rs on sm_90a, general, n = 13\n2 blocks of 128 threads, "
            ),
            "{text}"
        );
        // Thirteen numbers, of which the first eight fill a tile: two blocks read and write a sector or two each.
        assert!(text.contains("load, global, sectors"), "{text}");
        assert!(text.contains("store, global, sectors"), "{text}");
    }
}
