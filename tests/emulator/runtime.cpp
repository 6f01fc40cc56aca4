/* SPDX-License-Identifier: Apache-2.0
 * The runtime's calls: devices, memory, streams, graphs, events.
 *
 * Every stream holds a queue of work that runs when somebody waits for it: a synchronisation, a
 * blocking copy, work on the default stream (which waits for streams without NonBlocking, as on a
 * device). So a host that reads too early, reads old bytes. One that only asks (cudaStreamQuery)
 * finds one piece of it done each time. A memory pool holds what was freed, as reserved bytes,
 * until a wait finds more than its release threshold.
 * HYPEROPT_EMULATOR_DEVICES (1), HYPEROPT_EMULATOR_MEMORY_MB of each (1024),
 * HYPEROPT_EMULATOR_PROCESSORS of each (16), HYPEROPT_EMULATOR_SM (80, 75).
 * HYPEROPT_EMULATOR_FAULT=n: the n-th kernel of the process ends the context, as an illegal address
 * does: from there on nothing runs and calls answer so. */
#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <vector>

#include "cuda_runtime.h"
#include "sanitizer.h"

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

namespace
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

runtime &the(void)
{
    static runtime *r = new runtime(); /* outlives every static destructor */
    return *r;
}

thread_local cudaError_t last_error = cudaSuccess;
thread_local int current_device = 0;
thread_local int captures = 0; /* begun by this thread */

typedef std::lock_guard<std::recursive_mutex> guard;

cudaError_t done(cudaError_t error)
{
    if (error != cudaSuccess) {
        last_error = error;
    }
    return error;
}

size_t setting(const char *name, size_t otherwise)
{
    const char *text = getenv(name);
    return text && text[0] ? strtoul(text, NULL, 10) : otherwise;
}

/* Counts a kernel that is about to run; false: it cannot. */
bool kernel_may_run(void)
{
    static const size_t fault = setting("HYPEROPT_EMULATOR_FAULT", 0);
    the().lost = the().lost || ++the().kernels == fault;
    return !the().lost;
}

/* What a call answers when all that it had to do is done. */
cudaError_t ended(void)
{
    return done(the().lost ? cudaErrorIllegalAddress : cudaSuccess);
}

int device_count(void)
{
    return (int)setting("HYPEROPT_EMULATOR_DEVICES", 1);
}

int device_sm(void)
{
    return (int)setting("HYPEROPT_EMULATOR_SM", 80);
}

/* Shared memory that a block of the device may have. */
int shared_bytes(void)
{
    return (device_sm() < 80 ? 64 : 163) << 10;
}

size_t device_bytes(void)
{
    return setting("HYPEROPT_EMULATOR_MEMORY_MB", 1024) << 20;
}

size_t used_bytes(int device)
{
    size_t sum = 0;
    for (const auto &m : the().memory) {
        sum += m.second.device == device && !m.second.pool ? m.second.bytes : 0;
    }
    for (const ho_emulator_pool *p : the().pools) {
        sum += p->device == device ? p->reserved : 0;
    }
    return sum;
}

void trim(ho_emulator_pool *pool, size_t keep)
{
    const size_t least = keep > pool->used ? keep : pool->used;
    pool->reserved = pool->reserved < least ? pool->reserved : least;
}

/* What every wait does. */
void trim_all(void)
{
    for (ho_emulator_pool *p : the().pools) {
        trim(p, p->threshold);
    }
}

/* The allocation that holds all of [p, p + bytes), or NULL. */
std::pair<char *const, allocation> *holder(const void *p, size_t bytes)
{
    char *at = (char *)(uintptr_t)p;
    auto next = the().memory.upper_bound(at);
    if (next == the().memory.begin()) {
        return NULL;
    }
    auto &found = *std::prev(next);
    return at + bytes <= found.first + found.second.bytes ? &found : NULL;
}

bool on_device(const void *p)
{
    auto *h = holder(p, 0);
    return h && h->second.device >= 0 && (const char *)p < h->first + h->second.bytes;
}

