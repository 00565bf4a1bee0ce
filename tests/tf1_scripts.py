"""Run real TensorFlow 1 scripts on tinyflow for 50 steps each, and print a row for each.

    python -m tests.tf1_scripts CHECKOUT [NAME …]

CHECKOUT is a copy of https://github.com/aymericdamien/TensorFlow-Examples, or of
https://github.com/tqchen/tinyflow with its five examples. Only the lines that `REWRITES` names are
changed in a script: imports, data loaders, and the length of training. Images are drawn at random
around ten patterns, words by their rank.
"""

from __future__ import annotations

import contextlib
import io
import random
import re
import subprocess
import sys
import time
import types
import zipfile
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

STEPS = 50
REWRITES = (
    (r"^import tensorflow as tf$", "from passkit.frontends import tinyflow as tf"),
    (r"^from tensorflow\.contrib import rnn$", "rnn = tf.contrib.rnn"),
    (r"^from tensorflow\.examples\S* import input_data$", "from tests.tf1_scripts import mnist"),
    (r"^mnist = input_data\..*$", "mnist = mnist()"),
    (r"^import matplotlib\.pyplot as plt$", "from tests.tf1_scripts import plt"),
    (r"^from scipy\.stats import norm$", "from statistics import NormalDist"),
    (r"norm\.ppf\((.*?)\)\)", r"np.vectorize(NormalDist().inv_cdf)(\1))"),
    (r"^data_path = 'text8\.zip'$", "from tests.tf1_scripts import text8; data_path = text8()"),
    (r"\.lower\(\)\.split\(\)$", ".decode().lower().split()"),
    (r"^(num_steps|training_steps) = \d+$", rf"\1 = {STEPS}"),
    (r"^training_epochs = \d+$", "training_epochs = 2"),
    (r"^(eval_step|display_step) = \d+$", r"\1 = 25"),
    (r"for epoch in range\(\d\):", "for epoch in range(2):"),
    (r"\"/tmp/", '"tmp/'),
    (r"'/tmp/", "'tmp/"),
    (r"newshape=", "shape="),
    (r"^import tinyflow as tf$", "from passkit.frontends import tinyflow as tf"),
    (r"^from tinyflow\.datasets import", "from tests.tf1_scripts import"),
    (r"^for i in range\(1000\):", f"for i in range({STEPS}):"),
    (r"^for epoch in range\(10\):", "for epoch in range(2):"),
    (r"num_batch( *)= 600$", rf"num_batch\1= {STEPS // 2}"),
    (r"^num_epoch( *)= 10$", r"num_epoch\1= 2"),
    (r"\bxrange\b", "range"),
)
"""Changes of scripts: a pattern in a line, and its replacement."""

SCRIPTS = (
    "helloworld",
    "basic_operations",
    "linear_regression",
    "logistic_regression",
    "nearest_neighbor",
    "word2vec",
    "multilayer_perceptron",
    "neural_network_raw",
    "convolutional_network_raw",
    "recurrent_network",
    "bidirectional_rnn",
    "dynamic_rnn",
    "autoencoder",
    "variational_autoencoder",
    "gan",
    "dcgan",
    "save_restore_model",
    "tensorboard_basic",
    "tensorboard_advanced",
)


TINYFLOW = (
    "mnist_softmax",
    "mnist_softmax_minimum",
    "mnist_mlp_auto_shape_inference",
    "mnist_lenet",
    "cifar_resnet",
)
"""The examples of TinyFlow."""
FOLDERS = ("tensorflow_v1/examples/*", "example")
"""Folders of the scripts in a checkout."""


class Images:
    """Images of ten classes and their labels, returned in batches."""

    def __init__(self, count: int, seed: int) -> None:
        rng = np.random.default_rng(seed)
        patterns = np.random.default_rng(1).random((10, 784)) > 0.6
        classes = rng.integers(0, 10, count)
        noise = rng.random((count, 784)) * 0.4
        self.images = np.clip(patterns[classes] * 0.6 + noise, 0, 1).astype(np.float32)
        self.labels = np.eye(10)[classes]
        self.num_examples, self._next = count, 0

    def next_batch(self, size: int) -> tuple[Any, Any]:
        """Return the next images and labels, and start again at the end."""
        at = (self._next + np.arange(size)) % self.num_examples
        self._next += size
        return self.images[at], self.labels[at]


def mnist() -> Any:
    """Return a stand-in for MNIST: 2,500 training and 1,000 test images."""
    return types.SimpleNamespace(train=Images(2500, 2), test=Images(1000, 3))


