package host

// These are for tests.
var (
	CgroupBytes   = cgroupBytes
	ReservedBytes = reservedBytes
)

// MemoryInUse is what bounds the workflows that are kept.
func MemoryInUse() int64 { return (&cacheWatch{}).measureMemory() }
