/* SPDX-License-Identifier: Apache-2.0
 * See read_ahead.h. */
#include "coordinator/read_ahead.h"

#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "coordinator/setup.h"
#include "study/log.h"

enum {
    GROWTH_PLAIN = 12, /* bytes in memory for one of a file: 70 of a bar's text become some 600 */
    GROWTH_ZST = 80,   /* and compressed some 9 do (902,880 bars of a minute: 8.3 MB) */
    MEMORY_SHARE = 4,  /* of the free pages, at most one part in so many */
};

struct ho_read_ahead {
    char path[PATH_MAX];
    pthread_t thread;
    atomic_bool done;
};

/* What the files of a study may take when they are read, in bytes. */
static double bytes_of(const ho_study *study)
{
    double sum = 0.0;
    int count = ho_settings_list_count(study->settings, HO_KEY_DATA_PATH);
    for (int i = 0; i < count; i++) {
        char path[PATH_MAX];
        struct stat info;
        ho_err err = {0};
        const char *written = ho_settings_list_str(study->settings, HO_KEY_DATA_PATH, i);
        if (ho_study_path(study, written, path, sizeof path, &err) == HO_OK &&
            stat(path, &info) == 0) {
            size_t length = strlen(path);
            bool packed = length > 4 && strcmp(path + length - 4, ".zst") == 0;
            sum += (double)info.st_size * (packed ? GROWTH_ZST : GROWTH_PLAIN);
        }
    }
    return sum;
}

static bool fits(const char *path)
{
    ho_err err = {0};
    ho_study *study = NULL;
    bool fit = false;
    if (ho_study_load(path, &study, &err) == HO_OK && !study->command) {
        double free_bytes = (double)sysconf(_SC_AVPHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
        fit = bytes_of(study) <= free_bytes / MEMORY_SHARE;
        if (!fit) {
            ho_log(HO_LOG_INFO, "serve", "not read ahead, memory is short study=%s", path);
        }
    }
    ho_study_free(&study);
    return fit;
}

static void *work(void *user)
{
    ho_read_ahead *ahead = (ho_read_ahead *)user;
    ho_setup setup;
    ho_err err = {0};
    ho_status rc = ho_setup_load(&setup, ahead->path, NULL, &err);
    if (rc == HO_OK) {
        ho_log(HO_LOG_INFO, "serve", "read ahead study=%s bars=%lld features=%d", ahead->path,
               (long long)setup.bars.count, setup.columns);
        ho_setup_free(&setup);
    } else {
        ho_log(HO_LOG_WARN, "serve", "could not be read ahead: %s", err.text);
    }
    atomic_store(&ahead->done, true);
    return NULL;
}

ho_read_ahead *ho_read_ahead_begin(const char *path)
{
    sigset_t all, before;
    if (!fits(path)) {
        return NULL;
    }
    ho_read_ahead *ahead = (ho_read_ahead *)calloc(1, sizeof *ahead);
    if (!ahead) {
        return NULL;
    }
    (void)snprintf(ahead->path, sizeof ahead->path, "%s", path);
    (void)sigfillset(&all); /* signals are the main thread's */
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(&ahead->thread, NULL, work, ahead);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failed) {
        free(ahead);
        return NULL;
    }
    return ahead;
}

bool ho_read_ahead_done(const ho_read_ahead *ahead)
{
    return atomic_load(&ahead->done);
}

void ho_read_ahead_end(ho_read_ahead **ahead)
{
    if (ahead && *ahead) {
        (void)pthread_join((*ahead)->thread, NULL);
        free(*ahead);
        *ahead = NULL;
    }
}
