//! Kernel texts that several targets run.

use tile_ir::DType;
use tile_ir::ops::ReduceOp;
use tile_test_edit::Edit;

/// `c = a·b` with masked edges.
pub(crate) fn matmul(operand: &str, accumulator: &str) -> String {
    format!(
        "kernel @matmul<BM, BN, BK>(%a: tensor<m x k x {operand}>, %b: tensor<k x n x {operand}>, %c: mut tensor<m x n x {accumulator}>) {{
  %va = partition %a [BM, BK] : partition<m x k x {operand}, [BM, BK]>
  %vb = partition %b [BK, BN] : partition<k x n x {operand}, [BK, BN]>
  %vc = partition %c [BM, BN] : mut partition<m x n x {accumulator}, [BM, BN]>
  %i, %j = block_index %vc : index, index
  %z = constant {zero} : {accumulator}
  %zo = constant {zero_operand} : {operand}
  %zero = splat %z : tile<BM x BN x {accumulator}>
  %1 = constant 0 : index
  %2 = extent ceil_div(k, BK) : index
  %sum = for %p = %1 to %2 carry (%acc = %zero) : tile<BM x BN x {accumulator}> {{
    %ta = load_masked %va[%i, %p] pad %zo : tile<BM x BK x {operand}>
    %tb = load_masked %vb[%p, %j] pad %zo : tile<BK x BN x {operand}>
    %next = mma %ta, %tb, %acc : tile<BM x BN x {accumulator}>
    yield %next
  }}
  store_masked %vc, %sum
}}
",
        zero = zero(accumulator),
        zero_operand = zero(operand),
    )
}

/// The constant 0 of a format.
pub(crate) fn zero(dtype: &str) -> &'static str {
    match dtype {
        "bool" => "false",
        dtype if dtype.contains('f') => "0.0",
        _ => "0",
    }
}

/// Row softmax: each block holds `B` rows of at most `W` columns.
pub(crate) const SOFTMAX: &str = "\
kernel @softmax<B, W>(%x: tensor<m x n x f32>, %y: mut tensor<m x n x f32>) {
  %vx = partition %x [B, W] : partition<m x n x f32, [B, W]>
  %vy = partition %y [B, W] : mut partition<m x n x f32, [B, W]>
  %i, %j = block_index %vy : index, index
  %pad = constant -inf : f32
  %t = load_masked %vx[%i, %j] pad %pad : tile<B x W x f32>
  %m = reduce max %t axis 1 : tile<B x 1 x f32>
  %mb = broadcast %m : tile<B x W x f32>
  %d = sub %t, %mb : tile<B x W x f32>
  %e = exp %d : tile<B x W x f32>
  %s = reduce sum %e axis 1 : tile<B x 1 x f32>
  %sb = broadcast %s : tile<B x W x f32>
  %r = div %e, %sb : tile<B x W x f32>
  store_masked %vy, %r
}
";

/// [`SOFTMAX`] as someone writes it in another language, whose letters no symbol may have.
pub(crate) fn softmax_of_other_letters() -> String {
    let names = [("@softmax<B", "@größe<BLÖCKE"), ("[B,", "[BLÖCKE,"), ("<B x", "<BLÖCKE x"), ("%x", "%ä")];
    let renamed = names.into_iter().fold(SOFTMAX.to_owned(), |source, (old, new)| source.edit(old, new));
    renamed.edit("<m x", "<länge x")
}

/// An elementwise kernel `y = body(a, b)` on tiles of `shape`, all of one format but the result's.
pub(crate) fn elementwise(dtype: &str, result: &str, body: &str) -> String {
    format!(
        "kernel @elementwise<B>(%x: tensor<n x {dtype}>, %w: tensor<n x {dtype}>, %y: mut tensor<n x {result}>) {{
  %vx = partition %x [B] : partition<n x {dtype}, [B]>
  %vw = partition %w [B] : partition<n x {dtype}, [B]>
  %vy = partition %y [B] : mut partition<n x {result}, [B]>
  %i = block_index %vy : index
  %pad = constant {pad} : {dtype}
  %a = load_masked %vx[%i] pad %pad : tile<B x {dtype}>
  %b = load_masked %vw[%i] pad %pad : tile<B x {dtype}>
  %r = {body} : tile<B x {result}>
  store_masked %vy, %r
}}
",
        pad = zero(dtype),
    )
}

