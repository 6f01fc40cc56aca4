-- Trials that run now, with their last report.
SELECT t.number AS trial, t.attempt, w.name AS worker,
       round((julianday('now') - 2440587.5) * 86400 - t.started_ns * 1e-9, 1) AS seconds,
       (SELECT max(r.step) FROM report r WHERE r.trial = t.number) AS epoch,
       (SELECT r.value FROM report r WHERE r.trial = t.number ORDER BY r.step DESC LIMIT 1) AS value
FROM trial t LEFT JOIN worker w ON w.id = t.worker
WHERE t.state = 'RUNNING' ORDER BY t.number;
