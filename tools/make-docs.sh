#!/bin/sh
# Makes the pages that come from the sources: docs/sql.md, docs/settings.md, docs/commands.md and
# man/hyperopt.1. usage: tools/make-docs.sh [BUILD_FOLDER]     default: build/release
set -eu
here=$(cd "$(dirname "$0")/.." && pwd)
hyperopt=${1:-$here/build/release}/bin/hyperopt
[ -x "$hyperopt" ] || { echo "make-docs.sh: no $hyperopt; build first, or name the build folder" >&2; exit 1; }
"$here/tools/sql-docs.py" > "$here/docs/sql.md"
"$hyperopt" help settings > "$here/docs/settings.md"
"$hyperopt" help commands > "$here/docs/commands.md"
"$hyperopt" help man > "$here/man/hyperopt.1"
