//! What kernels print and assert, on every target: the log that native code and threads leave against what the
//! evaluator saw, and through every GPU back end.

use crate::emulated::Region;
use crate::support::{Company, Memory, Native, close, compile_simt, instance, sample};
use tile_codegen::Error;
use tile_codegen::Options;
use tile_codegen::simt::Mode;
use tile_ir::abi::BindError;
use tile_ir::array::Elements;
use tile_ir::log::{self, Contents, Event, HEADER_WORDS};
use tile_ir::{Array, DType, Instance, TargetDesc, interp};

/// Scalars and tiles of every way to hold one, in loops and branches; assertions of scalars and tiles.
const SAYS: &str = "\
kernel @says<B>(%x: tensor<n x f32>, %h: f16, %y: mut tensor<n x f32>) {
  %vx = partition %x [B] : partition<n x f32, [B]>
  %vy = partition %y [B] : mut partition<n x f32, [B]>
  %i = block_index %vy : index
  %zero = constant 0.0 : f32
  %t = load_masked %vx[%i] pad %zero : tile<B x f32>
  %zeros = splat %zero : tile<B x f32>
  %places = iota 0 : tile<B x i16>
  %holds = ge %t, %zeros : tile<B x bool>
  %d = add %t, %t : tile<B x f32>
  print 4 \"block {0} of {1}: {2:?}\" %i, %h, %d
  assert 0 \"{0} at {1}\" %holds, %t, %places
  %row = reshape %d : tile<1 x B x f32>
  %twice = broadcast %row : tile<2 x B x f32>
  %start = constant 0 : index
  %two = constant 2 : index
  for %k = %start to %two {
    print 1 \"turn {0}: {1} {2} {3}\" %k, %zeros, %holds, %twice
    %half = cast %t : tile<B x bf16>
    print 9 \"{0:.1}\" %half
  }
  %even = eq %i, %start : bool
  if %even {
    print 2 \"the first block\"
  } else {
    %bottom = reduce min %t axis 0 : tile<1 x f32>
    %least = item %bottom : f32
    %bounded = lt %zero, %least : bool
    assert 3 \"{0} and {1}\" %bounded, %least, %d
  }
  %all = reduce all %holds axis 0 : tile<1 x bool>
  assert 5 \"some\" %all
  %sum = add %d, %t : tile<B x f32>
  store_masked %vy, %sum
}
";

/// A log of this many words of records, and the arguments, after a kernel ran with it.
fn logged(
    instance: &Instance,
    arguments: &[Array],
    words: usize,
    run: impl FnOnce(&Memory, Region),
) -> (Contents, Vec<Array>) {
    const GUARD: u64 = 0x5a5a_5a5a_5a5a_5a5a;
    let mut memory = Memory::of(instance, arguments);
    let mut words = log::empty(HEADER_WORDS + words);
    words.push(GUARD);
    let log = Region { address: words.as_mut_ptr().cast(), bytes: size_of_val(words.as_slice()) };
    memory.slots.push(log.address as u64);
    run(&memory, log);
    assert_eq!(words.pop(), Some(GUARD), "the kernel wrote behind its log");
    (log::decode(&log::sites(instance), &words), memory.arrays(arguments))
}

fn native(instance: &Instance, arguments: &[Array], words: usize) -> (Contents, Vec<Array>) {
    let kernel = Native::of(instance, &Options::default());
    logged(instance, arguments, words, |memory, log| kernel.run_beside(memory, &[log], Company::Others))
}

fn threads(
    instance: &Instance,
    arguments: &[Array],
    words: usize,
    threads: Option<u32>,
) -> (Contents, Vec<Array>) {
    let target = TargetDesc::named("sm_90a").unwrap();
    let kernel = compile_simt(instance, target, threads);
    logged(instance, arguments, words, |memory, _| {
        // SAFETY: the slots are as the instance's ABI says, with the log last.
        let result = unsafe { kernel.run(&memory.slots, memory.blocks) };
        result.unwrap_or_else(|error| panic!("{error}"));
    })
}

fn check(
    source: &str,
    constants: &[(&str, usize)],
    arguments: &[Array],
    shapes: &[Option<u32>],
) -> Vec<Event> {
    let instance = instance(source, constants);
    let mut evaluated = arguments.to_vec();
    let events = interp::run_logged(&instance, &mut evaluated).unwrap();
    let failures = events.iter().filter(|event| event.position.is_some()).count() as u64;
    let expected = Contents { events, lost_words: 0, failures };
    let output = evaluated.len() - 1;
    let found = shapes.iter().map(|&shape| threads(&instance, arguments, 1 << 16, shape));
    for (contents, arrays) in found.chain([native(&instance, arguments, 1 << 16)]) {
        assert_eq!(contents, expected, "{constants:?}");
        close(&arrays[output], &evaluated[output], 0.0, "the output");
    }
    expected.events
}

