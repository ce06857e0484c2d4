//! The algebra, swizzles, GF(2), banks, partitions, LayoutTensor views and host descriptors.

use super::*;
use tile_layout::linear::{BitMatrix, LinearLayout, wavefronts};
use tile_layout::{
    ErrorKind, HostTensorDescriptor, LayoutError, Movement, PartitionView, Swizzle, SwizzledLayout,
    TensorLayout, Threads, Tiler, View, shape_div,
};

#[test]
fn layout_cases() {
    run("layout_golden_open.jsonl", 1580, check);
}

fn check(operation: &str, case: &Value) -> Verdict {
    let args = &case["args"];
    let own = || layout(&args["layout"]);
    let tiler_of = |name: &str| tiler(&args[name]);
    match operation {
        "crd2idx" => expect_value(case, own().offset(&tuple(&args["coord"]))),
        "idx2crd" => {
            let coordinate =
                tuple(&args["shape"]).coordinate(integer(&args["index"])).map_err(|e| e.to_string())?;
            same("the coordinate", coordinate, tuple(&case["expect"]["coord"]))
        }
        "props" => properties(case, &own()),
        "coalesce" => expect_layout(case, Ok(own().coalesce())),
        "coalesce_by_mode" => expect_layout(case, Ok(own().coalesce_modes())),
        "filter" => expect_layout(case, Ok(own().filter())),
        "nullspace" => expect_layout(case, Ok(own().nullspace())),
        "right_inverse" => expect_layout(case, Ok(own().right_inverse())),
        "left_inverse" => left_inverse(case, &own()),
        "composition" => {
            let a = layout(&args["a"]);
            // Cases that leave the domain are answered by the extended form and refused by the strict one.
            let strict = a.compose(tiler_of("b"));
            let extended = a.compose_extended(tiler_of("b"));
            if contradicts_its_equation(case, &a) {
                return expect_refusal(extended);
            }
            if !is_optional(case) {
                expect_layout(case, strict)?;
            }
            expect_layout(case, extended)
        }
        "complement" => expect_layout(case, own().complement(integer(&args["cotarget"]))),
        "logical_divide" => expect_layout(case, own().logical_divide(tiler_of("tiler"))),
        "zipped_divide" => expect_layout(case, own().zipped_divide(tiler_of("tiler"))),
        "tiled_divide" => expect_layout(case, own().tiled_divide(tiler_of("tiler"))),
        "flat_divide" => expect_layout(case, own().flat_divide(tiler_of("tiler"))),
        "logical_product" => expect_layout(case, layout(&args["a"]).logical_product(tiler_of("b"))),
        "blocked_product" => expect_layout(case, layout(&args["a"]).blocked_product(&layout(&args["b"]))),
        "raked_product" => expect_layout(case, layout(&args["a"]).raked_product(&layout(&args["b"]))),
        "shape_div" => expect_value(case, shape_div(integer(&args["a"]), integer(&args["b"]))),
        "upcast" => recast(case, &own(), Layout::upcast),
        "downcast" => downcast(case, &own()),
        "swizzle" => swizzle(case),
        "swizzle_compose" => swizzle_compose(case),
        "max_common_vector" => {
            let found = layout(&args["a"]).max_common_vector(&layout(&args["b"]));
            same("the vector", found, integer(&case["expect"]["value"]))
        }
        "gf2_from_layout" => linear_from_layout(case, &own()),
        "gf2_inverse" => linear_inverse(case),
        "bank_wavefronts" => bank_wavefronts(case),
        "partition_load" => partition_load(case),
        "lt_tile" => expect_part(case, |own| own.tile(&integers(&args["tile"]), &integers(&args["coord"]))),
        "lt_distribute" => distribute(case),
        "lt_distribute_axis" => distribute_axis(case),
        "lt_vectorize" => vectorize(case),
        "lt_slice" => expect_part(case, |own| {
            let range = |name: &str| integer(&args[name][0])..integer(&args[name][1]);
            own.slice(&[(0, range("d0")), (1, range("d1"))], &[])
        }),
        "lt_transpose" => expect_part(case, |own| own.t()),
        "lt_split" => split(case),
        "lt_split_part" => split_part(case),
        "host_desc" => host_descriptor(case),
        _ => Err("no check for this operation".into()),
    }
}

