/* SPDX-License-Identifier: GPL-2.0-or-later */
/* use and rm (command.h). */
#include "state/command.h"

static int use(struct place *place, const struct states *states, const struct options *options,
               struct error *err)
{
    int64_t number = options->state;
    const struct state *state = states_find(states, number);

    if (states_check_use(states, number, err) != 0)
        return error_prefix(err, "%s", error_path(place_where(place)).text);
    if (number != states->current && place_use(place, states->current, state, err) != PLACE_OK)
        return -1;
    command_print_state(options, place_where(place), state->name);
    return 0;
}

static int remove_one(struct place *place, const struct states *states,
                      const struct options *options, struct error *err)
{
    const struct state *state = states_find(states, options->state);

    if (states_check_remove(states, options->state, options->force, err) != 0)
        return error_prefix(err, "%s", error_path(place_where(place)).text);
    if (place_remove(place, state, err) != 0)
        return -1;
    command_print_state(options, place_where(place), state->name);
    return 0;
}

int command_use(struct place *place, const struct options *options, struct error *err)
{
    struct states states;
    int rc;

    if (place_list(place, &states, err) != 0)
        return -1;
    rc = use(place, &states, options, err);
    states_clear(&states);
    return rc;
}

int command_remove(struct place *place, const struct options *options, struct error *err)
{
    struct states states;
    int rc;

    if (place_list(place, &states, err) != 0)
        return -1;
    rc = remove_one(place, &states, options, err);
    states_clear(&states);
    return rc;
}
