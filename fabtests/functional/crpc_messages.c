/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A message arrives as it was sent, for each pair of send and receive calls, at every size where a
 * provider changes its protocol, before its receive is posted and after.
 *
 * Pages: fi_msg(3), fi_tagged(3), fi_cq(3) ("completion fields", "completion flags").
 */
#include "common/ft_data.h"
#include "common/ft_msg.h"

#define TAG       0x7A60
#define SIZES     24
#define RECV_WAYS 3

/* ---- sizes ---- */

/*
 * Lists sizes around the limits that the provider names, and around powers of two, where it may
 * have unnamed ones.
 */
static size_t sizes_of(const struct ft_fab *fab, size_t *sizes)
{
	size_t inject = fab->info->tx_attr->inject_size, most = fab->ft->opts->size, cnt = 0;
	size_t all[] = {
		0,     1,     7,     64,    255,    4095,    8191,       8192,   8193,
		32767, 32768, 65536, 65537, 262144, 1048577, inject - 1, inject, inject + 1
	};

	if (!most)
		most = 2 << 20;
	for (size_t i = 0; i < FT_CNT(all) && cnt < SIZES; i++) {
		if (all[i] <= most && all[i] <= fab->info->ep_attr->max_msg_size)
			sizes[cnt++] = all[i];
	}
	return cnt;
}

/* ---- the two ends of one message ---- */

struct shape {
	bool tagged, early; /* early: sent before its receive is posted */
	enum ft_way send, recv;
	size_t len;
	uint32_t key;
	enum fi_cq_format format;
};

static bool with_data(const struct ft_fab *fab, const struct shape *s)
{
	return ft_way_has_data(s->send) && fab->info->domain_attr->cq_data_size >= 8;
}

static uint64_t data_of(const struct shape *s)
{
	return 0x0123456789ABCDEFull ^ s->key;
}

static void send_shape(struct ft_fab *fab, const struct shape *s)
{
	uint8_t *buf = ft_buf_new(s->len);
	struct ft_msg msg = { .tagged = s->tagged,
			      .tag = TAG + s->key,
			      .buf = buf,
			      .len = s->len,
			      .rank = 1,
			      .data = data_of(s) };

	ft_fill(buf, s->len, s->key);
	if (!s->early)
		ft_sync(fab->ft);
	ft_send_wait(fab, s->send, msg);
	memset(buf, 0x55, s->len); /* the buffer is the caller's again */
	if (s->early)
		ft_sync(fab->ft);
	ft_buf_free(buf);
}

static void check_fields(const struct ft_fab *fab, const struct shape *s, const struct ft_op *op)
{
	uint64_t kind = s->tagged ? FI_TAGGED : FI_MSG;

	if (s->format == FI_CQ_FORMAT_CONTEXT)
		return;
	FT_CHECK(op->len == s->len, "len %zu", op->len);
	FT_CHECK((op->flags & (FI_RECV | FI_SEND | FI_MSG | FI_TAGGED)) == (FI_RECV | kind),
		 "flags %#llx", (unsigned long long)op->flags);
	if (s->format == FI_CQ_FORMAT_MSG)
		return;
	FT_CHECK(!(op->flags & FI_REMOTE_CQ_DATA) == !with_data(fab, s), "flags %#llx",
		 (unsigned long long)op->flags);
	if (with_data(fab, s))
		FT_CHECK(op->data == data_of(s), "data %#llx", (unsigned long long)op->data);
	if (s->format == FI_CQ_FORMAT_TAGGED && s->tagged)
		FT_CHECK(op->tag == TAG + s->key, "tag %#llx", (unsigned long long)op->tag);
}

static void recv_shape(struct ft_fab *fab, const struct shape *s)
{
	size_t room = s->len + 33;
	uint8_t *buf = ft_buf_new(room);
	struct ft_msg msg = { .tagged = s->tagged,
			      .tag = TAG + s->key,
			      .buf = buf,
			      .len = room,
			      .rank = -1,
			      .op = ft_op_new(fab, FT_ONE) };
	long wrong;

	if (s->early)
		ft_sync(fab->ft);
	FT_POST(fab, ft_recv(fab, s->recv, &msg));
	if (!s->early)
		ft_sync(fab->ft);
	ft_wait(fab, msg.op);
	FT_CHECK(!msg.op->err, "%s of %zu bytes: receive ended with %s", ft_way_names[s->send],
		 s->len, ft_err_name(msg.op->err));
	wrong = ft_wrong(buf, s->len, s->key);
	FT_CHECK(wrong < 0, "%s of %zu bytes: byte %ld is wrong", ft_way_names[s->send], s->len,
		 wrong);
	ft_buf_check(buf, room, s->len);
	check_fields(fab, s, msg.op);
	ft_op_put(fab, msg.op);
	ft_buf_free(buf);
}

