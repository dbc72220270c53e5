# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# COPYRPC_COMPILER: the C dialect and the warnings that every file is built with.

AC_DEFUN([COPYRPC_COMPILER], [
	AC_ARG_ENABLE([werror],
		[AS_HELP_STRING([--enable-werror], [a compiler warning is an error])],
		[], [enable_werror=no])

	# Most functions without a use for a parameter stand in a table of operations.
	copyrpc_warnings="-Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes"
	copyrpc_warnings="$copyrpc_warnings -Wno-unused-parameter"
	AS_IF([test "x$enable_werror" = xyes], [copyrpc_warnings="$copyrpc_warnings -Werror"])

	COPYRPC_CFLAGS="-std=gnu11 $copyrpc_warnings"
	AC_SUBST([COPYRPC_CFLAGS])

	AC_CACHE_CHECK([whether $CC is clang], [copyrpc_cv_clang],
		[AC_COMPILE_IFELSE([AC_LANG_SOURCE([[
			#ifndef __clang__
			#error "not clang"
			#endif
		]])], [copyrpc_cv_clang=yes], [copyrpc_cv_clang=no])])

	# Two neighbouring stores, as of the links of a list, are two instructions; vectorized they are four.
	AC_CACHE_CHECK([whether $CC accepts -fno-tree-slp-vectorize], [copyrpc_cv_no_slp],
		[copyrpc_saved_CFLAGS=$CFLAGS
		CFLAGS="$CFLAGS -Werror -fno-tree-slp-vectorize"
		AC_COMPILE_IFELSE([AC_LANG_PROGRAM()], [copyrpc_cv_no_slp=yes], [copyrpc_cv_no_slp=no])
		CFLAGS=$copyrpc_saved_CFLAGS])
	AS_IF([test "x$copyrpc_cv_no_slp" = xyes],
		[COPYRPC_CFLAGS="$COPYRPC_CFLAGS -fno-tree-slp-vectorize"])

	# Lock annotations are checked by clang alone; gcc sees empty macros.
	AS_IF([test "x$copyrpc_cv_clang" = xyes],
		[COPYRPC_CFLAGS="$COPYRPC_CFLAGS -Wthread-safety"])
])
