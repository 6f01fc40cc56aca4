/* SPDX-License-Identifier: Apache-2.0
 * make_wire_seeds FOLDER: one file a message, in the form fuzz_wire.c reads. */
#include <stdio.h>
#include <stdlib.h>

#include "study/messages.h"

static int write_seed(const char *folder, ho_message_type type)
{
    static ho_frames frames;
    char path[512];
    ho_err err;
    ho_message m = ho_test_message(type, 0);
    (void)snprintf(path, sizeof path, "%s/%s", folder, ho_message_name(type));
    FILE *file = fopen(path, "wb");
    int ok = file && ho_wire_encode(&m, &frames, &err) == HO_OK;
    for (int i = 0; ok && i < frames.count; i++) {
        size_t n = frames.frame[i].size;
        const uint8_t length[4] = {(uint8_t)n, (uint8_t)(n >> 8), (uint8_t)(n >> 16),
                                   (uint8_t)(n >> 24)};
        ok = fwrite(length, 1, 4, file) == 4 && fwrite(frames.frame[i].data, 1, n, file) == n;
    }
    ok = file && fclose(file) == 0 && ok;
    ho_frames_clear(&frames);
    ho_message_clear(&m);
    return ok;
}

int main(int argc, char **argv)
{
    int ok = argc == 2;
    for (int type = 0; ok && type < HO_MSG_COUNT; type++) {
        ok = write_seed(argv[1], (ho_message_type)type);
    }
    return ok ? 0 : 1;
}
