/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Direct remote memory access: the target's processor takes no part, and cannot be missed.
 *
 *   stopped   after the first access by a key the target is stopped (SIGSTOP); thousands of reads
 *             and writes of all kinds end, with the right contents at both ends, simple ones
 *             (one local buffer, registered or short) among others
 *   revoked   the target closes the region while the initiator makes progress: the next access ends
 *             with FI_EKEYREJECTED, and the connection lives on
 *   late      the target closes a region while the initiator does not make progress: fi_close
 *             returns all the same, a late write changes no byte and ends with an error, and the
 *             next access to another region succeeds
 *
 * usage: rma_stopped [accesses]
 */
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rdma/fi_rma.h>

#include "integ/fab.h"
#include "support/rng.h"

#define LEN            (256u << 10) /* of a region */
#define REGIONS        3u
#define WINDOW         16u
#define PATIENCE       120.0 /* seconds */
#define KEY(i)         (70 + (i))
#define REVOKE_TIMEOUT "100" /* FI_COPYRPC_REVOKE_TIMEOUT, milliseconds */

enum order { CLOSE, LEAVE }; /* of the initiator to the target, about a region */

struct order_msg {
	enum order order;
	unsigned region;
	bool progress; /* both ends make progress meanwhile */
};

static struct fab fab;
static uint8_t *memory[REGIONS];
static struct fid_mr *region[REGIONS];
static int to_target[2], to_initiator[2];

static void say(int fd, const void *bytes, size_t len)
{
	FAB_TRUE(write(fd, bytes, len) == (ssize_t)len);
}

static void hear(int fd, void *bytes, size_t len)
{
	FAB_TRUE(read(fd, bytes, len) == (ssize_t)len);
}

static void open_fab(void)
{
	struct fi_info *hints = fi_allocinfo();

	FAB_TRUE(hints);
	hints->caps = FI_MSG | FI_RMA;
	hints->ep_attr->type = FI_EP_RDM;
	hints->domain_attr->mr_mode = FI_MR_ALLOCATED;
	hints->addr_format = FI_SOCKADDR_IN;
	FAB_CHECK(fi_getinfo(FI_VERSION(1, 17), "127.0.0.1", NULL, FI_SOURCE, hints, &fab.info));
	FAB_TRUE(fab.info->domain_attr->mr_mode == FI_MR_ALLOCATED);
	fi_freeinfo(hints);
	fab_open_found(&fab);
}

/* ---- target ---- */

static void progress_until_readable(int fd)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };

	while (!poll(&pfd, 1, 0))
		fi_cq_read(fab.cq, NULL, 0);
}

static void target_close(unsigned i, bool progress)
{
	FAB_CHECK(fi_close(&region[i]->fid));
	region[i] = NULL;
	memset(memory[i], 0xC1, LEN); /* no access may be seen from here on */
	say(to_initiator[1], memory[i], 1);
	/* The initiator tries. Without progress here, only a device could write. */
	if (progress)
		progress_until_readable(to_target[0]);
	hear(to_target[0], memory[i], 1);
	for (size_t k = 1; k < LEN; k++)
		FAB_TRUE(memory[i][k] == 0xC1);
	say(to_initiator[1], memory[i], 1);
}

/** Compares the first region with what the initiator believes is there. */
static void target_check(void)
{
	uint8_t *theirs = malloc(LEN);
	size_t got;
	ssize_t ret;

	for (got = 0; got < LEN; got += (size_t)ret) {
		ret = read(to_target[0], theirs + got, LEN - got);
		FAB_TRUE(ret > 0);
	}
	FAB_TRUE(!memcmp(theirs, memory[0], LEN));
	free(theirs);
}

static void target(void)
{
	struct order_msg msg;

	setenv("FI_COPYRPC_REVOKE_TIMEOUT", REVOKE_TIMEOUT, 1);
	open_fab();
	for (unsigned i = 0; i < REGIONS; i++) {
		memory[i] = calloc(1, LEN);
		FAB_CHECK(fi_mr_reg(fab.domain, memory[i], LEN, FI_REMOTE_READ | FI_REMOTE_WRITE, 0,
				    KEY(i), 0, &region[i], NULL));
	}
	say(to_initiator[1], &fab.addr, sizeof(fab.addr));
	progress_until_readable(to_target[0]);
	target_check();
	for (;;) {
		progress_until_readable(to_target[0]);
		hear(to_target[0], &msg, sizeof(msg));
		if (msg.order == LEAVE)
			break;
		target_close(msg.region, msg.progress);
	}
	for (unsigned i = 0; i < REGIONS; i++)
		if (region[i])
			FAB_CHECK(fi_close(&region[i]->fid));
	fab_close(&fab);
}

