"""Sixty models with random weights through ``torch.compile(backend="passkit")``, beside other ways.

    python benchmarks/torch_models.py [--only resnet] [--parts inference,speed] [--again]
    python benchmarks/torch_models.py --table

A row of ``results/torch_models.json`` has the parts that were measured so far; what it has is not
measured again, unless ``--again`` asks for it. Each part runs in a process of its own, with caches
that ``--cache`` keeps between runs:

- ``inference``: with empty caches. All results beside those of eager PyTorch, operators that
  passkit and PyTorch run, kernels, graphs, and the seconds of the first call.
- ``speed``: a second process, which finds what the first one stored. The seconds of the first call,
  those of Inductor's with an empty cache (once), and milliseconds of a call beside eager PyTorch
  and Inductor, as medians of rounds that alternate.
- ``training``: the weights after a step of SGD and a step of Adam, from compiled gradients. Where
  they differ, eager PyTorch with an input of other last bits tells how far off one may be.
- ``dynamic``: eight batch sizes with one compilation.

A difference to eager PyTorch counts as equal below ``TOLERANCE`` of the largest element, or if the
result is about as near to PyTorch's in float64 as that of eager PyTorch. Batch norms get statistics
from the inputs, so that random weights give results of ordinary size. Compilers first compile a
function of one operator, so that seconds have no imports. A model is memory bound here if its
convolutions and products have less than ``BALANCE`` operations for each byte that its operators
read and write, one by one.
"""

from __future__ import annotations

import argparse
import copy
import json
import math
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import geometric_mean, median
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT)]
RESULTS = ROOT / "benchmarks" / "results" / "torch_models.json"

TOLERANCE = 1e-4
"""The largest difference to eager PyTorch, as a share of the largest element."""
REFERENCE_FACTOR = 4
"""How many times farther from float64 than eager PyTorch a result may be."""
NOISE = 0.1
"""The relative error of a gradient of eager PyTorch from which on it is not compared."""
PERTURBATIONS = 8
"""How many steps of eager PyTorch, with other last bits of the input, are compared."""
BALANCE = 16
"""Operations for each byte from which on a model counts as bound by arithmetic.

Two cores of the machine of the results multiply matrices at about 200 GFLOP/s and copy 13 GB/s."""
BATCHES = (3, 2, 4, 5, 6, 7, 8, 9)
"""The batch sizes of the part ``dynamic``, the compiled one first."""
PARTS = ("inference", "speed", "training", "dynamic")

