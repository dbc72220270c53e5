/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Stress test of the device model: its threads must not race with those of a program.
 *
 * The model is linked in, with its polling thread and its service thread. Two threads of the
 * program, each with a device context, connect queue pairs, post, arm, read events and destroy all
 * of it while doorbells are pending. Sometimes a queue pair breaks, a completion queue is
 * destroyed, or a context is closed and opened again. The threads write queues as libmlx5 does.
 *
 * Meant for ThreadSanitizer; without it, the test shows that no thread hangs.
 */
#include "model/kernel/krn_chan.h"
#include "model/kernel/cmd/krn_cmd.h"
#include "model/kernel/krn_ctx.h"
#include "model/kernel/krn_fd.h"
#include "model/kernel/krn_uar.h"
#include "model/fabric/mdl_nic.h"
#include "model/fabric/mdl_raw.h"
#include "model/nic/nic_be.h"

#include <fcntl.h>
#include <pthread.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 120, SENDS = 3, CQES = 64, SQ_BLOCKS = 8, RQ_WQES = 4, LIMIT_S = 120 };

struct end {
	struct end *other;
	uint32_t ctx, pd, cq, qp, chan;
	int fd, chan_fd;
	uint32_t *cq_record, cq_at;
	uint8_t *cqes, *queue, *uar;
	uint32_t *record;
	uint32_t peer, events;
};

static struct end ends[2];
static pthread_barrier_t both;

/* ThreadSanitizer intercepts only pthread_mutex_timedlock. */
int pthread_mutex_clocklock(pthread_mutex_t *mutex, clockid_t clock, const struct timespec *until)
{
	struct timespec now, wall;

	clock_gettime(clock, &now);
	clock_gettime(CLOCK_REALTIME, &wall);
	wall.tv_sec += until->tv_sec - now.tv_sec + 1;
	return pthread_mutex_timedlock(mutex, &wall);
}

static void need(int fine, const char *what)
{
	if (fine)
		return;
	fprintf(stderr, "stress_model: %s\n", what);
	abort();
}

/* Runs a legacy command: the core struct begins with the address of the response. */
static void command(struct end *end, uint32_t number, void *core, size_t core_len, const void *drv,
		    size_t drv_len, void *resp, size_t resp_len, const char *what)
{
	uint64_t words[64], address = (uintptr_t)resp;
	struct ib_uverbs_cmd_hdr *hdr = (void *)words;
	size_t size = sizeof(*hdr) + core_len + drv_len;

	if (resp)
		memcpy(core, &address, sizeof(address));
	hdr->command = number;
	hdr->in_words = (uint16_t)(size / 4);
	hdr->out_words = (uint16_t)(resp_len / 4);
	memcpy(hdr + 1, core, core_len);
	if (drv_len)
		memcpy((char *)(hdr + 1) + core_len, drv, drv_len);
	need(krn_cmd_write(end->ctx, words, size) > 0, what);
}

static void *pages(size_t cnt)
{
	void *at = mmap(NULL, cnt * MDL_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			-1, 0);

	need(at != MAP_FAILED, "no memory");
	return at;
}

static void open_context(struct end *end)
{
	struct ib_uverbs_get_context req = { 0 };
	struct mlx5_ib_alloc_ucontext_req_v2 drv = { .total_num_bfregs = 16,
						     .num_low_latency_bfregs = 4,
						     .max_cqe_version = 1 };
	uint32_t resp[2 + sizeof(struct mlx5_ib_alloc_ucontext_resp) / 4] = { 0 };
	struct ib_uverbs_alloc_pd alloc = { 0 };
	uint32_t pd[2] = { 0 };

	end->fd = krn_ctx_open(0, O_CLOEXEC);
	need(end->fd >= 0, "the device cannot be opened");
	end->ctx = krn_fd_get(end->fd)->index;
	command(end, IB_USER_VERBS_CMD_GET_CONTEXT, &req, sizeof(req), &drv, sizeof(drv), resp,
		sizeof(resp), "GET_CONTEXT");
	fcntl((int)resp[0], F_SETFL, O_NONBLOCK);
	end->uar = mmap(NULL, MDL_UAR_PAGES * MDL_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, end->fd,
			0);
	need(end->uar != MAP_FAILED, "no UAR pages");
	command(end, IB_USER_VERBS_CMD_ALLOC_PD, &alloc, sizeof(alloc), NULL, 0, pd, sizeof(pd),
		"ALLOC_PD");
	end->pd = pd[0];
}

static void close_context(struct end *end)
{
	int async = krn_ctx_get(end->ctx)->async_fd;

	munmap(end->uar, MDL_UAR_PAGES * MDL_PAGE);
	krn_ctx_close(end->ctx);
	close(end->fd);
	close(async);
}

