"""Generate the site's reference pages: the Python API, and one page for each operator module."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import Any

import passkit as pk
import passkit.ops
from passkit.cli.operator_page import operators_by_module
from passkit.graph.op import Op

API = {
    "Graphs": "var state constant Graph Entry Node Size gradients interpret State",
    "Compiling and running": "compile jit Executable load PassContext",
    "Functions of arrays": "grad value_and_grad vjp jvp vmap tree_map",
    "Passes": "ApplyPasses register_pass Pass Annotation",
    "Operators": "register_op get_op list_ops op_group Op OpPattern REQUIRED",
    "Fusion plans": "explain templates tune Group",
    "Text and JSON": "parse to_text to_json from_json",
    "Targets": "Dialect register_dialect",
}
"""Title of a section of the API page: the public names in it. Errors have a section of their own,
and names that are not listed come under "More"."""


ARRAY_API = """# The array API

`from passkit import xp` has the functions of the
[Python array API standard](https://data-apis.org/array-api/2024.12/), and those that say when
operations run. The guide is
[NumPy code that fuses itself](../guides/numpy-code-that-fuses-itself.md)."""
"""The beginning of the page of `passkit.xp`."""


def write(folder: Path) -> None:
    """Write all reference pages into a folder, which is created.

    A page that would not change is left alone, so that Sphinx need not read it again.
    """
    pages = {
        "api.md": api_page(),
        "xp.md": array_api_page(),
        "operators/index.md": operator_index(),
    }
    for module, operators in operators_by_module().items():
        pages[f"operators/{module}.md"] = operator_page(module, operators)
    for name, text in pages.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
    for stale in set(folder.rglob("*.md")) - {folder / name for name in pages}:
        stale.unlink()


def api_page() -> str:
    """Return the page of public names, documented by Sphinx's autodoc."""
    public = [name for name in pk.__all__ if not inspect.ismodule(getattr(pk, name))]
    errors = [name for name in public if _is_error(getattr(pk, name))]
    listed = {name for names in API.values() for name in names.split()}
    sections = {title: names.split() for title, names in API.items()}
    more = [name for name in public if name not in listed and name not in errors]
    if more:
        sections["More"] = more
    sections["Errors"] = errors
    parts = ["# Python API\n\nAll names are imported from `passkit`, here as `pk`."]
    for title, names in sections.items():
        parts.append(f"## {title}")
        parts += [_autodoc(name) for name in names if name in public]
    return "\n\n".join(parts) + "\n"


def array_api_page() -> str:
    """Return the page of `passkit.xp`: its functions by the modules that define them."""
    parts = [ARRAY_API]
    for prefix, namespace in _array_namespaces().items():
        by_module: dict[str, list[str]] = {}
        for name in getattr(namespace, "__all__", sorted(vars(namespace))):
            value = getattr(namespace, name)
            module = getattr(value, "__module__", None) or ""
            is_own = namespace is pk.xp or module.startswith(namespace.__name__)
            if is_own and module.startswith("passkit.") and not name.startswith("_"):
                by_module.setdefault(module, []).append(name)
        for module in sorted(by_module):
            title = (import_module(module).__doc__ or "").strip().partition("\n")[0]
            parts.append(f"## {title.rstrip('.')}")
            for name in by_module[module]:
                value = getattr(namespace, name)
                kind = "autoclass" if isinstance(value, type) else "autofunction"
                # A tuple's docstring describes its fields.
                has_members = kind == "autoclass" and not issubclass(value, tuple)
                members = "\n   :members:" if has_members else ""
                parts.append(f"```{{eval-rst}}\n.. {kind}:: {prefix}.{name}{members}\n```")
    return "\n\n".join(parts) + "\n"


def _array_namespaces() -> dict[str, Any]:
    """Return the namespaces of `passkit.xp` by their names."""
    extensions = ("fft", "linalg", "nn", "random", "special", "stats")
    names = {f"passkit.xp.{name}": getattr(pk.xp, name) for name in extensions}
    return {"passkit.xp": pk.xp, **names}


def _is_error(value: Any) -> bool:
    return isinstance(value, type) and issubclass(value, Exception)


def _autodoc(name: str) -> str:
    """Return the directive that documents a public name."""
    value = getattr(pk, name)
    if not callable(value):
        return f"```{{eval-rst}}\n.. autodata:: passkit.{name}\n   :no-value:\n```"
    kind = "autoclass" if isinstance(value, type) else "autofunction"
    members = "\n   :members:" if kind == "autoclass" and not _is_error(value) else ""
    return f"```{{eval-rst}}\n.. {kind}:: passkit.{name}{members}\n```"


def operator_index() -> str:
    """Return the page that lists the operator modules and their operators."""
    rows = [
        f"| [{module}]({module}.md) | {_first_line(module)} | {_links(module, operators)} |"
        for module, operators in operators_by_module().items()
    ]
    modules = "\n".join(operators_by_module())
    return "\n".join(
        [
            "# Operators by module",
            "",
            "`pk.ops.NAME(…)` calls an operator. The [table of dtypes](../../operators.md) says",
            "how each runs in every dtype.",
            "",
            "| module | contents | operators |",
            "|---|---|---|",
            *rows,
            "",
            f"```{{toctree}}\n:hidden:\n\n{modules}\n```",
            "",
        ]
    )


def _links(module: str, operators: Iterable[Op]) -> str:
    """Return links to the operators of a module, separated by commas."""
    return ", ".join(f"[{op.name}]({module}.md#{_anchor(op.name)})" for op in operators)


def _anchor(name: str) -> str:
    return "op-" + name.lower().replace("_", "-")


def _first_line(module: str) -> str:
    """Return the first line of an operator module's docstring."""
    return (import_module(f"passkit.ops.{module}").__doc__ or "").strip().partition("\n")[0]


def operator_page(module: str, operators: Iterable[Op]) -> str:
    """Return the page of one module: each operator with its signature and documentation."""
    parts = [f"# {module}", _first_line(module)]
    for op in operators:
        parts += [f"({_anchor(op.name)})=\n## {op.name}", *_operator(op)]
    return "\n\n".join(parts) + "\n"


def _operator(op: Op) -> list[str]:
    """Return the paragraphs about one operator."""
    call = getattr(pk.ops, op.name)
    documentation = inspect.getdoc(call) or op.doc
    return [
        f"```python\npk.ops.{op.name}{inspect.signature(call)}\n```",
        f"```text\n{documentation}\n```" if "\n" in documentation else documentation,
    ]
