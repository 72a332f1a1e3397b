/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Both sides of the event page, and time, for its tests (event_fixture.h). */
#include "tests/unit/event_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

static char directory[] = "/tmp/elastic-test-event-XXXXXX";
char page_path[EVENT_PATH_MAX];

int64_t now_ms(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void sleep_us(uint32_t us)
{
    struct timespec pause = {.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000L};

    nanosleep(&pause, NULL);
}

/* Spins for short times, so that moments differ by less than a sleep can. */
void pass_time(uint64_t *seed, uint32_t limit_us)
{
    uint32_t us = random_below(seed, limit_us + 1);

    if (us > 50) {
        sleep_us(us);
        return;
    }
    for (volatile uint32_t i = 0; i < us * 100; i = i + 1)
        ;
}

int make_directory(void **state)
{
    return mkdtemp(directory) == NULL ? -1 : 0;
}

int remove_directory(void **state)
{
    unlink(page_path);
    return rmdir(directory);
}

int set_path(void **state)
{
    snprintf(page_path, sizeof(page_path), "%s/page", directory);
    unsetenv("ELASTIC_EVENT_FILE");
    return 0;
}

int clear_path(void **state)
{
    elastic_finalize();
    if (unlink(page_path) != 0 && errno != ENOENT)
        rmdir(page_path);
    return 0;
}

/* The page as its bytes, to write on it what neither side would. */
struct event_page *raw_page(void)
{
    int fd = open(page_path, O_RDWR);
    struct event_page *page = mmap(NULL, EVENT_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
                                   0);

    assert_true(fd >= 0 && page != MAP_FAILED);
    close(fd);
    return page;
}

struct event *create_page(int generation)
{
    struct error err;
    struct event *event = event_create(page_path, generation, &err);

    assert_non_null(event);
    return event;
}

struct event *named_page(const char *name, int generation, int rank, int size)
{
    struct event_world world = {
        .generation = generation, .rank = rank, .size = size, .local_size = 1, .nodes = size};
    struct event *event;
    struct error err;
    char path[sizeof(page_path)];

    snprintf(path, sizeof(path), "%s/%s", directory, name);
    event = event_create(path, generation, &err);
    assert_non_null(event);
    event_set_world(event, &world);
    return event;
}

void drop_page(struct event *event)
{
    event_unlink(event);
    event_destroy(event);
}

struct event_client *open_page(void)
{
    struct event_client_error err = {.text = ""};
    struct event_client *client = event_client_open(page_path, &err);

    if (client == NULL)
        fail_msg("%s", err.text);
    return client;
}

struct event *attached_page(int generation)
{
    struct event *event = named_page("page", generation, 0, 2);

    setenv("ELASTIC_EVENT_FILE", page_path, 1);
    assert_int_equal(elastic_live(), 0);
    assert_int_equal(elastic_init(), 0);
    return event;
}
