/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a failed worker reports about its failure: torchrun's error file. */
#ifndef ELASTIC_AGENT_WORKERS_WORKER_ERROR_H
#define ELASTIC_AGENT_WORKERS_WORKER_ERROR_H

#include <json-c/json.h>

/* Read the file named by TORCHELASTIC_ERROR_FILE: {"message": {"message": TEXT, "extraInfo":
 * {…}}} or {"message": TEXT}. Returns a new {"message", "extra"} (extra is null when there is
 * none); NULL when there is no such file, or nothing in it that can be read so: it is the
 * worker's, and may be anything. */
json_object *worker_error_read(const char *path);

/* A new {"message": TEXT, "extra": null}. */
json_object *worker_error_new(const char *message);

#endif
