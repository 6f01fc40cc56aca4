-- SPDX-License-Identifier: Apache-2.0
-- Views for people. Made anew whenever a run opens the file, so they need no migration.
-- trial_wide (one column a parameter) and fold_wide (one column a fold) are made per study by
-- coordinator/store_views.c, since their columns depend on it.

-- Finished trials, best first: feasible before infeasible, then by the first objective.
-- sharpe .. trades are of the joined out-of-sample series, means over seeds (drawdown: worst seed).
CREATE VIEW leaderboard AS
SELECT r.rank, r.trial, r.value, r.feasible,
       (SELECT avg(f.sharpe) FROM fold_result f WHERE f.trial = r.trial AND f.fold = -1) AS sharpe,
       (SELECT avg(f.total_return) FROM fold_result f WHERE f.trial = r.trial AND f.fold = -1)
           AS total_return,
       (SELECT min(f.max_drawdown) FROM fold_result f WHERE f.trial = r.trial AND f.fold = -1)
           AS max_drawdown,
       (SELECT avg(f.trades) FROM fold_result f WHERE f.trial = r.trial AND f.fold = -1) AS trades,
       (SELECT avg(f.total_pnl) FROM fold_result f WHERE f.trial = r.trial AND f.fold = -1)
           AS total_pnl,
       r.epochs, r.train_s
FROM (SELECT row_number() OVER (ORDER BY coalesce(t.violation, 0) > 0, coalesce(t.violation, 0),
                                         v.value * o.direction DESC, t.number) AS rank,
             t.number AS trial, v.value AS value, coalesce(t.violation, 0) <= 0 AS feasible,
             t.epochs AS epochs, t.train_s AS train_s
      FROM objective o
      CROSS JOIN trial t
      CROSS JOIN trial_value v ON v.trial = t.number AND v.objective = o.id
      WHERE o.id = 0 AND t.state = 'COMPLETE' AND v.value IS NOT NULL AND t.source <> 'retest') r
ORDER BY r.rank;

-- The first row of the leaderboard alone: quick, also with 100,000 trials, since the index on values
-- gives the best feasible one at once; only without one all trials are compared.
CREATE VIEW best_trial AS
WITH feasible AS NOT MATERIALIZED (
    SELECT v.trial AS trial, v.value AS value, o.direction AS direction
    FROM objective o
    CROSS JOIN trial_value v ON v.objective = o.id
    CROSS JOIN trial t ON t.number = v.trial
    WHERE o.id = 0 AND t.state = 'COMPLETE' AND v.value IS NOT NULL AND t.source <> 'retest'
      AND coalesce(t.violation, 0) <= 0),
first AS (
    SELECT * FROM (SELECT trial, value FROM feasible WHERE direction = 1
                   ORDER BY value DESC, trial LIMIT 1)
    UNION ALL
    SELECT * FROM (SELECT trial, value FROM feasible WHERE direction = -1
                   ORDER BY value, trial LIMIT 1))
SELECT trial, value FROM first
UNION ALL
SELECT trial, value FROM (
    SELECT t.number AS trial, v.value AS value
    FROM objective o
    CROSS JOIN trial t
    CROSS JOIN trial_value v ON v.trial = t.number AND v.objective = o.id
    WHERE o.id = 0 AND t.state = 'COMPLETE' AND v.value IS NOT NULL AND t.source <> 'retest'
      AND NOT EXISTS (SELECT 1 FROM first)
    ORDER BY coalesce(t.violation, 0), v.value * o.direction DESC, t.number LIMIT 1);

-- Baselines on the joined out-of-sample series (random: mean over its seeds).
CREATE VIEW baseline_total AS
SELECT policy, avg(sharpe) AS sharpe, avg(total_return) AS total_return,
       min(max_drawdown) AS max_drawdown, avg(trades) AS trades, avg(total_pnl) AS total_pnl
FROM baseline WHERE fold = -1 GROUP BY policy;

-- The final retest: what became of the best trials with fresh seeds. shrinkage: how much worse the
-- mean is than what made the trial one of the best.
CREATE VIEW retest AS
SELECT t.parent AS trial, b.value AS value, count(v.value) AS retests, avg(v.value) AS mean,
       min(v.value) AS lowest, max(v.value) AS highest,
       (b.value - avg(v.value)) * o.direction AS shrinkage
FROM trial t
CROSS JOIN objective o
CROSS JOIN trial_value v ON v.trial = t.number AND v.objective = o.id
CROSS JOIN trial_value b ON b.trial = t.parent AND b.objective = o.id
WHERE o.id = 0 AND t.source = 'retest' AND t.state = 'COMPLETE'
GROUP BY t.parent ORDER BY b.value * o.direction DESC;

