/* SPDX-License-Identifier: Apache-2.0
 * The search's acceptance table (spec/search.md): regret after 50, 100 and 200 sequential trials on
 * seven problems, medians and quartiles over the seeds; two objectives by hypervolume; pruners by
 * epochs; racing by folds; milliseconds of ask + tell. Peers run the same problems in the same go.
 *
 * usage: bench_search [--seeds N] [--sampler NAME]... [--problem NAME] [--peer LABEL=PYTHON]...
 *                     [--only table|front|pruners|racing|speed] [--json]
 * A peer is a Python interpreter that has Optuna; bench/peers/optuna_search.py is run with it. */
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench/search_problems.h"
#include "coordinator/search/draw.h"
#include "coordinator/search/pareto.h"
#include "coordinator/search/pruner.h"
#include "coordinator/search/racing.h"
#include "coordinator/search/sampler.h"

enum { TRIALS = 200, BUDGETS = 3, SEEDS_MAX = 1000, LIST_MAX = 8, PARAMS_MAX = 16 };
static const int BUDGET[BUDGETS] = {50, 100, 200};

typedef struct arguments {
    int seeds;
    int samplers, peers;
    const char *sampler[LIST_MAX];
    const char *peer[LIST_MAX]; /* LABEL=PYTHON */
    const char *only;
    const char *problem; /* of the table alone; NULL: all */
    bool json;
} arguments;

typedef double column[BUDGETS][SEEDS_MAX];

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

static double share(double *x, int n, double part)
{
    double place = part * (n - 1);
    int low = (int)place, high = low + 1 < n ? low + 1 : low;

    qsort(x, (size_t)n, sizeof *x, by_value);
    return x[low] + (place - low) * (x[high] - x[low]);
}

static void print_row(const arguments *args, const char *problem, const char *who, column *values,
                      int seeds)
{
    if (args->json) {
        printf("{\"bench\": \"search\", \"problem\": \"%s\", \"sampler\": \"%s\", \"seeds\": %d",
               problem, who, seeds);
    } else {
        printf("%-12s %-16s", problem, who);
    }
    for (int b = 0; b < BUDGETS; b++) {
        double median = share((*values)[b], seeds, 0.5), low = share((*values)[b], seeds, 0.25),
               high = share((*values)[b], seeds, 0.75);

        if (args->json) {
            printf(", \"%d\": [%.6g, %.6g, %.6g]", BUDGET[b], low, median, high);
        } else {
            printf("  %9.4g [%8.3g %8.3g]", median, low, high);
        }
    }
    printf(args->json ? "}\n" : "\n");
    (void)fflush(stdout);
}

static void fail(const ho_err *err)
{
    (void)fprintf(stderr, "bench_search: %s\n", err->text);
    exit(1); /* NOLINT: a benchmark has nothing to clean up */
}

static ho_sampler *make(const ho_space *space, const char *kind, uint64_t seed, int objectives)
{
    ho_sampler_options options = ho_sampler_defaults();
    ho_sampler *sampler;
    ho_err err;

    options.kind = kind;
    options.seed = seed;
    options.objectives = objectives;
    options.direction[0] = options.direction[1] = -1;
    if (ho_sampler_create(&sampler, space, &options, &err) != HO_OK) {
        fail(&err);
    }
    return sampler;
}

static void step(ho_sampler *sampler, int64_t number, double *config)
{
    ho_err err;

    if (ho_sampler_ask(sampler, number, config, NULL, &err) != HO_OK) {
        fail(&err);
    }
}

static void tell(ho_sampler *sampler, int64_t number, double first, double second)
{
    ho_told told = {.state = HO_TOLD_COMPLETE, .value = {first, second}, .seconds = NAN};
    ho_err err;

    if (ho_sampler_tell(sampler, number, &told, &err) != HO_OK) {
        fail(&err);
    }
}

