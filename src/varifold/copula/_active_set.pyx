"""Active set: the at most `max_dense` features that a dense model covers, and how they join and leave it.

A member of the set is a node. The indicators of one column are chained, so that the levels that are not given can be
observed zeros; the first level seen is the reference of its column and gets no node.

When all nodes are taken, the recently most active features hold them. An observation counts 1 and decays by 1/e in
`memory` learns. Instead of decaying old counts, new ones are scaled up (`Clock.unit`): a count changes only when its
feature is observed, and then it grows. So the heap of nodes may hold old counts; the top one is corrected when read.
"""

from libc.math cimport exp
from libc.stdint cimport int32_t, int64_t

from varifold._numeric.heap cimport heap_down, heap_drop, heap_order, heap_touch
from varifold._engine.names.table cimport INDICATOR
from varifold._engine.names.space cimport seen_count
from varifold._engine.state cimport State
from varifold._engine.view cimport View

from varifold._engine.state import check_chains, fixed, per_slot

cdef double RATIO = 1.5            # a swap requires this many times the activity of the weakest node
cdef double PATIENCE = 0.01        # and a lead of this share of the memory, so that two features do not alternate
cdef double LARGEST_UNIT = 1e100   # rescale all counts beyond it


cdef class ActiveSet:
    """Map slots to nodes; a subclass keeps the state of a node."""

    def __cinit__(self):
        self.slot_arrays = State()
        self.slot_arrays.declare("slots", <int64_t**> &self.by_slot, per_slot(width=3, low=-1))
        self.slot_arrays.declare("active", &self.active, per_slot(low=0))
        self.slot_arrays.declare("unit", <double**> &self.clock, fixed(2, low=0))
        self.node_arrays = State()
        self.node_arrays.declare("nodes", <int64_t**> &self.by_node, per_slot(width=2, low=0))
        self.node_arrays.scratch(&self.rank_key, per_slot())
        self.node_arrays.scratch(&self.order.item, per_slot())
        self.node_arrays.scratch(&self.order.place, per_slot())
        self.order.stride = 1

    cdef void joined(self, Py_ssize_t node, int32_t slot) noexcept nogil:
        """Initialise a node after a feature has joined it."""
        pass

    cdef void left(self, Py_ssize_t node) noexcept nogil:
        """Clear a node after its feature has left."""
        pass

    cdef void set_memory(self, double memory) noexcept nogil:
        """Set the number of learns in which an observation decays by 1/e."""
        self.clock.unit = 1.0
        self.growth = exp(1.0 / memory)
        self.patience = PATIENCE * memory

    # ---------------------------------------------------------------- memory

    cdef int reserve_slots(self, Py_ssize_t slots) except -1:
        """Reserve memory for this many slots."""
        self.slot_arrays.reserve_slots(slots)
        self.slots = max(self.slots, slots)
        return 0

    cdef int reserve_nodes(self, Py_ssize_t nodes) except -1:
        """Reserve memory for this many nodes."""
        try:
            self.node_arrays.reserve_slots(nodes)
        finally:
            self.order.key = self.rank_key   # the array may have moved even if a later one ran out of memory
        self.order.capacity = nodes
        self.node_capacity = nodes
        return 0

    # ---------------------------------------------------------------- activity

    cdef int64_t frequency(self, int32_t slot) noexcept nogil:
        """Return the number of learns that observed the feature; for an indicator those that observed its column."""
        return seen_count(&self.space.seen[self.space.column[slot]])

    cdef void count(self, View* v) noexcept nogil:
        """Count the features of an instance that is being learned."""
        cdef Py_ssize_t i
        cdef Clock* clock = self.clock
        clock.unit *= self.growth
        clock.learned += clock.unit
        for i in range(v.n):
            self.active[v.slot[i]] += clock.unit
        if clock.unit > LARGEST_UNIT:
            for i in range(self.slots):
                self.active[i] /= clock.unit
            clock.learned /= clock.unit
            clock.unit = 1.0
            self.rank()

    cdef double rate(self, int32_t slot) noexcept nogil:
        """Return the share of recent instances that contained the feature."""
        return self.active[slot] / self.clock.learned if self.clock.learned > 0.0 else 0.0

    cdef void rank(self) noexcept nogil:
        """Order all nodes by the activity of their features."""
        cdef Py_ssize_t i
        for i in range(self.order.n):
            self.rank_key[self.order.item[i]] = self.active[self.by_node[self.order.item[i]].slot]
        heap_order(&self.order)

    cdef Py_ssize_t weakest(self) noexcept nogil:
        """Return the least active node, the latest among ties. There must be one."""
        cdef int32_t node = self.order.item[0]
        while self.rank_key[node] != self.active[self.by_node[node].slot]:
            self.rank_key[node] = self.active[self.by_node[node].slot]
            heap_down(&self.order, 0)
            node = self.order.item[0]
        return node

    cdef bint outdoes(self, int32_t slot) noexcept nogil:
        """Return whether a feature leads the weakest node by enough for a swap."""
        cdef double lead = self.active[slot] - RATIO * self.active[self.by_node[self.weakest()].slot]
        return lead > self.patience * self.clock.unit

    # ---------------------------------------------------------------- joining and leaving

    cdef int32_t leave(self, Py_ssize_t node) noexcept nogil:
        """Free a node; return the slot that held it."""
        cdef int32_t slot = <int32_t> self.by_node[node].slot
        cdef int64_t* link
        if self.space.kind[slot] & INDICATOR:
            link = &self.by_slot[self.space.column[slot]].first
            while link[0] != node + 1:
                link = &self.by_node[link[0] - 1].next
            link[0] = self.by_node[node].next
        heap_drop(&self.order, <int32_t> node)
        self.by_node[node].next = 0
        self.by_slot[slot].node = 0
        self.by_node[node].slot = 0
        self.idle += 1
        self.left(node)
        self.version += 1
        self.tick += 1
        return slot

    cdef void forget(self, int32_t slot) noexcept nogil:
        """Remove an evicted feature."""
        self.active[slot] = 0.0
        if self.by_slot[slot].node > 0:
            self.leave(self.by_slot[slot].node - 1)
        elif self.by_slot[slot].node < 0:
            self.by_slot[self.space.column[slot]].reference = 0
            self.by_slot[slot].node = 0

    cdef void join(self, int32_t slot) noexcept nogil:
        """Give a feature the first free node; there must be one."""
        cdef Py_ssize_t node = self.nodes
        cdef SlotEntry* column = &self.by_slot[self.space.column[slot]]
        if self.idle:
            node = 0
            while self.by_node[node].slot != 0:
                node += 1
            self.idle -= 1
        else:
            self.nodes += 1
        self.by_slot[slot].node = node + 1
        self.by_node[node].slot = slot
        self.rank_key[node] = self.active[slot]
        heap_touch(&self.order, <int32_t> node)
        if self.space.kind[slot] & INDICATOR:
            self.by_node[node].next = column.first
            column.first = node + 1
        self.joined(node, slot)
        self.version += 1
        self.tick += 1

    cdef int32_t admit(self, View* v) noexcept nogil:
        """Let the instance's features join. If all nodes are taken, one per instance may replace a less active one.

        Returns the slot that was replaced, 0 for none.
        """
        cdef Py_ssize_t i
        cdef int32_t slot, column, replaced = 0
        self.count(v)
        for i in range(v.n):
            slot = v.slot[i]
            if slot == 0 or self.by_slot[slot].node != 0:
                continue
            column = self.space.column[slot]
            if (self.space.kind[slot] & INDICATOR and self.by_slot[column].reference == 0
                    and self.by_slot[column].first == 0):
                self.by_slot[column].reference = slot
                self.by_slot[slot].node = -1
            elif self.idle or self.nodes < self.max_dense:
                self.join(slot)
            elif replaced == 0 and self.outdoes(slot):
                replaced = self.leave(self.weakest())
                self.join(slot)
        return replaced

    def role(self, Py_ssize_t slot):
        """Return 'latent' for a node, 'reference' for the reference level of its column, or ''."""
        if not 0 <= slot < self.slots:
            raise IndexError(f"no feature has the slot {slot}; slots are below {self.slots}")
        return "latent" if self.by_slot[slot].node > 0 else "reference" if self.by_slot[slot].node < 0 else ""

    # ---------------------------------------------------------------- files

    cdef dict dump_nodes(self, Py_ssize_t size):
        return self.slot_arrays.dump(size, 0) | self.node_arrays.dump(self.nodes, 0)

    cdef int fill_nodes(self, dict arrays) except -1:
        """Restore the result of dump_nodes(); memory is reserved."""
        cdef Py_ssize_t i, count = len(arrays["nodes"])
        self.slot_arrays.fill(arrays, -1, self.slots, 0)
        self.node_arrays.fill(arrays, -1, self.node_capacity, 0)
        self.check_links(arrays["nodes"], arrays["slots"], len(arrays["active"]))
        self.nodes = count
        self.idle = int((arrays["nodes"][:, 0] == 0).sum())
        while self.order.n:
            heap_drop(&self.order, self.order.item[0])
        for i in range(self.nodes):
            if self.by_node[i].slot != 0:
                self.rank_key[i] = self.active[self.by_node[i].slot]
                heap_touch(&self.order, <int32_t> i)
        return 0

    cdef int check_links(self, nodes, slots, Py_ssize_t size) except -1:
        """Reject nodes and slots that do not refer to each other as join() and leave() maintain them."""
        count = len(nodes)
        if not 1.0 <= self.clock.unit <= LARGEST_UNIT:
            raise ValueError(f"unit is {self.clock.unit}; an observation counts 1 to {LARGEST_UNIT:g}")
        if not size or len(slots) != size:
            raise ValueError(f"active holds {size} numbers for {len(slots)} slots")
        if count and (nodes[:, 0].max() >= size or nodes[:, 1].max() > count):
            raise ValueError("nodes holds numbers of features or nodes that do not exist")
        if slots[:, :2].max() > count or slots[:, 1:].min() < 0 or slots[:, 2].max() >= size:
            raise ValueError("slots holds numbers of features or nodes that do not exist")
        taken = {slot: node + 1 for node, slot in enumerate(nodes[:, 0].tolist()) if slot}
        if taken != {slot: node for slot, node in enumerate(slots[:, 0].tolist()) if node > 0}:
            raise ValueError("nodes and slots do not name each other")
        check_chains(slots[:, 1].tolist(), [0, *nodes[:, 1].tolist()],
                     {node: self.space.column[<Py_ssize_t> slot] for slot, node in taken.items()
                      if self.space.kind[<Py_ssize_t> slot] & INDICATOR})
        return 0
