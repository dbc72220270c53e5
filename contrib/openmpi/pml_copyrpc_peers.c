/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Addresses of the other processes: publishes the endpoint's own through Open MPI's modex, and
 * inserts those of the others into the address vector. Called by add_procs and, for a process that
 * add_procs has not seen, by the first message to it.
 */
#include <stdlib.h>

#include "pml_copyrpc_request.h"

/** Seconds for which sends that no user waits for are waited for at the end. */
#define FINISH_SECONDS 30

static void peer_construct(struct pml_peer *peer)
{
	peer->addr = FI_ADDR_UNSPEC;
	peer->deferred_cnt = 0;
	peer->matching = 0;
	OBJ_CONSTRUCT(&peer->deferred, opal_list_t);
}

static void peer_destruct(struct pml_peer *peer)
{
	OBJ_DESTRUCT(&peer->deferred);
}

typedef struct pml_peer pml_peer_t;
OBJ_CLASS_DECLARATION(pml_peer_t);
OBJ_CLASS_INSTANCE(pml_peer_t, opal_list_item_t, peer_construct, peer_destruct);

/** Publishes the address of the endpoint. */
int pml_peers_publish(void)
{
	char name[512];
	size_t len = sizeof(name);
	int rc = fi_getname(&pml.ep->fid, name, &len);

	if (rc)
		return pml_request_errno(rc, "fi_getname");
	OPAL_MODEX_SEND(rc, PML_MODEX_SCOPE, &mca_pml_copyrpc_component.pmlm_version, name, len);
	return rc;
}

static int peer_insert(struct pml_peer *peer, struct ompi_proc_t *proc)
{
	void *name = NULL;
	size_t len = 0;
	int rc;

	OPAL_MODEX_RECV(rc, &mca_pml_copyrpc_component.pmlm_version, &proc->super.proc_name, &name,
			&len);
	if (rc != OMPI_SUCCESS || name == NULL)
		return OMPI_ERR_NOT_FOUND;
	rc = fi_av_insert(pml.av, name, 1, &peer->addr, 0, NULL);
	free(name);
	return rc == 1 ? OMPI_SUCCESS : OMPI_ERR_UNREACH;
}

static struct pml_peer *peer_open_locked(struct ompi_proc_t *proc)
{
	struct pml_peer *peer = proc->proc_endpoints[OMPI_PROC_ENDPOINT_TAG_PML];
	int rc;

	if (peer)
		return peer;
	peer = OBJ_NEW(pml_peer_t);
	if (!peer)
		return NULL;
	rc = peer_insert(peer, proc);
	if (rc != OMPI_SUCCESS) {
		opal_output(0,
			    "pml copyrpc: no address of process %s: it has to select pml copyrpc, "
			    "too, and the same provider",
			    OMPI_NAME_PRINT(&proc->super.proc_name));
		OBJ_RELEASE(peer);
		return NULL;
	}
	opal_atomic_wmb();
	proc->proc_endpoints[OMPI_PROC_ENDPOINT_TAG_PML] = peer;
	return peer;
}

/** Returns the peer of a process, whose address is found out at the first call, or NULL. */
struct pml_peer *pml_peers_open(struct ompi_proc_t *proc)
{
	static opal_mutex_t lock = OPAL_MUTEX_STATIC_INIT;
	struct pml_peer *peer;

	PML_LOCK(&lock);
	peer = peer_open_locked(proc);
	PML_UNLOCK(&lock);
	return peer;
}

static int peer_check(struct ompi_proc_t *proc)
{
	if (proc->super.proc_arch != ompi_proc_local()->super.proc_arch) {
		opal_output(0,
			    "pml copyrpc: process %s has another byte order or other sizes of "
			    "types: use pml ob1",
			    OMPI_NAME_PRINT(&proc->super.proc_name));
		return OMPI_ERR_NOT_SUPPORTED;
	}
	return pml_peers_open(proc) ? OMPI_SUCCESS : OMPI_ERR_UNREACH;
}

/** Returns an error if a process uses another PML, or has another byte order or no address. */
int pml_peers_add_procs(struct ompi_proc_t **procs, size_t count)
{
	int rc = mca_pml_base_pml_check_selected("copyrpc", procs, count);

	for (size_t i = 0; i < count && rc == OMPI_SUCCESS; i++)
		rc = peer_check(procs[i]);
	if (rc == OMPI_SUCCESS)
		pml_connect_all(procs, count);
	return rc;
}

/*
 * Whatever a correct program has sent was received before its processes part; only local
 * completions are missing. The limit is for programs in which a message has no receive.
 */
static void peers_finish_sends(void)
{
	double end = MPI_Wtime() + FINISH_SECONDS;

	pml_let_go();
	while ((pml.internal > 0 || pml.blocked_cnt > 0) && MPI_Wtime() < end)
		pml_progress();
}

static void peer_close(struct pml_peer *peer)
{
	(void)fi_av_remove(pml.av, &peer->addr, 1, 0);
	OBJ_RELEASE(peer);
}

/**
 * Called at the end alone, for all processes: by MPI_Finalize() or, in 5.0, by the end of the last
 * session. MPI_Comm_disconnect() does not call it.
 */
int pml_peers_del_procs(struct ompi_proc_t **procs, size_t count)
{
	peers_finish_sends();
	pml_onesided_del_procs(procs, count);
	for (size_t i = 0; i < count; i++) {
		struct pml_peer *peer = procs[i]->proc_endpoints[OMPI_PROC_ENDPOINT_TAG_PML];

		procs[i]->proc_endpoints[OMPI_PROC_ENDPOINT_TAG_PML] = NULL;
		if (peer)
			peer_close(peer);
	}
	return OMPI_SUCCESS;
}
