/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The component as Open MPI loads it: parameters, selection, end. And the module: the table of
 * functions that MPI calls.
 *
 * Open MPI asks a PML that it does not know only if `pml = copyrpc` names it. Then there is no
 * other candidate, so a failure here ends the job instead of falling back to another transport.
 */
#include <string.h>

#include "pml_copyrpc_request.h"

struct pml pml;
volatile bool pml_held;

static void param(const char *name, const char *help, mca_base_var_type_t type, void *value)
{
	(void)mca_base_component_var_register(&mca_pml_copyrpc_component.pmlm_version, name, help,
					      type, NULL, 0, 0, OPAL_INFO_LVL_3,
					      MCA_BASE_VAR_SCOPE_READONLY, value);
}

static int component_register(void)
{
	pml.priority = 60;
	pml.use_directed = 1;
	pml.use_match = 1;
	pml.use_key = 1;
	pml.use_btls = 1;
	pml.connect = 7;
	pml.provider = NULL;
	pml.provider_path = NULL;
	param("priority", "Priority among the components that pml names", MCA_BASE_VAR_TYPE_INT,
	      &pml.priority);
	param("provider",
	      "Name of the libfabric provider; without it FI_PROVIDER decides, or copyrpc is used",
	      MCA_BASE_VAR_TYPE_STRING, &pml.provider);
	param("provider_path", "Directory of the provider; FI_PROVIDER_PATH has precedence",
	      MCA_BASE_VAR_TYPE_STRING, &pml.provider_path);
	param("directed",
	      "Use FI_DIRECTED_RECV where the provider has it, so that a receive from a peer that "
	      "dies ends with an error",
	      MCA_BASE_VAR_TYPE_INT, &pml.use_directed);
	param("match",
	      "Use FI_MATCH_COMPLETE for synchronous sends where the provider has it, instead of "
	      "acknowledgements",
	      MCA_BASE_VAR_TYPE_INT, &pml.use_match);
	param("job_key",
	      "Use the secret that mpirun gives the processes of a job as FI_COPYRPC_JOB_KEY, "
	      "unless that is set; 0: no",
	      MCA_BASE_VAR_TYPE_INT, &pml.use_key);
	param("connect",
	      "Connect to the other processes of the node in MPI_Init if they are at most that "
	      "many (up to 64); 0: each connection waits for its first message",
	      MCA_BASE_VAR_TYPE_INT, &pml.connect);
	param("btls",
	      "Open the BTLs (1): one-sided operations of Open MPI 5.0 take them; 4.1 opens "
	      "them itself",
	      MCA_BASE_VAR_TYPE_INT, &pml.use_btls);
	pml_pvars_register();
	param("verbose", "Report the provider that was selected (1)", MCA_BASE_VAR_TYPE_INT,
	      &pml.verbose);
	return OMPI_SUCCESS;
}

/* Structures of Open MPI whose size depends on how it was built, or on a header of missing/. */
static bool component_fits(void)
{
	return opal_mutex_t_class.cls_sizeof == sizeof(opal_mutex_t) &&
	       mca_pml_base_request_t_class.cls_sizeof == sizeof(mca_pml_base_request_t) &&
	       ompi_communicator_t_class.cls_sizeof == sizeof(ompi_communicator_t);
}

static int component_open(void)
{
	if (!component_fits()) {
		opal_output(0, "pml copyrpc: built with headers of an Open MPI that was "
			       "configured otherwise than this one");
		return OMPI_ERR_NOT_AVAILABLE;
	}
	pml.output = opal_output_open(NULL);
	opal_output_set_verbosity(pml.output, pml.verbose);
	return OMPI_SUCCESS;
}

static int component_close(void)
{
	opal_output_close(pml.output);
	return OMPI_SUCCESS;
}

static void init_state(bool threads)
{
	pml.threads = threads;
	OBJ_CONSTRUCT(&pml.cursor_lock, opal_mutex_t);
	OBJ_CONSTRUCT(&pml.deferred_lock, opal_mutex_t);
	OBJ_CONSTRUCT(&pml.sync_lock, opal_mutex_t);
	OBJ_CONSTRUCT(&pml.blocked, opal_list_t);
	OBJ_CONSTRUCT(&pml.deferred_recvs, opal_list_t);
}

static mca_pml_base_module_t *component_init(int *priority, bool progress_threads, bool mpi_threads)
{
	bool threads = pml_compat_threads(mpi_threads);

	init_state(threads);
	if (pml_fabric_open(threads) != OMPI_SUCCESS)
		return NULL;
	if (pml_peers_publish() != OMPI_SUCCESS ||
	    pml_onesided_open(progress_threads, threads) != OMPI_SUCCESS) {
		pml_onesided_close();
		pml_fabric_close();
		return NULL;
	}
	pml_compat_set_flags(&pml_module);
	*priority = pml.priority;
	return &pml_module;
}

static int component_fini(void)
{
	if (pml.enabled)
		opal_progress_unregister(pml_progress);
	pml.enabled = false;
	pml_wait_restore();
	pml_onesided_close();
	pml_fabric_close();
	return OMPI_SUCCESS;
}

mca_pml_base_component_t mca_pml_copyrpc_component __attribute__((visibility("default"))) = {
	.pmlm_version = {
		PML_BASE_VERSION,
		.mca_component_name = "copyrpc",
		.mca_component_major_version = OMPI_MAJOR_VERSION,
		.mca_component_minor_version = OMPI_MINOR_VERSION,
		.mca_component_release_version = OMPI_RELEASE_VERSION,
		.mca_open_component = component_open,
		.mca_close_component = component_close,
		.mca_register_component_params = component_register,
	},
	.pmlm_data = { .param_field = MCA_BASE_METADATA_PARAM_NONE },
	.pmlm_init = component_init,
	.pmlm_finalize = component_fini,
};

/* Called by MPI_Init() once the selection is made. */
static int module_enable(bool enable)
{
	if (!enable)
		return OMPI_SUCCESS;
	pml.enabled = true;
	pml_wait_replace();
	return pml_request_lists_init();
}

/* The provider has the queues of posted receives and unexpected messages and lists neither. */
static int module_dump(struct ompi_communicator_t *comm, int verbose)
{
	opal_output(0, "pml copyrpc: context %u: %d refused operations, %d sends without a user",
		    (unsigned)(pml_comm_of(comm)->context >> PML_CONTEXT_SHIFT),
		    (int)pml.blocked_cnt, (int)pml.internal);
	return OMPI_SUCCESS;
}

mca_pml_base_module_t pml_module = {
	.pml_add_procs = pml_peers_add_procs,
	.pml_del_procs = pml_peers_del_procs,
	.pml_enable = module_enable,
	.pml_progress = pml_progress,
	.pml_add_comm = pml_comm_add,
	.pml_del_comm = pml_comm_del,
	.pml_irecv_init = pml_recv_irecv_init,
	.pml_irecv = pml_recv_irecv,
	.pml_recv = pml_recv_recv,
	.pml_isend_init = pml_send_isend_init,
	.pml_isend = pml_send_isend,
	.pml_send = pml_send_send,
	.pml_iprobe = pml_probe_iprobe,
	.pml_probe = pml_probe_probe,
	.pml_start = pml_start,
	.pml_improbe = pml_probe_improbe,
	.pml_mprobe = pml_probe_mprobe,
	.pml_imrecv = pml_probe_imrecv,
	.pml_mrecv = pml_probe_mrecv,
	.pml_dump = module_dump,
	.pml_max_contextid = PML_CONTEXT_GROUP - 1,
	.pml_max_tag = PML_TAG_MAX,
};
