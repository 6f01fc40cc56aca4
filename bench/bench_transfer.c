/* SPDX-License-Identifier: Apache-2.0
 * A data file from one real coordinator to workers that lack it, over tcp on this host: MB/s, the
 * coordinator's processor time, and by how much its memory grows meanwhile. Then a worker that
 * reads nothing asks for the file: what that costs. One line a figure. bench_transfer HYPEROPT
 * [WORKERS] [MB] HYPEROPT is the program; each of the WORKERS (1) takes all of the file (100 MB),
 * whose hash is checked afterwards. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "simulated.h"
#include "study/sha256.h"

typedef struct reader {
    sim_worker worker;
    uint8_t *file;
    uint64_t got, total;
    char sha256[65];
} reader;

static void die(const char *what)
{
    (void)fprintf(stderr, "bench_transfer: %s\n", what);
    _exit(1);
}

/* Empty lines make the file long and change nothing in it. */
static void lengthen(double mb)
{
    static char lines[1 << 20];
    memset(lines, '\n', sizeof lines);
    FILE *file = fopen("bars.csv", "a");
    for (double written = 0; file && written < mb * 1e6; written += sizeof lines) {
        if (fwrite(lines, 1, sizeof lines, file) != sizeof lines) {
            die("cannot write the file");
        }
    }
    if (!file || fclose(file) != 0) {
        die("cannot write the file");
    }
}

static void want(reader *r, const ho_msg_study *study)
{
    ho_message m = ho_message_make(HO_MSG_WANT);
    (void)snprintf(r->sha256, sizeof r->sha256, "%s", study->file[0].sha256);
    r->total = study->file[0].size;
    r->file = (uint8_t *)malloc(r->total);
    if (!r->file) {
        die("out of memory");
    }
    memset(r->file, 1, r->total); /* the kernel's work, before the clock runs */
    (void)snprintf(m.want.sha256, sizeof m.want.sha256, "%s", r->sha256);
    (void)sim_say(&r->worker, &m);
}

static void take_chunk(reader *r, const ho_msg_chunk *chunk)
{
    ho_message got = ho_message_make(HO_MSG_GOT);
    if (chunk->offset != r->got || chunk->count > r->total - r->got) {
        die("a chunk that is not due");
    }
    memcpy(r->file + r->got, chunk->bytes, chunk->count);
    r->got += chunk->count;
    got.got.ticket = chunk->ticket;
    (void)sim_say(&r->worker, &got);
}

/* One message of the coordinator's. */
static void hear(reader *r)
{
    ho_message m;
    int64_t bytes = 0;
    if (!sim_receive(&r->worker, &m, &bytes)) {
        return;
    }
    if (m.type == HO_MSG_STUDY) {
        want(r, &m.study);
    } else if (m.type == HO_MSG_CHUNK) {
        take_chunk(r, &m.chunk);
    } else if (m.type == HO_MSG_PING) {
        (void)sim_pong(&r->worker, m.ping.sequence);
    } else if (m.type == HO_MSG_REFUSE) {
        die(m.refuse.reason);
    }
    ho_message_clear(&m);
}

static void join(reader *r, const char *endpoint, int number)
{
    r->worker.socket = zsock_new_dealer(endpoint);
    if (!r->worker.socket) {
        die("no socket");
    }
    (void)sim_hello(&r->worker, number);
}

static void check(const reader *r)
{
    char found[HO_SHA256_TEXT];
    ho_sha256_bytes(r->file, r->total, found);
    if (strcmp(found, r->sha256) != 0) {
        die("the file that came is another");
    }
}