VISION = {
    "alexnet": 128,
    "convnext_tiny": 128,
    "densenet121": 128,
    "efficientnet_b0": 128,
    "efficientnet_v2_s": 128,
    "googlenet": 128,
    "inception_v3": 128,
    "lraspp_mobilenet_v3_large": 128,
    "maxvit_t": 224,
    "mnasnet1_0": 128,
    "mobilenet_v2": 128,
    "mobilenet_v3_small": 128,
    "regnet_x_400mf": 128,
    "regnet_y_400mf": 128,
    "resnet18": 128,
    "resnet50": 128,
    "resnext50_32x4d": 128,
    "shufflenet_v2_x1_0": 128,
    "squeezenet1_1": 128,
    "swin_t": 224,
    "swin_v2_t": 224,
    "vgg11_bn": 128,
    "vit_b_32": 224,
    "wide_resnet50_2": 128,
}
"""Models of torchvision, with the size of their images."""
VISION_OPTIONS: dict[str, dict[str, Any]] = {
    "googlenet": {"init_weights": False, "aux_logits": False},
    "inception_v3": {"init_weights": False, "aux_logits": False},
    "lraspp_mobilenet_v3_large": {"weights_backbone": None},
}
"""Further arguments of models of torchvision."""
SMALL_TRANSFORMER = {"embed_dim": 192, "depth": 4, "num_heads": 3}
TIMM: dict[str, tuple[int, dict[str, Any]]] = {
    "beit_base_patch16_224": (224, SMALL_TRANSFORMER),
    "coat_lite_tiny": (224, {}),
    "convnextv2_atto": (128, {}),
    "crossvit_9_240": (240, {}),
    "deit_tiny_patch16_224": (224, {}),
    "edgenext_xx_small": (128, {}),
    "efficientformer_l1": (224, {}),
    "ghostnet_100": (128, {}),
    "gmlp_ti16_224": (224, {}),
    "levit_128s": (224, {}),
    "mixer_s32_224": (224, {}),
    "mobilevit_xxs": (128, {}),
    "poolformer_s12": (128, {}),
    "pvt_v2_b0": (128, {}),
    "regnetz_005": (128, {}),
    "repvgg_a0": (128, {}),
    "resmlp_12_224": (224, {}),
    "tnt_s_patch16_224": (224, {"depth": 4}),
    "volo_d1_224": (224, {}),
    "xcit_nano_12_p16_224": (224, {}),
}
"""Models of timm, with the size of their images and further arguments."""
WIDTHS = {
    "hidden_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 256,
}
GROUPED = {**WIDTHS, "num_key_value_heads": 2, "vocab_size": 2000, "use_cache": False}
TRANSFORMERS: dict[str, tuple[str, dict[str, Any]]] = {
    "albert": ("AlbertModel", {**WIDTHS, "embedding_size": 64}),
    "bert": ("BertModel", WIDTHS),
    "clip": ("CLIPVisionModel", {**WIDTHS, "image_size": 96, "patch_size": 16}),
    "deberta": ("DebertaV2Model", {**WIDTHS, "relative_attention": True}),
    "distilbert": ("DistilBertModel", {"dim": 128, "n_layers": 2, "n_heads": 4, "hidden_dim": 256}),
    "electra": ("ElectraModel", {**WIDTHS, "embedding_size": 64}),
    "gemma": ("GemmaModel", {**GROUPED, "head_dim": 32}),
    "gpt2": ("GPT2Model", {"n_embd": 128, "n_layer": 2, "n_head": 4, "use_cache": False}),
    "llama": ("LlamaModel", GROUPED),
    "mpnet": ("MPNetModel", WIDTHS),
    "opt": (
        "OPTModel",
        {**WIDTHS, "ffn_dim": 256, "word_embed_proj_dim": 128, "use_cache": False},
    ),
    "phi": ("PhiModel", {**GROUPED, "num_key_value_heads": 4}),
    "qwen2": ("Qwen2Model", GROUPED),
    "roberta": ("RobertaModel", WIDTHS),
    "t5": ("T5EncoderModel", {"d_model": 128, "d_kv": 32, "d_ff": 256, "num_layers": 2}),
    "whisper": (
        "WhisperEncoder",
        {
            "d_model": 128,
            "encoder_layers": 2,
            "encoder_attention_heads": 4,
            "encoder_ffn_dim": 256,
            "max_source_positions": 100,
        },
    ),
}
"""Models of transformers, made small: their class and configuration."""
TOKENS = 64
"""The length of sequences of tokens."""
NAMES = (*VISION, *TIMM, *TRANSFORMERS)


def model_and_input(name: str) -> tuple[Any, Any]:
    """Return a model in evaluation mode with random weights, and its input of batch size 2."""
    import torch

    torch.manual_seed(0)
    if name in VISION:
        import torchvision

        options = VISION_OPTIONS.get(name, {})
        model = torchvision.models.get_model(name, weights=None, **options)
        x = torch.randn(2, 3, VISION[name], VISION[name])
    elif name in TIMM:
        import timm

        size, options = TIMM[name]
        sized = {"img_size": size} if name.startswith(("coat", "gmlp")) else {}
        model = timm.create_model(name, **options, **sized)
        x = torch.randn(2, 3, size, size)
    else:
        model, x = transformer_and_input(name)
    for weights in model.parameters():
        if weights.dim() > 1 and not weights.any():
            torch.nn.init.normal_(weights, 0, 0.02)  # the last layers of some models begin as 0
    set_statistics(model, x)
    return model.eval(), x


def transformer_and_input(name: str) -> tuple[Any, Any]:
    """Return a model of transformers, and its input of batch size 2."""
    import torch
    import transformers
    from transformers.models.whisper.modeling_whisper import WhisperEncoder

    class_name, options = TRANSFORMERS[name]
    kind = WhisperEncoder if name == "whisper" else getattr(transformers, class_name)
    model = kind(kind.config_class(**options))
    if name == "clip":
        return model, torch.randn(2, 3, 96, 96)
    if name == "whisper":
        return model, torch.randn(2, 80, 200)
    return model, torch.randint(3, 1000, (2, TOKENS))


