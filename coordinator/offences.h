/* SPDX-License-Identifier: Apache-2.0
 * Offences of peers over all their connections: from which addresses peers were refused lately, and
 * how many offences are worth a line in the log. A peer that is refused and connects anew, as often
 * as it can, neither gets its patience back nor fills the disk. */
#ifndef HO_COORDINATOR_OFFENCES_H
#define HO_COORDINATOR_OFFENCES_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    HO_OFFENDERS_MAX = 64,  /* addresses remembered; the one silent longest gives way */
    HO_OFFENDER_S = 600,    /* for so long after its last offence */
    HO_OFFENCE_LINES = 100, /* logged at once, and then ... */
    HO_OFFENCE_LINE_S = 1,  /* ... one in this time */
    HO_OFFENCE_ADDRESS = 64,
};

/* {0} is a fresh one. */
typedef struct ho_offences {
    struct {
        char address[HO_OFFENCE_ADDRESS]; /* "": an empty place */
        int64_t at_ns;
    } offender[HO_OFFENDERS_MAX];
    bool counting;    /* a line was logged before */
    int lines;        /* that may be logged now */
    int64_t since_ns; /* up to when they were counted */
    int64_t unlogged; /* offences since the last line */
} ho_offences;

/* A peer of this address is refused; "" (a local one) is not remembered. */
void ho_offences_refuse(ho_offences *offences, const char *address, int64_t now_ns);

/* Whether a peer of this address was refused lately. true renews the memory of it. */
bool ho_offences_known(ho_offences *offences, const char *address, int64_t now_ns);

/* Whether this offence may have a line in the log. true: *unlogged had none before it. */
bool ho_offences_may_log(ho_offences *offences, int64_t now_ns, int64_t *unlogged);

#ifdef __cplusplus
}
#endif
#endif
