/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Paths without links are opened in the same way where the kernel has no openat2, as before Linux
 * 5.6. */
#include "common/entry.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/unit/support.h"

static char top[] = "/tmp/elastic-entry.XXXXXX";

/* What becomes of a path: the kind of what is there, or -errno. */
static int opened(const char *below)
{
    char path[256];
    struct stat st;
    int fd, kind;

    snprintf(path, sizeof(path), "%s%s", top, below);
    fd = entry_open_path(path, &st);
    if (fd < 0)
        return -errno;
    kind = (int)(st.st_mode & S_IFMT);
    /* A FIFO is not opened: its writer would notice. */
    assert_int_equal(fcntl(fd, F_GETFL) & (O_ACCMODE | O_PATH),
                     kind == S_IFIFO ? O_PATH : O_RDONLY);
    assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
    close(fd);
    return kind;
}

static void make(const char *commands)
{
    char text[1024];

    snprintf(text, sizeof(text), "cd %s && %s", top, commands);
    assert_int_equal(system(text), 0); /* NOLINT: the test's own words */
}

static void without_openat2(void)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = {.len = sizeof(filter) / sizeof(*filter), .filter = filter};

    assert_int_equal(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
        skip();
}

static void test_without_openat2(void **state)
{
    static const struct {
        const char *path;
        int expected;
    } cases[] = {
        {"", S_IFDIR},          {"/", S_IFDIR},
        {"/dir/file", S_IFREG}, {"//dir//./file", S_IFREG},
        {"/dir/..", S_IFDIR},   {"/dir/file/", -ENOTDIR},
        {"/link/file", -ELOOP}, {"/dir/last", -ELOOP},
        {"/dir/no", -ENOENT},   {"/dir/file/x", -ENOTDIR},
        {"/fifo", S_IFIFO},     {"/dangling", -ELOOP},
    };

    (void)state;
    make("mkdir dir && touch dir/file && ln -s dir link && ln -s file dir/last && mkfifo fifo && "
         "ln -s nowhere dangling");
    for (size_t i = 0; i < COUNT(cases); i++)
        assert_int_equal(opened(cases[i].path), cases[i].expected);
    without_openat2();
    for (size_t i = 0; i < COUNT(cases); i++)
        assert_int_equal(opened(cases[i].path), cases[i].expected);
}

static int begin(void **state)
{
    (void)state;
    return mkdtemp(top) != NULL ? 0 : -1;
}

static int end(void **state)
{
    (void)state;
    make("rm dir/file dir/last link fifo dangling && rmdir dir");
    return rmdir(top);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_without_openat2),
    };

    return cmocka_run_group_tests(tests, begin, end);
}
