"""ApplyPasses: names, dependencies, declarations, targets and stale annotations."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import passkit as pk
from tests.planned import PIPELINE


def graph_of_exp() -> pk.Graph:
    """y = exp(x)."""
    return pk.Graph([pk.ops.exp(pk.var("x", (2, 3)), name="y")])


def note(name: str, value: Any = True, **declared: Any) -> pk.Pass:
    """A pass that sets the annotation of its own name in lower letters."""

    def body(graph: pk.Graph) -> pk.Graph:
        return graph.with_attrs(**{name.lower(): value})

    return pk.register_pass(name, provides=(name.lower(),), **declared)(body)


TestFirst = note("TestFirst")
TestSecond = note("TestSecond", depends="testfirst")
TestOnCpu = note("TestOnCpu", target_dependent=True)
TestLater = note("TestLater", target_dependent=True)
TestCircle = note("TestCircle", depends="testround", implied=True)
TestRound = note("TestRound", depends="testcircle", implied=True)


@pk.register_pass("TestNegate", changes_graph=True, preserves=("kept",))
def negate(graph: pk.Graph) -> pk.Graph:
    """y -> -y."""
    return pk.Graph([pk.ops.neg(e) for e in graph.outputs], attrs=graph.attrs)


def test_passes_run_in_order_by_name_object_and_string() -> None:
    """Names, passes and one string are all ways to say what to run."""
    out = pk.ApplyPasses(graph_of_exp(), ["TestFirst", TestSecond])

    assert out.attrs["testfirst"] and out.attrs["testsecond"]
    assert pk.ApplyPasses(out, "TestNegate").outputs[0].node.op is pk.ops.neg


def test_the_graph_given_is_untouched() -> None:
    """Passes return new graphs; structure and annotations of the old one stay."""
    graph = graph_of_exp()
    key, attrs = graph.key, dict(graph.attrs)
    pk.ApplyPasses(graph, ["InferShape", negate, "Simplify"])

    assert (graph.key, dict(graph.attrs)) == (key, attrs)


def test_names_resolve_before_anything_runs() -> None:
    """An unknown name fails although a pass before it could have run."""
    ran: list[int] = []

    @pk.register_pass("TestRuns")
    def runs(graph: pk.Graph) -> pk.Graph:
        ran.append(1)
        return graph

    with pytest.raises(pk.RegistryError, match=r"'TestNegat' is not registered; .*'TestNegate'"):
        pk.ApplyPasses(graph_of_exp(), [runs, "TestNegat"])
    assert ran == []


def test_a_plain_function_is_refused() -> None:
    """A function must be registered before it can be applied."""
    with pytest.raises(pk.PassError, match="a pass must be a name or a Pass, got function"):
        pk.ApplyPasses(graph_of_exp(), [lambda g: g])  # type: ignore[list-item]
    with pytest.raises(pk.PassError, match="graph must be a Graph, got Entry"):
        pk.ApplyPasses(pk.var("x", (3,)), "InferShape")  # type: ignore[arg-type]


def test_missing_analyses_are_run() -> None:
    """A pass that depends on shapes has InferShape run for it."""

    @pk.register_pass("TestRanks", depends=("shape", "dtype"), provides="ranks")
    def ranks(graph: pk.Graph) -> pk.Graph:
        return graph.with_attrs(ranks=[len(graph.attrs["shape"][e]) for e in graph.outputs])

    out = pk.ApplyPasses(graph_of_exp(), ranks)

    assert out.attrs["ranks"] == [2]
    assert set(out.attrs) >= {"shape", "dtype"}


def test_a_missing_transformation_is_an_error() -> None:
    """The error names annotation, pass and provider; nothing is run instead."""
    with pytest.raises(
        pk.PassError,
        match="TestSecond depends on graph attribute 'testfirst', which is not set; run TestFirst",
    ):
        pk.ApplyPasses(graph_of_exp(), "TestSecond")


def test_the_error_names_the_pass_that_dropped_an_annotation() -> None:
    """If a pass in between changed the graph, the error names it."""
    with pytest.raises(
        pk.PassError, match="TestNegate changed the graph and dropped it; run TestF"
    ):
        pk.ApplyPasses(graph_of_exp(), [TestFirst, negate, TestSecond])


def test_analyses_that_depend_on_each_other_are_an_error() -> None:
    """Two implied passes that depend on each other are an error, not an endless loop."""
    with pytest.raises(pk.PassError, match="in a circle: TestCircle, TestRound"):
        pk.ApplyPasses(graph_of_exp(), "TestCircle")


def test_operator_attributes_are_checked() -> None:
    """depends_op lists the operators that lack one; variables and constants are exempt."""
    strict = note("TestHasCode", depends_op="FCodeGen")
    y = pk.ops.exp(pk.var("x", (2, 2))) + pk.constant(np.ones(2, "float32"))
    pk.ApplyPasses(pk.Graph([y]), strict)

    with pytest.raises(
        pk.PassError, match=r"TestHasCode needs attribute FCodeGen .* it: matmul, tran"
    ):
        pk.ApplyPasses(pk.Graph([pk.ops.matmul(y, pk.ops.transpose(y))]), strict)


def test_an_undeclared_operator_attribute_is_an_error() -> None:
    """A misspelt attribute offers the nearest."""
    strict = note("TestHasCod", depends_op="FCodeGenn")
    with pytest.raises(
        pk.PassError, match=r"TestHasCod depends on operator attribute FCodeGenn: .*'FCo"
    ):
        pk.ApplyPasses(graph_of_exp(), strict)


def test_a_pass_must_provide_what_it_declares() -> None:
    """An annotation that a pass declares and does not set is an error."""
    silent = pk.register_pass("TestSilent", provides=("a", "b"))(lambda g: g.with_attrs(a=1))
    with pytest.raises(pk.PassError, match="TestSilent declares that it provides 'b' and did not"):
        pk.ApplyPasses(graph_of_exp(), silent)


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda g: None, "got None; end it with return graph, or return graph.with_attrs"),
        (lambda g: g.outputs[0], r"got Entry\(.*; pk.Graph\(\[y\], graph.updates\) makes one"),
        (lambda g: g.outputs, r"got \(Entry\(.*; pk.Graph\(\[y\], graph.updates\) makes one"),
        (lambda g: g.nodes[-1], r"got Node\(.*; pk.Graph\(node.entries, graph.updates\)"),
        (lambda g: {"count": 3}, r"got {'count': 3}; return graph.with_attrs\(name=…\)"),
        (lambda g: 3, r"got 3; return graph.with_attrs\(…\) adds annotations"),
    ],
)
def test_a_result_that_is_no_graph_is_refused(make: Any, match: str) -> None:
    """The error shows the value that a pass returned, and how to make a graph of it."""
    odd = pk.register_pass("TestOdd")(lambda graph: make(graph))
    with pytest.raises(pk.PassError, match=f"TestOdd must return a Graph, {match}"):
        pk.ApplyPasses(graph_of_exp(), odd)


def test_an_undeclared_change_is_an_error() -> None:
    """A pass that makes new nodes must say so, else stale annotations would stay."""
    sneaky = pk.register_pass("TestSneaky")(negate.body)
    with pytest.raises(pk.PassError, match="TestSneaky changed the graph without declaring it"):
        pk.ApplyPasses(graph_of_exp(), sneaky)


def test_a_change_drops_stale_annotations() -> None:
    """After a change, annotations that the pass neither provides nor preserves are gone."""
    graph = pk.ApplyPasses(graph_of_exp(), ["InferShape", TestFirst]).with_attrs(kept=7)
    out = pk.ApplyPasses(graph, negate)

    assert "shape" not in out.attrs and "testfirst" not in out.attrs
    assert out.attrs["kept"] == 7


def test_a_pass_that_changes_nothing_keeps_annotations() -> None:
    """Where outputs and updates stay the same, annotations stay, also those of before."""

    @pk.register_pass("TestChangesNothing", changes_graph=True)
    def changes_nothing(graph: pk.Graph) -> pk.Graph:
        return pk.Graph(graph.outputs)

    graph = pk.ApplyPasses(graph_of_exp(), ["InferShape", TestFirst]).with_attrs(kept=7)
    out = pk.ApplyPasses(graph, changes_nothing)

    assert dict(out.attrs) == dict(graph.attrs)
    assert out.attrs["shape"] is graph.attrs["shape"]


def test_a_preserved_annotation_must_be_remapped() -> None:
    """An annotation of old nodes is refused, instead of being read for new ones."""
    graph = graph_of_exp()
    old = pk.Annotation("kept", {graph.outputs[0].node: 1})

    @pk.register_pass("TestForgets", changes_graph=True, preserves=("kept",))
    def forgets(graph: pk.Graph) -> pk.Graph:
        x = graph.inputs[0].entries[0]
        return pk.Graph([pk.ops.tanh(x)], attrs=graph.attrs)

    with pytest.raises(pk.PassError, match="TestForgets left 'kept' with exp 'y', which is not"):
        pk.ApplyPasses(graph.with_attrs(kept=old), forgets)


def test_an_annotation_of_another_graph_is_an_error() -> None:
    """Reading an annotation for a foreign node is an error, not the value of another node."""
    shapes = pk.ApplyPasses(graph_of_exp(), "InferShape").attrs["shape"]
    with pytest.raises(pk.PassError, match=r"annotation 'shape' has no value for Entry\(z"):
        shapes[pk.var("z", (3,))]


def test_a_note_names_the_failing_pass_and_those_before_it() -> None:
    """A note of the error names the pass in which it arose, and the passes before it."""

    @pk.register_pass("TestFails")
    def fails(graph: pk.Graph) -> pk.Graph:
        raise ZeroDivisionError("oh")

    with pytest.raises(ZeroDivisionError) as caught:
        pk.ApplyPasses(graph_of_exp(), [TestFirst, "InferShape", fails])
    assert caught.value.__notes__ == ["in pass TestFails, after TestFirst, InferShape"]

    with pytest.raises(ZeroDivisionError) as caught:
        pk.ApplyPasses(graph_of_exp(), fails)
    assert caught.value.__notes__ == ["in pass TestFails"]


def test_the_first_pass_for_a_target_binds_the_graph() -> None:
    """Target and options are recorded; later passes inherit them unless others are given."""
    out = pk.ApplyPasses(graph_of_exp(), TestOnCpu, target="cuda", fusion="xla")
    options = out.attrs["options"]

    assert (options["target"].name, options["fusion"], options["by"]) == (
        "cuda",
        "xla",
        "TestOnCpu",
    )
    assert pk.ApplyPasses(out, TestLater).attrs["options"] == options
    with pytest.raises(
        pk.PassError, match="target 'cpu', but the graph was planned for 'cuda' by T"
    ):
        pk.ApplyPasses(out, TestLater, target="cpu")


def test_options_outlive_a_change_of_the_graph() -> None:
    """A planned graph stays bound to its target when later passes change it."""
    out = pk.ApplyPasses(graph_of_exp(), [TestOnCpu, negate], target="opencl")

    assert out.attrs["options"]["target"].name == "opencl"


def test_a_context_in_force_is_used() -> None:
    """Options come from keywords first, then from the with block."""
    with pk.PassContext(target="cuda", fusion="xla"):
        out = pk.ApplyPasses(graph_of_exp(), TestOnCpu, fusion="none")

    assert out.attrs["options"]["target"].name == "cuda"
    assert out.attrs["options"]["fusion"] == "none"


def test_disabled_passes_are_skipped() -> None:
    """An optional pass that is disabled does not run."""
    x = pk.var("x", (3,))
    graph = pk.Graph([pk.ops.exp(x) + pk.ops.exp(x)])

    assert len(pk.ApplyPasses(graph, "Simplify", disabled=["Simplify"]).nodes) == 4
    assert len(pk.ApplyPasses(graph, "Simplify").nodes) == 3


def test_a_disabled_provider_is_named() -> None:
    """Disabling what a later pass needs is an error that says so."""
    with pytest.raises(pk.PassError, match="its provider TestFirst is disabled; enable TestFirst"):
        pk.ApplyPasses(graph_of_exp(), [TestFirst, TestSecond], disabled=["TestFirst"])
    with pytest.raises(
        pk.PassError, match="'complete', which is not set: its provider Complete is"
    ):
        pk.ApplyPasses(graph_of_exp(), "Simplify", disabled="Complete")


def test_passes_can_run_again() -> None:
    """Providing an annotation that is there already replaces it."""
    graph = pk.ApplyPasses(graph_of_exp(), ["InferShape", "PlanMemory", "PlanMemory"])
    again = pk.ApplyPasses(graph, ["InferShape", "PlanMemory"])

    assert again.attrs["storage"] is not graph.attrs["storage"]


def test_timing_is_kept_with_the_graph() -> None:
    """With timing the result says how long each pass took, analyses too."""
    out = pk.ApplyPasses(graph_of_exp(), ["Simplify", "PlanMemory"], timing=True)

    names = [t.name for t in out.attrs["timing"].children]
    assert names.index("InferShape") < names.index("Simplify") < names.index("PlanMemory")


def test_a_pass_called_inside_a_pass_is_its_child() -> None:
    """The tree of times follows nested calls of passes."""

    @pk.register_pass("TestCalls")
    def calls(graph: pk.Graph) -> pk.Graph:
        return pk.ApplyPasses(graph, "TestFirst")

    with pk.PassContext(timing=True) as context:
        pk.ApplyPasses(graph_of_exp(), calls)

    assert context.times is not None
    (outer,) = context.times.children
    assert [c.name for c in outer.children] == ["TestFirst"]


def test_dumps_are_numbered_text_and_pictures(tmp_path: Path) -> None:
    """Each pass of the list leaves the graph as text and picture; implied analyses do not."""
    pk.ApplyPasses(graph_of_exp(), ["Simplify", negate], dump=tmp_path)

    names = sorted(p.name for p in tmp_path.iterdir())
    assert [n.partition(".")[0] for n in names] == ["000_Simplify"] * 2 + ["001_TestNegate"] * 2
    assert "exp" in (tmp_path / "000_Simplify.txt").read_text()
    assert "neg" in (tmp_path / "001_TestNegate.txt").read_text()


def test_a_dump_without_a_renderer_is_laid_out_simply(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without Graphviz, the picture is laid out simply and says so."""
    monkeypatch.setattr("passkit.viz.renderers.renderers", lambda: iter(()))
    pk.ApplyPasses(graph_of_exp(), "Simplify", dump=tmp_path)

    assert "laid out simply" in (tmp_path / "000_Simplify.svg").read_text()


