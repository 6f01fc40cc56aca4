# SPDX-License-Identifier: Apache-2.0
"""Carries out a Dockerfile without a container engine: each stage is a copy of a base root folder, its
steps run in a chroot with a mount namespace of their own. Knows what this project's Dockerfile uses:
ARG, FROM ... AS, WORKDIR, COPY [--from], RUN, USER, ENV, and notes EXPOSE, VOLUME, HEALTHCHECK,
STOPSIGNAL, ENTRYPOINT and CMD. Needs root."""
import fnmatch
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess

NOTED = ("EXPOSE", "VOLUME", "HEALTHCHECK", "STOPSIGNAL", "ENTRYPOINT", "CMD")


def instructions(text):
    """[(line number, word, rest)], continuation lines joined, comments left out."""
    out = []
    joined, first = "", 0
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("#") or (not line.strip() and not joined):
            continue
        first = first or number
        joined += line.rstrip()
        if joined.endswith("\\"):
            joined = joined[:-1]
            continue
        word, _, rest = joined.strip().partition(" ")
        out.append((first, word.upper(), rest.strip()))
        joined, first = "", 0
    return out


class Stage:
    def __init__(self, root, parent=None):
        self.root = root
        self.workdir = parent.workdir if parent else "/"
        self.user = parent.user if parent else "0:0"
        self.env = dict(parent.env) if parent else {}
        self.args = {}
        self.noted = dict(parent.noted) if parent else {}

    def path(self, inside):
        return self.root / os.path.normpath(os.path.join(self.workdir, inside)).lstrip("/")

    def command(self, argv, mounts=()):
        """argv to run in this root as its user: proc and dev in place, nothing else of the host."""
        uid, _, gid = self.user.partition(":")
        script = f"mount -t proc proc {self.root}/proc && mount --rbind /dev {self.root}/dev"
        for source, target in mounts:
            script += f" && mkdir -p {self.root}{target} && mount --bind {source} {self.root}{target}"
        env = " ".join(shlex.quote(f"{k}={v}") for k, v in
                       {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/", **self.env,
                        **self.args}.items())
        inside = f"cd {self.workdir} && exec " + " ".join(map(shlex.quote, argv))
        script += (f" && exec chroot --userspec={uid}:{gid or uid} {self.root} /usr/bin/env -i {env} "
                   f"/bin/sh -c {shlex.quote(inside)}")
        return ["unshare", "-m", "--propagation", "private", "sh", "-c", script]


def ignored(patterns, path):
    parts = path.split("/")
    heads = ["/".join(parts[:n + 1]) for n in range(len(parts))]
    return any(fnmatch.fnmatch(head, p) or (p.startswith("**/") and fnmatch.fnmatch(head.split("/")[-1], p[3:]))
               for p in patterns for head in heads)


class Build:
    """base: a root folder to start FROM; context: the source folder; work: where the stages go."""

    def __init__(self, base, context, work, target, log):
        self.base, self.context, self.work = pathlib.Path(base), pathlib.Path(context), pathlib.Path(work)
        self.target, self.log = target, log
        self.patterns = [p for p in (self.context / ".dockerignore").read_text().split() if not p.startswith("#")]
        self.stages, self.globals = {}, {}
        self.stage = None

    def value(self, text):
        known = {**self.globals, **(self.stage.args if self.stage else {}), **(self.stage.env if self.stage else {})}
        return re.sub(r"\$\{(\w+)\}", lambda m: known.get(m.group(1), m.group(0)), text)

    def build(self):
        """Up to and with the stage `target`; returns the stages by name."""
        for number, word, rest in instructions((self.context / "Dockerfile").read_text()):
            self.log(f"Dockerfile:{number}: {word} {rest[:100]}")
            if word == "FROM":
                if self.target in self.stages:
                    break
                self.begin(self.value(rest))
            elif word == "ARG":
                name, _, default = rest.partition("=")
                where = self.stage.args if self.stage else self.globals
                where[name] = default.strip('"') or self.globals.get(name, "")
            elif word in NOTED:
                self.stage.noted[word] = rest
            elif word in ("WORKDIR", "USER", "ENV", "COPY", "RUN"):
                getattr(self, word.lower())(rest)
            else:
                raise ValueError(f"Dockerfile:{number}: {word} is not known here")
        return self.stages

    def begin(self, rest):
        source, _, name = re.fullmatch(r"(\S+)( AS (\S+))?", rest).groups()
        parent = self.stages.get(source)
        root = self.work / name
        subprocess.run(["cp", "-a", "--reflink=auto", parent.root if parent else self.base, root], check=True)
        self.stage = self.stages[name] = Stage(root, parent)

    def workdir(self, rest):
        self.stage.workdir = rest
        self.stage.path(".").mkdir(parents=True, exist_ok=True)

    def user(self, rest):
        self.stage.user = rest

    def env(self, rest):
        name, _, value = rest.partition("=")
        self.stage.env[name] = value

    def copy(self, rest):
        words = rest.split()
        if words[0].startswith("--from="):
            source = self.stages[words.pop(0)[7:]].root
            files = None
        else:
            source = self.context
            listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=source, check=True,
                                    capture_output=True, text=True).stdout.split("\n")
            files = [f for f in listed if f and (source / f).exists() and not ignored(self.patterns, f)]
        *names, target = words
        place = self.stage.path(target)
        for name in names:
            path = source / name.lstrip("/")
            if files is None:
                shutil.copytree(path, place, dirs_exist_ok=True, symlinks=True)
            elif path.is_file():
                place.mkdir(parents=True, exist_ok=True)
                assert not ignored(self.patterns, name), f"COPY {name}: .dockerignore leaves it out"
                shutil.copy2(path, place)
            else:
                prefix = "" if name == "." else name + "/"
                for file in (f for f in files if f.startswith(prefix)):
                    to = place / file[len(prefix):]
                    to.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy2(source / file, to)

    def run(self, rest):
        argv = json.loads(rest) if rest.startswith("[") else ["/bin/sh", "-c", rest]
        subprocess.run(self.stage.command(argv), check=True, stdin=subprocess.DEVNULL)
