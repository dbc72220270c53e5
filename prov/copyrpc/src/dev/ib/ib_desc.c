/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Description of a link's end (ib_desc.h). No state. */
#include "dev/ib/ib_desc.h"

#include <assert.h>
#include <endian.h>
#include <rdma/fi_errno.h>
#include <stddef.h>
#include <string.h>

#include "util/bits.h"
#include "util/log.h"

#define IB_DESC_VERSION 2u

struct ib_desc_bytes {
	uint32_t magic;
	uint16_t version;
	uint8_t mtu;
	uint8_t is_eth;
	uint32_t qpn;
	uint32_t psn;
	uint16_t lid;
	uint8_t rd_atomic;
	uint8_t pad;
	uint32_t flags;
	uint8_t gid[16];
	uint64_t ring_addr;
	uint64_t ring_len;
	uint64_t word_addr;
	uint32_t ring_rkey;
	uint32_t word_rkey;
	uint32_t dctn;
	uint32_t dc_id;
	uint64_t dc_key;
	uint8_t reserved[8];
};

static_assert(sizeof(struct ib_desc_bytes) == IB_DESC_LEN && IB_DESC_LEN <= DEV_DESC_MAX, "format");
static_assert(offsetof(struct ib_desc_bytes, gid) == 24, "format");
static_assert(offsetof(struct ib_desc_bytes, dctn) == 72, "format");

void ib_desc_encode(const struct ib_desc *d, struct dev_desc *desc)
{
	struct ib_desc_bytes b = {
		.magic = htole32(IB_DESC_MAGIC),
		.version = htole16(IB_DESC_VERSION),
		.mtu = d->mtu,
		.is_eth = d->is_eth,
		.qpn = htole32(d->qpn),
		.psn = htole32(d->psn),
		.lid = htole16(d->lid),
		.rd_atomic = d->rd_atomic,
		.flags = htole32(d->flags),
		.ring_addr = htole64(d->ring_addr),
		.ring_len = htole64(d->ring_len),
		.word_addr = htole64(d->word_addr),
		.ring_rkey = htole32(d->ring_rkey),
		.word_rkey = htole32(d->word_rkey),
		.dctn = htole32(d->dctn),
		.dc_id = htole32(d->dc_id),
		.dc_key = htole64(d->dc_key),
	};

	memcpy(b.gid, d->gid.raw, sizeof(b.gid));
	memcpy(desc->bytes, &b, sizeof(b));
	desc->len = sizeof(b);
	desc->fd_cnt = 0;
}

static bool ib_desc_is_zero(const uint8_t *bytes, size_t len)
{
	while (len--)
		if (bytes[len])
			return false;
	return true;
}

/** Returns true if [addr, addr + len) is a nonempty range that does not wrap. */
static bool ib_desc_is_range(uint64_t addr, uint64_t len)
{
	return addr && addr + len > addr;
}

static bool ib_desc_is_dc_legal(const struct ib_desc *d)
{
	if (d->flags & IB_DESC_DC)
		return d->dctn && d->dctn <= IB_QPN_MAX && d->dc_id && d->dc_id <= IB_DC_ID_MAX;
	return !(d->flags & (IB_DESC_DC_WANTED | IB_DESC_MOVES)) && !d->dctn && !d->dc_id &&
	       !d->dc_key;
}

static const char *ib_desc_fault(const struct ib_desc_bytes *b, const struct ib_desc *d)
{
	if (le32toh(b->magic) != IB_DESC_MAGIC)
		return "not a description of an RDMA link";
	if (le16toh(b->version) != IB_DESC_VERSION)
		return "another version: use the same copyrpc in all processes";
	if (d->flags & ~(uint32_t)(IB_DESC_DC | IB_DESC_DC_WANTED | IB_DESC_MOVES) || b->pad ||
	    b->is_eth > 1 || !ib_desc_is_zero(b->reserved, sizeof(b->reserved)))
		return "unknown flags";
	if (d->mtu < IBV_MTU_256 || d->mtu > IBV_MTU_4096 || !d->rd_atomic)
		return "illegal MTU or number of reads";
	if (!ib_desc_is_dc_legal(d))
		return "illegal DC target";
	if ((!d->qpn && !(d->flags & IB_DESC_DC_WANTED)) || d->qpn > IB_QPN_MAX ||
	    d->psn > IB_QPN_MAX)
		return "illegal QP or packet number";
	if (ib_desc_is_zero(d->gid.raw, sizeof(d->gid.raw)) && (d->is_eth || !d->lid))
		return "no address";
	if (!util_is_pow2(d->ring_len) || d->ring_len < IB_RING_MIN || d->ring_len > IB_RING_MAX)
		return "illegal ring size";
	if (!ib_desc_is_range(d->ring_addr, d->ring_len) || !ib_desc_is_range(d->word_addr, 8) ||
	    d->word_addr % 8)
		return "illegal addresses";
	return NULL;
}

static void ib_desc_load(const struct ib_desc_bytes *b, struct ib_desc *d)
{
	*d = (struct ib_desc){
		.qpn = le32toh(b->qpn),
		.psn = le32toh(b->psn),
		.flags = le32toh(b->flags),
		.lid = le16toh(b->lid),
		.mtu = b->mtu,
		.rd_atomic = b->rd_atomic,
		.is_eth = b->is_eth,
		.ring_addr = le64toh(b->ring_addr),
		.ring_len = le64toh(b->ring_len),
		.word_addr = le64toh(b->word_addr),
		.ring_rkey = le32toh(b->ring_rkey),
		.word_rkey = le32toh(b->word_rkey),
		.dctn = le32toh(b->dctn),
		.dc_id = le32toh(b->dc_id),
		.dc_key = le64toh(b->dc_key),
	};
	memcpy(d->gid.raw, b->gid, sizeof(b->gid));
}

int ib_desc_decode(const struct dev_desc *desc, struct ib_desc *d)
{
	const char *why = "wrong length";
	struct ib_desc_bytes b;

	if (desc->len == sizeof(b) && !desc->fd_cnt) {
		memcpy(&b, desc->bytes, sizeof(b));
		ib_desc_load(&b, d);
		why = ib_desc_fault(&b, d);
	}
	if (!why)
		return 0;
	UTIL_WARN(EP_CTRL, "peer's description refused: %s\n", why);
	return -FI_EINVAL;
}