fn tiler(value: &Value) -> Tiler {
    match value {
        Value::Null => Tiler::Keep,
        Value::Array(parts) => Tiler::Modes(parts.iter().map(tiler).collect()),
        Value::Object(_) => Tiler::Layout(layout(value)),
        size => Tiler::from(integer(size)),
    }
}

/// Whether the case expects a table other than `A(B(c))`. Three of them do (LO00383, LO00416, LO00440): they
/// compose leaf by leaf, and the leaves carry into each other, so that the sum is another function. The equation
/// defines the operation, so these must be refused; `docs/decisions/layouts.md` has the arithmetic of one.
fn contradicts_its_equation(case: &Value, a: &Layout) -> bool {
    let (Some(table), right @ Value::Object(_)) = (case["expect"].get("table"), &case["args"]["b"]) else {
        return false;
    };
    // The last mode goes on without end.
    let modes = a.leaves();
    let at = |index: i64| {
        let (last, first) = modes.split_last().unwrap();
        let (rest, offset) = first.iter().fold((index, 0), |(rest, offset), mode| {
            (rest.div_euclid(mode.extent), offset + rest.rem_euclid(mode.extent) * mode.stride)
        });
        offset + rest * last.stride
    };
    layout(right).offsets().map(at).ne(integers(table))
}

fn expect_refusal(found: Result<Layout, LayoutError>) -> Verdict {
    found.map_or(Ok(()), |found| Err(format!("answered {found} where no layout exists")))
}

/// Strides of modes of one element cannot be observed; leaves are compared coalesced, modes one by one.
fn normal(layout: &Layout) -> Vec<Layout> {
    if layout.is_leaf() {
        vec![layout.coalesce()]
    } else {
        layout.modes().map(|mode| mode.coalesce()).collect()
    }
}

fn expect_layout(case: &Value, found: Result<Layout, LayoutError>) -> Verdict {
    if is_error(case) {
        return match found {
            Err(_) => Ok(()),
            Ok(_) if is_optional(case) => Ok(()),
            Ok(found) => Err(format!("answered {found}, expected {}", case["expect"]["error"])),
        };
    }
    let expected = layout(&case["expect"]["layout"]);
    let found = match found {
        Err(_) if is_optional(case) => return Ok(()),
        Err(error) => return Err(format!("refused: {error}, expected {expected}")),
        Ok(found) => found,
    };
    let table = case["expect"].get("table").map(integers).unwrap_or_else(|| expected.offsets().collect());
    same("the table", found.offsets().collect::<Vec<_>>(), table)?;
    let accepts =
        expected.shape().is_compatible(&found.shape()) || found.shape().is_compatible(&expected.shape());
    if !accepts || normal(&found) != normal(&expected) {
        return Err(format!("answered {found}, expected {expected}"));
    }
    Ok(())
}

fn expect_value(case: &Value, found: Result<i64, LayoutError>) -> Verdict {
    match (found, is_error(case)) {
        (Err(_), true) => Ok(()),
        (Ok(found), false) => same("the value", found, integer(&case["expect"]["value"])),
        (found, _) => Err(format!("answered {found:?}, expected {}", case["expect"])),
    }
}

fn properties(case: &Value, layout: &Layout) -> Verdict {
    let expect = &case["expect"];
    let number = |name: &str, found: i64| same(name, found, integer(&expect[name]));
    number("size", layout.size())?;
    number("rank", layout.rank() as i64)?;
    number("depth", layout.depth() as i64)?;
    number("min", layout.min_offset())?;
    number("max", layout.max_offset())?;
    number("cosize", layout.cosize())?;
    number("span", layout.span())?;
    same("injective", Some(layout.is_injective()), expect["injective"].as_bool())?;
    same("compact", Some(layout.is_compact()), expect["compact"].as_bool())?;
    match expect.get("table") {
        Some(table) => same("the table", layout.offsets().collect(), integers(table)),
        None => Ok(()),
    }
}

