/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What haproxy answers to questions of its runtime API (haproxy_answers.h). */
#include "lib/haproxy_answers.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/number.h"
#include "lib/shard_commands.h"
#include "lib/shard_plan.h"
#include "lib/world.h"

#define PREFIX     "shard_"
#define PREFIX_LEN 6
#define COLUMNS    128
#define PID_MAX    0x7fffffff
#define SHUT_MAX   200 /* streams of a command, which is below HAPROXY_PIECE so */

int haproxy_shard_number(const char *text, int length)
{
    int number = 0;

    if (length <= PREFIX_LEN || strncmp(text, PREFIX, PREFIX_LEN) != 0 || text[PREFIX_LEN] == '0' ||
        number_parse(text + PREFIX_LEN, (size_t)(length - PREFIX_LEN), 1, SHARD_PLAN_SHARDS_MAX,
                     &number) != 0)
        return 0;
    return number;
}

int haproxy_compare_routes(const void *a, const void *b)
{
    return strcmp(((const struct haproxy_route *)a)->key, ((const struct haproxy_route *)b)->key);
}

/* Room for one more; the array doubles. NULL: out of memory. */
static void *grown(void *list, int count, size_t size)
{
    void *more;

    if (count > 0 && (count & (count - 1)) != 0)
        return list;
    more = realloc(list, (count > 0 ? 2 * (size_t)count : 1) * size);
    return more;
}

/* ---- show stat ------------------------------------------------------------------------------- */

struct cell {
    const char *text;
    int length;
};

enum column { PXNAME, SVNAME, SCUR, STATUS, CHECK_STATUS, COLUMN_COUNT };
static const char *const column_names[] = {"pxname", "svname", "scur", "status", "check_status"};

/* Cuts a line of CSV. A cell in quotes loses them; "" in it stays as it is. */
static int cut(const char *line, const char *stop, struct cell cells[COLUMNS])
{
    int count = 0;

    while (count < COLUMNS && line <= stop) {
        const char *end;

        if (line < stop && *line == '"') {
            for (end = line + 1; end < stop && (*end != '"' || (end + 1 < stop && end[1] == '"'));)
                end += *end == '"' ? 2 : 1;
            end = end > stop ? stop : end;
            cells[count++] = (struct cell){line + 1, (int)(end - line - 1)};
            end += end < stop;
        } else {
            end = memchr(line, ',', (size_t)(stop - line));
            end = end != NULL ? end : stop;
            cells[count++] = (struct cell){line, (int)(end - line)};
        }
        line = end + 1;
    }
    return count;
}

static bool is_text(struct cell cell, const char *text)
{
    return cell.length == (int)strlen(text) && memcmp(cell.text, text, strlen(text)) == 0;
}

static bool begins(struct cell cell, const char *text)
{
    return cell.length >= (int)strlen(text) && memcmp(cell.text, text, strlen(text)) == 0;
}

static int find_columns(const char *line, const char *stop, int where[COLUMN_COUNT],
                        struct error *err)
{
    struct cell cells[COLUMNS];
    int count;

    if (stop - line < 2 || line[0] != '#' || line[1] != ' ')
        return error_set(err, "haproxy's statistics have no heading");
    count = cut(line + 2, stop, cells);
    for (int column = 0; column < COLUMN_COUNT; column++) {
        where[column] = -1;
        for (int i = 0; i < count; i++)
            if (is_text(cells[i], column_names[column]))
                where[column] = i;
        if (where[column] < 0)
            return error_set(err, "haproxy's statistics have no %s", column_names[column]);
    }
    return 0;
}

static bool state_of(struct cell status, enum haproxy_state *state)
{
    static const struct {
        const char *word;
        enum haproxy_state state;
    } words[] = {{"MAINT", HAPROXY_IN_MAINT}, {"DRAIN", HAPROXY_IN_DRAIN},
                 {"DOWN", HAPROXY_IS_DOWN},   {"NOLB", HAPROXY_IS_DOWN},
                 {"UP", HAPROXY_IS_UP},       {"no check", HAPROXY_IS_UP}};

    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
        if (begins(status, words[i].word)) {
            *state = words[i].state;
            return true;
        }
    return false;
}

static int add_shard(struct haproxy_stat *stat, int shard, struct error *err)
{
    int *shards = grown(stat->shards, stat->shard_count, sizeof(*shards));

    if (shards == NULL)
        return error_set(err, "out of memory");
    stat->shards = shards;
    shards[stat->shard_count++] = shard;
    return 0;
}

