-- SPDX-License-Identifier: Apache-2.0
-- The store of one study: one file, one writer (the coordinator), any number of readers.
--
-- Conventions of every table:
--   *_ns      nanoseconds since 1970-01-01 UTC          *_s   seconds
--   bars      indices into the loaded market, windows are [begin, end)
--   NULL      undefined or not known yet; never 0 for "undefined", never NaN
--   [derived] can be computed again from other rows; kept because it is read often
-- A trial's change of state and everything it caused are one transaction.
-- Version of this schema: PRAGMA user_version, set at the end, and HO_STORE_VERSION in store.h. A
-- change of a table is a new version; older files are migrated by coordinator/store_migrate.c.

-- The study. Written once by the first `run`; changed by `run --trials`, `--allow-change`, and when
-- a run starts, ends or is interrupted.
CREATE TABLE study (
    id              INTEGER PRIMARY KEY CHECK (id = 1),  -- one study a file
    name            TEXT NOT NULL,           -- [study] name
    uuid            TEXT NOT NULL UNIQUE,    -- random, 32 hex digits; names the study in messages
    program         TEXT NOT NULL,           -- version of hyperopt that wrote last
    created_ns      INTEGER NOT NULL,        -- first `run`
    changed_ns      INTEGER NOT NULL,        -- last change of this row
    state           TEXT NOT NULL CHECK (state IN (
                        'new', 'running', 'finished', 'interrupted', 'failed')),
    reason          TEXT,                    -- why it ended: trials, timeout, patience, exhausted, ...
    seed            INTEGER NOT NULL,        -- [study] seed
    trials          INTEGER NOT NULL,        -- asked for in all, with every `run --trials N`
    deterministic   INTEGER NOT NULL CHECK (deterministic IN (0, 1)),  -- [study] deterministic
    toml            TEXT NOT NULL,           -- the study file as read (the last accepted one)
    toml_path       TEXT NOT NULL,           -- where it lay
    settings        TEXT NOT NULL,           -- [derived] JSON: effective settings by dotted key
    data_path       TEXT NOT NULL,           -- first market file, as found
    data_sha256     TEXT NOT NULL,           -- of the market data's bytes
    bars            INTEGER NOT NULL,        -- T
    first_bar_ns    INTEGER NOT NULL,        -- open of the first bar that may be traded
    last_bar_ns     INTEGER NOT NULL,        -- open of the last bar
    sessions_per_year REAL NOT NULL,         -- 252, or 365 round the clock
    initial_capital REAL NOT NULL,           -- money
    prior_trials    INTEGER NOT NULL DEFAULT 0, -- tried in studies that this one was started from
    auto_batch      INTEGER NOT NULL DEFAULT 0, -- measured once for dqn.batch = "auto"; 0: not measured
    revision        INTEGER NOT NULL DEFAULT 1  -- grows with each accepted change of the study file
) STRICT;

-- Objectives, in order. Written with the study.
CREATE TABLE objective (
    id        INTEGER PRIMARY KEY,           -- from 0
    metric    TEXT NOT NULL,                 -- a name of the metric table
    direction INTEGER NOT NULL CHECK (direction IN (-1, 1)),  -- 1 more is better, -1 less is better
    aggregate TEXT NOT NULL                  -- stitched, mean, median, min, mean_minus_std
) STRICT;

-- Constraints as written. Written with the study.
CREATE TABLE study_constraint (
    id         INTEGER PRIMARY KEY,          -- from 0
    expression TEXT NOT NULL                 -- "max_drawdown >= -0.25"
) STRICT;

-- Walk-forward folds. Written with the study.
CREATE TABLE fold (
    id               INTEGER PRIMARY KEY,    -- from 0; -1 is the holdout (test_* only)
    train_begin      INTEGER, train_end      INTEGER,   -- bars; what agents learn from
    validation_begin INTEGER, validation_end INTEGER,   -- bars; reports, early stopping, pruning
    test_begin       INTEGER NOT NULL, test_end INTEGER NOT NULL,  -- bars; run once, at the end
    test_begin_ns    INTEGER NOT NULL,       -- [derived] open of the first test bar
    test_end_ns      INTEGER NOT NULL        -- [derived] open of the last test bar
) STRICT;

