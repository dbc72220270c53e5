/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Channels of a fuzzer, and what it states through them: see side.h and side_chan.h. */
#include "side_chan.h"

#include <rdma/fi_errno.h>
#include <string.h>

#include "core/core_chan_plain.h"
#include "core/core_handler.h"
#include "side.h"
#include "support/check.h"
#include "support/fake_direct.h"
#include "util/copy.h"
#include "util/idmap.h"
#include "util/stats.h"

#define SIDE_CALLS   256u /* of a peer, open */
#define SIDE_EAGER   2048u
#define SIDE_RESP    1024u
#define SIDE_PATTERN 0xC7
#define SIDE_GETS    32u /* to a peer, in progress */

/** Bytes that arrived and are retained. */
struct side_bytes {
	struct util_list link; /* side_chan.retained */
	uint8_t *data;
};

struct side_chan {
	struct core_chan chan;
	bool is_open;
	bool is_broken; /* on_down follows with the next progress */
	struct util_list retained;
	struct side_bytes *response; /* in on_reply; NULL once it is retained */
	struct util_idmap calls;     /* of the endpoint: contexts */
	uint32_t refs[SIDE_CALLS];   /* of the peer: resp_max + 1 of an open call, or 0 */
	uint32_t ids[SIDE_CALLS];    /* of open calls to it */
	uint32_t id_cnt;
	uint64_t sent, parsed, taken;
	struct core_get *gets[SIDE_GETS];
	uint32_t get_cnt;
};

struct side_cfg side_cfg;
uint8_t side_echo[SIDE_ECHO];
static struct side_chan *chans[SIDE_PEERS];
static int exposed_cnt;

static struct side_chan *side_of(struct core_chan *chan)
{
	return (struct side_chan *)chan;
}

/* ---- what the endpoint sends ---- */

static void echo(const struct core_frame *frame)
{
	uint8_t bytes[SIDE_EAGER];

	CHECK(frame->ext_len <= sizeof(frame->ext) && frame->ext_len + frame->len <= SIDE_EAGER);
	memcpy(bytes, frame->ext, frame->ext_len);
	util_iov_gather(bytes + frame->ext_len, frame->iov, frame->iov_cnt, frame->iov_off,
			frame->len);
	memcpy(side_echo, bytes,
	       frame->ext_len + frame->len < SIDE_ECHO ? frame->ext_len + frame->len : SIDE_ECHO);
}

static int side_send(struct core_chan *chan, const struct core_frame *frame, unsigned flags)
{
	struct side_chan *sc = side_of(chan);

	(void)flags;
	CHECK(sc->is_open);
	if (side_cfg.full)
		return -FI_EAGAIN;
	echo(frame);
	sc->sent++;
	sc->taken += 32;
	return 0;
}

static enum core_shortage side_shortage(const struct core_chan *chan, size_t len, uint32_t resp_max)
{
	const struct side_chan *sc = (const struct side_chan *)chan;

	(void)len;
	(void)resp_max;
	if (side_cfg.full)
		return CORE_SHORT_SPACE;
	return sc->id_cnt == SIDE_CALLS ? CORE_SHORT_CREDIT : CORE_SHORT_NONE;
}

static int side_call_out(struct core_chan *chan, const struct core_frame *frame, uint32_t resp_max,
			 void *context, unsigned flags)
{
	struct side_chan *sc = side_of(chan);
	enum core_shortage shortage = side_shortage(chan, 0, 0);

	(void)flags;
	CHECK(sc->is_open && context && resp_max <= chan->resp_lim);
	if (shortage)
		return core_chan_refuse(chan, shortage, -FI_EAGAIN);
	echo(frame);
	CHECK(!util_idmap_alloc(&sc->calls, context, &sc->ids[sc->id_cnt++]));
	sc->sent++;
	return 0;
}

static size_t side_call_room(struct core_chan *chan, size_t len, uint32_t resp_max)
{
	return side_shortage(chan, len, resp_max) ? 0 : SIDE_CALLS - side_of(chan)->id_cnt;
}

static int side_reply(struct core_chan *chan, struct core_call_ref ref, const struct iovec *iov,
		      size_t iov_cnt, size_t len, unsigned flags)
{
	struct side_chan *sc = side_of(chan);
	struct core_frame frame = { .iov = iov, .iov_cnt = iov_cnt, .len = len };

	(void)flags;
	CHECK(sc->is_open && ref.call_id < SIDE_CALLS);
	CHECK(sc->refs[ref.call_id] == ref.resp_max + 1);
	if (len > ref.resp_max)
		return -FI_EMSGSIZE;
	echo(&frame);
	sc->refs[ref.call_id] = 0;
	return 0;
}

/* ---- bytes ---- */

static struct side_bytes *bytes_new(const uint8_t *data, uint32_t len)
{
	struct side_bytes *bytes = malloc(sizeof(*bytes));

