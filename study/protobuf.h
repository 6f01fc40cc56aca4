/* SPDX-License-Identifier: Apache-2.0
 * A growing buffer of Protocol Buffers fields, as much of the encoding as ONNX needs. A failed
 * allocation is kept and shows at the end, so that callers need not check every field. */
#ifndef HO_STUDY_PROTOBUF_H
#define HO_STUDY_PROTOBUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ho_protobuf {
    unsigned char *bytes; /* owned */
    size_t size, room;
    bool failed; /* memory was out: the content is not whole */
} ho_protobuf;

void ho_protobuf_varint(ho_protobuf *p, int field, int64_t value);
void ho_protobuf_float(ho_protobuf *p, int field, float value);
void ho_protobuf_bytes(ho_protobuf *p, int field, const void *bytes, size_t size);
void ho_protobuf_text(ho_protobuf *p, int field, const char *text);
/* Appends a message and frees it. */
void ho_protobuf_message(ho_protobuf *p, int field, ho_protobuf *message);
/* Appends another buffer's fields as they are, and frees it. */
void ho_protobuf_append(ho_protobuf *p, ho_protobuf *fields);
void ho_protobuf_free(ho_protobuf *p);

#ifdef __cplusplus
}
#endif
#endif
