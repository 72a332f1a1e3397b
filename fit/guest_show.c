/* SPDX-License-Identifier: GPL-2.0-or-later */
/* `selastic fit list` and `cancel` with --guests: for the owner of a service that trains for other
 * users. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/command.h"
#include "cmd/render_parts.h"
#include "cmd/terminal_text.h"
#include "fit/fit_command.h"
#include "fit/guests.h"
#include "fit/training.h"
#include "lib/fit_view.h"
#include "lib/json_get.h"

static const char *status_of(const struct home *guests, int64_t id)
{
    if (home_has(guests, id, GUEST_OVER_FILE))
        return "over";
    if (home_has(guests, id, GUEST_END_FILE) || home_has(guests, id, HOME_FIT_FILE))
        return "ends";
    if (home_has(guests, id, GUEST_BEGIN_FILE))
        return "trains";
    return home_has(guests, id, HOME_TRAINER_FILE) ? "ready" : "waits";
}

static json_object *one_json(const struct home *guests, int64_t id)
{
    json_object *one = json_object_new_object(), *run = home_read(guests, id, HOME_RUN_FILE, NULL);
    char *user = guest_user(guests, id);

    json_object_object_add(one, "guest", json_object_new_int64(id));
    json_object_object_add(one, "user", json_from_string(user));
    json_object_object_add(one, "service", json_from_string(json_get_string(run, "service")));
    json_object_object_add(one, "fit", json_object_get(json_object_object_get(run, "fit")));
    json_object_object_add(one, "status", json_object_new_string(status_of(guests, id)));
    json_object_object_add(one, "result", home_read(guests, id, HOME_FIT_FILE, NULL));
    json_object_put(run);
    free(user);
    return one;
}

static void print_list(json_object *list)
{
    static const struct table_column columns[] = {
        {"GUEST", TABLE_RIGHT}, {"USER", TABLE_LEFT},   {"SERVICE", TABLE_LEFT},
        {"FIT", TABLE_RIGHT},   {"STATUS", TABLE_LEFT},
    };
    struct table *table = table_create(columns, sizeof(columns) / sizeof(columns[0]));

    for (size_t i = 0; i < json_object_array_length(list); i++) {
        json_object *one = json_object_array_get_idx(list, i);

        render_number_cell(table, one, "guest");
        render_text_cell(table, one, "user");
        render_text_cell(table, one, "service");
        render_number_cell(table, one, "fit");
        render_text_cell(table, one, "status");
    }
    table_print(table, stdout, terminal_width());
    table_destroy(table);
}

static int open_guests(const char *service, struct home *guests, struct error *err)
{
    struct home home;

    return home_open(&home, service, err) == 0 ? guests_home(&home, guests, err) : -1;
}

int guest_list(const struct fit_arguments *arguments, struct error *err)
{
    json_object *all, *list;
    struct home guests;
    size_t count;
    int64_t *ids;

    if (open_guests(arguments->service, &guests, err) != 0 ||
        (ids = home_list(&guests, &count, err)) == NULL)
        return -1;
    all = json_object_new_object();
    list = json_object_new_array();
    json_object_object_add(all, "service", json_object_new_string(arguments->service));
    json_object_object_add(all, "guests", list);
    for (size_t i = 0; i < count; i++)
        json_object_array_add(list, one_json(&guests, ids[i]));
    free(ids);
    if (arguments->json) {
        print_json(all, false);
        return 0;
    }
    print_list(list);
    json_object_put(all);
    return 0;
}

/* Its user gets that as its result, and so does not ask for it once more. */
int guest_cancel(const struct fit_arguments *arguments, struct error *err)
{
    const char *reason = arguments->reason != NULL ? arguments->reason : "no reason is given";
    int64_t id = arguments->id;
    struct home guests;
    struct error why;

    if (open_guests(arguments->service, &guests, err) != 0)
        return -1;
    if (id == 0 || !home_has(&guests, id, HOME_RUN_FILE)) {
        error_set(err, "there is no guest %" PRId64 "; 'selastic fit list --guests' lists them",
                  id);
        return FIT_EXIT_NO_FIT;
    }
    if (home_has(&guests, id, GUEST_OVER_FILE)) {
        error_set(err, "the training for guest %" PRId64 " is over already", id);
        return FIT_EXIT_OVER;
    }
    error_set(&why, "the owner of the trainer has ended it: %s", reason);
    if ((!home_has(&guests, id, HOME_FIT_FILE) &&
         training_say(&guests, id, HOME_FIT_FILE, 1, &why, err) != 0) ||
        guest_write(&guests, id, GUEST_END_FILE, why.text, err) != 0)
        return -1;
    if (arguments->json)
        print_json(one_json(&guests, id), false);
    else
        printf("guest %" PRId64 " of %s: the training is to end\n", id, arguments->service);
    return 0;
}
