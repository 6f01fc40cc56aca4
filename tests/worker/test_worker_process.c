/* SPDX-License-Identifier: Apache-2.0
 * The real hyperopt-worker process against a coordinator in the test's hands: a whole trial, data
 * by chunks, preemption and resume, the end of its parent, restarts, refusals. */
#include "check.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "fake_coordinator.h"
#include "market/study_data.h"
#include "study/study.h"
#include "worker/data_cache.h"

enum { BARS = 1500, TEXT_ROOM = 1 << 16 };

static const char program[] = HO_BINARY_DIR "/bin/hyperopt-worker";
static const char study_text[] = "[study]\nname = \"t\"\n"
                                 "[data]\npath = \"bars.csv\"\n"
                                 "[features]\nlong_window = 60\n"
                                 "[folds]\ncount = 2\n"
                                 "[env]\nepisodes = 8\nepisode_length = 32\nimpact_coef = 0\n"
                                 "[barriers]\nmax_holding = 20\n"
                                 "[agent]\nhidden1 = 16\nhidden2 = 16\nhead = 8\n"
                                 "epochs = 150\neval_every = 25\n"
                                 "[dqn]\nbatch = 32\nreplay_capacity = 2048\nlearn_start = 64\n"
                                 "[checkpoint]\nreplay = true\n"
                                 "[search]\n\"dqn.learning_rate\" = { float = [1e-5, 1e-2] }\n";

static fake_coordinator fake;
static pid_t worker;
static ho_study *study;
static ho_fold_plan folds;
static char hash[HO_SHA256_HEX], path[512], cache[64];
static uint64_t file_size;
static double timeout_s; /* coordinator.heartbeat_timeout of the next study; no pings are sent */
static ho_err err;

/* ---- the worker ---------------------------------------------------------------------------- */

static void start_worker(const char *parent)
{
    char cache_argument[96];
    snprintf(cache_argument, sizeof cache_argument, "--cache=%s", cache);
    fflush(NULL);
    (void)unlink("worker.log"); /* wait_for_log must not read the last worker's */
    worker = fork();
    if (worker == 0) {
        int quiet = open("worker.log", O_WRONLY | O_CREAT | O_TRUNC, 0644);
        dup2(quiet, STDERR_FILENO);
        execl(program, program, "--connect", fake.endpoint, "--cpu", "--threads", "2", "--name",
              "w0", "--log-level", "debug", cache_argument, parent, (char *)NULL);
        _exit(127);
    }
    assert_true(worker > 0);
}

static void wait_for_log(const char *words)
{
    for (int i = 0; i < 1000; i++) {
        static char text[TEXT_ROOM];
        FILE *file = fopen("worker.log", "r");
        size_t n = file ? fread(text, 1, sizeof text - 1, file) : 0;
        if (file) {
            fclose(file);
        }
        text[n] = '\0';
        if (strstr(text, words)) {
            return;
        }
        usleep(20000);
    }
    fail_msg("the worker's log never says %s", words);
}

/* Exit code, or 1000 + signal; fails the test when it does not end. */
static int end_of_worker(void)
{
    int status = 0;
    for (int i = 0; i < 1000; i++) {
        pid_t pid = waitpid(worker, &status, WNOHANG);
        if (pid == worker) {
            worker = 0;
            return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
        }
        usleep(20000);
    }
    fail_msg("the worker does not end");
    return -1;
}

/* ---- the coordinator ----------------------------------------------------------------------- */