def test_context_is_in_force_inside_a_pass() -> None:
    """A context made inside a pass has the options that the pass was run with."""
    visited: list[str] = []

    @pk.register_pass("TestSeesContext")
    def sees(graph: pk.Graph) -> pk.Graph:
        visited.append(pk.PassContext().numerics)
        return graph

    pk.ApplyPasses(graph_of_exp(), sees, numerics="fast")
    pk.ApplyPasses(graph_of_exp(), "TestSeesContext")

    assert visited == ["fast", "strict"]


def test_inputs_keep_their_order() -> None:
    """Positional arrays mean the same inputs before and after a pass."""
    x, y = pk.var("x", (4,)), pk.var("y", (4,))
    graph = pk.Graph([x - y, pk.ops.zeros_like(y)])
    feeds = [np.full(4, 5, np.float32), np.ones(4, np.float32)]
    for count in range(1, len(PIPELINE) + 1):
        created = pk.ApplyPasses(graph, PIPELINE[:count])

        assert [n.name for n in created.inputs] == ["x", "y"]
        assert pk.compile(created, target="interpret")(feeds)[0].tolist() == [4] * 4
        assert pk.compile(created)(feeds)[0].tolist() == [4] * 4
    fused = next(n for n in created.nodes if n.op is not None)
    assert [e.node.name for e in fused.inputs] == ["y", "x"]  # what that guards against


