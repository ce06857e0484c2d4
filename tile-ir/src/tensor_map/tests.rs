//! Numbers by hand, what drivers refuse, and the text form.

use super::*;
use crate::{Instance, text};
use tile_test_edit::Edit;

const KERNEL: &str = "\
kernel @product(%scale: f32, %a: tensor<k x m x bf16>, %c: mut tensor<m x n x f32>) {
  %v = partition %c [4, 8] : mut partition<m x n x f32, [4, 8]>
}
";

fn abi() -> KernelAbi {
    KernelAbi::of(&Instance::parse(KERNEL, &[]).unwrap())
}

fn axis(extent: Dim, stride: Dim, tile: u32) -> MapAxis {
    MapAxis { extent, stride, tile }
}

/// Columns 8.. of `%a`, whose rows are `m` long, in boxes of 64 columns and 16 rows.
fn map() -> TensorMap {
    let (m, k) = (Dim::size("m"), Dim::size("k"));
    let axes = vec![axis(m.clone() - Dim::from(8), Dim::from(1), 64), axis(k, m, 16)];
    TensorMap { argument: 1, elem: DType::BF16, offset: Dim::from(8), axes, swizzle: Swizzle::Bytes128 }
}

/// The slots for `k`, `m` and `n` in the order of the contract.
fn slots(address: u64, sizes: [u64; 3]) -> Vec<u64> {
    let value = |name: &String| sizes[["k", "m", "n"].iter().position(|size| size == name).unwrap()];
    let mut slots = vec![0x3f80_0000, address, 0x9000_0000];
    slots.extend(abi().sizes.iter().map(value));
    slots
}

fn refusal(change: impl Fn(&mut TensorMap), address: u64, sizes: [u64; 3]) -> String {
    let mut map = map();
    change(&mut map);
    bind(&[map], &abi(), &slots(address, sizes)).unwrap_err().to_string()
}

