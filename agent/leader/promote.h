/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A snapshot that was flushed becomes a checkpoint, before a world starts from the newest one. */
#ifndef ELASTIC_AGENT_LEADER_PROMOTE_H
#define ELASTIC_AGENT_LEADER_PROMOTE_H

struct leader;

/* Look for one. CHANGE_FACT_PROMOTED follows, at once if nothing can be done. */
void promote_begin(struct leader *leader);

#endif
