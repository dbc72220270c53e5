/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Sealing and opening of packets: see cm_pkt.h. */
#include "cm/conn/cm_pkt.h"

#include <assert.h>
#include <rdma/fi_errno.h>
#include <string.h>
#include <unistd.h>

#include "cm/conn/cm_udp.h"
#include "util/clock.h"
#include "util/log.h"

static_assert(CM_ENGINE_MAX == WIRE_CM_ENGINE_MAX, "connection parameters fit a packet");
static_assert(DEV_DESC_MAX == WIRE_CM_DEV_MAX, "connection parameters fit a packet");
static_assert(DEV_DESC_FDS == WIRE_CM_FDS_MAX, "connection parameters fit a packet");

size_t cm_pkt_seal(struct cm_ep *cep, const struct cm_route *via, struct wire_cm_pkt *pkt,
		   uint8_t *buf)
{
	size_t len;

	pkt->src_inc = cep->inc;
	len = wire_cm_encode(pkt, buf);
	cm_mac_seal(&cep->node->key, cm_ep_sock_addr(cep, via->sock), &via->to, buf, len);
	return len;
}

static void cm_pkt_warn_key(struct cm_ep *cep, const union cm_addr *from)
{
	char text[CM_ADDR_TEXT_MAX];

	cep->stats->rx_bad_mac++;
	if (cep->key_warned)
		return;
	cep->key_warned = true;
	UTIL_WARN(EP_CTRL,
		  "%s %s: set FI_COPYRPC_JOB_KEY to the same value in every process of the job "
		  "(logged once)\n",
		  cm_addr_print(from, text),
		  cep->node->key.is_set ? "does not have this process's job key"
					: "uses a job key and this process has none, or "
					  "its packets are altered on their way");
}

static bool cm_pkt_is_genuine(const struct cm_ep *cep, const struct cm_route *via,
			      const uint8_t *buf, size_t len)
{
	return cm_mac_check(&cep->node->key, &via->to, cm_ep_sock_addr(cep, via->sock), buf, len);
}

/** Decodes a packet. Returns -FI_EINVAL, counted, if it is none. */
static int cm_pkt_decode(struct cm_ep *cep, const uint8_t *buf, size_t len, struct wire_cm_pkt *pkt)
{
	int ret = wire_cm_decode(buf, len, pkt);

	cep->stats->rx_pkts++;
	if (!ret || ret == -FI_ENOPROTOOPT)
		return ret;
	cep->stats->rx_malformed++;
	return -FI_EINVAL;
}

/** Returns `ret`, the result of decoding, or -FI_EKEYREJECTED if the MAC is not valid. */
static int cm_pkt_check(struct cm_ep *cep, const struct cm_route *via, const uint8_t *buf,
			size_t len, int ret)
{
	if (ret == -FI_EINVAL || cm_pkt_is_genuine(cep, via, buf, len))
		return ret;
	cm_pkt_warn_key(cep, &via->to);
	return -FI_EKEYREJECTED;
}

int cm_pkt_open(struct cm_ep *cep, const struct cm_route *via, const uint8_t *buf, size_t len,
		struct wire_cm_pkt *pkt)
{
	return cm_pkt_check(cep, via, buf, len, cm_pkt_decode(cep, buf, len, pkt));
}

static int cm_pkt_drop_stranger(struct cm_ep *cep)
{
	cep->stats->rx_limited++;
	UTIL_WARN_SELDOM(
		EP_CTRL,
		"dropping requests for connections: more than %u a second of a host, or "
		"%u in all; if this is an attack, FI_COPYRPC_JOB_KEY lets the processes of "
		"the job connect nevertheless\n",
		CM_STRANGER_HOST_S, CM_STRANGER_ALL_S);
	return -FI_EAGAIN;
}

int cm_pkt_open_datagram(struct cm_ep *cep, const struct cm_route *via, const uint8_t *buf,
			 size_t len, struct wire_cm_pkt *pkt)
{
	int ret = cm_pkt_decode(cep, buf, len, pkt);

	if (ret == -FI_ENOPROTOOPT) /* only its prefix is known, and no cookie */
		memset(pkt->hello.cookie, 0, sizeof(pkt->hello.cookie));
	if (ret != -FI_EINVAL && cm_stranger_exceeds(cep, &via->to, pkt, util_clock_ns()))
		return cm_pkt_drop_stranger(cep);
	return cm_pkt_check(cep, via, buf, len, ret);
}

