/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A YAML or JSON document from outside as one tree of json-c, in which each part knows its place.
 *
 * JSON is read as the YAML that it is. Each scalar is a text, also a number: who reads the tree
 * knows what it should be, so `no` and `1e3` are what their key expects. */
#ifndef ELASTIC_YAML_FILE_H
#define ELASTIC_YAML_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include <json-c/json.h>

#include "lib/error.h"

#define YAML_TEXT_MAX  (1024 * 1024) /* bytes */
#define YAML_NODES_MAX 10000         /* values and keys, with what aliases stand for */
#define YAML_DEPTH_MAX 64            /* lists and maps within each other */

/* Parse len bytes that hold one map. Returns a new object for json_object_put, or NULL with err,
 * which begins with line and column: "12:5: …".
 *
 * Refused are: anything else at the top, several documents, a key that appears twice in a map, a
 * key that is no text, merge keys, tags, values that are missing or null, NUL, text that is not
 * UTF-8, and more than the limits above. */
json_object *yaml_parse(const char *text, size_t len, struct error *err);

/* The same of a regular file. err begins with its name: "rl.yaml:12:5: …". */
json_object *yaml_load(const char *path, struct error *err);

/* Where a part of such a tree is: of what a map holds, its key. False: it is not of such a tree.
 * It is a roles_where of lib/roles.h. */
bool yaml_where(const json_object *part, int *line, int *column, void *arg);

#endif
