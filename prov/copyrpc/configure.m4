# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# PROV_COPYRPC_CONFIGURE: the provider's own switches; an in-tree provider has this file too.
# Which devices to build will be chosen here. The memory of one host is always there.

AC_DEFUN([PROV_COPYRPC_CONFIGURE], [
	# Where the libfabric that was found looks for providers. With its prefix, and without --libdir, copyrpc's goes there.
	fabric_prefix=`$PKG_CONFIG --variable=prefix libfabric`
	fabric_libdir=`$PKG_CONFIG --variable=libdir libfabric`
	own_prefix=$prefix
	AS_IF([test "x$own_prefix" = xNONE], [own_prefix=$ac_default_prefix])
	AC_SUBST([fabricdir], ["$fabric_libdir/libfabric"])
	AC_SUBST([provdir], ['$(libdir)/libfabric'])
	AS_IF([test "x$libdir" = 'x${exec_prefix}/lib' && test "x$own_prefix" = "x$fabric_prefix"],
		[provdir='$(prefix)'"${fabric_libdir#"$fabric_prefix"}/libfabric"])
])
