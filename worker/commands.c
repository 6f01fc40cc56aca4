/* SPDX-License-Identifier: Apache-2.0
 * See commands.h. */
#include "worker/commands.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cjson/cJSON.h>

#include "study/log.h"

enum {
    LINE_MAX_BYTES = 1 << 16, /* a longer line is not a message */
    REASON_BYTES = 512,
    ARGUMENTS_MAX = 256,
    READ_END = 0,
    WRITE_END = 1,
};

/* What a program wrote and no line break has ended yet. */
struct line {
    char text[LINE_MAX_BYTES];
    size_t length;
    bool too_long; /* until its end */
};

/* 1. pid 0: waiting.  2. fds are -1 when closed.  3. one element a trial, in order of arrival. */
struct run {
    int64_t trial;
    int32_t attempt;
    uint64_t seed;
    double *config; /* [P] */
    pid_t pid;
    int64_t started_ms;
    int out, err;
    struct line *out_line, *err_line;
    char last_words[REASON_BYTES]; /* last line of standard error */
    int32_t epoch;
    bool has_result;
    double result[HO_WIRE_VALUES_MAX];
    char mistake[REASON_BYTES]; /* a line that was meant for us and is wrong */
};

struct ho_commands {
    const ho_study *study;
    int slots;
    const char *folder;
    ho_commands_sink sink;
    struct run *run;
    int runs;
};

static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

ho_status ho_commands_create(ho_commands **out, const ho_study *study, int slots,
                             const char *folder, const ho_commands_sink *sink, ho_err *err)
{
    *out = calloc(1, sizeof **out);
    if (!*out) {
        return ho_err_set(err, HO_ENOMEM, "out of memory for the commands");
    }
    (*out)->study = study;
    (*out)->slots = slots;
    (*out)->folder = folder;
    (*out)->sink = *sink;
    return HO_OK;
}

static void close_fd(int *fd)
{
    if (*fd >= 0) {
        close(*fd);
        *fd = -1;
    }
}

/* Ends the program with all its children, and forgets the run. */
static void remove_run(ho_commands *c, int i)
{
    struct run *run = &c->run[i];
    if (run->pid > 0) {
        (void)kill(-run->pid, SIGKILL);
        while (waitpid(run->pid, NULL, 0) < 0 && errno == EINTR) {}
    }
    close_fd(&run->out);
    close_fd(&run->err);
    free(run->out_line);
    free(run->err_line);
    free(run->config);
    c->runs--;
    memmove(run, run + 1, (size_t)(c->runs - i) * sizeof *run);
}

void ho_commands_destroy(ho_commands **commands)
{
    if (commands && *commands) {
        while ((*commands)->runs > 0) {
            remove_run(*commands, (*commands)->runs - 1);
        }
        free((*commands)->run);
        free(*commands);
        *commands = NULL;
    }
}

ho_status ho_commands_add(ho_commands *c, const ho_trial_order *order, ho_err *err)
{
    const ho_space *space = &c->study->space;
    if (order->param_count != space->count) {
        return ho_err_set(err, HO_EINVAL, "%d parameters came for a space of %d",
                          order->param_count, space->count);
    }
    ho_status rc = ho_space_check(space, order->config, err);
    if (rc != HO_OK) {
        return rc;
    }
    struct run *grown = realloc(c->run, (size_t)(c->runs + 1) * sizeof *grown);
    size_t bytes = (size_t)space->count * sizeof(double);
    double *config = malloc(bytes + 1);
    if (grown) {
        c->run = grown;
    }
    if (!grown || !config) {
        free(config);
        return ho_err_set(err, HO_ENOMEM, "out of memory for a trial");
    }
    memcpy(config, order->config, bytes);
    c->run[c->runs++] = (struct run){.trial = order->trial,
                                     .attempt = order->attempt,
                                     .seed = order->seed,
                                     .config = config,
                                     .out = -1,
                                     .err = -1};
    return HO_OK;
}

bool ho_commands_drop(ho_commands *c, int64_t trial, int32_t attempt)
{
    for (int i = 0; i < c->runs; i++) {
        if (c->run[i].trial == trial && c->run[i].attempt == attempt) {
            remove_run(c, i);
            return true;
        }
    }
    return false;
}

