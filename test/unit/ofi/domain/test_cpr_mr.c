/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Memory regions (fi_mr(3)). */
#include <criterion/criterion.h>
#include <rdma/fi_rma.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit/ofi/ofi_fixture.h"
#include "util/clock.h"
#include "util/fi_old.h"
#include "util/param.h"

static struct ofi_pair p;

static void setup(void)
{
	struct ofi_options opts = { 0 };

	ofi_domain_open(&p, &opts);
}

static void teardown(void)
{
	ofi_pair_close(&p);
}

TestSuite(cpr_mr, .init = setup, .fini = teardown);

Test(cpr_mr, every_combination_of_access_is_registered)
{
	static const uint64_t bits[] = { FI_SEND,  FI_RECV,        FI_READ,
					 FI_WRITE, FI_REMOTE_READ, FI_REMOTE_WRITE };
	char buf[64] = "";
	struct fid_mr *mr;
	unsigned i, b;

	for (i = 0; i < 64; i++) {
		uint64_t access = 0;

		for (b = 0; b < 6; b++)
			access |= i & (1u << b) ? bits[b] : 0;
		cr_assert_eq(fi_mr_reg(p.domain, buf, sizeof(buf), access, 0, 42, 0, &mr, &p), 0);
		cr_expect_eq(fi_mr_key(mr), 42);
		cr_expect_not_null(fi_mr_desc(mr));
		cr_expect_eq(mr->fid.context, &p);
		cr_assert_eq(fi_close(&mr->fid), 0);
	}
}

Test(cpr_mr, keys_that_peers_could_use_are_unique)
{
	char buf[2] = "";
	struct fid_mr *a, *b, *c;

	cr_assert_eq(fi_mr_reg(p.domain, buf, 1, FI_REMOTE_READ, 0, 7, 0, &a, NULL), 0);
	cr_expect_eq(fi_mr_reg(p.domain, buf, 1, FI_REMOTE_WRITE, 0, 7, 0, &b, NULL), -FI_ENOKEY);
	cr_expect_eq(fi_mr_reg(p.domain, buf, 1, FI_SEND, 0, 7, 0, &c, NULL), 0);
	cr_expect_eq(fi_close(&a->fid), 0);
	cr_assert_eq(fi_mr_reg(p.domain, buf, 1, FI_REMOTE_WRITE, 0, 7, 0, &b, NULL), 0);
	cr_expect_eq(fi_close(&b->fid), 0);
	cr_expect_eq(fi_close(&c->fid), 0);
}

Test(cpr_mr, many_regions_keep_their_keys)
{
	enum { CNT = 1000 };
	static char buf[CNT];
	static struct fid_mr *mr[CNT];
	unsigned i;

	for (i = 0; i < CNT; i++)
		cr_assert_eq(fi_mr_reg(p.domain, &buf[i], 1, FI_REMOTE_READ, 0, i * 2654435761u, 0,
				       &mr[i], NULL),
			     0);
	cr_expect_eq(fi_close(&p.domain->fid), -FI_EBUSY);
	for (i = 0; i < CNT; i++) {
		cr_expect_eq(fi_mr_key(mr[i]), i * 2654435761u);
		cr_assert_eq(fi_close(&mr[i]->fid), 0);
	}
}

Test(cpr_mr, vectors_are_registered_up_to_the_limit)
{
	char buf[8] = "";
	struct iovec iov[5] = {
		{ buf, 1 }, { buf + 1, 2 }, { buf + 3, 1 }, { buf + 4, 1 }, { buf + 5, 1 }
	};
	struct fid_mr *mr;

	cr_assert_eq(fi_mr_regv(p.domain, iov, p.info->domain_attr->mr_iov_limit, FI_SEND, 0, 1, 0,
				&mr, NULL),
		     0);
	cr_expect_eq(fi_close(&mr->fid), 0);
	cr_expect_eq(fi_mr_regv(p.domain, iov, p.info->domain_attr->mr_iov_limit + 1, FI_SEND, 0, 1,
				0, &mr, NULL),
		     -FI_EINVAL);
	cr_expect_eq(fi_mr_regv(p.domain, iov, 0, FI_SEND, 0, 1, 0, &mr, NULL), -FI_EINVAL);
}

Test(cpr_mr, a_freed_and_reused_buffer_is_registered_anew)
{
	struct fid_mr *mr;
	void *buf;
	int i;

	for (i = 0; i < 10; i++) {
		buf = malloc(4096);
		cr_assert_eq(fi_mr_reg(p.domain, buf, 4096, FI_REMOTE_READ, 0, 9, 0, &mr, NULL), 0);
		cr_assert_eq(fi_close(&mr->fid), 0);
		free(buf);
	}
}

