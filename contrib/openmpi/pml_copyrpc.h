/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * State of the component and the functions that its files share.
 *
 * MPI point-to-point directly on fi_tagged: one endpoint, one completion queue and one address
 * vector for the process. Matching is the provider's. README.md in this directory describes the
 * design, the thread rules and the limits.
 */
#ifndef PML_COPYRPC_H
#define PML_COPYRPC_H

#include "pml_copyrpc_compat.h"
#include "pml_copyrpc_tag.h"

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>

/** Completions that one fi_cq_read() takes. */
#define PML_CQ_BATCH 32

/* pml_copyrpc_component.c */
extern mca_pml_base_component_t mca_pml_copyrpc_component;

/* The other variables and functions: addressed without the global offset table. */
#pragma GCC visibility push(hidden)

/** Largest number of processes that MPI_Init() connects to. */
#define PML_CONNECT_MAX 64

/** A process that messages go to, in proc_endpoints of its ompi_proc_t. */
struct pml_peer {
	opal_list_item_t super; /**< in pml.blocked while something is in deferred */
	fi_addr_t addr;
	/** Sends that the provider refused with -FI_EAGAIN, in order, and their number. */
	opal_list_t deferred;
	volatile size_t deferred_cnt;
	int32_t matching; /**< open synchronous sends with FI_MATCH_COMPLETE */
};

/** State of a communicator, in its c_pml_comm. */
struct pml_comm {
	uint64_t context;         /**< bits of a tag */
	uint64_t source;          /**< context and own rank */
	struct pml_comm *next;    /**< another one that was made of a group */
	struct pml_peer *peers[]; /**< by rank of the remote group; NULL: not looked up yet */
};

struct pml {
	/* read by each message */
	struct fid_ep *ep;
	/** Alias whose sends are injected and write no completion, or NULL. */
	struct fid_ep *silent_ep;
	size_t silent_end; /**< messages with fewer bytes go there; 0 without it */
	/** Alias whose sends complete when they have matched, or NULL. */
	struct fid_ep *match_ep;
	/** Alias whose sends complete when their buffer may be used again, or NULL. */
	struct fid_ep *copied_ep;
	struct fid_ep *blocking_ep; /**< takes blocking sends with a request: copied_ep, or ep */
	/**
	 * Reasons for which receives take the general path: threads, a provider without directed
	 * receives, each one in deferred_recvs.
	 */
	volatile size_t recv_detours;
	bool threads;  /**< MPI_THREAD_MULTIPLE: locks are taken */
	bool directed; /**< the provider has FI_DIRECTED_RECV and the user wants it */
	size_t inject_size;

	/* completions: pml_copyrpc_progress.c */
	opal_mutex_t cursor_lock;
	const struct fi_cq_tagged_entry *next, *end; /**< in entries */
	struct fi_cq_tagged_entry entries[PML_CQ_BATCH];
	struct fid_cq *cq;

	/* refused operations: pml_copyrpc_deferred.c */
	opal_mutex_t deferred_lock;
	volatile size_t blocked_cnt;       /**< peers in blocked */
	volatile size_t deferred_recv_cnt; /**< receives in deferred_recvs */
	opal_list_t blocked;
	opal_list_t deferred_recvs;

	opal_mutex_t sync_lock; /**< orders a synchronous send and its acknowledgement's receive */
	volatile int32_t internal; /**< sends in flight that no user waits for */

	/* fabric: pml_copyrpc_fabric.c */
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	bool enabled;
	bool match;   /**< the provider has FI_MATCH_COMPLETE and the user wants it */
	bool has_key; /**< the launcher's secret is the job key */

	/* parameters: pml_copyrpc_component.c */
	char *provider;
	char *provider_path;
	int priority;
	int use_directed;
	int use_key;
	int use_match;
	int use_btls;
	int connect;
	int verbose;
	int output;
};

/** Counters of pml_copyrpc_pvar.c, which MPI_T reads. */
struct pml_pvars {
	unsigned long long packed_bytes;
	unsigned long long refused_sends;
	unsigned long long refused_recvs;
	unsigned long long sync_sends;
	unsigned long long failures;
};

/** Hides a variable in memory from the optimizer, which else keeps it in a register, too. */
#define PML_KEEP(variable) __asm__("" : "+m"(variable))

extern struct pml pml;

/**
 * A complete send may wait in the provider for the next read of the queue. By itself, so that its
 * address needs no register.
 */
extern volatile bool pml_held;

extern struct pml_pvars pml_pvars;
extern mca_pml_base_module_t pml_module;

#define PML_LOCK(mutex)                                                                            \
	do {                                                                                       \
		if (pml.threads)                                                                   \
			opal_mutex_lock(mutex);                                                    \
	} while (0)