static void make_cq(struct end *end)
{
	struct mlx5_ib_create_cq drv = { .cqe_size = 64 };
	struct ib_uverbs_create_cq req = { .user_handle = 7, .cqe = CQES - 1 };
	uint32_t resp[4] = { 0 };

	end->cqes = pages(1);
	end->cq_record = pages(1);
	memset(end->cqes, 0xf1, MDL_PAGE); /* invalid, as libmlx5 leaves them */
	drv.buf_addr = (uintptr_t)end->cqes;
	drv.db_addr = (uintptr_t)end->cq_record;
	end->cq_at = 0;
	end->chan_fd = krn_chan_open(KRN_CHAN_COMP, &end->chan);
	need(end->chan_fd >= 0, "no channel");
	fcntl(end->chan_fd, F_SETFL, O_NONBLOCK);
	req.comp_channel = end->chan_fd;
	command(end, IB_USER_VERBS_CMD_CREATE_CQ, &req, sizeof(req), &drv, sizeof(drv), resp,
		sizeof(resp), "CREATE_CQ");
	end->cq = resp[0];
}

static void destroy_cq(struct end *end)
{
	struct ib_uverbs_destroy_cq req = { .cq_handle = end->cq };
	struct ib_uverbs_destroy_cq_resp resp;

	command(end, IB_USER_VERBS_CMD_DESTROY_CQ, &req, sizeof(req), NULL, 0, &resp, sizeof(resp),
		"DESTROY_CQ");
	need(resp.comp_events_reported == end->events, "the events read are not those reported");
	end->events = 0;
	krn_chan_release(end->chan);
	close(end->chan_fd);
	munmap(end->cqes, MDL_PAGE);
	munmap(end->cq_record, MDL_PAGE);
}

static void make_qp(struct end *end)
{
	struct ib_uverbs_create_qp req = { .pd_handle = end->pd,
					   .send_cq_handle = end->cq,
					   .recv_cq_handle = end->cq,
					   .max_send_wr = SQ_BLOCKS,
					   .max_recv_wr = RQ_WQES,
					   .qp_type = MDL_QPT_RC };
	struct mlx5_ib_create_qp drv = { .sq_wqe_count = SQ_BLOCKS,
					 .rq_wqe_count = RQ_WQES,
					 .rq_wqe_shift = 6 };
	uint32_t resp[24] = { 0 };

	end->queue = pages(1);
	end->record = pages(1);
	drv.buf_addr = (uintptr_t)end->queue;
	drv.db_addr = (uintptr_t)end->record;
	command(end, IB_USER_VERBS_CMD_CREATE_QP, &req, sizeof(req), &drv, sizeof(drv), resp,
		sizeof(resp), "CREATE_QP");
	end->qp = resp[0];
}

static void modify(struct end *end, uint32_t state, uint32_t mask)
{
	struct ib_uverbs_modify_qp req = { .qp_handle = end->qp,
					   .attr_mask = mask,
					   .qp_state = (uint8_t)state,
					   .port_num = 1,
					   .path_mtu = 3,
					   .dest_qp_num = end->peer,
					   .max_dest_rd_atomic = 1,
					   .timeout = 4,
					   .retry_cnt = 1,
					   .rnr_retry = 7,
					   .min_rnr_timer = 1 };

	req.dest.dlid = mdl_self.seg->port[mdl_self.proc->node].lid;
	req.dest.port_num = 1;
	command(end, IB_USER_VERBS_CMD_MODIFY_QP, &req, sizeof(req), NULL, 0, NULL, 0, "MODIFY_QP");
}

static void destroy_qp(struct end *end)
{
	struct ib_uverbs_destroy_qp req = { .qp_handle = end->qp };
	struct ib_uverbs_destroy_qp_resp resp;

	command(end, IB_USER_VERBS_CMD_DESTROY_QP, &req, sizeof(req), NULL, 0, &resp, sizeof(resp),
		"DESTROY_QP");
	munmap(end->queue, MDL_PAGE);
	munmap(end->record, MDL_PAGE);
}

static void put_record(uint32_t *record, uint32_t value)
{
	__atomic_store_n(record, htobe32(value), __ATOMIC_RELEASE);
}

/* Posts a SEND with immediate data only, or one with an invalid key. Each reports a completion. */
static void put_send(struct end *end, uint32_t at, int wrong)
{
	uint8_t *wqe = end->queue + RQ_WQES * 64 + (size_t)at * 64;

	nic_be32_put(wqe, at << 8 | 0x0b);
	nic_be32_put(wqe + 4, end->qp << 8 | (wrong ? 2 : 1));
	wqe[11] = 8;
	if (!wrong)
		return;
	nic_be32_put(wqe + 16, 8);
	nic_be32_put(wqe + 20, 1);
	nic_be64_put(wqe + 24, (uintptr_t)wqe);
}

static void ring(struct end *end, uint32_t at)
{
	const struct mdl_qp *qp = mdl_qp_find(end->qp);
	uint64_t value;

	memcpy(&value, end->queue + RQ_WQES * 64 + (size_t)at * 64, sizeof(value));
	__atomic_store_n((uint64_t *)(end->uar + qp->uar_page * MDL_PAGE + qp->uar_off), value,
			 __ATOMIC_RELEASE);
}

