/* SPDX-License-Identifier: Apache-2.0
 * See lane_prepare.h. */
#include "worker/lane_prepare.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>

enum { THREADS_MAX = 64 };

typedef enum prepared_state { WAITS, IN_WORK, READY } prepared_state;

struct ho_prepared {
    ho_preparer *preparer;
    ho_prepared *next; /* in line */
    prepared_state state;
    ho_cohort_key key;
    ho_lane_config config;
    float *weights; /* NULL when READY: they could not be made */
};

/* 1. first .. last are the lanes of state WAITS, in order.  2. everything here and the state of
 * every lane is read and written under lock; key, config and weights belong to who set IN_WORK. */
struct ho_preparer {
    pthread_mutex_t lock;
    pthread_cond_t work, ready;
    ho_prepared *first, *last;
    pthread_t thread[THREADS_MAX];
    int threads, started;
    bool ends;
};

ho_status ho_preparer_create(ho_preparer **out, int threads, ho_err *err)
{
    *out = calloc(1, sizeof **out);
    if (!*out) {
        return ho_err_set(err, HO_ENOMEM, "out of memory for the lanes");
    }
    (*out)->threads = threads < 1 ? 1 : threads > THREADS_MAX ? THREADS_MAX : threads;
    pthread_mutex_init(&(*out)->lock, NULL);
    pthread_cond_init(&(*out)->work, NULL);
    pthread_cond_init(&(*out)->ready, NULL);
    return HO_OK;
}

void ho_preparer_destroy(ho_preparer **preparer)
{
    if (!preparer || !*preparer) {
        return;
    }
    ho_preparer *p = *preparer;
    pthread_mutex_lock(&p->lock);
    p->ends = true;
    pthread_cond_broadcast(&p->work);
    pthread_mutex_unlock(&p->lock);
    for (int i = 0; i < p->started; i++) {
        pthread_join(p->thread[i], NULL);
    }
    pthread_cond_destroy(&p->ready);
    pthread_cond_destroy(&p->work);
    pthread_mutex_destroy(&p->lock);
    free(p);
    *preparer = NULL;
}

/* Takes a lane out of the line. Under lock. */
static void unlink_lane(ho_preparer *p, const ho_prepared *lane)
{
    ho_prepared *before = NULL, **at = &p->first;
    while (*at != lane) {
        before = *at;
        at = &(*at)->next;
    }
    *at = lane->next;
    if (p->last == lane) {
        p->last = before;
    }
}

/* Makes the weights of a lane that waits. Locked before and after, not between. */
static void make(ho_preparer *p, ho_prepared *lane)
{
    ho_err ignored = {0};
    float *weights = NULL;
    unlink_lane(p, lane);
    lane->state = IN_WORK;
    pthread_mutex_unlock(&p->lock);
    (void)ho_lane_prepare(&lane->key, &lane->config, &weights, &ignored);
    pthread_mutex_lock(&p->lock);
    lane->weights = weights;
    lane->state = READY;
    pthread_cond_broadcast(&p->ready);
}

static void *work(void *user)
{
    ho_preparer *p = user;
    pthread_mutex_lock(&p->lock);
    while (!p->ends) {
        if (p->first) {
            make(p, p->first);
        } else {
            pthread_cond_wait(&p->work, &p->lock);
        }
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

/* A thread that cannot be had is no loss: who waits makes the weights. Under lock. */
static void start_thread(ho_preparer *p)
{
    sigset_t all, before;
    if (p->started == p->threads) {
        return;
    }
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* signals are the main thread's */
    if (pthread_create(&p->thread[p->started], NULL, work, p) == 0) {
        p->started++;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

ho_prepared *ho_preparer_add(ho_preparer *p, const ho_cohort_key *key, const ho_lane_config *config)
{
    ho_prepared *lane = calloc(1, sizeof *lane);
    if (!lane) {
        return NULL;
    }
    lane->preparer = p;
    lane->key = *key;
    lane->config = *config;
    pthread_mutex_lock(&p->lock);
    if (p->last) {
        p->last->next = lane;
    } else {
        p->first = lane;
    }
    p->last = lane;
    start_thread(p);
    pthread_cond_signal(&p->work);
    pthread_mutex_unlock(&p->lock);
    return lane;
}

const float *ho_prepared_wait(ho_prepared *lane)
{
    ho_preparer *p = lane->preparer;
    pthread_mutex_lock(&p->lock);
    if (lane->state == WAITS) {
        make(p, lane);
    }
    while (lane->state != READY) {
        pthread_cond_wait(&p->ready, &p->lock);
    }
    pthread_mutex_unlock(&p->lock);
    return lane->weights;
}

void ho_prepared_drop(ho_prepared **prepared)
{
    if (!prepared || !*prepared) {
        return;
    }
    ho_prepared *lane = *prepared;
    ho_preparer *p = lane->preparer;
    pthread_mutex_lock(&p->lock);
    if (lane->state == WAITS) {
        unlink_lane(p, lane);
    }
    while (lane->state == IN_WORK) {
        pthread_cond_wait(&p->ready, &p->lock);
    }
    pthread_mutex_unlock(&p->lock);
    free(lane->weights);
    free(lane);
    *prepared = NULL;
}