static int add_row(struct haproxy_stat *stat, int shard, const struct cell *cells,
                   const int where[COLUMN_COUNT], struct error *err)
{
    struct haproxy_row row = {.shard = shard}, *rows;
    struct cell name = cells[where[SVNAME]], scur = cells[where[SCUR]];
    struct cell check = cells[where[CHECK_STATUS]];
    int sessions;

    if (begins(check, "* ")) { /* one more is under way */
        check.text += 2;
        check.length -= 2;
    }
    row.untried = begins(check, "INI");
    row.checked = begins(check, "L7OK") || begins(check, "L6OK") || begins(check, "L4OK");
    if (!state_of(cells[where[STATUS]], &row.state) ||
        number_parse(scur.text, (size_t)scur.length, 0, PID_MAX, &sessions) != 0)
        return error_set(err, "haproxy's statistics of shard_%d cannot be understood", shard);
    row.sessions = sessions;
    rows = grown(stat->rows, stat->count, sizeof(*rows));
    if (rows == NULL)
        return error_set(err, "out of memory");
    stat->rows = rows;
    row.name = strndup(name.text, (size_t)name.length);
    if (row.name == NULL)
        return error_set(err, "out of memory");
    rows[stat->count++] = row;
    if (!world_name_ok(row.name))
        return error_set(err, "haproxy's statistics of shard_%d name no server", shard);
    return 0;
}

static int read_line(struct haproxy_stat *stat, const char *line, const char *stop,
                     const int where[COLUMN_COUNT], struct error *err)
{
    struct cell cells[COLUMNS];
    int count = cut(line, stop, cells), shard;

    for (int column = 0; column < COLUMN_COUNT; column++)
        if (where[column] >= count)
            return error_set(err, "a line of haproxy's statistics is too short");
    shard = haproxy_shard_number(cells[where[PXNAME]].text, cells[where[PXNAME]].length);
    if (shard == 0)
        return 0;
    if (is_text(cells[where[SVNAME]], "BACKEND"))
        return add_shard(stat, shard, err);
    return add_row(stat, shard, cells, where, err);
}

static int compare_rows(const void *a, const void *b)
{
    const struct haproxy_row *x = a, *y = b;

    return x->shard != y->shard ? (x->shard > y->shard) - (x->shard < y->shard)
                                : strcmp(x->name, y->name);
}

static int compare_numbers(const void *a, const void *b)
{
    return (*(const int *)a > *(const int *)b) - (*(const int *)a < *(const int *)b);
}

static int read_lines(const char *answer, struct haproxy_stat *stat, struct error *err)
{
    int where[COLUMN_COUNT];
    const char *stop = strchrnul(answer, '\n');

    if (find_columns(answer, stop, where, err) != 0)
        return -1;
    while (*stop == '\n') {
        const char *line = stop + 1;

        stop = strchrnul(line, '\n');
        if (stop > line && read_line(stat, line, stop, where, err) != 0)
            return -1;
    }
    return 0;
}

int haproxy_stat_read(const char *answer, struct haproxy_stat *stat, struct error *err)
{
    *stat = (struct haproxy_stat){0};
    if (read_lines(answer, stat, err) != 0) {
        haproxy_stat_clear(stat);
        return -1;
    }
    if (stat->shard_count > 0)
        qsort(stat->shards, (size_t)stat->shard_count, sizeof(*stat->shards), compare_numbers);
    if (stat->count > 0)
        qsort(stat->rows, (size_t)stat->count, sizeof(*stat->rows), compare_rows);
    return 0;
}

void haproxy_stat_clear(struct haproxy_stat *stat)
{
    for (int i = 0; i < stat->count; i++)
        free(stat->rows[i].name);
    free(stat->rows);
    free(stat->shards);
    *stat = (struct haproxy_stat){0};
}

const struct haproxy_row *haproxy_stat_find(const struct haproxy_stat *stat, int shard,
                                            const char *name)
{
    const struct haproxy_row wanted = {.shard = shard, .name = (char *)(uintptr_t)name};

    if (stat->count == 0)
        return NULL;
    return bsearch(&wanted, stat->rows, (size_t)stat->count, sizeof(wanted), compare_rows);
}

