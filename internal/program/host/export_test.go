package host

// These are for tests.
var (
	CgroupBytes   = cgroupBytes
	ReservedBytes = reservedBytes
)

// MemoryInUse is what bounds the workflows that are kept.
func MemoryInUse() int64 { return (&cacheWatch{}).measureMemory() }

// WorkerOptions are the options of a worker of a build.
var WorkerOptions = OwnBuild.workerOptions
