/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The shape of a node (machine.h). */
#include "lib/machine.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "lib/text.h"

#define MIB_PER_GIB  1024
#define HASH_DIGITS  6
#define MEMORY_PARTS 20 /* the kernel keeps less than this part of the memory */
#define UNIT_MIB     64
#define SAME_LINK    32 /* links that differ by less than one part in so many count as equal */

/* ---- reducing -------------------------------------------------------------------------------- */

/* Units are powers of two, and half as much again. So rounding adds 7.5 % at most, less than one
 * DIMM of twelve, and the memory of a machine is a multiple of the unit. */
int64_t machine_round_memory(int64_t mib)
{
    int64_t unit = UNIT_MIB;

    if (mib <= 0)
        return 0;
    while (unit * MEMORY_PARTS < mib)
        unit = unit / 3 * 3 == unit ? unit / 3 * 4 : unit / 2 * 3;
    return (mib + unit - 1) / unit * unit;
}

static void clean_cpu(char *cpu)
{
    size_t kept = 0;

    for (const char *s = cpu; *s != '\0'; s++) {
        bool printable = *s > ' ' && *s < 0x7f && *s != '"' && *s != '\\';

        /* Some CPUs have names padded with blanks. */
        if (printable || (*s == ' ' && kept > 0 && cpu[kept - 1] != ' '))
            cpu[kept++] = *s;
    }
    while (kept > 0 && cpu[kept - 1] == ' ')
        kept--;
    cpu[kept] = '\0';
}

/* GPUs show slices of their memory as domains, most of them empty. */
static void drop_empty_domains(struct machine *m)
{
    int moved_to[MACHINE_DOMAINS_MAX], kept = 0;

    for (int i = 0; i < m->domain_count; i++) {
        bool empty = m->domains[i].threads == 0 && m->domains[i].memory_mib == 0;

        moved_to[i] = empty ? -1 : kept;
        if (!empty)
            m->domains[kept++] = m->domains[i];
    }
    for (int i = 0; i < m->device_count; i++) {
        uint64_t near = 0;

        for (int k = 0; k < m->domain_count; k++)
            if ((m->devices[i].near >> k & 1) != 0 && moved_to[k] >= 0)
                near |= UINT64_C(1) << moved_to[k];
        m->devices[i].near = near;
    }
    m->domain_count = kept;
}

#define COMPARE(a, b)                                                                              \
    if ((a) != (b))                                                                                \
    return (a) < (b) ? -1 : 1

static int compare_devices(const void *a, const void *b)
{
    const struct machine_device *x = a, *y = b;

    COMPARE(x->kind, y->kind);
    COMPARE(x->near, y->near);
    COMPARE(x->vendor, y->vendor);
    COMPARE(x->model, y->model);
    COMPARE(x->link, y->link);
    COMPARE(x->rate, y->rate);
    return 0;
}

void machine_reduce(struct machine *m)
{
    clean_cpu(m->cpu);
    for (int i = 0; i < m->domain_count; i++)
        m->domains[i].memory_mib = machine_round_memory(m->domains[i].memory_mib);
    drop_empty_domains(m);
    qsort(m->devices, (size_t)m->device_count, sizeof(m->devices[0]), compare_devices);
    if (m->kind_count == 1)
        m->kind_count = 0;
}

/* ---- words ----------------------------------------------------------------------------------- */

static int64_t memory_of(const struct machine *m)
{
    int64_t mib = 0;

    for (int i = 0; i < m->domain_count; i++)
        mib += m->domains[i].memory_mib;
    return mib;
}

static int count_devices(const struct machine *m, enum machine_device_kind kind)
{
    int count = 0;

    for (int i = 0; i < m->device_count; i++)
        count += m->devices[i].kind == kind;
    return count;
}

/* The beginning of a hash of the whole description. */
static void hash_of(const struct machine *m, char digits[HASH_DIGITS + 1])
{
    unsigned char hash[crypto_generichash_BYTES_MIN];
    json_object *object = machine_to_json(m);
    const char *text = json_object_to_json_string_ext(object, JSON_C_TO_STRING_PLAIN);

    crypto_generichash(hash, sizeof(hash), (const unsigned char *)text, strlen(text), NULL, 0);
    for (int i = 0; i < HASH_DIGITS / 2; i++)
        snprintf(digits + 2 * i, 3, "%02x", hash[i]);
    json_object_put(object);
}

