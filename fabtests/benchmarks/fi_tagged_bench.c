/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Speed of a libfabric provider between two processes of one host. Takes any provider by name,
 * through fi_tagged (or fi_msg with -m msg): the same shapes as mpi_bench, without MPI.
 *
 * The program forks: the parent is rank 0, the child rank 1. Each opens its own endpoint
 * (FI_EP_RDM, one CQ for both directions) after the fork; addresses, agreement and sums go over a
 * socket pair. Messages up to the provider's inject size are injected, unless -N requests a
 * completion of every send, as MPI_Isend does. Where the provider supports it, every message
 * carries CQ data, as Open MPI's do, and the receiver checks it.
 */
#include "bench.h"

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define TAG_DATA     1
#define TAG_ACK      2
#define CQ_DATA      0x2a
#define CQ_BATCH     32
#define NAME_MAX_LEN 256

struct lf_options {
	const char *provider, *address;
	bool msg, no_inject, no_data, directed;
};

/*
 * Operation in flight. The context is the first member, because the provider returns its address.
 */
struct lf_op {
	struct fi_context2 context;
	bool receive;
};

struct lf_wire {
	struct bench_wire base;
	const struct lf_options *options;
	int sock;              /* to the other rank */
	unsigned long op_mask; /* operations each way, less one: a power of two */
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;
	struct fid_mr *tx_mr, *rx_mr;
	void *tx_desc, *rx_desc;
	fi_addr_t peer, source; /* destination and source */
	struct lf_op *tx_ops, *rx_ops;
	size_t inject_size;
	bool data;
	unsigned long tx_posted, tx_done, rx_posted, rx_done;
};

static void die(const char *what, long err)
{
	fprintf(stderr, "fi_tagged_bench: %s: %s\n", what, fi_strerror((int)-err));
	exit(EXIT_FAILURE);
}

static void must(const char *what, long err)
{
	if (err)
		die(what, err);
}

/* ---- completions ---- */

static void completion_take(struct lf_wire *wire, const struct fi_cq_tagged_entry *entry)
{
	const struct lf_op *op = entry->op_context;

	if (!op->receive) {
		wire->tx_done++;
		return;
	}
	wire->rx_done++;
	if (wire->data && (!(entry->flags & FI_REMOTE_CQ_DATA) || entry->data != CQ_DATA))
		die("a message came without its CQ data", -FI_EIO);
}

static void error_report(struct lf_wire *wire)
{
	struct fi_cq_err_entry error = { 0 };
	ssize_t ret = fi_cq_readerr(wire->cq, &error, 0);

	die("completion with an error", ret < 0 ? ret : -error.err);
}

static void progress(struct lf_wire *wire)
{
	struct fi_cq_tagged_entry entries[CQ_BATCH];
	ssize_t count = fi_cq_read(wire->cq, entries, CQ_BATCH);

	if (count == -FI_EAVAIL)
		error_report(wire);
	if (count < 0 && count != -FI_EAGAIN)
		die("fi_cq_read", count);
	for (ssize_t i = 0; i < count; i++)
		completion_take(wire, &entries[i]);
}

static void wait_tx(struct lf_wire *wire)
{
	while (wire->tx_done < wire->tx_posted)
		progress(wire);
}

static void wait_rx(struct lf_wire *wire)
{
	while (wire->rx_done < wire->rx_posted)
		progress(wire);
}

/* ---- posting ---- */

