/* SPDX-License-Identifier: GPL-2.0-or-later */
/* lib/when: moments as users write them, in fixed zones. */
#include "lib/when.h"

#include <time.h>

#include "tests/unit/support.h"

/* Central Europe as a rule of its own: the tests need no files of zones. */
#define BERLIN "CET-1CEST,M3.5.0,M10.5.0/3"

static void set_zone(const char *zone)
{
    setenv("TZ", zone, 1);
    tzset();
}

static int64_t parse_good(const char *text, int64_t now)
{
    struct error err = {""};
    int64_t when = -1;

    if (when_parse(text, now, &when, &err) != 0)
        fail_msg("%s", err.text);
    return when;
}

static int64_t at(const char *utc)
{
    return parse_good(utc, 0);
}

struct moment {
    const char *text, *utc;
};

static void check(const char *now, const struct moment *cases, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        char buf[WHEN_TEXT_MAX];

        when_format(parse_good(cases[i].text, at(now)), buf, sizeof(buf));
        if (strcmp(buf, cases[i].utc) != 0)
            fail_msg("at %s: %s is %s, and not %s", now, cases[i].text, buf, cases[i].utc);
    }
}

/* Sunday, 9:30 in Berlin. */
#define NOW "2026-11-22T08:30:00Z"

static void test_formats(void **state)
{
    static const struct moment cases[] = {
        {"2026-12-01T08:00", "2026-12-01T07:00:00Z"},
        {"2026-12-01T08:00:09", "2026-12-01T07:00:09Z"},
        {"2026-12-01", "2026-11-30T23:00:00Z"},
        {"2026-12-1", "2026-11-30T23:00:00Z"},
        {"2026-12-01 8:00", "2026-12-01T07:00:00Z"},
        {"8:00 2026-12-01", "2026-12-01T07:00:00Z"},
        {"2026-12-01T08:00Z", "2026-12-01T08:00:00Z"},
        {"2026-12-01T08:00:01-05:30", "2026-12-01T13:30:01Z"},
        {"2026-12-01T08:00+14:00", "2026-11-30T18:00:00Z"},
        {"2024-02-29", "2024-02-28T23:00:00Z"},
        {"12/01", "2026-11-30T23:00:00Z"},
        {"12.01.27", "2027-11-30T23:00:00Z"},
        {"1/2/27", "2027-01-01T23:00:00Z"},
        {"1201", "2026-11-30T23:00:00Z"},
        {"120127", "2027-11-30T23:00:00Z"},
        {"12/01-16:00", "2026-12-01T15:00:00Z"},
        {"1201-16:00", "2026-12-01T15:00:00Z"},
        {"12/01/27 16:00:30", "2027-12-01T15:00:30Z"},
        {"16:00", "2026-11-22T15:00:00Z"},
        {"4:00PM", "2026-11-22T15:00:00Z"},
        {"4:00:05 pm", "2026-11-22T15:00:05Z"},
        {"12:00am", "2026-11-22T23:00:00Z"},
        {"12:00 PM", "2026-11-22T11:00:00Z"},
        {"midnight", "2026-11-22T23:00:00Z"},
        {"Noon", "2026-11-22T11:00:00Z"},
        {"fika", "2026-11-22T14:00:00Z"},
        {"teatime", "2026-11-22T15:00:00Z"},
        {"today 10:00", "2026-11-22T09:00:00Z"},
        {"10:00 today", "2026-11-22T09:00:00Z"},
        {"tomorrow", "2026-11-22T23:00:00Z"},
        {"tomorrow noon", "2026-11-23T11:00:00Z"},
        {"noon tomorrow", "2026-11-23T11:00:00Z"},
        {"now", NOW},
        {"now+90", "2026-11-22T08:31:30Z"},
        {"now+1second", "2026-11-22T08:30:01Z"},
        {"now+5minutes", "2026-11-22T08:35:00Z"},
        {"now + 60 hours", "2026-11-24T20:30:00Z"},
        {"NOW+60Hours", "2026-11-24T20:30:00Z"},
        {"now+1day", "2026-11-23T08:30:00Z"},
        {"now+2weeks", "2026-12-06T08:30:00Z"},
    };

    (void)state;
    set_zone(BERLIN);
    check(NOW, cases, COUNT(cases));
}

