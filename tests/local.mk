# SPDX-License-Identifier: GPL-2.0-or-later
#
# tests/: what the directories below share.
