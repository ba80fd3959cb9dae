"""Why scores are divided by √d_k (Vaswani et al. 2017, section 3.2.1, footnote 4).

q·k of independent components from N(0, 1) has mean 0 and variance d_k. Its exact distribution is a normal one
of random variance: given q it is N(0, |q|²), and |q|² is chi-squared with d_k degrees of freedom.
"""

import math

import torch
from torch import Tensor

from model.errors import InputError
from model.labs.bench import Bench
from model.labs.parameters.scaling import Scaling
from model.labs.result import Axis, Chart, Check, Line, Result
from model.labs.score_distribution import exact, gap, normal
from model.labs.softmax_measures import factor_of
from model.labs.words import power

MOST_PRODUCTS = 330_000_000
CHUNK, SHOWN_EVERY = 4_000_000, 10
BINS, POINTS = 60, 201
# Five standard errors, what a normal number has beyond them on one side, and the gap of a sample's
# distribution that one in a hundred thousand exceeds.
ERRORS, BEYOND, GAP = 5.0, 2.867e-7, 2.5


def run(parameters: Scaling, bench: Bench) -> Result:
    """Draws every pair that was asked for. Raises InputError where that would take longer than seconds."""
    products = parameters.d_k * parameters.samples
    if products > MOST_PRODUCTS:
        raise InputError(
            f"{parameters.samples:,} samples of width {parameters.d_k:,} take {power(products)} products, "
            f"and at most {power(MOST_PRODUCTS)} are drawn: choose at most "
            f"{MOST_PRODUCTS // parameters.d_k:,} samples."
        )
    generator = torch.Generator().manual_seed(parameters.seed)
    scores = torch.empty(parameters.samples)  # [N]
    pairs = max(1, CHUNK // parameters.d_k)
    for number, start in enumerate(range(0, parameters.samples, pairs)):
        part = scores[start : start + pairs]
        q, k = (torch.randn(len(part), parameters.d_k, generator=generator) for _ in range(2))  # [n, K] each
        torch.sum(q * k, dim=-1, out=part)  # [n]
        drawn = start + len(part)
        # A picture costs as much as some chunks, so that only every so many of them show one.
        shown = number % SHOWN_EVERY == 0 and 10 <= drawn < parameters.samples
        so_far = _result(scores[:drawn], parameters) if shown else None
        bench.report(drawn / parameters.samples, f"{drawn:,} of {parameters.samples:,} pairs drawn", so_far)
    return _result(scores, parameters)


def _result(scores: Tensor, parameters: Scaling) -> Result:
    factor = factor_of(parameters.rule, parameters.d_k, parameters.factor)
    raw = scores.double()  # [N]
    expected = parameters.d_k * factor**2
    points = math.sqrt(parameters.d_k) * torch.linspace(-5, 5, POINTS, dtype=torch.float64)  # [X]
    gap_exact, gap_normal = (gap(raw, points, below(points, parameters.d_k)) for below in (exact, normal))
    chart = _histogram(raw * factor, parameters.d_k, factor)
    return Result(
        [chart],
        _checks(raw, chart, parameters.d_k, factor, gap_exact),
        {
            "factor": factor,
            "samples": len(raw),
            "d_k": parameters.d_k,
            "variance": raw.var().item(),
            "expected": float(parameters.d_k),
            "scaled_variance": (raw * factor).var().item(),
            "scaled_expected": expected,
            "spread": (raw * factor).std().item(),
            "expected_spread": math.sqrt(expected),
            "largest": raw.abs().max().item() * factor,
            "within_one": (raw.abs() < math.sqrt(parameters.d_k)).double().mean().item(),
            "normal_within_one": math.erf(1 / math.sqrt(2)),
            "gap_exact": gap_exact,
            "gap_normal": gap_normal,
            "gap_chance": GAP / math.sqrt(len(raw)),
            "not_normal": gap_normal > GAP / math.sqrt(len(raw)),
            "rule_changes": factor != 1,
        },
        _notes(parameters.d_k, gap_normal, len(raw)),
    )


def _checks(raw: Tensor, drawn: Chart, d_k: int, factor: float, gap_exact: float) -> list[Check]:
    """Mean, variance and shape, within the errors of a sample of this size: kurtosis is 3 + 6 / d_k."""
    count = len(raw)
    low, high = variance_ratios(d_k, count)
    of_variance = (high - 1) * d_k
    bars, width = drawn.lines[0], _width(drawn)
    middles, shares = (
        torch.as_tensor(part, dtype=torch.float64) for part in (bars.x, bars.y)
    )  # [E - 1] each
    seen = (shares * width * middles.square()).sum().item() - (shares * width * middles).sum().item() ** 2
    # A sample is anywhere in its bar: that adds the variance of a bar, and its error to each.
    blur = width**2 / 4 + ERRORS * width * math.sqrt(seen / count)
    return [
        Check("variance of q·k", float(d_k), raw.var().item(), of_variance),
        Check("variance of q·k, against the least by chance", low * d_k, raw.var().item(), relation=">="),
        Check(
            "variance after the rule", d_k * factor**2, (raw * factor).var().item(), of_variance * factor**2
        ),
        Check(
            "variance of the bars", raw.var(correction=0).item() * factor**2, seen, blur, about="histogram"
        ),
        Check("mean of q·k", 0.0, raw.mean().item(), ERRORS * math.sqrt(d_k / count)),
        Check("gap to the exact distribution", GAP / math.sqrt(count), gap_exact, relation="<="),
    ]


def variance_ratios(d_k: int, count: int) -> tuple[float, float]:
    """The least and the largest sample variance, as a share of the true one, that five sigmas leave.

    Below it is chi-squared, of the degrees of freedom that give it the right variance (Satterthwaite 1946).
    Above tails are longer where d_k is small: there the larger of that and a log-normal of that variance.
    """
    spread = (2 + 6 / d_k) / count  # of a sample variance of kurtosis 3 + 6 / d_k, relative to its square
    freedom = 2 / spread * (count - 1) / count
    sigma = math.sqrt(math.log1p(spread))
    low, high = (_chi_squared_below(share, freedom) / freedom for share in (BEYOND, 1 - BEYOND))
    return low, max(high, math.exp(ERRORS * sigma - sigma**2 / 2))


def _chi_squared_below(share: float, freedom: float) -> float:
    """What a chi-squared number is below with probability `share`, by halving."""
    low, high = 0.0, freedom + 20 * math.sqrt(2 * freedom) + 100
    half = torch.tensor(freedom / 2, dtype=torch.float64)
    for _ in range(200):
        middle = (low + high) / 2
        below = torch.special.gammainc(half, torch.tensor(middle / 2, dtype=torch.float64)).item()
        low, high = (middle, high) if below < share else (low, middle)
    return high


def _width(chart: Chart) -> float:
    """The width of a bar."""
    x = torch.as_tensor(chart.lines[0].x)  # [E - 1]
    return float(x[1] - x[0])


def _notes(d_k: int, gap_normal: float, count: int) -> list[str]:
    notes = []
    if d_k == 1:
        notes.append(
            "At d_k = 1 a score is one product of two normal numbers, which is not normal: it is peaked at 0 "
            "and has long tails. Its variance is 1 all the same."
        )
    elif gap_normal > GAP / math.sqrt(count):
        notes.append(
            "So few products do not add up to a normal distribution yet; the exact one is drawn beside it."
        )
    if count < 1000:
        notes.append(f"{count} samples leave the variance uncertain, and the tolerance of the checks wide.")
    return notes


def _short(number: float) -> str:
    """Four digits, and commas from a thousand on, as pages write numbers."""
    return f"{round(number):,}" if number >= 1000 else f"{number:.4g}"


def _histogram(scaled: Tensor, d_k: int, factor: float) -> Chart:
    """Densities of the scores after the rule: every sample lies in a bin."""
    reach = scaled.abs().max().item() * 1.0001
    edges = torch.linspace(-reach, reach, BINS + 1, dtype=torch.float64)  # [E]
    counts, _ = torch.histogram(scaled, bins=edges)
    width = 2 * reach / BINS
    middles = (edges[1:] + edges[:-1]) / 2  # [E - 1]
    as_exact, as_normal = (
        below(edges / factor, d_k).diff() / width for below in (exact, normal)
    )  # [E - 1] each
    return Chart(
        "histogram", "Scores of random queries and keys", Axis("score after the rule"), Axis("density"),
        [
            Line("measured", middles, counts / len(scaled) / width),
            Line(f"normal, variance {_short(d_k * factor**2)}", middles, as_normal, "theory"),
            Line("exact", middles, as_exact, "theory"),
        ],
    )  # fmt: skip
