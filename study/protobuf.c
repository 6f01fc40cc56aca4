/* SPDX-License-Identifier: Apache-2.0 */
#include "study/protobuf.h"

#include <stdlib.h>
#include <string.h>

enum { WIRE_VARINT = 0, WIRE_BYTES = 2, WIRE_FIXED32 = 5 };

static void append(ho_protobuf *p, const void *bytes, size_t size)
{
    if (!p->failed && p->size + size > p->room) {
        const size_t room = 2 * (p->size + size) + 64;
        unsigned char *moved = realloc(p->bytes, room);
        p->failed = !moved;
        if (moved) {
            p->bytes = moved;
            p->room = room;
        }
    }
    if (!p->failed && size > 0) {
        memcpy(p->bytes + p->size, bytes, size);
        p->size += size;
    }
}

static void append_varint(ho_protobuf *p, uint64_t value)
{
    unsigned char out[10];
    size_t n = 0;
    while (value >= 0x80) {
        out[n++] = (unsigned char)(value | 0x80);
        value >>= 7;
    }
    out[n++] = (unsigned char)value;
    append(p, out, n);
}

void ho_protobuf_varint(ho_protobuf *p, int field, int64_t value)
{
    append_varint(p, (uint64_t)field << 3 | WIRE_VARINT);
    append_varint(p, (uint64_t)value);
}

void ho_protobuf_float(ho_protobuf *p, int field, float value)
{
    append_varint(p, (uint64_t)field << 3 | WIRE_FIXED32);
    append(p, &value, sizeof value); /* little-endian, as all machines this builds for */
}

void ho_protobuf_bytes(ho_protobuf *p, int field, const void *bytes, size_t size)
{
    append_varint(p, (uint64_t)field << 3 | WIRE_BYTES);
    append_varint(p, size);
    append(p, bytes, size);
}

void ho_protobuf_text(ho_protobuf *p, int field, const char *text)
{
    ho_protobuf_bytes(p, field, text, strlen(text));
}

void ho_protobuf_message(ho_protobuf *p, int field, ho_protobuf *message)
{
    p->failed = p->failed || message->failed;
    ho_protobuf_bytes(p, field, message->bytes, message->size);
    ho_protobuf_free(message);
}

void ho_protobuf_append(ho_protobuf *p, ho_protobuf *fields)
{
    p->failed = p->failed || fields->failed;
    append(p, fields->bytes, fields->size);
    ho_protobuf_free(fields);
}

void ho_protobuf_free(ho_protobuf *p)
{
    free(p->bytes);
    memset(p, 0, sizeof *p);
}
