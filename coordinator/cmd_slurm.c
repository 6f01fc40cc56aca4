/* SPDX-License-Identifier: Apache-2.0
 * hyperopt slurm STUDY.toml: the submission of a coordinator and an array of workers. The two batch
 * scripts of the folder slurm are embedded; this command writes them into the run's folder and
 * submits them, or prints a script that does. */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "coordinator/commands.h"
#include "study/study.h"

extern const char ho_slurm_coordinator[], ho_slurm_worker[];

typedef struct slurm {
    const char *study, *partition, *account, *time, *dir;
    int64_t nodes, gpus, cpus, port, memory_gib;
    char study_path[PATH_MAX], bin[PATH_MAX], folder[PATH_MAX];
} slurm;

/* 'text' for the shell, quotes inside escaped. */
static void put_quoted(FILE *out, const char *text)
{
    (void)fputc('\'', out);
    for (const char *p = text; *p; p++) {
        if (*p == '\'') {
            (void)fputs("'\\''", out);
        } else {
            (void)fputc(*p, out);
        }
    }
    (void)fputc('\'', out);
}

static void put_option(FILE *out, const char *name, const char *value)
{
    if (value) {
        (void)fprintf(out, " --%s=", name);
        put_quoted(out, value);
    }
}

/* A here-document: the file `name` in the run's folder. */
static void put_file(FILE *out, const char *name, const char *text)
{
    (void)fprintf(out, "cat >\"$HO_DIR/%s\" <<'HYPEROPT_END'\n%sHYPEROPT_END\n", name, text);
}

static void print_script(const slurm *s, FILE *out)
{
    int64_t workers = s->nodes * (s->gpus > 0 ? s->gpus : 1);

    (void)fprintf(out,
                  "#!/bin/bash\n# Made by `hyperopt slurm`: one coordinator, %" PRId64
                  " workers. Run it on a login node.\nset -euo pipefail\n",
                  workers);
    (void)fputs("export HO_STUDY=", out);
    put_quoted(out, s->study_path);
    (void)fputs("\nexport HO_DIR=", out);
    put_quoted(out, s->folder);
    (void)fputs("\nexport HO_BIN=", out);
    put_quoted(out, s->bin);
    (void)fprintf(out, "\nexport HO_PORT=%" PRId64 "\n", s->port);
    if (s->gpus > 0) {
        (void)fputs("export HO_WORKER_ARGS='--gpu 0'\n", out);
    } else {
        (void)fprintf(out, "export HO_WORKER_ARGS='--cpu --threads %" PRId64 "'\n", s->cpus);
    }
    (void)fputs("mkdir -p \"$HO_DIR\"\n"
                "rm -f \"$HO_DIR/finished\" \"$HO_DIR/failed\" \"$HO_DIR/endpoint\"\n",
                out);
    put_file(out, "coordinator.sbatch", ho_slurm_coordinator);
    put_file(out, "worker.sbatch", ho_slurm_worker);
    (void)fputs("coordinator=$(sbatch --parsable --export=ALL --cpus-per-task=1 --mem=4G "
                "--output=\"$HO_DIR/coordinator.log\"",
                out);
    put_option(out, "partition", s->partition);
    put_option(out, "account", s->account);
    put_option(out, "time", s->time);
    (void)fprintf(
        out,
        " \"$HO_DIR/coordinator.sbatch\")\nsbatch --parsable --export=ALL --array=0-%" PRId64
        " --ntasks=1 --cpus-per-task=%" PRId64 " --mem=%" PRId64
        "G --dependency=\"after:$coordinator\" --output=\"$HO_DIR/worker-%%a.log\"",
        workers - 1, s->cpus, s->memory_gib);
    if (s->gpus > 0) {
        (void)fputs(" --gpus-per-task=1", out);
    }
    put_option(out, "partition", s->partition);
    put_option(out, "account", s->account);
    put_option(out, "time", s->time);
    (void)fputs(
        " \"$HO_DIR/worker.sbatch\" >/dev/null\n"
        "echo \"submitted: coordinator $coordinator; logs, keys and database in $HO_DIR\"\n",
        out);
}

