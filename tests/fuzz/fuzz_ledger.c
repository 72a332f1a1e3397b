/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Fuzz target: the ledger of a job, as a file that others may have written to. What is accepted has
 * sane figures, goes on, and can be written and read again. */
#include <math.h>
#include <string.h>

#include "tests/fuzz/fuzz.h"

#include "lib/ledger.h"

#define NOW       1000.0
#define UNIX_TIME 1.8e9

static void check(struct ledger *ledger)
{
    double before = spending_cost(&ledger->spending);

    MUST(isfinite(before) && before >= 0);
    spending_run(&ledger->spending, NOW + 60);
    MUST(spending_cost(&ledger->spending) >= before);
    MUST(ledger->pool_count >= 0 && ledger->pool_count <= POOLS_MAX);
    for (int i = 0; i < ledger->pool_count; i++) {
        const struct ledger_pool *pool = &ledger->pools[i];
        struct retry retry = {.first = 60, .max = 600};

        MUST(pool->boot >= 0 && memchr(pool->why, '\0', sizeof(pool->why)) != NULL);
        retry_go_on(&retry, &pool->failed, NOW);
        MUST(retry.after <= NOW + 600 && retry.pause >= 0 && retry.pause <= 600);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size), *again;
    struct ledger ledger = {0}, copy = {0};
    const struct ledger_run run = {.job = 12, .restarts = 1};
    struct error err = {""};

    for (int takeover = 0; takeover < 2; takeover++) {
        memset(&ledger, 0, sizeof(ledger));
        memset(&copy, 0, sizeof(copy));
        if (ledger_parse(&ledger, text, size, &run, NOW, UNIX_TIME, takeover == 1, &err) != 0) {
            fuzz_check_refusal(&err);
            continue;
        }
        check(&ledger);
        again = ledger_text(&ledger, &run, NOW + 60, UNIX_TIME + 60);
        MUST(again != NULL);
        MUST(ledger_parse(&copy, again, strlen(again), &run, NOW + 60, UNIX_TIME + 60, true,
                          &err) == 0);
        check(&copy);
        free(again);
    }
    free(text);
    return 0;
}
