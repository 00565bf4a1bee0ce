"""Checkpoints and event files: their contents, and errors."""

from __future__ import annotations

import numpy as np
import pytest

from passkit.errors import ArgumentError, FeedError, GraphError, SettingError
from passkit.frontends import tinyflow as tf
from tests.frontends.tinyflow.events import node_names, read_events


@pytest.fixture(autouse=True)
def _own_graph():
    """Each test has a graph of its own."""
    with tf.Graph().as_default():
        yield


def session():
    """Return a session of the interpreter."""
    return tf.Session(target="interpret")


def test_checkpoint_restores_all_variables(tmp_path):
    """Another session continues from the newest checkpoint; a variable may be called "file"."""
    v = tf.Variable([1.0, 2.0], name="file")
    step = tf.train.MomentumOptimizer(0.1, 0.9).minimize(tf.reduce_sum(v * v))
    saver = tf.train.Saver()
    with session() as s:
        s.run(tf.global_variables_initializer())
        s.run(step)
        path = saver.save(s, tmp_path / "deep" / "model", 3)
        continued = [s.run(step), s.run(tf.global_variables())]
    with session() as s:
        saver.restore(s, tf.train.latest_checkpoint(str(tmp_path / "deep")))

        assert path == str(tmp_path / "deep" / "model-3")
        restored = [s.run(step), s.run(tf.global_variables())]
    assert [a.tolist() for a in restored[1]] == [a.tolist() for a in continued[1]]


def test_invalid_checkpoints_raise_and_change_no_variable(tmp_path):
    """A missing file or variable, and another shape, raise and change no variable."""
    a, b = tf.Variable([1.0, 2.0], name="a"), tf.Variable(3.0, name="b")
    path = str(tmp_path / "m")
    with session() as s:
        with pytest.raises(FeedError, match="variable 'a:0' has no value to save"):
            tf.train.Saver([a]).save(s, path)
        s.run(tf.global_variables_initializer())
        tf.train.Saver([a]).save(s, path)
        with pytest.raises(FeedError, match="there is no checkpoint '.*nowhere.npz'"):
            tf.train.Saver([a]).restore(s, tmp_path / "nowhere")
        with pytest.raises(FeedError, match="m.npz has no variable 'b'"):
            tf.train.Saver({"a": a, "b": b}).restore(s, path)
        with pytest.raises(FeedError, match=r"'a' needs float32\[\], and .* has float32\[2\]"):
            tf.train.Saver({"a": b}).restore(s, path)

        assert s.run([a, b])[1] == 3
        assert sorted(p.name for p in tmp_path.iterdir()) == ["checkpoint", "m.npz"]

    half = (tmp_path / "m.npz").read_bytes()[:80]
    for name, content in (("text", b"no archive"), ("half", half)):
        (tmp_path / f"{name}.npz").write_bytes(content)
        with session() as s, pytest.raises(FeedError, match=rf"{name}\.npz is damaged or no "):
            tf.train.Saver([a]).restore(s, tmp_path / name)
    (tmp_path / "checkpoint").write_text("")

    assert tf.train.latest_checkpoint(str(tmp_path)) is None


def test_event_files_hold_scalars_histograms_and_the_graph(tmp_path):
    """An event file has the version, the graph, and the summaries of a step."""
    v = tf.Variable([1.0, -2.0, 0.0, 1.0], name="v")
    tf.summary.scalar("loss", tf.reduce_sum(v * v, name="squares"))
    tf.summary.histogram("values", v)
    merged = tf.summary.merge_all()
    with session() as s, tf.summary.FileWriter(tmp_path, graph=tf.get_default_graph()) as writer:
        s.run(tf.global_variables_initializer())
        writer.add_summary(s.run(merged), 7)
    first, drawn, last = read_events(writer.path)

    assert first.file_version == "brain.Event:2"
    assert node_names(drawn.graph_def) >= {"v", "squares"}
    assert last.step == 7
    scalar, histogram = last.summary.value
    assert (scalar.tag, scalar.simple_value) == ("loss", 6)
    histo = histogram.histo
    assert (histo.min, histo.max, histo.num, histo.sum, histo.sum_squares) == (-2, 1, 4, 0, 6)
    assert sum(histo.bucket) == 4
    for low, high, count in zip(
        histo.bucket_limit, histo.bucket_limit[1:], histo.bucket[1:], strict=False
    ):
        assert count == sum(low <= x < high for x in (1, -2, 0, 1))


def test_files_that_cannot_be_written_are_named(tmp_path):
    """A checkpoint and an event file below a file are refused, and steps that are no ints."""
    v = tf.Variable([1.0], name="v")
    (tmp_path / "file").write_text("")
    with session() as s:
        s.run(v.initializer)
        with pytest.raises(FeedError, match="checkpoint '.*file/m' cannot be written: File exists"):
            tf.train.Saver().save(s, tmp_path / "file" / "m")
        with pytest.raises(SettingError, match="Saver.save needs an int as global_step, got 'x'"):
            tf.train.Saver().save(s, tmp_path / "m", "x")
        with pytest.raises(ArgumentError, match="latest_filename must be a path, got 3"):
            tf.train.Saver().save(s, tmp_path / "m", latest_filename=3)
    (tmp_path / "checkpoint").write_bytes(b"\xff\xfe")
    with pytest.raises(FeedError, match="latest_checkpoint cannot read '.*checkpoint': 'utf-8'"):
        tf.train.latest_checkpoint(tmp_path)
    with pytest.raises(FeedError, match="FileWriter cannot create '.*file/events.*': File exists"):
        tf.summary.FileWriter(tmp_path / "file")
    with pytest.raises(ArgumentError, match="FileWriter: graph must be a tinyflow graph, got 3"):
        tf.summary.FileWriter(tmp_path, 3)
    message = "add_graph: graph must be a tinyflow graph, got 3"
    with (
        tf.summary.FileWriter(tmp_path) as writer,
        pytest.raises(ArgumentError, match=message),
    ):
        writer.add_graph(3)
    with pytest.raises(ArgumentError, match="Session: graph must be a tinyflow graph, got 3"):
        tf.Session(graph=3)


def test_invalid_summaries_raise(tmp_path):
    """A tensor instead of bytes, a closed writer, and a histogram of NaNs raise."""
    bad = tf.summary.histogram("h", [np.nan, np.inf])
    with session() as s, tf.summary.FileWriter(tmp_path) as writer:
        with pytest.raises(FeedError, match="needs the bytes .* got <tf.Tensor 'h:0'"):
            writer.add_summary(bad)
        with pytest.raises(FeedError, match="session.run.summary. returns, got 2 bytes of some"):
            writer.add_summary(b"\xff\xff")
        with pytest.raises(SettingError, match="global_step of 64 bits, got 9223372036854775808"):
            writer.add_summary(b"", 2**63)
        with pytest.raises(SettingError, match="add_summary needs an int as global_step, got 'x'"):
            writer.add_summary(b"", "x")
        with pytest.raises(GraphError, match="histogram 'h' needs finite numbers, got 2 others"):
            s.run(bad)
    with pytest.raises(FeedError, match=r"writer of .*tfevents.* is closed"):
        writer.add_summary(b"")
