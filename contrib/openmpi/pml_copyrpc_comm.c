/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * State of a communicator: its bits of a tag, and the peers of its ranks, so that a message finds
 * both in one step. Called when Open MPI makes a communicator and when the last request of a freed
 * one is gone.
 */
#include <stdlib.h>

#include "pml_copyrpc.h"

/* The group that messages go to; that of an intra-communicator is its own. */
static int comm_peers(struct ompi_communicator_t *comm)
{
	return OMPI_COMM_IS_INTER(comm) ? ompi_comm_remote_size(comm) : ompi_comm_size(comm);
}

/** Returns an error if a communicator does not fit into a tag: context, number of ranks. */
int pml_comm_add(struct ompi_communicator_t *comm)
{
	int size = comm_peers(comm);
	struct pml_comm *state;

	if (PML_COMM_CONTEXT(comm) > PML_CONTEXT_MAX || size > PML_RANKS_MAX ||
	    ompi_comm_size(comm) > PML_RANKS_MAX)
		return OMPI_ERR_OUT_OF_RESOURCE;
	state = calloc(1, sizeof(*state) + size * sizeof(state->peers[0]));
	if (!state)
		return OMPI_ERR_OUT_OF_RESOURCE;
	state->context = pml_tag_pack(PML_COMM_CONTEXT(comm), 0, 0);
	state->source = pml_tag_pack(PML_COMM_CONTEXT(comm), comm->c_my_rank, 0);
	comm->c_pml_comm = (struct mca_pml_comm_t *)state;
	return OMPI_SUCCESS;
}

int pml_comm_del(struct ompi_communicator_t *comm)
{
	free(comm->c_pml_comm);
	comm->c_pml_comm = NULL;
	return OMPI_SUCCESS;
}

/** Looks up the peer of a rank for the first time. NULL: it has no address. */
struct pml_peer *pml_comm_lookup(struct ompi_communicator_t *comm, int rank)
{
	struct pml_peer *peer = pml_peers_open(ompi_comm_peer_lookup(comm, rank));

	pml_comm_of(comm)->peers[rank] = peer;
	return peer;
}
