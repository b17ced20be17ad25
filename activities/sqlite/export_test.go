package sqlite

import "reprise/activities/tool"

// HeapBytes is what a worker lets SQLite take.
func HeapBytes(res tool.Resources) int64 { return heapBytes(res) }

// HeapLimit is what SQLite may take of this process by now, 0 before its
// first use.
func HeapLimit() int64 {
	heap.mu.Lock()
	defer heap.mu.Unlock()
	return heap.limit
}

// HeapUsers is how many use SQLite now.
func HeapUsers() int {
	heap.mu.Lock()
	defer heap.mu.Unlock()
	return heap.using
}
