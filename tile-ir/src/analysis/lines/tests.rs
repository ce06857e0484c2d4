//! Lines against every element that the evaluator gives.

use super::*;
use crate::array::Array;
use crate::ops::Literal;
use crate::{Instance, interp, passes};
use tile_test_edit::Edit;

const ROWS: usize = 8;
const COLUMNS: usize = 512;

/// A kernel whose tile `%t` of 8 × 512 numbers is stored; `%ids` are 8 numbers of the same format, and `%s` is a scalar.
fn source(lines: &str, dtype: &str) -> String {
    format!(
        "kernel @k(%x: tensor<8 x {dtype}>, %s: index, %y: mut tensor<8 x 512 x {dtype}>) {{
  %vx = partition %x [8] : partition<8 x {dtype}, [8]>
  %vy = partition %y [8, 512] : mut partition<8 x 512 x {dtype}, [8, 512]>
  %zero = constant 0 : index
  %ids = load %vx[%zero] : tile<8 x {dtype}>
{lines}
  store %vy, %t
}}
"
    )
}

/// A kernel of these lines, and the elements of its `%t`.
fn evaluated(lines: &str, dtype: DType) -> (Instance, Array) {
    let source = source(lines, dtype.name());
    let instance = Instance::parse(&source, &[]).unwrap_or_else(|error| panic!("{error}\n{source}"));
    let ids = (0..ROWS).map(|i| (i * 37 + 5) as i128).collect();
    let mut arguments = [
        Array::new(dtype, vec![ROWS], crate::array::Elements::Int(ids)),
        Array::scalar(DType::Index, Literal::Int(3)),
        Array::full(dtype, &[ROWS, COLUMNS], Literal::Int(0)),
    ];
    interp::run(&instance, &mut arguments).unwrap();
    let [_, _, tile] = arguments;
    (instance, tile)
}

/// What is said of `%t` along both axes, having been compared with its elements.
fn lines_of(lines: &str, dtype: DType) -> [Line; 2] {
    let (instance, tile) = evaluated(lines, dtype);
    let source = source(lines, dtype.name());
    let at = |row: usize, column: usize| tile.get_int(row * COLUMNS + column);
    let found = [0, 1].map(|axis| {
        let divisors = Divisors::of(&instance);
        let store = instance.walk().into_iter().map(|op| instance.op(op)).find(|data| data.op == Op::Store);
        let line = Lines::of(&instance, &divisors).along(store.unwrap().operands[1], axis);
        for row in 0..ROWS {
            for column in 0..COLUMNS {
                let (place, one) = ([row, column][axis], at(row, column));
                let before = |distance: usize| match axis {
                    0 => at(row - distance, column),
                    _ => at(row, column - distance),
                };
                match line {
                    Line::Constant => assert_eq!(one, before(place), "{source}"),
                    Line::Consecutive { run } => {
                        let inside = place % run as usize;
                        assert_eq!(one, before(inside) + inside as i128, "{run} at {place}: {source}");
                        assert_eq!(before(inside).rem_euclid(i128::from(run)), 0, "{source}");
                    }
                    Line::Unknown => {}
                }
            }
        }
        line
    });
    // What optimises a kernel loses nothing.
    let optimized = passes::optimize(instance);
    let divisors = Divisors::of(&optimized);
    let store = optimized.walk().into_iter().map(|op| optimized.op(op)).find(|data| data.op.is_store());
    let (store, mut lines) = (store.unwrap(), Lines::of(&optimized, &divisors));
    assert_eq!([0, 1].map(|axis| lines.along(store.operands[1], axis)), found, "{source}");
    found
}

const COLUMN: &str = "  %c = iota 1 : tile<8 x 512 x i32>\n";

const IDS: &str = "  %i = reshape %ids : tile<8 x 1 x i32>\n  %r = broadcast %i : tile<8 x 512 x i32>\n";

const fn run(run: u64) -> Line {
    Line::Consecutive { run }
}

#[test]
fn counters_and_what_is_repeated() {
    let rows = IDS.edit("%r =", "%t =");
    assert_eq!(lines_of(&rows, DType::I32), [Line::Unknown, Line::Constant]);
    let columns = COLUMN.edit("%c =", "%t =");
    assert_eq!(lines_of(&columns, DType::I32), [Line::Constant, run(MOST)]);
    let splat = "  %t = splat %s : tile<8 x 512 x index>\n".edit("%s", "%n").edit("index", "i32");
    let splat = format!("  %n = cast %s : i32\n{splat}");
    assert_eq!(lines_of(&splat, DType::I32), [Line::Constant; 2]);
}