static void run_ours(const ho_problem *problem, const char *kind, int seeds, column *out)
{
    for (int seed = 0; seed < seeds; seed++) {
        ho_space space = problem->space();
        ho_sampler *sampler = make(&space, kind, (uint64_t)seed, 1);
        double best = INFINITY, config[PARAMS_MAX];
        int b = 0;

        for (int64_t n = 0; n < TRIALS; n++) {
            double regret;

            step(sampler, n, config);
            regret = problem->regret(config);
            tell(sampler, n, regret, 0.0);
            best = fmin(best, regret);
            if (n + 1 == BUDGET[b]) {
                (*out)[b++][seed] = best;
            }
        }
        ho_sampler_destroy(&sampler);
    }
}

/* Reads "problem seed v50 v100 v200" lines of a peer. Returns how many seeds came. */
static int run_peer(const char *python, const char *sampler, int seeds, const char *problem,
                    column *out)
{
    char command[1024], name[64];
    double v[BUDGETS];
    int seed, count = 0;
    FILE *pipe;

    (void)snprintf(command, sizeof command,
                   "OMP_NUM_THREADS=1 '%s' '%s/bench/peers/optuna_search.py' %s %d %s", python,
                   HO_SOURCE_DIR, sampler, seeds, problem);
    if (!(pipe = popen(command, "r"))) {
        return 0;
    }
    while (count < seeds &&
           fscanf(pipe, "%63s %d %lf %lf %lf", name, &seed, &v[0], &v[1], &v[2]) == 5) {
        for (int b = 0; b < BUDGETS; b++) {
            (*out)[b][count] = v[b];
        }
        count++;
    }
    (void)pclose(pipe);
    return count;
}

/* Splits LABEL=PYTHON. */
static const char *peer_python(const char *peer, char *label, size_t room)
{
    const char *equals = strchr(peer, '=');

    if (!equals) {
        (void)snprintf(label, room, "optuna");
        return peer;
    }
    (void)snprintf(label, room, "%.*s", (int)(equals - peer), peer);
    return equals + 1;
}

static void table(const arguments *args)
{
    static column values;

    if (!args->json) {
        printf("regret, median [quartiles] over %d seeds after 50, 100 and 200 trials\n",
               args->seeds);
    }
    for (int i = 0; i < ho_problem_count(); i++) {
        const ho_problem *problem = ho_problem_at(i);

        if (args->problem && strcmp(args->problem, problem->name) != 0) {
            continue;
        }
        for (int s = 0; s < args->samplers; s++) {
            run_ours(problem, args->sampler[s], args->seeds, &values);
            print_row(args, problem->name, args->sampler[s], &values, args->seeds);
        }
        for (int p = 0; p < args->peers; p++) {
            char label[32], who[64];
            const char *python = peer_python(args->peer[p], label, sizeof label);
            int count = run_peer(python, "tpe", args->seeds, problem->name, &values);

            (void)snprintf(who, sizeof who, "%s tpe", label);
            if (count > 0) {
                print_row(args, problem->name, who, &values, count);
            }
        }
    }
}

/* Hypervolume of the noise-free values of what was tried; the sampler sees noise of 0.01. */
static void run_front(const char *kind, int seeds, column *out)
{
    static const double REFERENCE[2] = {1.1, 6.0};

    for (int seed = 0; seed < seeds; seed++) {
        ho_space space = ho_problem_zdt1_space();
        ho_sampler *sampler = make(&space, kind, (uint64_t)seed, 2);
        double config[PARAMS_MAX], loss[2 * TRIALS];
        int b = 0;

        for (int64_t n = 0; n < TRIALS; n++) {
            ho_draw noise = ho_draw_start((uint64_t)seed, n, HO_DRAW_FIT, 77);
            double first, second;

            step(sampler, n, config);
            ho_problem_zdt1(config, &loss[2 * n]);
            first = loss[2 * n] + 0.01 * ho_draw_normal(&noise);
            second = loss[2 * n + 1] + 0.01 * ho_draw_normal(&noise);
            tell(sampler, n, first, second);
            if (n + 1 == BUDGET[b]) {
                (*out)[b++][seed] = ho_pareto_hypervolume(loss, n + 1, 2, REFERENCE);
            }
        }
        ho_sampler_destroy(&sampler);
    }
}

