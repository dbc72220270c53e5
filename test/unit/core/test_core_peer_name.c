/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Which peer a connection from one of several addresses belongs to: core/core_peer_name.c. */
#include <criterion/criterion.h>
#include <netinet/in.h>
#include <rdma/fi_errno.h>
#include <string.h>

#include "core/coll/core_coll_msg.h"
#include "support/core_pair.h"
#include "util/name.h"

static struct node nodes[1];

static void setup(void)
{
	nodes_open(nodes, 1);
}

static void teardown(void)
{
	nodes_close(nodes, 1);
}

TestSuite(core_peer_name, .init = setup, .fini = teardown);

static bool never_busy(struct core_chan *chan)
{
	return false;
}

static void close_nothing(struct core_chan *chan)
{
}

static int drop_reply(struct core_chan *chan, struct core_call_ref ref, const struct iovec *iov,
		      size_t iov_cnt, size_t len, unsigned flags)
{
	return 0;
}

static const struct core_chan_ops idle_ops = {
	.is_busy = never_busy, .reply = drop_reply, .stop = close_nothing, .close = close_nothing
};

/** Returns a name: an address 10.x.0.1 and a further one, or none (0). */
static struct sockaddr_in name_of(uint8_t first, uint8_t other)
{
	struct sockaddr_in name = { .sin_family = AF_INET, .sin_port = htons(4711) };
	struct in_addr further = { htonl(0x0A000001u | (uint32_t)other << 16) };

	name.sin_addr.s_addr = htonl(0x0A000001u | (uint32_t)first << 16);
	util_name_set_others(&name, &further, other ? 1 : 0);
	return name;
}

static uint64_t insert(const struct sockaddr_in *name)
{
	uint64_t idx = CORE_AV_NONE;

	cr_assert_eq(core_av_insert(nodes[0].ep.av, (const struct sockaddr *)name, &idx), 0);
	cr_assert_eq(core_ep_av_inserted(&nodes[0].ep, idx), 0);
	return idx;
}

/** Reports a connection with a peer that states this name. Returns its fi_addr. */
static fi_addr_t up(struct core_chan *chan, struct sockaddr_in name, uint32_t caps)
{
	*chan = (struct core_chan){ .ops = &idle_ops, .eager_max = 100, .caps = caps };
	core_peer_on_up(&nodes[0].ep, chan, (struct sockaddr *)&name, 1);
	cr_assert(chan->peer);
	return chan->peer->fi_addr;
}

Test(core_peer_name, a_known_name_is_the_senders_if_it_has_the_address_that_was_proved)
{
	struct sockaddr_in name = name_of(1, 2);
	uint64_t idx = insert(&name);
	static struct core_chan own, other, foreign;

	cr_expect_eq(up(&foreign, name_of(1, 3), 0), FI_ADDR_NOTAVAIL, "anybody can state it");
	cr_expect_eq(up(&other, name_of(4, 2), 0), FI_ADDR_NOTAVAIL, "it states another name");
	cr_expect_eq(up(&own, name_of(1, 2), 0), idx);
}

Test(core_peer_name, a_job_key_proves_the_name)
{
	struct sockaddr_in name = name_of(1, 0);
	uint64_t idx = insert(&name);
	static struct core_chan chan;

	cr_expect_eq(up(&chan, name_of(1, 3), CORE_CHAN_AUTHENTIC), idx);
}

Test(core_peer_name, a_peer_known_by_the_address_that_it_uses_keeps_that)
{
	struct sockaddr_in name = name_of(3, 0);
	uint64_t idx = insert(&name);
	static struct core_chan chan;

	cr_expect_eq(up(&chan, name_of(1, 3), 0), idx);
}

Test(core_peer_name, an_unnamed_peer_is_named_by_a_name_with_both_of_its_addresses)
{
	struct sockaddr_in same_first = name_of(1, 4), both = name_of(1, 2), kept;
	static struct core_chan chan;
	struct core_peer *peer;
	uint64_t idx;

	cr_assert_eq(up(&chan, both, 0), FI_ADDR_NOTAVAIL);
	peer = chan.peer;
	insert(&same_first);
	cr_expect_eq(peer->fi_addr, FI_ADDR_NOTAVAIL, "it was not reached there");
	cr_assert_eq(core_av_remove(nodes[0].ep.av, core_av_find(nodes[0].ep.av, (void *)&both),
				    &(bool){ false }),
		     0);
	idx = insert(&both);
	cr_expect_eq(peer->fi_addr, idx);
	cr_expect_eq(chan.peer, peer);
	memcpy(&kept, &peer->addr, sizeof(kept));
	cr_expect_eq(memcmp(&kept, &both, sizeof(both)), 0, "the name for the next request");
}

