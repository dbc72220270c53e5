/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Rewritten sites of kick mode: rewriting, and the call that replaces the store. krn_kick.h
 * explains why it is safe.
 *
 * A page near a site has its stub:
 *	lea -128(%rsp), %rsp		past the red zone
 *	push the number of the site
 *	jmp krn_kick_entry		saves the registers, calls krn_kick_called()
 *   native:				the store itself, for other memory
 *	jmp behind the site
 *
 * Code is written through /proc/self/mem, so that its pages are never writable. If the kernel does
 * not allow that, kick mode works as trap mode.
 */
#include "model/krn_kick.h"
#include "model/krn_insn.h"
#include "model/krn_real.h"
#include "model/krn_run.h"
#include "model/mdl_raw.h"
#include "model/mdl_segment.h"

#include <cpuid.h>
#include <fcntl.h>
#include <link.h>
#include <linux/membarrier.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>

#define PLACES_MAX   64
#define JUMP_BYTES   5
#define FAULTING     0xf4 /* hlt */
#define STUB_BYTES   64
#define STUB_NATIVE  24
#define TRIES        32
#define RED_ZONE     128
#define STACK_GROWTH (1ull << 30)

enum { PLACE_FREE, PLACE_REFUSED, PLACE_IN_HAND, PLACE_DONE };

/* Written under the lock, read without: state is set last. Never freed. */
static struct place {
	uint64_t address, native;
	uint32_t state, len; /* state, and bytes of the instruction */
	uint8_t was[16], now[JUMP_BYTES];
} places[PLACES_MAX];
static uint32_t place_cnt, place_lock;
static bool able; /* the processor saves its vector registers by XSAVE */
static struct range {
	uint64_t from, to;
} copies[4]; /* code of the functions that copy memory for all callers */
static uint32_t copies_cnt;

/* Stack layout made by krn_kick_entry. */
struct frame {
	uint64_t regs[16], flags;
	uint64_t place; /* in: number of the site; out: address at which the program resumes */
};

extern char krn_kick_entry[];
void krn_kick_called(struct frame *frame, void *vectors);

/* 0xe7: x87, SSE, AVX and AVX-512. XSAVE requires a zeroed header. */
__asm__(".text\n"
	".hidden krn_kick_entry\n"
	".globl krn_kick_entry\n"
	".type krn_kick_entry, @function\n"
	"krn_kick_entry:\n"
	"	.cfi_startproc\n"
	"	.cfi_undefined rip\n"
	"	pushfq\n"
	"	push %r15\n	push %r14\n	push %r13\n	push %r12\n"
	"	push %r11\n	push %r10\n	push %r9\n	push %r8\n"
	"	push %rdi\n	push %rsi\n	push %rbp\n	push %rsp\n"
	"	push %rbx\n	push %rdx\n	push %rcx\n	push %rax\n"
	"	cld\n"
	"	mov %rsp, %rdi\n"
	"	mov %rsp, %rbx\n"
	"	sub $2752, %rsp\n"
	"	and $-64, %rsp\n"
	"	xor %eax, %eax\n"
	"	mov %rax, 512(%rsp)\n	mov %rax, 520(%rsp)\n"
	"	mov %rax, 528(%rsp)\n	mov %rax, 536(%rsp)\n"
	"	mov %rax, 544(%rsp)\n	mov %rax, 552(%rsp)\n"
	"	mov %rax, 560(%rsp)\n	mov %rax, 568(%rsp)\n"
	"	mov $0xe7, %eax\n"
	"	xor %edx, %edx\n"
	"	xsave64 (%rsp)\n"
	"	mov %rsp, %rsi\n"
	"	call krn_kick_called\n"
	"	mov $0xe7, %eax\n"
	"	xor %edx, %edx\n"
	"	xrstor64 (%rsp)\n"
	"	mov %rbx, %rsp\n"
	"	pop %rax\n	pop %rcx\n	pop %rdx\n	pop %rbx\n"
	"	lea 8(%rsp), %rsp\n"
	"	pop %rbp\n	pop %rsi\n	pop %rdi\n"
	"	pop %r8\n	pop %r9\n	pop %r10\n	pop %r11\n"
	"	pop %r12\n	pop %r13\n	pop %r14\n	pop %r15\n"
	"	popfq\n"
	"	ret $128\n"
	"	.cfi_endproc\n"
	"	.size krn_kick_entry, . - krn_kick_entry\n");

__attribute__((used, visibility("hidden"))) void krn_kick_called(struct frame *frame, void *vectors)
{
	const struct place *place = &places[frame->place];
	struct krn_cpu cpu = { .rip = place->address,
			       .flags = frame->flags,
			       .vectors = vectors,
			       .keeps_stack = true };
	int saved = errno;

	for (int i = 0; i < 16; i++)
		cpu.regs[i] = frame->regs[i];
	cpu.regs[KRN_REG_SP] = (uintptr_t)(frame + 1) + RED_ZONE;
	if (!krn_run(&cpu)) {
		frame->place = place->native;
		errno = saved;
		return;
	}
	mdl_count_add(&mdl_self.proc->count, MDL_CNT_KICKS, 1);
	for (int i = 0; i < 16; i++)
		frame->regs[i] = cpu.regs[i];
	frame->flags = cpu.flags;
	frame->place = cpu.rip;
	errno = saved;
}

