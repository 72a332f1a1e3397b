/* SPDX-License-Identifier: GPL-2.0-or-later */
/* May two parts of different releases work together (release.h)? */
#include "lib/release.h"

#include <stdio.h>

#include "lib/json_get.h"

void release_write(json_object *msg, const struct release *release)
{
    json_object_object_add(msg, "release", json_object_new_string(release->name));
    json_object_object_add(msg, "protocol", json_object_new_int(release->protocol));
    json_object_object_add(msg, "oldest", json_object_new_int(release->oldest));
}

void release_read(json_object *msg, struct release *release)
{
    const char *name = json_get_string(msg, "release");
    int64_t protocol, oldest;

    *release = (struct release){.protocol = 1, .oldest = 1};
    snprintf(release->name, sizeof(release->name), "%s",
             name != NULL ? error_value(name).text : "unknown");
    if (json_get_int(msg, "protocol", 1, INT32_MAX, &protocol))
        release->protocol = release->oldest = (int)protocol;
    if (json_get_int(msg, "oldest", 1, release->protocol, &oldest))
        release->oldest = (int)oldest;
}

/* "1", or "2 to 4" */
static const char *spoken(const struct release *release, char *text, size_t size)
{
    if (release->oldest == release->protocol)
        snprintf(text, size, "%d", release->protocol);
    else
        snprintf(text, size, "%d to %d", release->oldest, release->protocol);
    return text;
}

int release_agree(const struct release *own, const char *ours, const struct release *other,
                  const char *theirs, struct error *err)
{
    char text[2][32];

    if (own->protocol >= other->oldest && other->protocol >= own->oldest)
        return 0;
    return error_set(err,
                     "%s (release %s) speaks protocol %s, %s (release %s) protocol %s: install one "
                     "release of slurm-elastic on all nodes",
                     theirs, other->name, spoken(other, text[0], sizeof(text[0])), ours, own->name,
                     spoken(own, text[1], sizeof(text[1])));
}
