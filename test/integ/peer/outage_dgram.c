/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Bare datagrams through an outage of the device, for the script `outage`: one process with two
 * endpoints, of which one sends to the other without a pause.
 *
 * usage: outage_dgram {down, fails} SECONDS
 *
 * down: the port goes down and comes back. No operation fails, and datagrams arrive at the end, by
 * the same addresses. fails: the device fails and comes back. The posted receives end with FI_EIO,
 * calls return errors until the device is back, and then the endpoints have other addresses, by
 * which datagrams arrive. Between sends the process sleeps on its queue.
 */
#include <stdint.h>
#include <unistd.h>

#include "integ/fab.h"

#define RECEIVES 16
#define ARRIVALS 20u  /* after the outage */
#define PATIENCE 20.0 /* seconds, on a busy machine */
#define LEN      1000u
#define ADDR_LEN 32u

struct end {
	struct fid_ep *ep;
	uint8_t name[ADDR_LEN];
};

static struct fab fab;
static struct end ends[2]; /* the sender, the receiver */
static fi_addr_t to;
static uint8_t out[LEN], in[RECEIVES][LEN];
static bool posted[RECEIVES];
static unsigned long sent, arrived, failed_receives, refused, renamed;

static void read_name(struct end *end, uint8_t *name)
{
	size_t len = ADDR_LEN;

	FAB_CHECK(fi_getname(&end->ep->fid, name, &len));
	FAB_TRUE(len == ADDR_LEN);
}

static void open_end(struct end *end)
{
	FAB_CHECK(fi_endpoint(fab.domain, fab.info, &end->ep, NULL));
	FAB_CHECK(fi_ep_bind(end->ep, &fab.av->fid, 0));
	FAB_CHECK(fi_ep_bind(end->ep, &fab.cq->fid, FI_TRANSMIT | FI_RECV));
	FAB_CHECK(fi_enable(end->ep));
	read_name(end, end->name);
}

static void open_all(void)
{
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_MSG, .wait_obj = FI_WAIT_UNSPEC };
	struct fi_av_attr av_attr = { .type = FI_AV_TABLE };
	struct fi_info *hints = fi_allocinfo();

	FAB_TRUE(hints);
	hints->caps = FI_MSG;
	hints->ep_attr->type = FI_EP_DGRAM;
	hints->addr_format = FI_ADDR_IB_UD;
	FAB_CHECK(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &fab.info));
	fi_freeinfo(hints);
	FAB_CHECK(fi_fabric(fab.info->fabric_attr, &fab.fabric, NULL));
	FAB_CHECK(fi_domain(fab.fabric, fab.info, &fab.domain, NULL));
	FAB_CHECK(fi_av_open(fab.domain, &av_attr, &fab.av, NULL));
	FAB_CHECK(fi_cq_open(fab.domain, &cq_attr, &fab.cq, NULL));
	open_end(&ends[0]);
	open_end(&ends[1]);
	FAB_TRUE(fi_av_insert(fab.av, ends[1].name, 1, &to, 0, NULL) == 1);
}

static void post(unsigned i)
{
	ssize_t ret = fi_recv(ends[1].ep, in[i], LEN, NULL, FI_ADDR_UNSPEC, &posted[i]);

	posted[i] = !ret;
	refused += ret && ret != -FI_EAGAIN;
}

/** Handles the end of a receive. Ends of sends have no context. */
static void ended(bool *which, int err)
{
	if (!which)
		return;
	FAB_TRUE(*which); /* each receive ends once */
	*which = false;
	FAB_TRUE(!err || err == FI_EIO);
	if (err)
		failed_receives++;
	else
		arrived++;
}

/** Handles the result of a read of the queue. Returns false if that was empty. */
static bool handle(ssize_t ret, const struct fi_cq_msg_entry *entry)
{
	struct fi_cq_err_entry err = { 0 };

	if (ret == 1) {
		ended(entry->op_context, 0);
	} else if (ret == -FI_EAVAIL) {
		FAB_TRUE(fi_cq_readerr(fab.cq, &err, 0) == 1);
		ended(err.op_context, err.err);
	} else {
		FAB_TRUE(ret == -FI_EAGAIN || ret == -FI_EINTR);
		return false;
	}
	return true;
}

/** Sleeps until something has ended, for a while, and reads what has. */
static void await(void)
{
	struct fi_cq_msg_entry entry;

	while (handle(fi_cq_read(fab.cq, &entry, 1), &entry))
		;
	handle(fi_cq_sread(fab.cq, &entry, 1, NULL, 20), &entry);
}

static void send_one(void)
{
	ssize_t ret = fi_send(ends[0].ep, out, LEN, NULL, to, NULL);

	sent += !ret;
	refused += ret && ret != -FI_EAGAIN;
}

/** Looks for the address that the receiver has after an outage, and sends to it from then on. */
static void look_at_name(void)
{
	uint8_t name[ADDR_LEN];

	read_name(&ends[1], name);
	if (!memcmp(name, ends[1].name, ADDR_LEN))
		return;
	memcpy(ends[1].name, name, ADDR_LEN);
	renamed++;
	FAB_TRUE(fi_av_insert(fab.av, name, 1, &to, 0, NULL) == 1);
}

/** Sends once, and receives what has arrived. */
static void turn(void)
{
	for (unsigned i = 0; i < RECEIVES; i++)
		if (!posted[i])
			post(i);
	look_at_name();
	send_one();
	await();
}

int main(int argc, char **argv)
{
	bool fails = argc == 3 && !strcmp(argv[1], "fails");
	unsigned long before;
	double end;

	if (argc != 3)
		return 2;
	open_all();
	end = fab_seconds() + atof(argv[2]);
	while (fab_seconds() < end || (fails && !renamed && fab_seconds() < end + PATIENCE))
		turn();
	before = arrived;
	while (arrived < before + ARRIVALS && fab_seconds() < end + 2 * PATIENCE)
		turn();
	printf("%lu of %lu datagrams arrived, %lu new addresses, %lu receives failed, %lu calls\n",
	       arrived, sent, renamed, failed_receives, refused);
	FAB_TRUE(arrived >= before + ARRIVALS);
	FAB_TRUE(renamed == fails);
	FAB_TRUE(!failed_receives == !fails);
	FAB_TRUE(!refused == !fails);
	FAB_CHECK(fi_close(&ends[0].ep->fid));
	FAB_CHECK(fi_close(&ends[1].ep->fid));
	FAB_CHECK(fi_close(&fab.cq->fid));
	FAB_CHECK(fi_close(&fab.av->fid));
	FAB_CHECK(fi_close(&fab.domain->fid));
	FAB_CHECK(fi_close(&fab.fabric->fid));
	fi_freeinfo(fab.info);
	return 0;
}