/* Opens the guard zones of an allocation while the runtime itself reads or writes. */
struct opened {
    const allocation *of;
    explicit opened(const void *p) : of(NULL)
    {
        auto *h = holder(p, 0);
        if (h && !h->second.guards.empty()) {
            of = &h->second;
            for (const auto &g : of->guards) {
                ho_emu::memory_open(g.first, g.second);
            }
        }
    }
    ~opened()
    {
        for (size_t i = 0; of && i < of->guards.size(); i++) {
            ho_emu::memory_close(of->guards[i].first, of->guards[i].second);
        }
    }
    opened(const opened &) = delete;
};

void copy_now(void *to, const void *from, size_t bytes)
{
    const opened a(to), b(from);
    memmove(to, from, bytes);
}

void flush(ho_emulator_stream *s)
{
    while (!s->queue.empty()) {
        const work w = std::move(s->queue.front());
        s->queue.pop_front();
        w();
    }
}

void flush_all(void)
{
    flush(&the().default_stream);
    for (ho_emulator_stream *s : the().streams) {
        flush(s);
    }
}

/* The default stream and those that wait for it, before work of `s`. */
void flush_before(const ho_emulator_stream *s)
{
    if (s == &the().default_stream) {
        for (ho_emulator_stream *other : the().streams) {
            if (other->blocking && !other->capture) {
                flush(other);
            }
        }
    } else if (s->blocking) {
        flush(&the().default_stream);
    }
}

ho_emulator_stream *stream_of(cudaStream_t s)
{
    return s ? s : &the().default_stream;
}

bool is_stream(const ho_emulator_stream *s)
{
    return s == &the().default_stream ||
           the().streams.count(const_cast<ho_emulator_stream *>(s)) > 0;
}

cudaError_t put(cudaStream_t stream, work &&w)
{
    ho_emulator_stream *s = stream_of(stream);
    if (!is_stream(s)) {
        return cudaErrorInvalidResourceHandle;
    }
    if (s->capture) {
        s->capture->nodes.push_back(std::move(w));
        return cudaSuccess;
    }
    if (s == &the().default_stream && captures > 0) {
        return cudaErrorStreamCaptureUnsupported;
    }
    flush_before(s);
    s->queue.push_back(std::move(w));
    return cudaSuccess;
}

/* A call that no capture of this thread allows: it spoils the capture. */
bool forbidden(void)
{
    for (ho_emulator_stream *s : the().streams) {
        if (captures > 0 && s->capture) {
            s->invalidated = true;
        }
    }
    return captures > 0;
}

/* Whether the kind of a copy and where its ends lie agree, and both lie inside something. */
bool copy_is_valid(const void *to, const void *from, size_t bytes, cudaMemcpyKind kind)
{
    const bool to_device = on_device(to), from_device = on_device(from);
    const bool wants_to = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
    const bool wants_from = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
    if (kind != cudaMemcpyDefault && (to_device != wants_to || from_device != wants_from)) {
        return false;
    }
    return (!to_device || holder(to, bytes)) && (!from_device || holder(from, bytes));
}

bool is_pinned(const void *p, size_t bytes)
{
    auto *h = holder(p, bytes);
    return h && h->second.device < 0;
}

void *new_memory(size_t bytes, int device, ho_emulator_pool *pool = NULL)
{
    char *p = (char *)aligned_alloc(256, (bytes + 255) / 256 * 256);
    if (p) {
        memset(p, 0xff, bytes); /* fresh memory is not zero */
        the().memory[p] = {bytes, device, pool, {}};
    }
    return p;
}

void forget(std::map<char *, allocation>::iterator found)
{
    char *p = found->first;
    for (const auto &g : found->second.guards) {
        ho_emu::memory_open(g.first, g.second);
    }
    memset(p, 0xdd, found->second.bytes);
    the().memory.erase(found);
    free(p);
}

cudaError_t drop_memory(void *p, bool device)
{
    auto found = the().memory.find((char *)p);
    if (found == the().memory.end() || (found->second.device >= 0) != device ||
        found->second.pool) {
        return cudaErrorInvalidValue;
    }
    flush_all();
    forget(found);
    return cudaSuccess;
}

} // namespace

