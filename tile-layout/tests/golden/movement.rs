//! The movement operations: values, shapes and refusals, and that one view is used wherever one exists.

use super::*;
use tile_layout::{
    ErrorKind, Fill, Index, LayoutError, Length, Movement, PadMode, Span, Split, View, ViewProgram,
    flat_padding, meshgrid,
};

#[test]
fn movement_cases() {
    run("movement_golden_open.jsonl", 1846, check);
}

fn check(_: &str, case: &Value) -> Verdict {
    let inputs = inputs(case);
    let outputs = match (apply(&inputs, case["op"].as_str().unwrap(), &case["args"]), is_error(case)) {
        (Err(error), true) => return expect_kind(case, &error),
        (Err(error), false) => return Err(format!("refused: {error}")),
        (Ok(outputs), true) => {
            return Err(format!("answered {outputs:?}, expected {}", case["expect"]["error"]));
        }
        (Ok(outputs), false) => outputs,
    };
    let expected = case["expect"]["outputs"].as_array().unwrap();
    same("the number of outputs", outputs.len(), expected.len())?;
    outputs.iter().zip(expected).try_for_each(|(output, expected)| check_output(case, output, expected))
}

/// One memory holds all inputs one after the other, which lets a view reach from one into the next.
fn inputs(case: &Value) -> Vec<ViewProgram> {
    let mut offset = 0;
    let input = |input: &Value| {
        let shape = integers(&input["shape"]);
        let layout = Layout::row_major(IntTuple::flat(&shape)).unwrap();
        let own = offset;
        offset += layout.size();
        ViewProgram::new(0, View::from_layout(&layout, own).unwrap())
    };
    case["inputs"].as_array().unwrap().iter().map(input).collect()
}

/// The values of all inputs, as the case defines them.
fn memory(case: &Value) -> Vec<f64> {
    let values = |input: &Value| {
        let size: i64 = integers(&input["shape"]).iter().product();
        let base = integer(&input["base"]);
        (base..base + size).map(|value| value as f64).collect::<Vec<_>>()
    };
    case["inputs"].as_array().unwrap().iter().flat_map(values).collect()
}

fn number(value: &Value) -> f64 {
    match value {
        Value::String(name) => name.parse().unwrap(),
        number => number.as_f64().unwrap(),
    }
}

fn check_output(case: &Value, output: &ViewProgram, expected: &Value) -> Verdict {
    same("the shape", output.shape().to_vec(), integers(&expected["shape"]))?;
    let real = |fill| match fill {
        Fill::Integer(value) => value as f64,
        Fill::Real(value) => value,
    };
    let found = output.evaluate(&[&memory(case)], real).map_err(|error| error.to_string())?;
    let values: Vec<f64> = expected["data"].as_array().unwrap().iter().map(number).collect();
    let equal = |a: &f64, b: &f64| a == b || (a.is_nan() && b.is_nan());
    if found.len() != values.len() || !found.iter().zip(&values).all(|(a, b)| equal(a, b)) {
        return Err(format!("evaluates to {found:?}, expected {values:?}, by\n{output}"));
    }
    match expected.get("view") {
        None | Some(Value::Null) => Ok(()),
        Some(view) => check_view(output, view),
    }
}

/// The one strided view that the case found: offset and strides over all indices, and the valid box.
fn check_view(output: &ViewProgram, expected: &Value) -> Verdict {
    let Some((_, view)) = output.as_view() else {
        return Err(format!("is more than one view, expected {expected}:\n{output}"));
    };
    if expected.get("empty").is_some() {
        return same("the number of valid elements", view.layout().size(), 0);
    }
    let Some(strides) = view.strides() else { return Err(format!("{view} has no single strides")) };
    let windows: Vec<(i64, i64)> = (0..view.rank())
        .map(|axis| view.window(axis).unwrap())
        .map(|window| (window.start, window.end))
        .collect();
    let pair = |pair: &Value| (integer(&pair[0]), integer(&pair[1]));
    let valid: Vec<(i64, i64)> = expected["valid"].as_array().unwrap().iter().map(pair).collect();
    same("the window", windows.clone(), valid)?;
    // A stride that no two valid elements show is not compared; it adds nothing to the offset either.
    let shown: Vec<Option<i64>> = expected["strides"].as_array().unwrap().iter().map(Value::as_i64).collect();
    let compared = strides.iter().zip(&shown).map(|(&own, shown)| shown.map(|_| own)).collect();
    same("the strides", compared, shown.clone())?;
    let begin: i64 = shown.iter().zip(&windows).map(|(stride, window)| stride.unwrap_or(0) * window.0).sum();
    same("the offset", view.offset() - begin, integer(&expected["offset"]))
}

