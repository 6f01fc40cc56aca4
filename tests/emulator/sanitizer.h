/* SPDX-License-Identifier: Apache-2.0
 * What the sanitizers have to be told. AddressSanitizer: which stack runs, and which memory nobody
 * may touch. ThreadSanitizer: which thread of a block runs, and who has waited for whom; it takes
 * each for a thread of its own. Empty without them. */
#ifndef HO_EMULATOR_SANITIZER_H
#define HO_EMULATOR_SANITIZER_H

#include <stddef.h>
#include <stdio.h>

#if defined(__SANITIZE_ADDRESS__)
#define HO_EMULATOR_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HO_EMULATOR_ASAN 1
#endif
#endif

#ifdef HO_EMULATOR_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

#ifdef HO_EMULATOR_TSAN /* these files themselves are compiled without it */
#include <sanitizer/tsan_interface.h>
extern "C" void __tsan_read_range(void *p, unsigned long bytes);
extern "C" void AnnotateIgnoreReadsBegin(const char *file, int line);
extern "C" void AnnotateIgnoreReadsEnd(const char *file, int line);
extern "C" void AnnotateIgnoreWritesBegin(const char *file, int line);
extern "C" void AnnotateIgnoreWritesEnd(const char *file, int line);
#endif

namespace ho_emu
{

#define FIBER_NAME "block at place %u, warp %u, lane %u"

struct fiber_stack {
    const void *bottom;
    size_t bytes;
    void *fake;  /* AddressSanitizer's stack of the fiber, while another runs */
    void *fiber; /* ThreadSanitizer's thread, made once for each thread of a block */
};

/* number: of the thread in the block that runs at `place`. */
static inline void fiber_stack_set(fiber_stack *s, const void *bottom, size_t bytes, unsigned place,
                                   unsigned number)
{
    s->bottom = bottom;
    s->bytes = bytes;
    s->fake = nullptr;
#ifdef HO_EMULATOR_TSAN
    if (!s->fiber) {
        char name[64];
        snprintf(name, sizeof name, FIBER_NAME, place, number / 32, number % 32);
        s->fiber = __tsan_create_fiber(0);
        __tsan_set_fiber_name(s->fiber, name);
    }
#else
    (void)place;
    (void)number;
#endif
}

/* The host's thread, which runs the fibers. */
static inline void fiber_stack_of_host(fiber_stack *s)
{
#ifdef HO_EMULATOR_TSAN
    s->fiber = __tsan_get_current_fiber();
#else
    (void)s;
#endif
}

/* Before a switch. from: NULL when it never runs again. */
static inline void fiber_leave(fiber_stack *from, const fiber_stack *to)
{
#ifdef HO_EMULATOR_ASAN
    __sanitizer_start_switch_fiber(from ? &from->fake : nullptr, to->bottom, to->bytes);
#elif defined(HO_EMULATOR_TSAN)
    (void)from;
    __tsan_switch_to_fiber(to->fiber, __tsan_switch_to_fiber_no_sync);
#else
    (void)from;
    (void)to;
#endif
}

/* After a switch, on the stack that runs now. me: NULL on a fiber's first entry. left: whose stack
 * ran before; the host's is known from here. */
static inline void fiber_enter(fiber_stack *me, fiber_stack *left)
{
#ifdef HO_EMULATOR_ASAN
    __sanitizer_finish_switch_fiber(me ? me->fake : nullptr, &left->bottom, &left->bytes);
#else
    (void)me;
    (void)left;
#endif
}

/* What the running thread did so far is done for whoever takes `meeting` after it. */
static inline void order_give(void *meeting)
{
#ifdef HO_EMULATOR_TSAN
    __tsan_release(meeting);
#else
    (void)meeting;
#endif
}

static inline void order_take(void *meeting)
{
#ifdef HO_EMULATOR_TSAN
    __tsan_acquire(meeting);
#else
    (void)meeting;
#endif
}

/* The running thread reads memory that an instruction of the whole warp reads for it. */
static inline void memory_read(const void *p, size_t bytes)
{
#ifdef HO_EMULATOR_TSAN
    __tsan_read_range(const_cast<void *>(p), bytes);
#else
    (void)p;
    (void)bytes;
#endif
}

/* Between them the emulator touches memory, which no thread of the block does. */
static inline void unseen_begin(void)
{
#ifdef HO_EMULATOR_TSAN
    AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
    AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
#endif
}

static inline void unseen_end(void)
{
#ifdef HO_EMULATOR_TSAN
    AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
    AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
#endif
}

static inline void memory_close(const void *p, size_t bytes)
{
#ifdef HO_EMULATOR_ASAN
    __asan_poison_memory_region(p, bytes);
#else
    (void)p;
    (void)bytes;
#endif
}

static inline void memory_open(const void *p, size_t bytes)
{
#ifdef HO_EMULATOR_ASAN
    __asan_unpoison_memory_region(p, bytes);
#else
    (void)p;
    (void)bytes;
#endif
}

} // namespace ho_emu

#endif
