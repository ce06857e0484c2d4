"""What other libraries make of the same tensors, by kind of row, and what is expected: the reference in f32 or f64.

A peer is a function without arguments that gives the output. `peers` lists makers of them: a maker that raises says why
the peer is missing.
"""

import contextlib

import torch
import torch.nn.functional as functional

DTYPES = {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32, "f8e4m3fn": torch.float8_e4m3fn}


def triton():
    """Our kernels in Triton; raises where it isn't there."""
    import triton_kernels

    return triton_kernels


def compiled(function, *arguments, **options):
    """By torch.compile, at once."""
    function = torch.compile(function, dynamic=False, **options)
    function(*arguments)
    return lambda: function(*arguments)


def heads(row, tensors):
    """Queries, keys and values as [batch, heads, length, width]."""
    q, k, v = (tensors[name] for name in "qkv")
    batch = row.options["batch"]
    if row.kind == "decode":
        q = q.reshape(q.shape[0] * q.shape[1], 1, q.shape[2])
    return [x.view(batch, x.shape[0] // batch, *x.shape[1:]) for x in (q, k, v)]


def attention(row, tensors, backend):
    """Scaled dot-product attention by one of torch's backends."""
    from torch.nn.attention import SDPBackend, sdpa_kernel

    q, k, v = heads(row, tensors)
    options = {"is_causal": row.options.get("causal", False), "enable_gqa": q.shape[1] != k.shape[1]}

    def run():
        with sdpa_kernel([getattr(SDPBackend, backend)]):
            return functional.scaled_dot_product_attention(q, k, v, **options)

    run()
    return run


def blas(library, function):
    """A product by cuBLAS or cuBLASLt."""

    def run():
        torch.backends.cuda.preferred_blas_library(library)
        return function()

    run()
    return run


def products(function):
    return {"cuBLAS": lambda: blas("cublas", function), "cuBLASLt": lambda: blas("cublaslt", function)}


def linear(a, b, bias, residual):
    return functional.gelu(a @ b + bias) + residual


def rmsnorm(x, weight):
    return functional.rms_norm(x, (x.shape[1],), weight[0], 1e-6)


def gelu_fused(a, b, c):
    return functional.gelu(a + b) * c


def cub_sum(x):
    """The sum by CUB."""
    import os

    os.environ.setdefault("CUPY_ACCELERATORS", "cub")
    import cupy

    array = cupy.from_dlpack(x.view(-1))

    def run():
        with cupy.cuda.ExternalStream(torch.cuda.current_stream().cuda_stream):
            return torch.from_dlpack(array.sum())

    run()
    return run


def f8(row, tensors):
    a, b = tensors["a"], tensors["b"]
    scales = [torch.full((), value, device=a.device) for value in (row.options["scale"], 1.0)]
    options = {"out_dtype": torch.bfloat16, "use_fast_accum": row.options["fast"]}
    run = lambda: torch._scaled_mm(a, b.t(), scale_a=scales[0], scale_b=scales[1], **options)
    run()
    return run


def peers(row, tensors):
    """Makers of the row's peers by name."""
    t, kind = tensors, row.kind
    out = torch.empty_like(t[row.output])
    if kind == "gemm":
        own = {"triton": lambda: lambda: triton().matmul(t["a"], t["b"], out)}
        return products(lambda: t["a"] @ t["b"]) | own
    if kind == "gemm_nt":
        own = {"triton": lambda: lambda: triton().matmul(t["a"], t["b"].t(), out)}
        return products(lambda: t["a"] @ t["b"].t()) | own
    if kind == "linear":
        arguments = [t[name] for name in ("a", "b", "bias", "residual")]
        return {
            "eager": lambda: lambda: linear(*arguments),
            "compile": lambda: compiled(linear, *arguments, mode="max-autotune-no-cudagraphs"),
            "triton": lambda: lambda: triton().matmul(t["a"], t["b"], out, 1.0, t["bias"], t["residual"]),
        }
    if kind == "gemm_f8":
        scale = row.options["scale"]
        # Triton adds up in the bits that tensor cores keep, unless it is asked for others.
        own = {"triton": lambda: lambda: triton().matmul(t["a"], t["b"].t(), out, scale)}
        return {"_scaled_mm": lambda: f8(row, t)} | (own if row.options["fast"] else {})
    if kind == "gemv":
        own = {"triton": lambda: lambda: triton().gemv(t["x"], t["w"], out)}
        return products(lambda: (t["w"] @ t["x"][0]).view(-1, 1)) | own
    if kind == "skinny":
        own = {"triton": lambda: lambda: triton().matmul(t["x"], t["w"].t(), out)}
        return products(lambda: t["x"] @ t["w"].t()) | own
    if kind == "attention":
        causal = row.options["causal"]
        return {
            "cuDNN": lambda: attention(row, t, "CUDNN_ATTENTION"),
            "flash": lambda: attention(row, t, "FLASH_ATTENTION"),
            "triton": lambda: lambda: triton().attention(t["q"], t["k"], t["v"], out, causal),
        }
    if kind == "decode":
        backends = {"cuDNN": "CUDNN_ATTENTION", "flash": "FLASH_ATTENTION", "efficient": "EFFICIENT_ATTENTION"}
        return {name: lambda backend=backend: attention(row, t, backend) for name, backend in backends.items()}
    if kind == "softmax":
        softmax = lambda x: functional.softmax(x, 1)
        return {
            "eager": lambda: lambda: softmax(t["x"]),
            "compile": lambda: compiled(softmax, t["x"]),
            "triton": lambda: lambda: triton().softmax(t["x"], out),
        }
    if kind == "rmsnorm":
        return {
            "eager": lambda: lambda: rmsnorm(t["x"], t["weight"]),
            "compile": lambda: compiled(rmsnorm, t["x"], t["weight"]),
            "triton": lambda: lambda: triton().rmsnorm(t["x"], t["weight"], out),
        }
    if kind == "gelu_fused":
        arguments = [t[name] for name in "abc"]
        return {
            "eager": lambda: lambda: gelu_fused(*arguments),
            "compile": lambda: compiled(gelu_fused, *arguments),
            "triton": lambda: lambda: triton().gelu_fused(*arguments, out),
        }
    if kind == "sum":
        return {
            "eager": lambda: lambda: t["x"].sum(),
            "compile": lambda: compiled(lambda x: x.sum(), t["x"]),
            "CUB": lambda: cub_sum(t["x"]),
            "triton": lambda: lambda: triton().total(t["x"]),
        }
    if kind == "transpose":
        return {
            "eager": lambda: lambda: t["x"].t().contiguous(),
            "compile": lambda: compiled(lambda x: x.t().contiguous(), t["x"]),
            "triton": lambda: lambda: triton().transpose(t["x"], out),
        }
    raise ValueError(f"no peers are known of {kind}")


def random(row, dtype, shape, generator):
    """An input: normally distributed. Those of the sum have mean 1, so that their sum is no difference of large ones."""
    x = torch.empty(shape, dtype=torch.float32, device="cuda").normal_(generator=generator)
    return (x + 1 if row.kind == "sum" else x).to(DTYPES[dtype])


@contextlib.contextmanager
def exact():
    """Products of f32 are those of f32."""
    old = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    yield
    torch.set_float32_matmul_precision(old)


def expected(row, tensors):
    """Pieces of what is expected, each with its index of the output."""
    t = tensors
    rows = lambda name, step: range(0, t[name].shape[0], step)
    with exact():
        if row.kind in ("gemm", "gemm_nt", "gemm_f8", "linear"):
            b = t["b"].float() if row.kind in ("gemm", "linear") else t["b"].float().t()
            for i in rows("a", 2048):
                piece = t["a"][i : i + 2048].float() @ b * row.options.get("scale", 1.0)
                if row.kind == "linear":
                    piece = functional.gelu(piece + t["bias"].float()) + t["residual"][i : i + 2048].float()
                yield slice(i, i + 2048), piece
        elif row.kind in ("gemv", "skinny"):
            piece = t["w"].float() @ t["x"].float().t()
            yield slice(None), piece if row.kind == "gemv" else piece.t()
        elif row.kind in ("attention", "decode"):
            yield from attention_pieces(row, t)
        elif row.kind == "softmax":
            for i in rows("x", 1024):
                yield slice(i, i + 1024), functional.softmax(t["x"][i : i + 1024].float(), 1)
        elif row.kind == "rmsnorm":
            yield slice(None), rmsnorm(t["x"].float(), t["weight"].float())
        elif row.kind == "gelu_fused":
            yield slice(None), gelu_fused(*(t[name].float() for name in "abc"))
        elif row.kind == "sum":
            yield slice(None), t["x"].sum(dtype=torch.float64).view(1)
        else:
            yield slice(None), t["x"].t()


def attention_pieces(row, t):
    """Head by head."""
    q, k, v = t["q"], t["k"], t["v"]
    group = q.shape[0] // k.shape[0]
    for head in range(q.shape[0]):
        key, value = (x[head // group].float() for x in (k, v))
        scores = q[head].float() @ key.t() * q.shape[2] ** -0.5
        if row.options.get("causal"):
            scores.masked_fill_(torch.ones_like(scores, dtype=torch.bool).triu(1), float("-inf"))
        yield head, functional.softmax(scores, 1) @ value


def error(row, tensors, output):
    """The length of the difference between an output and what is expected, by the length of the latter; NaN where an
    element is none."""
    output = output.reshape(tensors[row.output].shape)
    difference = length = 0.0
    for place, piece in expected(row, tensors):
        found = output[place].to(piece.dtype)
        difference += float((found - piece).square().sum(dtype=torch.float64))
        length += float(piece.square().sum(dtype=torch.float64))
    return (difference / length) ** 0.5
