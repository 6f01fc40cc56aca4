/* SPDX-License-Identifier: Apache-2.0
 * The runtime's calls: streams, graphs, events; and the queues of work behind them. */
#include "runtime.h"

using namespace ho_emu_runtime;

namespace ho_emu_runtime
{

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
    if (s == &the().default_stream && mine().captures > 0) {
        return cudaErrorStreamCaptureUnsupported;
    }
    flush_before(s);
    s->queue.push_back(std::move(w));
    return cudaSuccess;
}

bool forbidden(void)
{
    for (ho_emulator_stream *s : the().streams) {
        if (mine().captures > 0 && s->capture) {
            s->invalidated = true;
        }
    }
    return mine().captures > 0;
}

} // namespace ho_emu_runtime

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
    mine().captures++;
    return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph)
{
    const guard g(the().lock);
    *graph = NULL;
    if (!stream || !is_stream(stream) || !stream->capture) {
        return done(cudaErrorInvalidValue);
    }
    mine().captures--;
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