static ho_status resolve(slurm *s, ho_err *err)
{
    ho_study *study = NULL;
    ho_status rc =
        ho_study_load(s->study, &study, err); /* a mistake is cheaper here than in a job */

    ho_study_free(&study);
    if (rc != HO_OK) {
        return rc == HO_EIO ? HO_EUSAGE : rc;
    }
    if (!realpath(s->study, s->study_path)) {
        return ho_err_set(err, HO_EUSAGE, "%s: %s", s->study, strerror(errno));
    }
    ssize_t n = readlink("/proc/self/exe", s->bin, sizeof s->bin - 1);
    if (n < 0) {
        return ho_err_set(err, HO_EIO, "cannot find this program's folder: %s", strerror(errno));
    }
    s->bin[n] = '\0';
    *strrchr(s->bin, '/') = '\0';
    if (s->dir && s->dir[0] == '/') {
        (void)snprintf(s->folder, sizeof s->folder, "%s", s->dir);
    } else {
        char here[PATH_MAX / 2];
        if (!getcwd(here, sizeof here)) {
            return ho_err_set(err, HO_EIO, "current folder: %s", strerror(errno));
        }
        (void)snprintf(s->folder, sizeof s->folder, "%s/%s", here, s->dir ? s->dir : "slurm-run");
    }
    return HO_OK;
}

int ho_cmd_slurm(int argc, char **argv)
{
    slurm s = {.nodes = 1, .gpus = 0, .cpus = 4, .port = 5555, .memory_gib = 16};
    bool submit = false;
    ho_arguments args;
    ho_err err = {0};
    const ho_option option[] = {
        {"nodes", 'N', HO_OPTION_INTEGER, &s.nodes, "N", "nodes; default: 1", 1, 1e5},
        {"gpus-per-node", 'G', HO_OPTION_INTEGER, &s.gpus, "N",
         "one worker for each; default: 0, one CPU worker a node", 0, 64},
        {"cpus", 'c', HO_OPTION_INTEGER, &s.cpus, "N", "cores of a worker; default: 4", 1, 1024},
        {"mem", 'm', HO_OPTION_INTEGER, &s.memory_gib, "GIB", "memory of a worker; default: 16", 1,
         65536},
        {"partition", 'p', HO_OPTION_STRING, &s.partition, "NAME", "as sbatch", 0, 0},
        {"account", 'A', HO_OPTION_STRING, &s.account, "NAME", "as sbatch", 0, 0},
        {"time", 't', HO_OPTION_STRING, &s.time, "LIMIT", "as sbatch, e.g. 12:00:00", 0, 0},
        {"port", 0, HO_OPTION_INTEGER, &s.port, "N", "of the coordinator; default: 5555", 1024,
         65535},
        {"dir", 'd', HO_OPTION_STRING, &s.dir, "DIR",
         "folder of the run, seen by all nodes; default: slurm-run", 0, 0},
        {"submit", 0, HO_OPTION_FLAG, &submit, NULL, "submit it instead of printing the script", 0,
         0},
    };
    const ho_usage usage = {
        .name = "slurm",
        .arguments = "STUDY.toml",
        .about =
            "Prints (or with --submit runs) the script that submits a study to Slurm: one job\n"
            "for the coordinator, a job array of workers. Jobs that reach their time limit\n"
            "checkpoint and requeue themselves; lost nodes lose nothing.\n",
        .examples = "  hyperopt slurm es-dqn.toml --nodes 4 --gpus-per-node 8 --time 12:00:00\n"
                    "  hyperopt slurm es-dqn.toml -N 4 -G 8 --submit\n",
        .option = option,
        .option_count = sizeof option / sizeof option[0],
        .min_arguments = 1,
        .max_arguments = 1,
    };
    ho_status rc = ho_usage_parse(&usage, argc, argv, &args);
    if (rc != HO_OK) {
        return ho_exit_code(rc);
    }
    s.study = args.item[0];
    if ((rc = resolve(&s, &err)) != HO_OK) {
        err.code = rc;
        return ho_exit_report(&err);
    }
    if (!submit) {
        print_script(&s, stdout);
        return HO_EXIT_OK;
    }
    FILE *shell = popen("bash", "w");
    if (!shell) {
        (void)fprintf(stderr, "hyperopt slurm: bash does not start: %s\n", strerror(errno));
        return HO_EXIT_USAGE;
    }
    print_script(&s, shell);
    int code = pclose(shell);
    return WIFEXITED(code) && WEXITSTATUS(code) == 0 ? HO_EXIT_OK : HO_EXIT_USAGE;
}
