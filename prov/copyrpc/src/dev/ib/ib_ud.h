/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Datagram endpoints on UD queue pairs: the part shared by m5_ud and vb_ud.
 *
 * An endpoint is a UD queue pair with a random Q_Key. Its description, 48 bytes, little endian:
 *
 *   0 magic u32     4 version u16   6 mtu u8    7 is_eth u8
 *   8 qpn u32      12 qkey u32     16 lid u16  18 0 u16     20 flags u32
 *  24 gid 16 bytes, as on the wire  40 0, 8 bytes
 *
 * The device puts 40 bytes in front of a received datagram: the routing header, on RoCE always, on
 * InfiniBand if it crossed a router. A buffer's slot is a cache line that ends in them, then the
 * data:
 *
 *   0            24                64               64 + mtu
 *   | not used   | routing header  | data ...       |
 *
 * A sender's id is, on InfiniBand, the LID and QP number in the completion. On RoCE it is the
 * address in the routing header (an IPv4 header is in its last 20 bytes) and the QP number.
 *
 * Tests: test/unit/dev/ib/test_ib_ud.c, test/fuzz/fuzz_ib_desc.c, test/integ/dev/dev_dgram.
 */
#ifndef DEV_IB_IB_UD_H
#define DEV_IB_IB_UD_H

#include <string.h>

#include "dev/dgram.h"
#include "dev/ib/ib_dev.h"
#include "dev/ib/ib_mem.h"
#include "util/list.h"

#define IB_UD_DESC_LEN 48u
#define IB_UD_GRH_LEN  40u
#define IB_UD_DATA_OFF 64u /* offset of the data in a slot */
#define IB_UD_GRH_OFF  (IB_UD_DATA_OFF - IB_UD_GRH_LEN)

struct ib_ud_desc {
	uint32_t qpn;
	uint32_t qkey; /* bit 31 is 0: 1 would select the sender's own Q_Key */
	uint16_t lid;
	uint8_t mtu; /* enum ibv_mtu */
	bool is_eth;
	union ibv_gid gid;
};

/** Kind of a sender's id on this device. */
enum ib_ud_naming {
	IB_UD_BY_LID,
	IB_UD_BY_GID,
	IB_UD_BY_IPV4,
};

/** Shared part of an endpoint. Devices embed it first. */
struct ib_ud {
	struct dev_dgram base;
	enum ib_ud_naming naming;
	uint32_t stride; /* bytes of a slot */
	struct ib_mem rx;
	struct ib_dev *dev;
	struct ibv_qp *qp;
	struct ibv_cq *cq_obj;         /* of both directions */
	struct ibv_comp_channel *chan; /* of its events */
	uint32_t qkey;
	int status;              /* error that ended the endpoint, or 0 */
	struct util_list in_dev; /* in the device's list of endpoints */
};

void ib_ud_desc_encode(const struct ib_ud_desc *d, struct dev_desc *desc);
/** Decodes and validates. Returns 0, or -FI_EINVAL with a log line. */
int ib_ud_desc_decode(const struct dev_desc *desc, struct ib_ud_desc *d);

/**
 * Starts an endpoint without queues: allocates rx_cnt slots and a channel. Returns 0 or an error,
 * logged.
 */
int ib_ud_init(struct ib_ud *ud, struct ib_dev *dev, const struct dev_dgram_attr *attr);
/** Frees the queues and the slots. All events are acknowledged. */
void ib_ud_fini(struct ib_ud *ud);

/** Move RESET -> INIT (receives may be posted), then -> RTS. Return 0 or an error, logged. */
int ib_ud_start(struct ib_ud *ud);
int ib_ud_run(struct ib_ud *ud);

/** Implement dev_dgram_ops.describe and .wait_fd. */
int ib_ud_describe(struct dev_dgram *base, struct dev_desc *desc);
int ib_ud_wait_fd(struct dev_dgram *base);

/**
 * Makes an address handle for the peer and sets ah->id and ah->mtu. Returns 0 or an error, logged.
 */
int ib_ud_route(struct ib_ud *ud, const struct ib_ud_desc *peer, struct dev_dgram_ah *ah,
		struct ibv_ah **obj);

/** Ends the endpoint with err, unless it has ended before. */
void ib_ud_fail(struct ib_ud *ud, int err);

/** Logs the completion status that ended the endpoint. */
void ib_ud_log(const struct ib_ud *ud, const char *what, unsigned vendor, const char *advice);

static inline uint8_t *ib_ud_slot(const struct ib_ud *ud, uint32_t slot)
{
	return (uint8_t *)ud->rx.addr + (size_t)slot * ud->stride;
}

static inline void ib_ud_id_lid(struct dev_dgram_id *id, uint32_t qpn, uint16_t lid)
{
	*id = (struct dev_dgram_id){ { qpn | (uint64_t)lid << 32, 0, 0 } };
}

static inline void ib_ud_id_gid(struct dev_dgram_id *id, uint32_t qpn, const uint8_t gid[16])
{
	id->word[0] = qpn;
	memcpy(&id->word[1], gid, 16);
}

static inline void ib_ud_id_ipv4(struct dev_dgram_id *id, uint32_t qpn, const uint8_t ip[4])
{
	uint8_t gid[16] = { [10] = 0xff, [11] = 0xff };

	memcpy(gid + 12, ip, 4);
	ib_ud_id_gid(id, qpn, gid);
}

/**
 * Sets the id of the sender of the datagram in `slot`. qpn, lid and has_grh are the completion's.
 */
static inline void ib_ud_from(const struct ib_ud *ud, const uint8_t *slot, uint32_t qpn,
			      uint16_t lid, bool has_grh, struct dev_dgram_id *id)
{
	const uint8_t *grh = slot + IB_UD_GRH_OFF;

	if (ud->naming == IB_UD_BY_IPV4)
		ib_ud_id_ipv4(id, qpn, grh + 20 + 12);
	else if (ud->naming == IB_UD_BY_GID || has_grh)
		ib_ud_id_gid(id, qpn, grh + 8);
	else
		ib_ud_id_lid(id, qpn, lid);
}

#endif
