/* SPDX-License-Identifier: Apache-2.0
 * hyperopt-worker: one device, one coordinator. Options, signals, the two threads. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <czmq.h>
#include <sodium.h>

#include "kernels/backend.h"
#include "study/log.h"
#include "worker/session.h"

static volatile int hand_back;

static void on_signal(int signal_number)
{
    if (hand_back && signal_number == SIGINT) {
        _exit(130); /* asked twice on a terminal */
    }
    hand_back = 1;
}

/* A worker that a coordinator started obeys its messages: Ctrl-C in the terminal is for the
 * coordinator, which lies in the same session. */
static void set_signals(bool local)
{
    struct sigaction action = {.sa_handler = on_signal};
    sigemptyset(&action.sa_mask);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGUSR1, &action, NULL); /* Slurm's warning before the time limit */
    action.sa_handler = local ? SIG_IGN : on_signal;
    sigaction(SIGINT, &action, NULL);
    action.sa_handler = SIG_IGN;
    sigaction(SIGPIPE, &action, NULL);
    sigaction(SIGHUP, &action, NULL);
}

/* The compute thread is busy in an epoch; nothing it has is worth waiting for. */
static void abandon(const char *reason)
{
    ho_log(HO_LOG_WARN, "worker", "leaving: %s", reason);
    _exit(HO_WORKER_EXIT_OK);
}

static int print_devices(void)
{
    ho_err err = {0};
    int gpus = ho_backend_gpu_count();
    for (int i = -1; i < gpus; i++) {
        ho_backend_options options = ho_backend_defaults();
        ho_backend *backend = NULL;
        ho_device_info info;
        options.kind = i < 0 ? HO_BACKEND_CPU : HO_BACKEND_CUDA;
        options.device = i < 0 ? 0 : i;
        ho_status rc = ho_backend_open(&backend, &options, &err);
        if (rc == HO_OK) {
            rc = ho_backend_info(backend, &info, &err);
        }
        if (rc != HO_OK) {
            fprintf(stderr, "hyperopt-worker: %s %d: %s\n", i < 0 ? "cpu" : "gpu", i < 0 ? 0 : i,
                    err.text);
        } else if (i < 0) {
            printf("cpu  %s, %d threads, %zu MB\n", info.name, info.processors,
                   info.memory_total >> 20);
        } else {
            printf("%-3d  %s, %s, %zu MB, driver %s, CUDA %s, kernels of sm_%d\n", i, info.uuid,
                   info.name, info.memory_total >> 20, info.driver, info.toolkit, info.image);
        }
        ho_backend_close(&backend);
    }
    return HO_WORKER_EXIT_OK;
}

static int serve(const ho_worker_options *options, ho_err *err)
{
    ho_session *session = NULL;
    ho_link *link = NULL;
    if (options->parent > 0 && getppid() != (pid_t)options->parent) {
        return HO_WORKER_EXIT_OK; /* it ended before this process could begin */
    }
    ho_status rc = ho_session_create(&session, options, err);
    if (rc != HO_OK) {
        return rc == HO_EUSAGE || rc == HO_EIO ? HO_WORKER_EXIT_USAGE : HO_WORKER_EXIT_DEVICE;
    }
    ho_link_options link_options = {
        .endpoint = options->connect,
        .key = options->key,
        .server_key = options->server_key,
        .hello = ho_session_hello(session),
        .parent = options->parent,
        .heartbeat_interval_s = 5.0,
        .heartbeat_timeout_s = 30.0,
        .abandon = abandon,
    };
    int code = HO_WORKER_EXIT_USAGE;
    if (ho_link_create(&link, &link_options, err) == HO_OK) {
        code = ho_session_run(session, link, &hand_back, err);
        if (code == HO_WORKER_EXIT_OK && hand_back) {
            code = options->signal_code;
        }
    }
    ho_link_destroy(&link);
    ho_session_destroy(&session);
    return code;
}

int main(int argc, char **argv)
{
    ho_worker_options options;
    ho_err err = {0};
    if (ho_worker_options_parse(argc, argv, &options, &err) != HO_OK) {
        fprintf(stderr, "hyperopt-worker: %s\n", err.text);
        return HO_WORKER_EXIT_USAGE;
    }
    if (options.help) {
        ho_worker_options_help(stdout);
        return HO_WORKER_EXIT_OK;
    }
    if (options.version) {
        printf("hyperopt-worker %s\n", HYPEROPT_VERSION);
        return HO_WORKER_EXIT_OK;
    }
    if (options.devices) {
        return print_devices();
    }
    ho_log_set_level(options.log_level);
    ho_log_set_json(options.log_json);
    if (options.parent > 0) {
        (void)setpgid(0, 0);
    }
    if (sodium_init() < 0) {
        fputs("hyperopt-worker: libsodium cannot start\n", stderr);
        return HO_WORKER_EXIT_USAGE;
    }
    zsys_init();
    zsys_handler_set(NULL); /* czmq's own handlers would swallow the signals */
    zsys_set_pipehwm(0);    /* handing a message over never blocks */
    set_signals(options.parent > 0);
    int code = serve(&options, &err);
    if (code != HO_WORKER_EXIT_OK && err.text[0] != '\0') {
        fprintf(stderr, "hyperopt-worker: %s\n", err.text);
    }
    zsys_shutdown();
    return code;
}