static void post(struct end *end, int wrong)
{
	for (uint32_t i = 0; i < RQ_WQES; i++)
		nic_be32_put(end->queue + (size_t)i * 64 + 4, 0x100); /* end of the scatter list */
	put_record(&end->record[0], RQ_WQES);
	for (uint32_t i = 0; i < SENDS; i++) {
		put_send(end, i, wrong && i == SENDS - 1);
		put_record(&end->record[1], i + 1);
		ring(end, i);
	}
}

static void arm(struct end *end)
{
	uint64_t value;
	uint8_t bytes[8];

	nic_be32_put(bytes, end->cq_at & 0xffffff);
	nic_be32_put(bytes + 4, end->cq);
	memcpy(&value, bytes, sizeof(value));
	put_record(&end->cq_record[1], end->cq_at & 0xffffff);
	__atomic_store_n((uint64_t *)(end->uar + 0x20), value, __ATOMIC_RELEASE);
}

static uint32_t poll_cq(struct end *end)
{
	uint32_t found = 0;

	for (;; found++, end->cq_at++) {
		const uint8_t *cqe = end->cqes + (size_t)(end->cq_at % CQES) * 64;
		uint8_t owner = __atomic_load_n(&cqe[63], __ATOMIC_ACQUIRE);

		if (owner >> 4 == 15 || (owner & 1) != !!(end->cq_at & CQES))
			break;
	}
	put_record(&end->cq_record[0], end->cq_at & 0xffffff);
	return found;
}

static void read_events(struct end *end)
{
	struct ib_uverbs_async_event_desc desc;
	struct krn_ctx *ctx = krn_ctx_get(end->ctx);
	uint64_t element;

	while (krn_chan_read(end->chan_fd, end->chan, &element, sizeof(element)) == 8)
		end->events++;
	while (krn_chan_read(ctx->async_fd, ctx->async_chan, &desc, sizeof(desc)) == sizeof(desc))
		;
}

static void wait_for(struct end *end, uint32_t cnt)
{
	uint64_t until = mdl_now_ns() + LIMIT_S * 1000000000ull;

	for (uint32_t found = 0; found < cnt; sched_yield()) {
		found += poll_cq(end);
		read_events(end);
		need(mdl_now_ns() < until, "completions do not come");
	}
}

/*
 * Runs one round, at both ends at once. In every second round the ends leave before anything has
 * completed.
 */
static void round_of(struct end *end, int round)
{
	make_qp(end);
	pthread_barrier_wait(&both);
	end->peer = end->other->qp;
	modify(end, MDL_QPS_INIT, 1 | 1 << 3 | 1 << 4 | 1 << 5);
	modify(end, MDL_QPS_RTR, 1 | 1 << 7 | 1 << 8 | 1 << 20 | 1 << 12 | 1 << 17 | 1 << 15);
	modify(end, MDL_QPS_RTS, 1 | 1 << 9 | 1 << 10 | 1 << 11 | 1 << 16 | 1 << 13);
	pthread_barrier_wait(&both);
	post(end, round % 4 == 0);
	arm(end);
	if (round % 2)
		wait_for(end, 2 * SENDS);
	if (round % 3 == 0)
		modify(end, MDL_QPS_ERR, 1);
	read_events(end);
	destroy_qp(end);
	poll_cq(end);
	read_events(end);
}

static void *run(void *arg)
{
	struct end *end = arg;

	open_context(end);
	make_cq(end);
	for (int round = 1; round <= ROUNDS; round++) {
		round_of(end, round);
		/* A completion of the peer may still be pending for a CQ that is destroyed. */
		if (round % 5 == 0) {
			destroy_cq(end);
			if (round % 10 == 0) {
				close_context(end);
				open_context(end);
			}
			make_cq(end);
		}
	}
	destroy_cq(end);
	close_context(end);
	return NULL;
}

static void forget_fabric(void)
{
	char path[160];

	if (mdl_segment_path(path, sizeof(path), "") > 0)
		unlink(path);
	if (mdl_segment_path(path, sizeof(path), ".lock") > 0)
		unlink(path);
}

int main(void)
{
	pthread_t threads[2];
	char name[32];

	snprintf(name, sizeof(name), "stress-%d", (int)getpid());
	setenv("COPYRPC_HCA_SEGMENT", name, 1);
	setenv("COPYRPC_HCA_MODE", "poll", 1);
	pthread_barrier_init(&both, NULL, 2);
	for (int i = 0; i < 2; i++) {
		ends[i].other = &ends[1 - i];
		need(!pthread_create(&threads[i], NULL, run, &ends[i]), "no thread");
	}
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	forget_fabric();
	printf("stress_model: %d rounds\n", ROUNDS);
	return 0;
}