/* What lacks a day or a year is the next one. */
static void test_next(void **state)
{
    static const struct moment cases[] = {
        {"09:29", "2026-11-23T08:29:00Z"},
        {"9:30", "2026-11-23T08:30:00Z"},
        {"9:30:01", "2026-11-22T08:30:01Z"},
        {"11/22", "2027-11-21T23:00:00Z"},
        {"11/22-9:31", "2026-11-22T08:31:00Z"},
        {"1122", "2027-11-21T23:00:00Z"},
        /* A past day with a year is what it says. */
        {"11/22/26", "2026-11-21T23:00:00Z"},
        {"today", "2026-11-21T23:00:00Z"},
    };
    static const struct moment new_year[] = {
        {"0:15", "2026-12-31T23:15:00Z"},
        {"tomorrow 12:00", "2027-01-01T11:00:00Z"},
        {"1/1", "2026-12-31T23:00:00Z"},
    };

    (void)state;
    set_zone(BERLIN);
    check(NOW, cases, COUNT(cases));
    check("2026-12-31T22:30:00Z", new_year, COUNT(new_year));
}

/* 2026: from 2:00 to 3:00 on 29 March, from 3:00 to 2:00 on 25 October. */
static void test_daylight_saving(void **state)
{
    static const struct moment any[] = {
        {"2026-07-01T12:00", "2026-07-01T10:00:00Z"}, {"2026-03-29T01:59", "2026-03-29T00:59:00Z"},
        {"2026-03-29T02:30", "2026-03-29T01:30:00Z"}, /* there is none: an hour later */
        {"2026-03-29T03:00", "2026-03-29T01:00:00Z"}, {"2026-10-25T01:59", "2026-10-24T23:59:00Z"},
        {"2026-10-25T02:30", "2026-10-25T00:30:00Z"}, /* there are two: the first */
        {"2026-10-25T03:00", "2026-10-25T02:00:00Z"},
    };
    static const struct moment spring[] = {
        /* A day is 24 hours, tomorrow is the next day of the calendar. */
        {"now+1day", "2026-03-29T22:30:00Z"},
        {"tomorrow", "2026-03-28T23:00:00Z"},
        {"tomorrow 23:30", "2026-03-29T21:30:00Z"},
    };
    static const struct moment evening[] = {
        {"tomorrow", "2026-10-25T23:00:00Z"},
        {"0:30", "2026-10-25T23:30:00Z"},
    };
    /* In the first of the two hours, and in the second. */
    static const struct moment first[] = {{"02:15", "2026-10-26T01:15:00Z"},
                                          {"02:45", "2026-10-25T00:45:00Z"},
                                          {"now+1hour", "2026-10-25T01:30:00Z"}};
    static const struct moment second[] = {{"02:45", "2026-10-26T01:45:00Z"}};

    (void)state;
    set_zone(BERLIN);
    check("2026-01-01T00:00:00Z", any, COUNT(any));
    check("2026-03-28T22:30:00Z", spring, COUNT(spring));
    check("2026-10-25T22:45:00Z", evening, COUNT(evening));
    check("2026-10-25T00:30:00Z", first, COUNT(first));
    check("2026-10-25T01:30:00Z", second, COUNT(second));
}

static void test_zones(void **state)
{
    static const struct {
        const char *zone, *utc;
    } cases[] = {
        {"UTC", "2026-07-01T08:00:00Z"},
        {"NPT-5:45", "2026-07-01T02:15:00Z"},
        {"EST5EDT,M3.2.0,M11.1.0", "2026-07-01T12:00:00Z"},
        {"AEST-10AEDT,M10.1.0,M4.1.0/3", "2026-06-30T22:00:00Z"},
        {"IST-1GMT0,M10.5.0,M3.5.0/1", "2026-07-01T07:00:00Z"}, /* winter counts as the saving */
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        const struct moment moment = {"2026-07-01T08:00", cases[i].utc};

        set_zone(cases[i].zone);
        check(NOW, &moment, 1);
    }
}

#define FORM "write a time such as 2026-12-01T08:00, 16:00, 12/01, \"tomorrow 8:00\" or now+60hours"
#define NOW_FORM                                                                                   \
    "is not a time; write now, or now+COUNT with seconds, minutes, hours, days or weeks behind "   \
    "it, such as now+60hours"
