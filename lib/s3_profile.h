/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The two files of an AWS profile: ~/.aws/credentials and ~/.aws/config. Pure. */
#ifndef ELASTIC_S3_PROFILE_H
#define ELASTIC_S3_PROFILE_H

#include <stdbool.h>

/* The value of a key in the section of a profile, as a new string; NULL: there is none. Sections
 * are [NAME]; in the config file also [profile NAME], as config says. Comments begin with '#' or
 * ';'. A line that begins with a blank belongs to a block of settings of other programs, and is
 * left out. */
char *s3_profile_value(const char *text, const char *profile, bool config, const char *key);

#endif