/// A left inverse is any layout that undoes the other: besides the golden one, the equation is checked.
fn left_inverse(case: &Value, layout: &Layout) -> Verdict {
    if let Ok(inverse) = layout.left_inverse() {
        for (index, offset) in layout.offsets().enumerate() {
            same("inverse(layout(i))", inverse.get(offset), Some(index as i64))?;
        }
    }
    expect_layout(case, layout.left_inverse())
}

/// Upstream makes every mode of stride 1 longer, so that of two (LO01124, LO01156) each element's parts come several times.
/// Here they come once; `docs/decisions/layouts.md` has why.
fn downcast(case: &Value, layout: &Layout) -> Verdict {
    if layout.leaves().iter().filter(|mode| mode.stride == 1).count() < 2 {
        return recast(case, layout, Layout::downcast);
    }
    let factor = integer(&case["args"]["factor"]);
    let sorted = |offsets: &mut dyn Iterator<Item = i64>| {
        let mut offsets: Vec<i64> = offsets.collect();
        offsets.sort_unstable();
        offsets
    };
    let found = layout.downcast(factor).map_err(|error| error.to_string())?;
    let parts = |offset: i64| (0..factor).map(move |part| offset * factor + part);
    same("the table, sorted,", sorted(&mut found.offsets()), sorted(&mut layout.offsets().flat_map(parts)))
}

fn recast(
    case: &Value,
    layout: &Layout,
    cast: impl Fn(&Layout, i64) -> Result<Layout, LayoutError>,
) -> Verdict {
    let factor = integer(&case["args"]["factor"]);
    let found = cast(layout, factor);
    // Beside a broadcast mode upstream does not look whether units are full; a lossy answer may be a refusal
    // here, as `research/layouts.md` asks, with or without one.
    let unsure = case["expect"].get("sound") == Some(&Value::Null);
    if found.is_err() && unsure && !fills_whole_units(layout, factor) {
        return Ok(());
    }
    expect_layout(case, found)
}

/// Whether the elements of a layout come in whole units of `factor` neighbours, or all begin one.
fn fills_whole_units(layout: &Layout, factor: i64) -> bool {
    let offsets: std::collections::BTreeSet<i64> = layout.offsets().collect();
    let whole = |&offset: &i64| {
        (0..factor).all(|part| offsets.contains(&(offset.div_euclid(factor) * factor + part)))
    };
    offsets.iter().all(whole) || offsets.iter().all(|offset| offset % factor == 0)
}

fn swizzle_of(args: &Value) -> Result<Swizzle, LayoutError> {
    Swizzle::new(integer(&args["bits"]), integer(&args["base"]), integer(&args["shift"]))
}

fn swizzle(case: &Value) -> Verdict {
    let swizzle = match (swizzle_of(&case["args"]), is_error(case)) {
        (Err(error), true) => return same("the kind", error.kind(), ErrorKind::InvalidSwizzle),
        (Ok(swizzle), false) => swizzle,
        (found, _) => return Err(format!("answered {found:?}")),
    };
    let expect = &case["expect"];
    let found: Vec<i64> = integers(&case["args"]["x"]).into_iter().map(|x| swizzle.apply(x)).collect();
    same("y", found, integers(&expect["y"]))?;
    let bases: Vec<i64> = (0..integers(&expect["bases"]).len()).map(|bit| swizzle.apply(1 << bit)).collect();
    same("bases", bases, integers(&expect["bases"]))?;
    let involution = (0..4096).all(|x| swizzle.apply(swizzle.apply(x)) == x);
    same("involution", Some(involution), expect["involution"].as_bool())
}

