"""Checkpoints: the values of variables in ``.npz`` files."""

from __future__ import annotations

import os
import time
import zipfile
from collections.abc import Mapping, Sequence
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from passkit.errors import FeedError, GraphError, PasskitError, nearest
from passkit.frontends.tinyflow.argument_checks import (
    reject_arguments,
    require_int,
    require_list,
)
from passkit.frontends.tinyflow.tensors import Tensor
from passkit.frontends.tinyflow.variables import Variable, global_variables
from passkit.values import arguments

ONE_FILE = "a checkpoint is one .npz file of arrays"


class Saver:
    """Saves and restores the values of variables.

    Args:
        var_list: The variables, or a dict of variables by their names in the file; all variables by
            default.
        reshape: Whether to restore values of another shape with as many elements; False by default.
        sharded: Unsupported; only the default is accepted.
        max_to_keep: The number of newest checkpoints that are kept when another is saved; 5 by
            default, 0 or None for all.
        keep_checkpoint_every_n_hours: The interval, in hours, of checkpoints that are kept in any
            case; 10000 by default.
        name: Unsupported; only the default is accepted.
        restore_sequentially: Unsupported; only the default is accepted.
        saver_def: Unsupported; only the default is accepted.
        builder: Unsupported; only the default is accepted.
        defer_build: Unsupported; only the default is accepted.
        allow_empty: Whether there may be no variables; False by default.
        write_version: Unsupported; only the default is accepted.
        pad_step_number: Whether step numbers in file names have eight digits; False by default.
        save_relative_paths: Unsupported; only the default is accepted.
        filename: Unsupported; only the default is accepted.

    Raises:
        GraphError: If there are no variables, or ``var_list`` is no list or has an element that is
            no variable.
        SettingError: If an unsupported argument is set.

    >>> import tempfile
    >>> from passkit.frontends import tinyflow as tf
    >>> with tempfile.TemporaryDirectory() as folder, tf.Graph().as_default():
    ...     count = tf.Variable(3)
    ...     with tf.Session(target="interpret") as session:
    ...         session.run(tf.global_variables_initializer())
    ...         path = tf.train.Saver().save(session, f"{folder}/model")
    ...     with tf.Session(target="interpret") as session:
    ...         tf.train.Saver().restore(session, path)
    ...         session.run(count)
    np.int32(3)
    """

    @reject_arguments(
        ONE_FILE, "sharded", "restore_sequentially", "saver_def", "builder", "defer_build"
    )
    @reject_arguments(ONE_FILE, "write_version", "save_relative_paths", "filename", "name")
    def __init__(
        self,
        var_list: Sequence[Variable] | Mapping[str, Variable] | None = None,
        reshape: bool = False,
        sharded: bool = False,
        max_to_keep: int = 5,
        keep_checkpoint_every_n_hours: float = 10000.0,
        name: str | None = None,
        restore_sequentially: bool = False,
        saver_def: Any = None,
        builder: Any = None,
        defer_build: bool = False,
        allow_empty: bool = False,
        write_version: int = 2,
        pad_step_number: bool = False,
        save_relative_paths: bool = False,
        filename: str | None = None,
    ) -> None:
        variables: Any = global_variables() if var_list is None else var_list
        is_named = isinstance(variables, Mapping)
        listed = require_list("Saver", "var_list", variables.values() if is_named else variables)
        for variable in listed:
            if not isinstance(variable, Variable):
                raise GraphError(f"Saver needs variables to save, got {variable!r}")
        self.variables = dict(variables if is_named else {v._name: v for v in listed})
        if not self.variables and not allow_empty:
            raise GraphError(
                "Saver needs variables to save, got none; create them before the Saver"
            )
        self.reshape, self.keep, self.pads = reshape, max_to_keep, pad_step_number
        self.hours, self._kept_at = keep_checkpoint_every_n_hours, time.time()
        self.last_checkpoints: list[str] = []

    @reject_arguments(ONE_FILE, "meta_graph_suffix", "write_meta_graph", "strip_default_attrs")
    @reject_arguments(ONE_FILE, "save_debug_info")
    def save(
        self,
        sess: Any,
        save_path: str | os.PathLike[str],
        global_step: Any = None,
        latest_filename: str | None = None,
        meta_graph_suffix: str = "meta",
        write_meta_graph: bool = True,
        write_state: bool = True,
        strip_default_attrs: bool = False,
        save_debug_info: bool = False,
    ) -> str:
        """Write a checkpoint, and delete the oldest one if there are too many.

        Args:
            sess: The session that holds the values.
            save_path: The path without ".npz". Missing folders are created.
            global_step: The number of the step, which is appended to the path; an int or a tensor,
                which is computed by the session; none by default.
            latest_filename: The file in the same folder that lists checkpoints; "checkpoint" by
                default.
            meta_graph_suffix: Unsupported; only the default is accepted.
            write_meta_graph: Unsupported; only the default is accepted.
            write_state: Whether to write that file; True by default.
            strip_default_attrs: Unsupported; only the default is accepted.
            save_debug_info: Unsupported; only the default is accepted.

        Returns:
            The path to restore from.

        Raises:
            FeedError: If a variable has no value yet, or a file cannot be written.
            SettingError: If ``global_step`` is no int, or an unsupported argument is set.
            ArgumentError: If ``save_path`` is no path, or ``latest_filename`` neither None nor one.
        """
        path = os.fspath(arguments.path("Saver.save: save_path", save_path))
        listing = "checkpoint" if latest_filename is None else latest_filename
        listing_path = arguments.path("Saver.save: latest_filename", listing)
        if global_step is not None:
            step = sess.run(global_step) if isinstance(global_step, Tensor) else global_step
            number = require_int("Saver.save", "global_step", step)
            path = f"{path}-{number:08d}" if self.pads else f"{path}-{number}"
        sess.declare(list(self.variables.values()))
        arrays = {}
        for name, variable in self.variables.items():
            if variable._name in sess.state.unset:
                raise FeedError(
                    f"variable '{variable.name}' has no value to save in this session; run "
                    f"tf.global_variables_initializer() first"
                )
            arrays[name] = sess.state[variable._name]
        try:
            _write_archive(Path(f"{path}.npz"), arrays)
            self._remember(path)
            if write_state:
                _write_checkpoint_list(Path(path).parent / listing_path, self.last_checkpoints)
        except OSError as error:
            raise FeedError(
                f"the checkpoint {path!r} cannot be written: {error.strerror}; save_path needs a "
                f"folder that may be written"
            ) from None
        return path

    def _remember(self, path: str) -> None:
        """Record a checkpoint as the newest, and delete the files of the oldest ones beyond `keep`.

        One of them stays if the interval of ``keep_checkpoint_every_n_hours`` has passed. Raises
        OSError if a file cannot be deleted.
        """
        self.last_checkpoints = [p for p in self.last_checkpoints if p != path] + [path]
        while self.keep and len(self.last_checkpoints) > self.keep:
            oldest = self.last_checkpoints.pop(0)
            if time.time() - self._kept_at >= self.hours * 3600:
                self._kept_at = time.time()
                continue
            Path(f"{oldest}.npz").unlink(missing_ok=True)

    def restore(self, sess: Any, save_path: str | os.PathLike[str]) -> None:
        """Set variables to the values of a checkpoint; all of them or, on an error, none.

        Args:
            sess: The session whose variables are set.
            save_path: The path that `save` returned.

        Raises:
            FeedError: If the file is missing or damaged, lacks a variable, or has it in another
                shape or dtype.
            ArgumentError: If ``save_path`` is no path.
        """
        path = os.fspath(arguments.path("Saver.restore: save_path", save_path))
        file = path if path.endswith(".npz") else f"{path}.npz"
        if not os.path.exists(file):
            raise FeedError(
                f"there is no checkpoint {file!r}; Saver.save returns the path to restore"
            )
        values = {}
        try:
            with open(file, "rb") as stream, np.load(stream, allow_pickle=False) as archive:
                for name, variable in self.variables.items():
                    if name not in archive.files:
                        raise FeedError(
                            f"{file} has no variable '{name}'; {nearest(name, archive.files)}"
                        )
                    values[variable] = self._fitting(file, name, archive[name], variable)
        except PasskitError:
            raise
        except (OSError, EOFError, TypeError, ValueError, zipfile.BadZipFile) as error:
            raise FeedError(
                f"{file} is damaged or no checkpoint, {type(error).__name__}: {error}; Saver.save "
                f"writes checkpoints"
            ) from None
        for variable, value in values.items():
            sess.load(variable, value)

    def _fitting(self, file: str, name: str, value: Any, variable: Variable) -> Any:
        """Return a value of a checkpoint for a variable, reshaped if the saver may, else itself.

        Args:
            file: Checkpoint, for errors.
            name: Name of the value, for errors.
            value: Array of the checkpoint.
            variable: The variable.

        Returns:
            An array of the shape and dtype of the variable.

        Raises:
            FeedError: If its shape or dtype does not fit.
        """
        shape = tuple(int(n) for n in variable.shape)
        dtype = variable.dtype.numpy
        if value.dtype.kind == "V" and value.dtype.itemsize == dtype.itemsize:
            value = value.view(dtype)  # the format knows NumPy's own dtypes only
        if self.reshape and value.size == prod(shape):
            value = value.reshape(shape)
        if value.shape != shape or value.dtype != dtype:
            raise FeedError(
                f"variable '{name}' needs {dtype}{list(shape)}, and {file} has "
                f"{value.dtype}{list(value.shape)}"
            )
        return value


