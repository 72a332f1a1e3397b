/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Times as a job file has them (role_time.h). */
#include "lib/role_time.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "lib/policy.h"

static const char digits[] = "0123456789";

int64_t role_time_parse(const char *text, size_t len)
{
    static const struct {
        const char *name;
        int milliseconds;
    } units[] = {{"", 1000}, {"ms", 1}, {"s", 1000}, {"m", 60000}, {"h", 3600000}, {"d", 86400000}};
    size_t whole = 0, fraction = 0;
    int64_t time = 0, scale = 1;

    while (whole < len && strchr(digits, text[whole]) != NULL)
        whole++;
    if (whole > 0 && whole < len && text[whole] == '.') {
        while (whole + 1 + fraction < len && strchr(digits, text[whole + 1 + fraction]) != NULL)
            fraction++;
        if (fraction == 0)
            return -1;
    }
    if (whole == 0 || whole > 11 || fraction > 3)
        return -1;
    for (size_t i = 0; i < whole + (fraction > 0 ? 1 + fraction : 0); i++) {
        if (i == whole)
            continue;
        time = time * 10 + (text[i] - '0');
        scale *= i > whole ? 10 : 1;
    }
    text += whole + (fraction > 0 ? 1 + fraction : 0);
    len -= whole + (fraction > 0 ? 1 + fraction : 0);
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        if (strlen(units[i].name) != len || memcmp(units[i].name, text, len) != 0)
            continue;
        if (time > INT64_MAX / units[i].milliseconds)
            return -1;
        time = time * units[i].milliseconds / scale;
        return time <= POLICY_SECONDS_MAX * INT64_C(1000) ? time : -1;
    }
    return -1;
}

char *role_time_format(double seconds, char *buf, size_t size)
{
    int64_t time = (int64_t)(seconds * 1000 + 0.5);

    if (time % 1000 == 0)
        snprintf(buf, size, "%" PRId64 "s", time / 1000);
    else
        snprintf(buf, size, "%" PRId64 "ms", time);
    return buf;
}

const char *role_time_examples(int least)
{
    static const char examples[] = "500ms, 30s, 10m, 2h";

    return least > 0 && least <= 500 ? examples : strchr(examples, ' ') + 1;
}
