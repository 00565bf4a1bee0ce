"""Graphs, entries, states and executables are pickled and copied."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import passkit as pk

TEXT = """b: f32[n, 3]; a: f32[n, 3]; state w: f32[3] = [1, 2, 3]
y = erf(mul(a, w)); z = sub(y, b); s = assign(w, add(w, 1)) after(z); return z, s"""


def arrays() -> tuple[Any, Any]:
    """Return values for the inputs a and b of the graph of `TEXT`."""
    x = np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3)
    return x, x * 2


@pytest.mark.parametrize("again", [copy.deepcopy, lambda g: pickle.loads(pickle.dumps(g))])
def test_copies_of_graphs_are_equal_and_distinct(again: Any) -> None:
    """A copy has the same key, order of inputs and plain annotations, and nodes of its own."""
    graph = pk.parse(TEXT)
    graph = graph.with_inputs(graph.inputs[::-1]).with_attrs(source="a", nodes={graph.nodes[0]: 1})
    result = again(graph)

    assert result.key == graph.key
    assert result.nodes[0] is not graph.nodes[0]
    assert [n.name for n in result.inputs] == [n.name for n in graph.inputs]
    assert dict(result.attrs) == {"source": "a"}
    assert copy.copy(graph) is graph


def test_pickled_fused_graphs_have_groups_and_no_annotations() -> None:
    """Fused nodes are pickled with their groups; annotations of passes are not."""
    fused = pk.ApplyPasses(pk.parse(TEXT), ["Functionalize", "Fusion"])
    unpickled = pickle.loads(pickle.dumps(fused))

    assert unpickled.key == fused.key and copy.deepcopy(fused).key == fused.key
    assert "subgraph" in fused.attrs and "subgraph" not in unpickled.attrs


def test_entries_and_nodes_are_copied_with_their_inputs() -> None:
    """A pickled entry has all that it is computed from; deep copies of several share it."""
    x = pk.var("x", (2,))
    parts = pk.ops.split(x + 1, 2)
    unpickled = pickle.loads(pickle.dumps(parts[1]))
    node = pickle.loads(pickle.dumps(parts[1].node))
    y, z = copy.deepcopy([x, x + 1])

    assert pk.Graph(unpickled).key == pk.Graph(parts[1]).key
    assert pk.Graph(node.entries).key == pk.Graph(parts[1].node.entries).key
    assert z.node.inputs[0] is y and y is not x
    assert copy.copy(x) is x and copy.copy(x.node) is x.node


def test_long_chains_are_copied_without_recursion() -> None:
    """A chain of 3,000 nodes is copied and pickled."""
    y = pk.var("x", ())
    for _ in range(3000):
        y = -y

    assert len(pk.Graph(copy.deepcopy(y)).nodes) == 3001
    assert len(pk.Graph(pickle.loads(pickle.dumps(y))).nodes) == 3001


def test_unregistered_operators_cannot_be_unpickled() -> None:
    """An operator that is not registered is named, and what to import first."""
    data = pickle.dumps(pk.Graph(pk.ops.exp(pk.var("x", (2,)))), protocol=0)

    with pytest.raises(pk.ParseError, match=r"operator 'exq' .*; import what registers it before"):
        pickle.loads(data.replace(b'"op":"exp"', b'"op":"exq"'))


@pytest.mark.parametrize("target", ["cpu", "interpret"])
def test_executables_share_their_state(target: str, quick_kernels: None) -> None:
    """Executables that share a state share a copy of it after pickling or a deep copy."""
    b, a = arrays()
    state = pk.State()
    pair = [pk.compile(pk.parse(TEXT), state=state, target=target) for _ in range(2)]
    pair[0](a=a, b=b)
    before = state["w"].tolist()

    for copies in (pickle.loads(pickle.dumps(pair)), copy.deepcopy(pair)):
        assert copies[0].state is copies[1].state and copies[0].state is not state
        expected = pk.compile(pk.parse(TEXT), state=copy.deepcopy(state), target=target)(a=a, b=b)
        assert copies[0](a=a, b=b)[0].tobytes() == expected[0].tobytes()
        assert copies[1].state["w"].tolist() == [w + 1 for w in before]
    assert state["w"].tolist() == before


def test_states_keep_values_dtypes_and_unset_variables() -> None:
    """A pickled state equals the original; a copy does not share its values."""
    unset = pk.State.of(pk.Graph(pk.state("v", ((2,), "bfloat16")) + 1))
    unpickled = pickle.loads(pickle.dumps(unset))
    same = copy.copy(unset)
    same["v"] = np.ones(2, same["v"].dtype)

    assert unpickled["v"].dtype.name == "bfloat16" and unpickled.unset == {"v"}
    assert same.unset == set() and unset["v"].tolist() == [0, 0]


def test_options_are_kept(quick_kernels: None) -> None:
    """A copy is compiled under the options of the original, and runs the same kernels."""
    exe = pk.compile(pk.parse(TEXT), fusion="nnvm", disabled=["Simplify"], numerics="fast")
    unpickled = pickle.loads(pickle.dumps(exe))

    assert [k.key for k in unpickled.kernels] == [k.key for k in exe.kernels]
    assert (unpickled.context.numerics, unpickled.context.disabled) == ("fast", ("Simplify",))
    assert unpickled.stats["compiled"] == 0


def test_a_new_process_unpickles_and_runs_an_executable(
    tmp_path: Path, quick_kernels: None
) -> None:
    """A new process, such as a spawned worker, runs a pickled executable."""
    b, a = arrays()
    exe = pk.compile(pk.parse(TEXT))
    (tmp_path / "data").write_bytes(pickle.dumps((exe, {"a": a, "b": b})))
    script = (
        "import pickle, sys; exe, feeds = pickle.load(open(sys.argv[1], 'rb'));"
        "print(exe(feeds)[0].tobytes().hex())"
    )
    run = subprocess.run(
        [sys.executable, "-c", script, tmp_path / "data"],
        capture_output=True,
        text=True,
        check=True,
    )

    assert run.stdout.strip() == exe(a=a, b=b)[0].tobytes().hex()
