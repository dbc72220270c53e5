/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Traffic of a player of hca_chaos: writes, messages and datagrams to every other one. What arrives
 * is whole and in order, and only what goes to the dead one fails.
 */
#include "hca_chaos.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Writes the number, then sends a message that announces it. */
static void send_rc(uint32_t peer)
{
	struct message *message = &me.memory->out[peer][++me.seq[peer] % WINDOW];
	struct ibv_sge word = sge_of(&message->seq, 8), whole = sge_of(message, sizeof(*message));
	struct ibv_send_wr *bad, send = { .wr_id = (uint64_t)SENT_RC << 32 | peer,
					  .sg_list = &whole,
					  .num_sge = 1,
					  .opcode = IBV_WR_SEND };
	struct ibv_send_wr write = { .wr_id = (uint64_t)SENT_RC << 32 | peer,
				     .sg_list = &word,
				     .num_sge = 1,
				     .next = &send,
				     .opcode = IBV_WR_RDMA_WRITE };

	*message = (struct message){ .from = me.rank, .to = peer, .seq = me.seq[peer] };
	memset(message->fill, (int)me.seq[peer], sizeof(message->fill));
	write.wr.rdma.remote_addr = board->proc[peer].words + me.rank * 8;
	write.wr.rdma.rkey = board->proc[peer].rkey;
	NEED(!ibv_post_send(me.qp[peer], &write, &bad));
	me.flying[peer] += 2;
}

static void send_ud(uint32_t peer)
{
	struct ibv_sge sge = sge_of(&me.memory->out[peer][0], 16);
	struct ibv_send_wr *bad, wr = { .wr_id = (uint64_t)SENT_UD << 32 | peer,
					.sg_list = &sge,
					.num_sge = 1,
					.opcode = IBV_WR_SEND };

	wr.wr.ud.ah = me.ah[peer];
	wr.wr.ud.remote_qpn = board->proc[peer].ud_qpn;
	wr.wr.ud.remote_qkey = QKEY;
	NEED(!ibv_post_send(me.ud, &wr, &bad));
	me.ud_flying++;
}

static void check_message(const struct message *message, uint32_t len)
{
	uint64_t seq = board->proc[me.rank].got[message->from] + 1;

	NEED(len == sizeof(*message));
	NEED(message->to == me.rank);
	NEED(message->from < PROCS);
	if (message->seq != seq) {
		fprintf(stderr,
			"hca_chaos %u: message %lu of %u where %lu was due; %d was killed\n",
			me.rank, (unsigned long)message->seq, message->from, (unsigned long)seq,
			board->killed);
		_exit(1);
	}
	NEED(me.memory->words[message->from] >= seq);
	for (uint32_t i = 0; i < sizeof(message->fill); i++)
		NEED(message->fill[i] == (uint8_t)seq);
	board->proc[me.rank].got[message->from] = seq;
}

static void take_completion(const struct ibv_wc *wc)
{
	enum kind kind = (enum kind)(wc->wr_id >> 32);
	uint32_t low = (uint32_t)wc->wr_id;

	switch (kind) {
	case SENT_RC:
		me.flying[low]--;
		if (wc->status == IBV_WC_SUCCESS)
			break;
		NEED(board->killed == (int)low);
		NEED(wc->status == IBV_WC_RETRY_EXC_ERR || wc->status == IBV_WC_WR_FLUSH_ERR);
		me.lost[low] = true;
		break;
	case SENT_UD:
		NEED(wc->status == IBV_WC_SUCCESS);
		me.ud_flying--;
		break;
	case GOT_RC:
		NEED(wc->status == IBV_WC_SUCCESS);
		check_message((const struct message *)me.memory->recv[low], wc->byte_len);
		post_recv(low);
		break;
	case GOT_UD:
		NEED(wc->status == IBV_WC_SUCCESS);
		NEED(wc->byte_len == GRH + 16);
		post_ud_recv(low);
		break;
	}
}

void poll_all(void)
{
	struct ibv_wc wc[16];
	int got = ibv_poll_cq(me.cq, 16, wc);

	NEED(got >= 0);
	for (int i = 0; i < got; i++)
		take_completion(&wc[i]);
	if (!got)
		sched_yield();
}

void play(void)
{
	for (uint32_t peer = 0; peer < PROCS; peer++) {
		if (peer == me.rank || me.lost[peer])
			continue;
		if (me.flying[peer] + 2 <= WINDOW)
			send_rc(peer);
		if (!me.ud_flying)
			send_ud(peer);
	}
	poll_all();
}

uint32_t in_flight(void)
{
	uint32_t sum = me.ud_flying;

	for (uint32_t peer = 0; peer < PROCS; peer++)
		sum += me.flying[peer];
	return sum;
}
