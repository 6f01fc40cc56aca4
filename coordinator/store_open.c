/* SPDX-License-Identifier: Apache-2.0
 * Opening and closing the store: the lock against a second coordinator, the filesystem, integrity,
 * version, the read-only way in. Contracts: store.h. */
#include "coordinator/store_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "study/log.h"

extern const char ho_sql_schema[];

/* f_type values, from linux/magic.h and the filesystems' own sources. */
enum {
    FS_NFS = 0x6969,
    FS_SMB = 0x517B,
    FS_9P = 0x01021997,
    FS_CODA = 0x73757245,
    FS_FUSE = 0x65735546, /* sshfs, glusterfs and the like */
    FS_CEPH = 0x00C36400,
    FS_AFS = 0x5346414F,
    FS_GPFS = 0x47504653,
    FS_LUSTRE = 0x0BD00BD0,
    FS_BEEGFS = 0x19830326,
};
static const unsigned long fs_cifs = 0xFF534D42ul, fs_smb2 = 0xFE534D42ul;

bool ho_store_is_network(long f_type)
{
    unsigned long type = (unsigned long)f_type & 0xFFFFFFFFul;
    switch (type) {
    case FS_NFS:
    case FS_SMB:
    case FS_9P:
    case FS_CODA:
    case FS_FUSE:
    case FS_CEPH:
    case FS_AFS:
    case FS_GPFS:
    case FS_LUSTRE:
    case FS_BEEGFS:
        return true;
    default:
        return type == fs_cifs || type == fs_smb2;
    }
}

ho_store_options ho_store_defaults(void)
{
    ho_store_options options = {0};
    options.group_ns = 20000000;
    options.group_max = 256;
    options.retry_ns = 1000000000;
    return options;
}

ho_status ho_store_fail(ho_store *store, const char *what, ho_err *err)
{
    return ho_err_set(err, HO_ESTORE, "%s: %s: %s", store->path, what, sqlite3_errmsg(store->db));
}

ho_status ho_store_exec(ho_store *store, const char *sql, const char *what, ho_err *err)
{
    if (sqlite3_exec(store->db, sql, NULL, NULL, NULL) != SQLITE_OK) {
        return ho_store_fail(store, what, err);
    }
    return HO_OK;
}

/* ---- the lock ------------------------------------------------------------------------------- */

