//! Names that are not of kernels: those of other languages and libraries, with what it is called here.

/// Who names a function so.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Named {
    /// No one but the other language: a value of the name is a habit.
    OnlyThere,
    /// Users as well.
    Anywhere,
}
use Named::{Anywhere, OnlyThere};

/// Of what threads wait for each other with.
const NO_WAITING: &str =
    "a kernel has no threads: it says what a block does with whole tiles; leave the call out";

/// Of which thread this is.
const THREAD: &str = "a kernel has no threads: it says what a block does with whole tiles, and `Tile::iota([N], 0)` is 0, 1, 2, …";

/// Of which block this is.
const PLACE: &str = "write `block_id(0)` for the block's place along axis 0, or `y.index()` for the index of its tile of an output's view";

/// Of how many threads a block has.
const BLOCK: &str =
    "a kernel has no threads: it says what a block does with whole tiles, whose extents are const parameters";

/// Of how many blocks there are.
const BLOCKS: &str = "write `block_count(axis)`";

/// Of what threads tell each other.
const NO_LANES: &str = "a kernel has no threads that exchange values: `x.take(i, axis)` is a slice of a tile, `x.gather(indices, axis)` looks up, \
     `x.roll(axis, by)` and `x.shift(axis, by, fill)` move, and a number is the same in all of a block";

/// Of how threads hold tiles.
const LAYOUTS: &str = "the compiler decides which thread holds which element: cut tiles, `x.partition_view([BM, BK])`, and multiply them, `mma(a, b, acc)`";

/// Of memory that threads exchange values through.
const NO_SHARED_MEMORY: &str = "a kernel has tiles alone: the compiler keeps them in registers and shared memory, \
     and moves them between threads";

/// Of operations on memory that blocks share.
const ATOMICS: &str = "write `let y = y.atomic_view();`, and `y.fetch_add([i], values, Relaxed, DeviceScope)`, `fetch_max` or `compare_exchange`";

/// Of what is said of numbers so that code is faster.
const FACTS: &str = "what is known of sizes is a condition of the kernel, `#[tile_kernel(where(n % 16 == 0))]`, which launches check";

/// Of tiles of tensors.
const VIEWS: &str =
    "write `let x = x.partition_view([BM, BN]);`, and `x.load_masked([i, j])` for one of its tiles";

/// Of loops.
const RANGES: &str = "write `for p in a..b`, `(a..b).step_by(n)` or `(a..b).rev()`; a loop whose counter is an index of an array is unrolled";

/// Of parts of matrices.
const TRIANGLES: &str =
    "write `select(rows >= columns, x, 0.0)`, with `Tile::<i32, 2>::iota([M, 1], 0)` and `iota([1, N], 1)`";

