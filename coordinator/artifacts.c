/* SPDX-License-Identifier: Apache-2.0
 * See artifacts.h. */
#include "coordinator/artifacts.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "study/log.h"
#include "study/sha256.h"

/* A file that is being put together. */
typedef struct part {
    struct part *next;
    int64_t trial;
    int32_t attempt;
    ho_chunk_kind kind;
    char name[HO_WIRE_NAME];
    char sha256[65];
    uint64_t offset, total;
    int fd;
} part;

struct ho_artifacts {
    char folder[PATH_MAX];
    ho_store *store;
    part *parts;
};

enum { PATH_ROOM = PATH_MAX + 512 };

static const char checkpoint_name[] = "checkpoint";

static int remove_entry(const char *path, const struct stat *info, int kind, struct FTW *place)
{
    (void)info;
    (void)kind;
    (void)place;
    return remove(path);
}

void ho_artifacts_remove(const char *folder)
{
    (void)nftw(folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

void ho_artifacts_folder(const char *db_path, char *out, size_t room)
{
    size_t n = strlen(db_path);
    if (n > 3 && strcmp(db_path + n - 3, ".db") == 0) {
        n -= 3;
    }
    (void)snprintf(out, room, "%.*s.artifacts", (int)n, db_path);
}

ho_status ho_artifacts_create(ho_artifacts **out, const char *folder, ho_store *store, ho_err *err)
{
    ho_artifacts *a = (ho_artifacts *)calloc(1, sizeof *a);
    *out = NULL;
    if (!a) {
        return ho_err_set(err, HO_ENOMEM, "out of memory");
    }
    a->store = store;
    if (snprintf(a->folder, sizeof a->folder, "%s", folder) >= (int)sizeof a->folder - 300) {
        free(a);
        return ho_err_set(err, HO_EUSAGE, "%s: the path is too long", folder);
    }
    *out = a;
    return HO_OK;
}

static void part_free(part *p)
{
    if (p->fd >= 0) {
        (void)close(p->fd);
    }
    free(p);
}

void ho_artifacts_destroy(ho_artifacts **artifacts)
{
    ho_artifacts *a = *artifacts;
    if (!a) {
        return;
    }
    while (a->parts) {
        part *next = a->parts->next;
        part_free(a->parts);
        a->parts = next;
    }
    free(a);
    *artifacts = NULL;
}

static bool is_safe_name(const char *name)
{
    return name[0] != '\0' && name[0] != '.' && !strchr(name, '/') && !strchr(name, '\\');
}

static void trial_folder(const ho_artifacts *a, int64_t trial, char *out, size_t room)
{
    (void)snprintf(out, room, "%s/trial-%06lld", a->folder, (long long)trial);
}

static void file_path(const ho_artifacts *a, int64_t trial, const char *name, const char *ending,
                      char *out, size_t room)
{
    (void)snprintf(out, room, "%s/trial-%06lld/%s%s", a->folder, (long long)trial, name, ending);
}

static ho_status begin(ho_artifacts *a, int64_t trial, int32_t attempt, const ho_msg_chunk *chunk,
                       const char *name, part **out, ho_err *err)
{
    char path[PATH_ROOM];
    part *p = (part *)calloc(1, sizeof *p);

    if (!p) {
        return ho_err_set(err, HO_ENOMEM, "out of memory");
    }
    *p = (part){
        .trial = trial, .attempt = attempt, .kind = chunk->kind, .total = chunk->total, .fd = -1};
    (void)snprintf(p->name, sizeof p->name, "%s", name);
    memcpy(p->sha256, chunk->sha256, sizeof p->sha256);
    trial_folder(a, trial, path, sizeof path);
    if ((mkdir(a->folder, 0777) != 0 && errno != EEXIST) ||
        (mkdir(path, 0777) != 0 && errno != EEXIST)) {
        part_free(p);
        return ho_err_set(err, HO_EIO, "%s: %s", path, strerror(errno));
    }
    file_path(a, trial, name, ".part", path, sizeof path);
    p->fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (p->fd < 0) {
        part_free(p);
        return ho_err_set(err, HO_EIO, "%s: %s", path, strerror(errno));
    }
    p->next = a->parts;
    a->parts = p;
    *out = p;
    return HO_OK;
}

static void unlink_part(ho_artifacts *a, part *p)
{
    for (part **at = &a->parts; *at; at = &(*at)->next) {
        if (*at == p) {
            *at = p->next;
            break;
        }
    }
    part_free(p);
}

static ho_status write_all(int fd, const uint8_t *bytes, size_t count)
{
    while (count > 0) {
        ssize_t n = write(fd, bytes, count);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return HO_EIO;
        }
        bytes += n;
        count -= (size_t)n;
    }
    return HO_OK;
}

static const char *kind_of(const part *p)
{
    if (p->kind == HO_CHUNK_CHECKPOINT || strcmp(p->name, checkpoint_name) == 0) {
        return "checkpoint";
    }
    return strstr(p->name, ".actions") ? "actions"
           : strstr(p->name, ".bars")  ? "bar_returns"
                                       : "weights";
}

static ho_status finish(ho_artifacts *a, part *p, int64_t unix_ns, ho_err *err)
{
    char from[PATH_ROOM], to[PATH_ROOM], digest[65], relative[HO_WIRE_NAME + 32];
    uint64_t size = 0;
    int fold = -1, seed = -1;
    ho_status rc = HO_OK;

    file_path(a, p->trial, p->name, ".part", from, sizeof from);
    file_path(a, p->trial, p->name, "", to, sizeof to);
    if (fsync(p->fd) != 0) {
        return ho_err_set(err, HO_EIO, "%s: %s", from, strerror(errno));
    }
    if ((rc = ho_sha256_file(from, digest, &size, err)) != HO_OK) {
        return rc;
    }
    if (strcmp(digest, p->sha256) != 0 || size != p->total) {
        (void)unlink(from);
        return ho_err_set(err, HO_EPROTO, "%s: the hash does not match what was announced",
                          p->name);
    }
    if (rename(from, to) != 0) {
        return ho_err_set(err, HO_EIO, "%s: %s", to, strerror(errno));
    }
    (void)snprintf(relative, sizeof relative, "trial-%06lld/%s", (long long)p->trial, p->name);
    if (sscanf(p->name, "fold-%d-seed-%d", &fold, &seed) != 2) {
        fold = seed = -1;
    }
    ho_artifact_row row = {
        .trial = p->trial,
        .attempt = p->attempt,
        .size = (int64_t)size,
        .now_ns = unix_ns,
        .fold = fold,
        .seed = seed,
        .kind = kind_of(p),
        .path = relative,
        .sha256 = p->sha256,
    };
    if ((rc = ho_store_put_artifact_deleted(a->store, relative, unix_ns)) != HO_OK ||
        (rc = ho_store_put_artifact(a->store, &row)) != HO_OK) {
        return ho_err_set(err, rc, "out of memory");
    }
    return HO_OK;
}

ho_status ho_artifacts_chunk(ho_artifacts *a, int64_t trial, int32_t attempt,
                             const ho_msg_chunk *chunk, int64_t unix_ns, ho_err *err)
{
    const char *name =
        chunk->kind == HO_CHUNK_CHECKPOINT && !chunk->name[0] ? checkpoint_name : chunk->name;
    part *p = a->parts;
    ho_status rc = HO_OK;

    if (!is_safe_name(name) || chunk->offset + chunk->count > chunk->total) {
        return ho_err_set(err, HO_EPROTO, "a chunk with a bad name or place");
    }
    while (p && (p->trial != trial || strcmp(p->name, name) != 0)) {
        p = p->next;
    }
    if (p && chunk->offset == 0) { /* it starts over: a newer checkpoint, or a repeat */
        unlink_part(a, p);
        p = NULL;
    }
    if (!p && chunk->offset == 0) {
        if ((rc = begin(a, trial, attempt, chunk, name, &p, err)) != HO_OK) {
            return rc;
        }
    }
    if (!p || p->offset != chunk->offset || strcmp(p->sha256, chunk->sha256) != 0 ||
        p->total != chunk->total) {
        return HO_EAGAIN;
    }
    if (write_all(p->fd, chunk->bytes, chunk->count) != HO_OK) {
        rc = ho_err_set(err, HO_EIO, "%s/trial-%06lld/%s: %s", a->folder, (long long)trial, name,
                        strerror(errno));
        unlink_part(a, p);
        return rc;
    }
    p->offset += chunk->count;
    if (p->offset == p->total) {
        rc = finish(a, p, unix_ns, err);
        unlink_part(a, p);
    }
    return rc;
}

ho_status ho_artifacts_room(ho_artifacts *a, uint64_t bytes, ho_err *err)
{
    char path[PATH_ROOM];
    int code = 0;
    (void)snprintf(path, sizeof path, "%s/.room", a->folder);
    (void)mkdir(a->folder, 0777);
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0) {
        return ho_err_set(err, HO_EIO, "%s: %s", path, strerror(errno));
    }
    code = posix_fallocate(fd, 0, (off_t)(bytes > 0 ? bytes : 1));
    (void)close(fd);
    (void)unlink(path);
    return code == 0 ? HO_OK : ho_err_set(err, HO_EIO, "%s: %s", path, strerror(code));
}