-- The search space. Written with the study; a changed distribution is a new row (a new id), so that
-- old trials keep their meaning.
CREATE TABLE param_space (
    id        INTEGER PRIMARY KEY,           -- from 0
    name      TEXT NOT NULL,                 -- dotted key, "dqn.learning_rate"
    kind      TEXT NOT NULL CHECK (kind IN ('float', 'int', 'choice')),  -- of the distribution
    log       INTEGER NOT NULL CHECK (log IN (0, 1)),  -- 1: drawn on a log scale
    low       REAL, high REAL,               -- inclusive; NULL for a choice
    step      REAL,                          -- NULL: continuous, or a choice
    choices   TEXT,                          -- JSON array of the choices, typed; NULL for numbers
    condition TEXT,                          -- the `when` as written; NULL: always active
    position  INTEGER NOT NULL,              -- index in the space of the running revision
    active    INTEGER NOT NULL CHECK (active IN (0, 1)),  -- 1: belongs to the running revision
    UNIQUE (name, id)
) STRICT;

-- Trials. Written by the dispatcher: a row when it is proposed, changed with its state.
CREATE TABLE trial (
    number      INTEGER PRIMARY KEY,         -- from 0
    state       TEXT NOT NULL CHECK (state IN (
                    'WAITING',               -- proposed, no worker has it (or it was requeued)
                    'RUNNING',               -- leased to `worker` as `attempt`
                    'INTERRUPTED',           -- stopped by a signal; `run` takes it up again
                    'COMPLETE', 'PRUNED', 'FAILED')),
    attempt     INTEGER NOT NULL DEFAULT 0,  -- fencing number of the newest lease; 0: never leased
    source      TEXT NOT NULL CHECK (source IN (
                    'sampler', 'enqueue', 'replicate', 'retest', 'population')),
    parent      INTEGER REFERENCES trial (number),  -- replicate, retest, population: of which trial
    seeds       INTEGER NOT NULL,            -- agents a fold
    config_hash INTEGER NOT NULL,            -- of the canonical configuration, two's complement
    asked_after INTEGER NOT NULL,            -- results the sampler had been told before
    told_order  INTEGER UNIQUE,              -- from 1: as which result it was told
    bracket     INTEGER,                     -- hyperband
    worker      INTEGER REFERENCES worker (id),  -- the holder, or the last one
    created_ns  INTEGER NOT NULL,            -- proposed
    started_ns  INTEGER,                     -- newest lease
    finished_ns INTEGER,                     -- result taken
    violation   REAL,                        -- sum of constraint violations; 0 feasible
    constraints TEXT,                        -- JSON: one number a constraint, > 0 violated
    epochs      INTEGER,                     -- done by the slowest lane; raced folds: of all rounds
    experiences INTEGER,                     -- environment steps of all lanes
    updates     INTEGER,                     -- gradient steps of all lanes
    train_s     REAL,                        -- device seconds charged to the trial
    fail_class  TEXT CHECK (fail_class IN (
                    'lost',                  -- worker silent for too long or gone
                    'crash',                 -- worker or device died under it
                    'oom',                   -- did not fit into memory
                    'diverged',              -- loss or weights not finite, or out of bounds
                    'timeout',               -- took longer than allowed
                    'data',                  -- the worker could not use the data
                    'config',                -- the parameters are not legal together
                    'metric',                -- the objective is undefined (a flat series, no trade)
                    'command')),             -- the user's command failed
    fail_reason TEXT,                        -- for people; also of the last requeue
    why         TEXT                         -- how the sampler came to it, one line; NULL: not said
) STRICT;
CREATE INDEX trial_by_state ON trial (state);
CREATE INDEX trial_by_hash ON trial (config_hash);

-- Parameter values of a trial. Written with the trial; inactive parameters have no row.
CREATE TABLE param (
    trial INTEGER NOT NULL REFERENCES trial (number),
    param INTEGER NOT NULL REFERENCES param_space (id),
    value REAL NOT NULL,                     -- for a choice its index in param_space.choices
    PRIMARY KEY (trial, param)
) STRICT, WITHOUT ROWID;

-- Objective values. Written with the result. For a pruned trial: the value at its last report.
CREATE TABLE trial_value (
    trial     INTEGER NOT NULL REFERENCES trial (number),
    objective INTEGER NOT NULL REFERENCES objective (id),
    value     REAL,                          -- unit of the metric; NULL: undefined
    reason    TEXT,                          -- why it is undefined ("flat", "no_trades", ...)
    PRIMARY KEY (trial, objective)
) STRICT, WITHOUT ROWID;
CREATE INDEX trial_value_by_value ON trial_value (objective, value);