/// What people call by the names of other languages and libraries, and what it is here.
pub(super) const FOREIGN: &[(&str, Named, &str)] = &[
    ("ABSOLUTE_POS", OnlyThere, THREAD),
    ("ABSOLUTE_POS_X", OnlyThere, THREAD),
    ("ABSOLUTE_POS_Y", OnlyThere, THREAD),
    ("ABSOLUTE_POS_Z", OnlyThere, THREAD),
    ("CUBE_COUNT", OnlyThere, BLOCKS),
    ("CUBE_COUNT_X", OnlyThere, BLOCKS),
    ("CUBE_COUNT_Y", OnlyThere, BLOCKS),
    ("CUBE_COUNT_Z", OnlyThere, BLOCKS),
    ("CUBE_DIM", OnlyThere, BLOCK),
    ("CUBE_DIM_X", OnlyThere, BLOCK),
    ("CUBE_DIM_Y", OnlyThere, BLOCK),
    ("CUBE_DIM_Z", OnlyThere, BLOCK),
    ("CUBE_POS", OnlyThere, PLACE),
    ("CUBE_POS_X", OnlyThere, PLACE),
    ("CUBE_POS_Y", OnlyThere, PLACE),
    ("CUBE_POS_Z", OnlyThere, PLACE),
    ("PLANE_DIM", OnlyThere, BLOCK),
    ("PLANE_POS", OnlyThere, THREAD),
    ("T", OnlyThere, "write `.t()`"),
    ("UNIT_POS", OnlyThere, THREAD),
    ("UNIT_POS_PLANE", OnlyThere, THREAD),
    ("UNIT_POS_X", OnlyThere, THREAD),
    ("UNIT_POS_Y", OnlyThere, THREAD),
    ("UNIT_POS_Z", OnlyThere, THREAD),
    ("__shared__", OnlyThere, NO_SHARED_MEMORY),
    ("__syncthreads", OnlyThere, NO_WAITING),
    ("abs_diff", Anywhere, "write `max(a, b) - min(a, b)`"),
    ("add", Anywhere, "write `a + b`"),
    ("amax", Anywhere, "write `x.max(axis)`"),
    ("amin", Anywhere, "write `x.min(axis)`"),
    ("arange", OnlyThere, "write `Tile::arange([N], start, step)`, or `Tile::iota([N], 0)` for 0, 1, 2, …"),
    ("as_type", OnlyThere, "write `x.cast::<f32>()` of a tile, `x as f32` of a scalar"),
    ("assume", Anywhere, FACTS),
    ("astype", OnlyThere, "write `x.cast::<f32>()` of a tile, `x as f32` of a scalar"),
    ("atomic_add", OnlyThere, ATOMICS),
    ("atomic_cas", OnlyThere, ATOMICS),
    ("atomic_max", OnlyThere, ATOMICS),
    ("atomic_min", OnlyThere, ATOMICS),
    ("atomic_xchg", OnlyThere, ATOMICS),
    ("barrier", Anywhere, NO_WAITING),
    ("bid", OnlyThere, "write `block_id(axis)`"),
    ("blockDim", OnlyThere, BLOCK),
    ("blockIdx", OnlyThere, PLACE),
    ("block_dim", OnlyThere, BLOCK),
    ("block_idx", OnlyThere, PLACE),
    ("brev", OnlyThere, "write `x.reverse_bits()`"),
    ("broadcast_to", OnlyThere, "write `x.broadcast([M, N])`"),
    ("broadcasted_iota", OnlyThere, "write `Tile::iota([M, 1], 0)`, which is broadcast where it is used"),
    ("bswap", OnlyThere, "write `x.swap_bytes()`"),
    ("cdiv", Anywhere, "write `m.div_ceil(BM)`"),
    ("ceil_div", Anywhere, "write `m.div_ceil(BM)`"),
    ("chunk", Anywhere, "write `let [a, b] = x.split_even::<2>(axis);`"),
    ("clip", Anywhere, "write `x.clamp(low, high)`"),
    ("clone", Anywhere, "values of kernels are `Copy`; leave the call out"),
    ("clz", OnlyThere, "write `x.leading_zeros()`"),
    ("cmp", Anywhere, "compare with `<`, `<=` and `==`"),
    ("concat", OnlyThere, "write `cat([a, b], axis)`"),
    ("concatenate", Anywhere, "write `cat([a, b], axis)`"),
    ("constant", Anywhere, "write `Tile::full([M, N], value)`"),
    ("copy", Anywhere, "values of kernels are `Copy`; leave the call out"),
    ("count_zeros", Anywhere, "write `(!x).count_ones()`"),
    ("debug_barrier", OnlyThere, NO_WAITING),
    ("device_assert", OnlyThere, "write `tile_assert!(condition, \"x = {x}\")`"),
    ("device_print", OnlyThere, "write `tile_println!(\"x = {x}\")`"),
    ("div", Anywhere, "write `a / b`"),
    (
        "div_euclid",
        Anywhere,
        "write `div_floor(a, b)`, which rounds down: with a positive divisor it is the same",
    ),
    ("dot", Anywhere, "write `mma(a, b, acc)`"),
    ("dtype", OnlyThere, "name the element type in the signature, as in `Tensor<f32, m, n>`"),
    ("expand_dims", OnlyThere, "write `x.unsqueeze(axis)`"),
    ("flatten", Anywhere, "write `x.reshape([M * N])`"),
    ("float", Anywhere, "write `x.cast::<f32>()` of a tile, `x as f32` of a scalar"),
    ("fma", Anywhere, "write `x.mul_add(a, b)`"),
    ("fori_loop", OnlyThere, RANGES),
    ("fract", Anywhere, "write `x - x.trunc()`"),
    ("full", OnlyThere, "write `Tile::full([M, N], value)`"),
    ("full_like", OnlyThere, "write `Tile::full([M, N], value)`, with the extents of the other tile"),
    ("gemm", Anywhere, "write `mma(a, b, acc)`"),
    (
        "get",
        Anywhere,
        "tiles have no element access; `x.take(index, axis)` is a slice, `x.gather(indices, axis)` looks up",
    ),
    ("get_num_tile_blocks", OnlyThere, "write `block_count(axis)`"),
    ("get_tile_block_id", OnlyThere, "write `y.index()` of the output's view, or `block_id(axis)`"),
    ("gridDim", OnlyThere, "write `block_count(axis)`"),
    ("grid_dim", OnlyThere, "write `block_count(axis)`"),
    ("half", Anywhere, "write `x.cast::<f16>()` of a tile, `x as f16` of a scalar"),
    (
        "inline_asm_elementwise",
        OnlyThere,
        "kernels have no assembly: write functions and operators, or `x.bitcast::<u32>()`",
    ),
    ("interleave", Anywhere, "write `stack([a, b], 1).reshape([2 * N])`"),
    ("into", Anywhere, "write `x.cast::<f32>()` of a tile, `x as f32` of a scalar"),
    ("inverse_sqrt", Anywhere, "write `rsqrt(x)`"),
    ("is_negative", Anywhere, "write `x < 0`"),
    ("is_positive", Anywhere, "write `x > 0`"),
    ("is_power_of_two", Anywhere, "write `x.count_ones() == 1`"),
    ("is_sign_negative", Anywhere, "write `x < 0.0`, or look at `copysign(1.0, x)`"),
    ("is_sign_positive", Anywhere, "write `x >= 0.0`, or look at `copysign(1.0, x)`"),
    ("isqrt", Anywhere, "convert to a float, take `sqrt`, and convert back"),
    ("iter", Anywhere, "a tile has no iterator: operators and functions work on all its elements"),
    (
        "join",
        Anywhere,
        "write `stack([a, b], axis)` for a new axis, `cat([a, b], axis)` for one after the other",
    ),
    ("leading_ones", Anywhere, "write `(!x).leading_zeros()`"),
    ("leaky_relu", Anywhere, "write `select(x < 0.0, x * slope, x)`"),
    (
        "len",
        Anywhere,
        "extents are known when the kernel is written: name the const parameter or the run-time size; a view has `.extent(axis)` and `.tiles(axis)`",
    ),
    ("ln", Anywhere, "write `x.log()`"),
    ("load_tile", Anywhere, VIEWS),
    ("load_tile_like", OnlyThere, "write `x.load_masked(y.index())`, with `x` cut as `y` is"),
    ("local_tile", OnlyThere, VIEWS),
    ("logsumexp", Anywhere, "write `x.max(1) + log(exp(x - x.max(1)).sum(1))`"),
    ("make_block_ptr", OnlyThere, VIEWS),
    ("make_layout", OnlyThere, LAYOUTS),
    ("make_tensor", OnlyThere, VIEWS),
    ("make_tensor_descriptor", OnlyThere, VIEWS),
    ("make_tiled_copy", OnlyThere, LAYOUTS),
    ("make_tiled_mma", OnlyThere, LAYOUTS),
    (
        "map",
        Anywhere,
        "operators and functions work on all elements; `select(condition, a, b)` chooses by element",
    ),
    ("masked_fill", Anywhere, "write `select(condition, a, x)`"),
    ("matmul", Anywhere, "write `mma(a, b, acc)`"),
    ("max_contiguous", OnlyThere, FACTS),
    ("max_tile", OnlyThere, "write `max(a, b)`"),
    ("min_tile", OnlyThere, "write `min(a, b)`"),
    ("mul", Anywhere, "write `a * b`"),
    ("mulhi", OnlyThere, "write `mul_hi(a, b)`"),
    ("multiple_of", OnlyThere, FACTS),
    ("ndim", OnlyThere, "the rank is that of the type: `Tile<f32, 2>`"),
    ("next_multiple_of", Anywhere, "write `n.div_ceil(k) * k`"),
    ("norm", Anywhere, "write `(x * x).sum(axis).sqrt()`"),
    ("num_programs", OnlyThere, "write `block_count(axis)`"),
    ("num_tiles", OnlyThere, "write `x.tiles(axis)` of a partition view"),
    ("ones", OnlyThere, "write `Tile::ones([M, N])`"),
    ("ones_like", OnlyThere, "write `Tile::ones([M, N])`, with the extents of the other tile"),
    ("pallas_call", OnlyThere, "a launch is a call of the kernel, and `.launch()` of what that gives"),
    ("partial_cmp", Anywhere, "compare with `<`, `<=` and `==`"),
    ("plane_all", OnlyThere, "write `x.all(axis)` of a tile of `bool`, whoever holds its elements"),
    ("plane_any", OnlyThere, "write `x.any(axis)` of a tile of `bool`, whoever holds its elements"),
    ("plane_ballot", OnlyThere, NO_LANES),
    ("plane_broadcast", OnlyThere, NO_LANES),
    ("plane_elect", OnlyThere, NO_LANES),
    (
        "plane_exclusive_prod",
        OnlyThere,
        "write `x.cumprod_exclusive(axis)`: a scan is of a tile, whoever holds its elements",
    ),
    (
        "plane_exclusive_sum",
        OnlyThere,
        "write `x.cumsum_exclusive(axis)`: a scan is of a tile, whoever holds its elements",
    ),
    (
        "plane_inclusive_prod",
        OnlyThere,
        "write `x.cumprod(axis)`: a scan is of a tile, whoever holds its elements",
    ),
    (
        "plane_inclusive_sum",
        OnlyThere,
        "write `x.cumsum(axis)`: a scan is of a tile, whoever holds its elements",
    ),
    ("plane_max", OnlyThere, "write `x.max(axis)`: a reduction is of a tile, whoever holds its elements"),
    ("plane_min", OnlyThere, "write `x.min(axis)`: a reduction is of a tile, whoever holds its elements"),
    ("plane_prod", OnlyThere, "write `x.prod(axis)`: a reduction is of a tile, whoever holds its elements"),
    ("plane_shuffle", OnlyThere, NO_LANES),
    ("plane_shuffle_down", OnlyThere, NO_LANES),
    ("plane_shuffle_up", OnlyThere, NO_LANES),
    ("plane_shuffle_xor", OnlyThere, NO_LANES),
    ("plane_sum", OnlyThere, "write `x.sum(axis)`: a reduction is of a tile, whoever holds its elements"),
    ("popc", OnlyThere, "write `x.count_ones()`"),
    ("pow", Anywhere, "write `powf(x, y)` of floats, `x * x` of integers"),
    ("printf", OnlyThere, "write `tile_println!(\"x = {x}\")`"),
    ("program_id", OnlyThere, "write `block_id(axis)`"),
    ("rand", Anywhere, "write `Tile::random_uniform([M, N], seed, offset)`"),
    ("randint", Anywhere, "write `Tile::random_bits([M, N], seed, offset)`"),
    ("randn", Anywhere, "write `Tile::random_normal([M, N], seed, offset)`"),
    ("range", Anywhere, RANGES),
    ("ravel", OnlyThere, "write `x.reshape([M * N])`"),
    ("relu", Anywhere, "write `max(x, 0.0)`"),
    ("rotl", Anywhere, "write `x.rotate_left(k)`"),
    ("rotr", Anywhere, "write `x.rotate_right(k)`"),
    (
        "shape",
        Anywhere,
        "extents are known when the kernel is written: name the const parameter or the run-time size; a view has `.extent(axis)`",
    ),
    ("shared_memory", Anywhere, NO_SHARED_MEMORY),
    ("sin_cos", Anywhere, "write `(x.sin(), x.cos())`"),
    (
        "size",
        Anywhere,
        "extents are known when the kernel is written: name the const parameter or the run-time size; a view has `.extent(axis)`",
    ),
    (
        "slice",
        Anywhere,
        "write `x.extract([starts], [shape])` of a tile, or `x.take(index, axis)` at an index that is computed; of a tensor `x.shrink([(begin, end), …])`",
    ),
    ("softmax", Anywhere, "write `exp(x - x.max(1))`, divided by its `.sum(1)`"),
    ("softplus", Anywhere, "write `max(x, 0.0) + ln_1p(exp(-abs(x)))`"),
    ("split", Anywhere, "write `let [a, b] = x.split_even::<2>(axis);`"),
    ("sqr", Anywhere, "write `x * x`"),
    ("square", Anywhere, "write `x * x`"),
    ("static_assert", OnlyThere, "write a condition of the kernel, `#[tile_kernel(where(BK % 16 == 0))]`"),
    ("static_iter", OnlyThere, RANGES),
    (
        "static_print",
        OnlyThere,
        "kernels print when they run, `tile_println!(\"x = {x}\")`; instances as they are compiled are files of the build script's, in target/tile",
    ),
    ("static_range", OnlyThere, RANGES),
    (
        "store_tile",
        Anywhere,
        "write `y.store_masked(tile)`, of the view `let mut y = y.partition_view_mut([BM, BN]);`",
    ),
    ("sub", Anywhere, "write `a - b`"),
    ("swapaxes", OnlyThere, "write `x.permute([1, 0])`"),
    ("swish", Anywhere, "write `silu(x)`"),
    (
        "swizzle2d",
        OnlyThere,
        "write `for mut tile in c.tiles_persistent(Grouped(8)) { … }`, whose tiles come in bands of 8 rows",
    ),
    ("sync_cube", OnlyThere, NO_WAITING),
    ("sync_plane", OnlyThere, NO_WAITING),
    ("sync_threads", OnlyThere, NO_WAITING),
    ("syncthreads", OnlyThere, NO_WAITING),
    ("then", Anywhere, "write `if condition { a } else { b }`"),
    ("then_some", Anywhere, "write `if condition { a } else { b }`"),
    ("threadIdx", OnlyThere, THREAD),
    ("thread_id", OnlyThere, THREAD),
    ("thread_idx", OnlyThere, THREAD),
    ("tile", Anywhere, "write `x.repeat([2, 2])`"),
    ("tile_to_scalar", OnlyThere, "write `x.item()`"),
    ("to", Anywhere, "write `x.cast::<f32>()` of a tile, `x as f32` of a scalar"),
    ("to_be", Anywhere, "write `x.swap_bytes()`: every target is little-endian"),
    ("to_bits", Anywhere, "write `x.bitcast::<u32>()`"),
    ("to_degrees", Anywhere, "write `x * (180.0 / std::f32::consts::PI)`"),
    ("to_f16", Anywhere, "write `x.cast::<f16>()` of a tile, `x as f16` of a scalar"),
    ("to_f32", Anywhere, "write `x.cast::<f32>()` of a tile, `x as f32` of a scalar"),
    ("to_owned", Anywhere, "values of kernels are `Copy`; leave the call out"),
    ("to_radians", Anywhere, "write `x * (std::f32::consts::PI / 180.0)`"),
    (
        "to_vec",
        OnlyThere,
        "a tile stays in the kernel: store it in an output, or print it with `tile_println!(\"{x}\")`",
    ),
    ("topk", Anywhere, "write `let (values, positions) = x.top_k(K, axis);`"),
    ("total_cmp", Anywhere, "compare with `<`, `<=` and `==`; `is_nan` tells NaN"),
    ("trailing_ones", Anywhere, "write `(!x).trailing_zeros()`"),
    ("trans", Anywhere, "write `.t()`, or `.permute([1, 0])`"),
    ("transpose", Anywhere, "write `.t()`, or `.permute([1, 0])`"),
    ("tril", Anywhere, TRIANGLES),
    ("triu", Anywhere, TRIANGLES),
    ("try_into", Anywhere, "write `x.cast::<i32>()` of a tile, `x as i32` of a scalar"),
    ("umulhi", OnlyThere, "write `mul_hi(a, b)`"),
    (
        "unsigned_abs",
        Anywhere,
        "write `x.abs()`, and convert it: `x.abs() as u32` of a scalar, `x.abs().cast::<u32>()` of a tile",
    ),
    ("unwrap", OnlyThere, "values of kernels are always there; leave the call out"),
    (
        "unwrap_or",
        OnlyThere,
        "values of kernels are always there; choose with `if`, or `select` element by element",
    ),
    ("var", Anywhere, "write `((x - x.mean(axis)) * (x - x.mean(axis))).mean(axis)`"),
    ("view", Anywhere, "write `x.reshape([M, N])`"),
    ("where_", OnlyThere, "write `select(condition, a, b)`"),
    ("zeros", OnlyThere, "write `Tile::zeros([M, N])`"),
    ("zeros_like", OnlyThere, "write `Tile::zeros([M, N])`, with the extents of the other tile"),
];

