#!/bin/bash
# Renders every overlay with kubectl and validates the result (check_manifests.py), with the
# validator from PyPI in a virtual environment under build/. Exit 77: kubectl or PyPI is not there.
# usage: tests/cluster/check_manifests.sh
set -euo pipefail
cd "$(dirname "$0")/../.."
venv=build/venv-manifests
out=build/manifests
if ! command -v kubectl >/dev/null; then
    echo "manifests: skipped, no kubectl (Debian: kubernetes-client)"
    exit 77
fi
if [ ! -x $venv/bin/python ]; then
    python3 -m venv $venv
    $venv/bin/pip install -q PyYAML kubernetes-validate || { rm -rf $venv; echo "manifests: skipped, no PyPI"; exit 77; }
fi
mkdir -p $out
rm -f $out/*.yaml
for overlay in k8s/overlays/*/; do
    kubectl kustomize "$overlay" >"$out/$(basename "$overlay").yaml"
done
$venv/bin/python tests/cluster/check_manifests.py $out/*.yaml
