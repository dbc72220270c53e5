/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Starts persistent requests: MPI_Start(), MPI_Startall() and Open MPI's own, which starts requests
 * again from their completion callbacks.
 */
#include "pml_copyrpc_request.h"

static int start_one(struct pml_request *req)
{
	int rc;

	pml_request_drop_transfer(req);
	pml_request_activate(req);
	if (req->base.req_type == MCA_PML_REQUEST_SEND) {
		rc = pml_send_start(req);
	} else {
		rc = pml_recv_start(req, req->base.req_addr, req->base.req_count,
				    req->base.req_datatype);
	}
	if (rc != OMPI_SUCCESS) {
		req->state = PML_DONE;
		req->base.req_ompi.req_state = OMPI_REQUEST_INACTIVE;
		req->base.req_ompi.req_complete = REQUEST_COMPLETED;
	}
	return rc;
}

int pml_start(size_t count, struct ompi_request_t **requests)
{
	for (size_t i = 0; i < count; i++) {
		int rc;

		if (requests[i] == NULL || requests[i]->req_type != OMPI_REQUEST_PML)
			continue;
		rc = start_one((struct pml_request *)requests[i]);
		if (rc != OMPI_SUCCESS)
			return rc;
	}
	return OMPI_SUCCESS;
}
