/* SPDX-License-Identifier: Apache-2.0
 * Weights files: round trip, and any bytes are either read or refused. */
#include <stdlib.h>

#include "check.h"
#include "study/safetensors.h"

static float weight[6] = {1.0f, -2.5f, 3e-20f, 0.0f, 5.0f, 6.0f};
static float bias[2] = {0.5f, -0.5f};

static void *encoded(size_t *size)
{
    ho_tensor tensor[2] = {
        {.name = "online.trunk.0.weight", .ndim = 2, .shape = {2, 3}, .data = weight},
        {.name = "online.trunk.0.bias", .ndim = 1, .shape = {2}, .data = bias}};
    ho_safetensors st = {.tensors = {.count = 2, .tensor = tensor}};
    ho_err err = {0};
    void *bytes;
    assert_int_equal(ho_safetensors_add_meta(&st, "trial", "12"), HO_OK);
    assert_int_equal(ho_safetensors_add_meta(&st, "settings", "{\"a\": \"\\\"x\\\"\"}"), HO_OK);
    CHECK_OK(ho_safetensors_encode(&st, &bytes, size, &err), &err);
    st.tensors = (ho_tensors){0}; /* on this stack */
    ho_safetensors_free(&st);
    return bytes;
}

static void weights_and_metadata_come_back(void **state)
{
    (void)state;
    size_t size, again_size;
    ho_safetensors st;
    ho_err err = {0};
    void *bytes = encoded(&size), *again = encoded(&again_size);
    assert_int_equal(size, again_size);
    assert_memory_equal(bytes, again, size);
    FILE *file = fopen("w.safetensors", "wb");
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
    CHECK_OK(ho_safetensors_read("w.safetensors", &st, &err), &err);
    assert_int_equal(st.tensors.count, 2);
    assert_string_equal(st.tensors.tensor[0].name, "online.trunk.0.weight");
    assert_int_equal(st.tensors.tensor[0].shape[1], 3);
    assert_memory_equal(st.tensors.tensor[0].data, weight, sizeof weight);
    assert_memory_equal(st.tensors.tensor[1].data, bias, sizeof bias);
    assert_string_equal(ho_safetensors_meta(&st, "trial"), "12");
    assert_string_equal(ho_safetensors_meta(&st, "settings"), "{\"a\": \"\\\"x\\\"\"}");
    assert_null(ho_safetensors_meta(&st, "fold"));
    ho_safetensors_free(&st);
    free(bytes);
    free(again);
}

static void every_cut_and_every_flipped_byte_is_survived(void **state)
{
    (void)state;
    size_t size;
    ho_safetensors st;
    ho_err err = {0};
    uint8_t *bytes = encoded(&size);
    for (size_t n = 0; n < size; n++) { /* data is last: every cut loses some of it */
        uint8_t *part = malloc(n + 1);
        memcpy(part, bytes, n);
        CHECK_STATUS(ho_safetensors_decode("cut", part, n, &st, &err), HO_EDATA);
        assert_int_equal(st.tensors.count, 0);
        free(part);
    }
    for (size_t i = 0; i < size - sizeof weight - sizeof bias; i++) {
        for (int bit = 0; bit < 8; bit++) {
            bytes[i] ^= (uint8_t)(1u << bit);
            if (ho_safetensors_decode("flip", bytes, size, &st, &err) == HO_OK) {
                ho_safetensors_free(&st);
            }
            bytes[i] ^= (uint8_t)(1u << bit);
        }
    }
    free(bytes);
}

static void check_header(const char *header, const char *part)
{
    uint8_t bytes[512] = {0};
    uint64_t length = strlen(header);
    ho_safetensors st;
    ho_err err = {0};
    memcpy(bytes, &length, 8);
    memcpy(bytes + 8, header, length);
    CHECK_STATUS(ho_safetensors_decode("bad", bytes, 8 + length + 8, &st, &err), HO_EDATA);
    CHECK_CONTAINS(err.text, part);
}

static void hostile_headers_are_refused(void **state)
{
    (void)state;
    check_header("[1]", "header is no object");
    check_header("{\"a\":{\"dtype\":\"F16\",\"shape\":[2],\"data_offsets\":[0,8]}}", "not F32");
    check_header("{\"a\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[0,8]}}", "do not hold");
    check_header("{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[8,16]}}", "place");
    check_header("{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[8,0]}}", "place");
    check_header("{\"a\":{\"dtype\":\"F32\",\"shape\":[-2],\"data_offsets\":[0,8]}}", "hold");
    check_header("{\"a\":{\"dtype\":\"F32\",\"shape\":[1e300,1e300],\"data_offsets\":[0,8]}}",
                 "hold");
    check_header("{\"a\":{\"dtype\":\"F32\",\"shape\":[0.5],\"data_offsets\":[0,2]}}", "hold");
    check_header("{\"__metadata__\":{\"a\":1}}", "metadata");
    check_header("{\"__metadata__\":3}", "__metadata__");
    ho_safetensors st;
    ho_err err = {0};
    CHECK_STATUS(ho_safetensors_read("nowhere", &st, &err), HO_EIO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(weights_and_metadata_come_back),
        cmocka_unit_test(every_cut_and_every_flipped_byte_is_survived),
        cmocka_unit_test(hostile_headers_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
