"""Random graphs have equal results compiled and interpreted, and planted bugs are found."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import nullcontext
from functools import cache

import numpy as np
import pytest

import passkit as pk
from tests import workers
from tests.error_bounds import Value, bounded, mismatch
from tests.fuzzing import Failure, check, check_all, check_blocks
from tests.minimising import minimised
from tests.planted import PLANTS, planted_bug
from tests.random_graphs import Case, coverage, covered, expected, random_case, table
from tests.random_graphs.registry import NOT_DRAWN, PERIOD, chosen, standard_ops, turn_of

pytestmark = pytest.mark.usefixtures("quick_kernels")
COUNT, BATCH = 300, 30
case_of = cache(random_case)


def counted(first: int) -> Counter[str]:
    """Count the features of a batch of graphs; in a test run, one worker counts for all."""
    out = workers.folder() / f"coverage-{first}.json"
    with workers.alone(out.stem):
        if not out.exists():
            count = coverage([case_of(seed) for seed in range(first, first + BATCH)])
            out.write_text(json.dumps(count))
    return Counter(json.loads(out.read_text()))


@pytest.mark.slow
def test_random_graphs_equal_their_interpretation() -> None:
    """Graphs of every kind: fused, interpreted, on 1, 2 and 4 threads, strided, into out=.

    `benchmarks/fuzz.py` checks as many as one has time for.
    """
    cases = [case_of(seed) for seed in range(BATCH)]
    counted(0)

    failures, (exact, near, anything) = check_all(cases)

    assert not failures, "\n\n".join(str(minimised(f, 20)) for f in failures[:3])
    assert exact + near > 20 * anything


@pytest.mark.slow
def test_random_graphs_block_by_block() -> None:
    """The kernels' own statements mean the same, and leave no order of threads open."""
    cases = [random_case(seed) for seed in range(5000, 5016)]

    failures = [Failure(c, what) for c in cases if (what := check_blocks(c)) is not None]

    assert not failures, "\n\n".join(str(minimised(f, 20, check_blocks)) for f in failures[:3])


def test_random_graphs_are_of_every_kind() -> None:
    """No operator, dtype or form is missing among them."""
    count = sum(map(counted, range(0, COUNT, BATCH)), Counter[str]())
    print(table(count))

    assert [kind for kind in expected() if not count[kind]] == []