-- Out-of-sample metrics of one agent: a fold's test window, or fold -1: the joined series of all
-- folds. Written with the result; raced folds with their round, and fold -1 when all are run.
-- reasons: JSON {metric: reason} for the NULL ones.
CREATE TABLE fold_result (
    trial   INTEGER NOT NULL REFERENCES trial (number),
    fold    INTEGER NOT NULL,                -- from 0; -1 the joined out-of-sample series
    seed    INTEGER NOT NULL,                -- seed index, from 0
    sharpe               REAL, -- ratio; session returns, ddof 1, x sqrt(sessions per year), rf 0
    bar_sharpe           REAL, -- ratio; bar returns, ddof 1, not annualised
    sortino              REAL, -- ratio; session returns, downside over all n, x sqrt(sessions)
    calmar               REAL, -- ratio; CAGR / |max drawdown|
    return_over_maxdd    REAL, -- ratio; total return / |max drawdown|
    cagr                 REAL, -- fraction; calendar years of 365.25 days
    total_return         REAL, -- fraction; final equity / initial capital - 1
    total_pnl            REAL, -- money; final equity - initial capital
    volatility           REAL, -- fraction; session returns, ddof 1, x sqrt(sessions)
    max_drawdown         REAL, -- fraction <= 0; per bar, initial capital in the peak
    max_drawdown_cash    REAL, -- money >= 0; largest fall from a peak
    drawdown_duration    REAL, -- bars; peak to recovery of the deepest
    recovery_time        REAL, -- bars; trough to recovery of the deepest
    longest_drawdown     REAL, -- bars; longest peak to recovery
    var95                REAL, -- fraction; session returns, historical type 7, 5 %
    cvar95               REAL, -- fraction; session returns, Rockafellar-Uryasev, 5 %
    win_rate             REAL, -- fraction; winning / closed trades, net of costs
    avg_trade            REAL, -- money; mean net P&L of closed trades
    avg_trade_return     REAL, -- fraction; mean of net P&L / entry notional
    profit_factor        REAL, -- ratio; sum of wins / |sum of losses|, cash
    payoff               REAL, -- ratio; mean win / mean loss
    expectancy           REAL, -- ratio; mean net P&L / mean loss (R multiple)
    sqn                  REAL, -- ratio; sqrt(n) x mean / deviation of trade P&L, ddof 1
    turnover             REAL, -- x capital; traded notional / initial capital, a session
    exposure             REAL, -- fraction; share of bars with a position
    trades               REAL, -- count; closed round trips
    ambiguous_bars       REAL, -- count; bars whose order of events is unknown
    longest_flat         REAL, -- bars; longest run without a position
    flags   INTEGER NOT NULL,                -- 1 ruined, 2 drawdown not recovered, 4 VaR tail too small,
                                             -- 8 under 30 days, 16 NaN dropped, 32 open at the end
    reasons TEXT,                            -- JSON {metric: reason} of the NULL ones
    random_percentile REAL,                  -- share of random policies that did worse, or NULL
    returns BLOB,                            -- simple return of each session of the window, float64
                                             -- little-endian; NULL for fold -1 (the folds in order)
    PRIMARY KEY (trial, fold, seed)
) STRICT;

