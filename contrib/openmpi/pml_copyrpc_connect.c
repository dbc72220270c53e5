/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Connections within a node that are made while MPI_Init() waits for other processes anyway: an
 * empty message that no user sees makes the provider connect. Of two processes, the one with the
 * higher name sends it and the other receives it. Called by the first add_procs, which has all
 * processes of the node; above a number of them each connection waits for its first message.
 */
#include "pml_copyrpc_request.h"

/* Operations outlive their peers: a receive whose message never arrives is posted until the end. */
static struct pml_op ops[PML_CONNECT_MAX];

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

	if (!peer)
		return;
	op->kind = PML_OP_CONNECT;
	if (opal_compare_proc(own, proc->super.proc_name) > 0)
		(void)fi_tsend(pml.ep, NULL, 0, NULL, peer->addr, PML_TAG_CONNECT, op);
	else
		(void)fi_trecv(pml.ep, NULL, 0, NULL, pml.directed ? peer->addr : FI_ADDR_UNSPEC,
			       PML_TAG_CONNECT, 0, op);
}

/** Begins connections to the other processes of the node, if few. Later calls do nothing. */
void pml_connect_begin(struct ompi_proc_t **procs, size_t count)
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
}
