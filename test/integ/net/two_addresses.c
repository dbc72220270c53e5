/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A peer in the address vector under two of its addresses. Two endpoints of this process exchange
 * messages: one has the other's name, and a further address of that name as another peer. Called
 * by test/integ/net/hosts, in a namespace with two networks.
 *
 * usage: two_addresses
 */
#include "integ/fab.h"

#define MSGS     8
#define LIMIT_S  100.0
#define FROM_TAG 99u

static struct fab a, b;

/** Reads a completion, which must be of `context` and no error. Returns false if there is none. */
static bool is_complete(struct fab *fab, const void *context)
{
	struct fi_cq_tagged_entry entry;
	int err;

	if (!fab_poll(fab, &entry, &err))
		return false;
	if (err)
		fab_fail(__FILE__, __LINE__, "completion", fi_strerror(err));
	FAB_TRUE(entry.op_context == context);
	return true;
}

/** Waits for one completion of each end. */
static void await(const void *context_a, const void *context_b)
{
	double end = fab_seconds() + LIMIT_S;
	bool has_a = false, has_b = false;

	while (!has_a || !has_b) {
		FAB_TRUE(fab_seconds() < end);
		has_a |= is_complete(&a, context_a);
		has_b |= is_complete(&b, context_b);
	}
}

/** Returns the first of the further addresses of an endpoint, without the others. */
static struct sockaddr_in second_of(const struct sockaddr_in *name)
{
	struct sockaddr_in second = { .sin_family = AF_INET, .sin_port = name->sin_port };

	memcpy(&second.sin_addr, name->sin_zero, sizeof(second.sin_addr));
	FAB_TRUE(second.sin_addr.s_addr); /* the namespace has two networks */
	return second;
}

static void exchange(const fi_addr_t to[2], fi_addr_t back)
{
	static char in[MSGS + 1], out[MSGS + 1];

	for (unsigned i = 0; i < MSGS; i++)
		FAB_CHECK(fi_trecv(b.ep, &in[i], 1, NULL, back, i, 0, &in[i]));
	for (unsigned i = 0; i < MSGS; i++) {
		out[i] = (char)i;
		FAB_CHECK(fi_tsend(a.ep, &out[i], 1, NULL, to[i % 2], i, &out[i]));
		await(&out[i], &in[i]);
		FAB_TRUE(in[i] == out[i]);
	}
	for (unsigned i = 0; i < 2; i++) {
		FAB_CHECK(fi_trecv(a.ep, &in[MSGS], 1, NULL, to[1 - i], FROM_TAG, 0, &in[MSGS]));
		FAB_CHECK(fi_tsend(b.ep, &out[MSGS], 1, NULL, back, FROM_TAG, &out[MSGS]));
		await(&in[MSGS], &out[MSGS]);
	}
}

int main(void)
{
	struct sockaddr_in any = { .sin_family = AF_INET }, second;
	fi_addr_t to[2];

	fab_open(&a, &any, FI_THREAD_DOMAIN, FI_PROGRESS_MANUAL);
	fab_open(&b, &any, FI_THREAD_DOMAIN, FI_PROGRESS_MANUAL);
	second = second_of(&b.addr);
	to[0] = fab_insert(&a, &b.addr);
	to[1] = fab_insert(&a, &second);
	FAB_TRUE(to[0] != to[1]);
	exchange(to, fab_insert(&b, &a.addr));
	fab_close(&a);
	fab_close(&b);
	puts("two addresses, one peer");
	return 0;
}
