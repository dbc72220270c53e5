/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Links end when the device reports an event, although none of their operations fails.
 *
 * usage: dev_async {mlx5, verbs} {flap, down, fatal} [dc]
 *
 * Two processes, links and a datagram endpoint between them, all idle, so that no completion
 * reports the fault. Side 0 polls, side 1 sleeps without limit. Meanwhile the port goes down for a
 * moment (flap: no link may end, and messages pass again), for long (down: all links end with
 * -FI_ENETDOWN, the endpoint stays), or the device fails (fatal: all end, the endpoint too). dc:
 * the links go over DC.
 *
 * Source of the event: the model's faults, from 1000 ms on; or DEV_ASYNC_FLAP, DEV_ASYNC_DOWN and
 * DEV_ASYNC_BACK, commands that side 0 runs. Status 3 of DEV_ASYNC_FLAP: on a busy machine the port
 * was down for longer than a moment, which is repeated then, with new links.
 */
#include <poll.h>
#include <rdma/fi_errno.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "dev/ib/ib_async.h"
#include "dev/mlx5/m5.h"
#include "dev/mlx5/m5_ud.h"
#include "dev/verbs/vb.h"
#include "dev/verbs/vb_ud.h"
#include "dev_pair.h"
#include "util/clock.h"
#include "util/param.h"

#define LINKS    3u
#define FLAP_NS  (4500 * UTIL_NS_PER_MS)
#define FLAPS    30u
#define LIMIT_NS (60 * UTIL_NS_PER_S)

static const struct dev_ops *ops;
static const struct dev_dgram_ops *dops;
static struct dev *dev;
static struct dev_link *links[LINKS];
static struct dev_dgram *dg;
static bool is_flap, is_fatal, is_dc;

static void make_all(void)
{
	struct dev_dgram_attr attr = { .rx_cnt = 8, .tx_cnt = 8 };
	struct dev_desc own, peer;

	CHECK(!ops->open(&dev));
	CHECK(!dops->open(dev, &attr, &dg));
	for (unsigned i = 0; i < LINKS; i++) {
		memset(&own, 0, sizeof(own));
		CHECK(!ops->link_create(dev, 4096, &links[i]));
		CHECK(!links[i]->ops->describe(links[i], &own));
		pair_tell(&own, sizeof(own));
		pair_hear(&peer, sizeof(peer));
		CHECK(!links[i]->ops->connect(links[i], &peer));
		CHECK(!(links[i]->caps & DEV_CAP_DC) == !is_dc);
		CHECK(!links[i]->ops->attach(links[i]));
	}
	pair_meet();
}

/* Waits for one event: side 0 polls, with naps, side 1 sleeps. Returns false when time is up. */
static bool wait_event(struct dev_event *ev, uint64_t end)
{
	struct pollfd pfd = { .fd = ops->wait_fd(dev), .events = POLLIN };
	uint32_t idle = 0;

	while (util_clock_ns() < end) {
		if (ops->poll(dev, ev))
			return true;
		if (!side) {
			/* By then a poll has read the device's events. */
			if (++idle % IB_ASYNC_TICKS == 0)
				usleep(20000);
			continue;
		}
		if (ops->arm(dev))
			continue;
		/* Sleeps for all of the time: nothing else wakes this process. */
		CHECK(poll(&pfd, 1, (int)((end - util_clock_ns()) / UTIL_NS_PER_MS) + 1) >= 0);
		ops->disarm(dev);
	}
	return false;
}

/* Returns the exit status of a command of side 0. */
static int status_of(const char *name)
{
	const char *command = getenv(name);
	int status = command && !side ? system(command) : 0;

	CHECK(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void run_command(const char *name)
{
	CHECK(!status_of(name));
}

static void close_all(void)
{
	for (unsigned i = 0; i < LINKS; i++) {
		links[i]->ops->detach(links[i]);
		links[i]->ops->close(links[i]);
	}
	dops->close(dg);
	ops->close(dev);
}

/* Returns false if the moment was too long to say anything. */
static bool see_a_flap(void)
{
	int status = status_of("DEV_ASYNC_FLAP");
	struct dev_event ev;
	bool has_ended = wait_event(&ev, util_clock_ns() + FLAP_NS);

	if (side)
		pair_hear(&status, sizeof(status));
	else
		pair_tell(&status, sizeof(status));
	if (status == 3)
		return false;
	CHECK(!status && !has_ended);
	pair_meet();
	for (unsigned i = 0; i < LINKS; i++)
		CHECK(!links[i]->ops->write_imm(links[i], 0, 32, i + 1));
	for (unsigned i = 0; i < LINKS; i++) {
		CHECK(wait_event(&ev, util_clock_ns() + LIMIT_NS));
		CHECK(ev.kind == DEV_EV_IMM);
	}
	return true;
}

static void see_flaps(void)
{
	unsigned cnt = 1;

	while (!see_a_flap()) {
		printf("side %d: the port was down for too long to be a moment\n", side);
		fflush(stdout);
		CHECK(cnt++ < FLAPS);
		close_all();
		make_all();
	}
}

static void see_the_end(void)
{
	uint64_t begin = util_clock_ns();
	struct dev_dgram_in in;
	struct dev_event ev;
	int want = is_fatal ? -FI_EIO : -FI_ENETDOWN;

	run_command("DEV_ASYNC_DOWN");
	for (unsigned i = 0; i < LINKS; i++) {
		CHECK(wait_event(&ev, begin + LIMIT_NS));
		CHECK(ev.kind == DEV_EV_DOWN && ev.status == want);
		CHECK(ev.link->ops->write_imm(ev.link, 0, 32, 1) < 0);
	}
	CHECK(dops->poll(dg, &in, 1) == (is_fatal ? -FI_EIO : 0));
	printf("side %d: all links ended after %.2f s\n", side,
	       (double)(util_clock_ns() - begin) / 1e9);
	fflush(stdout);
}

static void run_side(void)
{
	util_params.peer_timeout_ms = 10000;
	util_params.rc_max = is_dc ? 0 : 256;
	util_params.dci_count = LINKS;
	make_all();
	if (is_flap)
		see_flaps();
	else
		see_the_end();
	pair_meet();
	run_command("DEV_ASYNC_BACK");
	close_all();
}

int main(int argc, char **argv)
{
	if (argc < 3 || argc > 4)
		return 2;
	is_dc = argc == 4;
	is_flap = !strcmp(argv[2], "flap");
	is_fatal = !strcmp(argv[2], "fatal");
	ops = !strcmp(argv[1], "mlx5") ? &m5_dev_ops : &vb_dev_ops;
	dops = !strcmp(argv[1], "mlx5") ? &m5_dgram_ops : &vb_dgram_ops;
	return pair_run(argv, run_side, false);
}
