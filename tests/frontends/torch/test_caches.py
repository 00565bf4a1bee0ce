"""Caches: a second process takes graphs from PyTorch's cache and plans from passkit's."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

torch: Any = pytest.importorskip("torch")

from torch._functorch._aot_autograd.autograd_cache import BypassAOTAutogradCache  # noqa: E402
from torch._inductor import codecache  # noqa: E402

from passkit.errors import GraphError  # noqa: E402
from passkit.frontends.torch import compiled, passkit_backend  # noqa: E402
from passkit.frontends.torch.reports import recording  # noqa: E402

ROOT = Path(__file__).resolve().parents[3]

COMMON = """
import json, sys
import torch
from torch._dynamo.utils import counters
from passkit.frontends.torch import passkit_backend
from passkit.frontends.torch.reports import recording

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.GELU(), torch.nn.Linear(32, 4))
x, w = torch.randn(8, 16), torch.randn(16, 4, requires_grad=True)
def function(x, w):
    return torch.softmax(x @ w, -1).square().sum(0)
def shown(records):
    planned = "passkit.passes" in sys.modules
    return {
        "planned": planned,
        "graphs": len(records),
        "compiled": sum(r.program.executable.stats["compiled"] for r in records),
        "hits": counters["aot_autograd"]["autograd_cache_hit"],
        "saved": counters["aot_autograd"]["autograd_cache_saved"],
    }
"""
CALLS = """
with recording() as records:
    fast = torch.compile(model, backend=passkit_backend, dynamic={dynamic})
    fast(x).sum().backward()
    with torch.no_grad():
        actual = fast(x)
grads = [p.grad.clone() for p in model.parameters()]
model.zero_grad()
model(x).sum().backward()
pairs = [(actual, model(x)), *zip(grads, (p.grad for p in model.parameters()), strict=True)]
error = max(float((a - b).abs().max()) for a, b in pairs)
print(json.dumps(shown(records) | {{"error": error}}))
"""
SAVE = """
with recording() as records:
    fast = torch.compile(function, backend=passkit_backend, fullgraph=True)
    ahead = fast.aot_compile(((x, w), {}))
ahead.save_compiled_function(sys.argv[1])
print(json.dumps(shown(records)))
"""
LOAD = """
with recording() as records, open(sys.argv[1], "rb") as file:
    loaded = torch.compiler.load_compiled_function(file)
actual = loaded(x, w)
actual.sum().backward()
actual_grad, w.grad = w.grad, None
expected = function(x, w)
expected.sum().backward()
error = max(float((actual - expected).abs().max()), float((actual_grad - w.grad).abs().max()))
print(json.dumps(shown(records) | {"error": error}))
"""

MODULES = """
import copy
class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm = torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4)
    def forward(self, x):
        return torch.relu(self.norm(self.conv(x)))
def call(model, x):
    return model(x)
def cases():
    for n, model in enumerate((Block(), torch.nn.Sequential(*Block().children()))):
        for mode in (False, True):
            yield f"{sys.argv[1]}/{n}.{mode}", model.train(mode)
x = torch.randn(2, 3, 8, 8)
"""
SAVE_MODULES = """
with recording() as records:
    for path, model in cases():
        torch._dynamo.reset()
        fast = torch.compile(call, backend=passkit_backend, fullgraph=True)
        fast.aot_compile(((model, x), {})).save_compiled_function(path)
print(json.dumps(shown(records)))
"""
LOAD_MODULES = """
errors, refusals = [], []
with recording() as records:
    for path, model in cases():
        with open(path, "rb") as file:
            loaded = torch.compiler.load_compiled_function(file)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.copy_(torch.randn_like(parameter))
        equivalent = copy.deepcopy(model)
        actual, expected = loaded(model, x), equivalent(x)
        actual.square().sum().backward()
        expected.square().sum().backward()
        pairs = [(actual, expected), *zip(model.buffers(), equivalent.buffers(), strict=True)]
        for one, other in zip(model.parameters(), equivalent.parameters(), strict=True):
            pairs.append((one.grad, other.grad))
            one.grad = None
        errors += [float((a - b).abs().max() / (1 + b.abs().max())) for a, b in pairs]
        try:
            loaded(model.train(not model.training), x)
        except RuntimeError as refusal:
            refusals.append(str(refusal))
