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

static opal_mutex_t groups_lock = OPAL_MUTEX_STATIC_INIT;
static struct pml_comm *groups; /* communicators that were made of a group */

/* Returns the place of a pointer to a communicator of a group, or the end. */
static struct pml_comm **comm_find_group(uint64_t context)
{
	struct pml_comm **at = &groups;

	while (*at && (*at)->context != context)
		at = &(*at)->next;
	return at;
}

/*
 * Adds a communicator of a group. A number of the job is long, and its low bits are the context:
 * another communicator of this process may have the same. Then it returns an error.
 */
static int comm_add_group(struct pml_comm *state)
{
	struct pml_comm **at;
	int rc = OMPI_ERR_OUT_OF_RESOURCE;

	PML_LOCK(&groups_lock);
	at = comm_find_group(state->context);
	if (!*at) {
		*at = state;
		rc = OMPI_SUCCESS;
	}
	PML_UNLOCK(&groups_lock);
	return rc;
}

static void comm_remove_group(struct pml_comm *state)
{
	struct pml_comm **at;

	PML_LOCK(&groups_lock);
	at = comm_find_group(state->context);
	if (*at == state)
		*at = state->next;
	PML_UNLOCK(&groups_lock);
}

static uint32_t comm_context(const struct ompi_communicator_t *comm)
{
	if (!pml_compat_is_of_group(comm))
		return pml_compat_context(comm);
	return PML_CONTEXT_GROUP | (pml_compat_group_number(comm) & (PML_CONTEXT_GROUP - 1));
}

/** Returns an error if a communicator does not fit into a tag: context, number of ranks. */
int pml_comm_add(struct ompi_communicator_t *comm)
{
	uint32_t context = comm_context(comm);
	int size = comm_peers(comm);
	struct pml_comm *state;

	if (context > PML_CONTEXT_MAX || size > PML_RANKS_MAX ||
	    ompi_comm_size(comm) > PML_RANKS_MAX)
		return OMPI_ERR_OUT_OF_RESOURCE;
	state = calloc(1, sizeof(*state) + size * sizeof(state->peers[0]));
	if (!state)
		return OMPI_ERR_OUT_OF_RESOURCE;
	state->context = pml_tag_pack(context, 0, 0);
	state->source = pml_tag_pack(context, comm->c_my_rank, 0);
	if (pml_compat_is_of_group(comm) && comm_add_group(state) != OMPI_SUCCESS) {
		free(state);
		return OMPI_ERR_OUT_OF_RESOURCE;
	}
	comm->c_pml_comm = (struct mca_pml_comm_t *)state;
	return OMPI_SUCCESS;
}

int pml_comm_del(struct ompi_communicator_t *comm)
{
	struct pml_comm *state = pml_comm_of(comm);

	if (state && pml_compat_is_of_group(comm))
		comm_remove_group(state);
	free(state);
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
