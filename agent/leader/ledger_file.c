/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The ledger of the job in its state directory (ledger_file.h). */
#include "agent/leader/ledger_file.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "agent/leader/leader_internal.h"
#include "agent/leader/report.h"
#include "common/files.h"
#include "common/log.h"

/* Seconds between two copies, if nothing else is new. */
#define SAVE_EVERY 60.0

static bool is_known(const struct spending_pool *pool, int nodes, double price, double suspend)
{
    return pool != NULL && pool->nodes == nodes && fabs(pool->price - price) <= 0 &&
           fabs(pool->suspend - suspend) <= 0;
}

void ledger_file_account(struct leader *leader, struct ledger_file *file,
                         const struct pools_input *in)
{
    struct spending *spending = &file->ledger.spending;
    bool changed = false;

    if (spending->count == 0)
        spending->at = in->now;
    for (int i = -1; i < in->pool_count; i++) {
        const struct pools_pool *pool = i < 0 ? NULL : &in->pools[i];
        const char *name = pool != NULL ? pool->name : LEDGER_BASE;
        double price = pool != NULL ? pool->price : in->base_price;
        int nodes = pool != NULL ? pool->ready + pool->booting : leader->options->base_nodes;
        double suspend = pool != NULL ? pool->suspend : 0;

        if (is_known(spending_find(spending, name), nodes, price, suspend))
            continue;
        spending_set(spending, in->now, name, nodes, price, suspend);
        changed = true;
    }
    spending_run(spending, in->now);
    if (changed)
        file->saved = -1;
}

/* A job without prices and without work that is reported has nothing to keep. */
static bool is_kept(const struct leader *leader, const struct ledger *ledger)
{
    bool costs = false;

    for (int i = 0; i < ledger->spending.count; i++)
        costs = costs || ledger->spending.pools[i].price > 0 || ledger->spending.pools[i].cost > 0;
    return costs || ledger->memory.exhausted || leader->options->policy->deadline > 0;
}

void ledger_file_save(struct leader *leader, struct ledger_file *file)
{
    double now = leader_now(leader);

    if ((file->saved >= 0 && now - file->saved < SAVE_EVERY) || !is_kept(leader, &file->ledger))
        return;
    file->saved = now;
    report_write(leader, LEDGER_FILE, ledger_text(&file->ledger, now, unix_now()));
}

void ledger_file_load(struct leader *leader, struct ledger_file *file)
{
    const struct leader_options *o = leader->options;
    struct error err = {""};
    char path[PATH_MAX], *text;
    size_t len;

    if (file->loaded)
        return;
    file->loaded = true;
    file->saved = -1;
    snprintf(path, sizeof(path), "%s/%s", o->state_dir, LEDGER_FILE);
    text = file_read(path, LEDGER_FILE_MAX, &len, &err);
    if (text == NULL)
        return; /* a job has none at first */
    if (ledger_parse(&file->ledger, text, len, leader_now(leader), unix_now(), o->term > 0, &err) !=
        0)
        log_error("job %u: %s: %s; the costs of the job so far are not known", o->job, path,
                  err.text);
    free(text);
}

void ledger_file_end(struct leader *leader, struct ledger_file *file)
{
    struct spending *spending = &file->ledger.spending;

    ledger_file_load(leader, file); /* a leader may begin with the end */
    spending_run(spending, leader_now(leader));
    spending_give_back(spending);
    file->saved = -1;
    ledger_file_save(leader, file);
}