print(json.dumps(shown(records) | {"error": max(errors), "refusals": refusals}))
"""


def in_process(folder: Path, text: str, *arguments: str) -> dict[str, Any]:
    """Run a script in another process with caches in a folder; return what it prints."""
    own = folder / "passkit"
    own.mkdir(mode=0o700, exist_ok=True)
    environment = {
        **os.environ,
        "PASSKIT_CACHE_DIR": str(own),
        "TORCHINDUCTOR_CACHE_DIR": str(folder / "inductor"),
        "PYTHONPATH": str(ROOT),
    }
    script = folder / "script.py"
    script.write_text(COMMON + text)
    process = subprocess.run(
        [sys.executable, str(script), *arguments], capture_output=True, text=True, env=environment
    )
    assert process.returncode == 0, process.stderr[-3000:]
    return json.loads(process.stdout.splitlines()[-1])  # type: ignore[no-any-return]


@pytest.mark.slow
@pytest.mark.parametrize("dynamic", [False, True], ids=["fixed sizes", "symbolic sizes"])
def test_a_second_process_traces_only_with_dynamo(tmp_path: Path, dynamic: bool) -> None:
    """It finds the graphs with their gradients, plans nothing and compiles nothing."""
    text = CALLS.format(dynamic=dynamic)
    first, second = in_process(tmp_path, text), in_process(tmp_path, text)
    assert (first["graphs"], first["saved"], first["hits"]) == (3, 2, 0)
    assert first["planned"] and first["compiled"] > 0
    assert (second["graphs"], second["saved"], second["hits"]) == (3, 0, 2)
    assert not second["planned"] and second["compiled"] == 0
    assert max(first["error"], second["error"]) < 1e-5


@pytest.mark.slow
def test_saved_functions_are_loaded_in_another_process(tmp_path: Path) -> None:
    """A function and its gradients, compiled ahead of time, are neither planned nor compiled."""
    path = str(tmp_path / "function.bin")
    saved, loaded = in_process(tmp_path, SAVE, path), in_process(tmp_path, LOAD, path)
    assert saved["planned"] and saved["compiled"] > 0
    assert loaded["graphs"] == 2
    assert not loaded["planned"] and loaded["compiled"] == 0
    assert loaded["error"] < 1e-6


@pytest.mark.slow
def test_saved_functions_take_modules(tmp_path: Path) -> None:
    """A module is an argument: parameters and buffers are those of the module of the call.

    This is so for a class of the program and for one of PyTorch's, whether the module is in
    training or not. In its other mode, a call is an error.
    """
    saved = in_process(tmp_path, MODULES + SAVE_MODULES, str(tmp_path))
    loaded = in_process(tmp_path, MODULES + LOAD_MODULES, str(tmp_path))
    assert saved["compiled"] > 0
    assert (saved["graphs"], loaded["graphs"]) == (8, 8)
    assert not loaded["planned"] and loaded["compiled"] == 0
    assert loaded["error"] < 1e-5
    expected = [".training == False", ".training == True"] * 2
    for refusal, guard in zip(loaded["refusals"], expected, strict=True):
        assert guard in refusal


def ahead_of_time(function: Any, *args: Any, **options: Any) -> Any:
    """Compile a function ahead of time."""
    fast = torch.compile(function, backend=passkit_backend, fullgraph=True, options=options)
    return fast.aot_compile((args, {}))


def test_a_graph_that_pytorch_runs_is_not_saved() -> None:
    """Saving names the reason why PyTorch runs the whole graph."""
    x = torch.zeros(3).to(torch.float8_e4m3fn)
    with pytest.raises(
        BypassAOTAutogradCache, match=r"PyTorch runs a whole graph: .*float8_e4m3fn"
    ):
        ahead_of_time(lambda x: x.view(1, 3), x)


def test_options_without_a_name_are_not_saved(tmp_path: Path) -> None:
    """Saving names the option, which no key can have."""
    with pytest.raises(BypassAOTAutogradCache, match=r"the option dump is a PosixPath"):
        ahead_of_time(lambda x: x + 1, torch.ones(3), dump=tmp_path)


def test_graphs_without_a_text_are_not_saved(monkeypatch: pytest.MonkeyPatch) -> None:
    """Saving names what has no text."""

    def refuse(graph: Any) -> str:
        raise GraphError("a parameter has no JSON")

    monkeypatch.setattr(compiled, "to_json", refuse)
    with pytest.raises(BypassAOTAutogradCache, match=r"passkit: a parameter has no JSON"):
        ahead_of_time(lambda x: x + 1, torch.ones(3))


def test_keys_differ_where_graphs_do() -> None:
    """Fallbacks, options, and the tag that the user set tell stored graphs apart."""
    tags = [
        compiled.cache_tag("extern", {}),
        compiled.cache_tag("error", {}),
        compiled.cache_tag("extern", {"fusion": "greedy"}),
    ]
    with torch.compiler.config.patch(cache_key_tag="mine"):
        tags.append(compiled.cache_tag("extern", {}))
    assert len(set(tags)) == 4
    assert all(tag.startswith("passkit-") for tag in tags)
    assert compiled.cache_tag("extern", {}) == tags[0]


def test_keys_of_inductor_stay() -> None:
    """Keys have Inductor's part again after the block, and after an error in it."""
    before = codecache.init_backend_registration, codecache.CacheBase.__dict__["get_system"]
    with pytest.raises(KeyError), compiled.keys_without_inductor():
        assert codecache.CacheBase.get_system() == {}
        raise KeyError
    after = codecache.init_backend_registration, codecache.CacheBase.__dict__["get_system"]
    assert after == before


def test_reports_count_graphs_from_the_cache() -> None:
    """A graph that was loaded is recorded like one that was compiled."""

    def function(x: Any) -> Any:
        return torch.poisson(x.abs()) + 1

    x = torch.ones(3, 5)
    recorded = []
    for _ in range(2):
        torch._dynamo.reset()
        with recording() as records:
            torch.compile(function, backend=passkit_backend)(x)
        ((nodes, externs),) = [(r.nodes, [e.function for e in r.externs]) for r in records]
        recorded.append((nodes, externs, len(records[0].calls)))
    assert recorded[0] == recorded[1] == (3, ["aten::poisson"], 1)


def test_keys_need_no_attribute_of_pytorch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Attributes that another version of PyTorch lacks are left alone."""
    monkeypatch.delattr(codecache, "custom_backend_passes")
    with compiled.keys_without_inductor():
        assert codecache.CacheBase.get_system() == {}
        assert not hasattr(codecache, "custom_backend_passes")
    assert not hasattr(codecache, "custom_backend_passes")
