/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Callee of rpc_mix: checks requests and holds them, and responds in no order, with the contents
 * that the request asks for.
 */
#include "rpc_mix.h"

#define HELD_MAX 128

static struct fi_copyrpc_request held[HELD_MAX];
static uint32_t held_cnt;

static void check_request(const struct fi_copyrpc_request *req, struct head *head)
{
	const uint8_t *data = req->data;

	memset(head, 0, sizeof(*head));
	if (req->len < sizeof(*head)) { /* too short for a head: the response is empty */
		FAB_TRUE(is_filled(data, req->len, req->len));
		return;
	}
	memcpy(head, data, sizeof(*head));
	FAB_TRUE(head->len == req->len && head->want <= req->resp_max);
	FAB_TRUE(is_filled(data + sizeof(*head), req->len - sizeof(*head), head->seed));
}

static void respond(uint32_t i)
{
	struct fi_copyrpc_request req = held[i];
	struct iovec iov[2];
	struct head head;
	uint64_t flags = rng_below(&rng, 2) ? FI_MORE : 0;
	ssize_t ret;

	check_request(&req, &head);
	held[i] = held[--held_cnt];
	fill(out, head.want, ~head.seed);
	if (rng_below(&rng, 16) == 0) {
		FAB_CHECK(fi_copyrpc_release(rpc, fab.ep, &req));
		FAB_CHECK(fi_copyrpc_release(rpc, fab.ep, &req));
	}
	if (rng_below(&rng, 16) == 0)
		FAB_TRUE(fi_copyrpc_reply(rpc, fab.ep, &req, out, req.resp_max + 1, 0) ==
			 -FI_EMSGSIZE);
	if (rng_below(&rng, 8)) {
		ret = fi_copyrpc_reply(rpc, fab.ep, &req, out, head.want, flags);
	} else {
		iov[0] = (struct iovec){ out, head.want / 3 };
		iov[1] = (struct iovec){ out + head.want / 3, head.want - head.want / 3 };
		ret = fi_copyrpc_replyv(rpc, fab.ep, &req, iov, 2, flags);
	}
	/*
	 * A caller that cancelled may have closed by now, once all have the completions they waited
	 * for.
	 */
	FAB_TRUE(!ret || (ret == -FI_ECONNRESET && (kills || LOAD(shared->slots[self].done))));
	FAB_TRUE(fi_copyrpc_reply(rpc, fab.ep, &req, out, 0, 0) == -FI_EINVAL);
}

bool callee_serve(void)
{
	uint32_t room = HELD_MAX - held_cnt, want = room < 32 ? room : 32;
	ssize_t ret = fi_copyrpc_recv(rpc, fab.ep, held + held_cnt, want, 0);

	FAB_TRUE(ret >= 0 || ret == -FI_EAGAIN);
	if (ret > 0)
		held_cnt += (uint32_t)ret;
	/* Some requests wait until others have come: replies are in no order. */
	while (held_cnt && (held_cnt > HELD_MAX / 2 || ret <= 0 || rng_below(&rng, 3))) {
		respond(rng_below(&rng, held_cnt));
		if (ret <= 0)
			break;
	}
	return ret > 0;
}

uint32_t callee_held(void)
{
	return held_cnt;
}