/* All readers, to the end of the file. */
static void transfer(reader *all, int count, const char *endpoint, pid_t coordinator)
{
    zmq_pollitem_t *item = (zmq_pollitem_t *)calloc((size_t)count, sizeof *item);
    double cpu0 = 0, cpu1 = 0, memory0 = 0, memory = 0, peak = 0, total = 0;
    int64_t begin = 0;
    bool done = false;
    if (!item) {
        die("out of memory");
    }
    sim_usage(coordinator, &cpu0, &memory0);
    for (int i = 0; i < count; i++) {
        join(&all[i], endpoint, i);
        item[i] =
            (zmq_pollitem_t){.socket = zsock_resolve(all[i].worker.socket), .events = ZMQ_POLLIN};
    }
    while (!done) {
        (void)zmq_poll(item, count, 1000);
        done = true;
        for (int i = 0; i < count; i++) {
            if (item[i].revents & ZMQ_POLLIN) {
                hear(&all[i]);
            }
            begin = begin == 0 && all[i].total > 0 ? sim_clock_ns() : begin;
            done = done && all[i].total > 0 && all[i].got == all[i].total;
        }
        sim_usage(coordinator, &cpu1, &memory);
        peak = memory > peak ? memory : peak;
    }
    double seconds = (double)(sim_clock_ns() - begin) * 1e-9;
    for (int i = 0; i < count; i++) {
        check(&all[i]);
        total += (double)all[i].total * 1e-6;
    }
    (void)printf("transfer workers=%d MB=%.0f seconds=%.3f MB/s=%.0f cpu_s=%.2f memory_MB=%+.0f\n",
                 count, total, seconds, total / seconds, cpu1 - cpu0, peak - memory0);
    free(item);
}

/* It asks again and again and reads nothing. */
static void stuck_reader(const reader *other, const char *endpoint, pid_t coordinator)
{
    enum { ASKS = 100, WAIT_US = 20000 };
    reader r = {0};
    double cpu = 0, before = 0, after = 0;
    ho_message m = ho_message_make(HO_MSG_WANT);
    sim_usage(coordinator, &cpu, &before);
    r.worker.socket = zsock_new(ZMQ_DEALER);
    zsock_set_rcvhwm(r.worker.socket, 1);
    if (zsock_connect(r.worker.socket, "%s", endpoint) != 0) {
        die("no socket");
    }
    (void)sim_hello(&r.worker, 1 << 20);
    (void)snprintf(m.want.sha256, sizeof m.want.sha256, "%s", other->sha256);
    for (int i = 0; i < ASKS; i++) {
        (void)sim_say(&r.worker, &m);
        (void)usleep(WAIT_US);
    }
    sim_usage(coordinator, &cpu, &after);
    (void)printf("stuck_reader asks=%d seconds=%.1f memory_MB=%+.0f\n", ASKS, ASKS * WAIT_US * 1e-6,
                 after - before);
    zsock_destroy(&r.worker.socket);
}

int main(int argc, char **argv)
{
    char folder[] = "/tmp/bench-transfer-XXXXXX", endpoint[128], command[96], program[4096];
    int count = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 1;
    double mb = argc > 3 ? strtod(argv[3], NULL) : 100.0;
    if (argc < 2 || count < 1 || !(mb > 0.0) || !realpath(argv[1], program)) {
        die("usage: bench_transfer HYPEROPT [WORKERS] [MB]");
    }
    if (!mkdtemp(folder) || chdir(folder) != 0) {
        die("cannot make a folder in /tmp");
    }
    zsys_handler_set(NULL);
    zsys_set_max_sockets(0);
    reader *all = (reader *)calloc((size_t)count, sizeof *all);
    if (!all) {
        die("out of memory");
    }
    sim_write_study(".", 6000, 4);
    lengthen(mb);
    pid_t coordinator = sim_start_coordinator(program, endpoint, sizeof endpoint);
    transfer(all, count, endpoint, coordinator);
    stuck_reader(&all[0], endpoint, coordinator);
    for (int i = 0; i < count; i++) {
        zsock_destroy(&all[i].worker.socket);
        free(all[i].file);
    }
    free(all);
    (void)kill(coordinator, SIGUSR1);
    (void)waitpid(coordinator, NULL, 0);
    (void)snprintf(command, sizeof command, "rm -r %s", folder);
    return system(command) == 0 ? 0 : 1;
}
