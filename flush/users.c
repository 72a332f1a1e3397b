/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Whose run directories one sweep takes (users.h). */
#include "flush/users.h"

#include <fcntl.h>
#include <inttypes.h>
#include <linux/close_range.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "common/monotonic.h"

#define UIDS_FIRST   1024
#define UIDS_MAX     (1 << 20) /* that are looked at */
#define LOOK_UPS_MAX 2000      /* that the service which knows users is asked for */
#define NAMES_MAX    20        /* seconds for all of them */
#define SUBORDINATES "/etc/subuid"

/* Sorted by uid, each once, after sort_uids(). */
struct uids {
    uid_t *list;
    int count, room;
};

static int compare(const void *a, const void *b)
{
    uid_t one = *(const uid_t *)a, other = *(const uid_t *)b;

    return (one > other) - (one < other);
}

static void sort_uids(struct uids *uids)
{
    int count = 0;

    if (uids->count > 0)
        qsort(uids->list, (size_t)uids->count, sizeof(*uids->list), compare);
    for (int i = 0; i < uids->count; i++)
        if (count == 0 || uids->list[i] != uids->list[count - 1])
            uids->list[count++] = uids->list[i];
    uids->count = count;
}

/* False: there are too many already. */
static bool make_room(struct uids *uids)
{
    int room = uids->room > 0 ? 2 * uids->room : UIDS_FIRST;
    uid_t *list;

    sort_uids(uids);
    if (uids->count < uids->room / 2)
        return true;
    list = room <= UIDS_MAX ? realloc(uids->list, (size_t)room * sizeof(*list)) : NULL;
    if (list != NULL) {
        uids->list = list;
        uids->room = room;
    }
    return uids->count < uids->room;
}

static void add(void *arg, const struct snapshot_run *run)
{
    struct uids *uids = arg;

    if (uids->count < uids->room || make_room(uids))
        uids->list[uids->count++] = run->uid;
}

static bool has(const struct uids *uids, uid_t uid)
{
    return uids->count > 0 &&
           bsearch(&uid, uids->list, (size_t)uids->count, sizeof(uid), compare) != NULL;
}

/* Which of the uids comes first that is not smaller? */
static int position(const struct uids *uids, uint64_t uid)
{
    int from = 0, to = uids->count;

    while (from < to) {
        int middle = from + (to - from) / 2;

        if (uids->list[middle] < uid)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

static int any_below(int count)
{
    uint32_t number = 0;

    if (count <= 0 || getrandom(&number, sizeof(number), 0) != sizeof(number))
        return 0;
    return (int)(number % (uint32_t)count);
}

/* ---- uids that may be users ------------------------------------------------------------------ */

/* uids of which it is not known yet whether they are users. */
struct candidates {
    struct uids uids;
    bool *subordinate;
    uid_t *asked; /* in the order in which they are asked for */
    int asked_count;
    int known; /* answers */
    char answers[LOOK_UPS_MAX];
};

/* NAME:FIRST:COUNT */
static void mark_subordinates(struct candidates *all)
{
    FILE *file = fopen(SUBORDINATES, "re");
    char *line = NULL;
    size_t size = 0;

    while (file != NULL && getline(&line, &size, file) > 0) {
        const char *colon = strchr(line, ':');
        uint32_t first, count;

        if (colon == NULL || sscanf(colon, ":%" SCNu32 ":%" SCNu32, &first, &count) != 2)
            continue;
        for (int i = position(&all->uids, first);
             i < all->uids.count && all->uids.list[i] - first < count; i++)
            all->subordinate[i] = true;
    }
    free(line);
    if (file != NULL)
        fclose(file);
}

/* A subordinate uid is hardly that of a user as well, so it is asked for after all others. */
static void put_in_order(struct candidates *all)
{
    int first = any_below(all->uids.count);

    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < all->uids.count && all->asked_count < LOOK_UPS_MAX; i++) {
            int at = (first + i) % all->uids.count;

            if (all->subordinate[at] == (pass == 1))
                all->asked[all->asked_count++] = all->uids.list[at];
        }
}

/* A service that never answers holds up this process, and it only. It has nothing else open. */
static _Noreturn void ask(const struct candidates *all, int output)
{
    signal(SIGALRM, SIG_DFL);
    alarm(NAMES_MAX);
    dup2(output, STDOUT_FILENO);
    close_range(STDERR_FILENO + 1, ~0U, 0);
    for (int i = 0; i < all->asked_count; i++) {
        char answer = getpwuid(all->asked[i]) != NULL;

        if (write(STDOUT_FILENO, &answer, 1) != 1)
            break;
    }
    _exit(0);
}

static void read_answers(struct candidates *all, int input)
{
    struct pollfd poll_for = {.fd = input, .events = POLLIN};
    int64_t until = monotonic_ms() + (NAMES_MAX + 1) * 1000;

    while (all->known < all->asked_count) {
        int64_t left = until - monotonic_ms();
        ssize_t got = 0;

        if (left > 0 && poll(&poll_for, 1, (int)left) > 0)
            got = read(input, all->answers + all->known, (size_t)(all->asked_count - all->known));
        if (got <= 0)
            break;
        all->known += (int)got;
    }
}

static void look_up(struct candidates *all)
{
    int ends[2];
    pid_t pid;

    if (pipe2(ends, O_CLOEXEC) != 0)
        return;
    pid = fork();
    if (pid == 0)
        ask(all, ends[1]);
    close(ends[1]);
    if (pid > 0)
        read_answers(all, ends[0]);
    close(ends[0]);
}

/* *stranger: one that is no user. False: there is none. */
static bool find_users(struct candidates *all, struct uids *users, uid_t *stranger)
{
    bool found = false;

    all->subordinate = calloc((size_t)all->uids.count + 1, sizeof(*all->subordinate));
    all->asked = calloc(LOOK_UPS_MAX, sizeof(*all->asked));
    if (all->subordinate != NULL && all->asked != NULL) {
        mark_subordinates(all);
        put_in_order(all);
        look_up(all);
    }
    for (int i = 0; i < all->asked_count; i++) {
        if (i < all->known && all->answers[i] != 0) {
            add(users, &(struct snapshot_run){.uid = all->asked[i]});
        } else if (!found) {
            found = true;
            *stranger = all->asked[i];
        }
    }
    free(all->subordinate);
    free(all->asked);
    return found;
}

/* ---- all ------------------------------------------------------------------------------------- */

static void remove_known(struct uids *uids, const struct uids *known)
{
    int left = 0;

    for (int i = 0; i < uids->count; i++)
        if (!has(known, uids->list[i]))
            uids->list[left++] = uids->list[i];
    uids->count = left;
}

int users_choose(const struct place places[PLACES_MAX], const char *node, uid_t *users, int max,
                 bool *last_is_stranger)
{
    struct candidates all = {.known = 0};
    struct uids known = {.count = 0};
    int count = 0, first;
    uid_t stranger = 0;

    for (int i = 0; i < PLACES_MAX; i++)
        place_each(&places[i], node, add, places[i].own ? &known : &all.uids);
    sort_uids(&known);
    sort_uids(&all.uids);
    remove_known(&all.uids, &known);
    *last_is_stranger = all.uids.count > 0 && find_users(&all, &known, &stranger);
    sort_uids(&known);
    first = any_below(known.count);
    for (; count < known.count && count < max - 1; count++)
        users[count] = known.list[(first + count) % known.count];
    if (*last_is_stranger)
        users[count++] = stranger;
    free(known.list);
    free(all.uids.list);
    return count;
}
