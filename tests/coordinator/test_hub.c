/* SPDX-License-Identifier: Apache-2.0
 * The local workers' socket: its folder, and what killed coordinators left behind. */
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <utime.h>

#include "check.h"
#include "coordinator/hub.h"

/* A folder as a coordinator makes it, an hour old. The socket's descriptor; -1 when it is closed,
 * as the kernel closes that of a killed process. */
static int make_old(const char *name, bool alive)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct utimbuf old = {time(NULL) - 3600, time(NULL) - 3600};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(mkdir(name, 0700), 0);
    (void)snprintf(address.sun_path, sizeof address.sun_path, "%s/s", name);
    assert_int_equal(bind(fd, (const struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(fd, 1), 0);
    assert_int_equal(utime(name, &old), 0);
    if (!alive) {
        assert_int_equal(close(fd), 0);
        fd = -1;
    }
    return fd;
}

static void the_folder_is_the_users_alone_and_goes_with_the_hub(void **state)
{
    (void)state;
    char base[] = "hub-XXXXXX", folder[256];
    ho_hub *hub = NULL;
    ho_err err = {0};
    struct stat info;
    assert_non_null(mkdtemp(base));
    assert_int_equal(setenv("XDG_RUNTIME_DIR", base, 1), 0);
    CHECK_OK(ho_hub_create(&hub, &err), &err);
    (void)snprintf(folder, sizeof folder, "%s", ho_hub_endpoint(hub) + strlen("ipc://"));
    assert_true(strlen(folder) <= 107);
    *strrchr(folder, '/') = '\0';
    assert_int_equal(stat(folder, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0700);
    ho_hub_destroy(&hub);
    assert_int_not_equal(stat(folder, &info), 0);
}

static void folders_of_killed_coordinators_are_removed_and_living_ones_kept(void **state)
{
    (void)state;
    char base[] = "hub-XXXXXX", dead[64], alive[64], foreign[64];
    ho_hub *hub = NULL;
    ho_err err = {0};
    struct stat info;
    assert_non_null(mkdtemp(base));
    assert_int_equal(setenv("XDG_RUNTIME_DIR", base, 1), 0);
    (void)snprintf(dead, sizeof dead, "%s/hyperopt-dead00", base);
    (void)snprintf(alive, sizeof alive, "%s/hyperopt-alive0", base);
    (void)snprintf(foreign, sizeof foreign, "%s/something-else", base);
    (void)make_old(dead, false);
    (void)make_old(foreign, false);
    int fd = make_old(alive, true);
    CHECK_OK(ho_hub_create(&hub, &err), &err);
    assert_int_not_equal(stat(dead, &info), 0);
    assert_int_equal(stat(alive, &info), 0);
    assert_int_equal(stat(foreign, &info), 0);
    ho_hub_destroy(&hub);
    assert_int_equal(close(fd), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_folder_is_the_users_alone_and_goes_with_the_hub),
        cmocka_unit_test(folders_of_killed_coordinators_are_removed_and_living_ones_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