ho_status ho_artifacts_open_checkpoint(ho_artifacts *a, int64_t trial, int *fd, uint64_t *size,
                                       char sha256[65], ho_err *err)
{
    char path[PATH_ROOM], again[64];
    file_path(a, trial, checkpoint_name, "", path, sizeof path);
    *fd = open(path, O_RDONLY | O_CLOEXEC);
    if (*fd < 0) {
        return ho_err_set(err, HO_ENOTFOUND, "%s: %s", path, strerror(errno));
    }
    /* hashed through the open file: the path may hold a newer one by now */
    (void)snprintf(again, sizeof again, "/proc/self/fd/%d", *fd);
    ho_status rc = ho_sha256_file(again, sha256, size, err);
    if (rc != HO_OK) {
        (void)close(*fd);
        *fd = -1;
    }
    return rc;
}

void ho_artifacts_delete(ho_artifacts *a, int64_t trial, bool weights, int64_t unix_ns)
{
    char folder[PATH_ROOM], path[PATH_ROOM + 300], relative[300];
    trial_folder(a, trial, folder, sizeof folder);
    DIR *dir = opendir(folder);
    struct dirent *entry = NULL;
    while (dir && (entry = readdir(dir))) {
        const char *name = entry->d_name;
        bool doomed = weights ? strstr(name, ".safetensors") != NULL
                              : strncmp(name, checkpoint_name, sizeof checkpoint_name - 1) == 0;
        if (name[0] == '.' || !doomed) {
            continue;
        }
        (void)snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        if (unlink(path) == 0) {
            (void)snprintf(relative, sizeof relative, "trial-%06lld/%s", (long long)trial,
                           entry->d_name);
            (void)ho_store_put_artifact_deleted(a->store, relative, unix_ns);
        }
    }
    if (dir) {
        (void)closedir(dir);
        (void)rmdir(folder); /* stays while something is in it */
    }
}
