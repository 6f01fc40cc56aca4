/* SPDX-License-Identifier: Apache-2.0
 * What AddressSanitizer has to be told: which stack runs, and which memory nobody may touch. Empty
 * without it. */
#ifndef HO_EMULATOR_SANITIZER_H
#define HO_EMULATOR_SANITIZER_H

#include <stddef.h>

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

namespace ho_emu
{

struct fiber_stack {
    const void *bottom;
    size_t bytes;
    void *fake; /* AddressSanitizer's stack of the fiber, while another runs */
};

static inline fiber_stack fiber_stack_of(const void *bottom, size_t bytes)
{
    return {bottom, bytes, nullptr};
}

/* Before a switch. from: NULL when it never runs again. */
static inline void fiber_leave(fiber_stack *from, const fiber_stack *to)
{
#ifdef HO_EMULATOR_ASAN
    __sanitizer_start_switch_fiber(from ? &from->fake : nullptr, to->bottom, to->bytes);
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