def get_mnist(flatten: bool = False, onehot: bool = False) -> Any:
    """Return TinyFlow's digits: channels-first images, and labels as numbers."""
    results = mnist()
    for part in (results.train, results.test):
        part.images = part.images if flatten else part.images.reshape(-1, 1, 28, 28)
        part.labels = part.labels if onehot else part.labels.argmax(1).astype(np.float32)
    return results


def get_cifar10() -> Any:
    """Return TinyFlow's small color images: 1,000 for training and 200 for testing."""
    results = types.SimpleNamespace(train=Images(1000, 2), test=Images(200, 3))
    for part in (results.train, results.test):
        images = part.images.reshape(-1, 1, 28, 28)
        part.images = np.pad(images, ((0, 0), (0, 0), (2, 2), (2, 2))).repeat(3, axis=1)
        part.labels = part.labels.argmax(1).astype(np.float32)
    return results


def text8() -> str:
    """Write a zip file of 200,000 words to the current folder."""
    rng = np.random.default_rng(4)
    known_names = ["five", "of", "going", "hardware", "american", "britain"]
    words = np.array(known_names + [f"w{k}" for k in range(4000)])
    ranks = np.minimum(np.exp(rng.random(200_000) * np.log(len(words))) - 1, len(words) - 1)
    with zipfile.ZipFile("words.zip", "w") as file:
        file.writestr("text8", " ".join(words[ranks.astype(int)]))
    return "words.zip"


class _Anything:
    """A plotting stand-in that accepts any use and draws nothing."""

    def __getattr__(self, name: str) -> _Anything:
        return self

    def __call__(self, *args: Any, **kwargs: Any) -> _Anything:
        return self

    def __getitem__(self, key: Any) -> _Anything:
        return self

    def __iter__(self) -> Iterator[_Anything]:
        return iter((self, self))


plt = _Anything()


def rewritten(source: str) -> str:
    """Return a script with the lines of `REWRITES` changed."""
    lines = source.replace("\r\n", "\n").split("\n")
    for pattern, replacement in REWRITES:
        lines = [re.sub(pattern, replacement, line) for line in lines]
    return "\n".join(lines)


def scripts_of(checkout: Path) -> dict[str, str]:
    """Return the text of each script in a checkout or bare repository."""
    git = ["git", "-C", str(checkout)]
    results = [p for folder in FOLDERS for p in sorted(checkout.glob(f"{folder}/*.py"))]
    if results:
        return {p.stem: p.read_text() for p in results}
    listed = subprocess.run(
        [*git, "ls-tree", "-r", "--name-only", "HEAD"], capture_output=True, text=True, check=True
    ).stdout.split("\n")
    return {
        Path(p).stem: subprocess.run(
            [*git, "show", f"HEAD:{p}"], capture_output=True, text=True, check=True
        ).stdout
        for p in listed
        if any(Path(p).match(f"{folder}/*.py") for folder in FOLDERS)
    }


def run(text: str, name: str) -> tuple[float, str]:
    """Run a script in its own folder; return the seconds taken and its last line of output."""
    from passkit.frontends import tinyflow as tf

    tf.reset_default_graph()
    tf.set_random_seed(1)
    np.random.seed(1)
    random.seed(1)
    out = io.StringIO()
    begin = time.perf_counter()
    with TemporaryDirectory() as folder, contextlib.chdir(folder):
        Path("tmp").mkdir()
        with contextlib.redirect_stdout(out):
            exec(compile(text, f"{name}.py", "exec"), {"__name__": "__main__"})
    message_text = [line for line in out.getvalue().splitlines() if line.strip()]
    return time.perf_counter() - begin, message_text[-1].strip() if message_text else ""


def main(arguments: list[str]) -> int:
    """Run the scripts and print a row each; return the exit status."""
    sources = scripts_of(Path(arguments[0]))
    known_names = TINYFLOW if TINYFLOW[0] in sources else SCRIPTS
    names = arguments[1:] or known_names
    failed = 0
    for name in names:
        text = rewritten(sources[name])
        try:
            seconds, last = run(text, name)
            print(f"{name:28} ran     {seconds:6.1f} s  {last[:80]}", flush=True)
        except Exception as error:
            failed += 1
            print(f"{name:28} FAILED           {type(error).__name__}: {error}", flush=True)
            if len(names) == 1:
                raise
    print(f"{len(names) - failed} of {len(names)} scripts ran")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
