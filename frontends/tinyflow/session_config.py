"""Settings of a session: `ConfigProto`, and TinyFlow's named configurations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Union

from attrs import evolve, frozen

from passkit.errors import SettingError, nearest
from passkit.values import arguments

if TYPE_CHECKING:
    from passkit.passes.base import Pass

Passes = Union[Sequence[Union[str, "Pass"]], Mapping[str, Any]]
"""The passes that compile runs, or those to add to the default ones, as in `pk.compile`."""


@frozen
class ConfigProto:
    """The settings of a session.

    Args:
        target: "cpu", "cuda", …, as in `pk.compile`, whose default is used if None.
        fusion: How operators are fused, as in `pk.compile`, whose default is used if None.
        numerics: The permitted rounding differences, as in `pk.compile`, whose default is used if
            None.
        check_numerics: Whether each run looks for NaNs and infinities and names the operator that
            computed the first; False by default. Costs a copy of all variables per run.
        passes: The passes that compile runs, as in `pk.compile`, whose default is used if None.
    """

    target: str | None = None
    fusion: str | None = None
    numerics: str | None = None
    check_numerics: bool = False
    passes: Passes | None = None


TINYFLOW_CONFIGS = {
    "cpu": ConfigProto(target="cpu"),
    "gpu": ConfigProto(target="cuda", fusion="none"),
    "gpu fusion": ConfigProto(target="cuda", fusion="stitch"),
}
"""TinyFlow's configurations by name."""


def resolve_config(target: str, config: ConfigProto | str | None) -> ConfigProto:
    """Return the settings for the arguments of a session.

    Args:
        target: A target, which replaces that of ``config`` and is not checked; "gpu" or "gpu
            fusion" of TinyFlow, which replace ``config``; or empty.
        config: Settings, the name of a configuration of TinyFlow, or None for the defaults.

    Raises:
        SettingError: If ``config`` is an unknown name, or none of these.
        ArgumentError: If ``target`` is no text.
    """
    arguments.text("Session: target", target)
    if target in TINYFLOW_CONFIGS and target != "cpu":
        config, target = target, ""
    if isinstance(config, str):
        if config not in TINYFLOW_CONFIGS:
            raise SettingError(
                f"Session needs a ConfigProto or TinyFlow's 'cpu', 'gpu' or 'gpu fusion' as "
                f"config, got {config!r}; {nearest(config, TINYFLOW_CONFIGS)}"
            )
        config = TINYFLOW_CONFIGS[config]
    settings = ConfigProto() if config is None else config
    if not isinstance(settings, ConfigProto):
        raise SettingError(
            f"Session needs a ConfigProto or TinyFlow's 'cpu', 'gpu' or 'gpu fusion' as config, "
            f"got {arguments.shown(config)}; tf.ConfigProto(target=…) creates one"
        )
    return evolve(settings, target=target) if target else settings
