/* SPDX-License-Identifier: GPL-2.0-or-later */
/* fit/guests: what users of a trainer are answered; and lib/trainer_note. */
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <sodium.h>

#include "common/files.h"
#include "fit/foreign.h"
#include "fit/guest_runner.h"
#include "fit/guest_trainer.h"
#include "fit/guests.h"
#include "fit/room.h"
#include "fit/training.h"
#include "lib/json_get.h"
#include "lib/json_text.h"
#include "lib/trainer_note.h"
#include "tests/unit/fit_fixture.h"

/* ---- the comment ----------------------------------------------------------------------------- */

static void test_notes(void **state)
{
    static const struct {
        const char *comment, *payer, *runner, *note;
    } rows[] = {
        {NULL, NULL, NULL, "elastic-trainer=base"},
        {"", NULL, NULL, "elastic-trainer=base"},
        {"mine", "eve", "anna", "mine elastic-trainer=base payer=eve runner=anna"},
        {"mine elastic-trainer=base payer=eve runner=anna", NULL, "anna",
         "mine elastic-trainer=base"},
        {"elastic-trainer=old", "eve", NULL, "elastic-trainer=base payer=eve"},
        {"not-elastic-trainer=x", NULL, NULL, "not-elastic-trainer=x elastic-trainer=base"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        char *note = trainer_note(rows[i].comment, "base", rows[i].payer, rows[i].runner);

        assert_string_equal(note, rows[i].note);
        assert_true(trainer_note_names(note, "base"));
        assert_false(trainer_note_names(note, "bas"));
        assert_false(trainer_note_names(note, "base2"));
        free(note);
    }
    assert_false(trainer_note_names(NULL, "base"));
    assert_false(trainer_note_names("not-elastic-trainer=base", "base"));
}

static void test_names(void **state)
{
    static const char *const wrong[] = {"", "@", "a@", "@b", "a@b@c", "../x", "a b", "-a", NULL};
    struct trainer_name name;

    (void)state;
    assert_true(trainer_name_read("base@anna", &name));
    assert_string_equal(name.service, "base");
    assert_string_equal(name.user, "anna");
    assert_true(trainer_name_read("base", &name));
    assert_string_equal(name.user, "");
    for (const char *const *one = wrong; *one != NULL; one++)
        assert_false(trainer_name_read(*one, &name));
}

/* ---- the desk -------------------------------------------------------------------------------- */

static struct home guests;

/* The answer to that message of a user; "allow" is as given. */
static json_object *said(uid_t uid, const char *allow, const char *message)
{
    char text[4096];
    json_object *whole, *answer;

    snprintf(text, sizeof(text),
             "{\"uid\": %u, \"allow\": [%s], \"fit\": {\"run\": [\"true\"]}, \"message\": %s}", uid,
             allow, message);
    whole = json_text_parse(text, strlen(text), NULL);
    assert_non_null(whole);
    answer = guest_answer(&guests, whole);
    json_object_put(whole);
    return answer;
}

static void expect_code(json_object *answer, const char *code)
{
    assert_string_equal(json_get_string(answer, "code"), code);
    json_object_put(answer);
}

static int64_t number_of(json_object *answer)
{
    int64_t number = 0;

    assert_string_equal(json_get_string(answer, "t"), "fit");
    assert_true(json_get_int(answer, "number", 1, 1000, &number));
    json_object_put(answer);
    return number;
}

#define ASK   "{\"t\": \"fit-ask\", \"service\": \"s\", \"fit\": 3}"
#define OTHER 1U /* daemon */

static void test_who_may_ask(void **state)
{
    const struct passwd *entry = getpwuid(OTHER);
    char allow[64];

    (void)state;
    if (entry == NULL || geteuid() == OTHER) {
        print_message("there is no user with the uid 1\n");
        skip();
    }
    snprintf(allow, sizeof(allow), "\"%s\"", entry->pw_name);
    expect_code(said(OTHER, "", ASK), "denied");
    expect_code(said(OTHER, "\"somebody\"", ASK), "denied");
    assert_int_equal(number_of(said(OTHER, allow, ASK)), 1);
    snprintf(allow, sizeof(allow), "\"@%s\"", entry->pw_name);
    assert_int_equal(number_of(said(OTHER, allow, ASK)), 1); /* the same number */
    /* A number of somebody else does not exist. */
    expect_code(said(geteuid(), "", "{\"t\": \"fit-look\", \"number\": 1}"), "none");
    expect_code(said(geteuid(), "", "{\"t\": \"fit-end\", \"number\": 99}"), "none");
    assert_int_equal(number_of(said(geteuid(), "", ASK)), 2);
}

static void test_what_is_wrong(void **state)
{
    static const char *const wrong[] = {
        "{\"t\": \"show\"}",
        "{}",
        "{\"t\": \"fit-ask\", \"service\": \"../s\", \"fit\": 3}",
        "{\"t\": \"fit-ask\", \"service\": \"s\", \"fit\": 0}",
        "{\"t\": \"fit-begin\", \"number\": 2}",
        ("{\"t\": \"fit-begin\", \"number\": 2, \"call\": {\"modelDir\": \"m\", "
         "\"trainData\": \"/d\"}}"),
        "{\"t\": \"fit-begin\", \"number\": 2, \"call\": {\"modelDir\": \"/m\"}}",
    };

    (void)state;
    assert_int_equal(number_of(said(geteuid(), "", ASK)), 2);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
        expect_code(said(geteuid(), "", wrong[i]), "wrong");
}

static void test_a_training(void **state)
{
    static const char begin[] = "{\"t\": \"fit-begin\", \"number\": 2, \"call\": {\"modelDir\": "
                                "\"/m\", \"trainData\": \"/d\"}}";
    json_object *answer;

    (void)state;
    number_of(said(geteuid(), "", begin));
    number_of(said(geteuid(), "", begin)); /* nothing is begun twice */
    assert_int_equal(
        file_replace(home_path(&guests, 2, HOME_LOG_FILE).text, "one\ntw\xff", 7, 0600, NULL), 0);
    answer = said(geteuid(), "", "{\"t\": \"fit-look\", \"number\": 2, \"from\": 0}");
    assert_string_equal(json_get_string(answer, "log"), "one\n");
    json_object_put(answer);
    assert_int_equal(number_of(said(geteuid(), "", "{\"t\": \"fit-end\", \"number\": 2}")), 2);
    /* Who asks after the end gets another one. */
    assert_int_equal(number_of(said(geteuid(), "", ASK)), 3);
}

/* ---- their turn ------------------------------------------------------------------------------ */

static int notes, wanted; /* of the job's comment; replicas that the leader is asked for */

int service_note(struct service_link *link, const char *service, const char *payer,
                 struct error *err)
{
    (void)link;
    (void)service;
    (void)payer;
    (void)err;
    notes++;
    return 0;
}

int service_train(struct service_link *link, const char *role, int count,
                  struct service_trainer *trainer, struct error *err)
{
    (void)link;
    (void)err;
    assert_string_equal(role, "fit");
    wanted = count;
    *trainer = (struct service_trainer){.there = count};
    return 0;
}

static struct home others;

static int make_turns(void **state)
{
    (void)state;
    others = guests;
    notes = wanted = 0;
    strcpy(guests.dir, "/tmp/test-turns-XXXXXX");
    return mkdtemp(guests.dir) != NULL ? 0 : -1;
}

static int remove_turns(void **state)
{
    int rc = dir_remove(guests.dir, NULL);

    (void)state;
    guests = others;
    return rc;
}

static bool look_at(struct guest_runner *runner, double later)
{
    struct error err = {""};
    bool busy;

    if (guest_runner_look(runner, (double)time(NULL) + later, &busy, &err) != 0)
        fail_msg("%s", err.text);
    return busy;
}

/* They may come as often as they like: Slurm is not asked for each of them. */
static void test_ended_before_its_turn(void **state)
{
    struct guest_runner runner = {.home = guests, .service = "t", .noted = -1};

    (void)state;
    assert_false(look_at(&runner, 0));
    assert_int_equal(notes, 1);
    for (int i = 1; i <= 5; i++) {
        char end[64];

        assert_int_equal(number_of(said(geteuid(), "", ASK)), i);
        snprintf(end, sizeof(end), "{\"t\": \"fit-end\", \"number\": %d}", i);
        number_of(said(geteuid(), "", end));
        assert_true(look_at(&runner, 0));
        assert_true(home_has(&guests, i, GUEST_OVER_FILE));
    }
    assert_int_equal(notes, 1);
}

#define BEGIN_1                                                                                    \
    "{\"t\": \"fit-begin\", \"number\": 1, \"call\": {\"modelDir\": \"/m\", \"trainData\": "       \
    "\"/d\"}}"

/* Its user asks all the time, and holds the replica. */
static void heard_of(double later)
{
    const struct timespec times[2] = {{.tv_sec = time(NULL) + (time_t)later},
                                      {.tv_sec = time(NULL) + (time_t)later}};

    assert_int_equal(utimensat(AT_FDCWD, home_path(&guests, 1, GUEST_LOOKED_FILE).text, times, 0),
                     0);
}

static void test_not_for_ever(void **state)
{
    struct guest_runner runner = {.home = guests, .service = "t", .noted = -1};
    json_object *result;

    (void)state;
    assert_int_equal(number_of(said(geteuid(), "", ASK)), 1);
    assert_true(look_at(&runner, 0));
    assert_int_equal(wanted, 1);
    home_make(&guests, 1, HOME_TRAINER_FILE);
    heard_of(590);
    look_at(&runner, 590);
    assert_false(home_has(&guests, 1, GUEST_END_FILE));
    number_of(said(geteuid(), "", BEGIN_1));
    heard_of(3590);
    look_at(&runner, 3590); /* the limit without a word of the owner */
    assert_false(home_has(&guests, 1, GUEST_END_FILE));
    heard_of(3700);
    look_at(&runner, 3700);
    assert_true(home_has(&guests, 1, GUEST_OVER_FILE));
    result = home_read(&guests, 1, HOME_FIT_FILE, NULL);
    assert_non_null(strstr(json_get_string(result, "why"), "within.fit"));
    json_object_put(result);
    assert_int_equal(wanted, 0);
}

/* The clock of the file system may be another one. */
static void test_silence(void **state)
{
    struct guest_runner runner = {.home = guests, .service = "t", .noted = -1};

    (void)state;
    assert_int_equal(number_of(said(geteuid(), "", ASK)), 1);
    heard_of(-3600);
    look_at(&runner, 0);
    look_at(&runner, 50);
    heard_of(-3500);
    look_at(&runner, 55);
    look_at(&runner, 110);
    assert_false(home_has(&guests, 1, GUEST_END_FILE));
    look_at(&runner, 120);
    assert_true(home_has(&guests, 1, GUEST_OVER_FILE));
}

static void set_time(const char *file, time_t at)
{
    const struct timespec times[2] = {{.tv_sec = at}, {.tv_sec = at}};

    assert_int_equal(utimensat(AT_FDCWD, home_path(&guests, 1, file).text, times, 0), 0);
}

static void test_other_clock(void **state)
{
    struct guest_runner runner = {.home = guests, .service = "t", .noted = -1};

    (void)state;
    assert_int_equal(number_of(said(geteuid(), "", ASK)), 1);
    look_at(&runner, 0);
    assert_int_equal(training_here(&guests, 1, NULL, NULL), 0);
    set_time(HOME_TRAINER_FILE, 1000);
    look_at(&runner, 0);
    assert_false(home_has(&guests, 1, GUEST_END_FILE));
    number_of(said(geteuid(), "", BEGIN_1));
    set_time(GUEST_BEGIN_FILE, 1000);
    look_at(&runner, 0);
    assert_false(home_has(&guests, 1, GUEST_END_FILE));
    set_time(GUEST_BEGIN_FILE, time(NULL) + 1000000);
    heard_of(3700);
    look_at(&runner, 3700);
    assert_true(home_has(&guests, 1, GUEST_OVER_FILE));
}

/* 99 KiB of lists in lists, which are 50 times as long where each value has a line of its own. */
#define DEEP  22
#define LISTS 14000

static json_object *deep_call(int lists)
{
    json_object *call = json_object_new_object(), *config = json_object_new_array();

    for (int i = 0; i < lists; i++) {
        json_object *one = json_object_new_array();

        json_object_array_add(one, json_object_new_array());
        json_object_array_add(one, json_object_new_int(1));
        json_object_array_add(config, one);
    }
    for (int i = 0; i < DEEP; i++) {
        json_object *outer = json_object_new_array();

        json_object_array_add(outer, config);
        config = outer;
    }
    json_object_object_add(call, "modelDir", json_object_new_string("/m"));
    json_object_object_add(call, "trainData", json_object_new_string("/d"));
    json_object_object_add(call, "config", config);
    return call;
}

/* The answer to a fit-begin of training 1, with so many lists in its config. */
static json_object *begun_with(int lists)
{
    json_object *message = json_object_new_object(), *whole = json_object_new_object(), *answer;

    json_object_object_add(message, "t", json_object_new_string("fit-begin"));
    json_object_object_add(message, "number", json_object_new_int(1));
    json_object_object_add(message, "call", deep_call(lists));
    json_object_object_add(whole, "uid", json_object_new_int64(geteuid()));
    json_object_object_add(whole, "message", message);
    answer = guest_answer(&guests, whole);
    json_object_put(whole);
    return answer;
}

static void test_long_config(void **state)
{
    json_object *answer, *begun;

    (void)state;
    assert_int_equal(number_of(said(geteuid(), "", ASK)), 1);
    answer = begun_with((int)(HOME_FILE_MAX / strlen("[[],1]")));
    assert_non_null(strstr(json_get_string(answer, "message"), "at most 4194304 are allowed"));
    expect_code(answer, "failed");
    assert_false(home_has(&guests, 1, GUEST_BEGIN_FILE));
    number_of(begun_with(LISTS));
    begun = home_read(&guests, 1, GUEST_BEGIN_FILE, NULL);
    assert_true(json_get_double(begun, "limit", 0) == GUEST_LIMIT);
    json_object_put(begun);
}

/* Nobody knows how long it may take: it ends. */
static void test_unreadable(void **state)
{
    struct guest_runner runner = {.home = guests, .service = "t", .noted = -1};
    json_object *result;
    struct error err;

    (void)state;
    assert_int_equal(number_of(said(geteuid(), "", ASK)), 1);
    look_at(&runner, 0);
    number_of(said(geteuid(), "", BEGIN_1));
    assert_int_equal(truncate(home_path(&guests, 1, GUEST_BEGIN_FILE).text, HOME_FILE_MAX + 1), 0);
    assert_null(home_read(&guests, 1, GUEST_BEGIN_FILE, &err));
    look_at(&runner, 1);
    assert_true(home_has(&guests, 1, GUEST_OVER_FILE));
    result = home_read(&guests, 1, HOME_FIT_FILE, NULL);
    assert_non_null(strstr(json_get_string(result, "why"), GUEST_BEGIN_FILE));
    json_object_put(result);
    assert_int_equal(wanted, 0);
}

static void test_begun_by_nobody(void **state)
{
    struct guest_runner runner = {.home = guests, .service = "t", .noted = -1};

    (void)state;
    assert_int_equal(number_of(said(geteuid(), "", ASK)), 1);
    look_at(&runner, 0);
    home_make(&guests, 1, HOME_TRAINER_FILE);
    heard_of(700);
    look_at(&runner, 700);
    assert_true(home_has(&guests, 1, GUEST_OVER_FILE));
    assert_false(home_has(&guests, 1, HOME_FIT_FILE));
}

#define WITH_TURNS(test) cmocka_unit_test_setup_teardown(test, make_turns, remove_turns)

/* ---- files of others ------------------------------------------------------------------------- */

static struct foreign own(void)
{
    return (struct foreign){.owner = geteuid()};
}

static void test_foreign_files(void **state)
{
    const struct foreign self = own(), other = {.owner = geteuid() + 1};
    struct error err = {""};
    char result[PATH_MAX];

    (void)state;
    put("data", "d");
    assert_int_equal(foreign_copy(at("data"), &self, at("to"), result, &err), 0);
    assert_true(strstr(result, "/to/data") != NULL);
    expect_error(foreign_copy(at("data"), &other, at("to"), result, &err), &err,
                 "belongs to the user who asks");
    assert_int_equal(symlink("data", at("link")), 0);
    expect_error(foreign_copy(at("link"), &self, at("to"), result, &err), &err,
                 "it follows no link");
    /* What is put there under numbers has its names once it is taken. */
    assert_int_equal(dir_make(at("there"), NULL), 0);
    assert_int_equal(foreign_put(at("to"), at("there"), &self, &err), 0);
    assert_int_equal(dir_make(at("taken"), NULL), 0);
    assert_int_equal(foreign_take(at("there"), at("taken"), &self, &err), 0);
    assert_int_equal(access(at("taken/data"), F_OK), 0);
}

static void expect_text(const char *name, const char *text)
{
    char *read = file_read(at(name), 100, NULL, NULL);

    assert_non_null(read);
    assert_string_equal(read, text);
    free(read);
}

/* Another attempt puts all of its files while this one puts its first; with the second it ends. */
static bool puts_another(void *arg)
{
    const struct foreign self = own();

    if (++*(int *)arg > 1)
        return true;
    assert_int_equal(foreign_put(at("second"), at("there"), &self, NULL), 0);
    return false;
}

static void test_two_attempts(void **state)
{
    struct foreign self = own(), first = own();
    struct error err = {""};
    int calls = 0;

    (void)state;
    assert_int_equal(dir_make(at("first"), NULL), 0);
    assert_int_equal(dir_make(at("second"), NULL), 0);
    assert_int_equal(dir_make(at("there"), NULL), 0);
    assert_int_equal(dir_make(at("taken"), NULL), 0);
    put("first/a", "old");
    put("first/b", "old");
    put("second/a", "new");
    put("second/b", "new");
    first.stops = puts_another;
    first.arg = &calls;
    expect_error(foreign_put(at("first"), at("there"), &first, &err), &err, "given up");
    assert_int_equal(calls, 2);
    assert_int_equal(foreign_take(at("there"), at("taken"), &self, &err), 0);
    expect_text("taken/a", "new");
    expect_text("taken/b", "new");
}

#define LIST(names) "{\"attempt\": \"0123456789abcdef\", \"files\": [" names "]}"

/* Who asks chooses the path, and hears what is wrong with it: not what is in directories that only
 * the trainer may look into. */
static void test_what_a_refusal_tells(void **state)
{
    const struct foreign other = {.owner = geteuid() + 1};
    static const char *const paths[] = {"private",         "private/there", "private/link",
                                        "private/there/x", "private/none",  "none"};
    struct error err = {""};
    char result[PATH_MAX];

    (void)state;
    assert_int_equal(dir_make(at("private"), NULL), 0);
    put("private/there", "d");
    assert_int_equal(symlink("there", at("private/link")), 0);
    for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++) {
        const char *said;

        assert_int_equal(foreign_copy(at(paths[i]), &other, at("to"), result, &err), -1);
        said = strrchr(err.text, ':');
        assert_non_null(said);
        assert_string_equal(said, ": the trainer finds nothing there that it may open and that "
                                  "belongs to the user who asks; it follows no link");
    }
}

