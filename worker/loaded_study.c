/* SPDX-License-Identifier: Apache-2.0
 * See loaded_study.h. */
#include "worker/loaded_study.h"

#include <stdlib.h>
#include <string.h>

#include "study/log.h"

enum { HASH_TRIES = 3 };

/* The folder of a path, for messages of the study's parser. */
static void folder_of(const char *path, char *out, size_t room)
{
    const char *slash = strrchr(path, '/');
    snprintf(out, room, "%.*s", slash ? (int)(slash - path) : 1, slash ? path : ".");
}

ho_status ho_loaded_study_create(ho_loaded_study **out, ho_msg_study *m, ho_err *err)
{
    char folder[HO_WIRE_PATH];
    *out = NULL;
    ho_loaded_study *loaded = calloc(1, sizeof *loaded);
    if (!loaded) {
        return ho_err_set(err, HO_ENOMEM, "out of memory for the study");
    }
    snprintf(loaded->uuid, sizeof loaded->uuid, "%s", m->uuid);
    folder_of(m->source, folder, sizeof folder);
    ho_status rc = ho_study_parse(m->text, m->size, m->source, folder, &loaded->study, err);
    if (rc == HO_OK) {
        loaded->path = calloc((size_t)m->file_count + 1, sizeof *loaded->path);
        rc = loaded->path ? HO_OK : ho_err_set(err, HO_ENOMEM, "out of memory for the study");
    }
    if (rc != HO_OK) {
        ho_loaded_study_destroy(&loaded);
        return rc;
    }
    if (m->settings) {
        ho_settings_destroy(&loaded->study->settings);
        loaded->study->settings = m->settings;
        m->settings = NULL;
    }
    loaded->folds = m->folds;
    m->folds = NULL;
    loaded->file = m->file;
    loaded->file_count = m->file_count;
    m->file = NULL;
    m->file_count = 0;
    loaded->seed = m->seed;
    loaded->auto_batch = m->auto_batch;
    *out = loaded;
    return HO_OK;
}

void ho_loaded_study_destroy(ho_loaded_study **loaded)
{
    if (!loaded || !*loaded) {
        return;
    }
    ho_loaded_study *l = *loaded;
    ho_market_unload(&l->market);
    ho_features_free(&l->features);
    ho_bars_free(&l->bars);
    ho_study_free(&l->study);
    free(l->folds);
    free(l->file);
    free(l->path);
    free(l);
    *loaded = NULL;
}

ho_status ho_loaded_study_find(ho_loaded_study *loaded, ho_data_cache *cache, ho_msg_want *want,
                               ho_err *err)
{
    for (int i = 0; i < loaded->file_count; i++) {
        const ho_data_file *file = &loaded->file[i];
        if (loaded->path[i][0] != '\0') {
            continue;
        }
        ho_status rc = ho_data_cache_find(cache, file->sha256, file->path, loaded->path[i], err);
        if (rc == HO_OK) {
            continue;
        }
        if (rc != HO_ENOTFOUND) {
            return rc;
        }
        rc = ho_data_cache_begin(cache, file->sha256, file->size, &want->offset, err);
        if (rc != HO_OK) {
            return rc;
        }
        snprintf(want->sha256, sizeof want->sha256, "%s", file->sha256);
        ho_log(HO_LOG_INFO, "data", "asking for %s bytes=%llu from=%llu", file->sha256,
               (unsigned long long)file->size, (unsigned long long)want->offset);
        return HO_EAGAIN;
    }
    return HO_OK;
}

ho_status ho_loaded_study_chunk(ho_loaded_study *loaded, ho_data_cache *cache,
                                const ho_msg_chunk *chunk, bool *next, ho_err *err)
{
    *next = false;
    ho_status rc = ho_data_cache_write(cache, chunk->sha256, chunk->offset, chunk->bytes,
                                       chunk->count, next, err);
    if (rc == HO_EAGAIN) {
        ho_log(HO_LOG_DEBUG, "data", "%s", err->text);
        return HO_OK;
    }
    if (rc == HO_EDATA && ++loaded->tries < HASH_TRIES) {
        ho_log(HO_LOG_WARN, "data", "%s; asking again", err->text);
        *next = true;
        return HO_OK;
    }
    return rc;
}

static ho_status load_market(ho_loaded_study *loaded, ho_backend *backend, ho_err *err)
{
    const ho_bars *bars = &loaded->bars;
    const ho_features *features = &loaded->features;
    ho_market_data data = {
        .T = bars->count,
        .F = features->F,
        .features = features->values,
        .warmup = features->warmup,
        .bars = bars->ohlcv,
        .open_ns = bars->open_ns,
        .interval_ns = bars->interval_ns,
        .session = bars->session,
        .roll_jump = bars->roll_jump,
        .split = features->split,
        .funding = bars->funding,
        .has_volume = bars->has_volume,
    };
    if (features->T != bars->count || loaded->folds->T != bars->count) {
        return ho_err_set(err, HO_EDATA,
                          "the bars loaded here are %lld, the coordinator's %lld: the two programs "
                          "are of different versions",
                          (long long)bars->count, (long long)loaded->folds->T);
    }
    return ho_market_load(backend, &data, &loaded->market, err);
}

ho_status ho_loaded_study_open(ho_loaded_study *loaded, ho_backend *backend, ho_err *err)
{
    const char **path = calloc(2 * ((size_t)loaded->file_count + 1), sizeof *path);
    if (!path) {
        return ho_err_set(err, HO_ENOMEM, "out of memory for the study");
    }
    const char **sha256 = path + loaded->file_count + 1;
    for (int i = 0; i < loaded->file_count; i++) {
        path[i] = loaded->path[i];
        sha256[i] = loaded->file[i].sha256;
    }
    const ho_settings *settings = loaded->study->settings;
    ho_status rc =
        ho_study_bars_cached(settings, path, sha256, loaded->file_count, &loaded->bars, NULL, err);
    free(path);
    if (rc == HO_OK) {
        rc = ho_study_features(settings, &loaded->bars, &loaded->features, err);
    }
    if (rc == HO_OK) {
        rc = load_market(loaded, backend, err);
    }
    return rc;
}

ho_lane_context ho_loaded_study_context(const ho_loaded_study *loaded)
{
    return (ho_lane_context){
        .study = loaded->study,
        .folds = loaded->folds,
        .bars = &loaded->bars,
        .market_features = loaded->features.F,
        .auto_batch = loaded->auto_batch,
    };
}
