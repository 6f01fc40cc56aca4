/* SPDX-License-Identifier: Apache-2.0
 * See toml.h. Header-only toml++ 3.0 to 3.4, without exceptions; nothing of it leaves this file. */
#define TOML_HEADER_ONLY 1
#define TOML_EXCEPTIONS  0
#if defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wundef"
#pragma GCC diagnostic ignored "-Wcast-qual"
#endif
#include <toml++/toml.h>
#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "study/toml.h"

namespace
{

bool copy_text(std::string_view from, char **to)
{
    *to = static_cast<char *>(std::malloc(from.size() + 1));
    if (*to == nullptr) {
        return false;
    }
    std::memcpy(*to, from.data(), from.size());
    (*to)[from.size()] = '\0';
    return true;
}

struct failure {
    ho_status code;
    const char *what;
    int line, column;
};

failure good()
{
    return {HO_OK, "", 0, 0};
}

failure fill(const toml::node &from, ho_toml *to);

failure fill_array(const toml::array &from, ho_toml *to)
{
    if (from.empty()) {
        return good();
    }
    to->child = static_cast<ho_toml *>(std::calloc(from.size(), sizeof *to->child));
    if (to->child == nullptr) {
        return {HO_ENOMEM, "out of memory", to->line, to->column};
    }
    to->count = static_cast<int>(from.size());
    for (std::size_t i = 0; i < from.size(); i++) {
        failure f = fill(from[i], &to->child[i]);
        to->child[i].key_line = to->child[i].line;
        to->child[i].key_column = to->child[i].column;
        if (f.code != HO_OK) {
            return f;
        }
    }
    return good();
}

struct member {
    const toml::key *key;
    const toml::node *node;
};

failure fill_table(const toml::table &from, ho_toml *to)
{
    if (from.empty()) {
        return good();
    }
    std::vector<member> members;
    for (auto it = from.cbegin(); it != from.cend(); ++it) {
        members.push_back({&it->first, &it->second});
    }
    std::stable_sort(members.begin(), members.end(), [](const member &a, const member &b) {
        const auto p = a.key->source().begin, q = b.key->source().begin;
        return p.line != q.line ? p.line < q.line : p.column < q.column;
    });
    to->child = static_cast<ho_toml *>(std::calloc(members.size(), sizeof *to->child));
    if (to->child == nullptr) {
        return {HO_ENOMEM, "out of memory", to->line, to->column};
    }
    to->count = static_cast<int>(members.size());
    for (std::size_t i = 0; i < members.size(); i++) {
        ho_toml *child = &to->child[i];
        const auto place = members[i].key->source().begin;
        std::string_view name = members[i].key->str();
        child->key_line = static_cast<int>(place.line);
        child->key_column = static_cast<int>(place.column);
        if (name.find('\0') != std::string_view::npos) {
            return {HO_ECONFIG, "a key holds a NUL character", child->key_line, child->key_column};
        }
        if (!copy_text(name, &child->key)) {
            return {HO_ENOMEM, "out of memory", child->key_line, child->key_column};
        }
        failure f = fill(*members[i].node, child);
        if (f.code != HO_OK) {
            return f;
        }
    }
    return good();
}

template <typename T> std::string printed(const T &value)
{
    std::ostringstream out;
    out << value;
    return out.str();
}

failure fill(const toml::node &from, ho_toml *to)
{
    const auto place = from.source().begin;
    std::string date;
    to->line = static_cast<int>(place.line);
    to->column = static_cast<int>(place.column);
    if (const toml::table *table = from.as_table()) {
        to->type = HO_TOML_TABLE;
        return fill_table(*table, to);
    }
    if (const toml::array *array = from.as_array()) {
        to->type = HO_TOML_ARRAY;
        return fill_array(*array, to);
    }
    if (const auto *integer = from.as_integer()) {
        to->type = HO_TOML_INT;
        to->integer = integer->get();
        to->real = static_cast<double>(to->integer);
        return good();
    }
    if (const auto *real = from.as_floating_point()) {
        to->type = HO_TOML_FLOAT;
        to->real = real->get();
        return good();
    }
    if (const auto *boolean = from.as_boolean()) {
        to->type = HO_TOML_BOOL;
        to->boolean = boolean->get();
        return good();
    }
    if (const auto *text = from.as_string()) {
        to->type = HO_TOML_STRING;
        if (text->get().find('\0') != std::string::npos) {
            return {HO_ECONFIG, "a string holds a NUL character", to->line, to->column};
        }
        return copy_text(text->get(), &to->text)
                   ? good()
                   : failure{HO_ENOMEM, "out of memory", to->line, to->column};
    }
    to->type = HO_TOML_DATE;
    if (const auto *day = from.as_date()) {
        date = printed(day->get());
    } else if (const auto *time = from.as_time()) {
        date = printed(time->get());
    } else if (const auto *moment = from.as_date_time()) {
        date = printed(moment->get());
    }
    return copy_text(date, &to->text) ? good()
                                      : failure{HO_ENOMEM, "out of memory", to->line, to->column};
}

void clear(ho_toml *node)
{
    for (int i = 0; i < node->count; i++) {
        clear(&node->child[i]);
    }
    std::free(node->child);
    std::free(node->key);
    std::free(node->text);
}

/* toml++ limits the nesting of values but not that of dotted keys, and both recurse to free the
 * tree. This walks over strings and comments as TOML does and counts the dots of each key. */
ho_status check_dots(std::string_view text, const char *name, ho_err *err)
{
    enum { DOTS_MAX = 16 };
    std::size_t line = 1, line_start = 0, i = 0;
    int dots = 0;
    while (i < text.size()) {
        const char c = text[i];
        if (c == '#') {
            i = std::min(text.find('\n', i), text.size());
        } else if (c == '"' || c == '\'') {
            const bool many = text.substr(i, 3) == std::string_view(c == '"' ? "\"\"\"" : "'''");
            const std::string_view quote = text.substr(i, many ? 3 : 1);
            for (i += quote.size(); i < text.size() && text.substr(i, quote.size()) != quote; i++) {
                if (text[i] == '\n') {
                    if (!many) {
                        break; /* an error that toml++ reports */
                    }
                    line++;
                    line_start = i + 1;
                }
                i += c == '"' && text[i] == '\\' && i + 1 < text.size() && text[i + 1] != '\n';
            }
            i = std::min(i + quote.size(), text.size());
            for (int more = 0; many && more < 2 && i < text.size() && text[i] == c; more++) {
                i++; /* """a quote may stand before the closing ones"""" */
            }
        } else {
            if (c == '\n') {
                line++;
                line_start = i + 1;
            }
            dots = c == '.' ? dots + 1 : std::strchr("\n,=[]{}", c) != nullptr ? 0 : dots;
            if (dots > DOTS_MAX) {
                return ho_err_set(err, HO_ECONFIG, "%s:%zu:%zu: a key of more than %d parts", name,
                                  line, i - line_start + 1, DOTS_MAX);
            }
            i++;
        }
    }
    return HO_OK;
}

ho_status parse(const char *text, std::size_t size, const char *name, ho_toml **out, ho_err *err)
{
    toml::parse_result result = toml::parse(std::string_view(text, size));
    if (!result) {
        const toml::parse_error &error = result.error();
        const auto place = error.source().begin;
        const std::string_view what = error.description();
        return ho_err_set(err, HO_ECONFIG, "%s:%u:%u: %.*s", name,
                          static_cast<unsigned>(place.line), static_cast<unsigned>(place.column),
                          static_cast<int>(what.size()), what.data());
    }
    *out = static_cast<ho_toml *>(std::calloc(1, sizeof **out));
    if (*out == nullptr) {
        return ho_err_set(err, HO_ENOMEM, "%s: out of memory", name);
    }
    failure f = fill(result.table(), *out);
    if (f.code != HO_OK) {
        ho_toml_free(out);
        return ho_err_set(err, f.code, "%s:%d:%d: %s", name, f.line, f.column, f.what);
    }
    return HO_OK;
}

} // namespace

extern "C" ho_status ho_toml_parse(const char *text, size_t size, const char *name, ho_toml **out,
                                   ho_err *err)
{
    *out = nullptr;
    if (size > HO_TOML_BYTES_MAX) {
        return ho_err_set(err, HO_ECONFIG, "%s:1:1: %zu bytes, a study file has at most %d", name,
                          size, HO_TOML_BYTES_MAX);
    }
    try {
        ho_status rc = check_dots(std::string_view(text, size), name, err);
        return rc != HO_OK ? rc : parse(text, size, name, out, err);
    } catch (const std::bad_alloc &) {
        ho_toml_free(out);
        return ho_err_set(err, HO_ENOMEM, "%s: out of memory", name);
    }
}

extern "C" void ho_toml_free(ho_toml **root)
{
    if (root != nullptr && *root != nullptr) {
        clear(*root);
        std::free(*root);
        *root = nullptr;
    }
}