fn swizzle_compose(case: &Value) -> Verdict {
    let layout = layout(&case["args"]["layout"]);
    let swizzled =
        SwizzledLayout::new(swizzle_of(&case["args"]).unwrap(), 0, layout).map_err(|e| e.to_string())?;
    let table: Vec<i64> = swizzled.offsets().collect();
    same("the table", table.clone(), integers(&case["expect"]["table"]))?;
    let distinct: std::collections::BTreeSet<i64> = table.iter().copied().collect();
    let bijective = distinct.len() == table.len() && distinct.last() == Some(&(table.len() as i64 - 1));
    same("bijective", Some(bijective), case["expect"]["bijective"].as_bool())?;
    if table.len().is_power_of_two() {
        let linear = LinearLayout::try_from(&swizzled).map_err(|error| error.to_string())?;
        same("affine", Some(linear.to_layout().is_some()), case["expect"]["affine"].as_bool())?;
    }
    Ok(())
}

fn linear_from_layout(case: &Value, layout: &Layout) -> Verdict {
    let expect = &case["expect"];
    let linear = match (LinearLayout::try_from(layout), expect["linear"].as_bool()) {
        (Err(_), Some(false)) => return Ok(()),
        (Ok(linear), Some(true)) => linear,
        (found, _) => return Err(format!("answered {found:?}, expected {expect}")),
    };
    same("the bases", bases(linear.matrix()), integers(&expect["bases"]))?;
    same("the rank", i64::from(linear.rank()), integer(&expect["rank"]))?;
    same("injective", Some(linear.is_injective()), expect["injective"].as_bool())
}

fn bases(matrix: &BitMatrix) -> Vec<i64> {
    matrix.columns().iter().map(|&column| column as i64).collect()
}

fn linear_inverse(case: &Value) -> Verdict {
    let columns: Vec<u64> =
        integers(&case["args"]["bases"]).into_iter().map(|column| column as u64).collect();
    let matrix = BitMatrix::new(columns.len() as u32, &columns).map_err(|error| error.to_string())?;
    let table = (0..1u64 << columns.len()).map(|x| matrix.apply(x) as i64).collect();
    same("the table", table, integers(&case["expect"]["table"]))?;
    let inverse = matrix.inverse().map_err(|error| error.to_string())?;
    same("the inverse", bases(&inverse), integers(&case["expect"]["bases"]))
}

fn bank_wavefronts(case: &Value) -> Verdict {
    let args = &case["args"];
    let addresses: Vec<u64> =
        integers(&args["addresses"]).into_iter().map(|address| address as u64).collect();
    let found = wavefronts(&addresses, integer(&args["width"]) as u32, integer(&args["banks"]) as u32);
    let found = found.map_err(|error| error.to_string())?;
    same("the wavefronts", found.count as i64, integer(&case["expect"]["wavefronts"]))?;
    same("the minimum", found.minimum as i64, integer(&case["expect"]["minimum"]))
}

fn view(args: &Value) -> View {
    View::strided(&integers(&args["shape"]), &integers(&args["stride"]), 0).unwrap()
}

/// The extents that exist: those of the window.
fn clipped(view: &View) -> Vec<i64> {
    (0..view.rank()).map(|axis| view.window(axis).unwrap()).map(|window| window.end - window.start).collect()
}

/// Offset, clipped shape and strides of a part of a matrix. An empty part has no offset that could be seen, and an
/// axis of one element no stride.
fn expect_part(case: &Value, part: impl Fn(&View) -> Result<View, LayoutError>) -> Verdict {
    let expect = &case["expect"];
    let found = match (part(&view(&case["args"])), is_error(case)) {
        (Err(_), true) => return Ok(()),
        (Ok(found), false) => found,
        (found, _) => return Err(format!("answered {found:?}, expected {expect}")),
    };
    let shape = integers(&expect["shape"]);
    let empty = shape.contains(&0);
    let shown = |extents: &[i64]| if empty { vec![0; extents.len()] } else { extents.to_vec() };
    same("the shape", clipped(&found), shown(&shape))?;
    if empty {
        return Ok(());
    }
    if let Some(offset) = expect.get("offset") {
        same("the offset", found.offset(), integer(offset))?;
    }
    let strides = found.strides().ok_or("has no single strides")?;
    let compared =
        |strides: &[i64]| strides.iter().zip(&shape).map(|(&d, &s)| if s > 1 { d } else { 0 }).collect();
    same::<Vec<i64>>("the strides", compared(&strides), compared(&integers(&expect["stride"])))
}