/* ---- errors ---- */

cudaError_t cudaGetLastError(void)
{
    const cudaError_t error = last_error;
    last_error = cudaSuccess;
    return error;
}

cudaError_t cudaPeekAtLastError(void)
{
    return last_error;
}

#define ERRORS(X)                                                                                  \
    X(cudaSuccess, "no error")                                                                     \
    X(cudaErrorInvalidValue, "invalid argument")                                                   \
    X(cudaErrorMemoryAllocation, "out of memory")                                                  \
    X(cudaErrorInvalidConfiguration, "invalid configuration argument")                             \
    X(cudaErrorInvalidDeviceFunction, "invalid device function")                                   \
    X(cudaErrorInvalidDevice, "invalid device ordinal")                                            \
    X(cudaErrorNoKernelImageForDevice, "no kernel image is available for the device")              \
    X(cudaErrorInvalidResourceHandle, "invalid resource handle")                                   \
    X(cudaErrorNotReady, "device not ready")                                                       \
    X(cudaErrorIllegalAddress, "an illegal memory access was encountered")                         \
    X(cudaErrorStreamCaptureUnsupported, "operation not permitted when stream is capturing")       \
    X(cudaErrorStreamCaptureInvalidated, "operation failed due to a previous error during "        \
                                         "capture")

const char *cudaGetErrorName(cudaError_t error)
{
    switch (error) {
#define NAME(code, text)                                                                           \
    case code:                                                                                     \
        return #code;
        ERRORS(NAME)
#undef NAME
    }
    return "unrecognized error code";
}

const char *cudaGetErrorString(cudaError_t error)
{
    switch (error) {
#define TEXT(code, text)                                                                           \
    case code:                                                                                     \
        return text;
        ERRORS(TEXT)
#undef TEXT
    }
    return "unrecognized error code";
}

/* ---- devices ---- */

cudaError_t cudaGetDeviceCount(int *count)
{
    *count = device_count();
    return cudaSuccess;
}

cudaError_t cudaSetDevice(int device)
{
    if (device < 0 || device >= device_count()) {
        return done(cudaErrorInvalidDevice);
    }
    current_device = device;
    return cudaSuccess;
}

cudaError_t cudaGetDevice(int *device)
{
    *device = current_device;
    return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp *prop, int device)
{
    if (device < 0 || device >= device_count()) {
        return done(cudaErrorInvalidDevice);
    }
    memset(prop, 0, sizeof *prop);
    snprintf(prop->name, sizeof prop->name, "CPU emulation");
    prop->uuid.bytes[15] = (char)device;
    prop->totalGlobalMem = device_bytes();
    prop->sharedMemPerBlock = 48 << 10;
    prop->sharedMemPerBlockOptin = (size_t)shared_bytes();
    prop->sharedMemPerMultiprocessor = (device_sm() < 80 ? 64 : 164) << 10;
    prop->major = device_sm() / 10;
    prop->minor = device_sm() % 10;
    prop->multiProcessorCount = (int)setting("HYPEROPT_EMULATOR_PROCESSORS", 16);
    prop->warpSize = 32;
    prop->maxThreadsPerBlock = 1024;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute, int device)
{
    if (device < 0 || device >= device_count()) {
        return done(cudaErrorInvalidDevice);
    }
    *value = attribute == cudaDevAttrMemoryPoolsSupported;
    return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int *version)
{
    *version = CUDART_VERSION;
    return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int *version)
{
    *version = CUDART_VERSION;
    return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize(void)
{
    const guard g(the().lock);
    if (forbidden()) {
        return done(cudaErrorStreamCaptureUnsupported);
    }
    flush_all();
    trim_all();
    return ended();
}

/* ---- memory ---- */

cudaError_t cudaMalloc(void **p, size_t bytes)
{
    const guard g(the().lock);
    *p = NULL;
    if (forbidden()) {
        return done(cudaErrorStreamCaptureUnsupported);
    }
    if (bytes == 0) {
        return cudaSuccess;
    }
    const size_t used = used_bytes(current_device);
    if (bytes > device_bytes() || used > device_bytes() - bytes) {
        return done(cudaErrorMemoryAllocation);
    }
    *p = new_memory(bytes, current_device);
    return done(*p ? cudaSuccess : cudaErrorMemoryAllocation);
}

cudaError_t cudaFree(void *p)
{
    const guard g(the().lock);
    if (forbidden()) {
        return done(cudaErrorStreamCaptureUnsupported);
    }
    return p ? done(drop_memory(p, true)) : cudaSuccess;
}

cudaError_t cudaMemPoolCreate(cudaMemPool_t *pool, const cudaMemPoolProps *props)
{
    const guard g(the().lock);
    *pool = NULL;
    if (props->allocType != cudaMemAllocationTypePinned ||
        props->location.type != cudaMemLocationTypeDevice || props->location.id < 0 ||
        props->location.id >= device_count()) {
        return done(cudaErrorInvalidValue);
    }
    *pool = new ho_emulator_pool{props->location.id, 0, 0, 0};
    the().pools.insert(*pool);
    return cudaSuccess;
}

/* CUDA keeps a pool with live memory until that is freed; here it is a fault. */
cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool)
{
    const guard g(the().lock);
    if (!the().pools.count(pool)) {
        return done(cudaErrorInvalidValue);
    }
    flush_all();
    if (pool->used > 0) {
        ho_emu::fault("cudaMemPoolDestroy: %zu bytes were never freed", pool->used);
    }
    the().pools.erase(pool);
    delete pool;
    return cudaSuccess;
}

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void *value)
{
    if (attribute != cudaMemPoolAttrReleaseThreshold) {
        return done(cudaErrorInvalidValue);
    }
    pool->threshold = *(const uint64_t *)value;
    return cudaSuccess;
}

cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void *value)
{
    const guard g(the().lock);
    *(uint64_t *)value = attribute == cudaMemPoolAttrReleaseThreshold     ? pool->threshold
                         : attribute == cudaMemPoolAttrReservedMemCurrent ? pool->reserved
                                                                          : pool->used;
    return cudaSuccess;
}

cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t keep)
{
    const guard g(the().lock);
    trim(pool, keep);
    return cudaSuccess;
}

cudaError_t cudaMallocFromPoolAsync(void **p, size_t bytes, cudaMemPool_t pool, cudaStream_t stream)
{
    const guard g(the().lock);
    *p = NULL;
    if (!is_stream(stream_of(stream)) || !the().pools.count(pool) || bytes == 0) {
        return done(cudaErrorInvalidValue);
    }
    if (stream_of(stream)->capture || forbidden()) { /* CUDA would make it a node of the graph */
        return done(cudaErrorStreamCaptureUnsupported);
    }
    const size_t others = used_bytes(pool->device) - pool->reserved;
    if (bytes > device_bytes() || others + pool->used > device_bytes() - bytes) {
        return done(cudaErrorMemoryAllocation);
    }
    *p = new_memory(bytes, pool->device, pool);
    if (!*p) {
        return done(cudaErrorMemoryAllocation);
    }
    pool->used += bytes;
    pool->reserved = pool->reserved < pool->used ? pool->used : pool->reserved;
    return cudaSuccess;
}

cudaError_t cudaFreeAsync(void *p, cudaStream_t stream)
{
    const guard g(the().lock);
    auto found = the().memory.find((char *)p);
    if (found == the().memory.end() || !found->second.pool) {
        return done(cudaErrorInvalidValue);
    }
    return done(put(stream, [=] {
        auto freed = the().memory.find((char *)p);
        if (freed == the().memory.end()) {
            ho_emu::fault("cudaFreeAsync: %p was freed before", p);
        }
        freed->second.pool->used -= freed->second.bytes;
        forget(freed);
    }));
}

cudaError_t cudaMallocHost(void **p, size_t bytes)
{
    const guard g(the().lock);
    *p = forbidden() ? NULL : new_memory(bytes, -1);
    return done(*p ? cudaSuccess : cudaErrorMemoryAllocation);
}

