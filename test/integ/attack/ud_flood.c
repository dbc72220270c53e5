/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Packets of floods: see ud_flood.h. */
#include "ud_flood.h"

#include <unistd.h>

#include "integ/fab.h"
#include "support/proc.h"
#include "ud_victim.h"
#include "wire/wire_erpc.h"

#define PORTS_MAX 8u

struct foe foes[FOES];
static struct sockaddr_in ports[PORTS_MAX]; /* all of the two that exchange messages */
static uint32_t port_cnt;
static uint64_t rng = 88172645463325252ull;

uint64_t flood_random(void)
{
	rng ^= rng << 13;
	rng ^= rng >> 7;
	rng ^= rng << 17;
	return rng;
}

void flood_find_ports(pid_t pid)
{
	FILE *file = fopen("/proc/net/udp", "re");
	unsigned long inode;
	unsigned port;
	char line[512];

	FAB_TRUE(file);
	while (fgets(line, sizeof(line), file))
		if (sscanf(line, "%*u: %*x:%x %*x:%*x %*x %*x:%*x %*x:%*x %*x %*u %*u %lu", &port,
			   &inode) == 2 &&
		    port_cnt < PORTS_MAX && proc_owns_socket(pid, inode))
			ports[port_cnt++] = fab_addr("127.0.0.1", (int)port);
	fclose(file);
	FAB_TRUE(port_cnt >= 2);
}

void flood_garbage(struct foe *foe, uint32_t i)
{
	uint8_t buf[1500];
	size_t len = flood_random() % (sizeof(buf) + 1), k;

	for (k = 0; k < len; k++)
		buf[k] = (uint8_t)flood_random();
	foe_send(foe, &ports[i % port_cnt], buf, len);
}

void flood_headers(struct foe *foe, uint32_t i)
{
	uint8_t buf[256] = { 0 };
	struct wire_erpc_hdr h = {
		.req_type = WIRE_ERPC_BATCH,
		.msg_size = 8,
		.session = (uint16_t)(flood_random() % 4),
		.kind = (enum wire_erpc_kind)(i % 4),
		.req_num = flood_random() % WIRE_ERPC_REQ_MAX,
		.tag = (uint16_t)flood_random(),
	};

	wire_erpc_put(buf, &h);
	foe_send(foe, &ports[i % port_cnt], buf, WIRE_ERPC_HDR_LEN + 8);
}

void flood_requests(struct foe *foe, uint32_t i)
{
	foe->nonce++;
	foe_ask(foe, &victims[i % 2].addr);
	foe_listen(foe, &victims[i % 2].addr);
}

void flood_cookies(struct foe *foe, uint32_t i)
{
	uint8_t cookie[WIRE_CM_COOKIE_LEN];
	uint64_t random = flood_random();

	memcpy(cookie, &random, sizeof(random));
	memcpy(cookie + sizeof(random), &random, sizeof(random));
	foe_hello(foe, &victims[0].addr, i % 2 ? cookie : foes[(i + 1) % FOES].ack.ack.cookie);
}

void flood_half_open(struct foe *foe, uint32_t i)
{
	foe->is_mute = true;
	foe_listen(foe, &victims[0].addr);
	if (foe->ack.src_inc && i % 4)
		foe_hello(foe, &victims[0].addr, foe->ack.ack.cookie);
	else
		foe_ask(foe, &victims[0].addr);
}

void flood_session(struct foe *foe, uint32_t i)
{
	uint8_t buf[1472];
	uint32_t slot = (uint32_t)flood_random() % 8, k, len = (uint32_t)flood_random() % 1400;
	uint64_t first = foe->params.token >> 20 & 0xFFFFFFFFF8;
	struct wire_erpc_hdr h = {
		.req_type = slot < 5   ? WIRE_ERPC_BATCH
			    : slot < 7 ? WIRE_ERPC_GET
				       : WIRE_ERPC_REPLIES,
		.msg_size = i % 8 ? len : 60000,
		.session = foe->params.session,
		.kind = (enum wire_erpc_kind)(i % 16 ? WIRE_ERPC_REQ : flood_random() % 4),
		.req_num = first + slot + 8 * (flood_random() % 2),
		.tag = (uint16_t)foe->params.token,
	};

	if (!foe->params.token)
		return;
	for (k = WIRE_ERPC_HDR_LEN; k < sizeof(buf); k++)
		buf[k] = (uint8_t)flood_random();
	if (i % 4)
		memset(buf + WIRE_ERPC_HDR_LEN, 0, 16);
	wire_erpc_put(buf, &h);
	foe_send(foe, &foe->port, buf, h.msg_size == len ? len + WIRE_ERPC_HDR_LEN : sizeof(buf));
}
