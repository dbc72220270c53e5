/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Descriptors and commands of rdma_cm: open, decode, dispatch, close. */
#include "model/kernel/cm/krn_cm.h"
#include "model/kernel/krn_chan.h"
#include "model/kernel/krn_ctx.h"
#include "model/fabric/mdl_segment.h"
#include "model/fabric/mdl_table.h"

#include <errno.h>
#include <fcntl.h>
#include <rdma/rdma_user_cm.h>
#include <string.h>

#define IN_MAX 1024

static int (*const commands[])(struct krn_cm_cmd *cmd) = {
	[RDMA_USER_CM_CMD_CREATE_ID] = krn_cm_create_id,
	[RDMA_USER_CM_CMD_DESTROY_ID] = krn_cm_destroy_id,
	[RDMA_USER_CM_CMD_BIND_IP] = krn_cm_bind_ip,
	[RDMA_USER_CM_CMD_RESOLVE_IP] = krn_cm_resolve_ip,
	[RDMA_USER_CM_CMD_RESOLVE_ROUTE] = krn_cm_resolve_route,
	[RDMA_USER_CM_CMD_QUERY_ROUTE] = krn_cm_query_route,
	[RDMA_USER_CM_CMD_CONNECT] = krn_cm_connect,
	[RDMA_USER_CM_CMD_LISTEN] = krn_cm_listen,
	[RDMA_USER_CM_CMD_ACCEPT] = krn_cm_accept,
	[RDMA_USER_CM_CMD_REJECT] = krn_cm_reject,
	[RDMA_USER_CM_CMD_DISCONNECT] = krn_cm_disconnect,
	[RDMA_USER_CM_CMD_INIT_QP_ATTR] = krn_cm_init_qp_attr,
	[RDMA_USER_CM_CMD_GET_EVENT] = krn_cm_get_event,
	[RDMA_USER_CM_CMD_SET_OPTION] = krn_cm_ignore,
	[RDMA_USER_CM_CMD_NOTIFY] = krn_cm_ignore,
	[RDMA_USER_CM_CMD_MIGRATE_ID] = krn_cm_migrate_id,
};

int krn_cm_open(int flags)
{
	uint32_t index;
	int fd = krn_ctx_attach();

	if (!fd)
		fd = krn_chan_open(KRN_CHAN_CM, &index);
	if (fd < 0) {
		errno = -fd;
		return -1;
	}
	if (flags & O_NONBLOCK)
		fcntl(fd, F_SETFL, O_NONBLOCK);
	return fd;
}

void krn_cm_reply(const struct krn_cm_cmd *cmd, uint64_t to, const void *from, size_t len)
{
	memcpy((void *)(uintptr_t)to, from, len < cmd->out_len ? len : cmd->out_len);
}

/* Accepts options and notifications, which change nothing in the model. */
int krn_cm_ignore(struct krn_cm_cmd *cmd)
{
	return 0;
}

static int run_command(uint32_t number, struct krn_cm_cmd *cmd)
{
	int err;

	/* GET_EVENT waits and takes the lock itself. */
	if (number == RDMA_USER_CM_CMD_GET_EVENT)
		return krn_cm_get_event(cmd);
	mdl_lock(&mdl_self.seg->cm_lock);
	err = commands[number](cmd);
	mdl_unlock(&mdl_self.seg->cm_lock);
	return err;
}

ssize_t krn_cm_write(int fd, uint32_t index, const void *from, size_t size)
{
	const struct rdma_ucm_cmd_hdr *hdr = from;
	uint64_t in[IN_MAX / 8] = { 0 };
	struct krn_cm_cmd cmd = { .fd = fd, .chan = index, .in = in };
	int err;

	if (size < sizeof(*hdr) || size < sizeof(*hdr) + hdr->in || hdr->in > IN_MAX)
		return -EINVAL;
	if (hdr->cmd >= sizeof(commands) / sizeof(commands[0]) || !commands[hdr->cmd])
		return -EINVAL;
	memcpy(in, hdr + 1, hdr->in);
	cmd.out_len = hdr->out;
	err = run_command(hdr->cmd, &cmd);
	return err ? err : (ssize_t)size;
}

void krn_cm_close(uint32_t index)
{
	struct mdl_cm_id *id;

	mdl_lock(&mdl_self.seg->cm_lock);
	for (uint32_t at = 0; (id = mdl_table_next(MDL_TABLE_CM, index, &at));) {
		krn_cm_hang_up(id);
		mdl_table_hide(id);
		mdl_table_release(id);
	}
	mdl_unlock(&mdl_self.seg->cm_lock);
	krn_chan_release(index);
}

/* Interval at which a process with connections checks that their other ends live. */
#define LOOK_NS 200000000ull

/* Serves one identifier of this process. Returns the time of the next call. */
static uint64_t serve_id(struct mdl_cm_id *id, uint64_t now_ns)
{
	struct mdl_cm_id *peer = krn_cm_find(id->peer);

	if (peer && mdl_proc_is_dead(peer->proc))
		krn_cm_hang_up(peer);
	if (id->hung_up_ns)
		return krn_cm_tell(id, now_ns);
	return id->peer ? now_ns + LOOK_NS : UINT64_MAX;
}

uint64_t krn_cm_service(uint64_t now_ns)
{
	struct mdl_segment *seg = mdl_self.seg;
	uint64_t due = UINT64_MAX;

	if (!__atomic_load_n(&seg->cm_used, __ATOMIC_RELAXED))
		return due;
	mdl_lock(&seg->cm_lock);
	for (uint32_t i = 1; i < MDL_CM_MAX; i++) {
		struct mdl_cm_id *id = &seg->cm_id[i];
		uint64_t next;

		if (!id->number || id->proc != mdl_self.slot)
			continue;
		next = serve_id(id, now_ns);
		due = next < due ? next : due;
	}
	mdl_unlock(&seg->cm_lock);
	return due;
}
