#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# Makes ./configure from configure.ac. Needs autoconf, automake and libtool.
set -e
cd "$(dirname "$0")"
exec autoreconf -fi
