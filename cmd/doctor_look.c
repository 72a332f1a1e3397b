/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The facts of this host and its Slurm (doctor_look.h). Nothing is changed. */
#include "config.h"

#include "cmd/doctor_look.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include <linux/magic.h>
#include <munge.h>

#include "cmd/deadline.h"
#include "cmd/doctor_files.h"
#include "cmd/libexec.h"
#include "cmd/terminal_text.h"
#include "common/conf_file.h"
#include "common/files.h"
#include "common/program.h"
#include "common/release_own.h"
#include "common/slurm_client.h"
#include "lib/doctor_rules.h"

#define PYTHON_MS  10000
#define PATH_BYTES 512

struct doctor_look {
    struct doctor_facts facts;
    /* What facts borrows. */
    char *config, *partitions, *qos, *association, *plugstack_text, *conf_path, *state_dir, *python;
    char libexec[PATH_BYTES], plugstack[PATH_BYTES], program[PATH_BYTES];
    char state_unsafe[PATH_BYTES], state_stranger[PATH_BYTES], state_missing[PATH_BYTES];
    struct doctor_risk risk;
    char snapshot_why[256], munge_error[256], pmix_error[256];
    struct error config_error, conf_error;
    struct conf *conf;
};

/* ---- Slurm ----------------------------------------------------------------------------------- */

static bool has_accounting(const struct doctor_look *look)
{
    char type[64];
    doctor_config_value(look->config, "AccountingStorageType", 0, type, sizeof(type));
    return strstr(type, "slurmdbd") != NULL;
}

/* "Configuration data as of 2026-11-26T13:15:32" is slurmctld's clock of a moment ago. */
static void look_at_clock(struct doctor_look *look, time_t now)
{
    static const char words[] = "Configuration data as of ";
    struct tm tm = {.tm_isdst = -1};
    if (strncmp(look->config, words, sizeof(words) - 1) != 0 ||
        strptime(look->config + sizeof(words) - 1, "%Y-%m-%dT%H:%M:%S", &tm) == NULL)
        return;
    look->facts.knows_skew = true;
    look->facts.skew = difftime(now, mktime(&tm));
}

static void look_at_slurm(struct doctor_look *look)
{
    const struct passwd *user = getpwuid(geteuid());
    struct error err;
    look->facts.config = look->config = slurm_client_show(SLURM_SHOW_CONFIG, NULL,
                                                          &look->config_error);
    if (look->config == NULL) {
        look->facts.config_error = look->config_error.text;
        return;
    }
    look_at_clock(look, time(NULL));
    look->facts.partitions = look->partitions = slurm_client_show(SLURM_SHOW_PARTITIONS, NULL,
                                                                  &err);
    if (!has_accounting(look))
        return;
    look->facts.qos = look->qos = slurm_client_show(SLURM_SHOW_QOS, NULL, &err);
    if (user != NULL && geteuid() != 0)
        look->facts.association = look->association = slurm_client_show(SLURM_SHOW_ASSOCIATION,
                                                                        user->pw_name, &err);
}

/* ---- plugins --------------------------------------------------------------------------------- */

/* As Slurm itself looks at a plugin: what it needs may be missing, and it has a version. What
 * others may have written is not run here. */
static void load_plugin(const struct doctor_look *look, const char *slurm_version,
                        struct doctor_plugin *plugin)
{
    plugin->state = DOCTOR_PLUGIN_UNSAFE;
    if (!doctor_files_safe(plugin->path, look->config, plugin->why, sizeof(plugin->why)))
        return;
    plugin->state = DOCTOR_PLUGIN_BROKEN;
    void *handle = dlopen(plugin->path, RTLD_LAZY | RTLD_LOCAL);
    const char *why = handle == NULL ? dlerror() : NULL;
    const uint32_t *version = handle != NULL ? dlsym(handle, "plugin_version") : NULL;
    snprintf(plugin->why, sizeof(plugin->why), "%s", why != NULL ? why : "it has no version");
    if (version == NULL)
        return;
    snprintf(plugin->why, sizeof(plugin->why), "%u.%02u.%u", *version >> 16, *version >> 8 & 0xff,
             *version & 0xff);
    plugin->state = slurm_version[0] == '\0' || strcmp(plugin->why, slurm_version) == 0
                        ? DOCTOR_PLUGIN_GOOD
                        : DOCTOR_PLUGIN_OTHER;
}