#define PML_UNLOCK(mutex)                                                                          \
	do {                                                                                       \
		if (pml.threads)                                                                   \
			opal_mutex_unlock(mutex);                                                  \
	} while (0)

/* pml_copyrpc_fabric.c */
int pml_fabric_open(bool threads);
void pml_fabric_close(void);

/* pml_copyrpc_peers.c */
int pml_peers_publish(void);
struct pml_peer *pml_peers_open(struct ompi_proc_t *proc);
int pml_peers_add_procs(struct ompi_proc_t **procs, size_t count);
int pml_peers_del_procs(struct ompi_proc_t **procs, size_t count);

/* pml_copyrpc_onesided.c */
int pml_onesided_open(bool progress_threads, bool mpi_threads);
void pml_onesided_del_procs(struct ompi_proc_t **procs, size_t count);
void pml_onesided_close(void);

/* pml_copyrpc_pvar.c */
void pml_pvars_register(void);

static inline void pml_pvar_add(unsigned long long *counter, unsigned long long by)
{
	(void)__atomic_fetch_add(counter, by, __ATOMIC_RELAXED);
}

/* pml_copyrpc_connect.c */
void pml_connect_all(struct ompi_proc_t **procs, size_t count);
void pml_connect_ended(void);

/* pml_copyrpc_comm.c */
int pml_comm_add(struct ompi_communicator_t *comm);
int pml_comm_del(struct ompi_communicator_t *comm);
struct pml_peer *pml_comm_lookup(struct ompi_communicator_t *comm, int rank);

static inline struct pml_comm *pml_comm_of(const struct ompi_communicator_t *comm)
{
	return (struct pml_comm *)comm->c_pml_comm;
}

/** Returns the peer of a rank of the communicator's remote group. NULL: it has no address. */
static inline struct pml_peer *pml_peer_of(struct ompi_communicator_t *comm, int rank)
{
	struct pml_peer *peer = pml_comm_of(comm)->peers[rank];

	return OPAL_LIKELY(peer != NULL) ? peer : pml_comm_lookup(comm, rank);
}

/* pml_copyrpc_progress.c */
int pml_progress(void);

void pml_let_go_cold(void);

/** Lets those sends leave that are complete and still in the provider. */
static inline void pml_let_go(void)
{
	if (pml_held)
		pml_let_go_cold();
}

/* pml_copyrpc_send.c */
int pml_send_isend_init(const void *buf, size_t count, struct ompi_datatype_t *type, int dst,
			int tag, mca_pml_base_send_mode_t mode, struct ompi_communicator_t *comm,
			struct ompi_request_t **request);
int pml_send_isend(const void *buf, size_t count, struct ompi_datatype_t *type, int dst, int tag,
		   mca_pml_base_send_mode_t mode, struct ompi_communicator_t *comm,
		   struct ompi_request_t **request);
int pml_send_send(const void *buf, size_t count, struct ompi_datatype_t *type, int dst, int tag,
		  mca_pml_base_send_mode_t mode, struct ompi_communicator_t *comm);

/* pml_copyrpc_recv.c */
int pml_recv_irecv_init(void *buf, size_t count, struct ompi_datatype_t *type, int src, int tag,
			struct ompi_communicator_t *comm, struct ompi_request_t **request);
int pml_recv_irecv(void *buf, size_t count, struct ompi_datatype_t *type, int src, int tag,
		   struct ompi_communicator_t *comm, struct ompi_request_t **request);
int pml_recv_recv(void *buf, size_t count, struct ompi_datatype_t *type, int src, int tag,
		  struct ompi_communicator_t *comm, ompi_status_public_t *status);

/* pml_copyrpc_probe.c */
int pml_probe_iprobe(int src, int tag, struct ompi_communicator_t *comm, int *matched,
		     ompi_status_public_t *status);
int pml_probe_probe(int src, int tag, struct ompi_communicator_t *comm,
		    ompi_status_public_t *status);
int pml_probe_improbe(int src, int tag, struct ompi_communicator_t *comm, int *matched,
		      struct ompi_message_t **message, ompi_status_public_t *status);
int pml_probe_mprobe(int src, int tag, struct ompi_communicator_t *comm,
		     struct ompi_message_t **message, ompi_status_public_t *status);
int pml_probe_imrecv(void *buf, size_t count, struct ompi_datatype_t *type,
		     struct ompi_message_t **message, struct ompi_request_t **request);
int pml_probe_mrecv(void *buf, size_t count, struct ompi_datatype_t *type,
		    struct ompi_message_t **message, ompi_status_public_t *status);

/* pml_copyrpc_start.c */
int pml_start(size_t count, struct ompi_request_t **requests);

#pragma GCC visibility pop

#endif
