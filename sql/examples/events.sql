-- The last fifty events.
SELECT datetime(at_ns / 1000000000, 'unixepoch') AS utc, kind, trial, attempt, worker, text
FROM event ORDER BY id DESC LIMIT 50;
