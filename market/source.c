/* SPDX-License-Identifier: Apache-2.0
 * See source.h. */
#include "market/source.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <sodium.h>
#include <zip.h>
#include <zlib.h>
#include <zstd.h>

enum { CHUNK = 1 << 20 };

static const size_t DEFAULT_MAX_BYTES = (size_t)64 << 30;

/* Bytes that grow. */
typedef struct buffer {
    char *bytes;
    size_t size, capacity, most;
} buffer;

static ho_status buffer_room(buffer *b, size_t extra, const char *path, ho_err *err)
{
    if (extra > b->most || b->size > b->most - extra) {
        return ho_err_set(err, HO_EDATA, "%s: unpacks to more than %zu bytes", path, b->most);
    }
    if (b->size + extra + 1 > b->capacity) {
        size_t capacity = b->capacity ? b->capacity : CHUNK;
        while (capacity < b->size + extra + 1) {
            capacity += capacity / 2;
        }
        char *grown = realloc(b->bytes, capacity);
        if (!grown) {
            return ho_err_set(err, HO_ENOMEM, "%s: no memory for %zu bytes", path, capacity);
        }
        b->bytes = grown;
        b->capacity = capacity;
    }
    return HO_OK;
}

/* ---- unpacking ------------------------------------------------------------------------------- */

static ho_status unpack_gz(const char *path, const uint8_t *bytes, size_t size, buffer *out,
                           ho_err *err)
{
    ho_status rc = HO_OK;
    z_stream z = {0};
    size_t used = 0;
    int code = Z_OK;
    if (inflateInit2(&z, 15 + 16) != Z_OK) {
        return ho_err_set(err, HO_ENOMEM, "%s: no memory to unpack", path);
    }
    while (true) {
        if ((rc = buffer_room(out, CHUNK, path, err)) != HO_OK) {
            break;
        }
        size_t left = size - used, piece = left < (1U << 30) ? left : (1U << 30);
        z.next_in = (Bytef *)(uintptr_t)(bytes + used);
        z.avail_in = (uInt)piece;
        z.next_out = (Bytef *)(out->bytes + out->size);
        z.avail_out = CHUNK;
        code = inflate(&z, Z_NO_FLUSH);
        used += piece - z.avail_in;
        out->size += CHUNK - z.avail_out;
        if (code == Z_STREAM_END) {
            if (size - used < 2 || bytes[used] != 0x1f || bytes[used + 1] != 0x8b) {
                break; /* what follows a member and is not one is padding */
            }
            (void)inflateReset(&z);
        } else if (code == Z_BUF_ERROR && used == size) {
            rc = ho_err_set(err, HO_EDATA, "%s: the gzip data is cut short; copy the file again",
                            path);
            break;
        } else if (code != Z_OK && code != Z_BUF_ERROR) {
            rc = ho_err_set(err, HO_EDATA, "%s: the gzip data is damaged at byte %zu (%s)", path,
                            used, z.msg ? z.msg : "bad stream");
            break;
        }
    }
    (void)inflateEnd(&z);
    return rc;
}

/* True if a skippable frame at the start holds the format before DBN. */
static bool is_dbz(const uint8_t *bytes, size_t size)
{
    return size >= 12 && (bytes[0] & 0xf0) == 0x50 && memcmp(bytes + 1, "\x2a\x4d\x18", 3) == 0 &&
           memcmp(bytes + 8, "DBZ", 3) == 0;
}

static ho_status unpack_zst(const char *path, const uint8_t *bytes, size_t size, buffer *out,
                            ho_err *err)
{
    ho_status rc = HO_OK;
    ZSTD_DStream *stream = ZSTD_createDStream();
    ZSTD_inBuffer in = {bytes, size, 0};
    size_t hint = 1; /* 0: a frame has just ended */
    if (!stream) {
        return ho_err_set(err, HO_ENOMEM, "%s: no memory to unpack", path);
    }
    while (in.pos < in.size || hint != 0) {
        if ((rc = buffer_room(out, CHUNK, path, err)) != HO_OK) {
            break;
        }
        ZSTD_outBuffer piece = {out->bytes + out->size, CHUNK, 0};
        size_t before = in.pos;
        hint = ZSTD_decompressStream(stream, &piece, &in);
        if (ZSTD_isError(hint)) {
            rc = ho_err_set(err, HO_EDATA, "%s: the zstd data is damaged near byte %zu (%s)", path,
                            in.pos, ZSTD_getErrorName(hint));
            break;
        }
        out->size += piece.pos;
        if (hint != 0 && in.pos == in.size && before == in.pos && piece.pos == 0) {
            rc = ho_err_set(err, HO_EDATA, "%s: the zstd data is cut short; copy the file again",
                            path);
            break;
        }
    }
    (void)ZSTD_freeDStream(stream);
    return rc;
}

