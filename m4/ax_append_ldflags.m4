# SPDX-License-Identifier: GPL-2.0-or-later
#
# SYNOPSIS
#
#   AX_APPEND_LDFLAGS(VARIABLE, FLAGS)
#
# DESCRIPTION
#
#   Appends to VARIABLE each of the blank-separated FLAGS that the linker accepts.
AC_DEFUN([AX_APPEND_LDFLAGS], [
    for ax_flag in $2; do
        AS_VAR_PUSHDEF([ax_cache], [ax_cv_ldflags_$ax_flag])
        AC_CACHE_CHECK([whether the linker accepts $ax_flag], [ax_cache], [
            ax_append_save=$LDFLAGS
            LDFLAGS="$LDFLAGS -Werror $ax_flag"
            AC_LINK_IFELSE([AC_LANG_PROGRAM([[]], [[]])],
                [AS_VAR_SET([ax_cache], [yes])],
                [AS_VAR_SET([ax_cache], [no])])
            LDFLAGS=$ax_append_save
        ])
        AS_VAR_IF([ax_cache], [yes], [$1="${$1:+$$1 }$ax_flag"])
        AS_VAR_POPDEF([ax_cache])
    done
])
