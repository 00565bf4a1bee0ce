"""The errors and warnings of passkit.

Each message states where the problem is, what was needed, what was found instead, and a way out.
"""

from collections.abc import Iterable


class PasskitError(Exception):
    """The base class of all errors that passkit raises deliberately."""


class ArgumentError(PasskitError, TypeError):
    """An argument of a public function has a type that the function does not accept."""


class RegistryError(PasskitError, LookupError):
    """An operator, attribute, pass or dialect is unknown, or was registered twice."""


class RuleError(PasskitError, TypeError):
    """An attribute function has other parameters or another result than its attribute declares.

    Attribute functions, or rules, are the values of attributes such as FCodeGen, FInferShape and
    FGradient.
    """


class GraphError(PasskitError, ValueError):
    """A graph is malformed: a cycle, a foreign entry, a wrong number of inputs."""


class ShapeError(PasskitError, ValueError):
    """Shapes do not fit together, or are not known where they must be."""


class AxisError(ShapeError, IndexError):
    """An axis is out of range for the number of axes of an array."""


class SubscriptError(PasskitError, IndexError):
    """An index in ``x[…]`` is out of range, or of a kind or number that the array does not take."""


class ConcretizationError(PasskitError, TypeError):
    """A function that is traced needs the elements of an array that depends on its arguments."""


class DTypeError(PasskitError, TypeError):
    """Element types do not fit together, or an operator does not accept one."""


class OperandError(ArgumentError, DTypeError):
    """An operand is an int that does not fit, or an array without a dtype of passkit."""


class ParseError(PasskitError, ValueError):
    """Text or JSON does not describe a graph; the message contains the line or the key."""


class PassError(PasskitError, RuntimeError):
    """A pass broke its contract, or an annotation that it depends on is missing."""


class ScheduleError(PasskitError, ValueError):
    """A schedule does not fit the group of nodes that it is applied to."""


class CodeGenError(PasskitError, ValueError):
    """A group cannot be lowered to a kernel, or a dialect cannot print it."""


class CompilerError(PasskitError, RuntimeError):
    """The native compiler refused a kernel; the message has its output and the numbered source."""


class KernelRefusedError(CompilerError):
    """A device's compiler refused the kernel of a group.

    Attributes:
        key: the digest of the kernel.
        group: the name of the group, where it is known.
        nodes: the names of the nodes in the group, where they are known.
    """

    def __init__(self, message: str, key: str) -> None:
        super().__init__(message)
        self.key = key
        self.group = ""
        self.nodes: tuple[str, ...] = ()


class DeviceError(PasskitError, RuntimeError):
    """A device is missing, cannot do what a kernel needs, or has no memory left."""


class CapacityError(PasskitError, MemoryError):
    """An array needs more memory than the machine can allocate."""


class CacheError(PasskitError, OSError):
    """The cache folder is not safe to read, or cannot be written."""


class BlocksError(PasskitError, RuntimeError):
    """A kernel, run block by block, depends on the order of its threads or leaves its buffers."""


class CheckError(PasskitError, ValueError):
    """An element of an array is not as `passkit.xp.check` says it must be."""


class FeedError(PasskitError, ValueError):
    """An input of a call is missing, unknown, or of the wrong rank, size or dtype."""


class SettingError(PasskitError, ValueError):
    """An option or environment variable has an invalid value."""


class ModelError(PasskitError, ValueError):
    """A model file is damaged, malicious, or uses something that passkit does not support."""


class MissingDependencyError(PasskitError, ImportError):
    """An optional package or program is needed and not installed; the message names it."""


class PluginError(PasskitError, ImportError):
    """A plug-in cannot be imported, or is neither a module nor a function."""


class PluginWarning(UserWarning):
    """A plug-in of an installed package failed when it was loaded."""


class InterpretedWarning(UserWarning):
    """A compiled program evaluates an operator in NumPy, because no kernel computes it."""


def nearest(name: str, candidates: Iterable[str]) -> str:
    """Return a hint with the known name closest to ``name``, or with the first known names.

    Names of ``candidates`` longer than 80 characters are cut in both; only the first 200 characters
    of ``name`` are compared. Where none is close, the hint lists the first 20 in alphabetical
    order, "known: " alone if there are none.

    >>> nearest("Fuson", ["Fusion", "CodeGen"])
    "did you mean 'Fusion'?"
    >>> nearest("zzz", ["b", "a"])
    'known: a, b'
    """
    import difflib  # only errors need it

    names = sorted(c if len(c) <= 80 else c[:77] + "..." for c in candidates)
    close = difflib.get_close_matches(name[:200], names, n=1)
    if close:
        return f"did you mean '{close[0]}'?"
    return "known: " + ", ".join(names[:20]) + (", …" if len(names) > 20 else "")