static void front(const arguments *args)
{
    static const char *const KIND[] = {"tpe", "nsga2"}, *const PEER[] = {"tpe-mo", "nsga2"};
    static column values;

    if (!args->json) {
        printf(
            "zdt1 with noise: hypervolume to (1.1, 6.0), more is better; the front has 6.2667\n");
    }
    for (int k = 0; k < 2; k++) {
        run_front(KIND[k], args->seeds, &values);
        print_row(args, "zdt1", KIND[k], &values, args->seeds);
        for (int p = 0; p < args->peers; p++) {
            char label[32], who[64];
            const char *python = peer_python(args->peer[p], label, sizeof label);
            int count = run_peer(python, PEER[k], args->seeds, "", &values);

            (void)snprintf(who, sizeof who, "%s %s", label, PEER[k]);
            if (count > 0) {
                print_row(args, "zdt1", who, &values, count);
            }
        }
    }
}

/* Value of a trial after some epochs: a curve towards its quality at a rate of its own, with noise.
 */
static double curve(uint64_t seed, int64_t trial, int64_t epoch, double *quality)
{
    ho_draw draw = ho_draw_start(seed, trial, HO_DRAW_PROPOSE, 0);
    ho_draw noise = ho_draw_start(seed, trial * 1000 + epoch, HO_DRAW_FILL, 0);
    double rate;

    *quality = ho_draw_unit(&draw);
    rate = 0.05 + 0.1 * ho_draw_unit(&draw);
    return *quality * (1.0 - exp(-rate * (double)epoch)) + 0.01 * ho_draw_normal(&noise);
}

static void pruners(const arguments *args)
{
    enum { EPOCHS = 81 };
    static double gap[SEEDS_MAX];

    if (!args->json) {
        printf("pruners: %d trials of %d epochs; epochs spent, best quality lost (median)\n",
               TRIALS, EPOCHS);
    }
    for (int k = 0; k < ho_pruner_kind_count(); k++) {
        const char *name = ho_pruner_kind_name(k);
        int64_t spent = 0;
        double median;

        if (strcmp(name, "wilcoxon") == 0 || strcmp(name, "threshold") == 0) {
            continue;
        }
        for (int seed = 0; seed < args->seeds; seed++) {
            ho_pruner_options options = ho_pruner_defaults();
            ho_pruner *pruner;
            double best = 0.0, found = 0.0;
            ho_err err;

            options.kind = name;
            options.max_epochs = EPOCHS;
            options.percentile = 25.0;
            options.seed = (uint64_t)seed;
            if (ho_pruner_create(&pruner, &options, &err) != HO_OK) {
                fail(&err);
            }
            for (int64_t n = 0; n < TRIALS; n++) {
                ho_decision d = {.verdict = HO_VERDICT_CONTINUE};
                double quality = 0.0;
                int64_t epoch = 0;

                while (epoch < EPOCHS && d.verdict == HO_VERDICT_CONTINUE) {
                    double value = curve((uint64_t)seed, n, ++epoch, &quality);

                    if (ho_pruner_report(pruner, n, epoch, &value, &d, &err) != HO_OK) {
                        fail(&err);
                    }
                }
                spent += epoch;
                best = fmax(best, quality);
                if (epoch == EPOCHS) {
                    found = fmax(found, quality);
                }
                if (ho_pruner_finish(pruner, n, epoch < EPOCHS ? HO_TOLD_PRUNED : HO_TOLD_COMPLETE,
                                     &err) != HO_OK) {
                    fail(&err);
                }
            }
            gap[seed] = best - found;
            ho_pruner_destroy(&pruner);
        }
        median = share(gap, args->seeds, 0.5);
        printf(
            args->json
                ? "{\"bench\": \"pruners\", \"pruner\": \"%s\", \"share\": %.4f, \"lost\": %.5f}\n"
                : "%-12s epochs %.4f of all, best quality lost %.5f\n",
            name, (double)spent / ((double)args->seeds * TRIALS * EPOCHS), median);
    }
}

enum { RACE_TRIALS = 100, RACE_FOLDS = 16 };

typedef struct race_sum {
    int64_t run;       /* folds */
    int dropped, kept; /* the trial that all folds would choose: dropped in so many studies */
    double lost;       /* mean value of the best complete trial below it */
} race_sum;

