# SPDX-License-Identifier: GPL-2.0-or-later
#
# SYNOPSIS
#
#   AX_APPEND_LDFLAGS(VARIABLE, FLAGS)
#
# DESCRIPTION
#
#   Appends to VARIABLE each of the blank-separated FLAGS that the linker accepts. It mostly accepts all
#   of them, so they are tried together first.
AC_DEFUN([AX_APPEND_LDFLAGS], [
    ax_flags=`echo $2`
    _AX_APPEND_LDFLAGS([$1], [$ax_flags], [
        for ax_flag in $ax_flags; do
            _AX_APPEND_LDFLAGS([$1], [$ax_flag])
        done
    ])
])

# _AX_APPEND_LDFLAGS(VARIABLE, FLAGS, [IF-NOT]): all of them, or none.
AC_DEFUN([_AX_APPEND_LDFLAGS], [
    AS_VAR_PUSHDEF([ax_cache], [ax_cv_ldflags_$2])
    AC_CACHE_CHECK([whether the linker accepts $2], [ax_cache], [
        ax_append_save=$LDFLAGS
        LDFLAGS="$LDFLAGS -Werror $2"
        AC_LINK_IFELSE([AC_LANG_PROGRAM([[]], [[]])],
            [AS_VAR_SET([ax_cache], [yes])],
            [AS_VAR_SET([ax_cache], [no])])
        LDFLAGS=$ax_append_save
    ])
    AS_VAR_IF([ax_cache], [yes], [$1="${$1:+$$1 }$2"], [$3])
    AS_VAR_POPDEF([ax_cache])
])
