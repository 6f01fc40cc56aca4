# SPDX-License-Identifier: Apache-2.0
"""Other people's programs on our files and endpoints: Optuna and its dashboard read a study's
database, a real Prometheus scrapes a run and promtool approves of the text."""
import json
import os
import pathlib
import shutil
import subprocess
import unittest
import urllib.parse
import urllib.request

import harness
from harness import BIN, HOST, free_port, study_text

READ = """
import json, sys
import optuna
optuna.logging.set_verbosity(optuna.logging.ERROR)
url, options = sys.argv[1], json.loads(sys.argv[2])
storage = optuna.storages.RDBStorage(url, **options)
name = storage.get_all_studies()[0].study_name
study = optuna.load_study(study_name=name, storage=storage)
print(json.dumps({"version": optuna.__version__, "name": name, "direction": study.direction.name,
    "states": [t.state.name for t in study.trials], "best": study.best_trial.number, "value": study.best_value,
    "params": [t.params for t in study.trials], "kinds": {k: type(d).__name__ for t in study.trials
    for k, d in t.distributions.items()}, "steps": [len(t.intermediate_values) for t in study.trials],
    "attributes": sorted(study.trials[0].user_attrs)}))
"""
MODERN = os.environ.get("HO_OPTUNA_PYTHON")  # a Python that has a current Optuna and optuna-dashboard


class Optuna(harness.SystemTest):
    def made(self):
        self.write(study_text(trials=40, search='"dqn.double" = { choice = [true, false] }\n"dqn.n_step" = { int = [1, 4] }\n'))
        subprocess.run([BIN / "make_study", "t.toml", "t.db", "40"], cwd=self.dir, check=True)

    def read(self, python, url, options):
        done = subprocess.run([python, "-c", READ, url, json.dumps(options)], capture_output=True, text=True,
                              cwd=self.dir, timeout=harness.HANG)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def check(self, seen):
        self.assertEqual((seen["name"], seen["direction"], len(seen["states"])), ("t", "MAXIMIZE", 40))
        want = [{7: "PRUNED", 9: "FAIL"}.get(n % 10, "COMPLETE") for n in range(40)]
        self.assertEqual(seen["states"], want)
        rows = {t: (a, b, c, d) for t, a, b, c, d in self.query(
            'SELECT trial, "dqn.learning_rate", "barriers.stop_loss", "dqn.double", "dqn.n_step" FROM trial_wide')}
        for n, params in enumerate(seen["params"]):
            got = tuple(params[k] for k in ("dqn.learning_rate", "barriers.stop_loss", "dqn.double", "dqn.n_step"))
            self.assertEqual(got, rows[n])
        self.assertEqual(seen["kinds"], {"dqn.learning_rate": "FloatDistribution", "barriers.stop_loss": "FloatDistribution",
                                         "dqn.double": "CategoricalDistribution", "dqn.n_step": "IntDistribution"})
        self.assertEqual(seen["steps"], [3] * 20 + [0] * 20)
        self.assertIn("sharpe", seen["attributes"])
        values = dict(self.query("SELECT trial, value FROM trial_value WHERE value IS NOT NULL"))
        self.assertEqual(seen["value"], values[seen["best"]])

    def test_the_distributions_optuna_reads_the_database_as_it_is(self):
        python = shutil.which("python3", path="/usr/bin")
        if not python or subprocess.run([python, "-c", "import optuna"], capture_output=True).returncode != 0:
            self.skipTest("no python3-optuna")
        self.made()
        before = (self.dir / "t.db").read_bytes()
        self.check(self.read(python, f"sqlite:///file:{self.dir}/t.db?mode=ro&uri=true",
                             {"skip_compatibility_check": True, "skip_table_creation": True}
                             if self.takes(python, "skip_table_creation") else {"skip_compatibility_check": True}))
        self.assertEqual((self.dir / "t.db").read_bytes(), before)
        self.hyperopt("export", "t.db", "optuna", "-o", "o.db")
        self.check(self.read(python, f"sqlite:///{self.dir}/o.db", {"skip_compatibility_check": True}))

    def takes(self, python, option):
        code = f"import inspect, optuna; print('{option}' in inspect.signature(optuna.storages.RDBStorage).parameters)"
        return "True" in subprocess.run([python, "-c", code], capture_output=True, text=True).stdout

    @unittest.skipUnless(MODERN, "HO_OPTUNA_PYTHON names no Python with a current Optuna")
    def test_a_current_optuna_reads_the_database_as_it_is(self):
        self.made()
        self.check(self.read(MODERN, f"sqlite:///file:{self.dir}/t.db?mode=ro&uri=true", {}))
        self.hyperopt("export", "t.db", "optuna", "-o", "o.db")
        self.check(self.read(MODERN, f"sqlite:///{self.dir}/o.db", {}))

    @unittest.skipUnless(MODERN, "HO_OPTUNA_PYTHON names no Python with optuna-dashboard")
    def test_the_dashboard_shows_the_study(self):
        self.made()
        port = free_port()
        dashboard = self.start(f"sqlite:///file:{self.dir}/t.db?mode=ro&uri=true", "--host", HOST, "--port", port,
                               program=str(pathlib.Path(MODERN).parent / "optuna-dashboard"))
        base = f"http://{HOST}:{port}"

        def get(path):
            with urllib.request.urlopen(base + path, timeout=60) as answer:
                return answer.read().decode()

        def up():
            try:
                return "<html" in get("/dashboard/").lower()
            except OSError:
                return False
        self.until(up, "the dashboard", dashboard)
        studies = json.loads(get("/api/studies"))["study_summaries"]
        self.assertEqual([s["study_name"] for s in studies], ["t"])
        detail = json.loads(get(f"/api/studies/{studies[0]['study_id']}"))
        self.assertEqual(len(detail["trials"]), 40)
        self.assertEqual({t["state"].upper() for t in detail["trials"]}, {"COMPLETE", "PRUNED", "FAIL"})
        dashboard.terminate()
        dashboard.wait()


