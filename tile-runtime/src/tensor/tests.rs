//! Tensors as their users see them.

use super::*;
use crate::{Float, f8e4m3fn, f8e5m2};
use half::{bf16, f16};

#[test]
fn a_slice_of_the_wrong_length_is_refused() {
    let error = Tensor::from_slice(&Device::cpu(), &[1.0f32; 5], [2, 3]).unwrap_err();
    assert_eq!(error.to_string(), "5 elements were given for shape [2, 3], which holds 6");
    let error = Tensor::<f32>::zeros(&Device::cpu(), [usize::MAX, 2]).unwrap_err();
    assert!(error.to_string().contains("larger than the address space"), "{error}");
}

#[test]
#[cfg_attr(miri, ignore = "Miri ends where memory does")]
fn memory_that_is_not_there_is_an_error() {
    let error = Tensor::<f32>::zeros(&Device::cpu(), [1 << 40, 1 << 10]).unwrap_err();
    assert!(matches!(error, Error::OutOfMemory { .. }), "{error}");
    assert!(Tensor::<f32>::ones(&Device::cpu(), [4]).is_ok());
}

/// Where a kernel that runs over a tensor's end would find another, its fault would be told of that one.
#[cfg(feature = "jit")]
#[test]
fn tensors_of_a_simulated_gpu_lie_apart() {
    let device = Device::simulated("sm_80").unwrap();
    let tensors: Vec<Tensor<f32>> = (0..64).map(|_| Tensor::zeros(&device, [128]).unwrap()).collect();
    let mut addresses: Vec<u64> = tensors.iter().map(|tensor| tensor.device_address().unwrap()).collect();
    addresses.sort_unstable();
    assert!(addresses.is_sorted_by(|first, second| first + 4096 < *second), "{addresses:x?}");
}

/// Of tensors that are made of their elements' numbers, and of views that have an element often.
#[test]
#[cfg_attr(miri, ignore = "Miri ends where memory does")]
fn more_elements_than_memory_holds_are_an_error() {
    let device = Device::cpu();
    let refused = |error: Error| matches!(error, Error::OutOfMemory { .. } | Error::TooLarge { .. });
    assert!(refused(Tensor::arange(&device, 0.0f32, 1e18, 1.0).unwrap_err()));
    assert!(refused(Tensor::arange(&device, 0.0f64, 1e300, 1.0).unwrap_err()));
    assert!(refused(Tensor::arange(&device, i64::MIN, i64::MAX, 1).unwrap_err()));
    assert!(refused(Tensor::linspace(&device, 0.0f32, 1.0, 1 << 60).unwrap_err()));
    assert!(refused(Tensor::<f32>::random(&device, [1 << 40, 1 << 10], 1).unwrap_err()));
    let x = Tensor::<f32>::ones(&device, [1, 1]).unwrap();
    let often = x.expand([1_usize << 40, 1 << 10]).unwrap();
    assert!(refused(often.to_vec().unwrap_err()) && refused(often.to_dense().unwrap_err()));
    assert_eq!(often.slice((5, 7)).unwrap().to_vec().unwrap(), [1.0]);
}

#[test]
fn elements_round_trip_and_memory_is_aligned() {
    let device = Device::cpu();
    let x = Tensor::from_vec(&device, vec![true, false, true], [3]).unwrap();
    assert_eq!(x.to_vec().unwrap(), [true, false, true]);
    assert_eq!(x.copy_to(&Device::reference()).unwrap().to_vec().unwrap(), [true, false, true]);
    let y = Tensor::<f64>::zeros(&device, [0, 7]).unwrap();
    assert_eq!((y.len(), y.address() % 64, y.to_vec().unwrap().len()), (0, 0, 0));
    assert_eq!(Tensor::full(&device, [2], 7i8).unwrap().to_host().unwrap().get([1]), Some(7));
}