def _write_archive(path: Path, arrays: Mapping[str, Any]) -> None:
    """Write an ``.npz`` file so that a reader sees the old file or the complete new one.

    Args:
        path: The file. Missing folders are created.
        arrays: The arrays by name; any text may be a name.

    Raises:
        OSError: If the file or a folder cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with zipfile.ZipFile(temporary, "w") as file:
            for name, array in arrays.items():
                with file.open(f"{name}.npy", "w", force_zip64=True) as member:
                    np.lib.format.write_array(member, np.asanyarray(array), allow_pickle=False)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def _write_checkpoint_list(file: Path, paths: Sequence[str]) -> None:
    """Write the file that lists the checkpoints of a folder.

    Args:
        file: The file, which is replaced.
        paths: The paths of the checkpoints, the newest last; at least one.

    Raises:
        OSError: If the file cannot be written.
    """
    lines = [f'model_checkpoint_path: "{paths[-1]}"']
    lines += [f'all_model_checkpoint_paths: "{p}"' for p in paths]
    file.write_text("\n".join(lines) + "\n")


def latest_checkpoint(checkpoint_dir: str, latest_filename: str | None = None) -> str | None:
    """Return the path of the newest checkpoint in a folder.

    Args:
        checkpoint_dir: The folder.
        latest_filename: The file in it that lists checkpoints; "checkpoint" by default.

    Returns:
        The path for `Saver.restore`; None if the folder has no such file, or an empty one.

    Raises:
        ArgumentError: If ``checkpoint_dir`` is no path, or ``latest_filename`` neither None nor
            one.
        FeedError: If the file cannot be read, or is no text.
    """
    folder = arguments.path("latest_checkpoint: checkpoint_dir", checkpoint_dir)
    name = "checkpoint" if latest_filename is None else latest_filename
    file = folder / arguments.path("latest_checkpoint: latest_filename", name)
    if not file.is_file():
        return None
    try:
        first, *_ = file.read_text().splitlines() or [""]
    except (OSError, UnicodeDecodeError) as error:
        raise FeedError(
            f"latest_checkpoint cannot read {str(file)!r}: {error}; name the file that Saver.save "
            f"wrote beside its checkpoints"
        ) from None
    return first.partition(": ")[2].strip('"') or None
