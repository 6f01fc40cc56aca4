#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""docs/sql.md from the comments in sql/*.sql: every table and column, every view, every example.

usage: tools/sql-docs.py            prints the page
       tools/sql-docs.py --check    compares it with docs/sql.md; 1: the page is old

Views get their columns from SQLite itself, with the schema in memory; an empty description of a
table, a view or a column is an error, so that none lands without one."""
import pathlib
import re
import sqlite3
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SQL = ROOT / "sql"
PAGE = ROOT / "docs/sql.md"
NOT_A_COLUMN = ("PRIMARY", "UNIQUE", "CHECK", "FOREIGN")

HEAD = """\
# The database

<!-- Made by tools/sql-docs.py from the comments in sql/. Change those, then run
     `tools/sql-docs.py > docs/sql.md`. -->

One study is one SQLite file: read it with `hyperopt sql FILE`, the `sqlite3` shell, Python's
`sqlite3`, DuckDB or pandas, also while the study runs. Open it read-only
(`sqlite3 'file:study.db?mode=ro'`): there is one writer, the coordinator.

    hyperopt sql study.db                          # lists the example queries
    hyperopt sql study.db @best-by-fold            # runs one
    hyperopt sql study.db "SELECT * FROM leaderboard LIMIT 5" --format csv

The file is at the same time an Optuna storage that can be read, of Optuna 3.2 and later:

    optuna.load_study(study_name=None, storage="sqlite:///file:study.db?mode=ro&uri=true")
    optuna-dashboard "sqlite:///file:study.db?mode=ro&uri=true"

Optuna 3.1 and earlier need `RDBStorage(..., skip_compatibility_check=True)`. The dashboard that
runs in a browser wants tables: `hyperopt export study.db optuna -o optuna.db`.
"""


def comment_above(lines, at):
    """The block of -- lines right above lines[at]."""
    first = at
    while first > 0 and lines[first - 1].startswith("--"):
        first -= 1
    return " ".join(line.lstrip("- ").rstrip() for line in lines[first:at])


def split_comment(line):
    """Code and comment of a line; a -- inside quotes does not count."""
    match = re.match(r"((?:[^'-]|'[^']*'|-(?!-))*)(?:--\s*(.*))?$", line)
    return match.group(1).strip(), match.group(2)


def split_columns(code):
    """The pieces between the commas outside of parentheses."""
    pieces, depth, piece = [], 0, ""
    for c in code:
        depth += (c == "(") - (c == ")")
        if c == "," and depth == 0:
            pieces.append(piece.strip())
            piece = ""
        else:
            piece += c
    return [p for p in pieces + [piece.strip()] if p]


def table_columns(lines):
    """[[name, type, text]] of the lines between CREATE TABLE and its closing parenthesis."""
    columns, depth, current = [], 0, []
    for line in lines:
        code, comment = split_comment(line)
        if depth == 0 and code:
            current = []
            for piece in split_columns(code):
                name, *rest = piece.split()
                if name in NOT_A_COLUMN:
                    continue
                kind = rest[0] if rest else ""
                extra = re.search(r"REFERENCES (\w+)", piece)
                text = f"a `{extra.group(1)}`; " if extra else ""
                current.append([name, kind + ("" if "NOT NULL" in piece or "PRIMARY KEY" in piece else ", or NULL"), text])
            columns += current
            if comment:
                for column in current:
                    column[2] += comment
        elif comment:
            values = re.findall(r"'(\w+)'", code)
            for column in current:
                if values:
                    column[2] += f"{'; ' if column[2] else ''}`{values[0]}`: {comment}"
                else:
                    column[2] += f"{' ' if column[2] else ''}{comment}"
        elif depth > 0:
            values = re.findall(r"'(\w+)'", code)
            if values:
                for column in current:
                    column[2] += ("; " if column[2] else "") + ", ".join(f"`{v}`" for v in values)
        depth += code.count("(") - code.count(")")
    return columns


def blocks(path, what):
    """(name, comment above, lines inside) of every CREATE `what` of a file."""
    lines = path.read_text().splitlines()
    for i, line in enumerate(lines):
        match = re.match(rf"CREATE {what} (?:IF NOT EXISTS )?(\w+)", line)
        if match:
            end = next(j for j in range(i, len(lines)) if re.search(r"\)\s*(STRICT.*)?;|;\s*(--.*)?$", lines[j]))
            yield match.group(1), comment_above(lines, i), lines[i + 1:end]


def head_comment(path):
    """The paragraph at the top of a file, after the licence line."""
    text = []
    for line in path.read_text().splitlines()[1:]:
        if not line.startswith("--"):
            break
        text.append(line[3:].rstrip() if len(line) > 2 else "")
    return text


def cell(text):
    return text.replace("|", "\\|")


def page():
    out, missing = [HEAD], []
    out += ["## Conventions", "", "```"] + head_comment(SQL / "schema.sql") + ["```", "", "## Tables", ""]
    for name, about, lines in blocks(SQL / "schema.sql", "TABLE"):
        columns = table_columns(lines)
        if not about:
            missing.append(name)
        out += [f"### {name}", "", about, "", "| column | type | meaning |", "|---|---|---|"]
        for column, kind, text in columns:
            if not text:
                missing.append(f"{name}.{column}")
            out.append(f"| {column} | {kind} | {cell(text)} |")
        out.append("")
    db = sqlite3.connect(":memory:")
    for part in ("schema.sql", "views.sql", "optuna.sql"):
        db.executescript((SQL / part).read_text())
    out += ["## Views", ""] + head_comment(SQL / "views.sql") + [""]
    for part, title in (("views.sql", None), ("optuna.sql", "## Optuna's names")):
        if title:
            out += [title, ""] + head_comment(SQL / part) + [""]
        for name, about, _ in blocks(SQL / part, "VIEW"):
            names = ", ".join(f"`{row[1]}`" for row in db.execute(f"PRAGMA table_info({name})"))
            if not about and part == "views.sql":
                missing.append(name)
            out += [f"### {name}", ""] + ([about, ""] if about else []) + [f"Columns: {names}", ""]
    out += ["## Example queries", "", "`hyperopt sql FILE @NAME`", ""]
    for path in sorted((SQL / "examples").glob("*.sql")):
        first, *rest = path.read_text().splitlines()
        if not first.startswith("-- "):
            missing.append(path.name)
        out += [f"### @{path.stem}", "", first.lstrip("- "), "", "```sql", *rest, "```", ""]
    if missing:
        sys.exit("no description: " + ", ".join(missing))
    return "\n".join(out).rstrip() + "\n"


if __name__ == "__main__":
    if sys.argv[1:] == ["--check"]:
        if not PAGE.exists() or PAGE.read_text() != page():
            sys.exit("docs/sql.md is old: run tools/sql-docs.py > docs/sql.md")
    else:
        sys.stdout.write(page())
