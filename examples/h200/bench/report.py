"""What is made of measured times: statistics, verdicts, the table. Pure functions; nothing here needs a GPU or torch.

A round measures every arm once, so that clocks and temperature are alike for what is compared. `rounds` is a list with a
time in microseconds for each round; a ratio is a peer's time by ours, so that above 1 ours is faster.
"""

import csv
import io
import math

# Ahead of every peer and close to the limit: the geometric mean of the best peers' ratios, the worst row, and the share
# of the measured bandwidth that every row reaches that is limited by it.
AHEAD, WORST, SHARE = 1.05, 0.97, 0.95


def median(values):
    """The middle one, or the mean of the two in the middle."""
    if not values:
        raise ValueError("no values have no median")
    values = sorted(values)
    half = len(values) // 2
    return values[half] if len(values) % 2 else (values[half - 1] + values[half]) / 2


def geometric_mean(values):
    """Of positive numbers."""
    if not values:
        raise ValueError("no values have no mean")
    return math.exp(sum(math.log(value) for value in values) / len(values))


def spread(rounds):
    """How far the rounds of one arm lie apart, by their median."""
    return (max(rounds) - min(rounds)) / median(rounds)


def ratio(ours, peer):
    """The median of the rounds' ratios, the least and the greatest."""
    if len(ours) != len(peer):
        raise ValueError("arms have as many rounds as each other")
    ratios = [theirs / own for own, theirs in zip(ours, peer)]
    return median(ratios), min(ratios), max(ratios)


def verdict(ours, peer):
    """`faster`, `slower`, or `even` where the difference is no larger than an arm's own spread."""
    middle = ratio(ours, peer)[0]
    if abs(middle - 1) <= max(spread(ours), spread(peer)):
        return "even"
    return "faster" if middle > 1 else "slower"


def best_peer(result):
    """The name of the fastest peer that computes the right thing; None without any."""
    peers = {name: median(arm["rounds"]) for name, arm in result["arms"].items() if name != "ours" and "rounds" in arm}
    return min(peers, key=peers.get) if peers else None


def rate(result, microseconds):
    """TFLOP/s of a row that computes, GB/s of one that moves."""
    work, unit = (result["operations"], 1e6) if result["operations"] else (result["bytes"], 1e3)
    return work / microseconds / unit


def peak_tflops(megahertz, multiprocessors=132):
    """What dense 16-bit tensor cores of Hopper give: 4096 operations per clock and multiprocessor."""
    return multiprocessors * 4096 * megahertz / 1e6


def share(result, ceilings):
    """The part of the limit that a row reaches: of the bandwidth that was measured for its pattern, or of the tensor
    cores at the clock that was seen. None where the limit isn't known."""
    if "rounds" not in result["arms"]["ours"]:
        return None
    found = rate(result, median(result["arms"]["ours"]["rounds"]))
    if result["operations"]:
        megahertz = result.get("megahertz")
        factor = 2 if result.get("bits") == 8 else 1
        return found / (factor * peak_tflops(megahertz)) if megahertz else None
    ceiling = ceilings.get(result["ceiling"])
    return found / ceiling if ceiling else None


def outcome(results, ceilings):
    """Whether the rows are ahead of every peer and close to the limit, and what decides it."""
    ratios, low = {}, []
    for result in results:
        peer, ours = best_peer(result), result["arms"]["ours"]
        if peer and "rounds" in ours:
            ratios[result["row"]] = ratio(ours["rounds"], result["arms"][peer]["rounds"])[0]
        reached = None if result["operations"] else share(result, ceilings)
        if reached is not None and reached < SHARE:
            low.append(result["row"])
    mean = geometric_mean(list(ratios.values())) if ratios else None
    behind = [row for row, value in ratios.items() if value < WORST]
    ahead = bool(ratios) and len(ratios) == len(results) and mean >= AHEAD and not behind and not low
    return {"geometric_mean": mean, "behind": behind, "below_ceiling": low, "ahead": ahead}


def failures(results):
    """The rows whose own arm is wrong or didn't run."""
    return [result["row"] for result in results if "rounds" not in result["arms"]["ours"]]


COLUMNS = ["row", "ours us", "rate", "limit", "best peer", "ratio", "range", "verdict", "sustained", "error", "MHz"]


def line(result, ceilings):
    """A row's cells, as texts."""
    ours = result["arms"]["ours"]
    if "rounds" not in ours:
        return [result["row"], ours.get("problem", "not measured")] + ["-"] * (len(COLUMNS) - 2)
    time, reached, peer = median(ours["rounds"]), share(result, ceilings), best_peer(result)
    unit = "TFLOP/s" if result["operations"] else "GB/s"
    cells = [result["row"], f"{time:.1f}", f"{rate(result, time):.0f} {unit}"]
    cells.append(f"{reached:.1%}" if reached is not None else "-")
    if peer:
        rounds = result["arms"][peer]["rounds"]
        middle, least, greatest = ratio(ours["rounds"], rounds)
        cells += [peer, f"{middle:.3f}", f"{least:.3f}-{greatest:.3f}", verdict(ours["rounds"], rounds)]
    else:
        cells += ["-"] * 4
    cells.append(sustained(result))
    cells.append(f"{ours['error']:.1e}")
    cells.append(f"{result['megahertz']:.0f}" if result.get("megahertz") else "-")
    return cells


def sustained(result):
    """The ratio of the fastest peer and ours back to back, and our rate."""
    times = {name: arm["sustained"] for name, arm in result["arms"].items() if arm.get("sustained")}
    ours = times.pop("ours", None)
    if not ours:
        return "-"
    own = f"{rate(result, ours):.0f}"
    return f"{min(times.values()) / ours:.3f} ({own})" if times else f"- ({own})"


def table(results, ceilings):
    """The rows in columns of fixed width."""
    lines = [COLUMNS] + [line(result, ceilings) for result in results]
    widths = [max(len(cells[column]) for cells in lines) for column in range(len(COLUMNS))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(cells, widths)).rstrip() for cells in lines)


def peers(results):
    """A line for each peer of each row: its ratio, or why there is none."""
    lines = []
    for result in results:
        ours = result["arms"]["ours"]
        for name, arm in result["arms"].items():
            if name == "ours":
                continue
            if "rounds" in arm and "rounds" in ours:
                middle, least, greatest = ratio(ours["rounds"], arm["rounds"])
                text = f"{middle:.3f} ({least:.3f}-{greatest:.3f})"
            else:
                text = "missing: " + arm.get("problem", "ours isn't measured")
            lines.append(f"{result['row']}  {name}  {text}")
    return "\n".join(lines)


def comma_separated(results):
    """Every arm of every row, as CSV."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["row", "arm", "microseconds", "rate", "ratio", "least", "greatest", "sustained", "error", "problem"])
    for result in results:
        ours = result["arms"]["ours"]
        for name, arm in result["arms"].items():
            cells = [result["row"], name]
            if "rounds" in arm:
                time = median(arm["rounds"])
                compared = ratio(ours["rounds"], arm["rounds"]) if "rounds" in ours else ("", "", "")
                cells += [time, rate(result, time), *compared]
            else:
                cells += [""] * 5
            writer.writerow(cells + [arm.get("sustained", ""), arm.get("error", ""), arm.get("problem", "")])
    return text.getvalue()
