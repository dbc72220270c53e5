/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Caller of rpc_mix: starts and cancels calls, and checks that each ends once, with its own
 * response or an error that there is a reason for.
 */
#include "rpc_mix.h"

#define KEPT_MAX      8
#define ABANDONED_MAX 256
#define LIMIT         28.0 /* seconds: less than the peer timeout */

struct call {
	struct call *next; /* unused ones */
	struct head head;
	uint8_t *resp;
	uint32_t resp_max;
	uint32_t peer;
	bool expose, open, cancelled;
};

struct kept {
	uint64_t data;
	const uint8_t *buf;
	size_t len;
	uint64_t seed;
};

uint64_t started, ended;
uint32_t open_cnt;

static struct call calls[WINDOW_MAX], *free_calls;
static uint32_t open_to[PROCS_MAX];
static struct kept kept[KEPT_MAX];
static uint32_t kept_cnt;
static uint8_t *abandoned[ABANDONED_MAX];
static uint32_t abandoned_cnt;

void caller_open(void)
{
	for (uint32_t i = 0; i < window; i++) {
		calls[i].resp = malloc(len_max + 1);
		calls[i].next = free_calls;
		free_calls = &calls[i];
	}
}

/* Returns mostly small lengths, sometimes any length, and the edges of blocks. */
static uint32_t random_len(void)
{
	static const uint32_t edges[] = { 0, 1, 15, 16, 17, 20, 21, 32, 48, 49, 52, 53, 64, 84 };

	switch (rng_below(&rng, 4)) {
	case 0: return rng_below(&rng, len_max + 1);
	case 1: return edges[rng_below(&rng, sizeof(edges) / sizeof(edges[0]))] % (len_max + 1);
	default: return rng_below(&rng, len_max < 100 ? len_max + 1 : 100);
	}
}

static ssize_t post(struct call *call, uint32_t len)
{
	uint8_t *msg = out;
	uint64_t flags =
		(rng_below(&rng, 2) ? FI_MORE : 0) | (call->expose ? FI_COPYRPC_RETAIN : 0);
	void *resp = call->expose ? NULL : call->resp;
	struct iovec iov[2] = { { msg, len / 2 }, { msg + len / 2, len - len / 2 } };
	struct fi_copyrpc_msg m = { .msg_iov = iov,
				    .iov_count = 2,
				    .resp = resp,
				    .resp_len = call->resp_max,
				    .addr = names[call->peer],
				    .context = call };
	ssize_t ret;

	if (len < sizeof(call->head)) {
		fill(msg, len, len);
	} else {
		memcpy(msg, &call->head, sizeof(call->head));
		fill(msg + sizeof(call->head), len - sizeof(call->head), call->head.seed);
	}
	if (rng_below(&rng, 8))
		ret = fi_copyrpc_call(rpc, fab.ep, msg, len, resp, call->resp_max,
				      names[call->peer], call, flags);
	else
		ret = fi_copyrpc_callmsg(rpc, fab.ep, &m, flags);
	memset(msg, 0xEE, len); /* the buffer may be written again, and is not read any more */
	return ret;
}

static bool start(void)
{
	struct call *call = free_calls;
	uint32_t len = random_len();
	ssize_t ret;

	call->peer = rng_below(&rng, procs);
	if (is_dead(call->peer))
		return true;
	call->resp_max = random_len();
	call->head.seed = rng_next(&rng);
	call->head.want = len < sizeof(call->head) ? 0 : rng_below(&rng, call->resp_max + 1);
	call->head.len = len;
	call->expose = rng_below(&rng, 8) == 0;
	call->cancelled = false;
	memset(call->resp, 0xA5, len_max + 1);
	ret = post(call, len);
	if (ret == -FI_EAGAIN)
		return shared->slots[self].again++, false;
	if (ret && kills)
		return false; /* the process is being killed */
	FAB_CHECK(ret);
	free_calls = call->next;
	call->open = true;
	open_cnt++;
	open_to[call->peer]++;
	started++;
	return true;
}