def set_statistics(model: Any, x: Any) -> None:
    """Set the statistics of batch norms from an input, and their weights to numbers around 1."""
    import torch

    norms = [m for m in model.modules() if isinstance(m, torch.nn.modules.batchnorm._BatchNorm)]
    if not norms:
        return
    model.eval()
    for norm in norms:
        norm.train()
        norm.momentum = None
        if norm.weight is not None:
            torch.nn.init.uniform_(norm.weight, 0.5, 1.5)
            torch.nn.init.normal_(norm.bias, 0, 0.1)
    with torch.no_grad():
        model(x)
    for norm in norms:
        norm.momentum = 0.1


def tensors(results: Any) -> list[Any]:
    """Return all tensors of a model's results."""
    import torch
    from torch.utils import _pytree as pytree

    if hasattr(results, "to_tuple"):
        results = results.to_tuple()
    return [x for x in pytree.tree_leaves(results) if isinstance(x, torch.Tensor)]


def distance(actual: Sequence[Any], expected: Sequence[Any]) -> float:
    """Return the largest difference of tensors, each as a share of its largest element."""
    shares = [
        float((a.double() - b.double()).abs().max() / b.double().abs().max().clamp(min=1e-30))
        for a, b in zip(actual, expected, strict=True)
        if b.numel()
    ]
    return max((math.inf if math.isnan(x) else x for x in shares), default=0.0)


def norm_distance(actual: Sequence[Any], expected: Sequence[Any]) -> float:
    """Return the largest difference of tensors, each as a share of its norm."""
    shares = [
        float((a.double() - b.double()).norm() / b.double().norm().clamp(min=1e-12))
        for a, b in zip(actual, expected, strict=True)
    ]
    return max((math.inf if math.isnan(x) else x for x in shares), default=0.0)


def compare(
    actual: Sequence[Any], expected: Sequence[Any], exact: Callable[[], Sequence[Any]]
) -> dict[str, Any]:
    """Compare results with those of eager PyTorch, and where they differ with float64.

    Returns ``difference`` to eager PyTorch, ``is_equal``, and where that took float64, the errors
    ``error`` and ``eager_error`` of both.
    """
    difference = distance(actual, expected)
    if difference <= TOLERANCE:
        return {"difference": difference, "is_equal": True}
    reference = exact()
    error, eager_error = distance(actual, reference), distance(expected, reference)
    return {
        "difference": difference,
        "error": error,
        "eager_error": eager_error,
        "is_equal": error <= REFERENCE_FACTOR * eager_error,
    }


def in_float64(model: Any, x: Any) -> tuple[Any, Any]:
    """Return a copy of a model with weights of float64, and its input."""
    wide = copy.deepcopy(model).double()
    return wide, x.double() if x.is_floating_point() else x


def warm_up(compiler: Any) -> None:
    """Compile a function of one operator, so that a compiler and its modules are loaded."""
    import torch

    with torch.no_grad():
        torch.compile(lambda x: x + 1, backend=compiler)(torch.ones(3))
    torch._dynamo.reset()


