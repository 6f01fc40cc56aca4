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

/* A `hyperopt-worker --devices` whose output is on its way. */
struct ho_devices_question {
    pid_t pid;
    int output;
};

/* gpus = 0 is an empty list */
static bool asks_for_gpus(const ho_settings *s, bool cpu)
{
    return !cpu && ho_settings_list_count(s, HO_KEY_WORKERS_GPUS) > 0;
}

ho_devices_question *ho_devices_ask(const ho_settings *settings, bool cpu)
{
    char program[PATH_MAX];
    int pipes[2];
    ho_devices_question *q =
        asks_for_gpus(settings, cpu) ? (ho_devices_question *)calloc(1, sizeof *q) : NULL;
    if (!q) {
        return NULL;
    }
    ho_local_program("hyperopt-worker", program, sizeof program);
    if (pipe(pipes) != 0) {
        free(q);
        return NULL;
    }
    q->pid = fork();
    if (q->pid == 0) {
        char flag[] = "--devices";
        char *argv[] = {program, flag, NULL};
        (void)dup2(pipes[1], STDOUT_FILENO);
        (void)close(pipes[0]);
        (void)close(pipes[1]);
        (void)execvp(program, argv);
        _exit(127);
    }
    (void)close(pipes[1]);
    q->output = pipes[0];
    return q;
}

/* Its output; false when the program could not be run. */
static bool answer(ho_devices_question **question, char *out, size_t room)
{
    ho_devices_question *q = *question;
    size_t used = 0;
    ssize_t n = 0;
    int status = 0;
    while (q->pid > 0 && used + 1 < room &&
           (n = read(q->output, out + used, room - used - 1)) > 0) {
        used += (size_t)n;
    }
    out[used] = '\0';
    (void)close(q->output);
    bool ended = q->pid > 0 && waitpid(q->pid, &status, 0) == q->pid && WIFEXITED(status) &&
                 WEXITSTATUS(status) == 0;
    free(q);
    *question = NULL;
    return ended;
}

void ho_devices_forget(ho_devices_question **question)
{
    char text[256];
    if (question && *question) {
        (void)answer(question, text, sizeof text);
    }
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
    ho_devices_question *question = NULL;
    return ho_local_devices_answered(s, cpu, &question, out, err);
}

ho_status ho_local_devices_answered(const ho_settings *s, bool cpu, ho_devices_question **question,
                                    ho_local_devices *out, ho_err *err)
{
    char text[16384];
    int asked = ho_settings_list_count(s, HO_KEY_WORKERS_GPUS);
    bool all = asked > 0 && strcmp(ho_settings_list_str(s, HO_KEY_WORKERS_GPUS, 0), "all") == 0;
    int count = 0;

    memset(out, 0, sizeof *out);
    out->cpu = !asks_for_gpus(s, cpu);
    if (!out->cpu) {
        *question = *question ? *question : ho_devices_ask(s, cpu);
        if (!*question || !answer(question, text, sizeof text)) {
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
