"""What waiting costs: time of recurrent nets and of attention on this device, against length."""

from model.errors import InputError
from model.labs.bench import Bench
from model.labs.clock import Times, spans, time_all
from model.labs.nets import NETS, RECURRENT, Net, build, inputs
from model.labs.parameters.recurrence import RecurrenceTime
from model.labs.recurrence import NARROW, POSITIONS, formula, powers
from model.labs.result import Axis, Chart, Check, Result
from model.labs.steps import work
from model.labs.words import listed, power

# What all runs together may need: some seconds on two cores.
MOST = 60_000_000_000

# Caches and whatever else the machine does bend a line of time against n by some tenths.
BENT = 0.3
NOT_JUDGED = (
    "how time grows with n is not judged: starting takes much of it at these lengths, or rounds are few, or "
    "other work on this machine disturbs them. Take a longer sequence or more rounds."
)


def run(parameters: RecurrenceTime, bench: Bench) -> Result:
    """Median time of each net at each length. Raises InputError where the runs would take too long."""
    lengths = powers(parameters.length)
    _refuse_too_much(parameters, lengths)
    found = Result()
    for done, times in time_all(parameters, lengths, bench):
        found = _result(parameters, lengths, times, done)
        bench.report(done / parameters.rounds, f"round {done} of {parameters.rounds}", found)
    return found


def _refuse_too_much(parameters: RecurrenceTime, lengths: list[int]) -> None:
    once = sum(formula(net, length, parameters.width) for net in NETS for length in lengths)
    needed = once * parameters.rounds * (3 if parameters.backward else 1)
    if needed > MOST:
        raise InputError(
            f"Timing {parameters.rounds} rounds up to length {parameters.length} at width {parameters.width} "
            f"needs {power(needed)} multiply-adds and this lab stops at {power(MOST)}: take a smaller "
            "length, a smaller width or fewer rounds."
        )


def _result(parameters: RecurrenceTime, lengths: list[int], times: Times, done: int) -> Result:
    what = "one run and its gradients" if parameters.backward else "one run"
    chart = Chart(
        "time",
        f"Time of {what}, d = {parameters.width}: median and quartiles",
        POSITIONS,
        Axis("milliseconds", log=True),
        [times.line(net, lengths) for net in NETS],
    )
    facts: dict[str, object] = {
        "device": times.device,
        "rounds": done,
        "length": parameters.length,
        "milliseconds": {
            net.lower().replace("-", "_").replace(" ", "_"): times.median(net, lengths[-1]) for net in NETS
        },
        "race": [_raced(times, net, lengths) for net in RECURRENT],
    }
    checks = [_turns(net, parameters) for net in NETS]
    grown = {net: times.growth(net, lengths) for net in RECURRENT}
    checks += [_linear(net, *found) for net, found in grown.items() if found is not None]
    unjudged = listed([net for net, found in grown.items() if found is None])
    notes = [f"{unjudged}: {NOT_JUDGED}"] if unjudged else []
    note = (
        "One net is called faster where its upper quartile lies below the other's lower one. What else this "
        "machine does meanwhile shows in the bands."
    )
    return Result([chart], checks, facts, [note, *notes])


def _turns(net: Net, parameters: RecurrenceTime) -> Check:
    """Steps that wait for each other, counted in the graph of a narrow net of the same kind."""
    expected = parameters.length if net in RECURRENT else 1
    x = inputs(1, parameters.length, NARROW, parameters.seed)
    made = work(build(net, NARROW, parameters.seed), x).steps
    return Check(f"{net}: steps in turn at n = {parameters.length}", expected, made, about="time")


def _linear(net: Net, exponent: float, error: float) -> Check:
    """The tolerance is what bends the line, and four standard errors of the rounds."""
    name = f"{net}: time grows like n to the power of, over the last doubling"
    return Check(name, 1, exponent, BENT + 4 * error, about="time")


def _raced(times: Times, net: Net, lengths: list[int]) -> dict[str, object]:
    verdicts = times.compared("self-attention", net, lengths)
    crossings = times.crossings("self-attention", net, lengths)
    return {
        "self-attention against": net,
        "faster at n": spans(lengths, [verdict < 0 for verdict in verdicts]),
        "slower at n": spans(lengths, [verdict > 0 for verdict in verdicts]),
        "crossover near n": ", ".join(f"{length:.3g}" for length in crossings) or f"none up to {lengths[-1]}",
    }
