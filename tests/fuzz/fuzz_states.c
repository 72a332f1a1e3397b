/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Fuzz target: manifests and names of states, records of fits, answers of S3 servers, profiles of
 * AWS. */
#include "tests/fuzz/fuzz.h"

#include "lib/fit.h"
#include "lib/s3_answer.h"
#include "lib/s3_place.h"
#include "lib/s3_profile.h"
#include "lib/states.h"

/* What is written of it is read as the same. */
static void check_manifest(const struct state_manifest *manifest)
{
    char *text = state_manifest_text(manifest), *second;
    struct state_manifest *again;
    int64_t bytes = 0;

    MUST(text != NULL && manifest->count > 0);
    for (size_t i = 0; i < manifest->count; i++) {
        const struct state_file *file = &manifest->files[i];

        MUST(state_file_ok(file->name) && strstr(file->name, "..") != file->name);
        MUST(file->name[0] != '/' && state_manifest_find(manifest, file->name) == file);
        bytes += file->bytes;
    }
    MUST(bytes == manifest->bytes);
    again = state_manifest_parse(text, strlen(text), NULL);
    MUST(again != NULL);
    second = state_manifest_text(again);
    MUST(strcmp(text, second) == 0);
    state_manifest_destroy(again);
    free(text);
    free(second);
}

static void check_state(const char *text, size_t size)
{
    struct error err = {""};
    struct state_manifest *manifest = state_manifest_parse(text, size, &err);
    bool partial;
    int64_t number = state_number(text, &partial);

    if (manifest != NULL)
        check_manifest(manifest);
    else
        fuzz_check_refusal(&err);
    state_manifest_destroy(manifest);
    MUST(number >= 0 && number <= STATE_NUMBER_MAX);
    MUST(state_pointer_number(text, size) <= STATE_NUMBER_MAX);
}

static void check_answer(const char *text, size_t size)
{
    const struct s3_asker asker = {"get", "b", "h", "r", "k", "s", 0};
    struct error err = {""};
    struct s3_listing listing;
    struct s3_fault fault;
    char *id;

    if (s3_listing_parse(text, size, &listing, &err) == 0)
        for (size_t i = 0; i < listing.count; i++)
            MUST(listing.entries[i].key != NULL && listing.entries[i].bytes >= -1);
    else
        fuzz_check_refusal(&err);
    s3_listing_clear(&listing);
    id = s3_upload_parse(text, size, &err);
    if (id == NULL)
        fuzz_check_refusal(&err);
    free(id);
    s3_fault_parse(text, size, &fault);
    s3_fault_line(&asker, 400, &fault, &err);
    fuzz_check_refusal(&err);
}

/* Whatever was accepted ends, and nothing is open then. */
static void check_fit(const char *text, size_t size)
{
    struct error err = {""};
    struct fit fit;

    if (fit_record_parse(text, size, &fit, &err) != 0) {
        fuzz_check_refusal(&err);
        return;
    }
    for (int i = 0; i < FIT_ACTIONS; i++)
        fit_tell(&fit, &(struct fit_fact){.kind = FIT_FACT_DONE, .action = fit.action}, 1);
    MUST(fit_is_over(&fit) && !fit.granted && !fit.partial && !fit.dedicated);
}

static void check_place(const char *text)
{
    static const struct s3_parameter none[] = {{0}};
    struct error err = {""};
    struct s3_place place;
    char *url, *decoded;

    if (s3_place_parse(text, &place, &err) != 0) {
        fuzz_check_refusal(&err);
        return;
    }
    MUST(strstr(place.prefix, "//") == NULL);
    url = s3_request_url(NULL, "r", place.bucket, place.prefix, none);
    MUST(url != NULL);
    free(url);
    decoded = s3_encode(place.prefix, false);
    MUST(s3_decode(decoded) && strcmp(decoded, place.prefix) == 0);
    free(decoded);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);

    check_state(text, size);
    check_answer(text, size);
    check_place(text);
    check_fit(text, size);
    free(s3_profile_value(text, "default", true, "region"));
    free(text);
    return 0;
}
