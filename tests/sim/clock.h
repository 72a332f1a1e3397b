/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The virtual clock, and libuv's timers, works and handles on it. Times are microseconds.
 *
 * Whoever links clock.c says of which process a loop is, and has sim_bug(). */
#ifndef ELASTIC_TESTS_CLOCK_H
#define ELASTIC_TESTS_CLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <uv.h>

struct host;

#define MS     UINT64_C(1000)
#define SECOND UINT64_C(1000000)
#define NEVER  UINT64_MAX

extern struct host *host_now; /* in whose name something is being done; NULL: the simulation's */
struct host *host_of_loop(const uv_loop_t *loop);
/* What is tested is wrong, or the test. */
_Noreturn void sim_bug(const char *file, int line, const char *what);

struct event;

void clock_begin(uint64_t seed);
uint64_t clock_now(void);
/* Have run(arg) called then, in the name of that process: not while it is stopped, never once it
 * has ended. owner NULL: of the simulation. */
struct event *clock_at(uint64_t when, struct host *owner, void (*run)(void *arg), void *arg);
struct event *clock_in(uint64_t delay, struct host *owner, void (*run)(void *arg), void *arg);
void clock_cancel(struct event *event); /* NULL is accepted */
/* gone(arg) is called in a moment: what a piece says that has no more to do when it is ended. */
void clock_goodbye(void (*gone)(void *arg), void *arg);
/* Carry out what is due next, if that is not after `until`. False: nothing is. */
bool clock_step(uint64_t until);
void clock_reach(uint64_t when); /* nothing is due before */
uint64_t clock_events(void);     /* carried out so far */
size_t clock_waiting(void);
/* CPU time that events of that process have taken since, in nanoseconds. */
void clock_measure(const struct host *host);
uint64_t clock_measured(void);
/* What a process has missed while it was stopped. */
void clock_resume(struct host *host);
/* A number of the history's own sequence, 0 to below - 1. */
uint32_t chance(uint32_t below);
bool chance_percent(uint32_t percent);
uint64_t chance_between(uint64_t least, uint64_t most);

#endif
