/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Sends of endpoints and aliases whose default flags are FI_INJECT without a completion. */
#include <criterion/criterion.h>
#include <string.h>

#include "core/core_peer.h"
#include "ofi/base/cpr_ep.h"
#include "unit/ofi/ofi_fixture.h"
#include "util/param.h"

#define BURST 5
#define ROOM  (1 << 16) /* more messages than a ring has room for */

static struct ofi_pair p;
static struct fid_ep *alias;
static char in[BURST][8];

static void open_apart(struct ofi_options opts)
{
	ofi_pair_open(&p, &opts);
	cr_assert_eq(fi_ep_alias(p.ep[0], &alias, FI_TRANSMIT | FI_INJECT), 0);
}

static void open_pair(struct ofi_options opts)
{
	char c = 0, got;

	open_apart(opts);
	cr_assert_eq(fi_trecv(p.ep[1], &got, 1, NULL, FI_ADDR_UNSPEC, 1, 0, &got), 0);
	cr_assert_eq(OFI_RETRY(&p, fi_tsend(alias, &c, 1, NULL, p.addr[1], 1, NULL)), 0);
	ofi_pair_expect(&p, 1, FI_RECV | FI_TAGGED, &got);
}

static void setup(void)
{
	open_pair((struct ofi_options){ .bind_flags = FI_SELECTIVE_COMPLETION,
					.rx_op_flags = FI_COMPLETION });
}

static void teardown(void)
{
	cr_expect_eq(fi_close(&alias->fid), 0);
	ofi_pair_close(&p);
}

TestSuite(cpr_silent, .init = setup, .fini = teardown);

/* Returns the bytes that have left for the other endpoint. */
static uint64_t left(void)
{
	struct core_ep *ep = UTIL_CONTAINER_OF(p.ep[0], struct cpr_ep, fid)->core;

	return core_peer_lookup(ep, p.addr[1])->chan->stats->tx_bytes;
}

static void post_receives(void)
{
	memset(in, 0, sizeof(in));
	for (int i = 0; i < BURST; i++)
		cr_assert_eq(
			fi_trecv(p.ep[1], in[i], sizeof(in[i]), NULL, FI_ADDR_UNSPEC, 5, 0, in[i]),
			0);
}

/* Sends message i from a buffer that changes as soon as the call returns. */
static void send_tagged(int i)
{
	char text[8] = { (char)('a' + i) };

	cr_assert_eq(fi_tsend(alias, text, sizeof(text), NULL, p.addr[1], 5, text), 0);
	memset(text, 0, sizeof(text));
}

static void expect_in_order(void)
{
	for (int i = 0; i < BURST; i++) {
		ofi_pair_expect(&p, 1, FI_RECV | FI_TAGGED, in[i]);
		cr_expect_eq(in[i][0], 'a' + i);
	}
}

Test(cpr_silent, a_message_behind_others_waits_for_progress)
{
	uint64_t before = left(), first;

	post_receives();
	send_tagged(0);
	first = left();
	cr_expect_gt(first, before);
	for (int i = 1; i < BURST; i++)
		send_tagged(i);
	cr_expect_eq(left(), first);
	expect_in_order();
	cr_expect_gt(left(), first);
}

Test(cpr_silent, fi_tinject_leaves_at_once_with_all_before_it)
{
	uint64_t first;

	post_receives();
	send_tagged(0);
	first = left();
	for (int i = 1; i < BURST - 1; i++)
		send_tagged(i);
	cr_expect_eq(left(), first);
	cr_assert_eq(fi_tinject(alias, &(char){ 'a' + BURST - 1 }, 1, p.addr[1], 5), 0);
	cr_expect_geq(left(), first + (BURST - 1) * 32);
	expect_in_order();
}

Test(cpr_silent, no_completion_is_written)
{
	struct fi_cq_tagged_entry e;
	char got;

	post_receives();
	for (int i = 0; i < BURST; i++)
		send_tagged(i);
	expect_in_order();
	cr_assert_eq(fi_recv(p.ep[1], &got, 1, NULL, FI_ADDR_UNSPEC, &got), 0);
	cr_assert_eq(fi_send(alias, "m", 1, NULL, p.addr[1], NULL), 0);
	ofi_pair_expect(&p, 1, FI_RECV | FI_MSG, &got);
	cr_expect_eq(got, 'm');
	cr_expect_eq(fi_cq_read(p.cq[0], &e, 1), -FI_EAGAIN);
}

Test(cpr_silent, a_message_beyond_inject_size_is_refused)
{
	size_t size = p.info->tx_attr->inject_size;
	static char bytes[1 << 20];

	cr_assert_lt(size, sizeof(bytes));
	cr_expect_eq(fi_tsend(alias, bytes, size + 1, NULL, p.addr[1], 5, NULL), -FI_EMSGSIZE);
	cr_expect_eq(fi_send(alias, bytes, size + 1, NULL, p.addr[1], NULL), -FI_EMSGSIZE);
}