	CHECK(bytes);
	util_list_init(&bytes->link);
	bytes->data = malloc(len ? len : 1);
	CHECK(bytes->data);
	memcpy(bytes->data, data, len);
	return bytes;
}

static void bytes_free(struct side_bytes *bytes)
{
	util_list_remove(&bytes->link);
	free(bytes->data);
	free(bytes);
}

static void side_release(struct core_chan *chan, core_retain_t retain)
{
	struct side_bytes *bytes = (struct side_bytes *)(uintptr_t)retain;
	struct side_chan *sc = side_of(chan);
	struct util_list *it = sc->retained.next;

	while (it != &sc->retained && it != &bytes->link)
		it = it->next;
	CHECK(it == &bytes->link);
	bytes_free(bytes);
}

static int side_retain(struct core_chan *chan, core_retain_t *retain)
{
	struct side_chan *sc = side_of(chan);

	CHECK(sc->response);
	util_list_push_back(&sc->retained, &sc->response->link);
	*retain = (core_retain_t)(uintptr_t)sc->response;
	sc->response = NULL;
	return 0;
}

/* ---- transfers ---- */

static void end_get(struct core_get *get, int status)
{
	get->status = status;
	for (size_t i = 0, left = status ? 0 : get->len; left; i++) {
		size_t len = get->iov[i].iov_len < left ? get->iov[i].iov_len : left;

		memset(get->iov[i].iov_base, SIDE_PATTERN, len);
		left -= len;
	}
}

static int side_get(struct core_chan *chan, struct core_get *get)
{
	CHECK(side_of(chan)->is_open && get->len);
	CHECK(get->len <= util_iov_len(get->iov, get->iov_cnt));
	if (side_cfg.holds_get || side_of(chan)->get_cnt == SIDE_GETS)
		return -FI_EAGAIN;
	if (side_cfg.late_get) {
		side_of(chan)->gets[side_of(chan)->get_cnt++] = get;
		return 0;
	}
	end_get(get, side_cfg.get_err);
	return 1;
}

/** Ends the gets in progress. No bytes move when the connection is broken. */
static void end_gets(struct side_chan *sc)
{
	struct core_get *gets[SIDE_GETS];
	uint32_t cnt = sc->get_cnt;

	memcpy(gets, sc->gets, sizeof(gets));
	sc->get_cnt = 0;
	for (uint32_t i = 0; i < cnt; i++) {
		end_get(gets[i], sc->is_broken ? -FI_EIO : side_cfg.get_err);
		core_upcall_table.on_get_done(&sc->chan, gets[i]);
	}
}

static int side_expose(struct core_chan *chan, const void *addr, size_t len,
		       struct core_exposure *exposure)
{
	(void)addr;
	CHECK(side_of(chan)->is_open && len);
	exposure->key = 1;
	exposed_cnt++;
	return 0;
}

static void side_unexpose(struct core_chan *chan, struct core_exposure *exposure)
{
	CHECK(exposure->chan == chan && exposed_cnt > 0);
	exposed_cnt--;
}

/* ---- life ---- */

static void side_ignore(struct core_chan *chan)
{
	(void)chan;
}

static int side_send_buf(struct core_chan *chan, uint64_t packed, uint64_t ext0, uint64_t ext1,
			 const void *buf, size_t len)
{
	return core_chan_send_framed(chan, packed, ext0, ext1, buf, len);
}

static bool side_is_busy(struct core_chan *chan)
{
	(void)chan;
	return false;
}

static uint32_t side_better(struct core_chan *chan, bool regained)
{
	(void)chan;
	return regained;
}

static void side_resize(struct core_chan *chan, bool is_larger)
{
	(void)chan;
	(void)is_larger;
}

static int side_open_tags(struct core_chan *chan, uint32_t cnt, struct core_tags_list **list)
{
	(void)chan;
	return side_tags_open(cnt, list);
}

static void side_positions(struct core_chan *chan, uint64_t *sent, uint64_t *parsed)
{
	*sent = side_of(chan)->sent;
	*parsed = side_of(chan)->parsed;
}

static void side_fail(struct core_chan *chan, int err)
{
	(void)err;
	side_of(chan)->is_broken = true;
}

static void side_stop(struct core_chan *chan)
{
	side_of(chan)->is_open = false;
	for (unsigned i = 0; i < SIDE_PEERS; i++)
		if (chans[i] == side_of(chan))
			chans[i] = NULL;
}

static void side_chan_close(struct core_chan *chan)
{
	struct side_chan *sc = side_of(chan);
	struct util_list *it;

	side_stop(chan);
	while ((it = util_list_first(&sc->retained)))
		bytes_free(UTIL_CONTAINER_OF(it, struct side_bytes, link));
	util_idmap_fini(&sc->calls);
	free(sc);
}

