//! Launches on views that aren't dense, against launches on dense copies of them: what kernels read and write, what they
//! leave as it is, what is said of views that no code takes, and the IR that such a launch runs.

#![allow(clippy::unwrap_used, reason = "in a test a failed unwrap is the failure")]

use super::devices;
use proptest::prelude::*;
use tile::ir::specialize::specialize_for;
use tile::ir::text::print;
use tile::ir::view::{ArgumentLayout, GivenTensor};
use tile::layout::{Index, Movement, View};
use tile::prelude::*;
use tile::{Error, TensorRef, TensorView};

/// `2x + 1` in tiles that needn't divide the matrix.
#[tile_kernel]
fn affine<const BM: usize, const BN: usize>(x: &Tensor<f32, m, n>, y: &mut Tensor<f32, m, n>) {
    let x = x.partition_view([BM, BN]);
    let mut y = y.partition_view_mut([BM, BN]);
    y.store_masked(x.load_masked(y.index()) * 2.0 + 1.0);
}

/// Differences of neighbours along a row, by windows of one view.
#[tile_kernel]
fn differences<const B: usize>(x: &Tensor<f32, m, n>, y: &mut Tensor<f32, m, n>) {
    let before = x.shift(1, 1).partition_view([1, B]);
    let x = x.partition_view([1, B]);
    let mut y = y.partition_view_mut([1, B]);
    y.store_masked(x.load_masked(y.index()) - before.load_masked(y.index()));
}

#[tile_kernel]
fn matmul<const BM: usize, const BN: usize, const BK: usize>(
    a: &Tensor<f32, m, k>,
    b: &Tensor<f32, k, n>,
    c: &mut Tensor<f32, m, n>,
) {
    let a = a.partition_view([BM, BK]);
    let b = b.partition_view([BK, BN]);
    let mut c = c.partition_view_mut([BM, BN]);
    let [i, j] = c.index();
    let mut sum = Tile::<f32, 2>::zeros([BM, BN]);
    for p in 0..a.tiles(1) {
        sum = mma(a.load_masked([i, p]), b.load_masked([p, j]), sum);
    }
    c.store_masked(sum);
}

#[tile_kernel]
fn row_sums<const W: usize>(x: &Tensor<f32, m, n>, y: &mut Tensor<f32, m, 1>) {
    let x = x.partition_view([1, W]);
    let mut y = y.partition_view_mut([1, 1]);
    y.store_masked(x.load_masked(y.index()).sum(1));
}

/// Flattens, which not every view can.
#[tile_kernel]
fn halves<const B: usize>(x: &Tensor<f32, m, n>, y: &mut Tensor<f32, k>) {
    let x = x.flatten(0, 1).partition_view([B]);
    let mut y = y.partition_view_mut([B]);
    y.store_masked(x.load_masked(y.index()) * 0.5);
}

fn ramp(device: &Device, shape: &[usize]) -> Tensor<f32> {
    let count: usize = shape.iter().product();
    // Small whole numbers, of which sums are exact, and no two neighbours are equal along any axis.
    Tensor::from_vec(device, (0..count).map(|i| ((i * 37) % 101) as f32 - 50.0).collect(), shape).unwrap()
}

type Launched<'l> = &'l dyn Fn(&TensorRef<f32>, &mut TensorRef<f32>) -> tile::Result<()>;

/// A part of a tensor.
type Part<'p> = &'p dyn Fn(&View) -> tile::layout::Result<View>;

/// What a kernel makes of a view, against what it makes of a copy.
fn reads(what: &str, view: &TensorView<'_, f32>, shape: &[usize], launch: Launched<'_>) {
    assert!(!view.is_dense(), "{what}");
    let [mut found, mut expected] =
        [(); 2].map(|()| Tensor::<f32>::full(view.device(), shape, -9.0).unwrap());
    launch(view, &mut found).unwrap_or_else(|error| panic!("{what}: {error}"));
    launch(&view.to_dense().unwrap(), &mut expected).unwrap();
    assert_eq!(found.to_vec().unwrap(), expected.to_vec().unwrap(), "{what}");
}

