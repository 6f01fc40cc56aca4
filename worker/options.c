/* SPDX-License-Identifier: Apache-2.0
 * One table of options: parsing and help walk it. */
#include "worker/options.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

enum { CACHE_GIB = 50 };

enum option_id {
    OPT_CONNECT = 1000,
    OPT_GPU,
    OPT_CPU,
    OPT_THREADS,
    OPT_NAME,
    OPT_KEY,
    OPT_SERVER_KEY,
    OPT_CACHE,
    OPT_CACHE_LIMIT,
    OPT_PARENT,
    OPT_SIGNAL_CODE,
    OPT_ALLOW_COMMAND,
    OPT_LOG_LEVEL,
    OPT_LOG_JSON,
    OPT_DEVICES,
    OPT_HELP,
    OPT_VERSION,
};

static const struct {
    enum option_id id;
    const char *name, *value, *help;
} table[] = {
    {OPT_CONNECT, "connect", "ENDPOINT", "the coordinator, e.g. tcp://head:5555"},
    {OPT_GPU, "gpu", "UUID|N", "the GPU to use; default: the first, or the CPU without one"},
    {OPT_CPU, "cpu", NULL, "use the CPU"},
    {OPT_THREADS, "threads", "N", "threads of the CPU backend; default: all cores"},
    {OPT_NAME, "name", "NAME", "name shown by the coordinator; default: host:pid"},
    {OPT_KEY, "key", "FILE", "this worker's CURVE key pair (hyperopt keygen)"},
    {OPT_SERVER_KEY, "server-key", "FILE", "the coordinator's public CURVE key"},
    {OPT_CACHE, "cache", "DIR", "folder for data files; default: ~/.cache/hyperopt"},
    {OPT_CACHE_LIMIT, "cache-limit", "GIB", "its largest size; default: 50"},
    {OPT_PARENT, "parent", "PID", "leave when this parent process ends (set by hyperopt run)"},
    {OPT_SIGNAL_CODE, "signal-code", "N",
     "exit code after a signal; default: 0. A scheduler that takes 0 for done needs another"},
    {OPT_ALLOW_COMMAND, "allow-command", NULL,
     "run the commands of [command] studies that a remote coordinator sends"},
    {OPT_LOG_LEVEL, "log-level", "LEVEL", "error, warn, info or debug; default: info"},
    {OPT_LOG_JSON, "log-json", NULL, "one JSON object a log line"},
    {OPT_DEVICES, "devices", NULL, "list the devices this machine has for training, and leave"},
    {OPT_HELP, "help", NULL, "this help"},
    {OPT_VERSION, "version", NULL, "the version"},
};
enum { OPTIONS = sizeof table / sizeof *table };

void ho_worker_options_help(FILE *out)
{
    fputs("usage: hyperopt-worker --connect ENDPOINT [options]\n"
          "       hyperopt-worker --devices\n"
          "\n"
          "Trains the trials that a coordinator (hyperopt run) sends, on one device.\n"
          "\n",
          out);
    for (int i = 0; i < OPTIONS; i++) {
        char left[64];
        snprintf(left, sizeof left, "--%s%s%s", table[i].name, table[i].value ? " " : "",
                 table[i].value ? table[i].value : "");
        fprintf(out, "  %-22s %s\n", left, table[i].help);
    }
    fputs(
        "\n"
        "SIGTERM, SIGUSR1, and SIGINT at a remote worker: running trials are checkpointed and\n"
        "handed back, exit 0 (or --signal-code). Exit codes: 0 done; 1 usage or refused; 2 data;\n"
        "3 the device failed.\n",
        out);
}

static ho_status parse_number(const char *name, const char *text, int64_t low, int64_t high,
                              int64_t *out, ho_err *err)
{
    char *end = NULL;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || value < low || value > high) {
        return ho_err_set(err, HO_EUSAGE, "--%s %s: expected a whole number from %lld to %lld",
                          name, text, (long long)low, (long long)high);
    }
    *out = value;
    return HO_OK;
}