static const struct core_chan_ops side_ops = {
	.send = side_send,
	.send_buf = side_send_buf,
	.send_more = core_chan_send_more,
	.call = side_call_out,
	.call_buf = core_chan_call_framed,
	.call_room = side_call_room,
	.call_shortage = side_shortage,
	.reply = side_reply,
	.reply_release = core_chan_reply_release,
	.retain = side_retain,
	.await = side_ignore,
	.flush = side_ignore,
	.get = side_get,
	.expose = side_expose,
	.unexpose = side_unexpose,
	.direct = fake_direct_start,
	.access = fake_direct_access,
	.undirect = fake_direct_drop,
	.reg = fake_direct_reg,
	.release = side_release,
	.drain = side_ignore,
	.fail = side_fail,
	.is_busy = side_is_busy,
	.better = side_better,
	.resize = side_resize,
	.tags_open = side_open_tags,
	.positions = side_positions,
	.stop = side_stop,
	.close = side_chan_close,
};

struct core_chan *side_chan_open(unsigned peer)
{
	static struct copyrpc_stats_peer unread;
	struct side_chan *sc = calloc(1, sizeof(*sc));

	CHECK(sc && !chans[peer]);
	sc->chan = (struct core_chan){
		.ops = &side_ops,
		.eager_max = SIDE_EAGER,
		.caps = CORE_CHAN_GET,
		.resp_lim = SIDE_RESP,
		.resp_sure = SIDE_RESP,
		.held_max = 4,
		.posted = &sc->taken,
		.stats = &unread,
		.reg_dev = fake_direct_dev(),
	};
	sc->is_open = true;
	util_list_init(&sc->retained);
	util_idmap_init(&sc->calls);
	chans[peer] = sc;
	return &sc->chan;
}

bool side_chan_is_open(unsigned peer)
{
	return chans[peer];
}

void side_chan_run(unsigned peer)
{
	struct side_chan *sc = chans[peer];

	end_gets(sc);
	fake_direct_run(&sc->chan, sc->is_broken ? -FI_EIO : 0);
	if (chans[peer] == sc && sc->is_broken)
		core_upcall_table.on_down(&sc->chan, -FI_EIO);
}

bool side_chan_is_exposed(void)
{
	return exposed_cnt;
}

/* ---- what the fuzzer states ---- */

static struct side_chan *side_up(unsigned peer)
{
	struct side_chan *sc = peer < SIDE_PEERS ? chans[peer] : NULL;

	return sc && !sc->is_broken ? sc : NULL;
}

static void take_verdict(struct side_chan *sc, enum core_rx_verdict verdict,
			 struct side_bytes *bytes)
{
	CHECK(verdict == CORE_RX_DONE || verdict == CORE_RX_RETAIN || verdict == CORE_RX_BAD);
	if (verdict == CORE_RX_RETAIN) {
		util_list_push_back(&sc->retained, &bytes->link);
		return;
	}
	bytes_free(bytes);
	if (verdict == CORE_RX_BAD)
		sc->is_broken = true;
}

bool side_msg(unsigned peer, uint32_t op, const uint8_t *data, uint32_t len)
{
	struct side_chan *sc = side_up(peer);
	struct side_bytes *bytes;

	if (!sc)
		return false;
	bytes = bytes_new(data, len);
	take_verdict(sc,
		     core_upcall_table.on_msg(&sc->chan, op, bytes->data, len,
					      (core_retain_t)(uintptr_t)bytes),
		     bytes);
	return true;
}

bool side_call(unsigned peer, uint32_t resp_max, const uint8_t *data, uint32_t len)
{
	struct side_chan *sc = side_up(peer);
	struct core_call_ref ref = { .resp_max = resp_max };
	struct side_bytes *bytes;

	while (sc && ref.call_id < SIDE_CALLS && sc->refs[ref.call_id])
		ref.call_id++;
	if (!sc || ref.call_id == SIDE_CALLS)
		return false;
	sc->refs[ref.call_id] = resp_max + 1;
	bytes = bytes_new(data, len);
	take_verdict(sc,
		     core_upcall_table.on_call(&sc->chan, ref, bytes->data, len,
					       (core_retain_t)(uintptr_t)bytes),
		     bytes);
	return true;
}

bool side_respond(unsigned peer, unsigned which, const uint8_t *data, uint32_t len)
{
	struct side_chan *sc = side_up(peer);
	void *context;
	uint32_t id;

	if (!sc || !sc->id_cnt)
		return false;
	which %= sc->id_cnt;
	id = sc->ids[which];
	sc->ids[which] = sc->ids[--sc->id_cnt];
	context = util_idmap_lookup(&sc->calls, id);
	CHECK(context);
	util_idmap_release(&sc->calls, id);
	sc->response = bytes_new(data, len);
	core_upcall_table.on_reply(&sc->chan, context, 0, sc->response->data, len);
	if (sc->response)
		bytes_free(sc->response);
	sc->response = NULL;
	return true;
}

void side_parse(unsigned peer)
{
	struct side_chan *sc = side_up(peer);

	if (sc)
		sc->parsed = sc->sent;
}

void side_break(unsigned peer)
{
	struct side_chan *sc = side_up(peer);

	if (sc)
		sc->is_broken = true;
}