Test(core_peer_name, a_stated_name_does_not_take_the_place_of_the_unnamed_peer_that_has_it)
{
	static struct core_chan owner, thief, again, other_port;
	struct sockaddr_in moved = name_of(1, 0);
	struct core_peer *peer;
	uint64_t idx;

	up(&owner, name_of(1, 0), 0);
	peer = owner.peer;
	up(&thief, name_of(1, 3), 0);
	cr_expect_eq(owner.peer, peer, "its connection was ended");
	cr_expect_neq(thief.peer, peer);
	moved.sin_port = htons(4712);
	up(&other_port, moved, 0);
	cr_expect_neq(other_port.peer, peer);
	up(&again, name_of(1, 0), 0);
	cr_expect_eq(again.peer, peer, "from the address that it has proved");
	insert(&moved);
	moved = name_of(1, 0);
	idx = insert(&moved);
	cr_expect_eq(peer->fi_addr, idx);
}

Test(core_peer_name, an_unnamed_peer_with_a_job_key_is_known_at_all_of_its_addresses)
{
	static struct core_chan first, second;
	struct core_peer *peer;

	up(&first, name_of(1, 0), CORE_CHAN_AUTHENTIC);
	peer = first.peer;
	up(&second, name_of(1, 3), CORE_CHAN_AUTHENTIC);
	cr_expect_eq(second.peer, peer);
}

Test(core_peer_name, an_address_that_no_name_may_have_proves_no_other)
{
	struct sockaddr_in victim = name_of(1, 0), name = name_of(1, 0);
	struct in_addr reserved = { htonl(0xF0000001u) };
	uint64_t idx = insert(&victim);
	static struct core_chan chan;

	util_name_set_others(&name, &reserved, 1);
	cr_expect_neq(up(&chan, name, 0), idx);
}

/** Returns the number of peers that are in no AV. */
static unsigned unnamed_cnt(void)
{
	const struct util_list *head = &nodes[0].ep.unnamed;
	unsigned cnt = 0;

	for (const struct util_list *it = head->next; it != head; it = it->next)
		cnt++;
	return cnt;
}

/** Aborts a group that this endpoint never joins. */
static void abort_group(struct core_peer *peer)
{
	struct wire_coll coll = { .group = 4711, .what = WIRE_COLL_ABORT, .status = FI_EIO };
	struct core_head head = { .op = WIRE_OP_COLL, .body = (uint8_t *)&coll };
	struct core_call_ref ref = { .resp_max = sizeof(struct wire_coll_reply) };

	head.body_len = sizeof(coll);
	cr_assert_eq(core_coll_on_call(peer->chan, ref, &head, 0), CORE_RX_DONE);
}

static void those_who_have_gone_are_forgotten(bool collectives)
{
	struct sockaddr_in name = name_of(1, 0);
	static struct core_chan stays, comes;

	up(&stays, name_of(2, 0), 0);
	for (uint16_t port = 1; port <= 1000; port++) {
		name.sin_port = htons(port);
		up(&comes, name, 0);
		if (collectives)
			abort_group(comes.peer);
		core_peer_on_down(&comes, port % 2 ? -FI_ESHUTDOWN : -FI_ECONNRESET);
	}
	cr_expect_leq(unnamed_cnt(), 2);
	cr_expect(stays.peer->chan == &stays);
}

Test(core_peer_name, those_in_no_av_that_have_gone_are_forgotten)
{
	those_who_have_gone_are_forgotten(false);
}

Test(core_peer_name, those_in_no_av_that_have_gone_are_forgotten_with_their_collectives)
{
	cr_assert_eq(core_coll_init(&nodes[0].ep), 0);
	those_who_have_gone_are_forgotten(true);
}