/* The one member to read, or an error that lists them. */
static ho_status choose_member(const char *path, zip_t *zip, const char *pick, zip_int64_t *chosen,
                               ho_err *err)
{
    char list[600] = "";
    zip_int64_t files = 0, matches = 0, count = zip_get_num_entries(zip, 0);
    zip_int64_t only = -1, matched = -1;
    bool workbook = false;
    for (zip_int64_t i = 0; i < count; ++i) {
        const char *name = zip_get_name(zip, (zip_uint64_t)i, 0);
        if (!name || name[0] == '\0' || name[strlen(name) - 1] == '/' ||
            strncmp(name, "__MACOSX", 8) == 0) {
            continue;
        }
        workbook |= strcmp(name, "[Content_Types].xml") == 0;
        ++files;
        only = i;
        if (pick[0] && strstr(name, pick)) {
            ++matches;
            matched = i;
        }
        if (strlen(list) + strlen(name) + 3 < sizeof list) {
            (void)strcat(strcat(list, files > 1 ? ", " : ""), name);
        }
    }
    if (workbook) {
        return ho_err_set(err, HO_EDATA, "%s: is an Excel workbook; save the sheet as CSV", path);
    }
    if (files == 0) {
        return ho_err_set(err, HO_EDATA, "%s: the zip file is empty", path);
    }
    if (files > 1 && matches != 1) {
        return ho_err_set(err, HO_EDATA,
                          "%s: the zip holds %lld files and data.symbol = \"%s\" is in the name of "
                          "%lld; write a part of one name: %s",
                          path, (long long)files, pick, (long long)matches, list);
    }
    *chosen = files == 1 ? only : matched;
    return HO_OK;
}

static ho_status unpack_zip(const char *path, const char *pick, const uint8_t *bytes, size_t size,
                            buffer *out, char *member, size_t member_size, ho_err *err)
{
    ho_status rc = HO_OK;
    zip_error_t why;
    zip_int64_t index = -1, got = 0;
    zip_file_t *file = NULL;
    zip_error_init(&why);
    zip_source_t *source = zip_source_buffer_create(bytes, size, 0, &why);
    zip_t *zip = source ? zip_open_from_source(source, ZIP_RDONLY | ZIP_CHECKCONS, &why) : NULL;
    if (!zip) {
        rc = ho_err_set(err, HO_EDATA, "%s: the zip file is damaged (%s)", path,
                        zip_error_strerror(&why));
        zip_source_free(source);
        goto out;
    }
    if ((rc = choose_member(path, zip, pick, &index, err)) != HO_OK) {
        goto out;
    }
    (void)snprintf(member, member_size, "%s", zip_get_name(zip, (zip_uint64_t)index, 0));
    if (!(file = zip_fopen_index(zip, (zip_uint64_t)index, 0))) {
        rc = ho_err_set(err, HO_EDATA, "%s: %s in the zip cannot be read (%s)", path, member,
                        zip_strerror(zip));
        goto out;
    }
    do {
        if ((rc = buffer_room(out, CHUNK, path, err)) != HO_OK) {
            goto out;
        }
        got = zip_fread(file, out->bytes + out->size, CHUNK);
        if (got < 0) {
            rc = ho_err_set(err, HO_EDATA, "%s: %s in the zip is damaged", path, member);
            goto out;
        }
        out->size += (size_t)got;
    } while (got > 0);
out:
    if (file) {
        (void)zip_fclose(file);
    }
    if (zip) {
        zip_discard(zip);
    }
    zip_error_fini(&why);
    return rc;
}

/* ---- kinds that are refused by name ---------------------------------------------------------- */

typedef struct refused_kind {
    const char *magic;
    size_t length;
    const char *text; /* what it is and the mend */
} refused_kind;

static ho_status refuse_by_name(const char *path, const char *bytes, size_t size, ho_err *err)
{
    static const refused_kind kinds[] = {
        {"PAR1", 4,
         "is a Parquet file; convert it: python3 -c \"import pandas; "
         "pandas.read_parquet('IN').to_csv('OUT.csv')\""},
        {"ARROW1", 6,
         "is an Arrow (Feather) file; convert it: python3 -c \"import pandas; "
         "pandas.read_feather('IN').to_csv('OUT.csv', index=False)\""},
        {"\xfd"
         "7zXZ",
         5, "is xz-compressed; unpack it: xz -dk FILE"},
        {"BZh", 3, "is bzip2-compressed; unpack it: bunzip2 -k FILE"},
        {"7z\xbc\xaf", 4, "is a 7-Zip archive; unpack it: 7z x FILE"},
        {"Rar!", 4, "is a RAR archive; unpack it"},
        {"\x89HDF", 4,
         "is an HDF5 file; convert it: python3 -c \"import pandas; "
         "pandas.read_hdf('IN').to_csv('OUT.csv')\""},
        {"\x93NUMPY", 6, "is a NumPy array; save it as CSV with a time column"},
        {"SQLite format 3", 15, "is an SQLite database; export the table: sqlite3 -csv -header"},
        {"\x80\x04", 2, "is a Python pickle; save it with DataFrame.to_csv"},
        {"\x80\x05", 2, "is a Python pickle; save it with DataFrame.to_csv"},
        {"\xff\xfe", 2, "is UTF-16 text; convert it: iconv -f UTF-16 -t UTF-8 IN > OUT"},
        {"\xfe\xff", 2, "is UTF-16 text; convert it: iconv -f UTF-16 -t UTF-8 IN > OUT"},
        {"<!DOCTYPE", 9, "is a web page, not data: the download did not work"},
        {"<html", 5, "is a web page, not data: the download did not work"},
        {"version https://git-lfs", 23, "is a Git LFS pointer; fetch the file: git lfs pull"},
        {"DBZ", 3,
         "is a Databento DBZ file, the format before DBN; convert it: dbn IN --output OUT.dbn.zst "
         "(Databento's dbn tool), or download it again as DBN"},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; ++i) {
        if (size >= kinds[i].length && memcmp(bytes, kinds[i].magic, kinds[i].length) == 0) {
            return ho_err_set(err, HO_EDATA, "%s: %s", path, kinds[i].text);
        }
    }
    return HO_OK;
}