#[test]
fn foreign_memory_is_used_where_it_is() {
    let device = Device::cpu();
    let memory = Tensor::from_slice(&device, &[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0], [6]).unwrap();
    let address = memory.address();
    // SAFETY: the memory is that of a tensor that lives longer and isn't used meanwhile.
    let at = |address, shape: &[usize]| unsafe { Tensor::<f32>::from_raw(&device, address, shape) };
    let foreign = at(address, &[2, 3]).unwrap();
    assert_eq!((foreign.to_vec().unwrap(), foreign.shape()), (memory.to_vec().unwrap(), &[2, 3][..]));
    assert_eq!(foreign.address(), address);
    drop(foreign);
    assert_eq!(at(address + 16, &[2]).unwrap().to_vec().unwrap(), [5.0, 6.0]);
    assert!(at(0, &[0, 3]).unwrap().to_vec().unwrap().is_empty());
    let message = |address, shape: &[usize]| at(address, shape).unwrap_err().to_string();
    assert_eq!(
        message(0, &[3]),
        "a tensor can't lie at address 0x0 on cpu: it is null, and 12 bytes are needed"
    );
    assert_eq!(
        message(18, &[3]),
        "a tensor can't lie at address 0x12 on cpu: it isn't a multiple of 4 bytes"
    );
    assert!(message(16, &[usize::MAX, 2]).contains("larger than the address space"));
}

#[test]
#[cfg_attr(miri, ignore = "text of thousands of numbers, and nothing unsafe")]
fn prints_as_nested_brackets() {
    let host =
        |shape: &[usize]| HostTensor::new((0..shape.iter().product::<usize>() as i64).collect(), shape);
    assert_eq!(host(&[2, 6]).to_string(), "[[ 0,  1,  2,  3,  4,  5],\n [ 6,  7,  8,  9, 10, 11]]");
    assert_eq!(host(&[2, 1, 2]).to_string(), "[[[0, 1]],\n\n [[2, 3]]]");
    assert_eq!(host(&[2000]).to_string(), "[   0,    1,    2, …, 1997, 1998, 1999]");
    assert_eq!(host(&[]).to_string(), "0");
    assert_eq!(host(&[0]).to_string(), "[]");
    let floats = |elements: &[f32]| HostTensor::new(elements.to_vec(), &[elements.len()]);
    assert_eq!(format!("{:.1}", floats(&[0.5, 12.25])), "[ 0.5, 12.2]");
    assert_eq!(floats(&[0.5, 12.25]).to_string(), "[ 0.50, 12.25]");
    assert_eq!(floats(&[1.0, 200_000.0]).to_string(), "[     1, 200000]");
    assert_eq!(floats(&[0.1, -0.3, f32::NAN]).to_string(), "[ 0.1, -0.3,  NaN]");
    assert_eq!(floats(&[1.0 / 3.0]).to_string(), "[0.33333334]");
    assert_eq!(floats(&[1e-5, 0.0, f32::INFINITY]).to_string(), "[1e-5,  0e0,  inf]");
    assert_eq!(floats(&[0.25, 1500.0]).to_string(), "[2.5e-1,  1.5e3]");
    // Without elements axes are as long as one likes.
    assert_eq!(host(&[2, 0]).to_string(), "[[],\n []]");
    assert_eq!(host(&[0, 1 << 40]).to_string(), "[]");
    assert_eq!(host(&[1 << 40, 0]).to_string().replace('\n', ""), "[[], [], [], …, [], [], []]");
    let large = counted(&[40, 50]);
    assert_eq!(large.to_string(), large.to_host().unwrap().to_string());
    assert!(large.t().unwrap().to_string().starts_with("[[   0,   50,  100, …, 1850, 1900, 1950],\n"));
}

#[cfg(feature = "ndarray")]
#[test]
fn ndarray_round_trip_keeps_the_logical_order() {
    let array = ndarray::arr2(&[[1, 2, 3], [4, 5, 6]]);
    let tensor = Tensor::from_ndarray(&Device::cpu(), &array.t()).unwrap();
    assert_eq!((tensor.shape(), tensor.to_vec().unwrap()), (&[3, 2][..], vec![1, 4, 2, 5, 3, 6]));
    assert_eq!(tensor.to_ndarray().unwrap(), array.t().into_dyn());
}

#[test]
fn a_function_of_the_index_is_called_once_an_element_in_order() {
    let mut calls = Vec::new();
    let tensor = Tensor::from_fn(&Device::cpu(), [2, 1, 3], |index| {
        calls.push(index);
        (index[0] * 10 + index[2]) as u64
    });
    assert_eq!(calls, [[0, 0, 0], [0, 0, 1], [0, 0, 2], [1, 0, 0], [1, 0, 1], [1, 0, 2]]);
    assert_eq!(tensor.unwrap().to_vec().unwrap(), [0, 1, 2, 10, 11, 12]);
    let scalar = Tensor::from_fn(&Device::reference(), [], |[]| 7i32).unwrap();
    assert_eq!((scalar.shape(), scalar.to_vec().unwrap()), (&[][..], vec![7]));
    let empty = Tensor::from_fn(&Device::cpu(), [3, 0], |_| -> f32 { unreachable!("there is none") });
    assert_eq!(empty.unwrap().shape(), [3, 0]);
    let refused = Tensor::from_fn(&Device::cpu(), [usize::MAX, 2], |_| -> f32 { unreachable!() });
    assert!(matches!(refused, Err(Error::TooLarge { .. })), "{refused:?}");
}