/// `24·s + c - id`, and its parts in the other order.
#[test]
fn sums_begin_where_what_is_added_does() {
    let sum = format!(
        "{COLUMN}{IDS}  %k = constant 24 : i32\n  %n = cast %s : i32\n  %m = mul %n, %k : i32\n  %w = splat %m : tile<8 x 512 x i32>\n"
    );
    let with = |last: &str| lines_of(&format!("{sum}  %t = {last} : tile<8 x 512 x i32>\n"), DType::I32);
    assert_eq!(with("add %w, %c"), [Line::Constant, run(8)]);
    assert_eq!(with("sub %c, %w"), [Line::Constant, run(8)]);
    assert_eq!(with("sub %w, %c"), [Line::Constant, Line::Unknown]);
    assert_eq!(with("add %r, %c"), [Line::Unknown, run(1)]);
    assert_eq!(with("mul %r, %w"), [Line::Unknown, Line::Constant]);
    assert_eq!(with("add %c, %c"), [Line::Constant, Line::Unknown]);
}

#[test]
fn axes_change_places() {
    let turned = "  %c = iota 0 : tile<512 x 1 x 8 x i32>
  %f = reshape %c : tile<512 x 8 x i32>
  %t = permute %f [1, 0] : tile<8 x 512 x i32>
";
    assert_eq!(lines_of(turned, DType::I32), [Line::Constant, run(MOST)]);
    let joined = "  %c = iota 0 : tile<4096 x i32>\n  %t = reshape %c : tile<8 x 512 x i32>\n";
    assert_eq!(lines_of(joined, DType::I32), [Line::Unknown; 2]);
}

/// A counter of 8 bits jumps at 128; two are added to it before it is made wider and six behind that, which hides by how
/// many numbers it jumped.
#[test]
fn a_run_holds_where_numbers_wrap() {
    let wrapped = "  %c = iota 1 : tile<8 x 512 x i8>
  %two = constant 2 : i8
  %a = splat %two : tile<8 x 512 x i8>
  %b = add %c, %a : tile<8 x 512 x i8>
  %d = cast %b : tile<8 x 512 x i64>
  %six = constant 6 : i64
  %e = splat %six : tile<8 x 512 x i64>
  %t = add %d, %e : tile<8 x 512 x i64>
";
    assert_eq!(lines_of(wrapped, DType::I64), [Line::Constant, run(2)]);
    let unsigned = "  %c = iota 1 : tile<8 x 512 x u8>\n  %t = cast %c : tile<8 x 512 x u64>\n";
    assert_eq!(lines_of(unsigned, DType::U64), [Line::Constant, run(MOST)]);
    // Of halves, whole numbers beyond 2048 are not what was counted.
    let rounded = "  %c = iota 1 : tile<8 x 512 x f16>\n  %t = cast %c : tile<8 x 512 x i32>\n";
    assert_eq!(lines_of(rounded, DType::I32), [Line::Constant, Line::Unknown]);
}

/// How a gather by `%t` may read parts of rows, having been compared with the elements: wherever two of them are as far apart as
/// their places, those between follow each other, if the ends tell.
fn counted(lines: &str, dtype: DType) -> Option<CountedRow> {
    let (instance, tile) = evaluated(lines, dtype);
    let divisors = Divisors::of(&instance);
    let store = instance.walk().into_iter().map(|op| instance.op(op)).find(|data| data.op == Op::Store);
    let row = Lines::of(&instance, &divisors).counted_row_of(&store.unwrap().operands[1..], 1)?;
    for line in 0..ROWS {
        let at = |column: usize| tile.get_int(line * COLUMNS + column);
        assert!((0..COLUMNS).all(|column| at(column) == tile.get_int(column)), "{lines}");
        let breaks: Vec<usize> = (1..COLUMNS).filter(|&column| at(column) != at(column - 1) + 1).collect();
        for (from, to) in (0..COLUMNS).flat_map(|to| (0..to).map(move |from| (from, to))) {
            let is_far = at(to) - at(from) == (to - from) as i128;
            let follows = !breaks.iter().any(|place| (from + 1..=to).contains(place));
            assert!(!row.ends_tell || is_far == follows, "{from} to {to}: {lines}");
        }
    }
    Some(row)
}

