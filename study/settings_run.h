/* SPDX-License-Identifier: Apache-2.0
 * Rows of the settings table: the study itself, how it is searched, and the processes that run it.
 * See settings_table.h for the columns. */
#ifndef HO_STUDY_SETTINGS_RUN_H
#define HO_STUDY_SETTINGS_RUN_H

#define HO_SETTINGS_STUDY(X)                                                                       \
    X(STUDY_NAME, "study.name", STRING, FIXED, 0, 0, 0, NONE, "", "",                              \
      "name of the study; absent: the study file's name")                                          \
    X(STUDY_SEED, "study.seed", INT, FIXED, 0, 0, 9.2e18, "0", "", "",                             \
      "seed of every random number of the study")                                                  \
    X(STUDY_TRIALS, "study.trials", INT, FIXED, RESUME, 1, 1e7, "100", "", "trials",               \
      "stop after this many trials")                                                               \
    X(STUDY_TIMEOUT, "study.timeout", DURATION, FIXED, RESUME, 1, 3e8, NONE, "", "s",              \
      "stop after this long; absent: no limit")                                                    \
    X(STUDY_PATIENCE, "study.patience", INT, FIXED, RESUME, 0, 1e7, "0", "", "trials",             \
      "stop after this many trials without a new best; 0: never")                                  \
    X(STUDY_PRIORITY, "study.priority", INT, FIXED, RESUME, 1, 1000, "1", "", "shares",            \
      "hyperopt serve: its share of the workers beside other studies")                             \
    X(STUDY_OBJECTIVE, "study.objective", STRINGS, FIXED, 0, 1, 8, "sharpe", "", "",               \
      "one or several metric names; the metric table says which direction is better")              \
    X(STUDY_AGGREGATE, "study.aggregate", CHOICE, FIXED, 0, 0, 0, "stitched",                      \
      "stitched|mean|median|min|mean_minus_std", "",                                               \
      "from folds to one value: metric of the joined out-of-sample series, or a statistic over "   \
      "folds")                                                                                     \
    X(STUDY_CONSTRAINTS, "study.constraints", STRINGS, FIXED, 0, 0, 16, "", "", "",                \
      "what a trial must satisfy, e.g. \"max_drawdown >= -0.25\"; worst seed counts")              \
    X(STUDY_REQUIRE, "study.require", STRINGS, FIXED, 0, 0, 16, "", "", "",                        \
      "what parameters must satisfy before a trial is spent, e.g. \"dqn.batch < "                  \
      "dqn.replay_capacity\"")                                                                     \
    X(STUDY_SEEDS, "study.seeds", INT, FIXED, 0, 1, 64, "1", "", "agents",                         \
      "agents per fold; the objective is the mean over them")                                      \
    X(STUDY_DETERMINISTIC, "study.deterministic", BOOL, FIXED, 0, 0, 0, "false", "", "",           \
      "propose trial n from exactly trials 0 .. n-1-parallel, so that the whole study repeats")    \
    X(STUDY_PARALLEL, "study.parallel", INT, FIXED, AUTO, 1, 65536, "auto", "", "trials",          \
      "trials that a deterministic study keeps pending; auto: trials / 10, 1 to 16")               \
    X(STUDY_DATABASE, "study.database", STRING, FIXED, AUTO | RESUME, 0, 0, "auto", "", "",        \
      "the study's SQLite file; auto: <name>.db in the current folder")                            \
    X(STUDY_ALLOW_SEARCHING_FACTS, "study.allow_searching_facts", BOOL, FIXED, 0, 0, 0, "false",   \
      "", "", "let facts of the market be searched; the search then learns to trade for free")     \
    X(STUDY_REPLICATES, "study.replicates", INT, FIXED, 0, 1, 1000, "1", "", "trials",             \
      "how often one configuration is tried, each time with other seeds")                          \
    X(STUDY_RACE_FOLDS, "study.race_folds", INT, FIXED, 0, 0, 256, "0", "", "folds",               \
      "folds a trial runs at a time; those that trail the best by then are dropped; 0: all "       \
      "folds at once")                                                                             \
    X(STUDY_FINAL_RETEST, "study.final_retest", INT, FIXED, RESUME, 0, 1000, "0", "", "trials",    \
      "evaluate this many of the best again with fresh seeds at the end; 0: none")                 \
    X(STUDY_RETEST_SEEDS, "study.retest_seeds", INT, FIXED, RESUME, 1, 64, "3", "", "agents",      \
      "agents per fold in the final retest")

