#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# bench_gpu and the peers on the same GPU in one go, and the ratios of their times.
# usage: bench/gpu_side_by_side.sh BUILD_DIR [OUT_DIR]
#   PYTHON=python3      one that has jax and torch (a peer that is missing is said, not an error)
#   LIMIT=30            seconds for each of the three; figures made before a cut count
# Writes bench_gpu.json, jax.json, torch.json and ratios.json to OUT_DIR (default: BUILD_DIR).
set -u
build=$(cd "${1:?usage: bench/gpu_side_by_side.sh BUILD_DIR [OUT_DIR]}" && pwd)
out=${2:-$build}
peers=$(cd "$(dirname "$0")/peers" && pwd)
python=${PYTHON:-python3}
limit=${LIMIT:-30}
mkdir -p "$out"

# part NAME COMMAND...
part() {
    local name=$1 from=$SECONDS
    shift
    timeout -k 3 "$limit" "$@"
    local rc=$?
    case $rc in
    0) echo "-- $name: $((SECONDS - from)) s" ;;
    124) echo "-- $name: cut off after $limit s" ;;
    77) echo "-- $name: no GPU" && exit 77 ;;
    *) echo "-- $name: failed ($rc)" ;;
    esac
}

[ -s "$out/bench_gpu.json" ] && [ "${REUSE:-0}" = 1 ] ||
    part bench_gpu "$build/bin/bench_gpu" "$out/bench_gpu.json"
# the peers' own allocators would otherwise take the device for themselves
XLA_PYTHON_CLIENT_PREALLOCATE=false part jax "$python" "$peers/jax_reference.py" --runs 3 \
    --bars 5000 --json "$out/jax.json"
part torch "$python" "$peers/torch_gpu.py" --seconds 3 --json "$out/torch.json"
"$python" "$peers/ratios.py" "$out/ratios.json" "$out/bench_gpu.json" "$out/jax.json" \
    "$out/torch.json"
