/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Engine of a fuzzer's endpoint: see side.h. */
#include "side.h"

#include <netinet/in.h>
#include <string.h>

#include "core/core_av.h"
#include "core/core_handler.h"
#include "side_chan.h"
#include "support/check.h"
#include "support/fake_direct.h"

#define SIDE_PORT 1000u

struct core_engine_ep {
	struct core_ep *ep;
	bool connects[SIDE_PEERS];
};

static struct core_progress side_progress;
static struct core_engine_ep side_eep;

static struct sockaddr_in side_addr(unsigned peer)
{
	return (struct sockaddr_in){ .sin_family = AF_INET,
				     .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
				     .sin_port = htons((uint16_t)(SIDE_PORT + peer)) };
}

static void side_connect(struct core_engine_ep *eep, unsigned peer)
{
	static uint64_t incarnation;
	struct sockaddr_in addr = side_addr(peer);

	eep->connects[peer] = false;
	core_upcall_table.on_up(eep->ep, side_chan_open(peer), (struct sockaddr *)&addr,
				++incarnation);
}

static int eng_open(const struct core_upcalls *upcalls, struct core_progress **progress)
{
	CHECK(upcalls == &core_upcall_table);
	side_progress.wait_fd = -1;
	*progress = &side_progress;
	return 0;
}

static void eng_close(struct core_progress *progress)
{
	(void)progress;
}

static void eng_progress(struct core_progress *progress)
{
	(void)progress;
	for (unsigned i = 0; i < SIDE_PEERS; i++) {
		if (side_eep.connects[i] && !side_chan_is_open(i))
			side_connect(&side_eep, i);
		if (side_chan_is_open(i))
			side_chan_run(i);
	}
}

static int eng_arm(struct core_progress *progress)
{
	(void)progress;
	return 0;
}

static int eng_ep_open(struct core_progress *progress, struct core_ep *ep,
		       const struct sockaddr *addr, struct core_engine_ep **eep)
{
	(void)progress;
	(void)addr;
	side_eep = (struct core_engine_ep){ .ep = ep };
	*eep = &side_eep;
	return 0;
}

static void eng_ep_addr(struct core_engine_ep *eep, struct sockaddr_storage *addr)
{
	struct sockaddr_in own = side_addr(SIDE_SELF);

	(void)eep;
	memcpy(addr, &own, sizeof(own));
}

static void eng_ep_close(struct core_engine_ep *eep)
{
	(void)eep;
	for (unsigned i = 0; i < SIDE_PEERS; i++)
		CHECK(!side_chan_is_open(i));
}

static int eng_connect(struct core_engine_ep *eep, const struct sockaddr *addr, bool was_up)
{
	unsigned peer = ntohs(((const struct sockaddr_in *)addr)->sin_port) - SIDE_PORT;

	(void)was_up;
	CHECK(peer < SIDE_PEERS);
	eep->connects[peer] = true;
	return 0;
}

static void eng_cancel(struct core_engine_ep *eep, const struct sockaddr *addr)
{
	eep->connects[ntohs(((const struct sockaddr_in *)addr)->sin_port) - SIDE_PORT] = false;
}

static const struct core_progress_ops progress_ops = {
	.name = "fuzz",
	.open = eng_open,
	.close = eng_close,
	.progress = eng_progress,
	.arm = eng_arm,
	.disarm = eng_close,
};

static const struct core_engine_ops engine_ops = {
	.ep_open = eng_ep_open,
	.ep_addr = eng_ep_addr,
	.ep_close = eng_ep_close,
	.connect = eng_connect,
	.connect_cancel = eng_cancel,
};

void side_open(struct core_dom *dom, struct core_ep *ep)
{
	const struct core_limits limits = { .eager_max = 1000,
					    .single_copy_min = 3000,
					    .unexpected_mem = 1 << 16 };
	uint64_t idx;

	CHECK(!core_dom_init(dom, &progress_ops, &engine_ops, &limits, false));
	ep->av = core_av_open(0);
	CHECK(ep->av && !core_ep_open(ep, dom, NULL));
	for (unsigned i = 0; i <= SIDE_SELF; i++) {
		struct sockaddr_in addr = side_addr(i);

		CHECK(!core_av_insert(ep->av, (struct sockaddr *)&addr, &idx) && idx == i);
		core_ep_av_inserted(ep, idx);
		if (i != SIDE_SELF)
			side_connect(&side_eep, i);
	}
}

void side_close(struct core_dom *dom, struct core_ep *ep)
{
	core_ep_close(ep);
	core_av_close(ep->av);
	core_dom_fini(dom);
	CHECK(!side_chan_is_exposed() && !side_tags_left());
	CHECK(!fake_direct_open() && !fake_direct_regs());
}
