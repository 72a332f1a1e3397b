/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Moments, as users write them (when.h). */
#include "lib/when.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "lib/number.h"
#include "lib/text.h"

#define YEAR_MAX  9999
#define COUNT_MAX 1000000000
#define DAY       86400
#define FORM      "write " WHEN_FORM

/* What a text says. */
struct moment {
    bool has_time, has_day, has_year, has_offset;
    bool relative;        /* to now: today or tomorrow */
    int year, month, day; /* month: 1 to 12 */
    int hour, minute, second;
    int offset; /* seconds east of Greenwich */
};

static const char *skip_blanks(const char *at)
{
    return at + strspn(at, " \t");
}

/* Does the word stand at *at, in any case, and does it end there? Then go behind it. */
static bool take_word(const char **at, const char *word)
{
    size_t len = strlen(word);

    if (strncasecmp(*at, word, len) != 0 || isalpha((unsigned char)(*at)[len]))
        return false;
    *at += len;
    return true;
}

static size_t count_digits(const char *at)
{
    return strspn(at, "0123456789");
}

/* So many digits, as a number within min..max. */
static bool take_digits(const char **at, size_t digits, int min, int max, int *number)
{
    if (count_digits(*at) < digits || number_parse(*at, digits, min, max, number) < 0)
        return false;
    *at += digits;
    return true;
}

/* One or two digits. */
static bool take_short(const char **at, int min, int max, int *number)
{
    return take_digits(at, count_digits(*at) >= 2 ? 2 : 1, min, max, number);
}

static bool take_char(const char **at, char c)
{
    if (**at != c)
        return false;
    ++*at;
    return true;
}

/* ---- the time of a day ----------------------------------------------------------------------- */

static bool take_time_word(const char **at, struct moment *m)
{
    static const struct {
        const char *word;
        int hour;
    } words[] = {{"midnight", 0}, {"noon", 12}, {"fika", 15}, {"teatime", 16}};

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (take_word(at, words[i].word)) {
            m->hour = words[i].hour;
            return true;
        }
    }
    return false;
}

/* AM or PM behind a time: 12 AM is midnight, 12 PM is noon. */
static bool take_half(const char **at, struct moment *m)
{
    const char *behind = skip_blanks(*at);
    bool am = take_word(&behind, "am"), pm = !am && take_word(&behind, "pm");

    if (!am && !pm)
        return true;
    *at = behind;
    if (m->hour > 12)
        return false;
    m->hour = m->hour % 12 + (pm ? 12 : 0);
    return true;
}

static bool take_clock(const char **at, struct moment *m)
{
    return take_short(at, 0, 23, &m->hour) && take_char(at, ':') &&
           take_digits(at, 2, 0, 59, &m->minute) &&
           (!take_char(at, ':') || take_digits(at, 2, 0, 59, &m->second));
}

/* ---- days ------------------------------------------------------------------------------------ */

/* YYYY-MM-, and not MMDD-HH:MM */
static bool is_iso_day(const char *at)
{
    return count_digits(at) == 4 && at[4] == '-' && count_digits(at + 5) == 2 && at[7] == '-';
}

static bool take_iso_day(const char **at, struct moment *m)
{
    m->has_year = true;
    return take_digits(at, 4, 1970, YEAR_MAX, &m->year) && take_char(at, '-') &&
           take_short(at, 1, 12, &m->month) && take_char(at, '-') && take_short(at, 1, 31, &m->day);
}

static bool take_year(const char **at, struct moment *m)
{
    m->has_year = true;
    if (!take_digits(at, 2, 0, 99, &m->year))
        return false;
    m->year += 2000;
    return true;
}