def test_new_inputs_of_a_pass_come_last() -> None:
    """An input that a pass adds follows the others; one that it removes is not fed any more."""

    @pk.register_pass("TestScaled", changes_graph=True)
    def scaled(graph: pk.Graph) -> pk.Graph:
        return pk.Graph([pk.var("z", (2,)) * graph.outputs[0]])

    @pk.register_pass("TestAlike", changes_graph=True)
    def alike(graph: pk.Graph) -> pk.Graph:
        return pk.Graph([pk.var("x", (2,)) * graph.outputs[0]])

    x, y, w = (pk.var(name, (2,)) for name in "xyw")
    graph = pk.Graph([w + (y - x)]).with_inputs([x.node, y.node, w.node])

    assert [n.name for n in pk.ApplyPasses(graph, scaled).inputs] == ["x", "y", "w", "z"]
    created = pk.ApplyPasses(graph, alike)
    assert [created.names[n] for n in created.inputs] == ["x", "y", "w", "x_1"]
    assert created.inputs[0] is x.node
    assert [n.name for n in pk.Graph([y - x]).fed_as(graph).inputs] == ["x", "y"]


@pytest.mark.parametrize("target", ["cpu", "blocks", "interpret"])
def test_inputs_of_one_name_are_numbered(target: str) -> None:
    """Inputs of one name are numbered in their order, which no pass changes."""
    x, again = pk.var("x", (4,)), pk.var("x", (4,))
    run = pk.compile(pk.Graph([x - again, pk.ops.zeros_like(again)]), target=target)
    five, one = np.full(4, 5, np.float32), np.ones(4, np.float32)

    assert run([five, one])[0].tolist() == run({"x": five, "x_1": one})[0].tolist() == [4] * 4