/* … nor in directories of others below a directory of the one who asks. */
static void test_directories_of_others(void **state)
{
    const struct foreign self = own();
    struct error err = {""};
    char result[PATH_MAX];

    (void)state;
    if (geteuid() != 0)
        skip();
    assert_int_equal(dir_make(at("data"), NULL), 0);
    assert_int_equal(dir_make(at("data/others"), NULL), 0);
    put("data/others/name", "d");
    assert_int_equal(chown(at("data/others"), 65534, 65534), 0);
    expect_error(foreign_copy(at("data"), &self, at("to"), result, &err), &err,
                 "others: a directory of another user");
}

/* What a trainer can put there: nothing of this user's becomes a file of the state. */
static void test_what_is_not_taken(void **state)
{
    const struct foreign self = own(), other = {.owner = geteuid() + 1};
    static const char *const names[] = {"complete.json", "./x",  "../x",          "/x", "",
                                        ".incoming/x",   "a//b", "./.incoming/x", NULL};
    struct error err = {""};
    char list[128], *large;

    (void)state;
    assert_int_equal(dir_make(at("in"), NULL), 0);
    assert_int_equal(dir_make(at("out"), NULL), 0);
    put("in/1", "secret");
    put("in/files.json", LIST("\"model\""));
    expect_error(foreign_take(at("in"), at("out"), &other, &err), &err,
                 "does not belong to the user who trains");
    assert_int_equal(access(at("out/model"), F_OK), -1);
    for (const char *const *name = names; *name != NULL; name++) {
        snprintf(list, sizeof(list), LIST("\"%s\""), *name);
        put("in/files.json", list);
        expect_error(foreign_take(at("in"), at("out"), &self, &err), &err,
                     "a name that cannot be used");
    }
    put("in/files.json", LIST("\"model\""));
    assert_int_equal(unlink(at("in/1")), 0);
    assert_int_equal(symlink("/etc/hostname", at("in/1")), 0);
    assert_int_equal(foreign_take(at("in"), at("out"), &self, &err), -1);
    /* A list that is small as a text only. */
    large = calloc(1, 1 << 20);
    assert_non_null(large);
    memset(large, ',', (1 << 20) - 1);
    large[0] = '[';
    put("in/files.json", large);
    free(large);
    expect_error(foreign_take(at("in"), at("out"), &self, &err), &err, "no list of at most");
}

