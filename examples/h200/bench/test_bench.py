"""Tests of what needs no GPU: how runs are enqueued, statistics, verdicts, the table, and the comparison of rows. `python3 -m unittest`"""

import copy
import unittest
from unittest import mock

import bench
import report
import rows


def result(name="gemm", operations=2e12, ours=(1000.0, 1010.0, 990.0), **peers):
    arms = {"ours": {"rounds": list(ours), "error": 2e-3}}
    arms |= {peer: {"rounds": list(times), "error": 2e-3} for peer, times in peers.items()}
    return {"row": name, "operations": operations, "bytes": 4e9, "ceiling": "copy", "bits": 16, "arms": arms}


def moving(name="softmax", ours=(1000.0, 1000.0), **peers):
    return result(name, None, ours, **peers)


class Gpu:
    """Stands for torch and a GPU on which every run takes a microsecond: it does what it has when somebody waits."""

    def __init__(self):
        self.cuda, self.Event, self.enqueued, self.left = self, lambda **_: Event(self), 0, []

    def run(self):
        self.enqueued += 1

    def synchronize(self):
        pass


class Event:
    def __init__(self, gpu):
        self.gpu = gpu

    def record(self):
        self.place = self.gpu.enqueued

    def synchronize(self):
        self.gpu.left.append(self.gpu.enqueued - self.place)

    def elapsed_time(self, last):
        return (last.place - self.place) * 1e-3


class Timing(unittest.TestCase):
    def test_the_gpu_has_work_while_the_host_waits(self):
        gpu = Gpu()
        timed = mock.Mock(torch=gpu)
        seconds = (tick / 100 for tick in range(1000))
        with mock.patch("time.monotonic", lambda: next(seconds)):
            self.assertAlmostEqual(bench.Bench.sustained(timed, gpu.run), 1.0)
        self.assertGreater(len(gpu.left), 90)
        self.assertGreaterEqual(min(gpu.left), 2 * 10)


class Statistics(unittest.TestCase):
    def test_median(self):
        self.assertEqual(report.median([3, 1, 2]), 2)
        self.assertEqual(report.median([4, 1, 2, 3]), 2.5)
        with self.assertRaises(ValueError):
            report.median([])

    def test_geometric_mean(self):
        self.assertAlmostEqual(report.geometric_mean([1, 4]), 2)
        with self.assertRaises(ValueError):
            report.geometric_mean([])

    def test_spread(self):
        self.assertAlmostEqual(report.spread([90.0, 100.0, 120.0]), 0.3)

    def test_ratios_are_of_the_same_round(self):
        # The clock fell between the rounds: ours is 10 % faster in each, though 110 < 200.
        self.assertEqual(report.ratio([100.0, 200.0], [110.0, 220.0]), (1.1, 1.1, 1.1))
        middle, least, greatest = report.ratio([100.0, 100.0, 100.0], [90.0, 120.0, 100.0])
        self.assertEqual((middle, least, greatest), (1.0, 0.9, 1.2))
        with self.assertRaises(ValueError):
            report.ratio([1.0], [1.0, 2.0])

    def test_a_difference_within_the_spread_decides_nothing(self):
        self.assertEqual(report.verdict([100.0, 100.0], [102.0, 102.0]), "faster")
        self.assertEqual(report.verdict([100.0, 100.0], [98.0, 98.0]), "slower")
        self.assertEqual(report.verdict([99.0, 102.0], [102.0, 102.0]), "even")
        self.assertEqual(report.verdict([100.0, 100.0], [100.0, 104.0]), "even")


class Rows(unittest.TestCase):
    def test_rates(self):
        self.assertAlmostEqual(report.rate(result(), 2000.0), 1000.0)
        # 4 GB in a millisecond.
        self.assertAlmostEqual(report.rate(moving(), 1000.0), 4000.0)

    def test_the_peak_is_that_of_the_data_sheet(self):
        # 989.5 TFLOP/s of dense bf16 at 1.83 GHz.
        self.assertAlmostEqual(report.peak_tflops(1830), 989.5, delta=0.1)

    def test_shares(self):
        self.assertAlmostEqual(report.share(moving(), {"copy": 4210.5263}), 0.95, places=6)
        self.assertIsNone(report.share(moving(), {}))
        self.assertIsNone(report.share(result(), {"copy": 1.0}))
        clocked = result() | {"megahertz": 1830}
        self.assertAlmostEqual(report.share(clocked, {}), 2000 / 989.5, places=3)
        self.assertAlmostEqual(report.share(clocked | {"bits": 8}, {}), 1000 / 989.5, places=3)

    def test_the_best_peer_is_the_fastest_that_ran(self):
        found = result(cuBLAS=(1100.0,) * 3, triton=(1050.0,) * 3)
        found["arms"]["compile"] = {"problem": "ImportError: none"}
        self.assertEqual(report.best_peer(found), "triton")
        self.assertIsNone(report.best_peer(result()))