/* One study: trials of a quality, folds with an effect that all trials meet, and noise; raced
 * at_a_time folds after each other as coordinator/dispatch_race.c does. */
static void race_study(uint64_t seed, int at_a_time, double noise, double p, race_sum *sum)
{
    static double value[RACE_TRIALS][RACE_FOLDS];
    double mean[RACE_TRIALS];
    int order[RACE_FOLDS], best = -1, truth = 0;
    bool lost = false;

    for (int t = 0; t < RACE_TRIALS; t++) {
        ho_draw draw = ho_draw_start(seed, t, HO_DRAW_PROPOSE, 0);
        double quality = ho_draw_normal(&draw);

        mean[t] = 0.0;
        for (int f = 0; f < RACE_FOLDS; f++) {
            ho_draw fold = ho_draw_start(seed, f, HO_DRAW_FILL, 0);

            value[t][f] = quality + 2.0 * ho_draw_normal(&fold) + noise * ho_draw_normal(&draw);
            mean[t] += value[t][f] / RACE_FOLDS;
        }
        truth = mean[t] > mean[truth] ? t : truth;
    }
    ho_race_order(seed, RACE_FOLDS, order);
    for (int t = 0; t < RACE_TRIALS; t++) {
        double own[RACE_FOLDS];
        bool drop = false;
        int ran = 0;

        for (int f = 0; f < RACE_FOLDS; f++) {
            own[f] = NAN;
        }
        while (ran < RACE_FOLDS && !drop) {
            for (int k = 0; k < at_a_time && ran < RACE_FOLDS; k++, ran++) {
                own[order[ran]] = value[t][order[ran]];
            }
            drop = best >= 0 && ran < RACE_FOLDS &&
                   ho_race_decide(own, value[best], RACE_FOLDS, +1, p).drop;
        }
        sum->run += ran;
        lost = lost || (drop && t == truth);
        if (!drop && (best < 0 || mean[t] > mean[best])) {
            best = t;
        }
    }
    sum->dropped += lost;
    sum->kept += !lost;
    sum->lost += mean[truth] - mean[best];
}

static void racing(const arguments *args)
{
    static const int AT_A_TIME[] = {1, 2, 4};
    static const double NOISE[] = {0.35, 0.7, 1.4}, P[] = {0.05, 0.1, 0.2};

    if (!args->json) {
        printf(
            "racing: %d trials of %d folds, qualities normal(0, 1), folds normal(0, 2); share of "
            "the folds run, studies in which the best was dropped, value lost by that (mean)\n",
            RACE_TRIALS, RACE_FOLDS);
    }
    for (size_t k = 0; k < 3; k++) {
        for (size_t n = 0; n < 3; n++) {
            for (size_t i = 0; i < 3; i++) {
                race_sum sum = {0};

                for (int seed = 0; seed < args->seeds; seed++) {
                    race_study((uint64_t)seed, AT_A_TIME[k], NOISE[n], P[i], &sum);
                }
                printf(args->json ? "{\"bench\": \"racing\", \"race_folds\": %d, \"noise\": %g, "
                                    "\"p\": %g, \"share\": %.4f, \"dropped\": %d, \"studies\": "
                                    "%d, \"lost\": %.5f}\n"
                                  : "race_folds %d, noise %-4g p %-4g: %.3f of the folds, the best "
                                    "dropped in %d of %d studies, lost %.4f\n",
                       AT_A_TIME[k], NOISE[n], P[i],
                       (double)sum.run / ((double)args->seeds * RACE_TRIALS * RACE_FOLDS),
                       sum.dropped, sum.dropped + sum.kept, sum.lost / args->seeds);
            }
        }
    }
}

