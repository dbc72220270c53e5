/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Data that is not one run of bytes: packed into a buffer of its own before it is sent, unpacked
 * from one after it has arrived, by Open MPI's convertor. Called by the send and receive files.
 */
#include <stdlib.h>

#include "pml_copyrpc_request.h"

/* The convertor stops where it likes, so it is called until len bytes are through. */
static int convert(opal_convertor_t *conv, void *bytes, size_t len, bool unpack)
{
	size_t at = 0;

	pml_pvar_add(&pml_pvars.packed_bytes, len);
	while (at < len) {
		struct iovec iov = { .iov_base = (char *)bytes + at, .iov_len = len - at };
		uint32_t iovs = 1;
		size_t now = len - at;
		int rc = unpack ? opal_convertor_unpack(conv, &iov, &iovs, &now)
				: opal_convertor_pack(conv, &iov, &iovs, &now);

		if (rc < 0 || now == 0)
			return OMPI_ERROR;
		at += now;
	}
	return OMPI_SUCCESS;
}

static int convertor_for_send(opal_convertor_t *conv, const void *buf, size_t count,
			      struct ompi_datatype_t *type)
{
	return opal_convertor_copy_and_prepare_for_send(ompi_mpi_local_convertor, &type->super,
							count, buf, 0, conv);
}

/** Packs count elements into len bytes at to. */
int pml_dtype_pack_to(const void *buf, size_t count, struct ompi_datatype_t *type, void *to,
		      size_t len)
{
	opal_convertor_t conv;
	int rc;

	OBJ_CONSTRUCT(&conv, opal_convertor_t);
	rc = convertor_for_send(&conv, buf, count, type);
	if (rc == OMPI_SUCCESS)
		rc = convert(&conv, to, len, false);
	OBJ_DESTRUCT(&conv);
	return rc;
}

/** Packs the data of a send into memory that the request owns. */
int pml_dtype_pack(struct pml_request *req, const void *buf, size_t count,
		   struct ompi_datatype_t *type)
{
	req->buf = malloc(req->len ? req->len : 1);
	if (!req->buf)
		return OMPI_ERR_OUT_OF_RESOURCE;
	req->packed = PML_PACKED_HEAP;
	req->special = true;
	return pml_dtype_pack_to(buf, count, type, req->buf, req->len);
}

/** Unpacks the first len bytes of a receive that has ended; its convertor is prepared. */
int pml_dtype_unpack(struct pml_request *req, size_t len)
{
	return convert(&req->base.req_convertor, req->buf, len, true);
}
