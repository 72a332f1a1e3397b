/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the job has cost and what it has learnt (lib/ledger), and the file that keeps it for the next
 * leader and the next run. */
#ifndef ELASTIC_AGENT_LEADER_LEDGER_FILE_H
#define ELASTIC_AGENT_LEADER_LEDGER_FILE_H

#include <stdbool.h>

#include "lib/ledger.h"
#include "lib/pools.h"

struct leader;

/* All zero: it has not been read. */
struct ledger_file {
    struct ledger ledger;
    bool loaded;  /* from the state directory, if it was there */
    double saved; /* when; < 0: it has changed since */
};

/* Read it, the first time. */
void ledger_file_load(struct leader *leader, struct ledger_file *file);
/* The job has these nodes now. */
void ledger_file_account(struct leader *leader, struct ledger_file *file,
                         const struct pools_input *in);
/* Write it, if it is time. */
void ledger_file_save(struct leader *leader, struct ledger_file *file);
/* The job gives all nodes back: write it for the last time. */
void ledger_file_end(struct leader *leader, struct ledger_file *file);

#endif