@pytest.fixture
def planted(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Generate code that is off by one element, without the fences that it may run into."""
    monkeypatch.setattr("tests.fuzzing.fenced", lambda array, end: nullcontext(array))
    with planted_bug(request.param):
        yield


@pytest.mark.parametrize("planted", PLANTS, indirect=True)
def test_a_planted_bug_is_found(planted: None) -> None:
    """Off by one in CodeGen: found within a few graphs, and shown by its seed and a small graph."""
    failures, _ = check_all(random_case(seed) for seed in range(1000, 1004))
    shown = minimised(failures[0], 3)

    assert f"seed {failures[0].case.seed}," in str(shown)
    assert len(shown.case.graph.nodes) <= len(failures[0].case.graph.nodes)
    assert pk.parse(pk.to_text(shown.case.graph)).key == shown.case.graph.key


@pytest.mark.parametrize("planted", ["one_lane_less", "serial_from_one"], indirect=True)
def test_a_planted_bug_is_found_block_by_block(planted: None) -> None:
    """Elements that are left out: as what nothing has stored, before values are compared.

    Of 16 graphs four are wrong, which are searched for until there are as many.
    """
    texts: list[str] = []
    for seed in range(1000, 1016):
        what = check_blocks(random_case(seed))
        texts += [what] if what is not None else []
        if len(texts) > 3 and any(text.startswith("BlocksError") for text in texts):
            return

    pytest.fail(f"few or other errors: {texts}")


def test_a_failure_becomes_small() -> None:
    """Operators that a failure does not need are removed from its graph."""
    cases = map(random_case, range(500))
    case = next(c for c in cases if _dislikes_tanh(c) and "op mul" in covered(c))

    small = minimised(Failure(case, "tanh"), 20, _dislikes_tanh).case.graph

    assert [n.op.name for n in small.nodes if n.op and n.op.name != "constant"] == ["tanh"]


def test_a_graph_that_cannot_be_cut_is_a_small_one() -> None:
    """Where only another input has a size, cutting stops there; the failure is still shown."""
    x = pk.var("x", ("n", 3))
    twos = pk.ops.broadcast_to(np.float32(2), shape=x.shape)
    graph = pk.Graph([pk.ops.exp(pk.ops.neg(twos) * x), twos + 1])
    case = Case(3, graph, tuple({"x": np.ones((n, 3), np.float32)} for n in (2, 5)))

    shown = minimised(
        Failure(case, "bad"), 20, lambda case: "bad" if "op mul" in covered(case) else None
    )

    assert str(shown).startswith("seed 3, ")
    assert "op exp" not in covered(shown.case)
    assert len(shown.case.feeds) == 1


def test_choices_of_operators_are_independent(monkeypatch: pytest.MonkeyPatch) -> None:
    """The choice of an operator, and its turn, do not depend on operators that were not chosen."""
    names = standard_ops()
    for k in range(100):
        winner = chosen(names, str(k))
        assert chosen([n for n in names[::-1] if n == winner or n[0] in "aeiou"], str(k)) == winner
    turns = {n: k for k in range(PERIOD) for n in turn_of(k)}
    monkeypatch.setattr("tests.random_graphs.registry.standard_ops", lambda: names[5:])
    assert {n: k for k in range(PERIOD) for n in turn_of(k)} == {
        n: k for n, k in turns.items() if n in names[5:]
    }
    assert turns.keys() == set(names) - NOT_DRAWN


def _dislikes_tanh(case: Case, compared: object = None) -> str | None:
    return "tanh" if "op tanh" in covered(case) else None


def test_a_seed_gives_one_case() -> None:
    """The same graph and the same arrays each time."""
    first, second = random_case(7), random_case(7)

    assert first.graph.key == second.graph.key
    assert str(first) == str(second)
    for a, b in zip(first.feeds, second.feeds, strict=True):
        assert {k: v.tobytes() for k, v in a.items()} == {k: v.tobytes() for k, v in b.items()}


def test_bounds_are_tight() -> None:
    """Exact operators must agree in every bit, a sum of whole numbers too; exp within 5 ulp."""
    x = pk.var("x", (3, 20))
    graph = pk.Graph([x * 3.0 - 1.0, pk.ops.reduce_sum(x, axis=1), pk.ops.exp(x)])
    feeds = {"x": np.arange(60, dtype=np.float32).reshape(3, 20) / 4}

    product, total, power = bounded(graph, feeds, {}, {})

    assert product.error is None
    assert total.error is None
    assert np.all(power.error == 5 * np.spacing(power.array))


def test_bounds_follow_what_functions_do_to_errors() -> None:
    """A comparison that is too close is open, one that is not is exact."""
    x = pk.var("x", (2,), "float64")
    graph = pk.Graph([pk.ops.exp(x) > 1.0, pk.ops.log(pk.ops.exp(x))])

    close, back = bounded(graph, {"x": np.array([0.0, 1.0])}, {}, {})

    assert close.error.tolist() == [np.inf, 0.0]
    assert 0 < back.error[1] < 1e-14


def test_bounds_of_remainders() -> None:
    """A remainder is open up to the divisor only where errors reach the next quotient.

    So it is with any quotient beyond the digits of a float64.
    """
    x, y = pk.var("x", (3,), "float64"), pk.var("y", (3,), "float64")
    graph = pk.Graph([pk.ops.fmod(x, pk.ops.exp(y))])
    tiny = np.exp(-70.0)
    feeds = {"x": np.array([2.5, 1.0, 1.0]), "y": np.array([0.0, 0.0, -70.0])}

    (rest,) = bounded(graph, feeds, {}, {})

    assert 0 < rest.error[0] < 1e-14
    assert 1 <= rest.error[1] < 1.1 and tiny <= rest.error[2] < 1.1 * tiny


def test_bounds_where_rounding_overflows() -> None:
    """A result that may round to infinity leaves its users open; a pole and exp(1000) do not."""
    x = pk.var("x", (5,), "float64")
    inverse, power, log = pk.ops.digamma(x), pk.ops.exp(x), pk.ops.log(x)
    feeds = {"x": np.array([2.0**-1024, 2.0**-1024 + 5e-324, 0.0, 1000.0, 1.0])}

    bounds = bounded(pk.Graph([inverse, x - inverse, x - power, x - log]), feeds, {}, {})

    near, exact = [True, True, False, False, False], [False] * 5
    assert [np.isinf(v.bound).tolist() for v in bounds] == [near, near, exact, exact]


def test_bounds_of_the_larger_zero() -> None:
    """Its sign is open, whether an operand is known in every bit or as a sum of whole numbers."""
    x, y = pk.var("x", (1, 2)), pk.var("y", (2, 1))
    graph = pk.Graph([pk.ops.maximum(x, 0.0), pk.ops.maximum(x, x @ y)])
    feeds = {"x": np.array([[-0.0, 1]], np.float32), "y": np.zeros((2, 1), np.float32)}

    for bounds in bounded(graph, feeds, {}, {}):
        assert (bounds.bound > 0).tolist() == [[True, False]]


def test_bounds_of_a_sum_over_one_element() -> None:
    """Its 0 may have either sign where a plan does not know that there is one."""
    feeds = {"x": np.array([[-0.0], [1.0]]), "b": np.zeros((2, 1))}
    for length, signs in ((1, [-0.0]), (None, [-0.0, 0.0])):
        x, b = pk.var("x", (2, length), "float64"), pk.var("b", (2, 1), "float64")
        (total,) = bounded(pk.Graph([pk.ops.sum_like(x, b)]), feeds, {"x.1": 1}, {})
        for sign in (-0.0, 0.0):
            bounds = np.array([[sign], [1.0]])
            assert (mismatch(bounds, total) is None) == (str(sign) in map(str, signs))


def test_a_mismatch_is_seen() -> None:
    """The sign of zero, NaN and one bit count where nothing rounds; a bound lets some pass."""
    zero, one = np.zeros(1, np.float32), np.ones(1, np.float32)
    more = np.nextafter(one, np.float32(2))

    assert "differs in 1 of 1" in str(mismatch(-zero, Value(zero)))
    assert "first at (): " in str(mismatch(np.array(2), Value(np.array(1))))
    assert mismatch(more, Value(one)) is not None
    assert mismatch(more, Value(one, np.array([1e-6]))) is None
    assert mismatch(one * np.nan, Value(one, np.array([1e-6]))) is not None
    assert mismatch(one * np.nan, Value(one * np.nan)) is None
    assert "not float32[1]" in str(mismatch(one.astype(int), Value(one)))


def test_a_case_without_faults_passes() -> None:
    """A graph by hand, on two runs of different sizes."""
    x = pk.var("x", (None, 5))
    rng = np.random.default_rng(0)
    feeds = tuple({"x": rng.standard_normal((n, 5)).astype(np.float32)} for n in (3, 40))

    assert check(Case(0, pk.Graph([pk.ops.softmax(x)]), feeds)) is None
