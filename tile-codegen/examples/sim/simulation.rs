//! One instance, run thread by thread and by the evaluator.

use crate::comparison::{Comparison, tolerance};
use crate::inputs;
use crate::instances::label;
use crate::options::Options;
use crate::sizes::{self, Sizes};
use std::fmt;
use std::time::{Duration, Instant};
use tile_codegen::simt::{self, Counters, Mode, Timing};
use tile_ir::abi::{Argument, KernelAbi, LaunchSizes};
use tile_ir::gpu::{Remark, schedule};
use tile_ir::log::{Event, Site, sites};
use tile_ir::{Array, Instance, Variant, Variants, interp, passes};

/// What a run has shown. Costs are added up per op.
pub(crate) struct Report {
    title: String,
    blocks: usize,
    threads: u32,
    times: Times,
    outputs: Vec<Comparison>,
    messages: Messages,
    /// What is slower than the target could do it.
    remarks: Vec<Remark>,
    counters: Counters,
}

/// What the steps took.
struct Times {
    compilation: Duration,
    run: Duration,
    evaluator: Duration,
}

/// What the kernel and the evaluator print and assert.
struct Messages {
    sites: Vec<Site>,
    found: Vec<Event>,
    expected: Vec<Event>,
}

/// Runs an instance.
///
/// # Errors
/// Where the sizes don't fit it, the target can't do it, or it does what it mustn't.
pub(crate) fn run(instance: &Instance, options: &Options) -> Result<Report, String> {
    let sizes = sizes::choose(instance, &options.sizes)?;
    let abi = KernelAbi::of(instance);
    let mut expected = inputs::arguments(&abi, &sizes)?;
    let mut found = expected.clone();
    let start = Instant::now();
    let events = interp::run_logged(instance, &mut expected).map_err(|error| error.to_string())?;
    let evaluator = start.elapsed();
    let bound = bind(&abi, &found)?;
    let variants = Variants::of(instance, &abi, options.target);
    let (variant, code) = Variant::first_of(variants.fitting(&abi, &bound), instance);
    let start = Instant::now();
    let kernel = simt::compile(&code, options.target, None).map_err(|error| error.to_string())?;
    let compilation = start.elapsed();
    let start = Instant::now();
    let outcome = kernel
        .run_on(&mut found, Mode { timing: options.timing, counted: true })
        .map_err(|error| error.to_string())?;
    let times = Times { compilation, run: start.elapsed(), evaluator };
    Ok(Report {
        title: title(instance, options, variant, &sizes),
        blocks: bound.blocks(),
        threads: kernel.threads(),
        times,
        outputs: compare(&abi, &found, &expected, tolerance(instance)),
        messages: Messages { sites: sites(instance), found: outcome.log.events, expected: events },
        remarks: schedule(passes::optimize(code), options.target, None).remarks().to_vec(),
        counters: outcome.trace.counters.unwrap_or_default().per_op(),
    })
}

fn bind(abi: &KernelAbi, arguments: &[Array]) -> Result<LaunchSizes, String> {
    let tensors = abi.arguments.iter().zip(arguments);
    let tensors = tensors.filter(|(argument, _)| matches!(argument, Argument::Tensor { .. }));
    let shapes: Vec<&[usize]> = tensors.map(|(_, array)| array.shape()).collect();
    abi.bind(&shapes).map_err(|error| error.to_string())
}

/// `gemm(T=bf16, BM=128) of kernels.rs on sm_90a, aligned, m = 256, n = 256`.
fn title(instance: &Instance, options: &Options, variant: Variant, sizes: &Sizes) -> String {
    let early = if options.timing == Timing::Early { ", early" } else { "" };
    let sizes: String = sizes.iter().map(|(name, size)| format!(", {name} = {size}")).collect();
    let (kernel, file, target) = (label(instance), &instance.file, options.target);
    format!("{kernel} of {file} on {target}, {}{early}{sizes}", variant.name())
}

fn compare(abi: &KernelAbi, found: &[Array], expected: &[Array], tolerance: f64) -> Vec<Comparison> {
    let arguments = abi.arguments.iter().zip(found).zip(expected);
    let outputs = arguments.filter_map(|((argument, found), expected)| match argument {
        Argument::Tensor { name, mutable: true, .. } => {
            Some(Comparison::of(name, found, expected, tolerance))
        }
        _ => None,
    });
    outputs.collect()
}

impl Messages {
    /// Whether the same is said in the same order. Numbers in it may differ as those of outputs do.
    fn agree(&self) -> bool {
        let key = |event: &Event| (event.site, event.block, event.position);
        self.found.iter().map(key).eq(self.expected.iter().map(key))
    }

    /// What an event says.
    fn text(&self, event: &Event) -> String {
        let site = self.sites.iter().find(|site| site.number == event.site);
        site.map_or_else(String::new, |site| site.text(event))
    }
}

impl fmt::Display for Messages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for event in &self.found {
            writeln!(f, "block {}: {}", event.block, self.text(event))?;
        }
        for event in self.expected.iter().filter(|_| !self.agree()) {
            writeln!(f, "the evaluator's block {}: {}", event.block, self.text(event))?;
        }
        Ok(())
    }
}

impl Report {
    /// Whether outputs and messages are as the evaluator's.
    pub(crate) fn agrees(&self) -> bool {
        self.outputs.iter().all(Comparison::agrees) && self.messages.agree()
    }
}

/// `1.5e-7`.
fn number(x: f64) -> String {
    if x == 0.0 { String::from("0") } else { format!("{x:.1e}") }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Times { compilation, run, evaluator } = &self.times;
        let seconds = |time: &Duration| format!("{:.2} s", time.as_secs_f64());
        writeln!(f, "{}", self.title)?;
        writeln!(
            f,
            "{} blocks of {} threads, {}; compiled in {}, the evaluator took {}\n",
            self.blocks,
            self.threads,
            seconds(run),
            seconds(compilation),
            seconds(evaluator)
        )?;
        let width = self.outputs.iter().map(|output| output.name.len()).max().unwrap_or(0).max(6);
        writeln!(f, "{:width$}  {:8}  {:>9}  {:>9}  {:9}shape", "output", "format", "error", "at most", "")?;
        for output in &self.outputs {
            let Comparison { name, dtype, shape, error, tolerance } = output;
            let verdict = if output.agrees() { "agrees" } else { "differs" };
            let dtype = dtype.name();
            let [error, tolerance] = [*error, *tolerance].map(number);
            writeln!(f, "{name:width$}  {dtype:8}  {error:>9}  {tolerance:>9}  {verdict:9}{shape:?}")?;
        }
        for remark in &self.remarks {
            writeln!(f, "{remark}")?;
        }
        write!(f, "{}\n{}", self.messages, self.counters)
    }
}