static bool stops_at_once(void *arg)
{
    ++*(int *)arg;
    return true;
}

/* A file may have any size without any room. */
static void test_foreign_sizes(void **state)
{
    struct foreign self = own();
    struct error err = {""};
    char result[PATH_MAX];
    struct rlimit before, few;
    int asked = 0;

    (void)state;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    few = (struct rlimit){.rlim_cur = 1 << 20, .rlim_max = before.rlim_max};
    signal(SIGXFSZ, SIG_IGN);
    put("huge", "");
    assert_int_equal(truncate(at("huge"), (off_t)1 << 42), 0);
    expect_error(foreign_copy(at("huge"), &self, at("copies"), result, &err), &err,
                 "no room for a copy");
    /* … and so does what a training has written for somebody else's directory. */
    assert_int_equal(dir_make(at("model"), NULL), 0);
    assert_int_equal(dir_make(at("there"), NULL), 0);
    put("there/1", "of an attempt before");
    assert_int_equal(rename(at("huge"), at("model/huge")), 0);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &few), 0); /* it does not fill the disk */
    expect_error(foreign_put(at("model"), at("there"), &self, &err), &err, "no room for a copy");
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(access(at("there/1"), F_OK), -1);
    put("small", "s");
    self.stops = stops_at_once;
    self.arg = &asked;
    expect_error(foreign_copy(at("small"), &self, at("copies"), result, &err), &err, "given up");
    assert_true(asked > 0);
}

