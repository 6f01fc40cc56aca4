#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Rewrites what is CUDA's own syntax in a .cu or .cuh file into C++ for the emulator.

usage: rewrite.py IN OUT

  kernel<<<grid, block, ...>>>(args)   ho_emu::launching("kernel", kernel).on(grid, block, ...).run(args)
  extern __shared__ T name[];          a pointer to the block's dynamic shared memory
  __shared__ T name[N];                a reference into the block's static shared memory

Everything else is left to the headers of tests/emulator/include. Line numbers are kept, and #line
names the original, so compilers, debuggers and sanitizers speak of the file in kernels/cuda.
A kernel that is a template is launched with all its template arguments written out.
"""
import os
import re
import sys


def masked(text):
    """The text with comments, strings and line continuations blanked, of the same length."""
    pattern = r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|\\\n'
    return re.sub(pattern, lambda m: re.sub(r'[^\n]', ' ', m.group()), text, flags=re.S)


def fail(path, text, at, why):
    sys.exit(f"{path}:{text.count(chr(10), 0, at) + 1}: {why}")


def open_before(text, at):
    """Index of the bracket that `text[at]`, a closing one, closes; -1 when there is none."""
    pairs, depth = {')': '(', '>': '<'}, 0
    close, open_ = text[at], pairs[text[at]]
    while at >= 0:
        depth += (text[at] == close) - (text[at] == open_)
        if depth == 0:
            return at
        at -= 1
    return -1


def skip_space_back(text, at):
    while at > 0 and text[at - 1].isspace():
        at -= 1
    return at


def kernel_start(text, end):
    """Where the kernel expression that ends at `end` begins: name, name<...>, or call(...)."""
    at = skip_space_back(text, end)
    for close in ')>':
        if at > 0 and text[at - 1] == close:
            at = open_before(text, at - 1)
            if at < 0:
                return -1
            at = skip_space_back(text, at)
    name = re.search(r'[A-Za-z_][\w:]*$', text[:at])
    return name.start() if name else -1


def matching(text, at):
    """Index of the bracket that closes the round one at `at`."""
    depth = 0
    for i in range(at, len(text)):
        depth += (text[i] == '(') - (text[i] == ')')
        if depth == 0:
            return i
    return -1


def launches(path, text, edits):
    bare = masked(text)
    for m in re.finditer('<<<', bare):
        start = kernel_start(bare, m.start())
        end = bare.find('>>>', m.end())
        if start < 0 or end < 0:
            fail(path, text, m.start(), 'a launch that rewrite.py cannot read')
        call = re.compile(r'\s*\(').match(bare, end + 3)
        if not call or matching(bare, call.end() - 1) < 0:
            fail(path, text, end, 'a launch without arguments in brackets')
        name = ' '.join(bare[start:m.start()].split())
        edits.append((start, start, f'ho_emu::launching("{name}", '))
        edits.append((m.start(), m.end(), ').on('))
        edits.append((end, end + 3, ').run'))


def split_declarators(text):
    parts, depth, part = [], 0, ''
    for c in text:
        depth += (c in '<([') - (c in '>)]')
        if c == ',' and depth == 0:
            parts.append(part)
            part = ''
        else:
            part += c
    return parts + [part]


def shared_memory(path, text, edits):
    bare = masked(text)
    for m in re.finditer(r'(\bextern\s+)?(\b__align__\s*\([^)]*\)\s*)?\b__shared__\s+([^;]*);', bare):
        lines = '\n' * m.group().count('\n')
        declaration = m.group(3)
        align = re.search(r'__align__\s*\(([^)]*)\)', m.group())
        declaration = ' '.join(re.sub(r'__align__\s*\([^)]*\)', ' ', declaration).split())
        first, *rest = split_declarators(declaration)
        d = re.match(r'(.*[\s*&>])(\w+)((?:\s*\[[^\]]*\])*)$', first)
        if not d:
            fail(path, text, m.start(), 'a __shared__ declaration that rewrite.py cannot read')
        of, out = d.group(1).strip(), ''
        if m.group(1):
            if rest or d.group(3).replace(' ', '') != '[]':
                fail(path, text, m.start(), 'dynamic shared memory that is not one array T name[]')
            out = f'{of} *const {d.group(2)} = ({of} *)ho_emu::dynamic_shared();'
        else:
            for part in [first[len(d.group(1)):]] + rest:
                p = re.match(r'\s*(\w+)((?:\s*\[[^\]]*\])*)\s*$', part)
                if not p or '[]' in part.replace(' ', ''):
                    fail(path, text, m.start(), 'a __shared__ declaration that rewrite.py cannot read')
                name, type_ = p.group(1), f'{p.group(1)}_in_shared'
                out += (f'static char {name}_tag; using {type_} = {of}{p.group(2)}; '
                        f'{type_} &{name} = *({type_} *)ho_emu::static_shared(&{name}_tag, '
                        f'sizeof({type_}), {align.group(1) if align else f"alignof({type_})"}); ')
        edits.append((m.start(), m.end(), out + lines))


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    path, out = sys.argv[1:]
    with open(path, encoding='utf-8') as f:
        text = f.read()
    edits = []
    launches(path, text, edits)
    shared_memory(path, text, edits)
    for start, end, replacement in sorted(edits, reverse=True):
        text = text[:start] + replacement + text[end:]
    os.makedirs(os.path.dirname(out), exist_ok=True)
    with open(out, 'w', encoding='utf-8') as f:
        f.write(f'#line 1 "{os.path.abspath(path)}"\n' + text)


main()
