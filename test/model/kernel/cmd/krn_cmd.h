/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * uverbs commands: decoding and execution of a write() to the device descriptor.
 *
 * A legacy command is {command, words in, words out}, the core struct (with the address of the
 * response first, if it has one), then the driver's data. An extended command has a second header
 * with that address and the driver's sizes. krn_cmd.c decodes both; the functions of the other
 * krn_cmd_*.c get this struct and return 0 or -errno. Structs are those of the kernel's headers.
 */
#ifndef KRN_CMD_H
#define KRN_CMD_H

#include "model/kernel/krn_ctx.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct krn_cmd {
	struct krn_ctx *ctx;
	uint32_t ctx_index;
	bool extended;
	const void *core; /* core struct, at least as long as in the command's table */
	const void *drv;  /* driver's data after the core struct */
	size_t drv_len;
	void *resp; /* null: no response requested */
	size_t resp_len;
	void *drv_resp;
	size_t drv_resp_len;
};

/* Executes write(). Returns size or -errno. */
ssize_t krn_cmd_write(uint32_t ctx, const void *from, size_t size);

/* Executes ioctl(), `arg` being its argument. Returns 0 or -errno; -ENOTTY: no such command. */
int krn_cmd_ioctl(uint32_t ctx, void *arg);

/* Copies the driver's data to a struct of that size and fills the rest with zeros. */
void krn_cmd_driver(const struct krn_cmd *cmd, void *to, size_t size);
/*
 * Writes the core's and the driver's part of the response, cut to the space that the program
 * provides.
 */
void krn_cmd_reply(const struct krn_cmd *cmd, const void *core, size_t core_len, const void *drv,
		   size_t drv_len);

int krn_cmd_get_context(struct krn_cmd *cmd);
int krn_cmd_query_device(struct krn_cmd *cmd);
int krn_cmd_query_port(struct krn_cmd *cmd);
int krn_cmd_alloc_pd(struct krn_cmd *cmd);
int krn_cmd_dealloc_pd(struct krn_cmd *cmd);
int krn_cmd_create_ah(struct krn_cmd *cmd);
int krn_cmd_destroy_ah(struct krn_cmd *cmd);
int krn_cmd_reg_mr(struct krn_cmd *cmd);
int krn_cmd_rereg_mr(struct krn_cmd *cmd);
int krn_cmd_dereg_mr(struct krn_cmd *cmd);
int krn_cmd_create_comp_channel(struct krn_cmd *cmd);
int krn_cmd_create_cq(struct krn_cmd *cmd);
int krn_cmd_resize_cq(struct krn_cmd *cmd);
int krn_cmd_destroy_cq(struct krn_cmd *cmd);
int krn_cmd_modify_cq(struct krn_cmd *cmd);
int krn_cmd_create_srq(struct krn_cmd *cmd);
int krn_cmd_create_xsrq(struct krn_cmd *cmd);
int krn_cmd_modify_srq(struct krn_cmd *cmd);
int krn_cmd_query_srq(struct krn_cmd *cmd);
int krn_cmd_destroy_srq(struct krn_cmd *cmd);
int krn_cmd_create_qp(struct krn_cmd *cmd);
int krn_cmd_query_qp(struct krn_cmd *cmd);
int krn_cmd_modify_qp(struct krn_cmd *cmd);
int krn_cmd_destroy_qp(struct krn_cmd *cmd);

#endif /* KRN_CMD_H */