/* ---- start --------------------------------------------------------------------------------- */

/* A value as an argument: without the quotes of TOML. */
static void print_value(const ho_param *param, double value, char *out, size_t room)
{
    if (param->kind == HO_PARAM_CHOICE && isfinite(value) &&
        param->choice[(int)value].type == HO_CHOICE_STRING) {
        snprintf(out, room, "%s", param->choice[(int)value].text);
    } else if (isnan(value)) {
        out[0] = '\0'; /* inactive */
    } else {
        (void)ho_param_print(param, value, out, room);
    }
}

/* The argument with every {name} replaced; malloc'ed, NULL: out of memory. */
static char *fill_argument(const ho_space *space, const double *config, const char *text)
{
    size_t room = strlen(text) + 1, length = 0;
    char *out = malloc(room);
    for (const char *at = text; out && *at;) {
        char name[HO_PARAM_NAME_MAX], value[1024] = {*at, '\0'};
        const char *end = *at == '{' ? strchr(at, '}') : NULL;
        size_t taken = 1;
        if (end && (size_t)(end - at - 1) < sizeof name) {
            snprintf(name, sizeof name, "%.*s", (int)(end - at - 1), at + 1);
            int param = ho_space_find(space, name);
            if (param >= 0) {
                print_value(&space->param[param], config[param], value, sizeof value);
                taken = (size_t)(end - at) + 1;
            }
        }
        size_t n = strlen(value);
        char *grown = realloc(out, room += n);
        if (!grown) {
            free(out);
            return NULL;
        }
        out = grown;
        memcpy(out + length, value, n);
        length += n;
        at += taken;
    }
    if (out) {
        out[length] = '\0';
    }
    return out;
}

/* Only calls that are safe between fork and exec. */
static void run_child(const ho_commands *c, char *const *argv, char *const *envp, int out, int err)
{
    (void)setpgid(0, 0);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* no program outlives a killed worker */
    (void)signal(SIGINT, SIG_DFL);
    (void)signal(SIGHUP, SIG_DFL);
    (void)signal(SIGPIPE, SIG_DFL);
    int null = open("/dev/null", O_RDONLY);
    if ((c->folder && chdir(c->folder) != 0) || null < 0 || dup2(null, STDIN_FILENO) < 0 ||
        dup2(out, STDOUT_FILENO) < 0 || dup2(err, STDERR_FILENO) < 0) {
        _exit(126);
    }
    (void)execvpe(argv[0], argv, envp);
    const char *text[] = {argv[0], ": ", strerror(errno)};
    for (int i = 0; i < 3; i++) {
        if (write(STDERR_FILENO, text[i], strlen(text[i])) < 0) {
            _exit(126);
        }
    }
    _exit(127);
}

/* The process's environment with three variables more; the array is malloc'ed, the texts are not.
 */
static char **make_environment(char extra[3][64])
{
    size_t n = 0;
    while (environ[n]) {
        n++;
    }
    char **envp = calloc(n + 4, sizeof *envp);
    for (size_t i = 0; envp && i < n; i++) {
        envp[i] = environ[i];
    }
    for (size_t i = 0; envp && i < 3; i++) {
        envp[n + i] = extra[i];
    }
    return envp;
}

static ho_status spawn(ho_commands *c, struct run *run, char *const *argv, ho_err *err)
{
    int out[2] = {-1, -1}, words[2] = {-1, -1};
    char extra[3][64];
    snprintf(extra[0], sizeof extra[0], "HYPEROPT_TRIAL=%lld", (long long)run->trial);
    snprintf(extra[1], sizeof extra[1], "HYPEROPT_ATTEMPT=%d", run->attempt);
    snprintf(extra[2], sizeof extra[2], "HYPEROPT_SEED=%llu", (unsigned long long)run->seed);
    char **envp = make_environment(extra);
    run->out_line = calloc(1, sizeof *run->out_line);
    run->err_line = calloc(1, sizeof *run->err_line);
    ho_status rc = HO_OK;
    if (!envp || !run->out_line || !run->err_line || pipe2(out, O_CLOEXEC | O_NONBLOCK) != 0 ||
        pipe2(words, O_CLOEXEC | O_NONBLOCK) != 0) {
        rc = ho_err_set(err, HO_ENOMEM, "no pipe for %s: %s", argv[0], strerror(errno));
    } else {
        /* the program's ends block as usual */
        (void)fcntl(out[WRITE_END], F_SETFL, 0);
        (void)fcntl(words[WRITE_END], F_SETFL, 0);
        run->pid = fork();
        if (run->pid == 0) {
            run_child(c, argv, envp, out[WRITE_END], words[WRITE_END]);
        }
        if (run->pid < 0) {
            run->pid = 0;
            rc = ho_err_set(err, HO_ENOMEM, "cannot start %s: %s", argv[0], strerror(errno));
        }
    }
    if (rc == HO_OK) {
        (void)setpgid(run->pid, run->pid);
        run->out = out[READ_END];
        run->err = words[READ_END];
        run->started_ms = now_ms();
    } else {
        close_fd(&out[READ_END]);
        close_fd(&words[READ_END]);
    }
    close_fd(&out[WRITE_END]);
    close_fd(&words[WRITE_END]);
    free(envp);
    return rc;
}

