/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Prints session credentials as a fit gets them for its trainer: NAME=VALUE lines.
 *
 *     s3_session ROLE SECONDS READ WRITE      places on S3, "-": none */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "common/s3_session.h"
#include "common/stop.h"
#include "lib/s3_policy.h"

static int read_places(char **argv, struct s3_scope *scope, struct error *err)
{
    *scope = (struct s3_scope){.reads = strcmp(argv[3], "-") != 0,
                               .writes = strcmp(argv[4], "-") != 0};
    if (scope->reads > 0 && s3_place_parse(argv[3], &scope->read[0], err) != 0)
        return -1;
    return scope->writes ? s3_place_parse(argv[4], &scope->write, err) : 0;
}

int main(int argc, char **argv)
{
    struct s3_account account = {0}, session = {0};
    struct s3_session_order order = {.name = "test"};
    struct s3_scope scope;
    struct error err = {"wrong arguments"};
    char *policy = NULL;
    int rc = -1;

    stop_watch(0);
    if (argc == 5 && sodium_init() >= 0 && read_places(argv, &scope, &err) == 0 &&
        s3_account_load(&account, &err) == 0) {
        order.role = argv[1];
        order.seconds = atoi(argv[2]);
        order.policy = policy = s3_session_policy(&scope, argv[1]);
        rc = s3_session_begin(&account, &order, &session, &err);
    }
    if (rc == 0)
        printf("AWS_ACCESS_KEY_ID=%s\nAWS_SECRET_ACCESS_KEY=%s\nAWS_SESSION_TOKEN=%s\n",
               session.key, session.secret, session.token);
    else
        fprintf(stderr, "%s\n", err.text);
    free(policy);
    s3_account_clear(&session);
    s3_account_clear(&account);
    return rc == 0 ? 0 : 1;
}
