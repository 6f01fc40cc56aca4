# SPDX-License-Identifier: Apache-2.0
"""hyperopt run, from the study file to what a person reads, with both real programs."""
import hashlib
import json
import os
import pty
import re
import select
import shutil
import signal
import subprocess
import sys

import dbn
import harness
from harness import HYPEROPT, promoting, study_text


class Run(harness.SystemTest):
    def test_a_study_completes_and_shows_its_leaderboard_beside_the_baselines(self):
        self.write(study_text(trials=5))
        done = self.hyperopt("run", "t.toml")
        for word in ("finished", "buy-and-hold", "flat", "random", "hyperopt best t.db", "drawdown"):
            self.assertIn(word, done.stdout)
        self.assertEqual(self.states(), {"COMPLETE": 5})
        self.assertEqual(self.one("SELECT count(*) FROM fold_result WHERE fold >= 0"), 10)
        self.assertEqual(self.one("SELECT count(*) FROM fold_result WHERE fold = -1 AND sharpe IS NOT NULL"), 5)
        self.assertEqual(self.one("SELECT count(*) FROM baseline WHERE policy = 'buy_and_hold'"), 3)
        self.assertEqual(self.one("SELECT count(*) FROM report"), 10)
        self.assertGreater(self.one("SELECT min(length(returns)) FROM fold_result WHERE fold >= 0"), 0)
        self.assertEqual(self.one("SELECT state FROM study"), "finished")
        self.assertIntact()

    # a trial that asha pauses and promotes ends where it would have ended, on whichever worker
    def test_a_paused_trial_ends_as_if_it_had_not_been_paused(self):
        def text(seed):
            return study_text(trials=5, epochs=40).replace("episodes = 4", "episodes = 64").replace(
                "seed = 7", f"seed = {seed}")
        again = []
        for seed in range(40):  # until one that was paused is among the better half at last
            for old in self.dir.glob("t.db*"):
                old.unlink()
            self.write(promoting(text(seed), first=20, reduction=2))
            self.wait(self.start("run", "t.toml", "--workers", 2, "--log-level", "info", log="log"))
            self.assertLessEqual(set(self.states()), {"COMPLETE", "PRUNED"})
            again = [n for n, in self.query("SELECT number FROM trial WHERE state = 'COMPLETE' AND attempt > 1")]
            if again:
                break
        self.assertTrue(again)
        self.write(text(seed))
        self.hyperopt("run", "t.toml", "--database", "whole.db", "--workers", 2)
        self.assertGreaterEqual(self.log().count("goes on from a checkpoint"), len(again))
        self.assertNotIn("start anew", self.log())
        for number in again:
            reports = "SELECT step, value FROM report WHERE trial = {}".format(number)
            self.assertLessEqual(set(self.query(reports)), set(self.query(reports, "whole.db")), number)
            for sql in ("SELECT value FROM trial_value WHERE trial = {}",
                        "SELECT epoch, loss, reward_mean, experiences, validation FROM epoch_stat WHERE trial = {}",
                        "SELECT fold, seed, returns FROM fold_result WHERE trial = {}",
                        "SELECT epochs, experiences, updates FROM trial WHERE number = {}"):
                self.assertEqual(self.query(sql.format(number)), self.query(sql.format(number), "whole.db"), number)
        self.assertGreater(self.one("SELECT count(*) FROM artifact WHERE kind = 'checkpoint'"), 0)
        self.assertEqual(self.one("SELECT count(*) FROM artifact WHERE kind = 'checkpoint' AND deleted_ns IS NULL"), 0)
        self.assertEqual([str(path) for path in self.dir.glob("t.artifacts/*/checkpoint*")], [])
        self.assertIntact()

    # what a contract is worth is decided once, for agents, for their scores and for what `check` says
    def test_a_contracts_facts_in_the_data_count_as_in_the_study_file(self):
        dbn.write_twin(self.dir / "es.dbn", harness.DATA, 4000, tick=0.25, multiplier=50)
        text = study_text(trials=2, data="es.dbn")
        self.write(text)
        self.write(text.replace("[folds]", "[instrument]\ntick_size = 0.25\nmultiplier = 50\n[folds]"), "said.toml")
        checks = []
        for name in ("t", "said"):
            checks.append(re.findall(r"size at \+1.*", self.hyperopt("check", f"{name}.toml").stdout))
            self.hyperopt("run", f"{name}.toml", "--database", f"{name}.db")
        self.assertTrue(checks[0])
        self.assertEqual(checks[0], checks[1])
        self.assertIn("lots of 1)", checks[0][0])
        columns = ", ".join(name for name, in self.query("SELECT name FROM pragma_table_info('fold_result')"))
        for table in ("fold_result", "baseline"):
            sql = f"SELECT {columns if table == 'fold_result' else '*'} FROM {table} ORDER BY 1, 2, 3"
            self.assertEqual(self.query(sql), self.query(sql, "said.db"), table)
        self.assertGreater(self.one("SELECT count(*) FROM fold_result WHERE fold = -1 AND avg_trade_return IS NOT NULL"),
                           0)

    # gpus = 0 is the CPU backend, whatever devices there are; [0] is the first of them
    def test_gpus_0_is_the_cpu_although_there_is_a_gpu(self):
        (self.dir / "bin").mkdir()
        shutil.copy(HYPEROPT, self.dir / "bin/hyperopt")
        worker = self.dir / "bin/hyperopt-worker"
        worker.write_text(f'#!/bin/sh\necho "$@" >> {self.dir}/asked\n'
                          '[ "$1" != --devices ] || { echo "0  Some GPU"; exit 0; }\n'
                          f'case "$*" in *--gpu*) exit 1 ;; esac\nexec {harness.WORKER} "$@"\n')
        worker.chmod(0o755)
        self.write(study_text(trials=1))
        self.wait(self.start("run", "t.toml", program=str(self.dir / "bin/hyperopt")))
        self.assertEqual(self.states(), {"COMPLETE": 1})
        asked = (self.dir / "asked").read_text()
        self.assertIn("--cpu", asked)
        self.assertNotIn("--gpu", asked)
        self.write(study_text(trials=1).replace("gpus = 0", "gpus = [0]"))
        self.hyperopt("check", "t.toml")
        run = self.start("run", "t.toml", "--database", "u.db", program=str(self.dir / "bin/hyperopt"))
        self.wait(run, 3)  # this GPU does not work
        self.assertIn("--gpu 0", (self.dir / "asked").read_text())

    def test_an_automatic_batch_is_measured_once_and_kept(self):
        text = study_text(trials=2).replace("batch = 32", 'batch = "auto"')
        self.write(text)
        self.hyperopt("run", "t.toml")
        self.assertEqual(self.states(), {"COMPLETE": 2})
        batch = self.one("SELECT auto_batch FROM study")
        self.assertIn(batch, [64 << i for i in range(11)])
        self.hyperopt("run", "t.toml", "--trials", 1)
        self.assertEqual(self.states(), {"COMPLETE": 3})
        self.assertEqual(self.one("SELECT auto_batch FROM study"), batch)
        refused = self.hyperopt("run", "t.toml", "--database", "u.db", "--no-local", code=1)
        self.assertIn("dqn.batch", refused.stderr)

    def test_an_agent_leaves_as_an_onnx_model_that_acts(self):
        sys.path.insert(0, str(harness.SOURCE / "tests/agents"))
        import run_onnx
        self.write(study_text(trials=2))
        self.hyperopt("run", "t.toml")
        done = self.hyperopt("export", "t.db", "onnx", "-o", "agents")
        self.assertRegex(done.stdout, r"[1-9]\d* files of trial")
        for name in os.listdir(self.dir / "agents"):
            self.assertTrue(name.endswith(".onnx"), name)
            nodes, tensors = run_onnx.read_model(self.dir / "agents" / name)
            width = tensors["online.trunk.0.weight"].shape[1]
            states = [0.01 * ((i * 37) % 101 - 50) for i in range(3 * width)]
            score, action = run_onnx.evaluate(nodes, tensors, run_onnx.Tensor([3, width], states))
            self.assertEqual(score.shape, [3, 45])
            self.assertTrue(all(0 <= a < 45 for a in action.values))
        self.assertIn("expected", self.hyperopt("export", "t.db", "onxx", "-o", "agents", code=1).stderr)

    def test_running_again_adds_nothing_and_trials_adds(self):
        self.write(study_text(trials=3))
        self.hyperopt("run", "t.toml")
        before = self.query("SELECT number, finished_ns FROM trial")
        done = self.hyperopt("run", "t.toml")
        self.assertIn("has ended already", done.stdout)
        self.assertEqual(self.query("SELECT number, finished_ns FROM trial"), before)
        self.hyperopt("run", "t.toml", "--trials", 2)
        self.assertEqual(self.states(), {"COMPLETE": 5})
        self.hyperopt("run", "t.toml")
        self.assertEqual(self.states(), {"COMPLETE": 5})

    def test_an_interrupt_drains_and_the_same_command_resumes(self):
        self.write(study_text(trials=12, epochs=20))
        run = self.start("run", "t.toml")
        self.until(lambda: self.one("SELECT count(*) FROM trial WHERE state = 'COMPLETE'") >= 2, "two trials", run)
        workers = self.children(run)
        run.send_signal(signal.SIGINT)
        self.wait(run, 130)
        self.assertNoWorkers(workers)
        states = self.states()
        self.assertNotIn("RUNNING", states)
        self.assertGreaterEqual(states["COMPLETE"], 2)
        self.assertEqual(self.one("SELECT state FROM study"), "interrupted")
        self.hyperopt("run", "t.toml")
        self.assertEqual(self.states(), {"COMPLETE": 12})
        self.assertIntact()

    def test_a_second_interrupt_stops_now_and_leaves_no_running_row(self):
        self.write(study_text(trials=4, epochs=20000))
        run = self.start("run", "t.toml")
        self.until(lambda: self.one("SELECT count(*) FROM report") >= 1, "a report", run)
        workers = self.children(run)
        run.send_signal(signal.SIGINT)
        self.until(lambda: "once more stops now" in self.log(), "the first one is taken", run)  # two at once are one
        run.send_signal(signal.SIGINT)
        self.wait(run, 130)
        self.assertIn("stopping now", self.log())
        self.assertNoWorkers(workers)
        self.assertNotIn("RUNNING", self.states())

    def test_sigterm_is_taken_like_an_interrupt(self):
        self.write(study_text(trials=50, epochs=10))
        run = self.start("run", "t.toml")
        self.until(lambda: self.one("SELECT count(*) FROM trial WHERE state = 'COMPLETE'") >= 1, "a trial", run)
        run.send_signal(signal.SIGTERM)
        self.wait(run, 130)
        self.assertNotIn("RUNNING", self.states())

    def test_a_second_coordinator_is_refused(self):
        self.write(study_text(trials=50, epochs=10))
        run = self.start("run", "t.toml")
        self.until(lambda: self.one("SELECT count(*) FROM trial") >= 1, "a trial", run)
        done = self.hyperopt("run", "t.toml", code=4)
        self.assertIn("another coordinator", done.stderr)
        self.assertIn(str(run.pid), done.stderr)

    def test_the_same_seed_gives_the_same_trials_with_one_and_with_two_workers(self):
        self.write(study_text(trials=8, epochs=3, study="deterministic = true\nparallel = 3"))
        boards = []
        for db, workers in (("a.db", 1), ("b.db", 1), ("c.db", 2)):
            self.hyperopt("run", "t.toml", "--database", db, "--workers", workers)
            boards.append((self.query("SELECT * FROM leaderboard".replace("*", "rank, trial, value, sharpe, "
                                      "total_return, max_drawdown, trades"), db),
                           self.query("SELECT trial, param, value FROM param ORDER BY trial, param", db),
                           self.query("SELECT trial, fold, seed, hex(returns) FROM fold_result ORDER BY 1, 2, 3", db)))
        self.assertEqual(boards[0], boards[1])
        self.assertEqual(boards[0], boards[2])
        self.assertEqual(len(boards[0][1]), 16)

    def test_it_repeats_with_a_model_and_a_pruner_too(self):
        self.write(study_text(trials=20, epochs=9, study="deterministic = true\nparallel = 4")
                   .replace('kind = "random"', 'kind = "tpe"\nstartup = 6')
                   .replace('kind = "none"', 'kind = "asha"\nmin_epochs = 1\nreduction = 3'))
        outcomes = []
        for db, workers in (("a.db", 1), ("b.db", 3)):
            self.hyperopt("run", "t.toml", "--database", db, "--workers", workers)
            outcomes.append((self.query("SELECT trial, param, value FROM param ORDER BY 1, 2", db),
                             self.query("SELECT number, state, epochs FROM trial ORDER BY 1", db),
                             self.query("SELECT trial, value FROM trial_value ORDER BY 1", db),
                             self.query("SELECT rank, trial, value, sharpe, trades FROM leaderboard", db)))
        self.assertEqual(outcomes[0], outcomes[1])
        self.assertIn("PRUNED", {row[1] for row in outcomes[0][1]})

    def test_the_quickstart_completes(self):
        quick = "HYPEROPT_TEST_QUICK" in os.environ  # set where a sanitizer makes it slow
        few = ["--set", "study.trials=2", "--set", "agent.epochs=6"] if quick else []
        done = self.hyperopt("run", harness.SOURCE / "configs/quickstart.toml", *few)
        self.assertGreaterEqual(self.states("quickstart.db")["COMPLETE"], 1 if quick else 12)
        self.assertEqual(self.one("SELECT count(*) FROM fold WHERE id >= 0", "quickstart.db"), 3)
        for word in ("buy-and-hold", "flat", "random", "Next:"):
            self.assertIn(word, done.stdout)
        for command in ("best", "status"):
            self.hyperopt(command, "quickstart.db")

    def test_sql_cannot_write(self):
        self.write(study_text(trials=1))
        self.hyperopt("run", "t.toml")
        for sql in ("DELETE FROM trial", "UPDATE study SET name = 'x'", "DROP VIEW leaderboard", "VACUUM",
                    "PRAGMA user_version = 3", "ATTACH 'o.db' AS o", "CREATE TABLE x (a)"):
            done = self.hyperopt("sql", "t.db", sql, code=1)
            self.assertIn("hyperopt:", done.stderr)
        self.assertEqual(self.states(), {"COMPLETE": 1})

    def test_output_formats_say_the_same(self):
        self.write(study_text(trials=3))
        self.hyperopt("run", "t.toml")
        sql = "SELECT trial, value, 'a,\"b\"' AS text, NULL AS empty FROM leaderboard ORDER BY trial"
        rows = json.loads(self.hyperopt("sql", "t.db", sql, "--format", "json").stdout)
        self.assertEqual([row["trial"] for row in rows], [0, 1, 2])
        self.assertIsNone(rows[0]["empty"])
        csv = self.hyperopt("sql", "t.db", sql, "--format", "csv").stdout.splitlines()
        self.assertEqual(csv[0], "trial,value,text,empty")
        self.assertEqual(float(csv[1].split(",")[1]), rows[0]["value"])
        self.assertTrue(csv[1].endswith('"a,""b""",'))
        self.assertIn("| trial |", self.hyperopt("sql", "t.db", sql, "--format", "markdown").stdout)
        for name in re.findall(r"^  @([a-z-]+)", self.hyperopt("sql", "t.db").stdout, re.M):
            self.hyperopt("sql", "t.db", "@" + name)
        self.hyperopt("sql", "t.db", "@no-such-query", code=1)

    def test_best_prints_toml_that_runs(self):
        self.write(study_text(trials=3))
        self.hyperopt("run", "t.toml")
        toml = self.hyperopt("best", "t.db", "--toml").stdout
        self.assertIn("learning_rate = ", toml)
        self.assertIn("[barriers]\nstop_loss = ", toml)
        shown = self.hyperopt("show", "t.db", "1").stdout
        self.assertIn("trial 1: COMPLETE", shown)
        self.assertIn("buy-and-hold", shown)
        self.hyperopt("show", "t.db", "99", code=1)
        self.assertIn("finished", self.hyperopt("status", "t.db").stdout)

    # optuna 1859: a log is not flooded, and has no control characters
    def test_a_log_gets_plain_lines(self):
        self.write(study_text(trials=4))
        done = self.hyperopt("run", "t.toml")
        self.assertNotRegex(done.stderr + done.stdout, r"[\x00-\x08\x0b-\x1f\x7f]")
        self.assertIn("4/4", done.stderr)
        self.assertLess(len(done.stderr.splitlines()), 30)

    def test_a_json_log_is_one_object_a_line(self):
        self.write(study_text(trials=2))
        done = self.hyperopt("run", "t.toml", "--quiet", "--log-level", "debug", "--log-json")
        lines = [json.loads(line) for line in done.stderr.splitlines()]
        self.assertGreater(len(lines), 5)
        for line in lines:
            self.assertEqual(set(line), {"time", "level", "area", "event"})
        self.assertIn("worker", {line["area"] for line in lines})

    def run_on_terminal(self, env):
        pid, fd = pty.fork()
        if pid == 0:
            os.chdir(self.dir)
            os.environ.update(env)
            os.execv(HYPEROPT, [HYPEROPT, "run", "t.toml"])
        text = b""
        while True:
            try:
                ready, _, _ = select.select([fd], [], [], harness.HANG)
                part = os.read(fd, 65536) if ready else b""
            except OSError:
                part = b""
            if not part:
                break
            text += part
        _, status = os.waitpid(pid, 0)
        os.close(fd)
        self.assertEqual(os.waitstatus_to_exitcode(status), 0, text)
        return text.decode()

    def test_a_terminal_gets_a_bar_and_no_color_is_honoured(self):
        self.write(study_text(trials=4))
        text = self.run_on_terminal({"TERM": "xterm", "NO_COLOR": ""})
        self.assertIn("\r\x1b[K", text)
        self.assertIn("\x1b[32m[", text)
        self.hyperopt("run", "t.toml", "--trials", 1)
        os.unlink(self.dir / "t.db")
        text = self.run_on_terminal({"TERM": "xterm", "NO_COLOR": "1"})
        self.assertIn("[####", text)
        self.assertNotIn("\x1b[32m", text)
        os.unlink(self.dir / "t.db")
        self.assertNotIn("\x1b", self.run_on_terminal({"TERM": "dumb", "NO_COLOR": ""}))

    def test_a_trial_that_cannot_run_is_a_failed_row_with_a_reason(self):
        # one lot costs more than the capital for some of the values
        self.write(study_text(trials=6, search='"env.max_exposure" = { float = [0.000001, 0.9] }',
                              more="[instrument]\nlot = 500000"))
        self.hyperopt("run", "t.toml")
        states = self.states()
        self.assertEqual(sum(states.values()), 6)
        self.assertGreater(states.get("FAILED", 0), 0)
        self.assertEqual(self.one("SELECT count(*) FROM trial WHERE state = 'FAILED' AND "
                                  "(fail_reason IS NULL OR fail_class IS NULL)"), 0)

    def test_a_changed_study_needs_allow_change_and_shows_the_difference(self):
        self.write(study_text(trials=3))
        self.hyperopt("run", "t.toml")
        text = study_text(trials=5).replace("[10, 80]", "[10, 60]").replace("batch = 32", "batch = 16")
        self.write(text)
        done = self.hyperopt("run", "t.toml", code=1)
        self.assertIn("barriers.stop_loss", done.stderr)
        self.assertIn("dqn.batch: 32 -> 16", done.stderr)
        self.assertIn("--allow-change", done.stderr)
        self.assertEqual(self.states(), {"COMPLETE": 3})
        self.hyperopt("run", "t.toml", "--allow-change")
        self.assertEqual(self.states(), {"COMPLETE": 5})
        self.assertEqual(self.one("SELECT count(*) FROM event WHERE kind = 'change'"), 1)
        # what may change freely needs no flag
        self.write(text.replace("trials = 5", "trials = 6"))
        self.hyperopt("run", "t.toml")
        self.assertEqual(self.states(), {"COMPLETE": 6})

    def test_stored_values_are_never_mixed_with_those_of_another_objective(self):
        self.write(study_text(trials=2))
        self.hyperopt("run", "t.toml")
        before = self.query("SELECT trial, value FROM trial_value")
        for key, value in (("objective", '"max_drawdown"'), ("objective", '["sharpe", "max_drawdown"]'),
                           ("aggregate", '"median"'), ("constraints", '["max_drawdown >= -0.25"]')):
            self.write(study_text(trials=4, study=f"{key} = {value}"))
            done = self.hyperopt("run", "t.toml", "--allow-change", code=1)
            self.assertIn(f"values of another study.{key}", done.stderr)
            self.assertIn("--database", done.stderr)
            self.assertEqual(self.query("SELECT trial, value FROM trial_value"), before)
        self.hyperopt("run", "t.toml", "--database", "other.db")
        self.assertEqual(self.states("other.db"), {"COMPLETE": 4})

    def test_unfinished_trials_of_a_changed_study_begin_anew(self):
        def text(epochs, gamma):
            return study_text(trials=2, epochs=epochs, study="deterministic = true\nparallel = 1",
                              more="[checkpoint]\nreplay = true").replace("[dqn]\n", f"[dqn]\ngamma = {gamma}\n")
        self.write(text(400, 0.9).replace("episodes = 4", "episodes = 64"))
        run = self.start("run", "t.toml")
        self.until(lambda: self.one("SELECT count(*) FROM report") >= 3, "reports", run)
        run.send_signal(signal.SIGUSR1)  # stops now: with a checkpoint
        self.wait(run, 130)
        self.assertEqual(self.one("SELECT count(*) FROM artifact WHERE kind = 'checkpoint' AND deleted_ns IS NULL"), 1)
        uuid = self.one("SELECT uuid FROM study")
        self.write(text(3, 0.99))
        self.hyperopt("run", "t.toml", "--database", "calm.db")
        done = self.hyperopt("run", "t.toml", "--allow-change", "--log-level", "info")
        self.assertNotIn("goes on from a checkpoint", done.stderr)
        self.assertEqual(self.states(), {"COMPLETE": 2})
        self.assertEqual(self.query("SELECT DISTINCT epochs FROM trial"), [(3,)])
        self.assertEqual(self.one("SELECT attempt FROM trial WHERE number = 0"), 2)
        self.assertNotEqual(self.one("SELECT uuid FROM study"), uuid)
        self.assertEqual(self.one("SELECT max(epoch) FROM epoch_stat"), 3)
        # as if nothing had been before
        sql = "SELECT trial, fold, hex(returns) FROM fold_result ORDER BY 1, 2"
        self.assertEqual(self.query(sql), self.query(sql, "calm.db"))

    def test_without_a_worker_program_the_run_says_so(self):
        self.write(study_text())
        lonely = self.dir / "hyperopt"
        shutil.copy(HYPEROPT, lonely)
        done = subprocess.run([str(lonely), "run", "t.toml"], cwd=self.dir, capture_output=True, text=True,
                              env={**os.environ, "PATH": "/nowhere"}, timeout=harness.HANG)
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("hyperopt-worker", done.stderr)

    def test_a_warm_start_learns_from_another_study(self):
        self.write(study_text(trials=4))
        self.hyperopt("run", "t.toml", "--database", "old.db")
        warm = '\n[[warm_start]]\ndatabase = "old.db"\nbest = 2\n'
        self.write(study_text(trials=2) + warm)
        done = self.hyperopt("run", "t.toml", "--log-level", "info")
        self.assertIn("told=2", done.stderr)
        self.assertEqual(self.states(), {"COMPLETE": 2})
        self.write(study_text(trials=2) + warm.replace("old.db", "nowhere.db"), "n.toml")
        done = self.hyperopt("run", "n.toml", "--database", "n.db", code=None)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("nowhere.db", done.stderr)
        self.write(study_text(trials=2, study='objective = ["sortino"]') + warm, "o.toml")
        done = self.hyperopt("run", "o.toml", "--database", "o.db", code=1)
        self.assertIn("other objectives", done.stderr)

    def test_the_best_are_run_again_with_fresh_seeds(self):
        self.write(study_text(trials=4, study="final_retest = 2\nretest_seeds = 2"))
        done = self.hyperopt("run", "t.toml")
        self.assertIn("fresh seeds", done.stdout)
        self.assertEqual(self.one("SELECT count(*) FROM trial WHERE source = 'retest'"), 4)
        self.assertEqual(self.one("SELECT count(*) FROM leaderboard"), 4)
        # the same parameters, other random numbers
        self.assertEqual(self.one("SELECT count(*) FROM trial a JOIN trial b ON b.number = a.parent "
                                  "WHERE a.config_hash <> b.config_hash"), 0)
        self.assertGreater(self.one("SELECT count(DISTINCT returns) FROM fold_result WHERE fold = 0"), 4)

    def test_only_the_best_keep_their_weights_and_epochs(self):
        self.write(study_text(trials=6, more='[store]\nkeep_best = 2\nepochs = "kept"'))
        self.hyperopt("run", "t.toml")
        best = {row[0] for row in self.query("SELECT trial FROM leaderboard WHERE rank <= 2")}
        kept = {row[0] for row in self.query("SELECT DISTINCT trial FROM artifact WHERE kind = 'weights' AND "
                                             "deleted_ns IS NULL")}
        on_disk = {int(p.parent.name[6:]) for p in self.dir.glob("t.artifacts/trial-*/*.safetensors")}
        self.assertEqual(kept, best)
        self.assertEqual(on_disk, best)
        self.assertEqual({row[0] for row in self.query("SELECT DISTINCT trial FROM epoch_stat")}, best)
        for path, sha256 in self.query("SELECT path, sha256 FROM artifact WHERE deleted_ns IS NULL"):
            self.assertEqual(hashlib.sha256((self.dir / "t.artifacts" / path).read_bytes()).hexdigest(), sha256)
        self.assertEqual(self.one("SELECT count(DISTINCT trial) FROM artifact WHERE kind = 'actions' AND "
                                  "deleted_ns IS NULL"), 6)

    def test_importances_are_stored_at_the_end(self):
        self.write(study_text(trials=12, epochs=1))
        self.hyperopt("run", "t.toml")
        rows = self.query("SELECT s.name, i.value FROM importance i JOIN param_space s ON s.id = i.param "
                          "WHERE i.method = 'ped_anova'")
        self.assertEqual({name for name, _ in rows}, {"dqn.learning_rate", "barriers.stop_loss"})
        self.assertAlmostEqual(sum(value for _, value in rows), 1.0, places=9)

    def test_every_command_has_help_with_examples(self):
        names = re.findall(r"^  ([a-z-]+)  +\S", self.hyperopt("--help").stdout, re.M)
        self.assertIn("run", names)
        for name in names:
            text = self.hyperopt(name, "--help").stdout
            self.assertIn(f"usage: hyperopt {name}", text)
            self.assertIn("Exit codes:", text)
            self.assertEqual(self.hyperopt("help", name).stdout, text)
            self.hyperopt(name, "--no-such-option", code=1)
        self.assertIn("0.1", self.hyperopt("--version").stdout)
        self.hyperopt("no-such-command", code=1)


if __name__ == "__main__":
    harness.main()
