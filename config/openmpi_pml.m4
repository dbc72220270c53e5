# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# COPYRPC_OPENMPI_PML: whether the Open MPI component is built. It needs the headers of Open MPI's
# components, which are there where Open MPI was configured --with-devel-headers, of a series that
# the component is written for, because their interface changes with each.

AC_DEFUN([COPYRPC_OPENMPI_PML], [
	AC_ARG_WITH([openmpi-pml],
		[AS_HELP_STRING([--without-openmpi-pml],
			[do not build the component for Open MPI 4.1 and 5.0 (default: built where their headers are)])],
		[], [with_openmpi_pml=check])
	have_openmpi_pml=no
	openmpi_pml_why='not wanted'
	AS_IF([test "x$with_openmpi_pml" != xno], [COPYRPC_OPENMPI_PML_FIND])
	AS_IF([test "x$with_openmpi_pml$have_openmpi_pml" = xyesno],
		[AC_MSG_ERROR([--with-openmpi-pml: $openmpi_pml_why])])
	AS_IF([test "x$with_openmpi_pml" = xcheck],
		[COPYRPC_REQUIRE_TOOL([$have_openmpi_pml],
			[the component headers of Open MPI 4.1 or 5.0 (Debian: libopenmpi-dev)])])
	AM_CONDITIONAL([HAVE_OPENMPI_PML], [test "x$have_openmpi_pml" = xyes])
	AC_SUBST([OPENMPI_PML_CPPFLAGS])
	AC_SUBST([openmpi_series])
	AC_SUBST([openmpi_pmldir], ['$(pkglibdir)/openmpi'])
])

# COPYRPC_OPENMPI_PML_FIND: headers below one of Open MPI's include directories, as system headers,
# whose warnings are not this project's.
AC_DEFUN([COPYRPC_OPENMPI_PML_FIND], [
	openmpi_pml_why='no component headers of Open MPI 4.1 or 5.0 (Debian: libopenmpi-dev)'
	for copyrpc_flag in $MPI_CFLAGS; do
		copyrpc_dir=${copyrpc_flag#-I}
		AS_IF([test -e "$copyrpc_dir/openmpi/ompi/mca/pml/pml.h"],
			[OPENMPI_PML_CPPFLAGS="-isystem $copyrpc_dir/openmpi -isystem $copyrpc_dir"])
	done
	AS_IF([test "x$OPENMPI_PML_CPPFLAGS" != x], [COPYRPC_OPENMPI_PML_TRY])
])

# COPYRPC_OPENMPI_PML_TRY: the series, and what its headers need: an option for a compare-and-swap of
# 16 bytes; from 5.0 on those of PMIx, and of contrib/openmpi/missing, which 5.0 does not install.
AC_DEFUN([COPYRPC_OPENMPI_PML_TRY], [
	PKG_CHECK_MODULES([PMIX], [pmix], [], [PMIX_CFLAGS=])
	copyrpc_missing="-isystem $(cd "$srcdir" && pwd)/contrib/openmpi/missing"
	copyrpc_save_CPPFLAGS=$CPPFLAGS
	for copyrpc_flag in '' -mcx16 "$PMIX_CFLAGS" "-mcx16 $PMIX_CFLAGS" \
		"$PMIX_CFLAGS $copyrpc_missing" "-mcx16 $PMIX_CFLAGS $copyrpc_missing"; do
		CPPFLAGS="$copyrpc_save_CPPFLAGS $OPENMPI_PML_CPPFLAGS $copyrpc_flag"
		AS_IF([test "x$have_openmpi_pml" = xno], [
			AC_COMPILE_IFELSE([AC_LANG_PROGRAM([[
				#include "ompi_config.h"
				#include "ompi/mca/pml/pml.h"
				#include "opal/class/opal_free_list.h"
				#if OMPI_MAJOR_VERSION == 4 && OMPI_MINOR_VERSION == 1
				#include "opal/mca/pmix/pmix.h"
				#elif OMPI_MAJOR_VERSION == 5 && OMPI_MINOR_VERSION == 0
				#include "opal/mca/pmix/pmix-internal.h"
				#else
				#error "neither 4.1 nor 5.0"
				#endif
				#if defined(__x86_64__) && !defined(__GCC_HAVE_SYNC_COMPARE_AND_SWAP_16)
				#error "without 16 bytes"
				#endif
			]], [])], [
				have_openmpi_pml=yes
				OPENMPI_PML_CPPFLAGS="$OPENMPI_PML_CPPFLAGS $copyrpc_flag"
			])
		])
	done
	AS_IF([test "x$have_openmpi_pml" = xyes], [COPYRPC_OPENMPI_SERIES])
	CPPFLAGS=$copyrpc_save_CPPFLAGS
])

# COPYRPC_OPENMPI_SERIES: 4.1 or 5.0, for copyrpc_env to compare with mpirun's.
AC_DEFUN([COPYRPC_OPENMPI_SERIES], [
	openmpi_series=4.1
	CPPFLAGS="$copyrpc_save_CPPFLAGS $OPENMPI_PML_CPPFLAGS"
	AC_COMPILE_IFELSE([AC_LANG_PROGRAM([[
		#include "ompi_config.h"
		#if OMPI_MAJOR_VERSION != 5
		#error "4.1"
		#endif
	]], [])], [openmpi_series=5.0])
])
