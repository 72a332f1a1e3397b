/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A PMIx client with four processes on two nodes that checks what they publish for each other.
 *
 * publish all: in one world. publish crowd: any number of processes. publish again: a process is
 * killed while it waits; the world after that finds what it may. */
#include <pmix.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/system/pmix/words.h"

#define LARGE ((1 << 20) - 1000)

static pmix_proc_t me;
static int wrong;

static void expect(bool good, const char *what, pmix_status_t status)
{
    if (good)
        return;
    wrong++;
    printf("rank %u: wrong: %s (%s)\n", me.rank, what, status_word(status));
    fflush(stdout);
}

static void is(const char *what, pmix_status_t got, pmix_status_t expected)
{
    expect(got == expected, what, got);
}

static void fence(void)
{
    pmix_status_t status = PMIx_Fence(NULL, 0, NULL, 0);

    is("fence", status, PMIX_SUCCESS);
}

static pmix_status_t publish(const char *key, const char *value, pmix_data_range_t range,
                             pmix_persistence_t persistence)
{
    pmix_info_t info[3];

    PMIX_INFO_LOAD(&info[0], key, value, PMIX_STRING);
    PMIX_INFO_LOAD(&info[1], PMIX_RANGE, &range, PMIX_DATA_RANGE);
    PMIX_INFO_LOAD(&info[2], PMIX_PERSISTENCE, &persistence, PMIX_PERSIST);
    return PMIx_Publish(info, 3);
}

/* wait < 0: do not; seconds 0: for ever. The value into text, if there is one. */
static pmix_status_t look_up(const char *key, int wait, int seconds, char *text, pmix_proc_t *owner)
{
    pmix_pdata_t found;
    pmix_info_t info[2];
    pmix_status_t status;

    PMIX_PDATA_CONSTRUCT(&found);
    PMIX_LOAD_KEY(found.key, key);
    PMIX_INFO_LOAD(&info[0], PMIX_WAIT, &wait, PMIX_INT);
    PMIX_INFO_LOAD(&info[1], PMIX_TIMEOUT, &seconds, PMIX_INT);
    status = PMIx_Lookup(&found, 1, wait >= 0 ? info : NULL, wait >= 0 ? 2 : 0);
    if (status == PMIX_SUCCESS && text != NULL)
        snprintf(text, 64, "%s", found.value.type == PMIX_STRING ? found.value.data.string : "?");
    if (owner != NULL)
        *owner = found.proc;
    PMIX_PDATA_DESTRUCT(&found);
    return status;
}

static void check_waiting(void)
{
    char text[64] = "";
    pmix_proc_t owner;

    is("nothing there", look_up("nothing", -1, 0, NULL, NULL), PMIX_ERR_NOT_FOUND);
    if (me.rank == 3)
        is("a second", look_up("never", 0, 1, NULL, NULL), PMIX_ERR_TIMEOUT);
    if (me.rank == 0) {
        usleep(300000);
        is("publish", publish("late", "value", PMIX_RANGE_SESSION, PMIX_PERSIST_APP), PMIX_SUCCESS);
    } else {
        is("wait", look_up("late", 1, 0, text, &owner), PMIX_SUCCESS);
        expect(strcmp(text, "value") == 0, "the value", 0);
        expect(owner.rank == 0 && strcmp(owner.nspace, me.nspace) == 0, "its owner", 0);
    }
    fence();
}

static void check_duplicate(void)
{
    pmix_info_t info[2];

    PMIX_INFO_LOAD(&info[0], "fresh", "x", PMIX_STRING);
    PMIX_INFO_LOAD(&info[1], "late", "x", PMIX_STRING);
    if (me.rank == 2)
        is("duplicate", PMIx_Publish(info, 2), PMIX_ERR_DUPLICATE_KEY);
    fence();
    is("all or nothing", look_up("fresh", -1, 0, NULL, NULL), PMIX_ERR_NOT_FOUND);
}

