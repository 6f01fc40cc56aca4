/* SPDX-License-Identifier: Apache-2.0
 * The coordinator's end of the wire: one ROUTER socket for local workers (ipc, in a folder that
 * only this user can enter) and one for remote ones (tcp, CURVE). Messages are study/wire.h's.
 * Sends never block; what cannot be sent is the caller's to repeat. One thread. */
#ifndef HO_COORDINATOR_HUB_H
#define HO_COORDINATOR_HUB_H

#include <czmq.h>

#include "study/wire.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ho_hub ho_hub;

enum { HO_PEER_ID_MAX = 255, HO_CURVE_KEY_TEXT = 41 };

/* Who a message is from. curve_key is the key that the handshake proved; "" on ipc and without
 * CURVE. */
typedef struct ho_peer {
    bool local;
    uint8_t size;
    uint8_t id[HO_PEER_ID_MAX];
    char curve_key[HO_CURVE_KEY_TEXT];
    char address[64]; /* IP of a remote peer */
} ho_peer;

bool ho_peer_same(const ho_peer *a, const ho_peer *b); /* same socket, routing id, key */

/* Makes the folder and binds the ipc socket. HO_EIO: neither XDG_RUNTIME_DIR nor /tmp can hold it.
 */
ho_status ho_hub_create(ho_hub **out, ho_err *err);
/* Closes the sockets (unsent messages get at most a second) and removes the folder. */
void ho_hub_destroy(ho_hub **hub);

/* Where local workers connect: "ipc:///run/user/1000/hyperopt-x/s". */
const char *ho_hub_endpoint(const ho_hub *hub);

/* Also listens on tcp. keys: folder of `hyperopt keygen`, whose allowed/ holds the public keys of
 * workers; NULL: without CURVE, which beyond loopback needs insecure.
 * HO_EUSAGE: not a tcp endpoint, or open to others without CURVE. HO_EIO: cannot bind. */
ho_status ho_hub_listen(ho_hub *hub, const char *endpoint, const char *keys, bool insecure,
                        ho_err *err);
/* The endpoint with the port that was bound; "" without ho_hub_listen. */
const char *ho_hub_listening(const ho_hub *hub);

/* For zmq_poll. remote is NULL without ho_hub_listen. */
enum { HO_HUB_SOCKETS = 3 };
/* Fills items [HO_HUB_SOCKETS] and returns how many there are. */
int ho_hub_poll_items(ho_hub *hub, zmq_pollitem_t *items);

/* Answers handshakes that wait (CURVE). Call whenever poll says so, and in every round. */
void ho_hub_authenticate(ho_hub *hub);

/* Takes one message. HO_EAGAIN: none waits. HO_EPROTO: *from sent something that is no message of
 * this protocol (err says what); it is dropped whole. */
ho_status ho_hub_receive(ho_hub *hub, ho_peer *from, ho_message *out, ho_err *err);

/* HO_EAGAIN: its queue is full. HO_ENOTFOUND: it is not connected. HO_EINVAL: cannot be encoded. */
ho_status ho_hub_send(ho_hub *hub, const ho_peer *to, const ho_message *message, ho_err *err);

#ifdef __cplusplus
}
#endif
#endif