Test(cpr_silent, other_flags_bring_completions_back)
{
	uint64_t flags = FI_TRANSMIT | FI_INJECT | FI_COMPLETION;

	post_receives();
	cr_assert_eq(fi_control(&alias->fid, FI_SETOPSFLAG, &flags), 0);
	for (int i = 0; i < BURST; i++)
		cr_assert_eq(fi_tsend(alias, &(char){ 'a' + i }, 1, NULL, p.addr[1], 5, &in[i]), 0);
	for (int i = 0; i < BURST; i++)
		ofi_pair_expect(&p, 0, FI_SEND | FI_TAGGED, &in[i]);
	expect_in_order();
}

Test(cpr_silent_bound, a_queue_for_all_completions_gets_them, .fini = teardown)
{
	open_pair((struct ofi_options){ 0 });
	ofi_pair_expect(&p, 0, FI_SEND | FI_TAGGED, NULL);
	cr_assert_eq(fi_tsend(alias, "x", 1, NULL, p.addr[1], 5, &p), 0);
	ofi_pair_expect(&p, 0, FI_SEND | FI_TAGGED, &p);
}

Test(cpr_silent_bound, counters_count, .fini = teardown)
{
	uint64_t before;

	open_pair((struct ofi_options){ .bind_flags = FI_SELECTIVE_COMPLETION,
					.rx_op_flags = FI_COMPLETION,
					.counters = true });
	before = fi_cntr_read(p.tx_cntr[0]);
	post_receives();
	for (int i = 0; i < BURST; i++)
		send_tagged(i);
	expect_in_order();
	cr_expect_eq(fi_cntr_read(p.tx_cntr[0]), before + BURST);
}

/* Over UDP a message is pending until the peer has acknowledged it. */
Test(cpr_silent_bound, a_message_that_is_lost_ends_with_its_context, .fini = teardown)
{
	struct core_peer *peer;

	ofi_provider();
	util_params.paths = "udp";
	open_pair((struct ofi_options){ .bind_flags = FI_SELECTIVE_COMPLETION,
					.rx_op_flags = FI_COMPLETION });
	peer = core_peer_lookup(UTIL_CONTAINER_OF(p.ep[0], struct cpr_ep, fid)->core, p.addr[1]);
	core_pending_fail_peer(peer, -FI_ESHUTDOWN); /* drops the first message */
	cr_assert_eq(fi_tsend(alias, "x", 1, NULL, p.addr[1], 5, in[0]), 0);
	cr_assert_eq(fi_send(alias, "y", 1, NULL, p.addr[1], in[1]), 0);
	core_pending_fail_peer(peer, -FI_EIO);
	ofi_pair_expect_error(&p, 0, FI_SEND | FI_TAGGED, FI_EIO, in[0]);
	ofi_pair_expect_error(&p, 0, FI_SEND | FI_MSG, FI_EIO, in[1]);
}

/* Behind a lock the calls are other functions. */
Test(cpr_silent_bound, threads_share_them, .fini = teardown)
{
	open_pair((struct ofi_options){ .bind_flags = FI_SELECTIVE_COMPLETION,
					.rx_op_flags = FI_COMPLETION,
					.threading = FI_THREAD_SAFE });
	post_receives();
	for (int i = 0; i < BURST; i++)
		send_tagged(i);
	expect_in_order();
}

/* The sender may make no progress for it later. */
Test(cpr_silent_bound, an_empty_message_does_not_wait_for_a_connection, .fini = teardown)
{
	char got;

	open_apart((struct ofi_options){ .bind_flags = FI_SELECTIVE_COMPLETION,
					 .rx_op_flags = FI_COMPLETION });
	cr_assert_eq(fi_trecv(p.ep[1], &got, 1, NULL, FI_ADDR_UNSPEC, 5, 0, &got), 0);
	cr_expect_eq(fi_tsend(alias, NULL, 0, NULL, p.addr[1], 5, NULL), -FI_EAGAIN);
	cr_expect_eq(fi_tinject(p.ep[0], NULL, 0, p.addr[1], 5), -FI_EAGAIN);
	cr_expect_eq(OFI_RETRY(&p, fi_tsend(alias, NULL, 0, NULL, p.addr[1], 5, NULL)), 0);
	ofi_pair_expect(&p, 1, FI_RECV | FI_TAGGED, &got);
}

Test(cpr_silent, an_empty_message_does_not_wait_for_room)
{
	ssize_t rc = 0;

	for (int i = 0; i < ROOM && !rc; i++)
		rc = fi_tsend(alias, NULL, 0, NULL, p.addr[1], 5, NULL);
	cr_expect_eq(rc, -FI_EAGAIN);
}
