/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Names of the environment of a worker (world_names.h). */
#include "lib/world_names.h"

#include <stddef.h>
#include <string.h>

const char *const world_names[] = {
    "ELASTIC_API",
    "ELASTIC_API_SOCKET",
    "ELASTIC_ATTEMPT",
    "ELASTIC_BIND",
    "ELASTIC_CHECKPOINT_DIR",
    WORLD_CHECKPOINT_URL,
    "ELASTIC_EVENT_FILE",
    "ELASTIC_GENERATION",
    "ELASTIC_INCARNATION",
    "ELASTIC_JOB_ID",
    "ELASTIC_KIND",
    "ELASTIC_LIB",
    "ELASTIC_MAX_NODES",
    "ELASTIC_MIN_NODES",
    "ELASTIC_NODES",
    "ELASTIC_PORT",
    "ELASTIC_READY_FILE",
    "ELASTIC_REASON",
    "ELASTIC_RELEASE",
    "ELASTIC_REPLICA",
    "ELASTIC_REPLICA_INDEX",
    "ELASTIC_REPLICA_NODES",
    "ELASTIC_ROLE",
    "ELASTIC_RUN_DIR",
    "ELASTIC_SCALE_CONFIG",
    "ELASTIC_SCALE_CONFIGS",
    "ELASTIC_SHARED_DIR",
    "ELASTIC_SHIELD",
    "ELASTIC_START",
    "ELASTIC_STATE_DIR",
    "ELASTIC_STORE",
    "ELASTIC_TASK",
    "ELASTIC_TASKS",
    "ELASTIC_UNIT",
    "ELASTIC_UNITS",
    "ELASTIC_UNIT_RANK",
    "ELASTIC_UNIT_SIZE",
    "GROUP_RANK",
    "GROUP_WORLD_SIZE",
    "HOROVOD_CROSS_RANK",
    "HOROVOD_CROSS_SIZE",
    "HOROVOD_HOSTNAME",
    "HOROVOD_LOCAL_RANK",
    "HOROVOD_LOCAL_SIZE",
    "HOROVOD_RANK",
    "HOROVOD_SIZE",
    "LOCAL_RANK",
    "LOCAL_WORLD_SIZE",
    "MASTER_ADDR",
    "MASTER_PORT",
    "RANK",
    "ROLE_NAME",
    "ROLE_RANK",
    "ROLE_WORLD_SIZE",
    "TORCHELASTIC_ERROR_FILE",
    "TORCHELASTIC_MAX_RESTARTS",
    "TORCHELASTIC_RESTART_COUNT",
    "TORCHELASTIC_RUN_ID",
    "TORCHELASTIC_USE_AGENT_STORE",
    "WORLD_SIZE",
    NULL,
};

int world_names_ports(char *const *env, char **names, int max)
{
    int count = 0;

    for (; env != NULL && *env != NULL && count < max; env++) {
        size_t len = strcspn(*env, "=");

        if (strncmp(*env, WORLD_NAMES_PORT, strlen(WORLD_NAMES_PORT)) == 0 && (*env)[len] == '=' &&
            (names[count] = strndup(*env, len)) != NULL)
            count++;
    }
    return count;
}
