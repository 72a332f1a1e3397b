/* SPDX-License-Identifier: GPL-2.0-or-later */
/* fit/guests: what users of a trainer are answered; and lib/trainer_note. */
#include "tests/unit/support.h"

#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/files.h"
#include "fit/foreign.h"
#include "fit/guests.h"
#include "lib/json_get.h"
#include "lib/json_text.h"
#include "lib/trainer_note.h"

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

/* ---- files of others ------------------------------------------------------------------------- */

static void test_foreign_files(void **state)
{
    char dir[] = "/tmp/test-foreign-XXXXXX", path[64], to[64], result[PATH_MAX];
    struct error err = {""};

    (void)state;
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof(path), "%s/data", dir);
    snprintf(to, sizeof(to), "%s/to", dir);
    assert_int_equal(file_replace(path, "d", 1, 0600, NULL), 0);
    assert_int_equal(foreign_copy(path, geteuid(), to, result, &err), 0);
    assert_true(strstr(result, "/to/data") != NULL);
    assert_int_equal(foreign_copy(path, geteuid() + 1, to, result, &err), -1);
    assert_non_null(strstr(err.text, "it does not belong to the user who asks"));
    snprintf(path, sizeof(path), "%s/link", dir);
    assert_int_equal(symlink("data", path), 0);
    assert_int_equal(foreign_copy(path, geteuid(), to, result, &err), -1);
    assert_non_null(strstr(err.text, "there is a link in it"));
    /* What is put there under numbers has its names once it is taken. */
    snprintf(path, sizeof(path), "%s/there", dir);
    assert_int_equal(dir_make(path, NULL), 0);
    assert_int_equal(foreign_put(to, path, geteuid(), &err), 0);
    snprintf(to, sizeof(to), "%s/taken", dir);
    assert_int_equal(dir_make(to, NULL), 0);
    assert_int_equal(foreign_take(path, to, &err), 0);
    snprintf(to, sizeof(to), "%s/taken/data", dir);
    assert_int_equal(access(to, F_OK), 0);
    assert_int_equal(dir_remove(dir, NULL), 0);
}

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
        cmocka_unit_test(test_notes),       cmocka_unit_test(test_names),
        cmocka_unit_test(test_who_may_ask), cmocka_unit_test(test_what_is_wrong),
        cmocka_unit_test(test_a_training),  cmocka_unit_test(test_foreign_files),
    };

    return cmocka_run_group_tests(tests, make_home, remove_home);
}
