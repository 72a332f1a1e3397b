/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Where a leader may be found (leader_places.h). */
#include "agent/leader_places.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/number.h"

bool leader_places_add(struct leader_places *places, const char *address, int port)
{
    struct leader_place *place = &places->list[places->count];

    if (places->count == LEADER_PLACES_MAX || strlen(address) >= sizeof(place->address))
        return false;
    place->port = port;
    strcpy(place->address, address);
    places->count++;
    return true;
}

char *leader_places_text(const struct leader_places *places)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    if (out == NULL)
        return NULL;
    for (int i = 0; i < places->count; i++)
        fprintf(out, "%s%s:%d", i > 0 ? "," : "", places->list[i].address, places->list[i].port);
    return fclose(out) == 0 ? text : NULL;
}

static bool parse_place(struct leader_places *places, const char *text, size_t len)
{
    const char *colon = memrchr(text, ':', len);
    char address[sizeof(places->list[0].address)];
    int port;

    if (colon == NULL || colon == text || (size_t)(colon - text) >= sizeof(address) ||
        number_parse(colon + 1, len - (size_t)(colon + 1 - text), 1, 65535, &port) != 0)
        return false;
    memcpy(address, text, (size_t)(colon - text));
    address[colon - text] = '\0';
    return leader_places_add(places, address, port);
}

int leader_places_parse(struct leader_places *places, const char *text, struct error *err)
{
    struct leader_places read = {0};

    for (const char *at = text;; at++) {
        size_t len = strcspn(at, ",");

        if (!parse_place(&read, at, len))
            return error_set(err, "%s: not ADDRESS:PORT", text);
        at += len;
        if (*at == '\0')
            break;
    }
    *places = read;
    return 0;
}
