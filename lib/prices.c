/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The file with the prices of pools (prices.h). */
#include "lib/prices.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "lib/amount.h"
#include "lib/number.h"
#include "lib/text.h"

#define BLANKS " \t\r"
#define FORM   "write POOL PRICE [NODES]"

struct prices {
    struct price *entries;
    size_t count;
};

void prices_destroy(struct prices *prices)
{
    if (prices == NULL)
        return;
    free(prices->entries);
    free(prices);
}

const struct price *prices_find(const struct prices *prices, const char *pool)
{
    for (size_t i = 0; prices != NULL && i < prices->count; i++) {
        if (strcmp(prices->entries[i].pool, pool) == 0)
            return &prices->entries[i];
    }
    return NULL;
}

/* The next word of line; "" if there is none, or if a comment begins. */
static const char *next_word(char **line)
{
    char *word = *line + strspn(*line, BLANKS);

    *line = word + strcspn(word, BLANKS);
    if (**line != '\0')
        *(*line)++ = '\0';
    if (word[0] == '#')
        word[0] = **line = '\0';
    return word;
}

static int parse_entry(char *line, const char *pool, struct price *entry, struct error *err)
{
    const char *price = next_word(&line), *nodes = next_word(&line), *more = next_word(&line);

    *entry = (struct price){.nodes = -1};
    if (policy_check_pool_name(pool, err) < 0)
        return -1;
    text_append(entry->pool, sizeof(entry->pool), "%s", pool);
    if (price[0] == '\0')
        return error_set(err, "the price of pool %s is missing; " FORM, pool);
    if (amount_parse(price, strlen(price), &entry->price) < 0)
        return error_set(err, "'%s' is not a price from 0 to %d; " AMOUNT_FORM,
                         error_value(price).text, AMOUNT_MAX);
    if (nodes[0] != '\0' && number_parse(nodes, strlen(nodes), 0, INT_MAX, &entry->nodes) < 0)
        return error_set(err, "'%s' is not a number of nodes; " FORM, error_value(nodes).text);
    if (more[0] != '\0')
        return error_set(err, "'%s' is one word too many; " FORM, error_value(more).text);
    return 0;
}

static int add_entry(struct prices *prices, const struct price *entry, struct error *err)
{
    struct price *entries;

    if (prices_find(prices, entry->pool) != NULL)
        return error_set(err, "pool %s has a line already; leave one of them out", entry->pool);
    entries = realloc(prices->entries, (prices->count + 1) * sizeof(*entries));
    if (entries == NULL)
        return error_set(err, "out of memory");
    prices->entries = entries;
    entries[prices->count++] = *entry;
    return 0;
}

static int parse_line(struct prices *prices, char *line, struct error *err)
{
    const char *pool = next_word(&line);
    struct price entry;

    if (pool[0] == '\0')
        return 0;
    if (parse_entry(line, pool, &entry, err) < 0)
        return -1;
    return add_entry(prices, &entry, err);
}

static int parse_lines(struct prices *prices, char *text, struct error *err)
{
    for (unsigned int number = 1; text != NULL; number++) {
        char *line = strsep(&text, "\n");

        if (parse_line(prices, line, err) < 0)
            return error_prefix(err, "line %u", number);
    }
    return 0;
}

struct prices *prices_parse(const char *text, size_t len, struct error *err)
{
    struct prices *prices = calloc(1, sizeof(*prices));
    char *copy = strndup(text, len);
    int rc;

    if (prices == NULL || copy == NULL)
        rc = error_set(err, "out of memory");
    else if (strlen(copy) != len)
        rc = error_set(err, "there is a NUL byte in it; write lines of text");
    else
        rc = parse_lines(prices, copy, err);
    free(copy);
    if (rc == 0)
        return prices;
    prices_destroy(prices);
    return NULL;
}