static void send_study(const char *file_path)
{
    ho_message m = ho_message_make(HO_MSG_STUDY);
    snprintf(m.study.uuid, sizeof m.study.uuid, "study-1");
    snprintf(m.study.name, sizeof m.study.name, "t");
    snprintf(m.study.source, sizeof m.study.source, "t.toml");
    m.study.text = strdup(study_text);
    m.study.size = strlen(study_text);
    m.study.settings = ho_settings_copy(study->settings);
    CHECK_OK(ho_settings_set_f64(m.study.settings, HO_KEY_COORDINATOR_HEARTBEAT_TIMEOUT, timeout_s,
                                 &err),
             &err);
    m.study.folds = malloc(sizeof folds);
    *m.study.folds = folds;
    m.study.seed = 42;
    m.study.file_count = 1;
    m.study.file = calloc(1, sizeof *m.study.file);
    snprintf(m.study.file[0].sha256, sizeof m.study.file[0].sha256, "%s", hash);
    snprintf(m.study.file[0].path, sizeof m.study.file[0].path, "%s", file_path);
    m.study.file[0].size = file_size;
    fake_send(&fake, &m);
    ho_message_clear(&m);
}

/* hello -> study; returns how many trials the worker holds. */
static int greet(const char *file_path)
{
    ho_message m = fake_receive_type(&fake, HO_MSG_HELLO);
    int held = m.hello.held_count;
    assert_string_equal(m.hello.name, "w0");
    assert_int_equal(m.hello.device_count, 1);
    ho_message_clear(&m);
    send_study(file_path);
    return held;
}

static void order(int64_t trial, int32_t attempt, double learning_rate, const char *resume)
{
    ho_message m = ho_message_make(HO_MSG_TRIALS);
    m.trials.count = 1;
    m.trials.order = calloc(1, sizeof *m.trials.order);
    m.trials.order[0] =
        (ho_trial_order){.trial = trial, .attempt = attempt, .seed = 42, .param_count = 1};
    snprintf(m.trials.order[0].resume, sizeof m.trials.order[0].resume, "%s", resume);
    m.trials.order[0].config = malloc(sizeof(double));
    m.trials.order[0].config[0] = learning_rate;
    fake_send(&fake, &m);
    ho_message_clear(&m);
}

/* What a trial said, as text with all digits; ends with its result or failure, not acked. */
static int read_trial(int64_t trial, char *text, int reports_at_most)
{
    size_t at = strlen(text);
    for (int reports = 0; reports < reports_at_most;) {
        ho_message m = fake_receive(&fake);
        if (m.trial == trial && m.type == HO_MSG_REPORT) {
            reports++;
            at += (size_t)snprintf(text + at, TEXT_ROOM - at, "epoch %d value %a loss %a q %a\n",
                                   m.report.epoch, m.report.scored ? m.report.value[0] : 0.0,
                                   m.report.stat.loss_mean, m.report.stat.q_mean);
        } else if (m.trial == trial && m.type == HO_MSG_RESULT) {
            for (int i = 0; i < m.result.window_count; i++) {
                const ho_scored_window *w = &m.result.window[i];
                at += (size_t)snprintf(text + at, TEXT_ROOM - at, "test %d pnl %a sessions %lld\n",
                                       w->fold, w->result.metrics.value[HO_METRIC_TOTAL_PNL],
                                       (long long)w->result.sessions);
            }
            ho_message_clear(&m);
            return HO_MSG_RESULT;
        } else if (m.trial == trial && m.type == HO_MSG_FAIL) {
            snprintf(text + at, TEXT_ROOM - at, "%s: %s", ho_fail_class_name(m.fail.class_id),
                     m.fail.reason);
            ho_message_clear(&m);
            return HO_MSG_FAIL;
        }
        ho_message_clear(&m);
    }
    return HO_MSG_REPORT;
}

static void stop(ho_stop_mode mode)
{
    ho_message m = ho_message_make(HO_MSG_STOP);
    m.stop.mode = mode;
    fake_send(&fake, &m);
}

/* ---- set up -------------------------------------------------------------------------------- */

