/* SPDX-License-Identifier: Apache-2.0
 * hyperopt keygen DIR: CURVE keys of a coordinator and of a worker. */
#include <czmq.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "coordinator/commands.h"

/* NAME.key holds both keys (mode 0600), NAME.pub the public one. An existing key is kept. */
static ho_status make_pair(const char *folder, const char *name, const char *allowed, ho_err *err)
{
    char secret[PATH_MAX], public_path[PATH_MAX], allowed_path[PATH_MAX];
    ho_status rc = HO_OK;
    (void)snprintf(secret, sizeof secret, "%s/%s.key", folder, name);
    (void)snprintf(public_path, sizeof public_path, "%s/%s.pub", folder, name);
    zcert_t *cert = access(secret, F_OK) == 0 ? zcert_load(secret) : zcert_new();
    if (!cert) {
        return ho_err_set(err, HO_EIO, "%s: not a key file", secret);
    }
    mode_t before = umask(077);
    if (access(secret, F_OK) != 0 && zcert_save_secret(cert, secret) != 0) {
        rc = ho_err_set(err, HO_EIO, "%s: %s", secret, strerror(errno));
    }
    (void)umask(before);
    if (rc == HO_OK && zcert_save_public(cert, public_path) != 0) {
        rc = ho_err_set(err, HO_EIO, "%s: %s", public_path, strerror(errno));
    }
    if (rc == HO_OK && allowed) {
        (void)snprintf(allowed_path, sizeof allowed_path, "%s/%s.pub", allowed, name);
        if (zcert_save_public(cert, allowed_path) != 0) {
            rc = ho_err_set(err, HO_EIO, "%s: %s", allowed_path, strerror(errno));
        }
    }
    zcert_destroy(&cert);
    return rc;
}

int ho_cmd_keygen(int argc, char **argv)
{
    const char *worker = "worker";
    char allowed[PATH_MAX];
    ho_arguments args;
    ho_err err = {0};
    const ho_option option[] = {
        {"worker", 0, HO_OPTION_STRING, &worker, "NAME", "name of the worker's pair (worker)", 0,
         0},
    };
    const ho_usage usage = {
        .name = "keygen",
        .arguments = "DIR",
        .about = "Makes the CURVE keys with which remote workers are let in:\n"
                 "  DIR/coordinator.key   secret, stays here      DIR/coordinator.pub   give to "
                 "workers\n"
                 "  DIR/worker.key        secret, give to one worker (or to all)\n"
                 "  DIR/allowed/          public keys of the workers that may connect\n"
                 "Existing keys are kept; --worker NAME adds another worker's pair. Removing a "
                 "file from\n"
                 "allowed/ shuts that worker out at its next connection.",
        .examples = "  hyperopt keygen keys/\n"
                    "  hyperopt run study.toml --listen tcp://*:5555 --curve keys/\n"
                    "  hyperopt-worker --connect tcp://head:5555 --key worker.key --server-key "
                    "coordinator.pub\n",
        .option = option,
        .option_count = 1,
        .min_arguments = 1,
        .max_arguments = 1,
    };
    ho_status rc = ho_usage_parse(&usage, argc, argv, &args);
    if (rc != HO_OK) {
        return ho_exit_code(rc);
    }
    zsys_handler_set(NULL);
    if (worker[0] == '\0' || worker[0] == '.' || strchr(worker, '/') ||
        strcmp(worker, "coordinator") == 0) {
        rc = ho_err_set(&err, HO_EUSAGE, "--worker %s: not a name for a file", worker);
    } else if (snprintf(allowed, sizeof allowed, "%s/allowed", args.item[0]) >=
               (int)sizeof allowed - 64) {
        rc = ho_err_set(&err, HO_EUSAGE, "%s: the path is too long", args.item[0]);
    } else if ((mkdir(args.item[0], 0700) != 0 && errno != EEXIST) ||
               (mkdir(allowed, 0700) != 0 && errno != EEXIST)) {
        rc = ho_err_set(&err, HO_EIO, "%s: %s", args.item[0], strerror(errno));
    } else if ((rc = make_pair(args.item[0], "coordinator", NULL, &err)) == HO_OK &&
               (rc = make_pair(args.item[0], worker, allowed, &err)) == HO_OK) {
        (void)printf("keys are in %s; give %s.key and coordinator.pub to the worker\n",
                     args.item[0], worker);
        return HO_EXIT_OK;
    }
    (void)ho_exit_report(&err);
    return HO_EXIT_USAGE;
}
