#!/bin/sh
# Installs the packages of tools/packages.txt that are missing (Debian 12 and 13, Ubuntu 22.04 and
# 24.04). usage: tools/install-packages.sh [GROUP...]     groups: build libraries tests format ...
# Without a group: build and libraries. Uses sudo when not root. Says what it installs.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
[ $# -gt 0 ] || set -- build libraries

if ! command -v apt-get >/dev/null 2>&1; then
    echo "hyperopt: this script knows apt-get only. Install by hand what $here/packages.txt lists." >&2
    exit 1
fi

# Of "old|new" (a package that was renamed) the first that this system knows.
pick() {
    for candidate in $(echo "$1" | tr '|' ' '); do
        if [ "$candidate" = "$1" ] || apt-cache show "$candidate" >/dev/null 2>&1; then
            echo "$candidate"
            return
        fi
    done
    echo "${1%%|*}"
}

missing=
for group in "$@"; do
    names=$(sed -n "s/^$group: //p" "$here/packages.txt")
    [ -n "$names" ] || { echo "hyperopt: no package group '$group' in tools/packages.txt" >&2; exit 1; }
    for choice in $names; do
        name=$(pick "$choice")
        state=$(dpkg-query -W -f '${db:Status-Status}' "$name" 2>/dev/null || true)
        [ "$state" = installed ] || missing="$missing $name"
    done
done
if [ -z "$missing" ]; then
    exit 0
fi

sudo=
if [ "$(id -u)" -ne 0 ]; then
    if ! command -v sudo >/dev/null 2>&1; then
        echo "hyperopt: these packages are missing and there is no sudo. As root, run:" >&2
        echo "    apt-get install$missing" >&2
        exit 1
    fi
    sudo=sudo
fi
echo "installing:$missing"
$sudo apt-get update -qq
# shellcheck disable=SC2086  # a list of names
$sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >/dev/null