static ho_status start(ho_commands *c, struct run *run, ho_err *err)
{
    const ho_settings *s = c->study->settings;
    char *argv[ARGUMENTS_MAX + 1] = {NULL};
    int n = ho_settings_list_count(s, HO_KEY_COMMAND_RUN);
    ho_status rc =
        n > ARGUMENTS_MAX
            ? ho_err_set(err, HO_EINVAL, "command.run has more than %d arguments", ARGUMENTS_MAX)
            : HO_OK;
    for (int i = 0; rc == HO_OK && i < n; i++) {
        argv[i] = fill_argument(&c->study->space, run->config,
                                ho_settings_list_str(s, HO_KEY_COMMAND_RUN, i));
        rc = argv[i] ? HO_OK : ho_err_set(err, HO_ENOMEM, "out of memory for the arguments");
    }
    if (rc == HO_OK) {
        rc = spawn(c, run, argv, err);
    }
    for (int i = 0; i < ARGUMENTS_MAX; i++) {
        free(argv[i]);
    }
    return rc;
}

/* ---- lines --------------------------------------------------------------------------------- */

/* One value for each objective: a number, a list, or an object by name. null and what is not finite
 * are undefined values. false: it does not fit. */
static bool read_values(const ho_study *study, const cJSON *json, double *out)
{
    int n = study->objective_count;
    if (cJSON_IsArray(json) && cJSON_GetArraySize(json) != n) {
        return false;
    }
    if (!cJSON_IsArray(json) && !cJSON_IsObject(json) && n != 1) {
        return false;
    }
    for (int i = 0; i < n; i++) {
        const cJSON *value = json;
        if (cJSON_IsArray(json)) {
            value = cJSON_GetArrayItem(json, i);
        } else if (cJSON_IsObject(json)) {
            value = cJSON_GetObjectItemCaseSensitive(json, study->objective[i].name);
        }
        if (cJSON_IsNumber(value)) {
            out[i] = isfinite(value->valuedouble) ? value->valuedouble : NAN;
        } else if (cJSON_IsNull(value)) {
            out[i] = NAN;
        } else {
            return false;
        }
    }
    return true;
}

static void take_message(ho_commands *c, struct run *run, const cJSON *json)
{
    double values[HO_WIRE_VALUES_MAX];
    const cJSON *result = cJSON_GetObjectItemCaseSensitive(json, "result");
    const cJSON *epoch = cJSON_GetObjectItemCaseSensitive(json, "epoch");
    const cJSON *value = cJSON_GetObjectItemCaseSensitive(json, "values");
    if (!value) {
        value = cJSON_GetObjectItemCaseSensitive(json, "value");
    }
    if (result) {
        run->has_result = read_values(c->study, result, run->result);
        if (!run->has_result) {
            snprintf(run->mistake, sizeof run->mistake,
                     "its result has not one number for each of %d objectives",
                     c->study->objective_count);
        }
    } else if (epoch && value) {
        if (!cJSON_IsNumber(epoch) || epoch->valuedouble < 1 || epoch->valuedouble > 1e9 ||
            (int32_t)epoch->valuedouble <= run->epoch || !read_values(c->study, value, values)) {
            ho_log(HO_LOG_WARN, "command", "report not understood trial=%lld",
                   (long long)run->trial);
            return;
        }
        run->epoch = (int32_t)epoch->valuedouble;
        c->sink.report(c->sink.user, run->trial, run->attempt, run->epoch, values,
                       c->study->objective_count);
    }
}

