/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Metrics as text (metrics_text.h). */
#include "lib/metrics_text.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "lib/text.h"

#define OPENMETRICS "application/openmetrics-text"

/* Prometheus asks for OpenMetrics first, with versions and weights. A client that refuses it with
 * q=0 is not known. */
enum metrics_format metrics_format_for(const char *accept)
{
    return accept != NULL && strstr(accept, OPENMETRICS) != NULL ? METRICS_OPENMETRICS
                                                                 : METRICS_PROMETHEUS;
}

const char *metrics_content_type(enum metrics_format format)
{
    return format == METRICS_OPENMETRICS ? OPENMETRICS "; version=1.0.0; charset=utf-8"
                                         : "text/plain; version=0.0.4; charset=utf-8";
}

static void put_value(FILE *out, double value)
{
    if (isnan(value))
        fputs("NaN", out);
    else if (isinf(value))
        fputs(value > 0 ? "+Inf" : "-Inf", out);
    else if (value == floor(value) && fabs(value) < 1e15)
        fprintf(out, "%.0f", value);
    else
        fprintf(out, "%.12g", value);
}

/* The length of the character that is written as it is; 0: it is a byte that is written as '?'. */
static size_t plain_length(const char *text, size_t left)
{
    return (unsigned char)*text < ' ' && *text != '\n' ? 0 : text_utf8_length(text, left);
}

void metrics_clean(char *value)
{
    for (size_t left = strlen(value); left > 0;) {
        size_t length = plain_length(value, left);

        if (length == 0)
            *value = '?';
        length = length > 0 ? length : 1;
        value += length;
        left -= length;
    }
}

static void put_escaped(FILE *out, const char *text)
{
    size_t left = strlen(text);

    while (left > 0) {
        size_t length = plain_length(text, left);

        if (*text == '\\' || *text == '"')
            fprintf(out, "\\%c", *text);
        else if (*text == '\n')
            fputs("\\n", out);
        else if (length == 0)
            fputc('?', out);
        else
            fwrite(text, 1, length, out);
        length = length > 0 ? length : 1;
        text += length;
        left -= length;
    }
}

static void put_labels(const struct metrics_writer *writer, const struct metrics_label *labels,
                       const char *bound)
{
    char separator = '{';

    for (int i = 0; i < writer->common_count; i++, separator = ',') {
        fprintf(writer->out, "%c%s=\"", separator, writer->common[i].name);
        put_escaped(writer->out, writer->common[i].value);
        fputc('"', writer->out);
    }
    for (; labels != NULL && labels->name != NULL; labels++, separator = ',') {
        fprintf(writer->out, "%c%s=\"", separator, labels->name);
        put_escaped(writer->out, labels->value != NULL ? labels->value : "");
        fputc('"', writer->out);
    }
    if (bound != NULL) {
        fprintf(writer->out, "%cle=\"%s\"", separator, bound);
        separator = ',';
    }
    if (separator == ',')
        fputc('}', writer->out);
    fputc(' ', writer->out);
}

/* OpenMetrics has names of families without the endings that its samples have. */
static int family_length(const struct metrics_family *family, enum metrics_format format)
{
    size_t length = strlen(family->name);

    if (format == METRICS_OPENMETRICS && family->kind == METRICS_COUNTER)
        length -= strlen("_total");
    if (format == METRICS_OPENMETRICS && family->kind == METRICS_INFO)
        length -= strlen("_info");
    return (int)length;
}

static void say_family(struct metrics_writer *writer, const struct metrics_family *family)
{
    static const char *const kinds[] = {"gauge", "counter", "histogram", "info"};
    bool open = writer->format == METRICS_OPENMETRICS;
    int length = family_length(family, writer->format);

    if (writer->said == family)
        return;
    writer->said = family;
    fprintf(writer->out, "# HELP %.*s %s\n# TYPE %.*s %s\n", length, family->name, family->help,
            length, family->name,
            !open && family->kind == METRICS_INFO ? kinds[METRICS_GAUGE] : kinds[family->kind]);
    if (open && family->unit != NULL)
        fprintf(writer->out, "# UNIT %.*s %s\n", length, family->name, family->unit);
}

void metrics_sample(struct metrics_writer *writer, const struct metrics_family *family,
                    const struct metrics_label *labels, double value)
{
    say_family(writer, family);
    fputs(family->name, writer->out);
    put_labels(writer, labels, NULL);
    put_value(writer->out, value);
    fputc('\n', writer->out);
}

static void put_part(struct metrics_writer *writer, const struct metrics_family *family,
                     const char *part, const char *bound, double value)
{
    fprintf(writer->out, "%s_%s", family->name, part);
    put_labels(writer, NULL, bound);
    put_value(writer->out, value);
    fputc('\n', writer->out);
}

/* OpenMetrics wants the point. */
const char *metrics_bound(double bound, char text[METRICS_BOUND])
{
    snprintf(text, METRICS_BOUND, bound == floor(bound) ? "%.1f" : "%.12g", bound);
    return text;
}

void metrics_histogram(struct metrics_writer *writer, const struct metrics_family *family,
                       const double *bounds, const double *counts, int buckets, double all,
                       double sum)
{
    say_family(writer, family);
    for (int i = 0; i < buckets; i++) {
        char bound[METRICS_BOUND];

        put_part(writer, family, "bucket", metrics_bound(bounds[i], bound), counts[i]);
    }
    put_part(writer, family, "bucket", "+Inf", all);
    put_part(writer, family, "sum", NULL, sum);
    put_part(writer, family, "count", NULL, all);
}

void metrics_end(struct metrics_writer *writer)
{
    if (writer->format == METRICS_OPENMETRICS)
        fputs("# EOF\n", writer->out);
}
