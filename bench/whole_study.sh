#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A whole study on the GPU: `hyperopt run` for a bounded time, nvidia-smi sampled beside it; prints
# wall time, trials an hour, mean utilisation and power, and where the worker's time went.
# usage: bench/whole_study.sh BUILD_DIR DATA_FILE [OUT_DIR] [--set KEY=VALUE ...]
#   SIZE=full|medium|small|tiny   64 x 40, 32 x 20, 16 x 10, 8 x 4 trials x epochs (default full)
#   LIMIT=60                      seconds; a study cut off says how far it came
#   STUDY=configs/h200.toml
# Writes study.db, study.log, smi.csv and whole_study.json to OUT_DIR (default: BUILD_DIR/study).
set -u
root=$(cd "$(dirname "$0")/.." && pwd)
build=$(cd "${1:?usage: whole_study.sh BUILD_DIR DATA_FILE [OUT_DIR] [--set ...]}" && pwd)
data=$(realpath "${2:?the data file}")
out=${3:-$build/study}
shift $(($# < 3 ? $# : 3))
size=${SIZE:-full} limit=${LIMIT:-60} study=${STUDY:-$root/configs/h200.toml}
case $size in
full) trials=64 epochs=40 every=5 ;;
medium) trials=32 epochs=20 every=5 ;;
small) trials=16 epochs=10 every=5 ;;
tiny) trials=8 epochs=4 every=2 ;;
*) echo "SIZE=$size: full, medium, small or tiny" >&2 && exit 1 ;;
esac
mkdir -p "$out"
rm -f "$out"/study.db*
: >"$out/smi.csv"

if command -v nvidia-smi >/dev/null; then
    nvidia-smi --query-gpu=timestamp,utilization.gpu,power.draw,clocks.sm,memory.used \
        --format=csv,noheader,nounits -lms 200 >"$out/smi.csv" 2>/dev/null &
    sampler=$!
fi
from=$(date +%s.%N)
timeout -s INT -k 20 "$limit" "$build/bin/hyperopt" run "$study" --database "$out/study.db" \
    --set "data.path=$data" --set "study.trials=$trials" --set "agent.epochs=$epochs" \
    --set "agent.eval_every=$every" --log-level info "$@" >"$out/study.log" 2>&1
rc=$?
to=$(date +%s.%N)
[ -z "${sampler:-}" ] || kill "$sampler" 2>/dev/null

query="select count(*) from trial where state in ('COMPLETE', 'PRUNED', 'FAILED')" # FAILED: ruined, mostly
done_trials=$("$build/bin/hyperopt" sql "$out/study.db" "$query" --format csv 2>>"$out/study.log" |
    grep -Eo '^[0-9]+' | tail -1)
# environment steps and gradient steps of all agents, pruned ones included
query="select coalesce(sum(experiences), 0) as experiences, coalesce(sum(updates), 0) as updates from epoch_stat"
work=$("$build/bin/hyperopt" sql "$out/study.db" "$query" --format csv 2>>"$out/study.log" |
    grep -Eo '^[0-9]+,[0-9]+' | tail -1)
awk -F', *' -v from="$from" -v to="$to" -v rc="$rc" -v trials="$trials" -v epochs="$epochs" \
    -v finished="${done_trials:-0}" -v work="${work:-0,0}" -v json="$out/whole_study.json" '
    # samples while the study ran, from the first busy one on: reading the data uses no GPU
    $2 > 0 { busy = 1 }
    busy { n++; use += $2; watt += $3; clock += $4; memory = $5 > memory ? $5 : memory }
    END {
        wall = to - from
        split(work, done, ",")
        printf "%d of %d trials of %d epochs in %.1f s%s: %.0f trials an hour\n", finished, trials,
            epochs, wall, rc == 0 ? "" : " (stopped, exit status " rc ")", finished / wall * 3600
        if (n > 0) {
            printf "GPU over %d samples: %.0f %% busy, %.0f W, SM clock %.0f MHz, %d MB at most\n",
                n, use / n, watt / n, clock / n, memory
        }
        printf "{\"trials\": %d, \"finished\": %d, \"epochs\": %d, \"wall_s\": %.2f, \"rc\": %d, " \
            "\"trials_an_hour\": %.1f, \"experiences\": %.0f, \"updates\": %.0f, " \
            "\"busy_percent\": %.1f, \"power_w\": %.1f}\n", trials, finished, epochs, wall, rc,
            finished / wall * 3600, done[1], done[2], n ? use / n : 0, n ? watt / n : 0 \
            > json
    }' "$out/smi.csv"
# the worker's own account, in seconds: what the device waited for
grep -o 'worker: time .*' "$out/study.log"
# why trials failed, if some did
"$build/bin/hyperopt" sql "$out/study.db" @failures 2>>"$out/study.log" | head -20
tail -5 "$out/study.log"
exit "$rc"
