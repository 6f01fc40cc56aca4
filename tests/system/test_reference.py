# SPDX-License-Identifier: Apache-2.0
"""Pages and completion that are made from the program's tables, and that no key of the settings
table is dead."""
import os
import pathlib
import pty
import re
import select
import shutil
import subprocess
import time
import unittest

import harness
from harness import BIN, HYPEROPT, SOURCE

class Terminal:
    """A shell on a pseudo-terminal, 200 columns wide."""

    def __init__(self, argv, folder):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(folder)
            os.environ.update(PATH=f"{BIN}:{os.environ['PATH']}", TERM="dumb", PS1="$ ", COLUMNS="200",
                              INPUTRC="/dev/null", HOME=str(folder), ZDOTDIR=str(folder))
            os.execvp(argv[0], argv)
        self.seen = ""

    def send(self, text):
        os.write(self.fd, text.encode())

    def text(self):
        """What stands on the screen: a backspace goes back, what follows overwrites."""
        line, at = [], 0
        for c in re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", self.seen):
            if c == "\b":
                at -= 1
            else:
                line[at:at + 1] = [c]
                at += 1
        return "".join(line)

    def until(self, pattern):
        end = time.monotonic() + harness.HANG
        while not re.search(pattern, self.text()):
            if time.monotonic() > end:
                raise AssertionError(f"never saw {pattern!r} in {self.seen!r}")
            if select.select([self.fd], [], [], 1)[0]:
                try:
                    self.seen += os.read(self.fd, 65536).decode(errors="replace")
                except OSError:
                    raise AssertionError(f"ended before {pattern!r}: {self.seen!r}") from None

    def close(self):
        os.close(self.fd)
        os.waitpid(self.pid, 0)


class Reference(harness.SystemTest):
    def test_the_pages_in_docs_are_what_the_program_prints(self):
        for page, topic in (("docs/commands.md", "commands"),
                            ("man/hyperopt.1", "man")):
            with self.subTest(page=page):
                self.assertTrue(self.hyperopt("help", topic).stdout == (SOURCE / page).read_text(),
                                "old: run tools/make-docs.sh")

    def test_every_command_and_option_stands_in_the_page_and_in_its_help(self):
        page = (SOURCE / "docs/commands.md").read_text()
        listed = re.findall(r"^  ([a-z-]+) +\S", self.hyperopt("--help").stdout, re.M)
        self.assertGreater(len(listed), 10)
        for command in listed:
            text = self.hyperopt(command, "--help").stdout
            self.assertIn(f"## hyperopt {command}\n", page)
            for option in re.findall(r"--([a-z][a-z-]+)", text.split("Options:")[1].split("Examples:")[0]):
                self.assertTrue(re.search(rf"--{option}\b", page), f"{command} --{option}: run tools/make-docs.sh")

    def test_the_manual_page_is_clean_roff(self):
        if not shutil.which("groff"):
            self.skipTest("no groff")
        done = subprocess.run(["groff", "-man", "-Tascii", "-ww", SOURCE / "man/hyperopt.1"], capture_output=True,
                              text=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("hyperopt", done.stdout)

    def test_every_key_of_the_settings_table_is_read_somewhere(self):
        rows = "".join((SOURCE / f"study/settings_{part}.h").read_text() for part in ("agent", "env", "market", "run"))
        keys = re.findall(r"\bX\(([A-Z0-9_]+),\s*\"", rows)
        self.assertGreater(len(keys), 150)
        readers = ""
        for room in ("study", "market", "worker", "coordinator"):
            for path in (SOURCE / room).rglob("*.[ch]"):
                if not path.name.startswith("settings"):
                    readers += path.read_text()
        # study.require stands beside [search] require, which the loader takes from the file itself
        dead = [key for key in keys
                if key != "STUDY_REQUIRE" and not re.search(rf"\bHO_KEY_{key}\b", readers)]
        self.assertEqual(dead, [])

    def complete(self, terminal, typed, want):
        terminal.seen = ""
        terminal.send(typed + "\t")
        terminal.until(want)
        terminal.send("\x15")  # drops the line

    def test_bash_completes_commands_options_settings_and_examples(self):
        (self.dir / "one.toml").write_text("")
        (self.dir / "two.db").write_text("")
        bash = Terminal(["bash", "--norc", "--noprofile", "-i"], self.dir)
        try:
            bash.send("eval \"$(hyperopt completion bash)\"; echo rea''dy\n")
            bash.until("ready")
            self.complete(bash, "hyperopt reprod", "hyperopt reproduce ")
            self.complete(bash, "hyperopt run o", r"hyperopt run one\.toml")
            self.complete(bash, "hyperopt run one.toml --allow", "--allow-change ")
            self.complete(bash, "hyperopt status t", r"hyperopt status two\.db")
            self.complete(bash, "hyperopt sql two.db --format mark", "--format markdown ")
            self.complete(bash, "hyperopt sql two.db @best-", "two.db @best-by-fold ")
            self.complete(bash, "hyperopt run one.toml --set dqn.gam", "--set dqn.gamma=$")
            self.complete(bash, "hyperopt help ppo.cl", "help ppo.clip ")
            self.complete(bash, "hyperopt export two.db opt", "two.db optuna ")
        finally:
            bash.close()

    def test_zsh_completes_commands_options_settings_and_examples(self):
        if not shutil.which("zsh"):
            self.skipTest("no zsh")
        (self.dir / "one.toml").write_text("")
        (self.dir / "two.db").write_text("")
        zsh = Terminal(["zsh", "-f", "-i"], self.dir)
        try:
            zsh.send("PS1='$ '; autoload -Uz compinit; compinit -u; source <(hyperopt completion zsh); echo rea''dy\n")
            zsh.until("ready")
            self.complete(zsh, "hyperopt reprod", "hyperopt reproduce ")
            self.complete(zsh, "hyperopt run o", r"hyperopt run one\.toml")
            self.complete(zsh, "hyperopt run one.toml --allow", "--allow-change ")
            self.complete(zsh, "hyperopt status t", r"hyperopt status two\.db")
            self.complete(zsh, "hyperopt sql two.db --format mark", "--format markdown ")
            self.complete(zsh, "hyperopt sql two.db @best-", "two.db @best-by-fold ")
            self.complete(zsh, "hyperopt run one.toml --set dqn.gam", "--set dqn.gamma=")
            self.complete(zsh, "hyperopt export two.db opt", "two.db optuna ")
        finally:
            zsh.close()


if __name__ == "__main__":
    harness.main()
