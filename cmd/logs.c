/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The lines of a job's output that are of a role or a replica (logs.h). */
#include "cmd/logs.h"

#include <ctype.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/shape.h"
#include "cmd/terminal_text.h"
#include "lib/text.h"

/* Digits at the beginning of a text. */
static size_t digits(const char *text)
{
    return strspn(text, "0123456789");
}

/* ROLE-INDEX and, of a gang, .TASK. What follows the name has to be the rest of a label. */
bool logs_match(const char *line, const char *name)
{
    size_t length = name != NULL ? strlen(name) : 0;

    if (name == NULL)
        return true;
    if (strncmp(line, name, length) != 0)
        return false;
    line += length;
    if (*line == '-' && isdigit((unsigned char)line[1])) { /* the name of a role */
        line++;
        line += digits(line);
    }
    if (*line == '.' && isdigit((unsigned char)line[1])) { /* … or of a replica */
        line++;
        line += digits(line);
    }
    return strncmp(line, ": ", 2) == 0 || strcmp(line, ":\n") == 0 || strcmp(line, ":") == 0;
}

/* What can be read of a line, of LOGS_PIECE bytes at most, and its end. */
static size_t read_piece(FILE *file, char *piece)
{
    size_t length = 0;
    int next = 0;

    while (length < LOGS_PIECE && next != '\n' && (next = getc_unlocked(file)) != EOF)
        piece[length++] = (char)next;
    piece[length] = '\0';
    return length;
}

/* Bytes 0, tabs and the end of a line are no text. */
static void print_clean(const char *piece, size_t length, FILE *out)
{
    const char *end = piece + length;

    while (piece < end) {
        size_t text = strcspn(piece, "\t\n"); /* ends at a byte 0, too */
        char *part = text_need(strndup(piece, text)), *clean = text_clean(part, 0);

        fputs(clean, out);
        free(clean);
        free(part);
        piece += text;
        if (piece < end && *piece == '\0')
            fputs("\\x00", out);
        else if (piece < end)
            fputc(*piece, out);
        piece++;
    }
}

json_object *logs_object(const char *text, size_t length, bool ends)
{
    static const char unknown[] = "\xef\xbf\xbd";
    json_object *object = text_need(json_object_new_object());
    char *valid = NULL;
    size_t size;
    FILE *out = text_need(open_memstream(&valid, &size));

    while (length > 0) {
        size_t good = text_utf8_length(text, length), step = good > 0 ? good : 1;

        fputs(good > 0 ? "" : unknown, out);
        fwrite(text, 1, good, out);
        text += step;
        length -= step;
    }
    fclose(out);
    json_object_object_add(object, "line", json_object_new_string_len(text_need(valid), (int)size));
    json_object_object_add(object, "ends", json_object_new_boolean(ends));
    free(valid);
    return object;
}

void logs_print_object(const char *text, size_t length, bool ends, FILE *out)
{
    json_object *object = logs_object(text, length, ends);
    char *json = shape_serialize(object, JSON_C_TO_STRING_SPACED | JSON_C_TO_STRING_NOSLASHESCAPE);

    fprintf(out, "%s\n", json);
    free(json);
    json_object_put(object);
}

static void print_piece(const struct logs *logs, const char *piece, size_t length, FILE *out)
{
    bool ended = piece[length - 1] == '\n';

    if (logs->json)
        logs_print_object(piece, length - ended, ended, out);
    else if (logs->clean)
        print_clean(piece, length, out);
    else
        fwrite(piece, 1, length, out);
}

int logs_print(struct logs *logs, FILE *file, bool all, FILE *out)
{
    char *piece = text_need(malloc(LOGS_PIECE + 1));
    long start = ftell(file);
    size_t length;

    while ((length = read_piece(file, piece)) > 0) {
        bool ended = piece[length - 1] == '\n';

        if (!ended && length < LOGS_PIECE && !all) {
            fseek(file, start, SEEK_SET);
            break;
        }
        start += (long)length;
        if (!logs->inside)
            logs->match = logs_match(piece, logs->name);
        logs->found = logs->found || logs->match;
        logs->inside = !ended;
        if (logs->match)
            print_piece(logs, piece, length, out);
    }
    clearerr(file);
    free(piece);
    return fflush(out) == 0 ? 0 : -1;
}
