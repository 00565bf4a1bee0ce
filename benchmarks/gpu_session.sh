#!/usr/bin/env bash
# All that a machine with an NVIDIA GPU has to tell, in one command of less than ten minutes:
#
#     bash benchmarks/gpu_session.sh OUT [PYTHON]
#
# OUT gets the device's facts, the tests of `pytest -m cuda`, the report of gpu.py beside
# torch.compile, jax.jit and the kernels by hand, and random graphs on the device. Each step has a
# limit of its own and the next one begins whatever the last one said. Copy OUT/gpu.json to
# benchmarks/results and run gpu_page.py --write afterwards.
set -uo pipefail
out=$(mkdir -p "$1" && cd "$1" && pwd)
python=${2:-python}
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export PYTHONPATH=$PWD PASSKIT_CACHE_DIR=$out/cache

step() {
    local name=$1 limit=$2
    shift 2
    local begin=$SECONDS
    timeout "$limit" "$@" >"$out/$name.log" 2>&1
    echo "$name: exit $?, $((SECONDS - begin)) s" | tee -a "$out/summary.txt"
}

step driver 30 nvidia-smi
step doctor 60 "$python" -m passkit doctor
step gpu 240 "$python" benchmarks/gpu.py --only compile,jax --output "$out/gpu.json"
step tests 150 "$python" -m pytest -q -m cuda tests/runtime/cuda
step fuzz 60 "$python" benchmarks/fuzz.py --count 60 --target cuda-device
rm -rf "$out/cache"
cat "$out/summary.txt"