/* MMDD[YY], MM/DD[/YY], MM.DD[.YY] */
static bool take_month_day(const char **at, struct moment *m)
{
    size_t digits = count_digits(*at);
    char separator;

    if (digits == 4 || digits == 6)
        return take_digits(at, 2, 1, 12, &m->month) && take_digits(at, 2, 1, 31, &m->day) &&
               (digits == 4 || take_year(at, m));
    if (digits > 2 || !take_short(at, 1, 12, &m->month))
        return false;
    separator = **at;
    return (take_char(at, '/') || take_char(at, '.')) && take_short(at, 1, 31, &m->day) &&
           (!take_char(at, separator) || take_year(at, m));
}

static void set_day(struct moment *m, int64_t now, int days_later)
{
    time_t time = (time_t)now;
    struct tm tm;

    localtime_r(&time, &tm);
    /* Noon is on the same day also where an hour is left out. */
    tm = (struct tm){.tm_year = tm.tm_year,
                     .tm_mon = tm.tm_mon,
                     .tm_mday = tm.tm_mday + days_later,
                     .tm_hour = 12,
                     .tm_isdst = -1};
    mktime(&tm);
    m->has_year = true;
    m->year = tm.tm_year + 1900;
    m->month = tm.tm_mon + 1;
    m->day = tm.tm_mday;
}

static int days_of(int year, int month)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;

    return month == 2 && leap ? 29 : days[month - 1];
}

/* ---- pieces of a text ------------------------------------------------------------------------ */

/* Z or +HH:MM or -HH:MM behind a date and a time. */
static bool take_offset(const char **at, struct moment *m)
{
    bool west = **at == '-';
    int hours, minutes;

    m->has_offset = true;
    if (take_char(at, 'Z'))
        return true;
    if (!(take_char(at, '+') || take_char(at, '-')) || !take_digits(at, 2, 0, 14, &hours) ||
        !take_char(at, ':') || !take_digits(at, 2, 0, 59, &minutes))
        return false;
    m->offset = (hours * 60 + minutes) * (west ? -60 : 60);
    return true;
}

static bool take_time(const char **at, struct moment *m)
{
    if (m->has_time)
        return false;
    m->has_time = true;
    if (take_time_word(at, m))
        return true;
    if (!take_clock(at, m) || !take_half(at, m))
        return false;
    return !m->has_year || **at == '\0' || strchr("Z+-", **at) == NULL || take_offset(at, m);
}

static bool take_day(const char **at, int64_t now, struct moment *m)
{
    bool today, tomorrow;

    if (m->has_day)
        return false;
    m->has_day = true;
    today = take_word(at, "today");
    tomorrow = !today && take_word(at, "tomorrow");
    if (today || tomorrow) {
        m->relative = true;
        set_day(m, now, tomorrow ? 1 : 0);
        return true;
    }
    return is_iso_day(*at) ? take_iso_day(at, m) : take_month_day(at, m);
}

/* Is a time of a day at `at`? It has a colon behind one or two digits. */
static bool is_time(const char *at)
{
    size_t digits = count_digits(at);

    return digits > 0 ? digits <= 2 && at[digits] == ':'
                      : strchr("mnfMNF", *at) != NULL || strncasecmp(at, "te", 2) == 0;
}

/* Between a day and a time. */
static const char *skip_separator(const char *at)
{
    if ((*at == 'T' || *at == '-') && isdigit((unsigned char)at[1]))
        return at + 1;
    return *at == ' ' || *at == '\t' ? skip_blanks(at) : at;
}

static bool take_pieces(const char *at, int64_t now, struct moment *m)
{
    while (*at != '\0') {
        const char *behind;

        if (!(is_time(at) ? take_time(&at, m) : take_day(&at, now, m)))
            return false;
        behind = skip_separator(at);
        if (behind == at && *at != '\0')
            return false;
        at = behind;
    }
    return m->has_day || m->has_time;
}

/* ---- moments --------------------------------------------------------------------------------- */

static bool shows(int64_t when, const struct moment *m)
{
    time_t time = (time_t)when;
    struct tm tm;

    localtime_r(&time, &tm);
    return tm.tm_mday == m->day && tm.tm_hour == m->hour && tm.tm_min == m->minute;
}

