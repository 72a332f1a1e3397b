# SPDX-License-Identifier: GPL-2.0-or-later
#
# mlflow/: elastic-mlflow, which tells an MLflow server of a job.
pkglibexec_PROGRAMS += mlflow/elastic-mlflow
mlflow_elastic_mlflow_SOURCES = \
    agent/member/http.c \
    agent/member/http.h \
    mlflow/main.c
mlflow_elastic_mlflow_CPPFLAGS = $(AM_CPPFLAGS) $(JSONC_CFLAGS) $(LIBUV_CFLAGS) $(SODIUM_CFLAGS)
mlflow_elastic_mlflow_CFLAGS = $(AM_CFLAGS) $(PROGRAM_CFLAGS)
mlflow_elastic_mlflow_LINK = $(PROGRAM_LINK)
mlflow_elastic_mlflow_LDADD = $(COMMON_LIBS) $(CURL_LIBS)

EXTRA_DIST += mlflow/README.md
