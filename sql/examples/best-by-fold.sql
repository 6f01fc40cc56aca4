-- The best trial, fold by fold, beside buy-and-hold and random on the same windows.
SELECT f.id AS fold, date(f.test_begin_ns / 1000000000, 'unixepoch') AS from_day,
       date(f.test_end_ns / 1000000000, 'unixepoch') AS to_day,
       avg(r.sharpe) AS sharpe, avg(r.total_return) AS "return", min(r.max_drawdown) AS drawdown,
       avg(r.trades) AS trades,
       (SELECT b.total_return FROM baseline b WHERE b.policy = 'buy_and_hold' AND b.fold = f.id) AS hold_return,
       (SELECT avg(b.total_return) FROM baseline b WHERE b.policy = 'random' AND b.fold = f.id) AS random_return
FROM fold f
LEFT JOIN fold_result r ON r.fold = f.id AND r.trial = (SELECT trial FROM best_trial)
WHERE f.id >= 0
GROUP BY f.id ORDER BY f.id;