fn counted(shape: &[usize]) -> Tensor<i32> {
    let count: usize = shape.iter().product();
    Tensor::from_iter(&Device::cpu(), 0..count as i32).unwrap().into_shape(shape.iter().copied()).unwrap()
}

#[cfg(feature = "ndarray")]
#[test]
fn views_are_what_ndarray_makes_of_them() {
    use ndarray::{Axis, s};
    use tile_layout::Index;
    let (x, a) = (counted(&[4, 5, 6]), counted(&[4, 5, 6]).to_ndarray().unwrap());
    let same = |view: Result<TensorView<'_, i32>>, array: ndarray::ArrayViewD<'_, i32>| {
        let view = view.unwrap();
        assert_eq!(view.to_ndarray().unwrap(), array);
        assert!(view.strides().is_some(), "{view:?}");
        assert_eq!(view.is_dense(), array.is_standard_layout(), "{view:?}");
    };
    same(x.permute([2, 0, 1]), a.view().permuted_axes(vec![2, 0, 1]));
    same(x.slice((1..3, .., 2)), a.slice(s![1..3, .., 2]).into_dyn());
    same(x.slice((-1, 1.., Index::slice(None, None, -2))), a.slice(s![-1, 1.., ..;-2]).into_dyn());
    same(x.slice((2,)), a.index_axis(Axis(0), 2));
    same(x.slice((.., ..0)), a.slice(s![.., ..0, ..]).into_dyn());
    let row = x.slice((0, 0)).unwrap();
    let wide = tile_layout::Movement::expand(&row, [3, 6]).unwrap();
    let expected = a.slice(s![0, 0, ..]);
    assert_eq!(wide.to_ndarray().unwrap(), expected.broadcast((3, 6)).unwrap().into_dyn());
}

#[test]
fn a_view_for_writing_writes_where_it_says() {
    let mut x = counted(&[3, 4]);
    let mut corner = x.slice_mut((1.., 2..)).unwrap();
    corner.copy_from_slice(&[-1, -2, -3, -4]).unwrap();
    assert_eq!(corner.to_vec().unwrap(), [-1, -2, -3, -4]);
    assert_eq!(x.to_vec().unwrap(), [0, 1, 2, 3, 4, 5, -1, -2, 8, 9, -3, -4]);
    let column = counted(&[1, 3]);
    x.view_mut().t().unwrap().slice(0).unwrap().copy_from(&column.slice(0).unwrap()).unwrap();
    assert_eq!(x.slice((.., 0)).unwrap().to_vec().unwrap(), [0, 1, 2]);
    x.view_mut().reshape([2, 6]).unwrap().slice(1).unwrap().fill(7).unwrap();
    assert_eq!(x.to_vec().unwrap()[6..], [7; 6]);
}

#[test]
fn parts_are_read_and_written_beside_each_other() {
    let mut x = counted(&[2, 6]);
    // Columns, whose elements lie between those of the other part.
    let (mut left, mut right) = x.split_at_mut(1, 2).unwrap();
    assert_eq!((left.shape(), right.shape()), (&[2, 2][..], &[2, 4][..]));
    right.slice_mut((.., ..2)).unwrap().copy_from(&left).unwrap();
    left.fill(-1).unwrap();
    assert_eq!(right.to_vec().unwrap(), [0, 1, 4, 5, 6, 7, 10, 11]);
    // Parts of parts, of which each is still there.
    let (first, mut last) = right.split_at(-1, 3).unwrap();
    let (mut above, below) = first.split_at(0, 1).unwrap();
    last.view_mut().t().unwrap().copy_from_slice(&[20, 21]).unwrap();
    above.copy_from(&below).unwrap();
    left.as_mut_slice().unwrap_err();
    above.as_mut_slice().unwrap()[0] += below.as_slice().unwrap()[1];
    assert_eq!(last.slice_mut(1).unwrap().to_vec().unwrap(), [21]);
    left.slice_mut(1).unwrap().as_mut_slice().unwrap().copy_from_slice(&[-2, -3]);
    assert_eq!(x.to_vec().unwrap(), [-1, -1, 13, 7, 10, 20, -2, -3, 6, 7, 10, 21]);
}

