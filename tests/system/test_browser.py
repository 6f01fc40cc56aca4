# SPDX-License-Identifier: Apache-2.0
"""The report drawn by headless Chromium: what stands on the page, and no error on the console. Of a
trained study, so that every section has something to draw."""
import re
import shutil
import subprocess
import time
import unittest

import harness
from harness import BIN, study_text

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


@unittest.skipUnless(CHROMIUM, "no chromium")
class Report(harness.SystemTest):
    def chromium(self, *args):
        return subprocess.run([CHROMIUM, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
                               f"--user-data-dir={self.dir / 'profile'}", "--virtual-time-budget=20000",
                               "--enable-logging=stderr", "--v=0", *args, (self.dir / "t.html").as_uri()],
                              capture_output=True, text=True, timeout=harness.HANG)

    def drawn(self):
        """The page's elements after its scripts ran; fails on an error on the console."""
        done = self.chromium("--dump-dom")
        console = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
        self.assertEqual(console, [])
        self.assertIn("</html>", done.stdout)
        return re.sub(r"<script.*?</script>", "", done.stdout, flags=re.S)

    def check(self, dom, sections):
        self.assertGreaterEqual(dom.count("<svg"), 6)
        self.assertGreater(len(re.findall(r"<(path|polyline|circle|rect|line)\b", dom)), 100)
        self.assertNotRegex(dom, r"NaN|\"undefined|>undefined<|\[object Object\]")
        for word in sections:
            self.assertIn(word, dom)

    def test_a_trained_study_is_drawn_whole(self):
        self.write(study_text(trials=14, epochs=4))
        self.hyperopt("run", "t.toml", "-q")
        self.hyperopt("report", "t.db")
        page = (self.dir / "t.html").read_text()
        self.assertNotRegex(page, r"(src|href)=\"https?:", "the page needs no network")
        self.assertNotIn("@import", page)
        dom = self.drawn()
        self.check(dom, ["Leaderboard", "Objective over trials", "Equity by fold", "How much of the best is luck",
                         "What matters", "Parallel coordinates", "Learning curves", "Worker timeline", "Settings",
                         "buy-and-hold", "PED-ANOVA", "dqn.learning_rate", "barriers.stop_loss"])
        best = self.one("SELECT trial FROM best_trial")
        self.assertRegex(dom, rf"\b{best}\b")

    def test_replayed_actions_give_trades_and_other_costs(self):
        self.write(study_text(trials=3))
        self.hyperopt("run", "t.toml", "-q")
        self.hyperopt("report", "t.db", "--replay")
        dom = self.drawn()
        self.assertIn("Cost sensitivity", dom)
        made, count = self.query("SELECT total_return, trades FROM leaderboard WHERE rank = 1")[0]
        same, = re.findall(r"<td[^>]*>x 1</td><td[^>]*>([^<]*)</td>", dom)
        self.assertEqual(same, f"{100 * made:.2f} %")
        free, = re.findall(r"<td[^>]*>x 0</td><td[^>]*>([^<]*) %</td>", dom)
        self.assertGreater(float(free), 100 * made, "trading for free makes more")
        self.assertIn(f"all {count:.0f} trades.", dom)
        self.assertEqual(len(re.findall(r"<td[^>]*>(?:long|short)</td>", dom)), count)

    def test_a_study_without_results_is_drawn_too(self):
        self.write(study_text(trials=1, epochs=2000))
        run = self.start("run", "t.toml", "-q")
        self.until(lambda: self.one("SELECT count(*) FROM trial") >= 1, "a trial", run)
        self.hyperopt("report", "t.db")
        dom = self.drawn()
        self.assertNotRegex(dom, r"NaN|\"undefined|>undefined<|\[object Object\]")
        run.kill()
        run.wait()

    def test_screenshots_at_1440_and_390_are_wide_and_narrow(self):
        self.write(study_text(trials=12))
        self.hyperopt("run", "t.toml", "-q")
        self.hyperopt("report", "t.db")
        for width in (1440, 390):
            path = self.dir / f"{width}.png"
            self.chromium(f"--window-size={width},2400", f"--screenshot={path}")
            head = path.read_bytes()[:24]
            self.assertEqual(head[:8], b"\x89PNG\r\n\x1a\n")
            self.assertEqual(int.from_bytes(head[16:20], "big"), width)
            self.assertGreater(path.stat().st_size, 20_000, "more than an empty page")

    def test_a_hundred_thousand_trials_make_a_page_that_draws(self):
        self.write(study_text(trials=100_000))
        subprocess.run([BIN / "make_study", "t.toml", "t.db", "100000"], cwd=self.dir, check=True)
        start = time.monotonic()
        self.hyperopt("report", "t.db")
        size = (self.dir / "t.html").stat().st_size
        print(f"report of 100,000 trials: {time.monotonic() - start:.1f} s, {size / 1e6:.1f} MB", flush=True)
        self.assertLess(size, 20e6)
        self.assertGreaterEqual(self.drawn().count("<svg"), 5)


if __name__ == "__main__":
    harness.main()
