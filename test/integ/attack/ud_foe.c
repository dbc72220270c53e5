/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* An attacker's socket: see ud_foe.h. */
#include "ud_foe.h"

#include <sched.h>
#include <unistd.h>

#include "cm/base/cm_mac.h"
#include "dev/udp/udp_addr.h"
#include "integ/fab.h"

static struct cm_mac_key key;

void foe_set_key(const char *job_key)
{
	FAB_CHECK(cm_mac_init());
	cm_mac_key_set(&key, job_key);
}

void foe_open(struct foe *foe, const char *ip, uint64_t nonce)
{
	socklen_t len = sizeof(foe->addr);

	foe->fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	FAB_TRUE(foe->fd >= 0);
	foe->addr = fab_addr(ip, 0);
	FAB_TRUE(!bind(foe->fd, (struct sockaddr *)&foe->addr, len));
	FAB_TRUE(!getsockname(foe->fd, (struct sockaddr *)&foe->addr, &len));
	foe_restart(foe, nonce);
}

void foe_restart(struct foe *foe, uint64_t nonce)
{
	foe->nonce = nonce;
	foe->inc = nonce ^ (uint64_t)1 << 63;
	foe->ack.src_inc = 0;
	foe->params.token = 0;
}

void foe_vanish(struct foe *foe)
{
	close(foe->fd);
}

void foe_send(const struct foe *foe, const struct sockaddr_in *to, const void *buf, size_t len)
{
	/* Full queues and ICMP errors count as a loss. */
	if (sendto(foe->fd, buf, len, 0, (const struct sockaddr *)to, sizeof(*to)) < 0)
		sched_yield();
}

/** Seals a packet and sends it. */
static void foe_send_pkt(const struct foe *foe, const struct sockaddr_in *to,
			 const struct wire_cm_pkt *pkt)
{
	uint8_t buf[WIRE_CM_MAX];
	size_t len = wire_cm_encode(pkt, buf);
	union cm_addr here, there;

	FAB_CHECK(cm_addr_import((const struct sockaddr *)&foe->addr, &here));
	FAB_CHECK(cm_addr_import((const struct sockaddr *)to, &there));
	cm_mac_seal(&key, &here, &there, buf, len);
	foe_send(foe, to, buf, len);
}

static void foe_say(const struct foe *foe, const struct sockaddr_in *to, struct wire_cm_pkt *pkt)
{
	pkt->nonce = foe->nonce;
	pkt->src_inc = foe->inc;
	if (pkt->type != WIRE_CM_REQ)
		pkt->dst_inc = foe->ack.src_inc;
	foe_send_pkt(foe, to, pkt);
}

void foe_ask(const struct foe *foe, const struct sockaddr_in *to)
{
	struct wire_cm_pkt req = { .type = WIRE_CM_REQ };

	req.req.paths = WIRE_CM_PATH_UDP;
	foe_say(foe, to, &req);
}

void foe_hello(const struct foe *foe, const struct sockaddr_in *to, const uint8_t *cookie)
{
	struct wire_erpc_params params = { .version = WIRE_ERPC_VERSION,
					   .session = 1,
					   .credits = 32,
					   .token = foe->nonce,
					   .mtu = 1472 };
	struct wire_cm_pkt hello = { .type = WIRE_CM_HELLO };
	union udp_addr at = { .in = foe->addr };
	struct dev_desc desc;

	udp_desc_encode(&at, 1472, &desc);
	memcpy(hello.hello.cookie, cookie, WIRE_CM_COOKIE_LEN);
	hello.hello.addr.family = 4;
	hello.hello.addr.port = ntohs(foe->addr.sin_port);
	memcpy(hello.hello.addr.ip, &foe->addr.sin_addr, 4);
	hello.hello.params.path = WIRE_CM_PATH_UDP;
	hello.hello.params.engine_len = sizeof(params);
	memcpy(hello.hello.params.engine, &params, sizeof(params));
	hello.hello.params.dev_len = desc.len;
	memcpy(hello.hello.params.dev, desc.bytes, desc.len);
	foe_say(foe, to, &hello);
}

/** Records the other end's parameters of its session. */
static void foe_note(struct foe *foe, const struct wire_cm_params *theirs)
{
	struct dev_desc desc = { .len = theirs->dev_len };
	union udp_addr at;
	uint32_t mtu;

	FAB_TRUE(theirs->engine_len == sizeof(foe->params));
	memcpy(&foe->params, theirs->engine, sizeof(foe->params));
	memcpy(desc.bytes, theirs->dev, theirs->dev_len);
	FAB_CHECK(udp_desc_decode(&desc, &at, &mtu));
	foe->port = at.in;
}

void foe_invite(const struct foe *foe, const struct sockaddr_in *to)
{
	struct wire_cm_pkt ack = { .type = WIRE_CM_ACK,
				   .nonce = foe->req.nonce,
				   .src_inc = 1,
				   .dst_inc = foe->req.src_inc };

	memset(ack.ack.name, 'a', WIRE_CM_NAME_LEN);
	ack.ack.paths = WIRE_CM_PATH_UDP;
	foe_send_pkt(foe, to, &ack);
}

/** Resets the session of another process at this address. */
static void foe_disown(const struct foe *foe, const struct sockaddr_in *to,
		       const struct wire_cm_pkt *ping)
{
	struct wire_cm_pkt bye = { .type = WIRE_CM_BYE,
				   .nonce = ping->nonce,
				   .src_inc = foe->inc,
				   .dst_inc = ping->src_inc };

	foe_send_pkt(foe, to, &bye);
}

static void foe_take(struct foe *foe, const struct sockaddr_in *to, const struct wire_cm_pkt *pkt)
{
	struct wire_cm_pkt ready = { .type = WIRE_CM_READY };

	if (pkt->type == WIRE_CM_REQ) {
		foe->req = *pkt;
	} else if (pkt->type == WIRE_CM_PING && pkt->nonce != foe->nonce) {
		foe_disown(foe, to, pkt);
	} else if (pkt->nonce != foe->nonce) {
		return;
	} else if (pkt->type == WIRE_CM_ACK) {
		foe->ack = *pkt;
	} else if (pkt->type == WIRE_CM_WELCOME && !foe->is_mute) {
		foe_note(foe, &pkt->welcome.params);
		foe_say(foe, to, &ready);
	}
}

void foe_listen(struct foe *foe, const struct sockaddr_in *to)
{
	struct wire_cm_pkt pkt;
	uint8_t buf[2048];
	ssize_t len;

	while ((len = recv(foe->fd, buf, sizeof(buf), 0)) >= 0)
		if (!wire_cm_decode(buf, (size_t)len, &pkt))
			foe_take(foe, to, &pkt);
}