static double now_ms(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

/* Milliseconds of ask + tell with ten float parameters after so many finished trials. */
static void speed(const arguments *args)
{
    static const int64_t COUNT[] = {100, 1000, 10000};
    static double took[21];
    ho_param params[10];
    ho_space space = {.count = 10, .param = params};

    memset(params, 0, sizeof params);
    for (int p = 0; p < 10; p++) {
        params[p].high = 1.0;
        (void)snprintf(params[p].name, sizeof params[p].name, "x%d", p);
    }
    for (int s = 0; s < args->samplers; s++) {
        for (size_t c = 0; c < sizeof COUNT / sizeof COUNT[0]; c++) {
            ho_sampler *sampler;
            double config[10], median;
            ho_err err;

            if (strcmp(args->sampler[s], "gp") == 0 && COUNT[c] > 1000) {
                continue;
            }
            sampler = make(&space, args->sampler[s], 1, 1);
            for (int64_t n = 0; n < COUNT[c]; n++) {
                ho_draw draw = ho_draw_start(9, n, HO_DRAW_FIT, 0);

                for (int p = 0; p < 10; p++) {
                    config[p] = ho_draw_unit(&draw);
                }
                if (ho_sampler_resume(sampler, n, config, &err) != HO_OK) {
                    fail(&err);
                }
                tell(sampler, n, ho_draw_unit(&draw), 0.0);
            }
            for (int i = 0; i < 21; i++) {
                double start = now_ms();

                step(sampler, COUNT[c] + i, config);
                tell(sampler, COUNT[c] + i, config[0], 0.0);
                took[i] = now_ms() - start;
            }
            median = share(took, 21, 0.5);
            printf(args->json
                       ? "{\"bench\": \"ask_tell\", \"sampler\": \"%s\", \"trials\": %" PRId64
                         ", \"ms\": %.4f}\n"
                       : "ask+tell     %-8s %6" PRId64 " trials, 10 parameters: %.3f ms\n",
                   args->sampler[s], COUNT[c], median);
            ho_sampler_destroy(&sampler);
        }
    }
    for (int p = 0; p < args->peers; p++) {
        char label[32], command[1024];
        const char *python = peer_python(args->peer[p], label, sizeof label);

        (void)snprintf(command, sizeof command,
                       "'%s' '%s/bench/peers/optuna_search.py' speed 10000", python, HO_SOURCE_DIR);
        printf("%s: ", label);
        (void)fflush(stdout);
        if (system(command) != 0) {
            printf("did not run\n");
        }
    }
}

static bool wanted(const arguments *args, const char *part)
{
    return !args->only || strcmp(args->only, part) == 0;
}

int main(int argc, char **argv)
{
    arguments args = {.seeds = 20};

    for (int i = 1; i < argc; i++) {
        bool value = i + 1 < argc;

        if (strcmp(argv[i], "--json") == 0) {
            args.json = true;
        } else if (value && strcmp(argv[i], "--seeds") == 0) {
            args.seeds = atoi(argv[++i]);
        } else if (value && strcmp(argv[i], "--only") == 0) {
            args.only = argv[++i];
        } else if (value && strcmp(argv[i], "--problem") == 0) {
            args.problem = argv[++i];
        } else if (value && strcmp(argv[i], "--sampler") == 0 && args.samplers < LIST_MAX) {
            args.sampler[args.samplers++] = argv[++i];
        } else if (value && strcmp(argv[i], "--peer") == 0 && args.peers < LIST_MAX) {
            args.peer[args.peers++] = argv[++i];
        } else {
            (void)fprintf(stderr, "bench_search: what is \"%s\"? see the head of bench_search.c\n",
                          argv[i]);
            return 1;
        }
    }
    if (args.seeds < 1 || args.seeds > SEEDS_MAX) {
        (void)fprintf(stderr, "bench_search: --seeds 1 to %d\n", SEEDS_MAX);
        return 1;
    }
    if (args.samplers == 0) {
        args.sampler[args.samplers++] = "tpe";
        args.sampler[args.samplers++] = "cmaes";
        args.sampler[args.samplers++] = "random";
    }
    if (wanted(&args, "table")) {
        table(&args);
    }
    if (wanted(&args, "front")) {
        front(&args);
    }
    if (wanted(&args, "pruners")) {
        pruners(&args);
    }
    if (wanted(&args, "racing")) {
        racing(&args);
    }
    if (wanted(&args, "speed")) {
        speed(&args);
    }
    return 0;
}
