/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Sealing and opening packets: see cm_pkt.h. */
#include "cm/ask/cm_pkt.h"

#include <assert.h>
#include <string.h>
#include <unistd.h>

#include <rdma/fi_errno.h>

#include "cm/ask/cm_udp.h"
#include "util/log.h"

static_assert(CM_ENGINE_MAX == WIRE_CM_ENGINE_MAX, "a half fits a packet");
static_assert(DEV_DESC_MAX == WIRE_CM_DEV_MAX, "a half fits a packet");
static_assert(DEV_DESC_FDS == WIRE_CM_FDS_MAX, "a half fits a packet");

size_t cm_pkt_seal(struct cm_agent *agent, const union cm_addr *to, struct wire_cm_pkt *pkt,
		   uint8_t *buf)
{
	size_t len;

	pkt->src_inc = agent->inc;
	len = wire_cm_encode(pkt, buf);
	cm_mac_seal(&agent->node->key, &agent->addr, to, buf, len);
	return len;
}

static void cm_pkt_warn_key(struct cm_agent *agent, const union cm_addr *from)
{
	char text[CM_ADDR_TEXT_MAX];

	agent->stats.rx_bad_mac++;
	if (agent->key_told)
		return;
	agent->key_told = true;
	UTIL_WARN(EP_CTRL,
		  "%s %s: FI_COPYRPC_JOB_KEY must be the same in every process of a job "
		  "(this is said once)\n",
		  cm_addr_print(from, text),
		  agent->node->key.is_set ? "does not know this process's job key"
					  : "uses a job key and this process has none");
}

int cm_pkt_open(struct cm_agent *agent, const union cm_addr *from, const uint8_t *buf, size_t len,
		struct wire_cm_pkt *pkt)
{
	int ret = wire_cm_decode(buf, len, pkt);
	union cm_addr said;

	agent->stats.rx_pkts++;
	if (!from && !ret && pkt->type == WIRE_CM_HELLO) {
		cm_addr_from_wire(&pkt->hello.addr, &said);
		from = &said;
	}
	if (!from || (ret && ret != -FI_ENOPROTOOPT)) {
		agent->stats.rx_malformed++;
		return -FI_EINVAL;
	}
	if (!cm_mac_check(&agent->node->key, from, &agent->addr, buf, len)) {
		cm_pkt_warn_key(agent, from);
		return -FI_EKEYREJECTED;
	}
	return ret;
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

int cm_pkt_send(struct cm_agent *agent, int fd, const union cm_addr *to, struct wire_cm_pkt *pkt,
		const struct cm_half *half)
{
	uint8_t buf[WIRE_CM_MAX];
	size_t len = cm_pkt_seal(agent, to, pkt, buf);

	if (fd < 0)
		return cm_udp_send_bytes(agent, buf, len, to);
	return cm_fd_send(fd, buf, len, half ? half->dev.fds : NULL, half ? half->dev.fd_cnt : 0);
}

int cm_half_to_wire(const struct cm_half *half, struct wire_cm_half *wire)
{
	if (half->engine_len > WIRE_CM_ENGINE_MAX || half->dev.len > WIRE_CM_DEV_MAX ||
	    half->dev.fd_cnt > WIRE_CM_FDS_MAX)
		return -FI_EINVAL;
	wire->path = half->path;
	wire->engine_len = half->engine_len;
	wire->dev_len = half->dev.len;
	wire->fd_cnt = half->dev.fd_cnt;
	memcpy(wire->engine, half->engine, half->engine_len);
	memcpy(wire->dev, half->dev.bytes, half->dev.len);
	return 0;
}

void cm_half_from_wire(const struct wire_cm_half *wire, const struct cm_fd_msg *msg,
		       struct cm_half *half)
{
	memset(half, 0, sizeof(*half));
	half->path = wire->path;
	half->engine_len = wire->engine_len;
	half->dev.len = wire->dev_len;
	half->dev.fd_cnt = wire->fd_cnt;
	memcpy(half->engine, wire->engine, wire->engine_len);
	memcpy(half->dev.bytes, wire->dev, wire->dev_len);
	memcpy(half->dev.fds, msg->fds, wire->fd_cnt * sizeof(int));
}

void cm_half_drop(struct cm_half *half)
{
	uint32_t cnt = half->dev.fd_cnt < DEV_DESC_FDS ? half->dev.fd_cnt : DEV_DESC_FDS;

	while (cnt)
		close(half->dev.fds[--cnt]);
	half->dev.fd_cnt = 0;
}

int cm_half_check_fds(const struct wire_cm_half *wire, const struct cm_fd_msg *msg)
{
	/* Fewer than were sent: there was no number free for them here. */
	if (msg->is_cut && msg->fd_cnt < wire->fd_cnt)
		return -FI_EMFILE;
	return msg->is_cut || msg->fd_cnt != wire->fd_cnt ? -FI_EINVAL : 0;
}
