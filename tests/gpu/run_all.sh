#!/bin/bash
# Everything that needs a GPU: the tests of label gpu, compute-sanitizer on short runs, the benches.
# usage: tests/gpu/run_all.sh BUILD_DIR [OUT_DIR]      exit status: how many steps failed
#   STEP_LIMIT=S    seconds after which a step is cut off and counts as failed (default 1800)
#   FAST=1          what fits a few minutes: fewer trials, no racecheck on the fused kernels
# A machine without a GPU skips the tests (77) and says so.
set -u
fast=${FAST:-0}
limit=${STEP_LIMIT:-1800}
build=$(cd "${1:?usage: tests/gpu/run_all.sh BUILD_DIR [OUT_DIR]}" && pwd)
out=${2:-$build/gpu-results}
bin=$build/bin
failed=0
mkdir -p "$out"

# step NAME COMMAND...: runs it, keeps its output, counts a failure.
step() {
    local name=$1
    shift
    local from=$SECONDS
    if timeout -k 5 "$limit" "$@" >"$out/$name.log" 2>&1; then
        echo "$name: ok, $((SECONDS - from)) s"
    else
        local rc=$?
        if [ "$rc" -eq 124 ]; then
            echo "$name: FAILED, cut off after $limit s"
            failed=$((failed + 1))
        elif [ "$rc" -eq 77 ]; then
            echo "$name: skipped, no GPU"
        else
            echo "$name: FAILED ($rc), see $out/$name.log"
            tail -20 "$out/$name.log"
            failed=$((failed + 1))
        fi
    fi
}

# 1. parity, determinism, guards, memory; the environment's own tests through the GPU
export HYPEROPT_CUDA_POISON=1
for test in test_golden test_backtest test_fills test_lanes; do
    HYPEROPT_TEST_BACKEND=cuda step "gpu_$test" "$bin/$test"
done
step test_gpu_parity "$bin/test_gpu_parity"
step test_gpu_ppo "$bin/test_gpu_ppo"
step test_gpu_curiosity "$bin/test_gpu_curiosity"
step test_gpu_lanes "$bin/test_gpu_lanes"
for test in forms form_lanes pool priority fp8; do
    step "test_gpu_$test" "$bin/test_gpu_$test"
done
[ "$fast" = 0 ] || export HYPEROPT_TEST_TRIALS=${HYPEROPT_TEST_TRIALS:-200}
step test_gpu_trials "$bin/test_gpu_trials"
unset HYPEROPT_CUDA_POISON
# agents that have to learn something: minutes
[ "$fast" != 0 ] || HYPEROPT_TEST_BACKEND=cuda step gpu_test_learning "$bin/test_learning"

# racecheck_fused KERNEL: racecheck on a few updates of a fused kernel. It takes long:
# SANITIZER_LIMIT seconds (default 600), and a run that is cut off is no failure, only said.
racecheck_fused() {
    local log=$out/sanitizer_racecheck_$1.log rc
    timeout -k 5 "${SANITIZER_LIMIT:-600}" compute-sanitizer --tool racecheck \
        --kernel-name "kns=$1" --error-exitcode 99 \
        "$bin/test_gpu_lanes" 'the_fused*' >"$log" 2>&1
    rc=$?
    if [ "$rc" -eq 124 ]; then
        echo "sanitizer_racecheck_$1: cut off after ${SANITIZER_LIMIT:-600} s," \
            "$(grep -c '========= .*rror' "$log") reports so far"
    elif [ "$rc" -ne 0 ]; then
        echo "sanitizer_racecheck_$1: FAILED ($rc), see $log"
        failed=$((failed + 1))
    else
        echo "sanitizer_racecheck_$1: ok"
    fi
}

# 2. compute-sanitizer: the market, every kernel of the portable path, every form of agent by itself,
# the fused kernels. initcheck has to see what every kernel writes, so it has no filter.
if command -v compute-sanitizer >/dev/null; then
    mapfile -t short_runs < <("$bin/test_gpu_form_lanes" --short-runs)
    HYPEROPT_TEST_BACKEND=cuda step sanitizer_memcheck_fills \
        compute-sanitizer --tool memcheck --error-exitcode 99 "$bin/test_fills"
    for tool in memcheck racecheck initcheck synccheck; do
        HYPEROPT_CUDA_PORTABLE=1 step "sanitizer_${tool}_portable" compute-sanitizer --tool "$tool" \
            --error-exitcode 99 "$bin/test_gpu_lanes" 'a_short_run*'
        for run in "${short_runs[@]}"; do
            step "sanitizer_${tool}_${run//[^a-z0-9]/_}" compute-sanitizer --tool "$tool" \
                --error-exitcode 99 "$bin/test_gpu_form_lanes" "$run"
        done
        # racecheck of these kernels alone: the fused ones of the same run take it minutes
        filter=()
        [ "$tool" != racecheck ] ||
            filter=(--kernel-name kns=network_passes --kernel-name kns=experience)
        HYPEROPT_CUDA_RACECHECK=1 step "sanitizer_${tool}_reference" compute-sanitizer \
            --tool "$tool" "${filter[@]}" --error-exitcode 99 "$bin/test_gpu_parity" 'a_short_run*'
        step "sanitizer_${tool}_ppo" compute-sanitizer --tool "$tool" --error-exitcode 99 \
            "$bin/test_gpu_ppo" 'a_short_run*'
        step "sanitizer_${tool}_fp8" compute-sanitizer --tool "$tool" --error-exitcode 99 \
            "$bin/test_gpu_fp8" 'a_short_run*'
        [ "$tool" = racecheck ] ||
            step "sanitizer_${tool}_fused" compute-sanitizer --tool "$tool" --error-exitcode 99 \
                "$bin/test_gpu_lanes" 'the_fused*'
    done
    if [ "$fast" = 0 ]; then
        for kernel in forward_backward_split forward_backward_stream fused_gradient few_gate few_adam \
            new_td; do
            racecheck_fused "$kernel"
        done
    fi
else
    echo "compute-sanitizer: not found"
fi

# 3. the reference workload
step bench_gpu "$bin/bench_gpu" "$out/bench_gpu.json"
cat "$out/bench_gpu.log"
step bench_instructions "$bin/bench_instructions"
exit "$failed"
