/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Decodes a command and calls the function that executes it. */
#include "model/kernel/cmd/krn_cmd.h"
#include "model/kernel/krn_uar.h"
#include "model/fabric/mdl_nic.h"
#include "model/fabric/mdl_segment.h"

#include <errno.h>
#include <rdma/ib_user_verbs.h>
#include <string.h>

static const struct command {
	int (*run)(struct krn_cmd *cmd);
	uint16_t core;    /* bytes of the core struct, legacy */
	uint16_t core_ex; /* extended; 0: no such command */
	uint16_t resp;    /* bytes of the legacy response; 0: the struct has no response address */
	uint16_t pad;
} commands[] = {
#define CMD(NAME, name, resp_size)                                                                 \
	[IB_USER_VERBS_CMD_##                                                                      \
		NAME] = { krn_cmd_##name, sizeof(struct ib_uverbs_##name), 0, resp_size, 0 }
#define CMD_EX(NAME, name, resp_size)                                                              \
	[IB_USER_VERBS_CMD_##NAME] = { krn_cmd_##name, sizeof(struct ib_uverbs_##name),            \
				       sizeof(struct ib_uverbs_ex_##name), resp_size, 0 }
	CMD(GET_CONTEXT, get_context, sizeof(struct ib_uverbs_get_context_resp)),
	CMD_EX(QUERY_DEVICE, query_device, sizeof(struct ib_uverbs_query_device_resp)),
	CMD(QUERY_PORT, query_port, sizeof(struct ib_uverbs_query_port_resp)),
	CMD(ALLOC_PD, alloc_pd, sizeof(struct ib_uverbs_alloc_pd_resp)),
	CMD(DEALLOC_PD, dealloc_pd, 0),
	CMD(CREATE_AH, create_ah, sizeof(struct ib_uverbs_create_ah_resp)),
	CMD(DESTROY_AH, destroy_ah, 0),
	CMD(REG_MR, reg_mr, sizeof(struct ib_uverbs_reg_mr_resp)),
	CMD(REREG_MR, rereg_mr, sizeof(struct ib_uverbs_rereg_mr_resp)),
	CMD(DEREG_MR, dereg_mr, 0),
	CMD(CREATE_COMP_CHANNEL, create_comp_channel,
	    sizeof(struct ib_uverbs_create_comp_channel_resp)),
	CMD_EX(CREATE_CQ, create_cq, sizeof(struct ib_uverbs_create_cq_resp)),
	CMD(RESIZE_CQ, resize_cq, sizeof(struct ib_uverbs_resize_cq_resp)),
	CMD(DESTROY_CQ, destroy_cq, sizeof(struct ib_uverbs_destroy_cq_resp)),
	CMD(CREATE_SRQ, create_srq, sizeof(struct ib_uverbs_create_srq_resp)),
	CMD(CREATE_XSRQ, create_xsrq, sizeof(struct ib_uverbs_create_srq_resp)),
	CMD(MODIFY_SRQ, modify_srq, 0),
	CMD(QUERY_SRQ, query_srq, sizeof(struct ib_uverbs_query_srq_resp)),
	CMD(DESTROY_SRQ, destroy_srq, sizeof(struct ib_uverbs_destroy_srq_resp)),
	CMD_EX(CREATE_QP, create_qp, sizeof(struct ib_uverbs_create_qp_resp)),
	CMD(QUERY_QP, query_qp, sizeof(struct ib_uverbs_query_qp_resp)),
	CMD_EX(MODIFY_QP, modify_qp, 0),
	CMD(DESTROY_QP, destroy_qp, sizeof(struct ib_uverbs_destroy_qp_resp)),
	[IB_USER_VERBS_EX_CMD_MODIFY_CQ] = { krn_cmd_modify_cq, 0,
					     sizeof(struct ib_uverbs_ex_modify_cq), 0, 0 },
};

static const struct command *find_command(uint32_t number)
{
	number &= IB_USER_VERBS_CMD_COMMAND_MASK;
	if (number >= sizeof(commands) / sizeof(commands[0]) || !commands[number].run)
		return NULL;
	return &commands[number];
}

static void *address(uint64_t value)
{
	return (void *)(uintptr_t)value;
}

static int take_legacy(struct krn_cmd *cmd, const struct command *command, const char *from,
		       size_t size)
{
	const struct ib_uverbs_cmd_hdr *hdr = (const void *)from;
	size_t out = (size_t)hdr->out_words * 4, head = sizeof(*hdr) + command->core;
	uint64_t response;

	if (!command->core || size != (size_t)hdr->in_words * 4 || size < head ||
	    out < command->resp)
		return -EINVAL;
	cmd->core = from + sizeof(*hdr);
	cmd->drv = from + head;
	cmd->drv_len = size - head;
	if (!command->resp)
		return 0;
	memcpy(&response, cmd->core, sizeof(response));
	cmd->resp = address(response);
	cmd->resp_len = command->resp;
	cmd->drv_resp = (char *)cmd->resp + command->resp;
	cmd->drv_resp_len = out - command->resp;
	return 0;
}

static int take_extended(struct krn_cmd *cmd, const struct command *command, const char *from,
			 size_t size)
{
	const struct ib_uverbs_cmd_hdr *hdr = (const void *)from;
	const struct ib_uverbs_ex_cmd_hdr *ex = (const void *)(hdr + 1);
	size_t head = sizeof(*hdr) + sizeof(*ex), core = (size_t)hdr->in_words * 8;

	if (size < head || size != head + core + (size_t)ex->provider_in_words * 8 ||
	    !command->core_ex || core < command->core_ex)
		return -EINVAL;
	cmd->extended = true;
	cmd->core = from + head;
	cmd->drv = from + head + core;
	cmd->drv_len = (size_t)ex->provider_in_words * 8;
	cmd->resp = address(ex->response);
	cmd->resp_len = cmd->resp ? (size_t)hdr->out_words * 8 : 0;
	cmd->drv_resp = (char *)cmd->resp + cmd->resp_len;
	cmd->drv_resp_len = cmd->resp ? (size_t)ex->provider_out_words * 8 : 0;
	return 0;
}

/*
 * Returns true for commands that end objects: they work on a device that has failed, too.
 * MODIFY_QP looks at the state itself.
 */
static bool is_end(uint32_t number)
{
	switch (number & IB_USER_VERBS_CMD_COMMAND_MASK) {
	case IB_USER_VERBS_CMD_DEALLOC_PD:
	case IB_USER_VERBS_CMD_DESTROY_AH:
	case IB_USER_VERBS_CMD_DEREG_MR:
	case IB_USER_VERBS_CMD_DESTROY_CQ:
	case IB_USER_VERBS_CMD_DESTROY_SRQ:
	case IB_USER_VERBS_CMD_DESTROY_QP:
	case IB_USER_VERBS_CMD_MODIFY_QP: return true;
	default: return false;
	}
}

static int run_command(struct krn_cmd *cmd, const char *from, size_t size)
{
	const struct ib_uverbs_cmd_hdr *hdr = (const void *)from;
	const struct command *command;
	bool extended;
	int err;

	if (size < sizeof(*hdr))
		return -EINVAL;
	extended = hdr->command & IB_USER_VERBS_CMD_FLAG_EXTENDED;
	command = find_command(hdr->command);
	if (!command)
		return -EOPNOTSUPP;
	if (nic_fault_has_failed(cmd->ctx->device, cmd->ctx->opened_ns) && !is_end(hdr->command))
		return -EIO;
	err = extended ? take_extended(cmd, command, from, size)
		       : take_legacy(cmd, command, from, size);
	if (err)
		return err;
	pthread_mutex_lock(&cmd->ctx->lock);
	err = command->run(cmd);
	pthread_mutex_unlock(&cmd->ctx->lock);
	return err;
}

/*
 * Updates the mapped UAR pages and the signal handler, because libraries map pages and replace
 * handlers between commands.
 */
static void look_after(uint32_t ctx)
{
	krn_uar_find(ctx);
	if (mdl_self.config.mode != MDL_MODE_POLL)
		krn_trap_arm();
}

ssize_t krn_cmd_write(uint32_t ctx, const void *from, size_t size)
{
	struct krn_cmd cmd = { .ctx = krn_ctx_get(ctx), .ctx_index = ctx };
	int err;

	if (!cmd.ctx)
		return -ENODEV;
	look_after(ctx);
	err = run_command(&cmd, from, size);
	return err ? err : (ssize_t)size;
}

void krn_cmd_driver(const struct krn_cmd *cmd, void *to, size_t size)
{
	size_t len = cmd->drv_len < size ? cmd->drv_len : size;

	memset(to, 0, size);
	if (len)
		memcpy(to, cmd->drv, len);
}

/* Writes a struct and fills the remaining space with zeros, as the kernel does. */
static void put(void *to, size_t room, const void *from, size_t len)
{
	if (!room)
		return;
	if (len > room)
		len = room;
	if (len)
		memcpy(to, from, len);
	memset((char *)to + len, 0, room - len);
}

void krn_cmd_reply(const struct krn_cmd *cmd, const void *core, size_t core_len, const void *drv,
		   size_t drv_len)
{
	put(cmd->resp, cmd->resp_len, core, core_len);
	put(cmd->drv_resp, cmd->drv_resp_len, drv, drv_len);
}
