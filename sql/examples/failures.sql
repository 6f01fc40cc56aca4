-- Trials that failed, by cause.
SELECT fail_class AS cause, count(*) AS trials, min(number) AS first, fail_reason AS reason
FROM trial WHERE state = 'FAILED' GROUP BY fail_class, fail_reason ORDER BY trials DESC;