/// Rows and columns of the matrix that a part holds.
fn rows_and_columns(matrix: &View, part: &View) -> (Vec<i64>, Vec<i64>) {
    let owned: std::collections::BTreeSet<i64> = part.offsets().flatten().collect();
    let (mut rows, mut columns) = (std::collections::BTreeSet::new(), std::collections::BTreeSet::new());
    for row in 0..matrix.shape()[0] {
        for column in 0..matrix.shape()[1] {
            if owned.contains(&matrix.get(&[row, column]).unwrap().unwrap()) {
                rows.insert(row);
                columns.insert(column);
            }
        }
    }
    (rows.into_iter().collect(), columns.into_iter().collect())
}

fn expect_rows_and_columns(case: &Value, part: &View) -> Verdict {
    let (rows, columns) = rows_and_columns(&view(&case["args"]), part);
    let (own_rows, own_columns) = (integers(&case["expect"]["rows"]), integers(&case["expect"]["cols"]));
    // Without a row there is no element that could show a column.
    let empty = own_rows.is_empty() || own_columns.is_empty();
    same("rows and columns", (rows, columns), if empty { (vec![], vec![]) } else { (own_rows, own_columns) })
}

fn distribute(case: &Value) -> Verdict {
    let threads = Threads::new(layout(&case["args"]["threads"]));
    let part = |own: &View| own.distribute(&threads, integer(&case["args"]["thread"]));
    expect_part(case, part)?;
    expect_rows_and_columns(case, &part(&view(&case["args"])).map_err(|error| error.to_string())?)
}

fn distribute_axis(case: &Value) -> Verdict {
    let args = &case["args"];
    let axis = usize::try_from(integer(&args["axis"])).unwrap();
    let threads = Threads::new(layout(&args["threads"])).along(axis);
    let matrix = view(args);
    let part = |thread: i64| matrix.distribute(&threads, thread).map_err(|error| error.to_string());
    let own = part(integer(&args["thread"]))?;
    expect_rows_and_columns(case, &own)?;
    let sharing = (0..threads.layout().size()).filter(|&thread| part(thread).as_ref() == Ok(&own)).collect();
    same("the threads that share", sharing, integers(&case["expect"]["same_as_threads"]))
}

fn vectorize(case: &Value) -> Verdict {
    let vectors = |own: &View| own.vectorize(&integers(&case["args"]["vector"]));
    expect_part(case, vectors)?;
    if is_error(case) {
        return Ok(());
    }
    let expect = &case["expect"];
    let element = Layout::new(tuple(&expect["element_shape"]), tuple(&expect["element_stride"])).unwrap();
    let found = vectors(&view(&case["args"])).map_err(|error| error.to_string())?;
    same("the element", normal(&found.element()), normal(&element))
}

fn split(case: &Value) -> Verdict {
    let args = &case["args"];
    let parts = match (view(args).split_even(integer(&args["count"]), integer(&args["axis"])), is_error(case))
    {
        (Err(error), true) => return same("the kind", error.kind(), ErrorKind::NotDivisible),
        (Ok(parts), false) => parts,
        (found, _) => return Err(format!("answered {found:?}")),
    };
    same("the offsets", parts.iter().map(View::offset).collect(), integers(&case["expect"]["offsets"]))?;
    parts
        .iter()
        .try_for_each(|part| same("the shape", part.shape().to_vec(), integers(&case["expect"]["shape"])))
}

