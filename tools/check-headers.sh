#!/bin/sh
# Compiles every header alone, as C11 and as C++17 (STYLE: .cu files include them).
# usage: tools/check-headers.sh [C compiler] [C++ compiler]
set -eu
cd "$(dirname "$0")/.."
cc=${1:-cc}
cxx=${2:-c++}
packages='libczmq libcjson sqlite3 libzstd zlib openblas'
# shellcheck disable=SC2046,SC2086  # lists of flags
flags="-I. -D_GNU_SOURCE -fsyntax-only -Wall -Wextra -Werror -Wno-unused-function $(pkg-config --cflags $packages 2>/dev/null)"
bad=0
count=0
for header in $(find study market kernels worker coordinator -name '*.h' ! -path 'kernels/cuda/*' | sort); do
    count=$((count + 1))
    # shellcheck disable=SC2086
    $cc -std=c11 $flags -x c "$header" || bad=$((bad + 1))
    # shellcheck disable=SC2086
    $cxx -std=c++17 $flags -x c++ "$header" || bad=$((bad + 1))
done
echo "$count headers, each as C11 and C++17: $bad failed"
[ "$bad" -eq 0 ]