/* In a directory in which Slurm looks. An absolute name is taken as it is. */
static void look_at_plugin(const struct doctor_look *look, const char *name,
                           struct doctor_plugin *plugin)
{
    char dirs[2048], version[64], *rest = NULL;
    doctor_config_value(look->config, "PluginDir", 0, dirs, sizeof(dirs));
    doctor_config_value(look->config, "SLURM_VERSION", 0, version, sizeof(version));
    plugin->state = DOCTOR_PLUGIN_ABSENT;
    if (name[0] == '/') {
        snprintf(plugin->path, sizeof(plugin->path), "%s", name);
        if (access(name, F_OK) == 0)
            load_plugin(look, version, plugin);
        return;
    }
    for (char *dir = strtok_r(dirs, ":", &rest); dir != NULL; dir = strtok_r(NULL, ":", &rest)) {
        snprintf(plugin->path, sizeof(plugin->path), "%s/%s", dir, name);
        if (access(plugin->path, F_OK) == 0) {
            load_plugin(look, version, plugin);
            return;
        }
    }
}

static void look_at_plugins(struct doctor_look *look)
{
    char value[256], path[PATH_BYTES];
    const char *slurm_conf = getenv("SLURM_CONF");
    if (look->config == NULL)
        return;
    doctor_config_value(look->config, "JobSubmitPlugins", 0, value, sizeof(value));
    if (doctor_has_word(value, "elastic"))
        look_at_plugin(look, "job_submit_elastic.so", &look->facts.job_submit);
    doctor_config_value(look->config, "SelectType", 0, value, sizeof(value));
    if (strcmp(value, "select/elastic_cons_tres") == 0)
        look_at_plugin(look, "select_elastic_cons_tres.so", &look->facts.select);
    doctor_config_value(look->config, "PlugStackConfig", 0, look->plugstack,
                        sizeof(look->plugstack));
    if (look->plugstack[0] == '\0') {
        if (slurm_conf == NULL || slurm_conf[0] == '\0')
            slurm_conf = "/etc/slurm/slurm.conf";
        int length = (int)(strrchr(slurm_conf, '/') != NULL ? strrchr(slurm_conf, '/') - slurm_conf
                                                            : 0);
        snprintf(look->plugstack, sizeof(look->plugstack), "%.*s/plugstack.conf", length,
                 slurm_conf);
    }
    look->facts.plugstack = look->plugstack;
    look->facts.plugstack_text = look->plugstack_text = doctor_files_plugstack(look->plugstack);
    if (doctor_spank_line(look->plugstack_text, path, sizeof(path)) != DOCTOR_SPANK_NONE)
        look_at_plugin(look, path, &look->facts.spank);
}

/* ---- files ----------------------------------------------------------------------------------- */

static void look_at_conf(struct doctor_look *look)
{
    struct doctor_facts *facts = &look->facts;
    facts->conf_path = look->conf_path = text_need(conf_file_path());
    facts->conf_error = look->conf_error.text;
    if (access(look->conf_path, R_OK) != 0 && errno != ENOENT && errno != ENOTDIR) {
        error_set(&look->conf_error, "%s", strerror(errno));
        facts->conf_state = DOCTOR_CONF_UNREADABLE;
        return;
    }
    look->conf = conf_file_load(look->conf_path, &look->conf_error);
    if (look->conf == NULL)
        facts->conf_state = DOCTOR_CONF_WRONG;
    else
        facts->conf_state = look->conf->was_read ? DOCTOR_CONF_GOOD : DOCTOR_CONF_ABSENT;
    facts->conf = look->conf;
}

/* To the directory above. False: nothing is above it. */
static bool cut(char *path)
{
    char *slash = strrchr(path, '/');
    if (slash == NULL || slash[1] == '\0')
        return false;
    while (slash > path && slash[-1] == '/')
        slash--;
    slash[slash == path ? 1 : 0] = '\0';
    return true;
}

/* The first counts. */
static void note(char *place, const char *path, const char **fact)
{
    if (*fact == NULL)
        snprintf(place, PATH_BYTES, "%s", path);
    *fact = place;
}

static bool is_strangers(const char *path)
{
    char above[PATH_BYTES];
    struct stat st, own;
    snprintf(above, sizeof(above), "%s", path);
    return cut(above) && stat(above, &st) == 0 && dir_is_strangers(path, &st, &own);
}

/* Where others could come between, from the first directory above it that is there, which is left
 * in path, up to the root. */
