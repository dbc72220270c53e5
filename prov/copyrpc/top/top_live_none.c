/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Live view of a build without ncurses: see top_live.h. */
#include "top/top_live.h"

#include <errno.h>

int top_live(double seconds)
{
	(void)seconds;
	return -ENOTSUP;
}
