"""The errors a user can meet: each says where, what was needed, what was found, the way out."""

from collections.abc import Iterable


class PasskitError(Exception):
    """The base of every error that passkit raises on purpose."""


class ArgumentError(PasskitError, TypeError):
    """An argument of a public function has a type that the function does not take."""


class RegistryError(PasskitError, LookupError):
    """An operator, attribute, pass or dialect is unknown, or was registered twice."""


class RuleError(PasskitError, TypeError):
    """An operator's rule takes other parameters, or gives something else, than its attribute says.

    Rules are the functions that attributes such as FCodeGen, FInferShape and FGradient hold.
    """


class GraphError(PasskitError, ValueError):
    """A graph is malformed: a cycle, a foreign entry, a wrong number of inputs."""


class ShapeError(PasskitError, ValueError):
    """Shapes do not fit together, or are not known where they must be."""


class DTypeError(PasskitError, TypeError):
    """Element types do not fit together, or an operator does not take one."""


class ParseError(PasskitError, ValueError):
    """Text or JSON does not describe a graph; the message has the line or the key."""


class PassError(PasskitError, RuntimeError):
    """A pass broke its contract, or what it depends on is missing."""


class ScheduleError(PasskitError, ValueError):
    """A schedule does not fit the group it was given to."""


class CodeGenError(PasskitError, ValueError):
    """A group cannot be lowered to a kernel, or a dialect cannot print it."""


class CompilerError(PasskitError, RuntimeError):
    """The native compiler refused a kernel; the message has its text and the numbered source."""


class KernelRefusedError(CompilerError):
    """A device's compiler refused the kernel of a group; ``key`` is the kernel's."""

    def __init__(self, message: str, key: str) -> None:
        super().__init__(message)
        self.key = key
        self.group = ""
        self.nodes: tuple[str, ...] = ()


class DeviceError(PasskitError, RuntimeError):
    """A device is missing, cannot do what a kernel needs, or has no memory left."""


class CapacityError(PasskitError, MemoryError):
    """An array needs more memory than this machine gives."""


class CacheError(PasskitError, OSError):
    """The cache folder cannot be trusted or written."""


class BlocksError(PasskitError, RuntimeError):
    """A kernel, run block by block, depends on the order of its threads or leaves its buffers."""


class FeedError(PasskitError, ValueError):
    """An input of a call is missing, unknown, or of the wrong rank, size or dtype."""


class SettingError(PasskitError, ValueError):
    """An option or environment variable has a value that passkit does not know."""


class ModelError(PasskitError, ValueError):
    """A model file is damaged, hostile, or uses what passkit does not support."""


class MissingDependencyError(PasskitError, ImportError):
    """An optional package or program is needed and not installed; the message names it."""


class PluginError(PasskitError, ImportError):
    """A plug-in cannot be imported, or is neither a module nor a function."""


class PluginWarning(UserWarning):
    """A plug-in of an installed package failed when it was loaded."""


class InterpretedWarning(UserWarning):
    """A compiled program evaluates an operator in NumPy, because no kernel computes it."""


def nearest(name: str, known: Iterable[str]) -> str:
    """A hint that offers the known name most like ``name``, or lists what there is.

    >>> nearest("Fuson", ["Fusion", "CodeGen"])
    "did you mean 'Fusion'?"
    >>> nearest("zzz", ["b", "a"])
    'known: a, b'
    """
    import difflib  # nobody needs it where all is well

    known = sorted(k if len(k) <= 80 else k[:77] + "..." for k in known)
    close = difflib.get_close_matches(name[:200], known, n=1)
    if close:
        return f"did you mean '{close[0]}'?"
    return "known: " + ", ".join(known[:20]) + (", …" if len(known) > 20 else "")
