/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The states in a directory (state_list.h). */
#include "common/state_list.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/entry.h"
#include "common/stop.h"

static int judge(int base, int64_t (*size_of)(const char *file, void *arg), struct states *states,
                 struct state *state, struct error *failure)
{
    struct error err = {""};
    struct stat st;
    size_t len = 0;
    char *text = NULL;
    int manifest = -1, dir = entry_open(base, state->name, S_IFDIR, &st, &err);

    if (dir >= 0)
        manifest = entry_open(dir, STATE_MANIFEST, S_IFREG, &st, &err);
    if (manifest >= 0)
        text = entry_text(manifest, STATE_MANIFEST_MAX, &len, &err);
    if (text != NULL)
        states_judge(state, text, len, size_of, &dir);
    else
        states_judge_torn(state, err.text);
    free(text);
    if (manifest >= 0)
        close(manifest);
    if (dir >= 0)
        close(dir);
    return states_weigh(states, state, len, failure);
}

int64_t state_list_pointer(int base)
{
    char target[STATE_NAME_SIZE];
    ssize_t len = readlinkat(base, STATE_POINTER, target, sizeof(target));

    return len > 0 && (size_t)len < sizeof(target) ? state_pointer_number(target, (size_t)len) : 0;
}

static int read_names(int base, struct states *states, struct error *err)
{
    DIR *list = entry_list(base);
    const char *name;
    int rc = 0;

    if (list == NULL)
        return error_set(err, "%s", strerror(errno));
    while (rc == 0 && (name = entry_next(list)) != NULL)
        rc = states_add(states, name, err);
    if (rc == 0 && errno != 0)
        rc = error_set(err, "%s", strerror(errno));
    closedir(list);
    return rc;
}

int state_list_read(int base, int64_t (*size_of)(const char *file, void *arg),
                    struct states *states, struct error *err)
{
    if (read_names(base, states, err) != 0)
        return -1;
    states_sort(states);
    states->current = state_list_pointer(base);
    for (size_t i = 0; i < states->count && !stop_asked(); i++)
        if (states->list[i].kind == STATE_IS_TORN && states->list[i].why == NULL)
            if (judge(base, size_of, states, &states->list[i], err) != 0)
                return -1;
    return stop_asked() ? error_set(err, "stopped, or out of time") : 0;
}
