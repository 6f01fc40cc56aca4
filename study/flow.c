/* SPDX-License-Identifier: Apache-2.0
 * See flow.h. */
#include "study/flow.h"

#include <assert.h>
#include <string.h>

#include <sodium.h>

uint64_t ho_flow_ticket(void)
{
    uint64_t ticket = 0;
    while (ticket == 0) {
        randombytes_buf(&ticket, sizeof ticket);
    }
    return ticket;
}

bool ho_flow_is_open(const ho_flow *flow, int limit)
{
    return flow->count < (limit < HO_FLOW_CHUNKS ? limit : HO_FLOW_CHUNKS);
}

void ho_flow_sent(ho_flow *flow, uint64_t ticket)
{
    assert(flow->count < HO_FLOW_CHUNKS && ticket != 0);
    flow->ticket[flow->count++] = ticket;
}

bool ho_flow_got(ho_flow *flow, uint64_t ticket)
{
    for (int i = 0; i < flow->count; i++) {
        if (flow->ticket[i] == ticket) {
            flow->count -= i + 1;
            memmove(flow->ticket, flow->ticket + i + 1,
                    (size_t)flow->count * sizeof flow->ticket[0]);
            return true;
        }
    }
    return false;
}
