"""Measures our kernels on an H200 beside cuBLAS, cuDNN, torch.compile, Triton and CUB, all in this process, and prints
how they compare. `python3 bench.py --help` says what may be chosen.

Nothing is compiled of ours: the shared library beside this script has the kernels. Every output is compared with a
reference before it is timed. The exit code is 1 where one of ours is wrong or doesn't run.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import threading
import time

import report
import rows
from library import Failure, Library

HERE = pathlib.Path(__file__).resolve().parent
DEVICE = "cuda:0"
TOLERANCE = {"bf16": 1e-2, "f16": 1e-3, "f32": 1e-6}
FLUSHED_BYTES = 256 << 20
WARM_UP, MEASURED, IDLE, SUSTAINED = 0.05, 0.15, 0.2, 1.0
LEAST_RUNS, MOST_RUNS = 6, 30
# Runs that follow each other before the host looks.
BATCH = 10
# How many events are enqueued behind the one that the host waits for.
AHEAD = 3


def arguments():
    parser = argparse.ArgumentParser(description="Our kernels on an H200 beside those of other libraries.")
    parser.add_argument("--library", default=str(HERE / "libh200.so"), help="the shared library with our kernels")
    parser.add_argument("--dry-run", action="store_true", help="only compare the library's rows with this script's")
    parser.add_argument("--rows", nargs="*", help="only these rows, by name")
    parser.add_argument("--rounds", type=int, default=5, help="how often all arms of a row are measured in turn")
    parser.add_argument("--without-peers", action="store_true", help="only ours")
    parser.add_argument("--output", default=".", help="where h200.json and h200.csv are written")
    return parser.parse_args()


def main():
    options = arguments()
    library = Library(options.library)
    problems = rows.mismatches(rows.ROWS, library.description)
    if problems:
        print("\n".join(problems))
        return 1
    chosen = [row for row in rows.ROWS if not options.rows or row.name in options.rows]
    unknown = set(options.rows or []) - {row.name for row in chosen}
    if unknown:
        print(f"no row is called {', '.join(sorted(unknown))}; the rows are {', '.join(r.name for r in rows.ROWS)}")
        return 1
    if options.dry_run:
        print(f"{len(rows.ROWS)} rows of {options.library} are as expected")
        return 0
    return Bench(library, options).run(chosen)


class Sampler:
    """The clock and the power of the GPU, ten times a second, where nvidia-smi is."""

    def __init__(self):
        self.samples, self.process = [], None
        query = ["nvidia-smi", "--query-gpu=clocks.sm,power.draw", "--format=csv,noheader,nounits", "-lms", "100"]
        try:
            self.process = subprocess.Popen(query, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        except OSError:
            return
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.process.stdout:
            try:
                clock, power = (float(cell) for cell in line.split(","))
            except ValueError:
                continue
            self.samples.append((time.monotonic(), clock, power))

    def since(self, start):
        """The median clock in MHz and power in W since a time; None without samples."""
        found = [(clock, power) for at, clock, power in self.samples if at >= start]
        return tuple(report.median(list(each)) for each in zip(*found)) if found else None

    def stop(self):
        if self.process:
            self.process.terminate()


class Bench:
    """One run."""

    def __init__(self, library, options):
        import peers
        import torch

        self.library, self.options, self.peers, self.torch = library, options, peers, torch
        self.other = torch.ones(FLUSHED_BYTES // 4, dtype=torch.float32, device="cuda")
        self.stream = torch.cuda.current_stream()
        self.sampler = Sampler()
        self.ceilings = {}
        self.environment = self.find_environment()

    def run(self, chosen):
        torch = self.torch
        results = []
        with torch.no_grad():
            self.ceilings = self.measure_ceilings()
            print("ceilings, GB/s and TFLOP/s:", json.dumps(self.ceilings))
            for row in chosen:
                wrong = self.check_small(row)
                result = self.measure(row, wrong)
                results.append(result)
                print(report.table([result], self.ceilings).splitlines()[1], flush=True)
                # A run that is ended early leaves what it has measured.
                self.write(results)
                torch.cuda.empty_cache()
        self.sampler.stop()
        self.show(results)
        return 1 if report.failures(results) else 0

    def show(self, results):
        """Prints the table and what it comes to."""
        print("\n" + report.table(results, self.ceilings) + "\n\n" + report.peers(results))
        for left in self.library.description["left_out"]:
            print(f"left out: {left['what']}: {left['reason']}")
        print(json.dumps(report.outcome(results, self.ceilings)))

    def write(self, results):
        """Writes the files."""
        outcome = report.outcome(results, self.ceilings)
        folder = pathlib.Path(self.options.output)
        folder.mkdir(parents=True, exist_ok=True)
        everything = {"environment": self.environment, "ceilings": self.ceilings, "rows": results, "outcome": outcome}
        (folder / "h200.json").write_text(json.dumps(everything, indent=1))
        (folder / "h200.csv").write_text(report.comma_separated(results))

    def find_environment(self):
        """With what the numbers were made."""
        torch, commit = self.torch, HERE / "commit"
        found = {
            "gpu": torch.cuda.get_device_name(),
            "torch": torch.__version__,
            "cuda": torch.version.cuda,
            "cudnn": torch.backends.cudnn.version(),
            "commit": commit.read_text().strip() if commit.exists() else None,
            "time": time.strftime("%Y-%m-%d %H:%M:%S"),
        }
        for name in ("triton", "cupy"):
            try:
                found[name] = __import__(name).__version__
            except ImportError:
                found[name] = None
        smi = ["nvidia-smi", "--query-gpu=driver_version,clocks.max.sm,power.limit", "--format=csv,noheader"]
        try:
            found["driver, clock, power limit"] = subprocess.run(smi, capture_output=True, text=True).stdout.strip()
        except OSError:
            found["driver, clock, power limit"] = None
        return found

    def tensors(self, description, row):
        """Inputs are random, and of everything else every element is NaN."""
        generator = self.torch.Generator("cuda").manual_seed(7)
        made = {}
        for tensor in description["tensors"]:
            name, dtype, shape = tensor["name"], tensor["dtype"], tensor["shape"]
            if tensor["role"] == "input":
                made[name] = self.peers.random(row, dtype, shape, generator)
            else:
                kind = self.peers.DTYPES[dtype]
                made[name] = self.torch.full(shape, float("nan"), dtype=kind, device="cuda")
        return made

    def prepare(self, row, size):
        """Our arm of one of a row's sizes, and its tensors."""
        description = self.library.description["rows"][self.library.index(row.name)]["sizes"][size]
        tensors = self.tensors(description, row)
        addresses = [tensor.data_ptr() for tensor in tensors.values()]
        prepared = self.library.prepare(row.name, size, DEVICE, addresses)

        def run():
            prepared(self.stream.cuda_stream)
            return tensors[row.output]

        return run, tensors

    def check(self, row, run, tensors):
        """The error of an arm's output. Raises where it is too large, or an element was never written."""
        error = self.peers.error(row, tensors, run())
        limit = TOLERANCE[row.tensors[row.output][0]]
        # NaN is no number that is small.
        if not error <= limit:
            raise Failure(f"the relative error is {error:.1e}, and may be {limit:.0e}")
        return error

    def check_small(self, row):
        """Checks ours at the small sizes; what is wrong, if anything."""
        sizes = self.library.description["rows"][self.library.index(row.name)]["sizes"]
        for size in range(1, len(sizes)):
            try:
                small = self.small(row, sizes[size])
                run, tensors = self.prepare(row, size)
                self.check(small, run, tensors)
            except (Failure, RuntimeError) as problem:
                shapes = [tensor["shape"] for tensor in sizes[size]["tensors"]]
                return f"with tensors of shapes {shapes}: {problem}"
        return None

    def small(self, row, size):
        """The row with the tensors of a small size."""
        tensors = {tensor["name"]: (tensor["dtype"], tuple(tensor["shape"])) for tensor in size["tensors"]}
        return rows.Row(row.name, row.number, row.kind, tensors, row.ceiling, row.options)

    def measure(self, row, wrong):
        """All arms of a row."""
        description = self.library.description["rows"][self.library.index(row.name)]["sizes"][0]
        result = {
            "row": row.name,
            "operations": description["operations"],
            "bytes": description["bytes"],
            "ceiling": row.ceiling,
            "bits": row.options.get("bits", 16),
            "arms": {"ours": {}},
        }
        if wrong:
            result["arms"]["ours"]["problem"] = wrong
            return result
        runs, start = self.arms(row, result["arms"]), time.monotonic()
        for _ in range(self.options.rounds):
            for name, run in runs.items():
                burst = description["operations"] is not None
                result["arms"][name].setdefault("rounds", []).append(self.time(run, burst))
        if description["operations"]:
            for name, run in runs.items():
                result["arms"][name]["sustained"] = self.sustained(run)
        sample = self.sampler.since(start)
        if sample:
            result["megahertz"], result["watts"] = sample
        return result

    def arms(self, row, arms):
        """The arms that run and are right, warmed up; says in `arms` what came of each."""
        run, tensors = self.prepare(row, 0)
        makers = {"ours": lambda: run}
        if not self.options.without_peers:
            makers |= self.peers.peers(row, tensors)
        runs = {}
        for name, maker in makers.items():
            arm = arms.setdefault(name, {})
            # A peer may fail in any way: then it is missing, with the reason.
            try:
                made = maker()
                arm["error"] = self.check(row, made, tensors)
                self.warm_up(made)
                runs[name] = made
            except Exception as problem:
                lines = str(problem).strip().splitlines()
                arm["problem"] = f"{type(problem).__name__}: {lines[0] if lines else ''}"
        return runs

    def warm_up(self, run):
        start = time.monotonic()
        while time.monotonic() - start < WARM_UP:
            run()
            self.torch.cuda.synchronize()

    def time(self, run, burst):
        """The median of some runs in microseconds, each with a cold L2 cache; of a burst after a pause."""
        torch = self.torch
        torch.cuda.synchronize()
        if burst:
            time.sleep(IDLE)
        pairs, start = [], time.monotonic()
        while len(pairs) < LEAST_RUNS or (len(pairs) < MOST_RUNS and time.monotonic() - start < MEASURED):
            # Reading leaves the L2 cache without lines that the timed run would have to wait for, as written ones are.
            self.other.sum()
            pair = [torch.cuda.Event(enable_timing=True) for _ in range(2)]
            pair[0].record()
            run()
            pair[1].record()
            pairs.append(pair)
            # A few runs are enqueued ahead of the GPU, so that the host's time isn't measured.
            if len(pairs) > AHEAD:
                pairs[-1 - AHEAD][1].synchronize()
        torch.cuda.synchronize()
        return report.median([first.elapsed_time(last) * 1e3 for first, last in pairs])

    def sustained(self, run):
        """The mean of runs back to back in microseconds, when power limits the clock."""
        torch = self.torch
        first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda.synchronize()
        batches, start = [], time.monotonic()
        first.record()
        while time.monotonic() - start < SUSTAINED:
            for _ in range(BATCH):
                run()
            batches.append(torch.cuda.Event())
            batches[-1].record()
            # The GPU has other batches while the host is woken.
            if len(batches) > AHEAD:
                batches[-1 - AHEAD].synchronize()
        last.record()
        torch.cuda.synchronize()
        return first.elapsed_time(last) * 1e3 / (len(batches) * BATCH)

    def measure_ceilings(self):
        """What this GPU gives today: GB/s of a copy, a triad and a sum that only reads, TFLOP/s of cuBLAS."""
        torch = self.torch
        x = torch.empty(1 << 30, dtype=torch.float32, device="cuda").normal_()
        y, z = torch.empty_like(x), torch.empty_like(x)
        total = torch.empty((), dtype=torch.float32, device="cuda")
        moved = {
            "copy": (lambda: y.copy_(x), 2),
            "triad": (lambda: torch.add(x, y, alpha=3.0, out=z), 3),
            "read": (lambda: torch.sum(x, dim=0, out=total), 1),
        }
        found = {}
        for name, (run, passes) in moved.items():
            self.warm_up(run)
            found[name] = passes * x.numel() * 4 / self.time(run, False) / 1e3
        del x, y, z
        a, b = (torch.randn(8192, 8192, device="cuda").bfloat16() for _ in range(2))
        product = lambda: a @ b
        self.warm_up(product)
        found["cuBLAS 8192"] = 2 * 8192**3 / self.time(product, True) / 1e6
        return found


if __name__ == "__main__":
    sys.exit(main())
