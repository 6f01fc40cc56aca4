/* SPDX-License-Identifier: Apache-2.0
 * See gpus.h. `hyperopt-worker --devices` prints one line a device: "cpu  ..." or
 * "0    GPU-uuid, name, ...". */
#include "coordinator/gpus.h"

#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "coordinator/local.h"

/* Output of `hyperopt-worker --devices`; false when it could not be run. */
static bool ask_worker(char *out, size_t room)
{
    char program[PATH_MAX];
    int pipes[2];
    size_t used = 0;
    int status = 0;

    ho_local_program("hyperopt-worker", program, sizeof program);
    if (pipe(pipes) != 0) {
        return false;
    }
    pid_t pid = fork();
    if (pid == 0) {
        char flag[] = "--devices";
        char *argv[] = {program, flag, NULL};
        (void)dup2(pipes[1], STDOUT_FILENO);
        (void)close(pipes[0]);
        (void)close(pipes[1]);
        (void)execvp(program, argv);
        _exit(127);
    }
    (void)close(pipes[1]);
    ssize_t n = 0;
    while (pid > 0 && used + 1 < room && (n = read(pipes[0], out + used, room - used - 1)) > 0) {
        used += (size_t)n;
    }
    out[used] = '\0';
    (void)close(pipes[0]);
    return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) &&
           WEXITSTATUS(status) == 0;
}

static int list_gpus(const char *text, char gpu[][64])
{
    int count = 0;
    for (const char *line = text; line && *line && count < HO_LOCAL_GPUS_MAX;) {
        if (isdigit((unsigned char)*line)) {
            (void)snprintf(gpu[count++], 64, "%d", atoi(line));
        }
        line = strchr(line, '\n');
        line = line ? line + 1 : NULL;
    }
    return count;
}

ho_status ho_local_devices_find(const ho_settings *s, bool cpu, ho_local_devices *out, ho_err *err)
{
    char text[16384];
    int asked = ho_settings_list_count(s, HO_KEY_WORKERS_GPUS);
    bool all = asked > 0 && strcmp(ho_settings_list_str(s, HO_KEY_WORKERS_GPUS, 0), "all") == 0;
    int count = 0;

    memset(out, 0, sizeof *out);
    out->cpu = cpu || asked == 0; /* gpus = 0 is an empty list */
    if (!out->cpu) {
        if (!ask_worker(text, sizeof text)) {
            return ho_err_set(err, HO_ENOWORKER,
                              "hyperopt-worker cannot be run; it belongs beside this program "
                              "or into PATH");
        }
        count = all ? list_gpus(text, out->gpu) : 0;
        for (int i = 0; !all && i < asked && i < HO_LOCAL_GPUS_MAX; i++) {
            (void)snprintf(out->gpu[count++], sizeof out->gpu[0], "%s",
                           ho_settings_list_str(s, HO_KEY_WORKERS_GPUS, i));
        }
        out->cpu = count == 0;
    }
    for (int i = 0; i < count; i++) {
        out->gpu_list[i] = out->gpu[i];
    }
    out->workers = count > 0 ? count : 1;
    if (!ho_settings_is_auto(s, HO_KEY_WORKERS_COUNT)) {
        int64_t wanted = ho_settings_i64(s, HO_KEY_WORKERS_COUNT);
        if (out->cpu) {
            out->workers = (int)wanted;
        } else { /* several processes may share a GPU */
            for (int i = count; i < wanted && i < HO_LOCAL_GPUS_MAX; i++) {
                out->gpu_list[i] = out->gpu[i % count];
            }
            out->workers = (int)(wanted < HO_LOCAL_GPUS_MAX ? wanted : HO_LOCAL_GPUS_MAX);
        }
    }
    return HO_OK;
}
