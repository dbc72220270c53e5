/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A caller closes a call only by the response that names it. */
#include "local/crl_caller.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "local/crl_callee.h"

static const struct crl_shape shape = { .depth = 2, .request_max = 8, .response_max = 8 };

static void *new_memory(void)
{
	void *mem = aligned_alloc(UTIL_CACHE_LINE, crl_shape_bytes(&shape));

	memset(mem, 0, crl_shape_bytes(&shape));
	return mem;
}

Test(crl_caller, as_many_calls_as_its_depth_and_no_longer_than_the_maximum)
{
	void *mem = new_memory();
	struct crl_caller caller;

	cr_assert_eq(crl_caller_init(&caller, &shape, mem), 0);
	cr_assert_eq(crl_caller_call(&caller, "123456789", 9, NULL), -EMSGSIZE);
	cr_assert_eq(crl_caller_call(&caller, "12345678", 8, NULL), 0);
	cr_assert_eq(crl_caller_call(&caller, "", 0, NULL), 0);
	cr_assert_eq(crl_caller_pending(&caller), 2);
	cr_assert_eq(crl_caller_call(&caller, "", 0, NULL), -EAGAIN);
	crl_caller_fini(&caller);
	free(mem);
}

Test(crl_caller, responses_that_name_no_open_call_are_skipped)
{
	void *mem = new_memory();
	struct crl_caller caller;
	struct crl_response response;
	uint64_t good;
	int context;

	cr_assert_eq(crl_caller_init(&caller, &shape, mem), 0);
	cr_assert_eq(crl_caller_call(&caller, "", 0, &context), 0);
	good = caller.calls[0].tag;
	crl_ring_put(&caller.responses, 0, good + (2ull << 32), "", 0);
	crl_ring_put(&caller.responses, 1, good | 1, "", 0);
	cr_assert_eq(crl_caller_poll(&caller, &response, 1, 0), 0);
	crl_ring_put(&caller.responses, 2, good | 1u << 31, "", 0);
	crl_ring_put(&caller.responses, 3, good, "123456789", 9);
	cr_assert_eq(crl_caller_poll(&caller, &response, 1, 0), 0, "too long");
	crl_ring_put(&caller.responses, 4, good, "x", 1);
	cr_assert_eq(crl_caller_poll(&caller, &response, 1, 5), 1);
	cr_assert_eq(response.context, &context);
	cr_assert_eq(response.peer, 5);
	crl_ring_put(&caller.responses, 5, good, "x", 1);
	cr_assert_eq(crl_caller_poll(&caller, &response, 1, 0), 0, "the second response");
	cr_assert_eq(crl_caller_pending(&caller), 0);
	crl_caller_fini(&caller);
	free(mem);
}

/* At depth 1 every tag leads to the one slot or to the one that is never open. */
Test(crl_caller, no_tag_ends_a_call_that_is_not_open)
{
	static const struct crl_shape one = { .depth = 1, .request_max = 8, .response_max = 8 };
	static const uint64_t tags[] = {
		0, 1, 2, UINT32_MAX, 1ull << 32, 1ull << 63, UINT64_MAX - 1, UINT64_MAX
	};
	void *mem = new_memory(), *context;
	struct crl_caller caller;
	struct crl_response response;

	cr_assert_eq(crl_caller_init(&caller, &one, mem), 0);
	for (uint32_t i = 0; i < sizeof(tags) / sizeof(tags[0]); i++) {
		cr_assert_not(crl_caller_close(&caller, tags[i], &context));
		crl_ring_put(&caller.responses, i, tags[i], "x", 1);
		cr_assert_eq(crl_caller_poll(&caller, &response, 1, 0), 0);
	}
	cr_assert_eq(crl_caller_pending(&caller), 0);
	crl_caller_fini(&caller);
	free(mem);
}

Test(crl_caller, abandoned_calls_end_once)
{
	void *mem = new_memory(), *context = NULL;
	struct crl_caller caller;

	cr_assert_eq(crl_caller_init(&caller, &shape, mem), 0);
	cr_assert_eq(crl_caller_call(&caller, "", 0, mem), 0);
	cr_assert(crl_caller_abandon(&caller, &context));
	cr_assert_eq(context, mem);
	cr_assert_not(crl_caller_abandon(&caller, &context));
	crl_caller_fini(&caller);
	free(mem);
}

Test(crl_caller, polled_data_stays_while_a_full_depth_of_new_responses_arrives)
{
	void *mem = new_memory();
	struct crl_caller caller;
	struct crl_callee callee;
	struct crl_request requests[2];
	struct crl_response held[2];

	cr_assert_eq(crl_caller_init(&caller, &shape, mem), 0);
	cr_assert_eq(crl_callee_init(&callee, &shape, mem, 0, 1), 0);
	for (uint32_t lap = 0; lap < 20; lap++) {
		for (uint32_t i = 0; i < 2; i++)
			cr_assert_eq(crl_caller_call(&caller, &lap, 4, NULL), 0);
		cr_assert_eq(crl_callee_take(&callee, requests, 2), 2);
		for (uint32_t i = 0; i < 2; i++)
			cr_assert_eq(
				crl_callee_reply(&callee, requests[i].handle, requests[i].data, 4),
				0);
		for (uint32_t i = 0; lap && i < 2; i++)
			cr_assert_eq(*(const uint32_t *)held[i].data, lap - 1);
		cr_assert_eq(crl_caller_poll(&caller, held, 2, 0), 2);
	}
	crl_caller_fini(&caller);
	crl_callee_fini(&callee);
	free(mem);
}