bool haproxy_stat_has_shard(const struct haproxy_stat *stat, int shard)
{
    return stat->shard_count > 0 && bsearch(&shard, stat->shards, (size_t)stat->shard_count,
                                            sizeof(shard), compare_numbers) != NULL;
}

/* ---- show sess ------------------------------------------------------------------------------- */

/* The number behind a word such as " epoch=0x"; -1: it is not in this line. */
static int64_t hex_after(const char *line, const char *stop, const char *word)
{
    const char *found = memmem(line, (size_t)(stop - line), word, strlen(word));
    int64_t number = 0;

    if (found == NULL)
        return -1;
    found += strlen(word);
    if (found == stop || !isxdigit((unsigned char)*found))
        return -1;
    for (; found < stop && isxdigit((unsigned char)*found); found++) {
        int digit = *found <= '9' ? *found - '0' : (*found | 32) - 'a' + 10;

        if (number > (INT64_MAX >> 5))
            return -1;
        number = number * 16 + digit;
    }
    return number;
}

/* The number of the stream of this line; -1: it has none. */
static int64_t stream_number(const char *line, const char *stop)
{
    int64_t number = hex_after(line, stop, " epoch=0x");

    if (number < 0 && memmem(line, (size_t)(stop - line), " epoch=0 ", 9) != NULL)
        number = 0; /* printf writes no 0x before 0 */
    return number;
}

static bool is_in_shard(const char *line, const char *stop)
{
    return memmem(line, (size_t)(stop - line), " be=" PREFIX, PREFIX_LEN + 4) != NULL;
}

int haproxy_streams_read(const char *answer, int64_t limit, struct haproxy_streams *streams,
                         struct error *err)
{
    const char *line = answer;

    *streams = (struct haproxy_streams){.latest = -1};
    while (*line != '\0') {
        const char *stop = strchrnul(line, '\n');
        int64_t number;

        if (stop > line) {
            number = stream_number(line, stop);
            if (number < 0)
                return error_set(err, "haproxy's list of sessions cannot be understood");
            if (number > streams->latest)
                streams->latest = number;
            if (number <= limit && is_in_shard(line, stop))
                streams->older++;
        }
        line = *stop == '\n' ? stop + 1 : stop;
    }
    /* The session that asks is one of them. */
    return streams->latest >= 0 ? 0 : error_set(err, "haproxy's list of sessions is empty");
}

/* "0x55d0: proto=tcpv4 …": the length of what names the stream; 0: it is no such line. */
static size_t name_of_stream(const char *line)
{
    size_t digits = strncmp(line, "0x", 2) == 0 ? strspn(line + 2, "0123456789abcdef") : 0;

    return digits > 0 && digits <= 16 && line[2 + digits] == ':' ? 2 + digits : 0;
}

char *haproxy_shut_command(const char *answer, int64_t limit, int *count, struct error *err)
{
    struct haproxy_streams streams;
    char *text = NULL;
    size_t size;
    FILE *out;

    *count = 0;
    if (haproxy_streams_read(answer, limit, &streams, err) != 0)
        return NULL;
    out = open_memstream(&text, &size);
    for (const char *line = answer; out != NULL && *line != '\0' && *count < SHUT_MAX;) {
        const char *stop = strchrnul(line, '\n');
        size_t length = stop > line && stream_number(line, stop) <= limit && is_in_shard(line, stop)
                            ? name_of_stream(line)
                            : 0;

        if (length > 0)
            fprintf(out, "%sshutdown session %.*s", (*count)++ > 0 ? "; " : "", (int)length, line);
        line = *stop == '\n' ? stop + 1 : stop;
    }
    if (out != NULL)
        fputc('\n', out);
    if (out == NULL || fclose(out) != 0) {
        free(text);
        error_set(err, "out of memory");
        return NULL;
    }
    return text;
}

/* ---- show proc ------------------------------------------------------------------------------- */

/* "1162  master  5 …": whether the line is of that type. */
static bool is_process(const char *line, const char *type, int *pid)
{
    size_t digits = strspn(line, "0123456789"), blanks;

    if (number_parse(line, digits, 1, PID_MAX, pid) != 0)
        return false;
    blanks = strspn(line + digits, " \t");
    line += digits + blanks;
    return blanks > 0 && strncmp(line, type, strlen(type)) == 0 &&
           (line[strlen(type)] == ' ' || line[strlen(type)] == '\t');
}

