#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The CPU backend and PyTorch eager on the same machine, each in f32 and in bf16, in turns, so that
# a busy machine hits all of them. On an idle machine without options: time on the wall, all cores.
# On a busy one: --cpu-time --threads 1.
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
    for precision in f32 bf16; do
        echo "turn $turn, hyperopt:"
        "$build/bin/bench_cpu" --runs 3 --precision "$precision" "$@"
        echo "turn $turn, PyTorch eager:"
        if [ "$precision" = bf16 ]; then
            "${PYTHON:-python3}" "$here/peers/torch_eager.py" --runs 3 --bf16 "$@"
        else
            "${PYTHON:-python3}" "$here/peers/torch_eager.py" --runs 3 "$@"
        fi
    done
    turn=$((turn + 1))
done