static int make_study(void **state)
{
    (void)state;
    ho_bars bars = {0};
    ho_features features = {0};
    struct stat st;
    FILE *file = fopen("bars.csv", "w");
    double price = 100.0;
    unsigned x = 1;
    fprintf(file, "time,open,high,low,close,volume\n");
    for (int t = 0; t < BARS; t++) {
        x = x * 1664525u + 1013904223u;
        double open = price;
        price += ((double)(x >> 8) / (double)(1 << 24) - 0.5) * 0.4;
        fprintf(file, "%lld,%.4f,%.4f,%.4f,%.4f,1000\n", 1500000000LL + t * 3600LL, open,
                fmax(open, price) + 0.05, fmin(open, price) - 0.05, price);
    }
    fclose(file);
    if (!realpath("bars.csv", path) || stat(path, &st) != 0) {
        return -1;
    }
    file_size = (uint64_t)st.st_size;
    setenv("HYPEROPT_FEATURE_CACHE", "off", 1);
    CHECK_OK(ho_data_cache_hash(path, hash, &err), &err);
    CHECK_OK(ho_study_parse(study_text, strlen(study_text), "t.toml", ".", &study, &err), &err);
    const char *paths[] = {path};
    CHECK_OK(ho_study_bars_load(study->settings, paths, 1, &bars, NULL, &err), &err);
    CHECK_OK(ho_study_features(study->settings, &bars, &features, &err), &err);
    ho_fold_spec spec = ho_study_fold_spec(study);
    CHECK_OK(ho_folds_plan(&spec, features.warmup, bars.count, bars.session, features.split, &folds,
                           &err),
             &err);
    ho_features_free(&features);
    ho_bars_free(&bars);
    return 0;
}

static int free_study(void **state)
{
    (void)state;
    ho_study_free(&study);
    return 0;
}

static int setup(void **state)
{
    (void)state;
    ho_err_clear(&err);
    timeout_s = 600;
    snprintf(cache, sizeof cache, "cache-XXXXXX");
    fake_start(&fake, "ipc://fake.sock");
    return mkdtemp(cache) ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    char command[128];
    if (worker > 0) {
        kill(worker, SIGKILL);
        waitpid(worker, NULL, 0);
        worker = 0;
    }
    fake_stop(&fake);
    snprintf(command, sizeof command, "rm -rf %s", cache);
    return system(command);
}

/* ---- tests --------------------------------------------------------------------------------- */

static char *whole_trial(void)
{
    static char text[TEXT_ROOM];
    text[0] = '\0';
    start_worker("--log-json");
    greet(path);
    ho_message m = fake_receive_type(&fake, HO_MSG_READY);
    assert_true(m.ready.slots > 0);
    ho_message_clear(&m);
    order(3, 1, 1e-3, "");
    assert_int_equal(read_trial(3, text, 1000), HO_MSG_RESULT);
    fake_send_about(&fake, HO_MSG_ACK, 3, 1);
    stop(HO_STOP_DRAIN);
    assert_int_equal(end_of_worker(), 0);
    return text;
}

static void a_trial_is_trained_scored_and_told(void **state)
{
    (void)state;
    const char *text = whole_trial();
    CHECK_CONTAINS(text, "epoch 1 value 0x0p+0");
    CHECK_CONTAINS(text, "epoch 150 value");
    CHECK_CONTAINS(text, "test 1 pnl");
    assert_null(strstr(text, "nan"));
}

static void baselines_and_artifacts_come_with_the_results(void **state)
{
    (void)state;
    int baselines = 0, actions = 0;
    start_worker("--log-json");
    greet(path);
    order(3, 1, 1e-3, "");
    for (bool result = false; !result;) {
        ho_message m = fake_receive(&fake);
        if (m.type == HO_MSG_BASELINE) {
            baselines = m.baseline.window_count;
        } else if (m.type == HO_MSG_CHUNK && m.chunk.kind == HO_CHUNK_ARTIFACT) {
            actions += strstr(m.chunk.name, ".actions.zst") != NULL;
        }
        result = m.type == HO_MSG_RESULT;
        for (int i = 0; result && i < m.result.window_count; i++) {
            double percentile = m.result.window[i].random_percentile;
            if (m.result.window[i].fold >= 0) { /* not of the joined series */
                assert_true(percentile >= 0.0 && percentile <= 1.0);
            }
        }
        ho_message_clear(&m);
    }
    assert_int_equal(baselines, 2 * 3); /* two folds; flat, buy-and-hold, random */
    assert_int_equal(actions, 2);
}