void machine_name(const struct machine *m, char *name, size_t size)
{
    int packages = m->packages > 0 ? m->packages : 1;
    int gpus = count_devices(m, MACHINE_GPU);
    char digits[HASH_DIGITS + 1];

    hash_of(m, digits);
    name[0] = '\0';
    text_append(name, size, "%dx%dc", packages, m->cores / packages);
    if (memory_of(m) >= MIB_PER_GIB)
        text_append(name, size, "-%" PRId64 "g", memory_of(m) / MIB_PER_GIB);
    if (gpus > 0)
        text_append(name, size, "-%dgpu", gpus);
    text_append(name, size, "-%s", digits);
}

/* "1 GPU", "8 GPUs". */
struct phrase {
    char text[48];
};

static struct phrase count_of(int64_t count, const char *noun)
{
    struct phrase phrase;

    snprintf(phrase.text, sizeof(phrase.text), "%" PRId64 " %s%s", count, noun,
             count == 1 ? "" : "s");
    return phrase;
}

static struct phrase memory_text(int64_t mib)
{
    struct phrase phrase;

    if (mib % MIB_PER_GIB == 0)
        snprintf(phrase.text, sizeof(phrase.text), "%" PRId64 " GiB", mib / MIB_PER_GIB);
    else
        snprintf(phrase.text, sizeof(phrase.text), "%" PRId64 " MiB", mib);
    return phrase;
}

char *machine_describe(const struct machine *m, char *text, size_t size)
{
    int gpus = count_devices(m, MACHINE_GPU), nics = count_devices(m, MACHINE_NIC);

    text[0] = '\0';
    text_append(text, size, "%s, ", count_of(m->packages, "package").text);
    text_append(text, size, "%s, ", count_of(m->domain_count, "NUMA domain").text);
    text_append(text, size, "%s, ", count_of(m->cores, "core").text);
    text_append(text, size, "%s, ", count_of(m->threads, "thread").text);
    text_append(text, size, "%s", memory_text(memory_of(m)).text);
    if (gpus > 0)
        text_append(text, size, ", %s", count_of(gpus, "GPU").text);
    if (nics > 0)
        text_append(text, size, ", %s", count_of(nics, "NIC").text);
    return text;
}

/* ---- differences ----------------------------------------------------------------------------- */

struct lines {
    char **list;
    size_t count;
    bool failed;
};

static void __attribute__((format(printf, 2, 3)))
add_line(struct lines *lines, const char *fmt, ...)
{
    char **grown = realloc(lines->list, (lines->count + 2) * sizeof(*grown));
    va_list args;

    if (grown == NULL) {
        lines->failed = true;
        return;
    }
    lines->list = grown;
    va_start(args, fmt);
    if (vasprintf(&grown[lines->count], fmt, args) < 0)
        lines->failed = true;
    else
        lines->count++;
    va_end(args);
    grown[lines->count] = NULL;
}

static void compare_count(struct lines *lines, const char *noun, int64_t has, int64_t usual)
{
    if (has != usual)
        add_line(lines, "%s instead of %" PRId64, count_of(has, noun).text, usual);
}

static void compare_cache(struct lines *lines, const char *name, struct machine_cache has,
                          struct machine_cache usual)
{
    if (has.count != usual.count || has.kib != usual.kib)
        add_line(lines, "%s cache: %d of %d KiB instead of %d of %d KiB", name, has.count, has.kib,
                 usual.count, usual.kib);
}

static void compare_kinds(struct lines *lines, const struct machine *m, const struct machine *usual)
{
    bool same = m->kind_count == usual->kind_count;

    for (int i = 0; i < m->kind_count && same; i++)
        same = m->kinds[i].cores == usual->kinds[i].cores &&
               m->kinds[i].threads == usual->kinds[i].threads;
    if (!same)
        add_line(lines, "other numbers of fast and slow cores");
}

static void compare_domains(struct lines *lines, const struct machine *m,
                            const struct machine *usual)
{
    compare_count(lines, "NUMA domain", m->domain_count, usual->domain_count);
    if (m->domain_count != usual->domain_count) {
        if (memory_of(m) != memory_of(usual))
            add_line(lines, "about %s of memory instead of %s", memory_text(memory_of(m)).text,
                     memory_text(memory_of(usual)).text);
        return;
    }
    for (int i = 0; i < m->domain_count; i++) {
        const struct machine_domain *has = &m->domains[i], *other = &usual->domains[i];

        if (has->memory_mib != other->memory_mib)
            add_line(lines, "about %s of memory instead of %s in NUMA domain %d",
                     memory_text(has->memory_mib).text, memory_text(other->memory_mib).text, i);
        if (has->cores != other->cores || has->threads != other->threads)
            add_line(lines, "%d cores and %d threads instead of %d and %d in NUMA domain %d",
                     has->cores, has->threads, other->cores, other->threads, i);
    }
}