Test(cpr_mr, a_raw_key_is_mapped_back)
{
	char buf[8] = "";
	uint8_t raw[8];
	size_t raw_len = 1;
	uint64_t base, key = 0;
	struct fid_mr *mr;

	cr_assert_eq(fi_mr_reg(p.domain, buf, 8, FI_REMOTE_READ, 0, 0x1234567, 0, &mr, NULL), 0);
	cr_expect_eq(fi_mr_raw_attr(mr, &base, raw, &raw_len, 0), -FI_ETOOSMALL);
	cr_expect_eq(raw_len, 8);
	cr_expect_eq(fi_mr_raw_attr(mr, &base, raw, &raw_len, 0), 0);
	cr_expect_eq(fi_mr_map_raw(p.domain, base, raw, raw_len, &key, 0), 0);
	cr_expect_eq(key, 0x1234567);
	cr_expect_eq(fi_mr_unmap_key(p.domain, key), 0);
	cr_expect_eq(fi_close(&mr->fid), 0);
}

Test(cpr_mr, with_fi_reg_mr_registrations_are_reported)
{
	struct fi_eq_attr attr = { 0 };
	struct fi_eq_entry entry;
	struct fid_eq *eq;
	struct fid_mr *mr;
	uint32_t event;
	char buf[8] = "";

	cr_assert_eq(fi_eq_open(p.fabric, &attr, &eq, NULL), 0);
	cr_assert_eq(fi_domain_bind(p.domain, &eq->fid, FI_REG_MR), 0);
	cr_assert_eq(fi_mr_reg(p.domain, buf, 8, FI_SEND, 0, 1, 0, &mr, &buf), 0);
	cr_expect_eq(fi_eq_read(eq, &event, &entry, sizeof(entry), 0), sizeof(entry));
	cr_expect_eq(event, FI_MR_COMPLETE);
	cr_expect_eq(entry.fid, &mr->fid);
	cr_expect_eq(entry.context, &buf);
	cr_expect_eq(fi_close(&mr->fid), 0);
	cr_expect_eq(fi_close(&p.domain->fid), 0);
	p.domain = NULL;
	cr_expect_eq(fi_close(&eq->fid), 0);
}

Test(cpr_mr, each_direction_has_one_counter_which_goes_last)
{
	struct fid_cntr *cntr;
	struct fid_mr *mr;
	char buf[8] = "";

	cr_assert_eq(fi_cntr_open(p.domain, NULL, &cntr, NULL), 0);
	cr_assert_eq(fi_mr_reg(p.domain, buf, 8, FI_REMOTE_WRITE, 0, 1, FI_RMA_EVENT, &mr, NULL),
		     0);
	cr_expect_eq(fi_mr_bind(mr, &cntr->fid, FI_SEND), -FI_EBADFLAGS);
	cr_expect_eq(fi_mr_bind(mr, &cntr->fid, 0), -FI_EINVAL);
	cr_expect_eq(fi_mr_bind(mr, &cntr->fid, FI_REMOTE_WRITE), 0);
	cr_expect_eq(fi_mr_bind(mr, &cntr->fid, FI_REMOTE_WRITE), -FI_EINVAL);
	cr_expect_eq(fi_mr_bind(mr, &cntr->fid, FI_REMOTE_READ), 0);
	cr_expect_eq(fi_mr_enable(mr), 0);
	cr_expect_eq(fi_close(&cntr->fid), -FI_EBUSY);
	cr_expect_eq(fi_close(&mr->fid), 0);
	cr_expect_eq(fi_close(&cntr->fid), 0);
}

Test(cpr_mr, a_region_longer_than_memory_is_refused)
{
	char buf[8] = "";
	struct iovec iov[2] = { { buf, SIZE_MAX }, { buf, 1 } };
	struct fid_mr *mr;

	cr_expect_eq(fi_mr_regv(p.domain, iov, 2, FI_REMOTE_READ, 0, 1, 0, &mr, NULL), -FI_EINVAL);
	cr_expect_eq(fi_mr_regv(p.domain, iov, 1, FI_REMOTE_READ, 0, 1, 0, &mr, NULL), 0);
	cr_expect_eq(fi_close(&mr->fid), 0);
}

Test(cpr_mr, an_endpoint_of_another_domain_is_refused)
{
	struct fid_domain *other;
	struct fid_ep *ep, *far;
	struct fid_mr *mr;
	char buf[64];

	cr_assert_eq(fi_domain(p.fabric, p.info, &other, NULL), 0);
	cr_assert_eq(fi_endpoint(p.domain, p.info, &ep, NULL), 0);
	cr_assert_eq(fi_endpoint(other, p.info, &far, NULL), 0);
	cr_assert_eq(fi_mr_reg(p.domain, buf, sizeof(buf), FI_REMOTE_READ, 0, 42, 0, &mr, NULL), 0);
	cr_expect_eq(fi_mr_bind(mr, &far->fid, 0), -FI_EINVAL);
	cr_expect_eq(fi_mr_bind(mr, &ep->fid, 0), 0);
	cr_assert_eq(fi_close(&mr->fid), 0);
	cr_assert_eq(fi_close(&far->fid), 0);
	cr_assert_eq(fi_close(&ep->fid), 0);
	cr_assert_eq(fi_close(&other->fid), 0);
}