/* Retries the call, with progress between, as long as the provider has no room. */
#define POST(wire, call)                                                                           \
	do {                                                                                       \
		ssize_t post_ret;                                                                  \
		while ((post_ret = (call)) == -FI_EAGAIN)                                          \
			progress(wire);                                                            \
		must(#call, post_ret);                                                             \
	} while (0)

static void send_injected(struct lf_wire *wire, size_t size, uint64_t tag)
{
	const char *buf = wire->base.tx;

	if (wire->options->msg && wire->data)
		POST(wire, fi_injectdata(wire->ep, buf, size, CQ_DATA, wire->peer));
	else if (wire->options->msg)
		POST(wire, fi_inject(wire->ep, buf, size, wire->peer));
	else if (wire->data)
		POST(wire, fi_tinjectdata(wire->ep, buf, size, CQ_DATA, wire->peer, tag));
	else
		POST(wire, fi_tinject(wire->ep, buf, size, wire->peer, tag));
}

static void send_completed(struct lf_wire *wire, size_t size, uint64_t tag)
{
	const char *buf = wire->base.tx;
	void *desc = wire->tx_desc, *op = &wire->tx_ops[wire->tx_posted & wire->op_mask];

	if (wire->options->msg && wire->data)
		POST(wire, fi_senddata(wire->ep, buf, size, desc, CQ_DATA, wire->peer, op));
	else if (wire->options->msg)
		POST(wire, fi_send(wire->ep, buf, size, desc, wire->peer, op));
	else if (wire->data)
		POST(wire, fi_tsenddata(wire->ep, buf, size, desc, CQ_DATA, wire->peer, tag, op));
	else
		POST(wire, fi_tsend(wire->ep, buf, size, desc, wire->peer, tag, op));
	wire->tx_posted++;
}

static void send_post(struct lf_wire *wire, size_t size, uint64_t tag)
{
	if (size <= wire->inject_size)
		send_injected(wire, size, tag);
	else
		send_completed(wire, size, tag);
}

static void recv_post(struct lf_wire *wire, size_t size, uint64_t tag)
{
	void *buf = wire->base.rx, *desc = wire->rx_desc;
	void *op = &wire->rx_ops[wire->rx_posted & wire->op_mask];

	if (wire->options->msg)
		POST(wire, fi_recv(wire->ep, buf, size, desc, wire->source, op));
	else
		POST(wire, fi_trecv(wire->ep, buf, size, desc, wire->source, tag, 0, op));
	wire->rx_posted++;
}

/* ---- operations of the driver ---- */

static void lf_pingpong(struct bench_wire *base, size_t size, long rounds)
{
	struct lf_wire *wire = (struct lf_wire *)base;

	for (long i = 0; i < rounds; i++) {
		recv_post(wire, size, TAG_DATA);
		if (base->rank == 1)
			wait_rx(wire);
		send_post(wire, size, TAG_DATA);
		if (base->rank == 0)
			wait_rx(wire);
		wait_tx(wire);
	}
}

static void lf_stream(struct bench_wire *base, size_t size, int window, long rounds)
{
	struct lf_wire *wire = (struct lf_wire *)base;

	for (long i = 0; i < rounds; i++) {
		if (base->rank == 0) {
			for (int n = 0; n < window; n++)
				send_post(wire, size, TAG_DATA);
			wait_tx(wire);
			recv_post(wire, sizeof(int), TAG_ACK);
			wait_rx(wire);
		} else {
			for (int n = 0; n < window; n++)
				recv_post(wire, size, TAG_DATA);
			wait_rx(wire);
			send_post(wire, sizeof(int), TAG_ACK);
			wait_tx(wire);
		}
	}
}

static void lf_exchange(struct bench_wire *base, size_t size, int window, long rounds)
{
	struct lf_wire *wire = (struct lf_wire *)base;

	for (long i = 0; i < rounds; i++) {
		for (int n = 0; n < window; n++)
			recv_post(wire, size, TAG_DATA);
		for (int n = 0; n < window; n++)
			send_post(wire, size, TAG_DATA);
		wait_tx(wire);
		wait_rx(wire);
	}
}

/* Exchanges blocks of the same length between the ranks. */
static void swap_blocks(int sock, const void *mine, void *theirs, size_t len)
{
	if (send(sock, mine, len, MSG_NOSIGNAL) != (ssize_t)len ||
	    recv(sock, theirs, len, MSG_WAITALL) != (ssize_t)len)
		die("the other rank is gone", -FI_ECONNRESET);
}

static long lf_agree(struct bench_wire *base, long value)
{
	long other;

	swap_blocks(((struct lf_wire *)base)->sock, &value, &other, sizeof(value));
	return base->rank == 0 ? value : other;
}

static uint64_t lf_sum(struct bench_wire *base, uint64_t value)
{
	uint64_t other;

	swap_blocks(((struct lf_wire *)base)->sock, &value, &other, sizeof(value));
	return value + other;
}

/* ---- an endpoint ---- */

static struct fi_info *hints_make(const struct lf_options *options)
{
	struct fi_info *hints = fi_allocinfo();

	if (!hints)
		die("fi_allocinfo", -FI_ENOMEM);
	hints->ep_attr->type = FI_EP_RDM;
	hints->caps =
		(options->msg ? FI_MSG : FI_TAGGED) | (options->directed ? FI_DIRECTED_RECV : 0);
	hints->mode = FI_CONTEXT | FI_CONTEXT2;
	hints->tx_attr->msg_order = FI_ORDER_SAS;
	hints->rx_attr->msg_order = FI_ORDER_SAS;
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	hints->domain_attr->mr_mode =
		FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
	hints->fabric_attr->prov_name = strdup(options->provider);
	return hints;
}

static void info_get(struct lf_wire *wire)
{
	const struct lf_options *options = wire->options;
	struct fi_info *hints = hints_make(options);
	uint32_t version = FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION);
	int err = fi_getinfo(version, options->address, NULL, options->address ? FI_SOURCE : 0,
			     hints, &wire->info);

	if (err) {
		fprintf(stderr, "fi_tagged_bench: provider %s: ", options->provider);
		die("fi_getinfo", err);
	}
	fi_freeinfo(hints);
	wire->base.name = wire->info->fabric_attr->prov_name;
	wire->data = !options->no_data && wire->info->domain_attr->cq_data_size >= sizeof(uint32_t);
	wire->inject_size = options->no_inject ? 0 : wire->info->tx_attr->inject_size;
}

