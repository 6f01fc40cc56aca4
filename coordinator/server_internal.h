/* SPDX-License-Identifier: Apache-2.0
 * What the server_*.c files share. */
#ifndef HO_COORDINATOR_SERVER_INTERNAL_H
#define HO_COORDINATOR_SERVER_INTERNAL_H

#include "coordinator/artifacts.h"
#include "coordinator/offences.h"
#include "coordinator/rounds.h"
#include "coordinator/server.h"
#include "study/flow.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    HO_OFFENCES_MAX = 20,      /* then a peer is refused for good */
    HO_PEERS_UNGREETED = 4096, /* connections without a hello that are remembered */
    HO_PENDING_MAX = 20000,    /* messages kept for a peer whose queue is full */
    HO_CHUNKS_UNDER_WAY = 512, /* to all peers together (256 MB), but at least one to each */
};

/* A message that could not be sent at once. */
typedef struct ho_pending {
    struct ho_pending *next;
    ho_message message;
} ho_pending;

/* A file on its way to a peer: a data file it wants, or the checkpoint a trial goes on from. */
typedef struct ho_transfer {
    struct ho_transfer *next;
    ho_chunk_kind kind;
    int64_t trial; /* checkpoint: of this lease */
    int32_t attempt;
    char sha256[65];
    int fd;
    uint64_t offset, total;
} ho_transfer;

typedef struct ho_lost ho_lost; /* see server_artifacts.c */

typedef struct ho_client {
    ho_peer peer;
    int64_t worker; /* -1 before hello and after it was given up */
    bool greeted;
    ho_msg_hello hello; /* the last one, without its lists; device0 is its first device */
    ho_device_info device0;
    int slots, lanes; /* of the last `ready`; lanes 0: none yet */
    ho_msg_pong pong; /* the last one */
    int offences;
    bool refused; /* says nothing that we listen to */
    bool gone;    /* to be removed at the end of the round */
    int64_t seen_ns, pinged_ns;
    ho_pending *first, *last;
    int pending;
    ho_transfer *transfer; /* the first is under way, the others wait */
    ho_flow flow;          /* chunks that it has not answered */
} ho_client;

struct ho_server {
    ho_server_options options;
    ho_offences offences; /* of peers, over all connections */
    ho_dispatch *dispatch;
    ho_local *local;
    ho_artifacts *artifacts;
    ho_rounds *rounds;  /* of raced trials that are unfinished */
    ho_client **client; /* [clients] */
    int clients, client_room;
    int window;          /* chunks that one peer may have under way */
    int64_t sequence;    /* of pings */
    int64_t ping_due_ns; /* the next one */
    int64_t lost;        /* workers given up */
    int interrupts;      /* signals so far */
    int signal_fd;
    bool data_failed;            /* a worker could not use the data */
    char last_bye[HO_WIRE_TEXT]; /* why the last worker left */
    ho_lost *lost_files;         /* artifacts that the disk refused */
    bool lost_known;             /* dispatch is held up because of them */
    int64_t probe_ns;            /* when to look for room next */
    bool stopping;               /* the workers have been told to leave */
    bool keep_remote;            /* but the remote ones */
    char data_reason[HO_WIRE_TEXT];
    ho_status fatal; /* from a handler */
    ho_err fatal_err;
};

ho_client *ho_server_client(ho_server *s, const ho_peer *peer);
ho_client *ho_server_client_of(ho_server *s, int64_t worker);
ho_client *ho_server_add_client(ho_server *s, const ho_peer *peer, int64_t now_ns);
/* Sends, or keeps for later when the queue is full. Takes the message. */
void ho_server_send(ho_server *s, ho_client *client, ho_message *message);
/* Sends what was kept, and parts of data files. True when more is waiting. */
bool ho_server_send_kept(ho_server *s, ho_client *client);
/* Queues a file for the client; takes the descriptor. A data file replaces the one under way. */
void ho_server_send_file(ho_client *client, const ho_transfer *file);
/* Parts of this data file are queued, or chunks are under way: a connection loses nothing, so what
 * the client asks for again is on its way to it. */
bool ho_server_is_sending(const ho_client *client, const char *sha256);
/* How many chunks a peer may have under way, by the number of peers that take some. */
void ho_server_share_window(ho_server *s);
/* Removes clients that are gone. */
void ho_server_sweep(ho_server *s);
void ho_server_client_free(ho_client *client);

/* Handles one message and clears it. */
void ho_server_handle(ho_server *s, const ho_peer *from, ho_message *message, int64_t now_ns);
/* A chunk of an artifact or checkpoint. */
void ho_server_take_chunk(ho_server *s, ho_client *client, const ho_message *message,
                          int64_t now_ns);
/* Whether an artifact of this message's trial could not be written: the message waits, too. */
bool ho_server_awaits(const ho_server *s, const ho_client *client, const ho_message *message);
/* Asks the workers for what the disk refused, once there is room. */
void ho_server_tend_lost(ho_server *s, int64_t now_ns);
void ho_server_forget_lost(ho_server *s);
/* What to call a client in the log. */
const char *ho_server_client_name(const ho_client *client);
/* A peer sent nonsense. */
void ho_server_offence(ho_server *s, const ho_peer *from, const char *reason, int64_t now_ns);
/* A client ends: its worker leaves the dispatch. */
void ho_server_drop(ho_server *s, ho_client *client, ho_cause cause, const char *reason,
                    int64_t now_ns);

#ifdef __cplusplus
}
#endif
#endif
