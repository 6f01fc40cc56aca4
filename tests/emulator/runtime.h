/* SPDX-License-Identifier: Apache-2.0
 * What the files of the emulated runtime share: runtime.cpp (errors, devices, launches),
 * memory.cpp, streams.cpp (streams, graphs, events).
 *
 * Every stream holds a queue of work that runs when somebody waits for it: a synchronisation, a
 * blocking copy, work on the default stream (which waits for streams without NonBlocking, as on a
 * device). So a host that reads too early, reads old bytes. One that only asks (cudaStreamQuery)
 * finds one piece of it done each time. */
#ifndef HO_EMULATOR_RUNTIME_H
#define HO_EMULATOR_RUNTIME_H

#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <stddef.h>
#include <vector>

#include "cuda_runtime.h"

typedef std::function<void()> work;

struct ho_emulator_graph {
    std::vector<work> nodes;
};

struct ho_emulator_graph_exec {
    std::vector<work> nodes;
};

struct ho_emulator_stream {
    std::deque<work> queue;
    bool blocking; /* waits for the default stream and it for this one */
    std::unique_ptr<ho_emulator_graph> capture;
    bool invalidated;
};

struct ho_emulator_event {
    ho_emulator_stream *stream; /* it was recorded on; NULL: done or never recorded */
    std::chrono::steady_clock::time_point time;
};

struct ho_emulator_pool {
    int device;
    size_t used, reserved, threshold; /* used <= reserved */
};

namespace ho_emu_runtime
{

struct allocation {
    size_t bytes;
    int device;             /* -1: pinned host memory */
    ho_emulator_pool *pool; /* NULL: cudaMalloc */
    std::vector<std::pair<char *, size_t>> guards;
};

/* Everything the calls share. */
struct runtime {
    std::recursive_mutex lock;
    std::map<char *, allocation> memory;
    std::set<ho_emulator_stream *> streams;
    std::set<ho_emulator_pool *> pools;
    ho_emulator_stream default_stream = {{}, true, nullptr, false};
    std::map<const void *, int> shared_limit; /* of kernels, beyond 48 KB */
    size_t kernels;                           /* that ran */
    bool lost;                                /* the context is gone */
};

runtime &the(void);

/* What each host thread has of its own. */
struct thread_state {
    cudaError_t last_error;
    int device;   /* the current one */
    int captures; /* begun by this thread */
};

thread_state &mine(void);

typedef std::lock_guard<std::recursive_mutex> guard;

/* Keeps an error for cudaGetLastError. */
cudaError_t done(cudaError_t error);

/* What a call answers when all that it had to do is done. */
cudaError_t ended(void);

int device_count(void);
size_t device_bytes(void);

/* What every wait does to the pools. */
void trim_all(void);

/* Runs what a stream, or every stream, has in its queue. */
void flush(ho_emulator_stream *s);
void flush_all(void);

/* The default stream and those that wait for it, before work of `s`. */
void flush_before(const ho_emulator_stream *s);

ho_emulator_stream *stream_of(cudaStream_t s); /* NULL: the default stream */
bool is_stream(const ho_emulator_stream *s);

/* Work into a stream's queue, or into the graph that it captures. */
cudaError_t put(cudaStream_t stream, work &&w);

/* A call that no capture of this thread allows: it spoils the capture. */
bool forbidden(void);

} // namespace ho_emu_runtime

#endif