int haproxy_workers_read(const char *answer, struct haproxy_workers *workers, struct error *err)
{
    bool old = false;
    int pid;

    *workers = (struct haproxy_workers){0};
    for (const char *line = answer; line != NULL; line = strchr(line, '\n')) {
        line += line != answer;
        if (strncmp(line, "# old workers", 13) == 0)
            old = true;
        else if (strncmp(line, "# ", 2) == 0)
            old = false;
        else if (is_process(line, "master", &pid))
            workers->master = pid;
        else if (is_process(line, "worker", &pid) && old)
            workers->old++;
        else if (is_process(line, "worker", &pid))
            workers->worker = pid;
    }
    return workers->master > 0 ? 0
                               : error_set(err, "haproxy's list of processes cannot be understood");
}

/* ---- show info ------------------------------------------------------------------------------- */

int haproxy_worker_read(const char *answer)
{
    static const char name[] = "\nPid: ";
    const char *line = strstr(answer, name);
    int pid;

    if (line == NULL)
        return 0;
    line += strlen(name);
    return number_parse(line, strspn(line, "0123456789"), 1, PID_MAX, &pid) == 0 ? pid : 0;
}

/* ---- show map -------------------------------------------------------------------------------- */

/* "0x5581a0 tenant_A shard_1" */
static int read_route(const char *line, const char *stop, struct haproxy_route *route,
                      struct error *err)
{
    const char *key = memchr(line, ' ', (size_t)(stop - line)), *value;
    char *copy;

    value = key != NULL ? memchr(key + 1, ' ', (size_t)(stop - key - 1)) : NULL;
    if (strncmp(line, "0x", 2) != 0 || value == NULL)
        return error_set(err, "haproxy's map of routes cannot be understood");
    copy = strndup(key + 1, (size_t)(value - key - 1));
    if (copy == NULL)
        return error_set(err, "out of memory");
    *route = (struct haproxy_route){copy, haproxy_shard_number(value + 1, (int)(stop - value - 1))};
    if (shard_key_ok(copy) &&
        (route->shard > 0 || (stop - value == 5 && strncmp(value + 1, "none", 4) == 0)))
        return 0;
    free(copy);
    return error_set(err, "haproxy's map has a route that is none");
}

int haproxy_map_read(const char *answer, struct haproxy_route **routes, int *count,
                     struct error *err)
{
    const char *line = answer;

    *routes = NULL;
    *count = 0;
    while (*line != '\0') {
        const char *stop = strchrnul(line, '\n');

        if (stop > line) {
            struct haproxy_route *more = grown(*routes, *count, sizeof(*more));

            if (more != NULL)
                *routes = more;
            if (more == NULL || read_route(line, stop, &more[*count], err) != 0) {
                haproxy_routes_free(*routes, *count);
                *routes = NULL;
                *count = 0;
                return more == NULL ? error_set(err, "out of memory") : -1;
            }
            (*count)++;
        }
        line = *stop == '\n' ? stop + 1 : stop;
    }
    if (*count > 0)
        qsort(*routes, (size_t)*count, sizeof(**routes), haproxy_compare_routes);
    return 0;
}

void haproxy_routes_free(struct haproxy_route *routes, int count)
{
    for (int i = 0; i < count; i++)
        free((char *)(uintptr_t)routes[i].key);
    free(routes);
}

/* ---- show table ------------------------------------------------------------------------------ */

static int compare_texts(const void *a, const void *b)
{
    return strcmp(json_object_get_string(*(json_object *const *)a),
                  json_object_get_string(*(json_object *const *)b));
}

/* "0x55d0: key=tenant_A use=0 exp=4711" */
json_object *haproxy_asked_read(const char *answer, int most, bool *more)
{
    json_object *keys = json_object_new_array();

    *more = false;
    for (const char *line = answer; *line != '\0';) {
        const char *stop = strchrnul(line, '\n'),
                   *key = memmem(line, (size_t)(stop - line), " key=", 5);
        size_t length = key != NULL ? strcspn(key + 5, " \n") : 0;

        *more = *more || (key != NULL && json_object_array_length(keys) >= (size_t)most);
        if (key != NULL && !*more)
            json_object_array_add(keys, json_object_new_string_len(key + 5, (int)length));
        line = *stop == '\n' ? stop + 1 : stop;
    }
    json_object_array_sort(keys, compare_texts);
    return keys;
}
