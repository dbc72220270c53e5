/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Calls between nodes as MPI messages, for comparison: see kv_net.h.
 *
 * A call is a message with an id that the response repeats. Messages are found with MPI_Improbe,
 * so each is received into the buffer in which its request or response then stays. One daemon of a
 * node uses this; the main thread uses other communicators at the same time.
 */
#include <errno.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#include "kv_net.h"

#define KV_MPI_SENDS 256 /* messages in flight; replies may exceed it */

enum kv_mpi_tag {
	KV_TAG_REQUEST = 1,
	KV_TAG_RESPONSE = 2,
};

/* Message with its bytes, in one of the lists of unused ones or in use. */
struct kv_mpi_buf {
	struct kv_mpi_buf *next;
	uint64_t id; /* first of the bytes that travel */
	uint8_t bytes[];
};

struct kv_mpi {
	struct kv_net net;
	MPI_Comm comm;
	size_t bytes_max;
	struct kv_mpi_buf *unused;
	/* Messages being sent. */
	MPI_Request *sends;
	struct kv_mpi_buf **send_bufs;
	int *done;
	int send_cnt, send_room;
	/* Calls in progress: context by id. */
	void **contexts;
	uint32_t *free_ids;
	uint32_t free_cnt, id_room;
};

static struct kv_mpi *kv_mpi_of(struct kv_net *net)
{
	return (struct kv_mpi *)net;
}

static struct kv_mpi_buf *kv_mpi_buf_get(struct kv_mpi *m)
{
	struct kv_mpi_buf *buf = m->unused;

	if (!buf)
		return malloc(sizeof(*buf) + m->bytes_max);
	m->unused = buf->next;
	return buf;
}

static void kv_mpi_buf_put(struct kv_mpi *m, struct kv_mpi_buf *buf)
{
	buf->next = m->unused;
	m->unused = buf;
}

/* ---- sending ---- */

static void kv_mpi_reap(struct kv_mpi *m)
{
	int n = 0;

	if (!m->send_cnt)
		return;
	MPI_Testsome(m->send_cnt, m->sends, &n, m->done, MPI_STATUSES_IGNORE);
	if (n <= 0)
		return;
	n = 0;
	for (int i = 0; i < m->send_cnt; i++) {
		if (m->sends[i] == MPI_REQUEST_NULL) {
			kv_mpi_buf_put(m, m->send_bufs[i]);
			continue;
		}
		m->sends[n] = m->sends[i];
		m->send_bufs[n++] = m->send_bufs[i];
	}
	m->send_cnt = n;
}

/* Makes room for one more send. Returns false without memory. */
static bool kv_mpi_grow_sends(struct kv_mpi *m)
{
	size_t room = m->send_room ? 2 * (size_t)m->send_room : KV_MPI_SENDS;
	MPI_Request *sends = realloc(m->sends, room * sizeof(*sends));
	struct kv_mpi_buf **bufs;
	int *done;

	if (!sends)
		return false;
	m->sends = sends;
	bufs = realloc(m->send_bufs, room * sizeof(struct kv_mpi_buf *));
	if (!bufs)
		return false;
	m->send_bufs = bufs;
	done = realloc(m->done, room * sizeof(*done));
	if (!done)
		return false;
	m->done = done;
	m->send_room = (int)room;
	return true;
}

static int kv_mpi_send(struct kv_mpi *m, int rank, enum kv_mpi_tag tag, uint64_t id,
		       const void *data, size_t len)
{
	struct kv_mpi_buf *buf;

	if (m->send_cnt == m->send_room && !kv_mpi_grow_sends(m))
		return -ENOMEM;
	buf = kv_mpi_buf_get(m);
	if (!buf)
		return -ENOMEM;
	buf->id = id;
	memcpy(buf->bytes, data, len);
	m->send_bufs[m->send_cnt] = buf;
	MPI_Isend(&buf->id, (int)(sizeof(buf->id) + len), MPI_BYTE, rank, tag, m->comm,
		  &m->sends[m->send_cnt++]);
	return 0;
}

/* ---- calls ---- */

static bool kv_mpi_grow_ids(struct kv_mpi *m)
{
	uint32_t room = m->id_room ? 2 * m->id_room : 64;
	void **contexts = realloc(m->contexts, room * sizeof(void *));
	uint32_t *ids;

	if (!contexts)
		return false;
	m->contexts = contexts;
	ids = realloc(m->free_ids, room * sizeof(*ids));
	if (!ids)
		return false;
	m->free_ids = ids;
	for (uint32_t id = m->id_room; id < room; id++) {
		m->contexts[id] = NULL;
		m->free_ids[m->free_cnt++] = id;
	}
	m->id_room = room;
	return true;
}

static int kv_mpi_call(struct kv_net *net, uint32_t target, const void *buf, size_t len,
		       void *context)
{
	struct kv_mpi *m = kv_mpi_of(net);
	uint32_t id;
	int ret;

	if (len > m->bytes_max)
		return -EMSGSIZE;
	if (m->send_cnt >= KV_MPI_SENDS)
		return -EAGAIN;
	if (!m->free_cnt && !kv_mpi_grow_ids(m))
		return -ENOMEM;
	id = m->free_ids[m->free_cnt - 1];
	ret = kv_mpi_send(m, (int)target, KV_TAG_REQUEST, id, buf, len);
	if (ret)
		return ret;
	m->free_cnt--;
	m->contexts[id] = context;
	return 0;
}

