/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Tests of the connection manager: two ends connect and are notified when the other one leaves.
 * Commands as librdmacm writes them.
 */
#include "unit/model/kernel/border_bench.h"

#include "model/kernel/cm/krn_cm.h"
#include "model/kernel/krn_fd.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <rdma/rdma_user_cm.h>
#include <string.h>

TestSuite(krn_cm, .init = border_setup, .fini = border_teardown);

/* Descriptor of rdma_cm. */
struct file {
	int fd;
	uint32_t index;
};

static struct file open_file(void)
{
	struct file file = { .fd = krn_cm_open(O_NONBLOCK) };

	cr_assert_geq(file.fd, 0);
	file.index = krn_fd_get(file.fd)->index;
	return file;
}

static ssize_t command(const struct file *file, uint32_t number, const void *in, size_t len,
		       size_t out)
{
	uint64_t words[128];
	struct rdma_ucm_cmd_hdr *hdr = (void *)words;

	hdr->cmd = number;
	hdr->in = (uint16_t)len;
	hdr->out = (uint16_t)out;
	memcpy(hdr + 1, in, len);
	return krn_cm_write(file->fd, file->index, words, sizeof(*hdr) + len);
}

static uint32_t create(const struct file *file, uint64_t uid)
{
	struct rdma_ucm_create_id_resp resp = { 0 };
	struct rdma_ucm_create_id req = {
		.uid = uid, .response = (uintptr_t)&resp, .ps = RDMA_PS_TCP, .qp_type = 2
	};

	cr_assert_gt(command(file, RDMA_USER_CM_CMD_CREATE_ID, &req, sizeof(req), sizeof(resp)), 0);
	return resp.id;
}

static struct sockaddr_in loopback(uint16_t port)
{
	return (struct sockaddr_in){ .sin_family = AF_INET,
				     .sin_port = htons(port),
				     .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
}

static uint32_t listen_at(const struct file *file, uint64_t uid, uint16_t port)
{
	uint32_t id = create(file, uid);
	struct rdma_ucm_bind_ip bind = { .id = id };
	struct rdma_ucm_listen listen = { .id = id };
	struct sockaddr_in address = loopback(port);

	memcpy(&bind.addr, &address, sizeof(address));
	cr_assert_gt(command(file, RDMA_USER_CM_CMD_BIND_IP, &bind, sizeof(bind), 0), 0);
	cr_assert_gt(command(file, RDMA_USER_CM_CMD_LISTEN, &listen, sizeof(listen), 0), 0);
	return id;
}

/* Returns the next event; its number is -1 if there is none. */
static struct rdma_ucm_event_resp next_event(const struct file *file)
{
	struct rdma_ucm_event_resp resp = { .event = ~0u };
	struct rdma_ucm_get_event req = { .response = (uintptr_t)&resp };
	ssize_t got = command(file, RDMA_USER_CM_CMD_GET_EVENT, &req, sizeof(req), sizeof(resp));

