/* SPDX-License-Identifier: Apache-2.0
 * Simulated workers for benches of the coordinator: what a worker says, without training. */
#ifndef HO_BENCH_SIMULATED_H
#define HO_BENCH_SIMULATED_H

#include <czmq.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "study/wire.h"

enum { SIM_TRIAL_REPORTS = 10, SIM_SESSIONS_MAX = 512, SIM_FOLDS_MAX = 64 };

typedef struct sim_worker {
    zsock_t *socket;                 /* a DEALER */
    int64_t trial, next_ns, sent_ns; /* sent_ns: when the result went out; 0: none waits */
    int32_t attempt, epoch;
    bool joined, began;
} sim_worker;

int64_t sim_clock_ns(void); /* monotonic */

/* Each says one thing and returns its bytes, framing left out; a mistake ends the program. */
int64_t sim_say(sim_worker *worker, const ho_message *message);
int64_t sim_hello(sim_worker *worker, int number);
int64_t sim_ready(sim_worker *worker);
int64_t sim_pong(sim_worker *worker, int64_t sequence);
/* The next epoch of its trial. */
int64_t sim_report(sim_worker *worker);
/* Windows of so many folds and sessions; notes sent_ns. */
int64_t sim_result(sim_worker *worker, int folds, int sessions);
/* The next message that came; *bytes as above. false: none that can be read. */
bool sim_receive(sim_worker *worker, ho_message *out, int64_t *bytes);

/* FOLDER/bars.csv and FOLDER/bench.toml: a random search over four parameters without end. */
void sim_write_study(const char *folder, int bars, int folds);

/* Starts this program on bench.toml of the current folder, its log in `log`; ends with this
 * process. Returns when it listens, with its endpoint. */
pid_t sim_start_coordinator(const char *program, char *endpoint, size_t room);
/* Processor seconds so far, and resident memory, of a process. */
void sim_usage(pid_t pid, double *cpu_s, double *memory_mb);

#endif