#[test]
fn views_are_read_where_they_lie() {
    for (device, label) in devices() {
        let x = ramp(&device, &[23, 18]);
        let row = ramp(&device, &[18]);
        let every = |step: i64| Index::slice(None, None, step);
        let views = [
            ("transposed", x.t().unwrap()),
            ("columns", x.slice((.., 3..17)).unwrap()),
            ("every third row", x.slice((every(3), ..)).unwrap()),
            ("every second column", x.slice((.., every(2))).unwrap()),
            ("upside down", x.view().flip([0]).unwrap()),
            ("backwards", x.slice((2..20, every(-1))).unwrap()),
            ("a row repeated", row.expand([7, 18]).unwrap()),
            ("a column repeated", x.slice((.., 4..5)).unwrap().expand([23, 9]).unwrap()),
        ];
        for (name, view) in views {
            let what = format!("{name} on {label}");
            let shape: Vec<usize> = TensorRef::shape(&view).to_vec();
            reads(&what, &view, &shape, &|x, y| affine::<8, 16>(x, y).launch());
            reads(&what, &view, &shape, &|x, y| differences::<8>(x, y).launch());
            reads(&what, &view, &[shape[0], 1], &|x, y| row_sums::<32>(x, y).launch());
            let other = ramp(&device, &[shape[1], 11]);
            reads(&what, &view, &[shape[0], 11], &|a, c| matmul::<8, 8, 16>(a, &other, c).launch());
            let other = ramp(&device, &[11, shape[0]]);
            reads(&what, &view, &[11, shape[1]], &|b, c| matmul::<8, 8, 16>(&other, b, c).launch());
        }
    }
}

