/* SPDX-License-Identifier: Apache-2.0
 * Devices: which image of the kernels runs, two GPUs at work at once, an error that ends a context.
 * Every test runs in a process of its own, as a worker does: CUDA does not outlive a fork, and a
 * lost context ends with its process. Two GPUs are needed where it says so, else it is skipped. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agents/world.h"
#include "check.h"
#include "gpu/sizes.h"
#include "kernels/cuda/cuda_backend.h"

enum { BARS = 2000, DEVICES = 2 };

/* What a child process hands back through a pipe. */
typedef struct outcome {
    uint64_t hash;
    char uuid[48];
    int64_t others_change; /* bytes that the other GPU's free memory lost meanwhile */
    int gpus, sm, image, fused;
    int text_holds; /* 1: the expected text was in the error */
} outcome;

typedef void (*child_test)(int device, outcome *out);

typedef struct child {
    pid_t pid;
    int result;
} child;

/* Starts `test` in a process of its own. */
static child start(child_test test, int device)
{
    int pipes[2];
    assert_int_equal(pipe(pipes), 0);
    fflush(NULL);
    const child c = {fork(), pipes[0]};
    assert_true(c.pid >= 0);
    if (c.pid == 0) {
        outcome out;
        memset(&out, 0, sizeof out);
        test(device, &out);
        _exit(write(pipes[1], &out, sizeof out) == (ssize_t)sizeof out ? 0 : 1);
    }
    close(pipes[1]);
    return c;
}

static outcome finish(child c)
{
    outcome out;
    int status = 0;
    const ssize_t got = read(c.result, &out, sizeof out);
    close(c.result);
    assert_true(waitpid(c.pid, &status, 0) == c.pid);
    if (got != (ssize_t)sizeof out || !WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        fail_msg("the process of the test ended with status %x", (unsigned)status);
    }
    return out;
}

/* A check inside a child: says what failed and ends it. */
static void must(int holds, const char *what, const ho_err *err)
{
    if (!holds) {
        fprintf(stderr, "child: %s: %s\n", what, err ? err->text : "");
        _exit(2);
    }
}

static world *open_world(int device, int portable)
{
    ho_backend_options options = ho_backend_defaults();
    options.kind = HO_BACKEND_CUDA;
    options.device = device;
    options.force_portable = portable;
    return world_new_on(WORLD_SIGNAL, BARS, 4, WORLD_FEATURES, &options);
}

static ho_cohort *train(world *w, int epochs)
{
    ho_err err;
    ho_cohort *c;
    ho_epoch_stat stat;
    ho_cohort_key key = world_key(w, HO_DQN);
    key.updates = gpu_size(20, 2);
    key.precision = HO_PRECISION_BF16;
    must(ho_cohort_create(w->backend, w->market, &key, 1, &c, &err) == HO_OK, "cohort", &err);
    ho_lane_config lane = world_lane(w, &key, 3);
    lane.agent.learn_start = 1;
    must(ho_lane_start(c, 0, &lane, &err) == HO_OK, "lane", &err);
    for (int i = 0; i < epochs; i++) {
        must(ho_cohort_run_epoch(c, &stat, &err) == HO_OK, "epoch", &err);
    }
    must(stat.updates == key.updates, "updates", NULL);
    return c;
}

static uint64_t hash_of(ho_cohort *c)
{
    ho_err err;
    void *blob;
    size_t size;
    must(ho_lane_save(c, 0, 1, &blob, &size, &err) == HO_OK, "save", &err);
    uint64_t h = 0xcbf29ce484222325u;
    for (size_t i = 0; i < size; i++) {
        h = (h ^ ((const unsigned char *)blob)[i]) * 0x100000001b3u;
    }
    free(blob);
    return h;
}

/* ---- the image ---- */

static void look(int device, outcome *out)
{
    ho_err err;
    ho_backend *b = NULL;
    ho_device_info info;
    ho_backend_options options = ho_backend_defaults();
    out->gpus = ho_backend_gpu_count();
    if (out->gpus <= device) {
        return;
    }
    options.kind = HO_BACKEND_CUDA;
    options.device = device;
    must(ho_backend_open(&b, &options, &err) == HO_OK, "open", &err);
    must(ho_backend_info(b, &info, &err) == HO_OK, "info", &err);
    snprintf(out->uuid, sizeof out->uuid, "%s", info.uuid);
    out->sm = info.sm;
    out->image = info.image;
    out->fused = ((cuda_backend *)b)->fused;
    ho_backend_close(&b);
}

static outcome look_at(int device)
{
    return finish(start(look, device));
}

static void skip_without(int gpus)
{
    if (look_at(0).gpus < gpus) {
        print_message("fewer than %d GPUs: skipped\n", gpus);
        skip();
    }
}

