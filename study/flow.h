/* SPDX-License-Identifier: Apache-2.0
 * Flow control of file parts on one connection (protocol.txt, section 6): the sender's side.
 *
 * The sender gives each chunk a ticket and has at most HO_FLOW_CHUNKS of them under way; the
 * receiver sends a ticket back (`got`) once it has taken that chunk. So however slow the line or
 * the reader, no more than a window of parts waits in a queue, where it would cost memory and hold
 * up what comes behind it. Tickets are drawn at random: a peer cannot name one that it has not
 * read, and so cannot open the window without reading. */
#ifndef HO_STUDY_FLOW_H
#define HO_STUDY_FLOW_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* 4 MB: some seconds of a slow line (10 Mbit/s), 40 MB/s where an answer takes 0.1 s. */
enum { HO_FLOW_CHUNKS = 8 };

/* Chunks of one connection that were sent and not answered; {0} is a new connection's. */
typedef struct ho_flow {
    int count;
    uint64_t ticket[HO_FLOW_CHUNKS]; /* [count] oldest first */
} ho_flow;

/* A ticket for a chunk, never 0. libsodium must have been started. */
uint64_t ho_flow_ticket(void);

/* Whether fewer than `limit` chunks are under way. */
bool ho_flow_is_open(const ho_flow *flow, int limit);

/* A chunk was sent. The window must be open. */
void ho_flow_sent(ho_flow *flow, uint64_t ticket);

/* `got` came: this chunk and those sent before it have arrived, since a connection keeps the order.
 * false: no such chunk is under way (it was sent on an older connection); nothing changes. */
bool ho_flow_got(ho_flow *flow, uint64_t ticket);

#ifdef __cplusplus
}
#endif
#endif
