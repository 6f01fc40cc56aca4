/* SPDX-License-Identifier: Apache-2.0
 * Any bytes as a message. The input is frames, each after its length (4 bytes, little-endian); a
 * message that is read is written again and must be read again as the same bytes. */
#include <stdlib.h>
#include <string.h>

#include "study/wire.h"

enum { FRAMES = 8 };

/* Each frame is a copy of its own, so that reading past its end is seen. */
static int cut(const uint8_t *data, size_t size, ho_frame *frame)
{
    int count = 0;
    while (size >= 4 && count < FRAMES) {
        size_t n =
            (size_t)data[0] | (size_t)data[1] << 8 | (size_t)data[2] << 16 | (size_t)data[3] << 24;
        data += 4;
        size -= 4;
        n = n < size ? n : size;
        frame[count].data = (uint8_t *)malloc(n + (n == 0));
        frame[count].size = n;
        memcpy(frame[count].data, data, n);
        count++;
        data += n;
        size -= n;
    }
    return count;
}

static void check_round_trip(const ho_message *m)
{
    static ho_frames first, second;
    ho_err err;
    ho_message back;
    if (ho_wire_encode(m, &first, &err) != HO_OK) {
        abort();
    }
    if (ho_wire_decode(first.frame, first.count, &back, &err) != HO_OK ||
        ho_wire_encode(&back, &second, &err) != HO_OK || first.count != second.count) {
        abort();
    }
    for (int i = 0; i < first.count; i++) {
        if (first.frame[i].size != second.frame[i].size ||
            memcmp(first.frame[i].data, second.frame[i].data, first.frame[i].size) != 0) {
            abort();
        }
    }
    ho_message_clear(&back);
    ho_frames_clear(&first);
    ho_frames_clear(&second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ho_frame frame[FRAMES];
    ho_err err;
    ho_message m;
    int count = cut(data, size, frame);
    ho_status rc = ho_wire_decode(frame, count, &m, &err);
    if (rc == HO_OK) {
        check_round_trip(&m);
    } else if (rc != HO_EPROTO || err.text[0] == '\0') {
        abort();
    }
    ho_message_clear(&m);
    for (int i = 0; i < count; i++) {
        free(frame[i].data);
    }
    return 0;
}
