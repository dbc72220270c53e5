/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Stress test of one domain used by many threads through libfabric: lock, wait objects, progress
 * thread and event queue.
 *
 * Two endpoints under FI_THREAD_SAFE and FI_PROGRESS_AUTO. Per direction one thread sends and one
 * receives; the receivers sleep in fi_cq_sread and fi_cntr_wait. Other threads insert and remove
 * addresses, signal queues, and read the event queue that the vector is bound to. Every message
 * arrives once, in order, with its bytes. The suite builds the test with TSan.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>
#include <rdma/providers/fi_prov.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ofi/cpr_prov.h"
#include "support/check.h"
#include "util/fi_old.h"

#define MSGS    20000
#define TAG     7
#define LEN_MAX 20000

struct side {
	struct fid_ep *ep;
	struct fid_cq *tx_cq;
	struct fid_cq *rx_cq;
	struct fid_cntr *rx_cntr;
	fi_addr_t addr;
	struct side *other;
};

static struct fi_info *info;
static struct fid_fabric *fabric;
static struct fid_domain *domain;
static struct fid_av *av;
static struct fid_eq *eq;
static struct side sides[2];
static bool done; /* atomic */

/* Returns a length on either side of the eager limit, the same for sender and receiver. */
static size_t len_of(uint32_t n)
{
	return n % 64 ? n % 400 : LEN_MAX - n % 1000;
}

static struct fid_cq *open_cq(void)
{
	struct fi_cq_attr attr = { .format = FI_CQ_FORMAT_TAGGED, .wait_obj = FI_WAIT_UNSPEC };
	struct fid_cq *cq;

	CHECK(!fi_cq_open(domain, &attr, &cq, NULL));
	return cq;
}

static void open_side(struct side *side)
{
	struct fi_cntr_attr attr = { .wait_obj = FI_WAIT_UNSPEC };

	side->tx_cq = open_cq();
	side->rx_cq = open_cq();
	CHECK(!fi_cntr_open(domain, &attr, &side->rx_cntr, NULL));
	CHECK(!fi_endpoint(domain, info, &side->ep, NULL));
	CHECK(!fi_ep_bind(side->ep, &av->fid, 0));
	CHECK(!fi_ep_bind(side->ep, &side->tx_cq->fid, FI_TRANSMIT));
	CHECK(!fi_ep_bind(side->ep, &side->rx_cq->fid, FI_RECV));
	CHECK(!fi_ep_bind(side->ep, &side->rx_cntr->fid, FI_RECV));
	CHECK(!fi_enable(side->ep));
}

/* Inserts an address and waits for the event of this insertion. */
static fi_addr_t insert(const struct sockaddr_in *sin)
{
	fi_addr_t addr = FI_ADDR_NOTAVAIL;

	CHECK(!fi_av_insert(av, sin, 1, &addr, 0, NULL));
	CHECK(addr != FI_ADDR_NOTAVAIL);
	return addr;
}

static void name_side(struct side *side)
{
	struct sockaddr_in sin;
	size_t len = sizeof(sin);

	CHECK(!fi_getname(&side->ep->fid, &sin, &len));
	side->addr = insert(&sin);
}

static void open_domain(void)
{
	struct fi_provider *prov = fi_prov_ini();
	struct fi_info *hints = fi_allocinfo();
	struct fi_av_attr av_attr = { .flags = FI_EVENT };
	struct fi_eq_attr eq_attr = { .wait_obj = FI_WAIT_UNSPEC };

	hints->domain_attr->threading = FI_THREAD_SAFE;
	hints->domain_attr->data_progress = FI_PROGRESS_AUTO;
	CHECK(!prov->getinfo(FI_VERSION(1, 17), "127.0.0.1", NULL, FI_SOURCE, hints, &info));
	fi_freeinfo(hints);
	CHECK(!prov->fabric(info->fabric_attr, &fabric, NULL));
	CHECK(!fi_domain(fabric, info, &domain, NULL));
	CHECK(!fi_eq_open(fabric, &eq_attr, &eq, NULL));
	CHECK(!fi_av_open(domain, &av_attr, &av, NULL));
	CHECK(!fi_av_bind(av, &eq->fid, 0));
	open_side(&sides[0]);
	open_side(&sides[1]);
	name_side(&sides[0]);
	name_side(&sides[1]);
	sides[0].other = &sides[1];
	sides[1].other = &sides[0];
}