/* ---- sites ---- */

/*
 * Returns true if the site still has the code written there. Libraries may have been unloaded
 * since.
 */
static bool stands(const struct place *place)
{
	uint32_t state = __atomic_load_n(&place->state, __ATOMIC_ACQUIRE);
	uint32_t len = place->len < JUMP_BYTES ? place->len : JUMP_BYTES;

	return state == PLACE_IN_HAND ||
	       (state == PLACE_DONE && memcmp((const void *)place->address, place->now, len) == 0);
}

/* Returns the newest code if an address was rewritten more than once. */
const uint8_t *krn_kick_code(uint64_t rip)
{
	for (uint32_t i = __atomic_load_n(&place_cnt, __ATOMIC_ACQUIRE); i-- > 0;)
		if (places[i].address == rip && stands(&places[i]))
			return places[i].was;
	return NULL;
}

static bool was_refused(uint64_t rip)
{
	for (uint32_t i = 0; i < place_cnt; i++)
		if (places[i].address == rip && places[i].state == PLACE_REFUSED)
			return true;
	return false;
}

/*
 * Returns true if the code overlaps another rewritten site. A site in another page counts without a
 * check of its code, as that page may be unmapped.
 */
static bool touches_another(uint64_t rip, uint32_t len)
{
	for (uint32_t i = 0; i < place_cnt; i++)
		if (places[i].state >= PLACE_IN_HAND && rip < places[i].address + JUMP_BYTES &&
		    rip + len > places[i].address &&
		    (rip / MDL_PAGE != places[i].address / MDL_PAGE || stands(&places[i])))
			return true;
	return false;
}

static bool is_copy_for_all(uint64_t rip)
{
	for (uint32_t i = 0; i < copies_cnt; i++)
		if (rip >= copies[i].from && rip < copies[i].to)
			return true;
	return false;
}

/* Returns the bytes of the instruction, 0 if a copy elsewhere would have another meaning. */
static uint32_t movable(uint64_t rip)
{
	const uint8_t *code = (const uint8_t *)rip;
	uint64_t regs[16] = { 0 };
	struct krn_insn here = krn_insn_decode(code, regs, rip);
	struct krn_insn there = krn_insn_decode(code, regs, rip + MDL_PAGE);

	return here.kind == INSN_OTHER || here.address != there.address ? 0 : here.len;
}

/* ---- page with the stub ---- */

static void put_jump(uint8_t *at, uint64_t to)
{
	static const uint8_t jump[6] = { 0xff, 0x25 }; /* jump through the following 8 bytes */

	memcpy(at, jump, sizeof(jump));
	memcpy(at + sizeof(jump), &to, sizeof(to));
}

static void put_stub(uint8_t *at, const struct place *place, uint32_t number)
{
	static const uint8_t skip[6] = { 0x48, 0x8d, 0x64, 0x24, 0x80, 0x68 };

	memcpy(at, skip, sizeof(skip));
	memcpy(at + sizeof(skip), &number, sizeof(number));
	put_jump(at + sizeof(skip) + sizeof(number), (uintptr_t)krn_kick_entry);
	memcpy(at + STUB_NATIVE, place->was, place->len);
	put_jump(at + STUB_NATIVE + place->len, place->address + place->len);
}

