#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Line and branch coverage of kernels/env and kernels/metrics by the tests of tests/kernels.
# usage: tools/coverage.sh [BUILD FOLDER]     exit 1: under 95 % of branches
# The environment is inline code in headers; a branch counts as taken when any test took it.
set -eu
cd "$(dirname "$0")/.."
build=${1:-build/coverage}
cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Debug -DHYPEROPT_CUDA=OFF -DHYPEROPT_BENCH=OFF \
    -DHYPEROPT_COVERAGE=ON >"$build.log" 2>&1 || { cat "$build.log"; exit 1; }
tests=$(sed -n 's/.*ho_add_test(NAME \([a-z_]*\).*/\1/p' tests/kernels/CMakeLists.txt)
# shellcheck disable=SC2086  # a list of targets
cmake --build "$build" -j2 --target $tests >"$build.log" 2>&1 || { tail -50 "$build.log"; exit 1; }
find "$build" -name '*.gcda' -delete
for test in $tests; do
    mkdir -p "$build/test-tmp/$test"
    (cd "$build/test-tmp/$test" && "$OLDPWD/$build/bin/$test" >/dev/null 2>&1) || {
        rc=$?
        [ $rc -eq 77 ] || { echo "$test failed"; exit 1; }
    }
done
find "$build/kernels" "$build/tests/kernels" -name '*.gcda' >"$build/gcda.txt"
python3 tools/coverage.py "$build/gcda.txt"
