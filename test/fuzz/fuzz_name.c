/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Fuzz target of the reader of names (util/name.h), which applications exchange.
 *
 * Further addresses that are read are those of hosts, each once, and write the same name again.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "util/name.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void check(int is_true)
{
	if (!is_true)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct sockaddr_storage name = { 0 };
	struct sockaddr_in again, *in = (struct sockaddr_in *)&name;
	struct in_addr others[UTIL_NAME_OTHERS];
	unsigned cnt;

	memcpy(&name, data, len < sizeof(name) ? len : sizeof(name));
	if (len & 1)
		name.ss_family = AF_INET;
	cnt = util_name_others((struct sockaddr *)&name, others);
	check(cnt <= UTIL_NAME_OTHERS && (!cnt || name.ss_family == AF_INET));
	check(!cnt || others[0].s_addr != in->sin_addr.s_addr);
	check(cnt < 2 ||
	      (others[0].s_addr != others[1].s_addr && others[1].s_addr != in->sin_addr.s_addr));
	for (unsigned i = 0; i < cnt; i++)
		check(ntohl(others[i].s_addr) >> 24 && !IN_MULTICAST(ntohl(others[i].s_addr)));
	if (!cnt)
		return 0;
	again = *in;
	util_name_set_others(&again, others, cnt);
	check(!memcmp(&again, in, sizeof(again)));
	check(util_name_has((struct sockaddr *)&name, (struct sockaddr *)&again));
	return 0;
}