/* An early long message may need progress at its receiver: rank 1 makes progress while it waits. */
static void one_shape(struct ft_fab *fab, const struct shape *s)
{
	if (fab->ft->rank == 0)
		send_shape(fab, s);
	else
		recv_shape(fab, s);
}

static bool can(const struct ft_fab *fab, const struct shape *s)
{
	if (ft_way_injects(s->send) && s->len > fab->info->tx_attr->inject_size)
		return false;
	/* The completion may wait for the receive: sent early, it would wait for itself. */
	return !(s->early && !ft_way_injects(s->send) &&
		 (s->len > 4096 || fab->want.tx_flags & FI_MATCH_COMPLETE));
}

static void all_shapes(struct ft_fab *fab, bool tagged, enum fi_cq_format format)
{
	size_t sizes[SIZES], cnt = sizes_of(fab, sizes);
	struct shape s = { .tagged = tagged, .format = format };
	uint32_t key = 0;

	for (size_t i = 0; i < cnt; i++) {
		for (unsigned n = 0; n < FT_WAYS * 2; n++) {
			s.send = n % FT_WAYS;
			s.early = n >= FT_WAYS;
			s.recv = (enum ft_way)((i + n) % RECV_WAYS);
			s.len = sizes[i];
			s.key = ++key;
			if (can(fab, &s))
				one_shape(fab, &s);
		}
	}
}

static void run_with(struct ft *ft, struct ft_want want)
{
	bool tagged = ft->test->arg;
	struct ft_fab fab;

	want.caps = tagged ? FI_TAGGED : FI_MSG;
	ft_fab_open(&fab, ft, &want);
	all_shapes(&fab, tagged, want.format ? want.format : FI_CQ_FORMAT_TAGGED);
	ft_quiet(&fab, 0.02);
	ft_sync(ft);
	ft_fab_close(&fab);
}

static void run_ways(struct ft *ft)
{
	run_with(ft, (struct ft_want){ 0 });
}

static void run_two_queues(struct ft *ft)
{
	run_with(ft, (struct ft_want){ .two_cqs = true, .format = FI_CQ_FORMAT_DATA });
}

static void run_format_context(struct ft *ft)
{
	run_with(ft, (struct ft_want){ .format = FI_CQ_FORMAT_CONTEXT });
}

static void run_format_msg(struct ft *ft)
{
	run_with(ft, (struct ft_want){ .format = FI_CQ_FORMAT_MSG });
}

static void run_auto(struct ft *ft)
{
	run_with(ft, (struct ft_want){ .progress = FI_PROGRESS_AUTO, .threading = FI_THREAD_SAFE });
}

static void run_one_thread(struct ft *ft)
{
	run_with(ft, (struct ft_want){ .threading = FI_THREAD_DOMAIN });
}

static void run_delivery(struct ft *ft)
{
	run_with(ft, (struct ft_want){ .tx_flags = FI_DELIVERY_COMPLETE });
}

static void run_match(struct ft *ft)
{
	run_with(ft, (struct ft_want){ .tx_flags = FI_MATCH_COMPLETE });
}

/* ---- to oneself ---- */

static void run_self(struct ft *ft)
{
	struct ft_want want = { .caps = FI_TAGGED | FI_MSG };
	size_t sizes[SIZES], cnt;
	struct ft_fab fab;

	if (ft->opts->type == FI_EP_MSG)
		ft_notrun("a connected endpoint is not connected to itself");
	ft_fab_open(&fab, ft, &want);
	cnt = sizes_of(&fab, sizes);
	for (size_t i = 0; i < cnt; i++) {
		uint8_t *out = ft_buf_new(sizes[i]), *in = ft_buf_new(sizes[i]);
		struct ft_msg msg = { .tagged = ft->test->arg,
				      .tag = i,
				      .buf = out,
				      .len = sizes[i],
				      .rank = ft->rank };
		struct ft_op *op = ft_recv_post(&fab, msg.tagged, i, in, sizes[i]);

		ft_fill(out, sizes[i], (uint32_t)i);
		ft_send_wait(&fab, FT_PLAIN, msg);
		ft_wait_good(&fab, op);
		FT_CHECK(ft_wrong(in, sizes[i], (uint32_t)i) < 0, "%zu bytes: wrong", sizes[i]);
		ft_buf_check(in, sizes[i], sizes[i]);
		ft_buf_free(in);
		ft_buf_free(out);
	}
	ft_quiet(&fab, 0.02);
	ft_fab_close(&fab);
}

