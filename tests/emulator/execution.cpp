/* SPDX-License-Identifier: Apache-2.0
 * Runs kernels: fibers, barriers, a warp's joint instructions, shared memory. The rules are in
 * emulator.h. A fiber switch is Boost's jump_fcontext, some nanoseconds and no system call. */
#include <algorithm>
#include <boost/context/detail/fcontext.hpp>
#include <mutex>
#include <random>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

#include "cuda_runtime.h"
#include "sanitizer.h"

namespace ctx = boost::context::detail;

namespace ho_emu
{

enum {
    THREADS_MAX = 1024,
    WARP = 32,
    STACK_BYTES = 256 << 10,
    STATIC_SHARED_BYTES = 48 << 10,   /* of all arrays together, as nvcc's limit */
    DYNAMIC_SHARED_BYTES = 228 << 10, /* the largest block of compute capability 9.0 */
    STATIC_ROOM = 128 << 10,          /* with the gaps between them */
    ARENA_BYTES = STATIC_ROOM + DYNAMIC_SHARED_BYTES + 4096,
    GAP_BYTES = 64,
};

enum wait_reason { RUNS, AT_BARRIER, AT_PARTIAL_BARRIER, IN_WARP, RETURNED };

struct thread {
    uint3 index;
    unsigned lane, warp; /* of the thread's number in the block */
    wait_reason wait;
    const char *what, *file; /* of the barrier or the joint instruction it waits at */
    int line;
    uint32_t mask;
    void *mine;
    barrier_kind kind;
    int value;
    unsigned partial;                 /* the partial barrier it waits at */
    std::vector<pending_copy> copies; /* of cp.async, oldest first */
    std::vector<size_t> groups;       /* how many copies each closed group has, oldest first */
    size_t grouped;                   /* sum of groups */
    ctx::fcontext_t context;
    char *stack; /* its low end */
    fiber_stack sanitizer;
};

/* Who leaves comes after all that was done by those who came: for ThreadSanitizer. Two places in
 * turn, as the first may come to the next meeting before the last has left this one. */
struct meeting {
    char place[2];
    unsigned turn;
    uint32_t mask; /* of a warp's lanes, else 0 */
};

enum { MASKS_MAX = 64 };

struct warp_state {
    thread *lane[WARP]; /* NULL: the block ends before */
    uint32_t waiting;   /* lanes in a joint instruction */
    uint32_t running;   /* lanes that have not returned */
    meeting lanes[MASKS_MAX];
};

struct shared_array {
    const void *tag;
    size_t at;
};

/* Where a block runs. One after the other of a launch has the other place, so that ThreadSanitizer
 * takes neighbours for what they are on a device: side by side. */
struct block_place {
    thread threads[THREADS_MAX];
    char *shared;
    char begun, ended; /* who waited: for the block to begin, to end */
};

/* Threads take turns in the order of `slot`; ready[w] has a bit for each that can run. */
static struct machine {
    const launch *run;
    thread *slot[THREADS_MAX];
    uint32_t ready[THREADS_MAX / WARP];
    warp_state warp[THREADS_MAX / WARP];
    unsigned slots, warps, live, at_barrier;
    unsigned at_partial[PARTIAL_BARRIERS]; /* threads there */
    meeting all, partial[PARTIAL_BARRIERS];
    thread *current;
    thread main; /* the host's side */
    struct block_place place[2], *here;
    thread *pool;               /* here->threads */
    char *arena;                /* here->shared */
    unsigned turn[THREADS_MAX]; /* slot of pool[i] */
    std::vector<shared_array> arrays;
    size_t static_used, static_bytes;
    unsigned order;
    std::mt19937 shuffle;
} machine;

uint3 *running_thread;
uint3 block_index;
dim3 block_dim, grid_dim;

/* ---- faults ---- */

static const char *place_of(const char *file)
{
    const char *slash = file ? strrchr(file, '/') : NULL;
    return slash ? slash + 1 : file ? file : "?";
}

static void print_waits(void)
{
    for (unsigned i = 0; i < machine.slots; i++) {
        const thread *t = &machine.pool[i];
        const thread *before = i > 0 ? &machine.pool[i - 1] : NULL;
        if (before && before->wait == t->wait && before->line == t->line &&
            before->what == t->what && before->mask == t->mask) {
            continue; /* one line for neighbours that do the same */
        }
        fprintf(stderr, "  from thread %u (%u, %u, %u) on: ", i, t->index.x, t->index.y,
                t->index.z);
        if (t->wait == AT_BARRIER || t->wait == AT_PARTIAL_BARRIER) {
            fprintf(stderr, "at the barrier of %s:%d\n", place_of(t->file), t->line);
        } else if (t->wait == IN_WARP) {
            fprintf(stderr, "in %s of lanes %08x\n", t->what, t->mask);
        } else {
            fprintf(stderr, t->wait == RUNS ? "running\n" : "returned\n");
        }
    }
}

void fault(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fprintf(stderr, "emulator: kernel %s, block (%u, %u, %u)",
            machine.run ? machine.run->name : "-", block_index.x, block_index.y, block_index.z);
    if (running_thread) {
        fprintf(stderr, ", thread (%u, %u, %u)", running_thread->x, running_thread->y,
                running_thread->z);
    }
    fprintf(stderr, ": ");
    vfprintf(stderr, format, args);
    fprintf(stderr, "\n");
    va_end(args);
    if (machine.run) {
        print_waits();
    }
    abort();
}

/* ---- fibers ---- */

static void switch_to(thread *to, bool for_good = false)
{
    thread *from = machine.current;
    machine.current = to;
    running_thread = to == &machine.main ? NULL : &to->index;
    fiber_leave(for_good ? NULL : &from->sanitizer, &to->sanitizer);
    const ctx::transfer_t t = ctx::jump_fcontext(to->context, from);
    thread *left = (thread *)t.data;
    fiber_enter(&from->sanitizer, &left->sanitizer);
    left->context = t.fctx;
}

static thread *take_ready(unsigned warp)
{
    const int bit = __builtin_ctz(machine.ready[warp]);
    machine.ready[warp] &= machine.ready[warp] - 1;
    return machine.slot[warp * WARP + (unsigned)bit];
}

static void make_ready(thread *t)
{
    const unsigned slot = machine.turn[t - machine.pool];
    t->wait = RUNS;
    machine.ready[slot / WARP] |= 1u << slot % WARP;
}

/* Opens the barrier when everybody is there. */
static bool open_barrier(void)
{
    if (machine.live == 0 || machine.at_barrier != machine.live) {
        return false;
    }
    const thread *first = NULL;
    int any = 0, all = 1, count = 0;
    for (unsigned i = 0; i < machine.slots; i++) {
        const thread *t = &machine.pool[i];
        if (t->wait != AT_BARRIER) {
            continue;
        }
        first = first ? first : t;
        if (t->line != first->line || strcmp(t->file, first->file) != 0 || t->kind != first->kind) {
            running_thread = NULL;
            fault("threads meet at different barriers");
        }
        any |= t->value;
        all &= t->value;
        count += t->value;
    }
    for (unsigned i = 0; i < machine.slots; i++) {
        thread *t = &machine.pool[i];
        if (t->wait == AT_BARRIER) {
            t->value = t->kind == BARRIER_OR ? any : t->kind == BARRIER_AND ? all : count;
            make_ready(t);
        }
    }
    machine.at_barrier = 0;
    machine.all.turn++;
    return true;
}

/* The thread whose turn it is: of the same warp first, then the warps after it. */
static thread *next_thread(unsigned warp)
{
    for (;;) {
        for (unsigned i = 0; i < machine.warps; i++) {
            const unsigned w = (warp + i) % machine.warps;
            if (machine.ready[w]) {
                return take_ready(w);
            }
        }
        if (machine.live == 0) {
            return &machine.main;
        }
        if (!open_barrier()) {
            running_thread = NULL;
            fault("threads wait for one another: the kernel would hang");
        }
    }
}

static unsigned slot_warp(const thread *t)
{
    return machine.turn[t - machine.pool] / WARP;
}

static void wait_turn(void)
{
    thread *to = next_thread(slot_warp(machine.current));
    if (to != machine.current) {
        switch_to(to);
    }
}

/* ---- meeting ---- */

static void *meet(meeting *m)
{
    void *place = &m->place[m->turn % 2];
    order_give(place);
    return place;
}

int barrier(barrier_kind kind, int value, const char *file, int line)
{
    thread *t = machine.current;
    t->wait = AT_BARRIER;
    t->kind = kind;
    t->value = value;
    t->file = file;
    t->line = line;
    machine.at_barrier++;
    void *place = meet(&machine.all);
    wait_turn();
    order_take(place);
    return t->value;
}

void partial_barrier(unsigned id, unsigned threads, const char *file, int line)
{
    thread *t = machine.current;
    t->wait = AT_PARTIAL_BARRIER;
    t->partial = id;
    t->file = file;
    t->line = line;
    machine.at_partial[id]++;
    void *place = meet(&machine.partial[id]);
    if (machine.at_partial[id] > threads) {
        fault("more than %u threads meet at their barrier", threads);
    }
    if (machine.at_partial[id] == threads) {
        for (unsigned i = 0; i < machine.slots; i++) {
            thread *other = &machine.pool[i];
            if (other->wait == AT_PARTIAL_BARRIER && other->partial == id) {
                make_ready(other);
            }
        }
        machine.at_partial[id] = 0;
        machine.partial[id].turn++;
    }
    wait_turn();
    order_take(place);
}

static meeting *lanes_of(warp_state *w, uint32_t mask)
{
    for (meeting &m : w->lanes) {
        if (m.mask == mask || m.mask == 0) {
            m.mask = mask;
            return &m;
        }
    }
    fault("a warp's lanes meet by more than %d masks", (int)MASKS_MAX);
}

/* Does the joint instruction that lane `t` waits in, once all its lanes are there. */
static bool finish_join(warp_state *w, const thread *t, joint_work *all)
{
    const uint32_t need = t->mask & w->running;
    if ((w->waiting & need) != need) {
        return false;
    }
    void *mine[WARP];
    for (unsigned i = 0; i < WARP; i++) {
        mine[i] = NULL;
        if (need >> i & 1) {
            const thread *other = w->lane[i];
            if (other->mask != t->mask) {
                return false; /* it meets others first */
            }
            if (other->what != t->what && strcmp(other->what, t->what) != 0) {
                fault("lane %u is in %s, lane %u in %s", t->lane, t->what, i, other->what);
            }
            mine[i] = other->mine;
        }
    }
    unseen_begin();
    all(mine);
    unseen_end();
    lanes_of(w, t->mask)->turn++;
    w->waiting &= ~need;
    for (unsigned i = 0; i < WARP; i++) {
        if (need >> i & 1) {
            if (w->lane[i] != machine.current) {
                make_ready(w->lane[i]);
            } else {
                w->lane[i]->wait = RUNS;
            }
        }
    }
    return true;
}

/* Lanes whose partners may have returned since they came need to know how to finish. */
static joint_work *work_of[THREADS_MAX];

void join(uint32_t mask, const char *what, void *mine, joint_work *all, bool orders)
{
    thread *t = machine.current;
    warp_state *w = &machine.warp[t->warp];
    if (!(mask >> t->lane & 1)) {
        fault("%s of lanes %08x, called by lane %u", what, mask, t->lane);
    }
    t->wait = IN_WARP;
    t->what = what;
    t->mask = mask;
    t->mine = mine;
    work_of[t - machine.pool] = all;
    w->waiting |= 1u << t->lane;
    void *place = orders ? meet(lanes_of(w, mask)) : NULL;
    if (!finish_join(w, t, all)) {
        wait_turn();
    }
    if (orders) {
        order_take(place);
    }
}

unsigned lane(void)
{
    return machine.current->lane;
}

void touch(const void *p, size_t bytes)
{
    memory_read(p, bytes);
}

/* ---- asynchronous copies ---- */

void copy_later(void *to, const void *from, unsigned bytes)
{
    if ((uintptr_t)to % bytes != 0 || (uintptr_t)from % bytes != 0) {
        fault("cp.async: an address is no multiple of %u", bytes);
    }
    machine.current->copies.push_back({to, from, bytes});
}

void copies_close(void)
{
    thread *t = machine.current;
    t->groups.push_back(t->copies.size() - t->grouped);
    t->grouped = t->copies.size();
}

void copies_wait(int pending)
{
    thread *t = machine.current;
    size_t done = 0, groups = 0;
    while (t->groups.size() - groups > (size_t)pending) {
        done += t->groups[groups++];
    }
    for (size_t i = 0; i < done; i++) {
        if (t->copies[i].from) {
            memcpy(t->copies[i].to, t->copies[i].from, t->copies[i].bytes);
        } else {
            memset(t->copies[i].to, 0, t->copies[i].bytes);
        }
    }
    t->copies.erase(t->copies.begin(), t->copies.begin() + (ptrdiff_t)done);
    t->groups.erase(t->groups.begin(), t->groups.begin() + (ptrdiff_t)groups);
    t->grouped -= done;
}

/* ---- shared memory ---- */

void *dynamic_shared(void)
{
    return machine.arena + STATIC_ROOM;
}

void *static_shared(const void *tag, size_t bytes, size_t align)
{
    for (const shared_array &a : machine.arrays) {
        if (a.tag == tag) {
            return machine.arena + a.at;
        }
    }
    align = std::max<size_t>(align, 8);
    const size_t at = (machine.static_used + align - 1) / align * align;
    machine.static_bytes += bytes;
    if (machine.static_bytes > STATIC_SHARED_BYTES || at + bytes + GAP_BYTES > STATIC_ROOM) {
        fault("%zu bytes of static shared memory; a block may have %d", machine.static_bytes,
              (int)STATIC_SHARED_BYTES);
    }
    machine.arrays.push_back({tag, at});
    machine.static_used = at + bytes + GAP_BYTES;
    memory_open(machine.arena + at, bytes);
    unseen_begin();
    memset(machine.arena + at, 0xff, bytes);
    unseen_end();
    return machine.arena + at;
}

uint32_t shared_address(const void *p)
{
    const char *at = (const char *)p;
    if (at < machine.arena || at >= machine.arena + ARENA_BYTES) {
        fault("%p is no address of shared memory", p);
    }
    return (uint32_t)(at - machine.arena);
}

void *shared_pointer(uint32_t address, size_t bytes)
{
    const size_t end = STATIC_ROOM + machine.run->shared_bytes;
    if (address + bytes > end) {
        fault("shared address %u + %zu bytes, behind the block's %zu bytes", address, bytes, end);
    }
    return machine.arena + address;
}

static void open_shared(void)
{
    machine.arrays.clear();
    machine.static_used = GAP_BYTES;
    machine.static_bytes = 0;
    memory_close(machine.arena, ARENA_BYTES);
    memory_open(machine.arena + STATIC_ROOM, machine.run->shared_bytes);
    memset(machine.arena + STATIC_ROOM, 0xff, machine.run->shared_bytes);
}

/* ---- blocks ---- */

static void thread_main(ctx::transfer_t t)
{
    thread *left = (thread *)t.data, *me = machine.current;
    fiber_enter(NULL, &left->sanitizer);
    left->context = t.fctx;
    order_take(&machine.here->begun);
    machine.run->thread();
    copies_wait(0); /* what was started and never waited for happens in the end */
    order_give(&machine.here->ended);
    me->wait = RETURNED;
    warp_state *w = &machine.warp[me->warp];
    w->running &= ~(1u << me->lane);
    machine.live--;
    for (unsigned i = 0; i < WARP; i++) { /* whoever waited for this lane only */
        if (w->waiting >> i & 1) {
            finish_join(w, w->lane[i], work_of[w->lane[i] - machine.pool]);
        }
    }
    switch_to(next_thread(slot_warp(me)), true);
    abort(); /* nobody comes back */
}

static void *map_memory(size_t bytes)
{
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                   -1, 0);
    if (p == MAP_FAILED) {
        perror("emulator: mmap");
        abort();
    }
    return p;
}