static void missing_data_is_fetched_in_chunks_and_cached(void **state)
{
    (void)state;
    char text[TEXT_ROOM] = "";
    char *content = malloc(file_size);
    FILE *file = fopen(path, "rb");
    assert_int_equal(fread(content, 1, file_size, file), file_size);
    fclose(file);
    start_worker("--log-json");
    greet("/no/such/folder/bars.csv");
    ho_message want = fake_receive_type(&fake, HO_MSG_WANT);
    assert_string_equal(want.want.sha256, hash);
    assert_int_equal(want.want.offset, 0);
    ho_message m = ho_message_make(HO_MSG_CHUNK);
    m.chunk.kind = HO_CHUNK_DATA;
    m.chunk.total = file_size;
    snprintf(m.chunk.sha256, sizeof m.chunk.sha256, "%s", hash);
    m.chunk.bytes = (uint8_t *)content;
    m.chunk.count = 10000;
    fake_send(&fake, &m);
    fake_send(&fake, &m); /* repeated: left out */
    kill(worker, SIGKILL);
    end_of_worker();
    start_worker("--log-json"); /* goes on where the transfer stopped, or before the chunk came */
    greet("/no/such/folder/bars.csv");
    want = fake_receive_type(&fake, HO_MSG_WANT);
    assert_true(want.want.offset == 10000 || want.want.offset == 0);
    for (uint64_t at = want.want.offset; at < file_size; at += m.chunk.count) {
        m.chunk.offset = at;
        m.chunk.count = file_size - at < 10000 ? file_size - at : 10000;
        m.chunk.bytes = (uint8_t *)content + at;
        fake_send(&fake, &m);
    }
    free(content);
    order(3, 1, 1e-3, "");
    assert_int_equal(read_trial(3, text, 1000), HO_MSG_RESULT);
    kill(worker, SIGKILL);
    end_of_worker();
    start_worker("--log-json"); /* the cache has it now */
    greet("/no/such/folder/bars.csv");
    ho_message_clear(&want);
    m = fake_receive_type(&fake, HO_MSG_READY);
    ho_message_clear(&m);
}