#[test]
fn views_are_written_where_they_lie_and_nothing_else_is() {
    for (device, label) in devices() {
        let every = |step: i64| Index::slice(None, None, step);
        let parts: [(&str, Part<'_>); 5] = [
            ("transposed", &|view| Movement::t(view)),
            ("a part", &|view| view.index(&[(2..19).into(), (5..14).into()])),
            ("every third row", &|view| view.index(&[every(3), (..).into()])),
            ("every second column backwards", &|view| view.index(&[(..).into(), every(-2)])),
            ("a part, transposed", &|view| Movement::t(&view.index(&[(1..).into(), (..7).into()])?)),
        ];
        for (name, part) in parts {
            let [mut found, mut expected] =
                [(); 2].map(|()| Tensor::<f32>::full(&device, [21, 16], -9.0).unwrap());
            let mut view = found.view_mut().moved(part).unwrap();
            let x = ramp(&device, view.shape());
            affine::<4, 8>(&x, &mut view)
                .launch()
                .unwrap_or_else(|error| panic!("{name} on {label}: {error}"));
            let mut dense = Tensor::zeros(&device, x.shape()).unwrap();
            affine::<4, 8>(&x, &mut dense).launch().unwrap();
            expected.view_mut().moved(part).unwrap().copy_from(&dense).unwrap();
            assert_eq!(found.to_vec().unwrap(), expected.to_vec().unwrap(), "{name} on {label}");
        }
    }
}

/// A step of a chain of movements, whose numbers are taken modulo what fits.
#[derive(Clone, Debug)]
enum Step {
    Exchange(usize, usize),
    Flip(usize),
    Slice { axis: usize, begin: usize, length: usize, step: i64 },
    Repeat { axis: usize, count: usize },
    Split { axis: usize, inner: usize },
    Join { axis: usize },
}

impl Step {
    /// The view after the step; the same where it doesn't fit.
    fn apply<M: Movement + Clone>(&self, view: &M, may_repeat: bool) -> M {
        let shape: Vec<usize> = view.shape().iter().map(|&extent| extent as usize).collect();
        let rank = shape.len();
        let moved = match *self {
            Step::Exchange(a, b) => view.transpose((a % rank) as i64, (b % rank) as i64),
            Step::Flip(axis) => view.flip(&[(axis % rank) as i64]),
            Step::Slice { axis, begin, length, step } => {
                let (axis, mut ranges) = (axis % rank, vec![Index::slice(None, None, None); rank]);
                let begin = begin % shape[axis];
                let end = shape[axis].min(begin + 1 + length % shape[axis]);
                ranges[axis] = Index::slice(begin as i64, end as i64, None);
                let part = view.index(&ranges);
                ranges[axis] = Index::slice(None, None, step);
                part.and_then(|part| part.index(&ranges))
            }
            Step::Repeat { axis, count } if may_repeat => {
                let axis = axis % (rank + 1);
                let mut lengths: Vec<i64> = vec![-1; rank + 1];
                lengths[axis] = 1 + count as i64;
                view.unsqueeze(axis as i64).and_then(|view| view.expand(lengths))
            }
            Step::Repeat { .. } => return view.clone(),
            Step::Split { axis, inner } => {
                let (axis, inner) = (axis % rank, inner as i64);
                view.unflatten(axis as i64, [view.shape()[axis] / inner, inner])
            }
            Step::Join { axis } if rank > 1 => {
                let axis = (axis % (rank - 1)) as i64;
                view.flatten(axis, axis + 1)
            }
            Step::Join { .. } => return view.clone(),
        };
        moved.unwrap_or_else(|_| view.clone())
    }
}

fn step() -> impl Strategy<Value = Step> {
    let axis = 0..5usize;
    prop_oneof![
        (axis.clone(), axis.clone()).prop_map(|(a, b)| Step::Exchange(a, b)),
        axis.clone().prop_map(Step::Flip),
        (axis.clone(), 0..12usize, 0..12usize, prop_oneof![Just(1i64), Just(2), Just(3), Just(-1), Just(-2)])
            .prop_map(|(axis, begin, length, step)| Step::Slice { axis, begin, length, step }),
        (axis.clone(), 0..3usize).prop_map(|(axis, count)| Step::Repeat { axis, count }),
        (axis.clone(), 2..4usize).prop_map(|(axis, inner)| Step::Split { axis, inner }),
        axis.prop_map(|axis| Step::Join { axis }),
    ]
}

/// A chain of steps, and in the end a matrix: further axes are joined or left at an index.
fn matrix_of<M: Movement + Clone>(view: &M, steps: &[Step], may_repeat: bool) -> M {
    let mut view = steps.iter().fold(view.clone(), |view, step| step.apply(&view, may_repeat));
    while view.shape().len() > 2 {
        view = view.flatten(0, 1).or_else(|_| view.index(&[Index::At(0)])).unwrap();
    }
    while view.shape().len() < 2 {
        view = view.unsqueeze(0).unwrap();
    }
    view
}

fn check_chain(steps: &[Step]) {
    for (device, label) in devices() {
        let x = ramp(&device, &[4, 6, 5]);
        let view = matrix_of(&x.view(), steps, true);
        let [mut found, mut expected] =
            [(); 2].map(|()| Tensor::<f32>::zeros(&device, view.shape()).unwrap());
        affine::<4, 8>(&view.to_dense().unwrap(), &mut expected).launch().unwrap();
        match affine::<4, 8>(&view, &mut found).launch() {
            Ok(()) => assert_eq!(found.to_vec().unwrap(), expected.to_vec().unwrap(), "{view:?} on {label}"),
            Err(error) => {
                let is_none = matches!(error.reason(), Error::Place { .. }) && view.strides().is_none();
                assert!(is_none, "{view:?} on {label}: {error}");
            }
        }
        let [mut found, mut expected] =
            [(); 2].map(|()| Tensor::<f32>::full(&device, [4, 6, 5], -9.0).unwrap());
        let part = |view: &View| Ok(matrix_of(view, steps, false));
        let mut written = found.view_mut().moved(part).unwrap();
        let source = ramp(&device, written.shape());
        let mut dense = Tensor::zeros(&device, written.shape()).unwrap();
        affine::<4, 8>(&source, &mut dense).launch().unwrap();
        if affine::<4, 8>(&source, &mut written).launch().is_ok() {
            expected.view_mut().moved(part).unwrap().copy_from(&dense).unwrap();
        } else {
            assert!(written.strides().is_none(), "{written:?} on {label}");
        }
        assert_eq!(found.to_vec().unwrap(), expected.to_vec().unwrap(), "{steps:?} on {label}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn chains_of_movements_change_no_result(steps in prop::collection::vec(step(), 0..6)) {
        check_chain(&steps);
    }
}

/// On streams and in graphs the borrow ends before the launch does.
#[test]
fn later_launches_know_where_their_tensors_lie() {
    for (device, label) in devices() {
        let stream = tile::Stream::new(&device).unwrap();
        let x = ramp(&device, &[9, 20]);
        let mut y = Tensor::zeros(&device, [9, 20]).unwrap();
        affine::<4, 8>(&x.t().unwrap(), &mut y.view_mut().t().unwrap()).on(&stream).unwrap().detach();
        let mut expected = Tensor::zeros(&device, [9, 20]).unwrap();
        affine::<4, 8>(&x, &mut expected).launch().unwrap();
        assert_eq!(y.to_vec().unwrap(), expected.to_vec().unwrap(), "{label}");
    }
}

#[test]
fn what_no_code_takes_is_refused_with_a_way_out() {
    let device = Device::reference();
    let x = ramp(&device, &[6, 8]);
    let mut y = Tensor::<f32>::zeros(&device, [48]).unwrap();
    let error = halves::<8>(&x.t().unwrap(), &mut y).launch().unwrap_err().reason().to_string();
    assert_eq!(
        error,
        "`x` of kernel `halves` can't lie as it does: axes 0 and 1 of a view of shape [m, n] and strides [1, \
         x.stride_1] don't follow each other in memory, so they can't be one axis; pass a copy, which `.to_dense()` \
         makes"
    );
    halves::<8>(&x.t().unwrap().to_dense().unwrap(), &mut y).launch().unwrap();
    let padded = x.view().pad(&[None, Some((1, 0))]).unwrap();
    let error = affine::<4, 8>(&padded, &mut Tensor::zeros(&device, [6, 9]).unwrap()).launch().unwrap_err();
    assert_eq!(
        error.reason().to_string(),
        "`x` of kernel `affine` has elements that aren't in memory, or no single stride along an \
         axis; pass a copy, which `.to_dense()` makes"
    );
    assert_eq!(
        affine::<4, 8>(&x.t().unwrap(), &mut Tensor::zeros(&device, [8, 6]).unwrap()).instance().unwrap(),
        "BM = 4, BN = 8, x strided [1, x.stride_1]"
    );
}

#[test]
fn the_ir_of_an_instance_says_how_its_arguments_lie() {
    let given =
        |strides: &'static [i64], offset| GivenTensor { extents: &[6, 8], strides: Some(strides), offset };
    let layouts = [(0, &[-8, 1][..], 0), (1, &[1, 6], 2)];
    let layouts =
        layouts.map(|(i, strides, offset)| (i, ArgumentLayout::of(&given(strides, offset)).unwrap()));
    let bindings =
        [("BM", 4), ("BN", 8)].map(|(name, value)| (name.to_owned(), tile::ir::Binding::Const(value)));
    let instance = specialize_for(&affine::ir(), &bindings, &layouts).unwrap();
    insta::assert_snapshot!(print(&instance));
}

/// Pixels of K colours as planes.
#[tile_kernel]
fn planes<T: Number, const K: usize, const B: usize>(x: &Tensor<T, n, K>, y: &mut Tensor<T, K, n>) {
    let x = x.t().partition_view([K, B]);
    let mut y = y.partition_view_mut([K, B]);
    let pixels = x.load_masked(y.index());
    y.store_masked(pixels + pixels);
}

fn check_planes<T: Number + std::fmt::Debug, const K: usize>(of: impl Fn(usize) -> T) {
    for n in [1, 31, 64, 200, 333] {
        let pixels: Vec<T> = (0..n * K).map(&of).collect();
        let doubled = |at: usize| pixels[at % n * K + at / n] + pixels[at % n * K + at / n];
        let expected: Vec<T> = (0..n * K).map(doubled).collect();
        for (device, name) in devices() {
            let x = Tensor::from_slice(&device, &pixels, [n, K]).unwrap();
            let mut y = Tensor::zeros(&device, [K, n]).unwrap();
            planes::<T, K, 128>(&x, &mut y).launch().unwrap();
            assert_eq!(y.to_vec().unwrap(), expected, "{n} pixels of {K} colours on {name}");
        }
    }
}

#[test]
fn colours_are_picked_out_of_pixels() {
    check_planes::<u8, 2>(|i| i as u8 % 100);
    check_planes::<u8, 3>(|i| i as u8 % 100);
    check_planes::<u8, 4>(|i| i as u8 % 100);
    check_planes::<f32, 2>(|i| i as f32);
    check_planes::<f32, 3>(|i| i as f32);
    check_planes::<f32, 5>(|i| i as f32);
    check_planes::<f64, 3>(|i| i as f64);
    check_planes::<bf16, 3>(|i| bf16::from_f32((i % 50) as f32));
    check_planes::<i32, 4>(|i| i as i32);
}
