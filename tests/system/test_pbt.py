# SPDX-License-Identifier: Apache-2.0
"""Population-based training through both real programs: who copied whom is stored, and repeats."""

from harness import SystemTest, main, study_text

POPULATION = """
[population]
size = 4
every = 2
quantile = 0.25
perturb = 1.3
resample = 0.25
"""


class Population(SystemTest):
    def run_population(self, db):
        path = self.write(study_text(trials=4, epochs=9, more=POPULATION,
                                     study=f'database = "{db}"',
                                     search='"dqn.gamma" = { float = [0.9, 0.99] }'), f"{db}.toml")
        self.hyperopt("run", path)
        self.assertEqual(self.states(db), {"COMPLETE": 4})
        self.assertIntact(db)
        copies = self.query("SELECT trial, parent, step FROM evolution ORDER BY trial, step", db)
        values = self.query("SELECT trial, value FROM trial_value ORDER BY trial", db)
        return copies, values

    def test_the_worst_copy_the_best_and_it_is_stored(self):
        copies, values = self.run_population("a.db")
        self.assertGreater(len(copies), 0)
        self.assertEqual(len(values), 4)
        for trial, parent, epoch in copies:
            self.assertNotEqual(trial, parent)
            self.assertEqual(epoch % 2, 0)
            self.assertLess(epoch, 9)

    def test_a_population_repeats(self):
        self.assertEqual(self.run_population("a.db"), self.run_population("b.db"))


if __name__ == "__main__":
    main()
