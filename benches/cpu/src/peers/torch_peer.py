"""Answers the requests of process.rs with PyTorch on the CPU."""

import statistics
import sys
import time

import torch


def random(*shape):
    return torch.rand(*shape) * 2 - 1


def task(name, sizes):
    """A function that computes once, into memory that is there where PyTorch allows it."""
    if name == "matmul":
        m, n, k = sizes
        a, b, c = random(m, k), random(k, n), torch.empty(m, n)
        return lambda: torch.mm(a, b, out=c)
    rows, n = sizes
    x, y, weight, bias = random(rows, n), torch.empty(rows, n), random(n), random(n)
    if name == "softmax":
        return lambda: torch.softmax(x, 1, out=y)
    if name == "rmsnorm":
        return lambda: torch.nn.functional.rms_norm(x, (n,), weight, 1e-6)
    if name == "layernorm":
        return lambda: torch.nn.functional.layer_norm(x, (n,), weight, bias, 1e-5)
    raise ValueError(f"no task {name}")


def sample(run, runs, seconds, clock):
    """The median seconds of a run, after one that doesn't count."""
    now = {"wall": time.perf_counter, "thread": time.thread_time}[clock]
    run()
    times, start = [], time.perf_counter()
    while len(times) < runs or time.perf_counter() - start < seconds:
        before = now()
        run()
        times.append(now() - before)
    return statistics.median(times)


def main():
    run = None
    with torch.inference_mode():
        for line in sys.stdin:
            word, *rest = line.split()
            if word == "version":
                blas = "MKL" if torch.backends.mkl.is_available() else "without MKL"
                answer = f"torch {torch.__version__} ({blas})"
            elif word == "run":
                answer = sample(run, int(rest[0]), float(rest[1]), rest[2])
            else:
                threads, *sizes = map(int, rest)
                torch.set_num_threads(threads)
                run = task(word, sizes)
                answer = "ready"
            print(answer, flush=True)


main()
