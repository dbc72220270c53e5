#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""What a Python program asks of MPI, with answers that are known in advance.

Run by mpi-real over any number of ranks from two. mpi4py starts MPI with MPI_THREAD_MULTIPLE.
"""
import threading
from array import array

from mpi4py import MPI

COMM = MPI.COMM_WORLD
RANK, SIZE = COMM.Get_rank(), COMM.Get_size()
RIGHT, LEFT = (RANK + 1) % SIZE, (RANK - 1) % SIZE


def pattern(length, seed):
    """Bytes that sender and receiver can both compute."""
    return (bytes((i * 131 + seed * 7) & 0xFF for i in range(256)) * (length // 256 + 1))[:length]


def collectives():
    """Sums, gathered lists and objects of Python."""
    assert COMM.allreduce(RANK + 1) == SIZE * (SIZE + 1) // 2
    assert COMM.allreduce(RANK, op=MPI.MAX) == SIZE - 1
    assert COMM.allgather(RANK * RANK) == [r * r for r in range(SIZE)]
    assert COMM.bcast({"from": RANK}, root=SIZE - 1) == {"from": SIZE - 1}
    assert COMM.alltoall([(RANK, to) for to in range(SIZE)]) == [(r, RANK) for r in range(SIZE)]
    assert COMM.scan(1) == RANK + 1
    values = array("d", [RANK] * 50000)
    total = array("d", [0.0] * 50000)
    COMM.Allreduce(values, total)
    assert all(v == SIZE * (SIZE - 1) / 2 for v in total)


def probes():
    """A probe leaves the message, a matched probe takes it."""
    request = COMM.isend(["first", RANK], RIGHT, tag=1)
    status = MPI.Status()
    COMM.probe(LEFT, 1, status)
    assert status.Get_source() == LEFT and COMM.recv(source=LEFT, tag=1) == ["first", LEFT]
    request.wait()
    request = COMM.isend(("second", RANK), RIGHT, tag=2)
    message = COMM.mprobe(LEFT, 2)
    assert COMM.improbe(LEFT, 2) is None
    assert message.recv() == ("second", LEFT)
    request.wait()


def synchronous_sends():
    """A synchronous send meets its receive.

    Not with COMM.recv(): that is a matched probe, which Open MPI 4.1 never acknowledges to a
    synchronous sender.
    """
    got = array("i", [-1])
    request = COMM.Issend(array("i", [RANK]), RIGHT, tag=3)
    COMM.Recv(got, source=LEFT, tag=3)
    assert got[0] == LEFT
    request.Wait()


def cancelled_receives():
    """A cancelled receive takes nothing."""
    never, status = bytearray(8), MPI.Status()
    request = COMM.Irecv(never, LEFT, 4)
    request.Cancel()
    request.Wait(status)
    assert status.Is_cancelled() and never == bytearray(8)
    COMM.Barrier()
    assert COMM.sendrecv(RANK, RIGHT, 4, None, LEFT, 4) == LEFT


def lengths():
    """From nothing to 16 MiB."""
    for length in (0, 1, 4095, 65537, 16 << 20):
        out, into = pattern(length, RANK), bytearray(length)
        COMM.Sendrecv(out, RIGHT, 5, into, LEFT, 5)
        assert into == pattern(length, LEFT), length


def threads():
    """Four threads talk at once, each on its own tag."""
    failures = []

    def talk(tag):
        for i in range(200):
            got = COMM.sendrecv((tag, i, RANK), RIGHT, tag, None, LEFT, tag)
            if got != (tag, i, LEFT):
                failures.append(got)

    assert MPI.Query_thread() == MPI.THREAD_MULTIPLE
    workers = [threading.Thread(target=talk, args=(100 + t,)) for t in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not failures, failures[:3]


for check in (collectives, probes, synchronous_sends, cancelled_receives, lengths, threads):
    check()
    COMM.Barrier()
if RANK == 0:
    print("real_mpi4py: ok on", SIZE, "ranks")