static bool opens(void *arg)
{
    const char *name = arg;

    if (errno != EACCES)
        return false;
    if (seteuid(0) != 0 || chmod(name, 0644) != 0 || seteuid(OTHER) != 0)
        _exit(3);
    return false;
}

/* Access is missing in the middle, and comes back. */
static void test_patience(void **state)
{
    struct foreign self = {.owner = 0, .stops = opens, .patience = 30};
    char from[128], closed[128], to[128], result[PATH_MAX];
    int status;
    pid_t child;

    (void)state;
    if (geteuid() != 0) {
        print_message("this needs root: its own files are open to every other user\n");
        skip();
    }
    snprintf(from, sizeof(from), "%s", at("tree"));
    assert_int_equal(chmod(dir, 0777), 0);
    assert_int_equal(mkdir(from, 0755), 0);
    put("tree/a", "a");
    put("tree/b", "b");
    assert_int_equal(chmod(at("tree/a"), 0644), 0);
    snprintf(closed, sizeof(closed), "%s", at("tree/b"));
    snprintf(to, sizeof(to), "%s", at("copies"));
    self.arg = closed;
    child = fork();
    if (child == 0) {
        struct error err;

        if (seteuid(OTHER) != 0)
            _exit(4);
        _exit(foreign_copy(from, &self, to, result, &err) == 0 ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(access(at("copies/b"), F_OK), 0);
}

/* Files and directories are counted, not the directories twice. */
static void test_room(void **state)
{
    struct room room = {.found = true, .bytes = 10, .files = 6};
    struct error err;

    (void)state;
    assert_int_equal(room_take(&room, "a/b/one", 4, &err), 0);
    assert_int_equal(room.files, 3);
    assert_int_equal(room_take(&room, "a/b/two", 4, &err), 0);
    assert_int_equal(room_take(&room, "a/c", 0, &err), 0);
    assert_int_equal(room.files, 1);
    expect_error(room_take(&room, "b/x", 0, &err), &err, "no room");
    expect_error(room_take(&room, "x", 3, &err), &err, "no room");
    assert_int_equal(room_take(&room, "x", 2, &err), 0);
}

/* What data has taken, targets do not get once more. */
static void test_one_room(void **state)
{
    struct room room = {.found = true, .bytes = 10, .files = 10};
    struct foreign self = own();
    struct error err = {""};
    char result[PATH_MAX];

    (void)state;
    self.room = &room;
    put("first", "123456");
    put("second", "123456");
    assert_int_equal(foreign_copy(at("first"), &self, at("copy"), result, &err), 0);
    assert_int_equal(room.bytes, 4);
    expect_error(foreign_copy(at("second"), &self, at("other"), result, &err), &err,
                 "no room for a copy");
    self.room = NULL;
    assert_int_equal(foreign_copy(at("second"), &self, at("other"), result, &err), 0);
}

static int make_foreign(void **state)
{
    (void)state;
    return make_dir() ? 0 : -1;
}

static int remove_foreign(void **state)
{
    (void)state;
    remove_dir();
    return 0;
}

/* A trainer that was killed leaves its copies: the next one removes them, and no others. */
static void test_scratch(void **state)
{
    struct training_scratch used, left;
    char path[PATH_MAX];
    struct error err;

    (void)state;
    assert_int_equal(setenv("TMPDIR", dir, 1), 0);
    assert_int_equal(training_scratch_make(&used, &err), 0);
    assert_int_equal(training_scratch_make(&left, &err), 0);
    snprintf(path, sizeof(path), "%.4000s/copy", left.path);
    assert_int_equal(file_replace(path, "d", 1, 0600, NULL), 0);
    close(left.lock); /* as at the end of its process */
    assert_int_equal(dir_make(at("elastic-other"), NULL), 0);
    training_scratch_sweep();
    assert_int_equal(access(left.path, F_OK), -1);
    assert_int_equal(access(used.path, F_OK), 0);
    assert_int_equal(access(at("elastic-other"), F_OK), 0);
    training_scratch_remove(&used);
    assert_string_equal(used.path, "");
    assert_int_equal(unsetenv("TMPDIR"), 0);
}

/* ---- the owner's programs -------------------------------------------------------------------- */

/* Has that training done, and reads how it has ended. A new object. */
static json_object *trained(const struct home *home, int64_t number, json_object *begun)
{
    struct guest_trainer trainer = {.home = *home, .key = s3_box_key_create()};
    json_object *run = json_object_new_object(), *result;
    struct error err = {""};
    int64_t id;

    json_object_object_add(run, "uid", json_object_new_int64(geteuid()));
    assert_int_equal(home_add(home, run, &id, &err), 0);
    assert_int_equal(id, number);
    assert_int_equal(home_write(home, id, GUEST_BEGIN_FILE, begun, &err), 0);
    assert_true(home_make(home, id, GUEST_CHOSEN_FILE));
    if (guest_trainer_look(&trainer, &err) != 0)
        fail_msg("%s", err.text);
    s3_box_key_destroy(trainer.key);
    result = home_read(home, id, HOME_FIT_FILE, &err);
    assert_non_null(result);
    assert_true(home_make(home, id, GUEST_OVER_FILE)); /* the next one's turn comes */
    return result;
}

/* Both see copies of what is the guest's. A training whose data cannot be got does not run. */
static void test_programs_of_the_owner(void **state)
{
    static const struct {
        const char *staged, *why, *log;
    } rows[] = {
        {"exit 0", "", "data\ntargets\n{\n  \"rate\":1\n}"},
        {"echo unknown; exit 1", "the program that gets the data: exit status 1;", "unknown\n"},
    };
    struct home home;
    char text[2048], *log;

    (void)state;
    put("data", "data\n");
    put("targets", "targets\n");
    assert_int_equal(dir_make(at("result"), NULL), 0);
    snprintf(home.dir, sizeof(home.dir), "%s", at("service"));
    assert_int_equal(setenv("TMPDIR", dir, 1), 0);
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        json_object *result;
        const char *why;

        snprintf(text, sizeof(text),
                 "{\"call\": {\"modelDir\": \"%s/result\", \"trainData\": \"%s/data\", "
                 "\"targetsData\": \"%s/targets\", \"config\": {\"rate\": 1}}, "
                 "\"stage\": [\"sh\", \"-c\", \"%s\"], "
                 "\"run\": [\"sh\", \"-c\", \"touch $ELASTIC_MODEL_DIR/model; cat "
                 "$ELASTIC_TRAIN_DATA $ELASTIC_TARGETS_DATA $ELASTIC_FIT_CONFIG\"]}",
                 dir, dir, dir, rows[i].staged);
        result = trained(&home, (int64_t)i + 1, json_text_parse(text, strlen(text), NULL));
        why = json_get_string(result, "why");
        if (strncmp(why, rows[i].why, strlen(rows[i].why)) != 0)
            fail_msg("row %zu: %s", i, why);
        json_object_put(result);
        log = file_read(home_path(&home, (int64_t)i + 1, HOME_LOG_FILE).text, 100, NULL, NULL);
        assert_string_equal(log, rows[i].log);
        free(log);
    }
    assert_int_equal(access(at("result/files.json"), F_OK), 0);
    assert_int_equal(unsetenv("TMPDIR"), 0);
}

#define WITH_FILES(test) cmocka_unit_test_setup_teardown(test, make_foreign, remove_foreign)

static int make_home(void **state)
{
    (void)state;
    strcpy(guests.dir, "/tmp/test-guests-XXXXXX");
    return mkdtemp(guests.dir) != NULL ? 0 : -1;
}

static int remove_home(void **state)
{
    (void)state;
    return dir_remove(guests.dir, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_notes),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_who_may_ask),
        cmocka_unit_test(test_what_is_wrong),
        cmocka_unit_test(test_a_training),
        WITH_FILES(test_foreign_files),
        WITH_FILES(test_two_attempts),
        WITH_FILES(test_what_a_refusal_tells),
        WITH_FILES(test_directories_of_others),
        WITH_FILES(test_what_is_not_taken),
        WITH_FILES(test_foreign_sizes),
        WITH_FILES(test_patience),
        WITH_FILES(test_scratch),
        WITH_FILES(test_programs_of_the_owner),
        cmocka_unit_test(test_room),
        WITH_FILES(test_one_room),
        WITH_TURNS(test_ended_before_its_turn),
        WITH_TURNS(test_not_for_ever),
        WITH_TURNS(test_silence),
        WITH_TURNS(test_other_clock),
        WITH_TURNS(test_long_config),
        WITH_TURNS(test_unreadable),
        WITH_TURNS(test_begun_by_nobody),
    };

    return sodium_init() >= 0 ? cmocka_run_group_tests(tests, make_home, remove_home) : 1;
}
