#!/bin/sh
# Makes the pages that come from the sources: docs/sql.md, docs/settings.md, docs/commands.md and
# man/hyperopt.1. usage: tools/make-docs.sh [BUILD_FOLDER]     default: build/release
set -eu
here=$(cd "$(dirname "$0")/.." && pwd)
hyperopt=${1:-$here/build/release}/bin/hyperopt
[ -x "$hyperopt" ] || { echo "make-docs.sh: no $hyperopt; build first, or name the build folder" >&2; exit 1; }

# make PAGE COMMAND...: the page changes only when the command succeeds
make() {
    page=$here/$1
    shift
    "$@" > "$page.part" || { rm -f "$page.part"; exit 1; }
    mv "$page.part" "$page"
}
make docs/sql.md "$here/tools/sql-docs.py"
make docs/settings.md "$hyperopt" help settings
make docs/commands.md "$hyperopt" help commands
make man/hyperopt.1 "$hyperopt" help man
