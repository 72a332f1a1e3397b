/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What Slurm's words mean for a user (slurm_words.h). */
#include "lib/slurm_words.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GENERAL "Batch job submission failed: "

struct line {
    const char *text;
    size_t len; /* 0: none */
};

static bool starts(struct line line, const char *word)
{
    return line.len >= strlen(word) && strncmp(line.text, word, strlen(word)) == 0;
}

static struct line without(struct line line, const char *word)
{
    if (!starts(line, word))
        return line;
    return (struct line){line.text + strlen(word), line.len - strlen(word)};
}

void slurm_words_refusal(const char *text, char *buf, size_t size)
{
    struct line reason = {"", 0}, general = {"", 0};

    while (*text != '\0') {
        struct line line = {text, strcspn(text, "\n")};

        text += line.len + (text[line.len] == '\n');
        if (line.len == 0 || starts(line, "Try \"sbatch"))
            continue;
        line = without(without(without(line, "sbatch: "), "error: "), "fatal: ");
        if (starts(line, GENERAL))
            general = without(line, GENERAL);
        else
            reason = line;
    }
    if (reason.len == 0)
        snprintf(buf, size, "%.*s", (int)general.len, general.text);
    else if (general.len == 0 || memchr(reason.text, ' ', reason.len) != NULL)
        snprintf(buf, size, "%.*s", (int)reason.len, reason.text);
    else /* a word such as QOSMaxSubmitJobPerUserLimit */
        snprintf(buf, size, "%.*s: %.*s", (int)reason.len, reason.text, (int)general.len,
                 general.text);
}

bool slurm_words_unsure(const char *text)
{
    /* Slurm's words for errors of communication (slurm_errno.c). */
    static const char *const words[] = {"Unable to contact slurm controller",
                                        "Communication connection failure",
                                        "Message receive failure",
                                        "Message send failure",
                                        "Socket timed out",
                                        "Zero Bytes were transmitted or received",
                                        "Connection reset by peer",
                                        "Unexpected message received"};

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (strstr(text, words[i]) != NULL)
            return true;
    return false;
}

bool slurm_words_full(const char *text)
{
    return strstr(text, "more nodes are too many; job") != NULL;
}

bool slurm_words_blocks(const char *reason)
{
    static const char *const begins[] = {"Partition",       "Assoc",           "QOS",
                                         "MaxPoweredNodes", "ReqNodeNotAvail", "BadConstraints",
                                         "InvalidQOS"};

    for (size_t i = 0; i < sizeof(begins) / sizeof(begins[0]); i++)
        if (strncmp(reason, begins[i], strlen(begins[i])) == 0)
            return true;
    return false;
}

const char *slurm_words_end(const char *state, bool preempted, bool overdue)
{
    static const char *const words[][2] = {
        {"CANCELLED", "cancelled"},         {"TIMEOUT", "at its time limit"},
        {"OUT_OF_MEMORY", "out of memory"}, {"NODE_FAIL", "lost a node"},
        {"DEADLINE", "at its deadline"},    {"PREEMPTED", "preempted"},
    };

    if (preempted)
        return "preempted";
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (strcmp(state, words[i][0]) == 0)
            return words[i][1];
    return overdue && strcmp(state, "RUNNING") == 0 ? "at its time limit" : NULL;
}

char *slurm_words_value(const char *line, const char *name)
{
    size_t len = strlen(name);

    while (*(line += strspn(line, " \n")) != '\0') {
        size_t word = strcspn(line, " \n");

        if (word > len + 1 && strncmp(line, name, len) == 0 && line[len] == '=')
            return strndup(line + len + 1, word - len - 1);
        line += word;
    }
    return NULL;
}

double slurm_words_tres(const char *tres, const char *name)
{
    size_t len = strlen(name);

    for (const char *at = tres; *at != '\0'; at += *at == ',') {
        char *end;
        double value;

        if (strncmp(at, name, len) == 0 && at[len] == '=' && isdigit((unsigned char)at[len + 1])) {
            value = strtod(at + len + 1, &end);
            return *end == ',' || *end == '\0' ? value : -1;
        }
        at += strcspn(at, ",");
    }
    return -1;
}
