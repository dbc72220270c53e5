# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# COPYRPC_PROBES: which static probes (USDT) the provider has. Each is one nop.

AC_DEFUN([COPYRPC_PROBES], [
	AC_ARG_WITH([sdt],
		[AS_HELP_STRING([--without-sdt],
			[no static probes for bpftrace and SystemTap (default: where sys/sdt.h is)])],
		[], [with_sdt=check])
	have_sdt=no
	AS_IF([test "x$with_sdt" != xno], [AC_CHECK_HEADER([sys/sdt.h], [have_sdt=yes])])
	AS_IF([test "x$with_sdt$have_sdt" = xyesno],
		[AC_MSG_ERROR([--with-sdt: sys/sdt.h is missing (Debian: systemtap-sdt-dev)])])
	AS_IF([test "x$with_sdt" = xcheck],
		[COPYRPC_REQUIRE_TOOL([$have_sdt], [sys/sdt.h (Debian: systemtap-sdt-dev)])])
	AC_ARG_ENABLE([probes],
		[AS_HELP_STRING([--enable-probes],
			[static probes of single operations, too: a percent more instructions])],
		[], [enable_probes=no])
	AS_IF([test "x$enable_probes$have_sdt" = xyesno],
		[AC_MSG_ERROR([--enable-probes needs sys/sdt.h (Debian: systemtap-sdt-dev)])])
	SDT_CPPFLAGS=
	AS_IF([test "x$have_sdt" = xyes], [SDT_CPPFLAGS=-DUTIL_HAVE_SDT])
	AS_IF([test "x$enable_probes" = xyes], [SDT_CPPFLAGS="$SDT_CPPFLAGS -DUTIL_HAVE_OP_PROBES"])
	AC_SUBST([SDT_CPPFLAGS])
])
