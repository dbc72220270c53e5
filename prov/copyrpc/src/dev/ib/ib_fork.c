/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Registered memory in processes that fork: see ib_fork.h. */
#include "dev/ib/ib_fork.h"

#include <infiniband/verbs.h>
#include <stdio.h>
#include <sys/utsname.h>

#include "util/job.h"

bool ib_fork_is_copied(const char *release)
{
	unsigned major, minor;

	return sscanf(release, "%u.%u", &major, &minor) == 2 &&
	       (major > 5 || (major == 5 && minor >= 12));
}

void ib_fork_protect(void)
{
	static bool is_done;
	struct utsname name;

	if (ibv_is_fork_initialized() != IBV_FORK_DISABLED || uname(&name) ||
	    ib_fork_is_copied(name.release) || !ibv_fork_init() ||
	    __atomic_exchange_n(&is_done, true, __ATOMIC_RELAXED))
		return;
	UTIL_WARN_HOST(
		DOMAIN,
		"Linux %s does not copy registered memory at fork (5.12 does), and another "
		"library has registered memory already: set RDMAV_FORK_SAFE=1 if this program "
		"forks\n",
		name.release);
}
