/* SPDX-License-Identifier: Apache-2.0
 * The runtime's calls: device memory, pools, pinned memory, copies. A memory pool holds what was
 * freed, as reserved bytes, until a wait finds more than its release threshold. */
#include <stdlib.h>
#include <string.h>

#include "runtime.h"
#include "sanitizer.h"

using namespace ho_emu_runtime;

namespace
{

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

void ho_emu_runtime::trim_all(void)
{
    for (ho_emulator_pool *p : the().pools) {
        trim(p, p->threshold);
    }
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
    const size_t used = used_bytes(mine().device);
    if (bytes > device_bytes() || used > device_bytes() - bytes) {
        return done(cudaErrorMemoryAllocation);
    }
    *p = new_memory(bytes, mine().device);
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
    const size_t used = used_bytes(mine().device);
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
