/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Performance variables of MPI_T: what slows messages down and a program can change. Each is
 * counted in a path that is slow by itself; a handle of MPI_T counts from its allocation.
 */
#include "pml_copyrpc.h"

struct pml_pvars pml_pvars;

static void pvar(const char *name, const char *help, unsigned long long *counter)
{
	(void)mca_base_component_pvar_register(
		&mca_pml_copyrpc_component.pmlm_version, name, help, OPAL_INFO_LVL_4,
		MCA_BASE_PVAR_CLASS_COUNTER, MCA_BASE_VAR_TYPE_UNSIGNED_LONG_LONG, NULL,
		MCA_BASE_VAR_BIND_NO_OBJECT,
		MCA_BASE_PVAR_FLAG_READONLY | MCA_BASE_PVAR_FLAG_CONTINUOUS, NULL, NULL, NULL,
		counter);
}

/** Registers the variables. Called when the component registers its parameters. */
void pml_pvars_register(void)
{
	pvar("packed_bytes", "Bytes copied because the data of a message was not contiguous",
	     &pml_pvars.packed_bytes);
	pvar("refused_sends", "Sends that waited because the provider took no more",
	     &pml_pvars.refused_sends);
	pvar("refused_recvs", "Receives that waited because the provider took no more",
	     &pml_pvars.refused_recvs);
	pvar("sync_sends", "Synchronous sends, each with a reply of its receiver",
	     &pml_pvars.sync_sends);
	pvar("failures", "Messages that failed or were lost, truncated and cancelled ones excepted",
	     &pml_pvars.failures);
}