static void check_several(void)
{
    static const char *const keys[] = {"late", "missing", "second"};
    pmix_pdata_t found[3];
    pmix_info_t info;
    int two = 2;
    pmix_status_t status;

    for (int i = 0; i < 3; i++) {
        PMIX_PDATA_CONSTRUCT(&found[i]);
        PMIX_LOAD_KEY(found[i].key, keys[i]);
    }
    is("a part", PMIx_Lookup(found, 3, NULL, 0), PMIX_SUCCESS);
    expect(found[0].value.type == PMIX_STRING && found[1].value.type == PMIX_UNDEF, "part", 0);
    fence();
    PMIX_INFO_LOAD(&info, PMIX_WAIT, &two, PMIX_INT);
    if (me.rank == 1)
        is("second", publish("second", "2", PMIX_RANGE_NAMESPACE, PMIX_PERSIST_PROC), PMIX_SUCCESS);
    status = PMIx_Lookup(found, 3, &info, 1);
    is("two of three", status, PMIX_SUCCESS);
    expect(found[2].value.type == PMIX_STRING && found[2].proc.rank == 1, "the second", 0);
    for (int i = 0; i < 3; i++)
        PMIX_PDATA_DESTRUCT(&found[i]);
    fence();
}

static void check_ranges(void)
{
    char text[64];
    pmix_status_t status;

    if (me.rank == 0)
        is("once", publish("once", "1", PMIX_RANGE_GLOBAL, PMIX_PERSIST_FIRST_READ), PMIX_SUCCESS);
    if (me.rank == 2)
        is("near", publish("near", "2", PMIX_RANGE_LOCAL, PMIX_PERSIST_INDEF), PMIX_SUCCESS);
    fence();
    status = look_up("once", -1, 0, text, NULL);
    if (status == PMIX_SUCCESS)
        printf("rank %u: has read it\n", me.rank);
    expect(status == PMIX_SUCCESS || status == PMIX_ERR_NOT_FOUND, "first read", status);
    is("near", look_up("near", -1, 0, text, NULL),
       me.rank >= 2 ? PMIX_SUCCESS : PMIX_ERR_NOT_FOUND);
    fence();
}

static void check_unpublish(void)
{
    char *late[] = {"late", NULL};

    if (me.rank == 1)
        is("another's", PMIx_Unpublish(late, NULL, 0), PMIX_ERR_NOT_FOUND);
    fence();
    if (me.rank == 0) {
        is("own", PMIx_Unpublish(late, NULL, 0), PMIX_SUCCESS);
        is("own again", PMIx_Unpublish(late, NULL, 0), PMIX_ERR_NOT_FOUND);
    }
    if (me.rank == 2)
        is("all", PMIx_Unpublish(NULL, NULL, 0), PMIX_SUCCESS);
    fence();
    is("late is gone", look_up("late", -1, 0, NULL, NULL), PMIX_ERR_NOT_FOUND);
    is("near is gone", look_up("near", -1, 0, NULL, NULL), PMIX_ERR_NOT_FOUND);
    is("second is there", look_up("second", -1, 0, NULL, NULL), PMIX_SUCCESS);
}

static pmix_status_t publish_bytes(const char *key, char *bytes, size_t size)
{
    pmix_byte_object_t object = {bytes, size};
    pmix_info_t info;
    pmix_status_t status;

    PMIX_INFO_LOAD(&info, key, &object, PMIX_BYTE_OBJECT);
    status = PMIx_Publish(&info, 1);
    PMIX_INFO_DESTRUCT(&info);
    return status;
}

