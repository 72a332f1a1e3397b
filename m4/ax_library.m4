# SPDX-License-Identifier: GPL-2.0-or-later
#
# SYNOPSIS
#
#   AX_LIBRARY(VARIABLE-PREFIX, PKG-CONFIG-MODULES, DEBIAN-PACKAGE)
#
# DESCRIPTION
#
#   PKG_CHECK_MODULES for a library that is required, with the package to install in the error.
AC_DEFUN([AX_LIBRARY], [
    PKG_CHECK_MODULES([$1], [$2], [],
        [AC_MSG_ERROR([pkg-config does not find $2: ${$1[]_PKG_ERRORS}
Install the package $3 (Debian), or run scripts/setup.])])
])
