"""The public names of passkit. Written by docs/stubs.py."""

from passkit.errors import (
    PasskitError as PasskitError,
    ArgumentError as ArgumentError,
    RegistryError as RegistryError,
    RuleError as RuleError,
    GraphError as GraphError,
    ShapeError as ShapeError,
    DTypeError as DTypeError,
    ConcretizationError as ConcretizationError,
    ParseError as ParseError,
    PassError as PassError,
    ScheduleError as ScheduleError,
    CodeGenError as CodeGenError,
    CompilerError as CompilerError,
    CacheError as CacheError,
    BlocksError as BlocksError,
    FeedError as FeedError,
    SettingError as SettingError,
    ModelError as ModelError,
    CapacityError as CapacityError,
    MissingDependencyError as MissingDependencyError,
    DeviceError as DeviceError,
    PluginError as PluginError,
    InterpretedWarning as InterpretedWarning,
    PluginWarning as PluginWarning,
)
from passkit.values.plugins import (
    load_plugins as load_plugins,
)
from passkit.values.size import (
    Size as Size,
)
from passkit.values.trees import (
    tree_map as tree_map,
)
from passkit.graph.op import (
    Op as Op,
    OpPattern as OpPattern,
    REQUIRED as REQUIRED,
    register_op as register_op,
    op_group as op_group,
    get_op as get_op,
    list_ops as list_ops,
)
from passkit.graph.registry import (
    register_attr as register_attr,
)
from passkit.graph.node import (
    Entry as Entry,
    Node as Node,
    var as var,
    state as state,
    constant as constant,
)
from passkit.graph.graph import (
    Graph as Graph,
    Annotation as Annotation,
)
from passkit.graph.adjoint import (
    gradients as gradients,
)
from passkit.serial.parser import (
    parse as parse,
)
from passkit.serial.text import (
    to_text as to_text,
)
from passkit.serial.json import (
    to_json as to_json,
    from_json as from_json,
)
from passkit.analysis.group import (
    Group as Group,
    Decision as Decision,
)
from passkit.graph.kernel import (
    Kernel as Kernel,
)
from passkit.schedule.schedule import (
    Schedule as Schedule,
)
from passkit.fusion.strategy import (
    register_fusion as register_fusion,
)
from passkit.target.registry import (
    register_target as register_target,
)
from passkit.target.target import (
    Target as Target,
)
from passkit.schedule.rules import (
    register_schedule_rule as register_schedule_rule,
)
from passkit.runtime.interpret import (
    interpret as interpret,
)
from passkit.runtime.state import (
    State as State,
)
from passkit.dialects.base import (
    Dialect as Dialect,
    register_dialect as register_dialect,
)
from passkit.passes.base import (
    Pass as Pass,
    register_pass as register_pass,
)
from passkit.passes.context import (
    PassContext as PassContext,
)
from passkit.passes.apply import (
    ApplyPasses as ApplyPasses,
)
from passkit.program.executable import (
    Executable as Executable,
)
from passkit.program.compiler import (
    compile as compile,
)
from passkit.program.inspection import (
    explain as explain,
    templates as templates,
)
from passkit.program.saved import (
    load as load,
)
from passkit.tuning.tuner import (
    tune as tune,
)
from passkit.program.tracing import (
    jit as jit,
)
from passkit.frontends.xp.transforms.differentiation import (
    grad as grad,
    value_and_grad as value_and_grad,
    vjp as vjp,
    jvp as jvp,
)
from passkit.frontends.xp.transforms.vectorization import (
    vmap as vmap,
)
from passkit import ast as ast
from passkit import frontends as frontends
from passkit import ops as ops
from passkit import viz as viz
from passkit import xp as xp

__version__: str
__all__ = [
    "Annotation",
    "ApplyPasses",
    "ArgumentError",
    "BlocksError",
    "CacheError",
    "CapacityError",
    "CodeGenError",
    "CompilerError",
    "ConcretizationError",
    "DTypeError",
    "Decision",
    "DeviceError",
    "Dialect",
    "Entry",
    "Executable",
    "FeedError",
    "Graph",
    "GraphError",
    "Group",
    "InterpretedWarning",
    "Kernel",
    "MissingDependencyError",
    "ModelError",
    "Node",
    "Op",
    "OpPattern",
    "ParseError",
    "Pass",
    "PassContext",
    "PassError",
    "PasskitError",
    "PluginError",
    "PluginWarning",
    "REQUIRED",
    "RegistryError",
    "RuleError",
    "Schedule",
    "ScheduleError",
    "SettingError",
    "ShapeError",
    "Size",
    "State",
    "Target",
    "ast",
    "compile",
    "constant",
    "explain",
    "from_json",
    "frontends",
    "get_op",
    "grad",
    "gradients",
    "interpret",
    "jit",
    "jvp",
    "list_ops",
    "load",
    "load_plugins",
    "op_group",
    "ops",
    "parse",
    "register_attr",
    "register_dialect",
    "register_fusion",
    "register_op",
    "register_pass",
    "register_schedule_rule",
    "register_target",
    "state",
    "templates",
    "to_json",
    "to_text",
    "tree_map",
    "tune",
    "value_and_grad",
    "var",
    "viz",
    "vjp",
    "vmap",
    "xp",
]