fn says(b: usize) -> [Array; 3] {
    let n = 3 * b - 1;
    // The first block is positive, so its assertions hold.
    let numbers = (0..n).map(|i| if i < b { 1.5 } else { ((i * 37) % 11) as f64 / 4.0 - 0.5 });
    let x = Array::new(DType::F32, vec![n], Elements::Float(numbers.collect()));
    let h = Array::new(DType::F16, Vec::new(), Elements::Float(vec![-0.375]));
    [x, h, sample(DType::F32, &[n], 2)]
}

#[test]
fn threads_run_on_arrays_as_the_evaluator_does() {
    let instance = instance(SAYS, &[("B", 3)]);
    let kernel = compile_simt(&instance, TargetDesc::named("gfx942").unwrap(), None);
    let (mut expected, mut found) = (says(3), says(3));
    let events = interp::run_logged(&instance, &mut expected).unwrap();
    let outcome = kernel.run_on(&mut found, Mode::default()).unwrap();
    assert_eq!((outcome.log.events, outcome.log.lost_words), (events, 0));
    assert_eq!(found, expected);
    let mut wrong = says(3);
    wrong[2] = sample(DType::F32, &[5], 2);
    let error = kernel.run_on(&mut wrong, Mode::default()).unwrap_err();
    assert!(matches!(error, Error::Arguments(BindError::Conflict { .. })), "{error}");
}

#[test]
fn every_target_says_what_the_evaluator_says() {
    // Tiles of one slot, of several in registers, and of more, which live in arrays.
    for (b, shapes) in [(3, [None, Some(2)]), (256, [None, Some(8)]), (520, [None, Some(4)])] {
        let events = check(SAYS, &[("B", b)], &says(b), &shapes);
        assert!(events.iter().any(|event| event.site == 0) && events.iter().any(|event| event.site == 3));
    }
}

#[test]
fn the_text_is_the_one_of_these_numbers() {
    let source = "\
kernel @few(%y: mut tensor<n x f32>) {
  %vy = partition %y [2] : mut partition<n x f32, [2]>
  %i = block_index %vy : index
  %zero = constant 0.0 : f32
  %t = load_masked %vy pad %zero : tile<2 x f32>
  %zeros = splat %zero : tile<2 x f32>
  %c = ge %t, %zeros : tile<2 x bool>
  print 0 \"{0}: {1}\" %i, %t
  assert 1 \"{0:.2}\" %c, %t
}
";
    let y = Array::new(DType::F32, vec![4], Elements::Float(vec![1.0, 0.5, 2.0, -3.0]));
    let events = check(source, &[], &[y], &[None, Some(1)]);
    let sites = log::sites(&instance(source, &[]));
    let texts: Vec<String> = events
        .iter()
        .map(|event| sites.iter().find(|site| site.number == event.site).unwrap().text(event))
        .collect();
    assert_eq!(
        texts,
        ["0: [1.0, 0.5]", "1: [ 2.0, -3.0]", "[ 2.00, -3.00] (false at element [1] of the condition)"]
    );
}

#[test]
fn every_format_reaches_the_host() {
    for &dtype in DType::ALL.iter().filter(|dtype| dtype.is_element()) {
        let pad = match dtype {
            DType::Bool => "false",
            dtype if dtype.is_float() => "0.0",
            _ => "0",
        };
        let source = format!(
            "kernel @formats(%x: tensor<n x {dtype}>, %s: {dtype}, %y: mut tensor<n x {dtype}>) {{
  %vx = partition %x [6] : partition<n x {dtype}, [6]>
  %vy = partition %y [6] : mut partition<n x {dtype}, [6]>
  %i = block_index %vy : index
  %pad = constant {pad} : {dtype}
  %t = load_masked %vx[%i] pad %pad : tile<6 x {dtype}>
  print 0 \"{{0}} {{1}}\" %t, %s
  store_masked %vy, %t
}}
"
        );
        let s = sample(dtype, &[1], 3).reshape(&[]);
        check(&source, &[], &[sample(dtype, &[11], 1), s, sample(dtype, &[11], 2)], &[None]);
    }
}

#[test]
fn what_does_not_fit_is_counted() {
    let (b, arguments) = (3, says(3));
    let instance = instance(SAYS, &[("B", b)]);
    let (whole, _) = native(&instance, &arguments, 1 << 12);
    for words in [0, 1, 20, 47] {
        for (contents, _) in
            [native(&instance, &arguments, words), threads(&instance, &arguments, words, None)]
        {
            let kept = contents.events.len();
            assert_eq!(contents.events, whole.events[..kept], "{words} words");
            assert_eq!(contents.failures, whole.failures);
            let all: u64 = log::sites(&instance)
                .iter()
                .map(|site| {
                    let lost = whole.events[kept..].iter().filter(|event| event.site == site.number);
                    lost.count() as u64 * site.words()
                })
                .sum();
            assert_eq!(contents.lost_words, all, "{words} words");
        }
    }
}

#[test]
fn gpus_compile_messages() {
    for b in [16, 1024] {
        crate::gpu::check(&instance(SAYS, &[("B", b)]));
    }
}
