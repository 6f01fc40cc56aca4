#!/bin/sh
# From a fresh machine to a first real study: installs packages, builds, runs
# configs/quickstart.toml. usage: ./quickstart.sh [options of `hyperopt run`]
set -eu
cd "$(dirname "$0")"
case ${1:-} in
-h | --help)
    echo "usage: ./quickstart.sh [options of 'hyperopt run', e.g. --trials 24]"
    echo "Installs the packages of tools/packages.txt (apt-get; sudo if not root), builds in"
    echo "build/release and runs configs/quickstart.toml; the results go to quickstart.db here."
    exit 0
    ;;
esac

echo "== 1/3 packages"
tools/install-packages.sh build libraries
echo "== 2/3 build (build/release)"
mkdir -p build
{ cmake --preset release -DHYPEROPT_TESTS=OFF -DHYPEROPT_BENCH=OFF &&
    cmake --build --preset release --target hyperopt hyperopt-worker; } >build/quickstart.log 2>&1 || {
    tail -n 40 build/quickstart.log >&2
    echo "hyperopt: the build failed; the whole log is build/quickstart.log" >&2
    exit 1
}
echo "== 3/3 study configs/quickstart.toml"
exec build/release/bin/hyperopt run configs/quickstart.toml "$@"
