/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What is wrong with a site (doctor.h): how rules read what Slurm says, and what they add. */
#include "lib/doctor.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "lib/doctor_rules.h"

struct doctor_finding *doctor_add(struct doctor *doctor, enum doctor_level level, const char *id,
                                  const char *why)
{
    int at = doctor->count < DOCTOR_FINDINGS_MAX ? doctor->count++ : DOCTOR_FINDINGS_MAX - 1;
    doctor->findings[at] = (struct doctor_finding){.id = id, .level = level, .why = why};
    return &doctor->findings[at];
}

void doctor_what(struct doctor_finding *finding, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(finding->what, sizeof(finding->what), fmt, ap);
    va_end(ap);
}

void doctor_remedy(struct doctor_finding *finding, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(finding->remedy, sizeof(finding->remedy), fmt, ap);
    va_end(ap);
}

/* "KEY = value", "KEY[0]=value": where the value begins. NULL: the line has another key. */
static const char *value_in(const char *line, const char *key)
{
    size_t length = strlen(key);
    if (strncasecmp(line, key, length) != 0)
        return NULL;
    line += length;
    if (*line == '[')
        line += strcspn(line, "]\n");
    if (*line == ']')
        line++;
    line += strspn(line, " \t");
    return *line == '=' ? line + 1 + strspn(line + 1, " \t") : NULL;
}

bool doctor_config_value(const char *config, const char *key, int n, char *buf, size_t size)
{
    bool found = false;
    buf[0] = '\0';
    for (const char *line = config; line != NULL && *line != '\0' && !found;) {
        size_t length = strcspn(line, "\n");
        const char *value = value_in(line, key);
        if (value != NULL && value <= line + length && n-- == 0) {
            int width = (int)(line + length - value);
            while (width > 0 && isspace((unsigned char)value[width - 1]))
                width--;
            snprintf(buf, size, "%.*s", width, value);
            found = true;
        }
        line += length + (line[length] == '\n');
    }
    if (strcmp(buf, "(null)") == 0 || strcmp(buf, "N/A") == 0)
        buf[0] = '\0';
    return found;
}

const char *doctor_setting(const struct doctor_facts *facts, const char *key, char *buf,
                           size_t size)
{
    doctor_config_value(facts->config, key, 0, buf, size);
    return buf;
}

int doctor_number(const struct doctor_facts *facts, const char *key, int missing)
{
    char text[64], *end;
    long value = strtol(doctor_setting(facts, key, text, sizeof(text)), &end, 10);
    return end == text || value < 0 || value > 1000000000 ? missing : (int)value;
}

bool doctor_has_word(const char *list, const char *word)
{
    size_t length = strlen(word);
    for (const char *at = list; *at != '\0';) {
        size_t part = strcspn(at, ",");
        if (part == length && strncasecmp(at, word, length) == 0)
            return true;
        at += part + (at[part] == ',');
    }
    return false;
}

static const char spank_name[] = "spank_elastic.so";

enum doctor_spank_line doctor_spank_line(const char *text, char *path, size_t size)
{
    path[0] = '\0';
    for (const char *line = text; line != NULL && *line != '\0';) {
        char kind[16] = "", plugin[512] = "";
        size_t length = strcspn(line, "\n"), used;
        char copy[640];
        snprintf(copy, sizeof(copy), "%.*s", (int)(length < 639 ? length : 639), line);
        line += length + (line[length] == '\n');
        if (sscanf(copy, " %15s %511s", kind, plugin) != 2)
            continue;
        used = strlen(plugin);
        if (used < sizeof(spank_name) - 1 ||
            strcmp(plugin + used - (sizeof(spank_name) - 1), spank_name) != 0)
            continue;
        snprintf(path, size, "%s", plugin);
        if (strcmp(kind, "required") == 0)
            return DOCTOR_SPANK_REQUIRED;
        if (strcmp(kind, "optional") == 0)
            return DOCTOR_SPANK_OPTIONAL;
        path[0] = '\0';
    }
    return DOCTOR_SPANK_NONE;
}

static void apply(doctor_rule *const *rules, const struct doctor_facts *facts,
                  struct doctor *doctor)
{
    for (; *rules != NULL; rules++)
        (*rules)(facts, doctor);
}

void doctor_examine(const struct doctor_facts *facts, bool host_only, struct doctor *doctor)
{
    doctor->count = 0;
    if (!host_only)
        apply(doctor_slurm_rules, facts, doctor);
    apply(doctor_host_rules, facts, doctor);
}

int doctor_mistakes(const struct doctor *doctor)
{
    int mistakes = 0;
    for (int i = 0; i < doctor->count; i++)
        mistakes += doctor->findings[i].level == DOCTOR_MISTAKE;
    return mistakes;
}