/* " near NUMA domains 0,2"; "" where there is only one domain. */
static struct phrase place_of(const struct machine *m, uint64_t near)
{
    struct phrase phrase = {""};
    const char *separator = "";

    if (m->domain_count < 2 || near == 0)
        return phrase;
    text_append(phrase.text, sizeof(phrase.text), " near NUMA domain%s ",
                (near & (near - 1)) != 0 ? "s" : "");
    for (int i = 0; i < MACHINE_DOMAINS_MAX; i++)
        if ((near >> i & 1) != 0) {
            text_append(phrase.text, sizeof(phrase.text), "%s%d", separator, i);
            separator = ",";
        }
    return phrase;
}

static bool same_model(const struct machine_device *a, const struct machine_device *b)
{
    return a->kind == b->kind && a->near == b->near && a->vendor == b->vendor &&
           a->model == b->model;
}

/* Devices of the same model at the same place stand together. */
static int run_length(const struct machine *m, int from)
{
    int end = from;

    while (end < m->device_count && same_model(&m->devices[from], &m->devices[end]))
        end++;
    return end - from;
}

static int find_run(const struct machine *m, const struct machine_device *device)
{
    for (int i = 0; i < m->device_count; i++)
        if (same_model(&m->devices[i], device))
            return i;
    return -1;
}

static const char *noun_of(const struct machine_device *device)
{
    return device->kind == MACHINE_GPU ? "GPU" : "NIC";
}

static bool same_link(int a, int b)
{
    return a == 0 || b == 0 || abs(a - b) <= (a > b ? a : b) / SAME_LINK;
}

/* Sorted by link and rate within a run of equal devices, so that slow devices come first in
 * both. */
static void compare_links(struct lines *lines, const struct machine *m,
                          const struct machine_device *has, const struct machine_device *usual,
                          int count)
{
    for (int i = 0; i < count; i++) {
        if (!same_link(has[i].link, usual[i].link))
            add_line(lines, "a %s%s with a link of %.1f GB/s instead of %.1f GB/s", noun_of(has),
                     place_of(m, has->near).text, has[i].link / 1000.0, usual[i].link / 1000.0);
        if (has[i].rate != usual[i].rate)
            add_line(lines, "a NIC%s with %.1f Gbit/s instead of %.1f Gbit/s",
                     place_of(m, has->near).text, has[i].rate / 1000.0, usual[i].rate / 1000.0);
    }
}

static void compare_devices_of(struct lines *lines, const struct machine *m,
                               const struct machine *usual)
{
    for (int i = 0; i < usual->device_count; i += run_length(usual, i)) {
        const struct machine_device *device = &usual->devices[i];
        int at = find_run(m, device), wanted = run_length(usual, i);
        int has = at >= 0 ? run_length(m, at) : 0;

        if (has != wanted)
            add_line(lines, "%s (%04x:%04x)%s instead of %d", count_of(has, noun_of(device)).text,
                     device->vendor, device->model, place_of(usual, device->near).text, wanted);
        else
            compare_links(lines, m, &m->devices[at], device, has);
    }
    for (int i = 0; i < m->device_count; i += run_length(m, i))
        if (find_run(usual, &m->devices[i]) < 0)
            add_line(lines, "%s (%04x:%04x)%s that others have not",
                     count_of(run_length(m, i), noun_of(&m->devices[i])).text, m->devices[i].vendor,
                     m->devices[i].model, place_of(m, m->devices[i].near).text);
}

char **machine_differences(const struct machine *m, const struct machine *usual)
{
    struct lines lines = {calloc(1, sizeof(char *)), 0, false};

    if (lines.list == NULL)
        return NULL;
    if (strcmp(m->cpu, usual->cpu) != 0)
        add_line(&lines, "CPU '%s' instead of '%s'", m->cpu, usual->cpu);
    compare_count(&lines, "package", m->packages, usual->packages);
    compare_count(&lines, "core", m->cores, usual->cores);
    compare_count(&lines, "thread", m->threads, usual->threads);
    compare_kinds(&lines, m, usual);
    compare_cache(&lines, "L2", m->l2, usual->l2);
    compare_cache(&lines, "L3", m->l3, usual->l3);
    compare_domains(&lines, m, usual);
    compare_devices_of(&lines, m, usual);
    if (!lines.failed)
        return lines.list;
    strings_free(lines.list);
    return NULL;
}
