/* SPDX-License-Identifier: Apache-2.0
 * The command line of hyperopt-worker. */
#ifndef HO_WORKER_OPTIONS_H
#define HO_WORKER_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "study/log.h"
#include "study/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ho_worker_options {
    const char *connect; /* endpoint of the coordinator */
    const char *gpu;     /* UUID or ordinal; NULL: the first GPU, or the CPU where there is none */
    bool cpu;            /* the CPU backend even where there is a GPU */
    int threads;         /* CPU backend; 0: all cores */
    const char *name;    /* what the coordinator calls this worker; NULL: host and pid */
    const char *key;     /* file with this worker's CURVE key pair; NULL: none */
    const char *server_key; /* file with the coordinator's public key; NULL: none */
    const char *cache;      /* folder of data files; NULL: $XDG_CACHE_HOME/hyperopt */
    uint64_t cache_limit;   /* bytes */
    int64_t parent;         /* pid of the coordinator that started this process; 0: remote */
    int signal_code;        /* exit code after a signal */
    bool allow_command;     /* run [command] studies of a remote coordinator */
    ho_log_level log_level;
    bool log_json;
    bool devices, help, version; /* print and leave */
} ho_worker_options;

/* Strings point into argv. HO_EUSAGE: err says which option and what is legal. */
ho_status ho_worker_options_parse(int argc, char **argv, ho_worker_options *out, ho_err *err);

/* One line an option. */
void ho_worker_options_help(FILE *out);

#ifdef __cplusplus
}
#endif
#endif