/// The refusal is for the reason that the case names.
fn expect_kind(case: &Value, error: &LayoutError) -> Verdict {
    use ErrorKind::*;
    let category = case["expect"]["error"].as_str().unwrap();
    let kinds: &[ErrorKind] = match category {
        "size_mismatch" | "split_sizes_sum" => &[SizeMismatch, InvalidFormula],
        "infer_multiple" => &[AmbiguousExtent],
        "zero_division" | "negative_dim" | "chunks_not_positive" => &[InvalidExtent],
        "unfold_size_too_big" | "unfold_negative_size" | "unfold_step_not_positive" => &[InvalidExtent],
        "broadcast_shape" | "shape_mismatch" | "gather_shape" => &[ShapeMismatch],
        "axis_out_of_range" => &[AxisOutOfRange, Rank],
        "bad_permutation" | "duplicate_axis" | "diagonal_same_axis" => &[DuplicateAxis, Rank],
        "rank_mismatch" | "roll_length" | "diag_rank" | "too_many_indices" => &[Rank],
        "invalid_shrink" => &[InvalidRange, InvalidPadding],
        "pad_reflect_too_big" | "pad_circular_too_big" | "pad_flat_odd" => &[InvalidPadding],
        "unsupported_mode" => &[Unsupported],
        "index_out_of_bounds" => &[OutOfBounds],
        "slice_step_zero" | "multiple_ellipsis" | "meshgrid_indexing" => &[InvalidIndex],
        _ if category.starts_with("formula") => &[InvalidFormula, SizeMismatch],
        _ => return Ok(()),
    };
    match kinds.contains(&error.kind()) {
        true => Ok(()),
        false => Err(format!("refused as {:?} ({error}), expected {category}", error.kind())),
    }
}

type Outputs = Result<Vec<ViewProgram>, LayoutError>;

fn apply(inputs: &[ViewProgram], operation: &str, args: &Value) -> Outputs {
    let dim = |name: &str, default: i64| args.get(name).and_then(Value::as_i64).unwrap_or(default);
    let own = &inputs[0];
    let one = match operation {
        "reshape" | "view" => own.reshape(lengths(&args["shape"])),
        "expand" => own.expand(lengths(&args["shape"])),
        "permute" => own.permute(&integers(&args["order"])),
        "flip" => own.flip(&integers(&args["axis"])),
        "shrink" => own.shrink(&spans(&args["arg"])),
        "pad" => pad(own, args),
        "getitem" => match args["index"].as_array().unwrap().iter().map(index).collect::<Result<Vec<_>, _>>()
        {
            Ok(indices) => own.index(&indices),
            // Only integers index here: the types refuse what the case refuses.
            Err(error) => Err(error),
        },
        "gather" => {
            own.gather(dim("dim", 0), &integers(&args["index"]["shape"]), &integers(&args["index"]["data"]))
        }
        "cat" => ViewProgram::cat(inputs, dim("dim", 0)),
        "stack" => ViewProgram::stack(inputs, dim("dim", 0)),
        "repeat" => own.repeat(&integers(&args["repeats"])),
        "repeat_interleave" => own.repeat_interleave(integer(&args["repeats"]), args["dim"].as_i64()),
        "split" => return own.split(split(&args["sizes"]), dim("dim", 0)),
        "chunk" => return own.chunk(integer(&args["chunks"]), dim("dim", 0)),
        "unfold" => own.unfold(integer(&args["dim"]), integer(&args["size"]), integer(&args["step"])),
        "meshgrid" => return meshgrid(inputs, args["indexing"].as_str().unwrap_or("ij")),
        "squeeze" => own.squeeze(args["dim"].as_i64()),
        "unsqueeze" => own.unsqueeze(integer(&args["dim"])),
        "transpose" => own.transpose(dim("dim0", 1), dim("dim1", 0)),
        "T" => own.t(),
        "diag" => own.diag(),
        "flatten" => own.flatten(dim("start_dim", 0), dim("end_dim", -1)),
        "unflatten" => own.unflatten(integer(&args["dim"]), lengths(&args["sizes"])),
        "diagonal" => own.diagonal(dim("offset", 0), dim("dim1", 0), dim("dim2", 1)),
        "roll" => own.roll(&one_or_many(&args["shifts"]), &one_or_many(&args["dims"])),
        "rearrange" => rearrange(own, args),
        "chain" => return chain(inputs, args),
        _ => panic!("no check for {operation}"),
    };
    one.map(|one| vec![one])
}

