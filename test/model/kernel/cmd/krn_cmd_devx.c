/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Commands of the firmware that a program passes on by ioctl(), as DevX does: the capabilities of
 * the device, and the reset of a DCI's stream, which uverbs has no command for.
 *
 * Contexts of the model have no DevX; the kernel permits the first command without it, the model
 * the second one as well. A command of the firmware is a struct of bits, most significant first:
 * the opcode at byte 0, in the output a status at byte 0 and a syndrome at byte 4.
 */
#include "model/kernel/cmd/krn_cmd.h"
#include "model/kernel/krn_object.h"
#include "model/fabric/mdl_nic.h"
#include "model/nic/nic_be.h"

#include <errno.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/mlx5_user_ioctl_cmds.h>
#include <rdma/rdma_user_ioctl_cmds.h>

enum {
	OP_QUERY_HCA_CAP = 0x100,
	OP_RTS2RTS_QP = 0x505,
	CAP_GENERAL_CURRENT = 1, /* operation modifier: general capabilities, as they are in use */
	CAP_BYTE = 16,           /* capabilities in the output */
	CAP_QPC_EXTENSION = 36,  /* byte and bit of the capability to extend QPs' contexts */
	CAP_QPC_EXTENSION_BIT = 0x20,
	RTS2RTS_EXTENDED = 8, /* bit 7: the extended context is present; then the QPN */
	RTS2RTS_MASK = 264,   /* 8 bytes: fields of the extended context that change */
	RTS2RTS_STREAM = 274, /* 2 bytes, in the extended context */
	RTS2RTS_BYTES = 464,
	MASK_STREAM = 1,
	OUTPUT_BYTES = 16,
	STATUS_BAD_PARAMETER = 0x03,
	STATUS_BAD_STATE = 0x09,
	ATTRS_MAX = 8,
};

/* Input and output of a command, and the handle of its object. */
struct devx {
	const uint8_t *in;
	uint8_t *out;
	uint16_t in_len, out_len;
	uint32_t handle;
};

static void *pointer(const struct ib_uverbs_attr *attr)
{
	return (void *)(uintptr_t)attr->data;
}

/* Finds an attribute of at least `least` bytes. Short input lies in the attribute itself. */
static const struct ib_uverbs_attr *find(const struct ib_uverbs_ioctl_hdr *hdr, uint32_t id,
					 uint32_t least)
{
	for (uint32_t i = 0; i < hdr->num_attrs; i++)
		if (hdr->attrs[i].attr_id == id && hdr->attrs[i].len >= least)
			return &hdr->attrs[i];
	return NULL;
}

static int take(struct devx *devx, const struct ib_uverbs_ioctl_hdr *hdr, uint32_t in, uint32_t out)
{
	const struct ib_uverbs_attr *from = find(hdr, in, sizeof(uint64_t) * 2);
	const struct ib_uverbs_attr *to = find(hdr, out, OUTPUT_BYTES);

	if (!from || !to)
		return -EINVAL;
	devx->in = pointer(from);
	devx->in_len = from->len;
	devx->out = pointer(to);
	devx->out_len = to->len;
	memset(devx->out, 0, devx->out_len);
	return 0;
}

/* Reports a status other than success. The syndrome means something to the firmware only. */
static int refuse(const struct devx *devx, uint8_t status)
{
	devx->out[0] = status;
	return -EREMOTEIO;
}

static int query_caps(const struct devx *devx)
{
	if (nic_be16_get(devx->in) != OP_QUERY_HCA_CAP)
		return -EINVAL;
	if (nic_be16_get(devx->in + 6) != CAP_GENERAL_CURRENT)
		return refuse(devx, STATUS_BAD_PARAMETER);
	if (devx->out_len <= CAP_BYTE + CAP_QPC_EXTENSION)
		return -EINVAL;
	devx->out[CAP_BYTE + CAP_QPC_EXTENSION] = CAP_QPC_EXTENSION_BIT;
	return 0;
}

static int modify_object(uint32_t ctx, const struct devx *devx)
{
	struct mdl_qp *qp = krn_object_own(MDL_TABLE_QP, ctx, devx->handle);

	if (!qp || devx->in_len < RTS2RTS_BYTES || nic_be16_get(devx->in) != OP_RTS2RTS_QP)
		return -EINVAL;
	if (!(devx->in[RTS2RTS_EXTENDED] & 0x80) ||
	    (nic_be32_get(devx->in + RTS2RTS_EXTENDED) & 0xffffff) != qp->number ||
	    nic_be64_get(devx->in + RTS2RTS_MASK) != MASK_STREAM)
		return refuse(devx, STATUS_BAD_PARAMETER);
	return nic_stream_reset(qp, nic_be16_get(devx->in + RTS2RTS_STREAM))
		       ? refuse(devx, STATUS_BAD_STATE)
		       : 0;
}

static int run_other(const struct ib_uverbs_ioctl_hdr *hdr)
{
	struct devx devx = { 0 };
	int err = take(&devx, hdr, MLX5_IB_ATTR_DEVX_OTHER_CMD_IN, MLX5_IB_ATTR_DEVX_OTHER_CMD_OUT);

	return err ? err : query_caps(&devx);
}

static int run_modify(uint32_t ctx, const struct ib_uverbs_ioctl_hdr *hdr)
{
	const struct ib_uverbs_attr *handle = find(hdr, MLX5_IB_ATTR_DEVX_OBJ_MODIFY_HANDLE, 0);
	struct devx devx = { 0 };
	int err = take(&devx, hdr, MLX5_IB_ATTR_DEVX_OBJ_MODIFY_CMD_IN,
		       MLX5_IB_ATTR_DEVX_OBJ_MODIFY_CMD_OUT);

	if (err || !handle)
		return -EINVAL;
	devx.handle = (uint32_t)handle->data;
	return modify_object(ctx, &devx);
}

int krn_cmd_ioctl(uint32_t ctx, void *arg)
{
	const struct ib_uverbs_ioctl_hdr *hdr = arg;
	struct krn_ctx *context = krn_ctx_get(ctx);
	bool other = hdr->object_id == MLX5_IB_OBJECT_DEVX &&
		     hdr->method_id == MLX5_IB_METHOD_DEVX_OTHER;
	bool modify = hdr->object_id == MLX5_IB_OBJECT_DEVX_OBJ &&
		      hdr->method_id == MLX5_IB_METHOD_DEVX_OBJ_MODIFY;
	int err;

	if (!other && !modify)
		return -ENOTTY;
	if (!context)
		return -ENODEV;
	if (hdr->num_attrs > ATTRS_MAX ||
	    hdr->length != sizeof(*hdr) + hdr->num_attrs * sizeof(hdr->attrs[0]))
		return -EINVAL;
	pthread_mutex_lock(&context->lock);
	err = other ? run_other(hdr) : run_modify(ctx, hdr);
	pthread_mutex_unlock(&context->lock);
	return err;
}
