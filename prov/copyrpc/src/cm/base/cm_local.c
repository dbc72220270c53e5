/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Addresses of this host: see cm_local.h. */
#include "cm/base/cm_local.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <rdma/fi_errno.h>
#include <string.h>
#include <unistd.h>

/** RTM_GETROUTE: the route to one address. */
struct cm_local_query {
	struct nlmsghdr head;
	struct rtmsg route;
	char attrs[RTA_SPACE(sizeof(struct in6_addr)) + RTA_SPACE(sizeof(uint32_t))];
};

static void cm_local_add(struct cm_local_query *query, unsigned short type, const void *value,
			 unsigned short len)
{
	struct rtattr *attr = (void *)((char *)query + NLMSG_ALIGN(query->head.nlmsg_len));

	attr->rta_type = type;
	attr->rta_len = (unsigned short)RTA_LENGTH(len);
	memcpy(RTA_DATA(attr), value, len);
	query->head.nlmsg_len = NLMSG_ALIGN(query->head.nlmsg_len) + RTA_ALIGN(attr->rta_len);
}

static void cm_local_fill(struct cm_local_query *query, const union cm_addr *addr)
{
	bool is_v6 = addr->sa.sa_family == AF_INET6;
	unsigned short len = is_v6 ? sizeof(addr->in6.sin6_addr) : sizeof(addr->in.sin_addr);

	memset(query, 0, sizeof(*query));
	query->head.nlmsg_len = NLMSG_LENGTH(sizeof(query->route));
	query->head.nlmsg_type = RTM_GETROUTE;
	query->head.nlmsg_flags = NLM_F_REQUEST;
	query->route.rtm_family = (unsigned char)addr->sa.sa_family;
	query->route.rtm_dst_len = (unsigned char)(8 * len);
	if (!is_v6) {
		cm_local_add(query, RTA_DST, &addr->in.sin_addr, len);
		return;
	}
	cm_local_add(query, RTA_DST, &addr->in6.sin6_addr, len);
	if (addr->in6.sin6_scope_id)
		cm_local_add(query, RTA_OIF, &addr->in6.sin6_scope_id, sizeof(uint32_t));
}

/* Returns 0 if the error says that no route leads to the address: it is none of this host. */
static int cm_local_read_error(const struct nlmsghdr *head, ssize_t len)
{
	const struct nlmsgerr *err = NLMSG_DATA(head);

	if (len < (ssize_t)NLMSG_LENGTH(sizeof(*err)) || err->error >= 0)
		return -FI_EOTHER;
	switch (err->error) {
	case -ENETUNREACH:
	case -EHOSTUNREACH:
	case -ESRCH: return 0;
	default: return err->error;
	}
}

/* Returns 1 if the reply says that the route ends here, 0 if not, or -FI_E*. */
static int cm_local_read_reply(const char *buf, ssize_t len)
{
	const struct nlmsghdr *head = (const void *)buf;
	const struct rtmsg *route;

	if (len < (ssize_t)NLMSG_LENGTH(sizeof(*route)))
		return len < 0 ? -errno : -FI_EOTHER;
	if (head->nlmsg_type == NLMSG_ERROR)
		return cm_local_read_error(head, len);
	if (head->nlmsg_type != RTM_NEWROUTE)
		return -FI_EOTHER;
	route = NLMSG_DATA(head);
	return route->rtm_type == RTN_LOCAL;
}

int cm_local_by_route(const union cm_addr *addr)
{
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);
	_Alignas(struct nlmsghdr) char reply[1024];
	struct cm_local_query query;
	int ret = -FI_EOTHER;

	if (fd < 0)
		return -errno;
	cm_local_fill(&query, addr);
	/* The kernel has queued the reply when send returns. */
	if (send(fd, &query, query.head.nlmsg_len, 0) == (ssize_t)query.head.nlmsg_len)
		ret = cm_local_read_reply(reply, recv(fd, reply, sizeof(reply), 0));
	close(fd);
	return ret;
}

/* Returns 0 if connecting failed because no route leads to the address. */
static int cm_local_no_source(int err)
{
	switch (err) {
	case ENETUNREACH:
	case EHOSTUNREACH:
	case EADDRNOTAVAIL: return 0;
	default: return -err;
	}
}

int cm_local_by_source(const union cm_addr *addr)
{
	int fd = socket(addr->sa.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	union cm_addr to = *addr, raw, source;
	socklen_t len = sizeof(raw);
	int ret;

	if (fd < 0)
		return errno == EAFNOSUPPORT ? 0 : -errno;
	ret = connect(fd, &to.sa, cm_addr_len(&to)) ? cm_local_no_source(errno) : 1;
	if (ret == 1 && getsockname(fd, &raw.sa, &len))
		ret = -errno;
	close(fd);
	if (ret != 1)
		return ret;
	if (cm_addr_import(&raw.sa, &source))
		return 0;
	if (addr->sa.sa_family == AF_INET6)
		return IN6_ARE_ADDR_EQUAL(&source.in6.sin6_addr, &addr->in6.sin6_addr);
	return source.in.sin_addr.s_addr == addr->in.sin_addr.s_addr;
}

int cm_local_has(const union cm_addr *addr)
{
	int ret;

	if (cm_addr_is_loopback(addr))
		return 1;
	ret = cm_local_by_route(addr);
	return ret < 0 ? cm_local_by_source(addr) : ret;
}
