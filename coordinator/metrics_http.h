/* SPDX-License-Identifier: Apache-2.0
 * The HTTP endpoint of a running coordinator (coordinator.metrics), for Prometheus and for probes:
 *     /metrics   the text that was published last, in the Prometheus text format 0.0.4
 *     /livez     200 while something was published within the last minute, else 503
 *     /readyz    the same, and the coordinator takes workers
 * libmicrohttpd serves in a thread of its own; publishing never blocks on a client. */
#ifndef HO_COORDINATOR_METRICS_HTTP_H
#define HO_COORDINATOR_METRICS_HTTP_H

#include <stdbool.h>
#include <stdint.h>

#include "study/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ho_metrics_http ho_metrics_http;

/* address: "127.0.0.1:9464", "[::1]:9464" or ":9464" (all interfaces). Port 0: the system picks.
 * HO_ECONFIG: not an address. HO_EIO: cannot listen there, err says why. */
ho_status ho_metrics_http_start(ho_metrics_http **out, const char *address, ho_err *err);
void ho_metrics_http_stop(ho_metrics_http **http);

/* The port that is listened on. */
int ho_metrics_http_port(const ho_metrics_http *http);

/* Replaces what /metrics answers; the text is copied. now_ns: a monotonic clock. */
void ho_metrics_http_publish(ho_metrics_http *http, const char *text, bool ready, int64_t now_ns);

#ifdef __cplusplus
}
#endif
#endif
