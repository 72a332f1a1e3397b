/* SPDX-License-Identifier: GPL-2.0-or-later */
/* From the name of a service to its job (service_job.h). */
#include "cmd/service_job.h"

#include <stdio.h>
#include <stdlib.h>

#include "common/files.h"
#include "common/service_dir.h"
#include "lib/json_get.h"
#include "lib/json_text.h"

json_object *service_leader(const char *dir)
{
    char path[PATH_MAX];
    json_object *leader;
    size_t len;
    char *text;

    if ((size_t)snprintf(path, sizeof(path), "%s/" SERVICE_LEADER_FILE, dir) >= sizeof(path))
        return NULL;
    text = file_read(path, SERVICE_FILE_MAX, &len, NULL);
    leader = text != NULL ? json_text_parse(text, len, NULL) : NULL;
    free(text);
    if (json_object_is_type(leader, json_type_object))
        return leader;
    json_object_put(leader);
    return NULL;
}

int service_job(const char *service, uint32_t *job, struct error *err)
{
    char dir[PATH_MAX];
    json_object *leader;
    int64_t number = 0;
    int rc = -1;

    if (service_dir_path(dir, sizeof(dir), service, err) != 0)
        return -1;
    leader = service_leader(dir);
    if (!json_get_int(leader, "job", 1, INT32_MAX, &number))
        error_set(err, "there is no service '%s' of yours; 'selastic services' lists them",
                  error_value(service).text);
    else if (json_get_bool(leader, "ended", false))
        error_set(err, "service %s is not run by any job; the last one was job %d", service,
                  (int)number);
    else
        rc = 0;
    json_object_put(leader);
    *job = rc == 0 ? (uint32_t)number : 0;
    return rc;
}