#[test]
fn what_is_bounded_or_wraps_is_a_row_in_parts() {
    let numbers = |first: &str, dtype: &str, last: &str| {
        format!(
            "  %c = iota 1 : tile<8 x 512 x {dtype}>
  %f = constant {first} : {dtype}
  %first = splat %f : tile<8 x 512 x {dtype}>
  %a = add %c, %first : tile<8 x 512 x {dtype}>
  %l = constant 100 : {dtype}
  %low = splat %l : tile<8 x 512 x {dtype}>
  %h = constant 400 : {dtype}
  %high = splat %h : tile<8 x 512 x {dtype}>
  %raised = max %a, %low : tile<8 x 512 x {dtype}>
{last}
"
        )
    };
    let row = |ends_tell| Some(CountedRow { tensor_axis: 0, ends_tell });
    let bounded = "  %t = min %high, %raised : tile<8 x 512 x i32>";
    let (remainder, magnitude) =
        ("  %t = rem %a, %high : tile<8 x 512 x i32>", "  %t = abs %a : tile<8 x 512 x i32>");
    // Near zero, and where numbers wrap.
    for first in ["-30", "2147483400"] {
        assert_eq!(counted(&numbers(first, "i32", bounded), DType::I32), row(true));
        assert_eq!(counted(&numbers(first, "i32", remainder), DType::I32), row(true));
        assert_eq!(counted(&numbers(first, "i32", magnitude), DType::I32), row(false));
        let wider = "  %m = min %high, %raised : tile<8 x 512 x i32>\n  %t = cast %m : tile<8 x 512 x i64>";
        assert_eq!(counted(&numbers(first, "i32", wider), DType::I64), row(true));
        let narrower =
            "  %m = min %high, %raised : tile<8 x 512 x i64>\n  %t = cast %m : tile<8 x 512 x i32>";
        assert_eq!(counted(&numbers(first, "i64", narrower), DType::I32), row(false));
        let both = "  %m = rem %a, %high : tile<8 x 512 x i32>\n  %t = max %m, %low : tile<8 x 512 x i32>";
        assert_eq!(counted(&numbers(first, "i32", both), DType::I32), row(false));
    }
    // What wraps in a narrow format, or is signed there, jumps up in a wide one.
    let widened = |from: &str, last: &str| {
        format!(
            "  %c = iota 1 : tile<8 x 512 x {from}>
  %w = cast %c : tile<8 x 512 x u32>
  %o = constant {last} : u32
  %other = splat %o : tile<8 x 512 x u32>
"
        )
    };
    let least = "  %t = min %w, %other : tile<8 x 512 x u32>";
    assert_eq!(counted(&format!("{}{least}", widened("i8", "200")), DType::U32), row(false));
    assert_eq!(counted(&format!("{}{least}", widened("u8", "200")), DType::U32), row(true));
    assert_eq!(counted(&format!("{}{least}", widened("i16", "200")), DType::U32), row(true));
    let moved = "  %a = add %w, %other : tile<8 x 512 x u32>\n  %h = constant 200 : u32
  %high = splat %h : tile<8 x 512 x u32>\n  %t = min %a, %high : tile<8 x 512 x u32>";
    assert_eq!(counted(&format!("{}{moved}", widened("u8", "4294967196")), DType::U32), row(false));
    assert_eq!(counted(&format!("{}{moved}", widened("i32", "4294967196")), DType::U32), row(true));
    let remainder = "  %t = rem %w, %other : tile<8 x 512 x u32>";
    // 2³² − 128 is 384 more than a multiple of 512.
    assert_eq!(counted(&format!("{}{remainder}", widened("i8", "512")), DType::U32), row(false));
    assert_eq!(counted(&format!("{}{remainder}", widened("i32", "512")), DType::U32), row(true));
    let beyond = "  %c = iota 1 : tile<8 x 512 x i32>\n  %f = constant 2147483400 : i32
  %first = splat %f : tile<8 x 512 x i32>\n  %a = add %c, %first : tile<8 x 512 x i32>
  %w = cast %a : tile<8 x 512 x FORMAT>\n  %h = constant 2147483911 : FORMAT
  %high = splat %h : tile<8 x 512 x FORMAT>\n  %t = min %w, %high : tile<8 x 512 x FORMAT>";
    assert_eq!(counted(&beyond.replace("FORMAT", "u64"), DType::U64), row(false));
    assert_eq!(counted(&beyond.replace("FORMAT", "i64"), DType::I64), row(true));
    assert_eq!(counted(&numbers("7", "i16", &bounded.edit("i32", "i16")), DType::I16), row(false));
    // Every second one is no part of a row, consecutive numbers are all of one, and what is loaded differs from row to row.
    assert_eq!(counted(&numbers("2", "i32", "  %t = mul %a, %high : tile<8 x 512 x i32>"), DType::I32), None);
    assert_eq!(counted(&COLUMN.edit("%c =", "%t ="), DType::I32), None);
    assert_eq!(counted(&format!("{IDS}{COLUMN}  %t = max %c, %r : tile<8 x 512 x i32>\n"), DType::I32), None);
}