static void endpoint_open(struct lf_wire *wire)
{
	struct fi_av_attr av_attr = { .type = wire->info->domain_attr->av_type, .count = 2 };
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_TAGGED, .wait_obj = FI_WAIT_NONE };

	cq_attr.size = 2 * (wire->op_mask + 1);
	must("fi_fabric", fi_fabric(wire->info->fabric_attr, &wire->fabric, NULL));
	must("fi_domain", fi_domain(wire->fabric, wire->info, &wire->domain, NULL));
	must("fi_av_open", fi_av_open(wire->domain, &av_attr, &wire->av, NULL));
	must("fi_cq_open", fi_cq_open(wire->domain, &cq_attr, &wire->cq, NULL));
	must("fi_endpoint", fi_endpoint(wire->domain, wire->info, &wire->ep, NULL));
	must("fi_ep_bind av", fi_ep_bind(wire->ep, &wire->av->fid, 0));
	must("fi_ep_bind cq", fi_ep_bind(wire->ep, &wire->cq->fid, FI_TRANSMIT | FI_RECV));
	must("fi_enable", fi_enable(wire->ep));
}

static void memory_register(struct lf_wire *wire, size_t size)
{
	if (!(wire->info->domain_attr->mr_mode & FI_MR_LOCAL))
		return;
	must("fi_mr_reg",
	     fi_mr_reg(wire->domain, wire->base.tx, size, FI_SEND, 0, 1, 0, &wire->tx_mr, NULL));
	must("fi_mr_reg",
	     fi_mr_reg(wire->domain, wire->base.rx, size, FI_RECV, 0, 2, 0, &wire->rx_mr, NULL));
	wire->tx_desc = fi_mr_desc(wire->tx_mr);
	wire->rx_desc = fi_mr_desc(wire->rx_mr);
}

static void peer_insert(struct lf_wire *wire)
{
	char mine[NAME_MAX_LEN] = { 0 }, theirs[NAME_MAX_LEN];
	size_t len = sizeof(mine);

	must("fi_getname", fi_getname(&wire->ep->fid, mine, &len));
	swap_blocks(wire->sock, mine, theirs, sizeof(mine));
	if (fi_av_insert(wire->av, theirs, 1, &wire->peer, 0, NULL) != 1)
		die("fi_av_insert", -FI_EADDRNOTAVAIL);
	wire->source = wire->options->directed ? wire->peer : FI_ADDR_UNSPEC;
}

static void *zeroed_alloc(size_t size)
{
	void *memory = NULL;

	if (posix_memalign(&memory, 4096, size))
		die("memory", -FI_ENOMEM);
	memset(memory, 0, size);
	return memory;
}

static void ops_alloc(struct lf_wire *wire, int window)
{
	unsigned long cnt = 1;

	while (cnt < (unsigned long)window)
		cnt *= 2;
	wire->op_mask = cnt - 1;
	wire->tx_ops = zeroed_alloc(cnt * sizeof(*wire->tx_ops));
	wire->rx_ops = zeroed_alloc(cnt * sizeof(*wire->rx_ops));
	for (unsigned long i = 0; i < cnt; i++)
		wire->rx_ops[i].receive = true;
}

