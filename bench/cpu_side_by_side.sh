#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The CPU backend and PyTorch eager on the same machine, in turns, so that a busy machine hits both.
# usage: bench/cpu_side_by_side.sh BUILD_DIR [turns, default 3] [options of both, e.g. --cpu-time]
set -eu
OMP_WAIT_POLICY=${OMP_WAIT_POLICY:-passive} # as workers run
export OMP_WAIT_POLICY
here=$(dirname "$0")
build=${1:?usage: cpu_side_by_side.sh BUILD_DIR [turns] [options]}
turns=${2:-3}
shift $(($# < 2 ? $# : 2))
turn=1
while [ "$turn" -le "$turns" ]; do
    echo "turn $turn, hyperopt:"
    "$build/bin/bench_cpu" --runs 3 "$@"
    echo "turn $turn, PyTorch eager:"
    "${PYTHON:-python3}" "$here/peers/torch_eager.py" --runs 3 "$@"
    turn=$((turn + 1))
done
