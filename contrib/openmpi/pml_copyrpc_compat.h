/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Headers of Open MPI, and what differs between its series 4.1 and 5.0. Included by pml_copyrpc.h
 * alone.
 */
#ifndef PML_COPYRPC_COMPAT_H
#define PML_COPYRPC_COMPAT_H

#include "ompi_config.h"

#include "mpi.h"
#include "ompi/communicator/communicator.h"
#include "ompi/constants.h"
#include "ompi/datatype/ompi_datatype.h"
#include "ompi/errhandler/errhandler.h"
#include "ompi/mca/pml/base/base.h"
#include "ompi/mca/pml/base/pml_base_bsend.h"
#include "ompi/mca/pml/base/pml_base_request.h"
#include "ompi/mca/pml/pml.h"
#include "ompi/message/message.h"
#include "ompi/proc/proc.h"
#include "ompi/request/request.h"
#include "opal/class/opal_free_list.h"
#include "opal/class/opal_list.h"
#include "opal/datatype/opal_convertor.h"
#include "opal/mca/base/mca_base_pvar.h"
#include "opal/runtime/opal_progress.h"
#include "opal/util/output.h"

#if OMPI_MAJOR_VERSION == 4 && OMPI_MINOR_VERSION == 1
#include "opal/mca/pmix/pmix.h"
#include "opal/threads/mutex.h"

#define PML_BASE_VERSION MCA_PML_BASE_VERSION_2_0_0
#define PML_MODEX_SCOPE  OPAL_PMIX_GLOBAL

/** Returns the number of a communicator, which is the same in all of its processes. */
static inline uint32_t pml_compat_context(const struct ompi_communicator_t *comm)
{
	return comm->c_contextid;
}

/** Returns whether a communicator was made of a group: its processes have no such number. */
static inline bool pml_compat_is_of_group(const struct ompi_communicator_t *comm)
{
	return false;
}

/** Returns the number that a communicator of a group has instead, unique in the job. */
static inline uint64_t pml_compat_group_number(const struct ompi_communicator_t *comm)
{
	return 0;
}

/** Tells Open MPI that communicators of groups are supported, where it has them. */
static inline void pml_compat_set_flags(mca_pml_base_module_t *module)
{
}

/** Returns whether threads may call MPI at the same time, in the call that selects a PML. */
static inline bool pml_compat_threads(bool mpi_threads)
{
	return mpi_threads;
}

/** Sets the first item of a list that no other thread uses. */
static inline void pml_compat_lifo_set(opal_lifo_t *lifo, opal_list_item_t *item)
{
	lifo->opal_lifo_head.data.item = item;
}

#elif OMPI_MAJOR_VERSION == 5 && OMPI_MINOR_VERSION == 0
#include "opal/mca/pmix/pmix-internal.h"
#include "opal/mca/threads/mutex.h"
#include "opal/mca/threads/thread_usage.h"

#define PML_BASE_VERSION MCA_PML_BASE_VERSION_2_1_0
#define PML_MODEX_SCOPE  PMIX_GLOBAL

static inline uint32_t pml_compat_context(const struct ompi_communicator_t *comm)
{
	return ompi_comm_get_local_cid(comm);
}

static inline bool pml_compat_is_of_group(const struct ompi_communicator_t *comm)
{
	return !OMPI_COMM_IS_GLOBAL_INDEX(comm);
}

/* PMIx has chosen it. */
static inline uint64_t pml_compat_group_number(const struct ompi_communicator_t *comm)
{
	return comm->c_contextid.cid_base;
}

static inline void pml_compat_set_flags(mca_pml_base_module_t *module)
{
	module->pml_flags = MCA_PML_BASE_FLAG_SUPPORTS_EXT_CID;
}

/* MPI_Session_init() with MPI_THREAD_MULTIPLE sets the second one alone. */
static inline bool pml_compat_threads(bool mpi_threads)
{
	return mpi_threads || opal_using_threads();
}

static inline void pml_compat_lifo_set(opal_lifo_t *lifo, opal_list_item_t *item)
{
	lifo->opal_lifo_head.data.item = (intptr_t)item;
}

#else
#error "the component is written for Open MPI 4.1 and 5.0"
#endif

/** Returns whether count elements are one run of bytes. (opal's own function takes an int32_t.) */
static inline bool pml_dtype_contiguous(const struct ompi_datatype_t *type, size_t count)
{
	uint16_t flags = type->super.flags;

	return (flags & OPAL_DATATYPE_FLAG_CONTIGUOUS) &&
	       (count <= 1 || (flags & OPAL_DATATYPE_FLAG_NO_GAPS));
}

#endif