#[test]
fn slices_of_two_parts_are_there_at_once() {
    let mut x = counted(&[5]);
    let (mut first, mut second) = x.split_at_mut(0, 2).unwrap();
    let (written, read) = (first.as_mut_slice().unwrap(), second.as_slice().unwrap());
    written.copy_from_slice(&read[1..]);
    std::thread::scope(|scope| {
        scope.spawn(|| second.as_mut_slice().unwrap().fill(9));
        written[0] += 10;
    });
    assert_eq!(x.to_vec().unwrap(), [13, 4, 9, 9, 9]);
    let mut numbers = [1, 2, 3, 4];
    let slice = TensorViewMut::of_slice(&mut numbers, [2, 2]).unwrap();
    let (mut left, right) = slice.split_at(1, 1).unwrap();
    left.copy_from(&right).unwrap();
    assert_eq!(numbers, [2, 2, 4, 4]);
}

#[test]
fn a_part_may_be_empty() {
    let mut x = counted(&[2, 3]);
    for (axis, at) in [(0, 0), (0, 2), (1, 0), (1, 3)] {
        let (mut before, mut after) = x.split_at_mut(axis, at).unwrap();
        assert_eq!((before.len(), after.len()), if at == 0 { (0, 6) } else { (6, 0) });
        let (empty, whole) = if at == 0 { (&mut before, &mut after) } else { (&mut after, &mut before) };
        empty.fill(7).unwrap();
        empty.copy_from_slice(&[]).unwrap();
        assert!(empty.as_mut_slice().unwrap().is_empty() && empty.to_vec().unwrap().is_empty());
        assert_eq!(whole.as_slice().unwrap(), [0, 1, 2, 3, 4, 5]);
    }
    let (none, neither) = x.slice((.., 3..)).unwrap().split_at(1, 0).unwrap();
    assert!(none.is_empty() && neither.is_empty());
}

#[test]
fn where_there_is_nothing_to_split_is_an_error() {
    let mut x = counted(&[2, 3]);
    let message = |error: Error| error.to_string();
    assert_eq!(
        message(x.split_at(1, 4).unwrap_err()),
        "axis 1 of extent 3 cannot be split at 4: pass an index in 0..=3"
    );
    assert_eq!(
        message(x.split_at_mut(2, 1).unwrap_err()),
        "axis 2 is out of range: a tensor of 2 axes has axes -2 to 1"
    );
    assert!(x.split_at_mut(0, usize::MAX).is_err() && x.split_at_mut(-3, 0).is_err());
    assert_eq!(
        message(x.slice((0, 0)).unwrap().split_at(0, 0).unwrap_err()),
        "a tensor without axes cannot be split"
    );
    // SAFETY: the memory is that of a tensor that lives longer and isn't used meanwhile.
    let often = unsafe { Tensor::<i32>::from_raw_strided(&Device::cpu(), x.address(), [4], [0]) };
    assert!(matches!(often.unwrap().split_at_mut(0, 2), Err(Error::SharedElements { .. })));
}

/// Whatever view an operation makes, it is one of the part's own elements.
#[test]
fn no_operation_leads_out_of_a_part() {
    let mut x = counted(&[6]);
    let (mut first, second) = x.split_at_mut(0, 3).unwrap();
    let whole = first.view_mut().moved(|_| tile_layout::View::row_major(&[6])).unwrap_err();
    assert_eq!(whole.to_string(), "(6):(1) + 0 names positions 0 to 5 of a tensor of 3 elements");
    let before = first.view_mut().moved(|_| tile_layout::View::strided(&[2], &[1], -1));
    assert!(before.is_err());
    let own = second.moved(|_| tile_layout::View::strided(&[2], &[-2], 2)).unwrap();
    assert_eq!(own.to_vec().unwrap(), [5, 3]);
}

