/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Speed of a provider between two processes of one host, by each of libfabric's interfaces:
 * messages, tagged messages, writes to remote memory, and the calls of copyrpc's extension.
 *
 * Endpoints and addresses are those of common/ft_fab.h, so that -e msg works as it does for the
 * tests. Tests, sizes, windows, samples and reports (a table as OSU's, or JSON lines) are those of
 * bench.h.
 *
 * 	msg, tagged  fi_send, fi_tsend; injected up to inject_size
 * 	cntr         fi_send without completions: counters count sends and receives
 * 	rma          latency: fi_writedata there and back; else fi_write, the last one with data
 * 	rpc          latency: a call and its response of the same size; else calls with responses
 * 	of 8 bytes
 */
#include "bench.h"
#include "common/ft_fab.h"
#include "common/ft_proc.h"
#include "util/fi_old.h"

#include <rdma/fi_ext_copyrpc.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum mode { MSG, TAGGED, CNTR, RMA, RPC, MODES };

static const char *const mode_names[MODES] = { "msg", "tagged", "cntr", "rma", "rpc" };

#define BATCH    32
#define TAG      1
#define RESP_LEN 8

struct wire {
	struct bench_wire base; /* first member */
	struct ft ft;
	struct ft_fab fab;
	enum mode mode;
	int window;
	struct fi_context2 *contexts; /* of sends, then of receives: window each */
	struct fid_mr *mr;
	uint64_t there, key; /* rx of the peer */
	struct fi_copyrpc_ops *rpc;
	uint64_t posted, sent, received, served; /* totals */
	uint64_t awaited, owed;                  /* of received and served */
	uint64_t receives;                       /* posted */
};

static struct wire *wire_of(struct bench_wire *base)
{
	return (struct wire *)base;
}

/* ---- completions ---- */

static void serve(struct wire *w)
{
	struct fi_copyrpc_request reqs[BATCH];
	ssize_t cnt = fi_copyrpc_recv(w->rpc, w->fab.ep, reqs, BATCH, 0);

	for (ssize_t i = 0; i < cnt; i++) {
		memcpy(w->base.rx, reqs[i].data, reqs[i].len);
		FT_OK(fi_copyrpc_reply(w->rpc, w->fab.ep, &reqs[i], w->base.tx, reqs[i].resp_max,
				       i + 1 < cnt ? FI_MORE : 0));
		w->served++;
	}
}

/* Advances the counts. Injected messages count as sent, too. */
static void progress_counters(struct wire *w)
{
	w->sent = fi_cntr_read(w->fab.tx_cntr);
	w->received = fi_cntr_read(w->fab.rx_cntr);
}

static void progress(struct wire *w)
{
	struct fi_cq_tagged_entry entries[BATCH];
	ssize_t cnt;

	if (w->mode == CNTR) {
		progress_counters(w);
		return;
	}
	cnt = fi_cq_read(w->fab.tx_cq, entries, BATCH);
	FT_CHECK(cnt >= 0 || cnt == -FI_EAGAIN, "fi_cq_read: %s", ft_err_name(cnt));
	for (ssize_t i = 0; i < cnt; i++) {
		if (entries[i].flags & (FI_RECV | FI_REMOTE_WRITE))
			w->received++;
		else
			w->sent++;
	}
	if (w->rpc)
		serve(w);
}

static void wait_sent(struct wire *w)
{
	while (w->sent < w->posted)
		progress(w);
}

#define POST(w, call)                                                                              \
	do {                                                                                       \
		long post_ret;                                                                     \
		while ((post_ret = (call)) == -FI_EAGAIN)                                          \
			progress(w);                                                               \
		FT_CHECK(!post_ret, "%s: %s", #call, ft_err_name(post_ret));                       \
	} while (0)

/* ---- one message ---- */

static void *next_context(struct wire *w)
{
	return &w->contexts[w->posted++ % (uint64_t)w->window];
}

static void send_message(struct wire *w, size_t size)
{
	fi_addr_t to = w->fab.addr[!w->base.rank];
	void *context;

	if (size <= w->fab.info->tx_attr->inject_size) {
		w->posted += w->mode == CNTR;
		if (w->mode == TAGGED)
			POST(w, fi_tinject(w->fab.ep, w->base.tx, size, to, TAG));
		else
			POST(w, fi_inject(w->fab.ep, w->base.tx, size, to));
		return;
	}
	context = next_context(w);
	if (w->mode == TAGGED)
		POST(w, fi_tsend(w->fab.ep, w->base.tx, size, NULL, to, TAG, context));
	else
		POST(w, fi_send(w->fab.ep, w->base.tx, size, NULL, to, context));
}

static void write_message(struct wire *w, size_t size, bool tell)
{
	fi_addr_t to = w->fab.addr[!w->base.rank];
	void *context = next_context(w);

	if (tell)
		POST(w, fi_writedata(w->fab.ep, w->base.tx, size, NULL, 1, to, w->there, w->key,
				     context));
	else
		POST(w, fi_write(w->fab.ep, w->base.tx, size, NULL, to, w->there, w->key, context));
}

static void call_message(struct wire *w, size_t size, size_t resp_len)
{
	fi_addr_t to = w->fab.addr[!w->base.rank];
	void *context = next_context(w);

	POST(w, fi_copyrpc_call(w->rpc, w->fab.ep, w->base.tx, size, w->base.rx, resp_len, to,
				context, 0));
}

static void post_receive(struct wire *w, size_t size)
{
	void *context = &w->contexts[w->window + (int)(w->receives++ % (uint64_t)w->window)];

	if (w->mode == TAGGED)
		POST(w,
		     fi_trecv(w->fab.ep, w->base.rx, size, NULL, FI_ADDR_UNSPEC, TAG, 0, context));
	else
		POST(w, fi_recv(w->fab.ep, w->base.rx, size, NULL, FI_ADDR_UNSPEC, context));
}

/*
 * Waits until `cnt` more have completed than were awaited so far. Some may have completed before.
 */
static void await(struct wire *w, uint64_t cnt)
{
	w->awaited += cnt;
	while (w->received < w->awaited)
		progress(w);
}

static void await_served(struct wire *w, uint64_t cnt)
{
	w->owed += cnt;
	while (w->served < w->owed)
		progress(w);
}

/* ---- rounds ---- */

static void one_way(struct wire *w, size_t size)
{
	if (w->mode == RMA)
		write_message(w, size, true);
	else
		send_message(w, size);
}

static void wire_pingpong(struct bench_wire *base, size_t size, long rounds)
{
	struct wire *w = wire_of(base);

	for (long i = 0; i < rounds; i++) {
		if (w->mode == RPC) {
			if (base->rank == 0)
				call_message(w, size, size);
			else
				await_served(w, 1);
			wait_sent(w);
			continue;
		}
		if (w->mode != RMA)
			post_receive(w, size);
		if (base->rank == 1)
			await(w, 1);
		one_way(w, size);
		if (base->rank == 0)
			await(w, 1);
		wait_sent(w);
	}
}

/* Sends a window to the peer, which receives CQ data with the last message. */
static void window_send(struct wire *w, size_t size, int window)
{
	for (int n = 0; n < window; n++) {
		if (w->mode == RPC)
			call_message(w, size, RESP_LEN);
		else if (w->mode == RMA)
			write_message(w, size, n + 1 == window);
		else
			send_message(w, size);
	}
}

static void window_receive(struct wire *w, int window)
{
	if (w->mode == RPC)
		await_served(w, (uint64_t)window);
	else
		await(w, w->mode == RMA ? 1 : (uint64_t)window);
}

static void window_prepare(struct wire *w, size_t size, int window)
{
	for (int n = 0; w->mode < RMA && n < window; n++)
		post_receive(w, size);
}

static void wire_stream(struct bench_wire *base, size_t size, int window, long rounds)
{
	struct wire *w = wire_of(base);

	for (long i = 0; i < rounds; i++) {
		if (base->rank == 0) {
			window_prepare(w, size, 1);
			window_send(w, size, window);
			wait_sent(w);
			if (w->mode != RPC)
				await(w, 1);
			continue;
		}
		window_prepare(w, size, window);
		window_receive(w, window);
		if (w->mode == RMA)
			write_message(w, 0, true);
		else if (w->mode != RPC)
			send_message(w, 0);
		wait_sent(w);
	}
}

static void wire_exchange(struct bench_wire *base, size_t size, int window, long rounds)
{
	struct wire *w = wire_of(base);

	for (long i = 0; i < rounds; i++) {
		window_prepare(w, size, window);
		window_send(w, size, window);
		wait_sent(w);
		window_receive(w, window);
	}
}

/* ---- agreement ---- */

static long wire_agree(struct bench_wire *base, long value)
{
	long other;

	ft_swap(&wire_of(base)->ft, !base->rank, &value, &other, sizeof(value));
	return base->rank == 0 ? value : other;
}

static uint64_t wire_sum(struct bench_wire *base, uint64_t value)
{
	uint64_t other;

	ft_swap(&wire_of(base)->ft, !base->rank, &value, &other, sizeof(value));
	return value + other;
}

/* ---- opening ---- */

static char *memory(size_t size)
{
	void *at = NULL;

	FT_CHECK(!posix_memalign(&at, 4096, size), "out of memory");
	memset(at, 0, size);
	return at;
}

static void region_open(struct wire *w, size_t size)
{
	int mode = w->fab.info->domain_attr->mr_mode;
	uint64_t mine[2], theirs[2];

	FT_OK(fi_mr_reg(w->fab.domain, w->base.rx, size, FI_REMOTE_WRITE | FI_REMOTE_READ, 0, 7, 0,
			&w->mr, NULL));
	mine[0] = mode & (FI_MR_VIRT_ADDR | FI_MR_BASIC) ? (uintptr_t)w->base.rx : 0;
	mine[1] = fi_mr_key(w->mr);
	ft_swap(&w->ft, !w->base.rank, mine, theirs, sizeof(mine));
	w->there = theirs[0];
	w->key = theirs[1];
}

/* Limits the sizes to the longest call of the channel. */
static void sizes_limit(struct wire *w, struct bench_conf *conf)
{
	struct fi_copyrpc_limits limits;
	int cnt = 0, ret;

	while ((ret = fi_copyrpc_query(w->rpc, w->fab.ep, w->fab.addr[!w->base.rank], &limits)) ==
	       -FI_EAGAIN)
		progress(w);
	FT_OK(ret);
	ft_sync(&w->ft);
	for (int i = 0; i < conf->size_cnt; i++) {
		if (conf->sizes[i] <= limits.max_request && conf->sizes[i] <= limits.max_response)
			conf->sizes[cnt++] = conf->sizes[i];
	}
	conf->size_cnt = cnt;
}

static void wire_open(struct wire *w, struct bench_conf *conf)
{
	static const uint64_t caps[MODES] = { FI_MSG, FI_TAGGED, FI_MSG, FI_RMA | FI_MSG, FI_MSG };
	struct ft_want want = {
		.caps = caps[w->mode],
		.threading = FI_THREAD_DOMAIN,
		.counters = w->mode == CNTR,
		.selective_tx = w->mode == CNTR,
		.selective_rx = w->mode == CNTR,
	};
	size_t size = bench_conf_max_size(conf);

	ft_fab_open(&w->fab, &w->ft, &want);
	w->base.name = w->fab.info->fabric_attr->prov_name;
	w->base.tx = memory(size);
	w->base.rx = memory(size);
	w->window = conf->window;
	w->contexts = (struct fi_context2 *)memory(2 * sizeof(*w->contexts) * (size_t)w->window);
	w->base.pingpong = wire_pingpong;
	w->base.stream = wire_stream;
	w->base.exchange = wire_exchange;
	w->base.agree = wire_agree;
	w->base.sum = wire_sum;
	if (w->mode == RMA)
		region_open(w, size);
	if (w->mode == RPC) {
		if (fi_copyrpc_open(&w->fab.ep->fid, &w->rpc))
			ft_notrun("no calls");
		sizes_limit(w, conf);
	}
}

static void wire_close(struct wire *w)
{
	ft_sync(&w->ft);
	if (w->mr)
		FT_CLOSE(w->mr);
	ft_fab_close(&w->fab);
	free(w->base.tx);
	free(w->base.rx);
	free(w->contexts);
}

static void rank_run(int rank, int sock, struct bench_conf *conf, const struct ft_opts *opts,
		     enum mode mode)
{
	static const struct ft_case self = { .name = "crpc_bench" };
	struct wire w = { .base.rank = rank, .mode = mode };

	w.ft = (struct ft){
		.opts = opts, .test = &self, .rank = rank, .procs = 2, .started = ft_now()
	};
	for (int i = 0; i < FT_PROCS_MAX; i++)
		w.ft.sock[i] = i == !rank ? sock : -1;
	ft_proc_begin(&w.ft);
	wire_open(&w, conf);
	bench_run(conf, &w.base);
	wire_close(&w);
}

static const char usage_text[] =
	"usage: crpc_bench [option]...\n"
	"  -m MODE       msg, tagged, cntr, rma or rpc (tagged)\n"
	"  -e TYPE       endpoints: rdm or msg (rdm)\n"
	"  -p PROVIDER   as in FI_PROVIDER (copyrpc)\n"
	"  -a ADDRESS    of both ends (127.0.0.1); any: what the provider chooses\n"
	"  -U            FI_DELIVERY_COMPLETE\n" BENCH_USAGE "  -h            this text\n";

static int usage(void)
{
	fputs(usage_text, stderr);
	return 2;
}

static int mode_take(const char *arg, enum mode *mode)
{
	for (int i = 0; i < MODES; i++) {
		if (strcmp(arg, mode_names[i]))
			continue;
		*mode = (enum mode)i;
		return 0;
	}
	return -1;
}

int main(int argc, char **argv)
{
	enum mode mode = TAGGED;
	struct bench_conf conf;
	struct ft_opts opts;
	int letter, socks[2];
	pid_t child;

	bench_conf_init(&conf);
	ft_opts_init(&opts);
	while ((letter = getopt(argc, argv, BENCH_OPTIONS "m:e:p:a:Uh")) != -1) {
		if (letter == 'h') {
			fputs(usage_text, stdout);
			bench_conf_free(&conf);
			return EXIT_SUCCESS;
		}
		if (letter == 'm'           ? mode_take(optarg, &mode)
		    : strchr("epU", letter) ? ft_opts_take(&opts, letter, optarg)
		    : letter == 'a'         ? ft_opts_take(&opts, 's', optarg)
					    : bench_conf_option(&conf, letter, optarg))
			return usage();
	}
	if (optind != argc || socketpair(AF_UNIX, SOCK_STREAM, 0, socks))
		return usage();
	child = bench_fork();
	if (child < 0)
		return EXIT_FAILURE;
	rank_run(child == 0, socks[child == 0], &conf, &opts, mode);
	if (child)
		bench_join(child);
	bench_conf_free(&conf);
	return EXIT_SUCCESS;
}