static void wire_open(struct lf_wire *wire, const struct bench_conf *conf)
{
	size_t size = bench_conf_max_size(conf);

	wire->base.tx = zeroed_alloc(size);
	wire->base.rx = zeroed_alloc(size);
	wire->base.pingpong = lf_pingpong;
	wire->base.stream = lf_stream;
	wire->base.exchange = lf_exchange;
	wire->base.agree = lf_agree;
	wire->base.sum = lf_sum;
	ops_alloc(wire, conf->window);
	info_get(wire);
	endpoint_open(wire);
	memory_register(wire, size);
	peer_insert(wire);
}

static void close_fid(const char *what, struct fid *fid)
{
	must(what, fi_close(fid));
}

static void wire_close(struct lf_wire *wire)
{
	close_fid("fi_close ep", &wire->ep->fid);
	if (wire->tx_mr) {
		close_fid("fi_close mr", &wire->tx_mr->fid);
		close_fid("fi_close mr", &wire->rx_mr->fid);
	}
	close_fid("fi_close cq", &wire->cq->fid);
	close_fid("fi_close av", &wire->av->fid);
	close_fid("fi_close domain", &wire->domain->fid);
	close_fid("fi_close fabric", &wire->fabric->fid);
	fi_freeinfo(wire->info);
	free(wire->base.tx);
	free(wire->base.rx);
	free(wire->tx_ops);
	free(wire->rx_ops);
}

/* ---- two processes ---- */

static void rank_run(int rank, int sock, const struct bench_conf *conf,
		     const struct lf_options *options)
{
	struct lf_wire wire = { .base.rank = rank, .sock = sock, .options = options };
	uint64_t start = bench_now_ns();

	wire_open(&wire, conf);
	bench_report_value(conf, &wire.base, "init", 0, "ms",
			   (double)(bench_now_ns() - start) / 1e6);
	lf_agree(&wire.base, 0);
	start = bench_now_ns();
	lf_pingpong(&wire.base, 8, 1);
	bench_report_value(conf, &wire.base, "first", 0, "us",
			   (double)(bench_now_ns() - start) / 1e3);
	bench_run(conf, &wire.base);
	lf_agree(&wire.base, 0);
	wire_close(&wire);
}

static int ranks_run(const struct bench_conf *conf, const struct lf_options *options)
{
	int socks[2];
	pid_t child;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, socks))
		die("socketpair", -FI_EIO);
	child = bench_fork();
	if (child < 0)
		die("fork", -FI_ENOMEM);
	if (child == 0) {
		close(socks[0]);
		rank_run(1, socks[1], conf, options);
		exit(EXIT_SUCCESS);
	}
	close(socks[1]);
	rank_run(0, socks[0], conf, options);
	bench_join(child);
	return EXIT_SUCCESS;
}

static void usage(void)
{
	fprintf(stderr,
		"usage: fi_tagged_bench -p PROVIDER [options]\n"
		"  -p NAME       provider, as in FI_PROVIDER (copyrpc)\n"
		"  -m MODE       tagged or msg (tagged)\n"
		"  -a ADDRESS    local address of both endpoints\n"
		"  -N            never inject: every send has a completion\n"
		"  -D            no CQ data\n"
		"  -S            receive from the peer by name (FI_DIRECTED_RECV)\n" BENCH_USAGE);
	exit(EXIT_FAILURE);
}

static int option_take(struct lf_options *options, int opt, const char *arg)
{
	switch (opt) {
	case 'p': options->provider = arg; return 0;
	case 'a': options->address = arg; return 0;
	case 'm':
		options->msg = !strcmp(arg, "msg");
		return options->msg ? 0 : strcmp(arg, "tagged");
	case 'N': options->no_inject = true; return 0;
	case 'D': options->no_data = true; return 0;
	case 'S': options->directed = true; return 0;
	}
	return -1;
}

int main(int argc, char **argv)
{
	struct lf_options options = { .provider = "copyrpc" };
	struct bench_conf conf;
	int opt, ret;

	bench_conf_init(&conf);
	while ((opt = getopt(argc, argv, BENCH_OPTIONS "p:m:a:NDSh")) != -1) {
		if (option_take(&options, opt, optarg) && bench_conf_option(&conf, opt, optarg))
			usage();
	}
	if (optind != argc)
		usage();
	ret = ranks_run(&conf, &options);
	bench_conf_free(&conf);
	return ret;
}
