# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# COPYRPC_SANITIZERS: --enable-asan, --enable-tsan and --enable-fuzz. They touch the flags and
# nothing else: the same sources are built, with no macro that a source could ask for.

# COPYRPC_STATIC_SANITIZERS(OPTIONS): sets SANITIZE_TEST_LIBS to the options if programs can be linked so.
AC_DEFUN([COPYRPC_STATIC_SANITIZERS], [
	copyrpc_ldflags=$LDFLAGS
	LDFLAGS="$LDFLAGS $SANITIZE_CFLAGS $1"
	AC_MSG_CHECKING([whether test programs can contain the sanitizers])
	AC_LINK_IFELSE([AC_LANG_PROGRAM], [SANITIZE_TEST_LIBS="$1"])
	AC_MSG_RESULT([${SANITIZE_TEST_LIBS:-no}])
	LDFLAGS=$copyrpc_ldflags
])

AC_DEFUN([COPYRPC_SANITIZERS], [
	AC_ARG_ENABLE([asan],
		[AS_HELP_STRING([--enable-asan], [build with AddressSanitizer and UBSan])],
		[], [enable_asan=no])
	AC_ARG_ENABLE([tsan],
		[AS_HELP_STRING([--enable-tsan], [build with ThreadSanitizer])],
		[], [enable_tsan=no])
	AC_ARG_ENABLE([fuzz],
		[AS_HELP_STRING([--enable-fuzz], [build the libFuzzer targets (clang)])],
		[], [enable_fuzz=no])

	AS_IF([test "x$enable_asan$enable_tsan" = xyesyes],
		[AC_MSG_ERROR([--enable-asan and --enable-tsan exclude each other])])
	AS_IF([test "x$enable_fuzz$copyrpc_cv_clang" = xyesno],
		[AC_MSG_ERROR([--enable-fuzz needs clang: configure with CC=clang])])

	copyrpc_asan="-fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer"
	SANITIZE_CFLAGS=
	AS_IF([test "x$enable_asan" = xyes], [SANITIZE_CFLAGS="$copyrpc_asan"])
	AS_IF([test "x$enable_tsan" = xyes], [SANITIZE_CFLAGS="-fsanitize=thread -fno-omit-frame-pointer"])
	AS_IF([test "x$enable_tsan$copyrpc_cv_clang" = xyesno],
		[SANITIZE_CFLAGS="$SANITIZE_CFLAGS -Wno-tsan"])
	AS_IF([test "x$enable_fuzz" = xyes],
		[SANITIZE_CFLAGS="$copyrpc_asan -fsanitize=fuzzer-no-link"])

	# A unit test is a process that runs for milliseconds. Three things take longer than the test itself:
	# relocations of a position-independent program (some 10^5 for what UBSan reports), a second copy of the
	# sanitizers' runtime, and the search of both for pointers.
	SANITIZE_TEST_LIBS=
	AS_IF([test "x$enable_asan$copyrpc_cv_clang" = xyesno],
		[COPYRPC_STATIC_SANITIZERS([-no-pie -static-libasan -static-libubsan])],
		[test "x$enable_asan$copyrpc_cv_clang" = xyesyes],
		[COPYRPC_STATIC_SANITIZERS([-no-pie -static-libsan])])

	# A sanitizer's symbols come from the program that loads the module: -z defs would refuse them.
	NO_UNDEFINED_LDFLAGS=
	AS_IF([test -z "$SANITIZE_CFLAGS"], [NO_UNDEFINED_LDFLAGS="-Wl,-z,defs"])

	AC_SUBST([SANITIZE_CFLAGS])
	AC_SUBST([SANITIZE_TEST_LIBS])
	AC_SUBST([NO_UNDEFINED_LDFLAGS])
	AM_CONDITIONAL([ENABLE_FUZZ], [test "x$enable_fuzz" = xyes])
])
