"""The rows as this side knows them: each with its tensors, what limits it, and what other libraries are asked to do. The
shared library has its own table; `mismatches` compares the two."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Row:
    """`kind` says what is computed, `peers.py` how others do it; `ceiling` which measured bandwidth limits it."""

    name: str
    number: int
    kind: str
    tensors: dict
    ceiling: str = None
    options: dict = field(default_factory=dict)

    @property
    def output(self):
        """The name of the output: the last tensor."""
        return list(self.tensors)[-1]


def gemm(name, number, m, n, k, transposed=False):
    b = (n, k) if transposed else (k, n)
    tensors = {"a": ("bf16", (m, k)), "b": ("bf16", b), "c": ("bf16", (m, n))}
    return Row(name, number, "gemm_nt" if transposed else "gemm", tensors)


def gemv(name, n, k):
    return Row(name, 7, "gemv", {"x": ("bf16", (1, k)), "w": ("bf16", (n, k)), "y": ("bf16", (n, 1))}, "read")


def skinny(name, n, k):
    return Row(name, 7, "skinny", {"x": ("bf16", (16, k)), "w": ("bf16", (n, k)), "c": ("bf16", (16, n))}, "read")


def attention(name, number, batch, heads, shared, length, width, causal):
    q, kv = (batch * heads, length, width), (batch * shared, length, width)
    tensors = {"q": ("bf16", q), "k": ("bf16", kv), "v": ("bf16", kv), "o": ("bf16", q)}
    return Row(name, number, "attention", tensors, None, {"batch": batch, "causal": causal})


def gemm_f8(name, fast):
    size = (8192, 8192)
    tensors = {"a": ("f8e4m3fn", size), "b": ("f8e4m3fn", size), "c": ("bf16", size)}
    return Row(name, 6, "gemm_f8", tensors, None, {"scale": 1 / 64, "bits": 8, "fast": fast})


def decode(name, batch, length, parts):
    """`parts`: in how many the keys are dealt out, if they are."""
    heads, shared, width = 32, 8, 128
    group = heads // shared
    q, kv = (batch * shared, group, width), (batch * shared, length, width)
    tensors = {"q": ("bf16", q), "k": ("bf16", kv), "v": ("bf16", kv)}
    if parts:
        of_parts = (batch * shared, parts, group)
        tensors |= {scratch: ("f32", (*of_parts, n)) for scratch, n in (("weighted", width), ("sums", 1), ("largest", 1))}
    return Row(name, 11, "decode", tensors | {"o": ("bf16", q)}, "read", {"batch": batch})


def softmax(name, rows, width, scratch=()):
    tensors = {"x": ("bf16", (rows, width)), **{each: ("f32", (rows, 1)) for each in scratch}}
    return Row(name, 12, "softmax", {**tensors, "y": ("bf16", (rows, width))}, "copy")


def transpose(name, dtype):
    return Row(name, 14, "transpose", {"x": (dtype, (16384, 16384)), "y": (dtype, (16384, 16384))}, "copy")


ROWS = [
    gemm("gemm-nn-4096", 1, 4096, 4096, 4096),
    gemm("gemm-nt-4096", 1, 4096, 4096, 4096, True),
    gemm("gemm-nt-8192", 2, 8192, 8192, 8192, True),
    gemm("gemm-nn-1024", 3, 1024, 1024, 1024),
    gemm("gemm-nn-2048", 3, 2048, 2048, 2048),
    gemm("gemm-nn-llm", 4, 4096, 14336, 4096),
    gemm("gemm-nn-ragged", 4, 4000, 4104, 4090),
    Row(
        "linear-gelu-residual",
        5,
        "linear",
        {
            "a": ("bf16", (8192, 4096)),
            "b": ("bf16", (4096, 8192)),
            "bias": ("bf16", (1, 8192)),
            "residual": ("bf16", (8192, 8192)),
            "c": ("bf16", (8192, 8192)),
        },
    ),
    gemm_f8("gemm-f8-8192", False),
    gemm_f8("gemm-f8-8192-fast", True),
    gemv("gemv-57344", 57344, 7168),
    gemv("gemv-8192", 8192, 8192),
    skinny("skinny-57344", 57344, 7168),
    skinny("skinny-8192", 8192, 8192),
    attention("attention-128", 8, 2, 16, 16, 8192, 128, False),
    attention("attention-128-causal", 9, 1, 16, 16, 16384, 128, True),
    attention("attention-128-causal-gqa", 9, 1, 32, 8, 4096, 128, True),
    attention("attention-64-causal", 10, 2, 32, 32, 8192, 64, True),
    decode("decode", 32, 8192, None),
    decode("decode-long", 4, 65536, 16),
    softmax("softmax-8192", 16384, 8192),
    Row(
        "rmsnorm-8192",
        12,
        "rmsnorm",
        {"x": ("bf16", (16384, 8192)), "weight": ("bf16", (1, 8192)), "y": ("bf16", (16384, 8192))},
        "copy",
    ),
    softmax("softmax-131072", 4096, 131072),
    softmax("softmax-131072-pieces", 4096, 131072, ("largest", "sums")),
    Row("gelu-fused", 13, "gelu_fused", {name: ("f16", (1 << 28,)) for name in "abcy"}, "triad"),
    Row("sum", 13, "sum", {"x": ("f32", (4096, 262144)), "sums": ("f32", (4096,)), "y": ("f32", (1,))}, "read"),
    transpose("transpose-f32", "f32"),
    transpose("transpose-bf16", "bf16"),
]


def mismatches(rows, description):
    """Where the library's description differs from `rows`, as sentences."""
    found = {row["name"]: row for row in description["rows"]}
    problems = [f"the library has a row `{name}` that this script lacks" for name in found.keys() - {r.name for r in rows}]
    for row in rows:
        theirs = found.get(row.name)
        if theirs is None:
            problems.append(f"the library lacks the row `{row.name}`")
            continue
        if theirs["number"] != row.number:
            problems.append(f"`{row.name}` is of number {theirs['number']}, not {row.number}")
        tensors = theirs["sizes"][0]["tensors"]
        shapes = {tensor["name"]: (tensor["dtype"], tuple(tensor["shape"])) for tensor in tensors}
        if list(shapes.items()) != list(row.tensors.items()):
            problems.append(f"`{row.name}` has the tensors {shapes}, not {row.tensors}")
        if tensors[-1]["role"] != "output":
            problems.append(f"the last tensor of `{row.name}` isn't its output")
    return sorted(problems)