#define HO_SETTINGS_SEARCH(X)                                                                      \
    X(SAMPLER_KIND, "sampler.kind", CHOICE, FIXED, RESUME, 0, 0, "tpe",                            \
      "tpe|random|grid|sobol|cmaes|gp|nsga2", "", "how parameters are proposed")                   \
    X(SAMPLER_STARTUP, "sampler.startup", INT, FIXED, RESUME, 0, 1e6, "10", "", "trials",          \
      "random trials before a model is used")                                                      \
    X(SAMPLER_CANDIDATES, "sampler.candidates", INT, FIXED, RESUME, 1, 1024, "24", "", "",         \
      "tpe: candidates drawn for each proposal")                                                   \
    X(SAMPLER_SIGMA0, "sampler.sigma0", FLOAT, FIXED, RESUME, 1e-6, 1, "0.16666666666666666", "",  \
      "share of the range", "cmaes: first step size")                                              \
    X(SAMPLER_POPULATION, "sampler.population", INT, FIXED, AUTO | RESUME, 2, 100000, "auto", "",  \
      "trials", "cmaes, nsga2: size of a generation; auto: 4 + 3 ln d, 50")                        \
    X(SAMPLER_CROSSOVER, "sampler.crossover", FLOAT, FIXED, RESUME, 0, 1, "0.9", "",               \
      "probability", "nsga2: a child has two parents")                                             \
    X(SAMPLER_MUTATION, "sampler.mutation", FLOAT, FIXED, AUTO | RESUME, 0, 1, "auto", "",         \
      "probability", "nsga2: a parameter is drawn anew; auto: 1 / parameters")                     \
    X(SAMPLER_COST, "sampler.cost", BOOL, FIXED, RESUME, 0, 0, "false", "", "",                    \
      "prefer configurations that are cheap per expected gain, by measured trial seconds")         \
    X(PRUNER_KIND, "pruner.kind", CHOICE, FIXED, RESUME, 0, 0, "asha",                             \
      "none|median|percentile|asha|hyperband|wilcoxon|threshold|patient", "",                      \
      "which trials are stopped early")                                                            \
    X(PRUNER_MIN_EPOCHS, "pruner.min_epochs", INT, FIXED, RESUME, 1, 1e6, "5", "", "epochs",       \
      "asha, hyperband: epochs of the first rung; others: none is stopped earlier")                \
    X(PRUNER_REDUCTION, "pruner.reduction", INT, FIXED, RESUME, 2, 100, "3", "", "",               \
      "asha, hyperband: one of this many goes on at a rung")                                       \
    X(PRUNER_PROMOTE, "pruner.promote", BOOL, FIXED, RESUME, 0, 0, "false", "", "",                \
      "asha: pause and promote later, from a checkpoint, instead of stopping")                     \
    X(PRUNER_BOOTSTRAP, "pruner.bootstrap", INT, FIXED, RESUME, 0, 1e6, "0", "", "trials",         \
      "asha: values a rung must hold before anything passes it")                                   \
    X(PRUNER_STARTUP, "pruner.startup", INT, FIXED, RESUME, 0, 1e6, "5", "", "trials",             \
      "median, percentile: finished trials before any is stopped")                                 \
    X(PRUNER_INTERVAL, "pruner.interval", INT, FIXED, RESUME, 1, 1e6, "1", "", "epochs",           \
      "median, percentile: epochs between checks")                                                 \
    X(PRUNER_MIN_TRIALS, "pruner.min_trials", INT, FIXED, RESUME, 1, 1e6, "1", "", "trials",       \
      "median, percentile: reports of an epoch needed for a comparison")                           \
    X(PRUNER_PERCENTILE, "pruner.percentile", FLOAT, FIXED, RESUME, 0, 100, "25", "", "%",         \
      "percentile: the share of the best that goes on")                                            \
    X(PRUNER_P_THRESHOLD, "pruner.p_threshold", FLOAT, FIXED, RESUME, 0, 1, "0.1", "", "",         \
      "wilcoxon, study.race_folds: stopped below this p-value")                                    \
    X(PRUNER_LOWER, "pruner.lower", FLOAT, FIXED, RESUME, -1e300, 1e300, NONE, "", "",             \
      "threshold: stopped below this value")                                                       \
    X(PRUNER_UPPER, "pruner.upper", FLOAT, FIXED, RESUME, -1e300, 1e300, NONE, "", "",             \
      "threshold: stopped above this value")                                                       \
    X(PRUNER_INNER, "pruner.inner", CHOICE, FIXED, RESUME, 0, 0, "median",                         \
      "none|median|percentile|asha|hyperband|wilcoxon|threshold", "",                              \
      "patient: the pruner that speaks when patience is over")                                     \
    X(PRUNER_PATIENCE, "pruner.patience", INT, FIXED, RESUME, 0, 1e6, "5", "", "reports",          \
      "patient: reports without a gain before the inner pruner speaks")                            \
    X(PRUNER_MIN_DELTA, "pruner.min_delta", FLOAT, FIXED, RESUME, 0, 1e300, "0", "", "",           \
      "patient: smallest change that counts as a gain")                                            \
    X(POPULATION_SIZE, "population.size", INT, FIXED, 0, 0, 4096, "0", "", "trials",               \
      "population-based training: members trained side by side; 0: off")                           \
    X(POPULATION_EVERY, "population.every", INT, FIXED, 0, 1, 1e6, "5", "", "epochs",              \
      "epochs between exploit and explore")                                                        \
    X(POPULATION_QUANTILE, "population.quantile", FLOAT, FIXED, 0, 0.01, 0.5, "0.25", "", "share", \
      "the worst share copies weights from the best share")                                        \
    X(POPULATION_PERTURB, "population.perturb", FLOAT, FIXED, 0, 1, 10, "1.2", "", "factor",       \
      "explore: numbers are multiplied or divided by this")                                        \
    X(POPULATION_RESAMPLE, "population.resample", FLOAT, FIXED, 0, 0, 1, "0.25", "",               \
      "probability", "explore: a parameter is drawn anew instead of perturbed")