@unittest.skipUnless(shutil.which("prometheus") and shutil.which("promtool"), "no prometheus")
class Prometheus(harness.SystemTest):
    def test_a_real_prometheus_scrapes_a_run_and_promtool_approves(self):
        port, own = free_port(), free_port()
        self.write(study_text(trials=100000, epochs=3,  # lasts until it is stopped
                               more=f'metrics = "{HOST}:{port}"'))
        run = self.start("run", "t.toml", "-q")

        def text():
            try:
                with urllib.request.urlopen(f"http://{HOST}:{port}/metrics", timeout=60) as answer:
                    return answer.read()
            except OSError:
                return b""
        self.until(lambda: b'state="complete"} 0' not in text() and b"complete" in text(), "a trial", run)
        done = subprocess.run(["promtool", "check", "metrics"], input=text(), capture_output=True)
        self.assertEqual((done.returncode, done.stderr.decode()), (0, ""))
        self.write(f"scrape_configs:\n- job_name: h\n  scrape_interval: 1s\n  static_configs:\n  - targets: "
                   f"['{HOST}:{port}']\n", "prometheus.yml")
        server = self.start("--config.file=prometheus.yml", f"--web.listen-address={HOST}:{own}",
                            f"--storage.tsdb.path={self.dir / 'tsdb'}", program="prometheus")

        def ask(query):
            url = f"http://{HOST}:{own}/api/v1/query?query={urllib.parse.quote(query)}"
            try:
                with urllib.request.urlopen(url, timeout=60) as answer:
                    return json.loads(answer.read())["data"]["result"]
            except OSError:
                return []
        self.until(lambda: ask('hyperopt_trials{state="complete"} > 0'), "Prometheus has the trials", server)
        self.assertEqual(ask("up")[0]["value"][1], "1")
        self.assertEqual(ask("hyperopt_trials_target")[0]["value"][1], "100000")
        for panel in json.loads((harness.SOURCE / "docs/grafana.json").read_text())["panels"]:
            for target in panel["targets"]:
                with self.subTest(panel=panel["title"]):
                    url = f"http://{HOST}:{own}/api/v1/query?query=" + urllib.parse.quote(
                        target["expr"].replace("$study", ".*"))
                    with urllib.request.urlopen(url, timeout=60) as answer:
                        self.assertEqual(json.loads(answer.read())["status"], "success")
        run.terminate()
        self.wait(run, 130)
        server.terminate()
        server.wait()


if __name__ == "__main__":
    harness.main()
