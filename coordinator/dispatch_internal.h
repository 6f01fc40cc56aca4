/* SPDX-License-Identifier: Apache-2.0
 * What the dispatch_*.c files share. */
#ifndef HO_COORDINATOR_DISPATCH_INTERNAL_H
#define HO_COORDINATOR_DISPATCH_INTERNAL_H

#include "coordinator/dispatch.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One trial. */
typedef struct ho_slot {
    ho_trial_state state;
    int64_t attempt; /* newest lease; 0: none yet */
    int64_t worker;  /* holder while RUNNING, last holder while WAITING; -1: none */
    double *config;  /* [P] */
    int64_t ask;     /* as which proposal the sampler knows it; -1: a retest, which it does not */
    int64_t parent;  /* retest: of which trial; else -1 */
    int64_t not_before_ns;
    int64_t adopt_by_ns;             /* > 0: was running when the last coordinator ended */
    int64_t last_step;               /* of the newest scored report */
    int64_t acked_seq;               /* queued writes when its end was put */
    double value[HO_OBJECTIVES_MAX]; /* last report, then the result */
    double violation;
    int seeds;
    uint16_t strikes[HO_CAUSE_COUNT]; /* attempts that ended by the cause */
    bool fits;                        /* known to the sampler */
    bool paused;                      /* WAITING until the pruner promotes it */
    bool handing;                     /* paused, and its worker has not handed it back yet */
    bool promoted;                    /* paused and handing, and goes on as soon as it is back */
    bool reported;                    /* the pruner knows it */
    int64_t shunned_worker;           /* could not use the data; -1: none */
    int64_t pauses;                   /* while resuming: verdicts of the pruner that paused it */
    /* racing over folds */
    int raced;            /* folds whose results are taken, the first so many of race_order */
    int64_t rounds;       /* taken */
    int64_t race_epochs;  /* epochs of the rounds taken */
    int64_t race_attempt; /* whose round was taken last; 0: none */
    double *fold_value;   /* [folds] first objective; NULL: no fold run, or ended incomplete */
} ho_slot;

typedef struct ho_seat {
    int64_t id;
    int lanes; /* agents at once */
    int slots; /* trials it would take now, less those leased since it said so */
    bool here, ready, local;
    bool alone;       /* holds a suspect: nothing else is sent */
    bool no_data;     /* cannot use the study's data */
    int64_t assigned; /* trials it has */
    int64_t finished;
    int64_t heard_ns;
} ho_seat;

typedef enum ho_out_kind { HO_OUT_LEASE, HO_OUT_ACK } ho_out_kind;

/* A message that waits for a commit. */
typedef struct ho_out {
    ho_out_kind kind;
    int64_t worker, number, attempt, seq;
} ho_out;

struct ho_dispatch {
    ho_dispatch_config config;
    ho_dispatch_io io;
    ho_store *store;
    ho_sampler *sampler;
    ho_pruner *pruner;
    const ho_space *space;
    int64_t start_ns;

    ho_slot *slot; /* [proposed] */
    int64_t proposed, room;
    int64_t asked; /* proposals of the sampler among them; the others are retests */
    int64_t *open; /* [open_count] numbers of unfinished trials, ascending while untouched */
    int64_t open_count, open_room;

    ho_seat *seat; /* [seats], seat i has id first_worker + i */
    int64_t seats, seat_room, first_worker;

    ho_out *out; /* [out_count] in order of seq */
    int64_t out_count, out_room;

    int64_t told;       /* results told so far: told_order of the newest */
    int64_t prefix;     /* deterministic: trials 0 .. prefix-1 are told */
    int64_t weighed;    /* deterministic: trials 0 .. weighed-1 are in best */
    int64_t since_best; /* finished since the newest best */
    int64_t best_number;
    double best_value, best_violation;
    int64_t running, waiting, complete, pruned, failed, finished_here;
    double *scratch; /* [P] */
    int *race_order; /* [folds]; NULL: nothing is raced */
    char reason[64]; /* empty: still going on */
    char held[256];  /* ho_dispatch_hold; empty: nothing is held up */
    bool draining;
    const char *no_more; /* "exhausted", "patience": why nothing more is proposed; NULL: not yet */
};

/* The seat of a worker, or NULL when there is none (any more). */
ho_seat *ho_dispatch_seat(ho_dispatch *d, int64_t worker);
/* The slot of a number, or NULL. */
ho_slot *ho_dispatch_slot(ho_dispatch *d, int64_t number);
/* Grows the tables and adds a WAITING slot for `proposed`. parent: of a retest, or -1. */
ho_status ho_dispatch_add(ho_dispatch *d, const double *config, int64_t parent, ho_slot **out,
                          ho_err *err);
/* When all is done: puts the best trials up again with fresh seeds, those that were not. */
ho_status ho_dispatch_retest(ho_dispatch *d, bool *any, ho_err *err);
/* The folds that the trial runs next, ascending, into fold [folds]; 0: all at once. */
int ho_dispatch_next_folds(const ho_dispatch *d, const ho_slot *slot, int *fold);
/* The rounds of the store's trials become slots' again; after the slots are loaded. */
ho_status ho_dispatch_resume_race(ho_dispatch *d, ho_err *err);
/* Takes a result whose standing is that of the holder, as it stands. */
ho_status ho_dispatch_take_result(ho_dispatch *d, int64_t worker, ho_trial_result *result,
                                  int64_t now_ns, ho_err *err);
/* What a message about (number, attempt) from this worker is worth. */
typedef enum ho_standing {
    HO_STANDING_HOLDER,
    HO_STANDING_ENDED,
    HO_STANDING_LATE,
    HO_STANDING_NONSENSE
} ho_standing;
ho_standing ho_dispatch_standing(ho_dispatch *d, int64_t worker, int64_t number, int64_t attempt);
/* Answers a result that is not of the holder. */
ho_status ho_dispatch_answer_stale(ho_dispatch *d, ho_standing standing, int64_t worker,
                                   int64_t number, int64_t attempt, ho_err *err);
/* Queues a message behind what is queued in the store now. */
ho_status ho_dispatch_send_later(ho_dispatch *d, ho_out_kind kind, int64_t worker, int64_t number,
                                 int64_t attempt);
/* Takes a trial from its worker: the seat's count, the state of aloneness. */
void ho_dispatch_release(ho_dispatch *d, ho_slot *slot);
/* Ends a trial: told, stored, counted. result->state etc. are set by the caller. */
ho_status ho_dispatch_end(ho_dispatch *d, ho_trial_result *result, int64_t now_ns, ho_err *err);
/* Puts a trial back, or fails it, by the policy of the cause. */
ho_status ho_dispatch_requeue(ho_dispatch *d, int64_t number, ho_cause cause, const char *reason,
                              int64_t now_ns, ho_err *err);
/* A paused trial is back from its worker, or will not come back: it may be given out. */
void ho_dispatch_handed_back(ho_slot *slot);
/* Why nothing new is leased at present, or NULL. */
const char *ho_dispatch_held(const ho_dispatch *d);
/* Weighs a finished trial for best and patience. */
void ho_dispatch_weigh(ho_dispatch *d, int64_t number);
void ho_dispatch_event(ho_dispatch *d, const char *kind, int64_t number, int64_t attempt,
                       int64_t worker, const char *format, ...)
    __attribute__((format(printf, 6, 7)));

#ifdef __cplusplus
}
#endif
#endif
