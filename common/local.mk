# SPDX-License-Identifier: GPL-2.0-or-later
#
# common/: what elasticrun and selastic share: log, files, connections, queries to Slurm.
noinst_LIBRARIES += common/libelasticcommon.a

common_libelasticcommon_a_SOURCES = \
    common/allowed_users.c \
    common/allowed_users.h \
    common/capture.c \
    common/capture.h \
    common/conf_file.c \
    common/conf_file.h \
    common/courier.c \
    common/courier.h \
    common/files.c \
    common/files.h \
    common/link.c \
    common/link.h \
    common/link_accept.c \
    common/link_auth.c \
    common/link_auth.h \
    common/link_client.c \
    common/link_judge.c \
    common/link_port.c \
    common/link_private.h \
    common/link_search.c \
    common/link_server.c \
    common/local_service.c \
    common/local_service.h \
    common/log.c \
    common/log.h \
    common/memory.c \
    common/memory.h \
    common/monotonic.h \
    common/program.c \
    common/program.h \
    common/release_own.c \
    common/release_own.h \
    common/roles_file.c \
    common/roles_file.h \
    common/service_dir.c \
    common/service_dir.h \
    common/slurm_client.h \
    common/slurm_compat.c \
    common/slurm_compat.h \
    common/slurm_jobs.c \
    common/slurm_nodes.c \
    common/slurm_private.h \
    common/slurm_queue.c \
    common/slurm_queue.h \
    common/slurm_show.c \
    common/slurm_site.c \
    common/slurm_users.c \
    common/tcp_caller.c \
    common/tcp_caller.h \
    common/tcp_sockets.c \
    common/tcp_sockets.h \
    common/yaml_file.c \
    common/yaml_file.h
common_libelasticcommon_a_CPPFLAGS = \
    $(AM_CPPFLAGS) \
    $(JSONC_CFLAGS) \
    $(LIBUV_CFLAGS) \
    $(MUNGE_CFLAGS) \
    $(SODIUM_CFLAGS) \
    $(YAML_CFLAGS)
common_libelasticcommon_a_CFLAGS = $(SHARED_CFLAGS)
# Slurm's first: the others may lie where another libslurm is (--with-slurm).
COMMON_LIBS = \
    common/libelasticcommon.a \
    lib/libelasticcore.a \
    $(SLURM_LIBS) \
    $(JSONC_LIBS) \
    $(LIBUV_LIBS) \
    $(MUNGE_LIBS) \
    $(SODIUM_LIBS) \
    $(YAML_LIBS) \
    -lm

# Reading directories in which anything may lie, such as one of checkpoints: without Slurm, munge and a loop.
noinst_LIBRARIES += common/libelasticcheckpoints.a
common_libelasticcheckpoints_a_SOURCES = \
    common/checkpoints.c \
    common/checkpoints.h \
    common/entry.c \
    common/entry.h \
    common/mounted.c \
    common/mounted.h \
    common/state_list.c \
    common/state_list.h \
    common/stop.c \
    common/stop.h \
    common/untraced.c \
    common/untraced.h \
    common/writers.c \
    common/writers.h
common_libelasticcheckpoints_a_CPPFLAGS = $(AM_CPPFLAGS) $(JSONC_CFLAGS)
common_libelasticcheckpoints_a_CFLAGS = $(AM_CFLAGS) $(PROGRAM_CFLAGS)

# libcurl, for programs that start often and seldom need it: it is loaded then.
noinst_LIBRARIES += common/libelasticcurl.a
common_libelasticcurl_a_SOURCES = common/curl_late.c
common_libelasticcurl_a_CPPFLAGS = $(AM_CPPFLAGS) $(CURL_CFLAGS)
common_libelasticcurl_a_CFLAGS = $(AM_CFLAGS) $(PROGRAM_CFLAGS)
CURL_LATE_LIBS = common/libelasticcurl.a

# S3, for processes that may wait: without Slurm, munge and a loop.
noinst_LIBRARIES += common/libelastics3client.a
common_libelastics3client_a_SOURCES = \
    common/crew.c \
    common/crew.h \
    common/files.c \
    common/files.h \
    common/s3.c \
    common/s3.h \
    common/s3_account.c \
    common/s3_account.h \
    common/s3_bucket_policy.c \
    common/s3_bucket_policy.h \
    common/s3_download.c \
    common/s3_private.h \
    common/s3_remove.c \
    common/s3_request.c \
    common/s3_session.c \
    common/s3_session.h \
    common/s3_upload.c
common_libelastics3client_a_CPPFLAGS = $(AM_CPPFLAGS) $(JSONC_CFLAGS) $(SODIUM_CFLAGS) $(CURL_CFLAGS)
common_libelastics3client_a_CFLAGS = $(AM_CFLAGS) $(PROGRAM_CFLAGS)
S3_CLIENT_LIBS = \
    common/libelastics3client.a \
    common/libelasticcheckpoints.a \
    $(S3_ANSWER_LIBS) \
    $(CURL_LATE_LIBS) \
    $(JSONC_LIBS) \
    $(SODIUM_LIBS)

EXTRA_DIST += common/README.md
