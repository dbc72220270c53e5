/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Value of FI_COPYRPC_IFACE, compared with an interface: see iface_filter.h. */
#include "util/iface_filter.h"

#include <arpa/inet.h>
#include <fnmatch.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "util/iface.h"

#define UTIL_IFACE_ITEM_MAX 80u

int util_iface_filter_is_in(const struct sockaddr *a, const struct sockaddr *b, unsigned prefix_len)
{
	const union util_iface_addr *u = (const void *)a, *v = (const void *)b;
	const uint8_t *p, *q;

	if (a->sa_family != b->sa_family)
		return false;
	p = a->sa_family == AF_INET6 ? u->in6.sin6_addr.s6_addr : (const uint8_t *)&u->in.sin_addr;
	q = a->sa_family == AF_INET6 ? v->in6.sin6_addr.s6_addr : (const uint8_t *)&v->in.sin_addr;
	if (memcmp(p, q, prefix_len / 8))
		return false;
	return !(prefix_len % 8) ||
	       !((p[prefix_len / 8] ^ q[prefix_len / 8]) >> (8 - prefix_len % 8));
}

/* Parses "address" or "address/bits". Returns false for any other text. */
static bool util_iface_filter_parse(char *text, union util_iface_addr *net, unsigned *prefix_len)
{
	char *slash = strchr(text, '/'), *end;
	unsigned long bits;

	if (slash)
		*slash = '\0';
	memset(net, 0, sizeof(*net));
	if (inet_pton(AF_INET, text, &net->in.sin_addr) == 1)
		net->sa.sa_family = AF_INET;
	else if (inet_pton(AF_INET6, text, &net->in6.sin6_addr) == 1)
		net->sa.sa_family = AF_INET6;
	if (slash)
		*slash = '/';
	*prefix_len = net->sa.sa_family == AF_INET6 ? 128 : 32;
	if (!slash)
		return net->sa.sa_family != AF_UNSPEC;
	bits = strtoul(slash + 1, &end, 10);
	if (end == slash + 1 || *end || bits > *prefix_len)
		return false;
	*prefix_len = (unsigned)bits;
	return net->sa.sa_family != AF_UNSPEC;
}

/* Returns whether `item` is the RDMA device of the interface, with or without a port. */
static bool util_iface_filter_is_rdma(const char *item, const struct util_iface *it)
{
	size_t len = strcspn(item, ":");

	return it->rdma[0] && strlen(it->rdma) == len && !memcmp(it->rdma, item, len);
}

static bool util_iface_filter_match(char *item, const struct util_iface *it)
{
	union util_iface_addr net;
	unsigned prefix_len;

	if (!strcmp(item, "all"))
		return !it->is_loopback;
	if (util_iface_filter_parse(item, &net, &prefix_len))
		return util_iface_filter_is_in(&it->addr.sa, &net.sa, prefix_len);
	return !fnmatch(item, it->name, 0) || util_iface_filter_is_rdma(item, it);
}

/* Copies the item at *at without surrounding blanks, and advances *at to the next or to NULL. */
static void util_iface_filter_next(const char **at, char item[UTIL_IFACE_ITEM_MAX])
{
	const char *from = *at + strspn(*at, " \t");
	size_t len = strcspn(from, ","), kept;

	*at = from[len] ? from + len + 1 : NULL;
	while (len && (from[len - 1] == ' ' || from[len - 1] == '\t'))
		len--;
	kept = len < UTIL_IFACE_ITEM_MAX ? len : UTIL_IFACE_ITEM_MAX - 1;
	memcpy(item, from, kept);
	item[kept] = '\0';
}

int util_iface_filter_item(const char *filter, const struct util_iface *it)
{
	bool all_excluded, is_excluded, has_permit = false;
	char item[UTIL_IFACE_ITEM_MAX];
	int found = -1;

	filter += strspn(filter, " \t");
	all_excluded = *filter == '^';
	for (int i = 0; filter; i++) {
		char *text = item;

		util_iface_filter_next(&filter, item);
		is_excluded = all_excluded || *item == '^' || *item == '!';
		text += *item == '^' || *item == '!';
		if (!*text)
			continue;
		has_permit |= !is_excluded;
		if (!util_iface_filter_match(text, it))
			continue;
		if (is_excluded)
			return -1;
		if (found < 0)
			found = i;
	}
	return has_permit || it->is_loopback ? found : 0;
}
