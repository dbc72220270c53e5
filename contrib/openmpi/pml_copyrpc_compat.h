/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Headers of Open MPI, and what differs between its series. Included by pml_copyrpc.h alone.
 *
 * Open MPI 4.1 is what the component is built for and tested with. What 5.0 needs is collected
 * here as far as it is a name; it also has a further entry in the module (pml_revoke_comm) and has
 * not been built.
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
#include "opal/mca/pmix/pmix.h"
#include "opal/runtime/opal_progress.h"
#include "opal/threads/mutex.h"
#include "opal/util/output.h"

#if OMPI_MAJOR_VERSION == 4 && OMPI_MINOR_VERSION == 1
#define PML_COMM_CONTEXT(comm) ((comm)->c_contextid)
#define PML_MODEX_SCOPE        OPAL_PMIX_GLOBAL
#else
#error "the component is written for Open MPI 4.1"
#endif

/** Returns whether count elements are one run of bytes. (opal's own function takes an int32_t.) */
static inline bool pml_dtype_contiguous(const struct ompi_datatype_t *type, size_t count)
{
	uint16_t flags = type->super.flags;

	return (flags & OPAL_DATATYPE_FLAG_CONTIGUOUS) &&
	       (count <= 1 || (flags & OPAL_DATATYPE_FLAG_NO_GAPS));
}

#endif