/* ---- initiator ---- */

static fi_addr_t peer;
static uint8_t *shadow; /* contents that the first region must have */
static uint8_t local[WINDOW][LEN / WINDOW];
static struct fid_mr *local_mr;
static struct rng rng;
static unsigned open_ops;

struct access {
	bool is_open, reads;
	unsigned parts; /* local buffers */
	uint64_t addr, len;
};

static struct access accesses[WINDOW];

/** Reads one completion, if there is one. Returns 0 or its error; *slot: whose. */
static int reap(unsigned *slot)
{
	struct fi_cq_tagged_entry entry;
	int err;

	if (!fab_poll(&fab, &entry, &err))
		return -1;
	*slot = (unsigned)((struct access *)entry.op_context - accesses);
	FAB_TRUE(*slot < WINDOW && accesses[*slot].is_open);
	accesses[*slot].is_open = false;
	open_ops--;
	return err;
}

static void finish(void)
{
	unsigned slot;
	int err = reap(&slot);

	if (err == -1)
		return;
	FAB_TRUE(!err);
	if (accesses[slot].reads)
		FAB_TRUE(!memcmp(local[slot], shadow + accesses[slot].addr, accesses[slot].len));
}

static void finish_all(void)
{
	double begin = fab_seconds();

	while (open_ops) {
		finish();
		FAB_TRUE(fab_seconds() - begin < PATIENCE);
	}
}

static ssize_t post(unsigned slot, unsigned i, uint64_t flags)
{
	struct access *a = &accesses[slot];
	void *desc = rng_below(&rng, 2) ? fi_mr_desc(local_mr) : NULL;
	uint64_t first = a->parts == 1 ? a->len : a->len / 3;
	struct iovec iov[2] = { { local[slot], first }, { local[slot] + first, a->len - first } };
	struct fi_rma_iov there = { .addr = a->addr, .len = a->len, .key = KEY(i) };
	void *descs[2] = { desc, desc };
	struct fi_msg_rma msg = { .msg_iov = iov,
				  .desc = descs,
				  .iov_count = a->parts,
				  .addr = peer,
				  .rma_iov = &there,
				  .rma_iov_count = 1,
				  .context = a };

	if (a->reads)
		return fi_readmsg(fab.ep, &msg, flags | FI_COMPLETION);
	return fi_writemsg(fab.ep, &msg, flags | FI_COMPLETION);
}

/** Returns true if the range overlaps that of an access in progress, one of which writes. */
static bool conflicts(const struct access *a)
{
	for (unsigned i = 0; i < WINDOW; i++)
		if (accesses[i].is_open && (!accesses[i].reads || !a->reads) &&
		    a->addr < accesses[i].addr + accesses[i].len &&
		    accesses[i].addr < a->addr + a->len)
			return true;
	return false;
}

static uint64_t draw_flags(const struct access *a)
{
	uint64_t flags = rng_below(&rng, 2) ? FI_MORE : 0;

	if (!a->reads && a->len <= 4096 && !rng_below(&rng, 4))
		flags |= FI_INJECT;
	return flags | (rng_below(&rng, 3) ? 0 : FI_DELIVERY_COMPLETE);
}

static uint64_t draw_len(void)
{
	static const uint64_t most[] = { 8, 64, 300, 5000, sizeof(local[0]) };

	return 1 + rng_below(&rng, most[rng_below(&rng, 5)]);
}

static void begin(unsigned slot)
{
	struct access a = { .reads = rng_below(&rng, 2),
			    .len = draw_len(),
			    .parts = 1 + (unsigned)rng_below(&rng, 2) };
	double start = fab_seconds();

	a.addr = rng_below(&rng, LEN - a.len + 1);
	while (conflicts(&a)) {
		finish();
		FAB_TRUE(fab_seconds() - start < PATIENCE);
	}
	for (uint64_t k = 0; k < a.len; k++)
		local[slot][k] = a.reads ? 0 : (uint8_t)rng_below(&rng, 256);
	if (!a.reads)
		memcpy(shadow + a.addr, local[slot], a.len);
	accesses[slot] = a;
	while (post(slot, 0, draw_flags(&a))) {
		finish();
		FAB_TRUE(fab_seconds() - start < PATIENCE);
	}
	accesses[slot].is_open = true;
	open_ops++;
}