cudaError_t cudaFreeHost(void *p)
{
    const guard g(the().lock);
    return p ? done(drop_memory(p, false)) : cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total)
{
    const guard g(the().lock);
    const size_t used = used_bytes(current_device);
    *total = device_bytes();
    *free_bytes = used < *total ? *total - used : 0;
    return cudaSuccess;
}

void ho_emulator_guard(void *p, size_t bytes)
{
    const guard g(the().lock);
    auto *h = holder(p, bytes);
    if (!h) {
        ho_emu::fault("a guard zone outside of every allocation");
    }
    h->second.guards.emplace_back((char *)p, bytes);
    ho_emu::memory_close(p, bytes);
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, cudaMemcpyKind kind)
{
    const guard g(the().lock);
    if (forbidden()) {
        return done(cudaErrorStreamCaptureUnsupported);
    }
    if (bytes == 0) {
        return cudaSuccess;
    }
    if (!copy_is_valid(to, from, bytes, kind)) {
        return done(cudaErrorInvalidValue);
    }
    flush_before(&the().default_stream);
    flush(&the().default_stream);
    copy_now(to, from, bytes);
    return ended();
}

cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch,
                              size_t width, size_t height, cudaMemcpyKind kind, cudaStream_t stream)
{
    for (size_t row = 0; row < height; row++) {
        const cudaError_t error =
            cudaMemcpyAsync((char *)to + row * to_pitch, (const char *)from + row * from_pitch,
                            width, kind, stream);
        if (error != cudaSuccess) {
            return error;
        }
    }
    return cudaSuccess;
}

/* Pageable host memory is read before the call returns and written before it returns, as on a
 * device; pinned memory when the copy runs. */
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream)
{
    const guard g(the().lock);
    if (bytes == 0) {
        return cudaSuccess;
    }
    if (!copy_is_valid(to, from, bytes, kind)) {
        return done(cudaErrorInvalidValue);
    }
    ho_emulator_stream *s = stream_of(stream);
    cudaError_t error;
    if (!s->capture && !on_device(from) && !is_pinned(from, bytes)) {
        const std::vector<char> staged((const char *)from, (const char *)from + bytes);
        error = put(stream, [=] { copy_now(to, staged.data(), bytes); });
    } else {
        error = put(stream, [=] { copy_now(to, from, bytes); });
    }
    if (error == cudaSuccess && !s->capture && !on_device(to) && !is_pinned(to, bytes)) {
        flush(s);
    }
    return done(error);
}

cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t stream)
{
    const guard g(the().lock);
    if (bytes == 0) {
        return cudaSuccess;
    }
    if (!on_device(to) || !holder(to, bytes)) {
        return done(cudaErrorInvalidValue);
    }
    return done(put(stream, [=] {
        const opened o(to);
        memset(to, value, bytes);
    }));
}

cudaError_t cudaMemset(void *to, int value, size_t bytes)
{
    return cudaMemsetAsync(to, value, bytes, NULL);
}

/* ---- streams ---- */

cudaError_t cudaStreamCreate(cudaStream_t *stream)
{
    return cudaStreamCreateWithFlags(stream, cudaStreamDefault);
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags)
{
    const guard g(the().lock);
    *stream = new ho_emulator_stream{{}, (flags & cudaStreamNonBlocking) == 0, nullptr, false};
    the().streams.insert(*stream);
    return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    const guard g(the().lock);
    if (!stream || !is_stream(stream)) {
        return done(cudaErrorInvalidResourceHandle);
    }
    flush(stream);
    the().streams.erase(stream);
    delete stream;
    return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    const guard g(the().lock);
    ho_emulator_stream *s = stream_of(stream);
    if (!is_stream(s)) {
        return done(cudaErrorInvalidResourceHandle);
    }
    if (s->capture || forbidden()) {
        s->invalidated = s->capture != nullptr;
        return done(cudaErrorStreamCaptureUnsupported);
    }
    flush_before(s);
    flush(s);
    trim_all();
    return ended();
}

