/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Ranking of a port's GIDs (ib_gid.h). No state. */
#include "dev/ib/ib_gid.h"

#include <arpa/inet.h>
#include <string.h>

static bool ib_gid_is_ipv4(const union ibv_gid *gid)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

	return !memcmp(gid->raw, mapped, sizeof(mapped));
}

static bool ib_gid_is_zero(const union ibv_gid *gid)
{
	static const union ibv_gid zero;

	return !memcmp(gid, &zero, sizeof(zero));
}

static bool ib_gid_is_link_local(const union ibv_gid *gid)
{
	return gid->raw[0] == 0xfe && (gid->raw[1] & 0xc0) == 0x80;
}

unsigned ib_gid_rank(const struct ibv_gid_entry *entry)
{
	unsigned address = ib_gid_is_ipv4(&entry->gid)         ? 3
			   : ib_gid_is_link_local(&entry->gid) ? 1
							       : 2;

	if (ib_gid_is_zero(&entry->gid))
		return 0;
	return (entry->gid_type == IBV_GID_TYPE_ROCE_V2 ? 10 : 0) + address;
}

int ib_gid_pick(const struct ibv_gid_entry *table, size_t cnt)
{
	unsigned best_rank = 0;
	int best = -1;

	for (size_t i = 0; i < cnt; i++) {
		unsigned rank = ib_gid_rank(&table[i]);

		if (rank < best_rank || !rank)
			continue;
		if (rank == best_rank && table[i].gid_index > table[best].gid_index)
			continue;
		best_rank = rank;
		best = (int)i;
	}
	return best;
}

bool ib_gid_is_like(const struct ibv_gid_entry *a, const struct ibv_gid_entry *b)
{
	return a->gid_type == b->gid_type && ib_gid_is_ipv4(&a->gid) == ib_gid_is_ipv4(&b->gid);
}

const char *ib_gid_text(const union ibv_gid *gid, char buf[IB_GID_TEXT_MAX])
{
	bool v4 = ib_gid_is_ipv4(gid);

	return inet_ntop(v4 ? AF_INET : AF_INET6, v4 ? gid->raw + 12 : gid->raw, buf,
			 IB_GID_TEXT_MAX);
}