-- The baselines on the same windows with the same costs. Written once a study, from a worker.
CREATE TABLE baseline (
    policy  TEXT NOT NULL,                   -- buy_and_hold, flat, random
    fold    INTEGER NOT NULL,                -- from 0; -1 the joined out-of-sample series
    seed    INTEGER NOT NULL,                -- of the random policy; else 0
    sharpe               REAL, -- ratio; session returns, ddof 1, x sqrt(sessions per year), rf 0
    bar_sharpe           REAL, -- ratio; bar returns, ddof 1, not annualised
    sortino              REAL, -- ratio; session returns, downside over all n, x sqrt(sessions)
    calmar               REAL, -- ratio; CAGR / |max drawdown|
    return_over_maxdd    REAL, -- ratio; total return / |max drawdown|
    cagr                 REAL, -- fraction; calendar years of 365.25 days
    total_return         REAL, -- fraction; final equity / initial capital - 1
    total_pnl            REAL, -- money; final equity - initial capital
    volatility           REAL, -- fraction; session returns, ddof 1, x sqrt(sessions)
    max_drawdown         REAL, -- fraction <= 0; per bar, initial capital in the peak
    max_drawdown_cash    REAL, -- money >= 0; largest fall from a peak
    drawdown_duration    REAL, -- bars; peak to recovery of the deepest
    recovery_time        REAL, -- bars; trough to recovery of the deepest
    longest_drawdown     REAL, -- bars; longest peak to recovery
    var95                REAL, -- fraction; session returns, historical type 7, 5 %
    cvar95               REAL, -- fraction; session returns, Rockafellar-Uryasev, 5 %
    win_rate             REAL, -- fraction; winning / closed trades, net of costs
    avg_trade            REAL, -- money; mean net P&L of closed trades
    avg_trade_return     REAL, -- fraction; mean of net P&L / entry notional
    profit_factor        REAL, -- ratio; sum of wins / |sum of losses|, cash
    payoff               REAL, -- ratio; mean win / mean loss
    expectancy           REAL, -- ratio; mean net P&L / mean loss (R multiple)
    sqn                  REAL, -- ratio; sqrt(n) x mean / deviation of trade P&L, ddof 1
    turnover             REAL, -- x capital; traded notional / initial capital, a session
    exposure             REAL, -- fraction; share of bars with a position
    trades               REAL, -- count; closed round trips
    ambiguous_bars       REAL, -- count; bars whose order of events is unknown
    longest_flat         REAL, -- bars; longest run without a position
    flags   INTEGER NOT NULL,                -- as in fold_result
    reasons TEXT,                            -- as in fold_result
    random_percentile REAL,                  -- as in fold_result
    returns BLOB,                            -- as in fold_result
    PRIMARY KEY (policy, fold, seed)
) STRICT;

-- Training statistics at an epoch, of one lane or of all lanes merged. Written with reports; where
-- an attempt repeats an epoch, the newer replaces the older.
CREATE TABLE epoch_stat (
    trial       INTEGER NOT NULL REFERENCES trial (number),
    fold        INTEGER NOT NULL,            -- -1: all lanes merged
    seed        INTEGER NOT NULL,            -- -1: all lanes merged
    epoch       INTEGER NOT NULL,            -- epochs done, from 1
    experiences INTEGER,                     -- environment steps of the epoch
    updates     INTEGER,                     -- gradient steps of the epoch
    reward_mean REAL, reward_std REAL,       -- per environment step
    sharpe      REAL,                        -- mean / deviation of the epoch's step returns on equity
    loss        REAL,                        -- mean over the epoch's updates
    grad_norm   REAL,                        -- before clipping, mean over the epoch's updates
    q_mean      REAL,                        -- DQN
    td_error    REAL,                        -- DQN, mean of |td error|
    epsilon     REAL,                        -- exploring share of the actions
    learning_rate REAL,                      -- at the end of the epoch
    kl          REAL,                        -- PPO
    entropy     REAL,                        -- PPO, nats
    explained_variance REAL,                 -- PPO
    curiosity_loss REAL,                     -- of the curiosity networks, mean over the updates
    replay_fill INTEGER,                     -- transitions in the ring
    validation  REAL,                        -- first objective's metric on the validation window, or NULL
    guard       INTEGER,                     -- 0 none, 1 loss, 2 gradient, 3 vanished, 4 Q
    PRIMARY KEY (trial, fold, seed, epoch)
) STRICT, WITHOUT ROWID;

-- Validation reports of a trial, and what the pruner decided on each. Written as they arrive.
CREATE TABLE report (
    trial       INTEGER NOT NULL REFERENCES trial (number),
    step        INTEGER NOT NULL,            -- epochs done (with raced folds: of all rounds)
    value       REAL,                        -- first objective on the validation windows; NULL: undefined
    at_ns       INTEGER NOT NULL,            -- arrived
    rung        INTEGER,                     -- of the pruner; NULL: no decision at this step
    competitors INTEGER,                     -- values compared with
    threshold   REAL,                        -- the value to reach
    verdict     TEXT CHECK (verdict IN ('keep', 'prune', 'pause')),  -- pause: may be promoted later; NULL: no decision
    why         TEXT,                        -- the decision in one line
    PRIMARY KEY (trial, step)
) STRICT, WITHOUT ROWID;