/* Who asks lets time pass: one piece of work is done before the next question. */
cudaError_t cudaStreamQuery(cudaStream_t stream)
{
    const guard g(the().lock);
    ho_emulator_stream *s = stream_of(stream);
    if (s->queue.empty()) {
        return cudaSuccess;
    }
    const work w = std::move(s->queue.front());
    s->queue.pop_front();
    w();
    return cudaErrorNotReady;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags)
{
    (void)flags;
    return done(put(stream, [=] { cudaEventSynchronize(event); }));
}

/* ---- graphs ---- */

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode)
{
    const guard g(the().lock);
    (void)mode; /* the strictest of this thread: calls that would wait are refused */
    if (!stream || !is_stream(stream)) {
        return done(cudaErrorInvalidResourceHandle);
    }
    if (stream->capture) {
        return done(cudaErrorInvalidValue);
    }
    stream->capture.reset(new ho_emulator_graph);
    stream->invalidated = false;
    captures++;
    return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph)
{
    const guard g(the().lock);
    *graph = NULL;
    if (!stream || !is_stream(stream) || !stream->capture) {
        return done(cudaErrorInvalidValue);
    }
    captures--;
    std::unique_ptr<ho_emulator_graph> made = std::move(stream->capture);
    if (stream->invalidated) {
        return done(cudaErrorStreamCaptureInvalidated);
    }
    *graph = made.release();
    return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long flags)
{
    (void)flags;
    *exec = new ho_emulator_graph_exec{graph->nodes};
    return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream)
{
    const guard g(the().lock);
    for (const work &w : exec->nodes) {
        const cudaError_t error = put(stream, work(w));
        if (error != cudaSuccess) {
            return done(error);
        }
    }
    return ended();
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec)
{
    delete exec;
    return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
    delete graph;
    return cudaSuccess;
}

/* ---- events ---- */

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags)
{
    (void)flags;
    *event = new ho_emulator_event();
    return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t *event)
{
    return cudaEventCreateWithFlags(event, cudaEventDefault);
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    const guard g(the().lock);
    ho_emulator_stream *s = stream_of(stream);
    event->stream = s->capture ? NULL : s;
    return done(put(stream, [=] {
        event->time = std::chrono::steady_clock::now();
        event->stream = NULL;
    }));
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    const guard g(the().lock);
    while (event->stream && !event->stream->queue.empty()) {
        const work w = std::move(event->stream->queue.front());
        event->stream->queue.pop_front();
        w();
    }
    return cudaSuccess;
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t from, cudaEvent_t to)
{
    *ms = std::chrono::duration<float, std::milli>(to->time - from->time).count();
    return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    if (event) {
        cudaEventSynchronize(event);
        delete event;
    }
    return cudaSuccess;
}

/* ---- launches ---- */

cudaError_t ho_emulator_function_attribute(const void *kernel, cudaFuncAttribute attribute,
                                           int value)
{
    const guard g(the().lock);
    if (attribute == cudaFuncAttributeMaxDynamicSharedMemorySize) {
        if (value < 0 || value > shared_bytes()) {
            return done(cudaErrorInvalidValue);
        }
        the().shared_limit[kernel] = value;
    }
    return cudaSuccess;
}

cudaError_t ho_emulator_image(int sm)
{
    return done(sm <= device_sm() ? cudaSuccess : cudaErrorNoKernelImageForDevice);
}

void ho_emu::enqueue(launch &&l, ho_emulator_stream *stream)
{
    const guard g(the().lock);
    const auto limit = the().shared_limit.find(l.kernel);
    const size_t shared = limit == the().shared_limit.end() ? 48u << 10 : (size_t)limit->second;
    const dim3 b = l.block, d = l.grid;
    const bool fits = (size_t)b.x * b.y * b.z >= 1 && (size_t)b.x * b.y * b.z <= 1024 &&
                      b.z <= 64 && d.x >= 1 && d.x <= 0x7fffffffu && d.y >= 1 && d.y <= 65535 &&
                      d.z >= 1 && d.z <= 65535;
    if (!fits) {
        done(cudaErrorInvalidConfiguration);
    } else if (l.shared_bytes > shared) {
        done(cudaErrorInvalidValue);
    } else {
        done(put(stream, [held = std::move(l)] {
            if (kernel_may_run()) {
                execute(held);
            }
        }));
    }
}
