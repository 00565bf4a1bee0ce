"""State: arrays that keep their values between calls, shared by executables, kept on disk."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from ml_dtypes import bfloat16

import passkit as pk
from passkit.errors import FeedError

TEXT = "state w: f32[2] = [1, 2]; state u: i64[]; return add(w, 1), add(u, 2)"


def state() -> pk.State:
    """The initial state of `TEXT`."""
    return pk.State.of(pk.parse(TEXT))


def test_values_are_copied_and_memory_is_not_moved() -> None:
    """Reading returns a copy; writing keeps the array's memory."""
    s = state()
    array, before = s.arrays["w"], s["w"]
    s["w"] = np.array([5, 6], np.float32)

    assert s.arrays["w"] is array and array.tolist() == [5, 6] and before.tolist() == [1, 2]
    s["w"][0] = 9
    assert s["w"].tolist() == [5, 6]
    assert repr(s) == "State(w: float32[2], u: int64[])"


def test_a_variable_without_value_is_unset() -> None:
    """A variable without initial value is unset until it is assigned."""
    s = state()
    assert s.unset == {"u"}
    s["u"] = np.int64(4)
    assert not s.unset and s["u"] == 4


def test_unknown_names_and_other_types_raise() -> None:
    """Unknown names suggest the most similar one; other shapes and dtypes are described."""
    s = state()
    with pytest.raises(FeedError, match="there is no variable 'v'"):
        s["v"]
    with pytest.raises(FeedError, match=r"variable 'w' needs float32\[2\], got float64\[2\]"):
        s["w"] = np.zeros(2)


def test_saved_variables_are_loaded_by_name(tmp_path: Path) -> None:
    """Variables are saved and loaded by name; a file that lacks one changes nothing."""
    s, other = state(), state()
    s["w"] = np.array([7, 8], np.float32)
    s.save(tmp_path / "s.npz")
    other.load(tmp_path / "s.npz")
    assert other["w"].tolist() == [7, 8]

    np.savez(tmp_path / "less.npz", w=np.zeros(2, np.float32))
    with pytest.raises(FeedError, match=r"less.npz has no variable 'u'; known: w"):
        s.load(tmp_path / "less.npz")
    assert s["w"].tolist() == [7, 8]


def test_variables_of_any_name_are_saved(tmp_path: Path) -> None:
    """Names that are parameters of NumPy's functions, or have slashes, are saved like others."""
    names = ("file", "allow_pickle", "layer/w")
    s = pk.State({name: np.float32([k]) for k, name in enumerate(names)})
    s.save(tmp_path / "s")
    other = pk.State({name: np.zeros(1, np.float32) for name in names})
    other.load(tmp_path / "s.npz")

    assert [other[name].tolist() for name in names] == [[0], [1], [2]]
    with np.load(tmp_path / "s.npz") as file:
        assert file["layer/w"].tolist() == [2]


def test_files_keep_bfloat16(tmp_path: Path) -> None:
    """bfloat16 survives a file; a variable of another element size raises."""
    value = np.array([1.5, np.nan, -0.0], bfloat16)
    s, other = pk.State({"h": value}), pk.State({"h": value * 0})
    s.save(tmp_path / "s.npz")
    other.load(tmp_path / "s.npz")

    assert other["h"].dtype == bfloat16 and other["h"].tobytes() == value.tobytes()
    with pytest.raises(FeedError, match=r"variable 'h' needs float32\[3\], and .* has \|V2\[3\]"):
        pk.State({"h": np.zeros(3, np.float32)}).load(tmp_path / "s.npz")


def test_executables_share_a_state() -> None:
    """One executable reads what another wrote, in the same memory."""
    shared = pk.State()
    w = pk.state("w", np.array([1, 2], np.float32))
    add = pk.compile(pk.Graph([], [(w.node, w + 1)]), state=shared, target="interpret")
    native = pk.compile(pk.Graph([w * 2]), state=shared)
    memory = shared.arrays["w"]
    shared["w"] = np.array([5, 6], np.float32)

    assert native()[0].tolist() == [10, 12]
    assert native.state is add.state is shared and shared.arrays["w"] is memory
    with pytest.raises(FeedError, match=r"'w' needs int64\[2\], and the state has float32\[2\]"):
        pk.compile(pk.Graph([pk.state("w", np.array([1, 2]))]), state=shared)


@pytest.mark.parametrize(
    "content, message",
    [
        (None, "No such file or directory"),
        (b"PK\x03\x04 torn", "not an archive of arrays"),
        (b"\x80\x04", "not an archive of arrays"),
    ],
)
def test_missing_and_damaged_files_raise(
    content: bytes | None, message: str, tmp_path: Path
) -> None:
    """A missing or damaged file is named, and the state keeps its values."""
    state, path = pk.State({"w": np.ones(3, np.float32)}), tmp_path / "state.npz"
    if content is not None:
        path.write_bytes(content)

    with pytest.raises(pk.FeedError, match=f"state.npz has no state .*{message}"):
        state.load(path)
    assert state["w"].tolist() == [1, 1, 1]


def test_a_file_of_np_save_raises(tmp_path: Path) -> None:
    """A file of np.save is not an archive of variables."""
    np.save(tmp_path / "w.npy", np.ones(3))

    with pytest.raises(pk.FeedError, match="w.npy has no state .* not an archive of arrays"):
        pk.State({"w": np.ones(3)}).load(tmp_path / "w.npy")


def test_a_file_is_loaded_completely_or_not_at_all(tmp_path: Path) -> None:
    """If one variable does not match, none changes; its size is checked before it is read."""
    np.savez(tmp_path / "state.npz", a=np.ones(2), b=np.ones((3, 1 << 20), np.int8))
    state = pk.State({"a": np.zeros(2), "b": np.zeros(3)})

    with pytest.raises(
        pk.FeedError, match=r"'b' needs float64\[3\], and .* has int8\[3, 1048576\]"
    ):
        state.load(tmp_path / "state.npz")
    assert state["a"].tolist() == [0, 0]


def test_saving_to_a_missing_folder_raises(tmp_path: Path) -> None:
    """Saving to a missing folder raises an error with the reason."""
    with pytest.raises(pk.FeedError, match="cannot be written to .*gone.*: No such file"):
        pk.State({"w": np.ones(3)}).save(tmp_path / "gone" / "state.npz")
