/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The directory where a state is written (partial.h). */
#include "state/partial.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct partial_name partial_name(int64_t number)
{
    struct partial_name partial;
    char name[STATE_NAME_SIZE];

    state_name(name, number);
    snprintf(partial.text, sizeof(partial.text), "%s" STATE_PARTIAL, name);
    return partial;
}

static int failed(const char *name, struct error *err)
{
    int saved = errno;

    error_set(err, "%s: %s", name, strerror(saved));
    errno = saved;
    return -1;
}

int partial_make(int base, int64_t number, struct error *err)
{
    struct partial_name name = partial_name(number);
    int fd;

    if (mkdirat(base, name.text, 0700) != 0)
        return failed(name.text, err);
    fd = openat(base, name.text, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0)
        return fd;
    failed(name.text, err);
    unlinkat(base, name.text, AT_REMOVEDIR);
    errno = EIO;
    return -1;
}

int partial_publish(int base, int64_t number, struct error *err)
{
    char name[STATE_NAME_SIZE];

    state_name(name, number);
    if (renameat(base, partial_name(number).text, base, name) != 0 || fsync(base) != 0)
        return failed(name, err);
    return 0;
}
