"""Kernels in Triton, to be compared with: written as its users do, with block pointers replaced by plain ones, and tuned
over at most twelve configurations each."""

import torch
import triton
import triton.language as tl


def configurations(choices, **others):
    """Configurations from tuples of meta-parameters, warps and stages."""
    return [
        triton.Config(dict(zip(others["names"], meta)), num_warps=warps, num_stages=stages)
        for meta, warps, stages in choices
    ]


TILES = configurations(
    [
        ((128, 256, 64, 8), 8, 3),
        ((128, 256, 64, 8), 8, 4),
        ((256, 128, 64, 8), 8, 3),
        ((128, 128, 64, 8), 4, 4),
        ((128, 128, 64, 8), 8, 4),
        ((128, 64, 64, 8), 4, 4),
        ((64, 128, 64, 8), 4, 4),
        ((64, 64, 64, 8), 4, 4),
        ((64, 256, 64, 8), 4, 4),
        ((128, 128, 32, 8), 4, 4),
    ],
    names=("BM", "BN", "BK", "GROUP"),
)


@triton.autotune(configs=TILES, key=["m", "n", "k"])
@triton.jit
def _matmul(
    a, b, c, bias, residual, m, n, k, am, ak, bk, bn, cm, scale,
    EPILOGUE: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    number = tl.program_id(0)
    tiles_m, tiles_n = tl.cdiv(m, BM), tl.cdiv(n, BN)
    in_group = GROUP * tiles_n
    first = number // in_group * GROUP
    rows = min(tiles_m - first, GROUP)
    i = first + number % in_group % rows
    j = number % in_group // rows
    row = i * BM + tl.arange(0, BM)
    column = j * BN + tl.arange(0, BN)
    depth = tl.arange(0, BK)
    a_at = a + (row % m)[:, None] * am + depth[None, :] * ak
    b_at = b + depth[:, None] * bk + (column % n)[None, :] * bn
    total = tl.zeros((BM, BN), tl.float32)
    for p in range(0, tl.cdiv(k, BK)):
        left = k - p * BK
        x = tl.load(a_at, mask=depth[None, :] < left, other=0.0)
        y = tl.load(b_at, mask=depth[:, None] < left, other=0.0)
        total = tl.dot(x, y, total)
        a_at += BK * ak
        b_at += BK * bk
    total = total * scale
    inside = (row[:, None] < m) & (column[None, :] < n)
    if EPILOGUE:
        total += tl.load(bias + column, mask=column < n, other=0.0)[None, :].to(tl.float32)
        total = 0.5 * total * (1.0 + tl.erf(total * 0.7071067811865476))
        total += tl.load(residual + row[:, None] * cm + column[None, :], mask=inside, other=0.0).to(tl.float32)
    tl.store(c + row[:, None] * cm + column[None, :], total.to(c.dtype.element_ty), mask=inside)


def matmul(a, b, c, scale=1.0, bias=None, residual=None):
    """c = scale·a·b, or gelu(a·b + bias) + residual."""
    (m, k), n = a.shape, b.shape[1]
    grid = lambda meta: (triton.cdiv(m, meta["BM"]) * triton.cdiv(n, meta["BN"]),)
    _matmul[grid](
        a, b, c, bias if bias is not None else c, residual if residual is not None else c, m, n, k,
        a.stride(0), a.stride(1), b.stride(0), b.stride(1), c.stride(0), scale, EPILOGUE=bias is not None,
    )  # fmt: skip
    return c


@triton.autotune(
    configs=configurations(
        [((64, 64), 4, 3), ((128, 64), 4, 3), ((128, 64), 8, 3), ((128, 128), 8, 3), ((128, 128), 8, 2), ((128, 32), 4, 4)],
        names=("BM", "BN"),
    ),
    key=["queries", "keys", "WIDTH", "CAUSAL"],
)
@triton.jit
def _attention(
    q, k, v, o, queries, keys, group, scale,
    WIDTH: tl.constexpr, CAUSAL: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
):  # fmt: skip
    i, head = tl.program_id(0), tl.program_id(1).to(tl.int64)
    row, inner = i * BM + tl.arange(0, BM), tl.arange(0, WIDTH)
    own = head * queries * WIDTH
    shared = head // group * keys * WIDTH
    query = tl.load(q + own + row[:, None] * WIDTH + inner[None, :], mask=row[:, None] < queries, other=0.0)
    most = tl.full((BM,), float("-inf"), tl.float32)
    total = tl.zeros((BM,), tl.float32)
    result = tl.zeros((BM, WIDTH), tl.float32)
    end = tl.minimum((i + 1) * BM, keys) if CAUSAL else keys
    for start in range(0, end, BN):
        column = start + tl.arange(0, BN)
        at = shared + column[:, None] * WIDTH + inner[None, :]
        key = tl.load(k + at, mask=column[:, None] < keys, other=0.0)
        scores = tl.dot(query, tl.trans(key)) * scale
        seen = column[None, :] < keys
        if CAUSAL:
            seen = seen & (column[None, :] <= row[:, None])
        scores = tl.where(seen, scores, float("-inf"))
        larger = tl.maximum(most, tl.max(scores, 1))
        weights = tl.math.exp2(scores - larger[:, None])
        shrink = tl.math.exp2(most - larger)
        total = total * shrink + tl.sum(weights, 1)
        value = tl.load(v + at, mask=column[:, None] < keys, other=0.0)
        result = tl.dot(weights.to(value.dtype), value, result * shrink[:, None])
        most = larger
    result = result / total[:, None]
    at = own + row[:, None] * WIDTH + inner[None, :]
    tl.store(o + at, result.to(o.dtype.element_ty), mask=row[:, None] < queries)


def attention(q, k, v, o, causal):
    """Attention of [heads, length, width] tensors."""
    (heads, queries, width), (shared, keys, _) = q.shape, k.shape
    grid = lambda meta: (triton.cdiv(queries, meta["BM"]), heads)
    scale = 1.4426950408889634 / width**0.5
    _attention[grid](q, k, v, o, queries, keys, heads // shared, scale, WIDTH=width, CAUSAL=causal)
    return o


@triton.jit
def _softmax(x, y, n, BLOCK: tl.constexpr):
    start = tl.program_id(0).to(tl.int64) * n
    at = tl.arange(0, BLOCK)
    row = tl.load(x + start + at, mask=at < n, other=float("-inf")).to(tl.float32)
    scaled = tl.exp(row - tl.max(row, 0))
    tl.store(y + start + at, (scaled / tl.sum(scaled, 0)).to(y.dtype.element_ty), mask=at < n)


@triton.jit
def _long_softmax(x, y, n, BLOCK: tl.constexpr):
    start = tl.program_id(0).to(tl.int64) * n
    most = tl.full((BLOCK,), float("-inf"), tl.float32)
    total = tl.zeros((BLOCK,), tl.float32)
    for p in range(0, n, BLOCK):
        piece = tl.load(x + start + p + tl.arange(0, BLOCK)).to(tl.float32)
        larger = tl.maximum(most, piece)
        total = total * tl.exp(most - larger) + tl.exp(piece - larger)
        most = larger
    largest = tl.max(most, 0)
    total = 1.0 / tl.sum(total * tl.exp(most - largest), 0)
    for p in range(0, n, BLOCK):
        at = start + p + tl.arange(0, BLOCK)
        tl.store(y + at, (tl.exp(tl.load(x + at).to(tl.float32) - largest) * total).to(y.dtype.element_ty))


def softmax(x, y):
    """Softmax of rows; of long ones in two passes."""
    rows, n = x.shape
    if n <= 16384:
        _softmax[(rows,)](x, y, n, BLOCK=triton.next_power_of_2(n), num_warps=8)
    else:
        _long_softmax[(rows,)](x, y, n, BLOCK=8192, num_warps=16)
    return y


@triton.jit
def _rmsnorm(x, weight, y, n, BLOCK: tl.constexpr):
    start = tl.program_id(0).to(tl.int64) * n
    at = tl.arange(0, BLOCK)
    row = tl.load(x + start + at, mask=at < n, other=0.0).to(tl.float32)
    scale = tl.rsqrt(tl.sum(row * row, 0) / n + 1e-6)
    result = row * scale * tl.load(weight + at, mask=at < n, other=0.0).to(tl.float32)
    tl.store(y + start + at, result.to(y.dtype.element_ty), mask=at < n)


def rmsnorm(x, weight, y):
    """Rows normalised by their root mean square."""
    rows, n = x.shape
    _rmsnorm[(rows,)](x, weight, y, n, BLOCK=triton.next_power_of_2(n), num_warps=8)
    return y


@triton.autotune(
    configs=configurations([((1024,), 4, 1), ((2048,), 4, 1), ((4096,), 8, 1)], names=("BLOCK",)), key=["n"]
)
@triton.jit
def _gelu_fused(a, b, c, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    total = tl.load(a + at, mask=inside).to(tl.float32) + tl.load(b + at, mask=inside).to(tl.float32)
    gelu = 0.5 * total * (1.0 + tl.erf(total * 0.7071067811865476))
    tl.store(y + at, (gelu * tl.load(c + at, mask=inside).to(tl.float32)).to(y.dtype.element_ty), mask=inside)


def gelu_fused(a, b, c, y):
    """y = gelu(a + b)·c."""
    _gelu_fused[lambda meta: (triton.cdiv(a.numel(), meta["BLOCK"]),)](a, b, c, y, a.numel())
    return y


@triton.autotune(
    configs=configurations([((64, 64), 4, 1), ((64, 64), 8, 1), ((128, 64), 8, 1), ((32, 32), 4, 1)], names=("BM", "BN")),
    key=["m", "n"],
)
@triton.jit
def _transpose(x, y, m, n, BM: tl.constexpr, BN: tl.constexpr):
    row = tl.program_id(0) * BM + tl.arange(0, BM).to(tl.int64)
    column = tl.program_id(1) * BN + tl.arange(0, BN).to(tl.int64)
    inside = (row[:, None] < m) & (column[None, :] < n)
    tile = tl.load(x + row[:, None] * n + column[None, :], mask=inside)
    tl.store(y + column[:, None] * m + row[None, :], tl.trans(tile), mask=tl.trans(inside))


def transpose(x, y):
    """y = xᵀ."""
    m, n = x.shape
    _transpose[lambda meta: (triton.cdiv(m, meta["BM"]), triton.cdiv(n, meta["BN"]))](x, y, m, n)
    return y


@triton.autotune(
    configs=configurations([((1024,), 4, 1), ((4096,), 8, 1), ((8192,), 8, 1)], names=("BLOCK",)), key=["n"]
)
@triton.jit
def _sum(x, parts, n, BLOCK: tl.constexpr):
    start = tl.program_id(0).to(tl.int64) * n
    total = tl.zeros((BLOCK,), tl.float32)
    for p in range(0, n, BLOCK):
        at = p + tl.arange(0, BLOCK)
        total += tl.load(x + start + at, mask=at < n, other=0.0)
    tl.store(parts + tl.program_id(0), tl.sum(total, 0))


def total(x):
    """The sum of a matrix."""
    parts = torch.empty(x.shape[0], dtype=torch.float32, device=x.device)
    _sum[(x.shape[0],)](x, parts, x.shape[1])
    return parts.sum()


@triton.autotune(
    configs=configurations(
        [((1, 2048), 4, 1), ((2, 1024), 4, 1), ((4, 1024), 4, 1), ((8, 512), 4, 1), ((8, 1024), 8, 1)], names=("BN", "BK")
    ),
    key=["n", "k"],
)
@triton.jit
def _gemv(x, w, y, n, k, BN: tl.constexpr, BK: tl.constexpr):
    row = tl.program_id(0) * BN + tl.arange(0, BN).to(tl.int64)
    total = tl.zeros((BN, BK), tl.float32)
    for p in range(0, k, BK):
        depth = p + tl.arange(0, BK)
        inside = (row[:, None] < n) & (depth[None, :] < k)
        weights = tl.load(w + row[:, None] * k + depth[None, :], mask=inside, other=0.0).to(tl.float32)
        total += weights * tl.load(x + depth, mask=depth < k, other=0.0).to(tl.float32)[None, :]
    tl.store(y + row, tl.sum(total, 1).to(y.dtype.element_ty), mask=row < n)


def gemv(x, w, y):
    """y = w·x."""
    n, k = w.shape
    _gemv[lambda meta: (triton.cdiv(n, meta["BN"]),)](x, w, y, n, k)
    return y
