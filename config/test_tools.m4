# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# COPYRPC_TEST_TOOLS: what only the tests need. Missing tools make tests fall away, unless
# --enable-maintainer-checks says that all of them must be there.

AC_DEFUN([COPYRPC_TEST_TOOLS], [
	AC_ARG_ENABLE([maintainer-checks],
		[AS_HELP_STRING([--enable-maintainer-checks], [a missing test tool is an error])],
		[], [enable_maintainer_checks=no])

	PKG_CHECK_MODULES([CRITERION], [criterion >= 2.4], [have_criterion=yes], [have_criterion=no])
	COPYRPC_REQUIRE_TOOL([$have_criterion], [Criterion 2.4 (Debian: libcriterion-dev)])
	AM_CONDITIONAL([HAVE_CRITERION], [test "x$have_criterion" = xyes])

	PKG_CHECK_MODULES([MPI], [ompi-c], [have_mpi=yes], [COPYRPC_MPI_FROM_MPICC])
	COPYRPC_REQUIRE_TOOL([$have_mpi], [an MPI compiler (Debian: libopenmpi-dev)])
	AM_CONDITIONAL([HAVE_MPI], [test "x$have_mpi" = xyes])

	PKG_CHECK_MODULES([UCX], [ucx], [have_ucx=yes], [have_ucx=no])
	COPYRPC_REQUIRE_TOOL([$have_ucx], [UCX, to compare with (Debian: libucx-dev)])
	AM_CONDITIONAL([HAVE_UCX], [test "x$have_ucx" = xyes])

	dnl Nothing needs it: a benchmark has rows for it where it is there (Debian: libck-dev).
	PKG_CHECK_MODULES([CK], [ck], [have_ck=yes], [have_ck=no])
	AM_CONDITIONAL([HAVE_CK], [test "x$have_ck" = xyes])

	dnl Decodes the instructions whose cache lines are counted.
	AC_CHECK_HEADER([Zydis/Zydis.h],
		[AC_CHECK_LIB([Zydis], [ZydisDecoderDecodeFull], [have_zydis=yes], [have_zydis=no])],
		[have_zydis=no])
	AS_IF([test "x$host_cpu" = xx86_64],
		[COPYRPC_REQUIRE_TOOL([$have_zydis], [Zydis 4 (Debian: libzydis-dev)])])
	AM_CONDITIONAL([HAVE_ZYDIS], [test "x$have_zydis" = xyes])

	AM_CONDITIONAL([X86_64], [test "x$host_cpu" = xx86_64])
])

# COPYRPC_REQUIRE_TOOL(found, name): complains where it was asked to.
AC_DEFUN([COPYRPC_REQUIRE_TOOL], [
	AS_IF([test "x$enable_maintainer_checks$1" = xyesno],
		[AC_MSG_ERROR([--enable-maintainer-checks needs $2])])
])

# COPYRPC_MPI_FROM_MPICC: an Open MPI without pkg-config files still has a compiler wrapper.
AC_DEFUN([COPYRPC_MPI_FROM_MPICC], [
	AC_CHECK_PROG([MPICC], [mpicc], [mpicc])
	AS_IF([MPI_CFLAGS=$(${MPICC:-false} --showme:compile 2>/dev/null) &&
	       MPI_LIBS=$(${MPICC:-false} --showme:link 2>/dev/null)],
		[have_mpi=yes], [have_mpi=no])
	AC_SUBST([MPI_CFLAGS])
	AC_SUBST([MPI_LIBS])
])
