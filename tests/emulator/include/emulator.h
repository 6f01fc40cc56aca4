/* SPDX-License-Identifier: Apache-2.0
 * The emulator's machine: blocks one after another, a block's threads as fibers on one host thread.
 *
 * 1. A thread runs until it meets a barrier or a warp's joint instruction; then the next thread
 *    that can run, does. Without a joint instruction, threads are not interleaved.
 * 2. A barrier opens when all threads that have not returned are at it, and all at the same line;
 *    one of the first N threads when N are at it.
 * 3. A joint instruction of a warp (shuffle, vote, ldmatrix, mma) happens when all lanes of its
 *    mask that have not returned are at it; the last to arrive does the work of all.
 * 4. When no thread can run and none of 2 and 3 is met, the kernel would hang: the emulator prints
 *    who waits where, and aborts.
 * 5. HYPEROPT_EMULATOR_ORDER chooses the order in which threads take turns: 0 as numbered (the
 *    default), 1 the reverse, else the seed of a shuffle. Results that differ between orders show a
 *    missing barrier.
 * 6. Shared memory is filled with 0xff at a block's start, and its arrays have gaps between them
 *    which AddressSanitizer watches.
 * 7. To ThreadSanitizer every thread is one of its own, ordered by barriers, __syncwarp and a
 *    kernel's ends alone; neighbouring blocks run side by side. */
#ifndef HO_EMULATOR_H
#define HO_EMULATOR_H

#include <functional>
#include <stddef.h>
#include <stdint.h>
#include <tuple>

#include "emulator_types.h"

namespace ho_emu
{

/* ---- the running thread ---- */

struct pending_copy {
    void *to;
    const void *from; /* NULL: zeros */
    unsigned bytes;
};

struct thread;                /* execution.cpp */
extern uint3 *running_thread; /* threadIdx of the running thread */
extern uint3 block_index;
extern dim3 block_dim, grid_dim;

/* Lane of the running thread in its warp. */
unsigned lane(void);

/* Prints the kernel, block and thread, and aborts. */
[[noreturn]] void fault(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- meeting ---- */

enum barrier_kind { BARRIER, BARRIER_OR, BARRIER_AND, BARRIER_COUNT };

/* Meets the block's other threads; the joint result of `value`. */
int barrier(barrier_kind kind, int value, const char *file, int line);
enum { PARTIAL_BARRIERS = 16 };
/* bar.sync id, threads: opens when so many are at it; the others may be anywhere. */
void partial_barrier(unsigned id, unsigned threads, const char *file, int line);

/* One lane's part of a joint instruction of the warp's lanes in `mask`: `what` names the
 * instruction, `all` is called once with every lane's `mine` (NULL: not taking part). */
typedef void joint_work(void *const mine[32]);
/* orders: what the lanes did before is done for all of them, as after __syncwarp. */
void join(uint32_t mask, const char *what, void *mine, joint_work *all, bool orders = false);

/* A joint instruction reads shared memory for this lane. */
void touch(const void *p, size_t bytes);

/* ---- asynchronous copies: done as late as allowed, when the thread waits for them ---- */

/* 16 or 8 bytes; from NULL: zeros. */
void copy_later(void *to, const void *from, unsigned bytes = 16);
void copies_close(void);
void copies_wait(int pending);

/* ---- shared memory ---- */

void *dynamic_shared(void);
void *static_shared(const void *tag, size_t bytes, size_t align);
uint32_t shared_address(const void *p);
void *shared_pointer(uint32_t address, size_t bytes); /* checks the range */

/* ---- launches ---- */

struct launch {
    const char *name;
    const void *kernel;
    dim3 grid, block;
    size_t shared_bytes;
    std::function<void()> thread; /* what one thread runs */
};

/* Checks the launch and puts it on the stream; errors are left for cudaGetLastError. */
void enqueue(launch &&l, struct ho_emulator_stream *stream);
/* Runs it now: all blocks, one after the other. */
void execute(const launch &l);

template <typename... P> struct launching {
    launch l;
    void (*kernel)(P...);
    struct ho_emulator_stream *stream;

    launching(const char *name, void (*k)(P...)) : kernel(k), stream(nullptr)
    {
        l.name = name;
        l.kernel = (const void *)k;
    }

    launching &on(dim3 grid, dim3 block, size_t shared_bytes = 0,
                  struct ho_emulator_stream *s = nullptr)
    {
        l.grid = grid;
        l.block = block;
        l.shared_bytes = shared_bytes;
        stream = s;
        return *this;
    }

    /* Arguments are converted and copied now, as at a real launch. */
    template <typename... A> void run(A &&...args)
    {
        static_assert(sizeof...(A) == sizeof...(P), "arguments of a kernel");
        std::tuple<P...> held(static_cast<P>(args)...);
        l.thread = [k = kernel, held] { std::apply(k, held); };
        enqueue(std::move(l), stream);
    }
};

} // namespace ho_emu

#endif