-- Population-based training: which trial's agents a trial took over, and after which epoch. Written
-- with the report that says so.
CREATE TABLE evolution (
    trial  INTEGER NOT NULL REFERENCES trial (number),
    step   INTEGER NOT NULL,                 -- epochs done
    parent INTEGER NOT NULL REFERENCES trial (number),
    PRIMARY KEY (trial, step)
) STRICT, WITHOUT ROWID;

-- The parameters it trained on with from there; param holds those it began with.
CREATE TABLE evolution_param (
    trial INTEGER NOT NULL,                  -- as in evolution
    step  INTEGER NOT NULL,                  -- as in evolution
    param INTEGER NOT NULL REFERENCES param_space (id),
    value REAL NOT NULL,                     -- as in param
    PRIMARY KEY (trial, step, param),
    FOREIGN KEY (trial, step) REFERENCES evolution (trial, step)
) STRICT, WITHOUT ROWID;

-- Validation value of each fold behind a report (mean over seeds). Written with it.
CREATE TABLE fold_report (
    trial INTEGER NOT NULL REFERENCES trial (number),
    step  INTEGER NOT NULL,                  -- as in report
    fold  INTEGER NOT NULL,                  -- from 0
    value REAL,                              -- first objective; NULL: undefined
    PRIMARY KEY (trial, step, fold)
) STRICT, WITHOUT ROWID;

-- The further objectives behind a report; the first is report.value. Written with it.
CREATE TABLE report_value (
    trial     INTEGER NOT NULL REFERENCES trial (number),
    step      INTEGER NOT NULL,              -- as in report
    objective INTEGER NOT NULL REFERENCES objective (id),  -- from 1
    value     REAL,                          -- on the validation windows; NULL: undefined
    PRIMARY KEY (trial, step, objective)
) STRICT, WITHOUT ROWID;

-- Racing over folds (study.race_folds): what a trial had run after each round, and whether it was
-- still in the running. Written with the round's fold_result rows.
CREATE TABLE race (
    trial     INTEGER NOT NULL REFERENCES trial (number),
    round     INTEGER NOT NULL,              -- from 0
    attempt   INTEGER NOT NULL,              -- the lease that ran it
    at_ns     INTEGER NOT NULL,              -- decided
    folds     INTEGER NOT NULL,              -- run so far, of all folds in the study's shuffled order
    epochs    INTEGER NOT NULL,              -- of this round and those before
    against   INTEGER REFERENCES trial (number),  -- best complete trial then; NULL: none, or no need to compare
    common    INTEGER,                       -- folds that both have
    p         REAL,                          -- of "not worse than it", one-sided signed-rank test
    threshold REAL,                          -- dropped below this p
    mean_gap  REAL,                          -- own less its mean value on the common folds, unit of the metric
    verdict   TEXT NOT NULL CHECK (verdict IN ('next', 'drop', 'end')),  -- more folds, pruned, all folds are run
    why       TEXT NOT NULL,                 -- the decision in one line
    result    BLOB,                          -- the round's result message while the trial is unfinished; else NULL
    PRIMARY KEY (trial, round)
) STRICT;

-- Workers seen. Written at hello, at bye and when one is given up.
CREATE TABLE worker (
    id            INTEGER PRIMARY KEY,       -- from 1, never used again
    name          TEXT NOT NULL,             -- host-pid-device, unique while it lives
    host          TEXT NOT NULL,             -- its machine
    pid           INTEGER NOT NULL,          -- on its machine
    device        TEXT NOT NULL,             -- GPU name, or "cpu"
    device_uuid   TEXT,                      -- of the GPU; NULL: cpu
    backend       TEXT NOT NULL CHECK (backend IN ('cpu', 'cuda')),  -- what computes
    version       TEXT NOT NULL,             -- of the program
    lanes         INTEGER NOT NULL,          -- capacity, agents at once
    local         INTEGER NOT NULL CHECK (local IN (0, 1)),  -- started by this coordinator
    curve_key     TEXT,                      -- its public key (Z85); NULL without CURVE
    joined_ns     INTEGER NOT NULL,
    left_ns       INTEGER,                   -- NULL: here
    leave_reason  TEXT,                      -- bye, lost, died, refused, coordinator ended
    finished      INTEGER NOT NULL DEFAULT 0 -- [derived] results delivered
) STRICT;

