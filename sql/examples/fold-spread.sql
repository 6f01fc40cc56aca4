-- Trials whose folds disagree most: a good mean from one lucky fold is no skill.
SELECT r.trial, avg(r.sharpe) AS mean_sharpe, min(r.sharpe) AS worst, max(r.sharpe) AS best,
       max(r.sharpe) - min(r.sharpe) AS spread
FROM fold_result r WHERE r.fold >= 0
GROUP BY r.trial HAVING count(r.sharpe) > 1 ORDER BY spread DESC LIMIT 20;