class Outcome(unittest.TestCase):
    def test_ahead(self):
        good = [result(cuBLAS=(1100.0, 1111.0, 1089.0)), moving(eager=(1300.0, 1300.0))]
        found = report.outcome(good, {"copy": 4100.0})
        self.assertTrue(found["ahead"])
        self.assertAlmostEqual(found["geometric_mean"], (1.1 * 1.3) ** 0.5)

    def test_one_row_behind_is_enough(self):
        rows = [result(cuBLAS=(1900.0,) * 3), result("attention", cuDNN=(950.0,) * 3)]
        found = report.outcome(rows, {})
        self.assertEqual((found["behind"], found["ahead"]), (["attention"], False))

    def test_bandwidth_must_be_reached(self):
        found = report.outcome([moving(eager=(2000.0, 2000.0))], {"copy": 4300.0})
        self.assertEqual((found["below_ceiling"], found["ahead"]), (["softmax"], False))

    def test_a_row_without_a_peer_or_a_time_is_not_ahead(self):
        self.assertFalse(report.outcome([result()], {})["ahead"])
        broken = result(cuBLAS=(2000.0,) * 3)
        broken["arms"]["ours"] = {"problem": "wrong"}
        self.assertFalse(report.outcome([broken, result(cuBLAS=(2000.0,) * 3)], {})["ahead"])
        self.assertFalse(report.outcome([], {})["ahead"])

    def test_failures(self):
        broken = result("decode")
        broken["arms"]["ours"] = {"problem": "the relative error is nan"}
        self.assertEqual(report.failures([result(), broken]), ["decode"])


class Text(unittest.TestCase):
    def results(self):
        first = result(cuBLAS=(1100.0, 1111.0, 1089.0)) | {"megahertz": 1500.0}
        first["arms"]["ours"]["sustained"] = 1000.0
        first["arms"]["cuBLAS"]["sustained"] = 1200.0
        first["arms"]["triton"] = {"problem": "ModuleNotFoundError: No module named 'triton'"}
        broken = moving("decode")
        broken["arms"]["ours"] = {"problem": "the relative error is nan"}
        return [first, moving(eager=(1300.0, 1300.0)), broken]

    def test_table(self):
        lines = report.table(self.results(), {"copy": 4000.0}).splitlines()
        self.assertEqual(lines[0].split(), "row ours us rate limit best peer ratio range verdict sustained error MHz".split())
        self.assertEqual(
            lines[1].split(),
            "gemm 1000.0 2000 TFLOP/s 246.6% cuBLAS 1.100 1.100-1.100 faster 1.200 (2000) 2.0e-03 1500".split(),
        )
        self.assertEqual(
            lines[2].split(), "softmax 1000.0 4000 GB/s 100.0% eager 1.300 1.300-1.300 faster - 2.0e-03 -".split()
        )
        self.assertIn("the relative error is nan", lines[3])
        # Columns begin below each other.
        self.assertEqual(lines[1].index("cuBLAS"), lines[2].index("eager"))

    def test_missing_peers_say_why(self):
        text = report.peers(self.results())
        self.assertIn("gemm  triton  missing: ModuleNotFoundError: No module named 'triton'", text)
        self.assertIn("gemm  cuBLAS  1.100 (1.100-1.100)", text)

    def test_comma_separated(self):
        lines = report.comma_separated(self.results()).splitlines()
        self.assertEqual(lines[2], "gemm,cuBLAS,1100.0,1818.1818181818182,1.1,1.1,1.1,1200.0,0.002,")
        self.assertEqual(lines[-1], "decode,ours,,,,,,,,the relative error is nan")


class Tables(unittest.TestCase):
    def description(self):
        size = lambda row: {
            "tensors": [
                {"name": name, "dtype": dtype, "shape": list(shape), "role": "output" if name == row.output else "input"}
                for name, (dtype, shape) in row.tensors.items()
            ]
        }
        return {"rows": [{"name": row.name, "number": row.number, "sizes": [size(row)]} for row in rows.ROWS]}

    def test_equal_tables(self):
        self.assertEqual(rows.mismatches(rows.ROWS, self.description()), [])

    def test_differences_are_named(self):
        other = copy.deepcopy(self.description())
        other["rows"][0]["sizes"][0]["tensors"][0]["shape"] = [4096, 4095]
        other["rows"][1]["number"] = 9
        other["rows"][2]["sizes"][0]["tensors"][-1]["role"] = "input"
        other["rows"][3]["name"] = "other"
        problems = rows.mismatches(rows.ROWS, other)
        self.assertEqual(len(problems), 5)
        for part in ["4095", "of number 9", "isn't its output", "lacks the row `gemm-nn-1024`", "row `other`"]:
            self.assertTrue(any(part in problem for problem in problems), (part, problems))

    def test_numbers_of_the_protocol(self):
        self.assertEqual({row.number for row in rows.ROWS}, set(range(1, 15)))


if __name__ == "__main__":
    unittest.main()