#[test]
fn pieces_change_places_as_in_the_manuals_tables() {
    // Where the 16-byte pieces of a row of 128 bytes go (PTX ISA, "128B swizzling mode" and the others).
    let pieces = |swizzle: Swizzle, row: u64| {
        [0, 1, 2, 3, 4, 5, 6, 7].map(|piece| swizzle.apply(row * 128 + piece * 16) / 16 - row * 8)
    };
    assert_eq!(pieces(Swizzle::Bytes128, 5), [5, 4, 7, 6, 1, 0, 3, 2]);
    assert_eq!(pieces(Swizzle::Bytes64, 2), [2, 3, 0, 1, 6, 7, 4, 5]);
    assert_eq!(pieces(Swizzle::Bytes64, 4), [0, 1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(pieces(Swizzle::Bytes32, 3), [1, 0, 3, 2, 5, 4, 7, 6]);
    assert_eq!(pieces(Swizzle::None, 3), [0, 1, 2, 3, 4, 5, 6, 7]);
}

#[test]
fn sizes_and_addresses_become_numbers() {
    let transposed = TensorMap {
        argument: 2,
        elem: DType::F32,
        offset: Dim::from(0),
        axes: vec![
            axis(Dim::size("n"), Dim::from(1), 4),
            axis(Dim::size("m").ceil_div(&Dim::from(3)), Dim::from(3) * Dim::size("n"), 256),
            axis(Dim::from(3), Dim::size("n"), 1),
        ],
        swizzle: Swizzle::None,
    };
    let bound = bind(&[map(), transposed], &abi(), &slots(0x7000, [20, 112, 48])).unwrap();
    let first = BoundMap {
        address: 0x7010,
        elem: DType::BF16,
        extents: vec![104, 20],
        strides: vec![224],
        tile: vec![64, 16],
        swizzle: Swizzle::Bytes128,
    };
    let second = BoundMap {
        address: 0x9000_0000,
        elem: DType::F32,
        extents: vec![48, 38, 3],
        strides: vec![576, 192],
        tile: vec![4, 256, 1],
        swizzle: Swizzle::None,
    };
    assert_eq!((first.box_bytes(), second.box_bytes()), (2048, 4096));
    assert_eq!(bound, [first, second]);
}

#[test]
fn a_tensor_without_elements_has_a_map() {
    let bound = |sizes| {
        let BoundMap { extents, strides, .. } =
            bind(&[map()], &abi(), &slots(0x7000, sizes)).unwrap().remove(0);
        (extents, strides)
    };
    assert_eq!(bound([0, 112, 48]), (vec![104, 1], vec![224]));
    assert_eq!(bound([0, 8, 48]), (vec![1, 1], vec![16]));
    assert_eq!(bound([5, 8, 48]), (vec![1, 5], vec![16]));
}

#[test]
fn refusals_say_what_to_do() {
    let sizes = [20, 112, 48];
    assert_eq!(
        refusal(|_| (), 0x7008, sizes),
        "kernel `product` can't copy boxes of `a`: its first element is at address 0x7018, which isn't a multiple of \
         16 bytes; pass it whole"
    );
    assert_eq!(
        refusal(|_| (), 0x7000, [20, 113, 48]),
        "kernel `product` can't copy boxes of `a`: neighbours along its axis 1 (from the innermost) are 226 bytes \
         apart, where multiples of 16 bytes below 2⁴⁰ are needed; pad its rows"
    );
    assert!(refusal(|_| (), 0x7000, [20, 1 << 39, 48]).contains("are 1099511627776 bytes apart"));
    assert_eq!(
        refusal(|_| (), 0x7000, [1 << 31, 112, 48]),
        "kernel `product` can't copy boxes of `a`: its axis 1 (from the innermost) has 2147483648 elements, where 1 to \
         2³¹ − 1 are possible; launch it on parts"
    );
    let tile = |axis: usize, tile: u32| move |map: &mut TensorMap| map.axes[axis].tile = tile;
    assert!(refusal(tile(1, 257), 0x7000, sizes).ends_with("per axis, not 257; use smaller tiles"));
    assert!(refusal(tile(1, 0), 0x7000, sizes).ends_with("per axis, not 0; use smaller tiles"));
    assert!(refusal(tile(0, 63), 0x7000, sizes).ends_with("not 126; use tiles of more columns"));
    assert!(refusal(tile(0, 72), 0x7000, sizes).ends_with("within so many, not 144"));
    assert!(refusal(|map| map.axes.clear(), 0x7000, sizes).contains("it has 0 axes"));
    assert!(refusal(|map| map.argument = 0, 0x7000, sizes).contains("of `scale`: argument 0 isn't a tensor"));
    assert!(refusal(|map| map.argument = 3, 0x7000, sizes).contains("argument 3 isn't a tensor"));
    assert!(refusal(|map| map.offset = Dim::size("q"), 0x7000, sizes).contains("`q` has no value"));
    assert!(refusal(|map| map.axes[1].stride = Dim::from(-16), 0x7000, sizes).contains("is negative"));
}

#[test]
fn the_text_comes_back() {
    let text = "argument 1 : bf16 offset 8 [m - 8 stride 1 tile 64, k stride m tile 16] swizzle 128";
    assert_eq!(map().to_string(), text);
    assert_eq!(text::parse_tensor_map(text), Ok(map()));
    let plain =
        TensorMap { axes: vec![axis(Dim::from(7), Dim::from(1), 4)], swizzle: Swizzle::None, ..map() };
    assert_eq!(text::parse_tensor_map(&plain.to_string()), Ok(plain));
}

#[test]
fn damaged_texts_are_refused() {
    let text = map().to_string();
    for (from, to) in [
        ("bf16", "bf17"),
        ("argument 1", "argument 4294967296"),
        ("swizzle 128", "swizzle 127"),
        ("swizzle 128", "swizzle"),
        ("swizzle 128", "swizzle 128 128"),
        ("tile 64", "tile"),
        ("[", ""),
    ] {
        assert!(text::parse_tensor_map(&text.edit(from, to)).is_err(), "{to:?} for {from:?}");
    }
    for end in 0..text.len() {
        assert!(text::parse_tensor_map(&text[..end]).is_err(), "{end}");
    }
}
