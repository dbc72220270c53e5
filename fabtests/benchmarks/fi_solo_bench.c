/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Nanoseconds of one processor that a message takes, at both ends together.
 *
 * Two endpoints of one domain in one thread: the program posts receives, injects as many tagged
 * messages with CQ data from one to the other, and reads the completions. No cache line changes
 * cores and no thread waits, so the minimum of many short samples is the same on a machine that is
 * busy with other work. The figure is the cost of the instructions, stalls included, and excludes
 * the way between two cores: use it to judge a change of the code, and for nothing else.
 *
 * usage: fi_solo_bench [-p PROVIDER] [-s BYTES] [-n SAMPLES] [WINDOW...]  (1 and 64)
 */
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define WINDOW_MAX 1024
#define SAMPLE_OPS 1024 /* messages in a sample, or one window */
#define NAME_LEN   256
#define TAG        1

static const char *provider = "copyrpc";
static size_t len = 8;
static int samples = 3000;
static long received; /* messages of the window */

static struct fid_domain *domain;
static struct fid_av *av;
static struct fid_cq *cq;
static struct fid_ep *ep[2];
static fi_addr_t addr[2];
static struct fi_info *info;
static struct fi_context2 contexts[WINDOW_MAX];
static char in[4096], out[4096];

static void must(long ret, const char *what)
{
	if (ret >= 0)
		return;
	fprintf(stderr, "fi_solo_bench: %s: %s\n", what, fi_strerror((int)-ret));
	exit(1);
}

static struct fi_info *find(void)
{
	struct fi_info *hints = fi_allocinfo(), *found;

	must(hints ? 0 : -FI_ENOMEM, "fi_allocinfo");
	hints->ep_attr->type = FI_EP_RDM;
	hints->caps = FI_TAGGED | FI_DIRECTED_RECV;
	hints->mode = FI_CONTEXT | FI_CONTEXT2;
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	hints->tx_attr->msg_order = FI_ORDER_SAS;
	hints->rx_attr->msg_order = FI_ORDER_SAS;
	hints->fabric_attr->prov_name = strdup(provider);
	must(fi_getinfo(FI_VERSION(1, 17), "127.0.0.1", NULL, FI_SOURCE, hints, &found), provider);
	fi_freeinfo(hints);
	return found;
}

static void open_ep(int i)
{
	char name[NAME_LEN];
	size_t name_len = sizeof(name);

	must(fi_endpoint(domain, info, &ep[i], NULL), "fi_endpoint");
	must(fi_ep_bind(ep[i], &av->fid, 0), "fi_ep_bind");
	must(fi_ep_bind(ep[i], &cq->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind");
	must(fi_enable(ep[i]), "fi_enable");
	must(fi_getname(&ep[i]->fid, name, &name_len), "fi_getname");
	must(fi_av_insert(av, name, 1, &addr[i], 0, NULL) == 1 ? 0 : -FI_EINVAL, "fi_av_insert");
}

static void open_all(void)
{
	struct fi_av_attr av_attr = { .type = FI_AV_TABLE };
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_TAGGED };
	struct fid_fabric *fabric;

	info = find();
	must(info->tx_attr->inject_size >= len ? 0 : -FI_EMSGSIZE, "the size cannot be injected");
	must(fi_fabric(info->fabric_attr, &fabric, NULL), "fi_fabric");
	must(fi_domain(fabric, info, &domain, NULL), "fi_domain");
	must(fi_av_open(domain, &av_attr, &av, NULL), "fi_av_open");
	must(fi_cq_open(domain, &cq_attr, &cq, NULL), "fi_cq_open");
	open_ep(0);
	open_ep(1);
}

static void take(void)
{
	struct fi_cq_tagged_entry entries[64];
	long ret = fi_cq_read(cq, entries, 64);

	if (ret == -FI_EAGAIN)
		return;
	must(ret, "fi_cq_read");
	received += ret;
}

/*
 * Sends one message. While the connection is pending or the ring full, it makes progress and
 * retries.
 */
static void send_one(void)
{
	long ret;

	while ((ret = fi_tinjectdata(ep[0], out, len, 42, addr[1], TAG)) == -FI_EAGAIN)
		take();
	must(ret, "fi_tinjectdata");
}

static void run_window(int window)
{
	int i;

	received = 0;
	for (i = 0; i < window; i++)
		must(fi_trecv(ep[1], in, len, NULL, addr[0], TAG, 0, &contexts[i]), "fi_trecv");
	for (i = 0; i < window; i++)
		send_one();
	while (received < window)
		take();
}

static double now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

static void measure(int window)
{
	int rounds = window < SAMPLE_OPS ? SAMPLE_OPS / window : 1, s, i;
	double best = 0, t;

	must(window > 0 && window <= WINDOW_MAX ? 0 : -FI_EINVAL, "window");
	for (s = 0; s <= samples; s++) { /* The first sample connects */
		t = now_ns();
		for (i = 0; i < rounds; i++)
			run_window(window);
		t = (now_ns() - t) / (rounds * window);
		if (s == 1 || t < best)
			best = t;
	}
	printf("%-10s %6zu %8d %10.2f\n", provider, len, window, best);
}

int main(int argc, char **argv)
{
	int opt, i;

	while ((opt = getopt(argc, argv, "p:s:n:")) != -1) {
		switch (opt) {
		case 'p': provider = optarg; break;
		case 's': len = strtoul(optarg, NULL, 0); break;
		case 'n': samples = atoi(optarg); break;
		default: return 2;
		}
	}
	if (len > sizeof(in) || samples < 1)
		return 2;
	open_all();
	printf("# provider    size   window ns/message, both ends in one thread, least of %d\n",
	       samples);
	for (i = optind; i < argc; i++)
		measure(atoi(argv[i]));
	if (optind == argc) {
		measure(1);
		measure(64);
	}
	return 0;
}
