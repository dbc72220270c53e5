/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Opening with and without faults, sending, and waiting for deferred datagrams. Over UDP. */
#include <criterion/criterion.h>
#include <poll.h>
#include <rdma/fi_errno.h>
#include <string.h>

#include "dev/fault/flt_dgram.h"
#include "unit/dev/udp/udp_pair.h"
#include "util/param.h"

static union udp_addr local = { .in = { .sin_family = AF_INET } };
static struct dev_dgram *dg;
static struct dev_dgram_ah *self;

static int open_one(const char *fault)
{
	struct dev_dgram_attr attr = { .local = &local.sa, .rx_cnt = 16, .tx_cnt = 16 };

	local.in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	util_params.fault = fault;
	return flt_open(&udp_dgram_ops, NULL, &attr, &dg);
}

static void resolve_self(void)
{
	struct dev_desc desc;

	cr_assert_eq(dg->ops->describe(dg, &desc), 0);
	cr_assert_eq(dg->ops->resolve(dg, &desc, &self), 0);
}

static void send_to_self(void)
{
	struct dev_dgram_out out = { .to = self, .base = { "x" }, .len = { 1 } };

	cr_assert_eq(dg->ops->send(dg, &out, 1), 1);
}

static void close_one(void)
{
	dg->ops->forget(dg, self);
	dg->ops->close(dg);
}

static int readable(int ms)
{
	struct pollfd pfd = { .fd = dg->ops->wait_fd(dg), .events = POLLIN };

	return poll(&pfd, 1, ms);
}

Test(flt_dgram, without_the_setting_the_device_is_not_wrapped)
{
	cr_assert_eq(open_one(NULL), 0);
	cr_expect_eq(dg->ops, &udp_dgram_ops);
	cr_expect_null(flt_counters(dg));
	dg->ops->close(dg);
}

Test(flt_dgram, a_malformed_setting_opens_nothing)
{
	cr_expect_eq(open_one("drop=2"), -FI_EINVAL);
	cr_expect_eq(flt_check(), -FI_EINVAL, "flt_check reports it before");
	util_params.fault = "drop=0.2";
	cr_expect_eq(flt_check(), 0);
	util_params.fault = NULL;
	cr_expect_eq(flt_check(), 0);
}

Test(flt_dgram, sends_go_through_and_attributes_are_the_devices)
{
	struct dev_dgram *below;

	cr_assert_eq(open_one("drop=0.5,seed=1"), 0);
	below = ((struct flt_dgram *)dg)->below;
	cr_expect_eq(dg->mtu, below->mtu);
	cr_expect_eq(dg->inline_max, below->inline_max);
	cr_expect_eq(dg->rx_cnt, 16);
	resolve_self();
	cr_expect_eq(self->mtu, dg->mtu);
	send_to_self();
	cr_expect_eq(dg->tx_posted, 1);
	cr_expect_eq(dg->tx_done, 1);
	close_one();
}

/* The datagram arrives and is delayed. The sleeper wakes when the delay is over. */
Test(flt_dgram, a_delayed_datagram_wakes_the_sleeper)
{
	struct dev_dgram_in in;
	int n = 0;

	cr_assert_eq(open_one("delay=300ms"), 0);
	resolve_self();
	cr_expect_eq(dg->ops->arm(dg), 0);
	send_to_self();
	cr_assert_eq(readable(30000), 1);
	cr_expect_eq(dg->ops->poll(dg, &in, 1), 0, "it waits");
	while (!n) {
		if (!dg->ops->arm(dg))
			cr_assert_eq(readable(30000), 1);
		n = dg->ops->poll(dg, &in, 1);
	}
	dg->ops->release(dg, in.slot);
	dg->ops->disarm(dg);
	cr_expect_eq(readable(0), 0, "the timer is off");
	cr_expect_eq(flt_counters(dg)->delayed, 1);
	close_one();
}

Test(flt_dgram, two_endpoints_of_one_process_have_different_random_sequences)
{
	struct dev_dgram *first;

	cr_assert_eq(open_one("drop=0.5,seed=1"), 0);
	first = dg;
	cr_assert_eq(open_one("drop=0.5,seed=1"), 0);
	cr_expect_neq(((struct flt_dgram *)first)->rng, ((struct flt_dgram *)dg)->rng);
	first->ops->close(first);
	dg->ops->close(dg);
}

Test(flt_dgram, tx_full_of_the_device_below_is_passed_on)
{
	struct dev_dgram *below;

	cr_assert_eq(open_one("drop=0.5,seed=1"), 0);
	resolve_self();
	below = ((struct flt_dgram *)dg)->below;
	below->tx_full = true; /* the next send finds room */
	dg->tx_full = true;
	cr_expect_eq(dg->ops->arm(dg), -FI_EAGAIN);
	cr_expect_not(dg->tx_full);
	dg->tx_full = true;
	send_to_self();
	cr_expect_not(dg->tx_full);
	close_one();
}
