#!/bin/sh
# Installs packages, builds, runs the tests through ctest.
# usage: ./test.sh [--long] [--preset NAME] [ctest arguments, e.g. -R store]
# --long also runs the tests labelled long (kill runs, Slurm, browsers, large databases).
set -eu
cd "$(dirname "$0")"
long=no
preset=release
while [ $# -gt 0 ]; do
    case $1 in
    -h | --help)
        sed -n '2,4s/^# //p' "$0"
        exit 0
        ;;
    --long) long=yes ;;
    --preset)
        preset=${2:?--preset needs a name: release, debug, ci, asan-ubsan, tsan, cuda}
        shift
        ;;
    *) break ;;
    esac
    shift
done
tools/install-packages.sh build libraries tests
if [ "$long" = yes ]; then
    tools/install-packages.sh long
    # a current Optuna and its dashboard, where PyPI can be reached; their test is skipped elsewhere
    if python3 -m venv build/optuna && build/optuna/bin/pip install -q optuna optuna-dashboard; then
        export HO_OPTUNA_PYTHON="$PWD/build/optuna/bin/python"
    fi
    command -v kubectl >/dev/null || tools/install-packages.sh cluster || echo "test.sh: no kubernetes-client here; its test is skipped" >&2
    tools/install-packages.sh optuna || echo "test.sh: no python3-optuna here; its test is skipped" >&2
fi
cmake --preset "$preset" -DHYPEROPT_TESTS=ON
cmake --build --preset "$preset"
if [ "$long" = yes ]; then
    exec ctest --preset "$preset" -j "$(nproc)" "$@"
fi
exec ctest --preset "$preset" -j "$(nproc)" -LE long "$@"
