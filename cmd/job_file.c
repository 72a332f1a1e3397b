/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The job file that a user names (job_file.h). */
#include "cmd/job_file.h"

#include "common/conf_file.h"
#include "common/roles_file.h"
#include "lib/roles_site.h"

struct roles *job_file_load(const char *file, struct error *err)
{
    struct conf *conf = conf_file_load(NULL, err);
    struct roles *roles = conf != NULL ? roles_file_load(file, conf->roles_dir, err) : NULL;

    if (roles != NULL && roles_check_site(roles, conf, err) < 0) {
        error_prefix(err, "%s", error_path(file).text);
        roles_destroy(roles);
        roles = NULL;
    }
    conf_destroy(conf);
    return roles;
}
