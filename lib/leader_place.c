/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Where the leader of a service is (leader_place.h). */
#include "lib/leader_place.h"

#include <stdlib.h>
#include <string.h>

#include <json-c/json.h>

#include "lib/json_get.h"
#include "lib/json_text.h"
#include "lib/text.h"

#define PORT_MAX      65535
#define ADDRESS_MAX   253
#define STATE_DIR_MAX 4096

static bool address_ok(const char *address)
{
    size_t length = strlen(address);

    return length > 0 && length <= ADDRESS_MAX && address[0] != '-' &&
           strspn(address, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-:") ==
               length;
}

static int read_addresses(json_object *json, struct leader_place *place, struct error *err)
{
    place->addresses = json_get_strings(json, "addresses", LEADER_PLACE_NODES);
    if (place->addresses == NULL || place->addresses[0] == NULL)
        return error_set(err, "addresses has to be a list of 1 to %d nodes", LEADER_PLACE_NODES);
    for (char **address = place->addresses; *address != NULL; address++)
        if (!address_ok(*address))
            return error_set(err, "'%s' is no address of a node", error_value(*address).text);
    return 0;
}

static int read_optional(json_object *json, struct leader_place *place, struct error *err)
{
    const char *state_dir = json_get_string(json, "state-dir");
    int64_t port = 0;

    if (json_object_object_get_ex(json, "port", NULL) &&
        !json_get_int(json, "port", 1, PORT_MAX, &port))
        return error_set(err, "port has to be a number from 1 to %d", PORT_MAX);
    place->port = (int)port;
    if (!json_object_object_get_ex(json, "state-dir", NULL))
        return 0;
    if (state_dir == NULL || state_dir[0] != '/' || strlen(state_dir) >= STATE_DIR_MAX)
        return error_set(err, "state-dir '%s' has to be a path that begins with /",
                         error_value(state_dir).text);
    place->state_dir = strdup(state_dir);
    return place->state_dir != NULL ? 0 : error_set(err, "out of memory");
}

static int read_json(json_object *json, struct leader_place *place, struct error *err)
{
    int64_t job, restarts;

    if (!json_get_int(json, "job", 1, UINT32_MAX, &job) ||
        !json_get_int(json, "restarts", 0, INT32_MAX, &restarts) ||
        !json_get_int(json, "term", 0, INT64_MAX, &place->term))
        return error_set(err, "job, restarts and term have to be numbers");
    place->job = (uint32_t)job;
    place->restarts = (uint32_t)restarts;
    place->ended = json_get_bool(json, "ended", false);
    return read_addresses(json, place, err) != 0 ? -1 : read_optional(json, place, err);
}

int leader_place_read(const char *text, size_t length, struct leader_place *place,
                      struct error *err)
{
    json_object *json = NULL;
    int status = -1;

    *place = (struct leader_place){0};
    if (length > LEADER_PLACE_TEXT_MAX)
        return error_set(err, "it has more than %d bytes", LEADER_PLACE_TEXT_MAX);
    json = json_text_parse(text, length, err);
    if (json != NULL)
        status = read_json(json, place, err);
    json_object_put(json);
    if (status != 0)
        leader_place_clear(place);
    return status;
}

void leader_place_clear(struct leader_place *place)
{
    strings_free(place->addresses);
    free(place->state_dir);
    *place = (struct leader_place){0};
}

bool leader_place_same(const struct leader_place *a, const struct leader_place *b)
{
    size_t count = strings_count(a->addresses);

    if (a->job != b->job || a->restarts != b->restarts || a->term != b->term ||
        a->port != b->port || a->ended != b->ended || count != strings_count(b->addresses) ||
        (a->state_dir == NULL) != (b->state_dir == NULL) ||
        (a->state_dir != NULL && strcmp(a->state_dir, b->state_dir) != 0))
        return false;
    for (size_t i = 0; i < count; i++)
        if (strcmp(a->addresses[i], b->addresses[i]) != 0)
            return false;
    return true;
}
