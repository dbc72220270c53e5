/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * One connection per pair, with an end at both ends, over a network that loses, duplicates and
 * delays packets (cm/conn/cm_dgram.c).
 */
#include "cm/conn/cm_dgram.h"

#include <criterion/criterion.h>
#include <string.h>
#include <sys/socket.h>

#include <rdma/fi_errno.h>

#include "support/rng.h"
#include "unit/cm/conn/dgram_fixture.h"
#include "util/clock.h"

static struct cm_node *node;
static struct cm_end a, b;

struct network {
	struct rng rng;
	unsigned loss; /* sixteenths */
	struct {
		uint8_t buf[WIRE_CM_MAX];
		size_t len;
		int fd;
		struct sockaddr_in to;
	} late;
};

/* Called under the node's lock. */
static ssize_t bad_send(void *ctx, int fd, const void *buf, size_t len, const struct sockaddr *dst,
			socklen_t dst_len)
{
	struct network *net = ctx;

	if (rng_chance(&net->rng, net->loss, 16))
		return (ssize_t)len;
	if (rng_chance(&net->rng, 2, 16)) {
		net->late.len = len;
		net->late.fd = fd;
		memcpy(net->late.buf, buf, len);
		memcpy(&net->late.to, dst, sizeof(net->late.to));
		return (ssize_t)len;
	}
	if (net->late.len && rng_chance(&net->rng, 4, 16)) {
		sendto(net->late.fd, net->late.buf, net->late.len, MSG_DONTWAIT,
		       (struct sockaddr *)&net->late.to, sizeof(net->late.to));
		net->late.len = 0;
	}
	if (rng_chance(&net->rng, 2, 16))
		sendto(fd, buf, len, MSG_DONTWAIT, dst, dst_len);
	return sendto(fd, buf, len, MSG_DONTWAIT, dst, dst_len);
}

static struct cm_node *bad_node(struct network *net, unsigned loss, uint64_t seed)
{
	struct cm_cfg cfg = { .udp_send = bad_send,
			      .udp_send_ctx = net,
			      .is_local = cm_test_is_nowhere };
	struct cm_node *out;

	*net = (struct network){ .rng.state = seed, .loss = loss };
	CM_CHECK(!cm_node_open_cfg(&cfg, &out));
	return out;
}

Test(cm_dgram_net, crossing_requests_over_a_lossy_network_make_one_connection, .timeout = 200)
{
	static struct network net[2];
	uint64_t seed = rng_env("COPYRPC_TEST_SEED", 1);
	struct cm_node *nodes[2];

	cm_test_paths = DGRAM_NIC_ONLY;
	for (unsigned round = 0; round < 12; round++) {
		nodes[0] = bad_node(&net[0], round % 6, seed + round);
		nodes[1] = bad_node(&net[1], round % 6, seed + 100 + round);
		cm_end_open(&a, nodes[0], "127.0.0.1", 0);
		cm_end_open(&b, nodes[1], "127.0.0.1", 0);
		cr_assert(!cm_end_connect(&a, &b));
		cr_assert(!cm_end_connect(&b, &a));
		cr_assert(cm_end_wait(&a, &a.requested, 1, CM_TEST_WAIT_MS), "round %u", round);
		cr_assert(cm_end_wait(&b, &b.requested, 1, CM_TEST_WAIT_MS), "round %u", round);
		cr_expect_eq(a.failed + b.failed, 0);
		cr_expect_eq(cm_end_live(&a), 1, "round %u", round);
		cr_expect_eq(cm_end_live(&b), 1, "round %u", round);
		cr_expect_eq(a.requested, 1);
		cr_expect_eq(b.requested, 1);
		cm_end_close(&a);
		cm_end_close(&b);
		cm_node_close(nodes[0]);
		cm_node_close(nodes[1]);
	}
}

static bool deaf;

static ssize_t deaf_send(void *ctx, int fd, const void *buf, size_t len, const struct sockaddr *dst,
			 socklen_t dst_len)
{
	if (__atomic_load_n(&deaf, __ATOMIC_RELAXED))
		return (ssize_t)len;
	return sendto(fd, buf, len, MSG_DONTWAIT, dst, dst_len);
}

Test(cm_dgram_net, a_lost_bye_is_repaired_by_the_next_ping)
{
	struct cm_cfg cfg = { .udp_send = deaf_send, .is_local = cm_test_is_nowhere };
	struct cm_node *mute;

	cm_test_paths = DGRAM_NIC_ONLY;
	CM_CHECK(!cm_node_open_cfg(&cfg, &mute));
	cm_test_apart = true;
	node = cm_test_node(NULL, 0);
	cm_end_open(&a, mute, "127.0.0.1", 0);
	cm_end_open(&b, node, "127.0.0.1", 0);
	cm_ends_connect(&a, &b, 1);
	deaf = true;
	cr_assert(cm_end_put_live(&a));
	deaf = false;
	cr_assert(cm_end_wait(&b, &b.down, 1, CM_TEST_WAIT_MS), "BYE was not repeated");
	cr_expect_eq(b.down_err, -FI_ESHUTDOWN);
	cm_end_close(&a);
	cm_end_close(&b);
	cm_node_close(mute);
	cm_node_close(node);
}

/* Measures the time to connect again after a BYE that was lost. */
static uint64_t comes_back_ms(struct cm_node *mute)
{
	uint64_t start;

	cm_end_open(&a, mute, "127.0.0.1", 0);
	cm_end_open(&b, node, "127.0.0.1", 0);
	cm_ends_connect(&a, &b, 1);
	deaf = true;
	cr_assert(cm_end_put_live(&a));
	deaf = false;
	start = util_clock_ns();
	cr_assert(!cm_end_connect(&a, &b));
	cr_assert(cm_end_wait(&b, &b.up, 2, CM_TEST_WAIT_MS));
	cr_expect_eq(b.down, 1);
	cm_end_close(&a);
	cm_end_close(&b);
	return (util_clock_ns() - start) / UTIL_NS_PER_MS;
}

/* The new HELLO triggers a PING to the old connection, long before the regular one. */
Test(cm_dgram_net, a_peer_that_reconnects_after_a_lost_bye_is_accepted)
{
	struct cm_cfg cfg = { .udp_send = deaf_send, .is_local = cm_test_is_nowhere };
	struct cm_node *mute;
	uint64_t took = UINT64_MAX;

	cm_test_paths = DGRAM_NIC_ONLY;
	CM_CHECK(!cm_node_open_cfg(&cfg, &mute));
	cm_test_apart = true;
	node = cm_test_node(NULL, 0);
	for (int i = 0; i < 10 && took >= CM_DGRAM_PING_MS / 2; i++)
		took = comes_back_ms(mute);
	cr_expect_lt(took, CM_DGRAM_PING_MS / 2);
	cm_node_close(mute);
	cm_node_close(node);
}
