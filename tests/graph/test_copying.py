"""Graphs, entries, states and executables, pickled and copied."""

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
    """Two inputs of the graph of `TEXT`."""
    x = np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3)
    return x, x * 2


@pytest.mark.parametrize("again", [copy.deepcopy, lambda g: pickle.loads(pickle.dumps(g))])
def test_graphs(again: Any) -> None:
    """A copy is equal and distinct, its inputs are in order, and plain annotations are kept."""
    graph = pk.parse(TEXT)
    graph = graph.with_inputs(graph.inputs[::-1]).with_attrs(source="a", nodes={graph.nodes[0]: 1})
    found = again(graph)

    assert found.key == graph.key
    assert found.nodes[0] is not graph.nodes[0]
    assert [n.name for n in found.inputs] == [n.name for n in graph.inputs]
    assert dict(found.attrs) == {"source": "a"}
    assert copy.copy(graph) is graph


def test_planned_graphs_are_planned_again() -> None:
    """A fused graph comes back with its groups; what passes found out is found out again."""
    fused = pk.ApplyPasses(pk.parse(TEXT), ["Functionalize", "Fusion"])
    found = pickle.loads(pickle.dumps(fused))

    assert found.key == fused.key and copy.deepcopy(fused).key == fused.key
    assert "subgraph" in fused.attrs and "subgraph" not in found.attrs


def test_entries_and_nodes() -> None:
    """An entry brings what it is computed from; deep copies of several share it."""
    x = pk.var("x", (2,))
    parts = pk.ops.split(x + 1, 2)
    found = pickle.loads(pickle.dumps(parts[1]))
    node = pickle.loads(pickle.dumps(parts[1].node))
    y, z = copy.deepcopy([x, x + 1])

    assert pk.Graph(found).key == pk.Graph(parts[1]).key
    assert pk.Graph(node.entries).key == pk.Graph(parts[1].node.entries).key
    assert z.node.inputs[0] is y and y is not x
    assert copy.copy(x) is x and copy.copy(x.node) is x.node


def test_long_chains() -> None:
    """Thousands of nodes are copied without recursion."""
    y = pk.var("x", ())
    for _ in range(3000):
        y = -y

    assert len(pk.Graph(copy.deepcopy(y)).nodes) == 3001
    assert len(pk.Graph(pickle.loads(pickle.dumps(y))).nodes) == 3001


def test_operators_that_are_not_registered() -> None:
    """An operator that the unpickling process lacks is named, with what to do."""
    data = pickle.dumps(pk.Graph(pk.ops.exp(pk.var("x", (2,)))), protocol=0)

    with pytest.raises(pk.ParseError, match=r"operator 'exq' .*; import what registers it before"):
        pickle.loads(data.replace(b'"op":"exp"', b'"op":"exq"'))


@pytest.mark.parametrize("target", ["cpu", "interpret"])
def test_executables_share_their_state(target: str, quick_kernels: None) -> None:
    """What shared a state shares one after a pickle or a deep copy, apart from the original's."""
    b, a = arrays()
    state = pk.State()
    pair = [pk.compile(pk.parse(TEXT), state=state, target=target) for _ in range(2)]
    pair[0](a=a, b=b)
    before = state["w"].tolist()

    for found in (pickle.loads(pickle.dumps(pair)), copy.deepcopy(pair)):
        assert found[0].state is found[1].state and found[0].state is not state
        wanted = pk.compile(pk.parse(TEXT), state=copy.deepcopy(state), target=target)(a=a, b=b)
        assert found[0](a=a, b=b)[0].tobytes() == wanted[0].tobytes()
        assert found[1].state["w"].tolist() == [w + 1 for w in before]
    assert state["w"].tolist() == before


def test_states() -> None:
    """Values, dtypes and what is unset yet are kept."""
    unset = pk.State.of(pk.Graph(pk.state("v", ((2,), "bfloat16")) + 1))
    found = pickle.loads(pickle.dumps(unset))
    same = copy.copy(unset)
    same["v"] = np.ones(2, same["v"].dtype)

    assert found["v"].dtype.name == "bfloat16" and found.unset == {"v"}
    assert same.unset == set() and unset["v"].tolist() == [0, 0]


def test_options_are_kept(quick_kernels: None) -> None:
    """A copy is compiled under the options of the original, and runs the same kernels."""
    exe = pk.compile(pk.parse(TEXT), fusion="nnvm", disabled=["Simplify"], numerics="fast")
    found = pickle.loads(pickle.dumps(exe))

    assert [k.key for k in found.kernels] == [k.key for k in exe.kernels]
    assert (found.context.numerics, found.context.disabled) == ("fast", ("Simplify",))
    assert found.stats["compiled"] == 0


def test_another_process_runs_it(tmp_path: Path, quick_kernels: None) -> None:
    """A process that starts anew, as spawned workers do, unpickles and runs an executable."""
    b, a = arrays()
    exe = pk.compile(pk.parse(TEXT))
    (tmp_path / "data").write_bytes(pickle.dumps((exe, {"a": a, "b": b})))
    script = (
        "import pickle, sys; exe, feeds = pickle.load(open(sys.argv[1], 'rb'));"
        "print(exe(feeds)[0].tobytes().hex())"
    )
    found = subprocess.run(
        [sys.executable, "-c", script, tmp_path / "data"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip

    assert found.stdout.strip() == exe(a=a, b=b)[0].tobytes().hex()