static void look_above_state(struct doctor_look *look, char *path)
{
    const mode_t others = S_IWGRP | S_IWOTH;
    bool is_missing = false;
    char up[PATH_BYTES];
    struct stat st;
    if (!cut(path))
        return;
    while (stat(path, &st) != 0) {
        is_missing = errno == ENOENT;
        snprintf(look->state_missing, sizeof(look->state_missing), "%s", path);
        if (!cut(path))
            return;
    }
    if (is_missing && (st.st_mode & S_ISVTX) != 0 && (st.st_mode & others) != 0)
        look->facts.state_missing = look->state_missing;
    else if (!is_missing && (st.st_mode & others) != 0)
        note(look->state_unsafe, path, &look->facts.state_unsafe);
    snprintf(up, sizeof(up), "%s", path);
    do {
        if (is_strangers(up))
            note(look->state_stranger, up, &look->facts.state_stranger);
        if (stat(up, &st) == 0 && (st.st_mode & S_IWOTH) != 0 && (st.st_mode & S_ISVTX) == 0)
            note(look->state_unsafe, up, &look->facts.state_unsafe);
    } while (cut(up));
}

/* The state directory of a job of this user: on which kind of file system, and whether others can
 * come between. */
static void look_at_state(struct doctor_look *look)
{
    const struct passwd *user = getpwuid(geteuid());
    char cluster[128], path[PATH_BYTES];
    struct statfs fs = {0};
    if (look->conf == NULL || user == NULL || look->config == NULL)
        return;
    doctor_config_value(look->config, "ClusterName", 0, cluster, sizeof(cluster));
    look->state_dir = conf_expand(look->conf->state_dir, user->pw_dir, user->pw_name, "1", cluster);
    look->facts.state_dir = look->state_dir;
    if (look->state_dir == NULL)
        return;
    snprintf(path, sizeof(path), "%s", look->state_dir);
    look_above_state(look, path);
    if (statfs(path, &fs) != 0)
        return;
    if (fs.f_type == TMPFS_MAGIC)
        look->facts.state_in_memory = "tmpfs";
    else if (fs.f_type == RAMFS_MAGIC)
        look->facts.state_in_memory = "ramfs";
}

static void find_libexec(struct doctor_look *look)
{
    char *real = realpath(libexec_find("."), NULL);

    snprintf(look->libexec, sizeof(look->libexec), "%s", real != NULL ? real : PKGLIBEXECDIR);
    free(real);
    look->facts.libexec = look->libexec;
}

static void look_at_programs(struct doctor_look *look)
{
    char flush[PATH_BYTES + 32], fit[PATH_BYTES + 32];
    find_libexec(look);
    snprintf(flush, sizeof(flush), "%s/elastic-flush", look->libexec);
    snprintf(fit, sizeof(fit), "%s/elastic-fit", look->libexec);
    if (doctor_files_missing(look->libexec, look->program, sizeof(look->program)))
        look->facts.program_missing = look->program;
    doctor_files_risk(look->libexec, SLURM_PLUGINS, look->config, &look->risk);
    if (look->risk.writable[0] != '\0')
        look->facts.program_writable = look->risk.writable;
    if (look->risk.owned[0] != '\0')
        look->facts.program_owned = look->risk.owned;
    look->facts.program_owner = look->risk.owner;
    look->facts.flush_mode = doctor_files_mode(flush);
    look->facts.fit_mode = doctor_files_mode(fit);
}

static void look_at_node(struct doctor_look *look)
{
    struct doctor_facts *facts = &look->facts;
    facts->node = doctor_files_node();
    if (!facts->node)
        return;
    doctor_files_hook(look->config, "Prolog", &facts->prolog);
    doctor_files_hook(look->config, "Epilog", &facts->epilog);
    if (look->conf != NULL)
        facts->snapshot_state = doctor_files_snapshot(look->conf->snapshot_dir, look->snapshot_why,
                                                      sizeof(look->snapshot_why));
    facts->snapshot_why = look->snapshot_why;
}

/* ---- the rest of the host -------------------------------------------------------------------- */

/* The socket that Slurm uses, or ours. */
static void munge_path(const struct doctor_look *look, char *path, size_t size)
{
    char info[512], *socket;
    path[0] = '\0';
    doctor_config_value(look->config, "AuthInfo", 0, info, sizeof(info));
    socket = strstr(info, "socket=");
    if (look->conf != NULL && look->conf->munge_socket != NULL)
        snprintf(path, size, "%s", look->conf->munge_socket);
    else if (socket != NULL)
        snprintf(path, size, "%.*s", (int)strcspn(socket + 7, ","), socket + 7);
}

