/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Offered attributes: fills a fi_info with all that this provider offers and narrows it to hints.
 * Called by ofi/info.
 *
 * cpr_offer_fill writes the most that an endpoint can do into an empty fi_info. cpr_attr_accepts
 * (cpr_attr.h) compares a user's hints with it. cpr_offer_narrow then sets what the hints request:
 * no primary capability beyond the hints, values echoed where they fit.
 *
 * Tested by test/unit/ofi/base/test_cpr_offer.c against fi_getinfo(3), fi_endpoint(3) and
 * fi_domain(3).
 */
#ifndef OFI_BASE_CPR_OFFER_H
#define OFI_BASE_CPR_OFFER_H

#include <rdma/fabric.h>
#include <stdint.h>

/* Names of fabric and domain of the rc and ud endpoints: one pair for each protocol. */
#define CPR_RC_NAME "copyrpc-rc"
#define CPR_UD_NAME "copyrpc-ud"

/* Name of the fabric of datagram endpoints. Their domains add the device: "copyrpc-dgram-udp". */
#define CPR_DGRAM_NAME "copyrpc-dgram"

/* The high bit is set in values of a provider's own (fabric(7)). */
#define CPR_RC_PROTO         (1U << 31 | 0x00C09001u)
#define CPR_RC_PROTO_VERSION 1u
#define CPR_UD_PROTO         (1U << 31 | 0x00C09002u)
#define CPR_UD_PROTO_VERSION 1u

#define CPR_PRIMARY_CAPS                                                                           \
	(FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_COLLECTIVE | FI_DIRECTED_RECV)
#define CPR_MSG_MODS    (FI_SEND | FI_RECV)
#define CPR_RMA_MODS    (FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE)
#define CPR_MODIFIERS   (CPR_MSG_MODS | CPR_RMA_MODS)
#define CPR_DOMAIN_CAPS (FI_LOCAL_COMM | FI_REMOTE_COMM)
#define CPR_CAPS                                                                                   \
	(CPR_PRIMARY_CAPS | CPR_MODIFIERS | FI_MULTI_RECV | FI_SOURCE | FI_RMA_EVENT | FI_FENCE |  \
	 FI_TRIGGER | CPR_DOMAIN_CAPS)
#define CPR_DGRAM_CAPS (FI_MSG | CPR_MSG_MODS | FI_MULTI_RECV | FI_SOURCE | CPR_DOMAIN_CAPS)
#define CPR_TX_CAPS                                                                                \
	(FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_COLLECTIVE | FI_SEND | FI_READ | FI_WRITE |  \
	 FI_FENCE | FI_TRIGGER)
#define CPR_RX_CAPS                                                                                \
	(FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_COLLECTIVE | FI_RECV | FI_REMOTE_READ |      \
	 FI_REMOTE_WRITE | FI_MULTI_RECV | FI_DIRECTED_RECV | FI_SOURCE | FI_RMA_EVENT)

/*
 * Messages are always in order. Orders of RMA and atomics are offered, and kept only if the hints
 * request them, because they cost overlap.
 */
#define CPR_MSG_ORDER FI_ORDER_SAS
#define CPR_RMA_ORDER                                                                              \
	(FI_ORDER_RAR | FI_ORDER_RAW | FI_ORDER_RAS | FI_ORDER_WAR | FI_ORDER_WAW | FI_ORDER_WAS | \
	 FI_ORDER_SAR | FI_ORDER_SAW | FI_ORDER_RMA_RAR | FI_ORDER_RMA_RAW | FI_ORDER_RMA_WAR |    \
	 FI_ORDER_RMA_WAW | FI_ORDER_ATOMIC_RAR | FI_ORDER_ATOMIC_RAW | FI_ORDER_ATOMIC_WAR |      \
	 FI_ORDER_ATOMIC_WAW)

#define CPR_TX_OP_FLAGS                                                                            \
	(FI_COMPLETION | FI_INJECT | FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE |                   \
	 FI_DELIVERY_COMPLETE | FI_MATCH_COMPLETE)
#define CPR_RX_OP_FLAGS (FI_COMPLETION | FI_MULTI_RECV)

#define CPR_MSG_MAX        (SIZE_MAX >> 1)
#define CPR_IOV_LIMIT      4u /* == CORE_RX_IOV_MAX */
#define CPR_CTX_SIZE       1024u
#define CPR_CTX_SIZE_MAX   65536u
#define CPR_CQ_DATA_SIZE   8u
#define CPR_MR_KEY_SIZE    8u
#define CPR_MULTI_RECV_MIN 64u /* default of FI_OPT_MIN_MULTI_RECV */
/* 64 one-bit fields: any mask may be used with a tag (fi_endpoint(3), mem_tag_format). */
#define CPR_TAG_FORMAT 0xAAAAAAAAAAAAAAAAull

/**
 * Fills an info from fi_allocinfo; ep_attr's type and protocol select the endpoint (0: RDM, rc).
 * Returns 0, or -FI_ENOMEM; the caller frees the info.
 */
int cpr_offer_fill(struct fi_info *info);

/** Narrows a filled info to accepted hints (NULL: everything that is offered). */
void cpr_offer_narrow(struct fi_info *info, const struct fi_info *hints, uint32_t version);

/**
 * Returns all capabilities of endpoints of a type. A connected endpoint has one peer: directed
 * receive, source addresses and collectives do not apply.
 */
static inline uint64_t cpr_offer_all(enum fi_ep_type type)
{
	if (type == FI_EP_DGRAM)
		return CPR_DGRAM_CAPS;
	return type == FI_EP_MSG ? CPR_CAPS & ~(FI_DIRECTED_RECV | FI_SOURCE | FI_COLLECTIVE)
				 : CPR_CAPS;
}

/** Returns the capabilities of an endpoint for the capabilities in `hints` (0: all). */
uint64_t cpr_offer_caps(uint64_t hints);

#endif