/* Maps a stub at an address if nothing is mapped there and the main stack does not grow there. */
static bool map_at(uint64_t start)
{
	uint64_t from = start & ~(uint64_t)(MDL_PAGE - 1);
	uint64_t len = ((start + STUB_BYTES - 1) & ~(uint64_t)(MDL_PAGE - 1)) + MDL_PAGE - from;
	uint64_t stack = getauxval(AT_EXECFN);
	long got;

	if (start < 0x10000 || start >> 47 || (start < stack && start > stack - STACK_GROWTH))
		return false;
	got = MDL_RAW6(mmap, from, len, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	if (got >= 0 && (uint64_t)got != from)
		MDL_RAW2(munmap, got, len); /* the kernel treats the address as a hint */
	return (uint64_t)got == from;
}

/*
 * Maps a stub within reach of the site's jump. The distance has as many free low bytes as the store
 * has after its first.
 */
static uint64_t map_stub(const struct place *place)
{
	uint32_t free_bytes = (place->len < JUMP_BYTES ? place->len : JUMP_BYTES) - 1;
	uint64_t span = 1ull << free_bytes * 8, first = place->address + JUMP_BYTES;
	int32_t fixed = 0;

	memcpy(&fixed, (const uint8_t *)place->address + 1, sizeof(fixed));
	if (free_bytes == 4)
		first -= span / 2;
	else
		first += (uint64_t)(int64_t)(int32_t)((uint32_t)fixed & ~(uint32_t)(span - 1));
	for (uint64_t i = 0; i < TRIES; i++)
		if (map_at(first + span / TRIES * i))
			return first + span / TRIES * i;
	return 0;
}

/* ---- jump ---- */

static bool look_afresh(void)
{
	long rc = MDL_RAW3(membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE, 0, 0);

	if (rc != -EPERM)
		return rc == 0;
	/* This process has not registered yet. */
	MDL_RAW3(membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_SYNC_CORE, 0, 0);
	return MDL_RAW3(membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE, 0, 0) == 0;
}

static bool poke(long mem, uint64_t to, const uint8_t *from, uint32_t len)
{
	return !len || MDL_RAW4(pwrite64, mem, from, len, to) == (long)len;
}

/* Writes the jump. Returns false if nothing was changed. */
static bool put_in_place(const struct place *place)
{
	static const uint8_t faulting = FAULTING;
	uint32_t len = place->len < JUMP_BYTES ? place->len : JUMP_BYTES;
	long mem = MDL_RAW4(openat, AT_FDCWD, "/proc/self/mem", O_RDWR | O_CLOEXEC, 0);
	bool done;

	if (mem < 0)
		return false;
	done = look_afresh() && poke(mem, place->address, &faulting, 1);
	if (done && !(look_afresh() && poke(mem, place->address + 1, place->now + 1, len - 1) &&
		      look_afresh() && poke(mem, place->address, place->now, 1) && look_afresh()))
		mdl_fatal("the code at 0x%llx cannot be written a second time",
			  (unsigned long long)place->address);
	MDL_RAW1(close, mem);
	return done;
}

/* Prepares the jump and the page that it leads to. */
static bool prepare(struct place *place, uint32_t number)
{
	uint64_t stub = map_stub(place);
	int32_t distance = (int32_t)(stub - (place->address + JUMP_BYTES));
	uint64_t from = stub & ~(uint64_t)(MDL_PAGE - 1);

	if (!stub)
		return false;
	place->now[0] = 0xe9;
	memcpy(place->now + 1, &distance, sizeof(distance));
	place->native = stub + STUB_NATIVE;
	put_stub((uint8_t *)stub, place, number);
	return MDL_RAW3(mprotect, from, stub + STUB_BYTES - from, PROT_READ | PROT_EXEC) == 0;
}

static void install(uint64_t rip)
{
	uint32_t number = place_cnt;
	struct place *place = &places[number];

	if (!able || number == PLACES_MAX || krn_kick_code(rip) || was_refused(rip))
		return;
	place->address = rip;
	place->len = movable(rip);
	place->state = PLACE_REFUSED;
	if (place->len >= 2 && !is_copy_for_all(rip) && !touches_another(rip, place->len)) {
		memcpy(place->was, (const void *)rip, place->len);
		if (prepare(place, number))
			place->state = PLACE_IN_HAND;
	}
	__atomic_store_n(&place_cnt, number + 1, __ATOMIC_RELEASE);
	if (place->state == PLACE_IN_HAND)
		__atomic_store_n(&place->state, put_in_place(place) ? PLACE_DONE : PLACE_REFUSED,
				 __ATOMIC_RELEASE);
}

void krn_kick_install(uint64_t rip)
{
	if (__atomic_exchange_n(&place_lock, 1, __ATOMIC_ACQUIRE))
		return; /* another thread prepares it: retry at the next trap */
	install(rip);
	__atomic_store_n(&place_lock, 0, __ATOMIC_RELEASE);
}

/* ---- start, and after fork() ---- */

static bool is_in(const struct dl_phdr_info *info, const ElfW(Phdr) * part, uint64_t address)
{
	uint64_t from = info->dlpi_addr + part->p_vaddr;

	return part->p_type == PT_LOAD && part->p_flags & PF_X && address >= from &&
	       address < from + part->p_memsz;
}

/* Records the functions that copy memory: the C library's and a sanitizer's replacements. */
static int note_copies(struct dl_phdr_info *info, size_t size, void *unused)
{
	const uint64_t known[] = { (uintptr_t)krn_real()->read, (uintptr_t)memcpy,
				   (uintptr_t)memmove };

	for (int i = 0; i < info->dlpi_phnum; i++)
		for (int k = 0; k < 3; k++)
			if (copies_cnt < 4 && is_in(info, &info->dlpi_phdr[i], known[k])) {
				copies[copies_cnt].from =
					info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
				copies[copies_cnt].to =
					copies[copies_cnt].from + info->dlpi_phdr[i].p_memsz;
				copies_cnt++;
				break;
			}
	return 0;
}

void krn_kick_prepare(void)
{
	uint32_t a, b, c = 0, d;

	able = __get_cpuid(1, &a, &b, &c, &d) && c & bit_OSXSAVE;
	if (!copies_cnt)
		dl_iterate_phdr(note_copies, NULL);
}

void krn_kick_forget(void)
{
	long mem = MDL_RAW4(openat, AT_FDCWD, "/proc/self/mem", O_RDWR | O_CLOEXEC, 0);

	for (uint32_t i = 0; i < place_cnt; i++)
		if (places[i].state == PLACE_IN_HAND) {
			poke(mem, places[i].address, places[i].was, places[i].len);
			places[i].state = PLACE_REFUSED;
		}
	MDL_RAW1(close, mem);
	place_lock = 0;
}
