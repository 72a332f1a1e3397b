/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What trainers have left on S3 (s3_left.h). */
#include "fit/s3_left.h"

#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/log.h"
#include "fit/s3_foreign.h"
#include "fit/s3_grant.h"
#include "fit/s3_states.h"
#include "fit/spec.h"

/* The fits of another service may have the same numbers. Who is at work has claimed the state. */
static int clear_place(const struct spec *spec, int64_t id, int64_t state, struct error *err)
{
    struct home_path place = s3_grant_incoming(spec, id, state);
    bool claimed;

    if (place.text[0] == '\0' || state == 0)
        return 0;
    if (store_is_claimed(spec->states, state, &claimed, err) != 0)
        return -1;
    return claimed ? 0 : s3_foreign_clear(place.text, err);
}

static int clear_fit(const struct home *home, int64_t id, double now, struct error *err)
{
    struct home_record record;
    struct spec spec;
    double until;
    bool open;
    int rc;

    if (home_record_read(home, id, &record, err) != 0)
        return -1;
    if (!fit_is_over(&record.fit))
        return 0;
    open = s3_grant_is_open(home, id, now, &until);
    if (spec_read(home, id, &spec, err) != 0)
        return -1;
    rc = clear_place(&spec, id, record.state, err);
    spec_clear(&spec);
    if (rc == 0 && !open)
        unlink(home_path(home, id, HOME_S3_GRANT_FILE).text);
    return rc;
}

void s3_left_clear(const struct home *home, double now)
{
    struct error err = {""};
    size_t count = 0;
    int64_t *list = home_list(home, &count, &err);

    for (size_t i = 0; list != NULL && i < count; i++)
        if (home_has(home, list[i], HOME_S3_GRANT_FILE) && clear_fit(home, list[i], now, &err) != 0)
            log_error("what the trainer of fit %" PRId64 " has put later stays: %s", list[i],
                      err.text);
    free(list);
}
