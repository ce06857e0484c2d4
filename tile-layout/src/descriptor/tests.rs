//! Empty tensors, unknown strides, batches, and what is refused.

use super::*;

const LAYOUTS: [TensorLayout; 4] = [
    TensorLayout::Default,
    TensorLayout::RowMajor,
    TensorLayout::ColumnMajor,
    TensorLayout::Convolution(ConvolutionLayout::Nhwc),
];

/// An empty tensor is packed as one is whose empty axes have one element.
#[test]
fn empty_tensors_have_strides() {
    for layout in LAYOUTS {
        for lengths in [[0, 4], [4, 0], [0, 0]] {
            let empty = HostTensorDescriptor::new(&lengths, layout).unwrap();
            let alike = HostTensorDescriptor::new(&lengths.map(|length| length.max(1)), layout).unwrap();
            assert_eq!(empty.strides(), alike.strides(), "{empty}");
            assert_eq!(empty.element_space_size(), alike.element_space_size(), "{empty}");
            assert_eq!((empty.element_size(), empty.to_view().unwrap().shape()), (0, &lengths[..]));
            let unknown = HostTensorDescriptor::with_strides(&lengths, &[0, -1], layout);
            match layout {
                TensorLayout::Default => {
                    assert_eq!(unknown.unwrap_err().kind(), ErrorKind::AbstractLayout);
                }
                _ => assert_eq!(unknown.unwrap().strides(), alike.strides(), "{empty}"),
            }
        }
    }
    let derived = HostTensorDescriptor::with_strides(&[4, 0], &[0, 2], TensorLayout::RowMajor).unwrap();
    assert_eq!(derived.strides(), [2, 2]);
    let batch = HostTensorDescriptor::new(&[2, 0, 3], TensorLayout::ColumnMajor).unwrap();
    assert_eq!((batch.strides(), batch.element_space_size()), (&[3, 1, 1][..], 6));
}

/// Unknown strides are packed before a layout is looked for; the message has those that the caller knows.
#[test]
fn strides_that_tell_no_layout_are_the_given_ones() {
    for (lengths, strides, named) in [
        (&[2, 4][..], &[0, -1][..], "strides (0,-1) tell no layout for lengths (2,4)"),
        (&[4, 3], &[2, 2], "strides (2,2) tell no layout for lengths (4,3)"),
        (&[2, 4, 3], &[12, 0, 1], "strides (12,0,1) tell no layout for lengths (2,4,3)"),
    ] {
        let error = HostTensorDescriptor::with_strides(lengths, strides, TensorLayout::Default).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AbstractLayout);
        assert_eq!(alloc::format!("{error}"), alloc::format!("{named}: name one, or bypass the check"));
    }
}

/// Batches may share elements: the same matrix again, or windows of a signal.
#[test]
fn batches_may_overlap() {
    for batch in [1, 3, 100] {
        let strides = [batch, 3, 1];
        let windows = HostTensorDescriptor::with_strides(&[2, 4, 3], &strides, TensorLayout::RowMajor);
        assert_eq!(windows.unwrap().strides(), strides);
    }
}

/// Of several axes that count matrices, each goes over what the next one spans.
#[test]
fn batches_of_batches_do_not_overlap() {
    let strided = |strides: [i64; 4]| {
        HostTensorDescriptor::with_strides(&[2, 5, 4, 3], &strides, TensorLayout::RowMajor)
    };
    assert_eq!(strided([15, 3, 3, 1]).unwrap().strides(), [15, 3, 3, 1]);
    let error = strided([14, 3, 3, 1]).unwrap_err();
    assert_eq!((error.kind(), error.modes()), (ErrorKind::OverlappingStrides, &[0, 1][..]));
}

/// What a packed descriptor has for strides is taken for the strides of a layout that has them.
#[test]
fn packed_strides_tell_a_layout() {
    for lengths in [[1, 5], [5, 1], [1, 1], [4, 3]] {
        for layout in [TensorLayout::RowMajor, TensorLayout::ColumnMajor] {
            let packed = HostTensorDescriptor::new(&lengths, layout).unwrap();
            let again = HostTensorDescriptor::with_strides(&lengths, packed.strides(), TensorLayout::Default)
                .unwrap();
            assert_eq!(again.strides(), packed.strides());
        }
    }
    let chosen = |lengths: [i64; 2]| {
        HostTensorDescriptor::with_strides(&lengths, &[1, 1], TensorLayout::Default).map(|made| made.layout())
    };
    assert_eq!(chosen([1, 5]), Ok(TensorLayout::ColumnMajor));
    assert_eq!((chosen([5, 1]), chosen([1, 1])), (Ok(TensorLayout::RowMajor), Ok(TensorLayout::RowMajor)));
    assert_eq!(chosen([2, 5]).unwrap_err().kind(), ErrorKind::OverlappingStrides);
}

/// Unchecked lengths and strides may differ in number, and then no element has a place.
#[test]
fn without_strides_there_is_no_offset() {
    for strides in [&[][..], &[1], &[1, 2, 3]] {
        let unchecked = HostTensorDescriptor::with_strides(&[4, 3], strides, TensorLayout::Bypass).unwrap();
        let error = unchecked.offset(&[3, 2]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Rank);
        assert_eq!(alloc::format!("{error}"), alloc::format!("{} strides for 2 lengths", strides.len()));
        assert_eq!(unchecked.to_view().unwrap_err().kind(), ErrorKind::Rank);
    }
}

#[test]
fn every_length_has_a_stride() {
    for layout in LAYOUTS {
        for strides in [&[0][..], &[-1], &[1], &[0, 0, 0], &[12, 3, 1]] {
            let refused = HostTensorDescriptor::with_strides(&[4, 3], strides, layout).unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::Rank, "{layout} {strides:?}");
            assert_eq!(
                alloc::format!("{refused}"),
                alloc::format!("{} strides for 2 lengths", strides.len())
            );
        }
    }
}