static void sigterm_checkpoints_and_hands_back(void **state)
{
    (void)state;
    static char calm[TEXT_ROOM], text[TEXT_ROOM];
    static uint8_t blob[8 << 20];
    char sha256[65] = "";
    size_t got = 0;
    bool handed_back = false, bye = false;
    snprintf(calm, sizeof calm, "%s", whole_trial());
    text[0] = '\0';
    start_worker("--log-json");
    greet(path);
    order(3, 1, 1e-3, "");
    assert_int_equal(read_trial(3, text, 2), HO_MSG_REPORT);
    kill(worker, SIGTERM);
    while (!bye) {
        ho_message m = fake_receive(&fake);
        if (m.type == HO_MSG_REPORT) { /* it was in the middle of an epoch */
            snprintf(text + strlen(text), sizeof text - strlen(text),
                     "epoch %d value %a loss %a q %a\n", m.report.epoch,
                     m.report.scored ? m.report.value[0] : 0.0, m.report.stat.loss_mean,
                     m.report.stat.q_mean);
        } else if (m.type == HO_MSG_CHUNK && m.chunk.kind == HO_CHUNK_CHECKPOINT) {
            assert_int_equal(m.chunk.offset, got);
            assert_true(got + m.chunk.count <= sizeof blob);
            memcpy(blob + got, m.chunk.bytes, m.chunk.count);
            got += m.chunk.count;
            snprintf(sha256, sizeof sha256, "%s", m.chunk.sha256);
        } else if (m.type == HO_MSG_FAIL) {
            assert_int_equal(m.fail.class_id, HO_FAIL_CANCELLED);
            assert_true(m.fail.retryable);
            handed_back = true;
        }
        bye = m.type == HO_MSG_BYE;
        ho_message_clear(&m);
    }
    assert_int_equal(end_of_worker(), 0);
    assert_true(handed_back && got > 0);

    start_worker("--log-json");
    greet(path);
    order(3, 2, 1e-3, sha256);
    ho_message m = ho_message_make(HO_MSG_CHUNK);
    m.trial = 3;
    m.attempt = 2;
    m.chunk.kind = HO_CHUNK_CHECKPOINT;
    m.chunk.total = got;
    snprintf(m.chunk.sha256, sizeof m.chunk.sha256, "%s", sha256);
    for (size_t at = 0; at < got; at += m.chunk.count) {
        m.chunk.offset = at;
        m.chunk.count = got - at < HO_WIRE_CHUNK ? got - at : HO_WIRE_CHUNK;
        m.chunk.bytes = blob + at;
        fake_send(&fake, &m);
    }
    assert_int_equal(read_trial(3, text, 1000), HO_MSG_RESULT);
    assert_string_equal(text, calm); /* bit for bit as if nothing had happened */
}

static void a_running_trial_is_checkpointed_when_asked(void **state)
{
    (void)state;
    start_worker("--log-json");
    greet(path);
    order(3, 1, 1e-3, "");
    ho_message m = fake_receive_type(&fake, HO_MSG_REPORT);
    ho_message_clear(&m);
    m = ho_message_make(HO_MSG_FETCH);
    m.trial = 3;
    m.attempt = 1;
    m.fetch.kind = HO_FETCH_CHECKPOINT;
    m.fetch.fold = m.fetch.seed = -1;
    fake_send(&fake, &m);
    m = fake_receive_type(&fake, HO_MSG_CHUNK);
    assert_int_equal(m.chunk.kind, HO_CHUNK_CHECKPOINT);
    assert_int_equal(m.trial, 3);
    ho_message_clear(&m);
}

static void a_paused_trial_is_handed_back_with_its_checkpoint(void **state)
{
    (void)state;
    start_worker("--log-json");
    greet(path);
    order(3, 1, 1e-3, "");
    ho_message m = fake_receive_type(&fake, HO_MSG_REPORT);
    ho_message_clear(&m);
    for (int again = 0; again < 2; again++) { /* kept until the ack, and sent again when asked */
        m = ho_message_make(again ? HO_MSG_FETCH : HO_MSG_PAUSE);
        m.trial = 3;
        m.attempt = 1;
        if (again) {
            m.fetch.fold = m.fetch.seed = -1;
        } else {
            m.pause.epoch = 1;
        }
        fake_send(&fake, &m);
        m = fake_receive_type(&fake, HO_MSG_CHUNK);
        assert_int_equal(m.chunk.kind, HO_CHUNK_ARTIFACT);
        assert_string_equal(m.chunk.name, "checkpoint");
        assert_true(m.chunk.offset == 0);
        ho_message_clear(&m);
        m = fake_receive_type(&fake, HO_MSG_FAIL);
        assert_int_equal(m.fail.class_id, HO_FAIL_CANCELLED);
        assert_int_equal(m.trial, 3);
        ho_message_clear(&m);
    }
    fake_send_about(&fake, HO_MSG_ACK, 3, 1);
    stop(HO_STOP_DRAIN);
    assert_int_equal(end_of_worker(), 0);
}

/* optuna 3478: reports are handed over and never waited for. Nobody reads while the trial trains to
 * its end; what lies there then is one message an epoch and one a file. */
