/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Who a user is for Slurm (slurm_client.h). */
#include "common/slurm_private.h"

#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NAMES_BYTES 16384

/* slurmctld knows the users of the accounting database, and answers without asking it. */
static int load_user(char *name, uid_t uid, bool *is_operator, struct error *err)
{
    assoc_mgr_info_request_msg_t request = {.flags = ASSOC_MGR_INFO_FLAG_USERS};
    assoc_mgr_info_msg_t *answer = NULL;
    slurmdb_user_rec_t *user;
    int code;

    request.user_list = slurm_list_create(NULL);
    slurm_list_append(request.user_list, name);
    code = slurm_load_assoc_mgr_info(&request, &answer);
    slurm_list_destroy(request.user_list);
    if (code != SLURM_SUCCESS || answer == NULL)
        return slurm_client_failed(err, "tell its users");
    while (answer->user_list != NULL && (user = slurm_list_pop(answer->user_list)) != NULL) {
        if (user->name != NULL && strcmp(user->name, name) == 0 && user->uid == uid)
            *is_operator = user->admin_level == SLURMDB_ADMIN_OPERATOR ||
                           user->admin_level == SLURMDB_ADMIN_SUPER_USER;
        slurmdb_destroy_user_rec(user);
    }
    slurm_free_assoc_mgr_info_msg(answer);
    return 0;
}

int slurm_client_is_operator(uid_t uid, bool *is_operator, struct error *err)
{
    struct passwd entry, *found = NULL;
    char *names = malloc(NAMES_BYTES);
    int result;

    *is_operator = false;
    if (names == NULL || getpwuid_r(uid, &entry, names, NAMES_BYTES, &found) != 0 ||
        found == NULL) {
        free(names);
        return error_set(err, "uid %u has no name", uid);
    }
    slurm_client_enter();
    result = load_user(entry.pw_name, uid, is_operator, err);
    slurm_client_leave();
    free(names);
    return result;
}