fn chain(inputs: &[ViewProgram], args: &Value) -> Outputs {
    let mut tensors = inputs.to_vec();
    for step in args["ops"].as_array().unwrap() {
        tensors = apply(&tensors, step["op"].as_str().unwrap(), &step["args"])?;
    }
    Ok(tensors)
}

fn lengths(value: &Value) -> Vec<Length> {
    value.as_array().unwrap().iter().map(|length| Length::from(length.as_i64())).collect()
}

fn spans(value: &Value) -> Vec<Span> {
    let span = |span: &Value| span.as_array().map(|pair| (integer(&pair[0]), integer(&pair[1])));
    value.as_array().unwrap().iter().map(span).collect()
}

fn one_or_many(value: &Value) -> Vec<i64> {
    match value {
        Value::Null => Vec::new(),
        Value::Array(_) => integers(value),
        one => vec![integer(one)],
    }
}

fn split(value: &Value) -> Split {
    value.as_i64().map_or_else(|| Split::Sizes(integers(value)), Split::Each)
}

fn pad(own: &ViewProgram, args: &Value) -> Result<ViewProgram, LayoutError> {
    let padding = match args["form"].as_str() {
        Some("flat") => flat_padding(&integers(&args["padding"]), own.shape().len())?,
        _ => spans(&args["padding"]),
    };
    let mode = match (args["mode"].as_str().unwrap().parse()?, args.get("value")) {
        (PadMode::Constant(_), Some(value)) => PadMode::Constant(Fill::from(number(value))),
        (mode, _) => mode,
    };
    own.pad_mode(&padding, mode)
}

/// A nested list of integers as a table, or nothing where it is ragged or holds other things.
fn list(value: &Value, depth: usize, shape: &mut Vec<i64>, entries: &mut Vec<i64>) -> Option<()> {
    match value {
        Value::Array(items) => {
            if shape.len() == depth {
                shape.push(items.len() as i64);
            }
            (shape[depth] == items.len() as i64).then_some(())?;
            items.iter().try_for_each(|item| list(item, depth + 1, shape, entries))
        }
        item => {
            entries.push(item.as_i64()?);
            Some(())
        }
    }
}

fn index(value: &Value) -> Result<Index, LayoutError> {
    if let Some(at) = value.get("int") {
        return Ok(Index::At(integer(at)));
    }
    if let Some(slice) = value.get("slice") {
        return Ok(Index::slice(slice[0].as_i64(), slice[1].as_i64(), slice[2].as_i64()));
    }
    if value.get("none").is_some() {
        return Ok(Index::NewAxis);
    }
    if value.get("ellipsis").is_some() {
        return Ok(Index::Ellipsis);
    }
    let (mut shape, mut entries) = (Vec::new(), Vec::new());
    let read = match (value.get("tensor"), value.get("list")) {
        (Some(tensor), _) => {
            shape = integers(&tensor["shape"]);
            list(&tensor["data"], 0, &mut Vec::new(), &mut entries)
        }
        (_, Some(items)) => list(items, 0, &mut shape, &mut entries),
        _ => None,
    };
    // What is no integer cannot be written with these types; the nearest refusal stands for it.
    read.map(|()| Index::Table { shape, entries })
        .ok_or_else(|| "not an integer".parse::<Layout>().unwrap_err())
}

fn rearrange(own: &ViewProgram, args: &Value) -> Result<ViewProgram, LayoutError> {
    let sizes: Vec<(&str, i64)> = args["sizes"]
        .as_object()
        .unwrap()
        .iter()
        .map(|(name, size)| (name.as_str(), integer(size)))
        .collect();
    own.rearrange(args["formula"].as_str().unwrap(), &sizes)
}