/// Modules of other languages, by the names that they are imported under.
const FOREIGN_MODULES: &[&str] = &[
    "tl", "triton", "ct", "cutile", "np", "numpy", "torch", "jax", "jnp", "lax", "pl", "pltpu", "plgpu",
    "cubecl", "cmma", "cub", "cutlass", "cute",
];

/// Types of Rust's library that allocate.
const ALLOCATING: &[&str] =
    &["Vec", "VecDeque", "String", "Box", "Rc", "Arc", "HashMap", "HashSet", "BTreeMap", "BTreeSet"];

/// Whether a module is one of another language.
pub(super) fn is_foreign_module(name: &str) -> bool {
    FOREIGN_MODULES.contains(&name)
}

/// Types of other libraries that a block's threads work together by, and what they are here.
const FOREIGN_TYPES: &[(&str, &str)] = &[
    ("BlockHistogram", "write `x.histogram(BINS)`"),
    ("BlockLoad", VIEWS),
    ("BlockMergeSort", "write `x.sort(axis)`, or `x.argsort(axis)`"),
    ("BlockRadixSort", "write `x.sort(axis)`, or `x.argsort(axis)`"),
    ("BlockReduce", "write `x.sum(axis)`, `x.max(axis)`, or `associative_reduce` with a closure"),
    ("BlockScan", "write `x.cumsum(axis)`, `x.cumsum_exclusive(axis)`, or `associative_scan` with a closure"),
    ("BlockStore", "write `y.store_masked(tile)`, of the view `let mut y = y.partition_view_mut([BM, BN]);`"),
    ("SharedMemory", NO_SHARED_MEMORY),
    ("WarpReduce", "write `x.sum(axis)`, `x.max(axis)`, or `associative_reduce` with a closure"),
    ("WarpScan", "write `x.cumsum(axis)`, `x.cumsum_exclusive(axis)`, or `associative_scan` with a closure"),
];