static int64_t make(const struct moment *m, int daylight_saving)
{
    struct tm tm = {.tm_year = m->year - 1900,
                    .tm_mon = m->month - 1,
                    .tm_mday = m->day,
                    .tm_hour = m->hour,
                    .tm_min = m->minute,
                    .tm_sec = m->second,
                    .tm_isdst = daylight_saving};

    return m->has_offset ? timegm(&tm) - m->offset : mktime(&tm);
}

/* mktime() alone would choose by itself between two moments of the same time. */
static int64_t resolve(const struct moment *m)
{
    int64_t standard = make(m, 0), summer = make(m, 1);
    int64_t first = standard < summer ? standard : summer;
    int64_t last = standard < summer ? summer : standard;

    if (m->has_offset)
        return first;
    return shows(first, m) ? first : last;
}

/* The next day or year, where the text does not say which. */
static void complete(struct moment *m, int64_t now)
{
    if (!m->has_day) {
        set_day(m, now, 0);
        if (resolve(m) <= now)
            set_day(m, now, 1);
    } else if (!m->has_year) {
        int month = m->month, day = m->day;

        set_day(m, now, 0);
        m->month = month;
        m->day = day;
        if (resolve(m) <= now)
            m->year++;
    }
}

static bool take_count(const char *at, int64_t *seconds)
{
    static const struct {
        const char *word, *words;
        int seconds;
    } units[] = {{"second", "seconds", 1},
                 {"minute", "minutes", 60},
                 {"hour", "hours", 3600},
                 {"day", "days", DAY},
                 {"week", "weeks", 7 * DAY}};
    size_t digits = count_digits(at);
    int count;

    if (!take_digits(&at, digits, 0, COUNT_MAX, &count))
        return false;
    at = skip_blanks(at);
    *seconds = count;
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        if (take_word(&at, units[i].words) || take_word(&at, units[i].word)) {
            *seconds = (int64_t)count * units[i].seconds;
            break;
        }
    }
    return *skip_blanks(at) == '\0';
}

/* What stands behind "now". */
static int parse_now(const char *at, const char *text, int64_t now, int64_t *when,
                     struct error *err)
{
    int64_t seconds = 0;

    at = skip_blanks(at);
    if (*at != '\0' && (!take_char(&at, '+') || !take_count(skip_blanks(at), &seconds)))
        return error_set(err,
                         "'%s' is not a time; write now, or now+COUNT with seconds, minutes, "
                         "hours, days or weeks behind it, such as now+60hours",
                         error_value(text).text);
    if (seconds > (int64_t)COUNT_MAX)
        return error_set(err, "'%s' is too far away; write at most %d seconds",
                         error_value(text).text, COUNT_MAX);
    *when = now + seconds;
    return 0;
}

static int now_missing(const char *text, struct error *err)
{
    return error_set(err,
                     "'%s' depends on when it is read; write a whole date, such as "
                     "2026-12-01T08:00",
                     error_value(text).text);
}

int when_parse(const char *text, int64_t now, int64_t *when, struct error *err)
{
    const char *at = skip_blanks(text);
    struct moment m = {0};

    if (take_word(&at, "now"))
        return now > 0 ? parse_now(at, text, now, when, err) : now_missing(text, err);
    if (!take_pieces(at, now, &m))
        return error_set(err, "'%s' is not a time; " FORM, error_value(text).text);
    if (now <= 0 && (m.relative || !m.has_year))
        return now_missing(text, err);
    complete(&m, now);
    if (m.day > days_of(m.year, m.month))
        return error_set(err, "'%s': month %d of %d has no day %d", error_value(text).text, m.month,
                         m.year, m.day);
    *when = resolve(&m);
    return 0;
}

char *when_format(int64_t when, char *buf, size_t size)
{
    time_t time = (time_t)when;
    struct tm tm;

    buf[0] = '\0';
    gmtime_r(&time, &tm);
    return text_append(buf, size, "%04d-%02d-%02dT%02d:%02d:%02dZ", tm.tm_year + 1900,
                       tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec);
}