	cr_assert(got > 0 || got == -EAGAIN);
	return resp;
}

static void expect_event(const struct file *file, uint32_t type, uint64_t uid)
{
	struct rdma_ucm_event_resp event = next_event(file);

	cr_expect_eq(event.event, type, "event %u, not %u", event.event, type);
	cr_expect_eq(event.uid, uid);
}

static uint32_t resolve(const struct file *file, uint64_t uid, uint16_t port)
{
	uint32_t id = create(file, uid);
	struct rdma_ucm_resolve_ip ip = { .id = id, .timeout_ms = 1000 };
	struct rdma_ucm_resolve_route route = { .id = id, .timeout_ms = 1000 };
	struct sockaddr_in address = loopback(port);

	memcpy(&ip.dst_addr, &address, sizeof(address));
	cr_assert_gt(command(file, RDMA_USER_CM_CMD_RESOLVE_IP, &ip, sizeof(ip), 0), 0);
	expect_event(file, 0, uid);
	cr_assert_gt(command(file, RDMA_USER_CM_CMD_RESOLVE_ROUTE, &route, sizeof(route), 0), 0);
	expect_event(file, 2, uid);
	return id;
}

static void call(const struct file *file, uint32_t id, uint32_t qpn)
{
	struct rdma_ucm_connect req = { .id = id,
					.conn_param = { .qp_num = qpn,
							.private_data = "hello",
							.private_data_len = 6,
							.initiator_depth = 3,
							.responder_resources = 5,
							.valid = 1 } };

	cr_assert_gt(command(file, RDMA_USER_CM_CMD_CONNECT, &req, sizeof(req), 0), 0);
}

static void accept_it(const struct file *file, uint32_t id, uint64_t uid, uint32_t qpn)
{
	struct rdma_ucm_accept req = { .id = id,
				       .uid = uid,
				       .conn_param = { .qp_num = qpn, .valid = qpn != 0 } };

	cr_assert_gt(command(file, RDMA_USER_CM_CMD_ACCEPT, &req, sizeof(req), 0), 0);
}

static uint32_t destroy(const struct file *file, uint32_t id)
{
	struct rdma_ucm_destroy_id_resp resp = { 0 };
	struct rdma_ucm_destroy_id req = { .response = (uintptr_t)&resp, .id = id };

	cr_assert_gt(command(file, RDMA_USER_CM_CMD_DESTROY_ID, &req, sizeof(req), sizeof(resp)),
		     0);
	return resp.events_reported;
}

/* Makes a connection; uids 1 (listener), 2 (active), 3 (passive). */
static void connect_both(const struct file *passive, const struct file *active, uint32_t *server,
			 uint32_t *client)
{
	struct rdma_ucm_event_resp event;

	listen_at(passive, 1, 7700);
	*client = resolve(active, 2, 7700);
	call(active, *client, 0x111);
	event = next_event(passive);
	cr_assert_eq(event.event, 4, "CONNECT_REQUEST");
	cr_expect_eq(event.uid, 1, "the listener's");
	cr_expect_str_eq((char *)event.param.conn.private_data, "hello");
	cr_expect_eq(event.param.conn.initiator_depth, 5, "the other's responder resources");
	*server = event.id;
	accept_it(passive, *server, 3, 0x222);
	expect_event(active, 5, 2);
	accept_it(active, *client, 0, 0);
	expect_event(passive, 9, 3);
}

Test(krn_cm, a_connection_knows_the_other_queue_pair)
{
	struct file passive = open_file(), active = open_file();
	struct ib_uverbs_qp_attr attr = { 0 };
	struct rdma_ucm_init_qp_attr req = { .response = (uintptr_t)&attr,
					     .qp_state = MDL_QPS_RTR };
	uint32_t server, client;

	connect_both(&passive, &active, &server, &client);
	req.id = client;
	cr_expect_gt(
		command(&active, RDMA_USER_CM_CMD_INIT_QP_ATTR, &req, sizeof(req), sizeof(attr)),
		0);
	cr_expect_eq(attr.dest_qp_num, 0x222);
	cr_expect_eq(attr.ah_attr.dlid, 1);
	req.id = server;
	cr_expect_gt(
		command(&passive, RDMA_USER_CM_CMD_INIT_QP_ATTR, &req, sizeof(req), sizeof(attr)),
		0);
	cr_expect_eq(attr.dest_qp_num, 0x111);
}

Test(krn_cm, both_ends_learn_of_the_end)
{
	struct file passive = open_file(), active = open_file();
	struct rdma_ucm_disconnect req;
	uint32_t server, client;

	connect_both(&passive, &active, &server, &client);
	req.id = client;
	cr_expect_gt(command(&active, RDMA_USER_CM_CMD_DISCONNECT, &req, sizeof(req), 0), 0);
	expect_event(&active, 10, 2);
	cr_expect_eq(next_event(&passive).event, ~0u, "it is under way");
	krn_cm_service(mdl_now_ns() + 2 * KRN_CM_WIRE_NS);
	expect_event(&passive, 10, 3);
	krn_cm_service(mdl_now_ns() + 2 * KRN_CM_PATIENCE_NS);
	cr_expect_eq(next_event(&passive).event, ~0u, "once");
}

/* librdmacm waits until it has acknowledged as many events as the kernel reported. */
Test(krn_cm, events_are_counted_where_librdmacm_counts_them)
{
	struct file passive = open_file(), active = open_file();
	uint32_t server, client;

	connect_both(&passive, &active, &server, &client);
	cr_expect_eq(destroy(&active, client), 3, "address, route, response");
	cr_expect_eq(destroy(&passive, server), 1,
		     "established; the request counts at the listener");
}

Test(krn_cm, connecting_without_a_listener_is_rejected)
{
	struct file active = open_file();
	uint32_t client = resolve(&active, 2, 7701);

	call(&active, client, 1);
	expect_event(&active, 8, 2);
}

Test(krn_cm, closing_a_listener_rejects_pending_connections)
{
	struct file passive = open_file(), active = open_file();
	uint32_t listener = listen_at(&passive, 1, 7702), client = resolve(&active, 2, 7702);

	call(&active, client, 1);
	destroy(&passive, listener);
	expect_event(&active, 8, 2);
}

Test(krn_cm, a_closed_descriptor_hangs_up)
{
	struct file passive = open_file(), active = open_file();
	uint32_t server, client;

	connect_both(&passive, &active, &server, &client);
	krn_cm_close(active.index);
	krn_cm_service(mdl_now_ns() + 2 * KRN_CM_WIRE_NS);
	expect_event(&passive, 10, 3);
}

Test(krn_cm, an_identifier_takes_its_events_to_another_channel)
{
	struct file one = open_file(), two = open_file();
	struct rdma_ucm_migrate_resp resp;
	struct rdma_ucm_migrate_id req = { .response = (uintptr_t)&resp, .fd = (uint32_t)one.fd };
	uint32_t client = resolve(&one, 2, 7703);

	call(&one, client, 1);
	req.id = client;
	cr_expect_gt(command(&two, RDMA_USER_CM_CMD_MIGRATE_ID, &req, sizeof(req), sizeof(resp)),
		     0);
	cr_expect_eq(resp.events_reported, 2);
	cr_expect_eq(next_event(&one).event, ~0u);
	expect_event(&two, 8, 2);
}

Test(krn_cm, addresses_of_ib_are_refused)
{
	struct file file = open_file();
	struct rdma_ucm_bind req = { .id = create(&file, 1) };

	cr_expect_eq(command(&file, RDMA_USER_CM_CMD_BIND, &req, sizeof(req), 0), -EINVAL);
}
