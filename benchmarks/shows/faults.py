"""Demands from faults that users met: for each, the tests or the measurement that would show it."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable

import shows
from shows import RESULTS, ROOT, Demand, Figure, ended, tests
from shows.operators import faster

FRONTENDS = "tests/frontends"
GRAPHDEF = f"{FRONTENDS}/tf_graphdef"
TINYFLOW = f"{FRONTENDS}/tinyflow"
WITHOUT_TORCH = "passkit,jax"
"""The competitors on unrolled loops; torch.compile would take minutes to compile them."""


def passing(*paths: str, only: str = "") -> Callable[[], Figure]:
    """Return a measurement that runs tests; it is met when all of them pass."""
    return lambda: tests(*paths, only=only)


def inference() -> Figure:
    """Compare ONNX Runtime with passkit on each network of `inference.py`; all at least 1."""
    report = RESULTS / "inference.json"
    report.unlink(missing_ok=True)
    command = [shows.peers_python, str(ROOT / "benchmarks" / "inference.py")]
    process = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    if not report.exists():
        return Figure((process.stderr.strip().splitlines() or ["no report"])[-1], False)
    rows = json.loads(report.read_text())["rows"]
    figure = ", ".join(f"{r['name']} {r['speedup']:.2f}" for r in rows)
    return Figure(figure, all(r["speedup"] >= 1 for r in rows), rows)


DEMANDS = [
    Demand(
        "1. casts that lose bits are kept",
        passing(
            "tests/ops/test_elementwise.py::test_simplified_casts_keep_every_bit",
            "tests/ops/test_elementwise.py::test_only_exact_rewrites_are_applied",
            "tests/values/test_dtype.py::test_lossless_conversions_keep_every_value",
        ),
    ),
    Demand(
        "2. 16-bit composites and gradients compute in float32 and round once",
        passing("tests/ops/test_narrow.py", "tests/graph/test_narrow.py"),
    ),
    Demand(
        "3. pow means C's pow, interpreted and compiled, for constants and tensors",
        passing(
            "tests/ops/test_elementwise.py::test_square_roots_by_power",
            "tests/ops/test_special_functions.py::test_gamma_functions_at_extremes",
            "tests/ops/test_special_functions.py::test_a_fused_product_and_sum_is_rounded_once",
        ),
    ),
    Demand(
        "4. compiled networks are at most twice as far from float64 as interpreted ones",
        passing(
            f"{GRAPHDEF}/test_networks.py::test_compiled",
            "tests/runtime/native/test_convolution.py::test_signal_filters_round_once",
        ),
    ),
    Demand(
        "5. signs of zero follow NumPy or are documented; TensorFlow's ArgMax and shifts",
        passing(
            "tests/test_every_dtype.py::test_zeros_of_both_signs",
            f"{GRAPHDEF}/test_op_importers.py::test_argmax_ignores_nan_as_tensorflow_does",
            f"{GRAPHDEF}/test_op_importers.py::test_shift_counts_are_clamped_as_in_tensorflow",
        ),
    ),
    Demand(
        "6. a SavedModel whose call assigns a variable keeps counting",
        passing(
            f"{GRAPHDEF}/test_saved_model.py::test_variables_keep_what_a_call_leaves_in_them",
            f"{GRAPHDEF}/test_saved_model.py::test_compiled_programs_keep_state_and_share_it",
        ),
    ),
    Demand(
        "7. ApplyPasses alone gives kernels for composites; interpreted steps are counted",
        passing("tests/fusion/test_fusion.py", "tests/program/test_host_steps.py"),
    ),
    Demand(
        "8. passes= and register_fusion",
        passing("tests/passes/test_pipeline.py", "tests/fusion/test_strategies.py"),
    ),
    Demand(
        "9. plug-ins by entry points and --plugin",
        passing("tests/values/test_plugins.py"),
    ),
    Demand(
        "10. helpful refusals where people extend it; the guide to fusibility and schedules",
        passing(
            "tests/graph/test_registry.py",
            "tests/graph/test_attribute_calls.py",
            "tests/ast/test_foreign.py",
            "tests/analysis/test_groups.py",
            "tests/passes/test_apply.py",
            "tests/passes/test_base.py",
            "tests/test_guides.py::test_code_prints_what_is_below_it[fusibility-and-schedules]",
        ),
    ),
    Demand(
        "11. type checkers find planted mistakes; the stubs are up to date",
        passing("tests/test_types.py"),
    ),
    Demand(
        "12. help and signature of every operator",
        passing("tests/graph/test_describe.py"),
    ),
    Demand(
        "13. misuses of every public function end in passkit's errors",
        passing("tests/test_misuses.py"),
    ),
    Demand(
        "14. graphs, entries, executables and states can be pickled and copied",
        passing("tests/graph/test_copying.py"),
    ),
    Demand(
        "15. the command line has no tracebacks; Ctrl-C ends with 130",
        passing(
            "tests/cli/test_cli.py",
            only="cannot_be_written or full_disk or interruption or version",
        ),
    ),
    Demand(
        "16. standard streams may be missing or closed",
        passing("tests/values/test_terminal.py"),
    ),
    Demand(
        "17. tinyflow: placeholders without shapes",
        passing(f"{TINYFLOW}/test_tensorflow_programs.py", f"{TINYFLOW}/test_tinyflow_programs.py"),
    ),
    Demand(
        "18. tinyflow: losses, control flow, cells, layers, metrics, images",
        passing(f"{TINYFLOW}/test_control_flow.py", f"{TINYFLOW}/test_layers.py"),
    ),
    Demand(
        "19. published SavedModels: cut graphs, Snappy, draws, unneeded placeholders",
        passing(
            f"{GRAPHDEF}/test_saved_model.py",
            f"{GRAPHDEF}/test_snappy.py",
            f"{GRAPHDEF}/test_bundle.py",
        ),
    ),
    Demand(
        "20. files that are no GraphDef are named",
        passing(f"{GRAPHDEF}/test_file_formats.py"),
    ),
    Demand(
        "21. warm starts of networks with folded constants; checksums by a library",
        passing(
            "tests/program/test_plans.py::test_constants_that_were_folded_are_computed_again",
            "tests/program/test_plans.py::test_expressions_of_folded_constants_reach_the_source",
            f"{GRAPHDEF}/test_crc32c.py",
        ),
    ),
    Demand(
        "22. convolutions: every way of computing them, epilogues, single rows",
        passing(
            "tests/runtime/native/test_convolution.py",
            "tests/runtime/native/test_blas.py",
            "tests/ops/test_window_padding.py",
        ),
    ),
    Demand(
        "22. ONNX Runtime / passkit >= 1.0 at batch 1: five published networks",
        inference,
        slow=True,
    ),
    Demand(
        "23. a refused saved program leaves no machine code",
        passing("tests/program/test_saved.py"),
    ),
    Demand(
        "24. the cache checks subfolders and files, and waits for no FIFO",
        passing("tests/runtime/native/test_cache.py"),
    ),
    Demand(
        "25. files that were tampered with",
        passing(
            "tests/program/test_saved.py",
            "tests/runtime/test_state.py",
            "tests/serial/test_json.py",
            f"{GRAPHDEF}/test_bundle.py",
        ),
    ),
    Demand(
        "25. 2,000 mutants of each kind of file end in passkit's errors, in time and memory",
        lambda: ended(["benchmarks/fuzz_models.py"]),
        slow=True,
    ),
    Demand(
        "26. full or limited temporary folders; killed compilers leave nothing",
        passing("tests/runtime/native/test_build.py"),
    ),
    Demand(
        "26. 100 kills, 50 processes, full disks: right results or passkit's errors",
        lambda: ended(["benchmarks/fault_injection.py"]),
        slow=True,
    ),
    Demand(
        "27. machine code is unloaded with its last program",
        passing("tests/runtime/native/test_shared_objects.py"),
    ),
    Demand(
        "28. compile time is linear in the number of operands",
        passing(
            "tests/ops/test_concat_kernel.py",
            "tests/planner/test_packs.py::test_many_readers_of_one_array",
        ),
    ),
    Demand(
        "29. reductions over all pairs store no array of pairs",
        passing("tests/fusion/test_recompute.py"),
    ),
    Demand(
        "30. README and its chart",
        passing("tests/test_readme.py", "tests/benchmarks/test_speed_chart.py"),
    ),
    Demand(
        "31. the command line shows and explains",
        passing("tests/cli/test_show.py", "tests/cli/test_cli.py"),
    ),
    Demand(
        "32. report pages, plan pictures and notebooks can be read",
        passing(
            "tests/test_viz.py",
            "tests/test_pictures.py",
            "tests/reporting/test_report_page.py",
            "tests/reporting/test_notebook.py",
            "tests/runtime/test_profile.py::test_feeds_by_keyword",
        ),
    ),
    Demand(
        "33. the site has every page and link",
        passing("tests/test_site.py"),
    ),
    Demand(
        "34. metadata of the wheel",
        passing("tests/test_packaging.py"),
    ),
    Demand(
        "35. short folds inside long ones, unrolled loops, exponentials by sign",
        passing(
            "tests/analysis/test_unrolled.py",
            "tests/transforms/test_signs.py",
            "tests/fusion/test_fusion.py::test_light_operators_are_many_in_a_group",
            "tests/dialects/test_prelude.py::test_columns_of_short_rows",
        ),
    ),
    Demand(
        "35. best peer / passkit >= 1.5: sums over pairs of points",
        lambda: faster("pairs", "pair_sum pair_gaussian", 1.5),
        slow=True,
    ),
    Demand(
        "35. jax.jit / passkit >= 1.1: divisions, an erf of one's own",
        lambda: faster("unrolled", "newton gelu_custom_erf logistic", 1.1, {"jax"}, WITHOUT_TORCH),
        slow=True,
    ),
    Demand(
        "35. jax.jit / passkit >= 0.95: unrolled loops of 8 to 100 rounds",
        lambda: faster("unrolled", "escape", 0.95, {"jax"}, WITHOUT_TORCH),
        slow=True,
    ),
]
"""Demands by the numbers of the first users' list of faults."""
