"""passkit turns a tensor program into a few fast kernels, by passes that anyone can add to.

Public names are imported when they are first used, so that ``import passkit`` is cheap.
"""

from __future__ import annotations

import os.path
from importlib import import_module

TYPE_CHECKING = False  # known to type checkers; importing typing costs more than all of this
if TYPE_CHECKING:
    from typing import Any

__version__ = "0.1.0"

# In a checkout, ops/ and frontends/ stand beside this folder; installed, they are inside it.
_here = os.path.dirname(os.path.abspath(__file__))
_beside = os.path.dirname(_here)
if not os.path.isdir(os.path.join(_here, "ops")) and os.path.isfile(
    os.path.join(_beside, "ops", "elementwise.py")
):
    __path__.append(_beside)

# module: the public names that it defines
_MODULES = {
    "passkit.errors": (
        "PasskitError ArgumentError RegistryError RuleError GraphError ShapeError DTypeError "
        "ConcretizationError ParseError PassError ScheduleError CodeGenError CompilerError "
        "CacheError BlocksError FeedError SettingError ModelError CapacityError "
        "MissingDependencyError DeviceError PluginError InterpretedWarning PluginWarning"
    ),
    "passkit.values.plugins": "load_plugins",
    "passkit.values.size": "Size",
    "passkit.values.trees": "tree_map",
    "passkit.graph.op": "Op OpPattern REQUIRED register_op op_group get_op list_ops",
    "passkit.graph.registry": "register_attr",
    "passkit.graph.node": "Entry Node var state constant",
    "passkit.graph.graph": "Graph Annotation",
    "passkit.graph.adjoint": "gradients",
    "passkit.serial.parser": "parse",
    "passkit.serial.text": "to_text",
    "passkit.serial.json": "to_json from_json",
    "passkit.analysis.group": "Group Decision",
    "passkit.graph.kernel": "Kernel",
    "passkit.schedule.schedule": "Schedule",
    "passkit.fusion.strategy": "register_fusion",
    "passkit.target.registry": "register_target",
    "passkit.target.target": "Target",
    "passkit.schedule.rules": "register_schedule_rule",
    "passkit.runtime.interpret": "interpret",
    "passkit.runtime.state": "State",
    "passkit.dialects.base": "Dialect register_dialect",
    "passkit.passes.base": "Pass register_pass",
    "passkit.passes.context": "PassContext",
    "passkit.passes.apply": "ApplyPasses",
    "passkit.program.executable": "Executable",
    "passkit.program.compiler": "compile",
    "passkit.program.inspection": "explain templates",
    "passkit.program.saved": "load",
    "passkit.tuning.tuner": "tune",
    "passkit.program.tracing": "jit",
    "passkit.frontends.xp.transforms.differentiation": "grad value_and_grad vjp jvp",
    "passkit.frontends.xp.transforms.vectorization": "vmap",
}
_NAMES = {name: module for module, names in _MODULES.items() for name in names.split()}
_SUBMODULES = frozenset({"ast", "frontends", "ops", "viz", "xp"})
_VALUES = frozenset({"passkit.errors", "passkit.values.size"})  # these need no operators
# nor these groups
_MAKERS = frozenset({"passkit.graph.node", "passkit.graph.graph", "passkit.program.compiler"})

__all__ = sorted([*_NAMES, *_SUBMODULES])  # noqa: PLE0604, RUF100


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        return import_module(f"passkit.{name}")
    module = _NAMES.get(name)
    if module is None:
        raise AttributeError(f"module 'passkit' has no attribute {name!r}")
    if module not in _VALUES:
        import_module("passkit.ops")  # code that builds or reads graphs expects the operators
        if module not in _MAKERS:
            # code that lists or parses operators expects the operator of fused groups, too
            import_module("passkit.analysis.group")
    value = globals()[name] = getattr(import_module(module), name)
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
