/* SPDX-License-Identifier: Apache-2.0
 * Which of ThreadSanitizer's reports are none. On a device a warp's lanes execute an instruction
 * together: where all work out the same and store it at one place, nothing is out of order. Lanes
 * that store different values at one place by one instruction are not seen. */
#include <stdio.h>

#include "sanitizer.h"

#ifdef HO_EMULATOR_TSAN
/* What a report holds, for debuggers (llvm's tsan_debugging.cpp). */
extern "C" int __tsan_get_report_data(void *report, const char **description, int *count,
                                      int *stacks, int *accesses, int *places, int *mutexes,
                                      int *threads, int *tids, void **sleep, unsigned long depth);
extern "C" int __tsan_get_report_mop(void *report, unsigned long at, int *tid, void **address,
                                     int *size, int *write, int *atomic, void **trace,
                                     unsigned long depth);
extern "C" int __tsan_get_report_thread(void *report, unsigned long at, int *tid,
                                        unsigned long long *os_id, int *running, const char **name,
                                        int *parent, void **trace, unsigned long depth);

struct access_seen {
    int tid, write;
    unsigned place, warp, lane;
    void *at; /* the instruction */
};

static bool read_access(void *report, unsigned long which, int threads, access_seen *a)
{
    void *address = nullptr;
    int size = 0, atomic = 0;
    __tsan_get_report_mop(report, which, &a->tid, &address, &size, &a->write, &atomic, &a->at, 1);
    for (int i = 0; i < threads; i++) {
        int tid = 0, running = 0, parent = 0;
        unsigned long long os_id = 0;
        const char *name = nullptr;
        void *trace = nullptr;
        __tsan_get_report_thread(report, (unsigned long)i, &tid, &os_id, &running, &name, &parent,
                                 &trace, 1);
        if (tid == a->tid) {
            return name && sscanf(name, FIBER_NAME, &a->place, &a->warp, &a->lane) == 3;
        }
    }
    return false;
}

namespace __tsan
{
class ReportDesc;

/* ThreadSanitizer asks here before it prints: true for what is none. */
__attribute__((visibility("default"))) bool OnReport(const ReportDesc *desc, bool suppressed)
{
    void *report = const_cast<ReportDesc *>(desc), *sleep = nullptr;
    const char *description = nullptr;
    int count = 0, stacks = 0, accesses = 0, places = 0, mutexes = 0, threads = 0, tids = 0;
    access_seen a = {}, b = {};
    __tsan_get_report_data(report, &description, &count, &stacks, &accesses, &places, &mutexes,
                           &threads, &tids, &sleep, 0);
    const bool joint = accesses == 2 && read_access(report, 0, threads, &a) &&
                       read_access(report, 1, threads, &b) && a.write && b.write &&
                       a.place == b.place && a.warp == b.warp && a.at && a.at == b.at;
    return suppressed || joint;
}
} // namespace __tsan
#endif
