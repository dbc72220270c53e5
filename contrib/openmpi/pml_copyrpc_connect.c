/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Connections within a node that are made in MPI_Init(): an empty message that no user sees makes
 * the provider connect. Of two processes, the one with the higher name sends it and the other
 * receives it. Called by the first add_procs, which has all processes of the node and waits for
 * these messages for a moment; above a number of processes each connection waits for its first
 * message.
 */
#include <sched.h>

#include "pml_copyrpc_request.h"

/* Time for which MPI_Init() waits. A connection takes 1 to 2 ms, and goes on after that. */
#define CONNECT_SECONDS 0.01

/* Operations outlive their peers: a receive whose message never arrives is posted until the end. */
static struct pml_op ops[PML_CONNECT_MAX];
static int32_t pending; /* operations that have not ended */

static bool connect_is_near(const struct ompi_proc_t *proc)
{
	return proc != ompi_proc_local() && OPAL_PROC_ON_LOCAL_NODE(proc->super.proc_flags);
}

static size_t connect_count(struct ompi_proc_t **procs, size_t count)
{
	size_t near = 0;

	for (size_t i = 0; i < count; i++)
		near += connect_is_near(procs[i]);
	return near;
}

/* A provider that refuses connects at the first message, and failures are reported with that. */
static void connect_to(struct ompi_proc_t *proc, struct pml_op *op)
{
	struct pml_peer *peer = pml_peers_open(proc);
	opal_process_name_t own = ompi_proc_local()->super.proc_name;
	ssize_t rc;

	if (!peer)
		return;
	op->kind = PML_OP_CONNECT;
	if (opal_compare_proc(own, proc->super.proc_name) > 0)
		rc = fi_tsend(pml.ep, NULL, 0, NULL, peer->addr, PML_TAG_CONNECT, op);
	else
		rc = fi_trecv(pml.ep, NULL, 0, NULL, pml.directed ? peer->addr : FI_ADDR_UNSPEC,
			      PML_TAG_CONNECT, 0, op);
	if (rc == 0)
		__atomic_add_fetch(&pending, 1, __ATOMIC_RELAXED);
}

/** Notes that an operation has ended, however. Called by progress. */
void pml_connect_ended(void)
{
	__atomic_sub_fetch(&pending, 1, __ATOMIC_RELAXED);
}

static void connect_wait(void)
{
	double end = MPI_Wtime() + CONNECT_SECONDS;

	while (__atomic_load_n(&pending, __ATOMIC_RELAXED) > 0 && MPI_Wtime() < end)
		if (pml_progress() == 0)
			sched_yield();
}

/** Connects to the other processes of the node, if they are few. Later calls do nothing. */
void pml_connect_all(struct ompi_proc_t **procs, size_t count)
{
	static bool called;
	size_t near = connect_count(procs, count), cnt = 0;

	if (called || near == 0)
		return;
	called = true;
	if (pml.connect <= 0 || near > (size_t)pml.connect || near > PML_CONNECT_MAX)
		return;
	for (size_t i = 0; i < count; i++)
		if (connect_is_near(procs[i]))
			connect_to(procs[i], &ops[cnt++]);
	connect_wait();
}
