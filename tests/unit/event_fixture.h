/* SPDX-License-Identifier: GPL-2.0-or-later */
/* For the tests of the event page: a directory, the page in it, both sides of it, and time. */
#ifndef ELASTIC_TESTS_EVENT_FIXTURE_H
#define ELASTIC_TESTS_EVENT_FIXTURE_H

#include "tests/unit/support.h"

#include <stdint.h>
#include <time.h>

#include "agent/workers/event.h"
#include "client/elastic.h"
#include "client/event.h"

#define WAIT_MS        120000 /* for anything that takes milliseconds when all is well */
#define EVENT_PATH_MAX 64

/* Of each test's page; nothing is there yet. */
extern char page_path[EVENT_PATH_MAX];

int make_directory(void **state);
int remove_directory(void **state);
int set_path(void **state);
int clear_path(void **state);
#define EVENT_TEST(name) cmocka_unit_test_setup_teardown(name, set_path, clear_path)

int64_t now_ms(clockid_t clock);
void sleep_us(uint32_t us);
/* Spins for short times, so that moments differ by less than a sleep can. */
void pass_time(uint64_t *seed, uint32_t limit_us);

/* The agent's side. They fail the test where there is an error. */
struct event *create_page(int generation);
struct event *named_page(const char *name, int generation, int rank, int size);
/* … of page_path, of rank 0 of 2, whose worker is this process (elastic_init). */
struct event *attached_page(int generation);
void drop_page(struct event *event);

/* The worker's. */
struct event_client *open_page(void);

/* The page as its bytes, to write on it what neither side would. */
struct event_page *raw_page(void); /* munmap it */

#endif