#define HO_SETTINGS_PROCESS(X)                                                                     \
    X(WORKERS_GPUS, "workers.gpus", STRINGS, FIXED, RESUME, 0, 64, "all", "", "",                  \
      "\"all\", a list of ordinals or UUIDs, or 0 for the CPU backend")                            \
    X(WORKERS_COUNT, "workers.count", INT, FIXED, AUTO | RESUME, 1, 1024, "auto", "", "processes", \
      "local workers; auto: one per GPU, or one on the CPU")                                       \
    X(WORKERS_LANES, "workers.lanes", INT, FIXED, AUTO | RESUME, 1, 65536, "auto", "", "agents",   \
      "agents trained at once on one device; auto: what memory holds and, on a GPU, as many as "   \
      "gain speed; on the CPU whole trials that fill the threads")                                 \
    X(WORKERS_IN_FLIGHT, "workers.in_flight", INT, FIXED, AUTO | RESUME, 1, 65536, "auto", "",     \
      "trials", "trials pending at once; auto: max(workers, trials / 10)")                         \
    X(WORKERS_THREADS, "workers.threads", INT, FIXED, AUTO | RESUME, 1, 4096, "auto", "",          \
      "threads", "CPU backend: threads of one worker; auto: its share of the cores")               \
    X(COORDINATOR_LISTEN, "coordinator.listen", STRING, FIXED, RESUME, 0, 0, NONE, "", "",         \
      "endpoint for remote workers, e.g. \"tcp://*:5555\"; absent: local workers only")            \
    X(COORDINATOR_CURVE, "coordinator.curve", STRING, FIXED, RESUME | PATH, 0, 0, NONE, "", "",    \
      "folder of CURVE keys made by hyperopt keygen")                                              \
    X(COORDINATOR_HEARTBEAT_INTERVAL, "coordinator.heartbeat_interval", DURATION, FIXED, RESUME,   \
      0.1, 3600, "5s", "", "s", "time between pings of a worker")                                  \
    X(COORDINATOR_HEARTBEAT_TIMEOUT, "coordinator.heartbeat_timeout", DURATION, FIXED, RESUME,     \
      0.2, 86400, "30s", "", "s", "a worker silent for this long loses its trials")                \
    X(COORDINATOR_MAX_ATTEMPTS, "coordinator.max_attempts", INT, FIXED, RESUME, 1, 1000, "3", "",  \
      "attempts", "a trial whose worker dies this often fails")                                    \
    X(COORDINATOR_METRICS, "coordinator.metrics", STRING, FIXED, RESUME, 0, 0, NONE, "", "",       \
      "address of the Prometheus endpoint, e.g. \"127.0.0.1:9464\"; absent: none")                 \
    X(CHECKPOINT_INTERVAL, "checkpoint.interval", DURATION, FIXED, RESUME, 0, 1e6, "2m", "", "s",  \
      "time between checkpoints of a running trial: what a lost worker costs at most")             \
    X(CHECKPOINT_EVERY, "checkpoint.every", INT, FIXED, RESUME, 0, 1e6, "1", "", "epochs",         \
      "and at least so many epochs; 0: only when asked to stop, or paused")                        \
    X(CHECKPOINT_REPLAY, "checkpoint.replay", BOOL, FIXED, RESUME, 0, 0, "false", "", "",          \
      "store the replay ring too, so that resuming is bit-identical; a pause always does")         \
    X(STORE_EPOCHS, "store.epochs", CHOICE, FIXED, RESUME, 0, 0, "all", "all|kept|none", "",       \
      "which trials keep their per-epoch rows")                                                    \
    X(STORE_KEEP_BEST, "store.keep_best", INT, FIXED, RESUME, 0, 1e6, "10", "", "trials",          \
      "the best trials whose weights are kept")                                                    \
    X(NOTIFY_URL, "notify.url", STRING, FIXED, RESUME, 0, 0, NONE, "", "",                         \
      "a JSON message is posted here when the study ends or fails")                                \
    X(COMMAND_RUN, "command.run", STRINGS, FIXED, 0, 0, 256, "", "", "",                           \
      "train by this command instead: an argument list, \"{name}\" is a parameter")                \
    X(COMMAND_DIRECTION, "command.direction", STRINGS, FIXED, 0, 0, 8, "", "", "",                 \
      "command: maximize or minimize, one per objective")                                          \
    X(COMMAND_TIMEOUT, "command.timeout", DURATION, FIXED, RESUME, 1, 3e8, NONE, "", "s",          \
      "command: a trial is failed after this long")

#endif