def test_an_input_keeps_its_name_before_an_operator() -> None:
    """An operator with the name of an input is renamed, even if it comes first."""
    first = pk.ops.exp(pk.var("a", (2,)), name="x")
    graph = pk.Graph([first + pk.var("x", (2,))])

    assert [graph.names[n] for n in graph.nodes] == ["a", "x_1", "x", "add"]
    assert [i.name for i in pk.compile(graph).inputs] == ["a", "x"]


def test_replaced_inputs_of_one_name_keep_their_positions() -> None:
    """Nodes that replace inputs of one name take their positions."""
    one, two, other = (pk.var("x", (2,)) for _ in range(3))
    graph = pk.Graph([one - two * other]).with_inputs([other.node, one.node, two.node])

    def anew(node: pk.Node, inputs: Any) -> Any:
        return None if node.op else pk.Node(None, (), {**node.params, "n": 1}, node.name).entries

    created, new = graph.rebuilt(anew)
    assert created.inputs == tuple(new[e].node for e in (other, one, two))
    assert [created.names[n] for n in created.inputs] == ["x", "x_1", "x_2"]


def test_implied_transformations_run_for_a_dependent_pass() -> None:
    """A pass sees primitives and no state if it depends on that; preserved facts stay set."""
    visited: list[str] = []

    @pk.register_pass("TestReadsPrimitives", depends=("functional", "expanded"))
    def reads(graph: pk.Graph) -> pk.Graph:
        visited.extend(n.op.name for n in graph.nodes if n.op is not None)
        return graph

    @pk.register_pass("TestKeepsPrimitives", changes_graph=True, preserves="expanded")
    def staged(graph: pk.Graph) -> pk.Graph:
        return pk.Graph([pk.ops.neg(e) for e in graph.outputs], graph.updates)

    x, s = pk.var("x", (4, 8)), pk.state("s", np.zeros((4, 8), np.float32))
    graph = pk.Graph([pk.ops.softmax(x + s), pk.ops.assign(s, x)])
    out = pk.ApplyPasses(graph, reads)

    assert visited == ["add", "reduce_max", "sub", "exp", "reduce_sum", "div"] and out.updates
    again = pk.ApplyPasses(out, staged)
    assert "expanded" in again.attrs and "functional" not in again.attrs


def test_passes_that_undo_each_other_are_named() -> None:
    """Two implied passes that each drop what the other provides end with an error."""

    def body(name: str) -> Any:
        def run(graph: pk.Graph) -> pk.Graph:
            out = pk.Graph([pk.ops.neg(e) for e in graph.outputs])
            return out.with_attrs(**{name.lower(): True})

        return run

    for name in ("TestUndoOne", "TestUndoTwo"):
        pk.register_pass(name, provides=name.lower(), changes_graph=True, implied=True)(body(name))

    @pk.register_pass("TestNeedsBoth", depends=("testundoone", "testundotwo"))
    def both(graph: pk.Graph) -> pk.Graph:
        return graph

    with pytest.raises(
        pk.PassError, match="TestUndoOne ran 8 times for TestNeedsBoth, and TestUndoTwo dropped 't"
    ):
        pk.ApplyPasses(graph_of_exp(), both)