static void access_many(unsigned long cnt)
{
	double start = fab_seconds();
	unsigned slot = 0;

	for (unsigned long n = 0; n < cnt; n++) {
		slot = (slot + 1) % WINDOW;
		while (accesses[slot].is_open) {
			finish();
			FAB_TRUE(fab_seconds() - start < PATIENCE);
		}
		begin(slot);
	}
	finish_all();
}

/** Makes one write of 8 bytes to the second byte of a region. Returns its error. */
static int write_one(unsigned i)
{
	double start = fab_seconds();
	unsigned slot;
	int err;

	memset(local[0], 0x55, 8);
	accesses[0] = (struct access){ .addr = 1, .len = 8, .parts = 1 };
	while (post(0, i, 0)) {
		fi_cq_read(fab.cq, NULL, 0);
		FAB_TRUE(fab_seconds() - start < PATIENCE);
	}
	accesses[0].is_open = true;
	open_ops++;
	while ((err = reap(&slot)) == -1)
		FAB_TRUE(fab_seconds() - start < PATIENCE);
	return err;
}

/** Orders the target to close a region, with progress here or without. */
static void order_close(unsigned i, bool progress)
{
	struct order_msg msg = { CLOSE, i, progress };
	uint8_t byte;

	say(to_target[1], &msg, sizeof(msg));
	if (progress)
		progress_until_readable(to_initiator[0]);
	hear(to_initiator[0], &byte, 1);
}

/** Lets the target check its memory. */
static void order_check(void)
{
	uint8_t byte = 0xC1;

	say(to_target[1], &byte, 1);
	progress_until_readable(to_initiator[0]);
	hear(to_initiator[0], &byte, 1);
}

static void stopped(pid_t child, unsigned long cnt)
{
	int status;

	access_many(WINDOW); /* the first access requests the lease */
	FAB_TRUE(!kill(child, SIGSTOP));
	FAB_TRUE(waitpid(child, &status, WUNTRACED) == child && WIFSTOPPED(status));
	access_many(cnt);
	FAB_TRUE(!kill(child, SIGCONT));
	for (size_t at = 0; at < LEN; at += 4096)
		say(to_target[1], shadow + at, 4096);
	printf("rma_stopped: %lu accesses to a stopped process\n", cnt);
}

static void revoked(void)
{
	FAB_TRUE(!write_one(1));
	FAB_TRUE(!write_one(1));
	order_close(0, true);
	FAB_TRUE(write_one(0) == FI_EKEYREJECTED);
	order_check();
	FAB_TRUE(!write_one(1));
	printf("rma_stopped: a region was closed, and the connection lives on\n");
}

static void late(void)
{
	int err;

	FAB_TRUE(!write_one(2));
	order_close(1, false);
	err = write_one(1);
	FAB_TRUE(err && err != FI_EKEYREJECTED); /* the device refused it */
	order_check();
	while ((err = write_one(2))) /* may fail once more while the connection ends */
		FAB_TRUE(err != FI_EKEYREJECTED);
	printf("rma_stopped: a late write did no harm\n");
}

static void initiator(pid_t child, unsigned long cnt)
{
	struct order_msg leave = { LEAVE, 0, false };
	struct sockaddr_in addr;

	open_fab();
	hear(to_initiator[0], &addr, sizeof(addr));
	peer = fab_insert(&fab, &addr);
	shadow = calloc(1, LEN);
	FAB_CHECK(fi_mr_reg(fab.domain, local, sizeof(local), FI_READ | FI_WRITE, 0, 1, 0,
			    &local_mr, NULL));
	rng.state = rng_env("COPYRPC_TEST_SEED", 20);
	stopped(child, cnt);
	revoked();
	late();
	say(to_target[1], &leave, sizeof(leave));
	FAB_CHECK(fi_close(&local_mr->fid));
	fab_close(&fab);
	free(shadow);
}

int main(int argc, char **argv)
{
	unsigned long cnt = argc > 1 ? strtoul(argv[1], NULL, 0) : 10000;
	pid_t child;
	int status;

	FAB_CHECK(pipe(to_target));
	FAB_CHECK(pipe(to_initiator));
	fflush(stdout);
	child = fork();
	FAB_CHECK(child);
	if (!child) {
		FAB_CHECK(prctl(PR_SET_PDEATHSIG, SIGKILL));
		target();
		exit(0);
	}
	initiator(child, cnt);
	FAB_TRUE(waitpid(child, &status, 0) == child && !status);
	return 0;
}