/// Loops, branches, permutation, reshape, counters and a swap of carried tiles.
pub(crate) const CONTROL: &str = "\
kernel @control<B>(%x: tensor<n x B x f32>, %flag: bool, %scale: f32, %y: mut tensor<n x B x f32>) {
  %vx = partition %x [B, B] : partition<n x B x f32, [B, B]>
  %vy = partition %y [B, B] : mut partition<n x B x f32, [B, B]>
  %i, %j = block_index %vy : index, index
  %zero = constant 0.0 : f32
  %a = load_masked %vx[%i, %j] pad %zero : tile<B x B x f32>
  %t = permute %a [1, 0] : tile<B x B x f32>
  %c = iota 1 : tile<1 x B x f32>
  %cb = broadcast %c : tile<B x B x f32>
  %u = add %t, %cb : tile<B x B x f32>
  %0 = constant 0 : index
  %3 = constant 3 : index
  %p, %q, %count = for %k = %0 to %3 carry (%pi = %a, %qi = %u, %ci = %zero) : tile<B x B x f32>, tile<B x B x f32>, f32 {
    %s = splat %scale : tile<B x B x f32>
    %pn = mul %pi, %s : tile<B x B x f32>
    %one = constant 1.0 : f32
    %cn = add %ci, %one : f32
    yield %qi, %pn, %cn
  }
  %none = for %k2 = %3 to %0 carry (%pp = %p) : tile<B x B x f32> {
    %neg = neg %pp : tile<B x B x f32>
    yield %neg
  }
  %r = if %flag : tile<B x B x f32> {
    %sum = add %none, %q : tile<B x B x f32>
    yield %sum
  } else {
    yield %q
  }
  %flat = reshape %r : tile<1 x B*B x f32>
  %total = reduce sum %flat axis 1 : tile<1 x 1 x f32>
  %tb = broadcast %total : tile<B x B x f32>
  %cs = splat %count : tile<B x B x f32>
  %z = add %tb, %cs : tile<B x B x f32>
  %col = reduce max %r axis 0 : tile<1 x B x f32>
  %colb = broadcast %col : tile<B x B x f32>
  %w = sub %z, %colb : tile<B x B x f32>
  %out = add %w, %r : tile<B x B x f32>
  store_masked %vy, %out
}
";

fn product(shape: &[usize]) -> String {
    shape.iter().map(|extent| format!("{extent} x ")).collect()
}

/// `y = reduce op x` of one tile.
pub(crate) fn reduction(dtype: DType, op: ReduceOp, shape: &[usize], axis: usize) -> String {
    let mut reduced = shape.to_vec();
    reduced[axis] = 1;
    let (x, y) = (product(shape), product(&reduced));
    let names: Vec<String> = (0..shape.len()).map(|axis| format!("%i{axis}")).collect();
    format!(
        "kernel @reduce(%x: tensor<{x}{dtype}>, %y: mut tensor<{y}{dtype}>) {{
  %vx = partition %x {shape:?} : partition<{x}{dtype}, {shape:?}>
  %vy = partition %y {reduced:?} : mut partition<{y}{dtype}, {reduced:?}>
  {names} = block_index %vy : {indices}
  %pad = constant {pad} : {dtype}
  %a = load_masked %vx[{names}] pad %pad : tile<{x}{dtype}>
  %s = reduce {op} %a axis {axis} : tile<{y}{dtype}>
  store_masked %vy, %s
}}
",
        names = names.join(", "),
        indices = vec!["index"; shape.len()].join(", "),
        pad = zero(dtype.name()),
        op = op.name(),
    )
}

/// The transpose of tiles, to which a row and a column of the same tile are added.
pub(crate) fn movement(dtype: &str) -> String {
    format!(
        "kernel @movement<A, B>(%x: tensor<m x n x {dtype}>, %y: mut tensor<n x m x {dtype}>) {{
  %vx = partition %x [A, B] : partition<m x n x {dtype}, [A, B]>
  %vy = partition %y [B, A] : mut partition<n x m x {dtype}, [B, A]>
  %j, %i = block_index %vy : index, index
  %pad = constant {pad} : {dtype}
  %a = load_masked %vx[%i, %j] pad %pad : tile<A x B x {dtype}>
  %t = permute %a [1, 0] : tile<B x A x {dtype}>
  %row = reduce max %t axis 0 : tile<1 x A x {dtype}>
  %rows = broadcast %row : tile<B x A x {dtype}>
  %column = reduce min %t axis 1 : tile<B x 1 x {dtype}>
  %columns = broadcast %column : tile<B x A x {dtype}>
  %one = reduce max %row axis 1 : tile<1 x 1 x {dtype}>
  %ones = broadcast %one : tile<B x A x {dtype}>
  %counter = iota 0 : tile<B x A x {dtype}>
  %c = min %counter, %ones : tile<B x A x {dtype}>
  %flat = reshape %a : tile<B x A x {dtype}>
  %s = add %t, %rows : tile<B x A x {dtype}>
  %u = sub %s, %columns : tile<B x A x {dtype}>
  %v = add %u, %c : tile<B x A x {dtype}>
  %w = max %v, %flat : tile<B x A x {dtype}>
  store_masked %vy, %w
}}
",
        pad = zero(dtype),
    )
}
