"""Writes ops_golden.jsonl: every op that has numbers, on every element format, by NumPy: leaf ops, casts, reductions,
products, tiles made and moved, gather and scatter, scans, folds, sorts, histograms, random words.

    python -m pip install numpy ml_dtypes mpmath
    python tests/golden/ops.py > tests/golden/ops_golden.jsonl

Numbers are written as their bits, so that NaN, infinities and signs of zeros survive. Functions without an exact
result are evaluated with 200 bits by mpmath and rounded. What NumPy leaves undefined (division by zero of integers,
shifts by the width, casts out of range) is written out here as the language defines it.
"""

import json
import math
import warnings
from fractions import Fraction

import ml_dtypes
import mpmath
import numpy as np

warnings.simplefilter("ignore")
mpmath.mp.prec = 200

FLOATS = {
    "f8e4m3fn": ml_dtypes.float8_e4m3fn,
    "f8e5m2": ml_dtypes.float8_e5m2,
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "f32": np.float32,
    "f64": np.float64,
}
INTS = {name: getattr(np, name.replace("i", "int").replace("u", "uint")) for name in
        ["i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"]}
WORDS = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}

FLOAT_EDGES = [0.0, -0.0, 1.0, -1.0, 0.5, 1.5, -2.5, 3.0, 0.1, -7.75, 100.0, 448.0, -65504.0, 1e-3, 6e-8, 1e-40,
               math.inf, -math.inf, math.nan]
INT_EDGES = [0, 1, 2, 3, 7, 100, 127, 128, 200, 255, -1, -2, -7, -100, -128, 2**15, 2**31, 2**53 + 1, 2**63]


def width(name):
    return INTS[name]().dtype.itemsize * 8


def wrap(name, value):
    bits = width(name)
    value &= (1 << bits) - 1
    return value - (1 << bits) if name[0] == "i" and value >> (bits - 1) else value


