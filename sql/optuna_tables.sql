-- SPDX-License-Identifier: Apache-2.0
-- A file of Optuna's tables alone, for `hyperopt export DB optuna` (the browser dashboard wants
-- tables in a file with a rollback journal). Filled from the views of optuna.sql, column by column
-- in the same order.
CREATE TABLE main.studies (study_id INTEGER NOT NULL PRIMARY KEY, study_name VARCHAR(512) NOT NULL);
CREATE UNIQUE INDEX main.ix_studies_study_name ON studies (study_name);
CREATE TABLE main.version_info (version_info_id INTEGER NOT NULL PRIMARY KEY
    CHECK (version_info_id = 1), schema_version INTEGER, library_version VARCHAR(256));
CREATE TABLE main.alembic_version (version_num VARCHAR(32) NOT NULL PRIMARY KEY);
CREATE TABLE main.study_directions (study_direction_id INTEGER NOT NULL PRIMARY KEY,
    direction VARCHAR(8) NOT NULL, study_id INTEGER NOT NULL REFERENCES studies (study_id),
    objective INTEGER NOT NULL, UNIQUE (study_id, objective));
CREATE TABLE main.study_user_attributes (study_user_attribute_id INTEGER NOT NULL PRIMARY KEY,
    study_id INTEGER REFERENCES studies (study_id), key VARCHAR(512), value_json TEXT,
    UNIQUE (study_id, key));
CREATE TABLE main.study_system_attributes (study_system_attribute_id INTEGER NOT NULL PRIMARY KEY,
    study_id INTEGER REFERENCES studies (study_id), key VARCHAR(512), value_json TEXT,
    UNIQUE (study_id, key));
CREATE TABLE main.trials (trial_id INTEGER NOT NULL PRIMARY KEY, number INTEGER,
    study_id INTEGER REFERENCES studies (study_id), state VARCHAR(8) NOT NULL,
    datetime_start DATETIME, datetime_complete DATETIME);
CREATE INDEX main.ix_trials_study_id ON trials (study_id);
CREATE TABLE main.trial_params (param_id INTEGER NOT NULL PRIMARY KEY,
    trial_id INTEGER REFERENCES trials (trial_id), param_name VARCHAR(512), param_value FLOAT,
    distribution_json TEXT, UNIQUE (trial_id, param_name));
CREATE TABLE main.trial_values (trial_value_id INTEGER NOT NULL PRIMARY KEY,
    trial_id INTEGER NOT NULL REFERENCES trials (trial_id), objective INTEGER NOT NULL, value FLOAT,
    value_type VARCHAR(7) NOT NULL, UNIQUE (trial_id, objective));
CREATE TABLE main.trial_intermediate_values (trial_intermediate_value_id INTEGER NOT NULL PRIMARY KEY,
    trial_id INTEGER NOT NULL REFERENCES trials (trial_id), step INTEGER NOT NULL,
    intermediate_value FLOAT, intermediate_value_type VARCHAR(7) NOT NULL, UNIQUE (trial_id, step));
CREATE TABLE main.trial_user_attributes (trial_user_attribute_id INTEGER NOT NULL PRIMARY KEY,
    trial_id INTEGER REFERENCES trials (trial_id), key VARCHAR(512), value_json TEXT,
    UNIQUE (trial_id, key));
CREATE TABLE main.trial_system_attributes (trial_system_attribute_id INTEGER NOT NULL PRIMARY KEY,
    trial_id INTEGER REFERENCES trials (trial_id), key VARCHAR(512), value_json TEXT,
    UNIQUE (trial_id, key));
CREATE TABLE main.trial_heartbeats (trial_heartbeat_id INTEGER NOT NULL PRIMARY KEY,
    trial_id INTEGER NOT NULL REFERENCES trials (trial_id), heartbeat DATETIME NOT NULL,
    UNIQUE (trial_id));
INSERT INTO main.studies SELECT * FROM source.studies;
INSERT INTO main.version_info SELECT * FROM source.version_info;
INSERT INTO main.alembic_version SELECT * FROM source.alembic_version;
INSERT INTO main.study_directions SELECT * FROM source.study_directions;
INSERT INTO main.study_user_attributes SELECT * FROM source.study_user_attributes;
INSERT INTO main.study_system_attributes SELECT * FROM source.study_system_attributes;
INSERT INTO main.trials SELECT * FROM source.trials;
INSERT INTO main.trial_params SELECT * FROM source.trial_params;
INSERT INTO main.trial_values SELECT * FROM source.trial_values;
INSERT INTO main.trial_intermediate_values SELECT * FROM source.trial_intermediate_values;
INSERT INTO main.trial_user_attributes SELECT * FROM source.trial_user_attributes;
INSERT INTO main.trial_system_attributes SELECT * FROM source.trial_system_attributes;