fn split_part(case: &Value) -> Verdict {
    let args = &case["args"];
    let number = |name: &str| integer(&args[name]);
    let part = view(args).split_part(number("axis"), number("alignment"), number("count"), number("index"));
    let part = part.map_err(|error| error.to_string())?;
    let range = integers(&case["expect"]["range"]);
    same("the length", part.shape()[number("axis") as usize], range[1] - range[0])?;
    let stride = integers(&args["stride"])[number("axis") as usize];
    // An empty part has no offset that could be seen.
    if part.size() == 0 { Ok(()) } else { same("the offset", part.offset(), range[0] * stride) }
}

fn partition_load(case: &Value) -> Verdict {
    let (args, expect) = (&case["args"], &case["expect"]);
    let view = View::strided(&integers(&args["extents"]), &integers(&args["strides"]), 0).unwrap();
    let tiles = PartitionView::new(view, &integers(&args["tile"])).map_err(|error| error.to_string())?;
    same("the index space", tiles.index_space(), integers(&expect["index_space"]))?;
    let index = integers(&args["index"]);
    let tile = match (tiles.tile(&index), is_error(case)) {
        (Err(error), true) => return same("the kind", error.kind(), ErrorKind::OutOfBounds),
        (Ok(tile), false) => tile,
        (found, _) => return Err(format!("answered {found:?}")),
    };
    let offsets: Vec<Option<i64>> =
        expect["offsets_row_major"].as_array().unwrap().iter().map(Value::as_i64).collect();
    same("the offsets", tile.offsets().collect(), offsets)?;
    same("partial", tiles.is_partial(&index).ok(), expect["partial"].as_bool())
}

fn host_descriptor(case: &Value) -> Verdict {
    let (args, expect) = (&case["args"], &case["expect"]);
    let layout = match args["layout"].as_str().unwrap() {
        "conv" => "NHWC".parse(),
        name => name.parse::<TensorLayout>(),
    };
    let strides = if args["strides"].is_null() { Vec::new() } else { integers(&args["strides"]) };
    let lengths = integers(&args["lengths"]);
    let found = HostTensorDescriptor::with_strides(&lengths, &strides, layout.unwrap());
    if automatic_columns(case, &strides) {
        // `research/layouts.md`, trap 17: upstream swaps the strides of a row-major matrix, and then refuses what
        // it made or leaves gaps. Ours are those of a column-major matrix.
        let rank = lengths.len();
        let found = found.map_err(|error| error.to_string())?;
        return same("the columns", &found.strides()[rank - 2..], &[1, lengths[rank - 2]]);
    }
    match (found, is_error(case)) {
        (Err(_), true) => Ok(()),
        // Upstream looks at no stride of a vector; what more strides than lengths then mean is undefined there.
        (Err(error), false) if error.kind() == ErrorKind::Rank && expect["element_space_size"].is_null() => {
            Ok(())
        }
        // The page says that negative strides are derived; the code of upstream throws.
        (Ok(_), true) if case["tag"] == "negative_partial" => Ok(()),
        (Ok(found), false) => {
            same("the strides", found.strides().to_vec(), integers(&expect["strides"]))?;
            same("the number of elements", found.element_size(), integer(&expect["element_size"]))?;
            if let Some(space) = expect["element_space_size"].as_i64() {
                same("the space", found.element_space_size(), space)?;
            }
            let chosen = expect["chosen"].as_str().unwrap();
            let own = if chosen == "conv" { "NHWC" } else { chosen };
            same("the layout", found.layout().to_string(), own.to_owned())
        }
        (found, _) => Err(format!("answered {found:?}, expected {expect}")),
    }
}

/// Whether the strides of a column-major matrix that is not square are automatic.
fn automatic_columns(case: &Value, strides: &[i64]) -> bool {
    let lengths = integers(&case["args"]["lengths"]);
    let square = lengths.len() < 2 || lengths[lengths.len() - 2] == lengths[lengths.len() - 1];
    case["args"]["layout"] == "col" && strides.iter().all(|&stride| stride <= 0) && !square
}