/* Python writes NaN, Infinity and -Infinity into its JSON, which are none: each becomes null, in
 * place. */
static void replace_undefined(char *text)
{
    static const char *const words[] = {"-Infinity", "Infinity", "NaN"};
    bool quoted = false;
    for (char *at = text; *at; at++) {
        if (*at == '"' && (at == text || at[-1] != '\\')) {
            quoted = !quoted;
        }
        for (size_t w = 0; !quoted && w < sizeof words / sizeof words[0]; w++) {
            size_t n = strlen(words[w]), short_by = n < 4 ? 4 - n : 0;
            if (strncmp(at, words[w], n) == 0) {
                memmove(at + n + short_by, at + n, strlen(at + n) + 1);
                memset(at, ' ', n + short_by);
                memcpy(at, "null", 4);
                break;
            }
        }
    }
}

/* The object in a line, or NULL. text [LINE_MAX_BYTES] may be changed. */
static cJSON *parse_line(char *text)
{
    cJSON *json = text[0] == '{' ? cJSON_Parse(text) : NULL;
    if (!json && text[0] == '{' &&
        strlen(text) < LINE_MAX_BYTES / 4 * 3) { /* NaN grows by a third */
        replace_undefined(text);
        json = cJSON_Parse(text);
    }
    return json;
}

static void take_line(ho_commands *c, struct run *run, bool is_error, char *text)
{
    if (is_error) {
        if (text[strspn(text, " \t\r")] != '\0') {
            snprintf(run->last_words, sizeof run->last_words, "%.*s", REASON_BYTES - 1, text);
        }
        ho_log(HO_LOG_DEBUG, "command", "trial=%lld stderr: %s", (long long)run->trial, text);
        return;
    }
    cJSON *json = parse_line(text);
    if (json) {
        take_message(c, run, json);
    } else if (text[0] == '{' && strstr(text, "\"result\"")) {
        snprintf(run->mistake, sizeof run->mistake, "its line is no JSON: %.100s", text);
    } else if (text[0] == '{' && strstr(text, "\"epoch\"")) {
        ho_log(HO_LOG_WARN, "command", "report is no JSON trial=%lld: %.100s",
               (long long)run->trial, text);
    }
    cJSON_Delete(json);
}

static void take_bytes(ho_commands *c, struct run *run, bool is_error, const char *bytes, size_t n)
{
    struct line *line = is_error ? run->err_line : run->out_line;
    for (size_t i = 0; i < n; i++) {
        if (bytes[i] == '\n') {
            line->text[line->length] = '\0';
            if (!line->too_long) {
                take_line(c, run, is_error, line->text);
            }
            line->length = 0;
            line->too_long = false;
        } else if (line->length + 1 < sizeof line->text) {
            line->text[line->length++] = bytes[i];
        } else {
            line->too_long = true;
        }
    }
}

static void read_fd(ho_commands *c, struct run *run, int *fd, bool is_error)
{
    char bytes[4096];
    for (int rounds = 0; *fd >= 0 && rounds < 64; rounds++) { /* a flood leaves room for others */
        ssize_t n = read(*fd, bytes, sizeof bytes);
        if (n > 0) {
            take_bytes(c, run, is_error, bytes, (size_t)n);
        } else if (n == 0) {
            take_bytes(c, run, is_error, "\n", 1); /* a last line without its break */
            close_fd(fd);
        } else if (errno != EINTR) {
            return; /* EAGAIN */
        }
    }
}

/* ---- ends ---------------------------------------------------------------------------------- */

static void fail(ho_commands *c, int i, ho_fail_class class_id, const char *reason)
{
    int64_t trial = c->run[i].trial;
    int32_t attempt = c->run[i].attempt;
    char text[HO_WIRE_TEXT];
    snprintf(text, sizeof text, "%s", reason);
    remove_run(c, i);
    c->sink.failed(c->sink.user, trial, attempt, class_id, text);
}

