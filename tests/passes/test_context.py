"""PassContext: defaults, nesting, checks, fuel and timing."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import passkit as pk


def test_defaults_of_options() -> None:
    """The CPU, stitched, strict; nothing disabled, dumped, timed or limited."""
    context = pk.PassContext()

    assert (context.target.name, context.fusion, context.numerics) == ("cpu", "stitch", "strict")
    assert (context.disabled, context.keep_together, context.no_fuse) == ((), (), ())
    assert context.times is None and context.dump is None and context.fuel.left is None
    assert context.given == frozenset()


def test_blocks_nest() -> None:
    """An inner context keeps what it does not change, and the outer one comes back."""
    with pk.PassContext(fusion="nnvm", fuel=3) as outer, pk.PassContext(numerics="fast") as inner:
        in_force = pk.PassContext()
        assert (in_force.numerics, in_force.fuel) == ("fast", outer.fuel)
        assert (inner.fusion, inner.numerics, inner.fuel) == ("nnvm", "fast", outer.fuel)
        assert inner.given == {"fusion", "numerics", "fuel"}
    assert pk.PassContext().given == frozenset()


def test_one_context_can_be_entered_twice() -> None:
    """A context is a value; entering it again inside itself is fine."""
    context = pk.PassContext(fusion="none")
    with context, context:
        assert pk.PassContext().fusion == "none"
    assert pk.PassContext().given == frozenset()


def test_threads_have_contexts_of_their_own() -> None:
    """A context in force in one thread is not in force in another."""
    with pk.PassContext(fusion="nnvm"), ThreadPoolExecutor(1) as pool:
        result = pool.submit(lambda: pk.PassContext().fusion).result()

    assert result == "stitch"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"target": "cpo"}, "target 'cpo' is not known; did you mean 'cpu'"),
        ({"fusion": "stich"}, "fusion must be one of .*'nnvm'.*, got 'stich'"),
        ({"numerics": "loose"}, "numerics must be one of 'strict', 'fast', got 'loose'"),
        ({"disabled": ["Simplfy"]}, "disabled: pass 'Simplfy' is not registered; .*'Simplify'"),
        ({"disabled": ["Functionalize"]}, "pass Functionalize cannot be disabled"),
        ({"fuel": -1}, "fuel must be a number of decisions >= 0, got -1"),
        ({"fuel": True}, "fuel must be a number of decisions >= 0, got True"),
        ({"timing": "yes"}, "timing must be True or False, got 'yes'"),
        ({"dump": __file__}, "dump must be a folder, got the file .*test_context.py"),
        ({"keep_together": ["a", "b"]}, r"list of lists of nodes, got 'a' in it; write keep_tog"),
        ({"keep_apart": 3}, "list of lists of nodes, got 3 in it; write keep_apart"),
        (
            {"keep_apart": pk.var("x", (2,))},
            r"list of lists of nodes, got Entry\(x: float32\[2\]\) in it; write keep_apart",
        ),
        ({"no_fuse": 3}, "no_fuse must be a list of nodes or names, got 3"),
        ({"no_fuse": [3]}, "no_fuse must hold nodes or names of nodes, got 3"),
        ({"templates": "a[CTA];"}, r"templates must map names to templates, got 'a\[CTA\];'"),
        ({"templates": {"y": 3}}, "templates must map names of nodes to templates, got 'y': 3"),
        ({"templates": {3: "a[CTA];"}}, "names of nodes to templates, got 3: 'a"),
        (
            {"templates": {pk.ops.exp(pk.var("x", (3,))): "a[CTA];"}},
            "templates: Entry.exp.* has no name",
        ),
        (
            {"templates": {pk.var("x", (3,)): "a[CTA];", "x": "a[CTA];"}},
            "has two entries for 'x'; a",
        ),
    ],
)
def test_wrong_settings_say_what_is_right(options: dict[str, object], message: str) -> None:
    """Every setting is checked when it is made, not when it is used."""
    with pytest.raises(pk.SettingError, match=message):
        pk.PassContext(**options)  # type: ignore[arg-type]


def test_templates_are_parsed_when_given() -> None:
    """The error for a wrong template has the name that it is given for."""
    with pytest.raises(pk.ParseError, match=r"templates\['y'\]: template, column 6: expected"):
        pk.PassContext(templates={"y": "a[CTA"})


def test_an_unknown_option_offers_the_nearest() -> None:
    """Options given to passes by keyword are those of PassContext."""
    with pytest.raises(pk.SettingError, match="no option 'fusoin'; did you mean 'fusion'"):
        pk.PassContext().with_options(fusoin="nnvm")


def test_nodes_are_given_in_any_form() -> None:
    """Names, nodes and entries all name nodes."""
    x = pk.ops.exp(pk.var("x", (3,)))
    context = pk.PassContext(keep_together=[["a", x]], keep_apart=[[x.node, "b"]], no_fuse=x)

    assert context.keep_together == (("a", x.node),)
    assert context.keep_apart == ((x.node, "b"),)
    assert context.no_fuse == (x.node,)


def test_fuel_is_used_up() -> None:
    """With fuel 2 two decisions are taken and noted, the third is not."""
    context = pk.PassContext(fuel=2)

    assert [context.spend(w) for w in "abc"] == [True, True, False]
    assert context.fuel.spent == ["a", "b"]
    assert all(pk.PassContext().spend(w) for w in "abc")


def test_inheriting_keeps_given_options() -> None:
    """Recorded options stand in only for those that nobody gave."""
    recorded = {"target": "cuda", "fusion": "xla"}

    result = pk.PassContext(fusion="none").inheriting(recorded)

    assert (result.target.name, result.fusion) == ("cuda", "none")


def test_times_make_a_tree() -> None:
    """A timed block inside another is its child; the text has one line for each."""
    context = pk.PassContext(timing=True)
    with context.timed("a"):
        with context.timed("b"):
            pass
        with context.timed("c"):
            pass

    assert context.times is not None
    (a,) = context.times.children
    assert [c.name for c in a.children] == ["b", "c"]
    assert a.self_seconds <= a.seconds <= context.times.seconds
    lines = str(context.times).splitlines()
    assert [line.split()[0] for line in lines] == ["passes", "a", "b", "c"]
    assert lines[2].startswith("    b")


def test_self_seconds_leave_out_children() -> None:
    """The own seconds of a node are those not spent in children."""
    timing = type(pk.PassContext(timing=True).times)
    tree = timing("all", 3.0, [timing("a", 1.0), timing("b", 0.5)])  # type: ignore[call-arg]

    assert tree.self_seconds == 1.5
    assert "50.0 %" not in str(tree) and "33.3 %" in str(tree)


def test_no_times_without_timing() -> None:
    """Timing costs nothing and records nothing unless it is asked for."""
    context = pk.PassContext()
    with context.timed("a"):
        pass

    assert context.times is None


def test_dump_paths_are_numbered(tmp_path: Path) -> None:
    """Files in a dump folder sort in the order in which passes ran."""
    context = pk.PassContext(dump=tmp_path / "new")

    assert context.dump is not None
    assert [context.dump.path(n).name for n in ("B", "A")] == ["000_B", "001_A"]
    assert (tmp_path / "new").is_dir()