/* ---- the whole ------------------------------------------------------------------------------- */

static ho_status unpack(const char *path, const char *pick, const void *bytes, size_t size,
                        buffer *out, ho_source *source, ho_err *err)
{
    const uint8_t *b = bytes;
    if (is_dbz(b, size)) {
        return refuse_by_name(path, "DBZ", 3, err);
    }
    if (size >= 4 && (memcmp(b, "\x28\xb5\x2f\xfd", 4) == 0 ||
                      ((b[0] & 0xf0) == 0x50 && memcmp(b + 1, "\x2a\x4d\x18", 3) == 0))) {
        (void)strcpy(source->container, "zst");
        return unpack_zst(path, b, size, out, err);
    }
    if (size >= 2 && b[0] == 0x1f && b[1] == 0x8b) {
        (void)strcpy(source->container, "gz");
        return unpack_gz(path, b, size, out, err);
    }
    if (size >= 4 && (memcmp(b, "PK\3\4", 4) == 0 || memcmp(b, "PK\5\6", 4) == 0)) {
        (void)strcpy(source->container, "zip");
        return unpack_zip(path, pick, b, size, out, source->member, sizeof source->member, err);
    }
    ho_status rc = buffer_room(out, size, path, err);
    if (rc == HO_OK) {
        (void)strcpy(source->container, "plain");
        if (size > 0) {
            memcpy(out->bytes, b, size);
        }
        out->size = size;
    }
    return rc;
}

static bool hash_hex(const void *bytes, size_t size, char hex[65])
{
    unsigned char hash[crypto_hash_sha256_BYTES];
    if (sodium_init() < 0) {
        return false;
    }
    (void)crypto_hash_sha256(hash, bytes, size);
    (void)sodium_bin2hex(hex, 65, hash, sizeof hash);
    return true;
}

ho_status ho_source_decode(const char *path, const char *pick, const void *bytes, size_t size,
                           size_t max_bytes, ho_source *out, ho_err *err)
{
    buffer b = {.most = max_bytes};
    memset(out, 0, sizeof *out);
    ho_status rc = unpack(path, pick, bytes, size, &b, out, err);
    if (rc == HO_OK) {
        rc = refuse_by_name(path, b.bytes, b.size, err);
    }
    if (rc == HO_OK && !hash_hex(bytes, size, out->sha256)) {
        rc = ho_err_set(err, HO_EIO, "libsodium does not start");
    }
    if (rc != HO_OK) {
        free(b.bytes);
        memset(out, 0, sizeof *out);
        return rc;
    }
    b.bytes[b.size] = '\0';
    out->bytes = b.bytes;
    out->size = b.size;
    return HO_OK;
}

ho_status ho_source_read(const char *path, const char *pick, ho_source *out, ho_err *err)
{
    ho_status rc = HO_OK;
    struct stat status;
    char *bytes = NULL;
    size_t size = 0;
    memset(out, 0, sizeof *out);
    FILE *file = fopen(path, "rb");
    if (!file) {
        return ho_err_set(err, HO_EIO, "%s: %s", path, strerror(errno));
    }
    if (fstat(fileno(file), &status) != 0 || !S_ISREG(status.st_mode)) {
        rc = ho_err_set(err, HO_EIO, "%s: is not a file", path);
        goto out;
    }
    size = (size_t)status.st_size;
    if (size == 0) {
        rc = ho_err_set(err, HO_EDATA, "%s: the file is empty", path);
        goto out;
    }
    if (!(bytes = malloc(size))) {
        rc = ho_err_set(err, HO_ENOMEM, "%s: no memory for %zu bytes", path, size);
        goto out;
    }
    if (fread(bytes, 1, size, file) != size) {
        rc = ho_err_set(err, HO_EIO, "%s: %s", path,
                        ferror(file) ? strerror(errno) : "became shorter while it was read");
        goto out;
    }
    rc = ho_source_decode(path, pick, bytes, size, DEFAULT_MAX_BYTES, out, err);
out:
    free(bytes);
    (void)fclose(file);
    return rc;
}

void ho_source_free(ho_source *source)
{
    if (source) {
        free(source->bytes);
        memset(source, 0, sizeof *source);
    }
}
