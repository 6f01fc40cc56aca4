/* SPDX-License-Identifier: Apache-2.0
 * See bars.h. */
#include "market/bars.h"

#include <stdlib.h>
#include <string.h>

void ho_bars_free(ho_bars *bars)
{
    if (!bars) {
        return;
    }
    free(bars->open_ns);
    free(bars->ohlcv);
    free(bars->session);
    free(bars->roll_jump);
    free(bars->split);
    free(bars->gap);
    free(bars->funding);
    free(bars->extra_name);
    free(bars->extra);
    memset(bars, 0, sizeof *bars);
}