/* Receives one message with `tag`. Returns its buffer and stores sender and length, or NULL. */
static struct kv_mpi_buf *kv_mpi_receive(struct kv_mpi *m, enum kv_mpi_tag tag, int *rank,
					 size_t *len)
{
	struct kv_mpi_buf *buf;
	MPI_Message message;
	MPI_Status status;
	int found = 0, bytes;

	MPI_Improbe(MPI_ANY_SOURCE, tag, m->comm, &found, &message, &status);
	if (!found)
		return NULL;
	MPI_Get_count(&status, MPI_BYTE, &bytes);
	buf = kv_mpi_buf_get(m);
	if (!buf || bytes < (int)sizeof(buf->id) || (size_t)bytes > sizeof(buf->id) + m->bytes_max)
		MPI_Abort(m->comm, EXIT_FAILURE); /* another program sends here, or no memory */
	MPI_Mrecv(&buf->id, bytes, MPI_BYTE, &message, MPI_STATUS_IGNORE);
	*rank = status.MPI_SOURCE;
	*len = (size_t)bytes - sizeof(buf->id);
	return buf;
}

/* Returns the context of call `id`, which has ended; NULL if there is none. */
static void *kv_mpi_end(struct kv_mpi *m, uint64_t id)
{
	void *context = id < m->id_room ? m->contexts[id] : NULL;

	if (context) {
		m->contexts[id] = NULL;
		m->free_ids[m->free_cnt++] = (uint32_t)id;
	}
	return context;
}

static int kv_mpi_poll(struct kv_net *net, struct kv_net_end *ends, int max)
{
	struct kv_mpi *m = kv_mpi_of(net);
	struct kv_mpi_buf *buf;
	int n = 0, rank;
	size_t len;

	kv_mpi_reap(m);
	while (n < max && (buf = kv_mpi_receive(m, KV_TAG_RESPONSE, &rank, &len))) {
		void *context = kv_mpi_end(m, buf->id);

		if (!context) {
			kv_mpi_buf_put(m, buf);
			continue;
		}
		ends[n++] = (struct kv_net_end){
			.context = context,
			.data = buf->bytes,
			.len = len,
			.own = (uintptr_t)buf,
		};
	}
	return n;
}

static void kv_mpi_release(struct kv_net *net, const struct kv_net_end *end)
{
	kv_mpi_buf_put(kv_mpi_of(net), (struct kv_mpi_buf *)(uintptr_t)end->own);
}

static int kv_mpi_take(struct kv_net *net, struct kv_net_request *requests, int max)
{
	struct kv_mpi_buf *buf;
	int n = 0, rank;
	size_t len;

	while (n < max && (buf = kv_mpi_receive(kv_mpi_of(net), KV_TAG_REQUEST, &rank, &len)))
		requests[n++] = (struct kv_net_request){
			.data = buf->bytes,
			.len = len,
			.own = { (uintptr_t)buf, (uint64_t)rank },
		};
	return n;
}

static void kv_mpi_reply(struct kv_net *net, const struct kv_net_request *request, const void *buf,
			 size_t len)
{
	struct kv_mpi *m = kv_mpi_of(net);
	struct kv_mpi_buf *taken = (struct kv_mpi_buf *)(uintptr_t)request->own[0];

	if (kv_mpi_send(m, (int)request->own[1], KV_TAG_RESPONSE, taken->id, buf, len))
		MPI_Abort(m->comm, EXIT_FAILURE); /* no memory */
	kv_mpi_buf_put(m, taken);
}

static void kv_mpi_flush(struct kv_net *net)
{
	(void)net; /* each message is sent at once */
}

/* MPI has nothing to sleep on: the daemon polls. */
static int kv_mpi_arm(struct kv_net *net, int *fd)
{
	(void)net;
	*fd = -1;
	return 0;
}

static int kv_mpi_connect(struct kv_net *net, const struct kv_name *names, uint32_t count)
{
	(void)net;
	(void)names;
	(void)count;
	return 0; /* targets are ranks */
}

static void kv_mpi_close(struct kv_net *net)
{
	struct kv_mpi *m = kv_mpi_of(net);
	struct kv_mpi_buf *buf;

	if (m->send_cnt)
		MPI_Waitall(m->send_cnt, m->sends, MPI_STATUSES_IGNORE);
	for (int i = 0; i < m->send_cnt; i++)
		free(m->send_bufs[i]);
	while ((buf = m->unused)) {
		m->unused = buf->next;
		free(buf);
	}
	MPI_Comm_free(&m->comm);
	free(m->sends);
	free(m->send_bufs);
	free(m->done);
	free(m->contexts);
	free(m->free_ids);
	free(m);
}

static const struct kv_net_ops kv_mpi_ops = {
	.call = kv_mpi_call,
	.poll = kv_mpi_poll,
	.release = kv_mpi_release,
	.take = kv_mpi_take,
	.reply = kv_mpi_reply,
	.flush = kv_mpi_flush,
	.arm = kv_mpi_arm,
	.connect = kv_mpi_connect,
	.close = kv_mpi_close,
};

int kv_net_open_mpi(struct kv_net **net, size_t request_max, size_t response_max)
{
	struct kv_mpi *m = calloc(1, sizeof(*m));

	if (!m)
		return -ENOMEM;
	m->net.ops = &kv_mpi_ops;
	m->bytes_max = request_max > response_max ? request_max : response_max;
	MPI_Comm_dup(MPI_COMM_WORLD, &m->comm);
	*net = &m->net;
	return 0;
}