/// What a table finds outside of a part is 0, also where no axis is left, and never an element of the other part.
#[test]
fn a_part_reads_nothing_in_place_of_what_it_lacks() {
    let mut x = counted(&[6]);
    let (mut first, second) = x.split_at_mut(0, 3).unwrap();
    first.fill(-1).unwrap();
    let lacking =
        || second.view().slice(tile_layout::Index::Table { shape: vec![], entries: vec![9] }).unwrap();
    assert_eq!(lacking().to_vec().unwrap(), [0]);
    assert_eq!(lacking().reshape([1]).unwrap().to_vec().unwrap(), [0]);
    assert_eq!(lacking().expand([2]).unwrap().to_vec().unwrap(), [0, 0]);
    assert_eq!(lacking().reshape([1]).unwrap().as_slice().ok(), None);
}

#[test]
fn elements_that_share_memory_are_not_written() {
    let mut x = counted(&[3, 1]);
    let shared = x.view_mut().moved(|view| tile_layout::Movement::expand(view, [3, 2])).unwrap_err();
    assert_eq!(
        shared.to_string(),
        "elements of (3,2):(1,0) + 0 share memory, or have none; only what has each element once can be written: \
         make a tensor of its own with `to_dense`"
    );
    let padded = x.view_mut().moved(|view| tile_layout::Movement::pad(view, &[None, Some((0, 1))]));
    assert!(matches!(padded, Err(Error::SharedElements { .. })));
    let narrow = x.copy_from(&counted(&[3]).view()).unwrap_err().to_string();
    assert_eq!(narrow, "a tensor of shape [3, 1] can't take the elements of one of shape [3]");
    let twice = x.slice_mut(tile_layout::Index::list(&[1, 1])).unwrap_err();
    assert!(matches!(twice, Error::SharedElements { .. }), "{twice}");
    assert!(x.slice(5).unwrap_err().to_string().contains("index 5"), "{}", x.slice(5).unwrap_err());
}

#[test]
fn margins_are_read_and_have_no_memory() {
    let x = Tensor::from_iter(&Device::cpu(), [1.5f32, 2.5]).unwrap();
    let fill = tile_layout::Fill::from(f64::INFINITY);
    let padded = tile_layout::Movement::pad_with(&x.view(), &[Some((1, 2))], fill).unwrap();
    let infinity = f32::INFINITY;
    assert_eq!(padded.to_vec().unwrap(), [infinity, 1.5, 2.5, infinity, infinity]);
    assert!(!padded.is_dense() && padded.strides().is_none());
}

#[test]
fn foreign_memory_may_have_strides() {
    let memory = counted(&[3, 4]);
    let address = memory.address();
    // SAFETY: the memory is that of a tensor that lives longer and isn't used meanwhile.
    let turned = unsafe { Tensor::<i32>::from_raw_strided(&Device::cpu(), address, [4, 3], [1, 4]) }.unwrap();
    assert_eq!(turned.to_vec().unwrap(), memory.t().unwrap().to_vec().unwrap());
    // SAFETY: as above; the last element is the first that is named.
    let back = unsafe { Tensor::<i32>::from_raw_strided(&Device::cpu(), address + 44, [3, 4], [-4, -1]) };
    assert_eq!(back.unwrap().to_vec().unwrap(), (0..12).rev().collect::<Vec<_>>());
    // SAFETY: nothing is made of strides that don't fit.
    let unfit = unsafe { Tensor::<i32>::from_raw_strided(&Device::cpu(), address, [4, 3], [1]) };
    assert!(matches!(unfit, Err(Error::Layout(_))));
}

