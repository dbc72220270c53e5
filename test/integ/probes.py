# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# Read by gdb: runs its program to the end and writes to $PROBES_OUT, as JSON, for each probe of copyrpc how often it was
# passed, and the sums and values of its arguments. gdb finds probes and arguments by the notes that tracers use, too.
import collections, json, os
import gdb

ARGUMENTS = json.loads(os.environ["PROBES_ARGUMENTS"])
seen = {name: [] for name in ARGUMENTS}


class Passed(gdb.Breakpoint):
    def __init__(self, name):
        super().__init__(f"-probe-stap copyrpc:{name}")
        self.name = name

    def stop(self):
        values = [int(gdb.parse_and_eval(f"$_probe_arg{i}")) & (1 << 64) - 1 for i in range(ARGUMENTS[self.name])]
        if int(gdb.parse_and_eval("$_probe_argc")) != len(values):
            raise gdb.GdbError(f"{self.name} has another number of arguments")
        seen[self.name].append(values)
        return False


gdb.execute("set confirm off")
gdb.execute("set pagination off")
gdb.execute("set breakpoint pending off")
gdb.execute("handle SIGSEGV nostop noprint pass")  # fi_cost_bench replaces the processor's counter so
gdb.execute("catch load libcopyrpc-fi")
gdb.execute("run")
breakpoints = [Passed(name) for name in ARGUMENTS]
gdb.execute("continue")
with open(os.environ["PROBES_OUT"], "w") as out:
    json.dump(seen, out)
