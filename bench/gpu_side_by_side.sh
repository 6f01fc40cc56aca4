#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# bench_gpu and the peers on the same GPU in one go, and the ratios of their times and of trials an
# hour.
# usage: bench/gpu_side_by_side.sh BUILD_DIR [OUT_DIR]
#   PYTHON=python3      one that has jax, torch and optuna (a peer that is missing is said, not an
#                       error; without optuna its trials are drawn at random)
#   LIMIT=150           seconds for the three peers together; figures made before a cut count
#   REUSE=1             bench_gpu.json in OUT_DIR is taken as it is
#   STUDY=FILE          whole_study.json of bench/whole_study.sh, for trials an hour
# Writes bench_gpu.json, jax.json, torch.json, optuna.json and ratios.json to OUT_DIR (default:
# BUILD_DIR).
set -u
build=$(cd "${1:?usage: bench/gpu_side_by_side.sh BUILD_DIR [OUT_DIR]}" && pwd)
out=${2:-$build}
peers=$(cd "$(dirname "$0")/peers" && pwd)
python=${PYTHON:-python3}
limit=${LIMIT:-150}
mkdir -p "$out"

# part NAME SECONDS COMMAND...: 0 seconds: as long as it takes
part() {
    local name=$1 seconds=$2 from=$SECONDS
    shift 2
    timeout -k 3 "$seconds" "$@"
    local rc=$?
    case $rc in
    0) echo "-- $name: $((SECONDS - from)) s" ;;
    124) echo "-- $name: cut off after $seconds s" ;;
    77) echo "-- $name: no GPU" && exit 77 ;;
    *) echo "-- $name: failed ($rc)" ;;
    esac
}

[ -s "$out/bench_gpu.json" ] && [ "${REUSE:-0}" = 1 ] ||
    part bench_gpu 0 "$build/bin/bench_gpu" "$out/bench_gpu.json"
# JAX most of the time, which it takes to compile; its allocator would otherwise take the device
XLA_PYTHON_CLIENT_PREALLOCATE=false part jax $((limit * 3 / 5)) "$python" \
    "$peers/jax_reference.py" --compile-seconds $((limit / 2)) --seconds 1 --json "$out/jax.json"
part torch $((limit / 5)) "$python" "$peers/torch_gpu.py" --seconds 1 --json "$out/torch.json"
part optuna $((limit / 5)) "$python" "$peers/optuna_torch.py" --seconds $((limit / 13)) \
    --json "$out/optuna.json"
"$python" "$peers/ratios.py" "$out/ratios.json" "$out/bench_gpu.json" "$out/jax.json" \
    "$out/torch.json" "$out/optuna.json" ${STUDY:+"$STUDY"}
