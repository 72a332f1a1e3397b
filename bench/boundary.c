/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A worker for bench/overhead: microseconds for a call of elastic_event_test, of as many as its
 * argument says. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "elastic.h"

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
    long calls = argc > 1 ? strtol(argv[1], NULL, 10) : 0;
    void *library = dlopen(getenv("ELASTIC_LIB"), RTLD_NOW);
    if (!library || calls < 1) {
        fprintf(stderr, "usage: elasticrun %s CALLS (%s)\n", argv[0],
                library ? "none given" : dlerror());
        return 1;
    }
    int (*init)(void) = (int (*)(void))dlsym(library, "elastic_init");
    int (*test)(struct elastic_event *) = (int (*)(struct elastic_event *))dlsym(
        library, "elastic_event_test");
    struct elastic_event event;
    if (!init || !test || init() != 0)
        return 1;
    double begin = seconds();
    for (long i = 0; i < calls; i++)
        if (test(&event) != 0)
            return 1;
    printf("%.6f\n", (seconds() - begin) * 1e6 / (double)calls);
    return 0;
}