int cm_pkt_open_first(struct cm_ep *cep, const uint8_t *buf, size_t len, struct wire_cm_pkt *pkt,
		      struct cm_route *via)
{
	int ret = wire_cm_decode(buf, len, pkt);

	if (ret || pkt->type != WIRE_CM_HELLO) {
		cep->stats->rx_pkts++;
		cep->stats->rx_malformed++;
		return -FI_EINVAL;
	}
	*via = (struct cm_route){ .sock = 0 };
	cm_addr_from_wire(&pkt->hello.addr, &via->to);
	/* The stream does not tell which address the REQ went to: the MAC does. */
	while (via->sock + 1 < cep->sock_cnt && !cm_pkt_is_genuine(cep, via, buf, len))
		via->sock++;
	return cm_pkt_open(cep, via, buf, len, pkt);
}

void cm_pkt_nak(struct wire_cm_pkt *pkt, uint64_t nonce, uint64_t dst_inc, int err,
		const char *text)
{
	size_t i;

	*pkt = (struct wire_cm_pkt){ .type = WIRE_CM_NAK, .nonce = nonce, .dst_inc = dst_inc };
	pkt->nak.err = (uint32_t)-err;
	for (i = 0; i < WIRE_CM_TEXT_MAX && text[i]; i++)
		pkt->nak.text[i] = text[i] >= ' ' && text[i] <= '~' ? text[i] : '?';
	pkt->nak.text[i] = '\0';
}

int cm_pkt_send(struct cm_ep *cep, int fd, const struct cm_route *via, struct wire_cm_pkt *pkt,
		const struct cm_params *params)
{
	uint8_t buf[WIRE_CM_MAX];
	size_t len = cm_pkt_seal(cep, via, pkt, buf);

	if (fd < 0)
		return cm_udp_send_bytes(cep, buf, len, via);
	return cm_fd_send(fd, buf, len, params ? params->dev.fds : NULL,
			  params ? params->dev.fd_cnt : 0);
}

int cm_params_to_wire(const struct cm_params *params, struct wire_cm_params *wire)
{
	if (params->engine_len > WIRE_CM_ENGINE_MAX || params->dev.len > WIRE_CM_DEV_MAX ||
	    params->dev.fd_cnt > WIRE_CM_FDS_MAX)
		return -FI_EINVAL;
	wire->path = params->path;
	wire->engine_len = params->engine_len;
	wire->dev_len = params->dev.len;
	wire->fd_cnt = params->dev.fd_cnt;
	memcpy(wire->engine, params->engine, params->engine_len);
	memcpy(wire->dev, params->dev.bytes, params->dev.len);
	return 0;
}

void cm_params_from_wire(const struct wire_cm_params *wire, const struct cm_fd_msg *msg,
			 struct cm_params *params)
{
	memset(params, 0, sizeof(*params));
	params->path = wire->path;
	params->engine_len = wire->engine_len;
	params->dev.len = wire->dev_len;
	params->dev.fd_cnt = wire->fd_cnt;
	memcpy(params->engine, wire->engine, wire->engine_len);
	memcpy(params->dev.bytes, wire->dev, wire->dev_len);
	memcpy(params->dev.fds, msg->fds, wire->fd_cnt * sizeof(int));
}

void cm_identity_to_wire(const struct util_job_name *self, struct wire_cm_params *wire)
{
	wire->has_identity = true;
	wire->identity.rank = self->rank;
	wire->identity.pid = (uint32_t)self->pid;
	memcpy(wire->identity.host, self->host, sizeof(wire->identity.host));
}

bool cm_identity_from_wire(const struct wire_cm_params *wire, struct util_job_name *identity)
{
	if (!wire->has_identity)
		return false;
	identity->rank = wire->identity.rank;
	identity->pid = (int32_t)wire->identity.pid;
	memcpy(identity->host, wire->identity.host, sizeof(identity->host));
	return true;
}

void cm_params_close_fds(struct cm_params *params)
{
	uint32_t cnt = params->dev.fd_cnt < DEV_DESC_FDS ? params->dev.fd_cnt : DEV_DESC_FDS;

	while (cnt)
		close(params->dev.fds[--cnt]);
	params->dev.fd_cnt = 0;
}

int cm_params_check_fds(const struct wire_cm_params *wire, const struct cm_fd_msg *msg)
{
	/* Fewer descriptors than sent: no free number in this process. */
	if (msg->is_cut && msg->fd_cnt < wire->fd_cnt)
		return -FI_EMFILE;
	return msg->is_cut || msg->fd_cnt != wire->fd_cnt ? -FI_EINVAL : 0;
}