static void *run_sender(void *arg)
{
	struct side *side = arg;
	struct fi_cq_tagged_entry e;
	uint8_t *buf = malloc(LEN_MAX);
	ssize_t ret;
	uint32_t n;

	for (n = 0; n < MSGS; n++) {
		memset(buf, (int)(n & 0xFF), len_of(n));
		while ((ret = fi_tsenddata(side->ep, buf, len_of(n), NULL, n, side->other->addr,
					   TAG, buf)) == -FI_EAGAIN)
			;
		CHECK(!ret);
		while ((ret = fi_cq_sread(side->tx_cq, &e, 1, NULL, -1)) == -FI_EAGAIN)
			; /* a signal */
		CHECK(ret == 1 && e.op_context == buf);
	}
	free(buf);
	return NULL;
}

static void *run_receiver(void *arg)
{
	struct side *side = arg;
	struct fi_cq_tagged_entry e;
	uint8_t *buf = malloc(LEN_MAX);
	ssize_t ret;
	uint32_t n;

	for (n = 0; n < MSGS; n++) {
		CHECK(!fi_trecv(side->ep, buf, LEN_MAX, NULL, side->other->addr, TAG, 0, buf));
		if (n % 16 == 0)
			CHECK(!fi_cntr_wait(side->rx_cntr, n + 1, -1));
		while ((ret = fi_cq_sread(side->rx_cq, &e, 1, NULL, -1)) == -FI_EAGAIN)
			;
		CHECK(ret == 1 && e.data == n && e.len == len_of(n));
		CHECK(!e.len || (buf[0] == (n & 0xFF) && buf[e.len - 1] == (n & 0xFF)));
	}
	free(buf);
	return NULL;
}

static bool is_done(void)
{
	return __atomic_load_n(&done, __ATOMIC_ACQUIRE);
}

static void *run_inserter(void *arg)
{
	struct sockaddr_in sin = { .sin_family = AF_INET, .sin_port = htons(1) };
	uint32_t n = 0;
	fi_addr_t addr;

	while (!is_done()) {
		sin.sin_addr.s_addr = htonl(0x0A000000 + ++n % 1000);
		addr = insert(&sin);
		CHECK(!fi_av_remove(av, &addr, 1, 0));
	}
	return NULL;
}

static void *run_event_reader(void *arg)
{
	struct fi_eq_entry e;
	uint32_t event;
	ssize_t ret;

	while (!is_done()) {
		ret = fi_eq_sread(eq, &event, &e, sizeof(e), 1, 0);
		CHECK(ret == -FI_EAGAIN || (ret == sizeof(e) && event == FI_AV_COMPLETE));
	}
	return NULL;
}

static void *run_signaller(void *arg)
{
	struct timespec pause = { .tv_nsec = 1000000 };

	while (!is_done()) {
		CHECK(!fi_cq_signal(sides[0].rx_cq));
		CHECK(!fi_cq_signal(sides[1].tx_cq));
		nanosleep(&pause, NULL);
	}
	return NULL;
}

static void close_side(struct side *side)
{
	CHECK(!fi_close(&side->ep->fid));
	CHECK(!fi_close(&side->rx_cntr->fid));
	CHECK(!fi_close(&side->rx_cq->fid));
	CHECK(!fi_close(&side->tx_cq->fid));
}

static void close_domain(void)
{
	close_side(&sides[0]);
	close_side(&sides[1]);
	CHECK(!fi_close(&av->fid));
	CHECK(!fi_close(&eq->fid));
	CHECK(!fi_close(&domain->fid));
	CHECK(!fi_close(&fabric->fid));
	fi_freeinfo(info);
}

int main(void)
{
	pthread_t traffic[4], others[3];
	int i;

	open_domain();
	for (i = 0; i < 2; i++) {
		pthread_create(&traffic[2 * i], NULL, run_sender, &sides[i]);
		pthread_create(&traffic[2 * i + 1], NULL, run_receiver, &sides[i]);
	}
	pthread_create(&others[0], NULL, run_inserter, NULL);
	pthread_create(&others[1], NULL, run_event_reader, NULL);
	pthread_create(&others[2], NULL, run_signaller, NULL);
	for (i = 0; i < 4; i++)
		pthread_join(traffic[i], NULL);
	__atomic_store_n(&done, true, __ATOMIC_RELEASE);
	for (i = 0; i < 3; i++)
		pthread_join(others[i], NULL);
	close_domain();
	printf("stress_ofi: %u messages each way, by seven threads and the progress thread\n",
	       MSGS);
	return 0;
}
