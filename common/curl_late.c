/* SPDX-License-Identifier: GPL-2.0-or-later */
/* libcurl, loaded by the first who needs it and never linked. It brings 27 more libraries along,
 * and to load them takes two thirds of what a start of elasticrun costs. Most agents, and all
 * shims of workers, ask nobody over HTTP. These are curl's own functions, for the program that
 * this is linked into; nothing else sees them. Where libcurl cannot be loaded no handle is made,
 * as where memory is used up. */
#pragma GCC visibility push(hidden)
#include <curl/curl.h>
#pragma GCC visibility pop

#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* Macros that check types, where they are called. */
#undef curl_easy_getinfo
#undef curl_easy_setopt
#undef curl_multi_setopt

#define FUNCTIONS(F)                                                                               \
    F(easy_cleanup)                                                                                \
    F(easy_getinfo)                                                                                \
    F(easy_header)                                                                                 \
    F(easy_init)                                                                                   \
    F(easy_perform)                                                                                \
    F(easy_reset)                                                                                  \
    F(easy_setopt)                                                                                 \
    F(easy_strerror)                                                                               \
    F(getdate)                                                                                     \
    F(global_init)                                                                                 \
    F(multi_add_handle)                                                                            \
    F(multi_assign)                                                                                \
    F(multi_cleanup)                                                                               \
    F(multi_info_read)                                                                             \
    F(multi_init)                                                                                  \
    F(multi_remove_handle)                                                                         \
    F(multi_setopt)                                                                                \
    F(multi_socket_action)                                                                         \
    F(slist_append)                                                                                \
    F(slist_free_all)

#define FIELD(name) __typeof__(&curl_##name) name;
#define NAME(name)  {"curl_" #name, offsetof(struct curl, name)},

static struct curl {
    FUNCTIONS(FIELD)
} curl;

static bool loaded;

static void load(void)
{
    static const struct {
        const char *name;
        size_t at;
    } functions[] = {FUNCTIONS(NAME)};
    void *library = dlopen("libcurl.so.4", RTLD_NOW | RTLD_LOCAL);

    for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
        void *function = library != NULL ? dlsym(library, functions[i].name) : NULL;

        if (function == NULL)
            return;
        memcpy((char *)&curl + functions[i].at, &function, sizeof(function));
    }
    loaded = true;
}

static bool have_curl(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, load);
    return loaded;
}

/* ---- what may come first --------------------------------------------------------------------- */

CURLcode curl_global_init(long flags)
{
    return have_curl() ? curl.global_init(flags) : CURLE_FAILED_INIT;
}

CURL *curl_easy_init(void)
{
    return have_curl() ? curl.easy_init() : NULL;
}

CURLM *curl_multi_init(void)
{
    return have_curl() ? curl.multi_init() : NULL;
}

struct curl_slist *curl_slist_append(struct curl_slist *list, const char *text)
{
    return have_curl() ? curl.slist_append(list, text) : NULL;
}

time_t curl_getdate(const char *text, const time_t *unused)
{
    return have_curl() ? curl.getdate(text, unused) : -1;
}

const char *curl_easy_strerror(CURLcode code)
{
    return have_curl() ? curl.easy_strerror(code) : "libcurl.so.4 cannot be loaded";
}

/* ---- what may get NULL ----------------------------------------------------------------------- */

void curl_easy_cleanup(CURL *easy)
{
    if (easy != NULL)
        curl.easy_cleanup(easy);
}

CURLMcode curl_multi_cleanup(CURLM *multi)
{
    return multi != NULL ? curl.multi_cleanup(multi) : CURLM_BAD_HANDLE;
}

void curl_slist_free_all(struct curl_slist *list)
{
    if (list != NULL)
        curl.slist_free_all(list);
}

/* ---- what has a handle ----------------------------------------------------------------------- */

/* Of which type the value is, the option's number says. */
CURLcode curl_easy_setopt(CURL *easy, CURLoption option, ...)
{
    CURLcode code;
    va_list args;

    va_start(args, option);
    if (option < CURLOPTTYPE_OBJECTPOINT)
        code = curl.easy_setopt(easy, option, va_arg(args, long));
    else if (option >= CURLOPTTYPE_OFF_T && option < CURLOPTTYPE_BLOB)
        code = curl.easy_setopt(easy, option, va_arg(args, curl_off_t));
    else
        code = curl.easy_setopt(easy, option, va_arg(args, void *));
    va_end(args);
    return code;
}

CURLMcode curl_multi_setopt(CURLM *multi, CURLMoption option, ...)
{
    CURLMcode code;
    va_list args;

    va_start(args, option);
    if (option < CURLOPTTYPE_OBJECTPOINT)
        code = curl.multi_setopt(multi, option, va_arg(args, long));
    else if (option >= CURLOPTTYPE_OFF_T)
        code = curl.multi_setopt(multi, option, va_arg(args, curl_off_t));
    else
        code = curl.multi_setopt(multi, option, va_arg(args, void *));
    va_end(args);
    return code;
}

CURLcode curl_easy_getinfo(CURL *easy, CURLINFO info, ...)
{
    CURLcode code;
    va_list args;

    va_start(args, info);
    code = curl.easy_getinfo(easy, info, va_arg(args, void *));
    va_end(args);
    return code;
}

CURLHcode curl_easy_header(CURL *easy, const char *name, size_t index, unsigned origin, int request,
                           struct curl_header **header)
{
    return curl.easy_header(easy, name, index, origin, request, header);
}

CURLcode curl_easy_perform(CURL *easy)
{
    return curl.easy_perform(easy);
}

void curl_easy_reset(CURL *easy)
{
    curl.easy_reset(easy);
}

CURLMcode curl_multi_add_handle(CURLM *multi, CURL *easy)
{
    return curl.multi_add_handle(multi, easy);
}

CURLMcode curl_multi_remove_handle(CURLM *multi, CURL *easy)
{
    return curl.multi_remove_handle(multi, easy);
}

CURLMcode curl_multi_assign(CURLM *multi, curl_socket_t socket, void *arg)
{
    return curl.multi_assign(multi, socket, arg);
}

CURLMcode curl_multi_socket_action(CURLM *multi, curl_socket_t socket, int what, int *running)
{
    return curl.multi_socket_action(multi, socket, what, running);
}

CURLMsg *curl_multi_info_read(CURLM *multi, int *left)
{
    return curl.multi_info_read(multi, left);
}