#define RELATIVE "depends on when it is read; write a whole date, such as 2026-12-01T08:00"

static void assert_refused(const char *text, int64_t now, const char *message)
{
    struct error err = {""};
    int64_t when = 77;

    if (when_parse(text, now, &when, &err) != -1)
        fail_msg("'%s' was accepted", text);
    assert_string_equal(err.text, message);
    assert_int_equal(when_parse(text, now, &when, NULL), -1);
    assert_int_equal(when, 77);
}

static void test_refused(void **state)
{
    static const char *const bad[] = {
        "",
        " ",
        "8",
        "60",
        "12011",
        "2026",
        "24:00",
        "8:60",
        "8:5",
        "8:00:60",
        "13:00PM",
        "8:00 XM",
        "13/01",
        "0/1",
        "12/32",
        "12/01/",
        "12/01/2026",
        "2026-13-01",
        "2026-12-0",
        "2026-12-01T",
        "20:00T",
        "2026-12-01T8",
        "1969-12-31",
        "8:00 9:00",
        "12/01 12/02",
        "tomorrows",
        "tomorrow8:00",
        "noonish",
        "soon",
        "-1",
        "8:00Z",
        "2026-12-01T08:00+1",
        "2026-12-01T08:00+15:00",
        "2026-12-01T08:00ZZ",
        "2026-12-01Z",
        "nowhere",
        "T08:00",
        "--",
        "2026-12-01T08:00\n",
    };
    static const char *const bad_now[] = {
        "now+",        "now-60", "now60", "now+x",           "now+1 fortnight",
        "now+1hours2", "now+-1", "now +", "now+99999999999",
    };

    (void)state;
    set_zone(BERLIN);
    for (size_t i = 0; i < COUNT(bad); i++) {
        struct error message;

        error_set(&message, "'%s' is not a time; " FORM, bad[i]);
        assert_refused(bad[i], at(NOW), message.text);
    }
    for (size_t i = 0; i < COUNT(bad_now); i++) {
        struct error message;

        error_set(&message, "'%s' " NOW_FORM, bad_now[i]);
        assert_refused(bad_now[i], at(NOW), message.text);
    }
    assert_refused("2026-02-29", at(NOW), "'2026-02-29': month 2 of 2026 has no day 29");
    assert_refused("2100-02-29", at(NOW), "'2100-02-29': month 2 of 2100 has no day 29");
    assert_refused("4/31", at(NOW), "'4/31': month 4 of 2027 has no day 31");
    assert_refused("now+2000weeks", at(NOW),
                   "'now+2000weeks' is too far away; write at most 1000000000 seconds");
}

/* Where the moment is not known, only whole dates are. */
static void test_without_now(void **state)
{
    static const char *const relative[] = {"now",      "now+60hours", "16:00", "12/01",
                                           "tomorrow", "8:00 today",  "noon"};

    (void)state;
    set_zone(BERLIN);
    for (size_t i = 0; i < COUNT(relative); i++) {
        struct error message;

        error_set(&message, "'%s' " RELATIVE, relative[i]);
        assert_refused(relative[i], 0, message.text);
    }
    assert_int_equal(parse_good("2026-12-01T08:00", 0), at("2026-12-01T07:00Z"));
    assert_int_equal(parse_good("12/01/26", 0), at("2026-12-01T00:00+01:00"));
}

/* What is written means the same in each zone. */
static void test_round_trip(void **state)
{
    static const char *const zones[] = {BERLIN, "UTC", "NPT-5:45", "EST5EDT,M3.2.0,M11.1.0"};
    uint64_t random = 3;

    (void)state;
    for (int round = 0; round < 2000; round++) {
        int64_t moment = random_next(&random), again;
        char buf[WHEN_TEXT_MAX];

        set_zone(zones[random_below(&random, COUNT(zones))]);
        when_format(moment, buf, sizeof(buf));
        set_zone(zones[random_below(&random, COUNT(zones))]);
        assert_int_equal(when_parse(buf, 0, &again, NULL), 0);
        assert_int_equal(again, moment);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_formats),         cmocka_unit_test(test_next),
        cmocka_unit_test(test_daylight_saving), cmocka_unit_test(test_zones),
        cmocka_unit_test(test_refused),         cmocka_unit_test(test_without_now),
        cmocka_unit_test(test_round_trip),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("when", tests, NULL, NULL);
}