static void check_large(void)
{
    char *bytes = malloc(2 << 20);
    pmix_pdata_t found;

    memset(bytes, 'x', 2 << 20);
    if (me.rank == 3) {
        is("2 MiB", publish_bytes("large", bytes, 2 << 20), PMIX_ERR_OUT_OF_RESOURCE);
        is("1 MiB", publish_bytes("large", bytes, LARGE), PMIX_SUCCESS);
    }
    fence();
    PMIX_PDATA_CONSTRUCT(&found);
    PMIX_LOAD_KEY(found.key, "large");
    is("1 MiB read", PMIx_Lookup(&found, 1, NULL, 0), PMIX_SUCCESS);
    expect(found.value.type == PMIX_BYTE_OBJECT && found.value.data.bo.size == LARGE &&
               memcmp(found.value.data.bo.bytes, bytes, LARGE) == 0,
           "1 MiB", 0);
    PMIX_PDATA_DESTRUCT(&found);
    free(bytes);
}

static void check_malformed(void)
{
    pmix_data_range_t custom = PMIX_RANGE_CUSTOM, chance = 77;
    pmix_info_t info[2];
    pmix_pdata_t found;
    int negative = -1;

    PMIX_INFO_LOAD(&info[0], "key", "x", PMIX_STRING);
    PMIX_INFO_LOAD(&info[1], PMIX_RANGE, &custom, PMIX_DATA_RANGE);
    is("range", PMIx_Publish(info, 2), PMIX_ERR_NOT_SUPPORTED);
    PMIX_INFO_LOAD(&info[1], PMIX_RANGE, &chance, PMIX_DATA_RANGE);
    is("range of no meaning", PMIx_Publish(info, 2), PMIX_ERR_BAD_PARAM);
    PMIX_PDATA_CONSTRUCT(&found);
    PMIX_LOAD_KEY(found.key, "large");
    is("its lookup", PMIx_Lookup(&found, 1, &info[1], 1), PMIX_SUCCESS);
    PMIX_PDATA_DESTRUCT(&found);
    PMIX_INFO_LOAD(&info[1], PMIX_TIMEOUT, "soon", PMIX_STRING);
    is("timeout", PMIx_Publish(info, 2), PMIX_ERR_BAD_PARAM);
    is("no data", PMIx_Publish(&info[1], 1), PMIX_ERR_BAD_PARAM);
    PMIX_INFO_LOAD(&info[0], "\xff\x01", "x", PMIX_STRING);
    is("key", PMIx_Publish(info, 1), PMIX_ERR_BAD_PARAM);
    PMIX_PDATA_CONSTRUCT(&found);
    PMIX_LOAD_KEY(found.key, "key");
    PMIX_INFO_LOAD(&info[0], PMIX_WAIT, &negative, PMIX_INT);
    is("wait", PMIx_Lookup(&found, 1, info, 1), PMIX_ERR_BAD_PARAM);
    negative = 2;
    PMIX_INFO_LOAD(&info[0], PMIX_WAIT, &negative, PMIX_INT);
    is("two of one", PMIx_Lookup(&found, 1, info, 1), PMIX_ERR_BAD_PARAM);
}

static void check_log(void)
{
    char text[64];
    pmix_info_t info[3], once;

    snprintf(text, sizeof(text), "logged by %u", me.rank);
    PMIX_INFO_LOAD(&info[0], PMIX_LOG_STDOUT, text, PMIX_STRING);
    PMIX_INFO_LOAD(&info[1], PMIX_LOG_STDERR, "and\nin stderr\n", PMIX_STRING);
    PMIX_INFO_LOAD(&info[2], PMIX_LOG_SYSLOG, "nowhere", PMIX_STRING);
    PMIX_INFO_LOAD(&once, PMIX_LOG_ONCE, NULL, PMIX_BOOL);
    is("log", PMIx_Log(info, 2, NULL, 0), PMIX_SUCCESS);
    is("syslog", PMIx_Log(&info[2], 1, NULL, 0), PMIX_ERR_NOT_SUPPORTED);
    PMIX_LOAD_KEY(info[2].key, PMIX_LOG_LOCAL_SYSLOG);
    is("local syslog", PMIx_Log(&info[2], 1, NULL, 0), PMIX_ERR_NOT_SUPPORTED);
    if (me.rank != 0)
        return;
    PMIX_INFO_LOAD(&info[0], PMIX_LOG_STDOUT, "only here", PMIX_STRING);
    is("once", PMIx_Log(info, 3, &once, 1), PMIX_SUCCESS);
    PMIX_INFO_LOAD(&info[0], PMIX_LOG_STDOUT, "in part", PMIX_STRING);
    info[1] = info[2];
    is("in part", PMIx_Log(info, 2, NULL, 0), PMIX_ERR_PARTIAL_SUCCESS);
}

