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
        AC_MSG_CHECKING([whether the linker accepts $ax_flag])
        ax_supported_save=$LDFLAGS
        LDFLAGS="$LDFLAGS -Werror $ax_flag"
        AC_LINK_IFELSE([AC_LANG_PROGRAM([[]], [[]])],
            [AC_MSG_RESULT([yes])
             $1="${$1:+$$1 }$ax_flag"],
            [AC_MSG_RESULT([no])])
        LDFLAGS=$ax_supported_save
    done
])