-- One row: how far the study is.
CREATE VIEW study_progress AS
SELECT s.name, s.state, s.reason, s.trials AS asked,
       count(t.number) AS proposed,
       coalesce(sum(t.state = 'COMPLETE'), 0) AS complete,
       coalesce(sum(t.state = 'PRUNED'), 0) AS pruned,
       coalesce(sum(t.state = 'FAILED'), 0) AS failed,
       coalesce(sum(t.state = 'RUNNING'), 0) AS running,
       coalesce(sum(t.state IN ('WAITING', 'INTERRUPTED')), 0) AS waiting,
       (SELECT trial FROM best_trial) AS best_trial,
       (SELECT value FROM best_trial) AS best_value,
       sum(t.train_s) AS train_s,
       min(t.started_ns) AS first_start_ns, max(t.finished_ns) AS last_finish_ns
FROM study s LEFT JOIN trial t ON t.source <> 'retest';

-- One row a worker, those here first.
CREATE VIEW worker_load AS
SELECT w.id, w.name, w.device, w.backend, w.lanes, w.left_ns IS NULL AS here, w.leave_reason,
       coalesce(t.running, 0) AS running, coalesce(t.finished, 0) AS finished, t.train_s AS train_s,
       datetime(w.joined_ns / 1000000000, 'unixepoch') AS joined_utc,
       datetime(w.left_ns / 1000000000, 'unixepoch') AS left_utc
FROM worker w
LEFT JOIN (SELECT worker, sum(state = 'RUNNING') AS running,
                  sum(state IN ('COMPLETE', 'PRUNED', 'FAILED')) AS finished,
                  sum(train_s) AS train_s
           FROM trial GROUP BY worker) t ON t.worker = w.id
ORDER BY here DESC, w.id;

-- Learning curves: means over folds and seeds.
CREATE VIEW epoch_curve AS
SELECT trial, epoch, count(*) AS lanes, avg(reward_mean) AS reward_mean, avg(sharpe) AS sharpe,
       avg(loss) AS loss, avg(epsilon) AS epsilon, avg(entropy) AS entropy,
       avg(validation) AS validation
FROM epoch_stat GROUP BY trial, epoch;

-- What a parameter does to the first objective: choices one by one, numbers in quarters of the
-- finished trials that used them (bin 1: the lowest values).
CREATE VIEW param_effect AS
WITH used AS MATERIALIZED (
    SELECT p.param AS param, p.value AS value, t.number AS trial, v.value AS objective,
           o.direction AS direction
    FROM objective o
    CROSS JOIN trial t
    CROSS JOIN trial_value v ON v.trial = t.number AND v.objective = o.id
    CROSS JOIN param p ON p.trial = t.number
    WHERE o.id = 0 AND t.state = 'COMPLETE' AND v.value IS NOT NULL),
binned AS (
    SELECT param, value, objective, direction,
           ntile(4) OVER (PARTITION BY param ORDER BY value, trial) AS bin
    FROM used WHERE param IN (SELECT id FROM param_space WHERE kind <> 'choice')
    UNION ALL
    SELECT param, value, objective, direction, CAST(value AS INTEGER)
    FROM used WHERE param IN (SELECT id FROM param_space WHERE kind = 'choice')),
grouped AS ( -- a parameter whose distribution was changed has several ids
    SELECT param, bin, count(*) AS trials, min(value) AS from_value, max(value) AS to_value,
           sum(objective) AS total, max(objective * direction) * direction AS best,
           direction
    FROM binned GROUP BY param, bin)
SELECT s.name AS name, g.bin AS bin, sum(g.trials) AS trials, min(g.from_value) AS from_value,
       max(g.to_value) AS to_value,
       CASE WHEN s.kind = 'choice' THEN json_extract(s.choices, '$[' || g.bin || ']') END AS choice,
       sum(g.total) / sum(g.trials) AS mean_objective,
       max(g.best * g.direction) * g.direction AS best_objective
FROM grouped g JOIN param_space s ON s.id = g.param
GROUP BY s.name, g.bin ORDER BY s.name, g.bin;

-- Overfitting: the newest statistics.
CREATE VIEW overfitting AS
SELECT trial, trials, sharpe, sharpe_std, sharpe_zero, psr, dsr, min_track_sessions, pbo, pbo_splits,
       null_p, notes, datetime(at_ns / 1000000000, 'unixepoch') AS at_utc
FROM overfit WHERE id = (SELECT max(id) FROM overfit);
