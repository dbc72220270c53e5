# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# shellcheck shell=bash
# shellcheck disable=SC2154 # variables of the scripts that source it
#
# Libraries that stand in for broken ones. Sourced by info-bites and info-probe, which set tmp, case and provdir.

# library FILE TEXT FLAG...: compiles a shared library into $tmp. Fails without a compiler, whose words are in $tmp/log.
library()
{
	mkdir -p "$(dirname "$tmp/$1")"
	printf '%s\n' "$2" > "$tmp/library.c"
	"${CC:-cc}" -w -shared -fPIC -o "$tmp/$1" "$tmp/library.c" "${@:3}" 2> "$tmp/log"
}

# provider DIRECTORY CODE NAME: a shared library that libfabric takes for a provider.
provider()
{
	library "$1/lib$3-fi.so" "#include <dlfcn.h>
		#include <rdma/fabric.h>
		#include <rdma/providers/fi_prov.h>
		#include <stdlib.h>
		struct fi_provider *fi_prov_ini(void) { $2 }"
}

# altered DIRECTORY CODE: copyrpc as it is built, with changes to the provider `it`.
altered()
{
	provider "$1" "struct fi_provider *(*ini)(void) = dlsym(dlopen(\"$provdir/libcopyrpc-fi.so\", RTLD_NOW),
		\"fi_prov_ini\"), *it = ini(); $2 return it;" copyrpc
}

# slow_sends DIRECTORY: a library that makes each sending of datagrams take 4 ms.
slow_sends()
{
	library "$1/libslow.so" '#define _GNU_SOURCE
		#include <sys/socket.h>
		#include <sys/syscall.h>
		#include <unistd.h>
		ssize_t sendmsg(int fd, const struct msghdr *msg, int flags)
		{
			usleep(4000);
			return syscall(SYS_sendmsg, fd, msg, flags);
		}
		ssize_t sendto(int fd, const void *buf, size_t len, int flags, const struct sockaddr *to,
			       socklen_t to_len)
		{
			usleep(4000);
			return syscall(SYS_sendto, fd, buf, len, flags, to, to_len);
		}
		int sendmmsg(int fd, struct mmsghdr *msgs, unsigned cnt, int flags)
		{
			usleep(4000);
			return syscall(SYS_sendmmsg, fd, msgs, cnt, flags);
		}'
}

# no_compiler: skips the case.
no_compiler()
{
	skip "no compiler: $(< "$tmp/log")"
}
