/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the PMIx programs share that change the size of their job or are told to leave. */
#ifndef ELASTIC_TESTS_PMIX_PROGRAM_H
#define ELASTIC_TESTS_PMIX_PROGRAM_H

#include <stdlib.h>
#include <string.h>

#include "pmix/compat.h"
#include "tests/system/pmix/notes.h"

static inline const char *text_of(const pmix_info_t *info, size_t count, const char *key)
{
    for (size_t i = 0; i < count; i++)
        if (PMIX_CHECK_KEY(&info[i], key) && info[i].value.type == PMIX_STRING)
            return info[i].value.data.string;
    return "-";
}

/* To be told by events, and not by a signal, that it has to leave. */
static inline pmix_status_t declare_preemptible(void)
{
    pmix_info_t *info, *results = NULL;
    size_t count = 0;
    pmix_status_t status;

    PMIX_INFO_CREATE(info, 1);
    PMIX_INFO_LOAD(&info[0], PMIX_JOB_CTRL_PREEMPTIBLE, NULL, PMIX_BOOL);
    status = PMIx_Job_control(NULL, 0, info, 1, &results, &count);
    PMIX_INFO_FREE(info, 1);
    return status;
}

static inline void on_told(pmix_status_t status, void *cookie)
{
    (void)cookie;
    if (status != PMIX_SUCCESS)
        say("nobody was told of the checkpoint: %d", status);
}

/* With a callback, since event handlers call it, too: without one PMIx waits, which OpenPMIx 7
 * refuses in a handler. */
static inline void tell_saved(const pmix_proc_t *self)
{
    pmix_status_t status = PMIx_Notify_event(PMIX_JCTRL_CHECKPOINT_COMPLETE, self, PMIX_RANGE_RM,
                                             NULL, 0, on_told, NULL);

    if (status != PMIX_SUCCESS)
        on_told(status, NULL);
}

#endif
