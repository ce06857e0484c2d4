//! What is noted, and how it is shown.

use super::*;
use crate::error::Error;
use tile_ir::counts::{Operation, ProductShape, Spread, TensorTotal};

/// A launch that reads and writes so many bytes.
fn launched(kernel: &'static str, instance: &str, milliseconds: u64, bytes: u64) -> Launched {
    let spread = Spread::new(1, [(bytes, 1)]);
    let tensor = TensorTotal { name: "x".to_owned(), bytes, read: bytes, written: bytes, spread };
    Launched {
        kernel,
        instance: instance.to_owned(),
        device: Device::reference(),
        blocks: 4,
        start: Instant::now(),
        time: Duration::from_millis(milliseconds),
        totals: Totals { tensors: vec![tensor], ..Totals::default() },
    }
}

fn names(profile: &Profile) -> Vec<&'static str> {
    profile.launches().iter().map(|launched| launched.kernel).collect()
}

#[test]
fn launches_belong_to_the_profiles_around_them() {
    assert!(!is_on());
    record(launched("before", "", 1, 0));
    let ((inner, ()), outer) = profile(|| {
        record(launched("first", "", 1, 0));
        std::thread::scope(|scope| {
            scope.spawn(|| assert!(!is_on(), "another thread"));
        });
        let (_, inner) = profile(|| record(launched("second", "", 1, 0)));
        (inner, record(launched("third", "", 1, 0)))
    });
    assert_eq!((names(&inner), names(&outer)), (vec!["second"], vec!["first", "second", "third"]));
    assert!(!is_on());
}

#[test]
fn what_is_put_aside_is_in_no_profile_and_ends_none() {
    let (inner, outer) = profile(|| {
        record(launched("first", "", 1, 0));
        let ((), inner) = profile(|| {
            let measured = || aside(|| record(launched("measured", "", 1, 0)));
            measured();
            let panicked = std::panic::catch_unwind(|| aside(|| std::panic::panic_any(1)));
            assert!(panicked.is_err() && depth() == 2);
            record(launched("second", "", 1, 0));
        });
        inner
    });
    assert_eq!((names(&inner), names(&outer)), (vec!["second"], vec!["first", "second"]));
}

#[test]
fn a_panic_ends_a_profile() {
    let panicked = std::panic::catch_unwind(|| profile(|| std::panic::panic_any(1)));
    assert!(panicked.is_err() && !is_on());
}

#[test]
fn kernels_are_summed_up() {
    let mut product = launched("matmul", "BM = 64", 500, 50_000_000);
    let shape = ProductShape { batch: 1, m: 64, n: 64, k: 64, factor: DType::BF16 };
    product.totals.products.insert(shape, 1_000_000);
    product.totals.operations.insert((Operation::Arithmetic, DType::F32), 1);
    assert_eq!(product.arithmetic(), Ceiling::Product(DType::BF16));
    let mut gathers = launched("gather", "B = 4", 250, 1000);
    gathers.totals.estimates.push(tile_ir::counts::Estimate::TooMany);
    let launches = vec![
        launched("copy", "", 100, 1_000_000_000),
        gathers,
        product,
        launched("copy", "", 150, 500_000_000),
    ];
    let profile = Profile { launches, time: Duration::from_millis(1250) };
    let expected = "\
4 launches took 1.00 s of 1.25 s
kernel            launches    time  share    each      bytes       memory    arithmetic  device
matmul (BM = 64)         1  500 ms   50 %  500 ms     100 MB     200 MB/s  1.05 TFLOP/s  reference
copy                     2  250 ms   25 %  125 ms    3.00 GB    12.0 GB/s             –  reference
gather (B = 4)           1  250 ms   25 %  250 ms  ≈ 2.00 kB  ≈ 0.01 MB/s             –  reference
";
    assert_eq!(profile.to_string(), expected);
}

#[test]
fn a_trace_has_a_row_for_each_device() {
    let mut first = launched("copy", "T = f32", 2, 64);
    let second = Launched { start: first.start + Duration::from_millis(3), ..launched("copy", "", 1, 0) };
    first.device = Device::cpu();
    let profile = Profile { launches: vec![first, second], time: Duration::from_millis(4) };
    let trace: serde_json::Value = serde_json::from_str(&profile.chrome_trace()).unwrap();
    let events = &trace["traceEvents"];
    assert_eq!(
        (&events[0]["args"]["name"], &events[1]["args"]["name"]),
        (&"cpu".into(), &"reference".into())
    );
    let (copy, late) = (&events[2], &events[3]);
    assert_eq!((&copy["tid"], &copy["ts"], &copy["dur"]), (&0.into(), &0.0.into(), &2000.0.into()));
    assert_eq!((&copy["args"]["instance"], &copy["args"]["bytes"]), (&"T = f32".into(), &128.into()));
    assert_eq!((&late["tid"], &late["ts"]), (&1.into(), &3000.0.into()));
    let nowhere = profile.write_chrome_trace("/nowhere/trace.json").unwrap_err();
    assert!(matches!(nowhere, Error::File { path, .. } if path == "/nowhere/trace.json"));
}
