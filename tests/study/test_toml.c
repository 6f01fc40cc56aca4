/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "check.h"
#include "study/toml.h"

static ho_toml *parse(const char *text)
{
    ho_err err;
    ho_toml *root = NULL;
    CHECK_OK(ho_toml_parse(text, strlen(text), "f.toml", &root, &err), &err);
    return root;
}

static void check_node(const ho_toml *node, ho_toml_type type, const char *printed, int line,
                       int column)
{
    char text[64];
    assert_non_null(node);
    assert_int_equal(node->type, type);
    ho_toml_print(node, text, sizeof text);
    assert_string_equal(text, printed);
    if (node->line != line || node->column != column) {
        fail_msg("%s stands at %d:%d, want %d:%d", printed, node->line, node->column, line, column);
    }
}

static void every_value_has_its_type_and_place(void **state)
{
    (void)state;
    ho_toml *root = parse("i = 1_000\nf = 1e-5\ns = 'a'\nb = true\nd = 2018-01-31\n"
                          "t = 1979-05-27T07:32:00.5+02:00\nc = 07:32:00\nn = -inf\nh = 0xff\n"
                          "a = [1, '1', 1.0]\nx = {y = 2}\n");
    check_node(ho_toml_get(root, "i"), HO_TOML_INT, "1000", 1, 5);
    check_node(ho_toml_get(root, "f"), HO_TOML_FLOAT, "1e-05", 2, 5);
    check_node(ho_toml_get(root, "s"), HO_TOML_STRING, "a", 3, 5);
    check_node(ho_toml_get(root, "b"), HO_TOML_BOOL, "true", 4, 5);
    check_node(ho_toml_get(root, "d"), HO_TOML_DATE, "2018-01-31", 5, 5);
    check_node(ho_toml_get(root, "t"), HO_TOML_DATE, "1979-05-27T07:32:00.5+02:00", 6, 5);
    check_node(ho_toml_get(root, "c"), HO_TOML_DATE, "07:32:00", 7, 5);
    check_node(ho_toml_get(root, "n"), HO_TOML_FLOAT, "-inf", 8, 5);
    check_node(ho_toml_get(root, "h"), HO_TOML_INT, "255", 9, 5);
    const ho_toml *a = ho_toml_get(root, "a");
    check_node(a, HO_TOML_ARRAY, "an array", 10, 5);
    assert_int_equal(a->count, 3);
    check_node(&a->child[0], HO_TOML_INT, "1", 10, 6);
    check_node(&a->child[1], HO_TOML_STRING, "1", 10, 9);
    check_node(&a->child[2], HO_TOML_FLOAT, "1.0", 10, 14);
    check_node(ho_toml_get(ho_toml_get(root, "x"), "y"), HO_TOML_INT, "2", 11, 10);
    assert_null(ho_toml_get(root, "no"));
    assert_null(ho_toml_get(a, "no"));
    assert_null(ho_toml_get(NULL, "no"));
    ho_toml_free(&root);
    assert_null(root);
    ho_toml_free(&root);
}

static void members_stand_in_the_order_of_the_file(void **state)
{
    (void)state;
    ho_toml *root = parse("z = 1\n\"a.b\" = 2\nm.k = 3\n[c]\n[b.y]\nx = 1\n[a]\n");
    static const char *const order[] = {"z", "a.b", "m", "c", "b", "a"};
    assert_int_equal(root->count, 6);
    for (int i = 0; i < 6; i++) {
        assert_string_equal(root->child[i].key, order[i]);
    }
    assert_int_equal(root->child[2].child[0].key_line, 3);
    assert_int_equal(root->child[2].child[0].key_column, 3);
    ho_toml_free(&root);
}

static void a_string_may_hold_anything_but_nul(void **state)
{
    (void)state;
    ho_err err;
    ho_toml *root =
        parse("s = \"\"\"a.b.c.d.e.f.g.h.i.j.k.l.m.n.o.p.q.r.s.t \\\" ' # x\n"
              "a.b.c.d.e.f.g.h.i.j.k.l.m.n.o.p.q.r.s.t\"\"\"\"\n"
              "l = 'a.b.c.d.e.f.g.h.i.j.k.l.m.n.o.p.q.r.s.t' # a.b.c.d.e.f.g.h.i.j.k.l.m.n"
              ".o.p.q.r.s.t\nf = [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, "
              "1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]\n");
    assert_int_equal(root->count, 3);
    ho_toml_free(&root);
    const char *nul = "s = \"a\\u0000\"\n";
    CHECK_STATUS(ho_toml_parse(nul, strlen(nul), "f.toml", &root, &err), HO_ECONFIG);
    CHECK_CONTAINS(err.text, "f.toml:1:5: a string holds a NUL character");
    nul = "\"a\\u0000\" = 1\n";
    CHECK_STATUS(ho_toml_parse(nul, strlen(nul), "f.toml", &root, &err), HO_ECONFIG);
    CHECK_CONTAINS(err.text, "f.toml:1:1: a key holds a NUL character");
    assert_null(root);
}

/* toml++ recurses to free what it has read: half a megabyte of dots must not reach it. */
static void no_depth_ends_the_process(void **state)
{
    (void)state;
    enum { SIZE = 500000 };
    static const char *const part[] = {"a.", "[", "{a=", "\"a\".", "[[", "'", "\"\"\"", "a.'=',"};
    char *text = (char *)malloc(SIZE + 64);
    for (size_t p = 0; p < sizeof part / sizeof *part; p++) {
        for (int head = 0; head < 3; head++) {
            ho_err err;
            ho_toml *root = NULL;
            size_t n = (size_t)snprintf(text, 16, "%s", head == 0 ? "" : head == 1 ? "x=" : "[");
            while (n < SIZE) {
                n += (size_t)snprintf(text + n, 16, "%s", part[p]);
            }
            CHECK_STATUS(ho_toml_parse(text, n, "f.toml", &root, &err), HO_ECONFIG);
            CHECK_CONTAINS(err.text, "f.toml:1:");
            assert_null(root);
        }
    }
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_value_has_its_type_and_place),
        cmocka_unit_test(members_stand_in_the_order_of_the_file),
        cmocka_unit_test(a_string_may_hold_anything_but_nul),
        cmocka_unit_test(no_depth_ends_the_process),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