-- What happened that a person may ask about later. Written with its cause.
CREATE TABLE event (
    id     INTEGER PRIMARY KEY,              -- in order
    at_ns  INTEGER NOT NULL,                 -- when
    kind   TEXT NOT NULL,                    -- start, resume, change, requeue, late, lost, refuse, pause, ...
    trial  INTEGER,                          -- NULL: none
    attempt INTEGER,                         -- NULL: none
    worker INTEGER,                          -- NULL: none
    text   TEXT NOT NULL                     -- for people
) STRICT;
CREATE INDEX event_by_trial ON event (trial) WHERE trial IS NOT NULL;

-- Files beside the database. Written when a file is whole on disk; deleted ones keep their row.
CREATE TABLE artifact (
    id         INTEGER PRIMARY KEY,          -- in order of writing
    trial      INTEGER NOT NULL REFERENCES trial (number),
    fold       INTEGER,                      -- NULL: of the whole trial
    seed       INTEGER,                      -- seed index; NULL: of the whole trial
    kind       TEXT NOT NULL CHECK (kind IN (
                   'weights', 'actions', 'checkpoint', 'bar_returns', 'trades')),
    attempt    INTEGER NOT NULL,             -- that wrote it
    path       TEXT NOT NULL,                -- relative to the artifact folder
    size       INTEGER NOT NULL,             -- bytes
    sha256     TEXT NOT NULL,                -- of the file's bytes, hex
    created_ns INTEGER NOT NULL,             -- whole on disk
    deleted_ns INTEGER                       -- NULL: still there
) STRICT;
CREATE INDEX artifact_by_trial ON artifact (trial);

-- Every look at the holdout. Written by `hyperopt holdout`.
CREATE TABLE holdout_look (
    id           INTEGER PRIMARY KEY,        -- in order
    at_ns        INTEGER NOT NULL,           -- when; the seeds of one look share it
    trial        INTEGER NOT NULL REFERENCES trial (number),
    seed         INTEGER NOT NULL,           -- seed index, from 0
    refit        INTEGER NOT NULL CHECK (refit IN (0, 1)),  -- 1: agents trained on all before it
    user         TEXT NOT NULL,              -- login name
    sharpe       REAL, total_return REAL, max_drawdown REAL, trades REAL,  -- as in fold_result
    metrics      TEXT NOT NULL,              -- JSON, every metric
    returns      BLOB                        -- as in fold_result
) STRICT;

-- Overfitting statistics. Written when a run ends; the newest row counts.
CREATE TABLE overfit (
    id         INTEGER PRIMARY KEY,          -- in order
    at_ns      INTEGER NOT NULL,             -- when it was computed
    trial      INTEGER REFERENCES trial (number),  -- the best one
    trials     INTEGER NOT NULL,             -- N: every configuration evaluated, pruned and failed ones too
    sharpe     REAL,                         -- of the best, per session, not annualised
    sharpe_std REAL,                         -- deviation (ddof 1) of the trials' Sharpe ratios
    sharpe_zero REAL,                        -- expected best of N trials without skill
    psr        REAL,                         -- probability that the Sharpe ratio is above 0
    dsr        REAL,                         -- the same above sharpe_zero (deflated)
    min_track_sessions REAL,                 -- minimum track record length at 95 %
    pbo        REAL,                         -- probability of backtest overfitting (CSCV)
    pbo_splits INTEGER,                      -- ways to halve the sessions that PBO rests on
    null_p     REAL,                         -- share of permuted studies with a better best; `null-test`
    notes      TEXT                          -- why a number is NULL
) STRICT;

-- Importance of parameters. Written when a run ends.
CREATE TABLE importance (
    objective INTEGER NOT NULL REFERENCES objective (id),
    param     INTEGER NOT NULL REFERENCES param_space (id),
    method    TEXT NOT NULL,                 -- ped_anova, spearman, kendall
    value     REAL,                          -- share in [0, 1], or a correlation in [-1, 1]
    trials    INTEGER NOT NULL,              -- it rests on
    PRIMARY KEY (objective, param, method)
) STRICT, WITHOUT ROWID;

PRAGMA application_id = 1213157460;  -- 'HOPT'
PRAGMA user_version = 3;