static void a_coordinator_that_does_not_read_holds_nothing_up(void **state)
{
    (void)state;
    int count[HO_MSG_COUNT] = {0}, epochs = 0;
    start_worker("--log-json");
    greet(path);
    ho_message m = fake_receive_type(&fake, HO_MSG_READY);
    ho_message_clear(&m);
    order(3, 1, 1e-3, "");
    wait_for_log("finished trial=3");
    do {
        m = fake_receive(&fake);
        count[m.type]++;
        if (m.type == HO_MSG_REPORT) {
            assert_int_equal(m.report.epoch, ++epochs);
        }
        ho_message_clear(&m);
    } while (count[HO_MSG_RESULT] == 0);
    assert_int_equal(count[HO_MSG_REPORT], 150);
    assert_int_equal(count[HO_MSG_CHUNK], 4); /* agents and actions of two folds */
    assert_int_equal(count[HO_MSG_BASELINE], 1);
    assert_int_equal(count[HO_MSG_FAIL] + count[HO_MSG_WANT] + count[HO_MSG_HELLO], 0);
}

static void a_coordinator_that_comes_back_gets_everything(void **state)
{
    (void)state;
    char first[TEXT_ROOM] = "", again[TEXT_ROOM] = "", endpoint[128];
    start_worker("--log-json");
    greet(path);
    order(3, 1, 1e-3, "");
    assert_int_equal(read_trial(3, first, 1000), HO_MSG_RESULT);
    snprintf(endpoint, sizeof endpoint, "%s", fake.endpoint);
    fake_stop(&fake); /* dies before its ack */
    fake_start(&fake, endpoint);
    assert_int_equal(greet(path), 1);
    fake_send_about(&fake, HO_MSG_KEEP, 3, 1);
    assert_int_equal(read_trial(3, again, 1000), HO_MSG_RESULT);
    assert_string_equal(first, again);
}

static void a_stopped_worker_comes_back_and_obeys(void **state)
{
    (void)state;
    timeout_s = 4;
    start_worker("--log-json");
    greet(path);
    order(3, 1, 1e-3, "");
    ho_message m = fake_receive_type(&fake, HO_MSG_REPORT);
    ho_message_clear(&m);
    timeout_s = 600;
    kill(worker, SIGSTOP);
    usleep(4500000); /* longer than the heartbeat timeout: the lease is gone */
    kill(worker, SIGCONT);
    (void)greet(path); /* it has found out, or holds the trial still */
    fake_send_about(&fake, HO_MSG_DROP, 3, 1);
    order(4, 1, 1e-3, "");
    char text[TEXT_ROOM] = "";
    assert_int_equal(read_trial(4, text, 1000), HO_MSG_RESULT);
}

static void a_configuration_that_cannot_run_fails_alone(void **state)
{
    (void)state;
    char text[TEXT_ROOM] = "", good[TEXT_ROOM] = "";
    start_worker("--log-json");
    greet(path);
    order(3, 1, 77.0, ""); /* above its range */
    order(4, 1, 1e-3, "");
    assert_int_equal(read_trial(3, text, 1000), HO_MSG_FAIL);
    CHECK_CONTAINS(text, "config: ");
    CHECK_CONTAINS(text, "dqn.learning_rate");
    assert_int_equal(read_trial(4, good, 1000), HO_MSG_RESULT);
}

static void unusable_data_is_told_and_ends_the_worker(void **state)
{
    (void)state;
    char text[TEXT_ROOM] = "";
    start_worker("--log-json");
    ho_message m = fake_receive_type(&fake, HO_MSG_HELLO);
    ho_message_clear(&m);
    folds.T++; /* another number of bars than the file has */
    send_study(path);
    folds.T--;
    order(3, 1, 1e-3, "");
    m = fake_receive_type(&fake, HO_MSG_BYE);
    CHECK_CONTAINS(m.bye.reason, "bars");
    ho_message_clear(&m);
    assert_int_equal(end_of_worker(), 2);
    (void)text;
}

