/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "vb_pair.h"

#include <criterion/criterion.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/clock.h"
#include "util/param.h"

#define LINKS_MAX 64

const struct vb_tune pair_small = {
	.srq_depth = 6, .sq_depth = 4, .signal_interval = 2, .chunk_len = 4096
};

static struct vb_dev *open_devs[2];
static struct dev_link *links[LINKS_MAX];
static unsigned link_cnt;
static char names[2][64];

static void choose(void)
{
	const char *env = getenv("COPYRPC_TEST_DEVICES");
	const char *comma = env ? strchr(env, ',') : NULL;
	struct dev_about about;

	if (comma) {
		snprintf(names[0], sizeof(names[0]), "%.*s", (int)(comma - env), env);
		snprintf(names[1], sizeof(names[1]), "%s", comma + 1);
		return;
	}
	if (vb_dev_probe(&about))
		cr_skip_test("there is no RDMA device");
	snprintf(names[0], sizeof(names[0]), "%s", about.name);
	snprintf(names[1], sizeof(names[1]), "%s", about.name);
}

void pair_open(struct vb_dev *devs[2], const struct vb_tune *tune)
{
	util_params.peer_timeout_ms = 5000; /* longer than a busy machine stalls */
	choose();
	for (int i = 0; i < 2; i++) {
		struct dev *dev;

		util_params.device = names[i];
		cr_assert_eq(vb_dev_open_tuned(tune, &dev), 0);
		open_devs[i] = devs[i] = (struct vb_dev *)dev;
	}
}

void pair_close_last(void)
{
	struct dev_link *link = links[--link_cnt];

	link->ops->detach(link);
	link->ops->close(link);
}

void pair_fini(void)
{
	while (link_cnt)
		pair_close_last();
	for (int i = 0; i < 2; i++) {
		if (open_devs[i])
			vb_dev_close((struct dev *)open_devs[i]);
		open_devs[i] = NULL;
	}
}

void pair_link(struct vb_dev *devs[2], uint64_t ring_len, bool attach,
	       struct transport transports[2])
{
	struct dev_desc descs[2];

	for (int i = 0; i < 2; i++) {
		transports[i] = (struct transport){ .dev = devs[i] };
		cr_assert_eq(vb_link_create((struct dev *)devs[i], ring_len, &transports[i].link),
			     0);
		links[link_cnt++] = transports[i].link;
		cr_assert_eq(transports[i].link->ops->describe(transports[i].link, &descs[i]), 0);
	}
	for (int i = 0; i < 2; i++)
		cr_assert_eq(transports[i].link->ops->connect(transports[i].link, &descs[!i]), 0);
	for (int i = 0; attach && i < 2; i++)
		cr_assert_eq(transports[i].link->ops->attach(transports[i].link), 0);
}

static uint8_t pattern(uint64_t pos)
{
	return (uint8_t)(pos * 131 + (pos >> 8) * 7 + 3);
}

int pair_write(struct transport *transport, uint32_t len)
{
	uint64_t off = transport->tx_pos & (transport->link->tx_len - 1);
	int ret;

	cr_assert_leq(off + len, transport->link->tx_len);
	for (uint32_t i = 0; i < len; i++)
		transport->link->tx_base[off + i] = pattern(transport->tx_pos + i);
	ret = transport->link->ops->write_imm(transport->link, off, len, len / DEV_IMM_UNIT);
	if (!ret)
		transport->tx_pos += len;
	return ret;
}

void pair_take(struct transport *transport, uint32_t imm)
{
	uint32_t len = imm * DEV_IMM_UNIT;
	uint64_t off = transport->rx_pos & (transport->link->rx_len - 1);

	cr_assert_leq(off + len, transport->link->rx_len);
	for (uint32_t i = 0; i < len; i++)
		cr_assert_eq(transport->link->rx_base[off + i], pattern(transport->rx_pos + i),
			     "byte %u of %u at %llu", i, len,
			     (unsigned long long)transport->rx_pos);
	transport->rx_pos += len;
}

bool pair_poll(struct vb_dev *dev, struct dev_event *ev, unsigned ms)
{
	uint64_t end = util_clock_ns() + ms * UTIL_NS_PER_MS;

	do {
		if (vb_poll((struct dev *)dev, ev))
			return true;
		sched_yield();
	} while (util_clock_ns() < end);
	return false;
}

struct dev_event pair_wait(struct vb_dev *dev, enum dev_event_kind kind)
{
	struct dev_event ev;

	cr_assert(pair_poll(dev, &ev, PAIR_PATIENCE_S * 1000), "no event");
	cr_assert_eq(ev.kind, kind, "event %d (status %d) instead of %d", ev.kind, ev.status, kind);
	return ev;
}