def limits(name):
    bits = width(name)
    return (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if name[0] == "i" else (0, (1 << bits) - 1)


def bits_of(name, values):
    """The bits of a list of numbers of a format."""
    if name == "bool":
        return [int(v) for v in values]
    if name in INTS:
        return [int(v) & ((1 << width(name)) - 1) for v in values]
    array = np.asarray(values, dtype=FLOATS[name])
    return [int(b) for b in array.view(WORDS[array.dtype.itemsize])]


def edges(name):
    if name == "bool":
        return [0, 1]
    if name in INTS:
        return sorted({wrap(name, v) for v in INT_EDGES})
    values = np.asarray(FLOAT_EDGES, dtype=FLOATS[name])
    return list(values)


def emit(**fields):
    print(json.dumps(fields, separators=(",", ":")))


def rounded(name, value):
    """An mpmath number rounded once to a format of NumPy's."""
    if name in ("f32", "f64"):
        return FLOATS[name](float(value)) if name == "f64" else np.float32(float(value))
    return FLOATS[name](np.float32(float(value)))


def truncating_div(a, b):
    if b == 0:
        return 0
    q = abs(a) // abs(b)
    return q if (a < 0) == (b < 0) else -q


def truncating_rem(a, b):
    return a if b == 0 else a - b * truncating_div(a, b)


def half_away(x):
    return math.copysign(math.floor(abs(x) + 0.5), x) if math.isfinite(x) and abs(x) < 2**52 else x


def exact(function):
    """A function of doubles whose result a format rounds once."""
    return lambda name, x: FLOATS[name](function(float(x)))


def signed_zero(value, x):
    return math.copysign(value, x) if value == 0 else value


FLOAT_UNARY = {
    "neg": lambda name, x: -x,
    "abs": lambda name, x: abs(x),
    "sqrt": lambda name, x: np.sqrt(x),
    "floor": exact(lambda x: signed_zero(float(np.floor(x)), x)),
    "ceil": exact(lambda x: signed_zero(float(np.ceil(x)), x)),
    "trunc": exact(lambda x: signed_zero(float(np.trunc(x)), x)),
    "round": exact(half_away),
    "round_ties_even": exact(lambda x: float(np.rint(x))),
    "signum": exact(lambda x: math.nan if math.isnan(x) else math.copysign(1.0, x)),
    "recip": lambda name, x: FLOATS[name](1) / x,
}

# Values at infinity and outside the domain are mpmath's limits.
REAL = {
    "exp": mpmath.exp,
    "exp2": lambda x: mpmath.power(2, x),
    "exp10": lambda x: mpmath.power(10, x),
    "exp_m1": mpmath.expm1,
    "log": mpmath.log,
    "log2": lambda x: mpmath.log(x, 2),
    "log10": mpmath.log10,
    "ln_1p": mpmath.log1p,
    "rsqrt": lambda x: 1 / mpmath.sqrt(x),
    "cbrt": lambda x: mpmath.sign(x) * mpmath.cbrt(abs(x)),
    "sin": mpmath.sin,
    "cos": mpmath.cos,
    "tan": mpmath.tan,
    "asin": mpmath.asin,
    "acos": mpmath.acos,
    "atan": mpmath.atan,
    "sinh": mpmath.sinh,
    "cosh": mpmath.cosh,
    "tanh": mpmath.tanh,
    "asinh": mpmath.asinh,
    "acosh": mpmath.acosh,
    "atanh": mpmath.atanh,
    "erf": mpmath.erf,
    "erfc": mpmath.erfc,
    "sigmoid": lambda x: 1 / (1 + mpmath.exp(-x)),
    "silu": lambda x: x / (1 + mpmath.exp(-x)),
    "gelu": lambda x: x * mpmath.erfc(-x / mpmath.sqrt(2)) / 2,
}


def real(op, name, x):
    """A real function at a finite number; None where a limit would be needed."""
    x = float(x)
    if not math.isfinite(x) or x == 0:
        return None
    value = REAL[op](mpmath.mpf(x))
    return None if isinstance(value, mpmath.mpc) or not mpmath.isfinite(value) else rounded(name, value)


def rotated(name, x, by):
    """The bits of an integer as a string, whose end goes to the front."""
    bits = format(x & ((1 << width(name)) - 1), f"0{width(name)}b")
    by %= width(name)
    return wrap(name, int(bits[by:] + bits[:by], 2))


def reversed_bytes(name, x):
    return int(np.asarray(x, INTS[name]).byteswap())


INT_UNARY = {
    "neg": lambda name, x: wrap(name, -x),
    "not": lambda name, x: wrap(name, ~x),
    "abs": lambda name, x: wrap(name, abs(x)),
    "signum": lambda name, x: (x > 0) - (x < 0),
    "count_ones": lambda name, x: bin(x & ((1 << width(name)) - 1)).count("1"),
    "leading_zeros": lambda name, x: width(name) - (x & ((1 << width(name)) - 1)).bit_length(),
    "trailing_zeros": lambda name, x: width(name) if x == 0 else (x & -x).bit_length() - 1,
    "swap_bytes": reversed_bytes,
    "reverse_bits": lambda name, x: wrap(name, int(format(x & ((1 << width(name)) - 1), f"0{width(name)}b")[::-1], 2)),
}

INT_BINARY = {
    "add": lambda name, a, b: wrap(name, a + b),
    "sub": lambda name, a, b: wrap(name, a - b),
    "mul": lambda name, a, b: wrap(name, a * b),
    "div": lambda name, a, b: wrap(name, truncating_div(a, b)),
    "rem": lambda name, a, b: truncating_rem(a, b),
    "div_floor": lambda name, a, b: wrap(name, a // b) if b else 0,
    "div_ceil": lambda name, a, b: wrap(name, -(-a // b)) if b else 0,
    "rem_euclid": lambda name, a, b: a % abs(b) if b else a,
    "mul_hi": lambda name, a, b: (a * b) >> width(name),
    "min": lambda name, a, b: min(a, b),
    "max": lambda name, a, b: max(a, b),
    "and": lambda name, a, b: a & b,
    "or": lambda name, a, b: a | b,
    "xor": lambda name, a, b: a ^ b,
    "shl": lambda name, a, b: wrap(name, a << (b % width(name))),
    "shr": lambda name, a, b: a >> (b % width(name)),
    "rotate_left": lambda name, a, b: rotated(name, a, b),
    "rotate_right": lambda name, a, b: rotated(name, a, -b),
    "saturating_add": lambda name, a, b: min(max(a + b, limits(name)[0]), limits(name)[1]),
    "saturating_sub": lambda name, a, b: min(max(a - b, limits(name)[0]), limits(name)[1]),
    "saturating_mul": lambda name, a, b: min(max(a * b, limits(name)[0]), limits(name)[1]),
}


def extremum(larger, ignore):
    def choose(name, a, b):
        x, y = float(a), float(b)
        if math.isnan(x) or math.isnan(y):
            other = b if math.isnan(x) else a
            return other if ignore else FLOATS[name](math.nan)
        key = lambda v: (float(v), math.copysign(1.0, float(v)))
        return (max if larger else min)(a, b, key=key)
    return choose


FLOAT_BINARY = {
    "add": lambda name, a, b: a + b,
    "sub": lambda name, a, b: a - b,
    "mul": lambda name, a, b: a * b,
    "div": lambda name, a, b: a / b,
    "rem": lambda name, a, b: FLOATS[name](np.fmod(np.float64(a), np.float64(b))),
    "min": extremum(False, True),
    "max": extremum(True, True),
    "minimum": extremum(False, False),
    "maximum": extremum(True, False),
    "copysign": lambda name, a, b: FLOATS[name](math.copysign(float(a), float(b))),
}


def edge_power(x, y):
    """C's `pow` of zeros, infinities, NaN and negative bases; NumPy's isn't where it takes a square root."""
    if math.isfinite(x) and math.isfinite(y):
        if x == 0 and y < 0:
            return math.copysign(math.inf, x) if y % 2 == 1 else math.inf
        if x < 0 and y != int(y):
            return math.nan
    return math.pow(x, y)


def power(name, a, b):
    x, y = float(a), float(b)
    if not math.isfinite(x) or not math.isfinite(y) or x == 0 or y == 0 or (x < 0 and y != int(y)):
        return FLOATS[name](edge_power(x, y))
    return rounded(name, mpmath.power(mpmath.mpf(x), int(y) if y == int(y) else mpmath.mpf(y)))


def angle(name, a, b):
    y, x = float(a), float(b)
    if not math.isfinite(x) or not math.isfinite(y) or x == 0 or y == 0:
        return rounded(name, math.atan2(y, x))
    return rounded(name, mpmath.atan2(mpmath.mpf(y), mpmath.mpf(x)))


def length(name, a, b):
    x, y = float(a), float(b)
    if not math.isfinite(x) or not math.isfinite(y):
        return FLOATS[name](math.hypot(x, y))
    return rounded(name, mpmath.hypot(mpmath.mpf(x), mpmath.mpf(y)))


FLOAT_BINARY |= {"powf": power, "atan2": angle, "hypot": length}


def philox(counter, key):
    """Words 0 and 1 of Philox4x32-10 (Salmon et al., SC'11)."""
    low = lambda x: x & 0xffffffff
    c, k = [low(counter), counter >> 32, 0, 0], [low(key), key >> 32]
    for _ in range(10):
        left, right = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(right >> 32) ^ c[1] ^ k[0], low(right), (left >> 32) ^ c[3] ^ k[1], low(left)]
        k = [low(k[0] + 0x9E3779B9), low(k[1] + 0xBB67AE85)]
    return c[0] | c[1] << 32


# The authors' known answer.
assert philox(0, 0) == 0xe169c58d6627e8d5


def tf32(x):
    """Rounded to 10 bits of mantissa, ties away from zero."""
    bits = int(np.float32(x).view(np.uint32))
    special = bits & 0x7f800000 == 0x7f800000
    return np.float32(x) if special else np.uint32((bits + 0x1000) & 0xffffe000).view(np.float32)


# Bits of the mantissa, the exponent of the least normal number, the largest number, what is beyond.
LAYOUTS = {
    "f8e4m3fn": (3, -6, Fraction(448), math.nan),
    "f8e5m2": (2, -14, Fraction(57344), math.inf),
    "f16": (10, -14, Fraction(65504), math.inf),
    "bf16": (7, -126, Fraction(float(ml_dtypes.finfo(ml_dtypes.bfloat16).max)), math.inf),
    "f32": (23, -126, Fraction(float(np.finfo(np.float32).max)), math.inf),
    "f64": (52, -1022, Fraction(float(np.finfo(np.float64).max)), math.inf),
}


def integral(direction, x):
    """A fraction rounded to an integer."""
    low = x.numerator // x.denominator
    if x == low:
        return low
    match direction:
        case "toward_zero":
            return low if x > 0 else low + 1
        case "up":
            return low + 1
        case "down":
            return low
    rest = x - low
    return low if rest < Fraction(1, 2) or (rest == Fraction(1, 2) and low % 2 == 0) else low + 1


def directed(name, direction, x):
    """A fraction other than 0 rounded once to a float format."""
    mantissa, least, largest, beyond = LAYOUTS[name]
    exponent = least
    while abs(x) >= Fraction(2) ** (exponent + 1):
        exponent += 1
    unit = Fraction(2) ** (exponent - mantissa)
    value = integral(direction, x / unit) * unit
    if abs(value) > largest:
        inward = direction == "toward_zero" or direction == ("down" if x > 0 else "up")
        return FLOATS[name](math.copysign(float(largest) if inward else beyond, x))
    return FLOATS[name](math.copysign(float(abs(value)), x))


def cast_with(source, target, direction, x):
    x = float(x)
    if target in INTS:
        low, high = limits(target)
        if math.isnan(x):
            return 0
        if math.isinf(x):
            return high if x > 0 else low
        return min(max(integral(direction, Fraction(x)), low), high)
    if not math.isfinite(x):
        return FLOATS[target](math.nan if target == "f8e4m3fn" else x)
    return FLOATS[target](x) if x == 0 else directed(target, direction, Fraction(x))


def saturating_cast(source, target, x):
    largest = LAYOUTS[target][2]
    if math.isinf(float(x)) or abs(float(x)) > largest:
        return FLOATS[target](math.copysign(float(largest), float(x)))
    return cast(source, target, x)


def fused(name, a, b, c):
    a, b, c = float(a), float(b), float(c)
    if all(map(math.isfinite, (a, b, c))):
        value = Fraction(a) * Fraction(b) + Fraction(c)
        if value != 0:
            return directed(name, "nearest_even", value)
    # The sign of zero, infinities and NaN are those of two operations.
    return FLOATS[name](float(np.float64(a) * np.float64(b) + np.float64(c)))


COMPARE = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}

CLASSIFY = {"is_nan": math.isnan, "is_infinite": math.isinf, "is_finite": math.isfinite}


def leaf_ops(name):
    values = edges(name)
    pairs = [(a, b) for a in values for b in values]
    left, right = [a for a, _ in pairs], [b for _, b in pairs]
    number = (lambda x: x) if name not in FLOATS else float
    emit(inputs=name, a=bits_of(name, left), b=bits_of(name, right))
    for op, holds in COMPARE.items():
        if name != "bool" or op in ("eq", "ne"):
            emit(op=op, dtype=name, result="bool", expected=[int(holds(number(a), number(b))) for a, b in pairs])
    if name == "bool":
        for op, function in {"and": lambda a, b: a & b, "or": lambda a, b: a | b, "xor": lambda a, b: a ^ b}.items():
            emit(op=op, dtype=name, result=name, expected=[function(a, b) for a, b in pairs])
        emit(op="not", dtype=name, result=name, expected=[1 - a for a in left])
        return
    if name in INTS:
        for op, function in INT_UNARY.items():
            if name[0] == "i" or op not in ("neg", "abs", "signum"):
                emit(op=op, dtype=name, result=name, expected=bits_of(name, [function(name, a) for a in left]))
        for op, function in INT_BINARY.items():
            emit(op=op, dtype=name, result=name, expected=bits_of(name, [function(name, a, b) for a, b in pairs]))
        if name == "u64":
            words = [philox(int(a), int(b)) for a, b in pairs]
            emit(op="philox", dtype=name, result=name, expected=words)
        return
    for op, function in FLOAT_UNARY.items():
        emit(op=op, dtype=name, result=name, expected=bits_of(name, [function(name, a) for a in left]))
    for op in REAL:
        found = {i: real(op, name, a) for i, a in enumerate(values)}
        known = {i: v for i, v in found.items() if v is not None}
        step = len(values)
        emit(op=op, dtype=name, result=name, at=[i * step for i in known], expected=bits_of(name, list(known.values())))
    for op, function in FLOAT_BINARY.items():
        emit(op=op, dtype=name, result=name, expected=bits_of(name, [function(name, a, b) for a, b in pairs]))
    for op, holds in CLASSIFY.items():
        emit(op=op, dtype=name, result="bool", expected=[int(holds(float(a))) for a in left])
    emit(op="mul_add", dtype=name, result=name, expected=bits_of(name, [fused(name, a, b, a) for a, b in pairs]))
    if name == "f32":
        step = len(values)
        emit(op="round_tf32", dtype=name, result=name, at=[i * step for i in range(step)],
             expected=bits_of(name, [tf32(x) for x in values]))


def cast(source, target, x):
    if target == "bool":
        return int(float(x) != 0) if source in FLOATS else int(x != 0)
    if target in INTS:
        if source not in FLOATS:
            return wrap(target, int(x))
        x = float(x)
        low, high = limits(target)
        if math.isnan(x):
            return 0
        return (high if x > 0 else low) if math.isinf(x) else min(max(int(x), low), high)
    if source in FLOATS:
        return FLOATS[target](np.float64(x)) if target in ("f16", "f32", "f64") else nearest(target, float(x))
    return nearest(target, int(x))


def nearest(name, value):
    """The nearest number of a narrow format, found among all of them; exact, by fractions."""
    if isinstance(value, float) and not math.isfinite(value):
        return FLOATS[name](value)
    if name in ("f32", "f64"):
        high = FLOATS[name](float(value)) if name == "f64" else np.float32(value)
        return high
    exact_value = Fraction(value)
    table = TABLES[name]
    below = [x for x in table if x[0] <= abs(exact_value)]
    above = [x for x in table if x[0] > abs(exact_value)]
    low = below[-1]
    if above:
        high = above[0]
        distance = (abs(exact_value) - low[0]) - (high[0] - abs(exact_value))
        chosen = high if distance > 0 or (distance == 0 and low[1] % 2 == 1) else low
        magnitude = float(chosen[0])
    else:
        step = low[0] - below[-2][0]
        tie = low[0] + step / 2
        overflow = abs(exact_value) > tie or (abs(exact_value) == tie and low[1] % 2 == 1)
        beyond = math.nan if name == "f8e4m3fn" else math.inf
        magnitude = beyond if overflow else float(low[0])
    return FLOATS[name](math.copysign(magnitude, value) if not isinstance(value, int) or value >= 0 else -magnitude)


def tables():
    found = {}
    for name in ("f8e4m3fn", "f8e5m2", "f16", "bf16"):
        dtype = FLOATS[name]
        size = np.dtype(dtype).itemsize
        codes = np.arange(1 << (8 * size - 1), dtype=WORDS[size])
        values = codes.view(dtype).astype(np.float64)
        found[name] = [(Fraction(float(v)), int(c)) for v, c in zip(values, codes) if math.isfinite(v)]
    return found


TABLES = tables()


def size_of(name):
    return np.dtype(INTS.get(name) or FLOATS[name]).itemsize


def casts(source):
    values = edges(source)
    step = len(values)
    for target in [*INTS, *FLOATS, "bool"]:
        converted = [cast(source, target, x) for x in values]
        places = [i * step for i in range(step)]
        emit(op="cast", dtype=source, result=target, at=places, expected=bits_of(target, converted))
        if source in FLOATS and target in FLOATS:
            converted = [saturating_cast(source, target, x) for x in values]
            emit(op="saturating_cast", dtype=source, result=target, at=places, expected=bits_of(target, converted))
        if source in FLOATS and target != "bool":
            for direction in ("nearest_even", "toward_zero", "up", "down"):
                converted = [cast_with(source, target, direction, x) for x in values]
                emit(op=f"cast_with {direction}", dtype=source, result=target, at=places,
                     expected=bits_of(target, converted))
        if "bool" not in (source, target) and size_of(source) == size_of(target):
            emit(op="bitcast", dtype=source, result=target, at=places, expected=bits_of(source, values))


def reductions(name):
    """Small whole numbers, whose sums and products every format holds exactly."""
    shape = (3, 8)
    generator = np.random.default_rng(len(name))
    whole = generator.integers(0 if name == "bool" or name[0] == "u" else -1, 2, shape)
    array = [int(v) for v in whole.flatten()]
    for axis in (0, 1):
        table = {"sum": np.sum, "prod": np.prod, "max": np.max, "min": np.min}
        if name == "bool":
            table = {"any": np.any, "all": np.all}
        elif name in INTS:
            table |= {"and": np.bitwise_and.reduce, "or": np.bitwise_or.reduce, "xor": np.bitwise_xor.reduce}
        else:
            table |= {"maximum": np.maximum.reduce, "minimum": np.minimum.reduce}
        for op, function in table.items():
            result = [int(v) for v in function(whole, axis=axis).flatten()]
            emit(reduce=op, dtype=name, shape=shape, axis=axis, a=bits_of(name, array), expected=bits_of(name, result))


def products():
    narrow = ("f8e4m3fn", "f8e5m2")
    pairs = [(left, right, total) for left in narrow for right in narrow for total in ("f32", "f16")]
    pairs += [("f16", "f16", "f32"), ("f16", "f16", "f16"), ("bf16", "bf16", "f32"), ("f32", "f32", "f32"),
              ("f64", "f64", "f64"), ("i8", "i8", "i32"), ("i8", "u8", "i32"), ("u8", "i8", "i32"),
              ("u8", "u8", "i32"), ("i16", "i16", "i32"), ("i32", "i32", "i32"), ("u32", "u32", "u32"),
              ("i64", "i64", "i64"), ("u64", "u64", "u64")]
    generator = np.random.default_rng(7)
    m, k, n = 4, 6, 5
    for left, right, total in pairs:
        low = lambda name: 0 if name[0] == "u" else -3
        a, b = generator.integers(low(left), 4, (m, k)), generator.integers(low(right), 4, (k, n))
        c = generator.integers(low(total), 4, (m, n))
        flat = lambda name, array: bits_of(name, [int(v) for v in array.flatten()])
        emit(mma=[left, right, total], shape=[m, k, n], a=flat(left, a), b=flat(right, b), c=flat(total, c),
             expected=flat(total, a @ b + c))


def tile(name, shape):
    return "tile<" + "".join(f"{n} x " for n in shape) + name + ">"


def program(lines, inputs, outputs):
    """A kernel's ops: `%a`, `%b`, … are whole tiles, `%r`, `%s` are stored."""
    pack = lambda name, array: {"dtype": name, "shape": list(array.shape), "bits": bits_of(name, list(array.flatten()))}
    emit(ir=lines, inputs=[pack(*pair) for pair in inputs], outputs=[pack(*pair) for pair in outputs])


def literal(name, value):
    return ("true" if value else "false") if name == "bool" else f"{value}.0" if name in FLOATS else str(value)


def array_of(name, values):
    """Small whole numbers in a format."""
    if name == "bool":
        return np.asarray(values) % 2
    return np.asarray(values).astype(INTS.get(name, np.float64))


def movements(name, generator):
    low = 0 if name == "bool" or name[0] == "u" else -3
    a = array_of(name, generator.integers(low, 4, (4, 6)))
    b = array_of(name, generator.integers(low, 4, (2, 3)))
    one = lambda line, result: program([f"%r = {line} : {tile(name, result.shape)}"], [(name, a)], [(name, result)])
    for axis in (0, 1):
        one(f"flip %a axis {axis}", np.flip(a, axis))
        one(f"roll %a axis {axis} by 2", np.roll(a, 2, axis))
        one(f"extract %a [{axis}, 2]", a[axis:axis + 2, 2:5])
        both = np.concatenate([a, a[::-1]], axis)
        line = f"%r = cat %a, %f axis {axis} : {tile(name, both.shape)}"
        program([f"%f = flip %a axis 0 : {tile(name, a.shape)}", line], [(name, a)], [(name, both)])
    one("permute %a [1, 0]", a.T)
    one("reshape %a", a.reshape(3, 8))
    one("repeat %a [2, 3]", np.tile(a, (2, 3)))
    inserted = a.copy()
    inserted[1:3, 3:6] = b
    line = f"%r = insert %a, %b [1, 3] : {tile(name, a.shape)}"
    program([line], [(name, a), (name, b)], [(name, inserted)])
    fill = f"%f = constant {literal(name, 1)} : {name}"
    padded = np.pad(a, ((1, 0), (0, 2)), constant_values=1)
    program([fill, f"%r = pad %a, %f [1, 0] [0, 2] : {tile(name, padded.shape)}"], [(name, a)], [(name, padded)])
    shifted = np.concatenate([np.ones((4, 2), a.dtype), a[:, :-2]], 1)
    program([fill, f"%r = shift %a, %f axis 1 by 2 : {tile(name, a.shape)}"], [(name, a)], [(name, shifted)])
    column = f"%c = extract %a [0, 0] : {tile(name, (4, 1))}"
    repeated = np.broadcast_to(a[:, :1], (4, 5))
    program([column, f"%r = broadcast %c : {tile(name, (4, 5))}"], [(name, a)], [(name, repeated)])


def indexed(name, generator):
    low = 0 if name == "bool" or name[0] == "u" else -3
    a = array_of(name, generator.integers(low, 4, (4, 6)))
    for axis, word in ((0, "i32"), (1, "u8")):
        indices = generator.integers(0 if word == "u8" else -2, a.shape[axis] + 2, (3, 6) if axis == 0 else (4, 5))
        inside = (indices >= 0) & (indices < a.shape[axis])
        found = np.take_along_axis(a, np.where(inside, indices, 0), axis)
        found = np.where(inside, found, np.ones_like(found))
        fill = f"%f = constant {literal(name, 1)} : {name}"
        line = f"%r = gather %a, %b, %f axis {axis} : {tile(name, found.shape)}"
        program([fill, line], [(name, a), (word, indices)], [(name, found)])
        values = array_of(name, generator.integers(low, 4, indices.shape))
        written, added = a.copy(), a.astype(object)
        for place in np.ndindex(*indices.shape):
            if inside[place]:
                target = list(place)
                target[axis] = indices[place]
                written[tuple(target)] = values[place]
                added[tuple(target)] += values[place]
        operands = [(name, a), (word, indices), (name, values)]
        program([f"%r = scatter %a, %b, %c axis {axis} : {tile(name, a.shape)}"], operands, [(name, written)])
        if name != "bool":
            result = np.asarray([wrap(name, int(v)) if name in INTS else v for v in added.flatten()]).reshape(a.shape)
            program([f"%r = scatter_add %a, %b, %c axis {axis} : {tile(name, a.shape)}"], operands, [(name, result)])


def lines_of(name, generator):
    if name == "bool":
        folds(name, generator.integers(0, 2, (3, 3)))
        return
    # Sums and products that every format holds exactly.
    whole = generator.integers(0 if name[0] == "u" else -1, 2, (3, 7))
    least, most = limits(name) if name in INTS else (-math.inf, math.inf)
    # f8e4m3fn has no infinity.
    least, most = (-448, 448) if name == "f8e4m3fn" else (least, most)
    scans = {"sum": (np.cumsum, 0), "prod": (np.cumprod, 1), "max": (np.maximum.accumulate, least),
             "min": (np.minimum.accumulate, most)}
    for op, (function, nothing) in scans.items():
        for axis in (0, 1):
            turn = lambda array: np.flip(array, axis)
            for words, view in (("", lambda array: array), (" reverse", turn)):
                result = view(function(view(whole), axis=axis))
                line = f"%r = scan {op} %a axis {axis}{words} : {tile(name, whole.shape)}"
                program([line], [(name, array_of(name, whole))], [(name, array_of(name, result))])
                moved = np.roll(view(result), 1, axis).astype(object)
                moved[(slice(0, 1), slice(None)) if axis == 0 else (slice(None), slice(0, 1))] = nothing
                line = f"%r = scan {op} %a axis {axis}{words} exclusive : {tile(name, whole.shape)}"
                program([line], [(name, array_of(name, whole))], [(name, view(moved))])
    folds(name, whole)
    values = edges(name)
    picked = [values[i] for i in generator.integers(0, len(values), 24)]
    array = np.empty((3, 8), object)
    array.flat[:] = picked
    key = lambda x: (math.isnan(float(x)), 0 if math.isnan(float(x)) else (float(x) if name in FLOATS else int(x)))
    for words, reverse in (("", False), (" descending", True)):
        # Python sorts stably, also in reverse.
        order = [sorted(range(8), key=lambda i: key(row[i]), reverse=reverse) for row in array]
        result = np.empty((3, 8), object)
        result.flat[:] = [row[i] for row, places in zip(array, order) for i in places]
        for count in (8, 3):
            types = f"{tile(name, (3, count))}, {tile('i32', (3, count))}"
            kept = [(name, result[:, :count]), ("i32", np.asarray(order)[:, :count])]
            program([f"%r, %s = sort %a axis 1{words} : {types}"], [(name, array)], kept)
    if name in INTS:
        counted = generator.integers(0 if name[0] == "u" else -2, 9, (5, 8))
        counts = np.bincount(counted[(counted >= 0) & (counted < 6)], minlength=6)
        program([f"%r = histogram %a : {tile('i32', (6,))}"], [(name, counted)], [("i32", counts)])


def folds(name, whole):
    """`(s, x) → 2·s − x`, whose order counts, from 1; of bool `¬s ∧ x`. Numbers stay so small that every format holds
    them."""
    whole = whole[:, :3]
    lines = []
    for row in whole:
        state, kept = 1, []
        for x in row:
            state = (1 - state) * int(x) if name == "bool" else 2 * state - int(x)
            state = wrap(name, state) if name in INTS else state
            kept.append(state)
        lines.append(kept)
    region = ["  %p = not %t : bool", "  %q = and %p, %u : bool", "  yield %q", "}"]
    if name != "bool":
        region = [f"  %p = add %t, %t : {name}", f"  %q = sub %p, %u : {name}", "  yield %q", "}"]
    one = f"%one = constant {literal(name, 1)} : {name}"
    a = [(name, array_of(name, whole))]
    for op, kept in (("scan_with", np.asarray(lines)), ("reduce_with", np.asarray(lines)[:, 2:])):
        head = f"%r = {op} %a from %one axis 1 with (%t, %u) : {tile(name, kept.shape)} {{"
        program([one, head, *region], a, [(name, kept)])


def made(name, generator):
    """Tiles that are made of nothing or of a scalar, a scalar made of a tile, and choices."""
    shape = (3, 4)
    low = 0 if name == "bool" or name[0] == "u" else -3
    a, b = [array_of(name, generator.integers(low, 4, shape)) for _ in range(2)]
    condition = generator.integers(0, 2, shape)
    chosen = np.where(condition, a, b)
    line = f"%r = select %a, %b, %c : {tile(name, shape)}"
    program([line], [("bool", condition), (name, a), (name, b)], [(name, chosen)])
    fill = f"%f = constant {literal(name, 1)} : {name}"
    program([fill, f"%r = splat %f : {tile(name, shape)}"], [], [(name, np.ones(shape, a.dtype))])
    item = [f"%e = extract %a [1, 2] : {tile(name, (1, 1))}", f"%i = item %e : {name}"]
    program([*item, f"%r = splat %i : {tile(name, (2,))}"], [(name, a)], [(name, np.asarray([a[1, 2]] * 2))])
    if name != "bool":
        for axis in (0, 1):
            program([f"%r = iota {axis} : {tile(name, shape)}"], [], [(name, np.indices(shape)[axis])])


def several_axes(name, generator):
    """A reduction over axes 0 and 2, as the front end writes it."""
    low = 0 if name == "bool" or name[0] == "u" else -1
    a = generator.integers(low, 2, (2, 3, 4))
    table = {"sum": np.sum, "prod": np.prod, "max": np.max, "min": np.min}
    if name == "bool":
        table = {"any": np.any, "all": np.all}
    for op, function in table.items():
        result = function(a, axis=(0, 2), keepdims=True)
        lines = [f"%p = permute %a [1, 0, 2] : {tile(name, (3, 2, 4))}", f"%q = reshape %p : {tile(name, (3, 8))}",
                 f"%s = reduce {op} %q axis 1 : {tile(name, (3, 1))}", f"%r = reshape %s : {tile(name, (1, 3, 1))}"]
        program(lines, [(name, array_of(name, a))], [(name, array_of(name, result))])


def more_products(generator):
    """Batches of matrices, transposed factors, and factors rounded to TF32."""
    for left, total in [("f32", "f32"), ("f16", "f32"), ("bf16", "f32"), ("f8e5m2", "f16"), ("i8", "i32"), ("u64", "u64")]:
        low = 0 if left[0] == "u" else -3
        a, b = generator.integers(low, 4, (2, 3, 5)), generator.integers(low, 4, (2, 4, 5))
        c = generator.integers(0, 4, (2, 3, 4))
        lines = [f"%t = permute %b [0, 2, 1] : {tile(left, (2, 5, 4))}", f"%r = mma %a, %t, %c : {tile(total, (2, 3, 4))}"]
        operands = [(left, array_of(left, a)), (left, array_of(left, b)), (total, array_of(total, c))]
        program(lines, operands, [(total, array_of(total, a @ b.transpose(0, 2, 1) + c))])
    # Numbers of 24 bits, one product each, so that the sum has one term.
    a, b = [np.asarray(generator.uniform(-2, 2, shape), np.float32) for shape in ((4, 1), (1, 5))]
    left, right = [np.vectorize(tf32, otypes=[np.float32])(x) for x in (a, b)]
    lines = [f"%x = round_tf32 %a : {tile('f32', (4, 1))}", f"%y = round_tf32 %b : {tile('f32', (1, 5))}",
             "%f = constant 0.0 : f32", f"%z = splat %f : {tile('f32', (4, 5))}",
             f"%r = mma %x, %y, %z : {tile('f32', (4, 5))}"]
    exact_products = (left.astype(np.float64) * right.astype(np.float64)).astype(np.float32)
    program(lines, [("f32", a), ("f32", b)], [("f32", exact_products)])


for dtype in ["bool", *INTS, *FLOATS]:
    leaf_ops(dtype)
for dtype in ["bool", *INTS, *FLOATS]:
    casts(dtype)
for dtype in ["bool", *INTS, *FLOATS]:
    reductions(dtype)
products()
for dtype in ["bool", *INTS, *FLOATS]:
    random = np.random.default_rng(sum(map(ord, dtype)))
    movements(dtype, random)
    indexed(dtype, random)
    lines_of(dtype, random)
    made(dtype, random)
    several_axes(dtype, random)
more_products(np.random.default_rng(11))
