-- Why trials were stopped early.
SELECT trial, step, value, rung, competitors, threshold, why FROM report
WHERE verdict IN ('prune', 'pause') ORDER BY trial;