/* A lock of the open file description: the kernel drops it with the process, however it ends. */
static ho_status take_lock(ho_store *store, ho_err *err)
{
    if (snprintf(store->lock_path, sizeof store->lock_path, "%s.lock", store->path) >=
        (int)sizeof store->lock_path) {
        return ho_err_set(err, HO_ESTORE, "%s: the path is too long", store->path);
    }
    for (;;) {
        struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
        struct stat mine, there;
        char holder[160] = "";
        store->lock_fd = open(store->lock_path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
        if (store->lock_fd < 0) {
            return ho_err_set(err, HO_ESTORE,
                              "%s: cannot create the lock file: %s; the folder must be writable",
                              store->lock_path, strerror(errno));
        }
        if (fcntl(store->lock_fd, F_OFD_SETLK, &lock) != 0) {
            ssize_t n = pread(store->lock_fd, holder, sizeof holder - 1, 0);
            holder[n > 0 ? n : 0] = '\0';
            holder[strcspn(holder, "\n")] = '\0';
            return ho_err_set(err, HO_ELOCKED,
                              "%s: another coordinator is running this study%s%s%s; wait for it, "
                              "or stop it",
                              store->path, holder[0] ? " (" : "", holder, holder[0] ? ")" : "");
        }
        /* the holder before us may have removed the file between our open and our lock */
        if (fstat(store->lock_fd, &mine) == 0 && stat(store->lock_path, &there) == 0 &&
            mine.st_ino == there.st_ino && mine.st_dev == there.st_dev) {
            break;
        }
        (void)close(store->lock_fd);
    }
    char host[64] = "?";
    (void)gethostname(host, sizeof host - 1);
    if (ftruncate(store->lock_fd, 0) != 0 ||
        dprintf(store->lock_fd, "pid %ld on %s\n", (long)getpid(), host) < 0) {
        ho_log(HO_LOG_WARN, "store", "cannot write into the lock file path=%s", store->lock_path);
    }
    return HO_OK;
}

static void drop_lock(ho_store *store)
{
    if (store->lock_fd >= 0) {
        (void)unlink(store->lock_path); /* while held: nobody can have taken it meanwhile */
        (void)close(store->lock_fd);
        store->lock_fd = -1;
    }
}

/* ---- version and integrity ------------------------------------------------------------------ */

/* A file that is not a database, or somebody else's, is told apart from a damaged one. */
static ho_status check_kind(ho_store *store, ho_err *err)
{
    int64_t tables = ho_store_number(store->db, "SELECT count(*) FROM sqlite_master", -1);
    if (tables < 0) {
        bool foreign = sqlite3_errcode(store->db) == SQLITE_NOTADB;
        return ho_err_set(err, HO_ESTORE, "%s: %s: %s", store->path,
                          foreign ? "not a study database" : "the database is damaged",
                          sqlite3_errmsg(store->db));
    }
    if (ho_store_number(store->db, "PRAGMA application_id", 0) != HO_STORE_APPLICATION_ID) {
        return ho_err_set(err, HO_ESTORE, "%s: not a study database%s", store->path,
                          tables == 0 ? ": the file is empty" : ": another program's SQLite file");
    }
    return HO_OK;
}

static ho_status check_integrity(ho_store *store, ho_err *err)
{
    sqlite3_stmt *statement = NULL;
    ho_status rc = HO_OK;
    if (sqlite3_prepare_v2(store->db, "PRAGMA quick_check(1)", -1, &statement, NULL) != SQLITE_OK ||
        sqlite3_step(statement) != SQLITE_ROW) {
        rc = ho_store_fail(store, "the database is damaged", err);
    } else {
        const char *text = (const char *)sqlite3_column_text(statement, 0);
        if (!text || strcmp(text, "ok") != 0) {
            rc = ho_err_set(err, HO_ESTORE,
                            "%s: the database is damaged: %s; save what is left with "
                            "`sqlite3 %s .recover`",
                            store->path, text ? text : "?", store->path);
        }
    }
    (void)sqlite3_finalize(statement);
    return rc;
}

/* ---- writer --------------------------------------------------------------------------------- */

static ho_status set_journal(ho_store *store, ho_err *err)
{
    struct statfs fs;
    store->rollback = store->options.rollback ||
                      (statfs(store->path, &fs) == 0 && ho_store_is_network((long)fs.f_type));
    if (store->rollback) {
        ho_log(
            HO_LOG_WARN, "store",
            "on a network filesystem: rollback journal with an exclusive lock, no reader while a "
            "run goes on; a local `study.database` avoids it path=%s",
            store->path);
        return ho_store_exec(store,
                             "PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = TRUNCATE;"
                             "PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON;",
                             "cannot set the journal mode", err);
    }
    return ho_store_exec(store,
                         "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;"
                         "PRAGMA foreign_keys = ON; PRAGMA journal_size_limit = 67108864;",
                         "cannot set the journal mode", err);
}

static ho_status make_schema(ho_store *store, ho_err *err)
{
    ho_status rc = HO_OK;
    if ((rc = ho_store_exec(store, "BEGIN IMMEDIATE", "cannot create the tables", err)) != HO_OK ||
        (rc = ho_store_exec(store, ho_sql_schema, "cannot create the tables", err)) != HO_OK ||
        (rc = ho_store_exec(store, "COMMIT", "cannot create the tables", err)) != HO_OK) {
        (void)sqlite3_exec(store->db, "ROLLBACK", NULL, NULL, NULL);
    }
    return rc;
}

static ho_status alloc_store(ho_store **out, const char *path, ho_err *err)
{
    ho_store *store = (ho_store *)calloc(1, sizeof *store);
    if (!store) {
        return ho_err_set(err, HO_ENOMEM, "out of memory");
    }
    store->lock_fd = -1;
    *out = store;
    if (snprintf(store->path, sizeof store->path, "%s", path) >= (int)sizeof store->path) {
        return ho_err_set(err, HO_ESTORE, "%s: the path is too long", path);
    }
    return HO_OK;
}

ho_status ho_store_open(ho_store **out, const char *path, const ho_store_options *options,
                        ho_err *err)
{
    ho_store *store = NULL;
    ho_status rc = HO_OK;
    struct stat before;
    bool exists = stat(path, &before) == 0, migrated = false;

    *out = NULL;
    if ((rc = alloc_store(&store, path, err)) != HO_OK) {
        goto out;
    }
    store->options = *options;
    store->writable = true;
    if (!exists && !options->create) {
        rc = ho_err_set(err, HO_ENOTFOUND, "%s: no such file", path);
        goto out;
    }
    if ((rc = take_lock(store, err)) != HO_OK) {
        goto out;
    }
    exists = stat(path, &before) == 0 && before.st_size > 0;
    if (sqlite3_open_v2(path, &store->db,
                        SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX,
                        NULL) != SQLITE_OK) {
        rc = ho_store_fail(store, "cannot open", err);
        goto out;
    }
    (void)sqlite3_busy_timeout(store->db, 5000); /* while opening; flushing sets it to 0 */
    /* a coordinator that was killed while it made the file leaves one without tables */
    bool blank = exists && options->create &&
                 ho_store_number(store->db, "SELECT count(*) FROM sqlite_master", -1) == 0 &&
                 ho_store_number(store->db, "PRAGMA application_id", -1) == 0;
    if (exists && !blank) {
        if ((rc = check_kind(store, err)) != HO_OK || (rc = set_journal(store, err)) != HO_OK ||
            (rc = check_integrity(store, err)) != HO_OK ||
            (rc = ho_store_migrate(store->db, path, HO_STORE_VERSION, &migrated, err)) != HO_OK ||
            (migrated && ho_store_has_study(store) &&
             (rc = ho_store_make_views(store, err)) != HO_OK)) {
            goto out;
        }
    } else if ((rc = set_journal(store, err)) != HO_OK || (rc = make_schema(store, err)) != HO_OK) {
        goto out;
    }
    store->next_worker =
        1 + ho_store_number(store->db, "SELECT coalesce(max(id), 0) FROM worker", 0);
    *out = store;
    store = NULL;
out:
    ho_store_close(&store);
    return rc;
}

/* ---- reader --------------------------------------------------------------------------------- */

static int only_reading(void *user, int action, const char *a, const char *b, const char *c,
                        const char *d)
{
    (void)user;
    (void)c;
    (void)d;
    switch (action) {
    case SQLITE_SELECT:
    case SQLITE_READ:
    case SQLITE_RECURSIVE:
        return SQLITE_OK;
    case SQLITE_UPDATE: /* how table-valued functions are declared; the file is opened read-only */
        return a && strcmp(a, "sqlite_master") == 0 ? SQLITE_OK : SQLITE_DENY;
    case SQLITE_FUNCTION: /* no code from outside */
        return b && sqlite3_stricmp(b, "load_extension") == 0 ? SQLITE_DENY : SQLITE_OK;
    case SQLITE_PRAGMA: { /* those that only tell */
        static const char *const harmless[] = {
            "table_info",        "table_xinfo",      "table_list",      "index_list",
            "index_info",        "foreign_key_list", "integrity_check", "quick_check",
            "foreign_key_check", "compile_options",  "database_list",   "function_list"};
        static const char *const if_read[] = {"user_version",  "application_id", "page_count",
                                              "page_size",     "journal_mode",   "encoding",
                                              "freelist_count"};
        for (size_t i = 0; i < sizeof harmless / sizeof harmless[0]; i++) {
            if (sqlite3_stricmp(a, harmless[i]) == 0) {
                return SQLITE_OK;
            }
        }
        for (size_t i = 0; i < sizeof if_read / sizeof if_read[0]; i++) {
            if (!b && sqlite3_stricmp(a, if_read[i]) == 0) {
                return SQLITE_OK;
            }
        }
        return SQLITE_DENY;
    }
    default:
        return SQLITE_DENY;
    }
}

ho_status ho_store_uri(const char *path, const char *query, char *out, size_t room)
{
    size_t n = (size_t)snprintf(out, room, "file:");
    for (const unsigned char *p = (const unsigned char *)path; *p; p++) {
        if (n + 8 + strlen(query) > room) {
            return HO_ESTORE;
        }
        if (*p == '%' || *p == '?' || *p == '#') {
            n += (size_t)snprintf(out + n, room - n, "%%%02x", *p);
        } else {
            out[n++] = (char)*p;
        }
    }
    (void)snprintf(out + n, room - n, "?%s", query);
    return HO_OK;
}

static bool readable(sqlite3 *db)
{
    return ho_store_number(db, "SELECT count(*) FROM sqlite_master", -1) >= 0;
}

static int open_uri(ho_store *store, const char *query)
{
    char uri[3 * PATH_MAX];
    (void)sqlite3_close(store->db);
    store->db = NULL;
    if (ho_store_uri(store->path, query, uri, sizeof uri) != HO_OK) {
        return SQLITE_CANTOPEN;
    }
    return sqlite3_open_v2(uri, &store->db,
                           SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX, NULL);
}

ho_status ho_store_open_read(ho_store **out, const char *path, ho_err *err)
{
    ho_store *store = NULL;
    ho_status rc = HO_OK;
    struct stat info;

    *out = NULL;
    if ((rc = alloc_store(&store, path, err)) != HO_OK) {
        goto out;
    }
    if (stat(path, &info) != 0) {
        rc = ho_err_set(err, errno == ENOENT ? HO_ENOTFOUND : HO_ESTORE, "%s: %s", path,
                        strerror(errno));
        goto out;
    }
    if (open_uri(store, "mode=ro") == SQLITE_OK) {
        (void)sqlite3_busy_timeout(store->db, 5000);
    }
    if (!readable(store->db)) {
        int code = sqlite3_extended_errcode(store->db) & 0xff;
        char wal[PATH_MAX + 8];
        (void)snprintf(wal, sizeof wal, "%s-wal", path);
        /* a WAL file on a read-only medium: nobody writes it, so it can be read as it lies */
        if ((code == SQLITE_CANTOPEN || code == SQLITE_READONLY) &&
            (stat(wal, &info) != 0 || info.st_size == 0) &&
            open_uri(store, "mode=ro&immutable=1") == SQLITE_OK && readable(store->db)) {
            ho_log(HO_LOG_INFO, "store", "read-only medium: opened as immutable path=%s", path);
        } else if (code == SQLITE_BUSY) {
            rc =
                ho_err_set(err, HO_ESTORE,
                           "%s: a run holds it exclusively (network filesystem); read it after the "
                           "run, or put study.database on a local disk",
                           path);
            goto out;
        } else {
            rc = ho_err_set(err, HO_ESTORE, "%s: cannot read: %s", path, sqlite3_errmsg(store->db));
            goto out;
        }
    }
    if ((rc = check_kind(store, err)) != HO_OK) {
        goto out;
    }
    int version = (int)ho_store_number(store->db, "PRAGMA user_version", 0);
    if (version != HO_STORE_VERSION) {
        rc = ho_err_set(
            err, HO_ESTORE,
            version > HO_STORE_VERSION
                ? "%s: written by a newer hyperopt (file version %d, this program knows %d)"
                : "%s: written by an older hyperopt (file version %d, this program knows %d); "
                  "`hyperopt run` migrates it",
            path, version, HO_STORE_VERSION);
        goto out;
    }
    /* whole tables are read out of order, trial by trial: the default of 2 MB reads pages again */
    (void)sqlite3_exec(store->db, "PRAGMA cache_size = -65536", NULL, NULL, NULL);
    (void)sqlite3_set_authorizer(store->db, only_reading, NULL);
    (void)sqlite3_db_config(store->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    *out = store;
    store = NULL;
out:
    ho_store_close(&store);
    return rc;
}

void ho_store_close(ho_store **store)
{
    if (!*store) {
        return;
    }
    ho_store_queue_free(*store);
    if (sqlite3_close((*store)->db) != SQLITE_OK) {
        (void)sqlite3_close_v2((*store)->db);
    }
    drop_lock(*store);
    free(*store);
    *store = NULL;
}

sqlite3 *ho_store_db(ho_store *store)
{
    return store->db;
}

const char *ho_store_path(const ho_store *store)
{
    return store->path;
}

bool ho_store_is_rollback(const ho_store *store)
{
    return store->rollback;
}
