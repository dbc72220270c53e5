/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * A user of the RPC extension in C++: a key-value store in a thread, asked by main.
 *
 * Both sleep while there is nothing to do: the store in fi_cq_sread until requests come, main until answers
 * come. Values are read without a copy at both ends: requests in the ring, answers lent.
 */
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_ext_copyrpc.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

static const int keys = 2000;
static const size_t value_max = 1000;

static ssize_t must(const char *what, ssize_t ret)
{
	if (ret < 0 && ret != -FI_EAGAIN)
		throw std::runtime_error(std::string(what) + ": " +
					 fi_strerror(static_cast<int>(-ret)));
	return ret;
}

class Node
{
      public:
	Node()
	{
		fi_info *hints = fi_allocinfo();
		fi_cq_attr cq_attr = fi_cq_attr();
		fi_av_attr av_attr = fi_av_attr();

		hints->fabric_attr->prov_name = strdup("copyrpc");
		hints->ep_attr->type = FI_EP_RDM;
		hints->caps = FI_MSG;
		hints->domain_attr->threading = FI_THREAD_DOMAIN;
		must("fi_getinfo",
		     fi_getinfo(FI_VERSION(1, 17), "127.0.0.1", NULL, FI_SOURCE, hints, &info));
		fi_freeinfo(hints);
		must("fi_fabric", fi_fabric(info->fabric_attr, &fabric, NULL));
		must("fi_domain", fi_domain(fabric, info, &domain, NULL));
		must("fi_av_open", fi_av_open(domain, &av_attr, &av, NULL));
		cq_attr.format = FI_CQ_FORMAT_DATA;
		cq_attr.wait_obj = FI_WAIT_FD;
		must("fi_cq_open", fi_cq_open(domain, &cq_attr, &cq, NULL));
		must("fi_endpoint", fi_endpoint(domain, info, &ep, NULL));
		must("fi_ep_bind", fi_ep_bind(ep, &av->fid, 0));
		must("fi_ep_bind", fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV));
		must("fi_enable", fi_enable(ep));
		must("fi_copyrpc_open", fi_copyrpc_open(&domain->fid, &rpc));
		must("fi_copyrpc_open", fi_copyrpc_open(&ep->fid, &rpc));
	}

	~Node()
	{
		fi_close(&ep->fid);
		fi_close(&cq->fid);
		fi_close(&av->fid);
		fi_close(&domain->fid);
		fi_close(&fabric->fid);
		fi_freeinfo(info);
	}

	std::string name()
	{
		char buf[64];
		size_t len = sizeof(buf);

		must("fi_getname", fi_getname(&ep->fid, buf, &len));
		return std::string(buf, len);
	}

	fi_addr_t insert(const std::string &name)
	{
		fi_addr_t addr;

		if (fi_av_insert(av, name.data(), 1, &addr, 0, NULL) != 1)
			throw std::runtime_error("fi_av_insert");
		return addr;
	}

	fid_ep *ep;
	fid_cq *cq;
	fi_copyrpc_ops *rpc;

      private:
	Node(const Node &);
	Node &operator=(const Node &);

	fi_info *info;
	fid_fabric *fabric;
	fid_domain *domain;
	fid_av *av;
};

/*
 * "key" asks, "key=value" sets. It serves until it is told to end: answers have no completion, and over
 * datagrams they may need progress after they were given.
 */
class Store
{
      public:
	explicit Store(Node &n) : node(n), ended(false)
	{
	}

	void end()
	{
		ended = true;
	}

	void run()
	{
		std::vector<fi_copyrpc_request> reqs(32);

		while (!ended) {
			ssize_t cnt = must(
				"fi_copyrpc_recv",
				fi_copyrpc_recv(node.rpc, node.ep, reqs.data(), reqs.size(), 0));
			if (cnt <= 0)
				must("fi_cq_sread", fi_cq_sread(node.cq, NULL, 1, NULL, 100));
			for (ssize_t i = 0; i < cnt; i++)
				answer(reqs[static_cast<size_t>(i)]);
			must("fi_copyrpc_flush",
			     fi_copyrpc_flush(node.rpc, node.ep, FI_ADDR_UNSPEC));
		}
	}

      private:
	void answer(const fi_copyrpc_request &req)
	{
		const char *data = static_cast<const char *>(req.data);
		const void *eq = std::memchr(data, '=', req.len);
		std::string value;

		if (eq) {
			size_t len = static_cast<size_t>(static_cast<const char *>(eq) - data);

			values[std::string(data, len)].assign(data + len + 1, req.len - len - 1);
		} else {
			value = values[std::string(data, req.len)];
		}
		must("fi_copyrpc_reply", fi_copyrpc_reply(node.rpc, node.ep, &req, value.data(),
							  value.size(), FI_MORE));
	}

	Node &node;
	std::atomic<bool> ended;
	std::map<std::string, std::string> values;
};

class Client
{
      public:
	Client(Node &n, fi_addr_t s) : node(n), store(s), open(0), right(0)
	{
	}

	void call(const std::string &request, const std::string *expected)
	{
		ssize_t ret;

		do {
			ret = must("fi_copyrpc_call",
				   fi_copyrpc_call(node.rpc, node.ep, request.data(),
						   request.size(), NULL, expected ? value_max : 0,
						   store, const_cast<std::string *>(expected),
						   FI_COPYRPC_RETAIN));
			if (ret)
				take(0);
		} while (ret);
		open++;
	}

	void finish()
	{
		while (open)
			take(10000);
	}

	int answers() const
	{
		return right;
	}

      private:
	void take(int timeout)
	{
		fi_cq_data_entry entry;
		const std::string *expected;

		if (must("fi_cq_sread", fi_cq_sread(node.cq, &entry, 1, NULL, timeout)) != 1)
			return;
		open--;
		expected = static_cast<const std::string *>(entry.op_context);
		if (expected)
			right +=
				*expected == std::string(static_cast<char *>(entry.buf), entry.len);
		must("fi_copyrpc_release_response",
		     fi_copyrpc_release_response(node.rpc, node.ep, entry.data));
	}

	Node &node;
	fi_addr_t store;
	int open, right;
};

int main()
{
	std::vector<std::string> values;
	Node here, there;
	Store store(there);
	std::thread thread(&Store::run, &store);
	Client client(here, here.insert(there.name()));

	for (int i = 0; i < keys; i++) {
		values.push_back(std::string(static_cast<size_t>(i) % value_max,
					     static_cast<char>('a' + i % 26)));
		client.call("key" + std::to_string(i) + "=" + values.back(), NULL);
	}
	for (int i = 0; i < keys; i++)
		client.call("key" + std::to_string(i), &values[static_cast<size_t>(i)]);
	client.finish();
	store.end();
	thread.join();
	std::printf("%d of %d values are right\n", client.answers(), keys);
	return client.answers() != keys;
}