/// What a type of another library is here, of which a function is called that nobody has.
pub(in crate::lower) fn help_of_foreign_type(owner: &str) -> Option<&'static str> {
    FOREIGN_TYPES.iter().find(|(known, _)| *known == owner).map(|&(_, help)| help)
}

/// What is said of a function of a type that kernels can't have.
pub(crate) fn help_of_type(owner: &str) -> Option<&'static str> {
    ALLOCATING.contains(&owner).then_some(
        "kernels allocate nothing: a few values are an array, `[a, b]`, and many numbers a tile, `Tile::zeros([M, N])`",
    )
}

/// The same of a type that a function declares to take. Those of Rust are of other types, but for texts.
pub(crate) fn help_of_parameter(ty: &syn::PathSegment) -> Option<&'static str> {
    let name = ty.ident.to_string();
    help_of_type(&name).filter(|_| name == "String" || !ty.arguments.is_none())
}

/// What a name of another language or library is here.
pub(super) fn foreign(name: &str) -> Option<&'static str> {
    FOREIGN.iter().find(|(known, ..)| *known == name).map(|&(.., help)| help)
}

/// What a value is here that another language has by this name.
pub(in crate::lower) fn help_of_value(name: &str) -> Option<&'static str> {
    FOREIGN.iter().find(|&&(known, named, _)| known == name && named == OnlyThere).map(|&(.., help)| help)
}
