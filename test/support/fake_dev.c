/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Device of the fake links: open and close, memory, and order of progress. See fake_link.h. */
#include "support/fake_link.h"

#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define FAKE_MEM_MAGIC 0x66616B6Du
#define FAKE_KEYS_MAX  1024u

static struct fake_dev *fake_dev_from(struct dev *dev)
{
	return (struct fake_dev *)dev;
}

void fake_dev_init(struct fake_dev *fake, bool direct, uint64_t seed)
{
	memset(fake, 0, sizeof(*fake));
	fake->direct = direct;
	fake->sq_len = 4;
	fake->fd = -1;
	fake->rng.state = seed;
}

/* ---- memory ---- */

/** Checks that [addr, addr + len) is registered with the device for `access`. */
void fake_check_mem(const struct fake_dev *fake, const struct fake_mem *mem, const void *addr,
		    size_t len, unsigned access)
{
	if (!mem || mem->magic != FAKE_MEM_MAGIC)
		fake_fail("memory at %p is not registered", addr);
	if (mem->dev != fake)
		fake_fail("memory at %p is registered with another device", addr);
	if ((access && !(mem->access & access)) || (const uint8_t *)addr < mem->addr ||
	    (const uint8_t *)addr + len > mem->addr + mem->len)
		fake_fail("memory at %p is not registered for this (%#x)", addr, access);
}

/** Memory by its key, which has few bits as that of a NIC does. */
static struct fake_mem *fake_keys[FAKE_KEYS_MAX];

static uint64_t fake_key_take(struct fake_mem *mem)
{
	for (uint32_t i = 0; i < FAKE_KEYS_MAX; i++)
		if (!fake_keys[i]) {
			fake_keys[i] = mem;
			return i + 1;
		}
	fake_fail("%u pieces of memory are registered", FAKE_KEYS_MAX);
}

const struct fake_mem *fake_key_find(uint64_t key)
{
	return key && key <= FAKE_KEYS_MAX ? fake_keys[key - 1] : NULL;
}

static int fake_mem_reg(struct dev *dev, const void *addr, size_t len, unsigned access,
			struct dev_mem **out)
{
	struct fake_dev *fake = fake_dev_from(dev);
	struct fake_mem *mem = calloc(1, sizeof(*mem));

	if (!mem || fake->fail_reg) {
		free(mem);
		return fake->fail_reg;
	}
	if (!len)
		fake_fail("nothing at %p is registered", addr);
	*mem = (struct fake_mem){ .base.remote_key = fake_key_take(mem),
				  .dev = fake,
				  .magic = FAKE_MEM_MAGIC,
				  .addr = addr,
				  .len = len,
				  .access = access };
	fake->mem_cnt++;
	*out = &mem->base;
	return 0;
}

static void fake_mem_dereg(struct dev *dev, struct dev_mem *mem)
{
	if (((struct fake_mem *)mem)->dev != fake_dev_from(dev))
		fake_fail("memory is deregistered with another device");
	fake_dev_from(dev)->mem_cnt--;
	((struct fake_mem *)mem)->magic = 0;
	fake_keys[mem->remote_key - 1] = NULL;
	free(mem);
}

/* ---- progress ---- */

/** Delivers some of the peer's writes, or all. */
static void fake_pump(struct fake_dev *fake, struct fake_link *f)
{
	if (!f->peer)
		return;
	while (fake->eager || rng_chance(&fake->rng, 1, 2))
		if (!fake_link_deliver(&f->peer->base))
			return;
}

static bool fake_dev_poll(struct dev *dev, struct dev_event *ev)
{
	struct fake_dev *fake = fake_dev_from(dev);
	unsigned first, i;

	if (!fake->link_cnt || (!fake->eager && rng_chance(&fake->rng, 1, 4)))
		return false;
	first = (unsigned)rng_below(&fake->rng, fake->link_cnt);
	for (i = 0; i < fake->link_cnt; i++) {
		struct fake_link *f = fake->links[(first + i) % fake->link_cnt];

		fake_pump(fake, f);
		if (fake_poll_link(&f->base, ev))
			return true;
	}
	return false;
}

