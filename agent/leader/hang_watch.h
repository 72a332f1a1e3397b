/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Has the world made a step lately (--elastic-hang-wait)? */
#ifndef ELASTIC_AGENT_LEADER_HANG_WATCH_H
#define ELASTIC_AGENT_LEADER_HANG_WATCH_H

struct hang_watch;
struct leader;

/* NULL: out of memory. */
struct hang_watch *hang_watch_create(void);
void hang_watch_destroy(struct hang_watch *watch);
/* Look, and end a world that hangs as if a worker had failed. Called about every heartbeat. */
void hang_watch(struct leader *leader);

#endif