static ho_status set_option(int id, const char *value, ho_worker_options *o, ho_err *err)
{
    int64_t number = 0;
    ho_status rc = HO_OK;
    switch ((enum option_id)id) {
    case OPT_CONNECT:
        o->connect = value;
        break;
    case OPT_GPU:
        o->gpu = value;
        break;
    case OPT_CPU:
        o->cpu = true;
        break;
    case OPT_THREADS:
        rc = parse_number("threads", value, 1, 4096, &number, err);
        o->threads = (int)number;
        break;
    case OPT_NAME:
        if (strlen(value) == 0 || strlen(value) > 63 || strpbrk(value, " \t\r\n\"\\")) {
            return ho_err_set(err, HO_EUSAGE,
                              "--name %s: 1 to 63 characters without blanks, quotes or \\", value);
        }
        o->name = value;
        break;
    case OPT_KEY:
        o->key = value;
        break;
    case OPT_SERVER_KEY:
        o->server_key = value;
        break;
    case OPT_CACHE:
        o->cache = value;
        break;
    case OPT_CACHE_LIMIT:
        rc = parse_number("cache-limit", value, 1, 1 << 20, &number, err);
        o->cache_limit = (uint64_t)number << 30;
        break;
    case OPT_PARENT:
        rc = parse_number("parent", value, 1, INT32_MAX, &o->parent, err);
        break;
    case OPT_SIGNAL_CODE:
        rc = parse_number("signal-code", value, 0, 255, &number, err);
        o->signal_code = (int)number;
        break;
    case OPT_ALLOW_COMMAND:
        o->allow_command = true;
        break;
    case OPT_LOG_LEVEL:
        if (!ho_log_parse_level(value, &o->log_level)) {
            return ho_err_set(err, HO_EUSAGE, "--log-level %s: expected error, warn, info or debug",
                              value);
        }
        break;
    case OPT_LOG_JSON:
        o->log_json = true;
        break;
    case OPT_DEVICES:
        o->devices = true;
        break;
    case OPT_HELP:
        o->help = true;
        break;
    case OPT_VERSION:
        o->version = true;
        break;
    }
    return rc;
}

ho_status ho_worker_options_parse(int argc, char **argv, ho_worker_options *out, ho_err *err)
{
    struct option option[OPTIONS + 1] = {0};
    for (int i = 0; i < OPTIONS; i++) {
        option[i].name = table[i].name;
        option[i].has_arg = table[i].value ? required_argument : no_argument;
        option[i].val = table[i].id;
    }
    *out = (ho_worker_options){.cache_limit = (uint64_t)CACHE_GIB << 30, .log_level = HO_LOG_INFO};
    optind = 0; /* glibc: start anew, so that a process may parse twice */
    opterr = 0;
    for (;;) {
        int at = optind > 0 ? optind : 1;
        int id = getopt_long(argc, argv, "", option, NULL);
        if (id == -1) {
            break;
        }
        if (id == '?') {
            return ho_err_set(err, HO_EUSAGE,
                              "%s: unknown option, or its value is missing; see hyperopt-worker "
                              "--help",
                              argv[at]);
        }
        ho_status rc = set_option(id, optarg, out, err);
        if (rc != HO_OK) {
            return rc;
        }
    }
    if (optind < argc) {
        return ho_err_set(err, HO_EUSAGE, "%s: unexpected argument; see hyperopt-worker --help",
                          argv[optind]);
    }
    if (out->help || out->version || out->devices) {
        return HO_OK;
    }
    if (!out->connect) {
        return ho_err_set(err, HO_EUSAGE,
                          "--connect ENDPOINT is missing; see hyperopt-worker --help");
    }
    if (out->cpu && out->gpu) {
        return ho_err_set(err, HO_EUSAGE, "--cpu and --gpu exclude each other");
    }
    if ((out->key == NULL) != (out->server_key == NULL)) {
        return ho_err_set(err, HO_EUSAGE, "--key and --server-key belong together");
    }
    return HO_OK;
}