static void look_at_munge(struct doctor_look *look)
{
    char path[PATH_BYTES], *credential = NULL;
    munge_ctx_t context = munge_ctx_create();
    munge_err_t rc;
    munge_path(look, path, sizeof(path));
    if (context != NULL && path[0] != '\0')
        munge_ctx_set(context, MUNGE_OPT_SOCKET, path);
    deadline_start();
    deadline_enter_threads();
    rc = munge_encode(&credential, context, NULL, 0);
    if (rc == EMUNGE_SUCCESS)
        rc = munge_decode(credential, context, NULL, NULL, NULL, NULL);
    deadline_leave();
    if (rc != EMUNGE_SUCCESS) {
        snprintf(look->munge_error, sizeof(look->munge_error), "%s", munge_strerror(rc));
        look->facts.munge_error = look->munge_error;
    }
    munge_ctx_destroy(context);
    free(credential);
}

/* Two lines: each is a release, or empty. Nothing of the directory in which somebody runs this, and
 * PyTorch is not loaded: that takes seconds. */
static char python_program[] = "import sys\n"
                               "sys.path[:] = [p for p in sys.path if p]\n"
                               "try:\n"
                               "    import slurm_elastic\n"
                               "    print(slurm_elastic.__version__)\n"
                               "except Exception:\n"
                               "    print()\n"
                               "try:\n"
                               "    import importlib.metadata\n"
                               "    print(importlib.metadata.version('torch'))\n"
                               "except Exception:\n"
                               "    print()\n";

/* The line at text, which ends there; NULL: it is empty. *next: behind it. */
static const char *take_line(char *text, char **next)
{
    size_t length = strcspn(text, "\n");
    *next = text + length + (text[length] == '\n');
    text[length] = '\0';
    return length > 0 ? text : NULL;
}

static void look_at_python(struct doctor_look *look)
{
    char *const argv[] = {"python3", "-B", "-c", python_program, NULL};
    const char *libuv = getenv("USE_LIBUV");
    struct error err;
    char *rest;
    look->facts.libuv_declined = libuv != NULL && strcmp(libuv, "0") == 0;
    if (program_output(argv, PYTHON_MS, 256, &look->python, &err) != 0)
        return;
    look->facts.python_release = take_line(look->python, &rest);
    look->facts.torch_release = take_line(rest, &rest);
}

static void look_at_libraries(struct doctor_look *look)
{
    void *pmix = dlopen("libpmix.so.2", RTLD_LAZY | RTLD_LOCAL);
    if (pmix == NULL) {
        snprintf(look->pmix_error, sizeof(look->pmix_error), "%s", dlerror());
        look->facts.pmix_error = look->pmix_error;
    }
    look->facts.release = release_own()->name;
    look_at_python(look);
}

static void look_at_ports(struct doctor_look *look)
{
    FILE *file = fopen("/proc/sys/net/ipv4/ip_local_port_range", "re");
    if (file == NULL)
        return;
    if (fscanf(file, "%d %d", &look->facts.local_port_first, &look->facts.local_port_last) != 2)
        look->facts.local_port_first = look->facts.local_port_last = 0;
    fclose(file);
}

struct doctor_look *doctor_look_create(void)
{
    struct doctor_look *look = text_need(calloc(1, sizeof(*look)));
    look->facts = (struct doctor_facts){
        .built_for = ELASTIC_SLURM_VERSION,
        .plugins = SLURM_PLUGINS,
        .slurm_plugins = SLURM_SYSTEM_PLUGINS,
        .examples = EXAMPLESDIR,
        .flush_mode = -1,
        .fit_mode = -1,
    };
    look_at_slurm(look);
    look_at_plugins(look);
    look_at_conf(look);
    look_at_programs(look);
    doctor_files_grants(time(NULL), &look->facts.grants);
    look_at_node(look);
    look_at_munge(look);
    look_at_ports(look);
    look_at_state(look);
    look_at_libraries(look);
    return look;
}

const struct doctor_facts *doctor_look_facts(const struct doctor_look *look)
{
    return &look->facts;
}

void doctor_look_destroy(struct doctor_look *look)
{
    if (look == NULL)
        return;
    conf_destroy(look->conf);
    char *const owned[] = {look->config,      look->partitions,     look->qos,
                           look->association, look->plugstack_text, look->conf_path,
                           look->state_dir,   look->python};
    for (size_t i = 0; i < sizeof(owned) / sizeof(*owned); i++)
        free(owned[i]);
    free(look);
}