static void a_refused_worker_exits_with_the_reason(void **state)
{
    (void)state;
    start_worker("--log-json");
    ho_message m = fake_receive_type(&fake, HO_MSG_HELLO);
    ho_message_clear(&m);
    m = ho_message_make(HO_MSG_REFUSE);
    snprintf(m.refuse.reason, sizeof m.refuse.reason, "this study is full");
    fake_send(&fake, &m);
    assert_int_equal(end_of_worker(), 1);
}

static void a_local_worker_ends_with_its_parent(void **state)
{
    (void)state;
    char parent[64];
    int ready[2];
    assert_int_equal(pipe(ready), 0);
    fflush(NULL);
    pid_t middle = fork(); /* stands for the coordinator's process */
    if (middle == 0) {
        snprintf(parent, sizeof parent, "--parent=%ld", (long)getpid());
        start_worker(parent);
        ssize_t n = write(ready[1], &worker, sizeof worker);
        pause();
        _exit(n == sizeof worker ? 0 : 1);
    }
    assert_int_equal(read(ready[0], &worker, sizeof worker), sizeof worker);
    close(ready[0]);
    close(ready[1]);
    greet(path);
    order(3, 1, 1e-3, "");
    kill(middle, SIGKILL);
    waitpid(middle, NULL, 0);
    int i = 0;
    while (kill(worker, 0) == 0 && i < 500) { /* not our child: it disappears by itself */
        char state_path[64], line[256] = "";
        snprintf(state_path, sizeof state_path, "/proc/%ld/stat", (long)worker);
        FILE *file = fopen(state_path, "r");
        if (!file || !fgets(line, sizeof line, file) || strstr(line, ") Z ")) {
            i = -1; /* gone, or a zombie that nobody reaps in a container without init */
        }
        if (file) {
            fclose(file);
        }
        if (i < 0) {
            break;
        }
        i++;
        usleep(20000);
    }
    assert_true(i < 500);
    worker = 0;
}

static void stop_now_ends_at_once(void **state)
{
    (void)state;
    start_worker("--log-json");
    greet(path);
    order(3, 1, 1e-3, "");
    ho_message m = fake_receive_type(&fake, HO_MSG_REPORT);
    ho_message_clear(&m);
    stop(HO_STOP_NOW);
    m = fake_receive_type(&fake, HO_MSG_BYE);
    ho_message_clear(&m);
    assert_int_equal(end_of_worker(), 0);
}

static void without_a_coordinator_sigterm_still_ends_it(void **state)
{
    (void)state;
    fake_stop(&fake);
    start_worker("--log-json");
    wait_for_log("device name"); /* signals are set by then */
    kill(worker, SIGTERM);
    assert_int_equal(end_of_worker(), 0);
    fake_start(&fake, "ipc://fake.sock");
}

int main(void)
{
    zsys_init();
    zsys_handler_set(NULL);
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(a_trial_is_trained_scored_and_told),
        T(baselines_and_artifacts_come_with_the_results),
        T(missing_data_is_fetched_in_chunks_and_cached),
        T(sigterm_checkpoints_and_hands_back),
        T(a_running_trial_is_checkpointed_when_asked),
        T(a_paused_trial_is_handed_back_with_its_checkpoint),
        T(a_coordinator_that_does_not_read_holds_nothing_up),
        T(a_coordinator_that_comes_back_gets_everything),
        T(a_stopped_worker_comes_back_and_obeys),
        T(a_configuration_that_cannot_run_fails_alone),
        T(unusable_data_is_told_and_ends_the_worker),
        T(a_refused_worker_exits_with_the_reason),
        T(a_local_worker_ends_with_its_parent),
        T(stop_now_ends_at_once),
        T(without_a_coordinator_sigterm_still_ends_it),
    };
    int failed = cmocka_run_group_tests(tests, make_study, free_study);
    zsys_shutdown();
    return failed;
}