/* ---- open and close ---- */

static int fake_dev_open(struct dev **dev)
{
	struct fake_dev *fake = malloc(sizeof(*fake));

	if (!fake)
		return -FI_ENOMEM;
	fake_dev_init(fake, true, 1);
	fake->fd = eventfd(0, EFD_CLOEXEC);
	*dev = fake_dev_of(fake);
	return 0;
}

static void fake_dev_close(struct dev *dev)
{
	struct fake_dev *fake = fake_dev_from(dev);

	if (fake->link_cnt)
		fake_fail("a device is closed while %u links are attached", fake->link_cnt);
	if (fake->mem_cnt)
		fake_fail("a device is closed while %u pieces of memory are registered",
			  fake->mem_cnt);
	close(fake->fd);
	free(fake);
}

static int fake_dev_wait_fd(struct dev *dev)
{
	return fake_dev_from(dev)->fd;
}

static int fake_dev_arm(struct dev *dev)
{
	fake_dev_from(dev)->armed = true;
	return 0;
}

static void fake_dev_disarm(struct dev *dev)
{
	fake_dev_from(dev)->armed = false;
}

static int fake_nic_probe(struct dev_about *about)
{
	*about = (struct dev_about){ .name = "fake0", .link = "Ethernet" };
	return fake_nic_absent ? -FI_ENODEV : 0;
}

bool fake_nic_absent, fake_nic_alone, fake_nic_blind;
unsigned fake_nic_open_cnt, fake_nic_tries;

static struct dev *const fake_no_dev = (struct dev *)1;

/** After an error *dev is no device, nor NULL. */
static int fake_nic_open(struct dev **dev)
{
	int ret = fake_nic_absent ? -FI_ENODEV : fake_dev_open(dev);
	struct fake_dev *fake;

	if (ret) {
		*dev = fake_no_dev;
		return ret;
	}
	fake = fake_dev_from(*dev);
	fake->direct = false;
	fake->registers = true;
	fake->get_later = true;
	fake_nic_open_cnt++;
	if (!fake_nic_blind)
		return 0;
	close(fake->fd);
	fake->fd = -1;
	return 0;
}

static int fake_nic_open_beside(struct dev *other, struct dev **dev)
{
	int ret;

	fake_nic_tries++;
	if (fake_dev_from(other)->fd < 0)
		fake_fail("a device is opened beside one that is not open");
	*dev = fake_no_dev;
	ret = fake_nic_alone ? -FI_ENODEV : fake_nic_open(dev);
	if (!ret)
		fake_dev_from(*dev)->beside = other;
	return ret;
}

static void fake_nic_close(struct dev *dev)
{
	fake_nic_open_cnt--;
	fake_dev_close(dev);
}

static int fake_nic_health(struct dev *dev)
{
	return fake_dev_from(dev)->health;
}

const struct dev_ops fake_nic_ops = {
	.name = "fake nic",
	.probe = fake_nic_probe,
	.open = fake_nic_open,
	.open_beside = fake_nic_open_beside,
	.close = fake_nic_close,
	.link_create = fake_link_create,
	.link_beside = fake_link_beside,
	.mem_reg = fake_mem_reg,
	.mem_dereg = fake_mem_dereg,
	.health = fake_nic_health,
	.poll = fake_dev_poll,
	.wait_fd = fake_dev_wait_fd,
	.arm = fake_dev_arm,
	.disarm = fake_dev_disarm,
};

const struct dev_ops fake_dev_ops = {
	.name = "fake",
	.open = fake_dev_open,
	.close = fake_dev_close,
	.link_create = fake_link_create,
	.link_beside = fake_link_beside,
	.poll = fake_dev_poll,
	.wait_fd = fake_dev_wait_fd,
	.arm = fake_dev_arm,
	.disarm = fake_dev_disarm,
};
