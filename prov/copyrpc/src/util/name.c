/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Names of endpoints and their further addresses: see name.h. */
#include "util/name.h"

#include <assert.h>
#include <string.h>

static_assert(sizeof(((struct sockaddr_in *)0)->sin_zero) ==
		      UTIL_NAME_OTHERS * sizeof(struct in_addr),
	      "the further addresses fill sin_zero");

void util_name_set_others(struct sockaddr_in *name, const struct in_addr *others, unsigned cnt)
{
	memset(name->sin_zero, 0, sizeof(name->sin_zero));
	if (cnt)
		memcpy(name->sin_zero, others,
		       (cnt < UTIL_NAME_OTHERS ? cnt : UTIL_NAME_OTHERS) * sizeof(*others));
}

static bool util_name_is_host(struct in_addr addr)
{
	uint32_t ip = ntohl(addr.s_addr);

	return ip >> 24 && ip >> 24 != IN_LOOPBACKNET && !IN_MULTICAST(ip) && !IN_BADCLASS(ip);
}

unsigned util_name_others(const struct sockaddr *name, struct in_addr others[UTIL_NAME_OTHERS])
{
	const struct sockaddr_in *in = (const void *)name;
	struct in_addr all[UTIL_NAME_ADDRS];
	unsigned cnt = 0;

	if (name->sa_family != AF_INET)
		return 0;
	all[0] = in->sin_addr;
	memcpy(&all[1], in->sin_zero, sizeof(in->sin_zero));
	for (unsigned i = 1; i < UTIL_NAME_ADDRS; i++) {
		if (!all[i].s_addr)
			continue;
		if (!util_name_is_host(all[i]) || i != cnt + 1)
			return 0;
		for (unsigned before = 0; before < i; before++)
			if (all[before].s_addr == all[i].s_addr)
				return 0;
		cnt++;
	}
	memcpy(others, &all[1], cnt * sizeof(*others));
	return cnt;
}

static bool util_name_is_same6(const struct sockaddr_in6 *a, const struct sockaddr_in6 *b)
{
	return a->sin6_port == b->sin6_port && IN6_ARE_ADDR_EQUAL(&a->sin6_addr, &b->sin6_addr) &&
	       (!IN6_IS_ADDR_LINKLOCAL(&a->sin6_addr) || a->sin6_scope_id == b->sin6_scope_id);
}

bool util_name_is_same(const struct sockaddr *a, const struct sockaddr *b)
{
	const struct sockaddr_in *a4 = (const void *)a, *b4 = (const void *)b;

	if (a->sa_family != b->sa_family)
		return false;
	if (a->sa_family == AF_INET6)
		return util_name_is_same6((const void *)a, (const void *)b);
	return a4->sin_port == b4->sin_port && a4->sin_addr.s_addr == b4->sin_addr.s_addr;
}

bool util_name_has(const struct sockaddr *name, const struct sockaddr *addr)
{
	const struct sockaddr_in *a4 = (const void *)name, *b4 = (const void *)addr;
	struct in_addr others[UTIL_NAME_OTHERS];
	unsigned cnt;

	if (name->sa_family != addr->sa_family)
		return false;
	if (util_name_is_same(name, addr))
		return true;
	cnt = util_name_others(name, others);
	for (unsigned i = 0; i < cnt; i++)
		if (others[i].s_addr == b4->sin_addr.s_addr && a4->sin_port == b4->sin_port)
			return true;
	return false;
}
