# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# PROV_COPYRPC_CONFIGURE: the provider's own switches; an in-tree provider has this file too.
# Which devices to build will be chosen here. The memory of one host is always there.

AC_DEFUN([PROV_COPYRPC_CONFIGURE], [
	AC_SUBST([provdir], ['$(libdir)/libfabric'])
])