#[test]
fn sequences_have_the_elements_that_they_name() {
    let device = Device::cpu();
    assert!(Tensor::arange(&device, 10u8, 0, 1).unwrap().is_empty());
    assert_eq!(Tensor::arange(&device, 5i8, -1, -2).unwrap().to_vec().unwrap(), [5, 3, 1]);
    assert_eq!(Tensor::arange(&device, 0i64, 7, 3).unwrap().to_vec().unwrap(), [0, 3, 6]);
    // 0.1 added ten times isn't 1; 10 · 0.1 is.
    let tenths = Tensor::arange(&device, 0.0f64, 1.05, 0.1).unwrap().to_vec().unwrap();
    assert_eq!((tenths.len(), tenths[10]), (11, 1.0));
    // 3 · 0.3 is before 0.9 and 17 · 0.7 before 11.9 once they are rounded, where the quotients are 3 and 17.
    for (end, step, count) in [(0.9, 0.3, 4), (11.9, 0.7, 18)] {
        for sign in [1.0, -1.0] {
            let numbers = Tensor::arange(&device, 0.0f64, sign * end, sign * step).unwrap().to_vec().unwrap();
            let expected: Vec<f64> = (0..count).map(|i| f64::from(i) * sign * step).collect();
            assert!(expected.iter().all(|x| x.abs() < end), "{expected:?}");
            assert_eq!(numbers, expected);
        }
    }
    // 1e16 + 1 is no f64, and the end no place of the sequence.
    let far = Tensor::arange(&device, 1.0f64, 1e16 + 2.0, 1e15).unwrap().to_vec().unwrap();
    assert_eq!((far.len(), far[10]), (11, 1e16));
    assert_eq!(
        Tensor::arange(&device, 0.0f32, 1.0, 0.0).unwrap_err().to_string(),
        "a sequence from 0 to 1 in steps of 0: it has no number of elements; the step must not be 0, and all three be \
         finite"
    );
    assert!(Tensor::arange(&device, 0.0, 1.0, f32::INFINITY).is_err());
    assert!(Tensor::arange(&device, 0.0, f64::INFINITY, f64::MAX).is_err());
    // A distance that is no number, between two that are.
    let all = Tensor::arange(&device, f64::MIN, f64::MAX, f64::MAX / 2.0).unwrap().to_vec().unwrap();
    assert_eq!(all, [f64::MIN, f64::MIN / 2.0, 0.0, f64::MAX / 2.0]);
    let back = Tensor::arange(&device, f64::MAX, f64::MIN, f64::MIN / 2.0).unwrap().to_vec().unwrap();
    assert_eq!(back, [f64::MAX, f64::MAX / 2.0, 0.0, f64::MIN / 2.0]);
    assert!(
        Tensor::arange(&device, 0, 3, 0).is_err() && Tensor::arange(&device, 0.0, f64::NAN, 1.0).is_err()
    );
    // Of f32 25 times this step is below 1 by less than half of what is between two numbers.
    let parts = Tensor::arange(&device, 0.0f32, 1.0, 0.04).unwrap().to_vec().unwrap();
    assert_eq!((parts.len(), parts[24]), (25, 0.96));
    let parts = Tensor::arange(&device, 0.0f32, -1.0, -0.04).unwrap().to_vec().unwrap();
    assert_eq!((parts.len(), parts[24]), (25, -0.96));
    for (end, step) in [(1.0, 0.04), (1.0, 0.07), (-1.0, -0.3), (2.0, 0.01), (-2.0, -0.125)] {
        ends_before::<f16>(end, step);
        ends_before::<bf16>(end, step);
        ends_before::<f8e4m3fn>(end, step);
        ends_before::<f8e5m2>(end, step);
        ends_before::<f32>(end, step);
        ends_before::<f64>(end, step);
    }
    // Between 2047 and 2048 f16 has nothing.
    let close = Tensor::arange(&device, f16::from_f32(2047.0), f16::from_f32(2048.0), f16::from_f32(0.125));
    assert_eq!(close.unwrap().to_vec().unwrap(), [f16::from_f32(2047.0); 4]);
    let ends = Tensor::linspace(&device, 0.1f32, 0.7, 7).unwrap().to_vec().unwrap();
    assert_eq!((ends[0], ends[6]), (0.1, 0.7));
    assert_eq!(Tensor::linspace(&device, 2.0f32, 3.0, 1).unwrap().to_vec().unwrap(), [2.0]);
    // The ends are further apart than any number is from 0.
    let whole = Tensor::linspace(&device, f64::MIN, f64::MAX, 5).unwrap().to_vec().unwrap();
    assert_eq!(whole, [f64::MIN, f64::MIN / 2.0, 0.0, f64::MAX / 2.0, f64::MAX]);
    assert_eq!(Tensor::<i8>::eye(&device, 3).unwrap().to_vec().unwrap(), [1, 0, 0, 0, 1, 0, 0, 0, 1]);
    assert_eq!(Tensor::<i8>::eye(&device, 0).unwrap().shape(), [0, 0]);
    assert_eq!(Tensor::<half::bf16>::ones(&device, [2]).unwrap().to_vec().unwrap(), [half::bf16::ONE; 2]);
}