static void end_of_program(ho_commands *c, int i, int status)
{
    struct run *run = &c->run[i];
    char reason[HO_WIRE_TEXT];
    run->pid = 0;
    (void)read_fd(c, run, &run->out, false);
    (void)read_fd(c, run, &run->err, true);
    if (WIFSIGNALED(status)) {
        snprintf(reason, sizeof reason, "the command was ended by signal %d (%s)", WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
    } else if (WEXITSTATUS(status) != 0) {
        snprintf(reason, sizeof reason, "the command exited with %d%s%s", WEXITSTATUS(status),
                 run->last_words[0] ? ": " : "", run->last_words);
    } else if (run->mistake[0]) {
        snprintf(reason, sizeof reason, "the command gave no usable result: %s", run->mistake);
    } else if (!run->has_result) {
        snprintf(reason, sizeof reason,
                 "the command ended without a line {\"result\": ...} on standard output");
    } else {
        int64_t trial = run->trial;
        int32_t attempt = run->attempt, epoch = run->epoch;
        double result[HO_WIRE_VALUES_MAX];
        double seconds = (double)(now_ms() - run->started_ms) * 1e-3;
        memcpy(result, run->result, sizeof result);
        remove_run(c, i);
        c->sink.finished(c->sink.user, trial, attempt, epoch, seconds, result,
                         c->study->objective_count);
        return;
    }
    fail(c, i, HO_FAIL_COMMAND, reason);
}

/* Programs that have ended or are out of time. */
static void look_at_ends(ho_commands *c)
{
    const ho_settings *s = c->study->settings;
    double limit_s = ho_settings_has(s, HO_KEY_COMMAND_TIMEOUT)
                         ? ho_settings_f64(s, HO_KEY_COMMAND_TIMEOUT)
                         : INFINITY;
    for (int i = c->runs - 1; i >= 0; i--) {
        struct run *run = &c->run[i];
        int status = 0;
        if (run->pid <= 0) {
            continue;
        }
        if (waitpid(run->pid, &status, WNOHANG) == run->pid) {
            (void)kill(-run->pid, SIGKILL); /* children it left behind */
            end_of_program(c, i, status);
        } else if ((double)(now_ms() - run->started_ms) * 1e-3 > limit_s) {
            char reason[128];
            snprintf(reason, sizeof reason, "the command ran longer than %.0f s (command.timeout)",
                     limit_s);
            fail(c, i, HO_FAIL_TIMEOUT, reason);
        }
    }
}

static void start_waiting(ho_commands *c)
{
    for (int i = 0; i < c->runs && ho_commands_running(c) < c->slots; i++) {
        ho_err err = {0};
        if (c->run[i].pid == 0 && start(c, &c->run[i], &err) != HO_OK) {
            fail(c, i--, HO_FAIL_COMMAND, err.text);
        }
    }
}

bool ho_commands_step(ho_commands *c, int timeout_ms)
{
    start_waiting(c);
    struct pollfd *fd = calloc(2 * (size_t)c->runs + 1, sizeof *fd);
    nfds_t n = 0;
    for (int i = 0; fd && i < c->runs; i++) {
        if (c->run[i].pid > 0) {
            fd[n++] = (struct pollfd){.fd = c->run[i].out, .events = POLLIN}; /* -1: left out */
            fd[n++] = (struct pollfd){.fd = c->run[i].err, .events = POLLIN};
        }
    }
    if (n > 0) {
        (void)poll(fd, n, timeout_ms);
    }
    free(fd);
    for (int i = 0; i < c->runs; i++) {
        if (c->run[i].pid > 0) {
            read_fd(c, &c->run[i], &c->run[i].out, false);
            read_fd(c, &c->run[i], &c->run[i].err, true);
        }
    }
    look_at_ends(c);
    return c->runs > 0;
}

int ho_commands_running(const ho_commands *c)
{
    int n = 0;
    for (int i = 0; i < c->runs; i++) {
        n += c->run[i].pid > 0;
    }
    return n;
}

int ho_commands_list(const ho_commands *c, ho_command_state *out, int room)
{
    int n = c->runs < room ? c->runs : room;
    for (int i = 0; i < n; i++) {
        out[i] = (ho_command_state){
            .trial = c->run[i].trial, .attempt = c->run[i].attempt, .started = c->run[i].pid > 0};
    }
    return n;
}
