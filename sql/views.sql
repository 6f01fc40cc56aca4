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
      FROM trial t
      JOIN trial_value v ON v.trial = t.number AND v.objective = 0
      JOIN objective o ON o.id = 0
      WHERE t.state = 'COMPLETE' AND v.value IS NOT NULL AND t.source <> 'retest') r
ORDER BY r.rank;

-- The first row of the leaderboard alone: quick, also with 100,000 trials.
CREATE VIEW best_trial AS
SELECT t.number AS trial, v.value AS value
FROM trial t
JOIN trial_value v ON v.trial = t.number AND v.objective = 0
JOIN objective o ON o.id = 0
WHERE t.state = 'COMPLETE' AND v.value IS NOT NULL AND t.source <> 'retest'
ORDER BY coalesce(t.violation, 0) > 0, coalesce(t.violation, 0), v.value * o.direction DESC, t.number
LIMIT 1;

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
JOIN trial_value v ON v.trial = t.number AND v.objective = 0
JOIN trial_value b ON b.trial = t.parent AND b.objective = 0
JOIN objective o ON o.id = 0
WHERE t.source = 'retest' AND t.state = 'COMPLETE'
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
       (SELECT count(*) FROM trial t WHERE t.worker = w.id AND t.state = 'RUNNING') AS running,
       (SELECT count(*) FROM trial t WHERE t.worker = w.id
           AND t.state IN ('COMPLETE', 'PRUNED', 'FAILED')) AS finished,
       (SELECT sum(t.train_s) FROM trial t WHERE t.worker = w.id) AS train_s,
       datetime(w.joined_ns / 1000000000, 'unixepoch') AS joined_utc,
       datetime(w.left_ns / 1000000000, 'unixepoch') AS left_utc
FROM worker w ORDER BY here DESC, w.id;

-- Learning curves: means over folds and seeds.
CREATE VIEW epoch_curve AS
SELECT trial, epoch, count(*) AS lanes, avg(reward_mean) AS reward_mean, avg(sharpe) AS sharpe,
       avg(loss) AS loss, avg(epsilon) AS epsilon, avg(entropy) AS entropy,
       avg(validation) AS validation
FROM epoch_stat GROUP BY trial, epoch;

-- What a parameter does to the first objective: choices one by one, numbers in quarters of the
-- finished trials that used them (bin 1: the lowest values).
CREATE VIEW param_effect AS
SELECT name, bin, count(*) AS trials, min(value) AS from_value, max(value) AS to_value, choice,
       avg(objective) AS mean_objective, max(objective * direction) * direction AS best_objective
FROM (SELECT s.name AS name, p.value AS value,
             CASE WHEN s.kind = 'choice' THEN CAST(p.value AS INTEGER)
                  ELSE ntile(4) OVER (PARTITION BY s.id ORDER BY p.value) END AS bin,
             CASE WHEN s.kind = 'choice'
                  THEN json_extract(s.choices, '$[' || CAST(p.value AS INTEGER) || ']') END AS choice,
             v.value AS objective, o.direction AS direction
      FROM param p
      JOIN param_space s ON s.id = p.param
      JOIN trial t ON t.number = p.trial AND t.state = 'COMPLETE'
      JOIN trial_value v ON v.trial = p.trial AND v.objective = 0 AND v.value IS NOT NULL
      JOIN objective o ON o.id = 0)
GROUP BY name, bin ORDER BY name, bin;

-- Overfitting: the newest statistics.
CREATE VIEW overfitting AS
SELECT trial, trials, sharpe, sharpe_std, sharpe_zero, psr, dsr, min_track_sessions, pbo, pbo_splits,
       null_p, notes, datetime(at_ns / 1000000000, 'unixepoch') AS at_utc
FROM overfit WHERE id = (SELECT max(id) FROM overfit);