static void set_up(void)
{
    if (machine.current) {
        return;
    }
    machine.place[0].shared = (char *)map_memory(ARENA_BYTES);
    machine.place[1].shared = (char *)map_memory(ARENA_BYTES);
    machine.current = &machine.main;
}

static void choose_order(void)
{
    unsigned warps[THREADS_MAX / WARP], lanes[WARP];
    for (unsigned w = 0; w < machine.warps; w++) {
        warps[w] = machine.order == 1 ? machine.warps - 1 - w : w;
    }
    if (machine.order > 1) {
        std::shuffle(warps, warps + machine.warps, machine.shuffle);
    }
    for (unsigned w = 0; w < machine.warps; w++) {
        for (unsigned l = 0; l < WARP; l++) {
            lanes[l] = machine.order == 1 ? WARP - 1 - l : l;
        }
        if (machine.order > 1) {
            std::shuffle(lanes, lanes + WARP, machine.shuffle);
        }
        machine.ready[w] = 0;
        for (unsigned l = 0; l < WARP; l++) {
            const unsigned number = warps[w] * WARP + lanes[l];
            machine.slot[w * WARP + l] = &machine.pool[number];
            machine.turn[number] = w * WARP + l;
        }
    }
}

static void start_thread(unsigned number)
{
    thread *t = &machine.pool[number];
    const dim3 d = machine.run->block;
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    if (!t->stack) {
        t->stack = (char *)map_memory(STACK_BYTES + page);
        mprotect(t->stack, page, PROT_NONE);
        t->stack += page;
    }
    t->index = {number % d.x, number / d.x % d.y, number / d.x / d.y};
    t->lane = number % WARP;
    t->warp = number / WARP;
    t->line = 0;
    t->what = NULL;
    t->mask = 0;
    t->copies.clear();
    t->groups.clear();
    t->grouped = 0;
    fiber_stack_set(&t->sanitizer, t->stack, STACK_BYTES, (unsigned)(machine.here - machine.place),
                    number);
    t->context = ctx::make_fcontext(t->stack + STACK_BYTES, STACK_BYTES, thread_main);
    machine.warp[t->warp].lane[t->lane] = t;
    machine.warp[t->warp].running |= 1u << t->lane;
    make_ready(t);
}