#[test]
#[cfg_attr(miri, ignore = "many numbers, and nothing unsafe")]
fn random_numbers_have_the_moments_of_their_distribution() {
    let moments = |x: Vec<f32>| {
        let count = x.len() as f64;
        let mean = x.iter().map(|&x| f64::from(x)).sum::<f64>() / count;
        (mean, x.iter().map(|&x| (f64::from(x) - mean).powi(2)).sum::<f64>() / count)
    };
    let device = Device::cpu();
    // The standard error of each moment is below 0.005 at this many.
    let (mean, variance) = moments(Tensor::random(&device, [50_000], 1).unwrap().to_vec().unwrap());
    assert!((mean - 0.5).abs() < 0.01 && (variance - 1.0 / 12.0).abs() < 0.01, "{mean} {variance}");
    let (mean, variance) = moments(Tensor::normal(&device, [50_000], 1).unwrap().to_vec().unwrap());
    assert!(mean.abs() < 0.02 && (variance - 1.0).abs() < 0.03, "{mean} {variance}");
    let again = |seed| Tensor::<f64>::normal(&device, [3], seed).unwrap().to_vec().unwrap();
    assert_eq!(again(5), again(5));
    assert_ne!(again(5), again(6));
    let narrow = Tensor::<crate::f8e4m3fn>::random(&device, [10_000], 3).unwrap().to_vec().unwrap();
    assert!(narrow.iter().all(|x| (0.0..1.0).contains(&x.to_f32())));
}

#[test]
fn slices_of_the_host_are_tensors_where_they_lie() {
    let mut numbers = [1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0];
    let view = TensorView::of_slice(&numbers, [2, 3]).unwrap();
    assert_eq!(view.slice((.., 1)).unwrap().to_vec().unwrap(), [2.0, 5.0]);
    let mut view = TensorViewMut::of_slice(&mut numbers, [3, 2]).unwrap();
    view.view_mut().slice((.., 0)).unwrap().fill(0.0).unwrap();
    assert_eq!(view.to_vec().unwrap(), [0.0, 2.0, 0.0, 4.0, 0.0, 6.0]);
    assert_eq!(numbers, [0.0, 2.0, 0.0, 4.0, 0.0, 6.0]);
    assert!(matches!(TensorView::of_slice(&numbers, [7]), Err(Error::ElementCount { .. })));
    assert!(TensorView::<u8>::of_slice(&[], [0]).unwrap().is_empty());
}

/// What takes an address and strides, as other libraries do, finds every element of a view.
#[test]
fn an_address_and_strides_are_all_that_another_library_needs() {
    let x = Tensor::from_iter(&Device::cpu(), 0..24i32).unwrap().into_shape([4, 6]).unwrap();
    let views = [
        x.view(),
        x.t().unwrap(),
        x.slice((1.., 2..5)).unwrap(),
        tile_layout::Movement::flip(&x.view(), &[0, 1]).unwrap(),
        tile_layout::Movement::expand(&x.slice((2, ..)).unwrap(), [3, 6]).unwrap(),
        x.slice(4..).unwrap(),
    ];
    for view in &views {
        let (address, strides) = (view.device_address().unwrap(), view.strides().unwrap());
        // SAFETY: the elements are those of a tensor that lives longer, and nobody writes them.
        let theirs =
            unsafe { Tensor::<i32>::from_raw_strided(&Device::cpu(), address, view.shape(), strides) };
        assert_eq!(theirs.unwrap().to_vec().unwrap(), view.to_vec().unwrap(), "{view:?}");
    }
    // A margin isn't in memory, and of two axes in one there is no single stride.
    let padded = tile_layout::Movement::pad(&x.view(), &[None, Some((1, 0))]).unwrap();
    assert_eq!(padded.device_address(), None);
    assert_eq!(x.t().unwrap().reshape([24]).unwrap().device_address(), None);
}

/// Whether a sequence from 0 has the numbers that are before its end, as they are in the format.
fn ends_before<T: Float>(end: f64, step: f64) {
    let [start, end, step] = [0.0, end, step].map(T::from_float);
    let elements = Tensor::arange(&Device::cpu(), start, end, step).unwrap().to_vec().unwrap();
    let is_before = |number: T| match step.to_float() > 0.0 {
        true => number.to_float() < end.to_float(),
        false => number.to_float() > end.to_float(),
    };
    let next = T::from_float(elements.len() as f64 * step.to_float());
    assert!(elements.into_iter().all(is_before) && !is_before(next), "{} to {end} by {step}", T::DTYPE);
}