/* HO_CUDA_ARCHITECTURES: what was compiled, as in "75;80;90a"; absent under the emulator. */
static void the_best_compiled_image_runs(void **state)
{
    (void)state;
    skip_without(1);
    const outcome o = look_at(0);
    print_message("compute capability %d, image %d, fused kernels %d\n", o.sm, o.image, o.fused);
    assert_true(o.image > 0 && o.image <= o.sm);
#ifdef HO_CUDA_ARCHITECTURES
    int best = 0, has_90a = 0;
    for (const char *at = HO_CUDA_ARCHITECTURES; *at;) {
        char *end;
        const int sm = (int)strtol(at, &end, 10);
        const int exact = *end == 'a'; /* runs on that one only */
        best = sm > best && (exact ? sm == o.sm : sm <= o.sm) ? sm : best;
        has_90a |= exact && sm == 90;
        at = strchr(end, ';') ? strchr(end, ';') + 1 : "";
    }
    assert_int_equal(o.image, best);
    assert_int_equal(o.fused, o.sm == 90 && has_90a);
#endif
    assert_int_equal(setenv("HYPEROPT_CUDA_PORTABLE", "1", 1), 0);
    const outcome portable = look_at(0);
    assert_int_equal(unsetenv("HYPEROPT_CUDA_PORTABLE"), 0);
    assert_int_equal(portable.fused, 0);
    assert_int_equal(portable.image, o.image);
}

static void open_expecting(const char *text, outcome *out)
{
    ho_err err;
    ho_backend *b = NULL;
    ho_backend_options options = ho_backend_defaults();
    options.kind = HO_BACKEND_CUDA;
    must(ho_backend_open(&b, &options, &err) == HO_EUNSUPPORTED, "open", NULL);
    out->text_holds = strstr(err.text, text) != NULL;
}

static void open_too_old(int device, outcome *out)
{
    (void)device;
    must(setenv("HYPEROPT_EMULATOR_SM", "70", 1) == 0, "setenv", NULL);
    open_expecting("7.5 or later", out);
}

static void open_without_image(int device, outcome *out)
{
    (void)device;
    must(setenv("HYPEROPT_EMULATOR_SM", "75", 1) == 0, "setenv", NULL);
    open_expecting("add 75 to HYPEROPT_CUDA_ARCHITECTURES", out);
}

static void a_gpu_that_no_image_fits_is_refused_with_the_mend(void **state)
{
    (void)state;
    if (!gpu_size(0, 1)) {
        skip(); /* a device cannot be made older */
    }
    const int image = look_at(0).image;
    assert_true(finish(start(open_too_old, 0)).text_holds);
    assert_true(image == 75 || finish(start(open_without_image, 0)).text_holds);
}

static void ask_for_fp8(int device, outcome *out)
{
    ho_err err;
    ho_cohort *c = NULL;
    world *w = open_world(device, 0);
    ho_cohort_key key = world_key(w, HO_DQN);
    key.precision = HO_PRECISION_FP8;
    out->image = ((cuda_backend *)w->backend)->image;
    const ho_status rc = ho_cohort_create(w->backend, w->market, &key, 1, &c, &err);
    must(rc == (out->image < 80 ? HO_EUNSUPPORTED : HO_OK), "fp8", &err);
    out->text_holds = rc == HO_OK || strstr(err.text, "8.0") != NULL;
    ho_cohort_destroy(&c);
    world_free(&w);
}

static void fp8_needs_bfloat16(void **state)
{
    (void)state;
    skip_without(1);
    assert_true(finish(start(ask_for_fp8, 0)).text_holds);
}

/* ---- two GPUs ---- */

static int64_t free_on(int device)
{
    size_t left = 0, total = 0;
    int before = 0;
    must(cudaGetDevice(&before) == cudaSuccess, "device", NULL);
    must(cudaSetDevice(device) == cudaSuccess, "device", NULL);
    must(cudaMemGetInfo(&left, &total) == cudaSuccess, "memory", NULL);
    must(cudaSetDevice(before) == cudaSuccess, "device", NULL);
    return (int64_t)left;
}

static void train_on(int device, outcome *out)
{
    world *w = open_world(device, 0);
    ho_cohort *c = train(w, 3);
    out->hash = hash_of(c);
    ho_cohort_destroy(&c);
    world_free(&w);
}

/* One process that sees both: the other one's memory is as it was while this one trains. */
static void train_beside(int device, outcome *out)
{
    const int other = 1 - device;
    const int64_t before = free_on(other);
    world *w = open_world(device, 0);
    ho_cohort *c = train(w, 2);
    out->others_change = before - free_on(other);
    out->hash = hash_of(c);
    ho_cohort_destroy(&c);
    world_free(&w);
}

