#!/bin/sh
# Builds all fuzzers with clang, address and undefined sanitizers, and runs each on its seeds.
# usage: tests/fuzz/run.sh [SECONDS of all together, default 60]
set -eu
cd "$(dirname "$0")/../.."
seconds=${1:-60}
cmake --preset fuzz >/dev/null
cmake --build --preset fuzz -j "$(nproc)" --target fuzzers make_wire_seeds
mkdir -p build/fuzz/corpus/fuzz_wire
build/fuzz/bin/make_wire_seeds build/fuzz/corpus/fuzz_wire # as the messages are now
count=0
for seeds in tests/fuzz/seeds/*/; do
    count=$((count + 1))
done
each=$((seconds / count))
[ "$each" -gt 0 ] || each=1
found=build/fuzz/found
mkdir -p "$found"
for seeds in tests/fuzz/seeds/*/; do
    name=$(basename "$seeds")
    dictionary=
    if [ -f "tests/fuzz/$name.dict" ]; then
        dictionary="-dict=tests/fuzz/$name.dict"
    fi
    more=
    if [ "$name" = fuzz_reader ]; then
        more=tests/data/twins # a file of each CSV dialect
    fi
    echo "$name: $each s"
    mkdir -p "build/fuzz/corpus/$name"
    # shellcheck disable=SC2086
    "build/fuzz/bin/$name" -max_total_time="$each" -timeout=10 -rss_limit_mb=2048 -verbosity=0 -print_funcs=0 \
        -print_final_stats=1 -artifact_prefix="$found/$name-" $dictionary \
        "build/fuzz/corpus/$name" "$seeds" $more
done
echo "no fuzzer found anything"
