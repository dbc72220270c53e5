/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A callee takes valid requests, keeps its own copy of them, and replies to each once. */
#include "local/crl_callee.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

static const struct crl_shape shape = { .depth = 2, .request_max = 8, .response_max = 8 };

/* Requests of one line, and of more. */
static const struct crl_shape mixed = { .depth = 8, .request_max = 256, .response_max = 8 };

static void *new_memory(void)
{
	void *mem = aligned_alloc(UTIL_CACHE_LINE, crl_shape_bytes(&shape));

	memset(mem, 0, crl_shape_bytes(&shape));
	return mem;
}

Test(crl_callee, a_request_does_not_change_after_it_was_taken)
{
	unsigned char *mem = new_memory();
	struct crl_callee callee;
	struct crl_request request;

	cr_assert_eq(crl_callee_init(&callee, &shape, mem, 9, 1), 0);
	crl_ring_put(&callee.requests, 0, 1, "12345678", 8);
	cr_assert_eq(crl_callee_take(&callee, &request, 1), 1);
	memset(mem, 0xff, crl_shape_bytes(&shape));
	cr_assert_eq(memcmp(request.data, "12345678", 8), 0);
	cr_assert_eq(request.len, 8);
	cr_assert_eq(request.client, 9);
	crl_callee_fini(&callee);
	free(mem);
}

Test(crl_callee, a_request_is_replied_to_once)
{
	void *mem = new_memory();
	struct crl_callee callee;
	struct crl_request request;
	uint64_t handle;

	cr_assert_eq(crl_callee_init(&callee, &shape, mem, 0, 1), 0);
	crl_ring_put(&callee.requests, 0, 1, "", 0);
	cr_assert_eq(crl_callee_take(&callee, &request, 1), 1);
	handle = request.handle;
	cr_assert_eq(crl_handle_owner(handle), 0);
	cr_assert_eq(crl_callee_reply(&callee, handle, "123456789", 9), -EMSGSIZE);
	cr_assert_eq(crl_callee_reply(&callee, handle ^ 1, "", 0), -EINVAL, "slot");
	cr_assert_eq(crl_callee_reply(&callee, handle ^ 1ull << 15, "", 0), -EINVAL, "no slot");
	cr_assert_eq(crl_callee_reply(&callee, handle ^ 2ull << 32, "", 0), -EINVAL, "generation");
	cr_assert_eq(crl_callee_reply(&callee, handle, "", 0), 0);
	cr_assert_eq(crl_callee_reply(&callee, handle, "", 0), -EINVAL, "twice");
	crl_ring_put(&callee.requests, 1, 1, "", 0);
	cr_assert_eq(crl_callee_take(&callee, &request, 1), 1);
	cr_assert_eq(crl_callee_reply(&callee, handle, "", 0), -EINVAL,
		     "the slot's former request");
	cr_assert_eq(crl_callee_reply(&callee, request.handle, "", 0), 0);
	cr_assert_eq(crl_callee_open(&callee), 0);
	crl_callee_fini(&callee);
	free(mem);
}

Test(crl_callee, a_length_beyond_the_maximum_is_an_error_of_the_caller)
{
	void *mem = new_memory();
	struct crl_callee callee;
	struct crl_request requests[2];

	cr_assert_eq(crl_callee_init(&callee, &shape, mem, 0, 1), 0);
	crl_ring_put(&callee.requests, 0, 1, "", 0);
	crl_ring_put(&callee.requests, 1, 1, "", 0);
	atomic_store(&crl_ring_at(&callee.requests, 1)->word, 2ull << 32 | 9);
	cr_assert_eq(crl_callee_take(&callee, requests, 2), 1, "those before it are taken");
	cr_assert_eq(crl_callee_take(&callee, requests, 2), -EPROTO);
	cr_assert_eq(crl_callee_take(&callee, requests, 2), -EPROTO);
	crl_callee_fini(&callee);
	free(mem);
}

Test(crl_callee, a_caller_with_more_requests_than_its_depth_waits)
{
	void *mem = new_memory();
	struct crl_callee callee;
	struct crl_request requests[3];

	cr_assert_eq(crl_callee_init(&callee, &shape, mem, 0, 1), 0);
	for (uint32_t i = 0; i < 2; i++)
		crl_ring_put(&callee.requests, i, 1, "", 0);
	cr_assert_eq(crl_callee_take(&callee, requests, 3), 2);
	crl_ring_put(&callee.requests, 2, 1, "", 0);
	cr_assert_eq(crl_callee_take(&callee, requests + 2, 1), 0);
	cr_assert_not(crl_callee_ready(&callee));
	cr_assert_eq(crl_callee_reply(&callee, requests[0].handle, "", 0), 0);
	cr_assert_eq(crl_callee_take(&callee, requests + 2, 1), 1);
	crl_callee_fini(&callee);
	free(mem);
}

static void put_filled(struct crl_callee *callee, uint32_t pos, uint32_t len)
{
	unsigned char bytes[256];

	memset(bytes, (int)(pos + 1), sizeof(bytes));
	crl_ring_put(&callee->requests, pos, pos, bytes, len);
}

static void expect_filled(const struct crl_request *request, uint32_t pos, uint32_t len)
{
	const unsigned char *bytes = request->data;

	cr_expect_eq(request->len, len, "request %u", pos);
	for (uint32_t i = 0; i < len; i++)
		cr_assert_eq(bytes[i], pos + 1, "request %u, byte %u", pos, i);
}

Test(crl_callee, short_and_long_requests_are_taken_in_order_up_to_the_number_asked_for)
{
	static const uint32_t lens[] = { 0, 48, 49, 256, 1, 240, 241, 64 };
	void *mem = aligned_alloc(UTIL_CACHE_LINE, crl_shape_bytes(&mixed));
	struct crl_request requests[8];
	struct crl_callee callee;

	for (int max = 1; max <= 8; max++) {
		uint32_t taken = 0;
		int cnt;

		memset(mem, 0, crl_shape_bytes(&mixed));
		cr_assert_eq(crl_callee_init(&callee, &mixed, mem, 0, 1), 0);
		for (uint32_t i = 0; i < 8; i++)
			put_filled(&callee, i, lens[i]);
		while ((cnt = crl_callee_take(&callee, requests, max))) {
			cr_assert_leq(cnt, max);
			for (int i = 0; i < cnt; i++, taken++)
				expect_filled(&requests[i], taken, lens[taken]);
		}
		cr_expect_eq(taken, 8);
		crl_callee_fini(&callee);
	}
	free(mem);
}

Test(crl_callee, a_length_beyond_the_maximum_behind_a_long_request_is_an_error_too)
{
	void *mem = aligned_alloc(UTIL_CACHE_LINE, crl_shape_bytes(&mixed));
	struct crl_request requests[8];
	struct crl_callee callee;

	memset(mem, 0, crl_shape_bytes(&mixed));
	cr_assert_eq(crl_callee_init(&callee, &mixed, mem, 0, 1), 0);
	put_filled(&callee, 0, 100);
	put_filled(&callee, 1, 100);
	put_filled(&callee, 2, 100);
	atomic_store(&crl_ring_at(&callee.requests, 1)->word, 2ull << 32 | UINT32_MAX);
	cr_assert_eq(crl_callee_take(&callee, requests, 8), 1, "those before it are taken");
	cr_assert_eq(crl_callee_take(&callee, requests, 8), -EPROTO);
	crl_callee_fini(&callee);
	free(mem);
}
