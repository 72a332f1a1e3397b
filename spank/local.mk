# SPDX-License-Identifier: GPL-2.0-or-later
#
# spank/: the SPANK plugin. It is loaded into every sbatch, srun and slurmstepd, so it takes from
# lib/ and common/ what it needs by name, and not the libraries with all that they are linked with.
slurmplugin_LTLIBRARIES += spank/spank_elastic.la
spank_spank_elastic_la_SOURCES = \
    common/conf_file.c \
    common/files.c \
    common/roles_file.c \
    common/yaml_file.c \
    lib/amount.c \
    lib/conf.c \
    lib/conf_check.c \
    lib/conf_value.c \
    lib/error.c \
    lib/json_get.c \
    lib/json_text.c \
    lib/number.c \
    lib/policy.c \
    lib/policy_json.c \
    lib/recovery.c \
    lib/role_time.c \
    lib/role_values.c \
    lib/role_values_json.c \
    lib/roles.c \
    lib/roles_check.c \
    lib/roles_find.c \
    lib/roles_json.c \
    lib/roles_reader.c \
    lib/roles_router.c \
    lib/roles_site.c \
    lib/roles_template.c \
    lib/s3_place.c \
    lib/s3_policy.c \
    lib/rollout.c \
    lib/route_by.c \
    lib/sizes.c \
    lib/slots.c \
    lib/text.c \
    lib/when.c \
    lib/world_names.c \
    spank/client.c \
    spank/client.h \
    spank/environment.c \
    spank/environment.h \
    spank/options.c \
    spank/options.h \
    spank/plugin.c \
    spank/stepd.c \
    spank/stepd.h
spank_spank_elastic_la_CPPFLAGS = $(AM_CPPFLAGS) $(JSONC_CFLAGS) $(YAML_CFLAGS)
spank_spank_elastic_la_CFLAGS = $(EXPORTING_FLAGS)
spank_spank_elastic_la_LDFLAGS = $(PLUGIN_LINKING) -export-symbols-regex '^(slurm_spank_|plugin_)'
spank_spank_elastic_la_LIBADD = $(JSONC_LIBS) $(YAML_LIBS)

EXTRA_DIST += spank/README.md
