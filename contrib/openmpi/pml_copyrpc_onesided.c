/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Transports of one-sided operations. In Open MPI 5.0 osc/rdma has those BTLs that the PML opens,
 * and without any there are no windows but shared ones of one host. 4.1 opens them itself, and has
 * osc/pt2pt, which makes no windows with MPI_THREAD_MULTIPLE. Called by the component and when
 * processes leave; nothing else of this component uses a BTL.
 */
#include "pml_copyrpc.h"

#if OMPI_MAJOR_VERSION >= 5

#include "ompi/mca/bml/base/base.h"

static bool opened;

/** Opens the BTLs that the parameter btl selects. Returns OMPI_SUCCESS or an error. */
int pml_onesided_open(bool progress_threads, bool mpi_threads)
{
	int rc;

	if (!pml.use_btls)
		return OMPI_SUCCESS;
	rc = mca_base_framework_open(&ompi_bml_base_framework, 0);
	if (rc != OMPI_SUCCESS)
		return rc;
	opened = true;
	return mca_bml_base_init(progress_threads, mpi_threads);
}

/** Closes the connections to processes that leave. */
void pml_onesided_del_procs(struct ompi_proc_t **procs, size_t count)
{
	if (opened && mca_bml.bml_del_procs)
		(void)mca_bml.bml_del_procs(count, procs);
}

void pml_onesided_close(void)
{
	if (!opened)
		return;
	opened = false;
	if (mca_bml.bml_finalize)
		(void)mca_bml.bml_finalize();
	(void)mca_base_framework_close(&ompi_bml_base_framework);
}

#else

/** Priorities of osc/rdma: what copyrpc_env sets, and one above that of osc/pt2pt, which is 10. */
#define ONESIDED_RDMA_LAST  1
#define ONESIDED_RDMA_FIRST 20

/*
 * Puts osc/rdma in front of osc/pt2pt, unless the user has chosen a priority. Open MPI asks the
 * component with the highest priority for a window, and no other if it refuses. The parameter
 * cannot be set by mca_base_var_set_value(); osc/rdma reads it for each window.
 */
static void onesided_prefer_rdma(void)
{
	int index = mca_base_var_find("ompi", "osc", "rdma", "priority");
	mca_base_var_storage_t *value = NULL;

	if (index < 0 || mca_base_var_get_value(index, &value, NULL, NULL) != OPAL_SUCCESS)
		return;
	if (value && value->uintval == ONESIDED_RDMA_LAST)
		value->uintval = ONESIDED_RDMA_FIRST;
}

/** Prefers the one-sided operations that work with the threads of this program. */
int pml_onesided_open(bool progress_threads, bool mpi_threads)
{
	if (mpi_threads)
		onesided_prefer_rdma();
	return OMPI_SUCCESS;
}

void pml_onesided_del_procs(struct ompi_proc_t **procs, size_t count)
{
}

void pml_onesided_close(void)
{
}

#endif
