/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Addresses of UD queue pairs: see dgram_ud_addr.h. */
#include "dgram/dgram_ud_addr.h"

#include <assert.h>
#include <endian.h>
#include <rdma/fi_errno.h>
#include <stdint.h>
#include <string.h>

#include "dev/ib/ib_ud.h"

#define DGRAM_UD_PKEY 0xffffu

struct dgram_ud_bytes {
	uint8_t gid[16];
	uint32_t qpn;
	uint16_t lid;
	uint16_t pkey;
	uint16_t service;
	uint8_t sl;
	uint8_t mtu;
	uint32_t qkey_le;
};

static_assert(sizeof(struct dgram_ud_bytes) == DGRAM_UD_ADDR_LEN, "as libfabric has it");

int dgram_ud_addr_import(const void *addr, struct dev_desc *desc)
{
	struct dgram_ud_bytes b;
	struct ib_ud_desc d = { 0 };

	memcpy(&b, addr, sizeof(b));
	if (b.pkey != DGRAM_UD_PKEY || b.service || b.sl)
		return -FI_EINVAL;
	memcpy(d.gid.raw, b.gid, sizeof(b.gid));
	d.qpn = b.qpn;
	d.qkey = le32toh(b.qkey_le);
	d.lid = b.lid;
	d.mtu = b.mtu;
	d.is_eth = !b.lid;
	ib_ud_desc_encode(&d, desc);
	return ib_ud_desc_decode(desc, &d);
}

static size_t dgram_ud_addr_put(const struct dgram_ud_bytes *b, struct sockaddr_storage *addr)
{
	memset(addr, 0, sizeof(*addr));
	memcpy(addr, b, sizeof(*b));
	return sizeof(*b);
}

size_t dgram_ud_addr_export(const struct dev_desc *desc, struct sockaddr_storage *addr)
{
	struct dgram_ud_bytes b = { .pkey = DGRAM_UD_PKEY };
	struct ib_ud_desc d;

	if (ib_ud_desc_decode(desc, &d))
		return 0;
	memcpy(b.gid, d.gid.raw, sizeof(b.gid));
	b.qpn = d.qpn;
	b.lid = d.is_eth ? 0 : d.lid;
	b.mtu = d.mtu;
	b.qkey_le = htole32(d.qkey);
	return dgram_ud_addr_put(&b, addr);
}

size_t dgram_ud_addr_of_port(const struct dev_about *about, struct sockaddr_storage *addr)
{
	struct dgram_ud_bytes b = { .pkey = DGRAM_UD_PKEY, .lid = about->lid };

	memcpy(b.gid, about->gid, sizeof(b.gid));
	while ((128ull << b.mtu) < about->mtu)
		b.mtu++;
	return dgram_ud_addr_put(&b, addr);
}
