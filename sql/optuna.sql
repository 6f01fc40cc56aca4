-- SPDX-License-Identifier: Apache-2.0
-- The file as Optuna's RDB storage, schema version 12, revision v3.2.0.a, for reading: Optuna and
-- its dashboard open it (sqlite:///file:STUDY.db?mode=ro&uri=true). Made anew with the other views
-- whenever a run opens the file. Times are UTC. `studies`, `version_info` and `alembic_version` are
-- tables, since the browser dashboard looks for tables of these names; the rest are views whose
-- trial_id is the trial's number, so that a lookup by trial uses our keys.

CREATE TABLE IF NOT EXISTS studies (
    study_id   INTEGER PRIMARY KEY,
    study_name TEXT NOT NULL UNIQUE          -- as study.name; kept in step by hyperopt
) STRICT;
CREATE TABLE IF NOT EXISTS version_info (
    version_info_id INTEGER PRIMARY KEY CHECK (version_info_id = 1),
    schema_version  INTEGER,                 -- of Optuna's schema
    library_version TEXT                     -- that Optuna takes it to be
) STRICT;
CREATE TABLE IF NOT EXISTS alembic_version (
    version_num TEXT NOT NULL PRIMARY KEY    -- Optuna's revision
) STRICT;
INSERT OR REPLACE INTO studies SELECT 1, name FROM study;
INSERT OR REPLACE INTO version_info VALUES (1, 12, '4.9.0');
INSERT OR REPLACE INTO alembic_version VALUES ('v3.2.0.a');

CREATE VIEW study_directions AS
SELECT id + 1 AS study_direction_id,
       CASE direction WHEN 1 THEN 'MAXIMIZE' ELSE 'MINIMIZE' END AS direction,
       1 AS study_id, id AS objective
FROM objective;

CREATE VIEW study_user_attributes AS
SELECT 1 AS study_user_attribute_id, 1 AS study_id, 'data_sha256' AS key,
       json_quote(data_sha256) AS value_json FROM study
UNION ALL SELECT 2, 1, 'hyperopt_version', json_quote(program) FROM study
UNION ALL SELECT 3, 1, 'seed', CAST(seed AS TEXT) FROM study;

CREATE VIEW study_system_attributes AS
SELECT 1 AS study_system_attribute_id, 1 AS study_id, 'study:metric_names' AS key,
       (SELECT json_group_array(metric) FROM (SELECT metric FROM objective ORDER BY id)) AS value_json
UNION ALL
SELECT 2, 1, 'dashboard:objective_names',
       (SELECT json_group_array(metric) FROM (SELECT metric FROM objective ORDER BY id));

-- A trial that a signal stopped waits to be taken up again.
CREATE VIEW trials AS
SELECT number AS trial_id, number AS number, 1 AS study_id,
       CASE state WHEN 'FAILED' THEN 'FAIL' WHEN 'INTERRUPTED' THEN 'WAITING' ELSE state END AS state,
       strftime('%Y-%m-%d %H:%M:%S', started_ns / 1000000000, 'unixepoch')
           || printf('.%06d', started_ns / 1000 % 1000000) AS datetime_start,
       strftime('%Y-%m-%d %H:%M:%S', finished_ns / 1000000000, 'unixepoch')
           || printf('.%06d', finished_ns / 1000 % 1000000) AS datetime_complete
FROM trial;

-- The distributions are put together once, not for each row.
CREATE VIEW trial_params AS
WITH space AS MATERIALIZED (
    SELECT id, position, name,
           CASE kind
               WHEN 'choice' THEN json_object('name', 'CategoricalDistribution',
                   'attributes', json_object('choices', json(choices)))
               WHEN 'int' THEN json_object('name', 'IntDistribution', 'attributes', json_object(
                   'log', json(CASE log WHEN 1 THEN 'true' ELSE 'false' END),
                   'step', CAST(coalesce(step, 1) AS INTEGER),
                   'low', CAST(low AS INTEGER), 'high', CAST(high AS INTEGER)))
               ELSE json_object('name', 'FloatDistribution', 'attributes', json_object(
                   'step', step, 'low', low, 'high', high,
                   'log', json(CASE log WHEN 1 THEN 'true' ELSE 'false' END)))
           END AS distribution_json
    FROM param_space)
SELECT p.trial * 1000 + s.position AS param_id, p.trial AS trial_id, s.name AS param_name,
       p.value AS param_value, s.distribution_json AS distribution_json
FROM param p CROSS JOIN space s ON s.id = p.param;

CREATE VIEW trial_values AS
SELECT trial * 8 + objective AS trial_value_id, trial AS trial_id, objective AS objective,
       CASE WHEN abs(value) < 9e999 THEN value END AS value,
       CASE WHEN value = 9e999 THEN 'INF_POS' WHEN value = -9e999 THEN 'INF_NEG' ELSE 'FINITE' END
           AS value_type
FROM trial_value WHERE value IS NOT NULL;

CREATE VIEW trial_intermediate_values AS
SELECT trial * 1000000 + step AS trial_intermediate_value_id, trial AS trial_id, step AS step,
       CASE WHEN abs(value) < 9e999 THEN value END AS intermediate_value,
       CASE WHEN value IS NULL THEN 'NAN' WHEN value = 9e999 THEN 'INF_POS'
            WHEN value = -9e999 THEN 'INF_NEG' ELSE 'FINITE' END AS intermediate_value_type
FROM report;

-- Metrics of the joined out-of-sample series of the first seed, and how the trial went.
CREATE VIEW trial_user_attributes AS
SELECT t.number * 16 + a.id AS trial_user_attribute_id, t.number AS trial_id, a.key AS key,
       CASE a.id WHEN 0 THEN coalesce(CAST(r.sharpe AS TEXT), 'null')
                 WHEN 1 THEN coalesce(CAST(r.total_return AS TEXT), 'null')
                 WHEN 2 THEN coalesce(CAST(r.max_drawdown AS TEXT), 'null')
                 WHEN 3 THEN coalesce(CAST(r.trades AS TEXT), 'null')
                 WHEN 4 THEN CAST(t.train_s AS TEXT)
                 ELSE json_quote(t.fail_reason) END AS value_json
FROM trial t
LEFT JOIN fold_result r ON r.trial = t.number AND r.fold = -1 AND r.seed = 0
CROSS JOIN (SELECT 0 AS id, 'sharpe' AS key UNION ALL SELECT 1, 'total_return'
            UNION ALL SELECT 2, 'max_drawdown' UNION ALL SELECT 3, 'trades'
            UNION ALL SELECT 4, 'train_s' UNION ALL SELECT 5, 'fail_reason') a
WHERE CASE a.id WHEN 4 THEN t.train_s IS NOT NULL WHEN 5 THEN t.fail_reason IS NOT NULL
                ELSE r.trial IS NOT NULL END;

CREATE VIEW trial_system_attributes AS
SELECT number * 4 AS trial_system_attribute_id, number AS trial_id, 'constraints' AS key,
       constraints AS value_json
FROM trial WHERE constraints IS NOT NULL
UNION ALL
SELECT t.number * 4 + 1, t.number, 'fixed_params',
       (SELECT json_group_object(s.name, CASE s.kind
                   WHEN 'choice' THEN json_extract(s.choices, '$[' || CAST(p.value AS INTEGER) || ']')
                   WHEN 'int' THEN CAST(p.value AS INTEGER) ELSE p.value END)
        FROM param p JOIN param_space s ON s.id = p.param WHERE p.trial = t.number)
FROM trial t WHERE t.source = 'enqueue';

CREATE VIEW trial_heartbeats AS
SELECT 0 AS trial_heartbeat_id, 0 AS trial_id, '1970-01-01 00:00:00.000000' AS heartbeat WHERE 0;