static void two_gpus_at_once_have_the_same_bits(void **state)
{
    (void)state;
    skip_without(DEVICES);
    child c[DEVICES];
    outcome o[DEVICES];
    for (int d = 0; d < DEVICES; d++) {
        c[d] = start(train_on, d);
    }
    for (int d = 0; d < DEVICES; d++) {
        o[d] = finish(c[d]);
        print_message("GPU %d: %016llx\n", d, (unsigned long long)o[d].hash);
    }
    assert_true(o[0].hash == o[1].hash && o[0].hash != 0);
}

/* IsaacGymEnvs 129: device 0 assumed. */
static void nothing_is_allocated_on_the_other_gpu(void **state)
{
    (void)state;
    skip_without(DEVICES);
    for (int d = 0; d < DEVICES; d++) {
        const outcome o = finish(start(train_beside, d));
        print_message("GPU %d trains: the other lost %lld bytes\n", d, (long long)o.others_change);
        assert_true(o.others_change == 0);
    }
}

/* device: 0 or 1; the other's ordinal is asked for beside the UUID, which decides. */
static void open_by_uuid(int device, outcome *out)
{
    ho_err err;
    ho_backend *b = NULL;
    ho_device_info info;
    ho_backend_options options = ho_backend_defaults();
    options.kind = HO_BACKEND_CUDA;
    options.device = device;
    must(ho_backend_open(&b, &options, &err) == HO_OK, "open", &err);
    must(ho_backend_info(b, &info, &err) == HO_OK, "info", &err);
    ho_backend_close(&b);
    options.device = 1 - device;
    options.gpu_uuid = info.uuid;
    must(ho_backend_open(&b, &options, &err) == HO_OK, "open by UUID", &err);
    out->text_holds = ((cuda_backend *)b)->device == device;
    ho_backend_close(&b);
    options.gpu_uuid = "GPU-00000000-0000-0000-0000-0000000000ff";
    must(ho_backend_open(&b, &options, &err) == HO_EGPU, "no such UUID", NULL);
}

static void the_uuid_chooses_the_gpu(void **state)
{
    (void)state;
    skip_without(DEVICES);
    for (int d = 0; d < DEVICES; d++) {
        assert_true(finish(start(open_by_uuid, d)).text_holds);
    }
}

/* ---- a sticky error ---- */

/* A view that points nowhere: the first kernel of the epoch reads an illegal address. */
static void lose_the_context(int device, outcome *out)
{
    ho_err err;
    ho_cohort *c;
    ho_epoch_stat stat;
    ho_device_info info;
    world *w = open_world(device, 0);
    ho_cohort_key key = world_key(w, HO_DQN);
    must(ho_cohort_create(w->backend, w->market, &key, 1, &c, &err) == HO_OK, "cohort", &err);
    const ho_lane_config lane = world_lane(w, &key, 3);
    must(ho_lane_start(c, 0, &lane, &err) == HO_OK, "lane", &err);
    ((cuda_cohort *)c)->experience.lane = (ho_lane_device *)16;
    must(ho_cohort_run_epoch(c, &stat, &err) == HO_EGPU, "the error is seen", NULL);
    out->text_holds = strstr(err.text, "illegal") != NULL;
    must(ho_cohort_run_epoch(c, &stat, &err) == HO_EGPU, "it stays", NULL);
    must(ho_lane_stop(c, 0) == HO_EGPU, "it stays", NULL);
    must(ho_backend_info(w->backend, &info, &err) == HO_EGPU, "it stays", NULL);
    ho_cohort_destroy(&c); /* and what there is can be taken down */
    world_free(&w);
}

static void a_sticky_error_ends_with_its_process(void **state)
{
    (void)state;
    if (gpu_size(0, 1)) {
        skip(); /* there the address ends the test itself; tests/system/test_gpus.py */
    }
    skip_without(1);
    const uint64_t before = finish(start(train_on, 0)).hash;
    assert_true(finish(start(lose_the_context, 0)).text_holds);
    assert_true(finish(start(train_on, 0)).hash == before);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_best_compiled_image_runs),
        cmocka_unit_test(a_gpu_that_no_image_fits_is_refused_with_the_mend),
        cmocka_unit_test(fp8_needs_bfloat16),
        cmocka_unit_test(two_gpus_at_once_have_the_same_bits),
        cmocka_unit_test(nothing_is_allocated_on_the_other_gpu),
        cmocka_unit_test(the_uuid_chooses_the_gpu),
        cmocka_unit_test(a_sticky_error_ends_with_its_process),
    };
    if (look_at(0).gpus == 0) {
        print_message("no GPU: skipped\n");
        return HO_TEST_SKIPPED;
    }
    if (argc > 1) {
        cmocka_set_test_filter(argv[1]);
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
