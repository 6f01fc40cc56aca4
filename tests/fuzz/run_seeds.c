/* SPDX-License-Identifier: Apache-2.0
 * Runs a fuzz target over files, as libFuzzer would with given inputs: the seeds, or one that once
 * failed. Each file also cut at many places and with bytes changed, so that a compiler without
 * libFuzzer still tries some of what it would. usage: NAME FILE|FOLDER... */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { SIZE_MAX_BYTES = 1 << 20 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int run_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    uint8_t *data = malloc(SIZE_MAX_BYTES + 1);
    if (!file || !data) {
        (void)fprintf(stderr, "cannot read %s\n", path);
        free(data);
        if (file) {
            (void)fclose(file);
        }
        return 1;
    }
    size_t size = fread(data, 1, SIZE_MAX_BYTES, file);
    (void)fclose(file);
    data[size] = 0;
    (void)LLVMFuzzerTestOneInput(data, size + 1);
    size_t step = size / 23 + 1;
    for (size_t cut = 1; cut < size; cut += step) {
        uint8_t kept = data[cut];
        (void)LLVMFuzzerTestOneInput(data, cut);
        data[cut] = (uint8_t)(kept ^ (1U << (cut % 8)));
        (void)LLVMFuzzerTestOneInput(data, size + 1);
        data[cut] = kept;
    }
    free(data);
    return 0;
}

static int run_path(const char *path)
{
    struct stat status;
    if (stat(path, &status) != 0 || !S_ISDIR(status.st_mode)) {
        return run_file(path);
    }
    int failed = 0;
    DIR *dir = opendir(path);
    struct dirent *entry = NULL;
    while (dir && (entry = readdir(dir))) {
        char child[4096];
        if (entry->d_name[0] != '.') {
            (void)snprintf(child, sizeof child, "%s/%s", path, entry->d_name);
            failed |= run_path(child);
        }
    }
    if (dir) {
        (void)closedir(dir);
    }
    return failed || !dir;
}

int main(int argc, char **argv)
{
    int failed = argc < 2;
    for (int i = 1; i < argc; ++i) {
        failed |= run_path(argv[i]);
    }
    return failed;
}
