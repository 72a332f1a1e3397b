/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which state directories have outlived their jobs (leftover.h). */
#include "lib/leftover.h"

#include <stdio.h>
#include <string.h>

#include "lib/error.h"

#define DIGITS     "0123456789"
#define ASIDE      ".old-"
#define ASIDE_TIME 15 /* characters of 20260301T120000 */
#define DAY        86400

/* ".old-20260301T120000", or with "-2" behind it. */
static bool is_aside(const char *text)
{
    const char *time = text + strlen(ASIDE);
    size_t number;

    if (strncmp(text, ASIDE, strlen(ASIDE)) != 0 || strspn(time, DIGITS "T") != ASIDE_TIME)
        return false;
    time += ASIDE_TIME;
    number = *time == '-' ? strspn(time + 1, DIGITS) : 0;
    return *time == '\0' || (number > 0 && time[1 + number] == '\0');
}

bool leftover_is_named(const char *pattern, const char *name)
{
    size_t before = strcspn(pattern, LEFTOVER_JOB), digits;
    const char *after = pattern + before + strlen(LEFTOVER_JOB);

    if (pattern[before] == '\0' || strncmp(name, pattern, before) != 0)
        return false;
    name += before;
    digits = strspn(name, DIGITS);
    if (digits == 0 || digits > 10 || strncmp(name + digits, after, strlen(after)) != 0)
        return false;
    name += digits + strlen(after);
    return *name == '\0' || is_aside(name);
}

static bool is_known(const struct leftover_site *site, uint32_t job)
{
    for (int i = 0; i < site->known_count; i++)
        if (site->known[i] == job)
            return true;
    return false;
}

static bool may_go(const struct leftover_site *site, const struct job_record *record, char *why,
                   size_t size)
{
    if (strcmp(record->cluster, site->cluster) != 0)
        snprintf(why, size, "job %u of cluster %s has used it", record->job,
                 error_value(record->cluster).text);
    else if (strcmp(record->user, site->user) != 0)
        snprintf(why, size, "job %u of %s has used it", record->job,
                 error_value(record->user).text);
    else if (is_known(site, record->job))
        snprintf(why, size, "Slurm knows job %u", record->job);
    else
        return true;
    return false;
}

bool leftover_may_go(const struct leftover_site *site, const struct leftover *found, char *why,
                     size_t size)
{
    double rest = difftime(site->now, found->changed);

    why[0] = '\0';
    if (!found->owned || found->record_count < 1)
        snprintf(why, size, "no " JOB_RECORD_FILE " says whose it is");
    else if (!found->complete)
        snprintf(why, size, "not all of it can be looked at");
    for (int i = 0; why[0] == '\0' && i < found->record_count; i++)
        may_go(site, &found->records[i], why, size);
    if (why[0] == '\0' && rest < (double)site->days * DAY)
        snprintf(why, size, "changed in the last %d day%s", site->days, site->days == 1 ? "" : "s");
    return why[0] == '\0';
}