/* ---- source ---- */

static void run_source(struct ft *ft)
{
	struct ft_want want = { .caps = FI_TAGGED | FI_SOURCE };
	struct ft_msg msg = { .tagged = true, .tag = TAG, .rank = 0 };
	struct ft_fab fab;
	struct ft_op *op;

	if (ft->opts->type == FI_EP_MSG)
		ft_notrun("a connected endpoint has one source");
	ft_fab_open(&fab, ft, &want);
	for (int i = 0; i < 2 * (ft->procs - 1); i++) {
		if (ft->rank) {
			if (i % (ft->procs - 1) == ft->rank - 1)
				ft_send_wait(&fab, FT_INJECT, msg);
		} else {
			op = ft_recv_post(&fab, true, TAG, NULL, 0);
			ft_wait(&fab, op);
			FT_CHECK(op->src == fab.addr[1 + i % (ft->procs - 1)], "from %llu",
				 (unsigned long long)op->src);
			ft_op_put(&fab, op);
		}
		ft_sync(ft);
	}
	ft_fab_close(&fab);
}

/* Rank 0 has removed rank 1: its messages have no address. */
static void run_source_unknown(struct ft *ft)
{
	struct ft_want want = { .caps = FI_TAGGED | FI_SOURCE };
	struct ft_msg msg = { .tagged = true, .tag = TAG, .rank = 0 };
	struct ft_fab fab;
	struct ft_op *op;

	if (ft->opts->type == FI_EP_MSG)
		ft_notrun("a connected endpoint has one source");
	ft_fab_open(&fab, ft, &want);
	if (ft->rank == 0) {
		FT_OK(fi_av_remove(fab.av, &fab.addr[1], 1, 0));
		op = ft_recv_post(&fab, true, TAG, NULL, 0);
		ft_sync(ft);
		ft_wait(&fab, op);
		FT_CHECK(!op->err && op->src == FI_ADDR_NOTAVAIL, "from %llu",
			 (unsigned long long)op->src);
	} else {
		ft_sync(ft);
		ft_send_wait(&fab, FT_INJECT, msg);
	}
	ft_sync(ft);
	ft_fab_close(&fab);
}

static const struct ft_case cases[] = {
	FT_CASE("msg-ways", run_ways,
		"What fi_send and its kin send arrives whole, once, with its fields set."),
	FT_CASE("tagged-ways", run_ways,
		"What fi_tsend and its kin send arrives whole, once, with its fields set.",
		.arg = 1),
	FT_CASE("msg-two-queues", run_two_queues,
		"Sends and receives report to the queue that was bound for them."),
	FT_CASE("tagged-two-queues", run_two_queues,
		"Sends and receives report to the queue that was bound for them.", .arg = 1),
	FT_CASE("tagged-format-context", run_format_context,
		"A queue of contexts has the context of the operation.", .arg = 1),
	FT_CASE("msg-format-msg", run_format_msg, "A queue of messages has flags and lengths."),
	FT_CASE("tagged-auto", run_auto, "With automatic progress nothing else changes.", .arg = 1),
	FT_CASE("tagged-one-thread", run_one_thread, "With FI_THREAD_DOMAIN nothing else changes.",
		.arg = 1),
	FT_CASE("msg-delivery", run_delivery,
		"FI_DELIVERY_COMPLETE as default completes every send once."),
	FT_CASE("tagged-delivery", run_delivery,
		"FI_DELIVERY_COMPLETE as default completes every send once.", .arg = 1),
	FT_CASE("msg-match", run_match, "FI_MATCH_COMPLETE as default completes every send once."),
	FT_CASE("tagged-match", run_match,
		"FI_MATCH_COMPLETE as default completes every send once.", .arg = 1),
	FT_CASE("msg-self", run_self, "An endpoint may send to its own address.", .procs = 1),
	FT_CASE("tagged-self", run_self, "An endpoint may send to its own address.", .procs = 1,
		.arg = 1),
	FT_CASE("source", run_source,
		"fi_cq_readfrom names the sender by the address that inserting it gave.",
		.procs = 3),
	FT_CASE("source-unknown", run_source_unknown,
		"A sender that is not in the address vector is FI_ADDR_NOTAVAIL."),
};

int main(int argc, char **argv)
{
	return ft_main(argc, argv, "A message arrives as it was sent.", cases, FT_CNT(cases));
}
