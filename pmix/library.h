/* SPDX-License-Identifier: GPL-2.0-or-later */
/* OpenPMIx's server library: requests of its clients, as calls in the loop.
 *
 * The library calls us from a thread of its own. Each such call is copied and posted to the loop.
 * There it is answered exactly once, at once or later. */
#ifndef ELASTIC_PMIX_LIBRARY_H
#define ELASTIC_PMIX_LIBRARY_H

#include <stddef.h>

#include <uv.h>

#include "lib/error.h"
#include "pmix/compat.h"

enum call_type {
    CALL_ABORT,      /* source gives up with status and text */
    CALL_FENCE,      /* all local processes of procs have come, with data */
    CALL_CONNECT,    /* as CALL_FENCE, without data */
    CALL_DISCONNECT, /* as CALL_FENCE, without data */
    CALL_MODEX,      /* asks for the data that procs[0], of another node, has made public */
    /* Info, the last element of which is the user, with what else is known of the user. */
    CALL_PUBLISH,
    CALL_LOOKUP,    /* keys, by info */
    CALL_UNPUBLISH, /* keys (NULL: all of source) */
    CALL_QUERY,     /* queries; the library does not tell who asks */
    CALL_LOG,       /* info of source, to be logged in the ways that directives name */
    CALL_ALLOCATE,  /* directive with info */
    CALL_CONTROL,   /* info about procs (none: all of source's namespace) */
    /* An event of source: status is its code, range says which processes are to hear of it. */
    CALL_NOTIFY,
    CALL_TOOL,   /* a tool that wants a name; info describes the tool */
    CALL_JOINED, /* a process has initialised PMIx; the call needs no answer */
    CALL_OWN     /* of this program itself: done is called in the loop */
};

struct call {
    enum call_type type;
    pmix_proc_t source;
    pmix_proc_t *procs;
    size_t proc_count;
    pmix_info_t *info, *directives;
    size_t info_count, directive_count;
    char **keys; /* NULL-terminated */
    pmix_query_t *queries;
    size_t query_count;
    pmix_pdata_t *found; /* of the answer to a lookup */
    size_t found_count;
    pmix_alloc_directive_t directive;
    pmix_data_range_t range;
    char *data; /* malloced */
    size_t len;
    pmix_status_t status;
    char *text;
    union {
        pmix_op_cbfunc_t op;
        pmix_modex_cbfunc_t modex;
        pmix_lookup_cbfunc_t lookup;
        pmix_info_cbfunc_t info;
        pmix_tool_connection_cbfunc_t tool;
        void (*done)(struct call *call, void *arg); /* CALL_OWN */
    } answer;
    void *cookie;
    struct call *next;
};

/* Start the library in this process, which can be done once in its life. name is the node's, rank
 * its number; directory (private, exists) is for the library's files. handle is called for each
 * call, in the loop. Blocks for tens of milliseconds. Nothing stops the library: it ends with the
 * process. */
int library_start(uv_loop_t *loop, const char *name, uint32_t rank, const char *directory,
                  void (*handle)(struct call *call), struct error *err);
/* Answer and free a call. call_answer: with a status alone, for any call. call_answer_data: with
 * the data of a fence or modex (taken over, freed when the library has used it). call_answer_found:
 * with the results of a lookup (taken over). call_answer_info: with infos for a query, allocation
 * or control. call_answer_tool: with the name that a tool gets. */
void call_answer(struct call *call, pmix_status_t status);
void call_answer_data(struct call *call, char *data, size_t len);
void call_answer_found(struct call *call, pmix_status_t status, pmix_pdata_t *found, size_t count);
void call_answer_info(struct call *call, pmix_status_t status, pmix_info_t *info, size_t count);
void call_answer_tool(struct call *call, const pmix_proc_t *name);

/* For the library's callbacks to us, which come from its thread: done(call, arg) is called in the
 * loop, with status and a copy of data. done frees the call with call_free. */
struct call *call_own(void (*done)(struct call *call, void *arg), void *arg);
void call_post(struct call *call, pmix_status_t status, const char *data, size_t len);
void call_free(struct call *call);

/* Pack count values of one type (0: none) as bytes that the library of another node can read. The
 * caller frees packed->bytes, also on failure. values_unpack: the way back, into values that have
 * room for them; packed is taken over. */
pmix_status_t values_pack(const void *values, int32_t count, pmix_data_type_t type,
                          pmix_byte_object_t *packed);
pmix_status_t values_unpack(pmix_byte_object_t *packed, void *values, int32_t count,
                            pmix_data_type_t type);

#endif
