#!/bin/sh
# Builds the two programs and installs them under PREFIX/bin; the Dockerfile's build step.
# usage: tools/image-build.sh PREFIX [CUDA: ON|OFF|AUTO] [CUDA architectures]
set -eu
cd "$(dirname "$0")/.."
prefix=$1
cmake --preset release -DHYPEROPT_TESTS=OFF -DHYPEROPT_BENCH=OFF -DHYPEROPT_CUDA="${2:-OFF}" \
    -DHYPEROPT_CUDA_ARCHITECTURES="${3:-80;86;89;90a;120}"
cmake --build --preset release --target hyperopt hyperopt-worker
mkdir -p "$prefix/bin"
cp build/release/bin/hyperopt build/release/bin/hyperopt-worker tools/hyperopt-healthcheck "$prefix/bin/"