static void run_block(void)
{
    const dim3 d = machine.run->block;
    machine.here = &machine.place[machine.here == &machine.place[0]];
    machine.pool = machine.here->threads;
    machine.arena = machine.here->shared;
    order_take(&machine.here->ended);
    machine.slots = machine.live = d.x * d.y * d.z;
    machine.warps = (machine.slots + WARP - 1) / WARP;
    machine.at_barrier = 0;
    memset(machine.at_partial, 0, sizeof machine.at_partial);
    memset(machine.warp, 0, machine.warps * sizeof machine.warp[0]);
    choose_order();
    for (unsigned i = 0; i < machine.slots; i++) {
        start_thread(i);
    }
    open_shared();
    order_give(&machine.here->begun);
    switch_to(next_thread(0));
}

void execute(const launch &l)
{
    static std::mutex one_at_a_time;
    const std::lock_guard<std::mutex> lock(one_at_a_time);
    set_up();
    const char *order = getenv("HYPEROPT_EMULATOR_ORDER");
    fiber_stack_of_host(&machine.main.sanitizer);
    machine.order = order ? (unsigned)strtoul(order, NULL, 10) : 0;
    machine.shuffle.seed(machine.order);
    machine.run = &l;
    block_dim = l.block;
    grid_dim = l.grid;
    for (unsigned z = 0; z < l.grid.z; z++) {
        for (unsigned y = 0; y < l.grid.y; y++) {
            for (unsigned x = 0; x < l.grid.x; x++) {
                block_index = {x, y, z};
                run_block();
            }
        }
    }
    order_take(&machine.place[0].ended);
    order_take(&machine.place[1].ended);
    machine.run = NULL;
}

} // namespace ho_emu
