# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# COPYRPC_PROVIDER: the libraries that the provider itself is linked with.

AC_DEFUN([COPYRPC_PROVIDER], [
	PKG_CHECK_MODULES([LIBFABRIC], [libfabric >= 1.17], [],
		[AC_MSG_ERROR([libfabric 1.17 or newer is needed (Debian: libfabric-dev)])])
	PKG_CHECK_MODULES([SODIUM], [libsodium], [],
		[AC_MSG_ERROR([libsodium is needed (Debian: libsodium-dev)])])
	dnl The live view of copyrpc_top needs it; without, copyrpc_top prints once.
	AC_ARG_WITH([ncurses],
		[AS_HELP_STRING([--without-ncurses],
			[no live view of copyrpc_top (default: where ncursesw is)])],
		[], [with_ncurses=check])
	have_ncurses=no
	AS_IF([test "x$with_ncurses" != xno],
		[PKG_CHECK_MODULES([NCURSES], [ncursesw], [have_ncurses=yes], [have_ncurses=no])])
	AS_IF([test "x$with_ncurses$have_ncurses" = xyesno],
		[AC_MSG_ERROR([--with-ncurses: ncursesw is missing (Debian: libncurses-dev)])])
	AM_CONDITIONAL([HAVE_NCURSES], [test "x$have_ncurses" = xyes])
	PKG_CHECK_MODULES([VERBS], [libibverbs >= 1.14], [],
		[AC_MSG_ERROR([libibverbs of rdma-core 44 or newer is needed (Debian: libibverbs-dev)])])

	copyrpc_save_CPPFLAGS=$CPPFLAGS
	CPPFLAGS="$CPPFLAGS $LIBFABRIC_CFLAGS"
	AC_CHECK_HEADER([rdma/providers/fi_prov.h], [],
		[AC_MSG_ERROR([rdma/providers/fi_prov.h is missing: this libfabric was installed without its provider headers])])
	CPPFLAGS=$copyrpc_save_CPPFLAGS
])