bool caller_start_some(void)
{
	bool busy = false;

	while (started < call_goal && free_calls && rng_below(&rng, 8) && start())
		busy = true;
	return busy;
}

static void release_kept(uint32_t keep)
{
	while (kept_cnt > keep) {
		uint32_t i = rng_below(&rng, kept_cnt);

		FAB_TRUE(is_filled(kept[i].buf, kept[i].len, kept[i].seed));
		FAB_CHECK(fi_copyrpc_release_response(rpc, fab.ep, kept[i].data));
		FAB_TRUE(fi_copyrpc_release_response(rpc, fab.ep, kept[i].data) == -FI_EINVAL);
		kept[i] = kept[--kept_cnt];
	}
}

static void take_response(struct call *call, const struct fi_cq_tagged_entry *entry)
{
	FAB_TRUE(entry->len == call->head.want);
	FAB_TRUE(!(entry->flags & FI_COPYRPC_RETAIN) == !call->expose);
	if (!call->expose) {
		FAB_TRUE(is_filled(call->resp, entry->len, ~call->head.seed));
		for (size_t i = entry->len; i <= call->resp_max; i++)
			FAB_TRUE(call->resp[i] == 0xA5);
		return;
	}
	release_kept(KEPT_MAX - 1);
	kept[kept_cnt++] = (struct kept){
		.data = entry->data, .buf = entry->buf, .len = entry->len, .seed = ~call->head.seed
	};
}

/* Checks that the late response to a cancelled call is not written here. */
static void abandon(struct call *call)
{
	if (abandoned_cnt < ABANDONED_MAX) {
		abandoned[abandoned_cnt++] = call->resp;
		call->resp = malloc(len_max + 1);
		FAB_TRUE(call->resp);
	}
}

void caller_end(const struct fi_cq_tagged_entry *entry, int err)
{
	struct call *call = entry->op_context;

	FAB_TRUE(call->open && (entry->flags & FI_COPYRPC_CALL));
	call->open = false;
	open_cnt--;
	open_to[call->peer]--;
	ended++;
	if (call->cancelled) {
		FAB_TRUE(err == FI_ECANCELED);
		shared->slots[self].cancelled++;
		abandon(call);
	} else if (err) {
		if (!kills)
			fab_fail(__FILE__, __LINE__, "a call ended", fi_strerror(err));
		shared->slots[self].errors++;
	} else {
		take_response(call, entry);
	}
	call->next = free_calls;
	free_calls = call;
}

void caller_cancel_one(void)
{
	struct call *call = &calls[rng_below(&rng, window)];

	if (!call->open || call->cancelled || is_dead(call->peer))
		return; /* calls to the dead end by themselves */
	FAB_CHECK(fi_cancel(&fab.ep->fid, call));
	FAB_TRUE(fi_cancel(&fab.ep->fid, call) == -FI_ENOENT);
	call->cancelled = true;
}

void caller_watch_dead(void)
{
	static double since[PROCS_MAX];

	for (uint32_t i = 0; i < procs; i++) {
		if (!is_dead(i) || !open_to[i])
			continue;
		since[i] = since[i] > 0 ? since[i] : fab_seconds();
		if (fab_seconds() - since[i] > LIMIT)
			fab_fail(__FILE__, __LINE__, "calls to a dead process", "still wait");
	}
}

void caller_release(void)
{
	release_kept(0);
}

void caller_check(void)
{
	FAB_TRUE(started == ended && started == call_goal);
	for (uint32_t i = 0; i < abandoned_cnt; i++) {
		for (size_t k = 0; k <= len_max; k++)
			FAB_TRUE(abandoned[i][k] == 0xA5);
		free(abandoned[i]);
	}
}

void caller_free(void)
{
	for (uint32_t i = 0; i < window; i++)
		free(calls[i].resp);
}
