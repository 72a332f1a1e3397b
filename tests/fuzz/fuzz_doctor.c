/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Fuzz target: what Slurm's programs print of a site, and plugstack.conf. The input is all of these
 * texts at once; each finding has its texts, on one line. */
#include "tests/fuzz/fuzz.h"

#include "lib/doctor.h"

static const char conf_text[] = "[pool a]\ngrace = 9\n[pool b]\npartition = a\nqos = a\n";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);
    struct error err = {""};
    struct conf *conf = conf_parse("elastic.conf", conf_text, sizeof(conf_text) - 1, &err);
    struct doctor_facts facts = {
        .built_for = "1",
        .plugins = "/p",
        .slurm_plugins = "/s",
        .libexec = "/l",
        .examples = "/e",
        .config = text,
        .partitions = text,
        .qos = text,
        .association = text,
        .plugstack = "/c",
        .plugstack_text = text,
        .node = true,
        .flush_mode = -1,
        .fit_mode = -1,
        .conf_state = DOCTOR_CONF_GOOD,
        .conf_path = "/c",
        .conf = conf,
        .release = "1",
    };
    struct doctor doctor;

    MUST(conf != NULL);
    doctor_examine(&facts, false, &doctor);
    MUST(doctor.count <= DOCTOR_FINDINGS_MAX);
    for (int i = 0; i < doctor.count; i++) {
        const struct doctor_finding *f = &doctor.findings[i];

        MUST(f->id != NULL && f->why != NULL && f->what[0] != '\0' && f->remedy[0] != '\0');
        MUST(strchr(f->what, '\n') == NULL && strchr(f->remedy, '\n') == NULL);
    }
    conf_destroy(conf);
    free(text);
    return 0;
}