def intensity(model: Any, x: Any) -> float:
    """Return the operations of convolutions and products by the bytes that operators move."""
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils.flop_counter import FlopCounterMode

    class Bytes(TorchDispatchMode):  # type: ignore[misc]  # PyTorch's classes have no types here
        """Counts the bytes that operators read and write; views move none."""

        total = 0

        def __torch_dispatch__(
            self, function: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            """Run an operator, and add the bytes of its operands and results."""
            results = function(*args, **(kwargs or {}))
            if not function.is_view:
                self.total += sum(t.numel() * t.element_size() for t in tensors((args, results)))
            return results

    with torch.no_grad(), FlopCounterMode(display=False) as operations, Bytes() as moved:
        model(x)
    return float(operations.get_total_flops() / moved.total)


def measure_inference(name: str) -> dict[str, Any]:
    """Compile a model for inference with empty caches, and compare its results."""
    import torch

    from passkit.frontends.torch import passkit_backend
    from passkit.frontends.torch.reports import recording

    model, x = model_and_input(name)
    row: dict[str, Any] = {"intensity": intensity(model, x)}
    warm_up(passkit_backend)
    with torch.no_grad():
        expected = tensors(model(x))
        compiled = torch.compile(model, backend=passkit_backend)
        begin = time.perf_counter()
        with recording() as records:
            actual = tensors(compiled(x))
        row["first_call_seconds"] = time.perf_counter() - begin

        def exact() -> list[Any]:
            wide, wide_x = in_float64(model, x)
            return tensors(wide(wide_x))

        row |= compare(actual, expected, exact)
    return row | counts(records)


def counts(records: Sequence[Any]) -> dict[str, Any]:
    """Return the numbers of graphs, operators, kernels and library calls of recorded graphs."""
    stats = [r.program.executable.stats for r in records if r.program and r.program.executable]
    return {
        "graphs": len(records),
        "operators": sum(r.nodes for r in records),
        "by_pytorch": sum(r.nodes if r.whole else len(r.externs) for r in records),
        "pytorch_functions": sorted({f.function for r in records for f in r.externs}),
        "kernels": sum(s["kernels"] for s in stats),
        "distinct_kernels": sum(s["distinct_kernels"] for s in stats),
        "library_calls": sum(s["library_calls"] for s in stats),
    }


def measure_speed(name: str, seconds: float) -> dict[str, Any]:
    """Measure the first call of a second process, Inductor's, and calls in alternating rounds."""
    import torch

    from passkit.frontends.torch import passkit_backend

    model, x = model_and_input(name)
    row: dict[str, Any] = {}
    functions: dict[str, Callable[[], Any]] = {"eager": lambda: model(x)}
    with torch.no_grad():
        for way, compiler in (("passkit", passkit_backend), ("inductor", "inductor")):
            warm_up(compiler)
            compiled = torch.compile(model, backend=compiler)
            begin = time.perf_counter()
            compiled(x)
            row[f"{way}_first_call_seconds"] = time.perf_counter() - begin
            # A reset would drop the compiled code, and a model has only one cache of it: the next
            # compiler sees a copy.
            functions[way] = lambda compiled=compiled: compiled(x)
            if way == "passkit":
                row["second_process_seconds"] = row.pop("passkit_first_call_seconds")
                model = copy.deepcopy(model)
        row["milliseconds"] = milliseconds(functions, seconds)
    return row


def milliseconds(functions: dict[str, Callable[[], Any]], seconds: float) -> dict[str, float]:
    """Return the median milliseconds of calls of some functions, in rounds that alternate.

    A round calls each function twice and times the second call. During the first one, OpenMP's
    threads of the function before still spin for work, and caches hold the arrays of that one.
    """
    times: dict[str, list[float]] = {name: [] for name in functions}
    for function in functions.values():
        function()
    order = list(functions.items())
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(times["eager"]) < 7:
        for name, function in order:
            function()
            begin = time.perf_counter()
            function()
            times[name].append(time.perf_counter() - begin)
        order.reverse()
    return {name: median(values) * 1e3 for name, values in times.items()}


def measure_training(name: str) -> dict[str, Any]:
    """Compare the weights after a step of SGD and after one of Adam, from the same gradients."""
    import torch

    from passkit.frontends.torch import passkit_backend

    model, x = model_and_input(name)
    for module in model.modules():
        if isinstance(module, torch.nn.modules.batchnorm._BatchNorm):
            module.train()
    wide, wide_x = in_float64(model, x)
    own = copy.deepcopy(model)
    compiled = torch.compile(own, backend=passkit_backend)
    warm_up(passkit_backend)
    begin = time.perf_counter()
    loss_of(compiled(x)).backward()
    row: dict[str, Any] = {"training_seconds": time.perf_counter() - begin}
    loss_of(model(x)).backward()
    loss_of(wide(wide_x)).backward()
    trained = trained_parameters(own, model, wide)
    row["parameters"] = len(list(own.parameters()))
    row["compared_parameters"] = len(trained)
    for optimizer in ("SGD", "Adam"):
        after = [stepped(parameters, optimizer) for parameters in zip(*trained, strict=True)]
        error, eager_error = (norm_distance(a, after[2]) for a in after[:2])
        row[f"{optimizer}_difference"] = norm_distance(after[0], after[1])
        row[f"{optimizer}_error"], row[f"{optimizer}_eager_error"] = error, eager_error
        if is_near(row, optimizer):
            continue
        if "perturbed" not in row:
            row["perturbed"] = perturbed_errors(model, x, own, wide)
        row[f"{optimizer}_eager_error"] = max(eager_error, *row["perturbed"][optimizer])
        is_near(row, optimizer)
    buffers = [[b for b in m.buffers() if b.is_floating_point()] for m in (own, model)]
    row["buffers_difference"] = norm_distance(*buffers)
    return row


def is_near(row: dict[str, Any], optimizer: str) -> bool:
    """Set whether the step of an optimizer counts as equal, and return that."""
    error, eager_error = row[f"{optimizer}_error"], row[f"{optimizer}_eager_error"]
    is_equal = (
        row[f"{optimizer}_difference"] <= TOLERANCE
        or error <= REFERENCE_FACTOR * eager_error + TOLERANCE
    )
    row[f"{optimizer}_is_equal"] = is_equal
    return bool(is_equal)


def perturbed_errors(model: Any, x: Any, own: Any, wide: Any) -> dict[str, list[float]]:
    """Return errors of steps of eager PyTorch whose input differs in the last bits.

    Where two elements under a maximum differ by a rounding error, such a bit moves a gradient from
    one to the other. The errors are those of each optimizer's steps against float64.
    """
    import torch

    errors: dict[str, list[float]] = {"SGD": [], "Adam": []}
    generator = torch.Generator().manual_seed(0)
    for _ in range(PERTURBATIONS):
        signs = torch.randint(-1, 2, x.shape, generator=generator)
        near = x * (1 + signs * torch.finfo(x.dtype).eps) if x.is_floating_point() else x
        model.zero_grad()
        loss_of(model(near)).backward()
        trained = trained_parameters(own, model, wide)
        for optimizer, of_optimizer in errors.items():
            after = [stepped(parameters, optimizer) for parameters in zip(*trained, strict=True)]
            of_optimizer.append(norm_distance(after[1], after[2]))
    return errors


def loss_of(results: Any) -> Any:
    """Return the mean of squares of all results of floats."""
    return sum(x.square().mean() for x in tensors(results) if x.is_floating_point())


def trained_parameters(own: Any, model: Any, wide: Any) -> list[tuple[Any, Any, Any]]:
    """Return the parameters of three copies of a model whose gradients are more than noise.

    The gradient of a bias before a batch norm is 0 but for rounding, which Adam makes a whole step
    of. A gradient is noise if that of eager PyTorch is off by a tenth of the one in float64.
    """
    triples = []
    for a, b, c in zip(own.parameters(), model.parameters(), wide.parameters(), strict=True):
        assert (a.grad is None) == (b.grad is None)
        if b.grad is not None and norm_distance([b.grad], [c.grad]) < NOISE:
            triples.append((a, b, c))
    return triples


def stepped(trained: Sequence[Any], optimizer: str) -> list[Any]:
    """Return what a step of an optimizer adds to parameters, which stay as they are.

    The step is computed in float64, so that small changes of large weights are seen.
    """
    import torch

    copies = []
    for p in trained:
        own = p.detach().double().clone().requires_grad_()
        own.grad = p.grad.double()
        copies.append(own)
    getattr(torch.optim, optimizer)(copies, lr=1e-2).step()
    return [a.detach() - b.detach() for a, b in zip(copies, trained, strict=True)]


def measure_dynamic(name: str) -> dict[str, Any]:
    """Call a model at eight batch sizes, compare each, and count compilations."""
    import torch

    from passkit.frontends.torch import passkit_backend
    from passkit.frontends.torch.reports import recording

    model, x = model_and_input(name)
    warm_up(passkit_backend)
    row: dict[str, Any] = {"batches": {}}
    with torch.no_grad(), recording() as records:
        compiled = torch.compile(model, backend=passkit_backend)
        for batch in BATCHES:
            own = with_batch(x, batch)
            begin = time.perf_counter()
            actual = tensors(compiled(own))
            if batch == BATCHES[0]:
                row["dynamic_seconds"] = time.perf_counter() - begin
                row["dynamic_graphs"] = len(records)

            def exact(own: Any = own) -> list[Any]:
                wide, wide_x = in_float64(model, own)
                return tensors(wide(wide_x))

            row["batches"][batch] = compare(actual, tensors(model(own)), exact)
    row["recompiled_graphs"] = len(records) - row["dynamic_graphs"]
    if row["recompiled_graphs"]:
        row["recompiled_by_pytorch"] = recompiled_by_pytorch(name)
    row["dynamic_is_equal"] = all(b["is_equal"] for b in row["batches"].values())
    row["batches"] = {k: b["difference"] for k, b in row["batches"].items()}
    return row


def with_batch(x: Any, batch: int) -> Any:
    """Return an input of two images or sentences with another batch size, marked as dynamic."""
    import torch

    own = x.repeat(-(-batch // 2), *[1] * (x.dim() - 1))[:batch].contiguous()
    torch._dynamo.mark_dynamic(own, 0)
    return own


def recompiled_by_pytorch(name: str) -> int:
    """Return how many graphs a backend that runs them as they are gets after the first batch size.

    A model that stores something in itself at the first call, which a guard reads, has some.
    """
    import torch

    graphs = 0

    def count(module: Any, inputs: Sequence[Any]) -> Any:
        nonlocal graphs
        graphs += 1
        return module.forward

    torch._dynamo.reset()
    model, x = model_and_input(name)
    with torch.no_grad():
        compiled = torch.compile(model, backend=count)
        first = 0
        for batch in BATCHES:
            own = with_batch(x, batch)
            compiled(own)
            first = first or graphs
    return graphs - first


def in_process(name: str, part: str, cache: Path, seconds: float) -> dict[str, Any]:
    """Return what another process measures of a model, with caches in a folder."""
    folder = cache / name
    if part == "inference":
        shutil.rmtree(folder / "passkit", ignore_errors=True)
    (folder / "passkit").mkdir(mode=0o700, parents=True, exist_ok=True)
    environment = {
        **os.environ,
        "PASSKIT_CACHE_DIR": str(folder / "passkit"),
        "TORCHINDUCTOR_CACHE_DIR": str(folder / "inductor"),
        "PYTHONPATH": str(ROOT),
    }
    command = [sys.executable, __file__, "--one", name, "--parts", part]
    process = subprocess.run(
        [*command, "--seconds", str(seconds)],
        capture_output=True,
        text=True,
        env=environment,
        timeout=1800,
    )
    lines = process.stdout.strip().splitlines()
    if process.returncode or not lines:
        return {"error": process.stderr.strip()[-1500:] or "no output"}
    return dict(json.loads(lines[-1]))


def measure(name: str, part: str, seconds: float) -> dict[str, Any]:
    """Measure a part of a model in this process."""
    if part == "speed":
        return measure_speed(name, seconds)
    measures = {
        "inference": measure_inference,
        "training": measure_training,
        "dynamic": measure_dynamic,
    }
    return measures[part](name)


def is_right(part: str, measured: dict[str, Any]) -> bool:
    """Return whether all that a part compared is equal."""
    if "error" in measured and "is_equal" not in measured:
        return False
    return all(value for key, value in measured.items() if key.endswith("is_equal"))


def is_memory_bound(row: dict[str, Any]) -> bool:
    """Return whether a model counts as memory bound, see the module."""
    return bool(row["inference"]["intensity"] < BALANCE)


def speedup(row: dict[str, Any]) -> float:
    """Return how many times as fast as the better of eager PyTorch and Inductor a model is."""
    times = row["speed"]["milliseconds"]
    return float(min(times["eager"], times["inductor"]) / times["passkit"])


def table(rows: dict[str, dict[str, Any]]) -> str:
    """Return the rows as a table, with sums below."""
    from passkit.values.units import table as plain_table

    header = (
        "model",
        "op/byte",
        "equal",
        "passkit ops",
        "PyTorch",
        "kernels",
        "graphs",
        "cold s",
        "Inductor s",
        "second s",
        "ms",
        "eager ms",
        "Inductor ms",
        "speedup",
        "training",
        "batches",
    )
    lines = []
    for name in NAMES:
        row = rows.get(name, {})
        one = {part: row.get(part, {}) for part in PARTS}
        times = one["speed"].get("milliseconds", {})
        inference = one["inference"]
        shown = {part: verdict(part, one[part]) for part in PARTS}
        if "recompiled_graphs" in one["dynamic"]:
            shown["dynamic"] += f", {one['dynamic']['recompiled_graphs']} recompiled"
            if "recompiled_by_pytorch" in one["dynamic"]:
                shown["dynamic"] += f", {one['dynamic']['recompiled_by_pytorch']} by any backend"
        lines.append(
            (
                name,
                number(inference.get("intensity"), 1),
                shown["inference"],
                inference.get("operators", 0) - inference.get("by_pytorch", 0),
                inference.get("by_pytorch", ""),
                inference.get("kernels", ""),
                inference.get("graphs", ""),
                number(inference.get("first_call_seconds"), 1),
                number(one["speed"].get("inductor_first_call_seconds"), 1),
                number(one["speed"].get("second_process_seconds"), 1),
                number(times.get("passkit"), 2),
                number(times.get("eager"), 2),
                number(times.get("inductor"), 2),
                number(speedup(row), 2) if times else "",
                shown["training"],
                shown["dynamic"],
            )
        )
    return plain_table(header, [tuple(map(str, line)) for line in lines]) + "\n" + summary(rows)


def verdict(part: str, measured: dict[str, Any]) -> str:
    """Return whether a part was measured, and its results are equal."""
    if not measured:
        return ""
    return "yes" if is_right(part, measured) else "NO"


def number(value: float | None, digits: int) -> str:
    """Return a number with so many digits behind the point, "" for None."""
    return "" if value is None else f"{value:.{digits}f}"


def summary(rows: dict[str, dict[str, Any]]) -> str:
    """Return counts and geometric means over the rows."""
    lines = [
        f"{part}: {sum(is_right(part, r[part]) for r in rows.values() if part in r)} of "
        f"{sum(part in r for r in rows.values())} models right"
        for part in PARTS
    ]
    timed = [r for r in rows.values() if "milliseconds" in r.get("speed", {}) and "inference" in r]
    bound = [r for r in timed if is_memory_bound(r)]
    for text, chosen in (
        (f"memory-bound models (below {BALANCE} operations a byte)", bound),
        ("the others", [r for r in timed if not is_memory_bound(r)]),
    ):
        if chosen:
            mean = geometric_mean(speedup(r) for r in chosen)
            lines.append(
                f"{len(chosen)} {text}: {mean:.2f} times as fast as the better of eager PyTorch "
                f"and Inductor (geometric mean)"
            )
    ratios = [
        r["inference"]["first_call_seconds"] / r["speed"]["inductor_first_call_seconds"]
        for r in timed
        if "first_call_seconds" in r["inference"]
    ]
    if ratios:
        lines.append(
            f"first call with empty caches: {geometric_mean(ratios):.2f} of Inductor's seconds "
            f"(geometric mean), at most {max(ratios):.2f}"
        )
    return "\n".join(lines)


def stored(results: Path) -> dict[str, dict[str, Any]]:
    """Return the rows of a file of results, none if it does not exist."""
    return dict(json.loads(results.read_text())) if results.exists() else {}


def main() -> int:
    """Measure the models and parts that the command line names, or print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("--only", default="", help="models whose names contain one of these")
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--again", action="store_true", help="measure again what is there")
    parser.add_argument("--wrong", action="store_true", help="only parts that are not right")
    parser.add_argument("--seconds", type=float, default=6, help="seconds of alternating rounds")
    parser.add_argument("--limit", type=float, default=math.inf, help="seconds of this run")
    parser.add_argument("--cache", type=Path, default=Path("/tmp/passkit-torch-models"))
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    own = parser.parse_args()
    if own.one:
        print(json.dumps(measure(own.one, own.parts, own.seconds)))
        return 0
    rows = stored(own.results)
    if own.table:
        print(table(rows))
        return 0
    begin = time.monotonic()
    are_right = True
    for name in NAMES:
        if not any(part in name for part in own.only.split(",")):
            continue
        for part in own.parts.split(","):
            old = rows.get(name, {}).get(part)
            if old is not None and not own.again and not (own.wrong and not is_right(part, old)):
                continue
            if time.monotonic() - begin > own.limit:
                print("the time of this run is over")
                return 2
            measured = in_process(name, part, own.cache, own.seconds)
            if part == "speed" and old and "inductor_first_call_seconds" in old:
                # Only the first run compiled with an empty cache of Inductor.
                kept = old["inductor_first_call_seconds"]
                measured["inductor_first_call_seconds"] = kept
            are_right &= is_right(part, measured)
            rows = stored(own.results)  # other runs may have written meanwhile
            rows.setdefault(name, {})[part] = measured
            own.results.write_text(json.dumps(rows, indent=1) + "\n")
            print(name, part, json.dumps(measured), flush=True)
    return int(not are_right)


if __name__ == "__main__":
    sys.exit(main())