/* --- a peer that is stopped ------------------------------------------------------------------ */

#define STOPPED_LEN        (1u << 20)
#define STOPPED_TIMEOUT_MS 1000
#define STOPPED_KEY        42

static void open_over_udp(void)
{
	struct ofi_options opts = { .caps = FI_MSG | FI_RMA };

	ofi_provider(); /* loads the parameters */
	util_params.endpoint = "ud";
	util_params.paths = "udp";
	util_params.peer_timeout_ms = STOPPED_TIMEOUT_MS;
	ofi_pair_open(&p, &opts);
}

/* Writes, and stops meanwhile if `stops`. Returns 0, or the error of the write. */
static int write_to(fi_addr_t to, const void *bytes, size_t len, bool stops)
{
	struct fi_cq_err_entry err = { 0 };
	struct fi_cq_tagged_entry e;
	ssize_t ret;

	if (fi_write(p.ep[0], bytes, len, NULL, to, 0, STOPPED_KEY, NULL))
		_exit(2);
	if (stops)
		raise(SIGSTOP);
	do {
		ret = fi_cq_read(p.cq[0], &e, 1);
	} while (ret == -FI_EAGAIN);
	if (ret == 1)
		return 0;
	fi_cq_readerr(p.cq[0], &err, 0);
	return err.err;
}

/* Writes to the endpoint whose name is in the pipe, and stops. Exits with 0 if the write fails. */
static void write_and_stop(int pipe_fd)
{
	char *bytes = malloc(STOPPED_LEN), name[64];
	fi_addr_t to;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	open_over_udp();
	memset(bytes, 1, STOPPED_LEN);
	if (read(pipe_fd, name, sizeof(name)) <= 0 ||
	    fi_av_insert(p.av, name, 1, &to, 0, NULL) != 1 || write_to(to, bytes, 1, false))
		_exit(2);
	_exit(!write_to(to, bytes, STOPPED_LEN, true));
}

/* Registers memory and makes progress until the child is stopped, and its write has begun. */
static struct fid_mr *await_write(pid_t child, int pipe_fd, void *memory)
{
	char name[64] = "";
	size_t len = sizeof(name);
	struct fid_mr *mr;
	int status;

	cr_assert_eq(fi_mr_reg(p.domain, memory, STOPPED_LEN, FI_REMOTE_WRITE, 0, STOPPED_KEY, 0,
			       &mr, NULL),
		     0);
	cr_assert_eq(fi_getname(&p.ep[0]->fid, name, &len), 0);
	cr_assert_eq(write(pipe_fd, name, sizeof(name)), sizeof(name));
	while (!waitpid(child, &status, WUNTRACED | WNOHANG))
		fi_cq_read(p.cq[0], NULL, 0);
	cr_assert(WIFSTOPPED(status), "it ended with status 0x%x", (unsigned)status);
	for (int i = 0; i < 1000; i++)
		fi_cq_read(p.cq[0], NULL, 0);
	return mr;
}

Test(cpr_mr_stopped, close_ends_the_connection_to_a_stopped_writer, .timeout = 120)
{
	char *memory = calloc(1, STOPPED_LEN);
	struct fid_mr *mr;
	int fds[2], status;
	uint64_t t0;
	pid_t child;

	cr_assert_eq(pipe(fds), 0);
	child = fork();
	cr_assert_geq(child, 0);
	if (!child)
		write_and_stop(fds[0]);
	open_over_udp();
	mr = await_write(child, fds[1], memory);
	t0 = util_clock_ns();
	cr_expect_eq(fi_close(&mr->fid), 0);
	cr_expect_geq(util_clock_ns() - t0, STOPPED_TIMEOUT_MS * UTIL_NS_PER_MS);
	memset(memory, 2, STOPPED_LEN);
	cr_assert_eq(kill(child, SIGCONT), 0);
	while (!waitpid(child, &status, WNOHANG))
		fi_cq_read(p.cq[0], NULL, 0);
	cr_expect_eq(status, 0, "its write did not fail: 0x%x", (unsigned)status);
	for (size_t i = 0; i < STOPPED_LEN; i++)
		cr_assert_eq(memory[i], 2, "written after the end of the region");
	ofi_pair_close(&p);
	free(memory);
}