static void die(int signal)
{
    (void)signal;
    kill(getpid(), SIGKILL);
}

/* All wait for something large. */
static void crowd(void)
{
    char *bytes = calloc(1, LARGE);
    pmix_pdata_t found;
    pmix_info_t info;
    int one = 1;

    PMIX_PDATA_CONSTRUCT(&found);
    PMIX_LOAD_KEY(found.key, "large");
    PMIX_INFO_LOAD(&info, PMIX_WAIT, &one, PMIX_INT);
    fence();
    if (me.rank == 0) {
        usleep(300000);
        is("large", publish_bytes("large", bytes, LARGE), PMIX_SUCCESS);
    }
    is("read", PMIx_Lookup(&found, 1, &info, 1), PMIX_SUCCESS);
    expect(found.value.type == PMIX_BYTE_OBJECT && found.value.data.bo.size == LARGE, "size", 0);
    PMIX_PDATA_DESTRUCT(&found);
    free(bytes);
}

/* Rank 3 is killed while it waits. */
static void first_world(void)
{
    if (me.rank == 0) {
        is("kept", publish("kept", "k", PMIX_RANGE_SESSION, PMIX_PERSIST_SESSION), PMIX_SUCCESS);
        is("gone", publish("gone", "g", PMIX_RANGE_SESSION, PMIX_PERSIST_APP), PMIX_SUCCESS);
    }
    fence();
    if (me.rank == 3) {
        signal(SIGALRM, die);
        alarm(1);
    }
    is("nobody publishes it", look_up("waited for", 0, 0, NULL, NULL), PMIX_SUCCESS);
}

static void second_world(void)
{
    char *kept[] = {"kept", NULL}, text[64];
    pmix_proc_t owner;

    is("kept", look_up("kept", -1, 0, text, &owner), PMIX_SUCCESS);
    expect(strcmp(owner.nspace, me.nspace) != 0, "of the world before", 0);
    is("gone", look_up("gone", -1, 0, NULL, NULL), PMIX_ERR_NOT_FOUND);
    fence();
    if (me.rank == 1) {
        /* Whoever waited for it in the world before does no more. */
        is("new", publish("waited for", "w", PMIX_RANGE_SESSION, PMIX_PERSIST_FIRST_READ),
           PMIX_SUCCESS);
        is("read", look_up("waited for", -1, 0, NULL, NULL), PMIX_SUCCESS);
        is("left behind", PMIx_Unpublish(kept, NULL, 0), PMIX_SUCCESS);
    }
    fence();
    is("removed", look_up("kept", -1, 0, NULL, NULL), PMIX_ERR_NOT_FOUND);
}

int main(int argc, char **argv)
{
    pmix_status_t status = PMIx_Init(&me, NULL, 0);

    if (status != PMIX_SUCCESS || argc != 2)
        return 1;
    if (strcmp(argv[1], "all") == 0) {
        check_waiting();
        check_duplicate();
        check_several();
        check_ranges();
        check_unpublish();
        check_large();
        check_malformed();
        check_log();
    } else if (strcmp(argv[1], "crowd") == 0) {
        crowd();
    } else if (getenv("ELASTIC_GENERATION") != NULL && atoi(getenv("ELASTIC_GENERATION")) > 1) {
        second_world();
    } else {
        first_world();
    }
    fence();
    if (wrong == 0)
        printf("right: %u of %s\n", me.rank, argv[1]);
    PMIx_Finalize(NULL, 0);
    return wrong > 0;
}
